"""A table for readers: a data frame where pandas is installed, else arrays that print as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray
from sklearn.utils import Bunch


class Table(Bunch):
    """Columns of equal length by name, and ``index``, a label for each row; it prints as a table.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.inspection.table import Table
    >>> Table(index=["age", "intercept"], mean=np.array([1.0, -20.0]), sd=np.array([0.1, 2 / 3]))
               mean      sd
    age           1     0.1
    intercept   -20  0.6667
    """

    def __repr__(self) -> str:
        columns = [name for name in self if name not in ("index", "attrs")]
        parts = [each if isinstance(each, tuple) else (each,) for each in self["index"]]
        labels = [" ".join(map(str, label)).strip() for label in parts]
        cells = [["", *labels]]
        cells += [[name, *map(_written, self[name])] for name in columns]
        widths = [max(map(len, column)) for column in cells]
        rows = []
        for row in zip(*cells, strict=True):
            first, *figures = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            rows.append("  ".join([first.strip().ljust(widths[0]), *figures]).rstrip())
        return "\n".join(rows)


def table(
    index: Sequence[Any],
    names: list[str],
    columns: dict[str, NDArray],
    attrs: dict[str, Any] | None = None,
):
    """The columns as a DataFrame whose index levels have these names, else as a `Table`.

    ``attrs`` are facts of the whole table. Its ``quantity`` is the name of the columns too.
    """
    attrs = attrs or {}
    try:
        import pandas as pd
    except ImportError:
        return Table(index=list(index), attrs=attrs, **columns)
    # in the order of the rows, so that pandas finds parts of a label without a search
    parts = zip(*(each if isinstance(each, tuple) else (each,) for each in index), strict=True)
    numbers, levels = zip(*(pd.factorize(pd.Index(part)) for part in parts), strict=True)
    rows: Any = levels[0].take(numbers[0]).rename(names[0])
    if len(names) > 1:
        rows = pd.MultiIndex(levels, numbers, names=names)
    frame = pd.DataFrame(columns, index=rows)
    frame.attrs, frame.columns.name = dict(attrs), attrs.get("quantity")
    return frame


def _written(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"
