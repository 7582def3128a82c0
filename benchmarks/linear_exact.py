"""Linear regression on wine and protein data against the exact conjugate posterior, at default settings.

    python benchmarks/linear_exact.py

Standardised columns, intercept, prior precision 1; noise variance given (70 % of the variance of y) or
sampled, where the exact posterior is normal-inverse-gamma. Prints, for the default fit and for each sampler by
name, the largest error of a mean in posterior standard deviations, and the smallest and largest ratio of
drawn to exact variance along the axes of the posterior; then the acceptance checks of the default fit. Last,
the prior precision that the default fit and SGFS learn (variational EM) over the one that maximises the exact evidence.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from common import print_table, regression_data, write_csv
from scipy.optimize import minimize_scalar
from scipy.special import digamma, polygamma

from skbayes_sg import BayesianLinearRegressionSGFS

SAMPLERS = [None, "sgfs", "constant_sgd", "momentum_sgd", "iasg", "sgld", "hmc"]


def conjugate(X, y, noise_variance) -> tuple[np.ndarray, np.ndarray]:
    """Exact mean and covariance of coefficients, intercept and, where it is sampled, log noise variance."""
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


def run(name: str, sampler: str | None, X, y, noise_variance) -> dict:
    """One fit and its figures."""
    mean, cov = conjugate(X, y, noise_variance)
    begin = time.perf_counter()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = BayesianLinearRegressionSGFS(sampler, noise_variance=noise_variance, random_state=0).fit(X, y)
    seconds = time.perf_counter() - begin
    draws = model.draws_.reshape(-1, len(mean))
    values, vectors = np.linalg.eigh(cov)
    ratio = ((draws - draws.mean(axis=0)) @ vectors).var(axis=0) / values
    expected = np.diag(vectors.T @ model.predicted_covariance(X, y) @ vectors) / values
    return {
        "data": name,
        "noise": "sampled" if noise_variance is None else "given",
        "sampler": sampler or f"default ({type(model.sampler_).__name__})",
        "mean error": np.abs((draws.mean(axis=0) - mean) / np.sqrt(cov.diagonal())).max(),
        "ratio min": ratio.min(),
        "ratio max": ratio.max(),
        "theory min": expected.min(),
        "theory max": expected.max(),
        "Stein": model.diagnostics_["stein_ratio"],
        "R-hat": model.diagnostics_["r_hat_max"],
        "ESS min": model.diagnostics_["ess_min"],
        "ESS/pass": model.diagnostics_["ess_per_pass"],
        "seconds": seconds,
        "warns": "yes" if heard else "",
    }


def evidence_optimum(X, y, noise_variance) -> float:
    """Prior precision of the coefficients that maximises the exact evidence; over the noise variance, if sampled."""
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

    return float(np.exp(minimize_scalar(minus_twice_log_evidence, bounds=(-10, 10), method="bounded").x))


def learned_precisions() -> None:
    """Variational EM against the exact evidence."""
    for name in ("wine", "protein"):
        X, y = regression_data(name)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        for noise_variance in (None, 0.7 * y.var()):
            exact = evidence_optimum(X, y, noise_variance)
            for sampler in (None, "sgfs"):
                model = BayesianLinearRegressionSGFS(sampler, "em", noise_variance, random_state=0).fit(X, y)
                found = model.prior_precision_[0]
                holds = abs(found / exact - 1) <= 0.05
                print(
                    f"{'ok  ' if holds else 'FAIL'} {name}, noise {'sampled' if noise_variance is None else 'given'}, "
                    f"{sampler or 'default'}: learned precision {found:.4g}, exact {exact:.4g}, within 5 %"
                )


def main() -> None:
    """Fit, print, judge."""
    rows = []
    for name in ("wine", "protein"):
        X, y = regression_data(name)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        for noise_variance in (None, 0.7 * y.var()):
            rows += [run(name, sampler, X, y, noise_variance) for sampler in SAMPLERS]
    print_table(rows)
    print(f"\nwrote {write_csv('linear_exact.csv', rows).name}\n")
    for row in rows:
        if row["sampler"].startswith("default"):
            holds = row["mean error"] < 0.1 and row["ratio min"] > 0.9 and row["ratio max"] < 1.1
            print(
                f"{'ok  ' if holds else 'FAIL'} {row['data']}, noise {row['noise']}: mean < .1 sd, ratios in [.9, 1.1]"
            )
    learned_precisions()


if __name__ == "__main__":
    main()
