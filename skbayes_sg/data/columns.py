"""What the rows tell of the columns of X: their means, and the units that priors are relative to.

One prior precision for columns of any units is a prior that nobody has: it would change with grams
for kilograms. So a learned precision lambda gives coefficient j the precision lambda s_j^2, with a
unit s_j of its column after Gelman, Jakulin, Pittau & Su (2008), and a fit is the same for columns
that are shifted and scaled (math/priors.md#units-of-the-columns).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skbayes_sg.data.rows import Batch, Data, evenly_spaced
from skbayes_sg.linalg.sizes import elements_at_a_time

Rows = TypeVar("Rows", bound=Data)


class Columns(NamedTuple):
    """What is known of the columns of X, (features,) each.

    That of some rows and of later ones is that of all (`and_of`), so that in a stream the unit of a
    column is open until it has varied.
    """

    unit: NDArray
    """0 for a column of one value"""
    mean: NDArray
    variance: NDArray
    n_rows: float
    """their total weight"""
    value: NDArray
    """that may hold most of the rows, and one that held most of others, (2, features); NaN if none
    did"""
    others: NDArray
    """weight of the rows that have another value than each, (2, features)"""
    is_level: NDArray
    """whether 1 stands for a level of a factor, and 0 for all others"""

    def with_levels(self, columns: Iterable[int]) -> Columns:
        """With what is known of columns of levels: that of a level in all rows has another value.

        So its unit is known, half the range. One without rows is predicted as a new level.
        """
        is_level = self.is_level.copy()
        is_level[list(columns)] = True
        unit = np.where(is_level & (self.unit == 0) & (self.mean > 0), 0.5, self.unit)
        return self._replace(unit=unit, is_level=is_level)

    def and_of(self, data: Data) -> Columns:
        """What is known after more rows.

        Which of more than two values holds most of all rows may be found out late, and rows before
        then count as others.
        """
        new, total = of_columns(data), self.n_rows
        n_rows = total + new.n_rows
        share, step = new.n_rows / n_rows, new.mean - self.mean
        mean = self.mean + share * step
        variance = (1 - share) * self.variance + share * new.variance
        variance += share * (1 - share) * step**2

        value, others = self.value.copy(), self.others + _elsewhere(data, self.value)
        is_known = (value == new.value[0]).any(axis=0)
        worse = np.where(is_known, -1, others.argmax(axis=0))  # the one that gives way
        for slot in (0, 1):
            value[slot, worse == slot] = new.value[0, worse == slot]
            others[slot, worse == slot] = total + new.others[0, worse == slot]

        best, column = others.argmin(axis=0), np.arange(len(mean))
        unequal, common = others[best, column], value[best, column]
        square = np.where(
            unequal < 0.5 * n_rows,
            0.25 * n_rows * (variance + (mean - common) ** 2) / np.maximum(unequal, _TINY),
            variance,
        )
        square = np.where(variance > 0, square, 0.0)
        known = Columns(np.sqrt(square), mean, variance, n_rows, value, others, new.is_level)
        return known.with_levels(np.flatnonzero(self.is_level | new.is_level))


_TINY = np.finfo(np.float64).tiny


def of_columns(data: Data) -> Columns:
    """Units, means and variances of the columns, computed once for the same data.

    Where one value holds more than half of the rows (two-valued columns, counts, amounts, words),
    the unit is half the root mean square distance of the other rows from it: half the range of a
    column of two values. Elsewhere it is the standard deviation, which is the same for a column of
    two values in equal shares. Some rows tell it; all rows are asked about a column that has one
    value in these.
    """
    # beside the rows, as a cached property is: a weak dictionary takes out what is gone by a
    # function, and Python forgets an interrupt that arrives there
    cache = vars(data)
    if (cached := cache.get("_columns")) is not None:
        return cached
    sample, n_features = data.sample, data.n_features
    X, n_rows = sample.X, sample.n_rows
    weight = np.ones(n_rows) if sample.weight is None else sample.weight.astype(np.float64)
    weight_of_rows = float(weight.sum())
    if sample.sparse_rows:  # zero holds most of the rows of most columns; stored entries tell all
        value, column = np.zeros(X.shape[1]), X.indices
        entry_weight, entries = np.repeat(weight, np.diff(X.indptr)), X.data.astype(np.float64)
        of_entries = (np.ones(len(entry_weight)), entries != 0, entries, entries**2)
        sums = np.stack([np.bincount(column, entry_weight * x, len(value)) for x in of_entries])
        sums[0] = weight.sum()
        value, sums = value[:n_features], sums[:, :n_features]
        (filled,) = np.nonzero(sums[1] >= 0.5 * sums[0])
        n_parts = min(len(filled), -(-len(filled) * n_rows // elements_at_a_time()))
        for few in np.array_split(filled, n_parts) if n_parts else ():
            stored = X[:, few].toarray().astype(np.float64)
            value[few] = np.quantile(stored, 0.5, axis=0, weights=weight, method="inverted_cdf")
            sums[:, few] = _sums(stored - value[few], weight)
    else:
        most = max(2, min(10_000, (1 << 22) // X.shape[1]))  # 32 MB
        rows = evenly_spaced(n_rows, most)
        X, weight = sample.take(rows)[:, :n_features].astype(np.float64), weight[rows]
        # a value of each column with at most half of the weight on either side
        spaced = evenly_spaced(len(X), 1000)
        value = np.quantile(X[spaced], 0.5, axis=0, weights=weight[spaced], method="inverted_cdf")
        sums = _sums(X - value, weight)
        (same,) = np.nonzero(sums[1] == 0)
        if len(same) and len(rows) < data.n_rows:

            def of_batch(batch: Batch) -> tuple[NDArray]:
                deviation = batch.X[:, same].astype(np.float64) - value[same]
                return (_sums(deviation, batch.weight),)

            (sums[:, same],) = data.reduce(of_batch, len(same))
    of_rows, others, distance, squares = sums
    shift = distance / of_rows
    variance = np.maximum(squares / of_rows - shift**2, 0.0)
    of_rare = 0.25 * squares / np.maximum(others, np.finfo(np.float64).tiny)
    square = np.where(others < 0.5 * of_rows, of_rare, variance)
    total = weight_of_rows * data.n_total / n_rows
    columns = Columns(
        np.sqrt(square),
        value + shift,
        variance,
        total,
        np.stack([value, np.full_like(value, np.nan)]),
        np.stack([others * (total / of_rows), np.full_like(value, total)]),
        np.zeros(n_features, bool),
    )
    return cache.setdefault("_columns", columns)


def with_columns(data: Rows, columns: Columns) -> Rows:
    """Rows that are said to have these columns, as where they stand for all of a stream."""
    vars(data)["_columns"] = columns
    return data


def _elsewhere(data: Data, value: NDArray) -> NDArray:
    """Total weight of the rows whose columns are not equal to values (k, features), as those."""

    def of_batch(batch: Batch) -> tuple[NDArray]:
        n = batch.X.shape[0]
        weight = np.ones(n) if batch.weight is None else batch.weight.astype(np.float64)
        if not sparse.issparse(batch.X):
            X = batch.X[:, : value.shape[1]]
            of_values = [weight @ np.not_equal(X, candidate.astype(X.dtype)) for candidate in value]
            return (np.stack(of_values),)
        X = sparse.csr_array(batch.X)
        entry_weight, column = np.repeat(weight, np.diff(X.indptr)), X.indices
        unequal = np.empty_like(value)
        for own, candidate in zip(unequal, value, strict=True):
            own[:] = np.where(candidate == 0, 0.0, weight.sum())
            candidate = np.append(candidate, np.full(X.shape[1] - len(candidate), np.nan))[column]
            more = np.where(
                candidate == 0, X.data != 0, -1.0 * (X.data == candidate.astype(X.dtype))
            )
            own += np.bincount(column, entry_weight * more, X.shape[1])[: len(own)]
        return (unequal,)

    return data.reduce(of_batch, data.n_features)[0]


def _sums(distance: NDArray, weight: NDArray | None) -> NDArray:
    """Rows, those at a distance, their distances and squares, (4, features)."""
    weight = np.ones(len(distance)) if weight is None else weight.astype(np.float64)
    ones = np.ones_like(distance)
    return np.stack(
        [weight @ ones, weight @ (distance != 0), weight @ distance, weight @ distance**2]
    )


def of_targets(data: Data) -> tuple[float, float]:
    """Mean and variance of numbers y, over the rows that can be drawn."""
    y, weight = data.sample.y.astype(np.float64), data.sample.weight
    mean = np.average(y, weights=weight)
    return float(mean), float(np.average((y - mean) ** 2, weights=weight))
