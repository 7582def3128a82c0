"""What a Pipeline does not pass on to its last step: intervals, quantiles, draws and the table.

scikit-learn's Pipeline has `predict` and `predict_proba`, and no method that it does not know.
These functions take the Pipeline and rows as it takes them. Of an estimator they are its methods.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from numpy.typing import ArrayLike, NDArray

from skbayes_sg.inspection.drawing import fitted_step
from skbayes_sg.inspection.responses import REMEDY


def predict_interval(model: Any, X: Any, level: float = 0.95, **given: Any) -> NDArray:
    """Intervals of the predictions of a Pipeline: ``predict_interval`` of its last step.

    Parameters
    ----------
    model : fitted estimator or Pipeline
    X : array-like of shape (n_rows, n_features)
        Rows as `model` takes them.
    level : float in (0, 1), default=0.95
    **given
        Further parameters of the method, such as `kind`, `offset`, `exposure` or `trials`.

    Returns
    -------
    array of shape (n_rows, 2)
        Lower and upper end: of a new observation by default, or of its mean with ``kind="mean"``.
        Of classifiers the ends for each class probability, (n_rows, n_classes, 2).

    Raises
    ------
    ValueError
        If the last step has no such method, or refuses a parameter.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbayes_sg import BayesianLinearRegression
    >>> from skbayes_sg.inspection import predict_interval
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), BayesianLinearRegression(random_state=0)).fit(X, y)
    >>> predict_interval(model, X[:3], level=0.9).shape
    (3, 2)
    """
    estimator, rows = _last_step(predict_interval, model, X)
    return estimator.predict_interval(rows, level, **given)


def predict_quantiles(model: Any, X: Any, levels: ArrayLike, **given: Any) -> NDArray:
    """Quantiles of the predictions of a Pipeline: ``predict_quantiles`` of its last step.

    Parameters
    ----------
    model : fitted regressor or Pipeline
    X : array-like of shape (n_rows, n_features)
        Rows as `model` takes them.
    levels : array-like of shape (n_levels,)
        Probabilities between 0 and 1.
    **given
        Further parameters of the method, such as `kind`, `offset`, `exposure` or `trials`.

    Returns
    -------
    array of shape (n_rows, n_levels)

    Raises
    ------
    ValueError
        If the last step has no such method, or refuses a parameter.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbayes_sg import BayesianLinearRegression
    >>> from skbayes_sg.inspection import predict_quantiles
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), BayesianLinearRegression(random_state=0)).fit(X, y)
    >>> predict_quantiles(model, X[:3], [0.1, 0.5, 0.9]).shape
    (3, 3)
    """
    estimator, rows = _last_step(predict_quantiles, model, X)
    return estimator.predict_quantiles(rows, levels, **given)


def predict_draws(model: Any, X: Any, **given: Any) -> NDArray:
    """Predictions of a Pipeline under each draw: ``predict_draws`` of its last step.

    Parameters
    ----------
    model : fitted estimator or Pipeline
    X : array-like of shape (n_rows, n_features)
        Rows as `model` takes them.
    **given
        Further parameters of the method, such as `kind`, `random_state`, `offset` or `exposure`.

    Returns
    -------
    array of shape (draws, n_rows)
        And an axis more for several responses, or for the classes of ``kind="mean"``.

    Raises
    ------
    ValueError
        If the last step has no such method, or refuses a parameter.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbayes_sg import BayesianLinearRegression
    >>> from skbayes_sg.inspection import predict_draws
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), BayesianLinearRegression(random_state=0)).fit(X, y)
    >>> total = predict_draws(model, X[:10]).sum(axis=1)  # of ten patients, under each draw
    >>> bool(abs(total.mean() - y[:10].sum()) < 2 * total.std())
    True
    """
    estimator, rows = _last_step(predict_draws, model, X)
    return estimator.predict_draws(rows, **given)


def summary(model: Any, **given: Any):
    """Table of the posterior of a Pipeline in the units of its columns.

    Parameters
    ----------
    model : fitted estimator or Pipeline
    **given
        What ``summary`` of the last step takes, such as `level`, `reference`, `most` or `full`.

    Returns
    -------
    pandas.DataFrame
        That of ``model[-1].summary(scaler=model[:-1])``, with the names of the columns that the
        first step had. Networks have no coefficients of columns, and a row for each block of
        weights.

    Raises
    ------
    ValueError
        If the steps before the last do more than shift and stretch columns, or encode them:
        ``model[-1].summary()`` is in the units after them.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbayes_sg import BayesianLinearRegression
    >>> from skbayes_sg.inspection import summary
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = make_pipeline(StandardScaler(), BayesianLinearRegression(random_state=0)).fit(X, y)
    >>> summary(model).index[:3].tolist()
    ['age', 'sex', 'bmi']
    """
    estimator, before = fitted_step(summary, model, REMEDY, "summary")
    if before is not None and "scaler" in signature(estimator.summary).parameters:
        given = {"scaler": before} | given
    return estimator.summary(**given)


def _last_step(method: Callable, model: Any, X: Any) -> tuple[Any, Any]:
    """The last step of a Pipeline, which has the method, and the rows as it sees them."""
    estimator, before = fitted_step(method, model, REMEDY, method.__name__)
    return estimator, X if before is None else before.transform(X)
