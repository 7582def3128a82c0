"""Stochastic gradient Langevin dynamics (Welling & Teh 2011)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

from skbayes_sg.data.minibatches import Rows
from skbayes_sg.linalg import DIAGONAL, Diag, Operator
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.samplers.base import Report, RunLength, Sampler
from skbayes_sg.samplers.matrices import given_matrix, is_matrix
from skbayes_sg.samplers.schedules import (
    POSITIVE,
    Schedule,
    is_auto,
    value_at,
    weight_at,
)
from skbayes_sg.samplers.stationary import Linearised, LinearStep, StationaryDistribution
from skbayes_sg.samplers.target import State, Target
from skbayes_sg.validation import require_choice


def clip_by_norm(v: NDArray, c: float) -> NDArray:
    """v min(1, c / ||v||), per chain."""
    norm = np.linalg.norm(v, axis=-1, keepdims=True)
    return v * np.minimum(1.0, c / np.maximum(norm, c))


def clip_by_value(v: NDArray, c: float) -> NDArray:
    """Each component within [-c, c]."""
    return np.clip(v, -c, c)


def scale_to_norm(v: NDArray, c: float) -> NDArray:
    """v c / ||v||, per chain: every gradient gets norm c."""
    norm = np.linalg.norm(v, axis=-1, keepdims=True)
    return np.divide(c * v, norm, out=np.zeros_like(v), where=norm > 0)


CLIPS: dict[str, Callable[[NDArray, float], NDArray]] = {
    "norm": clip_by_norm,
    "value": clip_by_value,
    "scale": scale_to_norm,
}


@dataclass
class _Memory:
    step_size: float | None  # the automatic one
    preconditioner: Operator | None = None
    root: Operator | None = None
    curvature: Diag | None = None  # running average behind the diagonal preconditioner
    count: float = 0.0  # minibatches in it
    adapting: bool = False
    steps: int = 0
    clipped: int = 0
    stiffness: float = 0.0  # behind the automatic step
    prior: NDArray | None = None  # precision under which that was measured
    condition: float = 1.0  # stiffness over the curvature of the slowest direction


@dataclass(eq=False, repr=False)
class SGLD(Sampler):
    """Stochastic gradient Langevin dynamics.

    A small step along the gradient of a minibatch, plus noise of the size that makes the posterior
    the distribution of the chain. Right as the step goes to 0, and slow where curvatures differ.

    ``theta += eta_t P gradient + sqrt(2 temperature eta_t) P^(1/2) z``,  ``z ~ N(0, I)``

    Parameters
    ----------
    step_size : float, callable or "auto", default="auto"
        eta_t, in units of a variance of theta; Welling & Teh's epsilon is 2 eta. "auto" is
        constant, 0.2 / largest eigenvalue of P^(1/2) (curvature + gradient noise) P^(1/2), measured
        at the start and again after burn-in. Stationary variances are then at most 10 % too large.
        Where there is one mode, burn-in and thinning then follow the slowest direction.
    temperature : float or callable, default=1.0
        Samples posterior^(1 / temperature); 0 is stochastic gradient descent. A callable of the
        step index may be large first, to leave local modes, and then 1 (handout, Remark 26).
    preconditioner : None, "diag", array of shape (D,) or (D, D), or callable, default=None
        P, symmetric positive definite. "diag": inverse diagonal of the curvature, averaged in
        burn-in. It is then frozen, so it needs no drift correction. An array is fixed. A callable
        of the step index returns the array of each step, P_t (handout Eq. 3.9); it needs a
        `step_size`.
    clip : tuple (kind, threshold), optional
        Clip the gradient; kind is "norm", "value" or "scale" (handout, Remark 36 with
        math/errata.md#e25). Clipping truncates the posterior, and the fit warns if it changed the
        gradient in more than 1 % of the kept steps.
    batch_size : int, default=500
        Rows per minibatch. With no more rows than this each step uses all of them.
    replace : bool, default=False
        Draw the rows of a minibatch with replacement.
    variance_reduction : {None, "control_variate"}, default=None
        "control_variate": gradients corrected by those at an anchor near the posterior mean
        (math/control_variates.md#control-variates). They have less noise and allow longer steps.

    Notes
    -----
    Under a decreasing step, a draw is weighted by the step taken from it (handout Eq. 3.8). The
    estimators' means and predictions use these weights. Handout Eq. 3.2 prints sqrt(eta tau), which
    has half the variance (math/errata.md#e21). The distribution at a constant step, with eps = 2
    eta and gradient noise M, is ``Sigma = F Sigma F + eps I + eps^2/4 M``, F = I - eps Lam / 2
    (math/sgld.md#sgld, math/errata.md#e3).

    Examples
    --------
    >>> from skbayes_sg.samplers import SGLD, PolynomialDecay
    >>> decay = PolynomialDecay(a=1.0, b=1000.0, power=1 / 3)
    >>> SGLD(step_size=decay, clip=("norm", 1e3)).temperature
    1.0
    """

    remedy = bias_remedy = "lower step_size"

    step_size: Schedule | str = "auto"
    temperature: Schedule = 1.0
    preconditioner: str | ArrayLike | Callable[[int], ArrayLike] | None = None
    clip: tuple[str, float] | None = None
    batch_size: int = 500
    replace: bool = False
    variance_reduction: str | None = None

    # -- parameters ---------------------------------------------------------------------------

    def validate(self, target: Target) -> None:
        super().validate(target)
        require_choice("variance_reduction", self.variance_reduction, (None, "control_variate"))
        if not is_auto(self.step_size):
            value_at(self.step_size, 0, "step_size", POSITIVE)
        value_at(self.temperature, 0, "temperature", "[0, inf)")
        if self.clip is not None:
            if not isinstance(self.clip, tuple) or len(self.clip) != 2:
                raise ValueError(f"clip must be a pair (kind, threshold), got {self.clip!r}")
            require_choice("the kind of clip", self.clip[0], sorted(CLIPS))
            value_at(self.clip[1], None, "the threshold of clip", POSITIVE)
        if is_matrix(self.preconditioner) or callable(self.preconditioner):
            self._given_preconditioner(0, target.dim)
            if callable(self.preconditioner) and self.step_size == "auto":
                raise ValueError(
                    'step_size="auto" is that of one preconditioner; give a step_size, a number or '
                    "a callable, with a callable preconditioner"
                )
        else:
            require_choice("preconditioner, if no array,", self.preconditioner, (None, "diag"))

    @property
    def refuses_streams(self) -> str:
        if self.step_size == "auto":
            return "needs a step_size with partial_fit, a number or a callable"
        return super().refuses_streams

    # -- motion -------------------------------------------------------------------------------

    def start(self, state: State, target: Target) -> None:
        memory = state.memory = _Memory(None)
        if is_matrix(self.preconditioner) or callable(self.preconditioner):
            memory.preconditioner = self._given_preconditioner(state.t, target.dim)
            memory.root = memory.preconditioner.cholesky()
        elif self.preconditioner == "diag":
            memory.curvature, memory.adapting = Diag(np.zeros(target.dim)), True
            for _ in range(1 if state.rows.full_data else 10):
                self._learn(state, target, state.rows.draw())
        if self.step_size == "auto":
            self._choose_step(state, target)

    def step(self, state: State, target: Target) -> None:
        memory = state.memory
        rows = state.rows.draw()
        gradient = target.grad_estimate(state.theta, rows)
        if memory.adapting:
            self._learn(state, target, rows)

        if callable(self.preconditioner):
            memory.preconditioner = self._given_preconditioner(state.t, target.dim)
            memory.root = memory.preconditioner.cholesky()

        force = gradient
        if self.clip is not None:
            kind, threshold = self.clip
            force = CLIPS[kind](gradient, threshold)
            memory.steps += 1
            memory.clipped += not np.array_equal(force, gradient)
        eta = self._eta(state)
        temperature = value_at(self.temperature, state.t, "temperature", "[0, inf)")
        P = memory.preconditioner
        state.theta += eta * (force if P is None else P.matvec(force))
        if temperature > 0:
            z = state.normals.standard_normal(state.theta.shape)
            injected = z if memory.root is None else memory.root.matvec(z)
            state.theta += math.sqrt(2.0 * temperature * eta) * injected
        state.gradient = gradient
        state.t += 1

    def restart(self, state: State, target: Target) -> None:
        state.memory.count = math.sqrt(state.memory.count)

    def freeze(self, state: State, target: Target) -> None:
        memory = state.memory
        memory.adapting = False
        memory.steps = memory.clipped = 0
        if self.step_size == "auto":
            self._choose_step(state, target)

    def change_prior(self, state: State, target: Target) -> None:
        """Update the automatic step, by an upper bound of the new largest eigenvalue."""
        memory = state.memory
        if self.step_size == "auto":
            added = target.prior.curvature(state.theta).diagonal() - memory.prior
            if memory.preconditioner is not None:
                added = memory.preconditioner.matvec(added[None])[0]
            memory.step_size = 0.2 / (memory.stiffness + max(0.0, added.max()))

    def draw(self, state: State) -> tuple[NDArray, float]:
        """Weighted by the step taken from the draw (handout Eq. 3.8); 0 as a cycle begins."""
        return state.theta, self._eta(state) * weight_at(self.step_size, state.t)

    def _eta(self, state: State) -> float:
        if self.step_size == "auto":
            return state.memory.step_size
        return value_at(self.step_size, state.t, "step_size", POSITIVE)

    def _given_preconditioner(self, t: int, dim: int) -> Operator:
        P = self.preconditioner
        if callable(P):
            return given_matrix(f"preconditioner({t})", P(t), dim)
        return given_matrix("preconditioner", P, dim)

    # -- averages and the automatic step ------------------------------------------------------

    def _learn(self, state: State, target: Target, rows: Rows) -> None:
        memory = state.memory
        memory.count += 1
        if target.anchor is None:
            curvature = target.posterior.curvature(state.theta, rows, DIAGONAL)
        else:
            curvature = Diag(target.anchor.curvature.diagonal())
        memory.curvature.blend(curvature, 1 / memory.count)
        memory.preconditioner = memory.curvature.inverse()
        memory.root = memory.preconditioner.cholesky()

    def _choose_step(self, state: State, target: Target) -> None:
        """A step by the largest eigenvalue of P (curvature + gradient noise) at the present point.

        Where there are many modes, or too many parameters for a matrix, the slowest direction is
        not looked for.
        """
        memory = state.memory
        P, linearised = memory.preconditioner, Linearised(state, target)

        def product(v: NDArray) -> NDArray:
            out = linearised.curvature(v) + linearised.noise(v)
            return out if P is None else P.matvec(out)

        memory.stiffness = largest = linearised.largest(product)
        memory.step_size = 0.2 / memory.stiffness
        memory.prior = target.prior.curvature(state.theta).diagonal()
        if target.posterior.one_mode and has_matrix(target.dim):
            Lam, scale = linearised.curvature_matrix(), None if P is None else P.inverse().dense()
            least = eigh(Lam, scale, eigvals_only=True, subset_by_index=[0, 0])[0]
            memory.condition = max(1.0, largest / max(least, largest * 1e-12))  # of rounding

    # -- distribution and report ------------------------------------------------------------------

    def run_length(self, state: State) -> RunLength:
        """Run of an automatic step: five relaxation times of the slowest direction, a tenth a draw.

        A relaxation time is 5 `condition` steps. A draw takes 100 steps at most.
        """
        auto = super().run_length(state)
        if self.step_size != "auto":
            return auto
        thin = min(100, max(auto.thin, math.ceil(state.memory.condition / 2)))
        return RunLength(max(auto.burn_in, 50 * thin), thin)

    def stationary_distribution(self, state: State, target: Target) -> StationaryDistribution:
        """Distribution of a constant step; of schedules and clipped steps nothing is known."""
        if self.clip is not None:
            why = "clipped gradients have no stationary distribution in closed form; set clip=None"
            return LinearStep(None, unknown=why)
        changing = (
            "a step_size, temperature or preconditioner that changes has no stationary "
            "distribution; give numbers"
        )
        if callable(self.step_size) or callable(self.preconditioner):
            return LinearStep(None, unknown=changing)
        eta, P = self._eta(state), state.memory.preconditioner or Diag(np.ones(target.dim))
        if callable(self.temperature):
            return LinearStep(P * eta, unknown=changing)
        stable = self.step_size == "auto"
        if not self.temperature > 0:
            return LinearStep(P * eta, stable=stable)
        W = P.inverse() * (2 * self.temperature / eta)
        return LinearStep(P * eta, W.cholesky(), stable=stable)

    def report(self, state: State) -> Report:
        report, memory = super().report(state), state.memory
        if memory.clipped > 0.01 * memory.steps:
            share = memory.clipped / memory.steps
            report.warnings.append(
                f"SGLD clipped the gradient in {share:.0%} of the kept steps, which truncates the "
                "posterior; raise the clip threshold, or set clip=None and lower step_size"
            )
        return report
