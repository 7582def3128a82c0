"""The base of regressions with a link function: prior, predictions, score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import d2_tweedie_score

from skbayes_sg.data import Data
from skbayes_sg.estimators.gaussian_posterior import FittedPosterior
from skbayes_sg.estimators.mixture_predictions import MixturePredictions
from skbayes_sg.estimators.regressor import Regressor
from skbayes_sg.models import Model
from skbayes_sg.models.generalized_linear import GeneralizedLinear
from skbayes_sg.posterior import Posterior
from skbayes_sg.priors.shrinkage import Horseshoe, StudentT
from skbayes_sg.samplers import Sampler

_ROUNDING = 1e-4  # of rates in single precision


class GeneralizedLinearRegressor(MixturePredictions, Regressor):
    """A regression whose mean is a function of coefficients times features plus intercept."""

    _family: type[GeneralizedLinear]
    _ratio = "rate_ratio"
    _power: float
    """Of the mean in the variance function of the deviance that `score` compares."""

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
        self.sampler = sampler
        self.prior_precision = prior_precision
        self.fit_intercept = fit_intercept
        self.intercept_precision = intercept_precision
        self.prior_mean = prior_mean
        self.prior = prior
        self.prior_groups = prior_groups
        self.forgetting_factor = forgetting_factor
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.burn_in = burn_in
        self.thin = thin
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    # -- the model ----------------------------------------------------------------------------

    def _make_model(self, data: Data) -> GeneralizedLinear:
        return self._family(data.n_features, self.fit_intercept)

    def _mean(self, model: Model, data: Data) -> NDArray:
        """Prior mean of every parameter; under a learned precision the intercept's is that of y."""
        assert isinstance(model, GeneralizedLinear)
        mean, sample = super()._mean(model, data), data.sample
        mean[model.dim - len(model.own) :] = model.own_mean
        if self.fit_intercept and self._em() is not None:
            mean[data.n_features] = model.guess(sample.y, sample.weight)[0, data.n_features]
        return mean

    def _precision(self, model: Model, precision: NDArray) -> NDArray:
        """Prior precision of every parameter, those that all rows share last."""
        assert isinstance(model, GeneralizedLinear)
        own = np.array(model.own_sd) ** -2.0
        return np.append(super()._precision(model, precision), own)

    def _units(self, model: Model, square: NDArray, mean: NDArray) -> dict[str, Any]:
        assert isinstance(model, GeneralizedLinear)
        units = super()._units(model, square, mean)
        own = np.ones(len(model.own))
        return units | {"unit": np.append(units["unit"], own), "n_others": len(own)}

    def _notices(self, posterior: Posterior) -> list[str]:
        """Also a warning of numbers that are no counts, which rates times exposures are."""
        found, rows = super()._notices(posterior), posterior.data.sample
        if self._family.counts:
            total = rows.y if rows.weight is None else rows.y * rows.weight
            if (np.abs(total - np.rint(total)) > _ROUNDING * np.maximum(1.0, total)).any():
                found.append(
                    "y holds numbers that are no counts, nor rates times exposures "
                    "(sample_weight); their intervals are those of counts all the same"
                )
        return found

    def score(self, X, y, sample_weight=None) -> float:
        """D^2, the share of the deviance that is explained; 1 at best, 0 for the mean of y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
        """
        return float(
            d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=self._power)
        )


class DispersedRegressor(GeneralizedLinearRegressor):
    """One whose family has a dispersion, which is sampled."""

    @property
    def dispersion_samples_(self) -> NDArray:
        """Draws of the dispersion, (n_chains, n_draws)."""
        return np.exp(self.model_.unpack(self.draws_)["log_dispersion"][..., 0])

    @property
    def dispersion_(self) -> float:
        """Posterior mean of the dispersion."""
        return float(self._moments(self.dispersion_samples_)[0])
