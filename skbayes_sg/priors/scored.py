"""A prior in coordinates that have the normal score of one parameter."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.linalg import Dense
from skbayes_sg.linalg.normal_score import NormalScore
from skbayes_sg.priors.base import Prior


class ScoredPrior:
    """The same prior as a density of x, with the volume that the coordinates stretch.

    ``log p(x) = log p(theta(x)) + log f'(z)``

    Parameters
    ----------
    prior : Prior
        Of theta.
    score : NormalScore
    """

    quadratic = False

    def __init__(self, prior: Prior, score: NormalScore) -> None:
        self.prior, self.score = prior, score
        self.precision, self.mean = prior.precision.copy(), np.array(prior.mean)
        self.precision[score.members] = self.mean[score.members] = 0.0  # not normal
        self.unit = prior.unit

    def with_precision(self, precision: NDArray) -> ScoredPrior:
        whole = self.prior.precision.copy()
        others = np.setdiff1d(np.arange(len(whole)), self.score.members)
        whole[others] = precision[others]
        return ScoredPrior(self.prior.with_precision(whole), self.score)

    def independent(self, theta: NDArray) -> NDArray:
        return self.hessian(theta).diagonal()

    def log_density(self, theta: NDArray) -> NDArray:
        natural = self.score.inverse_transform(theta)
        return self.prior.log_density(natural) + self.score.log_volume(theta)[0]

    def gradient(self, theta: NDArray) -> NDArray:
        score = self.score
        gradient = score.pullback(theta, self.prior.gradient(score.inverse_transform(theta)))
        gradient[:, score.members[score.which]] += score.log_volume(theta)[1]
        return gradient

    def curvature(self, theta: NDArray) -> Dense:
        """Minus the Hessian at one theta (1, D), which need not be definite."""
        return Dense(self.hessian(theta))

    def hessian(self, theta: NDArray) -> NDArray:
        score, natural = self.score, self.score.inverse_transform(theta)
        jacobian, own = score.jacobian(theta), score.members[score.which]
        hessian = jacobian.T @ self.prior.hessian(natural) @ jacobian
        hessian[own, own] -= score.bend(theta, self.prior.gradient(natural))
        hessian[own, own] -= score.log_volume(theta)[2][0]
        return hessian

    def scaled_squares(self, theta: NDArray) -> NDArray:
        return -self.gradient(theta) * (theta - self.mean)
