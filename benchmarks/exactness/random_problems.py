"""Small random regressions of every awkward kind, by family, kind and number."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
)

FAMILIES: dict[str, type] = {
    "logistic": BayesianLogisticRegression,
    "ordinal": BayesianOrdinalClassifier,
    "poisson": BayesianPoissonRegressor,
    "negative_binomial": BayesianNegativeBinomialRegressor,
    "gamma": BayesianGammaRegressor,
    "robust": BayesianRobustRegressor,
    "linear": BayesianLinearRegression,
}
_COUNTS = ("poisson", "negative_binomial")
_NUMBERS = ("robust", "linear")
_CLASSES = ("logistic", "ordinal")

Generator = np.random.Generator


class Problem(NamedTuple):
    """Rows of one regression."""

    family: str
    kind: str
    number: int
    X: NDArray
    y: NDArray
    weight: NDArray | None


def _normal(rng: Generator) -> NDArray:
    return rng.standard_normal((int(rng.integers(30, 125)), int(rng.choice([2, 3, 5]))))


def _raw(rng: Generator) -> NDArray:
    X = _normal(rng)
    return 10.0 ** rng.uniform(-3, 4, X.shape[1]) * (X + rng.uniform(-3, 3, X.shape[1]))


def _with_first(column: Callable[[Generator, int], NDArray]) -> Callable[[Generator], NDArray]:
    def rows(rng: Generator) -> NDArray:
        X = _normal(rng)
        X[:, 0] = column(rng, len(X))
        return X

    return rows


def _levels(rng: Generator) -> NDArray:
    """A number, and three levels of a factor beside the first, the last in one to three rows."""
    n = int(rng.integers(25, 120))
    level = rng.choice(3, n)
    level[: rng.integers(1, 4)] = 3
    return np.column_stack([rng.standard_normal(n), np.eye(4)[level][:, 1:]])


def _collinear(rng: Generator) -> NDArray:
    X = _normal(rng)
    X[:, -1] = X[:, 0] + 0.03 * X[:, -1]
    return X


def _duplicated(rng: Generator) -> NDArray:
    X = _normal(rng)
    return np.column_stack([X, X[:, 0]])


def _words(rng: Generator) -> NDArray:
    n = int(rng.integers(60, 125))
    return rng.lognormal(-1, 0.5, (n, 5)) * (rng.random((n, 5)) < rng.uniform(0.08, 0.3, 5))


_FEW = _with_first(lambda rng, n: np.arange(n) < max(2, n // 6))
KINDS: dict[str, Callable[[Generator], NDArray]] = {
    "plain": _normal,
    "raw units": _raw,
    "years": _with_first(lambda rng, n: rng.integers(2000, 2020, n)),
    "rare level": _levels,
    "zero cell": _FEW,
    "large": _normal,
    "heavy tails": lambda rng: rng.standard_t(1.5, _normal(rng).shape),
    "outliers": _normal,
    "n < p": lambda rng: rng.standard_normal((5, 6)),
    "tiny": lambda rng: rng.standard_normal((6, 3)),
    "collinear": _collinear,
    "duplicated": _duplicated,
    "constant": _with_first(lambda rng, n: np.full(n, 3.0)),
    "integer weights": _normal,
    "float32": lambda rng: (_normal(rng) + 30).astype(np.float32),
    "ties": lambda rng: np.round(_normal(rng)),
    "separated": _with_first(lambda rng, n: rng.random(n) < 0.5),
    "rare": _normal,
    "words": _words,
    "saturated": lambda rng: rng.standard_normal((12, 8)),
}
"""Rows of X. What else a kind is, is said in `problem`.

large: counts about e^7, numbers about 1e8, three classes or more; rare: few classes or counts that
are not 0; ties: many equal numbers; zero cell: one level has the lowest class, no counts, or one
number; separated: a column tells classes, or counts of 0, exactly.
"""


def problem(family: str, kind: str, number: int) -> Problem:
    """The same rows for the same names and number."""
    rng = np.random.default_rng([zlib.crc32(f"{family} {kind}".encode()), number])
    X = KINDS[kind](rng)
    n, p = X.shape
    spread = np.maximum(X.std(axis=0, dtype=float), 1e-300)
    coef = rng.standard_normal(p) / np.sqrt(p) / spread * (rng.random(p) < 0.8) * (spread > 1e-9)
    eta = (X - X.mean(axis=0, dtype=float)) @ coef
    y = _response(family, kind, eta, rng)
    if kind in ("zero cell", "separated"):
        level = X[:, 0] > 0
        if kind == "separated" and family in _CLASSES:
            y = np.where(level, y.max(), 0) if family == "logistic" else np.where(level, y, 0)
        else:
            y[level] = np.median(y) if family in (*_NUMBERS, "gamma") else 0
    weight = rng.integers(0, 4, n).astype(float) if kind == "integer weights" else None
    if family in _CLASSES:
        here = slice(None) if weight is None else weight > 0
        X, y, weight = X[here], y[here], None if weight is None else weight[here]
        y[:2] = np.arange(2) if len(np.unique(y)) < 2 else y[:2]
        y = np.unique(y, return_inverse=True)[1]
    return Problem(
        family, kind, number, X, y.astype(np.float32) if kind == "float32" else y, weight
    )


def _response(family: str, kind: str, eta: NDArray, rng: Generator) -> NDArray:
    n, y = len(eta), eta
    if family in _CLASSES:
        classes = 2 if family == "logistic" else int(rng.integers(3, 6))
        if kind in ("large", "words"):
            classes = 3 if family == "logistic" else 7
        noisy = eta + rng.logistic(size=n)
        ends = np.arange(1, classes) / classes
        if kind == "rare":
            ends = 1 - 0.05 * np.arange(1, classes)[::-1] / classes
        return np.digitize(noisy, np.quantile(noisy, ends))
    if family in _NUMBERS:
        y = eta + (rng.standard_t(3, n) if kind == "heavy tails" else rng.standard_normal(n))
        if kind in ("outliers", "rare"):
            y[rng.random(n) < (0.2 if kind == "outliers" else 0.03)] += 30
        return {"large": 1e6 * y + 1e8, "ties": np.round(0.6 * y)}.get(kind, y)
    mu = np.exp(eta + {"large": 7.0, "rare": -2.5}.get(kind, rng.uniform(-0.5, 1.5)))
    phi = 10.0 ** rng.uniform(-1.5, 0.3)
    if family == "gamma":
        y = np.maximum(rng.gamma(1 / phi, phi * mu), 1e-12)
        return np.ceil(2 * y) if kind == "ties" else y * (1e6 if kind == "large" else 1.0)
    if family == "negative_binomial":
        mu = mu * rng.gamma(1 / phi, phi, n)
    y = rng.poisson(np.minimum(mu, 1e7)).astype(float)
    if kind == "outliers":
        y[rng.random(n) < 0.05] += 30
    return y


def prior_of(name: str, X: NDArray) -> tuple[dict[str, Any], Any]:
    """Parameters of the estimator, and what `reference.bind` takes."""
    p = X.shape[1]
    if name == "given":
        return {"prior_precision": 0.5}, 0.5
    if name == "groups":
        half = (p + 1) // 2
        columns = {"first": list(range(half)), "second": list(range(half, p))}
        return {"prior_groups": columns}, [int(j >= half) for j in range(p)]
    if name in ("horseshoe", "student_t"):
        return {"prior": name}, name
    return {}, name
