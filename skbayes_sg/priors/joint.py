"""The joint prior of coefficients and of the hyperparameters of their precisions.

Chains move under a prior of given precisions lambda_0. What the joint prior says beyond it depends
on the coefficients through sums of squares alone. With Q_g the sum of ``unit (beta - m)^2`` over
group g, in units of the noise variance where that is sampled,

    log p(beta, eta) - log p(beta | lambda_0)
        = log p(eta) + sum_g [n_g ell_g - (lambda_g - lambda_0g) Q_g] / 2 + const

(`JointPrior`). Precisions that are independent a priori can be integrated out (`IntegratedJoint`):
the coefficients of each group alone have a prior with heavy tails,

    p(beta) = int p(lambda) N(beta; m, 1 / (lambda unit)) dlambda

which is Student's t for a Gamma hyperprior, but for its far ends. So chains move the coefficients
under it, and precisions are drawn for each of their draws afterwards: no chain has to find its way
between the two (collapsed sampling, Liu 1994). Source: math/priors.md#a-sampled-precision.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline
from scipy.special import ndtr

from skbayes_sg.linalg import Dense, Diag
from skbayes_sg.linalg.coordinates import Whitened
from skbayes_sg.priors.base import Prior
from skbayes_sg.priors.scales import Precisions, Scales

_WIDEST = 6.0  # of a log precision given its coefficients
_AWAY = np.linspace(-8.0, 24.0, 641)  # of log precisions from where they are about
_LIGHT = 5.0  # kurtosis: no direction is looked for that has less
_ROUNDING = 1e-9  # of a variance beside that under the prior alone


class JointPrior:
    """Log density of parameters and hyperparameters, less that of the parameters under lambda_0.

    It is a function of the parameters of the model, or of coordinates u of them. These belong to
    one group each, and Q_g is the sum of ``(root u + origin)^2`` over its coordinates, so that no
    matrix is there in any step.

    Parameters
    ----------
    scales : Scales
    prior : Prior
        The prior under lambda_0.
    coordinates : Whitened, optional
        Along the groups, and in units of the noise where that is sampled.

    Attributes
    ----------
    lam_0 : array of shape (groups,)
        lambda_0.
    root : array of shape (D,)
    """

    def __init__(self, scales: Scales, prior: Prior, coordinates: Whitened | None = None) -> None:
        self.scales, self.lam_0 = scales, scales.of(prior)
        weights, self._group = scales.weights(prior), scales.members(prior)[1]
        self._has_noise, self._mean = False, None
        if coordinates is None:
            self._has_noise = not prior.quadratic
            self._mean = prior.mean if prior.mean.any() else None
            self.root, self._origin = np.sqrt(weights), np.zeros_like(weights)
        else:
            j = coordinates.pullback_diagonal(weights)
            linear = coordinates.pullback(weights * (coordinates.centre[0] - prior.mean))
            self.root = np.sqrt(j)
            self._origin = np.divide(linear, self.root, out=np.zeros_like(j), where=j > 0)
            self._group = self._group[np.append(coordinates.columns.ravel(), coordinates.rest)]
        self._order = np.argsort(self._group, kind="stable")  # group by group
        self._starts = np.unique(self._group[self._order], return_index=True)[1]

    def summed(self, values: NDArray, times: NDArray | None = None) -> NDArray:
        """Numbers (n, D), or their products with others, summed over the groups, (n, groups)."""
        if len(self.lam_0) > 1:
            values = values if times is None else values * times
            return np.add.reduceat(values[:, self._order], self._starts, axis=1)
        if times is None:
            return values.sum(axis=1, keepdims=True)
        return np.einsum("nd,nd->n", values, times)[:, None]

    def spread(self, of_groups: NDArray) -> NDArray:
        """Numbers (n, groups) as those of each coordinate, (n, D), or (n, 1) of one group."""
        return of_groups if len(self.lam_0) == 1 else of_groups[:, self._group]

    def distances(self, u: NDArray) -> tuple[NDArray, NDArray]:
        """Signed roots of the terms of Q, (n, D), and Q, (n, groups)."""
        away = (u if self._mean is None else u - self._mean) * self.root + self._origin
        if self._has_noise:
            away *= np.exp(-0.5 * u[:, -1:])
        return away, self.summed(away, away)

    # -- functions of Q and eta ------------------------------------------------------------------

    def log_ratio(self, squares: NDArray, eta: NDArray) -> NDArray:
        """The log density beyond that under lambda_0, (n,), of Q (n, groups) and eta (n, K)."""
        less = self.lam_0 - np.exp(self.scales.log_precisions(eta))
        return self.scales.log_density(eta) + 0.5 * (less * squares).sum(axis=1)

    def ratio_slopes(self, squares: NDArray, eta: NDArray) -> tuple[NDArray, NDArray]:
        """Its derivatives over Q, (n, groups), and over eta, (n, K)."""
        lam = np.exp(self.scales.log_precisions(eta))
        return 0.5 * (self.lam_0 - lam), self.scales.slope(eta, -0.5 * lam * squares)

    # -- functions of coordinates and eta ---------------------------------------------------------

    def log_density(self, u: NDArray, eta: NDArray) -> NDArray:
        """Log density beyond that under lambda_0, (n,)."""
        return self.log_ratio(self.distances(u)[1], eta)

    def gradient(self, u: NDArray, eta: NDArray) -> tuple[NDArray, NDArray]:
        """Gradient of `log_density` over u, (n, D), and over eta, (n, K)."""
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
    """The same with the precisions integrated out; there is no hyperparameter."""

    def __init__(
        self, scales: Precisions, prior: Prior, coordinates: Whitened | None = None
    ) -> None:
        super().__init__(scales, prior, coordinates)
        self.integrated = IntegratedPrecisions(scales)

    def log_ratio(self, squares: NDArray, eta: NDArray) -> NDArray:
        of_given = 0.5 * (self.lam_0 * squares).sum(axis=1)
        return of_given + self.integrated.log_density(squares)

    def ratio_slopes(self, squares: NDArray, eta: NDArray) -> tuple[NDArray, NDArray]:
        return 0.5 * (self.lam_0 - self.integrated.mean(squares)), eta

    def vagueness(self, u: NDArray, variances: NDArray) -> NDArray:
        """Relative variance of each Q about u (1, D), by a normal approximation, (groups,).

        Where a sum of squares may be next to zero, the density of its coefficients has no curvature
        to speak of: that of a half-Cauchy prior grows without bounds there.
        """
        squares, spread = self.distances(u)[0] ** 2, self.root**2 * variances[None]
        variance = self.summed(4 * squares * spread + 2 * spread**2)
        return (variance / self.summed(squares + spread) ** 2)[0]

    def tails(self, u: NDArray, covariance: NDArray) -> tuple[NDArray, NDArray]:
        """What the two tails of each log precision do to coefficients, (groups,) each.

        Terms of Q whose roots are normal under lambda_0, around y with variances v, leave the log
        precision the log density

            log p(ell) + n ell / 2 - sum [log(1 + d v) + d y^2 / (1 + d v)] / 2,
            d = lambda - lambda_0

        Far above its median all coefficients of the group are next to zero. The sum of squares of
        many, of each of which the rows say little, is certain under any one precision, but not over
        all of them. The first number is the share more than three widths above; a width is the
        distance of the median from the quantile one normal deviation below it.

        Far below, what no row knows is anywhere: given the precision it is normal with variance
        v / (1 + d v), and at most 1 / lambda. The second number is the kurtosis of its mixture over
        all of them, along the direction where that is largest, or a bound of it: 3 of a normal
        distribution, and over a hundred of the two columns of a factor of two levels beside an
        intercept. `covariance` (D, D) is that of coordinates.
        """
        roots = self.distances(u)[0][0]
        spread = covariance * np.outer(self.root, self.root)
        share, kurtosis = np.empty((2, len(self.lam_0)))
        for k, (at, n) in enumerate(zip(self.lam_0, self.scales.sizes, strict=True)):
            own = (self._group == k) & (self.root > 0)
            ell = np.log(at) + _AWAY
            more = (np.exp(ell) - at)[:, None]
            start = self.scales.log_hyperprior(ell[:, None]) + 0.5 * n * ell
            shares, _ = _mixture(start, more, roots[own], spread.diagonal()[own])
            below = np.cumsum(shares)
            median, low = np.interp([0.5, ndtr(-1.0)], below, ell)
            share[k] = 1 - np.interp(median + 3 * (median - low), ell, below)
            kurtosis[k] = _kurtosis(shares, np.exp(-ell)[:, None])
            if kurtosis[k] > _LIGHT:
                v, V = np.linalg.eigh(spread[np.ix_(own, own)])
                kurtosis[k] = _kurtosis(*_mixture(start, more, V.T @ roots[own], v))
        return share, kurtosis

    def funnels(self, u: NDArray, variances: NDArray) -> NDArray:
        """What each precision takes from the curvature at u (1, D): factors of it, (groups, D).

        Along the roots y of the terms of Q the curvature is smaller than under the given precision
        by the variance of lambda given Q, at a typical Q: there all coefficients grow, and their
        precision falls. `variances` (D,) are those of coordinates.
        """
        y = self.distances(u)[0]
        squares = self.summed(y**2) + self.summed(self.root**2 * variances[None])
        taken = self.spread(self.integrated.sd(squares)) * (self.root * y)
        groups = np.arange(len(self.lam_0))[:, None]
        return np.where(self._group == groups, taken, 0.0)


def _mixture(start: NDArray, more: NDArray, y: NDArray, v: NDArray) -> tuple[NDArray, NDArray]:
    """Shares of precisions (m,), and variances of terms under each over those under lambda_0.

    `start` (m,) is what does not depend on the terms, `more` (m, 1) what a precision is above
    lambda_0, and y and v (terms,) are means and variances there.
    """
    grown = np.maximum(1 + more * v, _ROUNDING)
    of_rows = np.log(grown) + more * y**2 / grown
    value = start - 0.5 * of_rows.sum(axis=1)
    shares = np.exp(value - value.max())
    return shares / shares.sum(), 1 / grown


def _kurtosis(shares: NDArray, variances: NDArray) -> float:
    """The largest kurtosis of mixtures of centred normal numbers, of variances (m, terms)."""
    return float((3 * (shares @ variances**2) / (shares @ variances) ** 2).max())


class IntegratedPrecisions:
    """Log density of the coefficients, and draws of the precisions given them.

    Given these, and so the Q of a group of n, its log precision has the log density ``power(ell) +
    n ell / 2 - rate lambda - least / lambda``, with ``rate = b + Q / 2``. It is concave, with the
    mode ``(s + sqrt(s^2 + 4 rate least)) / (2 rate)``, where s is the slope of the first two terms
    there.

    Parameters
    ----------
    scales : Precisions
    """

    def __init__(self, scales: Precisions) -> None:
        self._scales = scales
        # a rate that excludes precisions of 1e10 units, where the hyperprior does not
        self._start = 2 * (scales.rate or 1e-10 / scales.unit)
        self._groups = [(n, np.flatnonzero(scales.sizes == n)) for n in np.unique(scales.sizes)]

    @property
    def largest(self) -> float:
        """Squares Q above which no hyperprior lets coefficients be."""
        return 0.5 * 600.0**2 / self._scales.least

    def _mode(self, n: float, rate: NDArray) -> tuple[NDArray, NDArray]:
        """Mode of lambda for groups of n, and the slope s there."""
        least, slope_at = self._scales.least, self._scales.power_slope
        slope: NDArray | float = 0.5 + 0.5 * n
        mode = 0.5 * (slope + np.sqrt(slope**2 + 4 * rate * least)) / rate
        for _ in range(100):
            slope = slope_at(np.log(mode)) + 0.5 * n
            following = 0.5 * (slope + np.sqrt(slope**2 + 4 * rate * least)) / rate
            if (np.abs(following - mode) <= 1e-12 * mode).all():
                break
            mode = 0.5 * (mode + following)  # a slope that falls would lead to and fro
        return mode, np.broadcast_to(slope, mode.shape)

    @cached_property
    def _tables(self) -> list[tuple[NDArray, CubicHermiteSpline, NDArray]]:
        """Logarithms of 2 b + Q, the log density over these, and means of lambda, by size of group.

        The table ends 600 natural logarithms below the density where the hyperprior ends.
        """
        scales, tables = self._scales, []
        end = np.log(self.largest)
        knots = np.linspace(np.log(self._start), end, 2048)  # error of the log density below 1e-9
        rate = 0.5 * np.exp(knots)
        for n, _ in self._groups:
            mode, slope = self._mode(n, rate)
            bend = scales.power_curvature(np.log(mode))
            width = 1 / np.sqrt(slope + 2 * scales.least / mode + bend)  # at most, of log lambda
            width = np.minimum(width, _WIDEST)
            # Nine widths on either side: the error of the integral is that of rounding. Of one
            # coefficient near zero it is a plateau of less than six widths of six.
            away = np.linspace(-9.0, 9.0, 64)[:, None] * width
            lam = mode * np.exp(away)
            ell = np.log(mode) + away
            log_integrand = scales.power(ell) + 0.5 * n * ell - rate * lam - scales.least / lam
            top = log_integrand.max(axis=0)
            share = np.exp(log_integrand - top)
            total = share.sum(axis=0)
            mean = (share * lam).sum(axis=0) / total
            value = top + np.log(total * width)
            tables.append((knots, CubicHermiteSpline(knots, value, -rate * mean), mean))
        return tables

    def log_density(self, squares: NDArray) -> NDArray:
        """Log density of coefficients with squares Q (m, groups), (m,), up to a constant."""
        total = np.zeros(len(squares))
        for (_, group), (_, spline, _) in zip(self._groups, self._tables, strict=True):
            total += spline(np.log(self._start + squares[:, group])).sum(axis=1)
        return total

    def mean(self, squares: NDArray) -> NDArray:
        """Mean of lambda given Q, minus twice the slope of `log_density`, to four digits: as Q."""
        lam = np.empty_like(squares)
        for (_, group), (knots, _, mean) in zip(self._groups, self._tables, strict=True):
            lam[:, group] = np.interp(np.log(self._start + squares[:, group]), knots, mean)
        return lam

    def sd(self, squares: NDArray) -> NDArray:
        """Standard deviation of lambda given Q, about: as Q."""
        mean = self.mean(squares)
        return mean / np.sqrt(self._scales.power_slope(np.log(mean)) + 0.5 * self._scales.sizes)

    def draw(self, squares: NDArray, rng: np.random.Generator) -> NDArray:
        """Independent draws of log lambda given Q, as Q.

        By rejection from a Gamma distribution whose mean is the mode: 1 / lambda is above its
        tangent there, and the power below its own over log lambda. Far above `largest` next to none
        is accepted.
        """
        drawn = np.empty_like(squares)
        for n, group in self._groups:
            rate = 0.5 * (self._start + squares[:, group].ravel())
            mode, slope = self._mode(n, rate)
            accepted, pending = np.empty(len(rate)), np.arange(len(rate))
            while len(pending):
                shape, peak = slope[pending], mode[pending]
                with np.errstate(divide="ignore", invalid="ignore"):  # of a Gamma number of zero
                    ratio = rng.gamma(shape) / shape
                    ell = np.log(peak * ratio)
                    loss = self._scales.least / peak * (1 - ratio) ** 2 / ratio
                    tangent = (shape - 0.5 * n) * (ell - np.log(peak))
                    loss += self._scales.power(np.log(peak)) + tangent - self._scales.power(ell)
                accepted[pending] = ell
                pending = pending[~(rng.random(len(pending)) <= np.exp(-loss))]
            drawn[:, group] = accepted.reshape(-1, len(group))
        return drawn


class IntegratedPrior:
    """The prior of all parameters where the precisions of coefficients are integrated out.

    Whatever moves parameters under it samples the precisions too, which are drawn for each of their
    draws afterwards.

    Parameters
    ----------
    prior : Prior
        The prior under any precisions lambda_0.
    scales : Precisions
    """

    quadratic = False

    def __init__(self, prior: Prior, scales: Precisions) -> None:
        self.prior, self._scales = prior, scales
        self._joint = IntegratedJoint(scales, prior)
        self.precision, self.mean, self.unit = prior.precision, prior.mean, prior.unit

    def with_precision(self, precision: NDArray) -> IntegratedPrior:
        return IntegratedPrior(self.prior.with_precision(precision), self._scales)

    def log_density(self, theta: NDArray) -> NDArray:
        none = np.empty((len(theta), 0))
        return self.prior.log_density(theta) + self._joint.log_density(theta, none)

    def gradient(self, theta: NDArray) -> NDArray:
        of_joint, _ = self._joint.gradient(theta, np.empty((len(theta), 0)))
        return (self.prior.gradient(theta) + of_joint).astype(theta.dtype, copy=False)

    def _under_the_mean(self, theta: NDArray) -> Prior:
        """The prior under the mean of lambda given theta, over the chains."""
        squares = self._joint.distances(theta)[1]
        lam = self._joint.integrated.mean(squares).mean(axis=0)
        return self._scales.given(self.prior, np.log(lam))

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
