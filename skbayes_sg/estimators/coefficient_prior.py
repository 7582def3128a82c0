"""The prior of coefficients and intercepts: given, sampled, or the posterior of another fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import Data, of_columns
from skbayes_sg.estimators.gaussian_posterior import FittedPosterior
from skbayes_sg.inference.bayesian_updating import HELD
from skbayes_sg.inference.precision import BOUNDS, Hyperprior
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.priors import Prior
from skbayes_sg.priors.shrinkage import Horseshoe, StudentT
from skbayes_sg.validation import is_integer, is_word, real_array, require_bounded, require_positive

_PRIOR_VARIANCE = 10.0  # of outputs
_FARTHEST = 3e6  # standard deviations of a column from zero: of its squares three digits are left
_SHRINKAGE: dict[str, Horseshoe | StudentT] = {"horseshoe": Horseshoe(), "student_t": StudentT()}
_OF_PRIOR = ("prior_precision", "prior_mean", "prior_groups", "intercept_precision", "noise_prior")
_REST = "other"
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

    # The mean of every parameter: 0 for intercepts and the log noise variance. Under a learned
    # precision the intercept of a regression has that of y.
    shape = model.shapes["coef"]
    if mean.shape not in ((), shape[1:], shape):
        raise ValueError(
            f"prior_mean must be one number, one per feature, shape {shape[1:]}, or one per "
            f"class and feature, shape {shape}; got {mean.shape}"
        )
    require_bounded("prior_mean", mean)
    of_coef = np.broadcast_to(mean, shape).ravel()
    mean = np.append(of_coef, np.zeros(model.dim - len(of_coef)))
    mean[model.dim - len(model.own) :] = model.own_mean
    if with_intercept and em is not None:
        rows = data.sample
        guess = model.guess(rows.y, rows.weight, rows.known)[0]
        model.unpack(mean)["intercept"][:] = model.unpack(guess)["intercept"]
    if em is None:
        return model.prior(_precision(estimator, model, _given_precision(estimator, model)), mean)

    # Units of the coefficients, and the first precision to learn from.
    columns = of_columns(data)
    variance, unit = columns.variance, columns.unit
    if with_intercept:
        # Information about a coefficient beside the intercept is a difference of products of rows,
        # of relative rounding error eps (mean / sd)^2 (tests/promises/test_columns.py).
        with np.errstate(divide="ignore"):
            far = np.where(variance > 0, np.abs(columns.mean) / np.sqrt(variance), 0.0)
        column = int(far.argmax())
        if far[column] > _FARTHEST:
            name = getattr(estimator, "feature_names_in_", range(len(far)))[column]
            raise ValueError(
                f"column {name!r} of X is {far[column]:.1g} of its standard deviations away from "
                "zero, which leaves double precision no digits for its coefficient; take off the "
                "mean, for example by StandardScaler, or leave out a column that has one value but "
                "for rounding errors"
            )
    # one value may be what StandardScaler's rounding leaves, where other rows have numbers near one
    size = np.maximum(1.0, np.abs(columns.mean))
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
    first = first / (getattr(model, "noise_variance", None) or 1.0)
    # Intercepts have their prior at the means of the columns, where they are independent of the
    # coefficients, whatever the columns' zeros are. Above 1,000 parameters, which have no matrix,
    # the priors are at zero.
    n_outputs, n_own = shape[0], len(model.own)
    intercepts = n_outputs * with_intercept
    of_each = np.append(np.tile(square, n_outputs), np.ones(intercepts + n_own))
    units: dict[str, Any] = {"unit": of_each} | ({"n_others": n_own} if n_own else {})
    if intercepts and has_matrix(model.dim):
        units["centre"] = columns.mean
    return model.prior(_precision(estimator, model, first * square), mean, **units)


def _require_alone(estimator: Any) -> None:
    """Refuse what says of the prior something else than the posterior that is the prior."""
    defaults = {field.name: field.default for field in fields(estimator)}
    for name in _OF_PRIOR:
        given = getattr(estimator, name, None)  # noise has a prior in linear regression alone
        if np.any(np.asarray(given, object) != defaults.get(name)):
            raise ValueError(
                f"prior is the posterior of another fit and stands in place of {name}, which is "
                f"{given!r}; leave it at {defaults[name]!r}, its default, or set prior=None"
            )


def _given_precision(estimator: Any, model: Predictor) -> NDArray:
    """`prior_precision`, one number or one per feature."""
    n_features = model.shapes["coef"][1]
    if isinstance(estimator.prior_precision, str):
        raise ValueError(
            'prior_precision must be "learned", a number or one per feature, '
            f"got {estimator.prior_precision!r}"
        )
    given = np.asarray(estimator.prior_precision, object)
    if given.ndim == 0:
        require_positive("prior_precision", given.item(), "use a small number for a weak prior")
    precision = real_array("prior_precision", estimator.prior_precision)
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
    given = estimator.intercept_precision
    require_positive("intercept_precision", given, "use a small number for a weak prior")
    require_bounded("intercept_precision", np.array(given))
    blocks = [np.broadcast_to(precision.astype(float), model.shapes["coef"]).ravel()]
    if estimator.fit_intercept:
        blocks.append(np.full(model.shapes["intercept"], float(given / model.unit**2)))
    noise = [np.zeros(1)] if "log_noise" in model.shapes else []
    return np.concatenate([*blocks, np.array(model.own_sd) ** -2.0, *noise])


# -- what of it is sampled ----------------------------------------------------------------------


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
    is_learned = is_word(precision, "learned")
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


def column_groups(asked: Any, n_features: int, names: list[str] | None) -> Groups | None:
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
    if is_word(asked, "feature"):
        labels = [f"x{column}" for column in range(n_features)] if names is None else names
        return {label: (column,) for column, label in enumerate(labels)}
    if callable(asked):
        return _by_name(asked, names)
    if is_word(asked, "prefix"):
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


def _by_name(label_of: Callable[[str], Any], names: list[str] | None) -> Groups:
    if names is None:
        raise ValueError(
            "prior_groups by name needs columns with names, and X has none; give a DataFrame (of a "
            'transformer: set_output(transform="pandas")), or a dict of column numbers'
        )
    groups: dict[str, list[int]] = {}
    for column, name in enumerate(names):
        groups.setdefault(str(label_of(name)), []).append(column)
    return {label: tuple(columns) for label, columns in groups.items()}


def _of_mapping(asked: Mapping[Any, Any], n_features: int, names: list[str] | None) -> Groups:
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
    if is_integer(column):
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
