"""Columns of rows in memory: data frames of any library, and arrays, read in one way.

Only this file imports narwhals, which stands between pandas, polars, pyarrow and others. Columns
are given by number.
"""

from __future__ import annotations

from datetime import date, time, timedelta
from numbers import Number
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

_OF_TIME = (date, time, timedelta, np.datetime64, np.timedelta64)


def is_frame(X: Any) -> bool:
    """Whether X is a data frame in memory."""
    return _frame(X) is not None


def as_table(X: Any) -> Any:
    """A data frame or array as it is, and lists of rows as an array of objects."""
    return X if is_frame(X) or hasattr(X, "dtype") else np.asarray(X, object)


def is_lazy(X: Any) -> bool:
    """Whether X has columns whose cells are not in memory: a query, or a dask collection."""
    return hasattr(X, "__dask_graph__") or (hasattr(X, "collect") and not is_frame(X))


def column_names(X: Any) -> list:
    """Names of the columns of a data frame; numbers of those of an array."""
    frame = _frame(X)
    return list(range(X.shape[1])) if frame is None else list(frame.columns)


def text_columns(X: Any) -> list:
    """Names of the columns of a data frame that have no numbers; none of other rows."""
    frame = _frame(X)
    if frame is None:
        return []
    text = []
    for number, name in enumerate(frame.columns):
        try:
            np.asarray(frame[:, number].drop_nulls().to_numpy(), dtype=np.float64)
        except (ValueError, TypeError):
            text.append(name)
    return text


def require_no_dates(X: Any) -> None:
    """Raise ValueError for columns of dates, times or durations, of a data frame or an array.

    They have numbers, but in a unit of their type, which another frame of the same dates may not
    have: the libraries choose it.
    """
    frame, columns = _frame(X), []
    if frame is not None:
        columns = [(name, frame[:, j]) for j, name in enumerate(frame.columns)]
    elif not is_lazy(X):
        array = X if hasattr(X, "dtype") else np.asarray(X)
        if getattr(array.dtype, "kind", "") in ("m", "M", "O") and array.ndim == 2:
            columns = list(enumerate(array.T))
    of_time = [name for name, cells in columns if _is_of_time(cells)]
    if of_time:
        raise ValueError(
            f"X holds dates or times in column(s) {', '.join(map(repr, of_time))}, whose numbers "
            "would depend on the unit of their type; give numbers of a unit that you choose, in "
            "the fit and in predictions, such as days since one of them: in NumPy and pandas "
            '(dates - numpy.datetime64("2020-01-01")) / numpy.timedelta64(1, "D"), and durations / '
            'numpy.timedelta64(1, "D")'
        )


def _is_of_time(cells: Any) -> bool:
    if isinstance(cells, nw.Series):
        if cells.dtype.is_numeric() or cells.dtype.is_temporal():
            return cells.dtype.is_temporal()
        cells = cells.to_numpy()  # categories may be dates
    if cells.dtype.kind != "O":
        return cells.dtype.kind in "mM"
    return any(isinstance(cell, _OF_TIME) and not _is_missing(cell) for cell in cells)


def row_labels(X: Any) -> list[Any]:
    """Labels of the rows: those of the index of a data frame that has one, or numbers.

    Those of an index of several levels are one text each.
    """
    index = nw.maybe_get_index(nw.from_native(X)) if is_frame(X) else None
    return [
        str(label) if isinstance(label, tuple) else label
        for label in (range(len(X)) if index is None else index)
    ]


def categorical_columns(X: Any) -> list[int]:
    """Numbers of the columns of categories of a data frame; none of other rows.

    Those are `category` of pandas, `Categorical` and `Enum` of polars, dictionaries of Arrow.
    """
    frame = _frame(X)
    if frame is None:
        return []
    kinds = (nw.Categorical, nw.Enum)
    return [j for j, dtype in enumerate(frame.schema.values()) if isinstance(dtype, kinds)]


def select(X: Any, columns: list[int]) -> Any:
    """Some of the columns, in the type of X."""
    frame = _frame(X)
    return X[:, columns] if frame is None else frame[:, columns].to_native()


def is_missing(X: Any, number: int) -> NDArray:
    """Whether the cells of a column are missing: NaN, None, NA, NaT or null; (n_rows,)."""
    return cells_of(column(X, number))[1]


def is_number(X: Any, column: int) -> bool:
    """Whether the cells that are there are numbers; truth values and categories are not."""
    frame = _frame(X)
    if frame is None:
        return True
    cells = frame[:, column]
    if cells.dtype != nw.Object:
        return cells.dtype.is_numeric()
    present = cells.drop_nulls().to_list()  # pandas has numbers beside NA as objects
    return all(
        isinstance(cell, Number) and not isinstance(cell, bool | np.bool_) for cell in present
    )


