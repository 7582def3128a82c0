"""Regressions of other families on real data, beside long runs of HMC on all rows.

    python -m benchmarks.exactness.families [--only ordinal]

Columns are standardised, and the prior precision of coefficients is 1. At most 1,500 rows.

Poisson             jumps of twenty athletes (linnerud)
negative binomial   connections to the same host in two seconds (KDD 99)
Gamma, robust       progression of diabetes; distances of protein structures that are positive
ordinal             grades of white wines, in five classes

The reference is HMC on all rows, without control variates, in coordinates of the model: 32 chains.
Errors are those of posteriors.py: of all parameters, also of dispersions and thresholds, on their
own scales. "seconds" are those of the default fit, of the process.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets as shipped
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from benchmarks.common import classification
from benchmarks.common import datasets as data
from benchmarks.common.harness import Report, benchmark
from benchmarks.exactness.posteriors import beyond, claims, moments, quality
from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
)
from skbayes_sg.samplers import HMC

ROWS = 1500
LONG = {"n_chains": 32, "n_draws": 2000, "burn_in": 300}

Set = tuple[NDArray, NDArray]


def jumps() -> Set:
    """Of athletes, by weight, waist and pulse."""
    exercise = shipped.load_linnerud()
    return exercise.target, exercise.data[:, 2]


def connections() -> Set:
    """By the rates of errors and of services of the connection."""
    found = data.kdd99()
    names = list(found.feature_names)
    rates = [names.index(name) for name in ("serror_rate", "same_srv_rate", "dst_host_count")]
    rows = np.random.default_rng(0).permutation(len(found.y))[:ROWS]
    X = np.asarray(found.X, np.float64)[rows]
    return X[:, rates], X[:, names.index("count")]


def proteins() -> Set:
    """Distances above zero."""
    X, y = data.regression("protein")
    rows = np.random.default_rng(0).permutation(np.flatnonzero(y > 0))[:ROWS]
    return X[rows], y[rows]


def grades() -> Set:
    """Without those of fewer than twenty wines."""
    return classification.some(*data.regression("wine"), ROWS)


def diabetes() -> Set:
    """Progression after a year."""
    return shipped.load_diabetes(return_X_y=True)


CASES: dict[str, tuple[Any, Callable[[], Set]]] = {
    "Poisson, jumps": (BayesianPoissonRegressor, jumps),
    "negative binomial, connections": (BayesianNegativeBinomialRegressor, connections),
    "Gamma, diabetes": (BayesianGammaRegressor, diabetes),
    "Gamma, protein": (BayesianGammaRegressor, proteins),
    "robust, diabetes": (BayesianRobustRegressor, diabetes),
    "robust, protein": (BayesianRobustRegressor, proteins),
    "ordinal, wine grades": (BayesianOrdinalClassifier, grades),
}


def compare(name: str) -> dict:
    """A default fit and a long run."""
    estimator, load = CASES[name]
    X, y = load()
    X = StandardScaler().fit_transform(np.asarray(X, np.float64))
    model = estimator(prior_precision=1.0, random_state=0)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        begin = time.process_time()
        model.fit(X, y)
        seconds = time.process_time() - begin
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        long = clone(model).set_params(sampler=HMC(structure="full"), random_state=1, **LONG)
        true = moments(long.fit(X, y).draws_)
    return {
        "set": name,
        "rows": len(X),
        "parameters": model.draws_.shape[-1],
        "prior": "given",
        "sampler": type(model.sampler_).__name__,
        "seconds": seconds,
        **beyond(moments(model.draws_), true),
        "warns": "yes" if heard else "no",
        **quality(true),
    }


def main(report: Report, only: list[str] | None) -> None:
    """All cases, or those whose family is given."""
    rows = []
    for name in CASES:
        if only is None or name.split(",")[0] in only:
            rows.append(compare(name))
            report.show(rows[-1:])
    found = [claim for row in rows for claim in claims(row)]
    report.save(rows, found)


if __name__ == "__main__":
    benchmark(main, threads=1, only={"nargs": "+"})
