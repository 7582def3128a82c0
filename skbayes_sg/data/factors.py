"""Factors: columns of categories, and the columns of a matrix that stand for their levels.

A factor has a column of zeros and ones for each level that has rows. `Design` makes these columns
where a data frame becomes a matrix, and knows of each what it stands for; all that comes behind it
sees a matrix. So what is a factor is declared, by the type of a column or by the user, and a row of
a level that has no column is known to be one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skbayes_sg import frames

MISSING = None
"""The level of missing cells."""
UNSEEN = -1
"""The code of a level that is none of a factor's."""
NONE = -1
"""In place of the column of a level that has none."""


@dataclass(frozen=True)
class Factor:
    """A column of categories: its name, its levels, and their columns in a matrix.

    Attributes
    ----------
    name : str
    levels : tuple
        Those that have rows, in the order of the column's type or sorted, `MISSING` last, and later
        ones of a stream behind. Of columns of zeros and ones that were given, their names.
    columns : tuple of int
        Of the matrix, one for each level; `NONE` for a level that others are compared with.
    """

    name: str
    levels: tuple[Any, ...]
    columns: tuple[int, ...]

    def __repr__(self) -> str:
        return f"Factor({self.name!r}, {len(self.levels)} levels)"

    def codes(self, labels: Sequence[Any]) -> NDArray:
        """Number of the level of each label, (n,); `UNSEEN` for others."""
        number = {level: code for code, level in enumerate(self.levels)}
        return np.fromiter((number.get(each, UNSEEN) for each in labels), np.intp, len(labels))

    def columns_at(self, codes: NDArray) -> NDArray:
        """Of the levels of these codes, (n,); `NONE` where there is none."""
        return np.append(np.array(self.columns, np.int32), NONE)[codes]

    def some(self, codes: Sequence[int]) -> Factor:
        """With the levels of some codes alone."""
        levels = tuple(self.levels[code] for code in codes)
        return replace(self, levels=levels, columns=tuple(self.columns[code] for code in codes))

    def with_levels(self, levels: Sequence[Any], first: int) -> Factor:
        """With more levels, whose columns are the next ones from `first` on."""
        columns = range(first, first + len(levels))
        return replace(self, levels=(*self.levels, *levels), columns=(*self.columns, *columns))

    @property
    def tells_spread(self) -> bool:
        """Whether rows may tell the standard deviation tau of the effects of its levels.

        Beside an intercept the likelihood of tau falls as tau^-(L - 1) with L levels, and its
        half-Cauchy prior as tau^-2. So with two levels tau, and their effects, have no variance.
        """
        return len(self.levels) > 2

    @property
    def labels(self) -> list[Any]:
        """Of the levels in a table: what they are, and "missing" of missing cells."""
        found = [_label(level) for level in self.levels]
        if found.count("missing") > 1:  # of which one is a word
            found[self.levels.index(MISSING)] = "(missing)"
        return found

    @property
    def names(self) -> list[str]:
        """Of the columns: the level in brackets, as it is written where two would look alike."""
        labels = self.labels
        texts = list(map(str, labels))
        if len(set(texts)) < len(texts):
            texts = list(map(repr, labels))
        return [f"{self.name}[{text}]" for text in texts]


def _label(level: Any) -> Any:
    """Codes may be whole numbers that an array holds as others; a word may be empty."""
    if isinstance(level, str) and not level:
        return "(empty)"
    if isinstance(level, float) and level.is_integer():
        return int(level)
    return "missing" if level is MISSING else level


def level_name(level: Any) -> str:
    """A level in a message."""
    return str(_label(level))


class NewLevels(NamedTuple):
    """Rows whose level is none of a factor's."""

    rows: NDArray
    """Their numbers, (n,)."""
    labels: list[Any]
    """The level of each, (n,)."""


