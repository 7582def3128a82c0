"""Validation loss over prior precisions, and at the precision that variational EM learns."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.metrics import log_loss
from sklearn.utils import Bunch

from skbayes_sg.chains import in_parallel
from skbayes_sg.checks import real_array
from skbayes_sg.empirical_bayes import VariationalEM
from skbayes_sg.estimators.base import BayesianEstimator

_SEGMENT = 5  # values fitted one after another; each fit starts where the last one stopped


def hyperparameter_path(
    estimator: BayesianEstimator,
    X,
    y,
    X_val,
    y_val,
    *,
    prior_precisions: int | ArrayLike = 10,
    em: VariationalEM | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Bunch:
    """Validation loss over prior precisions, and at the learned precision.

    The precision is learned without the validation data. As in `sklearn.linear_model.lasso_path`,
    the fits go from the strongest prior down, and each starts where the last one stopped. They do
    so in runs of five. Each run, and the fit that learns its prior, is a joblib task.

    Parameters
    ----------
    estimator : estimator of this package
        It is not changed. Its `prior_precision`, `warm_start` and `n_jobs` are not used.
    X, y : training data
    X_val, y_val : data on which the loss is measured
    prior_precisions : int or array-like of floats, default=10
        The values, or the number of values between 1e-4 and 1e4 on a logarithmic scale
        (LogisticRegressionCV's ``1 / C``).
    em : VariationalEM, optional
        How the prior is learned; by default ``VariationalEM()``.
    sample_weight : array-like of shape (n_rows,), optional
        Of the training rows.
    n_jobs : int, optional
        Processes; the results do not depend on it.

    Returns
    -------
    sklearn.utils.Bunch
        ``prior_precisions`` (n,), descending. ``loss`` (n,), the mean negative log predictive
        probability (density for regression) of the validation rows, in nats. ``n_passes`` (n,),
        rows read over rows. ``em_loss`` and ``em_n_passes`` of the learned precisions.
        ``em_precisions`` (blocks,), the learned precisions, and ``em_blocks``, their labels.

    Raises
    ------
    ValueError, TypeError
        If values are not positive numbers, or if `fit` raises.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import train_test_split
    >>> from skbayes_sg import BayesianLinearRegressionSGFS, hyperparameter_path
    >>> X, X_val, y, y_val = train_test_split(*load_diabetes(return_X_y=True), random_state=0)
    >>> model = BayesianLinearRegressionSGFS(random_state=0)
    >>> path = hyperparameter_path(model, X, y, X_val, y_val, prior_precisions=[0.001, 0.03, 1.0])
    >>> bool(path.em_loss < 1.01 * path.loss.min())
    True
    """
    values = _grid(prior_precisions)
    runs: list[Any] = np.split(values, range(_SEGMENT, len(values), _SEGMENT))
    learned = VariationalEM() if em is None else em
    data = (X, y, sample_weight, X_val, y_val)
    results = in_parallel(partial(_fit_run, estimator, data), [*runs, learned], n_jobs)
    losses, passes, _ = zip(*results[:-1], strict=True)
    (em_loss,), (em_passes,), (em_blocks, em_precisions) = results[-1]
    return Bunch(
        prior_precisions=values,
        loss=np.concatenate(losses),
        n_passes=np.concatenate(passes),
        em_loss=em_loss,
        em_n_passes=em_passes,
        em_precisions=em_precisions,
        em_blocks=em_blocks,
    )


def _grid(prior_precisions: int | ArrayLike) -> NDArray:
    if isinstance(prior_precisions, (int, np.integer)) and not isinstance(prior_precisions, bool):
        if prior_precisions < 1:
            raise ValueError(f"prior_precisions must be at least 1 value, got {prior_precisions}")
        return np.logspace(4, -4, prior_precisions)
    values = np.sort(np.atleast_1d(real_array("prior_precisions", prior_precisions)))[::-1]
    if values.ndim != 1 or not values.size or not (np.isfinite(values).all() and values.min() > 0):
        raise ValueError(
            f"prior_precisions must be positive finite numbers, got {prior_precisions!r}"
        )
    return values


def _fit_run(estimator: BayesianEstimator, data: tuple, run: NDArray | VariationalEM) -> tuple:
    """Losses and passes of a run of values, or of the learned prior, and the learned prior."""
    X, y, sample_weight, X_val, y_val = data
    model = clone(estimator).set_params(warm_start=True, n_jobs=None)
    loss, passes = [], []
    for value in [run] if isinstance(run, VariationalEM) else run:
        model.set_params(prior_precision=value).fit(X, y, sample_weight=sample_weight)
        loss.append(_loss(model, X_val, y_val))
        passes.append(model.n_passes_)
    blocks = getattr(model, "prior_precision_blocks_", {})
    return loss, passes, (list(blocks), np.array(list(blocks.values())))


def _loss(model, X, y) -> float:
    """Mean negative log predictive probability, or density, of y."""
    if is_classifier(model):
        return float(log_loss(y, model.predict_proba(X), labels=model.classes_))
    mean, std = model.predict(X, return_std=True)
    z = (np.asarray(y) - mean) / std
    return float(np.mean(0.5 * z * z + np.log(std) + 0.5 * np.log(2 * np.pi)))
