"""Every sampler on one posterior: what it targets, with which bias, how fast.

    python -m benchmarks.exactness.samplers

The data are MNIST 7 against 9 (10,000 rows, 51 parameters). Each sampler takes 500 rows a step in
eight chains around the mode, 20,000 steps after 3,000 of burn-in. The table has variance ratios
(drawn over true, on average over directions, and smallest and largest along the axes of the
posterior) beside those that theory expects of the frozen step, and autocorrelation times in
passes over the data.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.datasets import mnist_7_vs_9
from benchmarks.common.harness import Report, benchmark
from benchmarks.common.internals import anchored, logistic_posterior, mode_at
from benchmarks.common.reference import importance_reference
from skbayes_sg import diagnostics
from skbayes_sg.chains.run import Execution, Length, radius, rows_touched, run_chains, start_chains
from skbayes_sg.diagnostics import stein_ratio_of_sums
from skbayes_sg.samplers import (
    HMC,
    IASG,
    SGD,
    SGFS,
    SGLD,
    ConstantSGD,
    MomentumSGD,
    UnderdampedLangevin,
)

SAMPLERS = [
    UnderdampedLangevin(),
    SGFS(),
    SGFS(alpha=2.0),
    SGFS(alpha=1.0, structure="diag"),
    SGFS(alpha=3.0, structure="diag"),
    SGFS(alpha=3.0, structure="kron", B="precision"),
    SGLD(),
    SGLD(preconditioner="diag"),
    ConstantSGD(),
    ConstantSGD(correction="ou"),
    ConstantSGD("diag"),
    ConstantSGD("scalar"),
    ConstantSGD("sqrt"),
    MomentumSGD(),
    MomentumSGD(structure="scalar"),
    IASG(),
    IASG(structure="scalar"),
    SGD(),
    HMC(),
]
N_CHAINS, N_STEPS = 8, 20_000
COLUMNS = ["sampler", "ratio", "theory", "min", "theory min", "max", "theory max"]
COLUMNS += ["Stein", "IAT passes", "E2"]


def length_of(sampler, state) -> Length:
    """Draws, burn-in and thinning."""
    if isinstance(sampler, HMC):
        return Length(N_STEPS // 10, 300)
    thin = sampler.run_length(state).thin if isinstance(sampler, IASG) else 10
    return Length(N_STEPS // max(thin, 10), 300 if thin == 1 else 3000, thin)


def run(sampler, plain, reference) -> dict:
    """Chains of one sampler and their figures."""
    posterior = plain
    if sampler.variance_reduction:
        posterior, _ = anchored(plain, mode_at(reference.mode, reference.curvature))
    sampler.resolve_auto(posterior)
    z = np.random.default_rng(1).standard_normal((N_CHAINS, posterior.dim))
    theta = reference.mean + z @ np.linalg.cholesky(reference.cov).T
    states = start_chains(sampler, posterior, theta, np.random.SeedSequence(7))
    if (found := radius(sampler, posterior, states[0])) >= 1:
        return {"sampler": repr(sampler), "ratio": f"unstable, radius {found:.2f}"}
    length = length_of(sampler, states[0])
    chains = run_chains(sampler, posterior, states, length, Execution())
    touched = rows_touched(sampler, [chain.state for chain in chains])
    passes = touched / posterior.n_rows / N_CHAINS  # a chain's share
    found = figures(np.concatenate([chain.draws for chain in chains]), reference)
    kept = length.n_draws * length.thin / chains[0].state.t
    found["IAT passes"] *= passes * kept / length.n_draws
    if sampler.draws_are_points:
        found["Stein"] = stein_ratio_of_sums([chain.stein for chain in chains])[0]
    theory = predicted(sampler, chains[0].state, posterior, reference)
    return {"sampler": repr(sampler), **found, **theory}


def figures(draws: NDArray, reference) -> dict:
    """Variance ratios, error of the covariance, and the autocorrelation time, here in draws."""
    cov = np.cov(draws.reshape(-1, draws.shape[-1]).T)
    along = ratios(cov, reference.cov)
    return {
        "ratio": float(np.trace(np.linalg.solve(reference.cov, cov)) / len(cov)),
        "min": float(along.min()),
        "max": float(along.max()),
        "IAT passes": float(diagnostics.autocorrelation_time(draws).mean()),
        "E2": diagnostics.covariance_error(cov, reference.cov),
    }


def ratios(cov: NDArray, wanted: NDArray) -> NDArray:
    """Variances over those wanted, along the axes of the latter."""
    values, vectors = np.linalg.eigh(wanted)
    return np.diag(vectors.T @ cov @ vectors) / values


def predicted(sampler, state, posterior, reference) -> dict:
    """Variance ratios by theory: curvature and noise at the mode, or mean noise with an anchor."""
    Lam, mode = reference.curvature, reference.mode[None]
    anchor, here = posterior.anchor, posterior.coordinates
    I1 = posterior.score_covariance(mode) if anchor is None else anchor.noise.dense()
    noise = state.rows.noise_factor * posterior.n_rows * I1
    try:
        distribution = sampler.stationary_distribution(state, posterior)
        Sigma = here.covariance(distribution.covariance(here.pullback_matrix(Lam), noise))
    except ValueError:
        return {}
    along = ratios(Sigma, np.linalg.inv(Lam))
    mean = float(np.trace(Lam @ Sigma) / len(Lam))
    return {"theory": mean, "theory min": float(along.min()), "theory max": float(along.max())}


def main(report: Report) -> None:
    """Every sampler."""
    posterior = logistic_posterior(*mnist_7_vs_9())
    reference = importance_reference(posterior)
    rows = [run(sampler, posterior, reference) for sampler in SAMPLERS]
    report.save([{name: row.get(name) for name in COLUMNS} for row in rows])


if __name__ == "__main__":
    benchmark(main)
