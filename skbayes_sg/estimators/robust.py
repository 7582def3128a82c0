"""Bayesian linear regression that outliers do not move."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import InMemory, evenly_spaced
from skbayes_sg.estimators.linear_model import LinearRegressor, mean_of, of_draws
from skbayes_sg.models import Student
from skbayes_sg.posterior import Posterior
from skbayes_sg.streams.bayesian_updating import Stream

_MOST_ROWS = 10_000  # that tell which share lies on one line
_NEAR_THE_LEAST = 1.1  # scale over the least one
_ROUNDED = (
    "y is in steps of {:.3g}, and {:.0%} of the rows have y = {:.3g}: the noise is hardly more "
    "than the rounding, and scale_ is at its least, half of a step; take BayesianOrdinalClassifier "
    "for few steps, or y with more digits"
)
_TIED = (
    "{:.0%} of the rows {}: without noise they outweigh all others, so the posterior has a spike "
    "where scale_ is {:.2g} and the coefficients are those of these rows alone, whether or not the "
    "chains are in it; model them apart, as by a classifier of these rows and a regression of the "
    "others, or take BayesianLinearRegression"
)


@dataclass(eq=False, repr=False)
class BayesianRobustRegressor(LinearRegressor):
    """Linear regression with the noise of Student's t, with a posterior.

    ``y = coef . x + intercept + scale t``. The degrees of freedom of t are sampled: where they are
    few, rows far from the line weigh little, and where the noise is normal, they are many and the
    line is that of linear regression. It takes the place of `HuberRegressor`.

    Parameters
    ----------
    sampler : Sampler, str or None, default=None
    prior_precision : float, array (n_features,), "learned" or VariationalEM, default="learned"
        1 / variance of the prior of each coefficient. "learned": one for all, sampled with the
        coefficients, in units of the columns and of y.
    fit_intercept : bool, default=True
    intercept_precision : float, default=1e-6
        Prior precision of the intercept, where columns have their means, in units of 1 / unit of y
        squared: y may be hundreds of its units from zero. The unit of y is its interquartile range
        over 1.35. Under a learned `prior_precision` its mean is the median of y.
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
        Posterior draws: coefficients, the intercept, log(scale - its least value) and
        log(degrees of freedom - 1).
    factors_
    coef_names_
    coef_, coef_std_
    intercept_
    coef_samples_
    intercept_samples_
    scale_, degrees_of_freedom_ : float
        Posterior means.
    scale_samples_, degrees_of_freedom_samples_ : arrays of shape (n_chains, n_draws)
        Draws of both.
    draw_weights_
    sampler_
    sampler_reason_
    states_
    model_ : Student
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
    Source: Lange, Little & Taylor 1989; math/models.md#robust-regression. Priors beside the
    coefficients' are weak: the logarithm of the scale is normal around that of the unit of y with
    standard deviation 2, and there is at least one degree of freedom, those above it being
    log-normal around exp(2) with standard deviation 1. With two of them or fewer noise has no
    variance, and so a new y has none: the `std` of `predict` is that of the normal distribution
    whose central interval of 95 % is as wide as that of y. Where noise is normal
    `BayesianLinearRegression` is faster, many times so from 50,000 rows on.

    The scale is at least a hundred-thousandth of the unit of y. Where y is in steps, as whole
    numbers are, and at least half of its values are repetitions, the scale is at least half of a
    step, the largest error of rounding. More than half of the rows exactly on one line, such as the
    zeros of amounts that are mostly zero, have no noise under this model and outweigh all others.
    The fit warns of both.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import BayesianRobustRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 2))
    >>> y = X @ [1.0, 0.0] + 0.1 * rng.standard_normal(300)
    >>> y[:30] += 50  # outliers
    >>> model = BayesianRobustRegressor(random_state=0).fit(X, y)
    >>> bool(abs(model.coef_ - [1, 0]).max() < 0.05)
    True
    """

    _: KW_ONLY
    intercept_precision: float = 1e-6

    _family = Student
    scale_samples_ = of_draws("log_scale")
    scale_ = mean_of("scale_samples_")
    degrees_of_freedom_samples_ = of_draws("log_freedom_above_one")
    degrees_of_freedom_ = mean_of("degrees_of_freedom_samples_")

    def _explained(self, posterior: Posterior, warnings: list[str]) -> list[str]:
        """Also a warning about rows that the model takes for noiseless."""
        model = self.model_
        small = self.scale_samples_ < _NEAR_THE_LEAST * model.least_scale
        mean, is_least = self._draws.mean(), bool(self._draws.of(small).mean() > 0.5)
        text = _noiseless(model, posterior.data.sample, mean, is_least)
        return super()._explained(posterior, [*warnings, text] if text else warnings)

    def _warnings_of_stream(self, stream: Stream) -> dict[str, str]:
        model, mean = stream.model, stream.posterior.mean
        assert isinstance(model, Student)
        scale = float(model.natural("log_scale", model.unpack(mean)["log_scale"])[1][0])
        is_least = scale < _NEAR_THE_LEAST * model.least_scale
        text = _noiseless(model, stream.rows_that_tell(), mean, is_least)
        return {"noiseless": text} if text else {}


def _noiseless(model: Student, rows: InMemory, mean: NDArray, is_least: bool) -> str:
    """A warning about rows that a fit takes for noiseless; empty without such rows.

    `mean` (D,) is the posterior's, and `is_least` says whether the scale is about as small as it
    can be.
    """
    numbers = evenly_spaced(rows.n_rows, _MOST_ROWS)
    X, y, weight, _ = rows.load(numbers)
    weight = np.ones(len(y)) if weight is None else weight
    values, member = np.unique(y, return_inverse=True)
    shares = np.bincount(member, weight) / weight.sum()
    share, value = float(shares.max()), float(values[shares.argmax()])
    if model.least_scale > model.smallest_scale:  # of the resolution of y
        return _ROUNDED.format(model.resolution, share, value) if is_least else ""
    close = np.abs(y - model.outputs(mean[None], X)[0, 0]) < model.least_scale
    on_line = float(weight @ close / weight.sum())
    pattern = f"have y = {value:.3g}" if share >= on_line else "lie on one line exactly"
    share = max(share, on_line)
    return _TIED.format(share, pattern, model.least_scale) if 0.5 < share < 1 else ""
