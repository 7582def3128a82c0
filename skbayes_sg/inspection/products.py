"""Columns of X that are products of others, which stay as they are where one of these is moved.

Whether a column is such a product its numbers tell, whatever its name is: it equals the numbers of
a column, or whether that has one of its levels, times those of another, in every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg import frames
from skbayes_sg.data import evenly_spaced

_ROWS = 200  # that are looked at first
_MOST = 1000  # factors of a product, whose pairs are looked at
_NEAR = 1e-6  # of columns in single precision


class _Part(NamedTuple):
    """What a product may have as a factor: numbers, or whether a cell is a level."""

    column: int
    level: Any
    values: NDArray


def products(X: Any, moved: Sequence[int]) -> dict[int, int]:
    """Columns that are products of moved ones and others, or squares: one of these, by product.

    Of more than 1,000 columns and levels none is looked for.
    """
    rows = evenly_spaced(len(X), _ROWS)
    some = frames.take(X, rows)
    columns = range(len(frames.column_names(X)))
    parts = [part for j in columns for part in _parts(some, j) if np.ptp(part.values) > 0]
    numbers = [part for part in parts if part.level is None]
    if not numbers or len(parts) > _MOST:
        return {}
    # A product has the same sum under any weights of rows, and few other columns have that.
    weight = np.random.default_rng(0).standard_normal(len(rows))
    matrix = np.column_stack([part.values for part in parts])
    sums = np.array([weight @ part.values for part in numbers])
    sizes = np.array([np.abs(weight) @ np.abs(part.values) for part in numbers])
    found: dict[int, int] = {}
    for a in (part for part in parts if part.column in moved):
        apart = np.abs((weight * a.values) @ matrix - sums[:, None])
        for k, other in np.argwhere(apart <= _NEAR * sizes[:, None]):
            column, b = numbers[k].column, parts[other]
            if column not in (a.column, b.column, *found) and _is_product(X, column, a, b):
                found[column] = a.column
    return found


def _parts(X: Any, column: int) -> list[_Part]:
    """Those of a column; none of numbers that are missing somewhere."""
    if frames.is_number(X, column):
        if frames.is_missing(X, column).any():
            return []
        return [_Part(column, None, frames.numbers(X, column).astype(np.float64))]
    present = ~frames.is_missing(X, column)
    cells = frames.values(X, column)[present].tolist()
    codes = {level: code for code, level in enumerate(dict.fromkeys(cells))}
    coded = np.full(len(present), -1)
    coded[present] = [codes[cell] for cell in cells]
    return [_Part(column, level, (coded == code).astype(float)) for level, code in codes.items()]


def _is_level(X: Any, column: int, level: Any) -> NDArray:
    """1 in rows whose cell is there and is the level."""
    cells, missing = frames.values(X, column), frames.is_missing(X, column)
    same = np.zeros(len(cells))
    same[~missing] = [cell == level for cell in cells[~missing].tolist()]
    return same


def _is_product(X: Any, column: int, a: _Part, b: _Part) -> bool:
    """Whether it is in all rows."""
    numbers = [column, *(part.column for part in (a, b) if part.level is None)]
    if any(frames.is_missing(X, j).any() for j in numbers):
        return False
    factors = [
        frames.numbers(X, part.column)
        if part.level is None
        else _is_level(X, part.column, part.level)
        for part in (a, b)
    ]
    return np.allclose(factors[0] * factors[1], frames.numbers(X, column), rtol=_NEAR, atol=0.0)
