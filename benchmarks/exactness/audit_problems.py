"""Small regressions of every awkward shape, with the posterior moments of `audit_exact.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.exactness.audit_exact import (
    Moments,
    classes,
    learned,
    linear,
    of_columns,
    with_noise,
)


class Problem(NamedTuple):
    """Data, the parameters of the estimator, and the exact moments in the order of `draws_`."""

    name: str
    kind: str
    """"logistic", "multinomial", "many" classes, "linear", "noise": with a sampled variance"""
    X: NDArray | sparse.csr_array
    y: NDArray
    given: dict
    exact: Moments


def _scaled(X: NDArray) -> NDArray:
    return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)


def _one_hot(rng: np.random.Generator, n: int, d: int) -> NDArray:
    return np.eye(d)[rng.choice(d, n, p=0.5 ** np.arange(1, d + 1) / (1 - 0.5**d))]


def _collinear(rng: np.random.Generator, n: int, d: int) -> NDArray:
    X = rng.standard_normal((n, d))
    X[:, -1] = X[:, 0] + 0.05 * X[:, -1]
    return X


def _raw(rng: np.random.Generator, n: int, d: int) -> NDArray:
    unit = 10.0 ** rng.uniform(-3, 4, d)
    return unit * (rng.standard_normal((n, d)) + rng.uniform(-3, 3, d))


def _years(rng: np.random.Generator, n: int, d: int) -> NDArray:
    X = rng.standard_normal((n, d))
    X[:, 0] = rng.integers(2000, 2020, n)
    return X


def _rare_levels(rng: np.random.Generator, n: int, d: int) -> NDArray:
    """Normal columns and the levels of a factor, the rarest in 1 % of the rows, last."""
    level = np.searchsorted([0.6, 0.9, 0.97, 0.99], rng.random(n))
    return _scaled(np.column_stack([rng.standard_normal((n, d)), np.eye(5)[level][:, 1:]]))


def _words(rng: np.random.Generator, n: int, d: int) -> NDArray:
    """Most entries are zero, the others positive."""
    return rng.lognormal(-1.0, 0.5, (n, d)) * (rng.random((n, d)) < rng.uniform(0.05, 0.3, d))


SHAPES: dict[str, tuple[tuple[int, int], Callable[[np.random.Generator, int, int], NDArray]]] = {
    "plain": ((200, 1500), lambda rng, n, d: rng.standard_normal((n, d))),
    "skewed": ((60, 600), lambda rng, n, d: _scaled(rng.lognormal(0.0, 1.0, (n, d)))),
    "heavy-tailed": ((60, 600), lambda rng, n, d: rng.standard_t(2, (n, d))),
    "collinear": ((60, 600), _collinear),
    "one-hot": ((60, 600), _one_hot),
    "unscaled": (
        (60, 600),
        lambda rng, n, d: rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1, d) + 1.0,
    ),
    "few rows": ((8, 30), lambda rng, n, d: rng.standard_normal((n, d))),
    "many rows": ((2000, 6000), lambda rng, n, d: rng.standard_normal((n, d))),
    "rare events": ((100, 1000), lambda rng, n, d: rng.standard_normal((n, d))),
    "separable": ((20, 200), lambda rng, n, d: rng.standard_normal((n, d))),
    "raw units": ((60, 600), _raw),
    "year": ((60, 600), _years),
    "rare levels": ((500, 6000), _rare_levels),
    "sparse": ((200, 1000), _words),
    "many classes": ((300, 1000), lambda rng, n, d: rng.standard_normal((n, d))),
    "wide": ((20, 80), lambda rng, n, d: rng.standard_normal((n, d))),
    "learned": ((60, 600), _raw),
}
FEATURES = {
    **{"one-hot": (2, 6), "collinear": (2, 6), "rare levels": (1, 3), "sparse": (5, 11)},
    **{"many classes": (1, 3), "wide": (100, 300), "learned": (3, 7)},
}
"""where they are not from 1 to 6: from, and below"""
_FIVE = ("logistic", "multinomial", "logistic", "linear", "logistic")
UNITS = ("raw units", "year", "learned")
"""shapes whose columns have other means and units"""
NOISE = (2.0, 2.0)
"""shape and rate of the prior of a noise variance"""
KINDS = (*_FIVE, "noise", "logistic", "multinomial", "logistic", "linear")


def problems(n: int, seed: int) -> Iterator[Problem]:
    """So many problems, shapes in turn, all else at random."""
    made = 0
    for number in range(10 * n):
        rng = np.random.default_rng([seed, number])
        shape = list(SHAPES)[number % len(SHAPES)]
        kind = KINDS[(number + number // len(SHAPES)) % len(KINDS)]
        found = _made(shape, kind, rng)
        if found is not None:
            yield found
            made += 1
        if made == n:
            return


def _made(shape: str, kind: str, rng: np.random.Generator) -> Problem | None:
    """A problem; None if importance sampling does not reach the moments."""
    (fewest, most), rows = SHAPES[shape]
    n = int(np.exp(rng.uniform(np.log(fewest), np.log(most))))
    d = int(rng.integers(*FEATURES.get(shape, (1, 7))))
    X, precision = rows(rng, n, d), float(rng.choice([0.1, 1.0]))
    d = X.shape[1]
    coef = rng.standard_normal(d) / max(1.0, float(np.sqrt(d)))
    coef /= X.std(axis=0) if shape in UNITS else np.maximum(X.std(axis=0), 0.1)
    given: dict = {"intercept_precision": 0.1}
    if shape != "learned":
        given["prior_precision"] = precision
    kind = {"many classes": "many", "wide": "linear" if kind == "linear" else "noise"}.get(
        shape, kind
    )
    outputs = (X - X.mean(axis=0) * (shape in UNITS)) @ coef
    if kind in ("linear", "noise"):
        heavy = shape in ("heavy-tailed", "rare events")
        y = outputs + (rng.standard_t(3, n) if heavy else rng.normal(size=n))
        given |= {"noise_variance": 1.0} if kind == "linear" else {"noise_prior": NOISE}
    else:
        y = _labels(shape, kind, outputs, rng)
        if shape == "rare levels":
            y[X[:, -1] > 0] = 0
        n_classes = {"logistic": 2, "multinomial": 3}.get(kind, y.max() + 1)
        if len(np.unique(y)) != n_classes:
            return None
    exact = _moments(X, y, kind, given, rng)
    X = sparse.csr_array(X) if shape == "sparse" else X
    return None if exact is None else Problem(shape, kind, X, y, given, exact)


def _moments(
    X: NDArray, y: NDArray, kind: str, given: dict, rng: np.random.Generator
) -> Moments | None:
    """Under the precision that is given, or a learned one; intercepts at the columns' means."""

    def conditional(X: NDArray, precision: float) -> Moments | None:
        if kind == "linear":
            return linear(X, y, precision, 0.1)
        if kind == "noise":
            return with_noise(X, y, precision, 0.1, NOISE)
        return classes(X, y, precision, 0.1, rng)

    n_outputs = 1 if kind in ("linear", "noise") or y.max() == 1 else int(y.max()) + 1
    if "prior_precision" not in given:
        return learned(X, conditional, n_outputs)
    centre = X.mean(axis=0)
    found = conditional(X - centre, given["prior_precision"])
    if found is None:
        return None
    return of_columns(found, centre, np.ones(X.shape[1]), n_outputs)


def _labels(shape: str, kind: str, outputs: NDArray, rng: np.random.Generator) -> NDArray:
    if shape == "separable":
        return np.digitize(
            outputs, np.quantile(outputs, [0.5] if kind == "logistic" else [0.3, 0.7])
        )
    noisy = outputs + rng.logistic(size=len(outputs))
    quantiles = [0.97, 0.99] if shape == "rare events" else [0.5, 0.8]
    if kind == "many":
        quantiles = np.linspace(0, 1, rng.integers(7, 11))[1:-1].tolist()
    ends = np.quantile(noisy, quantiles)
    return np.digitize(noisy, ends[:1] if kind == "logistic" else ends)
