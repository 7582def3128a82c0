"""What a default fit takes on few rows, beside LogisticRegression and LogisticRegressionCV.

    python -m benchmarks.cost.few_rows

Default fits of BayesianLogisticRegressionSGFS, diagnostics included, on one core: medians of three,
the estimators in turn. Columns are standardised. LogisticRegressionCV tries ten values in five
folds. "steepness" says how far the posterior is from Gaussian: up to 2 SGFS with control variates
runs, beyond it short steps of all rows, and beyond 20 HMC. The prior is learned. Where it is left
weak (breast cancer, wine, iris), the posterior is far from Gaussian.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.preprocessing import StandardScaler

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.timing import Clock
from skbayes_sg import BayesianLogisticRegressionSGFS

LIMIT = 0.15  # seconds
MADE_UP = ((100, 4), (300, 10), (1000, 20), (2000, 40), (5000, 60))
SHIPPED = {"breast cancer": load_breast_cancer, "wine": load_wine, "iris": load_iris}


def data() -> Iterator[tuple[str, NDArray, NDArray]]:
    """Name, standardised rows and labels."""
    for n, d in MADE_UP:
        X, y = make_classification(n, d, n_informative=d // 2, flip_y=0.1, random_state=0)
        yield "made up", StandardScaler().fit_transform(X), y
    for name, load in SHIPPED.items():
        X, y = load(return_X_y=True)
        yield name, StandardScaler().fit_transform(X), y


def compare(name: str, X: NDArray, y: NDArray) -> dict:
    """Seconds of the three estimators, and the figures of the Bayesian fit."""
    estimators = {
        "default": BayesianLogisticRegressionSGFS(random_state=0),
        "LogisticRegression": LogisticRegression(),
        "LogisticRegressionCV": LogisticRegressionCV(cv=5),
    }
    seconds: dict[str, list[float]] = {label: [] for label in estimators}
    for _ in range(3):
        for label, estimator in estimators.items():
            with Clock() as clock:
                estimator.fit(X, y)
            seconds[label].append(clock.seconds)
    model = estimators["default"]
    found = model.diagnostics_
    return {
        "data": name,
        "rows": len(X),
        "features": X.shape[1],
        "classes": len(model.classes_),
        "sampler": type(model.sampler_).__name__,
        "noise number": found.get("noise_number"),
        "steepness": found.get("steepness"),
        "ESS": found["ess_min"],
        "R-hat": found["r_hat_max"],
        **{f"{label} s": float(np.median(each)) for label, each in seconds.items()},
    }


def main(report: Report) -> None:
    """One row per data set; the claim is about those with a noise number below 1."""
    warnings.simplefilter("ignore")
    rows = [compare(*one) for one in data()]
    near = [row["default s"] for row in rows if row["noise number"] < 1]
    report.save(rows, [Claim("seconds of fits of noise number below 1", near, high=LIMIT)])


if __name__ == "__main__":
    benchmark(main, threads=1)
