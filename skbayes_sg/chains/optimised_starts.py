"""Chains that start in modes of their own: optimised first, then sampled."""

from __future__ import annotations

import copy
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skbayes_sg.chains.parallel import cut_short, in_parallel, time_is_up
from skbayes_sg.chains.run import iterate_steps, start_chains
from skbayes_sg.chains.tuning import Tuned
from skbayes_sg.samplers import SGHMC, CosineCycle, State
from skbayes_sg.samplers.target import Target

_BURN_INS = 4  # length of the optimisation


def from_modes(
    sampler: SGHMC,
    target: Target,
    theta: NDArray,
    seed: np.random.SeedSequence,
    n_jobs: int | None = None,
) -> Tuned:
    """Start chains at theta (n_chains, D), and take each to a mode.

    The steps are those of the sampler without noise: momentum and the scale of RMSprop, under half
    a cosine. Chains from different points find different modes, and the averages over them gain
    most from that, as ensembles do (math/networks.md#modes).
    """
    states = start_chains(sampler, target, theta, seed)
    n_steps = _BURN_INS * sampler.run_length(states[0]).burn_in
    steps = CosineCycle(first=5e-3, last=5e-5, length=n_steps)  # MLPClassifier's are 1e-3
    optimiser = clone(sampler).set_params(step_size=steps, temperature=0.0)
    states = in_parallel(partial(_moved, optimiser, target, n_steps), states, n_jobs)
    cut_short("steps towards a mode", min(state.t for state in states), n_steps)
    return Tuned(
        sampler, states, f"; chains start at modes that {n_steps} steps without noise find"
    )


def _moved(sampler: SGHMC, target: Target, n_steps: int, state: State) -> State:
    """A copy of a state after some steps, fewer where the time is up."""
    state = copy.deepcopy(state)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in iterate_steps(sampler, target, state, n_steps):
            if time_is_up():
                break
    return state
