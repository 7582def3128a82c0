"""The base of SGFS and constant SGD: matrices measured in burn-in, and a linear step from them."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data.minibatches import Rows, rows_of
from skbayes_sg.linalg import Layout, Operator, RotatedDiagonal, Rotation
from skbayes_sg.linalg.scores import Scores
from skbayes_sg.samplers.base import Report, Sampler
from skbayes_sg.samplers.schedules import value_at
from skbayes_sg.samplers.stationary import LinearStep
from skbayes_sg.samplers.target import State, Target
from skbayes_sg.validation import require_choice


@dataclass
class OverSteps:
    """Noise of minibatches of one row: scores of successive steps around their running mean.

    A score is its mean at theta plus gradient noise. The mean moves with theta, which adds about
    I1 / c, c = N - 1 the noise factor, to the estimate
    (math/gradient_noise.md#minibatches-of-one-row).
    """

    mean: NDArray
    """Running mean of the scores, (D,)."""
    scale: float
    """I1 over the covariance of one score about its mean at theta, N / c."""
    spread: float = 1.0
    """Variance of the running mean over that of one score: 1 / t after t scores."""

    def covariance(self, score: NDArray, layout: Layout) -> Operator:
        """Unbiased I1 from the next score (1, D), which then enters the mean."""
        deviation = score - self.mean
        weight = self.spread / (1.0 + self.spread)
        self.mean = self.mean + weight * deviation[0]
        self.spread = weight
        return layout.outer(deviation) * (self.scale * (1.0 - weight))

    def forget(self) -> None:
        """Keep the square root of the number of scores in the mean."""
        self.spread = math.sqrt(self.spread)


@dataclass
class Memory:
    """Running averages and the operators of the step, and what single samplers keep beside them."""

    layout: Layout
    I1: Operator = field(init=False)  # running average of the score covariance of one row
    fisher: Operator | None = field(init=False)  # that of the model Fisher of one row
    prior: Operator = field(init=False)  # that of the prior's curvature
    count: float = 1.0  # minibatches in the averages
    n_measured: int = 0  # measurements so far
    learnt: int = 0  # those after the start
    over_steps: OverSteps | None = None  # the noise of minibatches of one row
    adapting: bool = True
    preconditioner: Operator | None = None  # K
    noise_root: Operator | None = None  # a square root of W; None without injection
    radius: float = 0.0  # largest spectral radius at start and freeze; 0 if always stable
    alpha: float = 0.0  # of SGFS, of the present operators
    longest: NDArray | None = None  # change of a parameter by the gradient alone, (D,)
    step: float = 1.0  # K of an annealed alpha over 2 P^-1, mean over the coordinates
    noiseless: int = 0  # directions without noise of any kind, of constant steps
    velocity: NDArray | float = 0.0  # of steps with momentum
    window: Any = None  # of averaged iterates


class PreconditionedSampler(Sampler):
    """``theta += K (gradient + eta)``, ``eta ~ N(0, W)``, with K and W from measured matrices.

    A subclass writes the two operators. Curvature and gradient noise are averaged over minibatches
    in burn-in, with weights 1/t or those of the user (Ahn et al. 2012, Eq. 12), and then frozen.
    The distribution of the frozen chain is that of `theory.stationary_cov`.
    """

    structure: str
    refresh_every: int | str = "auto"
    covariance: str = "minibatch"
    kappa: Callable[[int], float] | None = None

    @abstractmethod
    def _operators(self, state: State, target: Target) -> tuple[Operator, Operator | None]:
        """K and a square root of W from the averages in ``state.memory``."""

    def _burn_in_operators(self, state: State, target: Target) -> tuple[Operator, Operator | None]:
        """The same in burn-in; by default they do not differ."""
        return self._operators(state, target)

    def validate(self, target: Target) -> None:
        super().validate(target)
        require_choice("covariance", self.covariance, ("minibatch", "single_row"))
        if self.covariance == "single_row" and self.rows_per_step == 1:
            raise ValueError(
                'covariance="single_row" compares a row with its minibatch, which must have 2 rows '
                'or more; leave covariance at "minibatch", and one row is compared with the steps '
                "before"
            )

    # -- motion -------------------------------------------------------------------------------

    def start(self, state: State, target: Target) -> None:
        """Average over enough minibatches at the initial points for full rank.

        Source: math/gradient_noise.md#too-few-scores-for-a-matrix.
        """
        self._average_afresh(state, target)
        self.refresh(state, target)
        state.memory.radius = self._radius(state, target)

    def step(self, state: State, target: Target) -> None:
        memory = state.memory
        rows = state.rows.draw()
        scores = target.posterior.scores(state.theta, rows)
        gradient = target.posterior.gradient(state.theta, scores)
        spread = scores.n_rows > 1 or memory.over_steps is not None  # the last part of a chunk
        if memory.adapting and spread and state.t % self._period(target) == 0:
            memory.learnt += 1
            weight = None
            if self.kappa is not None:
                weight = value_at(self.kappa, memory.learnt, "kappa", "(0, 1]")
            self._learn(state, target, rows, scores, weight)
            self.refresh(state, target)
        else:
            self._follow_schedule(state, target)

        force = gradient
        if memory.noise_root is not None:
            normals = state.normals.standard_normal(state.theta.shape)
            force = gradient + memory.noise_root.matvec(normals)
        self._move(state, memory.preconditioner.matvec(force))
        state.gradient = gradient
        state.t += 1

    def _move(self, state: State, change: NDArray) -> None:
        state.theta += change

    def _follow_schedule(self, state: State, target: Target) -> None:
        """Rebuild the operators if they follow a schedule."""

    def restart(self, state: State, target: Target) -> None:
        """Forget averages from far out, by the square root of their number of minibatches.

        So they soon lose their weight (math/gradient_noise.md#scores-during-burn-in).
        Averages along Kronecker eigenvectors start anew, along new eigenvectors. With `kappa` the
        user says how fast averages forget.
        """
        if self.kappa is not None:
            return
        if self.structure == "kron":
            self._average_afresh(state, target)
            self.refresh(state, target)
        else:
            state.memory.count = math.sqrt(state.memory.count)
            if state.memory.over_steps is not None:
                state.memory.over_steps.forget()

    def freeze(self, state: State, target: Target) -> None:
        state.memory.adapting = False
        self.refresh(state, target)
        state.memory.radius = max(state.memory.radius, self._radius(state, target))

    def unfreeze(self, state: State) -> None:
        """Adapt again, for a second burn-in from the present points."""
        state.memory.adapting = True

    def change_prior(self, state: State, target: Target) -> None:
        """Make new operators, unless all precisions moved by less than 1 %."""
        theta = target.coordinates.inverse_transform(state.theta)
        prior = state.memory.layout.keep(target.prior.curvature(theta))
        old, new = state.memory.prior.diagonal(), prior.diagonal()
        if (np.abs(new - old) > 0.01 * old).any():
            state.memory.prior = prior * 1.0
            self.refresh(state, target)

    def refresh(self, state: State, target: Target) -> None:
        """Make the operators of the step from the averages and the present parameters.

        Raises
        ------
        FloatingPointError
            If the chain has diverged.
        """
        if not np.isfinite(state.theta).all():
            raise FloatingPointError(f"{self} diverged by step {state.t}; {self.advice}")
        operators = self._burn_in_operators if state.memory.adapting else self._operators
        state.memory.preconditioner, state.memory.noise_root = operators(state, target)

    # -- averages -----------------------------------------------------------------------------

    def _period(self, target: Target) -> int:
        """Steps between two measurements, more for larger matrices.

        A measurement of a diagonal costs about one step.
        """
        if self.refresh_every != "auto":
            return int(self.refresh_every)
        if self.covariance == "single_row":
            return 1
        period = max(1, target.dim // 40)
        if self.structure in ("full", "block"):
            return period
        return min(period, 20 if self.structure == "kron" else 10)

    def _average_afresh(self, state: State, target: Target) -> None:
        layout = self._layout(state, target)
        over_steps = None
        if state.rows.size <= 1:  # the second score is compared with the first
            score = target.posterior.scores(state.theta, state.rows.draw()).total()[0]
            c = state.rows.noise_factor
            over_steps = OverSteps(score, target.n_total / c if c > 0 else 0.0)
        rows = state.rows.draw()
        scores = target.posterior.scores(state.theta, rows)
        memory = state.memory = Memory(layout, over_steps=over_steps)
        memory.I1, memory.fisher, memory.prior = self._measure(state, target, rows, scores)
        if not state.rows.full_data:
            rank = state.rows.size if self.covariance == "minibatch" else 1  # of a measurement
            enough = math.ceil(5 * target.dim / rank)
            for _ in range(min(enough, 10) if layout.diagonal else enough):
                rows = state.rows.draw()
                self._learn(state, target, rows, target.posterior.scores(state.theta, rows))

    def _layout(self, state: State, target: Target) -> Layout:
        if self.structure == "kron":
            return RotatedDiagonal(self._eigenbasis(state, target))
        structure = "diag" if self.structure in ("scalar", "sqrt") else self.structure
        return target.posterior.layout(structure)

    def _eigenbasis(self, state: State, target: Target) -> Rotation:
        """Eigenvectors of the model Fisher's Kronecker factors, from 20 rows a unit or feature.

        With fewer, single rows decide them.
        """
        total: list[list[tuple[NDArray | None, NDArray | None]]] = []
        while True:
            chain = len(total) % len(state.theta)
            theta = state.theta[chain : chain + 1]
            fisher = target.posterior.fisher(theta, rows_of(state.rows.draw(), chain))
            total.append(fisher.kronecker_factors())
            enough = 20 * max(map(max, fisher.shapes))
            if state.rows.full_data or len(total) * state.rows.size >= enough:
                break
        bases = []
        for of_block in zip(*total, strict=True):
            sides = zip(*of_block, strict=True)
            left, right = (None if A[0] is None else np.linalg.eigh(sum(A))[1] for A in sides)
            bases.append((left, right))
        return Rotation(bases, fisher.shapes)

    def _measure(
        self, state: State, target: Target, rows: Rows, scores: Scores
    ) -> tuple[Operator, Operator | None, Operator]:
        """Score covariance and model Fisher of one row, and the prior's curvature.

        The first two come from the minibatch of one chain. The chains of a group take turns: their
        minibatches are equally good, and one at a time spreads the average over more of the path.
        """
        layout, chain = state.memory.layout, state.memory.n_measured % len(state.theta)
        I1 = self._noise(state, scores.of_chain(chain), layout, state.memory.over_steps)
        prior = layout.keep(target.prior.curvature(state.theta)) * 1.0  # averaged in place
        theta = state.theta[chain : chain + 1]
        return I1, self._fisher(target, theta, rows_of(rows, chain), layout), prior

    def _noise(
        self, state: State, scores: Scores, layout: Layout, over_steps: OverSteps | None
    ) -> Operator:
        """Score covariance of one row: from all rows, from one of them at random, or over steps."""
        if over_steps is not None:
            return over_steps.covariance(scores.total(), layout)
        if self.covariance == "minibatch":
            return scores.covariance(layout)
        return scores.single_row_covariance(layout, int(state.normals.integers(scores.n_rows)))

    def _fisher(
        self, target: Target, theta: NDArray, rows: Rows, layout: Layout
    ) -> Operator | None:
        fisher = target.posterior.fisher(theta, rows, layout)
        return fisher.moment(layout) * (1.0 / fisher.n_rows)

    def _learn(
        self,
        state: State,
        target: Target,
        rows: Rows,
        scores: Scores,
        weight: float | None = None,
    ) -> None:
        """I1 <- (1 - kappa) I1 + kappa V, and the same for the curvatures (Ahn Eq. 12).

        kappa is `weight`, or 1/t for the t-th measurement.
        """
        memory = state.memory
        memory.n_measured += 1
        measured = self._measure(state, target, rows, scores)
        memory.count += 1
        averages = (memory.I1, memory.fisher, memory.prior)
        for average, new in zip(averages, measured, strict=True):
            if average is not None and new is not None:
                average.blend(new, 1 / memory.count if weight is None else weight)

    def _noise_and_curvature(self, state: State, target: Target) -> tuple[Operator, Operator]:
        """M = c N I1, and Lam, the model Fisher of all rows plus the prior's curvature.

        Raises
        ------
        FloatingPointError
            If they overflow.
        """
        memory, N = state.memory, target.n_total
        M, Lam = memory.I1 * (state.rows.noise_factor * N), memory.fisher * N + memory.prior
        if not (np.isfinite(M.diagonal()).all() and np.isfinite(Lam.diagonal()).all()):
            raise FloatingPointError(
                f"{self}: curvature or gradient noise overflows; scale the columns of X, or divide "
                "the weights by a constant"
            )
        return M, Lam

    # -- distribution and report ------------------------------------------------------------------

    def stationary_distribution(self, state: State, target: Target) -> LinearStep:
        memory = state.memory
        return LinearStep(memory.preconditioner, memory.noise_root, stable=self._always_stable())

    def _radius(self, state: State, target: Target) -> float:
        return self.stationary_distribution(state, target).spectral_radius(state, target)

    def _always_stable(self) -> bool:
        """Whether K is 2 (Lam + SPD)^-1 with the full Lam, so that K Lam < 2.

        Source: math/stationary.md#the-exact-step.
        """
        return False

    def report(self, state: State) -> Report:
        report = super().report(state)
        radius = state.memory.radius
        if radius >= 1.0:
            report.warnings.append(
                f"the linear part of the step of {self} is unstable at its last points (spectral "
                f"radius {radius:.2f}, not below 1); {self.advice}"
            )
        return report
