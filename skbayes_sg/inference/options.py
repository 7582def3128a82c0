"""What is asked of a fit: the parameters of an estimator that say how its posterior is sampled.

By its `Fingerprint` a warm start or a checkpoint knows that it goes on with the same fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from skbayes_sg.chains.tuning import Tuned
from skbayes_sg.data import of_columns
from skbayes_sg.inference.precision import Hyperprior
from skbayes_sg.inference.variational_em import VariationalEM
from skbayes_sg.linalg.sizes import has_matrix, is_overhead
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.one_by_one import OneByOneTarget
from skbayes_sg.samplers import Sampler
from skbayes_sg.samplers.base import RunLength
from skbayes_sg.samplers.target import Target

_MOST_CHAINS = 32


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
    asked_for : bool
        Whether the user gave the sampler. Then no other may run in its place.
    """

    sampler: Sampler
    reason: str
    tune: Callable[..., Tuned] | None = None
    asked_for: bool = False


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

    @property
    def has_one_precision(self) -> bool:
        """Whether that of all coefficients is given, or one number for all of them."""
        if isinstance(self.precision, VariationalEM):
            return self.precision.per == "block"
        return self.precision in (None, Hyperprior())

    def seeded(self) -> Options:
        """Options with 128 bits from `random_state`: int, None, RandomState, or Generator."""
        if isinstance(self.random_state, np.random.Generator):
            bits = self.random_state.integers(2**32, size=4, dtype=np.uint32)
        else:
            bits = check_random_state(self.random_state).randint(2**32, size=4, dtype=np.uint32)
        return self._replace(seed=np.random.SeedSequence(bits.tolist()))

    def chains(self, sampler: Sampler | None = None, target: Target | None = None) -> int:
        """Number of chains of a sampler; by default the largest that may be needed.

        One product serves many chains, but burn-in, and the draws from which R-hat is known, are
        paid by each: eight long chains agree after fewer draws than sixteen. So there are fewer
        where steps are long for their arithmetic, and with control variates and more than 1,000
        parameters, where memory bounds the number of draws too. A product of sparse rows takes as
        long with four vectors as with sixteen.
        """
        if self.n_chains != "auto":
            return int(self.n_chains)
        if sampler is None or target is None:
            return _MOST_CHAINS
        alone = not (sampler.shares_rows or target.anchor is not None)
        if alone or isinstance(target, OneByOneTarget):
            return 8
        many = sampler.variance_reduction is not None and not has_matrix(target.posterior.dim)
        if many and not sampler.rejects:
            return 8 if target.posterior.has_dense_rows else 16
        n_outputs = _MOST_CHAINS * target.n_rows * target.posterior.widest
        long = sampler.rejects and not is_overhead(int(n_outputs))
        return 16 if long or many else _MOST_CHAINS

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


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """Data, prior, sampler and numbers of a fit."""

    sampler: Sampler
    precision: str
    n_chains: int | str
    gradient: NDArray
    """Gradients of the log posterior and of the prior at random points, and the number of rows.
    They change with every row, label, weight and prior precision."""
    draws: tuple
    """n_draws, burn_in, thin, and the seed where it is a number"""

    @classmethod
    def of(cls, options: Options, choice: Choice, posterior: Posterior) -> Fingerprint:
        """The fingerprint, in one pass over the rows, beside what is known of the columns.

        At a random point with outputs of rows about 1: far out residuals are flat, or infinite,
        whatever the rows are.
        """
        columns = of_columns(posterior.data)
        size = np.sqrt(np.sum(columns.variance + columns.mean**2))
        somewhere = np.random.default_rng(0).standard_normal((1, posterior.dim))
        of_prior = posterior.prior.gradient(somewhere)[0]
        of_all = posterior.full_gradient(somewhere / max(size, 1.0))[0]
        gradient = np.concatenate([of_all, of_prior, [posterior.data.n_rows]])
        seed = options.random_state if isinstance(options.random_state, Integral) else None
        draws = (options.n_draws, options.burn_in, options.thin, seed)
        precision = repr(options.precision)
        return cls(clone(choice.sampler), precision, options.n_chains, gradient, draws)

    def matches(self, earlier: Fingerprint | None) -> bool:
        """Whether data, prior, sampler and number of chains are the same.

        A warm start with an equal one goes on as if the fit had never stopped.
        """
        return (
            earlier is not None
            and self.n_chains == earlier.n_chains
            and self.precision == earlier.precision
            and self.gradient.shape == earlier.gradient.shape
            and np.allclose(self.gradient, earlier.gradient, rtol=1e-9, atol=0.0)
            and same_parameters(self.sampler, earlier.sampler)
        )


def same_parameters(a: Sampler, b: Sampler) -> bool:
    """Whether two samplers have the same formula and the same parameters."""
    ours, theirs = a.get_params(), b.get_params()
    return type(a) is type(b) and all(_equal(ours[name], theirs[name]) for name in ours)


def _equal(a: Any, b: Any) -> bool:
    """``np.array_equal``, which in NumPy 2.0 fails for a string and a number."""
    return np.shape(a) == np.shape(b) and bool(np.all(a == b))
