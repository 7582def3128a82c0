"""Groups of columns that share a prior precision, and priors with a scale for each column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any

from skbayes_sg.inference.evidence import Hyperprior
from skbayes_sg.priors.shrinkage import Horseshoe, StudentT

_SHRINKAGE: dict[str, Horseshoe | StudentT] = {"horseshoe": Horseshoe(), "student_t": StudentT()}
_REST = "other"
_BETWEEN = "__"  # as ColumnTransformer and make_union join names

Columns = dict[str, tuple[int, ...]]


def shrinkage_of(prior: Any) -> Horseshoe | StudentT | None:
    """The prior with a scale for each column that `prior` names or is; None if it is another.

    Raises
    ------
    ValueError
        If it is a word, and none of these.
    """
    if isinstance(prior, str):
        if prior not in _SHRINKAGE:
            words = " or ".join(f'"{word}"' for word in _SHRINKAGE)
            raise ValueError(
                f"prior must be {words}, an instance of Horseshoe or StudentT, the posterior_ of "
                f"another fit, or None, got {prior!r}"
            )
        return _SHRINKAGE[prior]
    return prior if isinstance(prior, Horseshoe | StudentT) else None


def hyperprior_of(estimator: Any) -> Hyperprior | None:
    """What `prior_groups`, `prior` and `prior_precision` ask to be sampled; None if nothing.

    Raises
    ------
    ValueError
        If they contradict each other.
    """
    shrinkage, asked = shrinkage_of(estimator.prior), estimator.prior_groups
    precision = estimator.prior_precision
    is_learned = isinstance(precision, str) and precision == "learned"
    if shrinkage is None and asked is None:
        return Hyperprior() if is_learned else None
    name = "prior_groups" if shrinkage is None else f"prior={estimator.prior!r}"
    if not is_learned:
        raise ValueError(
            f'{name} samples precisions, so prior_precision must be "learned", got {precision!r}'
        )
    if shrinkage is not None and asked is not None:
        raise ValueError(
            f"{name} has a scale for each column, so prior_groups must be None, got {asked!r}"
        )
    n_features, names = estimator.n_features_in_, getattr(estimator, "feature_names_in_", None)
    if shrinkage is not None:
        shrinkage.validate(n_features)
        asked = "feature"
    names = None if names is None else [str(name) for name in names]
    return Hyperprior(column_groups(asked, n_features, names), shrinkage)


def column_groups(asked: Any, n_features: int, names: list[str] | None) -> Columns | None:
    """Columns of each group by label, in the order of the columns; None for one group of all.

    Parameters
    ----------
    asked : {"feature", "prefix"}, mapping, callable or None
        The parameter `prior_groups`.
    n_features : int
    names : list of str, optional
        Of the columns.

    Raises
    ------
    ValueError, TypeError
        If a column is not there or is in two groups, or if names are needed and there are none.
    """
    if asked is None:
        return None
    if isinstance(asked, Mapping):
        return _of_mapping(asked, n_features, names)
    if isinstance(asked, str) and asked == "feature":
        labels = [f"x{column}" for column in range(n_features)] if names is None else names
        return {label: (column,) for column, label in enumerate(labels)}
    if callable(asked):
        return _by_name(asked, names)
    if isinstance(asked, str) and asked == "prefix":
        groups = _by_name(_prefix, names)
        if set(groups) == {_REST}:
            raise ValueError(
                f'prior_groups="prefix" needs columns named "variable{_BETWEEN}level", as '
                f"ColumnTransformer names them, and none is; give a dict of columns"
            )
        return groups
    raise ValueError(
        'prior_groups must be "feature", "prefix", a dict of columns, a function of a column\'s '
        f"name, or None, got {asked!r}"
    )


def _prefix(name: str) -> str:
    before, between, _ = name.partition(_BETWEEN)
    return before if between else _REST


def _by_name(label_of: Callable[[str], Any], names: list[str] | None) -> Columns:
    if names is None:
        raise ValueError(
            "prior_groups by name needs columns with names, and X has none; give a DataFrame (of a "
            'transformer: set_output(transform="pandas")), or a dict of column numbers'
        )
    groups: dict[str, list[int]] = {}
    for column, name in enumerate(names):
        groups.setdefault(str(label_of(name)), []).append(column)
    return {label: tuple(columns) for label, columns in groups.items()}


def _of_mapping(asked: Mapping[Any, Any], n_features: int, names: list[str] | None) -> Columns:
    label_of: dict[int, str] = {}
    for label, columns in asked.items():
        one = isinstance(columns, str | Integral)
        found = [_number(column, n_features, names) for column in ([columns] if one else columns)]
        if not found:
            raise ValueError(f"prior_groups: group {label!r} has no columns; leave it out")
        for column in found:
            if column in label_of:
                shown = column if names is None else repr(names[column])
                raise ValueError(
                    f"prior_groups: column {shown} is in the groups {label_of[column]!r} and "
                    f"{str(label)!r}; a column has one prior precision"
                )
            label_of[column] = str(label)
    rest = n_features - len(label_of)
    if rest and _REST in label_of.values():
        raise ValueError(
            f"prior_groups: {rest} columns are in no group, and would be a group {_REST!r}, which "
            "is there already; give it another name, or all its columns"
        )
    groups: dict[str, list[int]] = {str(label): [] for label in asked}
    for column in range(n_features):
        groups.setdefault(label_of.get(column, _REST), []).append(column)
    return {label: tuple(columns) for label, columns in groups.items()}


def _number(column: Any, n_features: int, names: list[str] | None) -> int:
    """Of a column that is given by name or number."""
    if isinstance(column, Integral) and not isinstance(column, bool):
        number = int(column)
        if not -n_features <= number < n_features:
            raise ValueError(
                f"prior_groups: X has {n_features} columns, and none with number {number}"
            )
        return number % n_features
    if names is None or column not in names:
        known = "X has no column names" if names is None else "X has no such column"
        raise ValueError(f"prior_groups: column {column!r}: {known}; columns are names or numbers")
    return names.index(column)
