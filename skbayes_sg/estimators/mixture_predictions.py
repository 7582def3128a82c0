"""Predictions of regressions: mixtures, over draws of the posterior, of distributions of y."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import row_blocks
from skbayes_sg.linalg.scores import dense
from skbayes_sg.linalg.sizes import elements_at_a_time
from skbayes_sg.models.base import Response
from skbayes_sg.validation import warn

_ROUNDED = 0.05  # of a standard deviation, which such errors widen by 1 / 2,400


class Mixture(NamedTuple):
    """A mixture, over draws of the posterior, of distributions of y given rows."""

    model: Any
    X: Any
    draws: NDArray
    weights: NDArray
    dtype: np.dtype
    """of the rows that were given, which are now in double precision where offsets need it"""


def outputs_of(model: Any, X, draws: NDArray, block_bytes: int | None = None) -> Iterator[NDArray]:
    """Outputs of blocks of rows under the draws, (draws, outputs, n)."""
    most = block_bytes or 8 * elements_at_a_time()
    for rows in row_blocks(X.shape[0], 8 * len(draws) * model.widest, most):
        block = X[rows] if model.keeps_sparse(X) else dense(X[rows])
        yield model.outputs(draws, block.astype(np.float64, copy=False))


def ends_of(level: float) -> NDArray:
    """Probabilities below the ends of a central interval."""
    return np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level])


def in_precision(values: NDArray, dtype: np.dtype, spread: NDArray) -> NDArray:
    """Predictions in the precision of their rows, unless it cannot hold them."""
    with np.errstate(over="ignore"):
        rounded = values.astype(dtype, copy=False)
    return rounded if is_held(values, rounded, spread) else values


def is_held(values: NDArray, rounded: NDArray, spread: NDArray) -> bool:
    """Whether rounding is small beside `spread`, that of y.

    Single precision has the rows' own resolution, but not that of a y that lies far from 0: numbers
    near 1.7e9 are 128 apart in it.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        held = (rounded == values) | (np.abs(rounded - values) < _ROUNDED * spread)
    return bool(held.all())


def warn_of_overflow(predicted: NDArray) -> None:
    """Say how many rows have a prediction beyond the largest number."""
    infinite = np.isinf(predicted.reshape(len(predicted), -1)).any(axis=1)
    if infinite.any():
        warn(
            f"predictions of {infinite.sum()} row(s) of X are infinite, the first of row "
            f"{infinite.argmax()}: their exponentials are beyond the largest number; such rows lie "
            "far from those of the fit",
            RuntimeWarning,
        )


def mixture_moments(model: Response, outputs: NDArray, weights: NDArray) -> tuple[NDArray, NDArray]:
    """Mean and standard deviation of the mixture of distributions of y, (n,) each.

    They are infinite where the mean, or the variance, overflows.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        each = model.mean(outputs)
        mean = weights @ each
        sd = np.sqrt(weights @ (model.variance(outputs) + (each - mean) ** 2))
    return mean, np.where(np.isinf(mean), np.inf, sd)
