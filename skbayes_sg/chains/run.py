"""Chains from their starting points to their draws.

The chains of a group move together, as one `State`. `run_chains` takes all groups through burn-in
and draws, as joblib tasks with BLAS in one thread, in rounds between which callbacks look on, until
the time is up. `iterate_steps` is the only loop over steps.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from math import inf
from time import get_clock_info, perf_counter, process_time
from time import time as wall_clock
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from skbayes_sg.data import one_thread, threads_of_blas
from skbayes_sg.diagnostics import SteinSums
from skbayes_sg.linalg.sizes import is_overhead
from skbayes_sg.samplers import Sampler, State
from skbayes_sg.samplers.stationary import LinearStep
from skbayes_sg.samplers.target import Target

LONG = 60.0  # seconds: sampling that takes longer is announced, and not begun without being asked
_CLOCK = process_time if get_clock_info("process_time").resolution < 1e-4 else perf_counter
_SECONDS = 1.0  # of a round: an interrupt loses no more
_FEWEST_DRAWS = 4  # that R-hat can be computed of


# -- tasks, with BLAS in one thread ---------------------------------------------------------------


def cores(n_jobs: int | None) -> int:
    """Tasks that may run at a time here: `n_jobs`, or without it as many threads as BLAS has."""
    asked = effective_n_jobs(n_jobs)
    return asked if n_jobs is not None or asked > 1 else max(1, threads_of_blas())


def parallel(n_jobs: int | None, n_elements: int, n_tasks: int) -> Parallel:
    """What carries out so many tasks whose steps compute so many numbers at a time.

    Without `n_jobs`, and outside of a context of joblib that has one, tasks are threads where steps
    are long. Short functions of NumPy would wait for the interpreter, of which there is one. A task
    that is alone stays in this thread, and passes of its steps have the threads of `in_threads`.
    """
    if n_tasks == 1:
        return Parallel(n_jobs=1)
    if n_jobs is None and effective_n_jobs(None) == 1 and not is_overhead(n_elements):
        return Parallel(n_jobs=cores(None), prefer="threads")
    return Parallel(n_jobs=n_jobs)


def in_parallel(
    function: Callable, items: Iterable, n_jobs: int | None, n_elements: int = 0
) -> list:
    """`function` of each, in order, as joblib tasks.

    BLAS runs with one thread. The products of a step are too small for two threads, workers must
    not compete for cores, and a sum that is split over threads rounds differently.
    """
    tasks = list(map(delayed(partial(_as_here, _LIMIT.get().end, np.geterr(), function)), items))
    with one_thread():  # outermost, as threads of one process share the limit
        return parallel(n_jobs, n_elements, len(tasks))(tasks)


def elements_of_step(target: Target, states: Sequence[State]) -> int:
    """Numbers that a step of all groups computes at a time: outputs of their rows.

    The products of 128 columns take as long as what is computed of an output.
    """
    n_outputs = 0.0
    for state in states:
        n_outputs += len(state.theta) * state.rows.size * target.posterior.widest
    return int(n_outputs * (1 + target.dim / target.posterior.widest / 128))


# -- the time of a fit ------------------------------------------------------------------------


class _Limit(NamedTuple):
    end: float  # by `time.time`, which processes share
    cut: list[str]


_NONE = _Limit(inf, [])
_LIMIT: ContextVar[_Limit] = ContextVar("limit of the time of a fit", default=_NONE)
"""What comes before the draws asks for it at its joints. It belongs to the thread, as the number of
threads of a pass does; tasks of other threads and processes carry it with them."""


@contextmanager
def time_limit(end: float) -> Iterator[list[str]]:
    """Inside, time is up from this moment on; the value is the list of what was cut short."""
    limit = _Limit(end, [])
    before = _LIMIT.set(limit)
    try:
        yield limit.cut
    finally:
        _LIMIT.reset(before)


def _as_here(end: float, floating: Any, function: Callable, *args: Any) -> Any:
    """Call a function in another thread or process, under the limit and errstate of this one.

    NumPy's treatment of overflow belongs to the thread, as the limit does.
    """
    with time_limit(end), np.errstate(**floating):
        return function(*args)


def time_is_up() -> bool:
    """Whether to stop at the next joint."""
    return wall_clock() >= _LIMIT.get().end


def cut_short(task: str, made: int, asked: int) -> None:
    """Note what was cut short where the time is up, unless it is complete."""
    if made < asked and time_is_up():
        _LIMIT.get().cut.append(f"{task} ({made} of {asked})")


def is_cut() -> bool:
    """Whether anything was cut short so far."""
    return bool(_LIMIT.get().cut)


# -- what a run takes and gives -------------------------------------------------------------------


class Length(NamedTuple):
    """What a run draws: so many draws of each chain, after burn-in and `thin` steps apart."""

    n_draws: int
    burn_in: int = 0
    thin: int = 1


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
    """Dtype of the draws that are kept."""
    on_block: Callable[[list[DrawBlock]], bool] | None = None
    """Called after each `block_draws` with all blocks so far; True ends the run. Without it a block
    takes about a second."""
    before: Sequence[DrawBlock] = ()
    """The blocks of a run that was stopped, to go on with."""
    keep: bool = False
    """After an interrupt (Ctrl-C) return the draws of all complete blocks, if each chain has
    four."""


# -- all groups -------------------------------------------------------------------------------


def start_chains(
    sampler: Sampler,
    target: Target,
    theta: NDArray,
    seed: np.random.SeedSequence,
    fewest: int = 1,
) -> list[State]:
    """States of all groups, at the starting points theta (n_chains, D).

    The overhead of a step is paid once for the group. The groups do not depend on `n_jobs`, because
    the draws must not. They have `fewest` chains, or all there are.
    """
    n_chains = len(theta)
    # beyond 4, a step on minibatches of single chains costs as much per chain
    shared = sampler.shares_rows or target.anchor is not None
    most = 64 if shared else 4
    # two groups, so that R-hat compares chains that have no minibatch in common, and two processes
    # have work; one if there are no minibatches, and most of a step on so short arrays is overhead
    whole = target.anchor is not None and target.anchor.pool_size
    short = sampler.rejects or (shared and getattr(sampler, "batch_size", 0) == whole)
    short &= is_overhead(n_chains * target.n_rows * target.posterior.widest)
    n_groups = max(1 if short else 2, -(-n_chains // most))
    n_groups = min(n_groups, max(1, n_chains // fewest))
    states = []
    with one_thread(), np.errstate(over="ignore", invalid="ignore"):
        of_groups = np.array_split(theta, n_groups)
        for starts, stream in zip(of_groups, seed.spawn(n_groups), strict=True):
            rng = np.random.Generator(np.random.SFC64(stream))  # the fastest for row numbers
            states.append(sampler.init(target, target.coordinates.transform(starts), rng))
    return states


def run_chains(
    sampler: Sampler,
    target: Target,
    states: Sequence[State],
    length: Length,
    execution: Execution,
) -> list[Chain]:
    """Burn in all groups, then draw: `run_chain` for every group, as joblib tasks.

    Draws come in rounds, each a block of some draws of all groups. On one machine the draws are
    bitwise the same for every `n_jobs` and for any rounds.
    """
    n_draws, burn_in, thin = length
    n_jobs, dtype, on_block, before, keep = execution
    # the fewest draws whose steps are whole blocks of `iterate_steps`: sums over steps then do not
    # depend on the rounds, to the last bit
    unit = max(map(block_of, states))
    unit //= math.gcd(unit, thin)
    blocks = [*map(list, before)]
    n_elements = elements_of_step(target, states)
    pace, started = None, perf_counter()  # seconds per draw, once they are known
    if not blocks:
        burn_in_all = partial(burn_chain, sampler, target, burn_in)
        blocks.append(in_parallel(burn_in_all, states, n_jobs, n_elements))
        made = burn_in
        for chain, state in zip(blocks[0], states, strict=True):
            made = min(made, chain.state.t - state.t)
        cut_short("steps of burn-in", made, burn_in)
        pace = (perf_counter() - started) / burn_in * thin if burn_in else None
    with one_thread(), parallel(n_jobs, n_elements, len(states)) as tasks:
        try:
            while (n_left := n_draws - drawn(blocks)) > 0:
                if on_block is not None:
                    size = block_draws(n_draws)
                elif pace is None:
                    size = unit
                else:  # of about a second; all that are left if they take no more than two
                    size = max(unit, int(_SECONDS / max(pace, 1e-9)) // unit * unit)
                    size = n_left if n_left <= 2 * size else size
                if time_is_up():
                    size = min(size, 8)  # as many as figures of a chain need
                size = min(size, n_left)

                started = perf_counter()
                draw_more = partial(go_on, sampler, target, Length(size, thin=thin), dtype)
                chains = tasks(map(delayed(draw_more), blocks[-1]))
                pace = (perf_counter() - started) / size
                blocks.append(chains)
                for block in blocks[:-1]:  # the states of all blocks would fill the memory
                    for i, (then, now) in enumerate(zip(block, chains, strict=True)):
                        block[i] = now._replace(draws=then.draws, weights=then.weights)

                if on_block is not None and on_block(blocks):
                    break
        except KeyboardInterrupt:
            if not keep or drawn(blocks) < _FEWEST_DRAWS:
                raise
    return joined(blocks)


def drawn(blocks: Sequence[DrawBlock]) -> int:
    """Draws of each chain so far."""
    n_draws = 0
    for groups in blocks:
        n_draws += groups[0].draws.shape[1]
    return n_draws


def block_draws(n_draws: int) -> int:
    """Draws of each chain in a block on which a callback looks: a hundredth of all."""
    return -(-n_draws // 100)


def joined(blocks: Sequence[DrawBlock]) -> list[Chain]:
    """All draws of each group, and its last state."""
    chains = []
    for group in zip(*blocks, strict=True):
        draws, weights = [], []
        for block in group:
            if len(block.weights):  # the first block is burn-in
                draws.append(block.draws)
                weights.append(block.weights)
        chain = group[-1]
        if len(draws) > 1:
            whole = np.concatenate(draws, axis=1)
            chain = chain._replace(draws=whole, weights=np.concatenate(weights))
        chains.append(chain)
    return chains


def seconds(sampler: Sampler, target: Target, states: Sequence[State], length: Length) -> float:
    """An estimate of the time on one core that these groups take.

    From a step of a copy of the first group, which also fills caches. Where that would be long, it
    is from the faster of two more.
    """
    n_steps = length.burn_in + length.n_draws * length.thin
    if n_steps <= 20:  # no time that anybody wants to know
        return 0.0
    state, times = copy.deepcopy(states[0]), list[float]()
    with one_thread(), np.errstate(over="ignore", invalid="ignore"):
        while not times or (times[0] >= LONG and len(times) < 3):
            start = _CLOCK()
            sampler.step(state, target)
            times.append((_CLOCK() - start) * n_steps * len(states))
    return min(times[1:] or times)


def seconds_of_passes(gradient: Callable[[], Any], n_passes: float) -> float:
    """An estimate of the time on one core of so many passes over the rows, from one of them."""
    with one_thread():
        start = _CLOCK()
        gradient()
        return (_CLOCK() - start) * n_passes


def announced(subject: str, time: float) -> list[str]:
    """A sentence on what will take so many seconds on one core; none if that is short."""
    if not time > LONG:
        return []
    minutes = f"{time / 60:.0f} minute" + ("s" if time >= 90 else "")
    remedy = "a smaller n_draws takes less, and n_jobs uses more cores"
    return [f"{subject} about {minutes} on one core; {remedy}"]


def rows_touched(sampler: Sampler, states: Sequence[State]) -> float:
    """Rows that these chains have read since their start."""
    n_rows = 0.0
    for state in states:
        n_rows += sampler.report(state).rows_touched
    return n_rows


def radius(sampler: Sampler, target: Target, state: State) -> float:
    """Spectral radius of a step, 0 if it is not linear; the state's stream does not advance."""
    state = copy.deepcopy(state)
    step = sampler.stationary_distribution(state, target)
    return step.spectral_radius(state, target) if isinstance(step, LinearStep) else 0.0


