"""What a sampler moves, and the interface of a posterior to it.

A `State` is a group of chains. Of a posterior samplers know these interfaces only.
`posterior.Posterior` is a target whose chains move in the coordinates of the model, and
`posterior.ChainTarget` one in coordinates of their own. What is measured in the
coordinates of the model is asked of `Target.posterior`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data.minibatches import Batches, Minibatches, Rows
from skbayes_sg.linalg import Diag, Layout, Operator
from skbayes_sg.linalg.coordinates import Coordinates
from skbayes_sg.linalg.scores import Scores
from skbayes_sg.priors import Prior
from skbayes_sg.priors.scales import Sampled


@dataclass
class State:
    """The whole checkpoint of one group of chains.

    Attributes
    ----------
    theta : array of shape (chains, D)
    normals : numpy.random.Generator
        Used for injected noise only.
    rows : minibatches.Minibatches or minibatches.Partition
        The stream of minibatch rows, with its own generator.
    memory : object
        The sampler's own averages, operators and counters.
    t : int
        Steps taken since the start, burn-in included.
    gradient : array of shape (chains, D)
        Gradient estimate of the last step, at the point before that step.
    """

    theta: NDArray
    normals: np.random.Generator
    rows: Batches
    memory: Any = None
    t: int = 0
    gradient: NDArray | None = None


@dataclass(frozen=True, eq=False)
class Anchor:
    """A point near the posterior mean, around which the gradient of all rows is expanded.

    Figures hold under the present prior, in the coordinates of the chains.

    Attributes
    ----------
    theta : array of shape (1, D)
        The point, in the coordinates of the model.
    curvature : Operator
        Model Fisher of all rows plus the curvature of the prior there.
    pool_size : int
        Rows of the pool.
    probability : array of shape (pool_size,)
        Probability of each row in a draw.
    batch_size : int
        Rows of a minibatch whose noise is at most 1/32 of the curvature, or of the pool.
    n_total : float
    measured : function
        Measures the noise where it is not known yet.
    pool_error : float
        Error of the gradient by the choice of the pool, in posterior standard deviations.
    full_noise_number : float
        About the noise number, where minibatches are the whole pool.
    steepness : float
        Largest slope of the gradient around the anchor, see `steepness`.
    column_steepness : float
        Along the lines of single parameters, see `column_steepness`.
    stiffness : float
        Largest eigenvalue of the curvature at the anchor over `curvature`.
    has_unit_scales : bool
        Whether standard deviations are near 1 in the coordinates of the chains, or differ so little
        along directions that single precision resolves the narrowest.
    """

    theta: NDArray
    curvature: Operator
    pool_size: int
    probability: NDArray
    batch_size: int
    n_total: float
    measured: Callable[[], Operator]
    pool_error: float = 0.0
    full_noise_number: float = 0.0
    steepness: float = 1.0
    column_steepness: float = 1.0
    stiffness: float = 1.0
    has_unit_scales: bool = True

    @classmethod
    def of_all(
        cls,
        theta: NDArray,
        curvature: Operator,
        n_rows: int,
        n_total: float,
        **figures: Any,
    ) -> Anchor:
        """Anchor of chains that take all rows in every step, without noise."""
        q, none = np.full(n_rows, 1 / n_rows), partial(Diag, np.zeros(curvature.dim))
        return cls(theta, curvature, n_rows, q, n_rows, n_total, none, **figures)

    @cached_property
    def noise(self) -> Operator:
        """Covariance of one row's contribution to the gradient.

        It is the mean over the Laplace approximation; that of n rows is n times smaller, times N^2.
        """
        return self.measured()

    @cached_property
    def noise_number(self) -> float:
        """kappa = n Tr(Lam^-1 M) / D for minibatches of n rows.

        An estimate where minibatches are the whole pool. Source:
        math/control_variates.md#noise-number.
        """
        if self.batch_size == self.pool_size:
            return self.full_noise_number
        share = self.curvature.inverse().dense() * self.noise.dense()
        return float(self.n_total**2 * np.sum(share) / self.curvature.dim)

    @property
    def far_from_mode(self) -> str | None:
        """Why a pool of some rows around a point so far from the mode will not do.

        Rows were chosen by their remainders there. A pool of all rows is right around any point.
        """
        if np.isinf(self.steepness) and self.pool_error > 0:
            return (
                "the mode was not found to a posterior standard deviation per parameter, and "
                "control variates need it; columns with only a few rows that are not zero hide it"
            )
        return None

    @property
    def figures(self) -> dict[str, float]:
        """The entries of `diagnostics_` about it."""
        return {
            "noise_number": self.noise_number,
            "steepness": self.steepness,
            "column_steepness": self.column_steepness,
            "pool_error": self.pool_error,
        }


class ClosedForm(Protocol):
    """A distribution in closed form."""

    @property
    def variance(self) -> NDArray:
        """Variance of each parameter, (D,)."""

    def log_density(self, theta: NDArray) -> NDArray:
        """Log density up to a constant, (chains,)."""

    def gradient(self, theta: NDArray) -> NDArray:
        """Gradient of its log density, (chains, D)."""

    def draw(self, rng: np.random.Generator, n_draws: int) -> NDArray:
        """Independent draws, (n_draws, D)."""


class ModelPosterior(Protocol):
    """A log posterior as a function of the parameters of its model.

    ``theta`` is (chains, D). ``rows`` are row numbers, (n,) shared by the chains or (chains, n), or
    a slice.
    """

    prior: Prior
    dim: int
    """Parameters, D."""

    @property
    def n_rows(self) -> int:
        """Rows that can be drawn."""

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""

    @property
    def has_dense_rows(self) -> bool:
        """Whether rows are arrays, and not sparse."""

    @property
    def one_mode(self) -> bool:
        """Whether there is one mode, around which the posterior is not far from Gaussian."""

    @property
    def widest(self) -> int:
        """Numbers of the largest array of a gradient, for each row and chain."""

    def layout(self, structure: str) -> Layout:
        """Storage of a matrix: "diag", "full" or "block"."""

    def scores(self, theta: NDArray, rows: Rows) -> Scores:
        """Scores of the rows at each chain's theta."""

    def gradient(self, theta: NDArray, scores: Scores) -> NDArray:
        """Unbiased estimate of the gradient, (chains, D)."""

    def fisher(self, theta: NDArray, rows: Rows, layout: Layout = ...) -> Scores:
        """Square root of the rows' model Fisher, right in the entries of this layout."""

    def information(self, theta: NDArray, rows: Rows, layout: Layout) -> Operator:
        """Estimate of the likelihood's model Fisher at all rows."""

    def curvature(self, theta: NDArray, rows: Rows, layout: Layout) -> Operator:
        """Estimate of the model Fisher of all rows plus the prior's curvature."""


