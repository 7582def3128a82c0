"""The target of chains under one prior precision that is integrated out.

The posterior is expanded under a precision lambda_0, which its normal approximation needs. What the
prior of the coefficients alone differs from that is a function of their sum of squares, so a step
costs hardly more (math/priors.md#a-sampled-precision).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data.minibatches import Rows
from skbayes_sg.linalg.coordinates import Whitened
from skbayes_sg.posterior.chain_target import ChainTarget
from skbayes_sg.posterior.control_variates import ExpandedTarget
from skbayes_sg.priors.integrated_precision import IntegratedPrecision
from skbayes_sg.priors.scales import OnePrecision


class IntegratedTarget(ChainTarget):
    """An expanded posterior whose prior has one precision, integrated out.

    Parameters
    ----------
    given : ExpandedTarget
        Under lambda_0.
    scales : OnePrecision
    """

    samples_precision = True

    def __init__(self, given: ExpandedTarget, scales: OnePrecision) -> None:
        coordinates, prior = given.coordinates, given.prior
        assert isinstance(coordinates, Whitened)
        super().__init__(given.posterior, coordinates)
        self.given, self._prior = given, IntegratedPrecision(scales)
        self.anchor = given.anchor
        self._at = float(scales.of(prior)[0])
        weights = scales.weights(prior)
        j = np.maximum(coordinates.pullback_matrix(np.diag(weights)).diagonal(), 0.0)
        pull = coordinates.pullback(weights * (coordinates.centre[0] - prior.mean))
        self._root = np.sqrt(j)
        self._origin = np.divide(pull, self._root, out=np.zeros_like(j), where=j > 0)

    def noisy_gradient(self, theta: NDArray, rows: Rows) -> NDArray:
        gradient = self.given.noisy_gradient(theta, rows)
        y, squares = self._squares(theta)
        gradient += (self._at - self._prior.mean_precision(squares))[:, None] * self._root * y
        return gradient

    def slope(self, theta: NDArray) -> tuple[NDArray, NDArray]:
        value, gradient = self.given.slope(theta)
        y, squares = self._squares(theta)
        value += 0.5 * self._at * squares + self._prior.log_density(squares)
        gradient += (self._at - self._prior.mean_precision(squares))[:, None] * self._root * y
        return value, gradient

    def _squares(self, theta: NDArray) -> tuple[NDArray, NDArray]:
        """Roots of the prior's squared distances, (chains, D), and the sum of these, (chains,)."""
        y = theta * self._root + self._origin
        return y, np.einsum("cd,cd->c", y, y)
