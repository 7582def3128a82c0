"""Linear regression on wine and protein data against the exact conjugate posterior.

    python -m benchmarks.exactness.linear_exact

Columns are standardised, there is an intercept, and the prior precision is 1. The noise variance
is given (70 % of the variance of y) or sampled, where the exact posterior is
normal-inverse-gamma. The table has, for the default fit and for each sampler by name at its
default settings, the largest error of a mean in posterior standard deviations, and the smallest
and largest ratio of drawn to exact variance along the axes of the posterior. The default fit is
judged. Last comes the prior precision that the default fit and SGFS learn (variational EM),
beside the one that maximises the exact evidence (linear_exact_learned.csv). Some two minutes.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import digamma, polygamma

from benchmarks.common.datasets import regression, standardised
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.timing import Clock
from skbayes_sg import BayesianLinearRegressionSGFS, VariationalEM

SAMPLERS = [None, "sgfs", "constant_sgd", "momentum_sgd", "iasg", "sgld", "hmc"]


def conjugate(X, y, noise_variance) -> tuple[NDArray, NDArray]:
    """Exact mean and covariance of coefficients, intercept and, if sampled, log noise variance."""
    X = np.column_stack([X, np.ones(len(X))])
    scale = 1.0 if noise_variance is None else noise_variance
    precision = X.T @ X / scale + np.diag([1.0] * (X.shape[1] - 1) + [1e-6])
    mean = np.linalg.solve(precision, X.T @ y / scale)
    if noise_variance is not None:
        return mean, np.linalg.inv(precision)
    a, b = 1e-6 + len(y) / 2, 1e-6 + 0.5 * (y @ y - mean @ precision @ mean)
    cov = np.zeros((len(mean) + 1,) * 2)
    cov[:-1, :-1] = np.linalg.inv(precision) * b / (a - 1)
    cov[-1, -1] = polygamma(1, a)
    return np.append(mean, np.log(b) - digamma(a)), cov


def problems() -> list[tuple[str, str, NDArray, NDArray, float | None]]:
    """Name of the data, "sampled" or "given", X, y, noise variance."""
    found = []
    for name in ("wine", "protein"):
        X, y = regression(name)
        for noise, variance in (("sampled", None), ("given", 0.7 * y.var())):
            found.append((name, noise, standardised(X), y, variance))
    return found


def run(name: str, noise: str, X, y, noise_variance, sampler: str | None) -> dict:
    """One fit and its figures."""
    mean, cov = conjugate(X, y, noise_variance)
    model = BayesianLinearRegressionSGFS(
        sampler, noise_variance=noise_variance, random_state=0, prior_precision=1.0
    )
    with warnings.catch_warnings(record=True) as heard, Clock() as clock:
        warnings.simplefilter("always")
        model.fit(X, y)
    draws = model.draws_.reshape(-1, len(mean))
    values, vectors = np.linalg.eigh(cov)
    ratio = ((draws - draws.mean(axis=0)) @ vectors).var(axis=0) / values
    expected = np.diag(vectors.T @ model.predicted_covariance(X, y) @ vectors) / values
    return {
        "data": name,
        "noise": noise,
        "sampler": sampler or f"default ({type(model.sampler_).__name__})",
        "mean error": float(np.abs((draws.mean(axis=0) - mean) / np.sqrt(cov.diagonal())).max()),
        "ratio min": float(ratio.min()),
        "ratio max": float(ratio.max()),
        "theory min": float(expected.min()),
        "theory max": float(expected.max()),
        "Stein": model.diagnostics_["stein_ratio"],
        "R-hat": model.diagnostics_["r_hat_max"],
        "ESS min": model.diagnostics_["ess_min"],
        "ESS/pass": model.diagnostics_["ess_per_pass"],
        "seconds": clock.seconds,
        "warns": "yes" if heard else "",
    }


def evidence_optimum(X, y, noise_variance) -> float:
    """Prior precision that maximises the exact evidence; over the noise variance, if sampled."""
    n_features = X.shape[1]
    X = np.column_stack([X, np.ones(len(X))])
    scale = 1.0 if noise_variance is None else noise_variance

    def minus_twice_log_evidence(rho: float) -> float:
        precision = X.T @ X / scale + np.diag([np.exp(rho)] * n_features + [1e-6])
        explained = X.T @ y / scale @ np.linalg.solve(precision, X.T @ y / scale)
        spread = np.linalg.slogdet(precision)[1] - n_features * rho
        if noise_variance is not None:
            return spread - explained
        return spread + (2e-6 + len(y)) * np.log(1e-6 + 0.5 * (y @ y - explained))

    result = minimize_scalar(minus_twice_log_evidence, bounds=(-10, 10), method="bounded")
    return float(np.exp(result.x))


def learned(name: str, noise: str, X, y, noise_variance, sampler: str | None) -> dict:
    """Variational EM against the exact evidence."""
    em = VariationalEM()
    model = BayesianLinearRegressionSGFS(sampler, em, noise_variance, random_state=0).fit(X, y)
    found, exact = float(model.prior_precision_[0]), evidence_optimum(X, y, noise_variance)
    row = {"data": name, "noise": noise, "sampler": sampler or "default", "learned": found}
    return row | {"exact": exact, "learned / exact": found / exact}


def claims(rows: list[dict]) -> list[Claim]:
    """The default fit is the exact posterior."""
    found = []
    for row in rows:
        if row["sampler"].startswith("default"):
            label = f"{row['data']}, noise {row['noise']}"
            ratios = row["ratio min"], row["ratio max"]
            error = row["mean error"]
            found.append(Claim(f"{label}: error of a mean in sd", error, high=0.1, strict=True))
            found.append(Claim(f"{label}: variance ratios", ratios, 0.9, 1.1, strict=True))
    return found


def learned_claims(rows: list[dict]) -> list[Claim]:
    """The precision learned is the exact one within 5 %."""
    return [
        Claim(
            f"{row['data']}, noise {row['noise']}, {row['sampler']}: learned over exact precision",
            row["learned / exact"],
            low=0.95,
            high=1.05,
        )
        for row in rows
    ]


def main(report: Report) -> None:
    """Fixed precision, then learned."""
    rows = [run(*problem, sampler) for problem in problems() for sampler in SAMPLERS]
    report.save(rows, claims(rows))
    rows = [learned(*problem, sampler) for problem in problems() for sampler in (None, "sgfs")]
    report.save(rows, learned_claims(rows), name="linear_exact_learned")


if __name__ == "__main__":
    benchmark(main)
