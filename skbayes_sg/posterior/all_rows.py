"""Densities of which every step takes all rows: no noise, and no error of a pool."""

from __future__ import annotations

import copy
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import deterministic_rng, in_order
from skbayes_sg.data.minibatches import Rows
from skbayes_sg.linalg import Dense, Diag, Operator, largest_eigenvalue
from skbayes_sg.linalg.coordinates import LowRank, Whitened
from skbayes_sg.linalg.sizes import elements_at_a_time
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.control_variates import steepness
from skbayes_sg.posterior.gaussian import Mode
from skbayes_sg.posterior.target import Density
from skbayes_sg.posterior.whitening import low_rank
from skbayes_sg.priors.scales import Scales
from skbayes_sg.samplers.target import Anchor


class AllRows(Density):
    """A posterior around its mode, in coordinates that whiten it; nothing is approximated.

    With about as many parameters as rows, a second-order expansion costs as much as the gradient of
    all rows, and the gradient is exact. The coordinates of very many parameters make the curvature
    about the identity without a D x D matrix; the step is exact on a Gaussian posterior in any of
    them (math/high_dimensional.md#a-diagonal-a-block-and-low-rank). There all is in single
    precision.

    Parameters
    ----------
    posterior : Posterior
        Of a `Predictor`, with all rows in memory.
    coordinates : Whitened or LowRank
    theta : array of shape (1, D)
        The mode.
    curvature : Operator
        There, in these coordinates.
    measure : bool, default=False
        Whether it is measured how far the posterior around the mode is from a normal one.
    """

    anchor: Anchor
    coordinates: Whitened | LowRank

    def __init__(
        self,
        posterior: Posterior,
        coordinates: Whitened | LowRank,
        theta: NDArray,
        curvature: Operator,
        measure: bool = False,
    ) -> None:
        self.posterior, self.coordinates, self.dim = posterior, coordinates, posterior.dim
        self._within: Whitened | LowRank
        self._dtype: np.dtype = np.dtype(np.float64)
        self._rows, self._within = posterior, coordinates
        if isinstance(coordinates, LowRank):
            self._rows, self._within = posterior.split, coordinates.single
            self._dtype = np.dtype(np.float32)
        figures = self._measured_steepness() if measure else {}
        n_rows, n_total = posterior.n_rows, posterior.n_total
        self.anchor = Anchor.of_all(theta, curvature, n_rows, n_total, **figures)

    @classmethod
    def whitened(cls, posterior: Posterior, mode: Mode, along: Scales) -> AllRows:
        """Whitened by a matrix; sums of squares of groups are such sums in u too."""
        curvature = mode.curvature.dense()
        members = along.members(posterior.prior)
        columns = posterior.predictor.columns()
        coordinates = Whitened.along(columns, mode.theta, curvature, *members)
        there = Dense(coordinates.pullback_matrix(curvature))
        return cls(posterior, coordinates, mode.theta, there)

    @classmethod
    def low_rank(cls, posterior: Posterior, mode: Mode) -> AllRows:
        """Whitened by a diagonal, a block and a matrix of low rank, of very many parameters."""
        there = Diag(np.ones(posterior.dim))
        return cls(posterior, low_rank(posterior, mode.theta), mode.theta, there, measure=True)

    @property
    def point_size(self) -> int:
        return self._rows.point_size

    def _measured_steepness(self) -> dict[str, float]:
        """How far the posterior around the mode is from a standard normal one.

        Its stiffness, the largest eigenvalue of the curvature at the mode, which the coordinates
        leave; and its `steepness`, along random lines where the gradient is least linear. These may
        miss the stiffest direction.
        """
        everything = slice(None)
        at_mode = self.grad_estimate(np.zeros((1, self.dim)), everything)

        def curvature(v: NDArray) -> NDArray:
            length = np.linalg.norm(v)  # differences over one standard deviation
            return length * (at_mode - self.grad_estimate(v / length, everything))

        stiffness = largest_eigenvalue(curvature, self.dim, deterministic_rng("stiffness"))
        together = max(1, elements_at_a_time() // self.point_size)

        def gradient(u: NDArray) -> NDArray:
            parts = np.array_split(u, -(-len(u) // together))
            gradients = in_order(lambda part: self.grad_estimate(part, everything), parts)
            return np.concatenate(list(gradients))

        points = deterministic_rng("steepness").standard_normal((32, self.dim))
        lines = gradient(points[:16])
        lines /= np.linalg.norm(lines, axis=1, keepdims=True)
        along = steepness(gradient, self._slopes, Diag(np.ones(self.dim)), lines, points)
        return {"steepness": max(along, stiffness), "stiffness": stiffness}

    def _slopes(self, start: NDArray, directions: NDArray, distances: NDArray) -> NDArray:
        """Gradients along lines from a point, for which rows are multiplied once for each line."""
        prior, theta = self._rows.prior, self.coordinates.inverse_transform(start[None])
        lines = self.coordinates.inverse_transform(directions) - self.coordinates.centre
        at_start, of_prior = self.grad_estimate(start[None], slice(None))[0], prior.gradient(theta)
        slopes = self._rows.forces_along(theta, lines, distances) + directions @ at_start
        for slope, distance in zip(slopes, distances, strict=True):
            change = prior.gradient(theta + distance * lines) - of_prior
            slope += np.sum(change * lines, axis=1)
        return slopes

    def under(self, posterior: Posterior) -> AllRows:
        """In the same coordinates; how steep it is under this prior is not measured."""
        theta, before = self.anchor.theta, self.posterior.prior
        of_priors = posterior.prior.curvature(theta) + before.curvature(theta) * -1.0
        change = Diag(self.coordinates.pullback_diagonal(of_priors.diagonal()))
        curvature = self.anchor.curvature + change
        return AllRows(posterior, self.coordinates, theta, curvature)

    @cached_property
    def single(self) -> AllRows:
        if isinstance(self.coordinates, LowRank):
            return self
        twin = copy.copy(self)
        twin._rows = self._rows.single
        return twin

    def grad_estimate(self, u: NDArray, rows: Rows) -> NDArray:
        """Gradient from all rows."""
        theta = self._within.inverse_transform(u.astype(self._dtype, copy=False))
        gradient = self._rows.full_gradient(theta).astype(self._dtype, copy=False)
        return self._within.pullback(gradient)

    def logdensity_and_grad(self, u: NDArray) -> tuple[NDArray, NDArray]:
        theta = self._within.inverse_transform(u.astype(self._dtype, copy=False))
        value, gradient = self._rows.logdensity_and_grad(theta)
        return value, self._within.pullback(gradient.astype(self._dtype, copy=False))
