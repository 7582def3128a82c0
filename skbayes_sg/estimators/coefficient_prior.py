"""The prior of coefficients and intercepts: given, sampled, or the posterior of another fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import Data, of_columns, with_columns
from skbayes_sg.estimators.foreign_parameters import called_here
from skbayes_sg.estimators.gaussian_posterior import REST, FittedPosterior
from skbayes_sg.inference.precision import BOUNDS, Hyperprior
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.priors import Prior
from skbayes_sg.priors.shrinkage import Horseshoe, ScaleMixture, StudentT
from skbayes_sg.streams.bayesian_updating import HELD
from skbayes_sg.validation import is_integer, is_word, real_array, require_bounded, require_positive

_PRIOR_VARIANCE = 10.0  # of outputs
_FARTHEST = 3e6  # standard deviations of a column from zero: of its squares three digits are left
_SHRINKAGE: dict[str, ScaleMixture] = {"horseshoe": Horseshoe(), "student_t": StudentT()}
_OF_PRIOR = ("prior_precision", "prior_mean", "prior_groups", "intercept_precision", "noise_prior")
_FLAT = "flat"
_WORDS = ("own", "share", _FLAT)  # of a column: its group is its own, that of the rest, or none
_BETWEEN = "__"  # as ColumnTransformer and make_union join names

Groups = dict[str, tuple[int, ...]]


def prior_of(
    estimator: Any,
    model: Predictor,
    data: Data,
    classes: NDArray | None = None,
    streaming: bool = False,
) -> Prior:
    """The posterior of another fit, or independent normal priors, as an estimator's parameters say.

    A column that has one value has no unit, and its coefficient is held at zero. In a stream, where
    other values may come, it is held where the posterior is read (`Stream.distribution`).
    """
    em, with_intercept = estimator._em(), estimator.fit_intercept
    mean = real_array("prior_mean", estimator.prior_mean)
    if estimator.prior is not None and shrinkage_of(estimator.prior) is None:
        if not isinstance(estimator.prior, FittedPosterior):
            raise TypeError(
                f"prior must be the posterior_ of another fit, or None, got {estimator.prior!r}"
            )
        _require_alone(estimator)
        return estimator.prior.prior_of(model, estimator, classes, data, streaming)

    # The mean of every parameter: that of coefficients is given, and it is 0 for the log noise
    # variance.
    shape = model.shapes["coef"]
    if estimator._design is not None and mean.shape[-1:] == (estimator.n_features_in_,):
        mean = estimator._design.spread(mean)
    if mean.shape not in ((), shape[1:], shape):
        raise ValueError(
            f"prior_mean must be one number, one per feature, shape {shape[1:]}, or one per "
            f"class and feature, shape {shape}; got {mean.shape}"
        )
    require_bounded("prior_mean", mean)
    of_coef = np.broadcast_to(mean, shape).ravel()
    mean = np.append(of_coef, np.zeros(model.dim - len(of_coef)))
    mean[model.dim - len(model.own) :] = model.own_mean
    # Intercepts have their prior at the means of the columns, where they are independent of the
    # coefficients, whatever the columns' zeros are: at the zero of a column of years it would be a
    # prior of the slope. Its mean is 0, and that of y in regression under a learned precision.
    # Above 1,000 parameters, which have no matrix, the prior is at zero.
    n_own = len(model.own)
    units: dict[str, Any] = {"n_others": n_own} if n_own else {}
    if with_intercept:
        of_intercepts = model.unpack(mean)["intercept"]
        if em is not None:
            rows = data.sample
            guess = model.guess(rows.y, rows.weight, rows.known)[0]
            of_intercepts[:] = model.unpack(guess)["intercept"]
        if has_matrix(model.dim):
            units["centre"] = of_columns(data).mean
            of_intercepts -= of_coef.reshape(shape) @ units["centre"]
    if em is None:
        precision = _precision(estimator, model, _given_precision(estimator, model))
        return model.prior(precision, mean, **units)

    # Units of the coefficients, and the first precision to learn from.
    columns, design = of_columns(data), estimator._design
    if design is not None:
        of_levels = (column for factor in design.factors.values() for column in factor.columns)
        with_columns(data, columns := columns.with_levels(of_levels))
    variance, unit = columns.variance, columns.unit
    if with_intercept:
        # Information about a coefficient beside the intercept is a difference of products of rows,
        # of relative rounding error eps (mean / sd)^2 (tests/promises/test_columns.py).
        with np.errstate(divide="ignore"):
            far = np.where(variance > 0, np.abs(columns.mean) / np.sqrt(variance), 0.0)
        column = int(far.argmax())
        if far[column] > _FARTHEST:
            name = estimator._column_names[column]
            raise ValueError(
                f"column {name!r} of X is {far[column]:.1g} of its standard deviations away from "
                "zero, which leaves double precision no digits for its coefficient; take off the "
                "mean, for example by StandardScaler, or leave out a column that has one value but "
                "for rounding errors"
            )
    # one value may be what StandardScaler's rounding leaves, where other rows have numbers near one
    size = np.maximum(1.0, np.abs(columns.mean))
    if design is not None:  # slopes by level are alike in the unit of all of them
        unit = unit.copy()
        for factor in design.slopes.values():
            own = np.array(factor.columns)[unit[list(factor.columns)] > 0]
            unit[own] = np.sqrt(np.mean(unit[own] ** 2)) if len(own) else 0.0
    square = (np.where(unit > 0, unit, size if streaming else HELD * size) / model.unit) ** 2
    # The first precision has as much information as one row, in units of 1 / noise variance for
    # linear regression. With many columns that is next to nothing, and the mode under it far away.
    # So the variance of the outputs of rows under the prior is 10 at most.
    of_rows = variance if with_intercept else variance + columns.mean**2
    of_rows = of_rows / np.where(unit > 0, unit, np.inf) ** 2
    if em.per != "feature" and of_rows.any():
        strongest = max(of_rows[of_rows > 0].mean(), of_rows.sum() / _PRIOR_VARIANCE)
        first = np.full(len(of_rows), strongest)
    else:
        first = np.clip(np.where(of_rows > 0, of_rows, 1.0), *BOUNDS)
    if isinstance(em, Hyperprior) and em.groups is not None:
        flat = np.ones(len(first), bool)
        flat[[column for columns in em.groups.values() for column in columns]] = False
        first[flat] = estimator.intercept_precision  # as that of intercepts: nearly none
    rest = n_own + shape[0] * with_intercept
    # Of a given noise variance all are in units of its inverse, as they are of a sampled one: an
    # intercept known to 1,000 would say much of y in millions. The number that is learned is one
    # that could be given, in units of 1 / y^2. A mixture has its slab in noise standard deviations.
    noise_variance = getattr(model, "noise_variance", None) or 1.0
    weak = _precision(estimator, model, first * square) / noise_variance
    if isinstance(em, Hyperprior) and em.shrinkage is not None:
        square = square / noise_variance
    units["unit"] = np.append(np.tile(square, shape[0]), np.ones(rest))
    return model.prior(weak, mean, **units)


def _require_alone(estimator: Any) -> None:
    """Refuse what says of the prior something else than the posterior that is the prior."""
    defaults = {field.name: field.default for field in fields(estimator)}
    for name in _OF_PRIOR:
        value = getattr(estimator, name, None)  # noise has a prior in linear regression alone
        if np.any(np.asarray(value, object) != defaults.get(name)):
            raise ValueError(
                f"prior is the posterior of another fit and stands in place of {name}, which is "
                f"{value!r}; leave it at {defaults[name]!r}, its default, or set prior=None"
            )


def _given_precision(estimator: Any, model: Predictor) -> NDArray:
    """`prior_precision`, one number or one per feature."""
    n_features = model.shapes["coef"][1]
    if isinstance(estimator.prior_precision, str):
        raise ValueError(
            'prior_precision must be "learned", a number or one per feature, '
            f"got {estimator.prior_precision!r}"
        )
    value = np.asarray(estimator.prior_precision, object)
    if value.ndim == 0:
        remedy = 'use a small number for a weak prior, or "learned"'
        require_positive("prior_precision", value.item(), remedy)
    precision = real_array("prior_precision", estimator.prior_precision)
    if estimator._design is not None and precision.shape == (estimator.n_features_in_,):
        precision = estimator._design.spread(precision)
    if precision.ndim > 0 and precision.shape != (n_features,):
        raise ValueError(
            f"prior_precision must be one number or one per feature, shape ({n_features},), "
            f"got {precision.shape}"
        )
    if not (np.isfinite(precision).all() and precision.min() > 0):
        raise ValueError(
            "prior_precision must be positive and finite for every feature; use small numbers"
        )
    return precision


def _precision(estimator: Any, model: Predictor, precision: NDArray) -> NDArray:
    """Precisions of the coefficients, of the intercepts, and of what else all rows share.

    It is 0 for the log noise variance, which has a prior of its own.
    """
    of_intercepts = estimator.intercept_precision
    require_positive("intercept_precision", of_intercepts, "use a small number for a weak prior")
    require_bounded("intercept_precision", np.array(of_intercepts))
    blocks = [np.broadcast_to(precision.astype(float), model.shapes["coef"]).ravel()]
    if estimator.fit_intercept:
        blocks.append(np.full(model.shapes["intercept"], float(of_intercepts / model.unit**2)))
    noise = [np.zeros(1)] if "log_noise" in model.shapes else []
    return np.concatenate([*blocks, np.array(model.own_sd) ** -2.0, *noise])


# -- what of it is sampled ----------------------------------------------------------------------


def shrinkage_of(prior: Any) -> ScaleMixture | None:
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
                f"prior must be {words}, a ScaleMixture such as Horseshoe(), the posterior_ of "
                f"another fit, or None, got {prior!r}{called_here('prior', prior)}"
            )
        return _SHRINKAGE[prior]
    return prior if isinstance(prior, ScaleMixture) else None


def hyperprior_of(estimator: Any) -> Hyperprior | None:
    """What `prior_groups`, `prior` and `prior_precision` ask to be sampled; None if nothing.

    Raises
    ------
    ValueError
        If they contradict each other.
    """
    shrinkage, asked = shrinkage_of(estimator.prior), estimator.prior_groups
    precision, design = estimator.prior_precision, estimator._design
    is_learned = is_word(precision, "learned")
    if shrinkage is None and asked is None and (design is None or not is_learned):
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
    names = None if names is None else [str(name) for name in names]
    if shrinkage is not None:
        if design is not None:
            n_features, names = design.n_columns, design.column_names
        shrinkage.validate(n_features)
        return Hyperprior(column_groups("feature", n_features, names), shrinkage)
    every = {} if design is None else design.factors
    factors = [column for column, factor in every.items() if factor.tells_spread]
    groups = column_groups(asked, n_features, names, factors)
    if groups is not None and design is not None:
        groups = {label: design.columns_of(*columns) for label, columns in groups.items()}
        groups |= {factor.name: factor.columns for factor in design.slopes.values()}
    return Hyperprior(groups)


def own_factors(estimator: Any) -> tuple[str, ...]:
    """Names of factors that have a precision of their own, as soon as rows may tell it.

    They may share one so far. Of a fit with the posterior of another one: what that one asked for.
    """
    design, asked = estimator._design, estimator.prior_groups
    if isinstance(estimator.prior, FittedPosterior):
        return estimator.prior.own_factors
    if design is None:
        return ()
    groups = column_groups(asked, len(design.names), list(design.names), list(design.factors))
    own = {(label, *columns) for label, columns in (groups or {}).items()}
    return tuple(factor.name for at, factor in design.factors.items() if (factor.name, at) in own)


def column_groups(
    asked: Any, n_features: int, names: list[str] | None, factors: Sequence[int] = ()
) -> Groups | None:
    """Columns of each group by label, in the order of the columns; None for one group of all.

    A column that is not shrunken is in no group.

    Parameters
    ----------
    asked : {"share", "feature", "prefix"}, mapping, callable or None
        The parameter `prior_groups`.
    n_features : int
    names : list of str, optional
        Of the columns.
    factors : sequence of int
        Those that are factors, each of which is a group where nothing else is said.

    Raises
    ------
    ValueError, TypeError
        If a column is not there or is in two groups, or if names are needed and there are none.
    """
    if is_word(asked, "share") or (asked is None and not factors):
        return None
    if asked is None or isinstance(asked, Mapping):
        of_columns = {
            k: columns for k, columns in (asked or {}).items() if not isinstance(k, tuple)
        }
        return _of_mapping(of_columns, n_features, names, factors)
    if is_word(asked, "feature"):
        labels = [f"x{column}" for column in range(n_features)] if names is None else names
        return {label: (column,) for column, label in enumerate(labels)}
    if callable(asked):
        return _by_name(asked, names)
    if is_word(asked, "prefix"):
        groups = _by_name(_prefix, names)
        if set(groups) == {REST}:
            raise ValueError(
                f'prior_groups="prefix" needs columns named "variable{_BETWEEN}level", as '
                f"ColumnTransformer names them, and none is; give a dict of columns"
            )
        return groups
    raise ValueError(
        'prior_groups must be "share", "feature", "prefix", a dict of columns, a function of a '
        f"column's name, or None, got {asked!r}"
    )


def flat_columns(asked: Any) -> list[str]:
    """Names of the columns that `prior_groups` says are not shrunken."""
    if not isinstance(asked, Mapping):
        return []
    return [str(name) for name, columns in asked.items() if is_word(columns, _FLAT)]


def slopes_of(asked: Any, names: list[str] | None, n_features: int) -> list[tuple[int, int]]:
    """Numbers of the columns of each pair in `prior_groups`: of slopes, by the levels of a factor.

    Raises
    ------
    ValueError
        If a column is not there, or if slopes shall have another precision than one of their own.
    """
    if not isinstance(asked, Mapping):
        return []
    pairs = {pair: word for pair, word in asked.items() if isinstance(pair, tuple)}
    for pair, word in pairs.items():
        if len(pair) != 2 or not is_word(word, "own"):
            raise ValueError(
                f"prior_groups: {pair!r} has the value {word!r}; slopes of a column of numbers by "
                'the levels of a factor are {("number", "factor"): "own"}'
            )
    return [
        (_number(number, n_features, names), _number(factor, n_features, names))
        for number, factor in pairs
    ]


def _prefix(name: str) -> str:
    before, between, _ = name.partition(_BETWEEN)
    return before if between else REST


def _by_name(label_of: Callable[[str], Any], names: list[str] | None) -> Groups:
    if names is None:
        raise ValueError(
            "prior_groups by name needs columns with names, and X has none; give a DataFrame (of a "
            'transformer: set_output(transform="pandas"), with sparse_output=False where it has '
            "that), or a dict of column numbers"
        )
    groups: dict[str, list[int]] = {}
    for column, name in enumerate(names):
        groups.setdefault(str(label_of(name)), []).append(column)
    return {label: tuple(columns) for label, columns in groups.items()}


def _of_mapping(
    asked: Mapping[Any, Any], n_features: int, names: list[str] | None, factors: Sequence[int]
) -> Groups:
    """Groups of columns by label, and what a word says of the column that it is given for."""
    shown: Any = [f"x{column}" for column in range(n_features)] if names is None else names
    rest_of = REST if REST not in {shown[column] for column in factors} else f"{REST} columns"
    label_of: dict[int, str | None] = {}
    for label, columns in asked.items():
        if isinstance(columns, str) and columns in _WORDS:
            members = [_number(label, n_features, names)]
            own = shown[members[0]]
            label = {"own": own, "share": rest_of, "flat": None}[columns]
        else:
            is_single = isinstance(columns, str | Integral)
            members = [
                _number(column, n_features, names)
                for column in ([columns] if is_single else columns)
            ]
            label = str(label)
        if not members:
            raise ValueError(f"prior_groups: group {label!r} has no columns; leave it out")
        for column in members:
            if column in label_of:
                clashing = [
                    _FLAT if group is None else group for group in (label_of[column], label)
                ]
                which = column if names is None else repr(names[column])
                raise ValueError(
                    f"prior_groups: column {which} is in the groups {clashing[0]!r} and "
                    f"{clashing[1]!r}; a column has one prior precision"
                )
            label_of[column] = label
    labels = {label for label, columns in asked.items() if columns not in _WORDS}
    ungrouped = [column for column in range(n_features) if column not in label_of]
    numbers = [column for column in ungrouped if column not in factors]
    if numbers and REST in labels:
        raise ValueError(
            f"prior_groups: {len(numbers)} columns are in no group, and would be a group "
            f"{REST!r}, which is there already; give it another name, or all its columns"
        )
    for column in ungrouped:
        label_of[column] = shown[column] if column in factors else rest_of
    groups: dict[str, list[int]] = {str(label): [] for label in asked if label in labels}
    for column in range(n_features):
        if (label := label_of[column]) is not None:
            groups.setdefault(label, []).append(column)
    if not groups:
        raise ValueError(
            f'prior_groups: all columns are "{_FLAT}", and no precision is left to be learned; '
            "give prior_precision a small number instead"
        )
    return {label: tuple(columns) for label, columns in groups.items()}


def _number(column: Any, n_features: int, names: list[str] | None) -> int:
    """Number of a column that is given by name or number."""
    if is_integer(column):
        number = int(column)
        if not -n_features <= number < n_features:
            raise ValueError(
                f"prior_groups: X has {n_features} columns, and none with number {number}"
            )
        return number % n_features
    if names is None or column not in names:
        why = "X has no column names" if names is None else "X has no such column"
        raise ValueError(f"prior_groups: column {column!r}: {why}; columns are names or numbers")
    return names.index(column)
