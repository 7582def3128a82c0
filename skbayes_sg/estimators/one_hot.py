"""Columns of zeros and ones that were made elsewhere: whether they are the levels of a factor.

Columns of a group of `prior_groups` are taken for the levels of a factor if each has two values at
most, of which each row has the larger one in exactly one column. What else they may be, such as a
factor without its first level, or symptoms, is not guessed: `levels_of` says why it is no factor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skbayes_sg.data import Batch, Data
from skbayes_sg.data.factors import Factor
from skbayes_sg.estimators.new_levels import Levels
from skbayes_sg.linalg.scores import dense

_FIRST_ROWS = 100  # that rule out most columns of which there might be slopes
_REMEDY = (
    "give the factor as one column of categories (categorical_features), or a column of zeros and "
    'ones for each level that rows may have; or set new_levels="zero" if zeros are a level'
)


@dataclass(frozen=True, eq=False)
class Tally:
    """What rows say of the columns of a group. A stream adds up those of its chunks."""

    low: NDArray
    high: NDArray
    """Smallest and largest value of each column, (K,)."""
    on: NDArray
    """Rows in which a column has the larger one, (K,)."""
    none: int
    one: int
    several: int
    """Rows in which no column, one, or several have it."""
    empty: int
    filled: int
    """Rows in which no column, or several, are not 0."""
    others: bool
    """Whether a column has more than two values."""
    ends: tuple[int, ...]
    """Where the columns of each factor within the group end, if they can be told apart."""
    slope_of: int | None
    """A column of X that is the sum of these."""

    @property
    def n_rows(self) -> int:
        return self.none + self.one + self.several

    @property
    def is_one_hot(self) -> bool:
        """Whether the columns are the levels of one factor, or of several one after the other."""
        return not self.others and (self.one == self.n_rows or len(self.ends) > 1)

    @property
    def is_of_slopes(self) -> bool:
        """Whether rows have one column each, times a number."""
        return not self.filled and (self.slope_of is not None or (self.others and not self.empty))

    def and_of(self, other: Tally) -> Tally:
        """Of the rows of both."""
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        between = [
            (low < value) & (value < high)
            for tally in (self, other)
            for value in (tally.low, tally.high)
        ]
        sums = {
            name: getattr(self, name) + getattr(other, name)
            for name in ("on", "none", "one", "several", "empty", "filled")
        }
        return Tally(
            low,
            high,
            **sums,
            others=self.others or other.others or bool(np.any(between)),
            ends=self.ends if self.ends == other.ends else (),
            slope_of=self.slope_of if self.slope_of == other.slope_of else None,
        )


def columns_of_groups(estimator: Any, em: Any) -> dict[str, list[int]]:
    """Columns of numbers of each group that a user has named, if they are several."""
    if estimator.prior_groups is None:
        return {}
    groups, design = getattr(em, "groups", None) or {}, estimator._design
    if getattr(em, "shrinkage", None) is not None:
        return {}
    if design is not None:
        numbers = set(design.numbers.values())
        groups = {label: [one for one in each if one in numbers] for label, each in groups.items()}
    return {label: list(columns) for label, columns in groups.items() if len(columns) > 1}


def tallies_of(groups: Mapping[str, list[int]], data: Data) -> dict[str, Tally]:
    """What all rows say of the columns of each group."""
    if not groups:
        return {}

    def extremes(batch: Batch) -> tuple[list]:
        return ([[_extremes(batch.X[:, columns]) for columns in groups.values()]],)

    of_blocks = zip(*data.reduce(extremes, data.n_features)[0], strict=True)
    ends = [
        (np.min([each[0] for each in one], axis=0), np.max([each[1] for each in one], axis=0))
        for one in of_blocks
    ]

    def counts(batch: Batch) -> tuple:
        each = zip(groups.values(), ends, strict=True)
        return tuple(
            number for columns, two in each for number in _counts(batch.X[:, columns], *two)
        )

    sums = data.reduce(counts, data.n_features)
    found = {}
    for k, (label, columns) in enumerate(groups.items()):
        on, none, several, empty, filled, others = sums[6 * k : 6 * k + 6]
        tally = Tally(
            *ends[k],
            on,
            int(none),
            int(data.n_rows - none - several),
            int(several),
            int(empty),
            int(filled),
            bool(others),
            (len(columns),),
            None,
        )
        if several and not others:
            tally = replace(tally, ends=_ends_of_factors(columns, *ends[k], data))
        if not filled and (empty or others):
            tally = replace(tally, slope_of=_sum_of(columns, data))
        found[label] = tally
    return found


def _extremes(X: Any) -> tuple[NDArray, NDArray]:
    low, high = X.min(axis=0), X.max(axis=0)
    if sparse.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    return low, high


def _is_on(X: NDArray, low: NDArray, high: NDArray) -> NDArray:
    """Where a column has the larger one of two values, or a value other than 0 in all rows."""
    return np.where(high > low, X - low > high - X, X != 0)


def _counts(X: Any, low: NDArray, high: NDArray) -> tuple:
    """The numbers of a `Tally` of a block; in sparse rows, which stay sparse, all but 0 is on."""
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        X.eliminate_zeros()
        on = np.bincount(X.indices, minlength=X.shape[1])
        per_row = filled = np.diff(X.indptr)
        others = np.sum(X.data != high[X.indices])
    else:
        X = dense(X)
        is_on = _is_on(X, low, high)
        on, per_row, filled = is_on.sum(axis=0), is_on.sum(axis=1), (X != 0).sum(axis=1)
        others = np.sum((low != X) & (high != X))
    of_rows = (per_row == 0, per_row > 1, filled == 0, filled > 1)
    return on, *(np.sum(each) for each in of_rows), others


def _ends_of_factors(columns: list[int], low: NDArray, high: NDArray, data: Data) -> tuple:
    """Where the columns of each factor end, if these come one factor after the other.

    That is where all rows have had the same number of ones, and one more than at the end before.
    """

    def reached(batch: Batch) -> tuple[list, list]:
        ones = _is_on(dense(batch.X[:, columns]), low, high).cumsum(axis=1)
        return [ones.min(axis=0)], [ones.max(axis=0)]

    least, most = data.reduce(reached, data.n_features)
    least, most = np.min(least, axis=0), np.max(most, axis=0)
    same = np.where(least == most, least, 0)
    ends = [int(np.flatnonzero(same == n)[-1]) + 1 for n in range(1, same[-1] + 1) if n in same]
    return tuple(ends) if len(ends) == same[-1] else ()


def _sum_of(columns: list[int], data: Data) -> int | None:
    """The first other column that is the sum of these in all rows."""
    first = dense(data.sample.X[:_FIRST_ROWS])[:, : data.n_features]
    equal = (first == first[:, columns].sum(axis=1, keepdims=True)).all(axis=0)
    equal[columns] = False
    some = np.flatnonzero(equal)

    def differ(batch: Batch) -> tuple[NDArray]:
        total = batch.X[:, columns].sum(axis=1)[:, None]
        return ((dense(batch.X[:, some]) != total).sum(axis=0),)

    if not len(some):
        return None
    same = some[data.reduce(differ, data.n_features)[0] == 0]
    return int(same[0]) if len(same) else None


# -- what is a factor -----------------------------------------------------------------------------


def levels_of(
    tallies: Mapping[str, Tally],
    groups: Mapping[str, list[int]],
    names: list[str],
    by_prefix: bool = False,
) -> tuple[dict[str, Levels], dict[str, str]]:
    """Factors and slopes by level, by name; and of the other groups, why they are none.

    Raises
    ------
    ValueError
        If the groups are those `by_prefix`, and one has the columns of several factors.
    """
    found: dict[str, Levels] = {}
    why: dict[str, str] = {}
    for label, tally in tallies.items():
        columns = groups[label]
        if tally.is_one_hot:
            ends = tally.ends
            parts = [columns[start:end] for start, end in zip((0, *ends[:-1]), ends, strict=True)]
            several = len(parts) > 1
            of_parts = [label]
            if several:
                of_parts = [f"{names[part[0]]} to {names[part[-1]]}" for part in parts]
            if several and by_prefix:
                raise ValueError(
                    f'prior_groups="prefix": the columns that begin with {label!r} are those of '
                    f"several factors ({', '.join(map(repr, of_parts))}), each of which has a "
                    "precision of its own; give the data frame with its columns of categories as "
                    "it is, or a transformer for each factor, or prior_groups as a dict"
                )
            off = np.where(tally.high > tally.low, tally.low, 0.0)
            for name, start, part in zip(of_parts, (0, *ends), parts, strict=False):
                at = slice(start, start + len(part))
                factor = Factor(name, tuple(names[column] for column in part), tuple(part))
                found[name] = Levels(
                    factor,
                    label,
                    tuple((tally.on[at] > 0).tolist()),
                    tuple(off[at].tolist()),
                    tuple(tally.high[at].tolist()),
                )
        elif tally.is_of_slopes:
            factor = Factor(label, tuple(names[column] for column in columns), tuple(columns))
            levels = Levels.of(factor, label, [True] * len(columns))
            known = tally.slope_of is not None
            found[label] = levels._replace(known=known, slope_of=tally.slope_of)
        elif tally.others:
            why[label] = "its columns hold more than two values"
        else:
            number = "several of its columns" if tally.several else "none of its columns"
            why[label] = f"some rows have {number}"
    return found, why


def warnings_of(tallies: Mapping[str, Tally], why: Mapping[str, str], new_levels: str) -> list[str]:
    """That a group which may be a factor is taken for none, and what to do.

    Raises
    ------
    ValueError
        If new levels of a group shall be refused, and cannot be told.
    """
    found = []
    for label, reason in why.items():
        tally = tallies[label]
        if tally.others or new_levels == "zero":
            continue
        said = (
            f"the group {label!r} of prior_groups is taken for no factor, because {reason}: a row "
            "of zeros there may be no new level"
        )
        if new_levels == "refuse":
            raise ValueError(f'new_levels="refuse" cannot refuse: {said}; {_REMEDY}')
        if tally.one > 0.5 * tally.n_rows:
            found.append(f"{said}, and the effect of new levels is zero; {_REMEDY}")
    return found
