"""Feed-forward networks, whatever they predict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.linalg.scores import Factor, Scores
from skbayes_sg.models.base import times_rows
from skbayes_sg.models.categorical import sigmoid
from skbayes_sg.models.network import FREE, HIDDEN_VARIANCE, Network

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
        coefs, intercepts = blocks[::2], blocks[1::2]
        activation, hidden = ACTIVATIONS[self._activation][0], list[NDArray]()
        for coef, intercept in zip(coefs, intercepts, strict=True):
            z = coef @ hidden[-1] if hidden else times_rows(coef, X)
            z += intercept[..., None]
            if len(hidden) < self.n_layers - 1:
                hidden.append(activation(z))
        return z, (hidden, coefs)

    def _backward(self, error: NDArray, X: NDArray, kept: Any) -> Scores:
        """Back-propagated error times activation, layer by layer."""
        hidden, coefs = kept
        derivative, factors = ACTIVATIONS[self._activation][1], list[Factor]()
        for layer in reversed(range(self.n_layers)):
            right = hidden[layer - 1].swapaxes(1, 2) if layer else X
            factors = [Factor(error, right), Factor(error, None), *factors]
            if layer:
                back, slope = coefs[layer].swapaxes(1, 2), derivative(hidden[layer - 1])
                if error.ndim == 4:
                    back, slope = back[:, None], slope[:, None]
                error = back @ error
                error *= slope
        return Scores(*factors)
