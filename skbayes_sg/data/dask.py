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
from skbayes_sg.data.factors import Design, labels_of, levels_of
from skbayes_sg.data.row_metadata import RowMetadata, require_trials, with_known
from skbayes_sg.data.rows import Batch, aligned
from skbayes_sg.data.threads import total_of
from skbayes_sg.frames import with_values
from skbayes_sg.linalg.scores import dense

_OF_OUTPUTS = ("offset", "exposure")  # one number for each row, or for each output of it


class OnWorkers(Source):
    """Rows of a dask collection.

    Parameters
    ----------
    X : dask array or data frame of shape (n_rows, n_features)
        Rows of unknown number are counted, by a task for each partition.
    y : dask array or series, or array in memory, of shape (n_rows,)
    metadata : RowMetadata
        The weights are as y, an offset is too, or of shape (n_rows, n_offsets), and trials are, or
        one number.
    design : Design, optional
        Where columns of X are factors.

    Raises
    ------
    ValueError
        If a column does not hold numbers, or the partitions do not match.
    """

    def __init__(self, X: Any, y: Any, metadata: RowMetadata, design: Design | None = None) -> None:
        untyped: Any = metadata
        weight, offset, _, trials = untyped
        self.n_features = X.shape[1] if design is None else design.n_columns
        self.dtype, self._design = _dtype_of(X, design), design
        self._parts, lengths = _partitions(X)
        if np.isnan(lengths).any():
            lengths = dask.compute([dask.delayed(len)(partition) for partition in self._parts])[0]
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
        names: list[Any] = list(X.columns) if hasattr(X, "columns") else list(range(X.shape[1]))
        if design is not None:
            names = list(design.column_names)
        names += ["offset"] * self.n_known
        self.place = partial(_place, self._starts, names)

    def reduce(
        self, function: Callable[[Batch], tuple], row_size: int, pairs: bool = False
    ) -> tuple:
        def total(batch: Batch) -> tuple:
            return total_of(function, pieces(batch, row_size, pairs))

        # a value of the graph goes once to each worker, the function of a task with each task
        read = partial(_numbers, self.dtype, self._design)
        visit = dask.delayed(partial(_visited, total, read))
        of_rows = self._weight, self._offset, self._trials
        partitions = zip(self._starts.tolist(), self._parts, self._y, *of_rows, strict=True)
        sums = [dask.delayed(call)(visit, i, *rows) for i, rows in enumerate(partitions)]
        while len(sums) > 1:
            twos = [sums[i : i + 2] for i in range(0, len(sums), 2)]
            sums = [dask.delayed(total_of)(tuple, two) if len(two) == 2 else two[0] for two in twos]
        return dask.compute(sums[0])[0]


def _visited(
    total: Callable[[Batch], tuple],
    read: Callable[[Any, int], Any],
    number: int,
    start: int,
    *rows: Any,
) -> tuple:
    """The total of a partition of X, y, weights, offsets and trials; () if it has no rows."""
    X, y, weight, offset, trials = rows
    X, y = read(X, number), aligned(y)
    n_rows, dtype = X.shape[0], X.dtype
    if trials is not None:
        trials = np.asarray(trials, np.float64)
        require_trials(trials, dtype)
        offset = np.column_stack([0 * trials if offset is None else offset, trials])
    if offset is not None:
        columns = np.asarray(offset, dtype).reshape(n_rows, -1)
        X = with_known(X, columns)
    weight = None if weight is None else aligned(weight)
    for name, values in {"y": y, "sample_weight": y if weight is None else weight}.items():
        if values.shape != (n_rows,):
            raise ValueError(
                f"partition {number} has {n_rows} rows in X, and {name} has shape {values.shape}"
            )
    with np.errstate(over="ignore", invalid="ignore"):
        return total(Batch(X, y, weight, start))


def _place(starts: NDArray, names: list, row: int, column: int | None = None) -> str:
    number = int(np.searchsorted(starts, row, "right")) - 1
    where = f"row {row - starts[number]} of partition {number}"
    return where if column is None else f"{where}, column {names[column]!r}"


