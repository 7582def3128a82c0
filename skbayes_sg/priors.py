"""Priors of the parameters. A posterior adds one, once, to the likelihood of its rows.

A prior has a mean and a precision operator, so that the posterior of some rows can be the prior of
the next (math.md#streams-as-bayesian-updating).
"""

from __future__ import annotations

from functools import cached_property
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

from skbayes_sg.linalg import Dense, Diag

Precision = Diag | Dense

_MANY_NUMBERS = 1 << 23  # of draws that are cast at a time


class Prior(Protocol):
    """Log density up to a constant, its gradient and its curvature, at theta (chains, D).

    Attributes
    ----------
    precision : array of shape (D,)
        Diagonal of the precision matrix: 1 / variance of independent parameters; 0 for a parameter
        whose prior is not normal.
    mean : array of shape (D,)
        0 for a parameter whose prior is not normal.
    quadratic : bool
        Whether the log density is quadratic in theta.
    """

    precision: NDArray
    mean: NDArray
    quadratic: bool

    def with_precision(self, precision: NDArray) -> Prior:
        """The same prior with other precisions (D,) of independent parameters."""

    def log_density(self, theta: NDArray) -> NDArray:
        """Log density of each chain, (chains,)."""

    def gradient(self, theta: NDArray) -> NDArray:
        """Gradient of each chain, (chains, D)."""

    def curvature(self, theta: NDArray) -> Precision:
        """Minus the expected Hessian, averaged over the chains."""

    def hessian(self, theta: NDArray) -> NDArray:
        """Minus the second derivatives of the log density at one theta (1, D), (D, D)."""

    def scaled_squares(self, theta: NDArray) -> NDArray:
        """Deviation of each parameter from its mean times -gradient: of mean 1, (chains, D)."""


class GaussianPrior:
    """Normal prior N(mean, precision^-1).

    Parameters
    ----------
    precision : array of shape (D,), Diag or Dense
        An array holds 1 / variance of independent parameters.
    mean : float or array of shape (D,), default=0.0
    """

    quadratic = True

    def __init__(self, precision: NDArray | Precision, mean: NDArray | float = 0.0) -> None:
        self.operator = _operator(precision)
        self.precision = self.operator.diagonal()
        mean = np.asarray(mean, dtype=self.precision.dtype)
        self.mean = np.broadcast_to(mean, self.precision.shape)

    def with_precision(self, precision: NDArray) -> GaussianPrior:
        return GaussianPrior(precision, self.mean)

    def log_density(self, theta: NDArray) -> NDArray:
        return -0.5 * self.scaled_squares(theta).sum(axis=1)

    def gradient(self, theta: NDArray) -> NDArray:
        if theta.dtype == np.float32 and isinstance(self.operator, Diag):
            precision, mean = self._single
            return (mean - theta) * precision
        return -self.operator.matvec(theta - self.mean)

    @cached_property
    def _single(self) -> tuple[NDArray, NDArray]:
        """Precision and mean for chains in single precision."""
        return self.precision.astype(np.float32), self.mean.astype(np.float32)

    def curvature(self, theta: NDArray) -> Precision:
        return self.operator

    def hessian(self, theta: NDArray) -> NDArray:
        return self.operator.dense()

    def scaled_squares(self, theta: NDArray) -> NDArray:
        deviation = theta - self.mean
        return self.operator.matvec(deviation) * deviation

    # -- as a posterior -----------------------------------------------------------------------

    @property
    def mode(self) -> NDArray:
        """Point of the largest density, (1, D)."""
        return self.mean[None].copy()

    def updated(self, theta: NDArray, gradient: NDArray, curvature: Precision) -> Self:
        """The posterior with this gradient (1, D) and curvature at theta (1, D), if quadratic."""
        mean = theta + curvature.inverse().matvec(gradient)
        return type(self)(curvature, mean[0])

    def mixed(self, other: Self, share: float) -> Self:
        """Density proportional to ``self^share other^(1 - share)``: forgetting (math.md)."""
        return type(self)(*_mixed_normals(self, other, share))

    @classmethod
    def of_draws(cls, draws: NDArray, weights: NDArray) -> Self:
        """Independent normal distributions with the moments of weighted draws (S, D)."""
        return cls(*_moments(draws, weights))

    def draw(self, rng: np.random.Generator, n_draws: int) -> NDArray:
        """Independent draws, (n_draws, D)."""
        return self.mean + _normals(self.operator, rng, n_draws)

    @property
    def variance(self) -> NDArray:
        """Variance of each parameter, (D,)."""
        return self.operator.inverse().diagonal()


