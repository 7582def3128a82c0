"""The base of regressions with coefficients and an intercept."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike, NDArray

from skbayes_sg.data import Data, InMemory
from skbayes_sg.estimators.fit_guard import all_or_nothing
from skbayes_sg.estimators.linear_model import LinearPredictor
from skbayes_sg.estimators.out_of_core import FirstPass, source_of, weights_or_none
from skbayes_sg.estimators.targets import BayesianRegressor
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior
from skbayes_sg.validation import in_dtype


class Regressor(BayesianRegressor, LinearPredictor):
    """A regression with coefficients: its posterior, and `partial_fit`."""

    def _make_model(self, data: Data) -> Predictor:
        raise NotImplementedError

    def _bind(
        self, X, y: NDArray, sample_weight: ArrayLike | None, n_total: float | None = None
    ) -> Posterior:
        X, y, weights = self._of_weight(X, y, sample_weight, n_total)
        data = InMemory.of(X, in_dtype("y", y, X.dtype), weights, n_total, Predictor.takes_sparse)
        model = self._make_model(data)
        prior = self._prior(model, data, streaming=n_total is not None)
        posterior = Posterior(model, data, prior)
        return self._few_merged(posterior, n_total)

    def _bind_blocks(self, X, y, sample_weight) -> tuple[Posterior, dict[str, Any]]:
        """Posterior of rows out of core, and the facts about them."""
        source = source_of(X, y, sample_weight)
        found = FirstPass(source, labels=False)
        if found.n_weighted < 2:
            raise ValueError("X must have at least 2 rows of positive weight")

        def encode(y: NDArray, weight: NDArray | None) -> tuple[NDArray, NDArray | None]:
            self._require_targets(y)
            return in_dtype("y", y, source.dtype), weights_or_none(weight, source.dtype)

        data = found.data(encode)
        model = self._make_model(data)
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
        self._update(self._bind(X, y, sample_weight, n_total=X.shape[0]), n_samples_seen_=seen)
        return self
