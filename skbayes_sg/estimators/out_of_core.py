"""Estimators and rows out of core: one pass that validates them, and predictions block by block.

scikit-learn's validation reads an array at once, and casts it whole. Here each block is validated
as it is read, and errors name row and column.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from skbayes_sg.data import (
    Batch,
    Encode,
    InMemory,
    OnDisk,
    OutOfCoreData,
    Reader,
    Source,
    ahead,
    in_partitions,
    is_out_of_core,
    is_stored,
)
from skbayes_sg.data.blockwise import entrywise, place
from skbayes_sg.data.factors import Design
from skbayes_sg.data.row_metadata import RowMetadata, known_columns, require_trials
from skbayes_sg.estimators.categorical import categorical_columns
from skbayes_sg.frames import require_no_dates, select
from skbayes_sg.validation import checked_weights, in_dtype, is_word, real_array

_FULL = "memory is full"
Method = TypeVar("Method", bound=Callable[..., Any])
"""What a decorator gives back with its signature, which editors show."""


class FirstPass:
    """What one pass over all rows tells: that all are valid, their labels, and a sample of them.

    Parameters
    ----------
    source : Source
    labels : bool
        Whether the targets are labels.
    require : function, optional
        Of targets and known columns of a block, which raises if they do not go together.

    Attributes
    ----------
    sample : Batch
        Random rows, as they were given.
    labels : array of shape (n_labels,)
        The labels, sorted; empty if the targets are none.
    totals : array of shape (n_labels,)
        Sum of the weights of each: its rows, where none are given.
    n_weighted : int
        Rows of positive weight.

    Raises
    ------
    ValueError
        If a row is invalid; the message names it.
    """

    def __init__(
        self, source: Source, labels: bool, require: Callable[..., None] | None = None
    ) -> None:
        self._source = source
        chosen = source.sample_rows()
        n_features = source.n_features
        inspect = partial(_inspected, source.place, chosen, n_features, labels)

        def inspected(batch: Batch) -> tuple:
            checked = inspect(batch)
            if require is not None:
                require(batch.y, batch.X[:, n_features:])
            return checked

        X, y, weight, label_sets, totals, self.n_weighted = source.reduce(inspected, 0)
        self.sample = Batch(
            np.concatenate(X), np.concatenate(y), np.concatenate(weight) if weight else None
        )
        self.labels, place = np.unique(np.concatenate(label_sets), return_inverse=True)
        if labels:
            check_classification_targets(self.labels)
        self.totals = np.bincount(place, np.concatenate(totals), len(self.labels))

    def data(self, encode: Encode) -> OutOfCoreData:
        """The rows, with targets and weights as `encode` makes them of those that were given."""
        y, weight = encode(self.sample.y, self.sample.weight)
        if weight is not None and not weight.any():
            raise ValueError(
                "sample_weight is 0 for all but very few rows; leave these rows out of X and y"
            )
        sample = InMemory.of(self.sample.X, y, weight, float(self._source.n_rows))
        sample = replace(sample, n_known=self._source.n_known)
        return OutOfCoreData(self._source, encode, sample)


def _inspected(
    where: Callable[..., str], chosen: NDArray, n_features: int, labels: bool, batch: Batch
) -> tuple[list, list, list, list, list, int]:
    """Validate a block; its rows of the sample, its labels, and its rows of positive weight."""
    X, y, weight, start = batch
    offsets = X[:, n_features:]
    if not np.isfinite(offsets).all():
        row = int(np.flatnonzero(~np.isfinite(offsets).all(axis=1))[0])
        raise ValueError(
            f"offset, or the logarithm of exposure, is not finite in {where(start + row)}; offsets "
            "must be finite, exposures positive and finite"
        )
    require_squares_of_block(X, lambda row, column: where(start + row, column))
    if y.dtype.kind in "fc" and not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise ValueError(
            f"Input y contains NaN or infinity in {where(start + row)}; leave out such rows"
        )
    row_weight = checked_weights(weight, len(y))
    present = y[:0]
    totals: NDArray = np.zeros(0)
    if labels:
        present, of_label = np.unique(y, return_inverse=True)
        if present.dtype.kind == "f" and (present % 1).any():  # may be as many as rows
            check_classification_targets(present)
        totals = np.bincount(of_label, row_weight, len(present))
    else:
        real_array("y", y)
    sampled = chosen[slice(*np.searchsorted(chosen, [start, start + len(X)]))] - start
    weights = [] if weight is None else [row_weight[sampled]]
    return [X[sampled]], [y[sampled]], weights, [present], [totals], int((row_weight > 0).sum())


def require_squares_of_block(X: NDArray, where: Callable[[int, int], str]) -> None:
    """Raise ValueError that names the place of a number that, or whose square, is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.vdot(X, X)):
            return
        wrong = np.nonzero(~np.isfinite(X * X))
    if not len(wrong[0]):  # it is their sum that overflows
        return
    row, column = (int(numbers[0]) for numbers in wrong)
    value = X[row, column]
    if np.isfinite(value):
        raise ValueError(
            f"X holds values whose squares overflow, as {value:.1g} in {where(row, column)}; scale "
            "its columns, for example by MaxAbsScaler"
        )
    kind = "NaN" if np.isnan(value) else "infinity"
    raise ValueError(
        f"Input X contains {kind} in {where(row, column)}; impute or leave out such rows"
    )


