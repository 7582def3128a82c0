"""How far a posterior is from its second-order expansion, where its chains will be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from skbayes_sg.linalg import Diag, Operator

_LINES = 16  # along which the gradient is least linear
_DISTANCES = np.array([1.0, 2.0, 3.0, 4.0])  # in standard deviations
_UNLIKELY = -9.0  # log density relative to the anchor; that of a Gaussian at 4 is -8
_PLACES = 4  # typical points

_ENDS = np.array([-4.0, 4.0])
_PLACES_ALONG = np.arange(-4.0, 5.0)
_WIDE_PLACES = np.arange(-6.0, 7.0)
_NEARLY_NORMAL = 0.5  # of a mean slope over four standard deviations, from the normal's, which is 1

Gradient = Callable[[NDArray], NDArray]


def steepness(
    gradient: Gradient, curvature: Operator, least_linear: NDArray, points: NDArray
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
    curvature : Operator
        Minus the Hessian there.
    least_linear : array of shape (k, D)
        Unit vectors in whitened coordinates, along which single rows count most.
    points : array of shape (points, D)
        A sample of distances from the anchor, of covariance about that of the posterior.
    """
    root = curvature.inverse().cholesky()
    at_anchor = gradient(np.zeros_like(points[:1]))

    def whitened(v: NDArray) -> NDArray:
        """``v L`` of the root L, without a matrix where that is a diagonal."""
        return root.matvec(v) if isinstance(root, Diag) else v @ root.dense()

    if not np.mean(whitened(at_anchor) ** 2) < 1:
        return np.inf
    rest = gradient(points) - at_anchor + curvature.matvec(points)
    # the remainder in units of standard deviations: R L, L L^T = curvature^-1
    lines = np.linalg.svd(whitened(rest), full_matrices=False)[2][:_LINES]
    directions = root.matvec(np.concatenate([lines, least_linear]))
    from_anchor = _along(gradient, directions, at_anchor)
    return max(from_anchor, _around(gradient, directions, points[:_PLACES]))


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
    steep = (ends * _DISTANCES[-1] > limit).any(axis=0)
    largest = float(ends.max(initial=0.0))
    if steep.any():
        force = forces(directions[steep], _PLACES_ALONG)
        largest = max(largest, float((prior[steep] - np.diff(force, axis=0)).max()))
    return largest


def moments_along(
    forces: Callable[[NDArray, NDArray], NDArray], directions: NDArray, prior: NDArray
) -> tuple[NDArray, NDArray]:
    """Means and standard deviations of the posterior along lines, in those of a normal one.

    The lines and arguments are those of `column_steepness`, for the mean and the covariance of the
    normal approximation whose expected gradient is zero. So the slope along a line is that of the
    rows and the prior, less its mean over the standard normal. Lines on which the mean slope over
    four standard deviations is near the normal's are not looked at: (0, 1).
    """
    mean, sd = np.zeros(len(directions)), np.ones(len(directions))
    ends = prior - forces(directions, _ENDS) / _ENDS[:, None]
    far = (np.abs(ends - 1) > _NEARLY_NORMAL).any(axis=0)
    if not far.any():
        return mean, sd
    slope = forces(directions[far], _WIDE_PLACES) - prior[far] * _WIDE_PLACES[:, None]
    slope = CubicSpline(_WIDE_PLACES, slope)
    nodes, weights = hermegauss(9)
    expected = weights @ slope(nodes) / weights.sum()
    t = np.linspace(_WIDE_PLACES[0], _WIDE_PLACES[-1], 241)[:, None]
    log_density = slope.antiderivative()(t[:, 0]) - expected * t
    density = np.exp(log_density - log_density.max(axis=0))
    density /= density.sum(axis=0)
    mean[far] = (density * t).sum(axis=0)
    sd[far] = np.sqrt((density * (t - mean[far]) ** 2).sum(axis=0))
    return mean, sd


def _along(gradient: Gradient, directions: NDArray, at_anchor: NDArray) -> float:
    """The largest slope from the anchor to places on lines through it."""
    slopes = []
    for sign in (1.0, -1.0):
        places = (sign * _DISTANCES)[:, None, None] * directions  # (distances, lines, D)
        flat = gradient(places.reshape(-1, places.shape[-1])).reshape(places.shape)
        along = sign * np.einsum("tkd,kd->tk", flat, directions)
        start = sign * (at_anchor * directions).sum(axis=1)
        before = np.concatenate([start[None], along[:-1]])
        log_density = np.cumsum(0.5 * (along + before), axis=0)  # the distances are 1 apart
        slope = (start - along) / _DISTANCES[:, None]
        slopes.append(slope[log_density > _UNLIKELY])
    return float(np.concatenate(slopes).max(initial=0.0))


def _around(gradient: Gradient, directions: NDArray, points: NDArray) -> float:
    """The largest slope over two standard deviations around typical points.

    In many dimensions no line through the anchor meets a typical point.
    """
    ahead, behind = (
        gradient((points[:, None] + sign * directions).reshape(-1, points.shape[1]))
        for sign in (1.0, -1.0)
    )
    slopes = -0.5 * (ahead - behind).reshape(len(points), *directions.shape) * directions
    return float(slopes.sum(axis=2).max())
