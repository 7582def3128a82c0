"""What chains move on: a posterior in coordinates of their own, expanded around an anchor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data.minibatches import Minibatches, SamplingFrame
from skbayes_sg.linalg import Diag, Operator
from skbayes_sg.linalg.coordinates import Coordinates
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers.target import Target


@dataclass(frozen=True, eq=False)
class Anchor:
    """The anchor under the present prior, in the coordinates of the chains.

    Attributes
    ----------
    theta : array of shape (1, D)
        The point, in the coordinates of the model.
    curvature : Operator
        Model Fisher of all rows plus the curvature of the prior there.
    pool_size : int
        Rows of the pool.
    probability : array of shape (pool_size,)
        Of each draw of one of them.
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
        Of the posterior around the anchor, see `steepness`.
    column_steepness : float
        Along the lines of single parameters, see `column_steepness`.
    stiffness : float
        Largest eigenvalue of the curvature at the anchor over `curvature`.
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

    @classmethod
    def of_all(
        cls,
        theta: NDArray,
        curvature: Operator,
        n_rows: int,
        n_total: float,
        **steepness: float,
    ) -> Anchor:
        """Of chains that take all rows in every step, without noise."""
        q, none = np.full(n_rows, 1 / n_rows), partial(Diag, np.zeros(curvature.dim))
        return cls(theta, curvature, n_rows, q, n_rows, n_total, none, **steepness)

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
        """What `diagnostics_` tells of it."""
        names = ("noise_number", "steepness", "column_steepness", "pool_error")
        return {name: getattr(self, name) for name in names}


class ChainTarget(Target):
    """A posterior in the coordinates of chains, on the rows of a pool if it has an anchor.

    theta is that of the chains everywhere. The chains of a group share their minibatches. Each
    multiplies their noise by a function of its own distance from the anchor, so the noises of
    different chains are hardly correlated.

    Parameters
    ----------
    posterior : Posterior
        In the coordinates of its model.
    coordinates : Coordinates
    """

    posterior: Posterior
    anchor: Anchor | None = None

    def __init__(self, posterior: Posterior, coordinates: Coordinates) -> None:
        self.posterior, self.coordinates, self.prior = posterior, coordinates, posterior.prior
        self.dim, self.n_rows, self.n_total = posterior.dim, posterior.n_rows, posterior.n_total
        self.weighted, self.one_mode = posterior.weighted, posterior.one_mode

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
        return Minibatches(SamplingFrame(m, self.n_total, q), batch_size, True, rng)
