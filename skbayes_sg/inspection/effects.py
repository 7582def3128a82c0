"""What a feature does to predictions: averages over rows under each draw, with intervals.

A coefficient is an effect on logits, of one unit of a column behind all transformers. These are
effects on probabilities, or on the response of a regression, in the columns and units that a
Pipeline is given. Source: math/monte_carlo.md#average-effects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight

from skbayes_sg.inspection.drawing import last_step
from skbayes_sg.inspection.responses import rows_of, table_of_outputs, under_draws
from skbayes_sg.inspection.summary import figures_of
from skbayes_sg.validation import require_choice

_STEP = 1e-3  # of a derivative, in standard deviations of the column


class _Change(NamedTuple):
    """Two values of a column, (n_rows,) or one, whose predictions are compared."""

    label: str
    column: Any
    low: Any
    high: Any
    size: float = 1.0
    """By which the difference of predictions is divided."""


def average_effects(
    model: Any,
    X: ArrayLike,
    features: Sequence | None = None,
    *,
    kind: str = "derivative",
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
):
    """Average effect of each feature on predictions, with posterior intervals.

    Predictions are the probability of ``classes_[1]``, or of each of more than two classes, and the
    expected response of a regression. Under each draw of the posterior the effect is averaged over
    the rows of X; the table has the posterior of this average.

    Parameters
    ----------
    model : fitted estimator or Pipeline
        The steps of a Pipeline before the estimator transform the changed rows.
    X : array-like of shape (n_rows, n_features)
        Rows over which effects are averaged, as the model is given them.
    features : list of str or int, optional
        Columns of X by name or number; by default all, and of a data frame those of numbers for
        derivatives.
    kind : {"derivative", "difference"}, default="derivative"
        "derivative": change of the prediction per unit of the column, at its values in X.
        "difference": of a column of two values the prediction at the larger less that at the
        smaller, for all rows; of other numbers that of one unit more; of words each against the
        first in alphabetical order.
    level : float in (0, 1), default=0.95
        Posterior probability of the equal-tailed intervals.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows in averages.

    Returns
    -------
    pandas.DataFrame
        A row for each feature (and class, of more than two), with the columns of `summary`. Without
        pandas, a Bunch of arrays.

    Raises
    ------
    ValueError
        If a feature is not a column of X, or a derivative is asked of a column of words.

    Notes
    -----
    Source: math/monte_carlo.md#average-effects. Statisticians call these average marginal effects.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbayes_sg import BayesianLogisticRegressionSGFS
    >>> from skbayes_sg.inspection import average_effects
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X = X[["mean radius", "mean texture"]]
    >>> model = make_pipeline(StandardScaler(), BayesianLogisticRegressionSGFS(random_state=0))
    >>> effects = average_effects(model.fit(X, y), X)
    >>> bool(effects.loc["mean radius", "eti95_ub"] < 0)
    True
    """
    require_choice("kind", kind, ("derivative", "difference"))
    X = rows_of(X)
    weight = _weight(sample_weight, X)
    changes = [
        change for column in _columns(X, features, kind) for change in _changes(X, column, kind)
    ]
    draws = [
        (_average(model, _with(X, change.column, change.high), weight)
         - _average(model, _with(X, change.column, change.low), weight)) / change.size
        for change in changes
    ]  # fmt: skip
    return _table(model, [change.label for change in changes], draws, level)


def contrast(
    model: Any,
    X_a: ArrayLike,
    X_b: ArrayLike,
    *,
    kind: str = "difference",
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
):
    """Average prediction of some rows against that of others, with posterior intervals.

    Parameters
    ----------
    model : fitted estimator or Pipeline
    X_a, X_b : array-like of shape (n_rows, n_features)
        Two profiles: a row each, or many rows, whose predictions are averaged under each draw.
    kind : {"difference", "ratio"}, default="difference"
        The average of `X_a` less that of `X_b`, or over it.
    level : float in (0, 1), default=0.95
        Posterior probability of the equal-tailed intervals.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows in averages, of both alike.

    Returns
    -------
    pandas.DataFrame
        One row, or one for each of more than two classes, with the columns of `summary`. Without
        pandas, a Bunch of arrays.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianLinearRegressionSGFS
    >>> from skbayes_sg.inspection import contrast
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = BayesianLinearRegressionSGFS(random_state=0).fit(X, y)
    >>> higher = contrast(model, X.assign(bmi=X["bmi"] + 5), X)
    >>> bool(higher.loc["difference", "eti95_lb"] > 0)
    True
    """
    require_choice("kind", kind, ("difference", "ratio"))
    a, b = (_average(model, X, _weight(sample_weight, X)) for X in (rows_of(X_a), rows_of(X_b)))
    return _table(model, [kind], [a - b if kind == "difference" else a / b], level)


def _weight(sample_weight: ArrayLike | None, X: Any) -> NDArray:
    """Weights of the rows, whose sum is 1."""
    weight = _check_sample_weight(sample_weight, np.empty((len(X), 1)), ensure_non_negative=True)
    return weight / weight.sum()


def _columns(X: Any, features: Sequence | None, kind: str) -> list:
    """Features as they stand in X: names of a data frame, or numbers."""
    names = list(X.columns) if hasattr(X, "columns") else list(range(X.shape[1]))
    if features is None:
        return [name for name in names if kind == "difference" or _is_number(_values(X, name))]
    unknown = [feature for feature in features if feature not in names]
    if unknown:
        raise ValueError(f"features: X has no column {unknown[0]!r}; its columns are {names}")
    return list(features)


def _changes(X: Any, column: Any, kind: str) -> list[_Change]:
    """The comparisons of predictions that are the effect of a column."""
    values, label = _values(X, column), column if isinstance(column, str) else f"x{column}"
    if kind == "derivative":
        if not _is_number(values):
            raise ValueError(
                f"features: column {label!r} holds words, which have no derivative; leave it out, "
                'or set kind="difference"'
            )
        step = _STEP * (values.std() or 1.0)
        return [_Change(label, column, values - step, values + step, 2 * step)]
    levels = np.unique(values)
    if _is_number(values) and len(levels) != 2:
        return [_Change(label, column, values, values + 1)]
    named = [label] if _is_number(values) else [f"{label}[{level}]" for level in levels[1:]]
    pairs = zip(named, levels[1:], strict=True)
    return [_Change(name, column, levels[0], level) for name, level in pairs]


def _values(X: Any, column: Any) -> NDArray:
    return np.asarray(X[column]) if hasattr(X, "columns") else X[:, column]


def _is_number(values: NDArray) -> bool:
    return np.issubdtype(values.dtype, np.number)


def _with(X: Any, column: Any, values: Any) -> Any:
    """A copy of X with other values in a column."""
    if hasattr(X, "columns"):
        return X.assign(**{column: values})
    X = X.copy()
    X[:, column] = values
    return X


def _average(model: Any, X: Any, weight: NDArray) -> NDArray:
    """Expected responses averaged over rows, (chains, draws, outputs)."""
    total: Any = 0.0
    for rows, each in under_draws(model, X):
        total = total + each @ weight[rows]
    return total


def _table(model: Any, labels: list[str], draws: list[NDArray], level: float):
    """Figures of each quantity, and of each class or response where there are several outputs."""
    estimator, _ = last_step(model)
    columns = figures_of(np.concatenate(draws, axis=2), estimator.draw_weights_, level)
    return table_of_outputs(estimator, "term", labels, columns)