def require_chunk(X: Any) -> None:
    """Raise TypeError if a chunk of a stream is in partitions, which might not fit into memory."""
    if in_partitions(X):
        raise TypeError(
            "partial_fit takes a chunk of rows in memory, and X is in partitions; call fit, which "
            "reads them where they are, or give one partition after the other, computed"
        )


def source_of(X: Any, y: Any, metadata: RowMetadata, design: Design | None = None) -> Source:
    """The rows of X, with one target and weight per row, and with offsets as last columns."""
    weight, offset, _, trials = metadata
    if in_partitions(X):
        from skbayes_sg.data.dask import OnWorkers

        return OnWorkers(X, y, metadata, design)
    n_rows = X.shape[0]
    y = _column("y", y, n_rows)
    weight = None if weight is None else _column("sample_weight", weight, n_rows)
    of_rows = None
    if trials is not None:
        of_rows = metadata.known(X)
        require_trials(of_rows[:, 1], np.dtype(np.float32 if X.dtype == np.float32 else np.float64))
    elif offset is not None:
        columns = np.asarray(offset).shape[1:]
        of_rows = known_columns(offset, n_rows, columns[0] if columns else 1)
    return OnDisk(X, y, weight, of_rows)


def design_of(categorical_features: Any, flat: list[str], X: Any) -> Design | None:
    """How rows out of core become a matrix, where they have factors: those of dask data frames.

    Raises
    ------
    ValueError
        If columns of an array shall be factors.
    """
    if not hasattr(X, "columns"):
        if categorical_features is not None and not is_word(categorical_features, "from_dtype"):
            raise ValueError(
                "categorical_features: the columns of an array that is read in blocks are numbers; "
                "give a dask data frame, or an array in memory"
            )
        return None
    from skbayes_sg.data.dask import levels_on_workers

    columns = categorical_columns(categorical_features, X._meta)
    if not columns:
        return None
    return Design.of_levels(X._meta, levels_on_workers(X, columns), flat)


def _column(name: str, values: Any, n_rows: int) -> Any:
    """One value per row, in memory or stored."""
    values = values if is_stored(values) else np.asarray(values)
    if tuple(values.shape) != (n_rows,):
        raise ValueError(f"{name} must have shape ({n_rows},), got {tuple(values.shape)}")
    return values


