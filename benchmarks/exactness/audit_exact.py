"""Posterior moments of regressions, exact or nearly so, without the package.

Linear regressions are conjugate, and their moments are in closed form. Those of logistic and
multinomial regressions are by importance sampling from a Student t around the mode, whose location
and shape are fitted to the weighted draws until 2,000 effective draws remain. Their error is then
a fortieth of a posterior standard deviation, far below what `audit.py` calls wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import block_diag
from scipy.special import expit, logsumexp, polygamma, psi

_EFFECTIVE = 2000  # draws of importance sampling
_LARGEST_WEIGHT = 0.01
_FREEDOM = 5.0  # of the Student t
_ROUNDS = 8
_CELLS = 1 << 22


class Moments(NamedTuple):
    """Posterior mean and covariance, and the logarithm of the evidence up to a constant."""

    mean: NDArray
    covariance: NDArray
    log_evidence: float = 0.0

    @property
    def sd(self) -> NDArray:
        """Standard deviation of each parameter."""
        return np.sqrt(self.covariance.diagonal())

    @property
    def largest(self) -> float:
        """Largest eigenvalue of the inverse of the covariance: the stiffest direction."""
        return float(1 / np.linalg.eigvalsh(self.covariance)[0])


def linear(X: NDArray, y: NDArray, precision: ArrayLike, of_intercept: float) -> Moments:
    """Conjugate: the noise variance is 1."""
    Z, Lam, log_volume = _normal_equations(X, precision, of_intercept)
    covariance = np.linalg.inv(Lam)
    mean = covariance @ (Z.T @ y)
    return Moments(mean, covariance, log_volume + 0.5 * mean @ Lam @ mean)


def with_noise(
    X: NDArray, y: NDArray, precision: ArrayLike, of_intercept: float, noise: tuple[float, float]
) -> Moments:
    """Normal-inverse-gamma; the log noise variance is the last parameter."""
    Z, Lam, log_volume = _normal_equations(X, precision, of_intercept)
    mean = np.linalg.solve(Lam, Z.T @ y)
    shape = noise[0] + len(y) / 2
    rate = noise[1] + (y @ y - mean @ Lam @ mean) / 2
    covariance = block_diag(np.linalg.inv(Lam) * rate / (shape - 1), polygamma(1, shape))
    mean = np.append(mean, np.log(rate) - psi(shape))
    return Moments(mean, covariance, log_volume - shape * np.log(rate))


def _normal_equations(
    X: NDArray, precision: ArrayLike, of_intercept: float
) -> tuple[NDArray, NDArray, float]:
    """Columns with that of the intercept, posterior precision, log ratio of prior to posterior."""
    Z = np.column_stack([X, np.ones(len(X))])
    prior = np.append(np.broadcast_to(precision, X.shape[1]), of_intercept)
    Lam = Z.T @ Z + np.diag(prior)
    return Z, Lam, 0.5 * (np.log(prior).sum() - np.linalg.slogdet(Lam)[1])


class Classes:
    """Log posterior of two classes, with one logit, or of more, as the estimators have it."""

    def __init__(self, X: NDArray, y: NDArray, precision: ArrayLike, of_intercept: float) -> None:
        self.Z = np.column_stack([X, np.ones(len(X))])
        self.n_logits = 1 if y.max() == 1 else int(y.max()) + 1
        self.y, self.d = y, X.shape[1]
        d, k = self.d, self.n_logits
        self.precision = np.append(
            np.tile(np.broadcast_to(precision, d), k), np.full(k, of_intercept)
        )

    def outputs(self, theta: NDArray) -> NDArray:
        """(draws, logits, n)"""
        k, d = self.n_logits, self.d
        coef = theta[:, : k * d].reshape(-1, k, d)
        return np.concatenate([coef, theta[:, k * d :, None]], axis=2) @ self.Z.T

    def log_density(self, theta: NDArray) -> NDArray:
        """Up to a constant, of each row of theta."""
        each = max(1, _CELLS // (len(self.y) * self.n_logits))
        parts = [theta[i : i + each] for i in range(0, len(theta), each)]
        return np.concatenate([self._log_density(part) for part in parts])

    def _log_density(self, theta: NDArray) -> NDArray:
        prior = -0.5 * (theta * theta) @ self.precision
        z = self.outputs(theta)
        if self.n_logits == 1:
            sign = np.where(self.y == 1, -1.0, 1.0)
            return prior - np.logaddexp(0.0, sign * z[:, 0]).sum(axis=1)
        own = z[:, self.y, np.arange(len(self.y))]
        return prior + (own - logsumexp(z, axis=1)).sum(axis=1)

    def slope(self, theta: NDArray) -> tuple[NDArray, NDArray]:
        """Gradient and minus the Hessian at one point."""
        z = self.outputs(theta[None])[0]
        if self.n_logits == 1:
            p = expit(z)
            each = self.y[None] - p
            weight = (p * (1 - p))[None]
        else:
            p = np.exp(z - logsumexp(z, axis=0))
            each = np.eye(self.n_logits)[self.y].T - p
            weight = np.einsum("kl,kn->kln", np.eye(self.n_logits), p) - p[:, None] * p
        gradient = each @ self.Z
        hessian = np.einsum("kln,ni,nj->kilj", weight, self.Z, self.Z, optimize=True)
        place = np.arange(gradient.size).reshape(gradient.shape)
        place = np.concatenate([place[:, :-1].ravel(), place[:, -1]])
        H = hessian.reshape(gradient.size, gradient.size)[np.ix_(place, place)]
        return gradient.ravel()[place] - self.precision * theta, H + np.diag(self.precision)

    def mode(self) -> tuple[NDArray, NDArray]:
        """Newton's method with halved steps, and the curvature there."""
        theta = np.zeros(len(self.precision))
        for _ in range(100):
            gradient, H = self.slope(theta)
            step = np.linalg.solve(H, gradient)
            here, size = self.log_density(theta[None])[0], 1.0
            while self.log_density((theta + size * step)[None])[0] < here and size > 1e-6:
                size /= 2
            theta = theta + size * step
            if step @ gradient < 1e-10:
                break
        return theta, self.slope(theta)[1]


