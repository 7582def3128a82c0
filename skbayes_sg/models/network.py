"""Models with hidden units."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from numpy.typing import NDArray

from skbayes_sg.linalg.scores import Scores
from skbayes_sg.models.base import Model

HIDDEN_VARIANCE = 10.0
"""Prior variance of the weighted sum into a hidden unit: a standard deviation of 3."""
FREE = 0.01
"""Prior precision of weights and biases whose prior is nearly flat."""


class Network(Model):
    """A model with hidden units: its posterior has many modes."""

    @abstractmethod
    def reference_precision(self, input_square: float) -> NDArray:
        """Prior precision of every parameter, by the scale of the inputs, (dim,).

        `input_square` is the mean over rows of the sum of the features' squares.
        """

    @abstractmethod
    def value_and_residual(self, z: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
        """Log likelihoods (chains, n) at outputs z, and `residual`. It may overwrite z."""

    @abstractmethod
    def residual(self, z: NDArray, y: NDArray) -> NDArray:
        """Gradient of the log likelihood in the outputs, as z. It may overwrite z."""

    @abstractmethod
    def residual_root(self, z: NDArray) -> NDArray:
        """A square root of the Fisher matrix of the outputs, (chains, [labels,] outputs, n)."""

    @abstractmethod
    def _forward(self, theta: NDArray, X: NDArray) -> tuple[NDArray, Any]:
        """Outputs (chains, outputs, n), and what `_backward` needs of the hidden units."""

    @abstractmethod
    def _backward(self, error: NDArray, X: NDArray, kept: Any) -> Scores:
        """Scores from the error at the outputs, (chains, [labels,] outputs, n).

        It may overwrite what was kept.
        """

    def scores(self, theta: NDArray, X: NDArray, y: NDArray) -> Scores:
        z, kept = self._forward(theta, X)
        return self._backward(self.residual(z, y), X, kept)

    def value_and_scores(self, theta: NDArray, X: NDArray, y: NDArray) -> tuple[NDArray, Scores]:
        """Of one forward pass."""
        z, kept = self._forward(theta, X)
        value, residual = self.value_and_residual(z, y)
        return value, self._backward(residual, X, kept)

    def fisher(self, theta: NDArray, X: NDArray) -> Scores:
        """As `scores`, for the residuals of virtual labels: the generalised Gauss-Newton matrix."""
        z, kept = self._forward(theta, X)
        return self._backward(self.residual_root(z), X, kept)