def _dtype_of(X: Any, design: Design | None = None) -> np.dtype:
    """float32 if all columns of numbers are; ValueError that names columns that are no numbers."""
    if not hasattr(X, "columns"):
        return Reader(X).dtype
    types = list(X.dtypes.items())
    types = types if design is None else [types[column] for column in design.numbers]
    text = [name for name, dtype in types if getattr(dtype, "kind", "O") not in "biuf"]
    if text:
        raise ValueError(
            f"X holds no numbers in column(s) {', '.join(map(repr, text))}; give such a column the "
            "type category, or name it in categorical_features, and it is a factor; or encode it, "
            "for example with get_dummies of categories"
        )
    single = bool(types) and all(dtype == np.float32 for _, dtype in types)
    return np.dtype(np.float32 if single else np.float64)


def levels_on_workers(X: Any, columns: list[int]) -> dict[int, list[Any]]:
    """The levels that rows of a data frame have, of the columns of these numbers: one pass."""

    def different(partition: Any) -> list[set]:
        return [set(labels_of(partition, column)) for column in columns]

    partitions, _ = _partitions(X)
    level_sets = dask.compute([dask.delayed(different)(partition) for partition in partitions])[0]
    labels_of_columns = [set().union(*sets) for sets in zip(*level_sets, strict=True)]
    meta = X._meta  # whose order is that of the type, if its categories are known
    return {
        column: levels_of(meta, column, list(labels))
        for column, labels in zip(columns, labels_of_columns, strict=True)
    }


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


def _numbers(dtype: np.dtype, design: Design | None, X: Any, number: int) -> Any:
    """A partition as an aligned array, sparse if it has factors; missing numbers become NaN."""
    try:
        if not hasattr(X, "columns"):
            return aligned(dense(X), dtype)
        columns = X if design is None else X.iloc[:, list(design.numbers)]
        numbers = aligned(columns.to_numpy(dtype=dtype, na_value=np.nan))
    except (ValueError, TypeError) as error:
        raise ValueError(f"partition {number} of X does not hold numbers: {error}") from error
    return numbers if design is None else design.matrix(X, numbers)[0]


# -- predictions ------------------------------------------------------------------------------


def lazily(
    function: Callable[..., Any],
    X: Any,
    axis: int,
    of_rows: dict[str, Any],
    design: Design | None = None,
) -> Any:
    """`function` of each partition, as lazy dask arrays; `axis` of its result are rows.

    It has the rows' parts of each array of `of_rows` by name. The shape of the result is that of a
    result for rows of zeros or ones, with levels that the design knows.
    """
    example = X._meta_nonempty if hasattr(X, "columns") else np.zeros((1, X.shape[1]), X.dtype)
    for column, factor in {} if design is None else design.factors.items():
        example = with_values(example, column, [factor.levels[0]] * len(example))
    shapes = {name: (len(example), *values.shape[1:]) for name, values in of_rows.items()}
    meta = function(example, **{name: np.ones(shape) for name, shape in shapes.items()})
    parts, lengths = _partitions(X)
    if np.isnan(lengths).any() and of_rows:
        lengths = np.array(
            dask.compute([dask.delayed(len)(partition) for partition in parts])[0], float
        )
    ends = np.cumsum(lengths).astype(int) if of_rows else lengths
    aligned = {name: _aligned(name, values, ends) for name, values in of_rows.items()}
    empty = entrywise(lambda a: np.take(a, [], axis=axis), meta)
    results = [
        dask.delayed(_unless_empty)(function, empty, partition, {n: aligned[n][i] for n in aligned})
        for i, partition in enumerate(parts)
    ]

    def joined(example: NDArray, select: Callable[[Any], Any]) -> Any:
        sizes = [n if np.isnan(n) else int(n) for n in lengths]
        shapes = [(*example.shape[:axis], n, *example.shape[axis + 1 :]) for n in sizes]
        arrays = [
            da.from_delayed(select(result), shape, example.dtype)
            for result, shape in zip(results, shapes, strict=True)
        ]
        return da.concatenate(arrays, axis=axis, allow_unknown_chunksizes=True)

    if isinstance(meta, dict):
        return type(meta)(**{key: joined(meta[key], itemgetter(key)) for key in meta})
    if isinstance(meta, tuple):
        return tuple(joined(entry, itemgetter(i)) for i, entry in enumerate(meta))
    return joined(meta, lambda r: r)


def _unless_empty(
    function: Callable[..., Any], empty: Any, partition: Any, of_rows: dict[str, Any]
) -> Any:
    of_rows = {name: np.asarray(values) for name, values in of_rows.items()}
    return function(partition, **of_rows) if len(partition) else empty
