"""What the uncertainty of a learned prior precision adds to the posterior. Arrays in, numbers out.

Chains run under one precision, the most probable. Its law given the data widens the posterior, to
first order by the variance of log precision times the square of the slope of the posterior mean
over it (Kass & Steffey 1989). All that is needed are moments of the draws under that one precision
(math.md#an-uncertain-precision).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from skbayes_sg import diagnostics
from skbayes_sg.data.random import fixed_rng
from skbayes_sg.diagnostics.limits import PRECISION_SHIFT_LIMIT, SCORE_LIMIT, SHIFT_LIMIT

SEPARATED = (
    "a plane separates the classes: rows bound coefficients and prior precision from one side "
    "only, and intervals are too narrow; give prior_precision a number that you believe in"
)
_FEWEST_DRAWS = 4  # of a chain, of which an effective number is known
_WIDEST = 0.8  # standard deviation of log precision; the normal law is no guide beyond
_MOST_SHRINKAGE = 0.5  # of a posterior that is the prior
_VAGUE_INFORMATION = 2.0  # on log precision; an error of so much is not worth another estimate


class LearnedPrecision(NamedTuple):
    """The precision that the chains had, and what else is known of it."""

    size: int
    """coefficients that share it"""
    hyperprior: tuple[float, float]
    """shape and rate of its Gamma hyperprior, in units of this precision"""
    sd: float
    """standard deviation of its logarithm by another estimate, for draws that are too few"""


class PrecisionLaw(NamedTuple):
    """Log precision given the data, near the value that the chains had."""

    sd: float
    """standard deviation"""
    score: float
    """derivative of its log density there, times `sd`: about how many of them it is off"""
    slope: NDArray
    """(D,), derivative of the posterior mean of the parameters over log precision"""
    shrinkage: float
    """minus the derivative of the log size of the coefficients, as root mean square"""
    shift: float
    """largest `sd` times slope, in posterior standard deviations of the parameter"""


def measured(
    draws: NDArray,
    weights: NDArray,
    squares: NDArray,
    precision: LearnedPrecision,
) -> PrecisionLaw:
    """The law, from draws under one precision.

    With s the scaled square of the coefficients, lambda times the squared distance from the prior
    mean: the slope is -Cov(theta, s) / 2 and the information on log precision E s / 2 - Var(s) / 4
    (Louis 1982), plus that of a Gamma hyperprior.

    Parameters
    ----------
    draws : array of shape (chains, draws, D)
    weights : array of shape (draws,)
        Of sum 1.
    squares : array of shape (chains, draws)
        The scaled square of each draw.
    precision : LearnedPrecision
        The one that the chains had.

    Returns
    -------
    PrecisionLaw

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> draws = 1 + 0.1 * rng.standard_normal((2, 500, 8))  # well known, and of size 1
    >>> squares = (draws**2).sum(axis=2)
    >>> precision = LearnedPrecision(8, (0.5, 0.5), np.inf)
    >>> law = measured(draws, np.full(500, 1 / 500), squares, precision)
    >>> round(law.sd, 1), round(law.shift, 2)  # sqrt(2 / 9), and little of it
    (0.5, 0.06)
    """
    size, (shape, rate), otherwise = precision
    each = np.broadcast_to(weights / len(draws), squares.shape)
    mean = float(np.sum(each * squares))
    rest = squares - mean
    variance = float(np.sum(each * rest**2))
    information = mean / 2 - variance / 4 + rate
    ess = 1.0
    if np.count_nonzero(weights) >= _FEWEST_DRAWS:
        ess = max(ess, float(diagnostics.ess_mean(squares[..., None], weights)[0]))
    sd = float(max(information, shape) ** -0.5)
    if variance / 4 * np.sqrt(2 / ess) > max(information, _VAGUE_INFORMATION):
        sd = otherwise
    score = ((size - mean) / 2 + shape - rate) * sd
    slope = -0.5 * np.einsum("cs,csd->d", each * rest, draws)
    _, spread = diagnostics.moments(draws, weights)
    shift = sd * np.abs(slope) / np.where(spread > 0, spread, np.inf)
    shrinkage = min(variance / (4 * max(mean, 1e-300)), _MOST_SHRINKAGE)
    return PrecisionLaw(sd, score, slope, shrinkage, float(shift.max()))


def averaged(draws: NDArray, weights: NDArray, law: PrecisionLaw, scales: NDArray) -> NDArray:
    """Draws (chains, draws, D) over the law of the precision, from those under one of them.

    Log precision takes the quantiles of a normal distribution, in a fixed random order. With it
    move the mean, by its slope, and the spread around the mean, both as fast as the size of the
    coefficients.

    Parameters
    ----------
    draws : array of shape (chains, draws, D)
    weights : array of shape (draws,)
    law : PrecisionLaw
    scales : array of shape (D,)
        Of which coordinates the spread moves.
    """
    n_chains, n_draws = draws.shape[:2]
    levels = (np.arange(n_chains * n_draws) + 0.5) / (n_chains * n_draws)
    away = min(law.sd, _WIDEST) * fixed_rng("precision").permutation(ndtri(levels))
    away = away.reshape(n_chains, n_draws)
    growth = np.expm1(-law.shrinkage * away)
    path = -growth / law.shrinkage if law.shrinkage > 0 else away
    mean, _ = diagnostics.moments(draws, weights)
    moved = np.empty_like(draws)
    for before, after, grown, along in zip(draws, moved, growth, path, strict=True):
        rest = np.where(scales, before - mean, 0.0)  # one chain at a time
        after[:] = before + grown[:, None] * rest + np.outer(along, law.slope)
    return moved


def averaged_covariance(covariance: NDArray, law: PrecisionLaw, scales: NDArray) -> NDArray:
    """The covariance of `averaged` draws, from that under one precision, (D, D)."""
    variance = min(law.sd, _WIDEST) ** 2
    square = law.shrinkage**2 * variance  # means of exponentials of normal numbers follow
    growth = np.exp(
        np.where(scales[:, None] & scales, 2.0, 0.5 * (scales[:, None] | scales)) * square
    )
    along = variance * np.exp(square) * (np.expm1(square) / square if square > 0 else 1.0)
    return covariance * growth + along * np.outer(law.slope, law.slope)


def figures_of(law: PrecisionLaw, separated: bool) -> tuple[dict[str, float], list[str]]:
    """Figures of a learned precision, as the draws tell, and warnings about it.

    `separated` says whether a plane separates the classes. The law of log precision then has a long
    tail, which its standard deviation near the most probable value does not tell.
    """
    names = ("precision_sd", "precision_score", "precision_shift")
    figures = dict(zip(names, (law.sd, law.score, law.shift), strict=True))
    complaints = []
    if law.shift > PRECISION_SHIFT_LIMIT:
        complaints.append(
            f"precision_shift is {law.shift:.4g}, above {PRECISION_SHIFT_LIMIT}: the data hardly "
            "determine the prior precision, and coefficients move by so many posterior standard "
            "deviations within its uncertainty, as where classes are separable; intervals are too "
            "narrow; give prior_precision a number that you believe in"
        )
    elif separated:
        complaints.append(SEPARATED)
    if abs(law.score) > SCORE_LIMIT and abs(law.score) * law.shift > 2 * SHIFT_LIMIT:
        complaints.append(
            f"precision_score is {law.score:.4g}, beyond {SCORE_LIMIT}: the learned prior "
            f"precision is too {'high' if law.score < 0 else 'low'} by some of its standard "
            "deviations, and coefficients are off with it; learn it longer, by "
            "prior_precision=VariationalEM(hyperprior=(0.5, 0.5)), or give a number"
        )
    return figures, complaints
