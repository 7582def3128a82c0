"""Stochastic gradient Hamiltonian Monte Carlo (Chen, Fox & Guestrin 2014)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data.minibatches import Minibatches, Rows, rows_of
from skbayes_sg.linalg import DIAGONAL, Diag, Partitioned
from skbayes_sg.samplers.base import NEEDS_ROWS_AGAIN, RunLength, Sampler
from skbayes_sg.samplers.schedules import (
    POSITIVE,
    Schedule,
    is_auto,
    value_at,
    weight_at,
)
from skbayes_sg.samplers.stationary import LinearStep, StationaryDistribution
from skbayes_sg.samplers.target import State, Target
from skbayes_sg.validation import require_choice

_WINDOW = 100  # steps of the running average of squared gradients, as of RMSprop
_LOOK_EVERY = 10  # steps after burn-in
_FEWEST_STEPS = 30  # of a draw
_CHEAP = 2.5e8  # products of rows and parameters of a draw


@dataclass
class _Memory:
    velocity: NDArray  # (chains, D)
    curvature: NDArray  # diagonal at the start, (D,)
    unit: NDArray  # number of the unit that a parameter belongs to, (D,)
    recent: NDArray  # running average of squared gradients, (D,)
    square: NDArray  # it, or after burn-in the largest that it was
    preconditioner: NDArray  # 1 / (root of it + root of its mean over the unit), (D,)
    count: float = 0.0  # steps in the average
    window: int = _WINDOW
    adapting: bool = True


@dataclass(eq=False, repr=False)
class SGHMC(Sampler):
    """Stochastic gradient Hamiltonian Monte Carlo with friction.

    Steps with momentum, as those of an optimizer, with friction and with noise that balances it.
    The default of networks.

    ``v = (1 - damping) v + K gradient + sqrt(2 temperature damping K) z``,  ``theta += v``,
    ``K = step_size / scale``,  ``z ~ N(0, I)``

    The scale of a parameter is the root mean square of its gradient plus that of the weights into
    the same unit, each with the curvature at the start. So a step has the length of one of Adam,
    whatever the rows and the temperature.

    Parameters
    ----------
    step_size : float, callable or "auto", default="auto"
        Length of a step in units of theta, the counterpart of MLPClassifier's learning rate. The
        noise of minibatches adds variance in proportion to it. "auto" is 0.01 sqrt(n / N), because
        the gradient of n rows of N has noise in proportion to sqrt(N / n).
    damping : float, default=0.1
        mu in (0, 1]; 1 is SGLD with this preconditioner.
    temperature : float or callable, default=1.0
        Samples posterior^(1 / temperature); 0 is stochastic gradient descent with momentum and
        RMSprop's scale, which optimises.
    batch_size : int, default=200
        Rows per minibatch.
    replace : bool, default=False
        Draw the rows of a minibatch with replacement.
    share_rows : bool, default=False
        One minibatch serves all chains of a group, in one product, which is several times as fast.
        The noise of minibatches then moves all chains of one mode alike, so it is for chains in
        modes of their own.
    single : bool, default=False
        Compute and keep everything in single precision, which is twice as fast. Roundings are far
        below the injected noise.

    Notes
    -----
    Source: Chen, Fox & Guestrin 2014, Eq. 15, with their noise estimate 0; Wenzel et al. 2020,
    Algorithm 1; math/momentum.md#sghmc. Scales are averaged in burn-in and then frozen. They rise
    where gradients grow, before a step of more than 200 times its length.

    Examples
    --------
    >>> from skbayes_sg.samplers import SGHMC
    >>> SGHMC(step_size=3e-4)
    SGHMC(step_size=0.0003)
    """

    remedy = bias_remedy = "lower step_size"
    refuses_streams = NEEDS_ROWS_AGAIN

    step_size: Schedule | str = "auto"
    damping: float = 0.1
    temperature: Schedule = 1.0
    batch_size: int = 200
    replace: bool = False
    share_rows: bool = False
    single: bool = False

    def validate(self, target: Target) -> None:
        super().validate(target)
        if not is_auto(self.step_size):
            value_at(self.step_size, 0, "step_size", POSITIVE)
        value_at(self.damping, None, "damping", "(0, 1]")
        value_at(self.temperature, 0, "temperature", "[0, inf)")
        require_choice("share_rows", self.share_rows, (True, False))
        require_choice("single", self.single, (True, False))

    @property
    def shares_rows(self) -> bool:
        return bool(self.share_rows)

    # -- motion -------------------------------------------------------------------------------

    def minibatches(self, target: Target, rng: np.random.Generator, n_chains: int) -> Minibatches:
        """A stream of rows for each chain, or one for all."""
        streams = 1 if self.share_rows else n_chains
        return target.minibatches(self.rows_per_step, self.replace, rng, streams)

    def start(self, state: State, target: Target) -> None:
        if self.single:
            state.theta, target = state.theta.astype(np.float32), target.single
        layout, unit = target.posterior.layout("block"), np.empty(target.dim, dtype=np.intp)
        assert isinstance(layout, Partitioned)
        for number, part in enumerate(layout.parts):
            unit[part] = number
        theta, rows = state.theta[:1], rows_of(self._rows(state), 0)
        curvature = target.posterior.curvature(theta, rows, DIAGONAL).diagonal()
        zero, velocity = np.zeros(target.dim, state.theta.dtype), np.zeros_like(state.theta)
        state.memory = _Memory(velocity, curvature.astype(zero.dtype), unit, zero, zero, zero)
        for _ in range(1 if state.rows.full_data else 10):
            self._learn(state.memory, target.grad_estimate(state.theta, self._rows(state)))

    def step(self, state: State, target: Target) -> None:
        memory, step_size = state.memory, self._step_at(state)
        target = target.single if self.single else target
        gradient = target.grad_estimate(state.theta, self._rows(state))
        if memory.adapting or state.t % _LOOK_EVERY == 0:
            self._learn(memory, gradient)
        K = step_size * memory.preconditioner  # the same for all chains of the group
        change = gradient * K
        # momentum makes ten times as much of it, and would throw the chain
        # (math/networks.md#separable-classes)
        if max(change.max(), -change.min()) > 200 * step_size:
            self._learn(memory, gradient)
            K = step_size * memory.preconditioner
            change = gradient * K
        memory.velocity *= 1 - self.damping
        memory.velocity += change
        temperature = value_at(self.temperature, state.t, "temperature", "[0, inf)")
        if temperature > 0:
            injected = change  # which is used up
            state.normals.standard_normal(out=injected, dtype=injected.dtype.type)
            injected *= np.sqrt((2 * temperature * self.damping) * K)
            memory.velocity += injected
        state.theta += memory.velocity
        state.gradient = gradient
        state.t += 1

    def restart(self, state: State, target: Target) -> None:
        state.memory.count = math.sqrt(state.memory.count)

    def freeze(self, state: State, target: Target) -> None:
        state.memory.adapting = False
        state.memory.window = _WINDOW // _LOOK_EVERY

    def draw(self, state: State) -> tuple[NDArray, float]:
        """Weighted by the step taken from the draw, as for SGLD; 0 as a cycle begins."""
        return state.theta, self._step_at(state) * weight_at(self.step_size, state.t)

    def _rows(self, state: State) -> Rows:
        rows = state.rows.draw()
        return np.asarray(rows)[0] if self.share_rows and not state.rows.full_data else rows

    def _learn(self, memory: _Memory, gradient: NDArray) -> None:
        """Average squared gradients over chains and recent steps."""
        memory.count += 1
        square = np.einsum("cd,cd->d", gradient, gradient) / len(gradient)
        recent = memory.recent + (square - memory.recent) / min(memory.count, memory.window)
        memory.recent = recent
        memory.square = recent if memory.adapting else np.maximum(memory.square, recent)
        mean = memory.square + memory.curvature  # as where the posterior is, not only at its mode
        sums, sizes = np.bincount(memory.unit, mean), np.bincount(memory.unit)
        of_unit = np.sqrt(sums / sizes).astype(square.dtype)
        scale = np.sqrt(mean) + of_unit[memory.unit]
        memory.preconditioner = 1 / (scale + 1e-6 * scale.max())  # nothing moves some parameters

    def _step_at(self, state: State) -> float:
        if self.step_size == "auto":
            return 0.01 / math.sqrt(state.rows.noise_factor + 1)
        return value_at(self.step_size, state.t, "step_size", POSITIVE)

    # -- distribution and report ------------------------------------------------------------------

    def run_length(self, state: State) -> RunLength:
        """A pass a draw, or up to four where passes are cheap; burn-in as long as five draws.

        A draw takes a thousand steps at most: a chain forgets in steps, of which a pass over many
        rows has more than it needs (math/momentum.md#sghmc).
        """
        of_a_pass = state.rows.noise_factor + 1
        products = of_a_pass * state.rows.size * state.theta.shape[1]
        passes = min(max(1.0, _CHEAP / products), 4)
        thin = min(max(_FEWEST_STEPS, math.ceil(passes * of_a_pass)), 1000)
        return RunLength(5 * thin, thin)

    def stationary_distribution(self, state: State, target: Target) -> StationaryDistribution:
        """The distribution of a constant step, exact for a Gaussian posterior."""
        if callable(self.step_size) or callable(self.temperature):
            changing = (
                "a step_size or temperature that changes has no stationary distribution; give "
                "numbers"
            )
            return LinearStep(None, unknown=changing)
        K = Diag((self._step_at(state) * state.memory.preconditioner).astype(np.float64))
        temperature = float(self.temperature)
        if temperature == 0:
            return LinearStep(K, damping=self.damping)
        root = (K.inverse() * (2 * temperature * self.damping)).cholesky()
        return LinearStep(K, root, damping=self.damping)
