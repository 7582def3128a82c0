"""Prior precisions that are sampled: what they are functions of, and the prior of that.

    beta_i | eta ~ N(m_i, 1 / (unit_i exp(ell_g(i)))),   ell = ell(eta),   eta ~ p(eta)

g(i) is the group of coefficient i, and ell the log precisions of the groups. With eta = ell these
are precisions of groups of columns, one (`OnePrecision`) or several (`Groups`). The horseshoe and
Student's t are other functions. Source: math/priors.md#a-sampled-precision.

One precision can be integrated out: the coefficients alone have a prior with heavy tails.

    p(beta) = int p(lambda) N(beta; m, 1 / (lambda unit)) dlambda

depends on ``Q = sum(unit (beta - m)^2)`` only, as the density of Student's t does, which it is but
for the far ends of the hyperprior. So chains move the coefficients under it, and a precision is
drawn for each of their draws afterwards: no chain has to find its way between the two (collapsed
sampling, Liu 1994).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline
from scipy.special import expit

from skbayes_sg.linalg import Dense, Diag
from skbayes_sg.priors.base import Prior


class Scales(ABC):
    """Log precisions of groups of coefficients as a function of hyperparameters eta.

    By default eta are the log precisions themselves.

    Parameters
    ----------
    block : integer array of shape (P,)
        Coordinates of the coefficients in theta.
    group : integer array of shape (P,)
        The group of each.
    labels : sequence of str
        Of the groups.
    unit : float
        Precision of a weak prior.
    ends : bool, default=True
        Whether precisions below a thousandth of `unit` are excluded, by a factor
        ``exp(-least / lambda)`` of the hyperprior.

    Attributes
    ----------
    dim : int
        Hyperparameters, K.
    of_scale : array of shape (K,)
        Change of eta where all coefficients are e times as large.
    """

    has_heavy_tails = False
    """Whether the standard deviation of a coefficient is decided by a few of its draws."""

    def __init__(
        self,
        block: NDArray,
        group: NDArray,
        labels: list[str],
        unit: float,
        ends: bool = True,
    ) -> None:
        self.block, self.group, self.labels = block, group, labels
        self.unit, self.least = unit, 1e-3 * unit if ends else 0.0
        self.sizes = np.bincount(group, minlength=len(labels)).astype(np.float64)
        self._order = np.argsort(group, kind="stable")
        starts = np.append(0, np.cumsum(self.sizes[:-1]))
        self._starts = starts.astype(np.intp)  # of each group's members in that order
        self.dim = len(labels)
        self.of_scale = np.full(self.dim, -2.0)

    @property
    def integrated(self) -> IntegratedPrecision | None:
        """Of one precision, its distribution given the coefficients; None of several."""
        return None

    def log_precisions(self, eta: NDArray) -> NDArray:
        """(n, groups) of eta (n, K)."""
        return eta

    def precisions(self, eta: NDArray) -> NDArray:
        """(n, groups) of eta (n, K)."""
        return np.exp(self.log_precisions(eta))

    def pullback(self, eta: NDArray, slopes: NDArray) -> NDArray:
        """Gradient over eta, (n, K), of a function whose slopes over ell are (n, groups)."""
        return slopes

    def start(self, prior: Prior) -> NDArray:
        """A typical eta for a prior, (1, K)."""
        return np.log(self.of(prior))[None]

    @abstractmethod
    def log_hyperprior(self, eta: NDArray) -> NDArray:
        """Log density of eta, (n,), up to a constant."""

    @abstractmethod
    def hyperprior_slope(self, eta: NDArray) -> NDArray:
        """Its gradient, (n, K)."""

    @abstractmethod
    def hyperprior_curvature(self, eta: NDArray) -> NDArray:
        """Minus its second derivatives at one eta (1, K), (K,)."""

    def log_density(self, eta: NDArray) -> NDArray:
        """Of eta, with the factor of the precisions in the density of the coefficients, (n,)."""
        return self.log_hyperprior(eta) + 0.5 * self.log_precisions(eta) @ self.sizes

    def slope(self, eta: NDArray, slopes: NDArray) -> NDArray:
        """Gradient of `log_density`, and of more whose slopes over ell are (n, groups), (n, K)."""
        sizes = self.sizes.astype(slopes.dtype, copy=False)
        return self.hyperprior_slope(eta) + self.pullback(eta, slopes + 0.5 * sizes)

    def log_prior(self, prior: Prior, theta: NDArray, eta: NDArray) -> NDArray:
        """Log density of parameters (n, D) and eta; `prior` has any precisions."""
        noise = np.zeros(len(theta)) if prior.quadratic else theta[:, -1]
        more = (np.exp(self.log_precisions(eta)) - self.of(prior)) * np.exp(-noise)[:, None]
        quadratic = (more * self.squares(prior, theta - prior.mean)).sum(axis=1)
        return prior.log_density(theta) - 0.5 * quadratic + self.log_density(eta)

    def squares(self, prior: Prior, away: NDArray) -> NDArray:
        """Sum over each group of unit times squared distance, (n, groups)."""
        return self.summed(prior.unit[self.block] * away[:, self.block] ** 2)

    def summed(self, each: NDArray) -> NDArray:
        """Sums of numbers of the coefficients (n, P) over the groups, (n, groups)."""
        return np.add.reduceat(each[:, self._order], self._starts, axis=1)

    def of(self, prior: Prior) -> NDArray:
        """The precisions that a prior has, (groups,)."""
        first = self.block[self._order[self._starts]]
        return prior.precision[first] / prior.unit[first]

    def given(self, prior: Prior, ell: NDArray) -> Prior:
        """The prior with these log precisions, (groups,)."""
        precision = prior.precision.copy()
        precision[self.block] = np.exp(ell)[self.group] * prior.unit[self.block]
        return prior.with_precision(precision)

    def members(self, prior: Prior) -> tuple[NDArray, NDArray]:
        """Precisions of the coefficients, 0 for other parameters, and their groups, (D,) each."""
        precision, group = np.zeros(prior.unit.size), np.zeros(prior.unit.size, int)
        precision[self.block], group[self.block] = prior.precision[self.block], self.group
        return precision, group

    def weights(self, prior: Prior) -> NDArray:
        """Units of the coefficients, 0 for other parameters, (D,)."""
        weights = np.zeros(prior.unit.size)
        weights[self.block] = prior.unit[self.block]
        return weights


class OnePrecision(Scales):
    """A Gamma prior of one precision, of shape 1/2 and mean `unit`.

    The prior of the coefficients is then Cauchy's, but for its far ends.
    """

    shape = 0.5

    def __init__(self, block: NDArray, group: NDArray, labels: list[str], unit: float) -> None:
        super().__init__(block, group, labels, unit)
        self.rate = self.shape / unit

    @property
    def integrated(self) -> IntegratedPrecision:
        return IntegratedPrecision(self)

    def log_hyperprior(self, eta: NDArray) -> NDArray:
        each = self.shape * eta - self.rate * np.exp(eta) - self.least * np.exp(-eta)
        return each.sum(axis=1)

    def hyperprior_slope(self, eta: NDArray) -> NDArray:
        return self.shape - self.rate * np.exp(eta) + self.least * np.exp(-eta)

    def hyperprior_curvature(self, eta: NDArray) -> NDArray:
        return (self.rate * np.exp(eta) + self.least * np.exp(-eta))[0]


class Groups(Scales):
    """A half-Cauchy prior of each group's standard deviation (Gelman 2006), of scale unit^-1/2.

    The few members of a group may all be alike, so its standard deviation may be zero: a Gamma
    prior of the precision would exclude that. Far out it is as `OnePrecision`, but for those that
    do not end.
    """

    def log_hyperprior(self, eta: NDArray) -> NDArray:
        each = -0.5 * eta - np.logaddexp(0.0, np.log(self.unit) - eta) - self.least * np.exp(-eta)
        return each.sum(axis=1)

    def hyperprior_slope(self, eta: NDArray) -> NDArray:
        return expit(np.log(self.unit) - eta) - 0.5 + self.least * np.exp(-eta)

    def hyperprior_curvature(self, eta: NDArray) -> NDArray:
        wide = expit(np.log(self.unit) - eta)
        return (wide * (1 - wide) + self.least * np.exp(-eta))[0]


# -- one precision, integrated out -------------------------------------------------------------


class IntegratedPrecision:
    """Log density of the coefficients, and draws of the precision given them.

    Given these, log lambda has the density ``lambda^shape exp(-rate lambda - least / lambda)``,
    with ``rate = b + Q / 2``, and the mode ``(shape + sqrt(shape^2 + 4 rate least)) / (2 rate)``.

    Parameters
    ----------
    scales : OnePrecision
    """

    def __init__(self, scales: OnePrecision) -> None:
        self.scales = scales
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
    integrated : IntegratedPrecision
    """

    quadratic = False

    def __init__(self, given: Prior, integrated: IntegratedPrecision) -> None:
        self.given, self._integrated, scales = given, integrated, integrated.scales
        self.precision, self.mean, self.unit = given.precision, given.mean, given.unit
        self._at, self._weights = float(scales.of(given)[0]), scales.weights(given)

    def with_precision(self, precision: NDArray) -> IntegratedPrior:
        return IntegratedPrior(self.given.with_precision(precision), self._integrated)

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