def refuse_unstable(sampler: Sampler, target: Target, state: State) -> None:
    """Raise ValueError for a step that diverges on these data.

    The message gives the spectral radius and the remedy.
    """
    if (spectral_radius := radius(sampler, target, state)) >= 1:
        raise ValueError(
            f"{sampler} is unstable on these data: the spectral radius of its step is "
            f"{spectral_radius:.3g}, not below 1; {sampler.advice}"
        )


# -- one group --------------------------------------------------------------------------------


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
    begun = burn_chain(sampler, target, length.burn_in, state)
    return go_on(sampler, target, length, dtype, begun)


def burn_chain(
    sampler: Sampler, target: Target, burn_in: int, state: State, keep: int = 0
) -> Chain:
    """A group after burn-in, without draws. `state` is copied.

    Every `keep`-th point of the second half of burn-in is a draw, none with 0.
    """
    state = copy.deepcopy(state)
    draws = np.empty((len(state.theta), 0, target.dim))
    with one_thread(), np.errstate(over="ignore", invalid="ignore"):
        if burn_in or state.t == 0:
            draws = burn(sampler, target, state, burn_in, keep)
            sampler.freeze(state, target)
    last = target.coordinates.inverse_transform(state.theta)
    return Chain(draws, np.empty(0), last, state, SteinSums(state.theta))


