"""Mandt, Hoffman & Blei (2017), Table 1: do its figures come out under any reading of the paper?

    python -m benchmarks.papers.mandt_readings [--full]

**The scale of the columns.** The paper "rescaled the feature to unit length" and says no more. The
divergences depend on it, as do the steps of SGLD, which the paper gives as numbers. Seven readings
are compared: columns divided by their largest absolute value, or by their Euclidean norm, both as
they are and centred first; standardised columns; columns between 0 and 1; and rows of norm 1. For
linear regression each comes with the response as it is and with a centred one, as there is no
intercept.

Per reading and data set mandt_scalings.csv has the divergence of constant SGD, of SGD-d and of SGLD
in closed form, in continuous time, beside the published; the spectral radius of SGLD's step, which
is unstable from 1; and the condition number of the posterior's precision. The paper calls its steps
of SGLD the largest that were stable. mandt_table1.py divides wine and protein by the largest
absolute value, and skin, once centred, by 255, which is nearly that. The claim is that of no
reading all three figures of a data set are within a quarter of the print, so that Table 1 cannot be
computed from what the paper says.

**The length of the chains.** The published KL of constant SGD on protein, 1000.9, is 60 times what
the stationary distribution has in closed form (mandt_table1.py), and the chain forgets its start in
1e7 steps only. The hypothesis is that the published figures hold a mean that was still on its way.
So chains start here at zero. The mean of the chain is F^t from the mode, and KL of its distribution
at step t is known.

It equals the published 1000.9, 678.4 and 597.4 of constant SGD, SGD-d and SGFS-d at 2.6, 2.8 and
3.2 million steps: one number of steps would explain the three. Black-box variational inference with
Adam from zero has KL 563 after 20,000 steps and 315 after 40,000, the published 478 between them.
The hypothesis does not explain -f (8e4 steps), nor SGLD, whose distribution alone has KL 77. The
paper has 8 features of the 9 here and does not say how long it ran, so more cannot be said.

mandt_protein.csv has, per method, the published figure and the step at which the distribution from
zero has it. Then, at five steps, KL of the distribution (with the preconditioner that the chains
measured), KL of the mean of four chains with that covariance ("chains", about 1 of it by chance),
and this mean less the distribution's in standard errors, along the distance that is left ("z"). The
distribution has additive noise; far from the mode there is more. ``--full`` simulates 250,000
steps; the default is 50,000.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.datasets import regression, skin
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import Posterior, begin, exact_mode, posterior_of
from benchmarks.papers.mandt_problems import (
    BATCH_SIZE,
    EPSILON,
    Method,
    Problem,
    bbvi,
    methods,
    problem,
)
from benchmarks.papers.mandt_table1 import PUBLISHED
from skbayes_sg import theory
from skbayes_sg.chains.run import Length, run_chain
from skbayes_sg.models import Linear, Softmax

DATA_SETS = ["wine", "skin", "protein"]  # the order of PUBLISHED
NEAR = 0.25
FROM_ZERO = ["constant SGD", "SGD-d", "SGFS-d", "SGD-f", "SGLD"]
SIMULATED = ["constant SGD", "SGD-d"]
N_CHAINS = 4


def readings(X: NDArray) -> dict[str, NDArray]:
    """What "unit length" may mean."""
    centred = X - X.mean(axis=0)
    return {
        "largest absolute value 1": X / np.abs(X).max(axis=0),
        "largest absolute value 1, centred": centred / np.abs(centred).max(axis=0),
        "columns of norm 1": X / np.linalg.norm(X, axis=0),
        "columns of norm 1, centred": centred / np.linalg.norm(centred, axis=0),
        "standardised": centred / centred.std(axis=0),
        "from 0 to 1": (X - X.min(axis=0)) / np.ptp(X, axis=0),
        "rows of norm 1": X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12),
    }


def posteriors(name: str) -> Iterator[tuple[str, str, Posterior]]:
    """Under each reading: its name, the response, and the posterior."""
    X, y = skin() if name == "skin" else regression(name)
    for reading, scaled in readings(np.asarray(X, dtype=float)).items():
        scaled = np.ascontiguousarray(scaled)
        if name == "skin":
            model = Softmax(X.shape[1], 2, fit_intercept=False)
            yield reading, "classes", posterior_of(model, scaled, y, 1.0)
            continue
        model = Linear(X.shape[1], fit_intercept=False, noise_variance=1.0)
        for response, values in (("as it is", y), ("centred", y - y.mean())):
            yield reading, response, posterior_of(model, scaled, values, 1.0)


def row(name: str, reading: str, response: str, posterior: Posterior) -> dict:
    """Divergences of three methods, and how many are near the print."""
    mode, Lam = exact_mode(posterior)
    I1 = posterior.score_covariance(mode)
    M = theory.noise_cov(I1, posterior.n_rows, BATCH_SIZE[name], replace=True)
    eta, eye = EPSILON[name] / 2, np.eye(len(Lam))
    steps = {
        "constant SGD": (theory.optimal_preconditioner(Lam, M, "ou-scalar"), 0.0),
        "SGD-d": (theory.optimal_preconditioner(Lam, M, "ou-diag"), 0.0),
        "SGLD": (eta, 2 / eta * eye),
    }
    found = {"data": name, "reading": reading, "response": response}
    column = DATA_SETS.index(name)
    near = 0
    for method, (K, injected) in steps.items():
        kl = theory.kl_stationary(Lam, M + injected, K, discrete=False)
        printed = float(PUBLISHED[method][column])
        found |= {method: kl, f"{method}, printed": printed}
        near += abs(kl / printed - 1) < NEAR
    return found | {
        "near": near,
        "radius of SGLD": theory.spectral_radius(Lam, eta),
        "condition": np.linalg.cond(Lam),
    }


def distribution_at(given: Problem, method: Method, t: float) -> tuple[NDArray, NDArray]:
    """Mean (from the mode) and covariance of the chain at step t from zero, additive noise."""
    values, vectors = np.linalg.eig(method.K @ given.Lam)
    power = ((vectors * (1 - values) ** t) @ np.linalg.inv(vectors)).real
    Sigma = theory.stationary_cov(given.Lam, given.M + method.injected, method.K)
    return -power @ given.mode[0], Sigma - power @ Sigma @ power.T


def on_the_way(given: Problem, n_steps: int) -> list[dict]:
    """Per method: the distribution at all times, where the published figure is met, and chains."""
    cov, rows = np.linalg.inv(given.Lam), []
    steps = np.geomspace(1e3, 1e7, 400).round()
    for seed, label in enumerate(FROM_ZERO):
        method, published = methods(given)[label], float(PUBLISHED[label][2])
        distributions = [distribution_at(given, method, t) for t in steps]
        kl = np.array([theory.kl_gauss(Sigma, cov, mean) for mean, Sigma in distributions])
        met = steps[kl <= published]
        row: dict = {"method": label, "published": published}
        row["met at step"] = float(met[0]) if len(met) else None
        # the path of SGFS, which goes on measuring its preconditioner, is not F^t
        if label in SIMULATED:
            row |= chains(given, method, n_steps, seed)
        rows.append(row)
    return rows


def chains(given: Problem, method: Method, n_steps: int, seed: int) -> dict[str, float]:
    """Chains from zero, with the preconditioner measured at the mode, at five steps."""
    cov, every = np.linalg.inv(given.Lam), n_steps // 5
    start = np.tile(given.mode, (N_CHAINS, 1))
    state = begin(method.sampler, given.posterior, start, seed)
    burn_in = method.sampler.run_length(state).burn_in
    # a burn-in at the mode measures the noise there, as the closed form has it
    state = run_chain(method.sampler, given.posterior, state, Length(0, burn_in)).state
    own = method._replace(
        K=state.memory.preconditioner.dense()
    )  # the step that is measured, and taken
    state.theta[:] = 0.0
    draws = run_chain(method.sampler, given.posterior, state, Length(6, thin=every)).draws
    found = {}
    for k in range(1, 6):
        mean, Sigma = distribution_at(given, own, k * every)
        path, u = draws[:, k].mean(axis=0) - given.mode[0], given.Lam @ mean
        found[f"law {k * every}"] = theory.kl_gauss(Sigma, cov, mean)
        found[f"chains {k * every}"] = theory.kl_gauss(Sigma, cov, path)
        found[f"z {k * every}"] = float(u @ (path - mean) / np.sqrt(u @ Sigma @ u / N_CHAINS))
    return found


def main(report: Report, full: bool) -> None:
    """Every reading, then chains on their way and runs of variational inference beside them."""
    rows = [row(name, *one) for name in DATA_SETS for one in posteriors(name)]
    claims = [
        Claim(
            f"{name}: most figures of three within a quarter of the print, of all readings",
            max(r["near"] for r in rows if r["data"] == name),
            high=2,
        )
        for name in DATA_SETS
    ]
    report.save(rows, claims, name="mandt_scalings", title="KL in nats, continuous time")
    given = problem("protein")
    rows = on_the_way(given, 250_000 if full else 50_000)
    for n_steps in (10_000, 20_000, 40_000):
        kl = bbvi(given, n_runs=4, n_steps=n_steps, rate=0.1).divergence(given).mean()
        print(f"BBVI, {n_steps:,} steps: KL {kl:.4g}, published {PUBLISHED['BBVI'][2]}")
    claims = [
        Claim(f"protein, {row['method']}, {name}", value, -5, 5)
        for row in rows
        for name, value in row.items()
        if name.startswith("z ")
    ]
    report.save(rows, claims, name="mandt_protein", title="protein: KL in nats from zero")


if __name__ == "__main__":
    benchmark(main, full={"action": "store_true", "help": "250,000 steps, not 50,000"})
