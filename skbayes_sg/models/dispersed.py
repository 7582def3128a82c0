"""Regressions with a log link and a dispersion: Gamma and negative binomial."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammainc, gammaln, polygamma, psi

from skbayes_sg.models.family import once
from skbayes_sg.models.generalized_linear import LogLink

_CONTINUOUS = 1e12  # counts, whose steps no longer matter
_LARGE = 1e6  # shape, from which rounding is more than the limit leaves out


class Dispersed(LogLink):
    """A response with a dispersion ``phi = exp(a)``."""

    own = ("log_dispersion",)
    own_mean, own_sd = (-1.0,), (1.5,)
    canonical = False

    def natural(self, name: str, block: NDArray) -> tuple[str, NDArray]:
        return ("dispersion", np.exp(block)) if name == "log_dispersion" else (name, block)


class Gamma(Dispersed):
    """Positive numbers y of mean mu and variance ``phi mu^2``; the shape is ``nu = 1 / phi``."""

    def variance(self, outputs: NDArray) -> NDArray:
        return np.exp(2 * outputs[:, 0] + outputs[:, 1])

    def value(self, outputs: NDArray, y: NDArray) -> NDArray:
        """nu (log(nu y / mu) - y / mu) - log y - log Gamma(nu)"""
        eta, a = outputs[:, 0], once(outputs[:, 1])
        nu, log_ratio = np.exp(-a), np.log(y) - eta
        return nu * (log_ratio - a - np.exp(log_ratio)) - np.log(y) - gammaln(nu)

    def residual(self, outputs: NDArray, y: NDArray) -> NDArray:
        """nu (y / mu - 1), and -nu (log(nu y / mu) + 1 - y / mu - psi(nu))"""
        eta, a = outputs[:, 0], once(outputs[:, 1])
        nu, log_ratio = np.exp(-a), np.log(y) - eta
        excess = np.expm1(log_ratio)
        of_a = -nu * (log_ratio - excess - a - psi(nu))
        return np.stack([nu * excess, of_a], axis=1)

    def expected(self, outputs: NDArray) -> NDArray:
        """Of eta nu, of a nu^2 psi'(nu) - nu; between them nothing."""
        nu = np.exp(-outputs[:, 1])
        return _diagonal(nu, _information_of_shape(nu))

    def observed_at(self, outputs: NDArray, y: NDArray) -> NDArray:
        nu, excess = np.exp(-outputs[:, 1]), np.expm1(np.log(y) - outputs[:, 0])
        found = self.expected(outputs)
        found[:, 0, 0] *= 1 + excess
        found[:, 0, 1] = found[:, 1, 0] = nu * excess
        found[:, 1, 1] += self.residual(outputs, y)[:, 1]
        return found

    def log_loss_moments(self, theta: NDArray, X: NDArray) -> tuple[NDArray, NDArray]:
        """Of a Gamma variable nu y / mu and its logarithm, whose covariance is 1."""
        eta, a = self._forward(theta, X)[0][0]
        nu = np.exp(-a)
        mean = nu + (1 - nu) * psi(nu) + gammaln(nu) + eta + a
        return mean, (nu - 1) ** 2 * polygamma(1, nu) - nu + 2

    def distribution(self, y: NDArray, outputs: NDArray) -> NDArray:
        nu = np.exp(-outputs[:, 1])
        mean = np.maximum(self.mean(outputs), np.finfo(np.float64).tiny)  # 0 by underflow
        return gammainc(nu, nu * np.maximum(y, 0.0) / mean)

    def draw(self, outputs: NDArray, rng: np.random.Generator) -> NDArray:
        nu = np.exp(-outputs[:, 1])
        return rng.gamma(nu, self.mean(outputs) / nu)