def go_on(sampler: Sampler, target: Target, length: Length, dtype: type, before: Chain) -> Chain:
    """The next draws of a group. What was before is copied; its draws are not repeated."""
    state, stein = copy.deepcopy(before.state), copy.deepcopy(before.stein)
    n_chains, dim = state.theta.shape
    n_draws, _, thin = length
    draws: NDArray = np.empty((n_chains, n_draws, dim), dtype)
    weights, kept = np.empty(n_draws), 0
    recorded = range(0, n_draws * thin, thin)
    with one_thread(), np.errstate(over="ignore", invalid="ignore"):
        for block in iterate_steps(sampler, target, state, n_draws * thin, recorded):
            span = slice(kept, kept + len(block.draws))
            # one by one: on some processors a product rounds a row by where it stands in a block
            for k, draw in enumerate(block.draws, kept):
                draws[:, k] = target.coordinates.inverse_transform(draw)
            weights[span] = block.weights
            check_divergence(sampler, state, draws[:, span])  # now in `dtype`
            stein.add(block.thetas, block.gradients)
            kept = span.stop
    return Chain(draws, weights, target.coordinates.inverse_transform(state.theta), state, stein)


def burn(sampler: Sampler, target: Target, state: State, n_steps: int, keep: int = 0) -> NDArray:
    """Burn in a group of chains, in place: forget the start, and learn matrices near the mode.

    It ends where the time of the fit is up, but not right after a restart. It returns
    every `keep`-th point after the last restart, (chains, points, D), in the coordinates of the
    model and the precision of the chains; none with 0.
    """
    done, kept = 0, 0
    recorded = range(0, n_steps - restarts(n_steps)[-1], keep) if keep else range(0)
    points = np.empty((len(state.theta), len(recorded), target.dim))
    for until in restarts(n_steps):
        for block in iterate_steps(sampler, target, state, until - done):
            del block  # the next steps have arrays of their own
            if time_is_up():
                return points[:, :0]
        sampler.restart(state, target)
        done = until
    for block in iterate_steps(sampler, target, state, n_steps - done, recorded):
        for k, point in enumerate(block.draws, kept):
            points[:, k] = target.coordinates.inverse_transform(point)
        kept += len(block.draws)
        if time_is_up():
            break
    return points[:, :kept]


