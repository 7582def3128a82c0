"""Bayesian Poisson regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from skbayes_sg.chains.run import Chain
from skbayes_sg.estimators.generalized_linear import LogLinkRegressor
from skbayes_sg.inference.run import Run
from skbayes_sg.models.poisson import Poisson
from skbayes_sg.posterior import Posterior

_DISPERSED = 1.5  # intervals are then a fifth too narrow
_CERTAIN = 5.0  # standard errors


class BayesianPoissonRegressor(LogLinkRegressor):
    """Regression of counts with a posterior.

    ``log E[y] = coef . x + intercept``. It stands where `PoissonRegressor` would. Of rates, y is
    the count over the exposure, and `sample_weight` the exposure. `summary` has the ratios of
    rates, ``exp(coefficient)``.

    Parameters
    ----------
    sampler : Sampler, str or None, default=None
        As in `BayesianLogisticRegressionSGFS`, as all parameters that are not described here.
    prior_precision : float, array (n_features,), "learned" or VariationalEM, default="learned"
        1 / variance of the prior of each coefficient. "learned": one for all, sampled with the
        coefficients, in units of the columns.
    fit_intercept : bool, default=True
    intercept_precision : float, default=0.01
        Prior precision of the intercept: a standard deviation of 10 logarithms. Under a learned
        `prior_precision` its mean is the logarithm of that of y.
    prior_mean : float or array of shape (n_features,) or (1, n_features), default=0.0
    prior : {"horseshoe", "student_t"}, Horseshoe, StudentT or FittedPosterior, optional
    prior_groups : {"feature", "prefix"}, dict or callable, optional
    forgetting_factor : float in (0, 1], default=1.0
    n_chains : int or "auto", default="auto"
    n_draws : int or "auto", default="auto"
    burn_in : int or "auto", default="auto"
    thin : int or "auto", default="auto"
    warm_start : bool, default=False
    n_jobs : int, optional
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,), where X had string column names
    draws_ : array of shape (n_chains, n_draws, dim)
        Posterior draws: coefficients, then the intercept.
    coef_, coef_std_ : arrays of shape (n_features,)
        Posterior means and standard deviations.
    intercept_ : float
    coef_samples_ : array of shape (n_chains, n_draws, n_features)
    intercept_samples_ : array of shape (n_chains, n_draws)
    draw_weights_, sampler_, sampler_reason_, states_, model_, n_iter_, n_passes_, burn_in_, thin_ :
    diagnostics_, posterior_, n_samples_seen_, prior_precision_, prior_precision_path_ :
    prior_precision_blocks_, prior_precision_draws_ :
        As in `BayesianLogisticRegressionSGFS`.

    Notes
    -----
    Source: McCullagh & Nelder 1989, chapter 6; math/models.md#log-links. The variance of a Poisson
    count is its mean. Where counts vary more, intervals are too narrow:
    ``diagnostics_["dispersion"]`` is their variance around the predicted means over that of Poisson
    counts (Pearson's), and a fit warns where it is above 1.5. `BayesianNegativeBinomialRegressor`
    has a dispersion of its own.

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

    def _keep(
        self, run: Run, chains: list[Chain], posterior: Posterior, attributes: dict[str, Any]
    ) -> list[str]:
        """Also Pearson's dispersion of the rows at hand."""
        warnings = super()._keep(run, chains, posterior, attributes)
        rows = posterior.all_columns.data.sample
        mu = np.exp(np.asarray(rows.X @ self.coef_).ravel() + self.intercept_)
        weight = np.ones(len(mu)) if rows.weight is None else rows.weight.astype(np.float64)
        repeated = (rows.y == np.rint(rows.y)).all()  # else they are rates, and weights exposures
        freedom = max(1.0, (weight.sum() if repeated else len(mu)) - self.model_.dim)
        found = float((weight * (rows.y - mu) ** 2 / mu).sum() / freedom)
        error = np.sqrt(np.mean(2 + 1 / (weight * mu)) / freedom)
        self.diagnostics_["dispersion"] = found
        if found > max(_DISPERSED, 1 + _CERTAIN * error):
            warnings.append(
                f"dispersion is {found:.3g}: counts vary so many times as much as those of Poisson "
                "do, and all intervals are too narrow; take BayesianNegativeBinomialRegressor"
            )
        return warnings
