"""SGFS with control variates: its step, its automatic parameters and its figures.

The step is that of underdamped Langevin dynamics with the mass matrix Lam + M: curvature at the
anchor and gradient noise. The splitting is BAOAB of Leimkuhler & Matthews (2013): for a Gaussian
posterior the law of theta is exact for every step size (math.md#the-step-with-momentum).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data.minibatches import Batches
from skbayes_sg.linalg import Dense, Diag, Operator
from skbayes_sg.linalg.layouts import FULL
from skbayes_sg.samplers.base import NoAnchorError, NoGainError, RunLength
from skbayes_sg.samplers.law import UnderdampedLaw
from skbayes_sg.samplers.schedules import Schedule
from skbayes_sg.samplers.sgfs_formulas import FisherMemory
from skbayes_sg.samplers.state import State
from skbayes_sg.samplers.target import Anchored, Target

_GENTLE = 3.0  # alpha^2 on a posterior near a Gaussian
_GENTLY_STEEP = 2.0  # steepness up to which minibatches and this alpha are right
_STEEPEST = 20.0  # above, single walls of the posterior bias the step; Metropolis steps do not
STEEP_COLUMN = 50.0  # the same along the lines of single parameters, for their own sds
_LONGEST_BURN_IN = 400
_LONGEST_THINNING = 12  # steps: a steep posterior gets fewer effective draws, not a longer run
_POOL_ERROR = 0.05  # in posterior standard deviations


@dataclass
class UnderdampedMemory(FisherMemory):
    """The operators of the step and the velocities of the chains."""

    velocity: NDArray = field(default_factory=lambda: np.zeros(0))  # (chains, D)
    time_step: float = 1.0  # delta = 2 / sqrt(1 + alpha^2)
    persistence: float = 0.0  # c = exp(-delta)


def validate(alpha: Schedule | str, B: Any, asked: tuple[str, str, str]) -> None:
    """Raise ValueError for parameters of SGFS that this step does not know.

    `asked` are variant, curvature and structure.
    """
    if asked != ("exact", "model", "full"):
        raise ValueError(
            'variance_reduction="control_variate" needs the curvature apart from the noise: '
            'variant="exact", curvature="model", structure="full"'
        )
    if not (isinstance(B, str) and B == "fisher"):
        raise ValueError(
            'variance_reduction="control_variate" injects noise in proportion to the '
            'curvature; leave B="fisher"'
        )
    if isinstance(alpha, (int, float)) and alpha == 0:
        raise ValueError(
            'variance_reduction="control_variate" leaves too little noise to sample with; '
            "alpha must be positive"
        )


def memory(state: State, target: Target, anchor: Anchored) -> UnderdampedMemory:
    """Chains at rest, with curvature and noise from the anchor."""
    # the whole pool has no noise, and to measure that of its rows takes a D x D product of them
    noise = Diag(np.zeros(target.dim)) if state.rows.whole else anchor.noise
    prior = target.prior.curvature(anchor.theta)
    still = np.zeros(state.theta.shape, np.float32)
    start = UnderdampedMemory(FULL, noise, None, prior, adapting=False, velocity=still)
    start.figures = figures(anchor)
    return start


def underdamped(state: State, target: Target) -> None:
    """One step of BAOAB, with the gradient at the present point.

    ``v += delta G gradient``, ``theta += delta/2 v``, ``v = c v + eta``, ``theta += delta/2 v``,
    with ``G = (Lam + M)^-1`` and eta the injected noise. Velocities are in single precision.
    """
    memory = state.memory
    gradient = target.noisy_gradient(state.theta, state.rows.draw())
    delta, c = memory.time_step, memory.persistence
    velocity = memory.gain.matvec(gradient.astype(np.float32, copy=False))
    velocity *= delta
    velocity += memory.velocity
    normals = state.normals.standard_normal(state.theta.shape, dtype=np.float32)
    kick = memory.kick.matvec(normals)
    # the two drifts are one: delta/2 v + delta/2 (c v + eta)
    drift = (0.5 * delta * (1 + c)) * velocity
    drift += (0.5 * delta) * kick
    state.theta = state.theta + drift
    velocity *= c
    velocity += kick
    memory.velocity, state.gradient = velocity, gradient
    state.t += 1


def operators(memory: UnderdampedMemory, N: float, rows: Batches) -> tuple[Operator, Operator]:
    """G = (Lam + M)^-1 and the covariance of eta under which Lam^-1 is stationary.

    It is (1 - c^2) [G - k G M (4 (Lam + M) - delta^2 Lam)^-1], k = delta^2 (1 + c) / (1 - c).
    Source: math.md#the-step-with-momentum.
    """
    assert memory.Lam is not None
    delta = memory.time_step = 2.0 / math.sqrt(1.0 + memory.alpha**2)
    c = memory.persistence = math.exp(-delta)
    Lam, keep = memory.Lam, 1.0 - c * c
    if rows.noise_factor == 0:
        G = Lam.inverse()
        return G, G * keep
    M = memory.I1 * (rows.noise_factor * N)
    G = (Lam + M).inverse()
    rest = (M * 4.0 + Lam * (4.0 - delta**2)).inverse()
    k = delta**2 * (1.0 + c) / (1.0 - c)
    if isinstance(M, Diag) and isinstance(Lam, Diag):
        return G, Diag(keep * (G.diagonal() - k * G.diagonal() * M.diagonal() * rest.diagonal()))
    lost = G.dense() @ M.dense() @ rest.dense()
    return G, Dense(keep * (G.dense() - 0.5 * k * (lost + lost.T)))


def law(memory: UnderdampedMemory) -> UnderdampedLaw:
    """The law of the present step."""
    return UnderdampedLaw(
        memory.gain,
        memory.kick,
        stable=True,
        time_step=memory.time_step,
        persistence=memory.persistence,
    )


def run_length(alpha: float) -> RunLength:
    """Burn-in and thinning for an autocorrelation time of some 2 / delta steps, within bounds."""
    delta = 2.0 / math.sqrt(1.0 + alpha**2)
    thin = math.ceil(1.5 / delta)
    return RunLength(min(math.ceil(25 / delta), _LONGEST_BURN_IN), min(thin, _LONGEST_THINNING))


def chosen(alpha: float | None, batch_size: int | None, anchor: Anchored) -> tuple[float, int]:
    """Alpha and the batch size by steepness and noise number of the data, where they are None.

    A step overshoots where the gradient is more than (1 + alpha^2) / 2 times as steep as at the
    anchor. Source: math.md#noise-number, math.md#steepness.

    Raises
    ------
    NoGainError
        If the posterior is too steep for this alpha; NoAnchorError, see `require_near`.
    """
    require_near(anchor)
    steepness = anchor.steepness
    steepest = _STEEPEST if alpha is None else (1 + alpha**2) / 2
    if not steepness <= steepest:
        raise NoGainError(
            "the posterior is too far from Gaussian for control variates: its gradient is up to "
            f"{steepness:.1f} times as steep as at the anchor, above {steepest:.3g}"
        )
    if alpha is None and anchor.column_steepness > STEEP_COLUMN:
        raise NoGainError(
            "the posterior is too far from Gaussian for control variates: along the line of a "
            f"coefficient its gradient is up to {anchor.column_steepness:.0f} times as steep as at "
            f"the anchor, above {STEEP_COLUMN:g}, as where a rare level has one class only"
        )
    if alpha is None:
        beyond = steepness / anchor.stiffness  # of a spring, however stiff, the step is exact
        alpha = math.sqrt(max(_GENTLE, 3 * beyond - 1, 2 * steepness - 1))
    if batch_size is None:
        batch_size = anchor.batch_size if steepness <= _GENTLY_STEEP else anchor.pool_size
    return alpha, min(batch_size, anchor.pool_size)


def require_near(anchor: Anchored) -> None:
    """Refuse a pool of some rows around a point far from the mode.

    Rows were chosen by their remainders there. A pool of all rows is right around any point.

    Raises
    ------
    NoAnchorError
    """
    if math.isinf(anchor.steepness) and anchor.pool_error > 0:
        raise NoAnchorError(
            "the mode was not found to a posterior standard deviation per parameter, and control "
            "variates need it; columns with only a few rows that are not zero hide it"
        )


def in_words(anchor: Anchored) -> str:
    """The figures by which control variates were found to be right, and what follows from them."""
    short = "; short steps of all rows" if anchor.steepness > _GENTLY_STEEP else ""
    return f" (noise number {anchor.noise_number:.2g}, steepness {anchor.steepness:.2g}{short})"


def figures(anchor: Anchored) -> dict[str, float]:
    """What `diagnostics_` tells of the anchor."""
    return {
        "noise_number": anchor.noise_number,
        "steepness": anchor.steepness,
        "column_steepness": anchor.column_steepness,
        "pool_error": anchor.pool_error,
    }


def complaints(figures: dict[str, float]) -> list[str]:
    """A warning if the choice of the pool matters."""
    error = figures.get("pool_error", 0.0)
    if not error > _POOL_ERROR:
        return []
    return [
        f"pool_error is {error:.2f}: few rows dominate, and the posterior mean may be off by so "
        "many standard deviations; set variance_reduction=None"
    ]
