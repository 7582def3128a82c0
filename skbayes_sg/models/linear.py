"""Linear regression with Gaussian noise."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.models.base import Model
from skbayes_sg.priors import NormalInverseGammaPrior, Prior
from skbayes_sg.scores import Factor, Scores


class Linear(Model):
    """y ~ N(coef . x + intercept, noise variance).

    A noise variance s2 that is not given is sampled on the log scale. gamma = log s2 is the last
    coordinate (Karagiannis, handout 4, section 4). The prior variances of the coefficients are then
    proportional to s2.

    Parameters
    ----------
    n_features : int
    fit_intercept : bool, default=True
    noise_variance : float, optional
    noise_prior : tuple (shape, rate)
        Of the inverse-gamma prior of a sampled noise variance.
    """

    fixed_inputs = True

    def __init__(
        self,
        n_features: int,
        fit_intercept: bool = True,
        noise_variance: float | None = None,
        noise_prior: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        self.shapes = {"coef": (1, n_features)}
        if fit_intercept:
            self.shapes["intercept"] = (1,)
        if noise_variance is None:
            self.shapes["log_noise"] = (1,)
        self.fit_intercept = fit_intercept
        self.noise_variance = noise_variance
        self.noise_prior = noise_prior
        self._n_features = n_features

    def prior(self, precision: NDArray) -> Prior:
        """Gaussian prior, scaled by the noise variance where that is sampled.

        The last entry of `precision` is then not used.
        """
        if self.noise_variance is not None:
            return super().prior(precision)
        return NormalInverseGammaPrior(precision[:-1], *self.noise_prior)

    def _rows_of_classes(self, name: str, block: NDArray) -> dict[str, NDArray]:
        raise ValueError('VariationalEM: per="class" needs classes; use "block" or "feature"')

    def init(self, rng: np.random.Generator) -> NDArray:
        """Zero: the mode is found in a few scoring steps."""
        return np.zeros((1, self.dim))

    def guess(self, y: NDArray, weight: NDArray | None) -> NDArray:
        """Mean and log variance of y: a scoring step lowers the log noise by at most 1."""
        theta = np.zeros((1, self.dim))
        blocks = self.unpack(theta)
        y = y.astype(np.float64)
        weights = np.ones(len(y)) if weight is None else weight.astype(np.float64)
        if self.fit_intercept:
            blocks["intercept"][:] = np.average(y, weights=weights)
            y = y - np.average(y, weights=weights)
        if self.noise_variance is None:
            shape, rate = self.noise_prior
            square = weights @ (y * y)
            blocks["log_noise"][:] = math.log((square + 2 * rate) / (weights.sum() + 2 * shape))
        return theta

    def _precision(self, theta: NDArray) -> NDArray | float:
        """1 / noise variance of each chain, (chains, 1)."""
        return np.exp(-theta[:, -1:]) if self.noise_variance is None else 1.0 / self.noise_variance

    def predict(self, theta: NDArray, X: NDArray) -> NDArray:
        """Mean of the response: (chains, 1, n)."""
        theta = theta.astype(X.dtype, copy=False)
        coef = theta[:, : self._n_features]
        z = (coef[:, None, :] @ X.swapaxes(1, 2))[:, 0] if X.ndim == 3 else coef.dot(X.T)
        if self.fit_intercept:
            z += theta[:, self._n_features : self._n_features + 1]
        return z[:, None]

    def log_likelihood(self, theta: NDArray, X: NDArray, y: NDArray) -> NDArray:
        r = y - self.predict(theta, X)[:, 0]
        precision = self._precision(theta)
        return (0.5 * (np.log(precision) - math.log(2 * math.pi)) - 0.5 * precision * r * r).astype(
            X.dtype, copy=False
        )

    def scores(self, theta: NDArray, X: NDArray, y: NDArray) -> Scores:
        """(y - z) x / s2, and (r^2 / s2 - 1) / 2 for the log noise (Karagiannis Eq. 4.1)."""
        residual = y - self.predict(theta, X)[:, 0]
        weighted = (residual * self._precision(theta)).astype(X.dtype, copy=False)
        log_noise = 0.5 * (residual * weighted - 1) if self.noise_variance is None else None
        return self._factors(
            weighted[:, None], X, None if log_noise is None else log_noise[:, None]
        )

    def fisher(self, theta: NDArray, X: NDArray) -> Scores:
        """x / s, and sqrt(1/2) for the log noise under a virtual label of its own.

        Scores of coefficients and of the log noise are not correlated under the model.
        """
        n = X.shape[-2]
        root = np.sqrt(self._precision(theta)) * np.ones((len(theta), n))
        if self.noise_variance is not None:
            return self._factors(root.astype(X.dtype)[:, None], X, None)
        coef, noise = np.zeros((2, len(theta), 2, 1, n), X.dtype)
        coef[:, 0, 0] = root
        noise[:, 1] = math.sqrt(0.5)
        return self._factors(coef, X, noise)

    def _factors(self, left: NDArray, X: NDArray, log_noise: NDArray | None) -> Scores:
        factors = [Factor(left, X)]
        if self.fit_intercept:
            factors.append(Factor(left, None))
        if log_noise is not None:
            factors.append(Factor(log_noise, None))
        return Scores(*factors)
