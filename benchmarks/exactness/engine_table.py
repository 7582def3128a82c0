"""The default engine on seven logistic regressions: its figures, its errors and its step.

    python -m benchmarks.exactness.engine_table

Rows are float32, the prior precision is 1 on all parameters. All data are synthetic. Three stand in
for data sets of the same shape: "amounts" for bank marketing (heavy-tailed amounts and counts),
"credit" for German credit (dummies and grades), "diabetes" for Pima diabetes (skewed columns).

Each default fit keeps every step of 32 chains, 48,000 draws. The reference is importance sampling
from the Laplace approximation, ten runs whose spread is its standard error. "mean error" is the
largest along the axes of the reference, in posterior standard deviations; the variance ratios are
along the same axes, their mean, smallest and largest. E1 is the error of the mean (Ahn et al. Eq.
14). "ESS per draw" is that of the worst parameter. "us per step" is the CPU time of one step of 32
chains in one group. "slack" is four standard errors of a mean, of draws and reference together;
those of a variance ratio are sqrt(2) times as large. Some five minutes.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.datasets import correlated, standardised
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import Posterior, anchored, begin, logistic_posterior, mode_of
from benchmarks.common.reference import importance_reference
from benchmarks.common.timing import Clock
from skbayes_sg import BayesianLogisticRegressionSGFS, diagnostics

CHAINS, DRAWS = 32, 1500
STEPS = 2000  # that are timed
REFERENCES = 10
Data = tuple[NDArray, NDArray]


def _labels(rng: np.random.Generator, z: NDArray) -> NDArray:
    return np.where(z + rng.logistic(size=len(z)) > 0, 1.0, -1.0)


def amounts() -> Data:
    """45,211 x 8: amounts and counts with heavy tails, a tenth of events."""
    rng = np.random.default_rng(1)
    n = 45_211
    seen = rng.random(n) < 0.18
    columns = [
        rng.gamma(15.0, 2.7, n),  # age
        rng.lognormal(6.1, 1.5, n) * np.where(rng.random(n) < 0.9, 1.0, -0.3),  # balance
        rng.integers(1, 32, n),  # day
        rng.lognormal(5.1, 0.9, n),  # duration
        np.ceil(rng.lognormal(0.6, 0.8, n)),  # contacts
        np.where(seen, rng.lognormal(5.2, 0.6, n), -1.0),  # days since
        np.where(seen, np.ceil(rng.pareto(1.5, n)), 0.0),  # contacts before
        rng.integers(1, 13, n),  # month
    ]
    X = standardised(np.column_stack(columns))
    return X, _labels(rng, X @ (0.1, 0.05, -0.1, 1.0, -0.3, 0.2, 0.1, 0.0) - 2.6)


def credit() -> Data:
    """1,000 x 24: grades, dummies, a duration, an amount, an age; three in ten are events."""
    rng = np.random.default_rng(1)
    n = 1000
    grades = rng.integers(1, 5, (n, 8))
    dummies = rng.random((n, 13)) < np.linspace(0.04, 0.5, 13)
    others = [rng.gamma(3.0, 7.0, n), rng.lognormal(7.8, 0.8, n), rng.gamma(10.0, 3.6, n)]
    X = standardised(np.column_stack([grades, dummies, *others]).astype(float))
    return X, _labels(rng, X @ (0.35 * rng.standard_normal(24)) - 1.0)


def diabetes() -> Data:
    """768 x 8: correlated columns, half of them skewed; a third are events."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((768, 8)) + 0.6 * rng.standard_normal((768, 1))
    X[:, :4] = np.exp(0.5 * X[:, :4])
    X = standardised(X)
    return X, _labels(rng, X @ (0.4, 1.1, -0.2, 0.0, -0.1, 0.7, 0.3, 0.2) - 0.8)


def separable() -> Data:
    """200 x 5: a plane separates the classes."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 5))
    return X, np.where(X @ rng.standard_normal(5) > 0, 1.0, -1.0)


def few() -> Data:
    """30 x 3."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 3))
    return X, _labels(rng, X @ (1.0, -0.5, 0.0))


