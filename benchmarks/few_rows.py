"""What exactness costs: HMC on all rows against SGFS with control variates, by number of rows.

    python benchmarks/few_rows.py

These are default fits of BayesianLogisticRegressionSGFS on one core, float32, 50 features. The
table has seconds, bulk effective draws of the worst parameter per second, and the Stein ratio:
medians of three fits, the samplers in turn. It sets FEW_ROWS of the estimator. Under a minute.
"""

from __future__ import annotations

import warnings

import numpy as np
from harness import Report, benchmark
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from timing import Clock

from skbayes_sg import BayesianLogisticRegressionSGFS
from skbayes_sg.samplers import HMC, SGFS

SAMPLERS = {"HMC": HMC(), "SGFS": SGFS(variance_reduction="control_variate")}


def fit(sampler, seed: int, X: NDArray, y: NDArray) -> tuple[float, float, float]:
    """Seconds, effective draws per second, Stein ratio."""
    with Clock() as clock:
        model = BayesianLogisticRegressionSGFS(sampler, random_state=seed).fit(X, y)
    found = model.diagnostics_
    return clock.seconds, found["ess_min"] / clock.seconds, found["stein_ratio"]


def compare(n_rows: int) -> dict:
    """Medians of three fits with each sampler."""
    X, y = make_classification(n_rows, 50, n_informative=20, random_state=0)
    X = StandardScaler().fit_transform(X).astype(np.float32)
    figures = {name: [] for name in SAMPLERS}
    for seed in range(3):
        for name, sampler in SAMPLERS.items():
            figures[name].append(fit(sampler, seed, X, y))
    row = {"rows": n_rows}
    for name, values in figures.items():
        columns = f"{name} s", f"{name} ESS/s", f"{name} Stein"
        row |= dict(zip(columns, np.median(values, axis=0).tolist(), strict=True))
    return row | {"HMC / SGFS ESS/s": row["HMC ESS/s"] / row["SGFS ESS/s"]}


def main(report: Report) -> None:
    """One row per size."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    report.save([compare(n_rows) for n_rows in (1000, 2000, 5000, 10_000, 20_000)])


if __name__ == "__main__":
    benchmark(main, threads=1)
