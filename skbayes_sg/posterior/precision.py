"""One prior precision that is sampled: its joint distribution with parameters, normal given it.

    beta | lambda ~ N(m, 1 / (lambda unit)),   lambda ~ Gamma(shape, rate)

If the likelihood is normal in the coefficients, then so is their posterior given lambda. There are
axes along which its precision is 1 under lambda_0, and ``1 + (lambda - lambda_0) j`` under lambda
(math/priors.md#a-sampled-precision).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import polygamma, psi

from skbayes_sg.linalg.coordinates import reproducible_eigh
from skbayes_sg.posterior.gaussian import Distribution
from skbayes_sg.priors import NormalPrior
from skbayes_sg.priors.scales import Scales

_TINY = np.finfo(np.float64).tiny
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class JointDistribution:
    """Parameters and log precision, normal given the precision: exact if conjugate.

    Points x are (u, rho), with ``theta = centre + T u``, or (u, gamma, rho) where the log noise
    variance gamma is a parameter too. Then precisions are in units of 1 / noise variance.

    Attributes
    ----------
    scales : Scales
    lam_0 : float
        lambda_0.
    j, linear : arrays of shape (D,)
        The prior's ``|beta - m|^2`` is ``sum(j u^2 + 2 linear u) + squares``.
    squares : float
    noise : tuple (shape, rate), optional
        Those of the noise variance for lambda = 0, but for the shape's share of the coefficients.
    """

    scales: Scales
    lam_0: float
    j: NDArray
    linear: NDArray
    squares: float
    noise: tuple[float, float] | None = None

    @property
    def dim(self) -> int:
        """Axes."""
        return len(self.j)

    @classmethod
    def of(
        cls, distribution: Distribution, prior: NormalPrior, scales: Scales
    ) -> tuple[JointDistribution, NDArray]:
        """From a distribution under the prior's precision; and T, whose columns are the axes."""
        lower, n = distribution.operator.cholesky().dense(), distribution.operator.dim
        weights = scales.weights(prior)[:n]
        inverse = solve_triangular(lower, np.eye(n), lower=True)
        T = inverse.T @ reproducible_eigh((inverse * weights) @ inverse.T, apart=True)[1]
        return cls.along(T, distribution, prior, scales), T

    @classmethod
    def along(
        cls, T: NDArray, distribution: Distribution, prior: NormalPrior, scales: Scales
    ) -> JointDistribution:
        """The same along known axes."""
        weights = scales.weights(prior)[: len(T)]
        away = np.where(weights > 0, distribution.mean[: len(T)] - prior.mean[: len(T)], 0.0)
        lam_0 = float(scales.of(prior)[0])
        j = ((T * weights[:, None]) * T).sum(axis=0)
        j = np.clip(j, _TINY, 1 / lam_0)  # but for rounding
        linear, squares = (weights * away) @ T, float(weights @ away**2)
        joint = cls(scales, lam_0, j, linear, squares)
        if distribution.noise is None or prior.noise is None:
            return joint
        shape, rate = distribution.noise
        joint = replace(joint, noise=(shape, 0.0))
        of_mean = float(joint._conditional(np.log([lam_0]))[2][0])
        return replace(joint, noise=(shape, max(rate - of_mean, prior.noise[1])))

    def _conditional(self, rho: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Precision and mean along the axes, (n, D), and half the squared distances, (n,).

        Those of the posterior mean: of the coefficients times lambda, and of the rows that move it.
        With sampled noise they are counted from lambda = 0, where they may be nearly all of its
        rate. So none is a difference of large numbers.
        """
        lam, free = np.exp(rho)[:, None], self._free
        beyond, grown = lam - self.lam_0, free + lam * self.j
        squares = np.where(self.j > _ROUNDING * self.j.max(), self.linear**2, 0.0) / self.j
        if self.noise is None:
            energy = (beyond / grown) @ squares
        else:
            squares = np.where(free > _ROUNDING, squares, 0.0) / np.maximum(free, _TINY)
            energy = (lam / grown) @ squares
        return grown, -beyond * self.linear / grown, 0.5 * energy

    @cached_property
    def _free(self) -> NDArray:
        """What the data know along the axes."""
        return np.maximum(1.0 - self.lam_0 * self.j, _TINY)

    @cached_property
    def _rate(self) -> float:
        """Rate of the noise variance under lambda_0."""
        assert self.noise is not None
        return self.noise[1] + float(self._conditional(np.log([self.lam_0]))[2][0])

    @cached_property
    def _grid(self) -> tuple[NDArray, NDArray]:
        """Log precisions, and their probabilities."""
        low, high = np.log(self.lam_0) - 30.0, np.log(self.lam_0) + 30.0
        for n_points in (201, 201, 2001):  # nearer each time
            rho = np.linspace(low, high, n_points)
            grown, _, energy = self._conditional(rho)
            value = self.scales.log_density(rho[:, None]) - 0.5 * np.log(grown).sum(axis=1)
            if self.noise is None:
                value -= energy
            else:
                shape, rate = self.noise
                value -= shape * np.log(rate + energy)
            likely = rho[value > value.max() - 40.0]
            if not len(likely):
                raise FloatingPointError(
                    "the density of the prior precision overflows; scale the columns of X and the "
                    "numbers in y, or divide the weights by a constant"
                )
            low, high = likely[0] - (rho[1] - rho[0]), likely[-1] + (rho[1] - rho[0])
        density = np.exp(value - value.max())
        return rho, density / density.sum()

    @cached_property
    def _distribution(self) -> NDArray:
        """Distribution function of log precision at the points of the grid."""
        share = self._grid[1]
        return np.cumsum(share) - 0.5 * share

    @property
    def mean(self) -> float:
        """Mean of log precision."""
        rho, share = self._grid
        return float(share @ rho)

    @property
    def sd(self) -> float:
        """Standard deviation of log precision."""
        rho, share = self._grid
        return float(np.sqrt(share @ (rho - share @ rho) ** 2))

    def quantiles(self, levels: NDArray) -> NDArray:
        """Quantiles of log precision."""
        return np.interp(levels, self._distribution, self._grid[0])

    def draw(self, rng: np.random.Generator, n_draws: int) -> NDArray:
        """Independent draws x."""
        rho = self.quantiles(rng.random(n_draws))
        grown, mean, energy = self._conditional(rho)
        spread, parts = 1 / np.sqrt(grown), [rho[:, None]]
        if self.noise is not None:
            shape, rate = self.noise
            gamma = np.log(rate + energy) - np.log(rng.gamma(shape, size=n_draws))
            spread *= np.exp(0.5 * gamma)[:, None]
            parts = [gamma[:, None], *parts]
        u = mean + spread * rng.standard_normal(grown.shape)
        return np.concatenate([u, *parts], axis=1)

    def log_density(self, x: NDArray) -> NDArray:
        """Log density of x up to a constant, (n,)."""
        u, rho = x[:, : self.dim], x[:, -1]
        value, energy = self.scales.log_density(rho[:, None]), self._energy(u, np.exp(rho))
        if self.noise is None:
            return value - energy
        shape, gamma = self.noise[0], x[:, -2]
        return value - (energy + self._rate) * np.exp(-gamma) - (shape + 0.5 * self.dim) * gamma

    def gradient(self, x: NDArray) -> NDArray:
        """Gradient of the log density, as x."""
        u, lam = x[:, : self.dim], np.exp(x[:, -1:])
        noise = 1.0 if self.noise is None else np.exp(-x[:, -2:-1])
        of_u = -noise * (u + (lam - self.lam_0) * (self.j * u + self.linear))
        squares = (self.j * u**2 + 2 * self.linear * u).sum(axis=1, keepdims=True) + self.squares
        parts = [of_u, self.scales.slope(x[:, -1:], -0.5 * lam * noise * squares)]
        if self.noise is not None:
            energy = self._energy(u, lam[:, 0])[:, None]
            parts.insert(1, (energy + self._rate) * noise - (self.noise[0] + 0.5 * self.dim))
        return np.concatenate(parts, axis=1)

    def _energy(self, u: NDArray, lam: NDArray) -> NDArray:
        """Half the squared distances, of u and of the coefficients times lambda - lambda_0."""
        squares = (self.j * u**2 + 2 * self.linear * u).sum(axis=1) + self.squares
        return 0.5 * ((u**2).sum(axis=1) + (lam - self.lam_0) * squares)

    @property
    def variance(self) -> NDArray:
        """Variances of u, or of (u, gamma)."""
        return self.covariance.diagonal()

    @property
    def covariance(self) -> NDArray:
        """Covariance of u, or of (u, gamma)."""
        rho, share = self._grid
        grown, mean, energy = self._conditional(rho)
        variance = 1 / grown
        if self.noise is not None:
            shape, rate = self.noise
            if not shape > 1:
                return np.full((self.dim + 1,) * 2, np.inf)
            variance = variance * ((rate + energy) / (shape - 1))[:, None]
            mean = np.column_stack([mean, np.log(rate + energy) - psi(shape)])
            variance = np.column_stack([variance, np.full(len(rho), polygamma(1, shape))])
        away = mean - share @ mean
        return np.diag(share @ variance) + (away * share[:, None]).T @ away
