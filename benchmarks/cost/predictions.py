"""CPU time of predictions and bytes of files, by limits.

    python -m benchmarks.cost.predictions                  # all: some minutes
    python -m benchmarks.cost.predictions --only proba     # a part; others stay as they were

Times are the least of --repeats, of one thread; where there is another estimator the two alternate.

predict     of regressions, 100,000 rows x 20 columns in double and in single precision, under the
            default fit to 10,000 such rows; microseconds a row.
proba       `predict_proba` of two classes, of 100,000 rows x 20 columns, and of 5,000 digits, over
            LogisticRegression's; and of one row through a Pipeline with a StandardScaler.
dask        `score` of a dask array over the fit to it, in one process.
file        kilobytes of a pickle of a logistic fit to 1,000 rows x 10 columns.
"""

from __future__ import annotations

import pickle
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from threadpoolctl import threadpool_limits

from benchmarks.common.harness import RESULTS, Claim, Report, benchmark
from benchmarks.common.timing import Clock
from skbayes_sg import (
    BayesianBinomialRegressor,
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
)

LIMITS = {
    "predict, double precision": 2.0,
    "predict, single precision": 1.0,
    "proba, two classes x 20 columns": 12.0,
    "proba, 5,000 digits": 40.0,
    "proba, one row through a pipeline": 2.0,
    "dask": 1.0,
    "file": 109.0,
}
"""Of lines that begin so."""
N_ROWS, N_COLUMNS = 100_000, 20


def cpu(repeats: int, *jobs: Callable[[], object]) -> list[float]:
    """CPU seconds of each job, the least of some turns."""
    found = []
    for job in jobs:
        job()
    for _ in range(repeats):
        turn = []
        for job in jobs:
            with Clock(time.process_time) as clock:
                job()
            turn.append(clock.seconds)
        found.append(turn)
    return np.min(found, axis=0).tolist()


def rows_and_line(n: int, seed: int = 0) -> tuple[NDArray, NDArray]:
    """Independent columns, and a linear predictor of standard deviation 1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, N_COLUMNS))
    return X, X @ np.random.default_rng(1).normal(0, N_COLUMNS**-0.5, N_COLUMNS)


def fitted() -> Iterator[tuple[str, Any, dict]]:
    """A default fit of each family, and what its predictions are given."""
    rng, (X, eta) = np.random.default_rng(2), rows_and_line(10_000)
    mean, gamma = np.exp(eta), rng.gamma(2, 0.5, len(eta))
    responses = {
        BayesianPoissonRegressor: rng.poisson(mean),
        BayesianNegativeBinomialRegressor: rng.poisson(mean * gamma),
        BayesianGammaRegressor: mean * gamma,
        BayesianRobustRegressor: eta + rng.standard_t(4, len(eta)),
        BayesianLinearRegression: eta + rng.standard_normal(len(eta)),
    }
    for kind, y in responses.items():
        name = kind.__name__.removeprefix("Bayesian").removesuffix("Regressor")
        yield name, kind(random_state=0).fit(X, y.astype(float)), {}
    y = rng.binomial(9, 1 / (1 + np.exp(-eta)))
    model = BayesianBinomialRegressor(random_state=0).fit(X, y, trials=9)
    yield "Binomial", model, {"trials": 9}


def means_predicted(repeats: int) -> Iterator[dict]:
    """Microseconds a row."""
    X, _ = rows_and_line(N_ROWS, seed=3)
    for name, model, known in fitted():
        for precision, rows in (("double", X), ("single", X.astype(np.float32))):
            (spent,) = cpu(repeats, partial(model.predict, rows, **known))
            what = f"predict, {precision} precision, {name}"
            yield {"what": what, "figure": 1e6 * spent / N_ROWS, "unit": "us a row"}


def probabilities_predicted(repeats: int) -> Iterator[dict]:
    """Over LogisticRegression's."""
    rng, (X, eta) = np.random.default_rng(4), rows_and_line(10_000)
    y = eta + rng.logistic(size=len(eta)) > 0
    many = rows_and_line(N_ROWS, seed=3)[0]
    digits, labels = load_digits(return_X_y=True)
    digits = scale(digits)
    scaled = [make_pipeline(StandardScaler(), one) for one in pair()]
    cases = [
        ("two classes x 20 columns", pair(), X, y, many, 1),
        ("5,000 digits", pair(), digits, labels, np.tile(digits, (3, 1))[:5000], 1),
        ("one row through a pipeline", scaled, X, y, many[:1], 100),
    ]
    for name, both, rows, labels, new, times in cases:
        ours, theirs = (one.fit(rows, labels) for one in both)
        spent = cpu(
            repeats,
            lambda ours=ours, new=new, times=times: [ours.predict_proba(new) for _ in range(times)],
            lambda theirs=theirs, new=new, times=times: [
                theirs.predict_proba(new) for _ in range(times)
            ],
        )
        what = f"proba, {name}"
        yield {"what": what, "figure": spent[0] / spent[1], "unit": "of LogisticRegression"}


def pair() -> tuple[BayesianLogisticRegression, LogisticRegression]:
    """Ours and the other."""
    return BayesianLogisticRegression(random_state=0), LogisticRegression(max_iter=10_000)


def collection_scored(repeats: int) -> Iterator[dict]:
    """The score of a dask array over the fit to it."""
    import dask  # part of the extra "bench"
    import dask.array as da

    rng, (X, eta) = np.random.default_rng(5), rows_and_line(400_000)
    y = rng.poisson(np.exp(eta)).astype(float)
    rows = da.from_array(X.astype(np.float32), chunks=(100_000, N_COLUMNS))
    counts = da.from_array(y, chunks=100_000)
    with dask.config.set(scheduler="synchronous"):
        model = BayesianPoissonRegressor(random_state=0)
        spent = cpu(
            repeats,
            lambda: model.fit(rows, counts),
            lambda: model.score(rows, counts),
        )
    yield {"what": "dask, score, Poisson", "figure": spent[1] / spent[0], "unit": "of the fit"}


def file_written(_: int) -> Iterator[dict]:
    """Kilobytes of a pickle."""
    X, y = make_classification(1000, 10, random_state=0)
    model = BayesianLogisticRegression(random_state=0).fit(X, y)
    size = len(pickle.dumps(model)) / 1e3
    yield {"what": "file, logistic 1,000 x 10", "figure": size, "unit": "kB"}


JOBS = {
    "predict": means_predicted,
    "proba": probabilities_predicted,
    "dask": collection_scored,
    "file": file_written,
}


def main(report: Report, only: list[str] | None = None, repeats: int = 5) -> None:
    """A row for each, and a claim for each limit."""
    warnings.simplefilter("ignore")
    rows = []
    with threadpool_limits(1):
        for name, job in JOBS.items():
            if only is None or name in only:
                for row in job(repeats):
                    rows.append(row)
                    print(row, flush=True)
    if only is not None and (RESULTS / "predictions.csv").exists():
        new = {row["what"] for row in rows}
        rows += [row for row in report.earlier() if row["what"] not in new]
    claims = []
    for row in rows:
        (limit,) = {limit for what, limit in LIMITS.items() if row["what"].startswith(what)}
        claims.append(Claim(f"{row['what']}, {row['unit']}", row["figure"], high=limit))
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(
        main,
        only={"nargs": "*", "choices": list(JOBS), "help": "the parts to run"},
        repeats={"type": int, "default": 5},
    )
