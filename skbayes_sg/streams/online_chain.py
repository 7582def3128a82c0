"""Sampling along a stream of data: the engine of `partial_fit` of networks.

Their posterior has many modes, so no normal distribution can stand for it, as it does in
`bayesian_updating`. One chain takes a step per minibatch of each chunk and is never frozen. There
is only one, because chains that see the same rows coalesce without injected noise.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.chains.run import iterate_steps, refuse_unstable
from skbayes_sg.chains.tuning import stable_start
from skbayes_sg.data.minibatches import Partition
from skbayes_sg.inference.options import same_parameters
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import Sampler, State
from skbayes_sg.samplers.base import RunLength
from skbayes_sg.validation import require_positive


def population(n_total: float | None, chunk: int, seen: int) -> float:
    """Rows of the population: the given number, or all rows seen so far.

    Raises
    ------
    ValueError, TypeError
        If the number is impossible, or the chunk has fewer than 2 rows.
    """
    if chunk < 2:
        raise ValueError(
            f"X must have at least 2 rows in each call of partial_fit, got n_samples = {chunk}"
        )
    if n_total is None:
        return float(seen)
    require_positive("n_total", n_total, "give the number of rows of the population")
    if not chunk <= n_total <= 1e15:
        raise ValueError(
            f"n_total must lie between the chunk's rows, {chunk}, and 1e15, got {n_total}"
        )
    return float(n_total)


@dataclass(frozen=True, eq=False)
class ChainStream:
    """The chain between two chunks.

    Attributes
    ----------
    asked, sampler : Sampler
        The sampler that the user gave, and the sampler with the alpha that its chain needs.
    state : State
    kept : tuple of arrays of shape (1, D)
        The last draws.
    """

    asked: Sampler
    sampler: Sampler
    state: State
    kept: tuple[NDArray, ...] = ()

    @classmethod
    def begin(
        cls, sampler: Sampler, posterior: Posterior, theta: NDArray, rng: np.random.Generator
    ) -> ChainStream:
        """A stream with its chain at theta (1, D)."""
        asked, sampler = copy.copy(sampler), copy.copy(sampler)
        state = sampler.init(posterior, theta, rng)
        if sampler.needs_pilots:
            sampler = stable_start(sampler, posterior, state)
        refuse_unstable(sampler, posterior, state)
        return cls(asked, sampler, state)

    def goes_on_with(self, sampler: Sampler, posterior: Posterior) -> bool:
        """Whether the chain may go on: same sampler, same parameters, same dimension."""
        same_shape = self.state.theta.shape[1] == posterior.dim
        return same_shape and same_parameters(sampler, self.asked)

    def chunk(self, posterior: Posterior) -> ChainStream:
        """A copy of the stream that will read the rows of this posterior."""
        state = copy.deepcopy(self.state)
        n_rows, n_total = posterior.n_rows, posterior.n_total
        size = self.sampler.rows_per_step
        state.rows = Partition(n_rows, size, state.rows.rng, n_total)
        return replace(self, state=state)

    def run_length(self) -> RunLength:
        """Automatic burn-in and thinning for the present population."""
        return self.sampler.run_length(self.state)

    def follow(
        self, posterior: Posterior, burn_in: int, thin: int, most: int, dtype: type
    ) -> ChainStream:
        """Take the chunk's steps, and keep the last draws after burn-in, `thin` steps apart."""
        state = self.state
        first = max(state.t, burn_in)
        n_steps = round(posterior.n_rows / state.rows.size)  # each part of the chunk once
        recorded = range(-(-first // thin) * thin - state.t, n_steps, thin)
        kept = list(self.kept)
        steps = iterate_steps(self.sampler, posterior, state, n_steps, recorded)
        with np.errstate(over="ignore", invalid="ignore"):
            for block in steps:
                kept = [*kept, *block.draws.astype(dtype)][-most:]
        return replace(self, kept=tuple(kept))
