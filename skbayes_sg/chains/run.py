"""Running chains: burn in, keep draws, in parallel. joblib lives here and nowhere else."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from functools import partial
from time import get_clock_info, perf_counter, process_time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from skbayes_sg.chains.deadline import cut_short, time_is_up, under_limit
from skbayes_sg.chains.steps import block_of, burn, check_divergence, iterate_steps
from skbayes_sg.chains.threads import one_thread
from skbayes_sg.diagnostics import SteinSums
from skbayes_sg.linalg.sizes import is_overhead
from skbayes_sg.samplers import Sampler, State
from skbayes_sg.samplers.target import Target

_MOST_TOGETHER = 64  # chains: beyond, a step costs as much per chain
_FEW_STEPS = 20  # that need no estimate of their time
LONG = 60.0  # seconds: sampling that takes longer is announced, and not begun without being asked
_CLOCK = process_time if get_clock_info("process_time").resolution < 1e-4 else perf_counter
_SECONDS = 1.0  # of a round: an interrupt loses no more
_MOST_BLOCKS = 100  # where a callback looks on
_FEWEST_DRAWS = 4  # that R-hat can be computed of
_AT_THE_END = 8  # draws of a round where the time of the fit is up


class Length(NamedTuple):
    """What a run draws: so many draws of each chain, after burn-in and `thin` steps apart."""

    n_draws: int
    burn_in: int = 0
    thin: int = 1

    @property
    def n_steps(self) -> int:
        """Steps of each chain."""
        return self.burn_in + self.n_draws * self.thin


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


DrawBlock = list[Chain]
"""The next draws of all groups."""


class Execution(NamedTuple):
    """How a run is carried out, as opposed to what it draws."""

    n_jobs: int | None = None
    """Processes (joblib); the draws do not depend on it."""
    dtype: type = np.float64
    """Of the draws that are kept."""
    on_block: Callable[[list[DrawBlock]], bool] | None = None
    """Called after each `block_draws` with all blocks so far; True ends the run. Without it a block
    takes about a second."""
    before: Sequence[DrawBlock] = ()
    """The blocks of a run that was stopped, to go on with."""
    keep: bool = False
    """After an interrupt (Ctrl-C) return the draws of all complete blocks, if each chain has
    four."""


def group_sizes(n_chains: int, most: int = 4, fewest: int = 2) -> list[int]:
    """How many vectorised chains each group has: at most `most`, in `fewest` groups.

    The overhead of a step is paid once for the group. The sizes do not depend on
    `n_jobs`, because the draws must not.
    """
    n_groups = min(n_chains, max(fewest, -(-n_chains // most)))
    return [len(group) for group in np.array_split(np.arange(n_chains), n_groups)]


def _fewest_groups(sampler: Sampler, target: Target, n_chains: int) -> int:
    """Two, so that R-hat compares chains that have no minibatch in common, and for two processes.

    One if there are no minibatches, and the arrays of a step so short that most of it is overhead.
    """
    elements = n_chains * target.n_rows * target.posterior.widest
    return 1 if sampler.rejects and is_overhead(elements) else 2


def start_chains(
    sampler: Sampler, target: Target, theta: NDArray, seed: np.random.SeedSequence
) -> list[State]:
    """States of all groups, at the starting points theta (n_chains, D)."""
    most = _MOST_TOGETHER if sampler.shares_rows else 4
    ends = np.cumsum(group_sizes(len(theta), most, _fewest_groups(sampler, target, len(theta))))
    streams = seed.spawn(len(ends))
    parts = np.split(theta, ends[:-1])
    # SFC64 is the fastest for row numbers
    generators = [np.random.Generator(np.random.SFC64(stream)) for stream in streams]
    with one_thread(), np.errstate(over="ignore", invalid="ignore"):
        each = zip(parts, generators, strict=True)
        return [sampler.init(target, target.coordinates.transform(part), rng) for part, rng in each]


def run_chain(
    sampler: Sampler,
    target: Target,
    state: State,
    length: Length,
    dtype: type = np.float64,
) -> Chain:
    """Burn in, then keep the draws of one group, in `dtype`.

    `state` is copied, not moved.

    Raises
    ------
    FloatingPointError
        If the chain diverges; the message names sampler, step and remedy.
    """
    begun = begin_chain(sampler, target, length.burn_in, dtype, state)
    return go_on(sampler, target, length.n_draws, length.thin, begun)


def begin_chain(sampler: Sampler, target: Target, burn_in: int, dtype: type, state: State) -> Chain:
    """A group after burn-in, without draws. `state` is copied."""
    chain = burn_chain(sampler, target, burn_in, state)
    return chain._replace(draws=chain.draws.astype(dtype))


def burn_chain(
    sampler: Sampler, target: Target, burn_in: int, state: State, keep: bool = False
) -> Chain:
    """`begin_chain`; `keep` has the points of the second half of burn-in as draws."""
    state, points = copy.deepcopy(state), []
    with one_thread(), np.errstate(over="ignore", invalid="ignore"):
        if burn_in or state.t == 0:
            points = burn(sampler, target, state, burn_in, keep)
            sampler.freeze(state, target)
    draws: NDArray = np.empty((len(state.theta), len(points), target.dim))
    for k, point in enumerate(points):
        draws[:, k] = target.coordinates.inverse_transform(point)
    last = target.coordinates.inverse_transform(state.theta)
    return Chain(draws, np.empty(0), last, state, SteinSums(state.theta))


def go_on(sampler: Sampler, target: Target, n_draws: int, thin: int, before: Chain) -> Chain:
    """The next draws of a group. What was before is copied; its draws are not repeated."""
    state, stein = copy.deepcopy(before.state), copy.deepcopy(before.stein)
    n_chains, dim = state.theta.shape
    draws: NDArray = np.empty((n_chains, n_draws, dim), before.draws.dtype)
    weights, kept = np.empty(n_draws), 0
    recorded = range(0, n_draws * thin, thin)
    with one_thread(), np.errstate(over="ignore", invalid="ignore"):
        for block in iterate_steps(sampler, target, state, n_draws * thin, recorded):
            here = slice(kept, kept + len(block.draws))
            # one by one: on some processors a product rounds a row by where it stands in a block
            for k, draw in enumerate(block.draws, kept):
                draws[:, k] = target.coordinates.inverse_transform(draw)
            weights[here] = block.weights
            check_divergence(sampler, state, draws[:, here])  # now in `dtype`
            stein.add(block.thetas, block.gradients)
            kept = here.stop
    return Chain(draws, weights, target.coordinates.inverse_transform(state.theta), state, stein)


def run_chains(
    sampler: Sampler,
    target: Target,
    states: Sequence[State],
    length: Length,
    execution: Execution,
) -> list[Chain]:
    """`run_chain` for every group, as joblib tasks, in blocks of some draws of all groups.

    On one machine the draws are bitwise the same for every `n_jobs` and for any blocks.
    """
    n_draws, burn_in, thin = length
    n_jobs, dtype, on_block, before, keep = execution
    blocks, unit = list(before), _whole_blocks(states, thin)
    share = block_draws(n_draws)
    with one_thread(), Parallel(n_jobs=n_jobs) as parallel:
        pace, started = None, perf_counter()
        try:
            if not blocks:
                begin = under_limit(partial(begin_chain, sampler, target, burn_in, dtype))
                blocks.append(parallel(delayed(begin)(state) for state in states))
                moved = zip(blocks[0], states, strict=True)
                made = min(chain.state.t - state.t for chain, state in moved)
                cut_short("steps of burn-in", made, burn_in)
                pace = (perf_counter() - started) / burn_in * thin if burn_in else None
            while (left := n_draws - drawn(blocks)) > 0:
                size = min(left, share) if on_block else _next_size(left, unit, pace)
                size = min(size, _AT_THE_END) if time_is_up() else size
                started = perf_counter()
                more = delayed(partial(go_on, sampler, target, size, thin))
                blocks.append(parallel(more(chain) for chain in blocks[-1]))
                blocks[:-1] = [_with_states_of(blocks[-1], before) for before in blocks[:-1]]
                pace = (perf_counter() - started) / size
                if on_block is not None and on_block(blocks):
                    break
        except KeyboardInterrupt:
            if not keep or drawn(blocks) < _FEWEST_DRAWS:
                raise
    return joined(blocks)


def _with_states_of(last: DrawBlock, before: DrawBlock) -> DrawBlock:
    """The draws of a block beside the states of the last: those of all would fill the memory."""
    pairs = zip(last, before, strict=True)
    return [now._replace(draws=then.draws, weights=then.weights) for now, then in pairs]


def drawn(blocks: Sequence[DrawBlock]) -> int:
    """Draws of each chain so far."""
    return sum(groups[0].draws.shape[1] for groups in blocks)


def block_draws(n_draws: int) -> int:
    """Draws of each chain in a block: a hundredth of all."""
    return -(-n_draws // _MOST_BLOCKS)


def joined(blocks: Sequence[DrawBlock]) -> list[Chain]:
    """All draws of each group, and its last state."""
    chains = []
    for group in zip(*blocks, strict=True):
        parts = [part for part in group if len(part.weights)]
        chains.append(parts[-1])
        if len(parts) > 1:
            draws = np.concatenate([part.draws for part in parts], axis=1)
            weights = np.concatenate([part.weights for part in parts])
            chains[-1] = parts[-1]._replace(draws=draws, weights=weights)
    return chains


def _next_size(left: int, unit: int, pace: float | None) -> int:
    """Draws of about a second, in whole units; all that are left if they take no more than two.

    `pace` is in seconds per draw, None if it is not known yet.
    """
    if pace is None:
        return min(left, unit)
    ahead = max(unit, int(_SECONDS / max(pace, 1e-9)) // unit * unit)
    return left if left <= 2 * ahead else ahead


def _whole_blocks(states: Sequence[State], thin: int) -> int:
    """The fewest draws whose steps are whole blocks of `iterate_steps`.

    Sums over steps then do not depend on the blocks, to the last bit.
    """
    block = max(block_of(state) for state in states)
    return block // math.gcd(block, thin)


def seconds(sampler: Sampler, target: Target, states: Sequence[State], n_steps: int) -> float:
    """An estimate of the time on one core that these groups take for so many steps.

    From a step of a copy of the first group, which also fills caches. Where that would be long, it
    is from the faster of two more.
    """
    if n_steps <= _FEW_STEPS:
        return 0.0
    state = copy.deepcopy(states[0])

    def by_one_step() -> float:
        start = _CLOCK()
        sampler.step(state, target)
        return (_CLOCK() - start) * n_steps * len(states)

    with one_thread(), np.errstate(over="ignore", invalid="ignore"):
        first = by_one_step()
        return first if first < LONG else min(by_one_step(), by_one_step())


def rows_touched(sampler: Sampler, states: Sequence[State]) -> float:
    """Rows that these chains have read since their start."""
    return sum(sampler.report(state).rows_touched for state in states)
