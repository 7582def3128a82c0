"""What a fit is asked for: its sampler, how its prior is learned, numbers of chains and draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from skbayes_sg.chains.tuning import Tuned
from skbayes_sg.inference.precision import Hyperprior
from skbayes_sg.inference.variational_em import VariationalEM
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.samplers import Sampler
from skbayes_sg.samplers.base import RunLength


class RowsNeededError(ValueError):
    """The sampler draws rows at random, which rows on disk or on workers do not give."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"X is read in blocks, but {why}, which needs rows at random; give np.asarray(X), or "
            "where that does not fit in memory, copy X to a .npy file and give "
            'np.load(path, mmap_mode="r")'
        )


@dataclass(frozen=True)
class Choice:
    """A sampler, and the reason for it.

    Attributes
    ----------
    sampler : Sampler
    reason : str
    tune : function of `tuning`, optional
        Starts the chains, and chooses parameters that need short runs. None: no parameter does.
    given : bool
        Whether the user gave the sampler. Then no other may run in its place.
    """

    sampler: Sampler
    reason: str
    tune: Callable[..., Tuned] | None = None
    given: bool = False


class Options(NamedTuple):
    """The parameters of an estimator that say how its posterior is sampled."""

    sampler: Choice | None
    """The sampler that the user gave; None: the best default"""
    precision: VariationalEM | Hyperprior | None
    """How the precision of the prior is learned or sampled; None: it is given"""
    n_chains: int | str
    n_draws: int | str
    burn_in: int | str
    thin: int | str
    random_state: Any
    n_jobs: int | None
    warm_start: bool
    last: NDArray | None = None
    """Last points of the chains of an earlier fit, (chains, .), to start from"""
    least: RunLength = RunLength(0, 1)
    """The shortest automatic burn-in and thinning"""
    seed: np.random.SeedSequence | None = None
    """Drawn from `random_state` when chains are to start"""

    def seeded(self) -> Options:
        """With 128 bits from `random_state`: an int, None, a RandomState, or a Generator."""
        if isinstance(self.random_state, np.random.Generator):
            bits = self.random_state.integers(2**32, size=4, dtype=np.uint32)
        else:
            bits = check_random_state(self.random_state).randint(2**32, size=4, dtype=np.uint32)
        return self._replace(seed=np.random.SeedSequence(bits.tolist()))

    def chains(self, sampler: Sampler | None = None, dim: int = 0) -> int:
        """Number of chains of a sampler; by default the largest that may be needed.

        With control variates and very many parameters memory bounds the number of draws of all
        chains, and fewer and longer ones agree sooner.
        """
        if self.n_chains != "auto":
            return int(self.n_chains)
        if not has_matrix(dim) and sampler is not None and sampler.variance_reduction is not None:
            return 16
        return 32 if sampler is None or sampler.shares_rows else 8  # 32: one product serves many

    def spawn(self, n: int) -> list[np.random.SeedSequence]:
        """Seeds of so many streams, none of which was there before."""
        assert self.seed is not None
        return self.seed.spawn(n)

    def length(self, auto: RunLength) -> RunLength:
        """Burn-in and thinning in numbers, where "auto" stands for those of the sampler."""
        burn_in, thin = map(max, auto, self.least)
        return RunLength(
            burn_in if self.burn_in == "auto" else int(self.burn_in),
            thin if self.thin == "auto" else int(self.thin),
        )
