"""The only loop over steps: blocks of steps of a group of chains, and what is kept of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.chains.deadline import time_is_up
from skbayes_sg.samplers import Sampler, State
from skbayes_sg.samplers.target import Target

_BLOCK = 64  # steps between two looks at the chain: a look costs a pass over a block, not a step
_BLOCK_CELLS = 1 << 20  # 8 MB
_FAR = 1e100  # no posterior reaches so far, and squares are about to overflow


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
    thetas = np.empty((block, *state.theta.shape), state.theta.dtype)
    gradients = np.empty_like(thetas)
    draws = np.empty_like(thetas) if recorded else thetas[:0]
    weights = np.empty(block)
    for start in range(0, n_steps, block):
        size, kept = min(block, n_steps - start), 0
        for i in range(size):
            if start + i in recorded:
                draws[kept], weights[kept] = sampler.draw(state), sampler.weight(state)
                kept += 1
            thetas[i] = state.theta
            try:
                sampler.step(state, target)
            except np.linalg.LinAlgError as error:  # of a matrix of a point that overflowed
                raise _diverged(sampler, state) from error
            gradients[i] = state.gradient
        check_divergence(sampler, state, thetas[:size])
        check_divergence(sampler, state, state.theta)
        yield StepBlock(thetas[:size], gradients[:size], draws[:kept], weights[:kept])


def block_of(state: State) -> int:
    """Steps between two looks, a power of two."""
    return min(_BLOCK, 1 << max(0, (_BLOCK_CELLS // state.theta.size).bit_length() - 1))


def restarts(n_steps: int) -> tuple[int, ...]:
    """Steps of a burn-in after which samplers forget averages from far out."""
    return n_steps // 8, n_steps // 4, n_steps // 2


def burn(
    sampler: Sampler, target: Target, state: State, n_steps: int, keep: bool = False
) -> list[NDArray]:
    """Burn in a group of chains, in place: forget the start, and learn matrices near the mode.

    It ends where the time of the fit is up, but not right after a restart. With `keep` it returns
    the points after the last restart, each (chains, D).
    """
    done = 0
    for until in restarts(n_steps):
        if not move(sampler, target, state, until - done):
            return []
        sampler.restart(state, target)
        done = until
    points: list[NDArray] = []
    for block in iterate_steps(sampler, target, state, n_steps - done, range(keep * n_steps)):
        points.extend(block.draws.copy())
        if time_is_up():
            break
    return points


def move(sampler: Sampler, target: Target, state: State, n_steps: int) -> bool:
    """Move a group of chains, in place, and say whether the time sufficed."""
    return all(not time_is_up() for _ in iterate_steps(sampler, target, state, n_steps))


def check_divergence(sampler: Sampler, state: State, thetas: NDArray) -> None:
    """Raise FloatingPointError if a point is out of all bounds or NaN."""
    if not np.abs(thetas).max(initial=0.0) < _FAR:
        raise _diverged(sampler, state)


def _diverged(sampler: Sampler, state: State) -> FloatingPointError:
    return FloatingPointError(f"{sampler} diverged by step {state.t}; {sampler.advice}")
