"""Hamiltonian Monte Carlo on all rows: exact, and affordable for few rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.checks import require_choice, require_integer
from skbayes_sg.layouts import DIAGONAL, FULL, Layout
from skbayes_sg.linalg import Diag, Operator
from skbayes_sg.priors import Prior
from skbayes_sg.rows import Minibatches
from skbayes_sg.samplers.base import NEEDS_ROWS_AGAIN, Report, RunLength, Sampler
from skbayes_sg.samplers.law import ExactLaw
from skbayes_sg.samplers.schedules import value_at
from skbayes_sg.samplers.state import State
from skbayes_sg.target import Target

_MEASURE_EVERY = 5
_LONGEST_STEP = 1.5  # in metric units; an oscillator of unit frequency is stable below 2
_LARGEST_METRIC = 1000
_MANY_CHAINS = 16
_FEW_PARAMETERS = 200
_SHORTEST_STEP = 0.02  # a hundred leapfrog steps; shorter ones mean that rounding is too large


@dataclass
class _Memory:
    information: Operator  # running average: model Fisher
    prior: Prior  # of log_prob and gradient
    log_prob: NDArray  # (chains,) at theta
    gradient: NDArray  # (chains, D) at theta
    log_step: float
    count: float = 1.0
    adapting: bool = True
    inverse: Operator | None = None  # inverse metric
    root: Operator | None = None  # square root of the metric: momenta
    steps: int = 0  # since the freeze
    accepted: float = 0.0
    rows_touched: float = 0.0


class HMC(Sampler):
    """Hamiltonian Monte Carlo with the gradient of all rows.

    Leapfrog steps of ``H = -log posterior + p^T Lam^-1 p / 2`` are accepted with probability
    ``min(1, exp(-change of H))``. So the posterior is the stationary law for any shape of it.

    Parameters
    ----------
    n_leapfrog : int, optional
        Leapfrog steps per draw. By default a trajectory has a random length, uniform on [0.5, 2] in
        units of the metric. That is around a quarter period, and never near the half period at
        which draws of a Gaussian merely change sign.
    target_accept : float, default=0.8
        Acceptance rate to which burn-in adapts the step.
    structure : {"auto", "full", "diag"}, default="auto"
        Of the metric. "full" follows correlations, at a D x D product per leapfrog step. "auto":
        "full" up to 1,000 parameters.
    single_gradients : bool, default=False
        Compute gradients in single precision, which is faster for rows in double. The law stays
        exact: leapfrog steps along any function of theta preserve volume and are reversible, and
        the energy has all digits. Columns whose scale is far from 1 lower the acceptance rate.

    Notes
    -----
    The metric Lam is the model Fisher plus prior precision, averaged over burn-in. Metric and step
    are frozen after burn-in. Source: math.md#hmc; Ahn et al. 2012, section 5, use HMC as the truth.

    Examples
    --------
    >>> from skbayes_sg.samplers import HMC
    >>> HMC(target_accept=0.9)
    HMC(target_accept=0.9)
    """

    remedy = "raise target_accept"
    refuses_streams = NEEDS_ROWS_AGAIN
    shares_rows = True

    def __init__(
        self,
        n_leapfrog: int | None = None,
        target_accept: float = 0.8,
        structure: str = "auto",
        single_gradients: bool = False,
    ) -> None:
        self.n_leapfrog = n_leapfrog
        self.target_accept = target_accept
        self.structure = structure
        self.single_gradients = single_gradients

    def validate(self, target: Target) -> None:
        if self.n_leapfrog is not None:
            require_integer("n_leapfrog", self.n_leapfrog, 1, " or None")
        accept = self.target_accept
        if callable(accept) or not 0 < value_at(accept, 0, "target_accept") < 1:
            raise ValueError(f"target_accept must lie between 0 and 1, got {accept!r}")
        require_choice("structure", self.structure, ("auto", "full", "diag"))
        if not isinstance(self.single_gradients, (bool, np.bool_)):
            raise ValueError(
                f"single_gradients must be True or False, got {self.single_gradients!r}"
            )

    # -- motion -------------------------------------------------------------------------------

    def minibatches(self, target: Target, rng: np.random.Generator, n_chains: int) -> Minibatches:
        """Every step uses all rows."""
        return target.minibatches(target.n_rows, False, rng, n_chains)

    def start(self, state: State, target: Target) -> None:
        state.memory = _Memory(
            information=target.information(state.theta, slice(None), self._layout(target)),
            prior=target.prior,
            log_prob=target.log_prob(state.theta),
            gradient=self._gradient(target, state.theta),
            log_step=math.log(target.dim**-0.25),  # the scaling of the best step with D
        )
        self._factorise(state)

    def step(self, state: State, target: Target) -> None:
        memory = state.memory
        momentum = memory.root.matvec(state.normals.standard_normal(state.theta.shape))
        energy = _kinetic(momentum, memory.inverse) - memory.log_prob
        h, n_leapfrog = self._trajectory(state)

        theta, gradient = state.theta, memory.gradient
        momentum = momentum + 0.5 * h * gradient
        for _ in range(n_leapfrog):
            theta = theta + h * memory.inverse.matvec(momentum)
            gradient = self._gradient(target, theta)
            momentum = momentum + h * gradient
        momentum = momentum - 0.5 * h * gradient
        log_prob = target.log_prob(theta)

        change = energy + log_prob - _kinetic(momentum, memory.inverse)
        chance = np.exp(np.minimum(0.0, np.where(np.isnan(change), -np.inf, change)))
        accept = state.normals.random(len(chance)) < chance
        state.gradient = memory.gradient
        state.theta = np.where(accept[:, None], theta, state.theta)
        memory.gradient = np.where(accept[:, None], gradient, memory.gradient)
        memory.log_prob = np.where(accept, log_prob, memory.log_prob)

        # gradients, and the energy
        memory.rows_touched += (n_leapfrog + 1) * target.n_rows * len(accept)
        memory.steps += 1
        memory.accepted += chance.mean()
        if memory.adapting:
            self._adapt(state, target, chance.mean())
        state.t += 1

    def restart(self, state: State, target: Target) -> None:
        """Take the averages as the new metric, and adapt the step to it afresh."""
        self._factorise(state)
        state.memory.count = math.sqrt(state.memory.count)
        state.memory.steps = 0

    def freeze(self, state: State, target: Target) -> None:
        """Take the last average as the metric, and stop adapting.

        The step was adapted to the metric before, which is nearly the same.
        """
        self._factorise(state)
        memory = state.memory
        memory.adapting, memory.steps, memory.accepted = False, 0, 0.0

    def change_prior(self, state: State, target: Target) -> None:
        """Update log posterior and gradient at theta; the metric follows at the next restart."""
        memory = state.memory
        memory.log_prob = memory.log_prob + target.prior.log_density(state.theta)
        memory.log_prob -= memory.prior.log_density(state.theta)
        memory.gradient = memory.gradient + target.prior.gradient(state.theta)
        memory.gradient -= memory.prior.gradient(state.theta)
        memory.prior = target.prior

    def _gradient(self, target: Target, theta: NDArray) -> NDArray:
        return (target.single if self.single_gradients else target).full_gradient(theta)

    def _trajectory(self, state: State) -> tuple[float, int]:
        """Step and number of steps of a trajectory, random so that none is near a period."""
        h = math.exp(state.memory.log_step)
        if self.n_leapfrog is not None:
            return h * state.normals.uniform(0.8, 1.2), self.n_leapfrog
        length = state.normals.uniform(0.5, 2.0)
        n_leapfrog = math.ceil(length / h)
        return length / n_leapfrog, n_leapfrog

    # -- adaptation in burn-in ----------------------------------------------------------------

    def _layout(self, target: Target) -> Layout:
        """Layout of the metric; by default a matrix as long as it costs less than a gradient."""
        if self.structure == "auto":
            return FULL if target.dim <= _LARGEST_METRIC else DIAGONAL
        return target.layout(self.structure)

    def _adapt(self, state: State, target: Target, chance: float) -> None:
        """Robbins-Monro step of the log step; average the Fisher of one chain after the other."""
        memory = state.memory
        memory.log_step += (chance - self.target_accept) * (memory.steps + 5) ** -0.6
        memory.log_step = float(
            np.clip(memory.log_step, math.log(_SHORTEST_STEP), math.log(_LONGEST_STEP))
        )
        if state.t % _MEASURE_EVERY == 0:
            turn = state.t // _MEASURE_EVERY % len(state.theta)
            memory.count += 1
            information = target.information(
                state.theta[turn : turn + 1], slice(None), self._layout(target)
            )
            memory.information.blend(information, 1 / memory.count)

    def _factorise(self, state: State) -> None:
        metric = state.memory.information + state.memory.prior.curvature(state.theta)
        state.memory.inverse, state.memory.root = metric.inverse(), metric.cholesky()

    # -- law and report -----------------------------------------------------------------------

    def run_length(self, state: State) -> RunLength:
        """Burn-in of 300 steps, or 200 for a diagonal metric; 1 or 2 steps a draw.

        A draw forgets its predecessor in a step or two, and the metric needs some hundred. Above
        200 parameters a draw takes two steps, because the slowest of many directions is slower. A
        group of 16 chains adapts its step in half the time. Its chains keep few draws each, so a
        draw takes two or three steps: R-hat would call short chains of correlated draws apart.
        """
        dim = state.theta.shape[1]
        if len(state.theta) >= _MANY_CHAINS:
            return RunLength(150, 3 if dim <= _FEW_PARAMETERS else 2)
        burn_in = 200 if isinstance(state.memory.information, Diag) else 300
        return RunLength(burn_in, 1 if dim <= _FEW_PARAMETERS else 2)

    def law(self, state: State, target: Target) -> ExactLaw:
        return ExactLaw()

    def report(self, state: State) -> Report:
        memory = state.memory
        rate = memory.accepted / max(1, memory.steps)
        complaints = []
        if rate < 0.5 * self.target_accept and memory.steps >= 10:
            complaints.append(
                f"accept_rate is {rate:.2f}, far below target_accept={self.target_accept}: the "
                "energy is not resolved; scale the columns of X, use float64, or divide the "
                "weights by a constant"
            )
        return Report(memory.rows_touched, {"accept_rate": rate}, complaints)


def _kinetic(momentum: NDArray, inverse: Operator) -> NDArray:
    return 0.5 * np.sum(momentum * inverse.matvec(momentum), axis=1)
