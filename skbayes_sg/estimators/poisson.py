"""Bayesian Poisson regression."""

from __future__ import annotations

import numpy as np

from skbayes_sg.data import InMemory
from skbayes_sg.diagnostics import systematic
from skbayes_sg.estimators.linear_model import LinearRegressor
from skbayes_sg.models.poisson import Poisson
from skbayes_sg.posterior import Posterior

_DISPERSED = 1.5  # intervals are then a fifth too narrow
_CERTAIN = 5.0  # standard errors
_TELLING, _TELLING_DRAWS = 10_000, 256  # rows and draws that tell the number of parameters


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
        Prior precision of the intercept: a standard deviation of 10 logarithms. Under a learned
        `prior_precision` its mean is the logarithm of that of y, for a unit of exposure.
    prior_mean : float or array of shape (n_features,) or (1, n_features), default=0.0
    prior : {"horseshoe", "student_t"}, Horseshoe, StudentT or FittedPosterior, optional
    prior_groups : {"feature", "prefix"}, dict or callable, optional
    new_levels : {"sample", "zero", "refuse"}, default="sample"
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
    n_features_in_
    feature_names_in_
    draws_ : array of shape (n_chains, n_draws, dim)
        Posterior draws: coefficients, then the intercept.
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
    a row of weight w is w equal rows. Where y has fractions, which no counts have, w is the
    exposure of a rate and n the number of rows, so that rates have the dispersion of their counts,
    in any unit of exposure. `BayesianNegativeBinomialRegressor` has a dispersion of its own.

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
        """Also Pearson's dispersion, of all rows or of a sample of them."""
        data = posterior.data
        found, error = self._dispersion(data.sample, data.n_rows / data.sample.n_rows)
        self.diagnostics_["dispersion"] = found
        if found > max(_DISPERSED, 1 + _CERTAIN * error):
            warnings = [
                *warnings,
                f"dispersion is {found:.3g}: counts vary so many times as much as those of Poisson "
                "do, and all intervals are too narrow; take BayesianNegativeBinomialRegressor for "
                "counts (of rates, give the counts as y, and exposure)",
            ]
        return super()._explained(posterior, warnings)

    def _dispersion(self, rows: InMemory, more: float) -> tuple[float, float]:
        """Pearson's dispersion and its standard error, of one row in `more`.

        (y - mu)^2 / mu has mean 1 and variance 2 + 1 / mu, and a row of weight w counts as w rows.
        Numbers that are not whole are no counts, but may be rates y = c / w of counts c of mean w
        mu: then w (y - mu)^2 / mu has mean 1 and variance 2 + 1 / (w mu), and each row counts once.
        Equal rows that are merged keep their sum. At the posterior mean the sum over n rows has
        lost a degree of freedom for each effective parameter, of which there are as many as it is
        below its mean over the draws (Spiegelhalter et al. 2002, section 2.1). Draws and the truth
        are exchangeable: in the mean over data that mean is n, so that the ratio is about 1 also
        where columns are more than rows; and it varies no more than the sum at the truth, which
        bounds the error.
        """
        mean = np.append(self.coef_, self.intercept_)[None, : self.model_.dim]
        mu = np.exp(self.model_.outputs(mean, rows.X)[0, 0].astype(np.float64))
        weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight.astype(np.float64)
        at_mean = weight * (rows.y - mu) ** 2 / mu
        given = (weight > 0).astype(np.float64) if rows.given is None else rows.given
        counts = not (rows.y % 1).any()
        n = weight.sum() if counts else given.sum()

        some = np.unique(np.linspace(0, rows.n_rows - 1, _TELLING).astype(int))
        flat, each = self.draws_.reshape(-1, self.model_.dim), self.draw_weights_
        draws = systematic(np.tile(each, len(self.draws_)), min(_TELLING_DRAWS, len(flat)))
        of_draws = self.model_.outputs(flat[draws], rows.some(some).X)[:, 0].astype(np.float64)
        of_draws = np.exp(of_draws)
        at_draws = weight[some] * (rows.y[some] - of_draws) ** 2 / of_draws
        less = (at_draws.mean(axis=0) - at_mean[some]).sum() * rows.n_rows / len(some)
        freedom = max(1.0, n - less / more)
        given, each, mu = given[weight > 0], weight[weight > 0], mu[weight > 0]
        each = each / given  # of a row as it was given
        variance = each**2 * (2 + 1 / mu) if counts else 2 + 1 / (each * mu)
        error = np.sqrt(given @ variance) / freedom
        return float(at_mean.sum() / freedom), float(error)
