"""Small regressions of every awkward shape, with posterior moments that are exact or nearly so.

Linear regressions are conjugate, and their moments are in closed form. Those of logistic and
multinomial regressions are by importance sampling from a Student t around the mode, whose location
and shape are fitted to the weighted draws until 2,000 effective draws remain. Their error is then
a fortieth of a posterior standard deviation, far below what `audit.py` calls wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp, polygamma, psi

_EFFECTIVE = 2000  # draws of importance sampling
_LARGEST_WEIGHT = 0.01
_FREEDOM = 5.0  # of the Student t
_ROUNDS = 8
_CELLS = 1 << 22


class Moments(NamedTuple):
    """Posterior mean and standard deviation of each parameter, and the stiffest direction."""

    mean: NDArray
    sd: NDArray
    largest: float
    """largest eigenvalue of the inverse of the covariance"""


class Problem(NamedTuple):
    """Data, the parameters of the estimator, and the exact moments in the order of `draws_`."""

    name: str
    kind: str
    """"logistic", "multinomial", "linear" or "noise": linear with a sampled noise variance"""
    X: NDArray
    y: NDArray
    given: dict
    exact: Moments


def _scaled(X: NDArray) -> NDArray:
    return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)


def _one_hot(rng: np.random.Generator, n: int, d: int) -> NDArray:
    return np.eye(d)[rng.choice(d, n, p=0.5 ** np.arange(1, d + 1) / (1 - 0.5**d))]


def _collinear(rng: np.random.Generator, n: int, d: int) -> NDArray:
    X = rng.standard_normal((n, d))
    X[:, -1] = X[:, 0] + 0.05 * X[:, -1]
    return X


SHAPES: dict[str, tuple[tuple[int, int], Callable[[np.random.Generator, int, int], NDArray]]] = {
    "plain": ((200, 1500), lambda rng, n, d: rng.standard_normal((n, d))),
    "skewed": ((60, 600), lambda rng, n, d: _scaled(rng.lognormal(0.0, 1.0, (n, d)))),
    "heavy-tailed": ((60, 600), lambda rng, n, d: rng.standard_t(2, (n, d))),
    "collinear": ((60, 600), _collinear),
    "one-hot": ((60, 600), _one_hot),
    "unscaled": (
        (60, 600),
        lambda rng, n, d: rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1, d) + 1.0,
    ),
    "few rows": ((8, 30), lambda rng, n, d: rng.standard_normal((n, d))),
    "many rows": ((2000, 6000), lambda rng, n, d: rng.standard_normal((n, d))),
    "rare events": ((100, 1000), lambda rng, n, d: rng.standard_normal((n, d))),
    "separable": ((20, 200), lambda rng, n, d: rng.standard_normal((n, d))),
}
_FIVE = ("logistic", "multinomial", "logistic", "linear", "logistic")
KINDS = (*_FIVE, "noise", "logistic", "multinomial", "logistic", "linear")


def problems(n: int, seed: int) -> Iterator[Problem]:
    """So many problems, shapes in turn, all else at random."""
    made = 0
    for number in range(10 * n):
        rng = np.random.default_rng([seed, number])
        shape = list(SHAPES)[number % len(SHAPES)]
        kind = KINDS[(number + number // len(SHAPES)) % len(KINDS)]
        found = _made(shape, kind, rng)
        if found is not None:
            yield found
            made += 1
        if made == n:
            return


def _made(shape: str, kind: str, rng: np.random.Generator) -> Problem | None:
    """A problem; None if importance sampling does not reach the moments."""
    (fewest, most), rows = SHAPES[shape]
    n = int(np.exp(rng.uniform(np.log(fewest), np.log(most))))
    d = (
        int(rng.integers(1, 7))
        if shape not in ("one-hot", "collinear")
        else int(rng.integers(2, 6))
    )
    X, precision = rows(rng, n, d), float(rng.choice([0.1, 1.0]))
    coef = rng.standard_normal(d) / max(1.0, float(np.sqrt(d))) / np.maximum(X.std(axis=0), 0.1)
    given: dict = {"prior_precision": precision, "intercept_precision": 0.1}
    outputs = X @ coef
    if kind in ("linear", "noise"):
        noise = (
            rng.standard_t(3, n) if shape in ("heavy-tailed", "rare events") else rng.normal(size=n)
        )
        y = outputs + noise
        if kind == "linear":
            given["noise_variance"] = 1.0
            return Problem(shape, kind, X, y, given, _linear(X, y, precision, 0.1))
        given["noise_prior"] = (2.0, 2.0)
        return Problem(shape, kind, X, y, given, _with_noise(X, y, precision, 0.1, (2.0, 2.0)))
    y = _labels(shape, kind, outputs, rng)
    if len(np.unique(y)) != (2 if kind == "logistic" else 3):
        return None
    exact = _classes(X, y, precision, 0.1, rng)
    return None if exact is None else Problem(shape, kind, X, y, given, exact)


def _labels(shape: str, kind: str, outputs: NDArray, rng: np.random.Generator) -> NDArray:
    if shape == "separable":
        return np.digitize(
            outputs, np.quantile(outputs, [0.5] if kind == "logistic" else [0.3, 0.7])
        )
    noisy = outputs + rng.logistic(size=len(outputs))
    quantiles = [0.97, 0.99] if shape == "rare events" else [0.5, 0.8]
    ends = np.quantile(noisy, quantiles)
    return np.digitize(noisy, ends[:1] if kind == "logistic" else ends)


# -- exact moments ----------------------------------------------------------------------------


def _linear(X: NDArray, y: NDArray, precision: float, of_intercept: float) -> Moments:
    """Conjugate: the noise variance is 1."""
    Z = np.column_stack([X, np.ones(len(X))])
    Lam = Z.T @ Z + np.diag([precision] * X.shape[1] + [of_intercept])
    covariance = np.linalg.inv(Lam)
    return Moments(covariance @ (Z.T @ y), np.sqrt(covariance.diagonal()), _largest(covariance))


def _with_noise(
    X: NDArray, y: NDArray, precision: float, of_intercept: float, noise: tuple[float, float]
) -> Moments:
    """Normal-inverse-gamma; the log noise variance is the last parameter."""
    Z = np.column_stack([X, np.ones(len(X))])
    Lam = Z.T @ Z + np.diag([precision] * X.shape[1] + [of_intercept])
    mean = np.linalg.solve(Lam, Z.T @ y)
    shape = noise[0] + len(y) / 2
    rate = noise[1] + (y @ y - mean @ Lam @ mean) / 2
    covariance = np.linalg.inv(Lam) * rate / (shape - 1)
    mean = np.append(mean, np.log(rate) - psi(shape))
    sd = np.sqrt(np.append(covariance.diagonal(), polygamma(1, shape)))
    return Moments(mean, sd, max(_largest(covariance), 1 / float(polygamma(1, shape))))


def _largest(covariance: NDArray) -> float:
    return float(1 / np.linalg.eigvalsh(covariance)[0])


class _Classes:
    """Log posterior of two classes, with one logit, or of more, as the estimators have it."""

    def __init__(self, X: NDArray, y: NDArray, precision: float, of_intercept: float) -> None:
        self.Z = np.column_stack([X, np.ones(len(X))])
        self.n_logits = 1 if y.max() == 1 else int(y.max()) + 1
        self.y, self.d = y, X.shape[1]
        d, k = self.d, self.n_logits
        self.precision = np.concatenate([np.full(k * d, precision), np.full(k, of_intercept)])

    def outputs(self, theta: NDArray) -> NDArray:
        """(draws, logits, n)"""
        k, d = self.n_logits, self.d
        coef = theta[:, : k * d].reshape(-1, k, d)
        return np.concatenate([coef, theta[:, k * d :, None]], axis=2) @ self.Z.T

    def log_density(self, theta: NDArray) -> NDArray:
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
        hessian = np.einsum("kln,ni,nj->kilj", weight, self.Z, self.Z)
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


def _classes(
    X: NDArray, y: NDArray, precision: float, of_intercept: float, rng: np.random.Generator
) -> Moments | None:
    """Importance sampling from a Student t that is fitted to its own weighted draws."""
    posterior = _Classes(X, y, precision, of_intercept)
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
        log_weight = posterior.log_density(theta) - log_t
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        mean = weight @ theta
        away = theta - mean
        covariance = (away * weight[:, None]).T @ away
        if 1 / (weight @ weight) > _EFFECTIVE and weight.max() < _LARGEST_WEIGHT:
            return Moments(mean, np.sqrt(covariance.diagonal()), _largest(covariance))
        few = 1 / (weight @ weight) < 20 * dim
        centre, scale = mean, covariance + (0.5 * scale if few else 0.0)
        n = min(2 * n, 24_000)
    return None