def classes(
    X: NDArray, y: NDArray, precision: float, of_intercept: float, rng: np.random.Generator
) -> Moments | None:
    """Importance sampling from a Student t that is fitted to its own weighted draws.

    None if the draws do not become effective.
    """
    size = np.sqrt((X * X).mean(axis=0))  # columns of 1e-3 and of 1e4 are beyond double precision
    posterior = Classes(X / size, y, precision / size**2, of_intercept)
    unit = np.append(np.tile(size, posterior.n_logits), np.ones(posterior.n_logits))
    centre, H = posterior.mode()
    scale, dim = np.linalg.inv(H) * 1.2, len(centre)
    n = 6000
    for _ in range(_ROUNDS):
        root = np.linalg.cholesky(scale)
        z = rng.standard_normal((n // 2, dim))
        z = np.concatenate([z, -z])
        chi = np.tile(rng.chisquare(_FREEDOM, n // 2) / _FREEDOM, 2)
        z = z / np.sqrt(chi)[:, None]
        theta = centre + z @ root.T
        log_t = -0.5 * (_FREEDOM + dim) * np.log1p((z * z).sum(axis=1) / _FREEDOM)
        log_weight = posterior.log_density(theta) - log_t + np.log(root.diagonal()).sum()
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        mean = weight @ theta
        away = theta - mean
        covariance = (away * weight[:, None]).T @ away
        if 1 / (weight @ weight) > _EFFECTIVE and weight.max() < _LARGEST_WEIGHT:
            evidence = logsumexp(log_weight) - np.log(n) + 0.5 * np.log(posterior.precision).sum()
            return Moments(mean / unit, covariance / np.outer(unit, unit), float(evidence))
        few = 1 / (weight @ weight) < 20 * dim
        centre, scale = mean, covariance + (0.5 * scale if few else 0.0)
        n = min(2 * n, 24_000)
    return None


def learned(
    X: NDArray, conditional: Callable[[NDArray, float], Moments | None], n_outputs: int = 1
) -> Moments | None:
    """Moments under a learned precision lambda, for columns that have no most frequent value.

    The prior precision of coefficient j is lambda times the variance of its column. The intercept
    has its prior at the means of the columns. lambda is Gamma(1/2, 1/2), times exp(-1e-3 / lambda):
    up to ten columns that is a prior with as much information as one row. Quadrature over
    log(lambda).

    conditional : moments of standardised columns under a given precision
    """
    centre, unit = X.mean(axis=0), X.std(axis=0)
    rho = np.arange(-8.0, 5.5, 0.5)  # less than e^-10 of the mass is outside
    found = [conditional((X - centre) / unit, float(np.exp(one))) for one in rho]
    if None in found:
        return None
    given = [one for one in found if one is not None]
    log_p = np.array([one.log_evidence for one in given]) + 0.5 * rho - 0.5 * np.exp(rho)
    log_p -= 1e-3 * np.exp(-rho)
    p = np.exp(log_p - logsumexp(log_p))
    mean = np.average([one.mean for one in given], axis=0, weights=p)
    second = [one.covariance + np.outer(one.mean - mean, one.mean - mean) for one in given]
    found = Moments(mean, np.average(second, axis=0, weights=p))
    return of_columns(found, centre, unit, n_outputs)


def of_columns(found: Moments, centre: NDArray, unit: NDArray, n_outputs: int) -> Moments:
    """Of the parameters for columns X, given those for (X - centre) / unit."""
    k, d, back = n_outputs, len(unit), np.eye(len(found.mean))
    back[: k * d, : k * d] /= np.tile(unit, k)
    back[k * d : k * d + k, : k * d] = -np.kron(np.eye(k), centre / unit)
    return Moments(back @ found.mean, back @ found.covariance @ back.T)
