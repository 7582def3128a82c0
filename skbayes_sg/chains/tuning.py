"""Short runs before chains start.

They choose SGFS's alpha where its structure drops correlations, and take chains of posteriors with
many modes to modes of their own.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.chains.run import (
    burn,
    cut_short,
    elements_of_step,
    in_parallel,
    iterate_steps,
    one_thread,
    radius,
    start_chains,
    time_is_up,
)
from skbayes_sg.diagnostics import STEIN_LIMIT
from skbayes_sg.samplers import SGFS, SGHMC, CosineCycle, Sampler, State
from skbayes_sg.samplers.schedules import value_at
from skbayes_sg.samplers.target import Target

_ALPHAS = (30.0, 20.0, 10.0, 6.0, 4.0, 3.0, 2.0, 1.0, 0.0)
_STEPS = 500  # of a short run
_SETTLING = 1000  # steps of the first run towards stationarity; each is twice as long as the last
_PASSES = 200  # of a chain in short runs


class Tuned(NamedTuple):
    """Started chains, and their sampler with numbers in place of "auto"."""

    sampler: Sampler
    states: list[State]
    remark: str = ""
    """The chosen alpha in words, for the user."""
    warnings: tuple[str, ...] = ()
    """Warnings about the short runs."""


def raise_alpha(
    sampler: SGFS,
    target: Target,
    theta: NDArray,
    seed: np.random.SeedSequence,
    n_jobs: int | None = None,
) -> Tuned:
    """Start chains at theta, and raise alpha until their steps are stable there."""
    states, lowest = start_chains(sampler, target, theta, seed), value_at(sampler.alpha, 0, "alpha")
    for alpha in [lowest, *(a for a in sorted(_ALPHAS) if a > lowest)]:
        sampler = copy.copy(sampler).set_params(alpha=alpha)
        for state in states:
            sampler.refresh(state, target)
        if max(radius(sampler, target, state) for state in states) < 1:
            return Tuned(sampler, states, f"; alpha={alpha:g} is stable")
    return Tuned(sampler, states, f"; alpha={alpha:g} is the largest that was tried")


def choose_alpha(
    sampler: SGFS,
    target: Target,
    theta: NDArray,
    seed: np.random.SeedSequence,
    n_jobs: int | None = None,
) -> Tuned:
    """The smallest alpha whose variances are right within a tenth, measured where the chains stay.

    All chains start at theta (n_chains, D), with a short run at the largest alpha. Others follow
    (math/sgfs.md#choosing-alpha).

    1. Alpha goes down as long as no chain diverges, because a small alpha moves fastest.
    2. Runs of growing length go on until the chains are stationary, or until each has made 200
       passes (4,000 steps if that is more). A run that diverges is taken back, and alpha is raised.
    3. Alpha goes up until the balance of energies is 1 within 0.1, from both sides. The balance is
       the Stein ratio of a chain that stays where it is.

    The chains are stationary if the Stein ratio about their start is equal to the balance. If they
    are not when the passes are used up, the remark and a warning say so. The fit goes on from the
    last states.
    """
    grid = _Grid(sampler, target, start_chains(_at(sampler, 0), target, theta, seed), n_jobs)
    grid.run(0, _SETTLING)
    while grid.place + 1 < len(_ALPHAS) and not time_is_up():
        if not grid.run(grid.place + 1, _STEPS):
            break

    # as many passes as MLPClassifier makes at most
    passes = round(_PASSES * (grid.states[0].rows.noise_factor + 1))
    length, end, stationary = _SETTLING, grid.steps + max(4 * _SETTLING, passes), False
    while grid.steps < end and not (stationary or time_is_up()):
        if grid.run(grid.place, min(length, max(_STEPS, end - grid.steps))):
            stationary = _equal(grid.about_start, grid.balance, grid.about_start_se)
            length *= 2
        elif grid.place > 0:
            grid.place -= 1
        else:
            break
    about_start, n_steps = grid.about_start, grid.steps

    for place in range(grid.place, -1, -1):  # up to the largest where the time is up
        grid.place = place
        if time_is_up() or not grid.run(place, _STEPS):
            continue
        if _equal(grid.balance, 1.0, grid.balance_se):
            break
    alpha = _ALPHAS[grid.place]
    remark = f"; alpha={alpha:g} by the Stein ratio of short runs, {grid.balance:.2f}"
    warnings: tuple[str, ...] = ()
    if not stationary:
        remark += f", from chains that were not yet stationary after {n_steps} steps"
        warnings = (
            f"SGFS chose alpha before the chains were stationary: after {n_steps} steps their "
            f"Stein ratio about their start was {about_start:.2f}; they may still be on their way "
            "to where the posterior is; raise burn_in",
        )
    return Tuned(_at(sampler, grid.place), grid.states, remark, warnings)


def _at(sampler: SGFS, place: int) -> SGFS:
    """The sampler with the alpha of a place in the grid."""
    return copy.copy(sampler).set_params(alpha=_ALPHAS[place])


class _Grid:
    """The groups of chains on their way down and up the values of alpha.

    Attributes
    ----------
    place : int
        Place of the present alpha; larger is lower.
    states : list of State
    steps : int
        Steps of each chain so far.
    balance, about_start : float
        Balance of energies, and Stein ratio about the start, of the last run that was kept.
    balance_se, about_start_se : float
        Their standard errors.
    """

    def __init__(
        self, sampler: SGFS, target: Target, states: list[State], n_jobs: int | None
    ) -> None:
        self.sampler, self.target, self.n_jobs = sampler, target, n_jobs
        self.states, self.starts = states, [state.theta.copy() for state in states]
        self.place = self.steps = 0
        self.balance = self.balance_se = self.about_start = self.about_start_se = np.nan

    def run(self, place: int, n_steps: int) -> bool:
        """Run all chains at a value of alpha. If one diverges the run is taken back: False."""
        sampler = _at(self.sampler, place)
        run = partial(_short_run, sampler, self.target, n_steps)
        self.steps += n_steps
        try:
            groups = in_parallel(
                run,
                zip(self.states, self.starts, strict=True),
                self.n_jobs,
                elements_of_step(self.target, self.states),
            )
        except (FloatingPointError, np.linalg.LinAlgError):  # the latter from matrices far out
            return False
        balance, se = _mean_and_se([group.balance for group in groups])
        if not balance < 2.0:  # of chains that leave their posterior
            return False
        self.place, self.states = place, [group.state for group in groups]
        self.balance, self.balance_se = balance, se
        self.about_start, self.about_start_se = _mean_and_se(
            [group.about_start for group in groups]
        )
        return True


def _equal(figure: float, expected: float, se: float) -> bool:
    """Whether a figure is as expected, within 0.1 or three standard errors (0.2 at most)."""
    return abs(figure - expected) <= max(STEIN_LIMIT, min(3 * se, 2 * STEIN_LIMIT))


class _ShortRun(NamedTuple):
    """A group of chains after a short run, and two ratios at each step of its second half."""

    state: State
    balance: NDArray
    """(steps, chains): (g^T K g + tr K W) / 2 D"""
    about_start: NDArray
    """(steps, chains): -(theta - start) . g / D"""


def _short_run(
    sampler: Sampler, target: Target, n_steps: int, group: tuple[State, NDArray]
) -> _ShortRun:
    """Adapt for half of the steps, then measure. `group`: a state, and the start of its chains."""
    state, start = copy.deepcopy(group[0]), group[1]
    balance, about_start = [], []
    with one_thread(), np.errstate(over="ignore", invalid="ignore"):
        burn(sampler, target, state, n_steps // 2)
        state.memory.radius = 0.0  # of another alpha
        sampler.freeze(state, target)
        for block in iterate_steps(sampler, target, state, n_steps - n_steps // 2):
            g, gain = block.gradients, state.memory.preconditioner
            energy = (g * gain.matvec(g)).sum(axis=-1) + _injected_energy(state)
            balance.append(energy / (2 * target.dim))
            about_start.append(-((block.thetas - start) * g).mean(axis=-1))
    sampler.unfreeze(state)
    return _ShortRun(state, np.concatenate(balance), np.concatenate(about_start))


def _injected_energy(state: State) -> float:
    """tr K W, by random signs; exact for diagonal matrices."""
    if state.memory.noise_root is None:
        return 0.0
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (16, state.theta.shape[1]))
    noise = state.memory.noise_root.matvec(signs)
    return float((noise * state.memory.preconditioner.matvec(noise)).sum(axis=1).mean())


def _mean_and_se(groups: list[NDArray]) -> tuple[float, float]:
    """Mean over steps and chains, and its standard error by batch means."""
    values = np.concatenate(groups, axis=1)
    batches = np.array([batch.mean(axis=0) for batch in np.array_split(values, 8)])
    return float(values.mean()), float(batches.std(ddof=1) / np.sqrt(batches.size))


def stable_start(sampler: Sampler, target: Target, state: State) -> Sampler:
    """Start a state afresh with the smallest alpha from 3 at which the step is stable there.

    If none is stable, alpha is the largest one, 30.
    """
    for alpha in sorted(_ALPHAS):
        if alpha >= 3.0:
            candidate = copy.copy(sampler).set_params(alpha=alpha)
            trial = copy.deepcopy(state)
            candidate.start(trial, target)
            if trial.memory.radius < 1:
                break
    candidate.start(state, target)
    return candidate


# -- chains in modes of their own -----------------------------------------------------------------


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
    optimiser = copy.copy(sampler).set_params(step_size=steps, temperature=0.0)
    states = in_parallel(
        partial(_to_mode, optimiser, target, n_steps),
        states,
        n_jobs,
        elements_of_step(target, states),
    )
    cut_short("steps towards a mode", min(state.t for state in states), n_steps)
    return Tuned(
        sampler, states, f"; chains start at modes that {n_steps} steps without noise find"
    )


def _to_mode(sampler: SGHMC, target: Target, n_steps: int, state: State) -> State:
    """A copy of a state after some steps, fewer where the time is up."""
    state = copy.deepcopy(state)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in iterate_steps(sampler, target, state, n_steps):
            if time_is_up():
                break
    return state