def rare() -> Data:
    """50,000 x 10, about 250 events."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50_000, 10))
    return X, _labels(rng, 0.3 * X @ rng.standard_normal(10) - 5.7)


class Set(NamedTuple):
    """One row of the table."""

    name: str
    make: Callable[[], Data]
    draws: int
    """of each reference"""


SETS = (
    Set("correlated", correlated, 30_000),
    Set("amounts", amounts, 6000),
    Set("credit", credit, 60_000),
    Set("diabetes", diabetes, 60_000),
    Set("separable", separable, 60_000),
    Set("few rows", few, 60_000),
    Set("rare events", rare, 6000),
)


class Moments(NamedTuple):
    """The exact moments, and the standard errors of a mean and of a variance along their axes."""

    mean: NDArray
    axes: NDArray
    """(D, D): theta @ axes has unit covariance"""
    mean_error: NDArray
    variance_error: NDArray


def exact(posterior: Posterior, n_draws: int) -> Moments:
    """By importance sampling, several times."""
    runs = [importance_reference(posterior, n_draws, seed) for seed in range(REFERENCES)]
    mean = np.mean([run.mean for run in runs], axis=0)
    values, vectors = np.linalg.eigh(np.mean([run.cov for run in runs], axis=0))
    axes = vectors / np.sqrt(values)
    means = np.stack([run.mean @ axes for run in runs])
    variances = np.stack([np.diag(axes.T @ run.cov @ axes) for run in runs])
    of_mean = np.sqrt(REFERENCES)
    return Moments(
        mean, axes, means.std(axis=0, ddof=1) / of_mean, variances.std(axis=0, ddof=1) / of_mean
    )


def step_microseconds(posterior: Posterior, sampler) -> float | None:
    """CPU time of one step of all chains in one group; None without an anchor."""
    if sampler.variance_reduction is None:
        return None
    mode = mode_of(posterior)
    target, _ = anchored(posterior, mode)
    normals = np.random.default_rng(0).standard_normal((CHAINS, posterior.dim))
    theta = mode.theta + mode.curvature.inverse().cholesky().matvec(normals)
    state = begin(sampler, target, theta, 0)
    times = []
    for _ in range(5):
        with Clock(time.process_time) as clock:
            for _ in range(STEPS):
                sampler.step(state, target)
        times.append(clock.seconds)
    return float(np.median(times)) / STEPS * 1e6


def compare(one: Set) -> dict:
    """A default fit against the reference."""
    X, y = (part.astype(np.float32) for part in one.make())
    model = BayesianLogisticRegressionSGFS(
        intercept_precision=1.0,
        n_chains=CHAINS,
        n_draws=DRAWS,
        thin=1,
        random_state=0,
        prior_precision=1.0,
    ).fit(X, y)
    true = exact(logistic_posterior(X.astype(float), y.astype(float)), one.draws)
    along = (model.draws_ - true.mean) @ true.axes
    flat = along.reshape(-1, along.shape[-1])
    error, ratio = flat.mean(axis=0), flat.var(axis=0)
    of_mean = np.sqrt(1 / diagnostics.ess_mean(along) + true.mean_error**2)
    of_ratio = np.sqrt(2 / diagnostics.ess_mean(along) + true.variance_error**2)
    drawn = model.draws_.reshape(-1, len(error)).mean(axis=0)
    figures = model.diagnostics_
    return {
        "data": one.name,
        "rows": len(X),
        "parameters": len(error),
        "events": int((y > 0).sum()),
        "sampler": type(model.sampler_).__name__,
        "kappa": figures.get("noise_number"),
        "steepness": figures.get("steepness"),
        "E1": diagnostics.mean_error(drawn, true.mean),
        "mean error": float(np.abs(error).max()),
        "variance ratio": float(ratio.mean()),
        "ratio min": float(ratio.min()),
        "ratio max": float(ratio.max()),
        "ESS per draw": float(diagnostics.ess_bulk(model.draws_).min()) / (CHAINS * DRAWS),
        "us per step": step_microseconds(logistic_posterior(X, y), model.sampler_),
        "slack": float(4 * of_mean.max()),
        "mean error beyond": float((np.abs(error) - 4 * of_mean).max()),
        "ratio beyond": float((np.abs(ratio - 1) - 4 * of_ratio).max()),
    }


def claims(rows: list[dict]) -> list[Claim]:
    """All sets are taken, and right."""
    kappa = [np.nan if row["kappa"] is None else row["kappa"] for row in rows]

    def column(name: str) -> list[float]:
        return [row[name] for row in rows]

    return [
        Claim("noise number; NaN where control variates are refused", kappa, high=2),
        Claim("mean error beyond four standard errors", column("mean error beyond"), high=0.01),
        Claim("|variance ratio - 1| beyond four, each axis", column("ratio beyond"), high=0.02),
        Claim("mean variance ratio", column("variance ratio"), low=0.98, high=1.02),
        Claim("ESS per draw", column("ESS per draw"), low=0.28),
    ]


def main(report: Report) -> None:
    """Seven data sets."""
    warnings.simplefilter("ignore")
    rows = [compare(one) for one in SETS]
    report.save(rows, claims(rows))


if __name__ == "__main__":
    benchmark(main, threads=1)