class FastGradient(NamedTuple):
    """Nearly the gradient, from some of the rows, for the short steps of two time scales."""

    gradient: Callable[[NDArray], NDArray | float]
    """The gradient (chains, D) at theta (chains, D)."""
    n_rows: int
    error: float
    """Error of each of its components, where the posterior has standard deviations near 1."""


class ScaleMove(NamedTuple):
    """A move of coefficients and their scale, or of residuals and the noise, together."""

    rescaled: Callable[[NDArray, NDArray], tuple[NDArray, NDArray]]
    """Points (chains, D) whose scale is exp(`log_scale`) times as large, ``(theta, log_scale)``,
    and the logarithms of the factors by which volumes grow, (chains,)."""
    sd: float
    """About the standard deviation of the logarithm of that scale."""


class Target(ABC):
    """What chains move on: a log posterior that estimates its gradient from minibatches.

    What not all have is None where there is none.

    ``theta`` is (chains, D), in the coordinates of the chains, and so are all gradients. ``rows``
    are row numbers, (n,) shared by the chains or (chains, n), or a slice.
    """

    prior: Prior
    """Prior of the parameters of the model."""
    dim: int
    """Parameters, D."""
    n_rows: int
    """Rows that can be drawn."""
    n_total: float
    """Rows that the likelihood stands for, N."""
    coordinates: Coordinates
    """Coordinates of the chains, those of the model without an anchor."""

    posterior: ModelPosterior
    """The posterior in the coordinates of the model."""
    anchor: Anchor | None = None
    """Anchor of control variates."""
    closed_form: ClosedForm | None = None
    """The posterior in these coordinates, if these are independent."""
    sampled: Sampled | None = None
    """Precisions of the prior that chains sample, as coordinates or integrated out."""
    scale_move: ScaleMove | None = None
    """A move for a precision, or the noise, where it is a coordinate that mixes slowly."""

    @property
    def fast_gradient(self) -> FastGradient | None:
        """A gradient that costs far less than that of all rows; None if there is none."""
        return None

    @property
    def point_size(self) -> int:
        """Numbers that a gradient from all rows holds for each point."""
        return max(self.dim, self.n_rows * self.posterior.widest)

    @property
    def single(self) -> Target:
        """The same with rows in single precision, in which those of a pool are anyhow."""
        return self

    def cloud(self, theta: NDArray, rng: np.random.Generator) -> NDArray:
        """Starts of chains, (chains, D), in the coordinates of the model, hyperparameters last.

        `theta` are points about the mode, without hyperparameters.
        """
        return theta

    def centred(self, theta: NDArray) -> NDArray:
        """A point that all of `cloud` are about; the mode theta, or one of hyperparameters too."""
        return theta

    def with_prior(self, prior: Prior) -> Target:
        """The same data, and anchor, under another prior, where chains do not sample it."""
        raise TypeError("the prior precision is sampled")

    @abstractmethod
    def minibatches(
        self, batch_size: int, replace: bool, rng: np.random.Generator, n_chains: int
    ) -> Minibatches:
        """The stream of minibatch rows of one group of chains."""

    @abstractmethod
    def grad_estimate(self, theta: NDArray, rows: Rows) -> NDArray:
        """Unbiased estimate of the gradient from these rows, (chains, D)."""

    def full_gradient(self, theta: NDArray) -> NDArray:
        """Gradient from all rows, or from the whole pool, (chains, D)."""
        return self.grad_estimate(theta, slice(None))

    @abstractmethod
    def logdensity_and_grad(self, theta: NDArray) -> tuple[NDArray, NDArray]:
        """Log posterior up to a constant, (chains,), and `full_gradient`, in one pass."""