def column(X: Any, number: int) -> Any:
    """A column as it is, of a data frame in its library's type."""
    frame = _frame(X)
    return X[:, number] if frame is None else frame[:, number].to_native()


def numbers(X: Any, column: int) -> NDArray:
    """A column of numbers without missing cells; integers stay integers."""
    frame = _frame(X)
    if frame is None:
        return X[:, column]
    cells = frame[:, column].to_numpy()
    return cells if cells.dtype.kind in "iu" else cells.astype(np.float64)


def values(X: Any, column: int) -> NDArray:
    """The cells as objects, missing ones too, (n_rows,)."""
    frame = _frame(X)
    if frame is None:
        return X[:, column]
    cells = np.empty(len(X), dtype=object)
    cells[:] = frame[:, column].to_list()
    return cells


def cells_of(values: Any) -> tuple[NDArray, NDArray]:
    """The cells of a column of any library, or of an array, and which are missing; (n_rows,)."""
    column = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(column, nw.Series):
        missing = column.is_null().to_numpy().astype(bool)
        # pyarrow cannot take cells of a dictionary without words
        cells = np.full(len(missing), None) if missing.all() else column.to_numpy()
    else:
        cells = np.asarray(values)
        missing = np.frompyfunc(_is_missing, 1, 1)(cells).astype(bool)
    # polars and pyarrow tell NaN from null
    return cells, missing | np.isnan(cells) if cells.dtype.kind == "f" else missing


def ordered_levels(y: Any) -> list | None:
    """Levels of a column of ordered categories, the lowest first; None of any other y.

    y may also be a data frame of one such column, or the type of such a column.
    """
    frame = _frame(y)
    if frame is not None and len(frame.columns) == 1:
        column = frame[:, 0]
    else:
        column = nw.from_native(y, series_only=True, pass_through=True)
    if isinstance(column, nw.Series) and column.dtype == nw.Categorical:
        native = column.to_native()  # of pyarrow, whose order narwhals forgets
        if getattr(getattr(native, "type", None), "ordered", False) and len(native):
            return native.unify_dictionaries().chunk(0).dictionary.to_pylist()
    dtype = getattr(column, "dtype", y)
    is_ordered = isinstance(dtype, nw.Enum) or getattr(dtype, "ordered", False)
    return list(dtype.categories) if is_ordered else None


def categories(X: Any, column: int) -> list | None:
    """Levels of a column in the order that its type gives them; None of one without an order.

    Categories of pandas have one, whether or not they are called ordered, and so has an Enum.
    """
    frame = _frame(X)
    if frame is None:
        return None
    cells = frame[:, column]
    if isinstance(cells.dtype, nw.Enum):
        return list(cells.dtype.categories)
    if cells.dtype == nw.Categorical and cells.implementation.is_pandas_like():
        # narwhals sorts them; a dictionary of Arrow, which pandas may hold, has none of its own
        declared = getattr(cells.to_native().dtype, "categories", None)
        return None if declared is None else list(declared)
    return None


def take(X: Any, rows: NDArray) -> Any:
    """The rows of these numbers, which may repeat."""
    frame = _frame(X)
    return X[rows] if frame is None else frame[rows.tolist()].to_native()


def with_values(X: Any, column: int, cells: ArrayLike) -> Any:
    """A copy of X with these values in a column, (n_rows,)."""
    frame, cells = _frame(X), np.asarray(cells)
    if frame is None:
        X = X.copy()
        X[:, column] = cells
        return X
    listed = cells if cells.dtype.kind in "biuf" else cells.tolist()
    return _replaced(frame, column, listed)


def with_cell(X: Any, column: int, row: int, source: Any = None) -> Any:
    """A copy of X whose rows all have the cell of one row, of X or of `source`, which is like X.

    The type of the column stays, and so do its categories.
    """
    frame, source = _frame(X), X if source is None else source
    if frame is None:
        return with_values(X, column, np.full(len(X), source[row, column]))
    return _replaced(frame, column, _frame(source)[:, column][[row] * len(frame)])


def _is_missing(cell: Any) -> bool:
    return cell is None or cell != cell


def _frame(X: Any) -> Any:
    if isinstance(X, np.ndarray):  # narwhals takes longer to see that than to predict a row
        return None
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        names = list(X.columns)
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(
            f"X has several columns with the name {twice!r}, and what is said of one by name would "
            "be said of both; rename or drop one"
        ) from None
    return frame if isinstance(frame, nw.DataFrame) else None


def _replaced(frame: Any, column: int, cells: Any) -> Any:
    name = frame.columns[column]
    if not isinstance(cells, nw.Series):
        cells = nw.new_series(name, cells, backend=frame.implementation)
    if (index := nw.maybe_get_index(frame)) is not None:  # pandas would align by labels
        cells = nw.maybe_set_index(cells, index=index)
    return frame.with_columns(cells.alias(name)).to_native()
