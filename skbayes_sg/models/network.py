"""Models with hidden units."""

from __future__ import annotations

from abc import abstractmethod

from numpy.typing import NDArray

from skbayes_sg.models.base import OutputModel

HIDDEN_VARIANCE = 10.0
"""Prior variance of the weighted sum into a hidden unit: a standard deviation of 3."""
FREE = 0.01
"""Prior precision of weights and biases whose prior is nearly flat."""


class Network(OutputModel):
    """A model with hidden units: its posterior has many modes."""

    @abstractmethod
    def reference_precision(self, input_square: float) -> NDArray:
        """Prior precision of every parameter, by the scale of the inputs, (dim,).

        `input_square` is the mean over rows of the sum of the features' squares.
        """
