"""How far a normal distribution is from the posterior that it stands for."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import deterministic_rng
from skbayes_sg.diagnostics.judgements import Misfit
from skbayes_sg.linalg.sizes import elements_at_a_time
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.gaussian import Distribution, in_the_mean
from skbayes_sg.posterior.steepness import moments_along

_DRAWS = 128  # which tell a standard deviation to 6 %


def misfit_of(posterior: Posterior, distribution: Distribution) -> Misfit:
    """Errors of means and standard deviations along the lines of coefficients, and of the density.

    A distribution may fit along all lines and be wrong: where rows of each level of a factor have
    one class, the posterior has walls around many directions at once, and the precision that goes
    with a distribution within them is too large. Draws of it are then weighted very unequally by
    the right density over its own (Yao, Vehtari, Simpson & Gelman 2018); in D dimensions alike, the
    variance of the logarithm of that weight grows as D. What is a function of a parameter of the
    family, as a dispersion, is taken off: its own skewness says nothing of the coefficients.

    Parameters
    ----------
    posterior : Posterior
        Of a `Predictor` that is not conjugate, with a normal prior.
    distribution : Distribution
        That stands for it.
    """
    prior = posterior.normal_prior
    lines = distribution.operator.inverse().dense()
    lines /= np.sqrt(lines.diagonal())[:, None]
    of_prior = np.sum(lines * prior.operator.matvec(lines), axis=1)
    forces = partial(posterior.forces_along, distribution.mode)
    mean, sd = moments_along(forces, lines, of_prior)
    sd = np.append(sd, _sd_by_curvature(posterior, distribution))
    with np.errstate(divide="ignore"):  # of a line too narrow for the grid of `moments_along`
        worst = 1 / sd[np.abs(np.log(sd)).argmax()]
    draws = distribution.draw(deterministic_rng("misfit"), _DRAWS, matched=True)
    n_parts = min(_DRAWS, 1 + _DRAWS * posterior.point_size // elements_at_a_time())
    with np.errstate(over="ignore", invalid="ignore"):  # of counts far from their means
        of_rows = [posterior.log_prob(part) for part in np.array_split(draws, n_parts)]
        weight = np.concatenate(of_rows) - distribution.log_density(draws)
    if np.isfinite(weight).all() and (n_own := len(posterior.predictor.own)):
        own = (draws - distribution.mean)[:, -n_own:] / np.sqrt(distribution.variance[-n_own:])
        terms = np.concatenate([np.ones((_DRAWS, 1)), own, own**2, own**3], axis=1)
        weight -= terms @ np.linalg.lstsq(terms, weight)[0]
    with np.errstate(invalid="ignore"):
        density_sd = np.nan_to_num(weight.std() / np.sqrt(draws.shape[1]), nan=np.inf)
    return Misfit(float(np.abs(mean).max()), float(worst), float(density_sd))


def _sd_by_curvature(posterior: Posterior, distribution: Distribution) -> NDArray:
    """Standard deviations by the observed information, over those of the distribution.

    `moments_along` takes slopes within a half of the normal ones for normal, which lets standard
    deviations from 0.82 to 1.41 times the right ones pass. Empty where the model has no other
    curvature, and infinite where this one is not positive definite.
    """
    if not posterior.predictor.has_other_curvature:
        return np.empty(0)
    _, curvature = in_the_mean(posterior, distribution)
    try:
        ratio = np.sqrt(curvature.inverse().diagonal() / distribution.variance)
    except np.linalg.LinAlgError:
        return np.array([np.inf])
    return ratio
