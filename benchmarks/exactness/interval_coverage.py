"""Coverage of 90 % intervals of coefficients and of regression predictions, on simulated sets.

    python -m benchmarks.exactness.interval_coverage

200 sets of 200 rows and 10 columns. Where the coefficients are drawn from the prior that the fit is
given, intervals cover 90 % in the mean over sets, but for the error of the chains. Where the
coefficients are fixed, or the precision is learned, nothing says that they do; the claim is made
all the same. "error" is the standard error of a coverage over sets.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.harness import Claim, Report, benchmark
from skbayes_sg import BayesianLinearRegressionSGFS, BayesianLogisticRegressionSGFS

SETS, ROWS, COLUMNS = 200, 200, 10
LEVEL = 0.9
FIXED = np.array([1.0, -0.8, 0.6, -0.5, 0.4, -0.3, 0.2, 0.1, 0.0, 0.0])


def covers(samples: NDArray, truth: NDArray) -> float:
    """Share of the coefficients that lie within the interval of their draws (S, columns)."""
    low, high = np.quantile(samples, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return float(np.mean((low <= truth) & (truth <= high)))


def logistic(rng: np.random.Generator, coef: NDArray, **how) -> dict[str, float]:
    """Coverage of the coefficients of one set; the intercept is drawn from its prior too."""
    X = rng.standard_normal((ROWS, COLUMNS))
    z = X @ coef + rng.standard_normal() + rng.logistic(size=ROWS)
    model = BayesianLogisticRegressionSGFS(intercept_precision=1.0, random_state=0, **how)
    samples = model.fit(X, z > 0).coef_samples_.reshape(-1, COLUMNS)
    return {"coefficients": covers(samples, coef)}


def linear(rng: np.random.Generator, coef: NDArray, **how) -> dict[str, float]:
    """Coverage of the coefficients, and of new observations, of one set.

    The prior of the noise variance is improper, but for rounding: 200 rows determine it.
    """
    noise = np.exp(rng.standard_normal())
    X = rng.standard_normal((2 * ROWS, COLUMNS))
    y = noise * (X @ coef + rng.standard_normal(2 * ROWS)) + 3
    model = BayesianLinearRegressionSGFS(random_state=0, **how).fit(X[:ROWS], y[:ROWS])
    ends = model.predict_interval(X[ROWS:], level=LEVEL)
    inside = (ends[:, 0] <= y[ROWS:]) & (y[ROWS:] <= ends[:, 1])
    samples = model.coef_samples_.reshape(-1, COLUMNS)
    return {"coefficients": covers(samples, noise * coef), "predictions": float(inside.mean())}


def over_sets(one: Callable, coefs: str, **how) -> list[dict]:
    """Mean coverage over sets, with its error."""
    found = []
    for seed in range(SETS):
        rng = np.random.default_rng([17, seed])
        coef = rng.standard_normal(COLUMNS) if coefs == "from the prior" else FIXED
        found.append(one(rng, coef, **how))
    precision = how.get("prior_precision", "learned")
    about = {"model": one.__name__, "coefs": coefs, "precision": precision}
    rows = []
    for of in found[0]:
        each = np.array([f[of] for f in found])
        error = each.std(ddof=1) / np.sqrt(SETS)
        rows.append(about | {"intervals of": of, "coverage": each.mean(), "error": error})
    return rows


def main(report: Report) -> None:
    """Two models, coefficients from the prior and fixed, precision given and learned."""
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in (logistic, linear):
            for coefs in ("from the prior", "fixed"):
                rows += over_sets(one, coefs, prior_precision=1.0)
                rows += over_sets(one, coefs)
    names = [
        f"{r['model']}, {r['coefs']}, precision {r['precision']}, {r['intervals of']}" for r in rows
    ]
    claims = [
        Claim(f"coverage, {name} (error {r['error']:.3f})", r["coverage"], 0.88, 0.92)
        for name, r in zip(names, rows, strict=True)
    ]
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(main, threads=1)
