"""Posteriors that are steep somewhere: census-like columns, heavy-tailed amounts, digits.

    python -m benchmarks.exactness.steep  # all; the first time a quarter of an hour
    python -m benchmarks.exactness.steep --only amounts  # a part
    python -m benchmarks.exactness.steep --time-scales  # five minutes

census    30,000 rows, 15 categorical columns whose levels follow Zipf's law, one-hot and
          standardised: 100 columns. The rarest levels have a handful of rows, and some of them one
          class only.
amounts   45,000 rows, 8 columns with Pareto tails (index 1.5), standardised.
digits    1,347 of scikit-learn's digits, 64 standardised columns, ten classes.
KDD 99    2,100 connections, 41 standardised columns: attacks or not, which nearly all columns tell.

One core. "CPU s" is that of a fit of 4,000 draws, diagnostics included, median of --repeats; it is
judged, as other processes do not lengthen it. "over CV" is that over LogisticRegressionCV's with
ten values in five folds. The draws of a fit that is four times longer are compared with a long HMC
run on all rows (see reference.py). "mean error" is the largest along the axes of the reference, in
posterior standard deviations, and the variance ratios are along the same axes; for digits, with 650
parameters, both are of the parameters themselves. "noise of a ratio" is the standard error of a
variance ratio, of both runs together. "floor over CV" is the time of nothing but the matrix
products of as many gradients as `ENOUGH` effective draws take after burn-in, also over
LogisticRegressionCV's.

--time-scales compares HMC whose short steps have few rows with HMC whose steps all have all rows
(time_scales.csv): KDD 99, census, and its first 5,000 rows. "passes" are gradients of all rows,
short steps counted by their share of the rows. Means over four seeds; "R-hat" is the largest.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.common.classification import SETS as SMALL_SETS
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.reference import LongRun, long_run
from benchmarks.common.timing import Clock, median
from benchmarks.prediction.quality import RIVAL, models, split
from skbayes_sg import BayesianLogisticRegression, diagnostics
from skbayes_sg.samplers import hmc

Data = tuple[NDArray, NDArray]
LEVELS = (2, 2, 3, 4, 5, 5, 6, 7, 7, 8, 8, 9, 10, 12, 12)
LONGER = 16
ENOUGH = 400  # effective draws (Vehtari et al. 2021)
GIVEN = {"prior_precision": 1.0, "n_chains": 32, "n_draws": 125}  # for all that are compared


def census() -> Data:
    """30,000 x 100; a quarter of the rows are events."""
    rng = np.random.default_rng(1)
    columns, z = [], np.zeros(30_000)
    for n_levels in LEVELS:
        share = np.arange(1.0, n_levels + 1) ** -rng.uniform(1.5, 4.0)
        one_hot = np.eye(n_levels)[rng.choice(n_levels, len(z), p=share / share.sum())]
        columns.append(one_hot)
        z += one_hot @ (0.6 * rng.standard_normal(n_levels))
    X, z = np.column_stack(columns), z - z.mean() - 1.5
    return StandardScaler().fit_transform(X), (z + rng.logistic(size=len(z)) > 0).astype(int)


def amounts() -> Data:
    """45,000 x 8; a third of the rows are events."""
    rng = np.random.default_rng(1)
    X = StandardScaler().fit_transform(rng.pareto(1.5, (45_000, 8)))
    z = X @ rng.standard_normal(8)
    z = 0.5 * z / z.std() - 0.8
    return X, (z + rng.logistic(size=len(z)) > 0).astype(int)


def digits() -> Data:
    """1,347 x 64."""
    X, y = load_digits(return_X_y=True)
    X, _, y, _ = train_test_split(X, y, random_state=0)
    return StandardScaler().fit_transform(X), y


def kdd() -> Data:
    """2,100 x 41."""
    X, _, y, _ = split(*SMALL_SETS["KDD 99"](), 0)
    return X, y


class Asked(NamedTuple):
    """Data, and the limits of a default fit."""

    data: Callable[[], Data]
    seconds: float = np.inf
    over_cv: float = np.inf
    distance: float = 0.1
    """of a variance ratio from 1, and of a mean in standard deviations from its own"""
    draws: int = 1500
    """of each of the 32 chains of the long run"""


SETS = {
    "census": Asked(census, seconds=10.0),
    "amounts": Asked(amounts, seconds=1.0, distance=0.05, draws=1000),
    "digits": Asked(digits, over_cv=5.0),
    "kdd": Asked(kdd, seconds=0.6),
}
R_HAT = 1.02
TIME_SCALES = {
    "KDD99": ("kdd", None),
    "census, 5,000 rows": ("census", 5000),
    "census": ("census", None),
}
SEEDS = 4


def errors(draws: NDArray, true: LongRun) -> dict:
    """Errors of means and of variances, along the axes of the reference if it has a covariance."""
    values, axes = (true.sd**2, None) if true.cov.size == 0 else np.linalg.eigh(true.cov)
    along = draws - true.mean if axes is None else (draws - true.mean) @ axes
    along /= np.sqrt(values)
    flat = along.reshape(-1, along.shape[-1])
    ratio = flat.var(axis=0)
    return {
        "mean error": float(np.abs(flat.mean(axis=0)).max()),
        "ratio": float(ratio.mean()),
        "ratio min": float(ratio.min()),
        "ratio max": float(ratio.max()),
        "noise of a ratio": float(np.sqrt(2 / diagnostics.ess_mean(along).min() + 2 / true.ess)),
    }


def products(X: NDArray, n_outputs: int, n_chains: int = 32) -> float:
    """Seconds of the two products of a gradient of one chain, of 32 that share them."""
    rows = X.astype(np.float32)
    theta = np.ones((n_chains * n_outputs, X.shape[1]), np.float32)
    by_column, weights, spent = np.asfortranarray(rows), theta @ rows.T, []
    for _ in range(20):
        with Clock(time.process_time) as clock:
            theta.dot(by_column.T)
            weights.dot(rows)
        spent.append(clock.seconds)
    return min(spent) / n_chains


def compare(name: str, repeats: int) -> dict:
    """Fits of 4,000 draws, a longer one, and the long run."""
    X, y = SETS[name].data()
    rival = models()[RIVAL]
    with Clock(time.process_time) as of_rival:
        rival.fit(X, y)
    model = BayesianLogisticRegression(**GIVEN, random_state=0)
    spent, walls = [], []
    for _ in range(repeats):
        with Clock(time.process_time) as cpu, Clock() as wall:
            model.fit(X, y)
        spent.append(cpu.seconds)
        walls.append(wall.seconds)
    found, n_classes = model.diagnostics_, len(model.classes_)
    each = products(X, 1 if n_classes == 2 else n_classes)
    row = {
        "data": name,
        "rows": len(X),
        "parameters": model.draws_.shape[-1],
        "classes": n_classes,
        "sampler": type(model.sampler_).__name__,
        "reason": model.sampler_reason_,
        "CPU s": median(spent),
        "over CV": median(spent) / of_rival.seconds,
        "s": median(walls),
        "floor over CV": ENOUGH / found["ess_per_pass"] * each / of_rival.seconds,
        "ESS": found["ess_min"],
        "R-hat": found["r_hat_max"],
    }
    print(row, flush=True)
    longer = LONGER * model.draws_.shape[1]
    draws = model.set_params(n_draws=longer).fit(X, y).draws_
    true = long_run(f"steep_{name}", X, y, SETS[name].draws)
    row |= errors(draws, true)
    return row | {"ESS of long run": float(true.ess), "R-hat of long run": float(true.r_hat)}


def claims(row: dict) -> list[Claim]:
    """Of one data set."""
    name = row["data"]
    asked = SETS[name]
    near = 1 - asked.distance, 1 + asked.distance
    what = "variance ratios along all axes" if name != "digits" else "variance ratios"
    speed = [
        Claim(f"{name}: CPU seconds of a default fit", row["CPU s"], high=asked.seconds),
        Claim(f"{name}: they over LogisticRegressionCV's", row["over CV"], high=asked.over_cv),
    ]
    return [claim for claim in speed if np.isfinite(claim.high)] + [
        Claim(f"{name}: R-hat of a default fit", row["R-hat"], high=R_HAT),
        Claim(f"{name}: R-hat of the long run", row["R-hat of long run"], high=R_HAT),
        Claim(f"{name}: {what}", (row["ratio min"], row["ratio max"]), *near),
        Claim(f"{name}: mean error", row["mean error"], high=asked.distance),
    ]


def with_short_steps(name: str, most_short: int) -> dict:
    """Mean figures of fits with at most so many short steps in a long one."""
    data, n_rows = TIME_SCALES[name]
    X, y = (each[:n_rows] for each in SETS[data].data())
    X = X[:, X.std(axis=0) > 0]
    found, hmc._MOST_SHORT = [], most_short
    for seed in range(SEEDS):
        model = BayesianLogisticRegression(**GIVEN, random_state=seed)
        with Clock(time.process_time) as clock:
            model.fit(X, y)
        figures = model.diagnostics_
        sampling = clock.seconds, model.n_passes_ / len(model.draws_)
        found.append((*sampling, figures["ess_min"], figures["r_hat_max"]))
    seconds, passes, ess, r_hat = np.array(found).T
    return {
        "data": name,
        "short steps": most_short,
        "CPU s": seconds.mean(),
        "passes": passes.mean(),
        "ESS": ess.mean(),
        "R-hat": r_hat.max(),
        "passes an effective draw": passes.mean() / ess.mean(),
    }


def compare_time_scales(report: Report) -> None:
    """All sets, with and without short steps."""
    rows, found = [], []
    for name in TIME_SCALES:
        short, plain = with_short_steps(name, hmc._MOST_SHORT), with_short_steps(name, 1)
        hmc._MOST_SHORT = short["short steps"]
        gain = plain["passes an effective draw"] / short["passes an effective draw"]
        rows += [short, plain]
        found.append(Claim(f"{name}: passes an effective draw, fewer by", gain, low=1.0))
    report.save(rows, found, name="time_scales")


def main(report: Report, only: list[str], repeats: int, time_scales: bool) -> None:
    """The data sets that are asked for, each with a table of its own."""
    warnings.simplefilter("ignore")
    if time_scales:
        compare_time_scales(report)
        return
    for name in only:
        row = compare(name, repeats)
        report.save([row], claims(row), name=f"steep_{name}")


if __name__ == "__main__":
    names = list(SETS)
    benchmark(
        main,
        threads=1,
        only={"nargs": "+", "choices": names, "default": names, "help": "the data"},
        repeats={"type": int, "default": 3, "help": "of each fit"},
        time_scales={"action": "store_true"},
    )
