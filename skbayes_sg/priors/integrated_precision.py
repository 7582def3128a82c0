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

from skbayes_sg.linalg import Dense, Diag
from skbayes_sg.priors.base import Prior
from skbayes_sg.priors.scales import OnePrecision


class IntegratedPrecision:
    """Log density of the coefficients, and draws of the precision given them.

    Given these, log lambda has the density ``lambda^shape exp(-rate lambda - least / lambda)``,
    with ``rate = b + Q / 2``, and the mode ``(shape + sqrt(shape^2 + 4 rate least)) / (2 rate)``.

    Parameters
    ----------
    scales : OnePrecision
    """

    def __init__(self, scales: OnePrecision) -> None:
        self._shape, self._least = scales.shape + 0.5 * scales.sizes[0], scales.least
        self._start = 2 * scales.rate

    @cached_property
    def _table(self) -> tuple[NDArray, NDArray, NDArray]:
        """Logarithms of 2 b + Q, log densities, and means of lambda.

        The table ends 600 natural logarithms below the density where the hyperprior ends.
        """
        end = np.log(0.5 * 600.0**2 / self._least)
        knots = np.linspace(np.log(self._start), end, 2048)  # error of the log density below 1e-9
        rate = 0.5 * np.exp(knots)
        mode = 0.5 * (self._shape + np.sqrt(self._shape**2 + 4 * rate * self._least)) / rate
        width = 1 / np.sqrt(self._shape + 2 * self._least / mode)  # at most, of log lambda
        # nine widths on either side: the error of the integral is that of rounding
        lam = mode * np.exp(np.linspace(-9.0, 9.0, 64)[:, None] * width)
        each = self._shape * np.log(lam) - rate * lam - self._least / lam
        top = each.max(axis=0)
        share = np.exp(each - top)
        total = share.sum(axis=0)
        mean = (share * lam).sum(axis=0) / total
        return knots, top + np.log(total * width), mean

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
        rate, shape = 0.5 * (self._start + squares), self._shape
        mode = 0.5 * (shape + np.sqrt(shape**2 + 4 * rate * self._least)) / rate
        drawn, left = np.empty(len(squares)), np.arange(len(squares))
        while len(left):
            ratio = rng.gamma(shape, size=len(left)) / shape
            drawn[left] = np.log(mode[left] * ratio)
            loss = self._least / mode[left] * (1 - ratio) ** 2 / ratio
            left = left[rng.random(len(left)) > np.exp(-loss)]
        return drawn


class IntegratedPrior:
    """The prior of all parameters where the one precision of the coefficients is integrated out.

    What it differs in from the prior under a given precision is a function of the coefficients'
    sum of squares, in units of the noise variance where that is sampled. Whatever moves parameters
    under it samples the precision too, which is drawn for each of their draws afterwards.

    Parameters
    ----------
    given : Prior
        Under any precision lambda_0.
    scales : OnePrecision
    """

    quadratic = False

    def __init__(self, given: Prior, scales: OnePrecision) -> None:
        self.given, self.scales, self._integrated = given, scales, IntegratedPrecision(scales)
        self.precision, self.mean, self.unit = given.precision, given.mean, given.unit
        self._at, self._weights = float(scales.of(given)[0]), scales.weights(given)

    def with_precision(self, precision: NDArray) -> IntegratedPrior:
        return IntegratedPrior(self.given.with_precision(precision), self.scales)

    def _squares(self, theta: NDArray) -> tuple[NDArray, NDArray]:
        """Units over noise variance times distances, (chains, D), and Q, (chains,)."""
        away = theta - self.mean
        scaled = away * self._weights
        if not self.given.quadratic:
            scaled *= np.exp(-theta[:, -1:])
        return scaled, np.einsum("cd,cd->c", scaled, away)

    def log_density(self, theta: NDArray) -> NDArray:
        _, squares = self._squares(theta)
        more = 0.5 * self._at * squares + self._integrated.log_density(squares)
        return self.given.log_density(theta) + more

    def gradient(self, theta: NDArray) -> NDArray:
        scaled, squares = self._squares(theta)
        less = self._at - self._integrated.mean_precision(squares)
        gradient = self.given.gradient(theta) + less[:, None] * scaled
        if not self.given.quadratic:
            gradient[:, -1] -= 0.5 * less * squares
        return gradient.astype(theta.dtype, copy=False)

    def _mean(self, theta: NDArray) -> Prior:
        """The prior under the mean of lambda given theta, over the chains."""
        lam = self._integrated.mean_precision(self._squares(theta)[1]).mean()
        return self.given.with_precision(self.precision + (lam - self._at) * self._weights)

    def independent(self, theta: NDArray) -> NDArray:
        return self._mean(theta).independent(theta)

    def curvature(self, theta: NDArray) -> Diag | Dense:
        """That under the mean of lambda: definite, as minus the Hessian is not everywhere."""
        return self._mean(theta).curvature(theta)

    def hessian(self, theta: NDArray) -> NDArray:
        """As `curvature`."""
        return self._mean(theta).hessian(theta)

    def scaled_squares(self, theta: NDArray) -> NDArray:
        return self._mean(theta).scaled_squares(theta)
