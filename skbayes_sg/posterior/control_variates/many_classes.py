"""A posterior of many outputs in whitened coordinates, with the gradient of all rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data.minibatches import Rows
from skbayes_sg.linalg.coordinates import Kronecker
from skbayes_sg.linalg.scores import Scores
from skbayes_sg.models import Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.control_variates.full_data import FullDataTarget
from skbayes_sg.posterior.mode import Mode
from skbayes_sg.posterior.whitening import BarePrior, kronecker
from skbayes_sg.priors import Prior


class KroneckerTarget(FullDataTarget):
    """A posterior of a multinomial model in Kronecker coordinates; every step takes all rows.

    With about as many parameters as rows, a second-order expansion costs as much as the gradient of
    all rows. So there is none, and the gradient is exact. The step is exact on a Gaussian posterior
    for any mass matrix, so the coordinates need not be those of the exact curvature.

    Parameters
    ----------
    posterior : Posterior
        Of a `Softmax` with more than two classes.
    coordinates : Kronecker
    X : array of shape (n_rows, columns)
        ``coordinates.inputs`` of all rows.
    likelihood : array of shape (D,)
        Diagonal of the information of all rows in these coordinates.
    """

    coordinates: Kronecker

    def __init__(
        self, posterior: Posterior, coordinates: Kronecker, X: NDArray, likelihood: NDArray
    ) -> None:
        super().__init__(posterior, coordinates, likelihood)
        self._X, model = X, posterior.model
        assert isinstance(model, Softmax)
        self._bare = model.bare(X.shape[1])
        centre = coordinates.centre[:, coordinates.columns] @ coordinates.inverse.T
        self._centre = centre.reshape(1, -1).astype(np.float32)
        prior = posterior.prior.curvature(coordinates.centre).diagonal()
        precision, U = prior[coordinates.columns], coordinates.U
        slope = self.prior.gradient(coordinates.centre)[:, coordinates.columns] @ U
        self._prior_slope = slope.reshape(1, -1).astype(np.float32)
        self._bare_prior = BarePrior(precision, U)

    @classmethod
    def at(cls, posterior: Posterior, mode: Mode) -> KroneckerTarget:
        """The posterior around a mode."""
        coordinates = kronecker(posterior, mode.theta)
        prior = posterior.prior.curvature(mode.theta).diagonal()
        data = posterior.data.sample
        blocks = data.blocks(posterior.model.row_size)
        X = np.concatenate([coordinates.inputs(data.load(rows).X) for rows in blocks])
        likelihood = 1.0 - coordinates.pulled_diagonal(prior)
        return cls(posterior, coordinates, X, likelihood).measured()

    def with_prior(self, prior: Prior) -> KroneckerTarget:
        other = self.posterior.with_prior(prior)
        return KroneckerTarget(other, self.coordinates, self._X, self._likelihood)

    def noisy_gradient(self, theta: NDArray, rows: Rows) -> NDArray:
        change = self.coordinates.bare(theta).astype(np.float32)
        scores = self._bare.scores(change + self._centre, self._X, self.posterior.data.sample.y)
        return self._with_prior(scores, change)

    def slope(self, theta: NDArray) -> tuple[NDArray, NDArray]:
        change = self.coordinates.bare(theta).astype(np.float32)
        sample = self.posterior.data.sample
        each, scores = self._bare.value_and_scores(change + self._centre, self._X, sample.y)
        value = (each if sample.weight is None else each * sample.weight).sum(axis=1, dtype=float)
        value *= self.n_total / self.n_rows
        value += self.prior.log_density(self.coordinates.natural(theta))
        return value, self._with_prior(scores, change)

    def _with_prior(self, scores: Scores, change: NDArray) -> NDArray:
        """The gradient from the scores of all rows at this change of the bare parameters."""
        if (weight := self.posterior.data.sample.weight) is not None:
            scores = scores.scaled(weight.astype(np.float32))
        gradient = scores.total()
        gradient *= self.n_total / self.n_rows
        gradient += self._prior_slope
        gradient -= self._bare_prior.force(change)
        return self.coordinates.pulled_bare(gradient)
