"""Predictions of regressions: intervals, sums over rows, and the memory of draws.

    python -m benchmarks.cost.intervals        # two minutes

intervals  of 10,000 rows of 10 columns, under fits of 60 and of 10,000 rows: processor time, beside
           that of the fit of 10,000; and the largest error of a probability below an end, over 300
           rows and all draws. An end of counts is off by what its probability lacks of the level,
           or by what that of the count before it is above the level.
totals     of new observations of 100,000 rows of 20 columns in ten groups: processor time.
memory     of `predict_draws` of 10,000 rows: the peak of allocations over the size of the result.
"""

from __future__ import annotations

import time
import tracemalloc
import warnings

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.timing import Clock
from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
)
from skbayes_sg.inspection import totals

FAMILIES = {
    "Poisson": BayesianPoissonRegressor,
    "negative binomial": BayesianNegativeBinomialRegressor,
    "Gamma": BayesianGammaRegressor,
    "robust": BayesianRobustRegressor,
}
LEVELS = np.array([0.025, 0.975])


def rows(family: str, n_rows: int, n_features: int, seed: int) -> tuple[NDArray, NDArray]:
    """Rows of a family with dispersion .5, and the noise of Student's t with four degrees."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    eta = X[:, :3] @ [0.5, -0.3, 0.2]
    mu = np.exp(eta)
    if family == "robust":
        return X, eta + rng.standard_t(4, n_rows)
    if family == "Gamma":
        return X, rng.gamma(2.0, mu / 2)
    return X, rng.poisson(mu if family == "Poisson" else rng.gamma(2.0, mu / 2))


def processor_time(job, repeats: int = 3) -> float:
    """The least of some runs."""
    found = []
    for _ in range(repeats):
        with Clock(time.process_time) as clock:
            job()
        found.append(clock.seconds)
    return min(found)


def largest_error(model, X: NDArray, ends: NDArray) -> float:
    """Of the probabilities below ends (n, 2), beside their means over all draws."""
    theta = model.draws_.reshape(-1, model.draws_.shape[-1])
    outputs = model.model_.outputs(theta, X)
    found = 0.0
    for end, level in zip(ends.T, LEVELS, strict=True):
        below = model.model_.distribution(end, outputs).mean(axis=0)
        if model.model_.counts:
            before = model.model_.distribution(end - 1, outputs).mean(axis=0)
            error = np.maximum(level - below, before - level)
        else:
            error = np.abs(below - level)
        found = max(found, float(error.max()))
    return found


def intervals(family: str) -> list[dict]:
    """Of fits of few and of many rows."""
    new = rows(family, 10_000, 10, 1)[0]
    table = []
    for n_rows in (60, 10_000):
        X, y = rows(family, n_rows, 10, 0)
        with Clock(time.process_time) as clock:
            model = FAMILIES[family](random_state=0).fit(X, y)
        table.append(
            {
                "family": family,
                "rows of the fit": n_rows,
                "fit, s": clock.seconds,
                "intervals, s": processor_time(lambda model=model: model.predict_interval(new)),
                "largest error": largest_error(model, new[:300], model.predict_interval(new[:300])),
            }
        )
    for row in table:
        row["over the fit of 10,000"] = row["intervals, s"] / table[-1]["fit, s"]
    return table


def sums(family: str) -> dict:
    """Of 100,000 rows in ten groups, and the memory of draws of 10,000."""
    X, y = rows(family, 10_000, 20, 0)
    model = FAMILIES[family](random_state=0).fit(X, y)
    new = rows(family, 100_000, 20, 1)[0]
    by = np.arange(len(new)) % 10
    seconds = None
    if family != "robust":  # whose sums have no cumulants
        seconds = processor_time(lambda: totals(model, new, by=by), repeats=2)
    tracemalloc.start()
    drawn = model.predict_draws(new[:10_000])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {"family": family, "totals, s": seconds, "peak over result": peak / drawn.nbytes}


def main(report: Report) -> None:
    """Run all parts."""
    warnings.simplefilter("ignore")  # of fits of 60 rows
    found = [row for family in FAMILIES for row in intervals(family)]
    report.save(
        found,
        [
            Claim(
                "largest error of a probability below an end",
                [row["largest error"] for row in found],
                high=1e-3,
            ),
            *(
                Claim(
                    f"{row['family']}: intervals after a fit of {row['rows of the fit']:,} rows, "
                    "over the time of a fit of 10,000",
                    row["over the fit of 10,000"],
                    high=1,
                )
                for row in found
            ),
        ],
        title="intervals of 10,000 rows",
    )
    added = [sums(family) for family in FAMILIES]
    report.save(
        added,
        [
            *(
                Claim(f"{row['family']}: totals of 100,000 rows, s", row["totals, s"], high=2)
                for row in added
                if row["family"] != "robust"
            ),
            Claim(
                "peak of predict_draws over its result",
                [row["peak over result"] for row in added],
                high=2,
            ),
        ],
        name="intervals_totals",
        title="totals and draws",
    )


if __name__ == "__main__":
    benchmark(main, threads=1)
