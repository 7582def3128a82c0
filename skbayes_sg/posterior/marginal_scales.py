"""The hyperparameters of a prior beside normal parameters, which are integrated out.

With C the precision matrix of the distribution under the precisions of ell(eta), and h that times
its mean,

    log p(eta | data) = log p(eta) - log det(C) / 2 + h^T C^-1 h / 2 + const

and the last term is that of Student's t where the noise variance is sampled too. Source:
math/priors.md#a-sampled-precision; MacKay 1992.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from skbayes_sg.linalg import Dense
from skbayes_sg.priors import Distribution, Prior
from skbayes_sg.priors.scales import Scales

_FAINT = 10.0  # natural logarithms below the density at the mode
_MOST_STEPS = 40  # to either side
_FINE = 2001


class MarginalScales:
    """Log density of hyperparameters beside a normal distribution.

    Parameters
    ----------
    scales : Scales
    distribution : Distribution
        That of the parameters, under `prior`.
    prior : Prior
    """

    def __init__(self, scales: Scales, distribution: Distribution, prior: Prior) -> None:
        self._scales, n = scales, distribution.operator.dim
        unit = scales.weights(prior)[:n]
        self._shrunken, self._others = np.flatnonzero(unit > 0), np.flatnonzero(unit == 0)
        self._unit, self._dim = unit[self._shrunken], n
        precision = distribution.operator.dense()
        away = (distribution.mean[:n] - prior.mean[:n])[self._shrunken]
        both = np.ix_(self._shrunken, self._shrunken)
        # What is not shrunken is eliminated: an intercept is tied to columns far from zero, and
        # beside it the rows know their coefficients by the difference of large numbers.
        across = precision[np.ix_(self._others, self._shrunken)]
        self._alone = precision[np.ix_(self._others, self._others)]
        self._tied = cho_solve(cho_factor(self._alone, lower=True), across)
        marginal = precision[both] - across.T @ self._tied
        self._slope = marginal @ away
        self._given = scales.members(prior)[0][self._shrunken]
        self._free = marginal - np.diag(self._given)
        self._away, self._noise = away, distribution.noise
        self._centre = distribution.mean[:n].copy()
        self._centre[self._shrunken] -= away
        self._centre[self._others] += self._tied @ away

    def _solved(self, ell: NDArray) -> tuple[NDArray, NDArray, NDArray, float]:
        """Precisions, covariance and mean of the shrunken parameters under ell, and log det C."""
        every = np.zeros(self._dim)
        every[self._scales.block] = np.exp(ell)[self._scales.group]
        lam = every[self._shrunken] * self._unit
        precision = Dense(self._free).plus_diagonal(lam)
        covariance = precision.inverse().matrix
        log_det = 2 * float(np.log(precision.cholesky().diagonal()).sum())
        return lam, covariance, covariance @ self._slope, log_det

    def _of_energy(self, lam: NDArray, mean: NDArray) -> tuple[float, float]:
        """The term of h^T C^-1 h / 2, up to a constant, and its derivative.

        That is away^T (lam - given) mean / 2 below what it is under the given precisions. To take
        one from the other would leave rounding errors where the rows leave next to no noise.
        """
        less = 0.5 * float((lam - self._given) * self._away @ mean)
        if self._noise is None:
            return -less, 1.0
        shape, rate = self._noise
        return -shape * np.log(rate + less), shape / (rate + less)

    def log_density(self, eta: NDArray) -> tuple[float, NDArray]:
        """Log density of eta (K,), up to a constant, and its gradient."""
        scales, eta = self._scales, eta[None]
        lam, covariance, mean, log_det = self._solved(scales.log_precisions(eta)[0])
        value, factor = self._of_energy(lam, mean)
        slopes = -0.5 * lam * (covariance.diagonal() + factor * mean**2)
        value += float(scales.log_density(eta)[0]) - 0.5 * log_det
        return value, scales.slope(eta, self._grouped(slopes[None]))[0]

    def _grouped(self, values: NDArray) -> NDArray:
        """Sums over the coefficients of each group, of numbers of the shrunken ones."""
        every = np.zeros((len(values), self._dim))
        every[:, self._shrunken] = values
        return self._scales.summed(every[:, self._scales.block])

    def mode(self, start: NDArray) -> NDArray:
        """The most probable eta (K,), from a start (1, K)."""

        def minus(eta: NDArray) -> tuple[float, NDArray]:
            value, gradient = self.log_density(eta)
            return -value, -gradient

        bounds = np.column_stack([start[0] - 20.0, start[0] + 20.0])
        return minimize(minus, start[0], jac=True, method="L-BFGS-B", bounds=bounds).x

    def width(self, eta: NDArray) -> NDArray:
        """About the standard deviation of each hyperparameter at the mode, (K,)."""
        scales, point = self._scales, eta[None]
        lam, covariance, mean, _ = self._solved(scales.log_precisions(point)[0])
        factor = self._of_energy(lam, mean)[1]
        squares = 0.5 * lam * (covariance.diagonal() + factor * mean**2)
        group = np.full(self._dim, -1)
        group[scales.block] = scales.group
        group = group[self._shrunken]
        both = lam * mean
        pairs = (
            0.5 * np.outer(lam, lam) * covariance**2 + factor * np.outer(both, both) * covariance
        )
        same = np.where(group[:, None] == group, pairs, 0.0).sum(axis=1)
        of_ell = self._grouped((squares - same)[None])[0]
        slopes = scales.pullback(np.repeat(point, len(of_ell), axis=0), np.eye(len(of_ell)))
        curvature = of_ell @ slopes**2 + scales.hyperprior_curvature(point)
        return 1 / np.sqrt(np.maximum(curvature, 0.1))  # within three natural logarithms

    def _along(
        self, k: int, eta: NDArray, width: NDArray, at: Callable[[NDArray], tuple]
    ) -> tuple[NDArray, tuple[Any, ...]]:
        """Points around a mode along hyperparameter k, and what there is at each, as tuples.

        `at` gives the log density of a point first. The points are one width apart, and go as far
        as it counts. Levels that may all be alike have any large precision, and few levels any
        small one, down to where rounding errors exceed it.
        """
        found = {0: at(eta)}
        for side in (-1, 1):
            step = 0
            while abs(step) < _MOST_STEPS and found[step][0] > found[0][0] - _FAINT:
                step += side
                point = eta.copy()
                point[k] += step * width[k]
                try:
                    found[step] = at(point)
                except np.linalg.LinAlgError:
                    break
        steps = np.array(sorted(found))
        return eta[k] + steps * width[k], tuple(zip(*(found[step] for step in steps), strict=True))

    def distributions(self, eta: NDArray, width: NDArray) -> tuple[NDArray, NDArray]:
        """Values of each hyperparameter, and its distribution function there, (K, points) each.

        From about their mode and widths; one varies at a time, with the others at the mode.
        """
        values, below = np.empty((len(eta), _FINE)), np.empty((len(eta), _FINE))
        for k in range(len(eta)):
            points, (density, slopes) = self._along(k, eta, width, self.log_density)
            spline = CubicHermiteSpline(points, density, np.array(slopes)[:, k])
            values[k] = np.linspace(points[0], points[-1], _FINE)
            share = np.exp(spline(values[k]) - max(density))
            below[k] = (np.cumsum(share) - 0.5 * share) / share.sum()
        return values, below

    def over(self, eta: NDArray, width: NDArray) -> tuple[NDArray, Dense]:
        """Mean and precision of the parameters over all eta, from about their mode and widths.

        One eta varies at a time: what several of them add to the moments is summed. With a noise
        variance the precision is in units of 1 / its mean under eta.

        Raises
        ------
        numpy.linalg.LinAlgError
            If the moments are no covariance.
        """
        value, mean, covariance, noise = self._moments(eta)
        middle, spread, inner = mean.copy(), covariance.copy(), 1.0
        for k in range(len(eta)):
            _, (values, means, covariances, noises) = self._along(k, eta, width, self._moments)
            share = np.exp(np.array(values) - value)
            share /= share.sum()
            along = share @ np.array(means)
            middle += along - mean
            away = np.array(means) - along
            spread += (away.T * share) @ away / noise
            for part, other, its_noise in zip(share, covariances, noises, strict=True):
                spread += part * (its_noise / noise * other - covariance)
                inner += part * (its_noise / noise - 1)
        return self._of_all(middle, Dense(spread).inverse().dense(), inner)

    def _of_all(self, mean: NDArray, precision: NDArray, inner: float) -> tuple[NDArray, Dense]:
        """Mean and precision of all parameters from those of the shrunken ones.

        Given these the others are normal around a linear function of them; their variance is
        `inner` times that under the distribution.
        """
        shrunken, others, centre = self._shrunken, self._others, self._centre.copy()
        centre[shrunken] += mean
        centre[others] -= self._tied @ mean
        alone = self._alone / inner
        across = alone @ self._tied
        joint = np.empty((self._dim, self._dim))
        joint[np.ix_(shrunken, shrunken)] = precision + self._tied.T @ across
        joint[np.ix_(others, shrunken)] = across
        joint[np.ix_(shrunken, others)] = across.T
        joint[np.ix_(others, others)] = alone
        return centre, Dense(joint)

    def _moments(self, eta: NDArray) -> tuple[float, NDArray, NDArray, float]:
        """Log density of eta; mean and covariance of the shrunken parameters given it; noise."""
        ell = self._scales.log_precisions(eta[None])[0]
        lam, covariance, mean, log_det = self._solved(ell)
        value, factor = self._of_energy(lam, mean)
        value += float(self._scales.log_density(eta[None])[0])
        noise = 1.0 if self._noise is None else self._noise[0] / (factor * (self._noise[0] - 1))
        return value - 0.5 * log_det, mean, covariance, noise

    def known(self, precisions: NDArray) -> NDArray:
        """What the data know of the coefficients of each group, as a number of them."""
        lam, covariance = self._solved(np.log(precisions))[:2]
        return self._grouped((1 - lam * covariance.diagonal())[None])[0]
