"""What a feature does to predictions: averages over rows under each draw, with intervals.

A coefficient is an effect on logits, of one unit of a column behind all transformers. These are
effects on probabilities, or on the response of a regression, in the columns and units that a
Pipeline is given. Source: math/monte_carlo.md#average-effects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skbayes_sg import frames
from skbayes_sg.inspection.drawing import last_step
from skbayes_sg.inspection.names import positions
from skbayes_sg.inspection.responses import (
    rows_of,
    table_of_outputs,
    under_draws,
    warn_of_rows,
    weights_of,
)
from skbayes_sg.inspection.summary import figures_of
from skbayes_sg.validation import require_choice


def average_effects(
    model: Any,
    X: ArrayLike,
    features: Sequence | str | int | None = None,
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
    features : str, int or list of them, optional
        Columns of X by name or number; by default all, and of a data frame those of numbers for
        derivatives.
    kind : {"derivative", "difference"}, default="derivative"
        "derivative": change of the prediction per unit of the column, at its values in X.
        "difference": of a column of two values the prediction at the larger less that at the
        smaller, for all rows; of other numbers that of one unit more; of words and categories each
        against the first in alphabetical order.
    level : float in (0, 1), default=0.95
        Posterior probability of the equal-tailed intervals.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows in averages.

    Returns
    -------
    pandas.DataFrame
        A row for each feature (and class, of more than two), with the columns of `summary`. Without
        pandas, a Bunch of arrays. ``attrs["rows left out of age"]`` is how many rows the effect of
        a column named age is no average over.

    Warns
    -----
    UserWarning
        If rows are left out, as the cell that would have to move is missing.

    Raises
    ------
    ValueError
        If a feature is not a column of X, if a derivative is asked of a column of words, if a
        column has no cells or no two values to compare, if the estimator has no draws, or if the
        mean of y overflows.

    Notes
    -----
    X may have missing cells (NaN, None, NA, NaT or null) where the steps of a Pipeline impute them.
    Values to compare are those of the cells that are there. All rows count in the comparison of two
    values, which takes the place of what the cell was. A step up or down has no meaning from a cell
    that is missing: such rows are left out of the effect of this column.

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
    weight = weights_of(sample_weight, X)
    labels, draws, left_out = [], [], {}
    for column in _columns(X, features, kind):
        for label, low, high, rows, size in _changes(X, column, kind):
            labels.append(label)
            a, b = (_average(average_effects, model, each, weight[rows]) for each in (high, low))
            draws.append((a - b) / size)
            if len(rows) < len(weight):
                left_out[label] = len(weight) - len(rows)
    warn_of_rows("the effect of a column", left_out, len(weight))
    attrs = {f"rows left out of {label}": float(n) for label, n in left_out.items()}
    return _table(model, labels, draws, level, attrs)


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
    a, b = (
        _average(contrast, model, X, weights_of(sample_weight, X)) for X in map(rows_of, (X_a, X_b))
    )
    return _table(model, [kind], [a - b if kind == "difference" else a / b], level)


def _columns(X: Any, features: Any, kind: str) -> list[int]:
    """Numbers of the columns that are asked for."""
    names = frames.column_names(X)
    if features is None:
        every = range(len(names))
        return [j for j in every if kind == "difference" or frames.is_number(X, j)]
    return positions(features, names)


def _changes(X: Any, column: int, kind: str) -> list[tuple[str, Any, Any, NDArray, float]]:
    """The comparisons of predictions that are the effect of a column.

    Each is a label, two versions of some rows, the numbers of these rows, and a divisor of the
    difference of predictions.
    """
    name = frames.column_names(X)[column]
    label = name if isinstance(name, str) else f"x{name}"
    rows = np.flatnonzero(~frames.is_missing(X, column))
    if not len(rows):
        raise ValueError(f"X: all cells of column {label!r} are missing; leave it out of features")
    is_number = frames.is_number(X, column)
    if kind == "derivative" and not is_number:
        raise ValueError(
            f"features: column {label!r} holds words, which have no derivative; leave it out, "
            'or set kind="difference"'
        )
    if kind == "difference":
        levels = _levels(frames.values(X, column), rows, label)
        if not is_number or len(levels) == 2:
            if len(levels) == 1:
                raise ValueError(
                    f"X: column {label!r} has one value, and so no difference; leave it out of "
                    "features"
                )
            first, *others = (frames.with_cell(X, column, row) for row in levels.values())
            names = [label if is_number else f"{label}[{level}]" for level in list(levels)[1:]]
            every = np.arange(len(X))  # what a cell was, and whether it was, makes no difference
            pairs = zip(names, others, strict=True)
            return [(one, first, other, every, 1.0) for one, other in pairs]
    movable = X if len(rows) == len(X) else frames.take(X, rows)
    values = frames.numbers(movable, column)
    if kind == "difference":
        return [(label, movable, frames.with_values(movable, column, values + 1), rows, 1.0)]
    step = 1e-3 * (float(values.std()) or 1.0)
    low, high = (frames.with_values(movable, column, values + s) for s in (-step, step))
    return [(label, low, high, rows, 2 * step)]


def _levels(cells: NDArray, rows: NDArray, label: str) -> dict[Any, int]:
    """A row of each value, in the order of the values, among rows whose cells are there."""
    row_of = {cells[row]: int(row) for row in rows[::-1]}
    try:
        levels = sorted(row_of)
    except TypeError:
        kinds = ", ".join(sorted({type(cell).__name__ for cell in row_of}))
        raise ValueError(
            f"X: column {label!r} holds values that have no order among them ({kinds}); give them "
            "one type, for example str"
        ) from None
    return {level: row_of[level] for level in levels}


def _average(asking: Callable, model: Any, X: Any, weight: NDArray) -> NDArray:
    """Expected responses averaged over rows, (chains, draws, outputs)."""
    total_weight = weight.sum()
    if not total_weight > 0:
        raise ValueError("sample_weight is zero for all rows that are compared")
    weight = weight / total_weight
    total: Any = 0.0
    for rows, each in under_draws(asking, model, X):
        total = total + each @ weight[rows]
    return total


def _table(
    model: Any,
    labels: list[str],
    draws: list[NDArray],
    level: float,
    attrs: dict[str, float] | None = None,
):
    """Figures of each quantity, and of each class or response where there are several outputs."""
    if not labels:
        raise ValueError("features: there are no columns whose effect could be computed")
    estimator, _ = last_step(model)
    columns = figures_of(np.concatenate(draws, axis=2), estimator.draw_weights_, level)
    return table_of_outputs(estimator, "term", labels, columns, attrs)
