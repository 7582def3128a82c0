"""Posteriors that are not Gaussian: default fits against Laplace, beside the exact moments.

    python -m benchmarks.exactness.skewed

Logistic regressions have a skewed posterior with few rows (400, 15 parameters) and with few
events (1 % of 20,000 and of 100,000 rows). The reference is importance sampling from the Laplace
approximation, with its own error. E1 and E2 are the errors of mean and covariance (Ahn et al. Eq.
14). "var min" and "var max" are drawn over wanted variance along the axes of the reference. The
default must be three times nearer to the mean than Laplace.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import logistic_posterior
from benchmarks.common.reference import Reference, importance_reference
from skbayes_sg import BayesianLogisticRegressionSGFS, diagnostics
from skbayes_sg.samplers import SGFS, UnderdampedLangevin

ON_FEW_ROWS = {
    "default": None,
    "asked for": UnderdampedLangevin(2.0, batch_size=40),
    "asked for, plain": SGFS(batch_size=40),
}


def few_rows() -> tuple[NDArray, NDArray]:
    """400 x 14 and an intercept, coefficients of size 1: nearly separable."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 14))
    return X, X @ rng.standard_normal(14) + rng.logistic(size=400) > 0


def few_events(n_rows: int) -> tuple[NDArray, NDArray]:
    """14 features, one in a hundred rows an event."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 14))
    z = X @ rng.standard_normal(14) * 0.4
    return X, z - 5.2 + rng.logistic(size=n_rows) > 0


def fit(label: str, sampler, X: NDArray, y: NDArray) -> tuple[str, tuple[NDArray, NDArray]]:
    """What was run, and mean and covariance of its draws."""
    model = BayesianLogisticRegressionSGFS(
        sampler,
        intercept_precision=1.0,
        n_chains=32,
        n_draws=2000,
        random_state=0,
        prior_precision=1.0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draws = model.fit(X, y).draws_
    draws = draws.reshape(-1, draws.shape[-1])
    suffix = "" if model.sampler_.variance_reduction is None else ", control variates"
    name = f"{label}: {type(model.sampler_).__name__}{suffix}"
    return name, (draws.mean(axis=0), np.cov(draws.T))


def errors(mean: NDArray, cov: NDArray, reference: Reference) -> dict:
    """E1, E2, and the extremes of the variance ratio."""
    values, vectors = np.linalg.eigh(reference.cov)
    ratio = np.einsum("ji,jk,ki->i", vectors, cov, vectors) / values
    return {
        "E1": diagnostics.mean_error(mean, reference.mean),
        "E2": diagnostics.covariance_error(cov, reference.cov),
        "var min": float(ratio.min()),
        "var max": float(ratio.max()),
    }


def compare(name: str, X: NDArray, y: NDArray, samplers: dict) -> list[dict]:
    """Laplace and the samplers on one data set."""
    posterior = logistic_posterior(X, np.where(y, 1.0, -1.0))
    reference = importance_reference(posterior, 120_000 if len(X) < 50_000 else 30_000)
    found = {"laplace": (reference.mode, np.linalg.inv(reference.curvature))}
    found |= dict(fit(label, sampler, X, y) for label, sampler in samplers.items())
    halves = dict(zip(("E1", "E2"), reference.half_split, strict=True))
    table = [{"data": name, "method": "reference, its halves", **halves}]
    for label, moments in found.items():
        table.append({"data": name, "method": label, **errors(*moments, reference)})
        table[-1]["E1 of Laplace / E1"] = table[1]["E1"] / table[-1]["E1"]
    return table


def claims(rows: list[dict]) -> list[Claim]:
    """The default is nearer to the mean."""
    column = "E1 of Laplace / E1"
    return [
        Claim(f"{row['data']}: E1 of Laplace over that of the default", row[column], low=3)
        for row in rows
        if row["method"].startswith("default")
    ]


def main(report: Report) -> None:
    """Three data sets."""
    rows = compare("400 x 15", *few_rows(), ON_FEW_ROWS)
    for n_rows in (20_000, 100_000):
        rows += compare(f"{n_rows} x 15, 1 % events", *few_events(n_rows), {"default": None})
    report.save(rows, claims(rows))


if __name__ == "__main__":
    benchmark(main)
