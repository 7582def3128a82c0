"""Underdamped Langevin dynamics with control variates (Leimkuhler & Matthews 2013)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skbayes_sg import theory
from skbayes_sg.linalg import Dense, Diag, Operator, stored
from skbayes_sg.samplers.base import Report, RunLength, Sampler
from skbayes_sg.samplers.schedules import Schedule, is_auto, value_at, weight_at
from skbayes_sg.samplers.target import State, Target

STEEP_COLUMN = 50.0  # column steepness above which walls bias the sds of single parameters
_SMALL_CHANGE = 0.01  # of a scheduled alpha, or of a prior precision, without a new factorisation
_ALPHAS = "(0, 1e6]"  # at 0 control variates leave too little noise to sample with
_GENTLE = 2.0  # steepness up to which minibatches and long steps are right


@dataclass
class UnderdampedMemory:
    """Velocities, what the operators of the step are made of, and the operators."""

    velocity: NDArray  # (chains, D), in single precision
    noise: Operator | None  # covariance of the gradient of one row; None if a step takes all rows
    prior: Diag  # diagonal of the curvature of the prior
    figures: dict[str, float]  # of the anchor
    alpha: float = 0.0  # of the present operators
    time_step: float = 1.0  # delta = 2 / sqrt(1 + alpha^2)
    persistence: float = 0.0  # c = exp(-delta)
    preconditioner: Operator | None = None  # G
    noise_root: Operator | None = None  # a square root of the covariance of eta


@dataclass(eq=False, repr=False)
class UnderdampedLangevin(Sampler):
    """Underdamped Langevin dynamics whose gradients have control variates.

    The default of logistic regression, and `sampler="underdamped_langevin"`, which is refused where
    control variates gain nothing. The gradient of all rows is expanded to second order at an
    anchor near the posterior mean. A minibatch adds what is not linear, from rows drawn in
    proportion to its size, which all chains of a group share. So next to no noise is left, and the
    step needs no noise that matches it.

    ``v += delta G gradient``,  ``theta += delta/2 v``,  ``v = c v + eta``,  ``theta += delta/2 v``

    The mass matrix G^-1 is the curvature at the anchor plus the gradient noise, c is exp(-delta),
    and delta is 2 / sqrt(1 + alpha^2). The splitting is BAOAB. For a Gaussian posterior the
    distribution of theta is exact for every step size, minibatch noise included.

    Parameters
    ----------
    alpha : float, callable or "auto", default="auto"
        Sets the step. A larger one follows a steeper posterior. Refused where the gradient is more
        than (1 + alpha^2) / 2 times as steep as at the anchor. A callable of the step index
        anneals, and a draw is then weighted by the step taken from it. "auto": by the steepness of
        the posterior, 3 ** .5 where it is near Gaussian.
    batch_size : int or "auto", default="auto"
        Rows per minibatch. "auto": 32, or 32 kappa if the noise number kappa is above 1, or all
        rows of the pool on a steep posterior.
    replace : bool, default=False
        Draw the rows of a minibatch with replacement.

    Notes
    -----
    Source: Leimkuhler & Matthews 2013 (the splitting); Baker et al. 2019 (control variates);
    math/control_variates.md#the-step-with-momentum, math/control_variates.md#control-variates,
    math/control_variates.md#steepness.

    Examples
    --------
    >>> from skbayes_sg.samplers import UnderdampedLangevin
    >>> UnderdampedLangevin(batch_size=100)
    UnderdampedLangevin(batch_size=100)
    """

    variance_reduction = "control_variate"
    remedy = "raise alpha or batch_size"
    bias_remedy = "raise alpha"
    remedy_of_default = 'use sampler="hmc"'
    shares_rows = True
    follows_coordinates = True
    steepest_column = STEEP_COLUMN  # above, HMC runs

    alpha: Schedule | str = "auto"
    batch_size: int | str = "auto"
    replace: bool = False

    # -- parameters ---------------------------------------------------------------------------

    def validate(self, target: Target) -> None:
        super().validate(target)
        if not is_auto(self.alpha):
            value_at(self.alpha, 0, "alpha", _ALPHAS)

    def _alpha_at(self, t: int) -> float:
        if callable(self.alpha):
            return value_at(self.alpha, t, "alpha", _ALPHAS)
        return float(self.alpha)

    def refusal(self, target: Target) -> str | None:
        """Why the posterior is too far from Gaussian for control variates, or steps of one length.

        Source: math/control_variates.md#noise-number, math/control_variates.md#steepness.
        """
        anchor = target.anchor
        assert anchor is not None
        if anchor.far_from_mode is not None:
            return anchor.far_from_mode
        alpha = None if self.alpha == "auto" else self._alpha_at(0)
        # A step overshoots where the gradient is more than (1 + alpha^2) / 2 times as steep as at
        # the anchor. Above 20 single walls of the posterior bias any; Metropolis steps they do not.
        steepest = 20.0 if alpha is None else (1 + alpha**2) / 2
        if not anchor.steepness <= steepest:
            return (
                "the posterior is too far from Gaussian for control variates: its gradient is up "
                f"to {anchor.steepness:.1f} times as steep as at the anchor, above {steepest:.3g}"
            )
        if alpha is None and anchor.column_steepness > STEEP_COLUMN:
            return (
                "the posterior is too far from Gaussian for control variates: along the line of a "
                f"coefficient its gradient is up to {anchor.column_steepness:.0f} times as steep "
                f"as at the anchor, above {STEEP_COLUMN:g}, as where a rare level has one class "
                "only"
            )
        # From a noise number of a sixtieth of the rows on, minibatches are nearly all of them, and
        # Metropolis steps mix the log precision better.
        most = max(5.0, anchor.pool_size / 60)
        is_gentle = anchor.steepness <= _GENTLE and anchor.noise_number <= most
        if target.sampled is not None and not is_gentle:
            return (
                "the posterior is too far from Gaussian for steps of one length in the funnel of a "
                f"sampled precision: steepness {anchor.steepness:.1f}, noise number "
                f"{anchor.noise_number:.1f}"
            )
        if target.scale_move is not None:
            return "steps of one length mix the coordinates of a prior precision slowly"
        return None

    def resolve_auto(self, target: Target) -> str:
        """Choose alpha and batch_size if they are "auto"."""
        anchor = target.anchor
        assert anchor is not None
        gentle = anchor.steepness <= _GENTLE
        if self.alpha == "auto":
            # a linear force, however stiff, is integrated exactly: what counts is the slope beyond
            nonlinear = anchor.steepness / anchor.stiffness
            self.alpha = math.sqrt(max(3.0, 3 * nonlinear - 1, 2 * anchor.steepness - 1))
        if self.batch_size == "auto":
            self.batch_size = anchor.batch_size if gentle else anchor.pool_size
        self.batch_size = min(int(self.batch_size), anchor.pool_size)
        short = "" if gentle else "; short steps of all rows"
        return f" (noise number {anchor.noise_number:.2g}, steepness {anchor.steepness:.2g}{short})"

    # -- motion -------------------------------------------------------------------------------

    def start(self, state: State, target: Target) -> None:
        """Chains at rest, with curvature and noise from the anchor."""
        anchor = target.anchor
        assert anchor is not None
        state.memory = UnderdampedMemory(
            velocity=np.zeros(state.theta.shape, np.float32),
            # to measure that of the rows of a whole pool would take a D x D product of them
            noise=None if state.rows.full_data else anchor.noise,
            prior=Diag(target.prior.curvature(anchor.theta).diagonal()),
            figures=anchor.figures,
        )
        self._refresh(state, target)

    def step(self, state: State, target: Target) -> None:
        """One step of BAOAB, with the gradient at the present point."""
        memory = state.memory
        if callable(self.alpha):
            alpha = self._alpha_at(state.t)
            if abs(alpha - memory.alpha) > _SMALL_CHANGE * memory.alpha:
                self._refresh(state, target)
        gradient = target.grad_estimate(state.theta, state.rows.draw())
        delta, c = memory.time_step, memory.persistence
        velocity = memory.preconditioner.matvec(gradient.astype(np.float32, copy=False))
        velocity *= delta
        velocity += memory.velocity
        normals = state.normals.standard_normal(state.theta.shape, dtype=np.float32)
        injected = memory.noise_root.matvec(normals)
        # the two drifts are one: delta/2 v + delta/2 (c v + eta)
        drift = (0.5 * delta * (1 + c)) * velocity
        drift += (0.5 * delta) * injected
        state.theta = state.theta + drift
        velocity *= c
        velocity += injected
        memory.velocity, state.gradient = velocity, gradient
        state.t += 1

    def change_prior(self, state: State, target: Target) -> None:
        """Make new operators, unless all precisions moved by less than 1 %."""
        theta = target.coordinates.inverse_transform(state.theta)
        prior = Diag(target.prior.curvature(theta).diagonal())
        old, new = state.memory.prior.diagonal(), prior.diagonal()
        if (np.abs(new - old) > _SMALL_CHANGE * old).any():
            state.memory.prior = prior
            self._refresh(state, target)

    def draw(self, state: State) -> tuple[NDArray, float]:
        """The points; those of the first part of a cycle have weight 0."""
        return state.theta, weight_at(self.alpha, state.t) if callable(self.alpha) else 1.0

    # -- the operators ------------------------------------------------------------------------

    def _refresh(self, state: State, target: Target) -> None:
        """The operators of the step, for the present alpha and prior."""
        memory, anchor = state.memory, target.anchor
        assert anchor is not None
        memory.alpha = self._alpha_at(state.t)
        memory.time_step = 2.0 / math.sqrt(1.0 + memory.alpha**2)
        memory.persistence = math.exp(-memory.time_step)
        M, c = memory.noise, state.rows.noise_factor
        M = None if M is None else M * (c * target.n_total)
        G, W = operators(anchor.curvature, M, memory.time_step)
        memory.preconditioner = stored(G, np.float32)
        memory.noise_root = stored(W.cholesky(), np.float32)

    # -- distribution and report ------------------------------------------------------------------

    def run_length(self, state: State) -> RunLength:
        """For an autocorrelation time of some 2 / delta steps, within bounds.

        A steep posterior gets fewer effective draws, not a longer run.
        """
        delta = 2.0 / math.sqrt(1.0 + self._alpha_at(0) ** 2)
        return RunLength(min(math.ceil(25 / delta), 400), min(math.ceil(1.5 / delta), 12))

    def stationary_distribution(self, state: State, target: Target) -> UnderdampedStep:
        """The distribution of the present step."""
        memory = state.memory
        return UnderdampedStep(
            memory.preconditioner, memory.noise_root, memory.time_step, memory.persistence
        )

    def report(self, state: State) -> Report:
        """Also the figures of the anchor. One minibatch serves all chains."""
        return Report(state.t * state.rows.size, state.memory.figures, [])


@dataclass(frozen=True)
class UnderdampedStep:
    """``v += delta G gradient``, BAOAB's drifts around ``v = c v + eta``; always stable.

    Attributes
    ----------
    G : Operator
    root : Operator
        A square root of the covariance of eta.
    delta, c : float
    """

    G: Operator
    root: Operator
    delta: float
    c: float

    def covariance(self, Lam: NDArray, M: NDArray) -> NDArray:
        G, root = self.G.dense(), self.root.dense()
        return theory.underdamped_cov(Lam, M, G, root @ root.T, self.delta, self.c)


def operators(Lam: Operator, M: Operator | None, delta: float) -> tuple[Operator, Operator]:
    """G = (Lam + M)^-1 and the covariance of eta under which Lam^-1 is stationary.

    It is (1 - c^2) [G - k G M (4 (Lam + M) - delta^2 Lam)^-1], k = delta^2 (1 + c) / (1 - c). M is
    the noise of the gradient, None if there is none. Source:
    math/control_variates.md#the-step-with-momentum.
    """
    c = math.exp(-delta)
    keep = 1.0 - c * c
    if M is None:
        G = Lam.inverse()
        return G, G * keep
    G = (Lam + M).inverse()
    inverse = (M * 4.0 + Lam * (4.0 - delta**2)).inverse()
    k = delta**2 * (1.0 + c) / (1.0 - c)
    if isinstance(Lam, Diag):  # and so is M
        return G, Diag(keep * (G.diagonal() - k * G.diagonal() * M.diagonal() * inverse.diagonal()))
    lost = G.dense() @ M.dense() @ inverse.dense()
    return G, Dense(keep * (G.dense() - 0.5 * k * (lost + lost.T)))