def restarts(n_steps: int) -> tuple[int, ...]:
    """Steps of a burn-in after which samplers forget averages from far out."""
    return n_steps // 8, n_steps // 4, n_steps // 2


# -- steps ------------------------------------------------------------------------------------


class StepBlock(NamedTuple):
    """Some successive steps of a group, in the coordinates of the chains.

    The next block overwrites the arrays.
    """

    thetas: NDArray
    """(steps, chains, D): the point before each step"""
    gradients: NDArray
    """(steps, chains, D): the gradient estimate there"""
    draws: NDArray
    """(draws, chains, D): the recorded draws"""
    weights: NDArray
    """(draws,)"""


def iterate_steps(
    sampler: Sampler,
    target: Target,
    state: State,
    n_steps: int,
    recorded: range = range(0),
) -> Iterator[StepBlock]:
    """Move a group of chains, in place, by `n_steps`, and yield some steps at a time.

    This is the only loop over steps. The recorded draw is the point before its step, so that it
    belongs to the gradient taken there (math/diagnostics.md#recorded-draws). A run that stops and
    goes on equals a run without a stop, to the last bit on one machine.

    Parameters
    ----------
    recorded : range, default=range(0)
        The steps, numbered from 0, before which a draw is recorded; by default none.

    Raises
    ------
    FloatingPointError
        If a chain diverges; the message names sampler, step and remedy.
    """
    block = max(1, min(block_of(state), n_steps))
    thetas = np.empty((block, *state.theta.shape))
    gradients = np.empty_like(thetas)
    draws = np.empty_like(thetas) if recorded else thetas[:0]
    weights = np.empty(block)
    for start in range(0, n_steps, block):
        size, kept = min(block, n_steps - start), 0
        for i in range(size):
            if start + i in recorded:
                draws[kept], weights[kept] = sampler.draw(state)
                kept += 1
            thetas[i] = state.theta
            try:
                sampler.step(state, target)
            except np.linalg.LinAlgError as error:  # of a matrix of a point that overflowed
                raise diverged(sampler, state) from error
            gradients[i] = state.gradient
        check_divergence(sampler, state, thetas[:size])
        check_divergence(sampler, state, state.theta)
        yield StepBlock(thetas[:size], gradients[:size], draws[:kept], weights[:kept])


def block_of(state: State) -> int:
    """Steps between two looks at the chain, a power of two.

    64, because a look costs a pass over a block and not a step, but no more than 8 MB of points.
    """
    return min(64, 1 << max(0, ((1 << 20) // state.theta.size).bit_length() - 1))


def check_divergence(sampler: Sampler, state: State, thetas: NDArray) -> None:
    """Raise FloatingPointError if a point is NaN, or so far out that its square may overflow."""
    if not np.abs(thetas).max(initial=0.0) < 1e100:
        raise diverged(sampler, state)


def diverged(sampler: Sampler, state: State) -> FloatingPointError:
    """What to raise of chains that have left the posterior."""
    return FloatingPointError(f"{sampler} diverged by step {state.t}; {sampler.advice}")
