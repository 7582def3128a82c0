"""Distributions of a numeric response, given the outputs of its row."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray


class Response(ABC):
    """The distribution of y given its outputs, (chains, outputs, n)."""

    counts = False
    """Whether y are whole numbers."""

    def mean(self, outputs: NDArray) -> NDArray:
        """Of y, (chains, n); by default the first output."""
        return outputs[:, 0]

    @abstractmethod
    def variance(self, outputs: NDArray) -> NDArray:
        """Of y, (chains, n)."""

    def width(self, outputs: NDArray) -> NDArray:
        """A length on which the distribution of y varies, (chains, n)."""
        return np.sqrt(self.variance(outputs))

    @abstractmethod
    def distribution(self, y: NDArray, outputs: NDArray) -> NDArray:
        """Probability that y is no larger, (chains, n)."""

    @abstractmethod
    def draw(self, outputs: NDArray, rng: np.random.Generator) -> NDArray:
        """A y of each row, (chains, n)."""
