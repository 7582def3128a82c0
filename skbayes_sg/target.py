"""The interface of a posterior to a sampler.

Samplers use these two protocols only. `posterior.Posterior` and its anchored form implement them; a
test may have its own implementation.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.layouts import Layout
from skbayes_sg.linalg import Operator
from skbayes_sg.priors import Prior
from skbayes_sg.rows import Minibatches, Rows
from skbayes_sg.scores import Scores


class Anchored(Protocol):
    """A point near the posterior mean, at which the scores of all rows are known."""

    @property
    def theta(self) -> NDArray:
        """The point, (1, D)."""

    @property
    def curvature(self) -> Operator:
        """Model Fisher of all rows plus the prior's curvature, there."""

    @property
    def noise(self) -> Operator:
        """Covariance of one row's change of score, in the mean over the Laplace approximation."""

    def noise_number(self) -> float:
        """kappa = n Tr(Lam^-1 M) / D, the same for every batch size n (math.md#noise-number)."""

    def largest_row(self) -> float:
        """N times the largest leverage of a row (math.md#the-largest-row)."""


class Target(Protocol):
    """A log posterior that estimates its gradient from minibatches.

    ``theta`` is (chains, D). ``rows`` are row numbers, (n,) shared by the chains or (chains, n), or
    a slice.
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
    anchor: Anchored | None
    """The anchor of control variates; None without them."""

    @property
    def shares_rows(self) -> bool:
        """Whether the chains of a group draw one minibatch together."""

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
        """Scores of the rows at each chain's theta, minus those at the anchor if there is one."""

    def gradient(self, theta: NDArray, scores: Scores) -> NDArray:
        """Unbiased estimate of the gradient, (chains, D)."""

    def fisher(self, theta: NDArray, rows: Rows, layout: Layout = ...) -> Scores:
        """Square root of the rows' model Fisher, right in the entries of this layout."""

    def information(self, theta: NDArray, rows: Rows, layout: Layout) -> Operator:
        """Estimate of the likelihood's model Fisher at all rows."""

    def curvature(self, theta: NDArray, rows: Rows, layout: Layout) -> Operator:
        """Estimate of the model Fisher of all rows plus the prior's curvature."""

    def full_gradient(self, theta: NDArray) -> NDArray:
        """Gradient from all rows, (chains, D)."""

    def log_prob(self, theta: NDArray) -> NDArray:
        """Log posterior of all rows up to a constant, (chains,)."""
