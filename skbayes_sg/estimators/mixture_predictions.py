"""Predictions of regressions: mixtures, over draws of the posterior, of distributions of y."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from skbayes_sg.data import row_blocks
from skbayes_sg.diagnostics.draws import Draws
from skbayes_sg.linalg.scores import dense
from skbayes_sg.linalg.sizes import elements_at_a_time
from skbayes_sg.models.base import Response
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.validation import warn

_BLOCK_BYTES = 1 << 20  # of outputs, of which there are several copies: they stay in cache
_ROUNDED = 0.05  # of a standard deviation, which such errors widen by 1 / 2,400


class Mixture(NamedTuple):
    """A mixture, over draws of the posterior, of distributions of y given rows."""

    model: Any
    X: Any
    draws: Draws
    """as of one chain"""
    dtype: np.dtype
    """of the rows that were given, which are now in double precision where offsets need it"""


def outputs_of(model: Any, X, draws: NDArray) -> Iterator[NDArray]:
    """Outputs of blocks of rows under the draws, (draws, outputs, n)."""
    for rows in row_blocks(X.shape[0], 8 * len(draws) * model.widest, 8 * elements_at_a_time()):
        block = X[rows] if model.keeps_sparse(X) else dense(X[rows])
        yield model.outputs(draws, block.astype(np.float64, copy=False))


def mixture_means(mixture: Mixture) -> tuple[NDArray, NDArray]:
    """Mean of y of each row, (n * responses,), and a length on which y varies, by the mean draw.

    Rows that were given in single precision are multiplied in it where that moves no mean by more
    than is rounded away (`is_held`).
    """
    model, X, _, dtype = mixture
    draws, weights = mixture.draws.flat, mixture.draws.flat_weights
    middle, in_single, square = (weights @ draws)[None], None, np.zeros(0)
    if model.has_linear_mean:
        draws, weights = middle, np.ones(1)
    elif dtype == X.dtype == np.float32 and isinstance(model, Predictor) and not issparse(X):
        in_single, square = draws.astype(np.float32), np.square(draws).mean(axis=0)
    means, widths = np.empty((2, X.shape[0] * getattr(model, "n_responses", 1)))
    at, size = 0, 8 if in_single is None else 4
    for rows in row_blocks(X.shape[0], size * len(draws) * model.widest, _BLOCK_BYTES):
        block = X[rows] if model.keeps_sparse(X) else dense(X[rows])
        double = block.astype(np.float64, copy=False)
        with np.errstate(over="ignore"):
            width = model.width(model.outputs(middle, double))[0]
            mean = None
            if in_single is not None:
                mean = model.mean_over(weights.astype(np.float32), in_single, block)
                largest = np.full_like(double[:1], np.abs(block).max(initial=0.0))
                lost = model.size_of_terms(square, largest)[0] * 2.0**-23 * mean
                if not (lost < _ROUNDED * width).all():
                    mean = None
            if mean is None:
                mean = model.mean_over(weights, draws, double)
        each = slice(at, at := at + len(mean))
        means[each], widths[each] = mean, width
    return means, widths


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