class NegativeBinomial(Dispersed):
    """Counts y of mean mu and variance ``mu + phi mu^2`` (NB2); the size is ``r = 1 / phi``.

    A Poisson count whose rate is mu times a Gamma variable of mean 1 and variance phi.
    """

    counts = True

    def variance(self, outputs: NDArray) -> NDArray:
        mu = self.mean(outputs)
        return mu + np.exp(outputs[:, 1]) * mu**2

    def value(self, outputs: NDArray, y: NDArray) -> NDArray:
        """log(Gamma(y + r) / (Gamma(r) y!)) + y (eta + a) - (y + r) log(1 + phi mu)"""
        eta, a = outputs[:, 0], once(outputs[:, 1])
        r, log_share = np.exp(-a), np.logaddexp(0.0, eta + a)
        rising = gammaln(y + r) - gammaln(r)
        return rising - gammaln(y + 1) + y * (eta + a) - (y + r) * log_share

    def residual(self, outputs: NDArray, y: NDArray) -> NDArray:
        """(y - mu) / (1 + phi mu), and -r (psi(y + r) - psi(r) - log(1 + phi mu)) + that of eta"""
        mu, phi = np.exp(outputs[:, 0]), np.exp(once(outputs[:, 1]))
        of_eta = (y - mu) / (1 + phi * mu)
        rising = psi(y + 1 / phi) - psi(1 / phi) - np.log1p(phi * mu)
        return np.stack([of_eta, of_eta - rising / phi], axis=1)

    def expected(self, outputs: NDArray) -> NDArray:
        """Of eta mu / (1 + phi mu). Of a about that for r of 1 and more; it is only a metric.

        Its exact limits are ``mu^2 / (2 r (r + 1))`` for small mu, and that of the Gamma
        distribution for large mu; between them their roots are added as resistances are.
        """
        mu, phi = np.exp(outputs[:, 0]), np.exp(outputs[:, 1])
        r = 1 / phi
        few = mu * phi / np.sqrt(2 * (1 + phi))
        many = np.sqrt(_information_of_shape(r))
        return _diagonal(mu / (1 + phi * mu), (few * many / (few + many)) ** 2)

    def observed_at(self, outputs: NDArray, y: NDArray) -> NDArray:
        mu, phi = np.exp(outputs[:, 0]), np.exp(outputs[:, 1])
        r, share = 1 / phi, phi * mu / (1 + phi * mu)
        of_eta, of_a = self.residual(outputs, y).swapaxes(0, 1)
        found = np.empty((len(mu), 2, 2, mu.shape[-1]), mu.dtype)
        found[:, 0, 0] = (mu + share * (y - mu)) / (1 + phi * mu)
        found[:, 0, 1] = found[:, 1, 0] = of_eta * share
        bend = polygamma(1, y + r) - polygamma(1, r)
        found[:, 1, 1] = of_a - of_eta * (1 - share) - share * r - r**2 * bend
        return found

    def distribution(self, y: NDArray, outputs: NDArray) -> NDArray:
        r, n = np.exp(-outputs[:, 1]), np.maximum(np.floor(y), 0) + 1
        p = r / (r + self.mean(outputs))
        if n.max(initial=0) > _CONTINUOUS:  # its limit, a Gamma variable; betainc loses all digits
            n = np.broadcast_to(n, p.shape)
            reached = np.where(n > _CONTINUOUS, gammainc(r, n * p), betainc(r, n, p))
        else:
            reached = betainc(r, n, p)
        return (y >= 0) * reached

    def draw(self, outputs: NDArray, rng: np.random.Generator) -> NDArray:
        r = np.exp(-outputs[:, 1])
        return rng.poisson(rng.gamma(r, self.mean(outputs) / r))


def _diagonal(first: NDArray, second: NDArray) -> NDArray:
    """(chains, 2, 2, n)"""
    found = np.zeros((len(first), 2, 2, first.shape[-1]), first.dtype)
    found[:, 0, 0], found[:, 1, 1] = first, second
    return found


def _information_of_shape(nu: NDArray) -> NDArray:
    """nu^2 psi'(nu) - nu: of the logarithm of the shape of a Gamma variable."""
    return np.where(nu > _LARGE, 0.5, nu**2 * polygamma(1, nu) - nu)
