"""Choosing alpha of SGFS by the Stein ratio of short runs, where theory has no answer: correlations left out."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skbayes_sg import diagnostics
from skbayes_sg.chains import Chain, run_chains, start_chains
from skbayes_sg.samplers.base import Sampler, State

_ALPHAS = (30.0, 20.0, 10.0, 6.0, 4.0, 3.0, 2.0, 1.0, 0.0)
_LEAST_STABLE = 3.0
_STEPS = 250
_SETTLING = 1000
_SLACK = 0.1


class Choice(NamedTuple):
    """What the pilots found, and where they ended."""

    alpha: float
    stein_ratio: float
    states: list[State]
    """To go on from, with all that was learnt."""


def choose_alpha(
    sampler: Sampler, posterior, theta: NDArray, seed: np.random.SeedSequence, n_jobs: int | None = None
) -> Choice:
    """The smallest alpha under which the drawn variances are not too large.

    All chains, from theta (n_chains, D), settle for 1,000 steps at the largest alpha and then go down a ladder, 500
    steps on each rung and the first half as burn-in, until the Stein ratio is above 1 by more than 0.1 and three
    standard errors (at most 0.1 as well). One-sided, unlike MATH 6: a ratio below 1 belongs to chains that have not
    moved far yet, and more injected noise slows them. Chains of a flexible model are to go on from these states:
    set off at a small alpha with matrices of a few minibatches, they would be thrown far away.
    """
    highest = clone(sampler).set_params(alpha=_ALPHAS[0])
    states = start_chains(highest, posterior, theta, seed)
    chains = run_chains(highest, posterior, states, n_draws=1, burn_in=_SETTLING, n_jobs=n_jobs)
    choice = Choice(_ALPHAS[0], np.nan, _to_go_on(chains))
    for alpha in _ALPHAS:
        candidate = clone(sampler).set_params(alpha=alpha)
        states = choice.states
        try:
            chains = run_chains(candidate, posterior, states, n_draws=1, burn_in=_STEPS, thin=_STEPS, n_jobs=n_jobs)
        except FloatingPointError:
            break
        ratio, se = diagnostics.stein_ratio_of_sums([chain.stein for chain in chains])
        if not ratio - 1 <= _SLACK + (0.0 if np.isnan(se) else min(3 * se, _SLACK)):
            break
        choice = Choice(alpha, ratio, _to_go_on(chains))
    return choice


def _to_go_on(chains: list[Chain]) -> list[State]:
    """Their states, which learn their matrices on."""
    for chain in chains:
        chain.state.memory.adapting = True
    return [chain.state for chain in chains]


def raise_alpha(sampler: Any, posterior, states: list[State]) -> float:
    """Raise alpha of SGFS, in place, up the ladder until its step settles where the chains are, and return it."""
    for alpha in [sampler.alpha, *(a for a in sorted(_ALPHAS) if a > sampler.alpha)]:
        sampler.alpha = alpha
        for state in states:
            sampler.refresh(state, posterior)
        if max(sampler.spectral_radius(copy.deepcopy(state), posterior) for state in states) < 1:
            break
    return sampler.alpha


def stable_alpha(sampler: Sampler, posterior, state: State) -> float:
    """The smallest alpha of the ladder, from 3, under which the step settles where the state is; else the largest."""
    for alpha in sorted(_ALPHAS):
        if alpha >= _LEAST_STABLE:
            candidate = clone(sampler).set_params(alpha=alpha)
            trial = copy.deepcopy(state)
            candidate.start(trial, posterior)
            if trial.memory.radius < 1:
                return alpha
    return _ALPHAS[0]
