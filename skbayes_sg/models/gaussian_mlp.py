"""A feed-forward neural network with normal noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from skbayes_sg.linalg.scores import Factor, Scores
from skbayes_sg.models.feed_forward import FeedForward
from skbayes_sg.models.response import Response
from skbayes_sg.priors import Prior

_LOG_NOISE_SD = 3.0  # of its prior: from a 400th of the spread of y to 400 times it, at two sd


class GaussianMLP(FeedForward, Response):
    """y_k = centre_k + scale_k (z_k + e_k), e_k ~ N(0, exp(a_k)), with outputs z of a network.

    The noise variance of each response is sampled on the log scale: a_k is normal of mean 0 and
    standard deviation 3 a priori. Targets are (y - centre) / scale, (n, K) or (chains, n, K); see
    `encode`. Wherever outputs of rows are asked for, each response of a row is a column: its mean
    and log variance.

    Parameters
    ----------
    n_features : int
    centre, scale : arrays of shape (K,)
        Of the responses.
    hidden_layer_sizes : sequence of int
        Units of each hidden layer.
    activation : {"logistic", "tanh", "relu"}
    """

    def __init__(
        self,
        n_features: int,
        centre: NDArray,
        scale: NDArray,
        hidden_layer_sizes: Sequence[int] = (30,),
        activation: str = "logistic",
    ) -> None:
        self.centre, self.scale = centre, scale
        self.n_responses = len(centre)
        response = "response" if self.n_responses > 1 else None
        super().__init__([n_features, *hidden_layer_sizes, len(centre)], activation, response)
        self.shapes["log_noise"], self.axes["log_noise"] = (self.n_responses,), (response,)

    @property
    def row_size(self) -> int:
        return sum(self._widths) * (1 + 2 * self.n_responses)

    def units(self) -> list[NDArray]:
        """Those of the network, and each log noise variance."""
        return [*super().units(), *np.arange(self.dim - self.n_responses, self.dim)[:, None]]

    def prior(self, precision: NDArray, mean: NDArray | float = 0.0, **units: Any) -> Prior:
        """Normal; the last entries of `precision` and `mean` are not used."""
        own = np.arange(self.dim) >= self.dim - self.n_responses
        precision = np.where(own, _LOG_NOISE_SD**-2.0, precision)
        return super().prior(precision, np.where(own, 0.0, mean), **units)

    def encode(self, y: NDArray, dtype: np.dtype) -> NDArray:
        """Responses (n,) or (n, K) as targets (n, K)."""
        return ((y.reshape(len(y), -1) - self.centre) / self.scale).astype(dtype)

    # -- gradients ----------------------------------------------------------------------------

    def _forward(self, theta: NDArray, X: NDArray) -> tuple[NDArray, Any]:
        """Also the log noise variances, as K more outputs of every row."""
        z, kept = super()._forward(theta, X)
        own = theta[:, -self.n_responses :, None].astype(z.dtype, copy=False)
        return np.concatenate([z, np.broadcast_to(own, z.shape)], axis=1), kept

    def _backward(self, error: NDArray, X: NDArray, kept: Any) -> Scores:
        K = self.n_responses
        layers = super()._backward(error[..., :K, :], X, kept)
        return Scores(*layers.factors, Factor(error[..., K:, :], None))

    def value_and_residual(self, z: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
        """Of y in its own units: -sum_k (log(2 pi scale_k^2) + a_k + (y - z)_k^2 e^-a_k) / 2."""
        K = self.n_responses
        residual = self.residual(z, y)
        # the second half is (r^2 e^-a - 1) / 2
        value = -residual[:, K:].sum(axis=1) - 0.5 * z[:, K:].sum(axis=1)
        constant = 0.5 * K * (math.log(2 * math.pi) + 1) + np.log(self.scale).sum()
        return (value - constant).astype(z.dtype, copy=False), residual

    def residual(self, z: NDArray, y: NDArray) -> NDArray:
        """(y - z) e^-a, and ((y - z)^2 e^-a - 1) / 2 in the log noise variances."""
        K = self.n_responses
        difference = y.swapaxes(-1, -2) - z[:, :K]
        weighted = difference * np.exp(-z[:, K:])
        return np.concatenate([weighted, 0.5 * (difference * weighted - 1)], axis=1)

    def residual_root(self, z: NDArray) -> NDArray:
        """e^(-a / 2) and sqrt(1 / 2), under a virtual label each: (chains, 2K, 2K, n)."""
        K = self.n_responses
        root = np.full_like(z, math.sqrt(0.5))
        root[:, :K] = np.exp(-0.5 * z[:, K:])
        return root[:, None] * np.eye(2 * K, dtype=z.dtype)[:, :, None]

    # -- the distribution of y --------------------------------------------------------------------

    def outputs(self, theta: NDArray, X: NDArray) -> NDArray:
        """Mean and log variance of each response, (chains, 2, n K), row by row in float64."""
        z = self._forward(theta, X)[0]
        mean, log_variance = z.reshape(len(z), 2, self.n_responses, -1).transpose(1, 0, 3, 2)
        mean = self.centre + self.scale * mean
        log_variance = log_variance + 2 * np.log(self.scale)
        return np.stack([mean, log_variance], axis=1).reshape(len(z), 2, -1)

    def predict(self, theta: NDArray, X: NDArray) -> NDArray:
        """Mean of the responses, (chains, K, n)."""
        mean = self.outputs(theta, X)[:, 0].astype(X.dtype, copy=False)
        return mean.reshape(len(theta), -1, self.n_responses).swapaxes(1, 2)

    def variance(self, outputs: NDArray) -> NDArray:
        return np.exp(outputs[:, 1])

    def distribution(self, y: NDArray, outputs: NDArray) -> NDArray:
        return ndtr((y - outputs[:, 0]) * np.exp(-0.5 * outputs[:, 1]))

    def draw(self, outputs: NDArray, rng: np.random.Generator) -> NDArray:
        noise = rng.standard_normal(outputs[:, 0].shape)
        return outputs[:, 0] + noise * np.exp(0.5 * outputs[:, 1])
