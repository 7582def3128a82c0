"""The base of all regressions: numbers y, and their weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import column_or_1d

from skbayes_sg.data import at_hand
from skbayes_sg.estimators.base import BayesianEstimator
from skbayes_sg.estimators.fit_guard import all_or_nothing
from skbayes_sg.estimators.out_of_core import is_out_of_core
from skbayes_sg.posterior import Posterior
from skbayes_sg.validation import checked_weights, in_dtype, real_array


class BayesianRegressor(RegressorMixin, BayesianEstimator):
    """A regression: its data and `fit`. Model and posterior are the subclass's."""

    def _require_targets(self, y: NDArray) -> None:
        """Raise ValueError for numbers that the model does not have."""

    # -- data ---------------------------------------------------------------------------------

    def _validate_pair(self, X, y, reset: bool) -> tuple[Any, NDArray]:
        """X, and y in float64: a vector, or several columns where the estimator takes them."""
        several = self.__sklearn_tags__().target_tags.multi_output
        X, y = self._validate_data(X, y, reset=reset, multi_output=several)
        if y.ndim == 1 or y.shape[1] == 1 or not several:
            y = column_or_1d(y, warn=True)
        y = real_array("y", y)
        if np.isnan(y).any():  # None of an object array
            raise ValueError("y contains NaN; leave out the rows without a target")
        with np.errstate(over="ignore"):
            if not np.isfinite(np.vdot(y, y)):
                raise ValueError("y holds values whose squares overflow; divide it by its scale")
        self._require_targets(y)
        return X, y

    def _bind(
        self, X, y: NDArray, sample_weight: ArrayLike | None, n_total: float | None = None
    ) -> Posterior:
        """Posterior of the model given validated data, without rows of weight 0."""
        raise NotImplementedError

    @staticmethod
    def _of_weight(
        X, y: NDArray, sample_weight: ArrayLike | None, n_total: float | None
    ) -> tuple[Any, NDArray, NDArray | None]:
        """Rows of positive weight, or all rows of a stream; and weights in X's precision."""
        weight = checked_weights(sample_weight, len(y))
        if not (weight > 0).any():
            raise ValueError(
                "sample_weight is zero for all rows; at least one row needs a positive weight"
            )
        if n_total is None and not weight.all():
            kept = np.flatnonzero(weight)
            X, y, weight = X[kept], y[kept], weight[kept]
        if n_total is None and len(y) < 2:
            raise ValueError(
                f"X must have at least 2 rows of positive weight, got n_samples = {len(y)}"
            )
        ones = (weight == 1).all()
        return X, y, None if ones else in_dtype("sample_weight", weight, X.dtype)

    def _checked_rows(self, X, y, sample_weight: ArrayLike | None):
        X, y = self._validate_pair(X, y, reset=False)
        return X, y, checked_weights(sample_weight, len(y))

    def _posterior_of(self, X, y, sample_weight: ArrayLike | None) -> Posterior:
        if is_out_of_core(X):
            return self._bind_blocks(X, y, sample_weight)[0]
        return self._bind(*self._validate_pair(X, y, reset=False), sample_weight)

    # -- fitting ------------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        """Sample the posterior.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            float32 stays float32. Sparse rows of more than 1,000 columns stay sparse with the
            default sampler, others are made dense one minibatch at a time. Rows may be on disk or
            on workers, as in `BayesianLogisticRegressionSGFS`.
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
            Factor of each row's log likelihood; an integer weight is a repetition.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data or parameters are impossible; raised before any sampling.
        FloatingPointError
            If a chain diverges.
        """
        self._validate_parameters()
        if self._fitted_in_blocks(X, y, sample_weight):
            return self
        X, y = self._validate_pair(X, y, reset=True)
        self._run_chains(self._bind(X, y, sample_weight), X, y, n_samples_seen_=X.shape[0])
        return self

    def score(self, X, y, sample_weight=None) -> float:
        """R^2, the share of the variance that is explained, in the mean over responses.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Or a dask collection, whose predictions are computed partition by partition.
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
        """
        y, predicted, weight = at_hand(y, self.predict(X), sample_weight)
        return float(r2_score(y, predicted, sample_weight=weight))