def weights_or_none(name: str, weight: NDArray | None, dtype: np.dtype) -> NDArray | None:
    """Weights in X's precision; `name` is what they are of."""
    return None if weight is None else in_dtype(name, weight, dtype)


# -- predictions ------------------------------------------------------------------------------


def in_blocks(axis: int = 0) -> Callable[[Method], Method]:
    """A method of X works block by block where X is out of core; `axis` of its result are rows.

    The result for a dask collection is a lazy dask array. Where memory is full the error says what
    takes less of it.
    """

    def decorated(method: Method) -> Method:
        def over_blocks(self, X, *args, **kwargs):
            if not is_out_of_core(X):
                return method(self, X, *args, **kwargs)
            per_row = ("offset", "exposure", "trials")
            names = [name for name in per_row if np.ndim(kwargs.get(name, 0))]
            if "random_state" in inspect.signature(method).parameters:
                if in_partitions(X) and "mean" not in (*args, kwargs.get("kind")):
                    raise ValueError(
                        f"{method.__name__} of rows on workers would have the same random numbers "
                        'in each partition; give kind="mean", or rows in memory'
                    )
                kwargs["random_state"] = np.random.default_rng(kwargs.get("random_state", 0))
            of_rows = {name: _sliceable(kwargs.pop(name)) for name in names}
            check_is_fitted(self, "draws_")
            validate_columns(self, X, reset=False)
            if in_partitions(X):
                from skbayes_sg.data.dask import lazily

                def call(block: Any, **of_block: Any) -> Any:
                    return getattr(self, method.__name__)(block, *args, **kwargs, **of_block)

                return lazily(call, X, axis, of_rows, self._design)
            for name, values in of_rows.items():
                if values.shape[0] != X.shape[0]:
                    raise ValueError(
                        f"{name} must have a number for each of {X.shape[0]} rows, got shape "
                        f"{values.shape}"
                    )
            reader, parts = Reader(X), []
            for rows, block in zip(reader.slices(), _checked_blocks(reader), strict=True):
                of_block = {name: np.asarray(values[rows]) for name, values in of_rows.items()}
                parts.append(method(self, block, *args, **kwargs, **of_block))
            return entrywise(lambda *results: np.concatenate(results, axis=axis), *parts)

        @functools.wraps(method)
        def in_memory(self, X, *args, **kwargs):
            try:
                return over_blocks(self, X, *args, **kwargs)
            except MemoryError as error:
                if str(error).startswith(_FULL):  # one prediction may ask for another
                    raise
                raise MemoryError(
                    f"{_FULL} in {method.__name__} of {np.shape(X)[0]} rows ({error}); predict "
                    "fewer rows at a time, or by a copy of fewer draws, compact(n_draws=...)"
                ) from error

        return cast(Method, in_memory)

    return decorated


def _sliceable(values: Any) -> Any:
    """Numbers of rows, of which slices give those of some: slices of a series may mean labels."""
    return values if in_partitions(values) or is_stored(values) else np.asarray(values)


def validate_columns(model: Any, X: Any, reset: bool) -> None:
    """Number and names of the columns of rows out of core."""
    if len(X.shape) != 2:
        raise ValueError(f"X must have two dimensions, got {len(X.shape)}")
    columns = getattr(X, "_meta", X) if hasattr(X, "columns") else X
    of_kind = columns if columns is not X else np.empty((0, X.shape[1]), X.dtype)
    if columns is not X and model._design is not None:
        of_kind = select(columns, list(model._design.numbers))
    require_no_dates(of_kind)
    validate_data(model, columns, reset=reset, skip_check_array=True)


def _checked_blocks(reader: Reader) -> Iterator[NDArray]:
    """All rows, the next block read while this one is used."""

    def read(rows: slice) -> NDArray:
        block = reader.read(rows)
        require_squares_of_block(block, lambda row, column: place(rows.start + row, column))
        return block

    return ahead(read, reader.slices())
