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

from skbayes_sg.data.rows import Batch, Data


class Columns(NamedTuple):
    """What is known of the columns of X, (features,) each."""

    unit: NDArray
    """0 for a column of one value"""
    mean: NDArray
    variance: NDArray


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
    beside = vars(data)
    if (known := beside.get("_columns")) is not None:
        return known
    sample, n_features = data.sample, data.n_features
    X, n_rows = sample.X, sample.n_rows
    weight = np.ones(n_rows) if sample.weight is None else sample.weight.astype(np.float64)
    if sample.sparse_rows:  # zero holds most of the rows of most columns; stored entries tell all
        value, column = np.zeros(X.shape[1]), X.indices
        each, entries = np.repeat(weight, np.diff(X.indptr)), X.data.astype(np.float64)
        of_entries = (np.ones(len(each)), entries != 0, entries, entries**2)
        sums = np.stack([np.bincount(column, each * one, len(value)) for one in of_entries])
        sums[0] = weight.sum()
        value, sums = value[:n_features], sums[:, :n_features]
        (others,) = np.nonzero(sums[1] >= 0.5 * sums[0])
        if len(others):
            stored = X[:, others].toarray().astype(np.float64)
            value[others] = np.quantile(stored, 0.5, axis=0, weights=weight, method="inverted_cdf")
            sums[:, others] = _sums(stored - value[others], weight)
    else:
        most = max(2, min(10_000, (1 << 22) // X.shape[1]))  # 32 MB
        rows = np.unique(np.linspace(0, n_rows - 1, most).astype(int))
        X, weight = sample.take(rows)[:, :n_features].astype(np.float64), weight[rows]
        # a value of each column with at most half of the weight on either side
        some = np.unique(np.linspace(0, len(X) - 1, 1000).astype(int))
        value = np.quantile(X[some], 0.5, axis=0, weights=weight[some], method="inverted_cdf")
        sums = _sums(X - value, weight)
        (same,) = np.nonzero(sums[1] == 0)
        if len(same) and len(rows) < data.n_rows:

            def of_batch(batch: Batch) -> tuple[NDArray]:
                away = batch.X[:, same].astype(np.float64) - value[same]
                return (_sums(away, batch.weight),)

            (sums[:, same],) = data.reduce(of_batch, len(same))
    of_rows, others, distance, squares = sums
    shift = distance / of_rows
    variance = np.maximum(squares / of_rows - shift**2, 0.0)
    away = 0.25 * squares / np.maximum(others, np.finfo(np.float64).tiny)
    square = np.where(others < 0.5 * of_rows, away, variance)
    return beside.setdefault("_columns", Columns(np.sqrt(square), value + shift, variance))


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
