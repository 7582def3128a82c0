"""The interface of a posterior to a sampler.

Samplers use these two protocols only. `posterior.Posterior` and its anchored form implement them; a
test may have its own implementation.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data.minibatches import Minibatches, Rows
from skbayes_sg.linalg import Operator
from skbayes_sg.linalg.coordinates import Coordinates
from skbayes_sg.linalg.layouts import Layout
from skbayes_sg.linalg.scores import Scores
from skbayes_sg.priors import Prior


class Anchored(Protocol):
    """A point near the posterior mean, around which the gradient of all rows is expanded."""

    @property
    def theta(self) -> NDArray:
        """The point, (1, D), in the coordinates of the model."""

    @property
    def curvature(self) -> Operator:
        """Model Fisher plus the prior's curvature there, in the coordinates of the chains."""

    @property
    def noise(self) -> Operator:
        """Covariance of one row's contribution, in the mean over the Laplace approximation."""

    @property
    def steepness(self) -> float:
        """The largest slope of the gradient around the point, over that at it."""

    @property
    def column_steepness(self) -> float:
        """The same along the lines of single parameters."""

    @property
    def stiffness(self) -> float:
        """Largest eigenvalue of the curvature there over `curvature`: 1 if they are the same."""

    @property
    def pool_size(self) -> int:
        """Rows of the pool."""

    @property
    def batch_size(self) -> int:
        """Rows of a minibatch whose noise is at most 1/32 of the curvature, or of the pool."""

    @property
    def pool_error(self) -> float:
        """Error of the gradient by the choice of the pool, in posterior standard deviations."""

    @property
    def noise_number(self) -> float:
        """kappa = n Tr(Lam^-1 M) / D, the same for every batch size n (math.md#noise-number)."""


class Closed(Protocol):
    """A law in closed form."""

    @property
    def variance(self) -> NDArray:
        """Of each parameter, (D,)."""

    def gradient(self, theta: NDArray) -> NDArray:
        """Of its log density, (chains, D)."""

    def draw(self, rng: np.random.Generator, n_draws: int) -> NDArray:
        """Independent draws, (n_draws, D)."""


class Target(Protocol):
    """A log posterior that estimates its gradient from minibatches.

    ``theta`` is (chains, D), in the coordinates of the chains. ``rows`` are row numbers, (n,)
    shared by the chains or (chains, n), or a slice.
    """

    prior: Prior
    dim: int
    """Parameters, D."""
    n_rows: int
    """Rows that can be drawn."""
    n_total: float
    """Rows that the likelihood stands for, N."""
    weighted: bool
    """Whether rows have weights."""
    one_mode: bool
    """Whether there is one mode, around which the posterior is not far from Gaussian."""
    anchor: Anchored | None
    """The anchor of control variates; None without them."""
    coordinates: Coordinates
    """Coordinates of the chains, those of the model without an anchor."""
    law: Closed | None
    """The posterior in these coordinates, with independent ones; None if not in closed form."""

    @property
    def single(self) -> Target:
        """The same posterior with rows in single precision."""

    def with_prior(self, prior: Prior) -> Target:
        """The same data under another prior."""

    def minibatches(
        self, batch_size: int, replace: bool, rng: np.random.Generator, n_chains: int
    ) -> Minibatches:
        """The stream of minibatch rows of one group of chains."""

    def layout(self, structure: str, block_size: int | None = None) -> Layout:
        """Storage of a matrix: "diag", "full" or "block"."""

    def scores(self, theta: NDArray, rows: Rows) -> Scores:
        """Scores of the rows at each chain's theta; with an anchor, their remainders."""

    def gradient(self, theta: NDArray, scores: Scores) -> NDArray:
        """Unbiased estimate of the gradient, (chains, D)."""

    def noisy_gradient(self, theta: NDArray, rows: Rows) -> NDArray:
        """The same from the rows, where nobody asks for their scores."""

    def fisher(self, theta: NDArray, rows: Rows, layout: Layout = ...) -> Scores:
        """Square root of the rows' model Fisher, right in the entries of this layout."""

    def information(self, theta: NDArray, rows: Rows, layout: Layout) -> Operator:
        """Estimate of the likelihood's model Fisher at all rows."""

    def curvature(self, theta: NDArray, rows: Rows, layout: Layout) -> Operator:
        """Estimate of the model Fisher of all rows plus the prior's curvature."""

    def full_gradient(self, theta: NDArray) -> NDArray:
        """Gradient from all rows, or from the whole pool, (chains, D)."""

    def slope(self, theta: NDArray) -> tuple[NDArray, NDArray]:
        """Log posterior up to a constant, (chains,), and `full_gradient`, in one pass."""
