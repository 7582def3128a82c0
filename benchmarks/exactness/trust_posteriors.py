"""Cases of `trust.py` whose answer is a distribution: rare levels, samplers by name, streams.

References are importance sampling or closed forms (`audit_exact.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets as shipped
from sklearn.base import clone

from benchmarks.common.datasets import standardised
from benchmarks.exactness.audit_exact import Moments, classes, linear
from benchmarks.exactness.trust_answers import LINEAR, LOGISTIC, Answer, Call, call, fitted

WITHIN = 1.2  # a standard deviation is off by more than 20 %


def off(found: Call, exact: Moments) -> float:
    """The worst standard deviation, or one over it if too small, in exact ones; NaN if refused."""
    if isinstance(found.result, Exception):
        return np.nan
    sd = found.result.draws_.reshape(-1, len(exact.sd)).std(axis=0)
    return float(np.maximum(sd / exact.sd, exact.sd / sd).max())


def posterior(X: NDArray, y: NDArray, precision: float, seed: int = 0) -> Moments:
    """Of a logistic or multinomial regression, by importance sampling."""
    of_intercept = LOGISTIC.intercept_precision
    found = classes(X, y, precision, of_intercept, np.random.default_rng(seed))
    if found is None:
        raise FloatingPointError("the weights of importance sampling are uneven")
    return found


def rare(seed: int) -> tuple[NDArray, NDArray]:
    """Two normal columns and a factor of five levels, the rarest of one class."""
    rng = np.random.default_rng(seed)
    n = int(10 ** rng.uniform(2.7, 4))
    level = np.searchsorted(np.cumsum([0.6, 0.3, 0.07, 0.02, 0.01]), rng.random(n)).clip(0, 4)
    X = np.column_stack([rng.standard_normal((n, 2)), np.eye(5)[level][:, 1:]])
    y = (rng.random(n) < 1 / (1 + np.exp(0.5 - X[:, 0]))).astype(int)
    y[level == 4] = 0
    return standardised(X), y


def rare_levels() -> Iterator[Answer]:
    """Twenty-four sets against importance sampling; 1 % of the rows have the rarest level."""
    wrong, silent, worst, warned = 0, 0, 1.0, 0
    model = clone(LOGISTIC).set_params(prior_precision=0.1)
    for seed in range(24):
        X, y = rare(seed)
        found = fitted(model, X, y)
        ratio = off(found, posterior(X, y, 0.1, seed))
        wrong, worst = wrong + (ratio > WITHIN), max(worst, ratio)
        silent += ratio > WITHIN and not found.warnings
        warned += found.warnings
    yield Answer("24 sets", "fits with an sd off by > 20 %", wrong, high=0, warnings=warned)
    yield Answer("24 sets", "of them silent", silent, high=0)
    yield Answer("24 sets", "worst ratio of sds", worst, high=WITHIN, warnings=warned)


def names() -> Iterator[Answer]:
    """Standard deviations of samplers by name against the exact ones."""
    X, y = shipped.load_breast_cancer(return_X_y=True)
    X, prior = standardised(X), {"prior_precision": 1.0}
    X = X[:, :10]  # the means of the measurements
    cases: dict[str, tuple] = {"breast cancer": (LOGISTIC, X, y, {}, posterior(X, y, 1.0))}
    X, y = shipped.load_diabetes(return_X_y=True)
    X, y = standardised(X), standardised(y)
    exact = linear(X, y, 1.0, LINEAR.intercept_precision)
    cases["diabetes"] = (LINEAR, X, y, {"noise_variance": 1.0}, exact)
    for data, (model, X, y, more, exact) in cases.items():
        for name in ("constant_sgd", "momentum_sgd", "iasg", "sgld"):
            found = fitted(clone(model).set_params(sampler=name, **prior, **more), X, y)
            of, figure, ratio = f"{data}, {name}", "worst ratio of sds", off(found, exact)
            yield Answer(of, figure, ratio, 1, WITHIN, found.warnings, True)


def orders(X: NDArray, y: NDArray) -> dict[str, NDArray]:
    """Numbers of rows in the orders of a stream."""
    zeros, others = np.flatnonzero(y == 0), np.flatnonzero(y != 0)
    most = int(0.9 * len(zeros))
    rest = np.random.default_rng(0).permutation(np.concatenate([zeros[most:], others]))
    return {
        "sorted by class": np.argsort(y, kind="stable"),
        "zeros first": np.concatenate([zeros, others]),
        "90 % of zeros first": np.concatenate([zeros[:most], rest]),
        "sorted by a column": np.argsort(X[:, 0]),
    }


def streams() -> Iterator[Answer]:
    """40 chunks of 500 rows against importance sampling on all rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 5))
    z = X @ [1.0, -1.0, 0.5, 0.0, 0.0] + rng.logistic(size=len(X))
    three = X @ rng.standard_normal((5, 3)) + rng.gumbel(size=(len(X), 3))
    cases = {"two classes": (z > 0).astype(int), "three classes": three.argmax(axis=1)}
    for name, y in cases.items():
        exact = posterior(X, y, 1.0)
        root = np.linalg.cholesky(np.linalg.inv(exact.covariance))
        for order, rows in orders(X, y).items():
            model = clone(LOGISTIC).set_params(prior_precision=1.0)

            def stream(model: Any = model, rows: NDArray = rows, y: NDArray = y) -> Any:
                for chunk in np.array_split(rows, 40):
                    model.partial_fit(X[chunk], y[chunk], classes=np.unique(y))
                return model

            found = call(stream)
            away = np.abs(root.T @ (found.result.posterior_.mean - exact.mean)).max()
            of, figure = f"{name}, {order}", "error of the mean in sds"
            yield Answer(of, figure, away, 0, 0.1, found.warnings)
