"""Targets of chains that take all rows in every step: no noise, and no error of a pool."""

from __future__ import annotations

import copy
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import deterministic_rng, in_order
from skbayes_sg.data.minibatches import Rows
from skbayes_sg.linalg import Dense, Diag, largest_eigenvalue
from skbayes_sg.linalg.coordinates import LowRank, Whitened
from skbayes_sg.linalg.sizes import elements_at_a_time
from skbayes_sg.posterior import ChainTarget, Posterior
from skbayes_sg.posterior.control_variates import steepness
from skbayes_sg.posterior.gaussian import Mode
from skbayes_sg.posterior.whitening import low_rank
from skbayes_sg.priors import Prior
from skbayes_sg.priors.scales import Scales
from skbayes_sg.samplers.target import Anchor


class FullDataTarget(ChainTarget):
    """A posterior of very many parameters, or of sparse rows; every step takes all rows.

    With about as many parameters as rows, a second-order expansion costs as much as the gradient of
    all rows. So there is none, and the gradient is exact. The coordinates make the curvature about
    the identity without a D x D matrix. The step is exact on a Gaussian posterior in any of them
    (math/high_dimensional.md#a-diagonal-a-block-and-low-rank).

    Parameters
    ----------
    posterior : Posterior
        Of a `Predictor`, with all rows in memory.
    coordinates : LowRank
    likelihood : array of shape (D,)
        Diagonal of the information of all rows in these coordinates.
    """

    anchor: Anchor
    coordinates: LowRank

    def __init__(
        self,
        posterior: Posterior,
        coordinates: LowRank,
        likelihood: NDArray,
        measure: bool = True,
    ) -> None:
        super().__init__(posterior, coordinates)
        self._likelihood = likelihood
        prior = posterior.prior.curvature(coordinates.centre).diagonal()
        curvature = Diag(likelihood + coordinates.pullback_diagonal(prior))
        figures = self._measured_steepness() if measure else {}
        self.anchor = Anchor.of_all(
            coordinates.centre, curvature, self.n_rows, self.n_total, **figures
        )

    @classmethod
    def at(cls, posterior: Posterior, mode: Mode) -> FullDataTarget:
        """The posterior around a mode."""
        coordinates = low_rank(posterior, mode.theta)
        prior = posterior.prior.curvature(mode.theta).diagonal()
        return cls(posterior, coordinates, 1.0 - coordinates.pullback_diagonal(prior))

    def cloud(self, theta: NDArray, rng: np.random.Generator) -> NDArray:
        return self.coordinates.inverse_transform(rng.standard_normal(theta.shape))

    def _measured_steepness(self) -> dict[str, float]:
        """How far the posterior around the mode is from a standard normal one.

        Its stiffness, the largest eigenvalue of the curvature at the mode, which the coordinates
        leave; and its `steepness`, along random lines where the gradient is least linear. These may
        miss the stiffest direction.
        """
        everything = slice(None)
        here = self.grad_estimate(np.zeros((1, self.dim)), everything)

        def curvature(v: NDArray) -> NDArray:
            length = np.linalg.norm(v)  # differences over one standard deviation
            return length * (here - self.grad_estimate(v / length, everything))

        stiffness = largest_eigenvalue(curvature, self.dim, deterministic_rng("stiffness"))
        each = max(self.dim, self.n_rows * self.posterior.model.widest)
        together = max(1, elements_at_a_time() // each)

        def gradient(u: NDArray) -> NDArray:
            parts = np.array_split(u, -(-len(u) // together))
            each = in_order(lambda part: self.grad_estimate(part, everything), parts)
            return np.concatenate(list(each))

        points = deterministic_rng("steepness").standard_normal((32, self.dim))
        lines = gradient(points[:16])
        lines /= np.linalg.norm(lines, axis=1, keepdims=True)
        along = steepness(gradient, Diag(np.ones(self.dim)), lines, points)
        return {"steepness": max(along, stiffness), "stiffness": stiffness}

    def with_prior(self, prior: Prior) -> FullDataTarget:
        """The same coordinates; how steep it is under this prior is not measured."""
        other = self.posterior.with_prior(prior)
        return FullDataTarget(other, self.coordinates, self._likelihood, measure=False)

    def grad_estimate(self, theta: NDArray, rows: Rows) -> NDArray:
        at = self.coordinates.single.inverse_transform(theta.astype(np.float32))
        gradient = self.posterior.single.full_gradient(at).astype(np.float32)
        return self.coordinates.single.pullback(gradient)

    def logdensity_and_grad(self, theta: NDArray) -> tuple[NDArray, NDArray]:
        at = self.coordinates.single.inverse_transform(theta.astype(np.float32))
        value, gradient = self.posterior.single.logdensity_and_grad(at)
        return value, self.coordinates.single.pullback(gradient.astype(np.float32))


class WhitenedTarget(ChainTarget):
    """A posterior around its mode; every step takes all rows, and nothing is approximated.

    Parameters
    ----------
    posterior : Posterior
        Of a `Predictor`.
    mode : Mode
    along : Scales
        Groups whose sums of squares are such sums in these coordinates too.
    """

    anchor: Anchor
    coordinates: Whitened

    def __init__(self, posterior: Posterior, mode: Mode, along: Scales) -> None:
        curvature = mode.curvature.dense()
        columns, members = posterior.predictor.columns(), along.members(posterior.prior)
        coordinates = Whitened.along(columns, mode.theta, curvature, *members)
        super().__init__(posterior, coordinates)
        whitened = Dense(coordinates.pullback_matrix(curvature))
        self.anchor = Anchor.of_all(mode.theta, whitened, self.n_rows, self.n_total)

    @cached_property
    def single(self) -> WhitenedTarget:
        twin = copy.copy(self)
        twin.posterior = self.posterior.single
        return twin

    def grad_estimate(self, theta: NDArray, rows: Rows) -> NDArray:
        gradient = self.posterior.full_gradient(self.coordinates.inverse_transform(theta))
        return self.coordinates.pullback(gradient)

    def logdensity_and_grad(self, theta: NDArray) -> tuple[NDArray, NDArray]:
        value, gradient = self.posterior.logdensity_and_grad(
            self.coordinates.inverse_transform(theta)
        )
        return value, self.coordinates.pullback(gradient)
