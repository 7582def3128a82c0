"""What chains move on: a density, a joint prior and coordinates, each chosen by itself.

The log density of points x of the chains is that of the parameters under given precisions, a
`Density` of whitened parameters u; what a joint prior says of u and of hyperparameters eta beyond
that; and the logarithm of the factor by which coordinates stretch volumes,

    log p(x) = log p(u | data, lambda_0) + [log p(u, eta) - log p(u | lambda_0)] + log |d(u, eta)|

Where precisions are given x is u, and the first term is all.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data.minibatches import Minibatches, Rows, SamplingFrame, cumulative_of
from skbayes_sg.linalg.coordinates import Coordinates, LowRank, Whitened
from skbayes_sg.posterior.base import Posterior
from skbayes_sg.posterior.scored import ScoredCoordinates, ScoredPosterior
from skbayes_sg.priors import Prior
from skbayes_sg.priors.joint import JointPrior
from skbayes_sg.priors.scales import Sampled
from skbayes_sg.samplers.target import Anchor, ClosedForm, FastGradient, ScaleMove, Target


class Density(ABC):
    """Log density of parameters under a given prior, in coordinates u of their own, (chains, D)."""

    posterior: Posterior
    """In the coordinates of its model."""
    dim: int
    coordinates: Coordinates
    """Coordinates u."""
    anchor: Anchor | None = None
    closed_form: ClosedForm | None = None

    @abstractmethod
    def grad_estimate(self, u: NDArray, rows: Rows) -> NDArray:
        """Unbiased estimate of the gradient from these rows, (chains, D)."""

    @abstractmethod
    def logdensity_and_grad(self, u: NDArray) -> tuple[NDArray, NDArray]:
        """Log density up to a constant, (chains,), and gradient, (chains, D), of all rows."""

    def under(self, posterior: Posterior) -> Density:
        """That of the same posterior under another prior, around the same point."""
        raise TypeError(f"{type(self).__name__} holds under one prior")

    @property
    def whitening(self) -> Whitened:
        """Coordinates u where they whiten, so that a joint prior can be pulled back to them."""
        if isinstance(self.coordinates, Whitened):
            return self.coordinates
        raise TypeError(f"{type(self).__name__} is not in whitened coordinates")

    @property
    def single(self) -> Density:
        """The same with rows in single precision, in which those of a pool are anyhow."""
        return self

    @property
    def fast_gradient(self) -> FastGradient | None:
        """A gradient that costs far less than that of all rows; None if there is none."""
        return None

    @property
    def point_size(self) -> int:
        """Numbers that a gradient from all rows holds for each point."""
        return self.posterior.n_rows * self.posterior.widest


class Point(NamedTuple):
    """Where chains are, and the way back of a gradient."""

    u: NDArray
    """(chains, D)"""
    eta: NDArray
    """(chains, K)"""
    log_volume: NDArray
    """Logarithm of the volume of (u, eta) over that of x, (chains,)."""
    pull: Callable[[NDArray, NDArray], NDArray]
    """Gradients over u and eta as one over x, with that of `log_volume`."""


class Moves(Protocol):
    """Coordinates x of parameters and hyperparameters."""

    n_hyper: int

    def point(self, x: NDArray) -> Point:
        """The point of x (chains, D + K)."""

    def transform(self, theta: NDArray) -> NDArray:
        """x of parameters of the model and hyperparameters, (chains, D + K)."""

    def inverse_transform(self, x: NDArray) -> NDArray:
        """Parameters of the model and hyperparameters of x, (..., D + K)."""

    @property
    def scale_move(self) -> ScaleMove | None:
        """A move along the scale of all coefficients."""


class ChainTarget(Target):
    """A posterior in the coordinates of chains, on the rows of a pool if it has an anchor.

    theta is that of the chains everywhere. The chains of a group share their minibatches. Each
    multiplies their noise by a function of its own distance from the anchor, so the noises of
    different chains are hardly correlated.

    Parameters
    ----------
    density : Density
        Of the parameters under given precisions.
    joint : JointPrior, optional
        Of parameters and hyperparameters, in the coordinates of the density. None: they are given.
    moves : Moves, optional
        Coordinates of both. None: those of the density, with no hyperparameters beside them.
    sampled : Sampled, optional
        About where the hyperparameters are.
    anchor : Anchor, optional
        In these coordinates. None: that of the density.
    """

    posterior: Posterior

    def __init__(
        self,
        density: Density,
        joint: JointPrior | None = None,
        moves: Moves | None = None,
        sampled: Sampled | None = None,
        anchor: Anchor | None = None,
    ) -> None:
        posterior, anchor = density.posterior, anchor or density.anchor
        self.coordinates: Coordinates = density.coordinates
        if isinstance(posterior, ScoredPosterior):
            assert anchor is not None
            self.coordinates = ScoredCoordinates(density.coordinates, posterior.score)
            anchor = replace(anchor, theta=posterior.score.inverse_transform(anchor.theta))
            posterior = posterior.natural
        self.posterior, self.prior, self.density = posterior, posterior.prior, density
        self.joint, self.moves, self.sampled = joint, moves, sampled
        self.dim, self.n_rows, self.n_total = density.dim, posterior.n_rows, posterior.n_total
        self.anchor, self.closed_form = anchor, density.closed_form
        if moves is not None:
            self.dim, self.coordinates = density.dim + moves.n_hyper, moves
            self.scale_move = moves.scale_move

    @cached_property
    def single(self) -> ChainTarget:
        single = self.density.single
        if single is self.density:
            return self
        twin = copy.copy(self)
        twin.density = single
        return twin

    @cached_property
    def fast_gradient(self) -> FastGradient | None:
        return self.density.fast_gradient if self.joint is None else None

    @property
    def point_size(self) -> int:
        return max(self.dim, self.density.point_size)

    def with_prior(self, prior: Prior) -> ChainTarget:
        if self.joint is not None:
            raise TypeError("the prior precision is sampled")
        posterior = self.density.posterior.with_prior(prior)
        return ChainTarget(self.density.under(posterior))

    # -- where chains start ----------------------------------------------------------------------

    def cloud(self, theta: NDArray, rng: np.random.Generator) -> NDArray:
        if self.moves is None and not isinstance(self.coordinates, LowRank | ScoredCoordinates):
            return theta  # a matrix has spread them
        assert self.anchor is not None
        normals = rng.standard_normal((len(theta), self.dim))
        normals[:, self.density.dim :] *= 2.0  # hyperparameters, along which chains are slow
        spread = self.anchor.curvature.inverse().cholesky()
        return self.coordinates.inverse_transform(spread.matvec(normals))

    def centred(self, theta: NDArray) -> NDArray:
        if self.moves is None:
            return theta
        return self.coordinates.inverse_transform(np.zeros((1, self.dim)))

    # -- rows and gradients ----------------------------------------------------------------------

    def minibatches(
        self, batch_size: int, replace: bool, rng: np.random.Generator, n_chains: int
    ) -> Minibatches:
        """One stream of the pool's rows for all chains of the group.

        A minibatch as large as the pool is the pool itself, which has no noise.
        """
        assert self.anchor is not None
        q, m = self.anchor.probability, self.anchor.pool_size
        if batch_size >= m:
            return Minibatches(SamplingFrame(m, None, q), m, False, rng)
        frame = SamplingFrame(m, self.n_total, q, self._cumulative)
        return Minibatches(frame, batch_size, True, rng)

    @cached_property
    def _cumulative(self) -> NDArray:
        """One array for all groups, of which a file then has one."""
        assert self.anchor is not None
        return cumulative_of(self.anchor.probability)

    def grad_estimate(self, theta: NDArray, rows: Rows) -> NDArray:
        if self.joint is None:
            return self.density.grad_estimate(theta, rows)
        point = _fixed(theta) if self.moves is None else self.moves.point(theta)
        of_u, of_eta = self.joint.gradient(point.u, point.eta)
        return point.pull(self.density.grad_estimate(point.u, rows) + of_u, of_eta)

    def logdensity_and_grad(self, theta: NDArray) -> tuple[NDArray, NDArray]:
        if self.joint is None:
            return self.density.logdensity_and_grad(theta)
        point = _fixed(theta) if self.moves is None else self.moves.point(theta)
        value, gradient = self.density.logdensity_and_grad(point.u)
        log_ratio, of_u, of_eta = self.joint.value_and_grad(point.u, point.eta)
        return value + log_ratio + point.log_volume, point.pull(gradient + of_u, of_eta)


def _fixed(u: NDArray) -> Point:
    """Where hyperparameters are no coordinates."""
    return Point(u, u[:, :0], np.zeros(len(u)), lambda of_u, of_eta: of_u)
