"""Posteriors that are steep somewhere: census-like columns, heavy-tailed amounts, digits.

    python -m benchmarks.exactness.steep  # all; the first time a quarter of an hour
    python -m benchmarks.exactness.steep --only amounts  # a part

census    30,000 rows, 15 categorical columns whose levels follow Zipf's law, one-hot and
          standardised: 100 columns. The rarest levels have a handful of rows, and some of them one
          class only.
amounts   45,000 rows, 8 columns with Pareto tails (index 1.5), standardised.
digits    1,347 of scikit-learn's digits, 64 standardised columns, ten classes.

One core. "CPU s" is that of a default fit, diagnostics included, median of --repeats; it is judged,
as other processes do not lengthen it. The draws of a fit that is four times longer are compared
with a long HMC run on all rows (see reference.py). "mean error" is the largest along the axes of
the reference, in posterior standard deviations, and the variance ratios are along the same axes;
for digits, with 650 parameters, both are of the parameters themselves. "noise of a ratio" is the
standard error of a variance ratio, of both runs together.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.reference import LongRun, long_run
from benchmarks.common.timing import Clock, median
from skbayes_sg import BayesianLogisticRegressionSGFS, diagnostics

Data = tuple[NDArray, NDArray]
LEVELS = (2, 2, 3, 4, 5, 5, 6, 7, 7, 8, 8, 9, 10, 12, 12)
LONGER = 16


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


SETS: dict[str, tuple[Callable[[], Data], float, float]] = {
    "census": (census, 15.0, 0.1),
    "amounts": (amounts, 1.0, 0.05),
    "digits": (digits, 5.0, 0.1),
}
"""data, seconds, largest distance of a variance ratio from 1"""
REFERENCE_DRAWS = {"census": 1500, "amounts": 1000, "digits": 1500}  # of each of 32 chains


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


def compare(name: str, repeats: int) -> dict:
    """Default fits, a longer one, and the long run."""
    X, y = SETS[name][0]()
    model = BayesianLogisticRegressionSGFS(random_state=0, prior_precision=1.0)
    spent, walls = [], []
    for _ in range(repeats):
        with Clock(time.process_time) as cpu, Clock() as wall:
            model.fit(X, y)
        spent.append(cpu.seconds)
        walls.append(wall.seconds)
    found = model.diagnostics_
    row = {
        "data": name,
        "rows": len(X),
        "parameters": model.draws_.shape[-1],
        "classes": len(model.classes_),
        "sampler": type(model.sampler_).__name__,
        "reason": model.sampler_reason_,
        "CPU s": median(spent),
        "s": median(walls),
        "ESS": found["ess_min"],
        "R-hat": found["r_hat_max"],
    }
    print(row, flush=True)
    longer = LONGER * model.draws_.shape[1]
    draws = model.set_params(n_draws=longer).fit(X, y).draws_
    true = long_run(f"steep_{name}", X, y, REFERENCE_DRAWS[name])
    row |= errors(draws, true)
    return row | {"ESS of long run": float(true.ess), "R-hat of long run": float(true.r_hat)}


def claims(row: dict) -> list[Claim]:
    """Of one data set."""
    name = row["data"]
    _, seconds, distance = SETS[name]
    what = "variance ratios along all axes" if name != "digits" else "variance ratios"
    return [
        Claim(f"{name}: CPU seconds of a default fit", row["CPU s"], high=seconds),
        Claim(f"{name}: R-hat of the long run", row["R-hat of long run"], high=1.02),
        Claim(f"{name}: {what}", (row["ratio min"], row["ratio max"]), 1 - distance, 1 + distance),
        Claim(f"{name}: mean error", row["mean error"], high=distance),
    ]


def main(report: Report, only: list[str], repeats: int) -> None:
    """The data sets that are asked for, each with a table of its own."""
    warnings.simplefilter("ignore")
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
    )
