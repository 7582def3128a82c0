"""How far a posterior is from a normal distribution, by slopes of its gradient along lines.

Steps of one length follow the steepest place, and a normal distribution has the same slope
everywhere (math/control_variates.md#steepness).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from skbayes_sg.data import evenly_spaced
from skbayes_sg.linalg import Diag, Operator
from skbayes_sg.posterior import Posterior

_ENDS = np.array([-4.0, 4.0])  # of a line, in standard deviations
_FEWEST_ROWS = 1000  # on which columns are looked at
_OUTPUTS = 1 << 22  # of rows, along the lines of all columns, for which they are looked at

Slopes = Callable[[NDArray, NDArray, NDArray], NDArray]
"""Gradients (distances, lines) along lines from a point (D,), of directions (lines, D), at some
distances."""


def slopes_of(gradient: Callable[[NDArray], NDArray]) -> Slopes:
    """Those that a gradient has."""

    def slopes(start: NDArray, directions: NDArray, distances: NDArray) -> NDArray:
        places = start + distances[:, None, None] * directions
        flat = gradient(places.reshape(-1, places.shape[-1])).reshape(places.shape)
        return np.einsum("tkd,kd->tk", flat, directions)

    return slopes


def steepness(
    gradient: Callable[[NDArray], NDArray],
    slopes: Slopes,
    curvature: Operator,
    least_linear: NDArray,
    points: NDArray,
) -> float:
    """The largest slope of the gradient within four standard deviations of the anchor.

    It is the change of -gradient over the distance along a line, over the curvature at the anchor:
    1 for a Gaussian posterior. A step that suits the anchor overshoots where the slope is more than
    about twice as large (math/control_variates.md#steepness). The lines are those along which the
    gradient at the points is least linear, and those along which single rows count most. A place
    counts if the posterior density there is at least e^-9 of the anchor's. The slopes around some
    of the points count too. The result is infinite if the anchor is more than a standard deviation
    per parameter from the mode: no place nearby says anything then.

    Parameters
    ----------
    gradient : function
        Gradient of the log posterior at distances (n, D) from the anchor, (n, D).
    slopes : function
        The same along lines, which may cost less than all of it.
    curvature : Operator
        Minus the Hessian there.
    least_linear : array of shape (k, D)
        Unit vectors in whitened coordinates, along which single rows count most.
    points : array of shape (points, D)
        A sample of distances from the anchor, of covariance about that of the posterior.
    """
    root = curvature.inverse().cholesky()  # L, with L L^T = curvature^-1
    L, times = (root.values, np.multiply) if isinstance(root, Diag) else (root.dense(), np.matmul)
    at_anchor = gradient(np.zeros_like(points[:1]))
    if not np.mean(times(at_anchor, L) ** 2) < 1:
        return np.inf
    # lines of the largest remainders R in units of standard deviations, R L
    rest = gradient(points) - at_anchor + curvature.matvec(points)
    lines = np.linalg.svd(times(rest, L), full_matrices=False)[2][:16]
    directions = root.matvec(np.concatenate([lines, least_linear]))

    # from the anchor to places on lines through it
    found, distances = [], np.array([1.0, 2.0, 3.0, 4.0])  # in standard deviations
    for sign in (1.0, -1.0):
        along = sign * slopes(np.zeros_like(points[0]), directions, sign * distances)
        start = sign * (at_anchor * directions).sum(axis=1)
        before = np.concatenate([start[None], along[:-1]])
        log_density = np.cumsum(0.5 * (along + before), axis=0)  # the distances are 1 apart
        slope = (start - along) / distances[:, None]
        found.append(slope[log_density > -9.0])  # that of a Gaussian at 4 is -8
    largest = float(np.concatenate(found).max(initial=0.0))

    # Over two standard deviations around four typical points: in many dimensions no line through
    # the anchor meets one.
    for typical in points[:4]:
        behind, ahead = slopes(typical, directions, np.array([-1.0, 1.0]))
        largest = max(largest, float(0.5 * (behind - ahead).max()))
    return largest


def column_steepness(
    forces: Callable[[NDArray, NDArray], NDArray],
    directions: NDArray,
    prior: NDArray,
    limit: float,
) -> float:
    """The largest mean slope over one standard deviation, within four of the anchor, along lines.

    The lines are those of single parameters: along them the others follow as they do on average
    (math/control_variates.md#steepness). The log posterior is concave, so a mean slope of sigma
    over four standard deviations is one of up to four sigma over one of them: where that stays
    below the limit, nothing between is looked at.

    Parameters
    ----------
    forces : function
        Of directions (lines, D) and distances (n,): the changes of the slope of the log likelihood,
        (n, lines).
    directions : array of shape (lines, D)
        One posterior standard deviation along each line.
    prior : array of shape (lines,)
        Curvature of the prior along them.
    limit : float
        What matters.
    """
    ends = prior - forces(directions, _ENDS) / _ENDS[:, None]
    steep = (ends * _ENDS[-1] > limit).any(axis=0)
    largest = float(ends.max(initial=0.0))
    if steep.any():
        force = forces(directions[steep], np.arange(-4.0, 5.0))
        largest = max(largest, float((prior[steep] - np.diff(force, axis=0)).max()))
    return largest


def moments_along(
    forces: Callable[[NDArray, NDArray], NDArray], directions: NDArray, prior: NDArray
) -> tuple[NDArray, NDArray]:
    """Means and standard deviations of the posterior along lines, in those of a normal one.

    The lines and arguments are those of `column_steepness`, for the mean and the covariance of the
    normal approximation whose expected gradient is zero. So the slope along a line is that of the
    rows and the prior, less its mean over the standard normal. Lines on which the mean slope over
    four standard deviations is within a half of the normal's, 1, are not looked at: (0, 1).
    """
    mean, sd = np.zeros(len(directions)), np.ones(len(directions))
    ends = prior - forces(directions, _ENDS) / _ENDS[:, None]
    far = (np.abs(ends - 1) > 0.5).any(axis=0)
    if not far.any():
        return mean, sd
    places = np.arange(-6.0, 7.0)
    slope = forces(directions[far], places) - prior[far] * places[:, None]
    slope = CubicSpline(places, slope)
    nodes, weights = hermegauss(9)
    expected = weights @ slope(nodes) / weights.sum()
    t = np.linspace(places[0], places[-1], 241)[:, None]
    log_density = slope.antiderivative()(t[:, 0]) - expected * t
    density = np.exp(log_density - log_density.max(axis=0))
    density /= density.sum(axis=0)
    mean[far] = (density * t).sum(axis=0)
    sd[far] = np.sqrt((density * (t - mean[far]) ** 2).sum(axis=0))
    return mean, sd


def steepness_of_draws(posterior: Posterior, draws: NDArray, weights: NDArray) -> dict[str, float]:
    """Column steepness about the mean of draws (chains, draws, D), for their standard deviations.

    It is measured on some of the rows if they are many. Nothing is said of more parameters than
    half of the draws, which do not tell their covariance, nor of a conjugate model.
    """
    theta = draws.reshape(-1, draws.shape[2]).astype(np.float64)
    model = posterior.predictor
    if model.conjugate or len(theta) < 2 * theta.shape[1] or not theta.std(axis=0).all():
        return {}
    covariance = np.cov(theta.T, aweights=np.tile(weights, len(draws))).reshape(2 * draws.shape[2:])
    lines = covariance / np.sqrt(covariance.diagonal())[:, None]
    n = posterior.n_rows
    most = max(_FEWEST_ROWS, _OUTPUTS // (len(lines) * model.widest))
    sample = posterior if n <= most else posterior.of_rows(evenly_spaced(n, most))
    centre = np.average(draws.mean(axis=0), axis=0, weights=weights)[None].astype(np.float64)
    of_prior = np.sum(lines * posterior.prior.curvature(centre).matvec(lines), axis=1)
    along = partial(sample.forces_along, centre)
    return {"column_steepness": column_steepness(along, lines, of_prior, 0.0)}
