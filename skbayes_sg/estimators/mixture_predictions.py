"""Predictions of regressions: mixtures, over draws of the posterior, of distributions of y."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize.elementwise import find_root

from skbayes_sg.data import row_blocks
from skbayes_sg.linalg.scores import dense
from skbayes_sg.linalg.sizes import elements_at_a_time
from skbayes_sg.models.base import Response
from skbayes_sg.validation import warn

OF_INTERVALS = 500  # draws: what is left of their spread is small beside that of y
_OF_AN_END = 1e-6  # relative error of the probability outside an interval
_ROUNDED = 0.05  # of a standard deviation, which such errors widen by 1 / 2,400
_LARGEST = np.finfo(np.float64).max / 2  # differences of such numbers do not overflow


class Mixture(NamedTuple):
    """A mixture, over draws of the posterior, of distributions of y given rows."""

    model: Any
    X: Any
    draws: NDArray
    weights: NDArray
    dtype: np.dtype
    """of the rows that were given, which are now in double precision where offsets need it"""


def outputs_of(model: Any, X, draws: NDArray) -> Iterator[NDArray]:
    """Outputs of blocks of rows under the draws, (draws, outputs, n)."""
    for rows in row_blocks(X.shape[0], 8 * len(draws) * model.widest, 8 * elements_at_a_time()):
        block = X[rows] if model.keeps_sparse(X) else dense(X[rows])
        yield model.outputs(draws, block.astype(np.float64, copy=False))


def ends_of(level: float) -> NDArray:
    """Probabilities below the ends of a central interval."""
    return np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level])


def in_precision(values: NDArray, dtype: np.dtype, spread: NDArray) -> NDArray:
    """Predictions in the precision of their rows, unless it cannot hold them.

    Single precision has the rows' own resolution, but not that of a y that lies far from 0: numbers
    near 1.7e9 are 128 apart in it. So rounding must be small beside `spread`, that of y.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = values.astype(dtype, copy=False)
        held = (rounded == values) | (np.abs(rounded - values) <= _ROUNDED * spread)
    return rounded if held.all() else values


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


def mixture_quantiles(
    model: Response, outputs: NDArray, weights: NDArray, levels: NDArray
) -> NDArray:
    """Quantiles (n, levels) of a mixture of distributions of y, (draws, outputs, n).

    Of counts one is the first number at which the distribution function reaches its probability.
    """
    centre, width = _place(model, outputs, weights)

    def short_of(y: NDArray, rows: NDArray, q: NDArray) -> NDArray:
        return weights @ model.distribution(y, outputs[:, :, rows]) - q

    ends = np.full((len(centre), len(levels)), np.inf)
    with np.errstate(over="ignore"):
        for end, below in zip(ends.T, levels, strict=True):
            rows, q = np.arange(len(centre)), np.full(len(centre), below)
            rare = 2 * min(below, 1 - below)  # the probability outside of the central interval
            tolerance = (
                {"xatol": 0.25, "xrtol": 0.0} if model.counts else {"fatol": _OF_AN_END * rare}
            )
            low = centre - 2 * width
            high = np.minimum(centre + 2 * width + 1.0 * model.counts, _LARGEST)
            while (reached := short_of(low, rows, q) >= 0).any():
                low = np.where(reached, 2 * low - centre, low)
            while ((short := short_of(high, rows, q) < 0) & (high < _LARGEST)).any():
                high = np.where(short, np.minimum(2 * high - centre, _LARGEST), high)
            if short.any():  # the end is beyond the largest number
                rows, q, low, high = (each[~short] for each in (rows, q, low, high))
            found = find_root(short_of, (low, high), args=(rows, q), tolerances=tolerance)
            end[rows] = np.floor(found.bracket[1]) if model.counts else found.x
    return ends


def _place(model: Response, outputs: NDArray, weights: NDArray) -> tuple[NDArray, NDArray]:
    """About where the mixture lies, and how wide it is, (n,) each.

    They are finite where means overflow, and the width is not 0 where they underflow.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        each = model.mean(outputs)
        mean = weights @ each
        width = np.sqrt(weights @ (model.width(outputs) ** 2 + (each - mean) ** 2))
    lost = ~np.isfinite(width) | (width == 0)
    if lost.any():
        some = np.nan_to_num(each[:, lost], posinf=0.0)
        mean[lost] = np.minimum(weights @ some, _LARGEST / 8)
        width[lost] = np.clip(some.max(axis=0), 1.0, _LARGEST / 8)
    return mean, width
