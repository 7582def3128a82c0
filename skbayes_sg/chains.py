"""Running chains: burn in, keep draws, in parallel. joblib lives here and nowhere else."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache, partial
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController  # a dependency of scikit-learn

from skbayes_sg.diagnostics import SteinSums
from skbayes_sg.samplers import Sampler, State
from skbayes_sg.target import Target

_BLOCK = 64  # steps between two looks at the chain: a look costs a pass over a block, not a step
_BLOCK_CELLS = 1 << 20  # 8 MB
_WIDE = 64  # chains: beyond, a step costs as much per chain
_FEW_STEPS = 20  # that need no estimate of their time
_FAR = 1e100  # no posterior reaches so far, and squares are about to overflow


class Stretch(NamedTuple):
    """Some successive steps of a group, in the coordinates of the chains.

    The next stretch overwrites the arrays.
    """

    thetas: NDArray
    """(steps, chains, D): the point before each step"""
    gradients: NDArray
    """(steps, chains, D): the gradient estimate there"""
    draws: NDArray
    """(draws, chains, D): the recorded draws"""
    weights: NDArray
    """(draws,)"""


class Chain(NamedTuple):
    """The result of a group of chains."""

    draws: NDArray
    """(chains, n_draws, D)"""
    weights: NDArray
    """(n_draws,): weight of each draw, equal unless the step size decreases"""
    last: NDArray
    """(chains, D): the points where the group stopped"""
    state: State
    """the checkpoint from which the group goes on"""
    stein: SteinSums


@cache
def _controller() -> ThreadpoolController:
    """To find the libraries takes as long as fifty steps."""
    return ThreadpoolController()


def one_thread() -> AbstractContextManager:
    """BLAS with one thread: two take three times as long for the small products of a step."""
    return _controller().limit(limits=1, user_api="blas")


def group_sizes(n_chains: int, most: int = 4) -> list[int]:
    """How many chains advance in lock step in each group: at most `most`, in at least two groups.

    In lock step the overhead of a step is paid once for the group. There are at least two groups,
    so that R-hat compares chains that have nothing in common. The sizes do not depend on `n_jobs`,
    because the draws must not.
    """
    n_groups = min(n_chains, max(2, -(-n_chains // most)))
    return [len(group) for group in np.array_split(np.arange(n_chains), n_groups)]


def start_chains(
    sampler: Sampler, target: Target, theta: NDArray, seed: np.random.SeedSequence
) -> list[State]:
    """States of all groups, at the starting points theta (n_chains, D)."""
    ends = np.cumsum(group_sizes(len(theta), most=_WIDE if sampler.shares_rows else 4))
    streams = seed.spawn(len(ends))
    parts = np.split(theta, ends[:-1])
    # SFC64 is the fastest for row numbers
    generators = [np.random.Generator(np.random.SFC64(stream)) for stream in streams]
    with one_thread(), np.errstate(over="ignore", invalid="ignore"):
        each = zip(parts, generators, strict=True)
        return [sampler.init(target, target.coordinates.whitened(part), rng) for part, rng in each]


def walk(
    sampler: Sampler,
    target: Target,
    state: State,
    n_steps: int,
    thin: int | None = None,
    skip: int = 0,
) -> Iterator[Stretch]:
    """Move a group of chains, in place, by `n_steps`, and yield some steps at a time.

    This is the only loop over steps. The recorded draw is the point before its step, so that it
    belongs to the gradient taken there (math.md#recorded-draws). A run that stops and goes on
    equals a run without a stop.

    Parameters
    ----------
    thin : int, optional
        Steps per recorded draw; by default none is recorded.
    skip : int, default=0
        Steps before the first draw.

    Raises
    ------
    FloatingPointError
        If a chain diverges; the message names sampler, step and remedy.
    """
    block = max(1, min(_BLOCK, _BLOCK_CELLS // state.theta.size, n_steps))
    thetas = np.empty((block, *state.theta.shape))
    gradients = np.empty_like(thetas)
    draws = np.empty_like(thetas) if thin else thetas[:0]
    weights = np.empty(block)
    for start in range(0, n_steps, block):
        size, kept = min(block, n_steps - start), 0
        for i in range(size):
            if thin and start + i >= skip and (start + i - skip) % thin == 0:
                draws[kept], weights[kept] = sampler.draw(state), sampler.weight(state)
                kept += 1
            thetas[i] = state.theta
            sampler.step(state, target)
            gradients[i] = state.gradient
        _check_divergence(sampler, state, thetas[:size])
        _check_divergence(sampler, state, state.theta)
        yield Stretch(thetas[:size], gradients[:size], draws[:kept], weights[:kept])


def restarts(n_steps: int) -> tuple[int, ...]:
    """Steps of a burn-in after which samplers forget averages from far out."""
    return n_steps // 8, n_steps // 4, n_steps // 2


def burn(sampler: Sampler, target: Target, state: State, n_steps: int) -> None:
    """Burn in a group of chains, in place: forget the start, and learn matrices near the mode."""
    done = 0
    for until in restarts(n_steps):
        _move(sampler, target, state, until - done)
        sampler.restart(state, target)
        done = until
    _move(sampler, target, state, n_steps - done)


def _move(sampler: Sampler, target: Target, state: State, n_steps: int) -> None:
    for _ in walk(sampler, target, state, n_steps):
        pass


def _check_divergence(sampler: Sampler, state: State, thetas: NDArray) -> None:
    """Raise FloatingPointError if a point is out of all bounds or NaN."""
    if not np.abs(thetas).max() < _FAR:
        raise FloatingPointError(f"{sampler} diverged by step {state.t}; {sampler.remedy}")


def run_chain(
    sampler: Sampler,
    target: Target,
    state: State,
    *,
    n_draws: int,
    burn_in: int = 0,
    thin: int = 1,
    dtype: type = np.float64,
) -> Chain:
    """Burn in, then keep every `thin`-th point of one group, in `dtype`.

    `state` is copied, not moved.

    Raises
    ------
    FloatingPointError
        If the chain diverges; the message names sampler, step and remedy.
    """
    state = copy.deepcopy(state)
    n_chains, dim = state.theta.shape
    with one_thread(), np.errstate(over="ignore", invalid="ignore"):
        if burn_in or state.t == 0:
            burn(sampler, target, state, burn_in)
            sampler.freeze(state, target)
        stein = SteinSums(state.theta)
        draws: NDArray = np.empty((n_chains, n_draws, dim), dtype)
        weights, kept = np.empty(n_draws), 0
        for stretch in walk(sampler, target, state, n_draws * thin, thin):
            here = slice(kept, kept + len(stretch.draws))
            draws[:, here] = target.coordinates.natural(stretch.draws).swapaxes(0, 1)
            weights[here] = stretch.weights
            stein.add(stretch.thetas, stretch.gradients)
            kept = here.stop
    return Chain(draws, weights, target.coordinates.natural(state.theta), state, stein)


def run_chains(
    sampler: Sampler,
    target: Target,
    states: Sequence[State],
    *,
    n_draws: int,
    burn_in: int = 0,
    thin: int = 1,
    n_jobs: int | None = None,
    dtype: type = np.float64,
) -> list[Chain]:
    """`run_chain` for every group, as joblib tasks.

    The draws are bitwise the same for every `n_jobs`.
    """
    length: dict[str, Any] = {"n_draws": n_draws, "burn_in": burn_in, "thin": thin, "dtype": dtype}
    return in_parallel(partial(run_chain, sampler, target, **length), states, n_jobs)


def in_parallel(function: Callable, each: Iterable, n_jobs: int | None) -> list:
    """`function` of each, in order, as joblib tasks.

    BLAS runs with one thread. The products of a step are too small for two threads, workers must
    not compete for cores, and a sum that is split over threads rounds differently.
    """
    with one_thread():  # outermost, as threads of one process share the limit
        return Parallel(n_jobs=n_jobs)(delayed(function)(one) for one in each)


def seconds(sampler: Sampler, target: Target, states: Sequence[State], n_steps: int) -> float:
    """An estimate of the time on one core that these groups take for so many steps.

    From the second of two steps of a copy of the first group; the first fills caches.
    """
    if n_steps <= _FEW_STEPS:
        return 0.0
    state = copy.deepcopy(states[0])
    with one_thread(), np.errstate(over="ignore", invalid="ignore"):
        sampler.step(state, target)
        start = process_time()
        sampler.step(state, target)
        return (process_time() - start) * n_steps * len(states)


def cores(n_jobs: int | None) -> int:
    """Tasks that may run at a time here."""
    return effective_n_jobs(n_jobs)


def rows_touched(sampler: Sampler, states: Sequence[State]) -> float:
    """Rows that these chains have read since their start."""
    return sum(sampler.report(state).rows_touched for state in states)
