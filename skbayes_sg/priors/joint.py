"""The joint prior of coefficients and of the hyperparameters of their precisions.

Chains move under a prior of given precisions lambda_0. What the joint prior says beyond it depends
on the coefficients through sums of squares alone. With Q_g the sum of ``unit (beta - m)^2`` over
group g, in units of the noise variance where that is sampled,

    log p(beta, eta) - log p(beta | lambda_0)
        = log p(eta) + sum_g [n_g ell_g - (lambda_g - lambda_0g) Q_g] / 2 + const

(`JointPrior`). One precision can be integrated out (`IntegratedJoint`): the coefficients alone have
a prior with heavy tails,

    p(beta) = int p(lambda) N(beta; m, 1 / (lambda unit)) dlambda

which is Student's t but for the far ends of the hyperprior. So chains move the coefficients under
it, and a precision is drawn for each of their draws afterwards: no chain has to find its way
between the two (collapsed sampling, Liu 1994). Source: math/priors.md#a-sampled-precision.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline

from skbayes_sg.linalg import Dense, Diag
from skbayes_sg.linalg.coordinates import Whitened
from skbayes_sg.priors.base import Prior
from skbayes_sg.priors.scales import OnePrecision, Scales


class JointPrior:
    """Log density of parameters and hyperparameters, less that of the parameters under lambda_0.

    It is a function of the parameters of the model, or of coordinates u of them. These belong to
    one group each, and Q_g is the sum of ``(root u + origin)^2`` over its coordinates, so that no
    matrix is there in any step.

    Parameters
    ----------
    scales : Scales
    given : Prior
        Under lambda_0.
    coordinates : Whitened, optional
        Along the groups, and in units of the noise where that is sampled.

    Attributes
    ----------
    at : array of shape (groups,)
        lambda_0.
    root : array of shape (D,)
    """

    def __init__(self, scales: Scales, given: Prior, coordinates: Whitened | None = None) -> None:
        self.scales, self.at = scales, scales.of(given)
        weights, self._group = scales.weights(given), scales.members(given)[1]
        self._has_noise, self._mean = False, None
        if coordinates is None:
            self._has_noise = not given.quadratic
            self._mean = given.mean if given.mean.any() else None
            self.root, self._origin = np.sqrt(weights), np.zeros_like(weights)
        else:
            j = coordinates.pullback_diagonal(weights)
            linear = coordinates.pullback(weights * (coordinates.centre[0] - given.mean))
            self.root = np.sqrt(j)
            self._origin = np.divide(linear, self.root, out=np.zeros_like(j), where=j > 0)
            self._group = self._group[np.append(coordinates.columns.ravel(), coordinates.rest)]
        self._order = np.argsort(self._group, kind="stable")  # group by group
        self._starts = np.unique(self._group[self._order], return_index=True)[1]

    def summed(self, each: NDArray, times: NDArray | None = None) -> NDArray:
        """Numbers (n, D), or their products with others, summed over the groups, (n, groups)."""
        if len(self.at) > 1:
            each = each if times is None else each * times
            return np.add.reduceat(each[:, self._order], self._starts, axis=1)
        if times is None:
            return each.sum(axis=1, keepdims=True)
        return np.einsum("nd,nd->n", each, times)[:, None]

    def spread(self, of_groups: NDArray) -> NDArray:
        """Numbers (n, groups) as those of each coordinate, (n, D), or (n, 1) of one group."""
        return of_groups if len(self.at) == 1 else of_groups[:, self._group]

    def distances(self, u: NDArray) -> tuple[NDArray, NDArray]:
        """Signed roots of the terms of Q, (n, D), and Q, (n, groups)."""
        away = (u if self._mean is None else u - self._mean) * self.root + self._origin
        if self._has_noise:
            away *= np.exp(-0.5 * u[:, -1:])
        return away, self.summed(away, away)

    # -- functions of Q and eta ------------------------------------------------------------------

    def log_ratio(self, squares: NDArray, eta: NDArray) -> NDArray:
        """The log density beyond that under lambda_0, (n,), of Q (n, groups) and eta (n, K)."""
        less = self.at - np.exp(self.scales.log_precisions(eta))
        return self.scales.log_density(eta) + 0.5 * (less * squares).sum(axis=1)

    def ratio_slopes(self, squares: NDArray, eta: NDArray) -> tuple[NDArray, NDArray]:
        """Its derivatives over Q, (n, groups), and over eta, (n, K)."""
        lam = np.exp(self.scales.log_precisions(eta))
        return 0.5 * (self.at - lam), self.scales.slope(eta, -0.5 * lam * squares)

    # -- functions of coordinates and eta ---------------------------------------------------------

    def log_density(self, u: NDArray, eta: NDArray) -> NDArray:
        """Beyond that under lambda_0, (n,)."""
        return self.log_ratio(self.distances(u)[1], eta)

    def gradient(self, u: NDArray, eta: NDArray) -> tuple[NDArray, NDArray]:
        """Of `log_density` over u, (n, D), and over eta, (n, K)."""
        return self._gradient(*self.distances(u), u, eta)

    def value_and_grad(self, u: NDArray, eta: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """`log_density` and `gradient`."""
        away, squares = self.distances(u)
        return self.log_ratio(squares, eta), *self._gradient(away, squares, u, eta)

    def _gradient(
        self, away: NDArray, squares: NDArray, u: NDArray, eta: NDArray
    ) -> tuple[NDArray, NDArray]:
        of_squares, of_eta = self.ratio_slopes(squares, eta)
        root = self.root
        if self._has_noise:
            root = root * np.exp(-0.5 * u[:, -1:])
        of_u = self.spread(2 * of_squares) * (root * away)
        if self._has_noise:
            of_u[:, -1] -= (of_squares * squares).sum(axis=1)
        return of_u, of_eta


class IntegratedJoint(JointPrior):
    """The same with one precision integrated out; there is no hyperparameter."""

    def __init__(
        self, scales: OnePrecision, given: Prior, coordinates: Whitened | None = None
    ) -> None:
        super().__init__(scales, given, coordinates)
        self.integrated = IntegratedPrecision(scales)

    def log_ratio(self, squares: NDArray, eta: NDArray) -> NDArray:
        squares = squares[:, 0]
        return 0.5 * self.at * squares + self.integrated.log_density(squares)

    def ratio_slopes(self, squares: NDArray, eta: NDArray) -> tuple[NDArray, NDArray]:
        return 0.5 * (self.at - self.integrated.mean_precision(squares)), eta


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

    Whatever moves parameters under it samples the precision too, which is drawn for each of their
    draws afterwards.

    Parameters
    ----------
    given : Prior
        Under any precision lambda_0.
    scales : OnePrecision
    """

    quadratic = False

    def __init__(self, given: Prior, scales: OnePrecision) -> None:
        self.given, self._scales = given, scales
        self._joint = IntegratedJoint(scales, given)
        self.precision, self.mean, self.unit = given.precision, given.mean, given.unit

    def with_precision(self, precision: NDArray) -> IntegratedPrior:
        return IntegratedPrior(self.given.with_precision(precision), self._scales)

    def log_density(self, theta: NDArray) -> NDArray:
        none = np.empty((len(theta), 0))
        return self.given.log_density(theta) + self._joint.log_density(theta, none)

    def gradient(self, theta: NDArray) -> NDArray:
        more, _ = self._joint.gradient(theta, np.empty((len(theta), 0)))
        return (self.given.gradient(theta) + more).astype(theta.dtype, copy=False)

    def _under_the_mean(self, theta: NDArray) -> Prior:
        """The prior under the mean of lambda given theta, over the chains."""
        squares = self._joint.distances(theta)[1]
        lam = self._joint.integrated.mean_precision(squares).mean(axis=0)
        return self._scales.given(self.given, np.log(lam))

    def independent(self, theta: NDArray) -> NDArray:
        return self._under_the_mean(theta).independent(theta)

    def curvature(self, theta: NDArray) -> Diag | Dense:
        """That under the mean of lambda: definite, as minus the Hessian is not everywhere."""
        return self._under_the_mean(theta).curvature(theta)

    def hessian(self, theta: NDArray) -> NDArray:
        """As `curvature`."""
        return self._under_the_mean(theta).hessian(theta)

    def scaled_squares(self, theta: NDArray) -> NDArray:
        return self._under_the_mean(theta).scaled_squares(theta)
