"""The base of regressions with a link function: prior, predictions, score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import d2_tweedie_score

from skbayes_sg.data import Data, at_hand
from skbayes_sg.estimators.gaussian_posterior import FittedPosterior
from skbayes_sg.estimators.mixture_predictions import MixturePredictions
from skbayes_sg.estimators.regressor import Regressor
from skbayes_sg.models import Student
from skbayes_sg.models.log_link import LogLink
from skbayes_sg.posterior import Posterior
from skbayes_sg.priors.shrinkage import Horseshoe, StudentT
from skbayes_sg.samplers import Sampler


class GeneralizedLinearRegressor(MixturePredictions, Regressor):
    """A regression whose mean is a function of coefficients times features plus intercept."""

    _family: type[LogLink] | type[Student]

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
        self._keep_parameters(locals())

    # -- the model ----------------------------------------------------------------------------

    def _require_targets(self, y: NDArray) -> None:
        self._family.require_targets(y)

    def _make_model(self, data: Data) -> LogLink | Student:
        return self._family.of_data(data, self.fit_intercept)

    def _notices(self, posterior: Posterior) -> list[str]:
        return super()._notices(posterior) + self._notices_of_targets(posterior)

    def _notices_of_targets(self, posterior: Posterior) -> list[str]:
        return self._family.notices(posterior.data)


class LogLinkRegressor(GeneralizedLinearRegressor):
    """One of numbers that are not negative, whose mean is an exponential."""

    _family: type[LogLink]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

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
        y, predicted, weight = at_hand(y, self.predict(X), sample_weight)
        power = self._family.variance_power
        return float(d2_tweedie_score(y, predicted, sample_weight=weight, power=power))


class DispersedRegressor(LogLinkRegressor):
    """One whose family has a dispersion, which is sampled."""

    @property
    def dispersion_samples_(self) -> NDArray:
        """Draws of the dispersion, (n_chains, n_draws)."""
        return np.exp(self.model_.unpack(self.draws_)["log_dispersion"][..., 0])

    @property
    def dispersion_(self) -> float:
        """Posterior mean of the dispersion."""
        return float(self._moments(self.dispersion_samples_)[0])
