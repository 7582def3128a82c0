"""What a fitted model costs where it is served: time of predictions, size of files, log loss.

    python -m benchmarks.cost.serving      # half a minute

A logistic regression of 10,000 rows x 20 columns behind a StandardScaler, whole and as
``compact(100)``, beside LogisticRegression: CPU milliseconds of one thread, the least of
--repeats in which all take turns, for one row and for 100,000 rows in double and in single
precision; kilobytes of the pipeline by pickle and by skops, which only `trusted_types` may load;
and the log loss of 100,000 new rows.
"""

from __future__ import annotations

import pickle
import time
from functools import partial

import numpy as np
import skops.io
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.timing import Clock
from benchmarks.cost.predictions import N_ROWS, rows_and_line
from skbayes_sg import BayesianLogisticRegression, trusted_types


def served() -> dict[str, Pipeline]:
    """Fitted pipelines by name."""
    rng, (X, eta) = np.random.default_rng(4), rows_and_line(10_000)
    y = eta + rng.logistic(size=len(eta)) > 0
    one = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    whole = make_pipeline(StandardScaler(), BayesianLogisticRegression(random_state=0)).fit(X, y)
    few = make_pipeline(whole[0], whole[1].compact(n_draws=100))
    return {"LogisticRegression": one, "whole": whole, "compact(100)": few}


def least_ms(jobs: dict[str, partial], repeats: int, times: int = 1) -> dict[str, float]:
    """CPU milliseconds of one call of each job, the least of some turns."""
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats + 1):
        for name, job in jobs.items():
            with Clock(time.process_time) as clock:
                for _ in range(times):
                    job()
            found[name].append(1e3 * clock.seconds / times)
    return {name: min(each[1:]) for name, each in found.items()}  # the first turn warms up


def main(report: Report, repeats: int = 7) -> None:
    """A row for each form of the model."""
    models, (new, eta) = served(), rows_and_line(N_ROWS, seed=3)
    y = eta + np.random.default_rng(5).logistic(size=N_ROWS) > 0
    with threadpool_limits(1):
        columns = {
            name: least_ms({k: partial(m.predict_proba, rows) for k, m in models.items()}, *how)
            for name, rows, how in (
                ("one row ms", new[:1], (repeats, 200)),
                ("double ms", new, (repeats,)),
                ("single ms", new.astype(np.float32), (repeats,)),
            )
        }
    rows = []
    for name, model in models.items():
        stored = skops.io.dumps(model)
        skops.io.loads(stored, trusted=trusted_types())
        rows.append(
            {"model": name}
            | {column: found[name] for column, found in columns.items()}
            | {"pickle kB": len(pickle.dumps(model)) / 1e3, "skops kB": len(stored) / 1e3}
            | {"log loss": log_loss(y, model.predict_proba(new)[:, 1])}
        )
    whole, few = rows[1:]
    claims = [
        Claim(
            "log loss of a hundred draws over that of all",
            few["log loss"] / whole["log loss"],
            high=1.001,
        ),
        Claim(
            "file of a hundred draws over that of all",
            few["pickle kB"] / whole["pickle kB"],
            high=0.5,
        ),
    ]
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(main, repeats={"type": int, "default": 7})
