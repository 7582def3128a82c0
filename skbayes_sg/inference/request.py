"""What an estimator asks of a run, and the fingerprint by which a warm start knows it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skbayes_sg.chains.tuning import Tuned, start_without_pilots
from skbayes_sg.inference.evidence import Hyperprior
from skbayes_sg.inference.variational_em import VariationalEM
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import Sampler, State
from skbayes_sg.samplers.base import RunLength

_LONG_CHAINS = 16
_CHAINS, _MANY_CHAINS = 8, 32  # 32 where one product serves all chains of a group


@dataclass(frozen=True)
class Choice:
    """A sampler, and the reason for it.

    Attributes
    ----------
    sampler : Sampler
    reason : str
    tune : function of `tuning`
        Starts the chains, and chooses parameters that need short runs.
    given : bool
        Whether the user gave the sampler. Then no other may run in its place.
    """

    sampler: Sampler
    reason: str
    tune: Callable[..., Tuned] = start_without_pilots
    given: bool = False


class Request(NamedTuple):
    """The options of an estimator for a run."""

    asked: Choice | None
    """The sampler that the user gave; None: the best default"""
    em: VariationalEM | Hyperprior | None
    """How the prior is learned; None: the prior is given"""
    n_chains: int | str
    burn_in: int | str
    thin: int | str
    seed: np.random.SeedSequence | None
    """None until chains are to start"""
    last: NDArray | None
    """Last points of the chains of an earlier fit, (chains, .), to start from"""
    n_jobs: int | None
    least: RunLength = RunLength(0, 1)
    """The shortest automatic burn-in and thinning"""

    def chains(self, sampler: Sampler | None = None, dim: int = 0) -> int:
        """Number of chains of a sampler; by default the largest that may be needed.

        With control variates and very many parameters memory bounds the number of draws of all
        chains, and fewer and longer ones agree sooner.
        """
        if not isinstance(self.n_chains, str):
            return self.n_chains
        if not has_matrix(dim) and sampler is not None and sampler.variance_reduction is not None:
            return _LONG_CHAINS
        return _MANY_CHAINS if sampler is None or sampler.shares_rows else _CHAINS

    def length(self, sampler: Sampler, states: list[State]) -> RunLength:
        """Burn-in and thinning in numbers."""
        auto = RunLength(*map(max, sampler.run_length(states[0]), self.least))
        return run_length(self.burn_in, self.thin, auto)


def run_length(burn_in: int | str, thin: int | str, auto: RunLength) -> RunLength:
    """Burn-in and thinning in numbers, `auto` where they are "auto"."""
    return RunLength(
        auto.burn_in if burn_in == "auto" else int(burn_in),
        auto.thin if thin == "auto" else int(thin),
    )


@dataclass(frozen=True, eq=False)
class Signature:
    """A fingerprint of a fit; with an equal one a warm start goes on as if it had never stopped."""

    sampler: Sampler
    em: VariationalEM | Hyperprior | None
    n_chains: int | str
    slope: NDArray
    """Gradient of the log posterior at a random point. It changes with every row, label, weight
    and prior precision."""

    @classmethod
    def of(cls, request: Request, choice: Choice, posterior: Posterior) -> Signature:
        """One pass over the rows."""
        somewhere = np.random.default_rng(0).standard_normal((1, posterior.dim))
        with np.errstate(over="ignore", invalid="ignore"):
            slope = np.append(posterior.full_gradient(somewhere), posterior.data.n_rows)
        return cls(clone(choice.sampler), request.em, request.n_chains, slope)

    def matches(self, other: Signature | None) -> bool:
        """Whether data, prior, sampler and number of chains are the same."""
        return (
            other is not None
            and self.n_chains == other.n_chains
            and repr(self.em) == repr(other.em)
            and self.slope.shape == other.slope.shape
            and np.allclose(self.slope, other.slope, rtol=1e-9, atol=0.0)
            and same_parameters(self.sampler, other.sampler)
        )


def same_parameters(a: Sampler, b: Sampler) -> bool:
    """Whether two samplers have the same formula and the same parameters."""
    ours, theirs = a.get_params(), b.get_params()
    return type(a) is type(b) and all(_equal(ours[name], theirs[name]) for name in ours)


def _equal(a: Any, b: Any) -> bool:
    """As ``np.array_equal``, which in NumPy 2.0 fails for a string and a number."""
    return np.shape(a) == np.shape(b) and bool(np.all(a == b))
