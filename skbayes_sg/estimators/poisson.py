"""Bayesian Poisson regression."""

from __future__ import annotations

from skbayes_sg.estimators.dispersion import with_dispersion
from skbayes_sg.estimators.linear_model import LinearRegressor
from skbayes_sg.models.poisson import Poisson
from skbayes_sg.posterior import Posterior

_REMEDY = (
    "counts vary so many times as much as those of Poisson do, and all intervals are too narrow; "
    "take BayesianNegativeBinomialRegressor"
)


class BayesianPoissonRegressor(LinearRegressor):
    """Regression of counts with a posterior.

    ``log E[y] = coef . x + intercept``, plus ``log(exposure)`` where counts have one. It stands
    where `PoissonRegressor` would. A rate, with its exposure as `sample_weight`, has the same
    posterior as its count, but a weight is a repetition for all that is asked of the rows later:
    give the count as y, and `exposure`. `summary` has the ratios of rates, ``exp(coefficient)``.

    Parameters
    ----------
    sampler : Sampler, str or None, default=None
    prior_precision : float, array (n_features,), "learned" or VariationalEM, default="learned"
        1 / variance of the prior of each coefficient. "learned": one for all, sampled with the
        coefficients, in units of the columns.
    fit_intercept : bool, default=True
    intercept_precision : float, default=0.01
        Prior precision of the intercept, where columns have their means: a standard deviation
        of 10 logarithms. Under a learned `prior_precision` its mean is the logarithm of that of y,
        for a unit of exposure.
    prior_mean : float or array of shape (n_features,) or (1, n_features), default=0.0
    prior : {"horseshoe", "student_t"}, Horseshoe, StudentT or FittedPosterior, optional
    prior_groups : {"share", "feature", "prefix"}, dict or callable, optional
    new_levels : {"sample", "zero", "refuse"}, default="sample"
    forgetting_factor : float in (0, 1], default=1.0
    categorical_features : {"from_dtype"}, list or None, default="from_dtype"
    n_chains : int or "auto", default="auto"
    n_draws : int or "auto", default="auto"
    burn_in : int or "auto", default="auto"
    thin : int or "auto", default="auto"
    warm_start : bool, default=False
    n_jobs : int, optional
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    n_features_in_
    feature_names_in_
    draws_ : array of shape (n_chains, n_draws, dim)
        Posterior draws: coefficients, then the intercept.
    factors_
    coef_names_
    coef_, coef_std_
    intercept_
    coef_samples_
    intercept_samples_
    draw_weights_
    sampler_
    sampler_reason_
    states_
    model_ : Poisson
    n_iter_
    n_passes_
    burn_in_, thin_
    diagnostics_
    posterior_
    n_samples_seen_
    log_loss_path_
    prior_precision_
    prior_precision_path_
    prior_precision_blocks_
    prior_precision_draws_

    Notes
    -----
    Source: McCullagh & Nelder 1989, chapter 6; math/models.md#log-links. The variance of a Poisson
    count is its mean. Where counts vary more, intervals are too narrow:
    ``diagnostics_["dispersion"]`` is their variance around the predicted means mu over that of
    Poisson counts (Pearson's), ``sum(w * (y - mu)**2 / mu) / (n - p)``, and a fit warns where it is
    above 1.5. There w is `sample_weight`, p the number of parameters, and n the sum of the weights:
    a row of weight w is w equal rows. It is NaN where weights stand beside a y with fractions, as
    rates have: those of counts c over exposures e need `exposure` to tell the c, and a fit says so.
    `BayesianNegativeBinomialRegressor` has a dispersion of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import BayesianPoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 2))
    >>> y = rng.poisson(np.exp(1 + X @ [0.5, 0.0]))
    >>> model = BayesianPoissonRegressor(random_state=0).fit(X, y)
    >>> ratio = model.summary().loc["x0", "rate_ratio"]
    >>> bool(1.5 < ratio < 1.8)
    True
    >>> model.predict_interval(X[:1]).shape
    (1, 2)
    """

    _family = Poisson

    def _explained(self, posterior: Posterior, warnings: list[str]) -> list[str]:
        """Also Pearson's dispersion."""
        warnings = with_dispersion(self, posterior, warnings, _REMEDY)
        return super()._explained(posterior, warnings)
