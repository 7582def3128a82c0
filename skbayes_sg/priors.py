"""Priors of the parameters. A posterior adds one, once, to the likelihood of its rows."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.linalg import Diag


class Prior(Protocol):
    """Log density up to a constant, its gradient and its curvature, at theta (chains, D).

    Attributes
    ----------
    precision : array of shape (D,)
        1 / variance of each parameter; 0 for a parameter whose prior is not normal.
    quadratic : bool
        Whether the log density is quadratic in theta.
    """

    precision: NDArray
    quadratic: bool

    def with_precision(self, precision: NDArray) -> Prior:
        """The same prior with other precisions (D,)."""

    def log_density(self, theta: NDArray) -> NDArray:
        """Log density of each chain, (chains,)."""

    def gradient(self, theta: NDArray) -> NDArray:
        """Gradient of each chain, (chains, D)."""

    def curvature(self, theta: NDArray) -> Diag:
        """Diagonal of minus the expected Hessian, averaged over the chains."""

    def hessian(self, theta: NDArray) -> NDArray:
        """Minus the second derivatives of the log density at one theta (1, D), (D, D)."""

    def scaled_squares(self, theta: NDArray) -> NDArray:
        """Square of each parameter over its prior variance, (chains, D)."""


class GaussianPrior:
    """Independent normal priors N(0, 1 / precision).

    Parameters
    ----------
    precision : array of shape (D,)
    """

    quadratic = True

    def __init__(self, precision: NDArray) -> None:
        self.precision = precision
        self._minus = -precision

    def with_precision(self, precision: NDArray) -> GaussianPrior:
        return GaussianPrior(precision)

    def log_density(self, theta: NDArray) -> NDArray:
        return -0.5 * (self.precision * theta * theta).sum(axis=1)

    def gradient(self, theta: NDArray) -> NDArray:
        return self._minus * theta

    def curvature(self, theta: NDArray) -> Diag:
        return Diag(self.precision)

    def hessian(self, theta: NDArray) -> NDArray:
        return np.diag(self.precision)

    def scaled_squares(self, theta: NDArray) -> NDArray:
        return self.precision * theta * theta


class NormalInverseGammaPrior:
    """Coefficients N(0, s2 / precision) given s2, and s2 ~ IG(shape, rate), on gamma = log s2.

    s2 is the noise variance, and gamma the last coordinate. Source: Karagiannis, handout 4, section
    4, with its Eq. 4.2 corrected (math.md#e23, math.md#e24: -d/2, not +d/2). The curvature in gamma
    is d/2 + shape, the prior expectation of minus the second derivative. With the likelihood's N/2
    it is exact at the mode (math.md#log-noise-variance).

    Parameters
    ----------
    precision : array of shape (D - 1,)
        In units of 1 / s2.
    shape, rate : float
        phi and psi of the handout; the rate has the unit of s2.
    """

    quadratic = False

    def __init__(self, precision: NDArray, shape: float, rate: float) -> None:
        self.precision = np.append(precision, 0.0)
        self.shape = shape
        self.rate = rate
        self._of_coef = precision

    def with_precision(self, precision: NDArray) -> NormalInverseGammaPrior:
        return NormalInverseGammaPrior(precision[:-1], self.shape, self.rate)

    def _split(self, theta: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Coefficients, e^-gamma, and half the scaled square norm of the coefficients."""
        coef, inverse = theta[:, :-1], np.exp(-theta[:, -1:])
        return (
            coef,
            inverse,
            0.5 * inverse * (self._of_coef * coef * coef).sum(axis=1, keepdims=True),
        )

    def log_density(self, theta: NDArray) -> NDArray:
        _, inverse, energy = self._split(theta)
        slope = 0.5 * len(self._of_coef) + self.shape
        return -(slope * theta[:, -1:] + energy + self.rate * inverse)[:, 0]

    def gradient(self, theta: NDArray) -> NDArray:
        coef, inverse, energy = self._split(theta)
        slope = 0.5 * len(self._of_coef) + self.shape
        return np.concatenate(
            [-inverse * self._of_coef * coef, energy + self.rate * inverse - slope], axis=1
        )

    def curvature(self, theta: NDArray) -> Diag:
        inverse = np.exp(-theta[:, -1]).mean()
        return Diag(np.append(inverse * self._of_coef, 0.5 * len(self._of_coef) + self.shape))

    def hessian(self, theta: NDArray) -> NDArray:
        coef, inverse, energy = self._split(theta)
        slope = inverse * self._of_coef
        hessian = np.diag(np.append(slope, energy + self.rate * inverse))
        hessian[-1, :-1] = hessian[:-1, -1] = -(slope * coef)[0]
        return hessian

    def scaled_squares(self, theta: NDArray) -> NDArray:
        """Scaled squares of the coefficients; 0 for the log noise variance."""
        coef, inverse, _ = self._split(theta)
        return np.concatenate(
            [inverse * self._of_coef * coef * coef, np.zeros_like(inverse)], axis=1
        )
