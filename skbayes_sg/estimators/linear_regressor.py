"""The base of regressions with coefficients: their data, their family, and streams."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import d2_tweedie_score

from skbayes_sg.data import Data, InMemory, at_hand
from skbayes_sg.estimators.fit_guard import all_or_nothing
from skbayes_sg.estimators.gaussian_posterior import FittedPosterior
from skbayes_sg.estimators.inputs import merged, require_spread
from skbayes_sg.estimators.linear_model import LinearModel
from skbayes_sg.estimators.out_of_core import FirstPass, source_of, weights_or_none
from skbayes_sg.estimators.regressor import NO_WEIGHT, BayesianRegressor
from skbayes_sg.estimators.updating import update
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior
from skbayes_sg.priors.shrinkage import Horseshoe, StudentT
from skbayes_sg.samplers import Sampler
from skbayes_sg.validation import keep_parameters, warn


class LinearRegressor(BayesianRegressor, LinearModel):
    """A regression whose mean is a function of coefficients times features plus intercept."""

    _family: Any
    """The model."""

    def __init__(
        self,
        sampler: Sampler | str | None = None,
        prior_precision: ArrayLike = "learned",
        *,
        fit_intercept: bool = True,
        intercept_precision: float = 0.01,
        prior_mean: ArrayLike = 0.0,
        prior: FittedPosterior | Horseshoe | StudentT | str | None = None,
        prior_groups: Any = None,
        forgetting_factor: float = 1.0,
        n_chains: int | str = "auto",
        n_draws: int | str = "auto",
        burn_in: int | str = "auto",
        thin: int | str = "auto",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        keep_parameters(self, locals())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self._family.variance_power is not None
        return tags

    def score(self, X, y, sample_weight=None) -> float:
        """D^2, the share of the deviance that is explained; 1 at best, 0 for the mean of y.

        It is R^2, the share of the variance, where noise does not depend on the mean.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
        """
        power = self._family.variance_power
        if power is None:
            return super().score(X, y, sample_weight)
        y, predicted, weight = at_hand(y, self.predict(X), sample_weight)
        return float(d2_tweedie_score(y, predicted, sample_weight=weight, power=power))

    # -- data and model -------------------------------------------------------------------------

    def _make_model(self, data: Data) -> Predictor:
        return self._family.of_data(data, self.fit_intercept)

    def _require_targets(self, y: NDArray) -> None:
        self._family.require_targets(y)

    def _notices(self, posterior: Posterior) -> list[str]:
        return super()._notices(posterior) + self._family.notices(posterior.data)

    def _bind(
        self, X, y: NDArray, sample_weight: ArrayLike | None, n_total: float | None = None
    ) -> Posterior:
        streaming = n_total is not None
        X, y, weights = self._of_weight(X, y, sample_weight, n_total)
        data = InMemory.of(X, y, weights, n_total, Predictor.takes_sparse)
        model = self._make_model(data)
        if model.has_location:
            require_spread(y, data.X.dtype)
        data = merged(data, model, streaming or self.sampler is not None)
        return Posterior(model, data, self._prior(model, data, streaming=streaming))

    def _bind_blocks(self, X, y, sample_weight) -> tuple[Posterior, dict[str, Any]]:
        """Posterior of rows out of core, and the facts about them."""
        source = source_of(X, y, sample_weight)
        found = FirstPass(source, labels=False)
        if not found.n_weighted:
            raise ValueError(NO_WEIGHT)

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
        warn(self._family.notices(posterior.data))
        update(self, posterior, {"n_samples_seen_": seen})
        return self


def dispersion_samples(estimator: Any) -> NDArray:
    """Draws of the dispersion, (n_chains, n_draws)."""
    return np.exp(estimator.model_.unpack(estimator.draws_)["log_dispersion"][..., 0])


def dispersion(estimator: Any) -> float:
    """Posterior mean of the dispersion."""
    return float(estimator._moments(estimator.dispersion_samples_)[0])
