"""Estimators of the covariance of one row's score that need fewer rows than a minibatch has."""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import NDArray

from skbayes_sg.linalg import Layout, Operator


@dataclass
class OverSteps:
    """From minibatches of one row: the scores of successive steps around their running mean.

    A score is its mean at theta plus gradient noise. The mean moves with theta, which adds about
    I1 / c, c = N - 1 the noise factor, to the estimate
    (math/gradient_noise.md#minibatches-of-one-row).
    """

    mean: NDArray
    """Running mean of the scores, (D,)."""
    scale: float
    """I1 over the covariance of one score about its mean at theta, N / c."""
    spread: float = 1.0
    """Variance of the running mean over that of one score: 1 / t after t scores."""

    def covariance(self, score: NDArray, layout: Layout) -> Operator:
        """Unbiased I1 from the next score (1, D), which then enters the mean."""
        away = score - self.mean
        weight = self.spread / (1.0 + self.spread)
        self.mean = self.mean + weight * away[0]
        self.spread = weight
        return layout.outer(away) * (self.scale * (1.0 - weight))

    def forget(self) -> None:
        """Keep the square root of the number of scores in the mean."""
        self.spread = math.sqrt(self.spread)
