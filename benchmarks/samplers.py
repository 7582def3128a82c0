"""Every sampler on one posterior: what it targets, with which bias, how fast.

    python benchmarks/samplers.py

MNIST 7 against 9 (10,000 rows, 51 parameters), 500 rows a step, eight chains around the mode, 20,000 steps after 3,000
of burn-in. Prints variance ratios (drawn over true, on average over directions, and smallest and largest along the
axes of the posterior) beside those that theory expects of the frozen step, and autocorrelation times in
passes over the data.
"""

from __future__ import annotations

import numpy as np
from common import importance_reference, logistic_posterior, mnist_7_vs_9, print_table, write_csv

from skbayes_sg import diagnostics
from skbayes_sg.chains import run_chains, start_chains
from skbayes_sg.control_variates import AnchoredPosterior
from skbayes_sg.diagnostics import stein_ratio_of_sums
from skbayes_sg.linalg import Dense
from skbayes_sg.mode import Mode, posterior_mean
from skbayes_sg.samplers import HMC, IASG, SGD, SGFS, SGLD, ConstantSGD, MomentumSGD

SAMPLERS = [
    SGFS(variance_reduction="control_variate"),
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


def run(sampler, plain, reference) -> dict:
    """Chains of one sampler and their figures."""
    posterior = plain
    if sampler.variance_reduction:
        centre = posterior_mean(plain, Mode(reference.mode[None], Dense(reference.curvature), 0.0))
        posterior = AnchoredPosterior(plain, centre.theta, centre.curvature)
    sampler.settle(posterior)
    rng = np.random.default_rng(1)
    root = np.linalg.cholesky(reference.cov)
    theta = reference.mean + rng.standard_normal((8, posterior.dim)) @ root.T
    states = start_chains(sampler, posterior, theta, np.random.SeedSequence(7))
    radius = sampler.spectral_radius(states[0], posterior)
    if radius >= 1:
        return {"sampler": repr(sampler), "ratio": f"unstable, radius {radius:.2f}"}
    thin = sampler.auto_thin(states[0]) if isinstance(sampler, IASG) else 1 if isinstance(sampler, HMC) else 10
    n_draws = 20_000 // max(thin, 10)
    chains = run_chains(sampler, posterior, states, n_draws=n_draws, burn_in=3000 if thin != 1 else 300, thin=thin)
    draws = np.concatenate([chain.draws for chain in chains])
    passes = sum(sampler.rows_touched(chain.state) for chain in chains) / posterior.n_rows / 8  # a chain's share
    cov = np.cov(draws.reshape(-1, posterior.dim).T)
    values, vectors = np.linalg.eigh(reference.cov)
    along = np.diag(vectors.T @ cov @ vectors) / values
    iat = diagnostics.autocorrelation_time(draws).mean() * passes * (n_draws * thin / chains[0].state.t) / n_draws
    figures = {
        "sampler": repr(sampler),
        "ratio": float(np.trace(np.linalg.solve(reference.cov, cov)) / len(cov)),
        "min": along.min(),
        "max": along.max(),
        "IAT passes": iat,
        "E2": diagnostics.covariance_error(cov, reference.cov),
    }
    if sampler.draws_are_points:
        figures["Stein"] = stein_ratio_of_sums([chain.stein for chain in chains])[0]
    return figures | predicted(sampler, chains[0].state, posterior, reference)


def predicted(sampler, state, posterior, reference) -> dict:
    """Variance ratios by theory, under curvature at the mode and noise there, or its mean with control variates."""
    Lam = reference.curvature
    I1 = posterior.noise.dense() if posterior.shares_rows else posterior.score_covariance(reference.mode[None])
    try:
        Sigma = sampler.stationary_covariance(state, Lam, state.rows.noise_factor * posterior.n_rows * I1)
    except ValueError:
        return {}
    values, vectors = np.linalg.eigh(np.linalg.inv(Lam))
    along = np.diag(vectors.T @ Sigma @ vectors) / values
    return {"theory": np.trace(Lam @ Sigma) / len(Lam), "theory min": along.min(), "theory max": along.max()}


def main() -> None:
    """Run every sampler and print."""
    posterior = logistic_posterior(*mnist_7_vs_9())
    reference = importance_reference(posterior)
    rows = [run(sampler, posterior, reference) for sampler in SAMPLERS]
    order = ["sampler", "ratio", "theory", "min", "theory min", "max", "theory max", "Stein", "IAT passes", "E2"]
    rows = [{name: row.get(name, "") for name in order} for row in rows]
    print_table(rows)
    print(f"\nwrote {write_csv('samplers.csv', rows).name}")


if __name__ == "__main__":
    main()
