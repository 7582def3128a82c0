"""Whether counts vary more than their model says: Pearson's dispersion."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import InMemory, evenly_spaced
from skbayes_sg.diagnostics import systematic
from skbayes_sg.diagnostics.limits import DISPERSION_ERRORS, DISPERSION_LIMIT
from skbayes_sg.models.poisson import has_weighted_fractions
from skbayes_sg.posterior import Posterior

_TELLING, _TELLING_DRAWS = 10_000, 256  # rows and draws that tell the number of parameters


def with_dispersion(
    estimator: Any, posterior: Posterior, warnings: list[str], remedy: str
) -> list[str]:
    """Warnings, and one of counts that vary too much; the figure goes to `diagnostics_`.

    It is that of all rows, or of a sample of them.
    """
    data = posterior.data
    dispersion, error = pearson(estimator, data.sample, data.n_rows / data.sample.n_rows)
    estimator.diagnostics_["dispersion"] = dispersion
    if not dispersion > max(DISPERSION_LIMIT, 1 + DISPERSION_ERRORS * error):
        return warnings
    return [*warnings, f"dispersion is {dispersion:.3g}: {remedy}"]


def pearson(estimator: Any, rows: InMemory, more: float) -> tuple[float, float]:
    """Pearson's dispersion and its standard error, of one row in `more`.

    With the mean mu and the variance v that the model has for y, (y - mu)^2 / v has mean 1, and
    the variance 2 + k with the excess kurtosis k of y; a row of weight w counts as w rows. Equal
    rows that are merged keep their sum. At the posterior mean the sum over n rows has lost a degree
    of freedom for each effective parameter, of which there are as many as it is below its mean over
    the draws (Spiegelhalter et al. 2002, section 2.1). Draws and the truth are exchangeable: in the
    mean over data that mean is n, so that the ratio is about 1 also where columns are more than
    rows; and it varies no more than the sum at the truth, which bounds the error. Both are NaN
    where y has fractions beside weights, which do not say of how many counts.
    """
    if has_weighted_fractions(rows):
        return np.nan, np.nan
    model = estimator.model_
    mean = np.append(estimator.coef_, estimator.intercept_)[None, : model.dim]
    outputs = model.outputs(mean, rows.X).astype(np.float64)
    weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight.astype(np.float64)
    at_mean = weight * _squares(model, outputs, rows.y)[0]

    telling = evenly_spaced(rows.n_rows, _TELLING)
    flat = estimator._draws.flat
    draws = systematic(estimator._draws.flat_weights, min(_TELLING_DRAWS, len(flat)))
    of_draws = model.outputs(flat[draws], rows.some(telling).X).astype(np.float64)
    at_draws = weight[telling] * _squares(model, of_draws, rows.y[telling])
    less = (at_draws.mean(axis=0) - at_mean[telling]).sum() * rows.n_rows / len(telling)
    freedom = max(1.0, weight.sum() - less / more)
    repeats = (weight > 0).astype(np.float64) if rows.given is None else rows.given
    own_weight = weight / np.maximum(repeats, 1)  # of a row as it was given
    error = np.sqrt(repeats @ (own_weight**2 * (2 + model.excess_kurtosis(outputs)[0]))) / freedom
    return float(at_mean.sum() / freedom), float(error)


def _squares(model: Any, outputs: NDArray, y: NDArray) -> NDArray:
    """Squared differences of y from its mean in units of its variance, (chains, n)."""
    return (y - model.mean(outputs)) ** 2 / model.variance(outputs)