class NormalInverseGammaPrior:
    """Coefficients N(mean, s2 precision^-1) given s2, and s2 ~ IG(shape, rate), on gamma = log s2.

    s2 is the noise variance, and gamma the last coordinate. Source: Karagiannis, handout 4, section
    4, with its Eq. 4.2 corrected (math.md#e23, math.md#e24: -d/2, not +d/2). The curvature in gamma
    is d/2 + shape, the prior expectation of minus the second derivative. With the likelihood's N/2
    it is exact at the mode (math.md#log-noise-variance).

    Parameters
    ----------
    precision : array of shape (D - 1,), Diag or Dense
        In units of 1 / s2.
    shape, rate : float
        phi and psi of the handout; the rate has the unit of s2.
    mean : float or array of shape (D - 1,), default=0.0
    """

    quadratic = False

    def __init__(
        self,
        precision: NDArray | Precision,
        shape: float,
        rate: float,
        mean: NDArray | float = 0.0,
    ) -> None:
        self.operator = _operator(precision)
        self.shape = shape
        self.rate = rate
        self.precision = np.append(self.operator.diagonal(), 0.0)
        self.mean = np.append(np.broadcast_to(mean, self.operator.dim), 0.0)
        self._slope = 0.5 * self.operator.dim + shape

    def with_precision(self, precision: NDArray) -> NormalInverseGammaPrior:
        return NormalInverseGammaPrior(precision[:-1], self.shape, self.rate, self.mean[:-1])

    def _split(self, theta: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Deviation of the coefficients, e^-gamma, and half the deviation's scaled square norm."""
        coef, inverse = theta[:, :-1] - self.mean[:-1], np.exp(-theta[:, -1:])
        squares = self.operator.matvec(coef) * coef
        return coef, inverse, 0.5 * inverse * squares.sum(axis=1, keepdims=True)

    def _pull(self, coef: NDArray, inverse: NDArray) -> NDArray:
        """Precision times deviation under each chain's noise, (chains, D - 1)."""
        if isinstance(self.operator, Diag):
            return inverse * self.operator.values * coef
        return inverse * self.operator.matvec(coef)

    def log_density(self, theta: NDArray) -> NDArray:
        _, inverse, energy = self._split(theta)
        return -(self._slope * theta[:, -1:] + energy + self.rate * inverse)[:, 0]

    def gradient(self, theta: NDArray) -> NDArray:
        coef, inverse, energy = self._split(theta)
        of_noise = energy + self.rate * inverse - self._slope
        return np.concatenate([-self._pull(coef, inverse), of_noise], axis=1)

    def curvature(self, theta: NDArray) -> Precision:
        inverse = np.exp(-theta[:, -1]).mean()
        if isinstance(self.operator, Diag):
            return Diag(np.append(inverse * self.operator.values, self._slope))
        return Dense(_bordered(inverse * self.operator.matrix, self._slope))

    def hessian(self, theta: NDArray) -> NDArray:
        coef, inverse, energy = self._split(theta)
        corner = (energy + self.rate * inverse).item()
        hessian = _bordered(inverse * self.operator.dense(), corner)
        hessian[-1, :-1] = hessian[:-1, -1] = -self._pull(coef, inverse)[0]
        return hessian

    def scaled_squares(self, theta: NDArray) -> NDArray:
        """Scaled squares of the coefficients; 0 for the log noise variance."""
        coef, inverse, _ = self._split(theta)
        return np.concatenate([self._pull(coef, inverse) * coef, np.zeros_like(inverse)], axis=1)

    # -- as a posterior -----------------------------------------------------------------------

    @property
    def mode(self) -> NDArray:
        """Point of the largest density, (1, D)."""
        return np.append(self.mean[:-1], np.log(self.rate / self._slope))[None]

    def updated(self, theta: NDArray, gradient: NDArray, curvature: Precision) -> Self:
        """The posterior with this gradient (1, D) and curvature at theta (1, D).

        It is of the same family, so that the curvature of the coefficients gives its precision, the
        curvature in gamma its shape, and the gradient in gamma the rate
        (math.md#streams-as-bayesian-updating).
        """
        s2 = np.exp(theta[0, -1])
        if isinstance(curvature, Diag):
            precision: Precision = Diag(s2 * curvature.values[:-1])
            slope = curvature.values[-1]
        else:
            precision = Dense(s2 * curvature.matrix[:-1, :-1])
            slope = curvature.matrix[-1, -1]
        pull = s2 * gradient[:, :-1]
        step = precision.inverse().matvec(pull)
        rate = s2 * (gradient[0, -1] + slope) - 0.5 * np.sum(step * pull)
        rate = max(float(rate), self.rate)  # rows never lower it, but rounding may
        shape = slope - 0.5 * self.operator.dim
        return type(self)(precision, float(shape), rate, (theta[:, :-1] + step)[0])

    def mixed(self, other: Self, share: float) -> Self:
        """Density proportional to ``self^share other^(1 - share)``: forgetting (math.md)."""
        rest = 1 - share
        precision, mean = _mixed_normals(self, other, share)
        ours, theirs = self.mean[:-1] - mean, other.mean[:-1] - mean
        energy = share * (ours @ self.operator.matvec(ours))
        energy += rest * (theirs @ other.operator.matvec(theirs))
        shape = share * self.shape + rest * other.shape
        rate = share * self.rate + rest * other.rate + 0.5 * energy
        return type(self)(precision, shape, float(rate), mean)

    @classmethod
    def of_draws(cls, draws: NDArray, weights: NDArray) -> Self:
        """The distribution with the moments of weighted draws (S, D), without correlations.

        They are mean and variance of each coefficient, and mean and variance of 1 / s2.
        """
        precision, mean = _moments(draws[:, :-1], weights)
        noise = draws[:, -1].astype(np.float64, copy=False)
        inverse = np.exp(-noise)
        centre = weights @ inverse
        variance = weights @ (inverse - centre) ** 2
        precision = precision * float(weights @ np.exp(noise))
        return cls(precision, float(centre**2 / variance), float(centre / variance), mean)

    def draw(self, rng: np.random.Generator, n_draws: int) -> NDArray:
        """Independent draws, (n_draws, D)."""
        noise = np.log(self.rate) - np.log(rng.gamma(self.shape, size=(n_draws, 1)))
        normals = _normals(self.operator, rng, n_draws)
        coef = self.mean[:-1] + np.exp(0.5 * noise) * normals
        return np.concatenate([coef, noise], axis=1)

    @property
    def noise_variance(self) -> float:
        """Mean of s2; infinite for a shape of at most 1."""
        return self.rate / (self.shape - 1) if self.shape > 1 else np.inf

    @property
    def unbounded(self) -> bool:
        """Whether draws of s2 overflow: of a million more than one, in the mean."""
        above = gammainc(self.shape, self.rate / np.finfo(np.float64).max)
        return not above <= 1e-6  # NaN for the smallest shapes

    @property
    def variance(self) -> NDArray:
        """Variance of each coefficient, (D - 1,); infinite for a shape of at most 1."""
        return self.noise_variance * self.operator.inverse().diagonal()


def _operator(precision: NDArray | Precision) -> Precision:
    return Diag(precision) if isinstance(precision, np.ndarray) else precision


def _bordered(matrix: NDArray, corner: float) -> NDArray:
    """The matrix with one more row and column of zeros, and the corner."""
    bordered = np.zeros((len(matrix) + 1,) * 2)
    bordered[:-1, :-1], bordered[-1, -1] = matrix, corner
    return bordered


def _normals(precision: Precision, rng: np.random.Generator, n_draws: int) -> NDArray:
    """Draws of N(0, precision^-1), (n_draws, D)."""
    root = precision.inverse().cholesky()
    return root.matvec(rng.standard_normal((n_draws, precision.dim)))


def _mixed_normals(
    ours: GaussianPrior | NormalInverseGammaPrior,
    theirs: GaussianPrior | NormalInverseGammaPrior,
    share: float,
) -> tuple[Precision, NDArray]:
    """Precision and mean of the weighted geometric mean of two normal densities."""
    a, b = ours.operator * share, theirs.operator * (1 - share)
    precision = a + b
    assert isinstance(precision, Precision)
    dim = precision.dim
    m, n = ours.mean[:dim], theirs.mean[:dim]
    return precision, m + precision.inverse().matvec(b.matvec(n - m))


def _moments(draws: NDArray, weights: NDArray) -> tuple[Diag, NDArray]:
    """Precisions and means of weighted draws (S, D), weights of sum 1."""
    parts = np.array_split(draws, 1 + draws.size // _MANY_NUMBERS, axis=1)
    means, squares = [], []
    for part in parts:  # in double precision, some columns at a time
        part = part.astype(np.float64, copy=False)
        means.append(weights @ part)
        squares.append(weights @ (part - means[-1]) ** 2)
    return Diag(1.0 / np.concatenate(squares)), np.concatenate(means)