@dataclass(frozen=True)
class Design:
    """Which columns of a matrix stand for the columns of a data frame, or of an array.

    Attributes
    ----------
    numbers : dict of int to int
        Of each column of numbers: its column of the matrix.
    factors : dict of int to Factor
        Of each column of categories.
    names : tuple of str
        Of the columns of the frame, or x0, x1, ...
    slopes : dict of (int, int) to Factor
        Of a column of numbers and one of categories: columns that hold the number in rows of one
        level each, and zeros elsewhere.
    """

    numbers: dict[int, int]
    factors: dict[int, Factor]
    names: tuple[str, ...] = field(repr=False)
    slopes: dict[tuple[int, int], Factor] = field(default_factory=dict)

    @classmethod
    def of(cls, X: Any, categorical: Sequence[int], flat: Sequence[str] = ()) -> Design:
        """The columns of some rows, of which those of these numbers are factors.

        The first level of a factor that is `flat`, which no prior holds, has no column: the others
        are compared with it.
        """
        levels = {column: levels_of(X, column, labels_of(X, column)) for column in categorical}
        return cls.of_levels(X, levels, flat)

    @classmethod
    def of_levels(cls, X: Any, levels: dict[int, list[Any]], flat: Sequence[str] = ()) -> Design:
        """The same, where the levels of the factors are known; X has the names."""
        named = frames.column_names(X)
        names = tuple(str(name) if frames.is_frame(X) else f"x{name}" for name in named)
        numbers, factors, start = {}, {}, 0
        for column, name in enumerate(names):
            if column not in levels:
                numbers[column] = start
                start += 1
                continue
            own, factor = levels[column], Factor(name, (), ())
            if name in flat and own:
                own, factor = own[1:], Factor(name, (own[0],), (NONE,))
            factors[column] = factor.with_levels(own, start)
            start += len(own)
        return cls(numbers, factors, names)

    def with_slopes(self, pairs: Sequence[tuple[int, int]]) -> Design:
        """With slopes by level, of the numbers of a column by the levels of another one.

        Raises
        ------
        ValueError
            If the columns of a pair are not one of numbers and one of categories.
        """
        slopes, start = {}, self.n_columns
        for number, column in pairs:
            if number not in self.numbers or column not in self.factors:
                raise ValueError(
                    f"prior_groups: {self.names[number], self.names[column]!r} must be a column of "
                    "numbers, whose slope differs, and a factor, between whose levels it does"
                )
            levels = self.factors[column].levels
            name = f"{self.names[number]}:{self.names[column]}"
            slopes[number, column] = Factor(name, (), ()).with_levels(levels, start)
            start += len(levels)
        return replace(self, slopes=slopes)

    @property
    def all_factors(self) -> list[Factor]:
        """Factors, and slopes by their levels."""
        return [*self.factors.values(), *self.slopes.values()]

    @property
    def n_columns(self) -> int:
        """Of the matrix."""
        of_levels = sum(at != NONE for factor in self.all_factors for at in factor.columns)
        return len(self.numbers) + of_levels

    @property
    def column_names(self) -> list[str]:
        """Of the columns of the matrix."""
        found = [""] * self.n_columns
        for column, at in self.numbers.items():
            found[at] = self.names[column]
        for factor in self.all_factors:
            for at, name in zip(factor.columns, factor.names, strict=True):
                if at != NONE:
                    found[at] = name
        return found

    @property
    def column_labels(self) -> list[tuple[str, Any]]:
        """Of the columns of the matrix: a name, and the level of a factor, "" of numbers."""
        found: list[tuple[str, Any]] = [(name, "") for name in self.column_names]
        for factor in self.all_factors:
            for at, label in zip(factor.columns, factor.labels, strict=True):
                if at != NONE:
                    found[at] = (factor.name, label)
        return found

    def columns_of(self, *columns: int) -> tuple[int, ...]:
        """Columns of the matrix that stand for some columns of the frame."""
        found: list[int] = []
        for column in columns:
            factor = self.factors.get(column)
            of_column = (self.numbers[column],) if factor is None else factor.columns
            found += [at for at in of_column if at != NONE]
        return tuple(found)

    def spread(self, values: NDArray) -> NDArray:
        """Numbers of the columns of the frame, on the last axis, as those of the matrix.

        Slopes by level have that of their column of numbers.
        """
        found = np.empty((*values.shape[:-1], self.n_columns))
        for column in range(len(self.names)):
            found[..., list(self.columns_of(column))] = values[..., [column]]
        for (number, _), factor in self.slopes.items():
            found[..., list(factor.columns)] = values[..., [number]]
        return found

    def matrix(self, X: Any, numbers: NDArray) -> tuple[sparse.csr_array, dict[str, NewLevels]]:
        """Rows as a sparse matrix, and those of levels without a column, by factor.

        `numbers` are the columns of numbers, in the order of `self.numbers`. A row takes an entry
        for each of them that is not zero, and one for each factor.
        """
        n_rows, n_numbers = numbers.shape
        width = n_numbers + len(self.factors) + len(self.slopes)
        values = np.ones((n_rows, width), numbers.dtype)
        values[:, :n_numbers] = numbers
        columns = np.empty((n_rows, width), np.int32)
        columns[:, :n_numbers] = list(self.numbers.values())
        new, codes = dict[str, NewLevels](), dict[int, NDArray]()
        for place, (column, factor) in enumerate(self.factors.items(), n_numbers):
            labels = labels_of(X, column)
            codes[column] = factor.codes(labels)
            (unseen,) = np.nonzero(codes[column] == UNSEEN)
            new[factor.name] = NewLevels(unseen, [labels[row] for row in unseen])
            _require_same_kind(factor, new[factor.name].labels)
            at = factor.columns_at(codes[column])
            columns[:, place] = np.maximum(at, 0)
            values[at == NONE, place] = 0.0  # which is left out
        place_of = {column: place for place, column in enumerate(self.numbers)}
        for place, ((number, column), factor) in enumerate(
            self.slopes.items(), n_numbers + len(self.factors)
        ):
            at = factor.columns_at(codes[column])
            columns[:, place] = np.maximum(at, 0)
            values[:, place] = np.where(at == NONE, 0.0, numbers[:, place_of[number]])
            new[factor.name] = new[self.factors[column].name]
        kept = values != 0
        ends = np.append(0, np.cumsum(kept.sum(axis=1)))
        found = sparse.csr_array(
            (values[kept], columns[kept], ends), shape=(n_rows, self.n_columns)
        )
        found.sort_indices()  # columns of later levels are the last ones
        return found, new

    def with_levels_of(self, X: Any) -> Design:
        """With columns, behind all others, for levels that are not there yet.

        Raises
        ------
        ValueError
            If these are text and all others numbers, or reversed.
        """
        start = self.n_columns
        factors, slopes = dict(self.factors), dict(self.slopes)
        for column, factor in self.factors.items():
            new = in_order(set(labels_of(X, column)).difference(factor.levels))
            _require_same_kind(factor, new)
            factors[column] = factor.with_levels(new, start)
            start += len(new)
            for pair, of_slopes in self.slopes.items():
                if pair[1] == column:
                    slopes[pair] = of_slopes.with_levels(new, start)
                    start += len(new)
        return replace(self, factors=factors, slopes=slopes)


