"""Whether a stream says that no normal distribution stands for its posterior.

    python -m benchmarks.exactness.stream_misfit

Streams of one chunk at their defaults, beside the fit of the same rows, which samples:

one class     rows of each level of a factor have one class
nearly        the same, but for three rows
zeros         counts, which half of the levels have none of
logistic, rare, counts, dispersed
              normal columns: balanced classes, rare events, Poisson and negative binomial counts

"sd" is the standard deviation of the stream over that of the fit, of the coefficient where it is
furthest from 1, and "shift" the largest distance of two means in those of the fit. A stream is
right if its standard deviations are within a tenth, and wrong with one below three quarters. It
speaks by a ConvergenceWarning, at the latest where its coefficients are read.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from benchmarks.common.harness import Claim, Report, benchmark
from skbayes_sg import (
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
)

RIGHT, WRONG = 0.1, 0.75
SIZES = (30, 3), (60, 10), (200, 10), (200, 30), (1000, 30), (1000, 100)

Case = tuple[str, type, NDArray, NDArray]


def cases(rng: np.random.Generator) -> Iterator[Case]:
    """Name, estimator, X and y."""
    for n_levels in (5, 8, 20, 40):
        for repeats in (2, 3, 8):
            member = np.arange(n_levels * repeats) % n_levels
            X = (member[:, None] == np.arange(n_levels)).astype(float)
            upper = (member >= n_levels // 2).astype(int)
            yield "one class", BayesianLogisticRegression, X, upper
            some = upper.copy()
            some[:3] = 1 - some[:3]
            yield "nearly", BayesianLogisticRegression, X, some
            yield "zeros", BayesianPoissonRegressor, X, rng.poisson(3.0 * upper)
    for n, p in SIZES:
        X = rng.standard_normal((n, p))
        eta = 1.5 * X @ rng.standard_normal(p) / np.sqrt(p)
        logits = eta + rng.logistic(size=n)
        yield "logistic", BayesianLogisticRegression, X, (logits > 0).astype(int)
        rare = logits > np.sort(logits)[-max(3, n // 30)]
        yield "rare", BayesianLogisticRegression, X, rare.astype(int)
        yield "counts", BayesianPoissonRegressor, X, rng.poisson(np.exp(0.5 * eta))
        mean = np.exp(0.5 * eta) * rng.gamma(2.0, 0.5, size=n)
        yield "dispersed", BayesianNegativeBinomialRegressor, X, rng.poisson(mean)


def compared(kind: str, estimator: type, X: NDArray, y: NDArray) -> dict:
    """A row of the table."""
    classes = {"classes": np.unique(y)} if estimator is BayesianLogisticRegression else {}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ConvergenceWarning)
        stream = estimator(random_state=0).partial_fit(X, y, **classes)
        mean, sd = stream.coef_, stream.coef_std_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = estimator(random_state=0).fit(X, y)
    ratio = (sd / fit.coef_std_).ravel()
    worst = float(ratio[np.abs(np.log(ratio)).argmax()])
    right, wrong = abs(worst - 1) < RIGHT, worst < WRONG
    return {
        "stream": kind,
        "rows": len(y),
        "columns": X.shape[1],
        **{name: stream.diagnostics_[name] for name in ("mean_shift", "sd_ratio", "density_sd")},
        "shift": float(np.abs((mean - fit.coef_) / fit.coef_std_).max()),
        "sd": worst,
        "wrong": int(wrong),
        "silent": int(wrong and not said),
        "right": int(right),
        "alarms": int(right and bool(said)),
    }


def main(report: Report) -> None:
    """Compare all."""
    rows = [compared(*case) for case in cases(np.random.default_rng(1))]
    total = {
        name: sum(row[name] for row in rows) for name in ("wrong", "silent", "right", "alarms")
    }
    of_wrong, of_right = total["wrong"], total["right"]
    claims = [
        Claim(f"silent, of {of_wrong} wrong streams", total["silent"], 0, 0.1 * of_wrong),
        Claim(f"alarms, of {of_right} right streams", total["alarms"], 0, 0),
    ]
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(main)
