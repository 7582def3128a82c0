"""Linear regression with Gaussian noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.special import ndtr

from skbayes_sg.data.columns import of_targets
from skbayes_sg.data.rows import Data
from skbayes_sg.linalg.scores import Factor, Scores
from skbayes_sg.models.base import Response, normal_cumulants, notices_of_means
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.priors import NormalInverseGammaPrior, Prior


class Linear(Predictor, Response):
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

    conjugate = True
    has_location = True

    def __init__(
        self,
        n_features: int,
        fit_intercept: bool = True,
        noise_variance: float | None = None,
        noise_prior: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        own = ("log_noise",) if noise_variance is None else ()
        super().__init__(1, n_features, fit_intercept, own)
        self.noise_variance, self.noise_prior = noise_variance, noise_prior
        self.residual_scale = (-1, 2.0) if noise_variance is None else None

    def natural(self, name: str, block: NDArray) -> tuple[str, NDArray]:
        return ("noise_variance", np.exp(block)) if name == "log_noise" else (name, block)

    def prior(self, precision: NDArray, mean: NDArray | float = 0.0, **units: Any) -> Prior:
        """Gaussian prior, scaled by the noise variance where that is sampled.

        The last entries of `precision` and `mean` are then not used; `units` have none.
        """
        if self.noise_variance is not None:
            return super().prior(precision, mean, **units)
        mean = np.broadcast_to(mean, precision.shape)[:-1]
        return NormalInverseGammaPrior(precision[:-1], self.noise_prior, mean, **units)

    def guess(self, y: NDArray, weight: NDArray | None, known: NDArray | None = None) -> NDArray:
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

    def spread_of_y(self, data: Data) -> tuple[float, float]:
        mean, variance = of_targets(data)
        return mean, math.sqrt(variance)

    def _precision(self, theta: NDArray, X: NDArray) -> NDArray | float:
        """1 / noise variance of each chain, (chains, 1).

        Or of each row, where a column of X says by how much its log noise differs.
        """
        if self.noise_variance is not None:
            return 1.0 / self.noise_variance
        n_known = X.shape[-1] - self.shapes["coef"][1]
        return np.exp(-theta[:, -1:] - X[..., -1]) if n_known == 2 else np.exp(-theta[:, -1:])

    @classmethod
    def notices(cls, data: Data) -> list[str]:
        return notices_of_means(data)

    @classmethod
    def averaged(cls, y: NDArray, counts: NDArray) -> tuple[NDArray, NDArray]:
        """A mean of k observations has the noise variance s2 / k."""
        return y, np.column_stack([np.zeros(len(y)), -np.log(counts)])

    def _residual(self, theta: NDArray, X: NDArray, y: NDArray) -> NDArray:
        """y - z, (chains, n): of the outputs, the log noise is one number for all rows."""
        z = self.etas(theta, self.features(X))
        n_features = self.shapes["coef"][1]
        if X.shape[-1] > n_features:
            z = self.plus_known(z, X[..., : n_features + 1])
        return y - z[:, 0]

    def _value(self, residual: NDArray, precision: NDArray | float, dtype: DTypeLike) -> NDArray:
        value = 0.5 * (np.log(precision) - math.log(2 * math.pi))
        value = value - 0.5 * precision * residual * residual
        return value.astype(dtype, copy=False)

    def _scores(self, residual: NDArray, precision: NDArray | float, X: NDArray) -> Scores:
        weighted = (residual * precision).astype(X.dtype, copy=False)
        of_mean = self.times_inputs(weighted[:, None], X)
        if self.noise_variance is not None:
            return of_mean
        of_noise = (0.5 * (residual * weighted - 1)).astype(X.dtype, copy=False)
        return Scores(*of_mean.factors, Factor(of_noise[:, None], None))

    def log_likelihood(self, theta: NDArray, X: NDArray, y: NDArray) -> NDArray:
        residual = self._residual(theta, X, y)
        return self._value(residual, self._precision(theta, X), X.dtype)

    def scores(self, theta: NDArray, X: NDArray, y: NDArray) -> Scores:
        """(y - z) x / s2, and (r^2 / s2 - 1) / 2 for the log noise (Karagiannis Eq. 4.1)."""
        return self._scores(self._residual(theta, X, y), self._precision(theta, X), X)

    def value_and_scores(self, theta: NDArray, X: NDArray, y: NDArray) -> tuple[NDArray, Scores]:
        residual, precision = self._residual(theta, X, y), self._precision(theta, X)
        return self._value(residual, precision, X.dtype), self._scores(residual, precision, X)

    def fisher(self, theta: NDArray, X: NDArray) -> Scores:
        """x / s, and sqrt(1/2) for the log noise under a virtual label of its own.

        Scores of coefficients and of the log noise are not correlated under the model.
        """
        n = X.shape[-2]
        root = np.sqrt(self._precision(theta, X)) * np.ones((len(theta), n))
        if self.noise_variance is not None:
            return self.times_inputs(root.astype(X.dtype)[:, None], X)
        left = np.zeros((len(theta), 2, 2, n), X.dtype)
        left[:, 0, 0], left[:, 1, 1] = root, math.sqrt(0.5)
        return self.times_inputs(left, X)

    def log_loss_moments(self, theta: NDArray, X: NDArray) -> tuple[NDArray, NDArray]:
        mean = 0.5 * (1 + np.log(2 * np.pi / self._precision(theta, X)))
        return np.full(X.shape[-2], np.squeeze(mean)), np.full(X.shape[-2], 0.5)

    # -- the distribution of y ----------------------------------------------------------------

    def variance(self, outputs: NDArray) -> NDArray:
        if self.noise_variance is not None:
            return np.full(outputs[:, 0].shape, self.noise_variance)
        return np.exp(outputs[:, 1])

    def distribution(self, y: NDArray, outputs: NDArray) -> NDArray:
        return ndtr((y - outputs[:, 0]) / self.width(outputs))

    def draw(self, outputs: NDArray, rng: np.random.Generator) -> NDArray:
        return outputs[:, 0] + self.width(outputs) * rng.standard_normal(outputs[:, 0].shape)

    def cumulants(self, outputs: NDArray) -> NDArray:
        return normal_cumulants(outputs[:, 0], self.variance(outputs))

    # -- expansion around an anchor -----------------------------------------------------------

    def expand_rows(self, outputs: NDArray, y: NDArray) -> tuple[NDArray, ...]:
        """Residual and 1 / noise variance; nothing of it is used where the variance is given."""
        residual = y - outputs[0, :1]
        if self.noise_variance is not None:
            return (residual,)
        return residual, np.exp(-outputs[0, 1:])

    def difference(self, change: NDArray, at_anchor: tuple[NDArray, ...]) -> NDArray:
        if self.noise_variance is not None:
            return change * (-1.0 / self.noise_variance)
        residual, precision = at_anchor
        dz, dg = change[:, :1], change[:, 1:]
        ratio = np.exp(-dg)
        now = residual - dz
        of_mean = now * ratio - residual
        of_noise = 0.5 * (now * now * ratio - residual * residual)
        return precision * np.concatenate([of_mean, of_noise], axis=1)

    def bregman_remainder(
        self, change: NDArray, at_anchor: tuple[NDArray, ...]
    ) -> tuple[NDArray, NDArray]:
        dz, difference = change[:, 0], self.difference(change, at_anchor)
        if self.noise_variance is not None:
            return 0.5 * dz * difference[:, 0], difference
        residual, dg = at_anchor[0], change[:, 1]
        square = residual * residual
        now = (residual - dz) ** 2 * np.exp(-dg)
        return -0.5 * at_anchor[1] * (now - square + 2 * residual * dz + square * dg), difference

    def remainder(self, change: NDArray, at_anchor: tuple[NDArray, ...]) -> NDArray:
        """0 where the noise variance is given: the score is then linear in theta."""
        if self.noise_variance is not None:
            change[:] = 0
            return change
        residual, precision = at_anchor
        dz, dg = change[:, :1], change[:, 1:]
        ratio = np.expm1(-dg)  # of precisions, minus 1
        now = residual - dz
        of_mean = now * (ratio + dg) + dz * dg
        of_noise = 0.5 * (now * now * (ratio + dg) + dz * dz - dg * dz * (dz - 2 * residual))
        return precision * np.concatenate([of_mean, of_noise], axis=1)

    def observed(self, information: NDArray, gradient: NDArray) -> NDArray:
        """The second derivatives in the log noise follow from the gradient."""
        if self.noise_variance is not None:
            return information
        observed = information.copy()
        observed[-1] += gradient[0]
        observed[:-1, -1] += gradient[0, :-1]
        return observed
