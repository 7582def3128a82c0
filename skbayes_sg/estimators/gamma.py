"""Bayesian Gamma regression."""

from __future__ import annotations

from skbayes_sg.estimators.linear_model import LinearRegressor, mean_of, of_draws
from skbayes_sg.models import Gamma


class BayesianGammaRegressor(LinearRegressor):
    """Regression of positive numbers with a constant coefficient of variation, with a posterior.

    ``log E[y] = coef . x + intercept`` and ``Var[y] = phi mu^2``. It takes the place of
    `GammaRegressor`. The dispersion phi is sampled too, under a weak prior: its logarithm is normal
    of mean -1 and standard deviation 1.5. `summary` has ``exp(coefficient)``, the factors of the
    mean.

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
        Posterior draws: coefficients, then the intercept, and the logarithm of the dispersion.
    factors_
    coef_names_
    coef_, coef_std_
    intercept_
    coef_samples_
    intercept_samples_
    dispersion_ : float
        Posterior mean of phi.
    dispersion_samples_ : array of shape (n_chains, n_draws)
        Draws of phi.
    draw_weights_
    sampler_
    sampler_reason_
    states_
    model_ : Gamma
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
    Source: McCullagh & Nelder 1989, chapter 8; math/models.md#log-links.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import BayesianGammaRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 2))
    >>> y = rng.gamma(4.0, np.exp(1 + X @ [0.5, 0.0]) / 4.0)
    >>> model = BayesianGammaRegressor(random_state=0).fit(X, y)
    >>> bool(0.2 < model.dispersion_ < 0.3)
    True
    """

    _family = Gamma
    dispersion_samples_ = of_draws("log_dispersion")
    dispersion_ = mean_of("dispersion_samples_")