def labels_of(X: Any, column: int) -> list[Any]:
    """The level of each row, as values of Python.

    A decimal number is the same level in any precision, as 0.1 is.
    """
    found, missing = frames.cells_of(frames.column(X, column))
    if found.dtype.kind == "f" and found.itemsize < 8:
        different, number = np.unique(found, return_inverse=True)
        found = different.astype(str).astype(np.float64)[number]
    labels = found.tolist()
    for row in np.flatnonzero(missing):
        labels[row] = MISSING
    return labels


def in_order(labels: Iterable[Any]) -> list[Any]:
    """The different labels, sorted: numbers first, then text, `MISSING` last."""
    return sorted(set(labels), key=_rank)


def _rank(label: Any) -> tuple:
    if label is MISSING:
        return (2, "", 0)
    if isinstance(label, bool | int | float):
        return (0, "", label)
    kind = type(label).__name__
    return (1, kind, label if hasattr(label, "__lt__") else str(label))


def levels_of(X: Any, column: int, labels: Sequence[Any]) -> list[Any]:
    """The different ones of some labels, in the order of the column's type, or sorted."""
    found = in_order(labels)
    declared = frames.categories(X, column)
    if declared is None:
        return found
    place = {level: number for number, level in enumerate(declared)}
    return sorted(found, key=lambda level: place.get(level, len(place)))


def _require_same_kind(factor: Factor, new: list[Any]) -> None:
    """Raise ValueError where all levels of a fit are text and new ones are numbers, or reversed."""
    known = {isinstance(level, str) for level in factor.levels if level is not MISSING}
    others = {isinstance(level, str) for level in new if level is not MISSING}
    if known and others and not known & others:
        some = next(level for level in new if level is not MISSING)
        known_some = next(level for level in factor.levels if level is not MISSING)
        raise ValueError(
            f"column {factor.name!r} of X has the level {some!r}, and those of the fit are of "
            f"another type, such as {known_some!r}; give the column the type that it had"
        )
