"""Precision matrices of normal priors, and what is computed from them."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.linalg import Dense, Diag
from skbayes_sg.linalg.sizes import elements_at_a_time
from skbayes_sg.priors.sheared import Sheared

Precision = Diag | Dense | Sheared


class _Normal(Protocol):
    operator: Precision
    mean: NDArray


def as_operator(
    precision: NDArray | Precision, centre: NDArray | None, n_others: int = 0
) -> Precision:
    """Of independent parameters, where an array is given: at the means of the columns, if given."""
    if not isinstance(precision, np.ndarray):
        return precision
    return Diag(precision) if centre is None else Sheared(precision, centre, n_others)


def independent_precision(precision: NDArray | Precision) -> NDArray:
    """The array that is given, or the diagonal of a matrix."""
    return precision if isinstance(precision, np.ndarray) else precision.diagonal()


def plain(operator: Precision) -> Diag | Dense:
    """The same matrix, in a storage that can be added."""
    return Dense(operator.dense()) if isinstance(operator, Sheared) else operator


def squares_of(operator: Precision, deviation: NDArray) -> NDArray:
    """`Prior.scaled_squares` of deviations (chains, D) from the mean."""
    if isinstance(operator, Sheared):
        return operator.values * operator.shear(deviation) ** 2
    return operator.matvec(deviation) * deviation


def normals(precision: Precision, rng: np.random.Generator, n_draws: int) -> NDArray:
    """Draws of N(0, precision^-1), (n_draws, D)."""
    root = precision.inverse().cholesky()
    return root.matvec(rng.standard_normal((n_draws, precision.dim)))


def mixed_normals(ours: _Normal, theirs: _Normal, share: float) -> tuple[Diag | Dense, NDArray]:
    """Precision and mean of the weighted geometric mean of two normal densities."""
    a, b = plain(ours.operator) * share, plain(theirs.operator) * (1 - share)
    precision = a + b
    assert isinstance(precision, Diag | Dense)
    dim = precision.dim
    m, n = ours.mean[:dim], theirs.mean[:dim]
    return precision, m + precision.inverse().matvec(b.matvec(n - m))


def moments(draws: NDArray, weights: NDArray) -> tuple[Diag, NDArray]:
    """Precisions and means of weighted draws (S, D), weights of sum 1."""
    parts = np.array_split(draws, 1 + draws.size // elements_at_a_time(), axis=1)
    means, squares = [], []
    for part in parts:  # in double precision, some columns at a time
        part = part.astype(np.float64, copy=False)
        means.append(weights @ part)
        squares.append(weights @ (part - means[-1]) ** 2)
    return Diag(1.0 / np.concatenate(squares)), np.concatenate(means)
