"""Regressions whose mean is a function of one linear predictor: the base of their models."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.models.family import Family
from skbayes_sg.models.response import Response


class GeneralizedLinear(Family, Response):
    """A family of numbers y, whose mean is a function of ``eta = coef . x + intercept``."""

    def predict(self, theta: NDArray, X: NDArray) -> NDArray:
        """Mean of the response: (chains, 1, n)."""
        return self.mean(self.outputs(theta, X))[:, None]


class LogLink(GeneralizedLinear):
    """A response of mean ``mu = exp(eta)``."""

    def mean(self, outputs: NDArray) -> NDArray:
        return np.exp(outputs[:, 0])

    def guess(self, y: NDArray, weight: NDArray | None) -> NDArray:
        """The intercept under which y has its mean, as if one row more had a mean of one half."""
        theta = np.zeros((1, self.dim))
        if self.fit_intercept:
            weights = np.ones(len(y)) if weight is None else weight.astype(np.float64)
            mean = (weights @ y.astype(np.float64) + 0.5) / (weights.sum() + 1)
            theta[0, self._n_features] = np.log(mean)
        return theta
