"""One prior precision that is integrated out: the coefficients alone have a prior with heavy tails.

    p(beta) = int p(lambda) N(beta; m, 1 / (lambda unit)) dlambda

depends on ``Q = sum(unit (beta - m)^2)`` only, as the density of Student's t does, which it is but
for the far ends of the hyperprior. So chains move the coefficients under it, and a precision is
drawn for each of their draws afterwards: no chain has to find its way between the two
(math/priors.md#a-sampled-precision; collapsed sampling, Liu 1994).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline

from skbayes_sg.priors.scales import OnePrecision

_KNOTS = 2048  # the error of the logarithm of the density is below 1e-9
_NODES = 64  # of the integral over log lambda, whose error is that of rounding
_WIDTHS = 9.0  # standard deviations of log lambda on either side
_FARTHEST = 600.0  # natural logarithms below the density where the hyperprior ends


class IntegratedPrecision:
    """Log density of the coefficients, and draws of the precision given them.

    Parameters
    ----------
    scales : OnePrecision
    """

    def __init__(self, scales: OnePrecision) -> None:
        self._shape, self._least = scales.shape + 0.5 * scales.sizes[0], scales.least
        self._start = 2 * scales.rate

    @cached_property
    def _table(self) -> tuple[NDArray, NDArray, NDArray]:
        """Logarithms of 2 b + Q, log densities, and means of lambda."""
        end = np.log(0.5 * _FARTHEST**2 / self._least)
        knots = np.linspace(np.log(self._start), end, _KNOTS)
        rate = 0.5 * np.exp(knots)
        mode = self._mode(rate)
        width = 1 / np.sqrt(self._shape + 2 * self._least / mode)  # at most, of log lambda
        steps = np.linspace(-_WIDTHS, _WIDTHS, _NODES)[:, None] * width
        lam = mode * np.exp(steps)
        each = self._shape * np.log(lam) - rate * lam - self._least / lam
        top = each.max(axis=0)
        share = np.exp(each - top)
        total = share.sum(axis=0)
        mean = (share * lam).sum(axis=0) / total
        return knots, top + np.log(total * width), mean

    def _mode(self, rate: NDArray) -> NDArray:
        """Of log lambda, whose density is ``lambda^shape exp(-rate lambda - least / lambda)``."""
        return 0.5 * (self._shape + np.sqrt(self._shape**2 + 4 * rate * self._least)) / rate

    def log_density(self, squares: NDArray) -> NDArray:
        """Of coefficients with these sums of squares Q, up to a constant."""
        knots, value, mean = self._table
        spline = CubicHermiteSpline(knots, value, -0.5 * np.exp(knots) * mean)
        return spline(np.log(self._start + squares))

    def mean_precision(self, squares: NDArray) -> NDArray:
        """Mean of lambda given Q, minus twice the slope of `log_density`, to four digits."""
        knots, _, mean = self._table
        return np.interp(np.log(self._start + squares), knots, mean)

    def draw(self, squares: NDArray, rng: np.random.Generator) -> NDArray:
        """Independent draws of log lambda given Q.

        By rejection from a Gamma distribution whose mean is the mode: 1 / lambda is above its
        tangent there.
        """
        mode, shape = self._mode(0.5 * (self._start + squares)), self._shape
        drawn, left = np.empty(len(squares)), np.arange(len(squares))
        while len(left):
            ratio = rng.gamma(shape, size=len(left)) / shape
            drawn[left] = np.log(mode[left] * ratio)
            loss = self._least / mode[left] * (1 - ratio) ** 2 / ratio
            left = left[rng.random(len(left)) > np.exp(-loss)]
        return drawn
