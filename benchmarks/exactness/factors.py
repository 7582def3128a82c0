"""Data frames with factors: are they mixed models, and do intervals of new levels cover?

    python -m benchmarks.exactness.factors [--sets 24] [--only nuts]

Four data frames are fitted as they are (common/mixed_frames.py), beside NumPyro's NUTS of the same
density: sleepstudy (intercepts and slopes), VerbAgg (316 persons crossed with 24 items),
grouseticks (403 chicks in 118 broods in 63 locations) and Insurance (rates, three short factors).
"mean error" is the worst difference of means of coefficients and of log precisions in standard
deviations of the reference, "sd ratio" the standard deviation that is farthest from the
reference's, and "beyond" what is beyond four Monte Carlo errors of both runs: .1 and 10 % are
allowed on top. References are kept in benchmarks/results; to make one needs the extra ``bench``.

A set of simulated rows has 25 sites of 12 rows, a number, and a y of one of five families. The
effects of the sites are normal with a standard deviation of .8. A data frame with a column of
categories is fitted as it is, and 40 sites follow that the fit has not seen. Intervals of 95 % are
of the linear predictor of each, and of sums over five of them. If new sites shared one draw, such
sums would be sqrt(5) times too wide. Coverage is in the mean over sets, and its error is that over
sets: new sites of one fit share what it knows of the spread.

Another claim is that a frame and the columns of its levels lead to the same draws.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.common.beside_nuts import claims as claims_beside_nuts
from benchmarks.common.beside_nuts import differences
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.mixed_frames import CHAINS, DRAWS, SETS, WARM_UP, by_nuts, compared_draws
from benchmarks.common.reference import cached
from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
)

SITES, ROWS, NEW, OF_SUM = 25, 12, 40, 5
SPREAD, LEVEL = 0.8, 0.95
ERRORS = 4.0
"""Monte Carlo errors that are allowed on top"""
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
    fitted, X, draws, _ = model._to_predict(rows, None, np.float64, every=True)
    return fitted.etas(draws.flat, X)[:, 0]


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


def beside_nuts(name: str) -> dict:
    """A fit of a data frame, and its reference."""
    mixed, begin = SETS[name](), time.process_time()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = mixed.estimator.fit(mixed.rows, mixed.y, **mixed.more)
    seconds = time.process_time() - begin
    about = np.array([CHAINS, WARM_UP, DRAWS])
    codes = pd.get_dummies(mixed.rows).to_numpy(float)
    reference = cached(f"factors_{name}", lambda: by_nuts(mixed, model), codes, mixed.y, about)
    return {
        "set": name,
        "rows": len(mixed.y),
        "coefficients": len(model.coef_names_),
        "precisions": len(model.prior_precision_blocks_),
        "seconds": seconds,
        "warns": "yes" if heard else "no",
        **differences(compared_draws(model), reference, ERRORS),
        "NUTS R-hat": reference[4].max(),
        "NUTS ESS": reference[2].min(),
    }


def main(report: Report, sets: int = 24, only: str | None = None) -> None:
    """Save what NUTS says too, and coverages, which are to be right but for their errors."""
    frames = [beside_nuts(name) for name in SETS]
    found = [claim for row in frames for claim in claims_beside_nuts(row)]
    report.save(frames, found, name="factors_beside_nuts")
    if only == "nuts":
        return
    warnings.simplefilter("ignore")
    rows = [row for family in FAMILIES for row in coverage(family, sets)]
    claims = [Claim("largest difference of draws, frame and columns", difference(), 0.0, 1e-9)]
    for row in rows:
        sentence = f"coverage of {row['interval of']}, {row['family']}"
        low, high = LEVEL - 3 * row["error"], LEVEL + 3 * row["error"]
        claims.append(Claim(f"{sentence} (three errors)", row["coverage"], low, high))
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(main, sets={"type": int, "default": 24}, only={"choices": ["nuts"]})
