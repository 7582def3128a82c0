"""Running chains: burn in, keep draws, in parallel. joblib lives here and nowhere else."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits  # a dependency of scikit-learn

from skbayes_sg.diagnostics import SteinSums
from skbayes_sg.samplers.base import Sampler, State

_BLOCK = 64  # steps between two looks at the chain: divergence and Stein sums cost a pass over a block, not a step
_BLOCK_CELLS = 1 << 20  # 8 MB
_FAR = 1e100  # no posterior lives there, and squares are about to overflow


class Chain(NamedTuple):
    """What a group of chains leaves behind."""

    draws: NDArray
    """(chains, n_draws, D)"""
    weights: NDArray
    """(n_draws,): weight of each draw, equal unless the step size decreases"""
    state: State
    """where to go on"""
    stein: SteinSums


def group_sizes(n_chains: int, most: int = 4) -> list[int]:
    """How many chains advance in lock step in each group: at most `most`, in at least two groups.

    In lock step the overhead of a step is paid once for the group; two groups at least, so that R-hat
    compares chains that have nothing in common. Does not depend on `n_jobs`, as draws must not.
    """
    n_groups = min(n_chains, max(2, -(-n_chains // most)))
    return [len(group) for group in np.array_split(np.arange(n_chains), n_groups)]


def start_chains(sampler: Sampler, posterior, theta: NDArray, seed: np.random.SeedSequence) -> list[State]:
    """States of all groups, at the starting points theta (n_chains, D)."""
    ends = np.cumsum(group_sizes(len(theta), most=16 if posterior.shares_rows else 4))
    streams = seed.spawn(len(ends))
    parts = np.split(theta, ends[:-1])
    generators = [np.random.Generator(np.random.SFC64(stream)) for stream in streams]  # the fastest for row numbers
    with threadpool_limits(1, "blas"), np.errstate(over="ignore", invalid="ignore"):
        return [sampler.init(posterior, part, rng) for part, rng in zip(parts, generators, strict=True)]


def run_chain(
    sampler: Sampler,
    posterior,
    state: State,
    *,
    n_draws: int,
    burn_in: int = 0,
    thin: int = 1,
    dtype: type = np.float64,
) -> Chain:
    """Burn in, then keep every `thin`-th point of one group, in `dtype`; `state` is copied, not moved.

    The draw kept is the point before its step, so that it belongs to the gradient taken there
    (MATH trap 25), and a run that stops and goes on equals one that does not.

    Raises
    ------
    FloatingPointError
        If the chain diverges; names sampler, step and remedy.
    """
    state = copy.deepcopy(state)
    with threadpool_limits(1, "blas"), np.errstate(over="ignore", invalid="ignore"):
        if burn_in or state.t == 0:
            burn(sampler, posterior, state, burn_in)
            sampler.freeze(state, posterior)
        stein = SteinSums(state.theta)
        draws: NDArray = np.empty((state.theta.shape[0], n_draws, state.theta.shape[1]), dtype)
        weights = np.empty(n_draws)
        _advance(sampler, posterior, state, n_draws * thin, thin, draws, weights, stein)
    return Chain(draws, weights, state, stein)


def burn(sampler: Sampler, posterior, state: State, n_steps: int) -> None:
    """Forget the start, in place, and learn matrices; what was learnt far out must not count at the end."""
    done = 0
    for until in (n_steps // 8, n_steps // 4, n_steps // 2):
        _advance(sampler, posterior, state, until - done)
        sampler.restart(state, posterior)
        done = until
    _advance(sampler, posterior, state, n_steps - done)


def _advance(
    sampler: Sampler,
    posterior,
    state: State,
    n_steps: int,
    thin: int = 1,
    draws: NDArray | None = None,
    weights: NDArray | None = None,
    stein: SteinSums | None = None,
) -> None:
    """Take `n_steps`; if `draws` is given, record every `thin`-th point and all Stein sums."""
    block = max(1, min(_BLOCK, _BLOCK_CELLS // state.theta.size))
    thetas = np.empty((block, *state.theta.shape))
    gradients = np.empty_like(thetas)
    for start in range(0, n_steps, block):
        size = min(block, n_steps - start)
        for i in range(size):
            if draws is not None and weights is not None and (start + i) % thin == 0:
                draws[:, (start + i) // thin] = sampler.draw(state)
                weights[(start + i) // thin] = sampler.weight(state)
            thetas[i] = state.theta
            sampler.step(state, posterior)
            gradients[i] = state.gradient
        check_divergence(sampler, state, thetas[:size])
        check_divergence(sampler, state, state.theta)
        if stein is not None:
            stein.add(thetas[:size], gradients[:size])


def check_divergence(sampler: Sampler, state: State, thetas: NDArray) -> None:
    """Raise FloatingPointError, naming sampler, step and remedy, if a point is out of all bounds or NaN."""
    if not np.abs(thetas).max() < _FAR:
        raise FloatingPointError(f"{sampler} diverged by step {state.t}; {sampler.remedy}")


def run_chains(
    sampler: Sampler,
    posterior,
    states: Sequence[State],
    *,
    n_draws: int,
    burn_in: int = 0,
    thin: int = 1,
    n_jobs: int | None = None,
    dtype: type = np.float64,
) -> list[Chain]:
    """`run_chain` for every group, as joblib tasks; the draws are bitwise the same for every `n_jobs`."""
    length: dict[str, Any] = {"n_draws": n_draws, "burn_in": burn_in, "thin": thin, "dtype": dtype}
    return in_parallel(partial(run_chain, sampler, posterior, **length), states, n_jobs)


def in_parallel(function: Callable, each: Iterable, n_jobs: int | None) -> list:
    """`function` of each, in order, as joblib tasks.

    BLAS runs with one thread: the products of a step are too small for two, workers must not
    compete for cores, and a sum split over threads would not round as one that is not.
    """
    with threadpool_limits(1, "blas"):  # outermost, as threads of one process share the limit
        return Parallel(n_jobs=n_jobs)(delayed(function)(one) for one in each)
