"""What the rows tell of the columns of X: their means, and the units that priors are relative to.

One prior precision for columns of any units is a prior that nobody has: it would change with grams
for kilograms. So a learned precision lambda gives coefficient j the precision lambda s_j^2, with a
unit s_j of its column after Gelman, Jakulin, Pittau & Su (2008), and a fit is the same for columns
that are shifted and scaled (math/priors.md#units-of-the-columns).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data.base import Batch, Data
from skbayes_sg.data.memory import InMemory

_ROWS = 10_000  # that tell the unit of a column
_MOST_ELEMENTS = 1 << 22  # of such rows
_MEDIAN_ROWS = 1000  # one value that holds more than half of the rows is their median


class Columns(NamedTuple):
    """What is known of the columns of X, (features,) each."""

    unit: NDArray
    """0 for a column of one value"""
    mean: NDArray
    variance: NDArray


def of_columns(data: Data) -> Columns:
    """Units, means and variances of the columns.

    Where one value holds more than half of the rows (two-valued columns, counts, amounts, words),
    the unit is half the root mean square distance of the other rows from it: half the range of a
    column of two values. Elsewhere it is the standard deviation, which is the same for a column of
    two values in equal shares. Some rows tell it; all rows are asked about a column that has one
    value in these.
    """
    sample = data.sample
    if sample.sparse_rows:
        return _of_entries(sample)
    rows = _spaced(sample.n_rows, max(2, min(_ROWS, _MOST_ELEMENTS // sample.n_features)))
    X, weight = sample.take(rows).astype(np.float64), _weights(sample.weight, sample.n_rows)[rows]
    some = _spaced(len(X), _MEDIAN_ROWS)
    # a value of each column with at most half of the weight on either side
    value = np.quantile(X[some], 0.5, axis=0, weights=weight[some], method="inverted_cdf")
    sums = _sums(X - value, weight)
    (same,) = np.nonzero(sums[1] == 0)
    if len(same) and len(rows) < data.n_rows:

        def of_batch(batch: Batch) -> tuple[NDArray]:
            here = batch.X[:, same].astype(np.float64)
            return (_sums(here - value[same], _weights(batch.weight, len(here))),)

        (sums[:, same],) = data.reduce(of_batch, len(same))
    return _from_sums(sums, value)


def of_targets(data: Data) -> tuple[float, float]:
    """Mean and variance of numbers y, over the rows that can be drawn."""
    y, weight = data.sample.y.astype(np.float64), data.sample.weight
    mean = np.average(y, weights=weight)
    return float(mean), float(np.average((y - mean) ** 2, weights=weight))


def _of_entries(data: InMemory) -> Columns:
    """From the stored entries of sparse rows alone: zero is what may hold most of the rows."""
    X, weight = data.X, _weights(data.weight, data.n_rows)
    each, values = np.repeat(weight, np.diff(X.indptr)), X.data.astype(np.float64)
    of_entries = (np.ones(len(each)), values != 0, values, values**2)
    sums = np.stack([np.bincount(X.indices, each * one, data.n_features) for one in of_entries])
    sums[0] = weight.sum()
    return _from_sums(sums, np.zeros(data.n_features))


def _sums(distance: NDArray, weight: NDArray) -> NDArray:
    """Rows, those at a distance, their distances and squares, (4, features)."""
    each = (np.ones_like(distance), distance != 0, distance, distance**2)
    return np.stack([weight @ one for one in each])


def _from_sums(sums: NDArray, value: NDArray) -> Columns:
    """From `_sums` of the distances from a value of each column."""
    rows, others, distance, squares = sums
    shift = distance / rows
    variance = np.maximum(squares / rows - shift**2, 0.0)
    away = 0.25 * squares / np.maximum(others, np.finfo(np.float64).tiny)
    square = np.where(others < 0.5 * rows, away, variance)
    return Columns(np.sqrt(square), value + shift, variance)


def _weights(weight: NDArray | None, n_rows: int) -> NDArray:
    return np.ones(n_rows) if weight is None else weight.astype(np.float64)


def _spaced(n_rows: int, most: int) -> NDArray:
    """Up to so many row numbers, evenly spaced."""
    return np.unique(np.linspace(0, n_rows - 1, most).astype(int))
