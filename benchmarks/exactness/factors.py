"""New levels of a factor, and sums over several of them: do their intervals cover?

    python -m benchmarks.exactness.factors [--sets 24]

A set has 25 sites of 12 rows, a number, and a y of one of five families. The effects of the sites
are normal with a standard deviation of .8. A data frame with a column of categories is fitted as it
is, and 40 sites follow that the fit has not seen. Intervals of 95 % are of the linear predictor of
each, and of sums over five of them. If new sites shared one draw, such sums would be sqrt(5) times
too wide. Coverage is in the mean over sets, and its error is that over sets: new sites of one fit
share what it knows of the spread.

The first claim is that a frame and the columns of its levels lead to the same draws.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.common.harness import Claim, Report, benchmark
from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
)

SITES, ROWS, NEW, OF_SUM = 25, 12, 40, 5
SPREAD, LEVEL = 0.8, 0.95
FAMILIES = {
    "linear": BayesianLinearRegression,
    "logistic": BayesianLogisticRegression,
    "Poisson": BayesianPoissonRegressor,
    "negative binomial": BayesianNegativeBinomialRegressor,
    "Gamma": BayesianGammaRegressor,
}


def simulated(family: str, rng: np.random.Generator) -> tuple[pd.DataFrame, NDArray, NDArray]:
    """Rows, y, and the linear predictors of new sites."""
    site, x = np.repeat(np.arange(SITES), ROWS), rng.standard_normal(SITES * ROWS)
    eta = 0.5 + 0.5 * x + SPREAD * rng.standard_normal(SITES)[site]
    mean = np.exp(eta)
    y = {
        "linear": lambda: eta + rng.standard_normal(len(eta)),
        "logistic": lambda: (eta + rng.logistic(size=len(eta)) > 0).astype(int),
        "Poisson": lambda: rng.poisson(mean),
        "negative binomial": lambda: rng.poisson(mean * rng.gamma(3.0, 1 / 3.0, len(eta))),
        "Gamma": lambda: rng.gamma(4.0, mean / 4.0),
    }[family]()
    rows = pd.DataFrame({"site": pd.Categorical(site), "x": x})
    return rows, y, 0.5 + SPREAD * rng.standard_normal(NEW)


def predictors(model, rows: pd.DataFrame) -> NDArray:
    """Draws of the linear predictors, (draws, rows)."""
    fitted, X, draws, *_ = model._to_predict(rows, None, np.float64, every=True)
    return fitted.etas(draws, X)[:, 0]


def covered(draws: NDArray, truth: NDArray) -> float:
    """Share of the truths within the interval of their draws."""
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return float(np.mean((low <= truth) & (truth <= high)))


def coverage(family: str, sets: int) -> list[dict]:
    """Of one new level, and of sums over five."""
    each = []
    for seed in range(sets):
        rows, y, truth = simulated(family, np.random.default_rng([29, seed]))
        model = FAMILIES[family](random_state=seed).fit(rows, y)
        new = pd.DataFrame({"site": -1 - np.arange(NEW), "x": 0.0})
        draws = predictors(model, new)
        sums = draws.reshape(len(draws), -1, OF_SUM).sum(axis=2)
        each.append([covered(draws, truth), covered(sums, truth.reshape(-1, OF_SUM).sum(axis=1))])
    each = np.array(each)
    error = each.std(axis=0, ddof=1) / np.sqrt(sets)
    names = ("a new level", f"the sum of {OF_SUM} new levels")
    return [
        {"family": family, "interval of": name, "coverage": each[:, k].mean(), "error": error[k]}
        for k, name in enumerate(names)
    ]


def difference() -> float:
    """Between the draws of a frame and those of the columns of its levels."""
    rows, y, _ = simulated("Poisson", np.random.default_rng(0))
    columns = pd.get_dummies(rows, columns=["site"], prefix="site_", dtype=float)
    columns = columns[[*columns.columns[1:], "x"]].rename(columns={"x": "number__x"})
    frame = BayesianPoissonRegressor(random_state=0).fit(rows, y)
    other = BayesianPoissonRegressor(prior_groups="prefix", random_state=0).fit(columns, y)
    return float(np.abs(frame.draws_ - other.draws_).max())


def main(report: Report, sets: int = 24) -> None:
    """Save coverages, and claim that they are right but for their errors."""
    warnings.simplefilter("ignore")
    rows = [row for family in FAMILIES for row in coverage(family, sets)]
    claims = [Claim("largest difference of draws, frame and columns", difference(), 0.0, 1e-9)]
    for row in rows:
        sentence = f"coverage of {row['interval of']}, {row['family']}"
        low, high = LEVEL - 3 * row["error"], LEVEL + 3 * row["error"]
        claims.append(Claim(f"{sentence} (three errors)", row["coverage"], low, high))
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(main)
