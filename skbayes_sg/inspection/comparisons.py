"""Which versions of rows are compared for the effect of a column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg import frames
from skbayes_sg.inspection.names import positions

_FEW_VALUES = 10


class Comparison(NamedTuple):
    """Versions of some rows, of which each is compared with the first."""

    labels: list[str]
    """of the comparisons, one for each version but the first"""
    versions: Iterator[Any]
    rows: NDArray
    """numbers of the rows that have these versions"""
    size: float = 1.0
    """units of the column between a version and the first"""
    reference: Any = None
    """the level of the first version, of a column of levels"""


def comparisons(X: Any, features: Any, kind: str, reference: Any) -> list[tuple[str, Comparison]]:
    """The label of each column that is asked for, and its comparisons."""
    names = frames.column_names(X)
    if reference is not None and not isinstance(reference, Mapping):
        raise ValueError(f"reference must be a dict of a level by column, got {reference!r}")
    levels = {} if reference is None else dict(reference)
    of_column = dict(zip(positions(list(levels), names, "reference"), levels.values(), strict=True))
    chosen = range(len(names)) if features is None else positions(features, names)
    if features is None and kind == "derivative":
        chosen = [j for j in chosen if frames.is_number(X, j)]
    if strangers := [names[j] for j in of_column if j not in chosen or kind == "derivative"]:
        raise ValueError(
            f"reference: no levels of column {strangers[0]!r} are compared; leave it out"
        )
    return [
        (_label(names[j]), _of_column(X, j, kind, of_column.get(j), j in of_column)) for j in chosen
    ]


def _label(name: Any) -> str:
    return name if isinstance(name, str) else f"x{name}"


def _of_column(X: Any, column: int, kind: str, reference: Any, is_given: bool) -> Comparison:
    label = _label(frames.column_names(X)[column])
    rows = np.flatnonzero(~frames.is_missing(X, column))
    if not len(rows):
        raise ValueError(f"X: all cells of column {label!r} are missing; leave it out of features")
    if is_given or not frames.is_number(X, column):
        if kind == "derivative":
            raise ValueError(
                f"features: column {label!r} holds words, which have no derivative; leave it out, "
                'or set kind="auto"'
            )
        row_of = _levels(X, column, rows, label)
        first = reference if is_given else next(iter(row_of))
        if first not in row_of:
            examples = ", ".join(map(repr, list(row_of)[:5]))
            raise ValueError(
                f"reference: no row of column {label!r} has the level {first!r}; give one such as "
                f"{examples}"
            )
        levels = [first, *(level for level in row_of if level != first)]
        if len(levels) == 1:
            raise ValueError(
                f"X: column {label!r} has one value, and so no difference; leave it out of features"
            )
        versions = (frames.with_cell(X, column, row_of[level]) for level in levels)
        labels = [f"{label}[{level}]" for level in levels[1:]]
        all_rows = np.arange(len(X))  # what a cell was, and whether it was, makes no difference
        return Comparison(labels, versions, all_rows, reference=first)
    return _of_numbers(X, column, kind, rows)


def _of_numbers(X: Any, column: int, kind: str, rows: NDArray) -> Comparison:
    label = [_label(frames.column_names(X)[column])]
    values = frames.numbers(X if len(rows) == len(X) else frames.take(X, rows), column)
    distinct, found_at = np.unique(values, return_index=True)
    if kind != "derivative" and len(distinct) == 2:
        versions = (frames.with_cell(X, column, int(row)) for row in rows[found_at])
        return Comparison(label, versions, np.arange(len(X)))
    is_few = len(distinct) <= _FEW_VALUES and not (distinct % 1).any()
    if kind == "difference" or (kind == "auto" and is_few):
        return Comparison(label, _moved(X, column, rows, (0, 1)), rows)
    step = 1e-3 * (float(values.std()) or 1.0)
    return Comparison(label, _moved(X, column, rows, (-step, step)), rows, 2 * step)


def _moved(X: Any, column: int, rows: NDArray, steps: tuple[float, ...]) -> Iterator[Any]:
    """Some rows with these steps in a column, made one after the other: each is a copy."""
    movable = X if len(rows) == len(X) else frames.take(X, rows)
    values = frames.numbers(movable, column)
    for step in steps:
        yield frames.with_values(movable, column, values + step)


def _levels(X: Any, column: int, rows: NDArray, label: str) -> dict[Any, int]:
    """A row of each level, in the order of categories or of values, of cells that are there."""
    cells = frames.values(X, column)
    row_of = {cells[row]: int(row) for row in rows[::-1]}
    categories = frames.categories(X, column)
    try:
        levels = sorted(row_of) if categories is None else [c for c in categories if c in row_of]
    except TypeError:
        kinds = ", ".join(sorted({type(cell).__name__ for cell in row_of}))
        raise ValueError(
            f"X: column {label!r} holds values that have no order among them ({kinds}); give them "
            "one type, for example str"
        ) from None
    return {level: row_of[level] for level in levels}
