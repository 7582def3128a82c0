"""Gamma regression."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaln, polygamma, psi, zeta

from skbayes_sg.data.rows import Data
from skbayes_sg.models.base import notices_of_means
from skbayes_sg.models.log_link import LogLink
from skbayes_sg.models.predictor import once

_STIRLING = 1e3  # a shape from which two terms of the series have all digits


class Gamma(LogLink):
    """Positive numbers y of mean mu and variance ``phi mu^2``; the shape is ``nu = 1 / phi``.

    The dispersion is ``phi = exp(a)``.
    """

    fits_perfectly = True
    residual_scale = -1, 2.0
    own = ("log_dispersion",)
    own_mean, own_sd = (-1.0,), (1.5,)
    canonical = False
    variance_power = 2.0

    @classmethod
    def require_targets(cls, y: NDArray) -> None:
        if not (y > 0).all():
            raise ValueError("y holds numbers that are not positive, which no Gamma variable is")

    @classmethod
    def notices(cls, data: Data) -> list[str]:
        return notices_of_means(data)

    @classmethod
    def averaged(cls, y: NDArray, counts: NDArray) -> tuple[NDArray, NDArray]:
        """A mean of k observations has the shape k nu."""
        return y, np.column_stack([np.zeros(len(y)), -np.log(counts)])

    def perfect_outputs(self, y: NDArray) -> NDArray:
        return np.log(y)

    def natural(self, name: str, block: NDArray) -> tuple[str, NDArray]:
        return ("dispersion", np.exp(block)) if name == "log_dispersion" else (name, block)

    def variance(self, outputs: NDArray) -> NDArray:
        return np.exp(2 * outputs[:, 0] + outputs[:, 1])

    def value(self, outputs: NDArray, y: NDArray) -> NDArray:
        """nu (log(nu y / mu) - y / mu) - log y - log Gamma(nu)"""
        eta, a = outputs[:, 0], once(outputs[:, 1])
        nu, log_ratio = np.exp(-a), np.log(y) - eta
        return nu * (log_ratio - np.expm1(log_ratio)) + of_perfect_rows(nu)[0] - np.log(y)

    def residual(self, outputs: NDArray, y: NDArray) -> NDArray:
        """nu (y / mu - 1), and -nu (log(nu y / mu) + 1 - y / mu - psi(nu))"""
        eta, a = outputs[:, 0], once(outputs[:, 1])
        nu, log_ratio = np.exp(-a), np.log(y) - eta
        excess = np.expm1(log_ratio)
        of_a = nu * (excess - log_ratio) - of_perfect_rows(nu)[1]
        return np.stack([nu * excess, of_a], axis=1)

    def expected(self, outputs: NDArray) -> NDArray:
        """Information: nu of eta, nu^2 psi'(nu) - nu of a, and nothing between them."""
        nu = np.exp(-once(outputs[:, 1]))
        return diagonal(np.broadcast_to(nu, outputs[:, 1].shape), information_of_shape(nu))

    def observed_at(self, outputs: NDArray, y: NDArray) -> NDArray:
        nu, excess = np.exp(-outputs[:, 1]), np.expm1(np.log(y) - outputs[:, 0])
        information = self.expected(outputs)
        information[:, 0, 0] *= 1 + excess
        information[:, 0, 1] = information[:, 1, 0] = nu * excess
        information[:, 1, 1] += self.residual(outputs, y)[:, 1]
        return information

    def log_loss_moments(self, theta: NDArray, X: NDArray) -> tuple[NDArray, NDArray]:
        """Moments of a Gamma variable nu y / mu and its logarithm, whose covariance is 1."""
        eta, a = self.outputs(theta, X, np.float64)[0]
        nu = np.exp(-a)
        mean = nu + (1 - nu) * psi(nu) + gammaln(nu) + eta + a
        return mean, (nu - 1) ** 2 * polygamma(1, nu) - nu + 2

    def distribution(self, y: NDArray, outputs: NDArray) -> NDArray:
        nu = np.exp(-outputs[:, 1])
        with np.errstate(divide="ignore", over="ignore"):
            ratio = np.exp(np.log(np.maximum(y, 0.0)) - outputs[:, 0])  # means may underflow
        return gammainc(nu, nu * ratio)

    def draw(self, outputs: NDArray, rng: np.random.Generator) -> NDArray:
        nu = np.exp(-outputs[:, 1])
        return rng.gamma(nu, self.mean(outputs) / nu)

    def polynomials(self, own: NDArray) -> NDArray:
        """``(k - 1)! phi^(k - 1) mu^k``"""
        phi, coef = np.exp(own[:, 0]), np.zeros((4, 4, *own[:, 0].shape))
        for k, factorial in enumerate((1, 1, 2, 6)):
            coef[k, k] = factorial * phi**k
        return coef


def diagonal(first: NDArray, second: NDArray) -> NDArray:
    """(chains, 2, 2, n)"""
    matrices = np.zeros((len(first), 2, 2, first.shape[-1]), first.dtype)
    matrices[:, 0, 0], matrices[:, 1, 1] = first, second
    return matrices


def of_perfect_rows(nu: NDArray) -> tuple[NDArray, NDArray]:
    """nu log nu - nu - log Gamma(nu), and its derivative times nu: of rows with y = mu.

    Both are small beside their terms where nu is large, as rows that fit perfectly make it; there
    they are Stirling's series.
    """
    few = np.minimum(nu, _STIRLING)
    value = few * np.log(few) - few - gammaln(few)
    slope = few * (np.log(few) - psi(few))
    many = np.maximum(nu, _STIRLING)
    last = 1 / (12 * many)
    large = 0.5 * np.log(many / (2 * np.pi)) - last * (1 - 1 / (30 * many * many))
    of_large = 0.5 + last * (1 - 1 / (10 * many * many))
    return np.where(nu < _STIRLING, value, large), np.where(nu < _STIRLING, slope, of_large)


def information_of_shape(nu: NDArray) -> NDArray:
    """nu^2 psi'(nu) - nu: of the logarithm of the shape of a Gamma variable."""
    # from a shape of a million on rounding is more than the limit leaves out
    return np.where(nu > 1e6, 0.5, nu**2 * trigamma(nu) - nu)


def trigamma(x: NDArray) -> NDArray:
    """Second derivative of log Gamma: `polygamma` of SciPy computes psi beside it."""
    return zeta(2.0, x)
