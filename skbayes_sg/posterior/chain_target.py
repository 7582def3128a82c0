"""What chains move on: a posterior in coordinates of their own, expanded around an anchor."""

from __future__ import annotations

import numpy as np

from skbayes_sg.data.minibatches import Minibatches, SamplingFrame
from skbayes_sg.linalg.coordinates import Coordinates
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers.target import Anchor, Target


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
