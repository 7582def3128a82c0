"""What the size of SGLD's steps and of its minibatches does to the distribution of its draws.

    python -m benchmarks.papers.karagiannis2023.sgld_steps

**Decreasing steps against a known posterior** (Condition 25 and Eq. 3.8 of Karagiannis' handout;
section 3.1 of Ahn, Korattikara & Welling 2012). The model is linear regression with known noise
variance, 2,000 rows and three columns, two of them correlated, so that the posterior is normal and
known exactly. 128 chains start at its mean, with 20 rows a step. The step is constant, or decreases
from the same value as (1 + t / 100)^-.55, which satisfies Condition 25. The table has the mean
variance ratio over the posterior of the first and of the last tenth of 300,000 steps, and of all
draws weighted by their steps; beside it, for the constant step and for the end of the decreasing
ones, the stationary ratio by the exact noise of least squares. A constant step must stay as wide as
theory says, decreasing ones must end as theory says and within a tenth of the posterior.

**Small minibatches cross barriers** (page of Figure 4.2: on a posterior with several modes smaller
batches "could have performed better", as their noise is larger). The posterior with two modes is
that of annealing.py, for 150 rows of the mixture. 128 chains start in one of the modes and make
5,000 steps of one size, at temperature 1; only the rows of a minibatch differ. The table has the
share of chains that have been in the other mode, and the variance of b of those that have not, over
the posterior's in that mode: what crosses also widens. The claim is that with 3 rows a chain is at
least twice as likely to cross as with 100. A barrier that is much higher no size crosses in this
time. Two CPU minutes.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import Posterior, begin, posterior_of
from benchmarks.papers.karagiannis2023.annealing import TwoModes
from skbayes_sg import theory
from skbayes_sg.chains.run import Length, run_chain
from skbayes_sg.models import Linear
from skbayes_sg.samplers import SGLD, PolynomialDecay

N, D, BATCH, N_CHAINS = 2000, 3, 20, 128
STEP, N_STEPS, THIN = 2e-5, 300_000, 50
DECREASING = PolynomialDecay(STEP * 100**0.55, 100.0, 0.55)
SIZES = (3, 10, 30, 100)
TWO_ROWS, TWO_STEP, TWO_STEPS, TWO_THIN = 150, 15.0, 5_000, 10
"""rows of the mixture, the step in units of annealing.py's, steps, and steps per draw"""


def regression() -> tuple[Posterior, NDArray, NDArray]:
    """The posterior, its mean (1, D) and its precision."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((N, D))
    X[:, 1] += X[:, 0]
    y = X @ np.ones(D) + rng.standard_normal(N)
    posterior = posterior_of(Linear(D, fit_intercept=False, noise_variance=1.0), X, y, 1.0)
    Lam = X.T @ X + np.eye(D)
    return posterior, np.linalg.solve(Lam, X.T @ y)[None], Lam


def of_steps(label: str, step, given: tuple[Posterior, NDArray, NDArray]) -> list[dict]:
    """Variance ratios of chains with constant or decreasing steps, by part of the run."""
    posterior, mean, Lam = given
    sampler = SGLD(step, batch_size=BATCH)
    state = begin(sampler, posterior, np.repeat(mean, N_CHAINS, axis=0), seed=1)
    chain = run_chain(sampler, posterior, state, Length(N_STEPS // THIN, thin=THIN))
    values, axes = np.linalg.eigh(Lam)
    each = (((chain.draws - mean) @ axes) ** 2 * values).mean(axis=2)
    X, y = posterior.data.X, posterior.data.y
    count = each.shape[1]
    parts = {
        "first tenth": slice(0, count // 10),
        "last tenth": slice(-count // 10, None),
        "all, weighted": slice(0, count),
    }
    rows = []
    for part, chosen in parts.items():
        weights = chain.weights[chosen] / chain.weights[chosen].sum()
        of_chain = each[:, chosen] @ weights
        at = np.arange(count)[chosen] * THIN
        eta = float(np.mean([step(t) for t in at])) if callable(step) else step
        row = {"steps": label, "draws": part, "mean step": eta}
        row |= {"variance ratio": float(of_chain.mean())}
        row |= {"se": float(of_chain.std(ddof=1) / np.sqrt(N_CHAINS))}
        if not callable(step) or part == "last tenth":  # elsewhere steps change while chains settle
            law = partial(theory.sgld_cov, step_size=eta)
            row["theory"] = float(np.sum(Lam * law(*theory.lsq_noise(X, y, law, BATCH, False))) / D)
        rows.append(row)
    return rows


def of_batches(two: TwoModes) -> list[dict]:
    """Chains that leave a mode, by the rows of a minibatch."""
    rows = []
    for size in SIZES:
        sampler = SGLD(TWO_STEP * two.step, batch_size=size)
        start = np.repeat(two.minor[None], N_CHAINS, axis=0)
        state = begin(sampler, two.posterior, start, seed=size)
        length = Length(TWO_STEPS // TWO_THIN, thin=TWO_THIN)
        b = run_chain(sampler, two.posterior, state, length).draws[..., 1]
        crossed = (b < 0 if two.minor[1] > 0 else b > 0).any(axis=1)
        row = {"rows of a minibatch": size, "share that crossed": float(crossed.mean())}
        stayed = b[~crossed]
        if len(stayed):
            row["variance in the mode over exact"] = float(stayed.var() / two.variance)
        rows.append(row | {"step": TWO_STEP * two.step})
    return rows


def main(report: Report) -> None:
    """Both parts."""
    given = regression()
    rows = [*of_steps("constant", STEP, given), *of_steps("decreasing", DECREASING, given)]
    z = [(row["variance ratio"] - row["theory"]) / row["se"] for row in rows if "theory" in row]
    constant, decreasing = rows[1], rows[4]
    claims = [
        Claim("variance ratio less theory's, in se", z, -5, 5),
        Claim("constant step: variance ratio at the end", constant["variance ratio"], low=2),
        Claim("decreasing step: variance ratio at the end", decreasing["variance ratio"], 0.9, 1.1),
    ]
    report.save(rows, claims, name="sgld_decreasing")
    rows = of_batches(TwoModes(TWO_ROWS))
    few, many = (rows[at]["share that crossed"] for at in (0, -1))
    claim = Claim("share that crossed with 3 rows, twice that with 100", few, low=2 * many)
    report.save(rows, [claim], name="sgld_barriers")


if __name__ == "__main__":
    benchmark(main, threads=1)
