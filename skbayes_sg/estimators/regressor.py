"""The bases of regressions: numbers y and their weights, and those with coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import column_or_1d

from skbayes_sg.data import Data, InMemory, at_hand
from skbayes_sg.estimators.base import BayesianEstimator
from skbayes_sg.estimators.fit_guard import all_or_nothing
from skbayes_sg.estimators.inputs import require_spread, rows_that_count
from skbayes_sg.estimators.linear_model import LinearModel
from skbayes_sg.estimators.out_of_core import FirstPass, is_out_of_core, source_of, weights_or_none
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior
from skbayes_sg.validation import checked_weights, real_array, warn

_NO_WEIGHT = "sample_weight is zero for all rows; at least one row needs a positive weight"

_CONSTANT = (
    "y has one value in all rows: predictions are near it, X says nothing of it, and diagnostics_ "
    "may not resolve so little noise; check that y is the column that was meant"
)


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
            raise ValueError(_NO_WEIGHT)
        X, y, counted = rows_that_count(X, y, weight, n_total is not None, "sample_weight")
        return X, y, counted

    def _explained(self, posterior: Posterior, warnings: list[str]) -> list[str]:
        """Of a constant y one warning stands for all that the figures of its chains say.

        A sample of the rows does not tell whether it is constant: events may be rare.
        """
        data = posterior.data
        is_constant = data.sample is data and bool((data.sample.y == data.sample.y[0]).all())
        return [_CONSTANT] if is_constant else super()._explained(posterior, warnings)

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
        self._sample(self._bind(X, y, sample_weight), X, y, n_samples_seen_=X.shape[0])
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


class Regressor(BayesianRegressor, LinearModel):
    """A regression with coefficients: its posterior, and `partial_fit`."""

    def _make_model(self, data: Data) -> Predictor:
        raise NotImplementedError

    def _notices_of_targets(self, posterior: Posterior) -> list[str]:
        """Warnings about numbers y, of a fit and of each chunk of a stream."""
        return []

    def _bind(
        self, X, y: NDArray, sample_weight: ArrayLike | None, n_total: float | None = None
    ) -> Posterior:
        streaming = n_total is not None
        X, y, weights = self._of_weight(X, y, sample_weight, n_total)
        data = InMemory.of(X, y, weights, n_total, Predictor.takes_sparse)
        model = self._make_model(data)
        if model.has_location:
            require_spread(y, data.X.dtype)
        if self._merges(model, data, streaming):
            data = data.merged()
        return Posterior(model, data, self._prior(model, data, streaming=streaming))

    def _bind_blocks(self, X, y, sample_weight) -> tuple[Posterior, dict[str, Any]]:
        """Posterior of rows out of core, and the facts about them."""
        source = source_of(X, y, sample_weight)
        found = FirstPass(source, labels=False)
        if not found.n_weighted:
            raise ValueError(_NO_WEIGHT)

        def encode(y: NDArray, weight: NDArray | None) -> tuple[NDArray, NDArray | None]:
            self._require_targets(y)
            return y.astype(np.float64), weights_or_none("sample_weight", weight, source.dtype)

        data = found.data(encode)
        model = self._make_model(data)
        if model.has_location:
            require_spread(data.sample.y, source.dtype)
        return Posterior(model, data, self._prior(model, data)), {"n_samples_seen_": X.shape[0]}

    @all_or_nothing
    def partial_fit(self, X, y, sample_weight=None):
        """Update the posterior by a chunk of rows: the posterior of one is the prior of the next.

        The posterior of linear regression is exact up to 1,000 parameters: any chunks in any order
        lead to that of all rows (math/streams.md#streams-as-bayesian-updating). Its `coef_std_` and
        `noise_variance_` are infinite until the noise variance has a mean, at three rows or so. For
        the rest see `BayesianLogisticRegressionSGFS.partial_fit`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
            Factor of each row's log likelihood; an integer weight is a repetition.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data or parameters are impossible; raised before any update.
        """
        self._validate_parameters()
        X, y = self._validate_pair(X, y, reset=not hasattr(self, "model_"))
        seen = getattr(self, "n_samples_seen_", 0) + X.shape[0]
        posterior = self._bind(X, y, sample_weight, n_total=X.shape[0])
        warn(self._notices_of_targets(posterior))
        self._update(posterior, n_samples_seen_=seen)
        return self
