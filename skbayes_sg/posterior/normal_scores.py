"""A parameter at its limit, in coordinates in which the posterior is near normal.

The rows of a regression may bound a parameter of its family from one side only: a dispersion where
counts are Poisson, degrees of freedom where noise is normal. The posterior of that one parameter is
then the prior on one side and a wall on the other, while the rest given the parameter is near
normal and hardly depends on it. So its marginal density is known from normal approximations of the
rest along a line of values (Tierney & Kadane 1986, equation 4.1; Rue, Martino & Chopin 2009),

    log p(a | y) = log p(b(a), a | y) - log det H(a) / 2 + const

with b(a) the mode of all other parameters given a, and H(a) the curvature there. Chains move along
the normal score of that density. It decides coordinates alone: the posterior that they sample is
the exact one, whatever the density is.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline, CubicSpline
from scipy.linalg import cho_factor, cho_solve
from scipy.special import ndtri

from skbayes_sg.linalg.normal_score import NormalScore
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.models.predictor import Family
from skbayes_sg.posterior.base import Expansion, Posterior
from skbayes_sg.posterior.steepness import column_steepness
from skbayes_sg.samplers.langevin import STEEP_COLUMN

_DROP = 12.5  # of the log density at the ends: five standard deviations of a normal one
_STEP = 1.0  # change of the log density between two values, about
_LARGEST_DROP = 4.0  # the same, at most
_LONGEST = 0.5  # step, in standard deviations of the prior
_MOST_VALUES = 80
_CLOSE = 0.01  # squared distance of the others from their mode, in standard deviations
_FINE, _KNOTS = 8001, 41
_KNOWN = 25.0  # curvature over that of the prior, above which rows bound a parameter on both sides


class _Given(NamedTuple):
    """The posterior given a value of the parameter."""

    theta: NDArray
    """The mode of the others, (1, D)."""
    moves: NDArray
    """Its derivative over the value, (D,)."""
    log_prob: float
    slope: float
    """Of log_prob along the modes."""
    curvature: float
    """Minus the second derivative likewise."""
    log_det: float
    """Of the curvature of the others."""

    @property
    def value(self) -> float:
        """The marginal log density."""
        return self.log_prob - 0.5 * self.log_det


def has_steep_own(posterior: Posterior, mode: Expansion) -> bool:
    """Whether steps of one length fail along the line of the own parameter rows know least.

    Where they know it much better than the prior does, nothing is looked at.
    """
    own = _least_known(posterior, mode)
    if own is None or own.known > _KNOWN:
        return False
    covariance = mode.curvature.inverse().dense()
    direction = covariance[own.j][None] / np.sqrt(covariance[own.j, own.j])
    of_prior = posterior.prior.curvature(mode.theta).matvec(direction) @ direction[0]
    forces = partial(posterior.forces_along, mode.theta)
    return column_steepness(forces, direction, of_prior, STEEP_COLUMN) > STEEP_COLUMN


class _Own(NamedTuple):
    """An own parameter of a family."""

    members: NDArray
    """Coordinates of all own parameters."""
    which: int
    """Its place among them."""
    known: float
    """Its curvature over that of its prior."""
    sd: float
    """Standard deviation of its prior."""

    @property
    def j(self) -> int:
        return int(self.members[self.which])


def _least_known(posterior: Posterior, mode: Expansion) -> _Own | None:
    """The own parameter of which rows know least beside the prior.

    None of a family without, and where parameters are too many for a matrix at each value.
    """
    model = posterior.model
    if not isinstance(model, Family) or not model.own or not has_matrix(posterior.dim):
        return None
    members = np.arange(posterior.dim - len(model.own), posterior.dim)
    of_prior = posterior.prior.curvature(mode.theta).diagonal()[members]
    known = mode.curvature.diagonal()[members] / of_prior
    which = int(np.argmin(known))
    return _Own(members, which, float(known[which]), float(of_prior[which]) ** -0.5)


def with_normal_score(posterior: Posterior, mode: Expansion) -> Expansion | None:
    """The expansion with the normal score of the own parameter of which rows know least.

    It is around the median of that parameter. None where the family has no own parameter, or the
    density along it is not found.
    """
    own = _least_known(posterior, mode)
    if own is None:
        return None
    members, which, j = own.members, own.which, own.j
    longest = _LONGEST * own.sd
    try:
        line = _along(posterior, mode.theta, j, longest)
        if line is None:
            return None
        score = NormalScore.through(members, which, *_scores(line, members, which))
    except (np.linalg.LinAlgError, ValueError):
        return None
    centre = float(score.curves(np.zeros(()))[which])
    theta = mode.theta.copy()
    values = np.array([given.theta[0, j] for given in line])
    modes = np.array([given.theta[0] for given in line])
    theta[0] = CubicHermiteSpline(values, modes, np.array([given.moves for given in line]))(centre)
    return mode._replace(theta=theta, passes=mode.passes + len(line), score=score)


def _along(posterior: Posterior, theta: NDArray, j: int, longest: float) -> list[_Given] | None:
    """The posterior given values of parameter j, in their order, as far as it has any mass."""
    first, n_values = _given(posterior, theta, j), 1
    line, top = [first], first.value
    for sign in (1.0, -1.0):
        last = line[-1] if sign > 0 else line[0]
        shrink = 1.0
        while last.value > top - _DROP:
            rate = max(abs(last.slope), np.sqrt(max(last.curvature, 0.0)), _STEP / longest)
            step = sign * shrink * _STEP / rate
            guess = last.theta + step * last.moves
            guess[0, j] = last.theta[0, j] + step
            following, n_values = _given(posterior, guess, j), n_values + 1
            if n_values > _MOST_VALUES or not np.isfinite(following.value):
                return None
            if following.value < last.value - _LARGEST_DROP:
                shrink *= 0.5
                continue
            last, shrink, top = following, min(1.0, 2 * shrink), max(top, following.value)
            line.insert(len(line) if sign > 0 else 0, following)
    return line


def _given(posterior: Posterior, theta: NDArray, j: int) -> _Given:
    """The posterior given the value of parameter j in theta (1, D), near the mode of the others.

    What is left of the way to the mode is that of the second-order expansion.
    """
    others = np.delete(np.arange(theta.size), j)
    for _ in range(4):
        expansion = posterior.observed_expansion(theta)
        curvature, gradient = expansion.curvature.dense(), expansion.gradient[0]
        factor = cho_factor(curvature[np.ix_(others, others)], lower=True)
        step = cho_solve(factor, gradient[others])
        theta = theta.copy()
        theta[0, others] += step
        left = float(step @ gradient[others])
        if left < _CLOSE:
            break
    across = curvature[others, j]
    tied = cho_solve(factor, across)
    moves = np.zeros(theta.size)
    moves[others], moves[j] = -tied, 1.0
    return _Given(
        theta,
        moves,
        expansion.log_prob + 0.5 * left,
        float(gradient[j] - across @ step),
        float(curvature[j, j] - across @ tied),
        2 * float(np.log(factor[0].diagonal()).sum()),
    )


def _scores(line: list[_Given], members: NDArray, which: int) -> tuple[NDArray, NDArray]:
    """Scores (m,), and quantiles there with what the other members are beyond their median."""
    j = members[which]
    values, modes, moves = (
        np.array(numbers)
        for numbers in zip(*((g.theta[0, j], g.theta[0], g.moves) for g in line), strict=True)
    )
    of_determinant = CubicSpline(values, [given.log_det for given in line])
    density = np.array([given.value for given in line])
    slopes = np.array([given.slope for given in line]) - 0.5 * of_determinant(values, 1)
    fine = np.linspace(values[0], values[-1], _FINE)
    share = np.exp(CubicHermiteSpline(values, density, slopes)(fine) - density.max())
    # from either end, so that no tail is lost to rounding; beyond the ends it falls exponentially
    cells = 0.5 * (share[1:] + share[:-1]) * (fine[1] - fine[0])
    below = share[0] / max(slopes[0], 1.0) + np.append(0.0, np.cumsum(cells))
    above = share[-1] / max(-slopes[-1], 1.0) + np.append(0.0, np.cumsum(cells[::-1]))
    above = above[::-1]
    total = below[-1] + above[-1]
    z = np.where(below < above, ndtri(below / total), -ndtri(above / total))
    reach = min(-z[0], z[-1])
    scores = np.linspace(-reach, reach, _KNOTS)
    quantiles = np.interp(scores, z, fine)
    at_median = float(np.interp(0.0, z, fine))
    shifts = CubicHermiteSpline(values, modes[:, members], moves[:, members])
    table = shifts(quantiles) - shifts(at_median)
    table[:, which] = quantiles
    return scores, table
