"""Choosing alpha of SGFS by the Stein ratio of short runs, where theory has no answer: correlations left out."""

from __future__ import annotations

import copy

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skbayes_sg import diagnostics
from skbayes_sg.chains import run_chain
from skbayes_sg.samplers.base import Sampler, State

_ALPHAS = (30.0, 20.0, 10.0, 6.0, 4.0, 3.0, 2.0, 1.0, 0.0)
_LEAST_STABLE = 3.0
_STEPS = 250
_MOST_CHAINS = 4
_SLACK = 0.1


def choose_alpha(sampler: Sampler, posterior, theta: NDArray, seed: np.random.SeedSequence) -> tuple[float, float, int]:
    """The smallest alpha under which the drawn variances are not too large; the Stein ratio there; steps spent.

    One group of chains, from the starting points theta, goes down a ladder of alpha, 500 steps on each rung and the
    first half as burn-in, until the ratio is above 1 by more than 0.1 and three standard errors. One-sided, unlike
    MATH 6: a ratio below 1 belongs to chains that have not moved far yet, and more injected noise slows them.
    """
    highest = clone(sampler).set_params(alpha=_ALPHAS[0])
    state = highest.init(posterior, theta[:_MOST_CHAINS], np.random.Generator(np.random.SFC64(seed)))
    chosen, ratio = _ALPHAS[0], np.nan
    for alpha in _ALPHAS:
        candidate = clone(sampler).set_params(alpha=alpha)
        try:
            chain = run_chain(candidate, posterior, state, n_draws=1, burn_in=_STEPS, thin=_STEPS)
        except FloatingPointError:
            break
        here, se = diagnostics.stein_ratio_of_sums([chain.stein])
        if not here - 1 <= _SLACK + 3 * (0.0 if np.isnan(se) else min(se, _SLACK)):
            break
        state, chosen, ratio = chain.state, alpha, here
        state.memory.adapting = True
    return chosen, ratio, state.t


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
