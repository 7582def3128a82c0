"""Prior precisions that are sampled: what they are functions of, and the prior of that.

    beta_i | eta ~ N(m_i, 1 / (unit_i exp(ell_g(i)))),   ell = ell(eta),   eta ~ p(eta)

g(i) is the group of coefficient i, and ell the log precisions of the groups. With eta = ell these
are precisions of groups of columns, one (`OnePrecision`) or several (`Groups`). The horseshoe and
Student's t are other functions. Source: math/priors.md#a-sampled-precision. What all of this says
of coefficients and eta together is a `JointPrior`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

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
        Names of the groups.
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

    def independent(self) -> Precisions:
        """The same, where precisions are independent a priori, and so can be integrated out.

        Raises
        ------
        TypeError
            If they are not.
        """
        raise TypeError(f"precisions of {type(self).__name__} are not independent a priori")

    def log_precisions(self, eta: NDArray) -> NDArray:
        """Log precisions, (n, groups), of eta (n, K)."""
        return eta

    def precisions(self, eta: NDArray) -> NDArray:
        """Precisions, (n, groups), of eta (n, K)."""
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
        """Log density of eta, times the factor of precisions in that of the coefficients, (n,)."""
        return self.log_hyperprior(eta) + 0.5 * self.log_precisions(eta) @ self.sizes

    def slope(self, eta: NDArray, slopes: NDArray) -> NDArray:
        """Gradient of `log_density`, and of more whose slopes over ell are (n, groups), (n, K)."""
        sizes = self.sizes.astype(slopes.dtype, copy=False)
        return self.hyperprior_slope(eta) + self.pullback(eta, slopes + 0.5 * sizes)

    def squares(self, prior: Prior, away: NDArray) -> NDArray:
        """Sum over each group of unit times squared distance, (n, groups)."""
        return self.summed(prior.unit[self.block] * away[:, self.block] ** 2)

    def summed(self, values: NDArray) -> NDArray:
        """Sums of numbers of the coefficients (n, P) over the groups, (n, groups)."""
        return np.add.reduceat(values[:, self._order], self._starts, axis=1)

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


class Precisions(Scales):
    """Precisions that are independent a priori, so that coefficients alone have a known prior.

    The log density of each log precision ell is ``power(ell) - rate e^ell - least e^-ell``, where
    the power is concave.
    """

    rate = 0.0

    def independent(self) -> Precisions:
        return self

    @abstractmethod
    def power(self, ell: NDArray) -> NDArray:
        """The power of log precisions, as an array of the same shape."""

    @abstractmethod
    def power_slope(self, ell: NDArray) -> NDArray | float:
        """Its derivative, or that of all."""

    @abstractmethod
    def power_curvature(self, ell: NDArray) -> NDArray | float:
        """Minus its second derivative, or that of all."""

    def log_hyperprior(self, eta: NDArray) -> NDArray:
        of_rate, of_least = self._ends(eta)
        return (self.power(eta) - of_rate - of_least).sum(axis=1)

    def hyperprior_slope(self, eta: NDArray) -> NDArray:
        of_rate, of_least = self._ends(eta)
        return self.power_slope(eta) - of_rate + of_least

    def hyperprior_curvature(self, eta: NDArray) -> NDArray:
        of_rate, of_least = self._ends(eta)
        return (of_rate + of_least + self.power_curvature(eta))[0]

    def _ends(self, eta: NDArray) -> tuple[NDArray, NDArray]:
        """``rate e^eta`` and ``least e^-eta``; 0 with such a factor, if the other overflows."""
        nothing = np.zeros_like(eta)
        of_rate = self.rate * np.exp(eta) if self.rate else nothing
        return of_rate, self.least * np.exp(-eta) if self.least else nothing


class OnePrecision(Precisions):
    """A Gamma prior of one precision, of shape 1/2 and mean `unit`.

    The prior of the coefficients is then Cauchy's, but for its far ends.
    """

    shape = 0.5

    def __init__(self, block: NDArray, group: NDArray, labels: list[str], unit: float) -> None:
        super().__init__(block, group, labels, unit)
        self.rate = self.shape / unit

    def power(self, ell: NDArray) -> NDArray:
        return self.shape * ell

    def power_slope(self, ell: NDArray) -> float:
        return self.shape

    def power_curvature(self, ell: NDArray) -> float:
        return 0.0


class Groups(Precisions):
    """A half-Cauchy prior of each group's standard deviation (Gelman 2006), of scale unit^-1/2.

    The few members of a group may all be alike, so its standard deviation may be zero: a Gamma
    prior of the precision would exclude that. Far out it is as `OnePrecision`, but for those that
    do not end.
    """

    def power(self, ell: NDArray) -> NDArray:
        return -0.5 * ell - np.logaddexp(0.0, np.log(self.unit) - ell)

    def power_slope(self, ell: NDArray) -> NDArray:
        return expit(np.log(self.unit) - ell) - 0.5

    def power_curvature(self, ell: NDArray) -> NDArray:
        wide = expit(np.log(self.unit) - ell)
        return wide * (1 - wide)


class Sampled(NamedTuple):
    """Prior precisions that chains sample, and about where their hyperparameters are."""

    scales: Scales
    centre: NDArray
    """Mean of eta, (K,)."""
    width: NDArray
    """Its standard deviations, (K,)."""
    curves: tuple[NDArray, NDArray] | None = None
    """Lines along which coordinates of the chains follow eta: means of whitened parameters, (3, D),
    and their log scales, (2, D)."""
