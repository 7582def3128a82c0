"""Feed-forward neural networks, of classes and of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from skbayes_sg.linalg.scores import Factor, Scores
from skbayes_sg.models.base import FREE, HIDDEN_VARIANCE, Network, Response, normal_cumulants
from skbayes_sg.models.softmax import Categorical, sigmoid
from skbayes_sg.priors import Prior

ACTIVATIONS: dict[str, tuple[Callable[[NDArray], NDArray], Callable[[NDArray], NDArray]]] = {
    "logistic": (sigmoid, lambda h: h * (1 - h)),
    "tanh": (lambda z: np.tanh(z, out=z), lambda h: 1 - h * h),
    "relu": (lambda z: np.maximum(z, 0, out=z), lambda h: (h > 0).astype(h.dtype)),
}
"""The function, in place, and its derivative in terms of its value."""


class FeedForward(Network):
    """z = W_L h_L-1 + b_L, h_l = activation(W_l h_l-1 + b_l), h_0 = x; p(y | z) is the subclass's.

    The score of a row in layer l is its back-propagated error times the activation below
    (math/networks.md#mlp), kept as factors.

    Parameters
    ----------
    widths : sequence of int
        Features, units of each hidden layer, and outputs.
    activation : {"logistic", "tanh", "relu"}
    response : str or None
        What an output stands for; None for a single one.
    """

    def __init__(self, widths: Sequence[int], activation: str, response: str | None) -> None:
        self._widths = list(widths)
        self._activation = activation  # by name: files then hold no functions
        self.shapes, self.axes = {}, {}
        hidden = [f"hidden_{layer}" for layer in range(self.n_layers - 1)]
        units = ["feature", *hidden, response]
        for layer in range(self.n_layers):
            self.shapes[f"coef_{layer}"] = (self._widths[layer + 1], self._widths[layer])
            self.shapes[f"intercept_{layer}"] = (self._widths[layer + 1],)
            self.axes[f"coef_{layer}"] = (units[layer + 1], units[layer])
            self.axes[f"intercept_{layer}"] = (units[layer + 1],)

    @property
    def n_layers(self) -> int:
        """Layers of weights: hidden ones and the output."""
        return len(self._widths) - 1

    @property
    def groups(self) -> list[list[str]]:
        """The layers."""
        return [[f"coef_{layer}", f"intercept_{layer}"] for layer in range(self.n_layers)]

    @property
    def row_size(self) -> int:
        """Numbers that a row needs: activations, and errors of every virtual label."""
        return sum(self._widths) * (1 + self._widths[-1])

    @property
    def widest(self) -> int:
        return max(self._widths[1:])

    def units(self) -> list[NDArray]:
        """Coordinates of the weights and the bias into each unit."""
        names = self.unpack(np.arange(self.dim))
        layers = [
            (names[f"coef_{layer}"], names[f"intercept_{layer}"]) for layer in range(self.n_layers)
        ]
        return [
            np.append(row, bias)
            for coef, intercept in layers
            for row, bias in zip(coef, intercept, strict=True)
        ]

    def reference_precision(self, input_square: float) -> NDArray:
        """Precision under which the weighted sum into a hidden unit has standard deviation 3.

        The prior of the last layer is nearly flat. `input_square` is the mean over rows of the sum
        of the features' squares. Activations are taken to be of order one.
        """
        of_block = {}
        for layer, fan_in in enumerate(self._widths[:-1]):
            last = layer == self.n_layers - 1
            square = fan_in if layer else input_square
            of_block[f"coef_{layer}"] = FREE if last else square / HIDDEN_VARIANCE
            of_block[f"intercept_{layer}"] = FREE if last else 1 / HIDDEN_VARIANCE
        return self.spread(of_block)

    def init(self, rng: np.random.Generator) -> NDArray:
        """Normal weights that keep the scale of inputs of unit size; zero biases."""
        blocks = []
        for shape in self.shapes.values():
            scale = shape[1] ** -0.5 if len(shape) == 2 else 0.0
            blocks.append(scale * rng.standard_normal(shape).ravel())
        return np.concatenate(blocks)[None]

    def _forward(self, theta: NDArray, X: NDArray) -> tuple[NDArray, Any]:
        """Outputs, with activations (chains, units, n) and weights of the layers."""
        blocks = list(self.unpack(theta.astype(X.dtype, copy=False)).values())[: 2 * self.n_layers]
        X, with_known = self.features(X), X
        coefs, intercepts = blocks[::2], blocks[1::2]
        activation, hidden = ACTIVATIONS[self._activation][0], list[NDArray]()
        for coef, intercept in zip(coefs, intercepts, strict=True):
            z = coef @ hidden[-1] if hidden else times_rows(coef, X)
            z += intercept[..., None]
            if len(hidden) < self.n_layers - 1:
                hidden.append(activation(z))
        return self.plus_known(z, with_known), (hidden, coefs)

    def _backward(self, error: NDArray, X: NDArray, kept: Any) -> Scores:
        """Back-propagated error times activation, layer by layer."""
        hidden, coefs = kept
        derivative, factors = ACTIVATIONS[self._activation][1], list[Factor]()
        for layer in reversed(range(self.n_layers)):
            right = hidden[layer - 1].swapaxes(1, 2) if layer else self.features(X)
            factors = [Factor(error, right), Factor(error, None), *factors]
            if layer:
                back, slope = coefs[layer].swapaxes(1, 2), derivative(hidden[layer - 1])
                if error.ndim == 4:
                    back, slope = back[:, None], slope[:, None]
                error = back @ error
                error *= slope
        return Scores(*factors)


class MLP(Categorical, FeedForward):
    """p(y = k | x) = softmax(z)_k, where z are the outputs of a network.

    Ahn et al. 2012, section 5.2, have one logistic hidden layer. With K > 2 classes all K outputs
    are kept, so h + 1 directions of the last layer are determined by the prior alone.

    Parameters
    ----------
    n_features, n_classes : int
    hidden_layer_sizes : sequence of int
        Units of each hidden layer.
    activation : {"logistic", "tanh", "relu"}
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        hidden_layer_sizes: Sequence[int] = (30,),
        activation: str = "logistic",
    ) -> None:
        self.n_classes = n_classes
        self.n_logits = 1 if n_classes == 2 else n_classes
        widths, response = [n_features, *hidden_layer_sizes, self.n_logits], "class"
        FeedForward.__init__(self, widths, activation, response if self.n_logits > 1 else None)


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
        """Units of the network, and each log noise variance."""
        return [*super().units(), *np.arange(self.dim - self.n_responses, self.dim)[:, None]]

    def prior(self, precision: NDArray, mean: NDArray | float = 0.0, **units: Any) -> Prior:
        """Normal; the last entries of `precision` and `mean` are not used."""
        own = np.arange(self.dim) >= self.dim - self.n_responses
        # a standard deviation of 3: from a 400th of the spread of y to 400 times it, at two of them
        precision = np.where(own, 3.0**-2.0, precision)
        return super().prior(precision, np.where(own, 0.0, mean), **units)

    @property
    def n_offsets(self) -> int:
        """One for each response, in its unit."""
        return self.n_responses

    def plus_known(self, outputs: NDArray, X: NDArray) -> NDArray:
        known = super().plus_known(np.zeros_like(outputs), X)
        known /= self.scale[:, None]
        return outputs + known

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
        """-sum_k (log(2 pi scale_k^2) + a_k + (y - z)_k^2 e^-a_k) / 2, for y in its own units."""
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

    def cumulants(self, outputs: NDArray) -> NDArray:
        return normal_cumulants(outputs[:, 0], self.variance(outputs))


def times_rows(coef: NDArray, X: NDArray) -> NDArray:
    """Products of weights (chains, units, features) with rows, (chains, units, n).

    For rows that the chains share it is one product for all.
    """
    if X.ndim == 3:
        return coef @ X.swapaxes(1, 2)
    return (coef.reshape(-1, X.shape[1]) @ X.T).reshape(*coef.shape[:2], -1)
