"""The start of chains, and the choice of SGFS's alpha where its structure drops correlations."""

from __future__ import annotations

import copy
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skbayes_sg import diagnostics
from skbayes_sg.chains import Chain, run_chains, start_chains
from skbayes_sg.samplers import SGFS, Sampler, State
from skbayes_sg.target import Target

_ALPHAS = (30.0, 20.0, 10.0, 6.0, 4.0, 3.0, 2.0, 1.0, 0.0)
_LEAST_STABLE = 3.0
_STEPS = 250
_SETTLING = 1000
_SLACK = 0.1


class Tuned(NamedTuple):
    """Started chains, and their sampler with numbers in place of "auto"."""

    sampler: Sampler
    states: list[State]
    remark: str = ""
    """The chosen alpha in words, for the user."""


def set_off(
    sampler: Sampler,
    target: Target,
    theta: NDArray,
    seed: np.random.SeedSequence,
    n_jobs: int | None = None,
) -> Tuned:
    """Start chains at theta (n_chains, D); the sampler does not change."""
    return Tuned(sampler, start_chains(sampler, target, theta, seed))


def raise_alpha(
    sampler: SGFS,
    target: Target,
    theta: NDArray,
    seed: np.random.SeedSequence,
    n_jobs: int | None = None,
) -> Tuned:
    """Start chains at theta, and raise alpha until their steps are stable there."""
    states, lowest = start_chains(sampler, target, theta, seed), sampler.alpha
    assert isinstance(lowest, float)
    for alpha in [lowest, *(a for a in sorted(_ALPHAS) if a > lowest)]:
        sampler = clone(sampler).set_params(alpha=alpha)
        for state in states:
            sampler.refresh(state, target)
        if max(_radius(sampler, target, state) for state in states) < 1:
            return Tuned(sampler, states, f"; alpha={alpha:g} is stable")
    return Tuned(sampler, states, f"; alpha={alpha:g} is the largest that was tried")


def _radius(sampler: Sampler, target: Target, state: State) -> float:
    """Spectral radius of a step; the stream of rows of the state does not advance."""
    state = copy.deepcopy(state)
    return sampler.law(state, target).spectral_radius(state, target)


def choose_alpha(
    sampler: SGFS,
    target: Target,
    theta: NDArray,
    seed: np.random.SeedSequence,
    n_jobs: int | None = None,
) -> Tuned:
    """The smallest alpha under which the drawn variances are not too large.

    All chains start at theta (n_chains, D) and burn in for 1,000 steps at the largest alpha. Then
    alpha is lowered step by step, with 250 steps of burn-in and 250 steps to measure the Stein
    ratio. The search ends when a chain diverges, or when the ratio exceeds 1 by more than 0.1 plus
    three standard errors (0.1 at most). Unlike the rule for long runs, the test is one-sided
    (math.md#choosing-alpha). A ratio below 1 means that chains have not moved far yet, and more
    injected noise slows them. The run goes on from these states: chains of a flexible model would
    diverge from a start at a small alpha with matrices of a few minibatches.
    """
    highest = clone(sampler).set_params(alpha=_ALPHAS[0])
    states = start_chains(highest, target, theta, seed)
    chains = run_chains(highest, target, states, n_draws=1, burn_in=_SETTLING, n_jobs=n_jobs)
    chosen, ratio, states = highest, np.nan, _to_go_on(highest, chains)
    short_run = partial(run_chains, n_draws=1, burn_in=_STEPS, thin=_STEPS, n_jobs=n_jobs)
    for alpha in _ALPHAS:
        candidate = clone(sampler).set_params(alpha=alpha)
        try:
            chains = short_run(candidate, target, states)
        except FloatingPointError:
            break
        found, se = diagnostics.stein_ratio_of_sums([chain.stein for chain in chains])
        if not found - 1 <= _SLACK + (0.0 if np.isnan(se) else min(3 * se, _SLACK)):
            break
        chosen, ratio, states = candidate, found, _to_go_on(candidate, chains)
    remark = f"; alpha={chosen.alpha:g} by the Stein ratio of short runs, {ratio:.2f}"
    return Tuned(chosen, states, remark)


def _to_go_on(sampler: SGFS, chains: list[Chain]) -> list[State]:
    """States of the chains, which adapt again."""
    for chain in chains:
        sampler.unfreeze(chain.state)
    return [chain.state for chain in chains]


def stable_start(sampler: Sampler, target: Target, state: State) -> Sampler:
    """Start a state afresh with the smallest alpha from 3 at which the step is stable there.

    If none is stable, alpha is the largest one, 30.
    """
    for alpha in sorted(_ALPHAS):
        if alpha >= _LEAST_STABLE:
            candidate = clone(sampler).set_params(alpha=alpha)
            trial = copy.deepcopy(state)
            candidate.start(trial, target)
            if trial.memory.radius < 1:
                break
    candidate.start(state, target)
    return candidate


def refuse_unstable(sampler: Sampler, target: Target, state: State) -> None:
    """Raise ValueError for a step that diverges on these data.

    The message gives the spectral radius and the remedy.
    """
    radius = _radius(sampler, target, state)
    if radius >= 1:
        raise ValueError(
            f"{sampler} is unstable on these data: the spectral radius of its step is "
            f"{radius:.3g}, not below 1; {sampler.remedy}"
        )
