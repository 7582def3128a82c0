"""Default fits with hundreds and thousands of parameters: seconds, spreads and log loss.

    python -m benchmarks.cost.wide                     # all; the first time about an hour
    python -m benchmarks.cost.wide --only 300 900      # a part

11,000 rows with 300, 900 and 2,000 correlated columns and two classes, synthetic, and 10,000 rows
of MNIST with all 784 pixels and ten classes, float32. One core. "CPU s" is that of a default fit,
diagnostics included, median of --repeats; it is judged, as other processes do not lengthen it.

"sd ratio" is a parameter's standard deviation over that of a long HMC run on all rows: median,
smallest and largest. "beyond" is the largest distance from 1 that four standard errors of both runs
do not explain. "log loss" is that of predict_proba on 4,000 other rows, beside LogisticRegressionCV
(ten values, five folds, chosen by log loss) and LogisticRegression at the prior precision of the
default, C = 1. "worse by" is the mean difference to LogisticRegressionCV less two standard errors
of it. The long runs and LogisticRegressionCV take most of the time. They are kept, see
reference.py.
"""

from __future__ import annotations

import time
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV

from benchmarks.common.datasets import mnist, standardised
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.reference import cached, long_run
from benchmarks.common.timing import Clock, median
from skbayes_sg import BayesianLogisticRegressionSGFS

ROWS, TEST_ROWS = 11_000, 4000
FACTORS = 20
LIMITS = {"300": 3.0, "900": 10.0, "2000": 30.0, "mnist": 60.0}  # seconds
REFERENCE_DRAWS = {"300": 400, "900": 300, "2000": 260, "mnist": 100}  # of each of 32 chains


class Split(NamedTuple):
    """Rows to fit and rows to judge by."""

    X: NDArray
    y: NDArray
    X_test: NDArray
    y_test: NDArray


def correlated(n_rows: int, n_columns: int) -> Split:
    """Standardised columns with common factors.

    The linear predictor has standard deviation 2.
    """
    rng = np.random.default_rng([n_rows, n_columns])
    n = n_rows + TEST_ROWS
    common = rng.standard_normal((n, FACTORS)) @ rng.standard_normal((FACTORS, n_columns))
    X = standardised(common / np.sqrt(FACTORS) + rng.standard_normal((n, n_columns)))
    coef = rng.standard_normal(n_columns)
    coef *= 2 / (X @ coef).std()
    y = (X @ coef + rng.logistic(size=n) > 0).astype(int)
    return Split(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])


def data(name: str) -> Split:
    """Rows by the name of the data."""
    if name == "mnist":
        X, y = mnist()
        X = (X[: 10_000 + TEST_ROWS] / 255.0).astype(np.float32)
        return Split(X[:10_000], y[:10_000], X[10_000:], y[10_000 : len(X)])
    return correlated(ROWS, int(name))


def rivals(split: Split) -> dict[str, NDArray]:
    """Log losses of other rows by LogisticRegressionCV and LogisticRegression, and CPU seconds."""
    models = {
        "cv": LogisticRegressionCV(cv=5, scoring="neg_log_loss", max_iter=1000),
        "point": LogisticRegression(max_iter=1000),
    }
    found = {}
    for name, model in models.items():
        with Clock(time.process_time) as clock:
            model.fit(split.X, split.y)
        found[name] = losses(model.predict_proba(split.X_test), split.y_test).astype(np.float32)
        found[f"{name} seconds"] = np.asarray(clock.seconds)
    return found


def beside_rivals(name: str, model, split: Split) -> dict:
    """Log losses of a fit and of its rivals, and how far it is worse beyond two standard errors."""
    cv, cv_seconds, point, _ = cached(f"wide_{name}_cv", lambda: rivals(split), split.X, split.y)
    ours = losses(model.predict_proba(split.X_test), split.y_test)
    return {
        "log loss": float(ours.mean()),
        "log loss of CV": float(cv.mean()),
        "log loss of C = 1": float(point.mean()),
        "worse by": float((ours - cv).mean() - 2 * (ours - cv).std() / np.sqrt(len(ours))),
        "CV CPU s": float(cv_seconds),
    }


def losses(proba: NDArray, y: NDArray) -> NDArray:
    """Minus log probability of each label, (rows,)."""
    return -np.log(np.maximum(proba[np.arange(len(y)), y], 1e-12))


def fitted(prior_precision, X: NDArray, y: NDArray, repeats: int) -> tuple:
    """A fit with a precision, given or learned, and its median CPU and wall seconds."""
    model = BayesianLogisticRegressionSGFS(prior_precision=prior_precision, random_state=0)
    spent, walls = [], []
    for _ in range(repeats):
        with Clock(time.process_time) as cpu, Clock() as wall:
            model.fit(X, y)
        spent.append(cpu.seconds)
        walls.append(wall.seconds)
    return model, {"CPU s": median(spent), "s": median(walls)}


def compare(name: str, repeats: int) -> dict:
    """A default fit, the long run, and cross-validation."""
    split = data(name)
    default, seconds = fitted("learned", split.X, split.y, repeats)
    model, of_given = fitted(1.0, split.X, split.y, 1)
    found = model.diagnostics_
    row = {
        "data": name,
        "rows": len(split.X),
        "parameters": model.draws_.shape[-1],
        "classes": len(model.classes_),
        "sampler": type(model.sampler_).__name__,
        "reason": model.sampler_reason_,
        "noise number": found.get("noise_number"),
        "ESS": found["ess_min"],
        "R-hat": found["r_hat_max"],
        **seconds,
        "CPU s at precision 1": of_given["CPU s"],
    }
    print(row, flush=True)
    true = long_run(f"wide_{name}", split.X, split.y, REFERENCE_DRAWS[name])
    ratio = model.draws_.std(axis=(0, 1)) / true.sd
    slack = 4 * np.sqrt(0.5 / found["ess_min"] + 0.5 / true.ess)
    spread = {
        "sd ratio": float(np.median(ratio)),
        "sd ratio min": float(ratio.min()),
        "sd ratio max": float(ratio.max()),
        "beyond": float(np.abs(ratio - 1).max() - slack),
        "ESS of long run": float(true.ess),
        "R-hat of long run": float(true.r_hat),
    }
    return row | spread | beside_rivals(name, default, split)


def claims(row: dict) -> list[Claim]:
    """Of one data set."""
    name = row["data"]
    return [
        Claim(f"{name}: CPU seconds of a default fit", row["CPU s"], high=LIMITS[name]),
        Claim(f"{name}: R-hat of the long run", row["R-hat of long run"], high=1.02),
        Claim(f"{name}: |sd ratio - 1| beyond four standard errors", row["beyond"], high=0.1),
        Claim(f"{name}: log loss worse than LogisticRegressionCV's by", row["worse by"], high=0),
    ]


def main(report: Report, only: list[str], repeats: int) -> None:
    """The data sets that are asked for, each with a table of its own."""
    warnings.simplefilter("ignore")
    for name in only:
        row = compare(name, repeats)
        report.save([row], claims(row), name=f"wide_{name}")


if __name__ == "__main__":
    names = [*LIMITS]
    benchmark(
        main,
        threads=1,
        only={"nargs": "+", "choices": names, "default": names, "help": "the data"},
        repeats={"type": int, "default": 3, "help": "of each fit"},
    )
