"""Rows in partitions on workers: dask arrays and data frames. Only this file imports dask.

A pass is one task for each partition and a tree of sums, in the order of the partitions. So the
result depends on the partitions, and not on the workers. Nothing but sums, and rows of the sample
and of the pool, leaves a worker.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import call, itemgetter
from typing import Any

import dask
import dask.array as da
import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data.blockwise import Reader, Source, entrywise, pieces
from skbayes_sg.data.row_metadata import require_trials
from skbayes_sg.data.rows import Batch, aligned
from skbayes_sg.data.threads import total_of
from skbayes_sg.linalg.scores import dense

_OF_OUTPUTS = ("offset", "exposure")  # one number for each row, or for each output of it


class OnWorkers(Source):
    """Rows of a dask collection.

    Parameters
    ----------
    X : dask array or data frame of shape (n_rows, n_features)
        Rows of unknown number are counted, by a task for each partition.
    y : dask array or series, or array in memory, of shape (n_rows,)
    weight : as y, or None
    offset : as y, or of shape (n_rows, n_offsets), or None
    trials : as y, or one number, or None

    Raises
    ------
    ValueError
        If a column does not hold numbers, or the partitions do not match.
    """

    def __init__(self, X: Any, y: Any, weight: Any, offset: Any = None, trials: Any = None) -> None:
        self.n_features = X.shape[1]
        self.dtype = _dtype_of(X)
        self._parts, lengths = _partitions(X)
        if np.isnan(lengths).any():
            lengths = dask.compute([dask.delayed(len)(part) for part in self._parts])[0]
        ends = np.cumsum(np.asarray(lengths, int))
        self.n_rows = int(ends[-1])
        if self.n_rows == 0:
            raise ValueError("X has no rows")
        self._starts = np.concatenate([[0], ends[:-1]])
        self._y = _aligned("y", y, ends)
        self._weight = _aligned("sample_weight", weight, ends)
        self._offset = _aligned("offset", offset, ends)
        if trials is not None and np.ndim(trials) == 0:
            trials = np.full(self.n_rows, trials)
        self._trials = _aligned("trials", trials, ends)
        self.n_known = 0 if offset is None else offset.shape[1] if offset.ndim == 2 else 1
        if trials is not None:
            self.n_known = 2
        names = list(X.columns) if hasattr(X, "columns") else list(range(self.n_features))
        names += ["offset"] * self.n_known
        self.place = partial(_place, self._starts, names)

    def reduce(
        self, function: Callable[[Batch], tuple], row_size: int, pairs: bool = False
    ) -> tuple:
        def total(batch: Batch) -> tuple:
            return total_of(function, pieces(batch, row_size, pairs))

        # a value of the graph goes once to each worker, the function of a task with each task
        visit = dask.delayed(partial(_visited, total, self.dtype))
        beside = self._weight, self._offset, self._trials
        each = zip(self._starts.tolist(), self._parts, self._y, *beside, strict=True)
        sums = [dask.delayed(call)(visit, i, *rows) for i, rows in enumerate(each)]
        while len(sums) > 1:
            twos = [sums[i : i + 2] for i in range(0, len(sums), 2)]
            sums = [dask.delayed(total_of)(tuple, two) if len(two) == 2 else two[0] for two in twos]
        return dask.compute(sums[0])[0]


def _visited(
    total: Callable[[Batch], tuple], dtype: np.dtype, number: int, start: int, *rows: Any
) -> tuple:
    """The total of a partition of X, y, weights, offsets and trials; () if it has no rows."""
    X, y, weight, offset, trials = rows
    X, y = _numbers(X, dtype, number), aligned(y)
    if trials is not None:
        trials = np.asarray(trials, np.float64)
        require_trials(trials, dtype)
        offset = np.column_stack([0 * trials if offset is None else offset, trials])
    if offset is not None:
        columns = np.asarray(offset, dtype).reshape(len(X), -1)
        X = np.hstack([X, columns])
    weight = None if weight is None else aligned(weight)
    for name, values in {"y": y, "sample_weight": y if weight is None else weight}.items():
        if values.shape != (len(X),):
            raise ValueError(
                f"partition {number} has {len(X)} rows in X, and {name} has shape {values.shape}"
            )
    with np.errstate(over="ignore", invalid="ignore"):
        return total(Batch(X, y, weight, start))


def _place(starts: NDArray, names: list, row: int, column: int | None = None) -> str:
    number = int(np.searchsorted(starts, row, "right")) - 1
    where = f"row {row - starts[number]} of partition {number}"
    return where if column is None else f"{where}, column {names[column]!r}"


def _dtype_of(X: Any) -> np.dtype:
    """float32 if all columns are; ValueError that names columns that are no numbers."""
    if not hasattr(X, "columns"):
        return Reader(X).dtype
    kinds = {name: getattr(dtype, "kind", "O") for name, dtype in X.dtypes.items()}
    text = [name for name, kind in kinds.items() if kind not in "biuf"]
    if text:
        raise ValueError(
            f"X holds no numbers in column(s) {', '.join(map(repr, text))}; encode text first, "
            "for example with get_dummies of categories"
        )
    single = all(dtype == np.float32 for dtype in X.dtypes)
    return np.dtype(np.float32 if single else np.float64)


def _partitions(X: Any) -> tuple[list, NDArray]:
    """Delayed partitions, and their rows, NaN where not known."""
    if hasattr(X, "columns") or not hasattr(X, "chunks"):  # data frame or series
        # further optimization may merge partitions of a Parquet file, in X others than in y
        parts = list(X.simplify().to_delayed(optimize_graph=False))
        return parts, np.full(len(parts), np.nan)
    if X.ndim == 2 and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    return list(X.to_delayed().ravel()), np.array(X.chunks[0], float)


def _aligned(name: str, values: Any, ends: NDArray) -> list:
    """One value per row, or None, in the partitions of X, which end at these rows."""
    if values is None:
        return [None] * len(ends)
    if not hasattr(values, "__dask_graph__"):
        values = np.asarray(values)
        several = values.ndim != 1 and name not in _OF_OUTPUTS
        if several or values.shape[:1] != (ends[-1],):
            raise ValueError(f"{name} must have shape ({ends[-1]},), got {values.shape}")
        return np.split(values, ends[:-1])
    if values.ndim != 1 and name not in _OF_OUTPUTS:
        raise ValueError(f"{name} must have one dimension, got {values.ndim}")
    parts, lengths = _partitions(values)
    if not np.isnan(lengths).any():
        if lengths.sum() != ends[-1]:
            raise ValueError(f"{name} must have shape ({ends[-1]},), got ({int(lengths.sum())},)")
        parts, _ = _partitions(values.rechunk({0: tuple(np.diff(ends, prepend=0).tolist())}))
    if len(parts) != len(ends):
        raise ValueError(
            f"{name} has {len(parts)} partitions and X has {len(ends)}; give both the same"
        )
    return parts


def _numbers(X: Any, dtype: np.dtype, number: int) -> NDArray:
    """A partition as an aligned array; missing values of a data frame become NaN."""
    try:
        if hasattr(X, "columns"):
            return aligned(X.to_numpy(dtype=dtype, na_value=np.nan))
        return aligned(dense(X), dtype)
    except (ValueError, TypeError) as error:
        raise ValueError(f"partition {number} of X does not hold numbers: {error}") from error


# -- predictions ------------------------------------------------------------------------------


def lazily(function: Callable[..., Any], X: Any, axis: int, of_rows: dict[str, Any]) -> Any:
    """`function` of each partition, as lazy dask arrays; `axis` of its result are rows.

    It has the rows' parts of each array of `of_rows` by name. The shape of the result is that of a
    result for rows of zeros or ones.
    """
    example = X._meta_nonempty if hasattr(X, "columns") else np.zeros((1, X.shape[1]), X.dtype)
    shapes = {name: (len(example), *each.shape[1:]) for name, each in of_rows.items()}
    like = function(example, **{name: np.ones(shape) for name, shape in shapes.items()})
    parts, lengths = _partitions(X)
    if np.isnan(lengths).any() and of_rows:
        lengths = np.array(dask.compute([dask.delayed(len)(part) for part in parts])[0], float)
    ends = np.cumsum(lengths).astype(int) if of_rows else lengths
    beside = {name: _aligned(name, each, ends) for name, each in of_rows.items()}
    empty = entrywise(lambda a: np.take(a, [], axis=axis), like)
    results = [
        dask.delayed(_unless_empty)(function, empty, part, {n: beside[n][i] for n in beside})
        for i, part in enumerate(parts)
    ]

    def joined(example: NDArray, select: Callable[[Any], Any]) -> Any:
        known = [n if np.isnan(n) else int(n) for n in lengths]
        shapes = [(*example.shape[:axis], n, *example.shape[axis + 1 :]) for n in known]
        arrays = [
            da.from_delayed(select(result), shape, example.dtype)
            for result, shape in zip(results, shapes, strict=True)
        ]
        return da.concatenate(arrays, axis=axis, allow_unknown_chunksizes=True)

    if isinstance(like, dict):
        return type(like)(**{key: joined(like[key], itemgetter(key)) for key in like})
    if isinstance(like, tuple):
        return tuple(joined(one, itemgetter(i)) for i, one in enumerate(like))
    return joined(like, lambda r: r)


def _unless_empty(
    function: Callable[..., Any], empty: Any, part: Any, of_rows: dict[str, Any]
) -> Any:
    of_rows = {name: np.asarray(each) for name, each in of_rows.items()}
    return function(part, **of_rows) if len(part) else empty
