"""What SGFS, constant SGD and their kin share: matrices measured on the way, and the linear step made of them."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skbayes_sg import theory
from skbayes_sg.linalg import Diag, Layout, Operator, Rotation
from skbayes_sg.samplers.base import Linearised, Sampler, State, rows_of

_DIAGONAL_START = 10  # minibatches
_DIAGONAL_PERIOD = 10  # steps
_ROWS_OF_BASIS = 20  # per unit or feature: eigenvectors from fewer rows let single rows throw the chain
_SMALL_CHANGE = 0.01  # of a prior precision, for which matrices are not factorised again


@dataclass
class Memory:
    """Running averages and the operators of the step."""

    layout: Layout
    noise: Operator  # I1: running average of the score covariance of one row
    curvature: Operator | None  # running average of the model Fisher of one row
    prior: Diag  # running average of the prior's curvature
    count: float = 1.0  # minibatches in the averages
    turn: int = 0  # measurements so far
    adapting: bool = True
    gain: Operator | None = None  # K
    kick: Operator | None = None  # a square root of the injected covariance W, None without injection
    radius: float = 0.0  # spectral radius at the start or at the freeze, where it is not known to be below 1


class PreconditionedSampler(Sampler):
    """``theta += K (gradient + eta)``, ``eta ~ N(0, W)``: a subclass makes K and W from what is measured.

    Curvature and gradient noise are averaged over minibatches in burn-in, with weights 1/t (Ahn et al. 2012,
    Eq. 12), and frozen with it: then the chain's law is that of `theory.stationary_cov`.
    """

    structure: str
    block_size: int | None = None
    refresh_every: int | str = "auto"
    memory_type: type[Memory] = Memory

    @abstractmethod
    def _operators(self, state: State, posterior) -> tuple[Operator, Operator | None]:
        """K and W from the averages in ``state.memory``."""

    def _burn_in_operators(self, state: State, posterior) -> tuple[Operator, Operator | None]:
        """The same while matrices are still learnt."""
        return self._operators(state, posterior)

    # -- the update -------------------------------------------------------------------------------

    def step(self, state: State, posterior) -> None:
        memory = state.memory
        rows = state.rows.draw()
        scores = posterior.scores(state.theta, rows)
        gradient = posterior.gradient(state.theta, scores)
        if memory.adapting and state.t % self._period(posterior) == 0:
            self._learn(state, posterior, rows, scores)
            self.refresh(state, posterior)
        else:
            self._follow_schedule(state, posterior)

        force = gradient
        if memory.kick is not None:
            force = gradient + memory.kick.matvec(state.noise.standard_normal(state.theta.shape))
        self._move(state, memory.gain.matvec(force))
        state.gradient = gradient
        state.t += 1

    def _move(self, state: State, push: NDArray) -> None:
        state.theta += push

    def _follow_schedule(self, state: State, posterior) -> None:
        """Rebuild the operators where they follow a schedule."""

    def _period(self, posterior) -> int:
        """A measurement of a diagonal costs about one step; that of a matrix the more the larger it is."""
        if self.refresh_every != "auto":
            return int(self.refresh_every)
        period = max(1, posterior.dim // 40)
        if self.structure == "kron":
            return min(period, 2 * _DIAGONAL_PERIOD)
        return min(period, _DIAGONAL_PERIOD) if self.structure in ("diag", "scalar", "sqrt") else period

    # -- what is learnt on the way ------------------------------------------------------------------

    def start(self, state: State, posterior) -> None:
        """Average over enough minibatches at the initial points for full rank (MATH trap 4)."""
        self._average_afresh(state, posterior)
        self.refresh(state, posterior)
        state.memory.radius = self.spectral_radius(state, posterior)

    def _average_afresh(self, state: State, posterior) -> None:
        layout = self._layout(state, posterior)
        rows = state.rows.draw()
        measured = self._measure(state, posterior, rows, posterior.scores(state.theta, rows), layout, turn=0)
        state.memory = self.memory_type(layout, *measured)
        if not state.rows.whole:
            enough = math.ceil(5 * posterior.dim / self._rank(state))
            diagonal = isinstance(layout, (str, Rotation)) and layout != "full"
            for _ in range(min(enough, _DIAGONAL_START) if diagonal else enough):
                rows = state.rows.draw()
                self._learn(state, posterior, rows, posterior.scores(state.theta, rows))

    def _layout(self, state: State, posterior) -> Layout:
        if self.structure == "kron":
            return self._eigenbasis(state, posterior)
        return posterior.layout("diag" if self.structure in ("scalar", "sqrt") else self.structure, self.block_size)

    def _eigenbasis(self, state: State, posterior) -> Rotation:
        """Eigenvectors of the Kronecker factors of the model Fisher, from twenty rows a unit or feature."""
        total: list[list[tuple[NDArray | None, NDArray | None]]] = []
        while True:
            chain = len(total) % len(state.theta)
            fisher = posterior.fisher(state.theta[chain : chain + 1], rows_of(state.rows.draw(), chain))
            total.append(fisher.kronecker_factors())
            if state.rows.whole or len(total) * state.rows.size >= _ROWS_OF_BASIS * max(map(max, fisher.shapes)):
                break
        bases = []
        for of_block in zip(*total, strict=True):
            left, right = (None if A[0] is None else np.linalg.eigh(sum(A))[1] for A in zip(*of_block, strict=True))
            bases.append((left, right))
        return Rotation(bases, fisher.shapes)

    def _rank(self, state: State) -> float:
        """Rank that one measurement adds to the noise."""
        return state.rows.size

    def _measure(self, state, posterior, rows, scores, layout, turn) -> tuple[Operator, Operator | None, Diag]:
        """Score covariance and model Fisher of one row, at the minibatch of one chain; and the prior's curvature.

        The chains of a group take turns: their minibatches are equally good, and one at a time spreads
        the average over more of the path.
        """
        chain = turn % len(state.theta)
        noise = self._noise(state, scores.of_chain(chain), layout)
        prior = posterior.prior.curvature(state.theta)
        prior = Diag(prior.values.copy())  # the average is kept in place
        return noise, self._curvature(posterior, state.theta[chain : chain + 1], rows_of(rows, chain), layout), prior

    def _noise(self, state: State, scores, layout: Layout) -> Operator:
        return scores.covariance(layout)

    def _curvature(self, posterior, theta: NDArray, rows, layout: Layout) -> Operator | None:
        fisher = posterior.fisher(theta, rows, layout)
        return fisher.moment(layout) * (1.0 / fisher.n_rows)

    def _learn(self, state: State, posterior, rows, scores) -> None:
        """I1 <- (1 - kappa) I1 + kappa V with kappa = 1/t (Ahn Eq. 12), and the curvatures likewise."""
        memory = state.memory
        memory.turn += 1
        measured = self._measure(state, posterior, rows, scores, memory.layout, memory.turn)
        memory.count += 1
        for average, new in zip((memory.noise, memory.curvature, memory.prior), measured, strict=True):
            if average is not None and new is not None:
                average.blend(new, 1 / memory.count)

    def refresh(self, state: State, posterior) -> None:
        """Make the operators of the step from what is measured and from the parameters as they are now."""
        if not np.isfinite(state.theta).all():
            raise FloatingPointError(f"{self} diverged by step {state.t}; {self.remedy}")
        operators = self._burn_in_operators if state.memory.adapting else self._operators
        gain, W = operators(state, posterior)
        state.memory.gain = gain
        state.memory.kick = None if W is None else W.cholesky()

    def restart(self, state: State, posterior) -> None:
        """Keep the averages as if from the square root of their number of minibatches (MATH trap 5).

        Those along Kronecker eigenvectors begin anew with new ones.
        """
        if self.structure == "kron":
            self._average_afresh(state, posterior)
            self.refresh(state, posterior)
        else:
            state.memory.count = math.sqrt(state.memory.count)

    def change_prior(self, state: State, posterior) -> None:
        """New operators, unless all precisions moved by less than 1 %."""
        old, new = state.memory.prior.values, posterior.prior.curvature(state.theta).values
        if (np.abs(new - old) > _SMALL_CHANGE * old).any():
            state.memory.prior = Diag(new.copy())
            self.refresh(state, posterior)

    def freeze(self, state: State, posterior) -> None:
        state.memory.adapting = False
        self.refresh(state, posterior)
        state.memory.radius = max(state.memory.radius, self.spectral_radius(state, posterior))

    def _noise_and_curvature(self, state: State, posterior) -> tuple[Operator, Operator]:
        """M = c N I1, and Lam = the model Fisher of all rows plus the prior's curvature."""
        memory, N = state.memory, posterior.n_total
        return memory.noise * (state.rows.noise_factor * N), memory.curvature * N + memory.prior

    # -- what theory says of it ---------------------------------------------------------------------

    def spectral_radius(self, state: State, posterior) -> float:
        return 0.0 if self._always_stable() else self._radius_of(self._largest_gain(state, posterior))

    def _always_stable(self) -> bool:
        """Whether K is of the form 2 (Lam + anything)^-1 with the whole Lam: K Lam < 2 (MATH 2)."""
        return False

    def _radius_of(self, gain: float) -> float:
        """Spectral radius of the step where K Lam has this largest eigenvalue."""
        return gain - 1.0

    def _largest_gain(self, state: State, posterior) -> float:
        """Largest eigenvalue of K Lam with the whole curvature, estimated from the Fisher of ten minibatches."""
        gain, here = self._operators(state, posterior)[0], Linearised(state, posterior)
        return here.largest(lambda v: gain.matvec(here.curvature(v)))

    def stationary_covariance(self, state: State, Lam: NDArray, M: NDArray) -> NDArray:
        return theory.stationary_cov(Lam, M + injected_covariance(state), state.memory.gain.dense())

    def complaints(self, state: State) -> list[str]:
        if state.memory.radius < 1.0:
            return []
        return [f"{self} is unstable here: spectral radius {state.memory.radius:.2f} >= 1; {self.remedy}"]


def injected_covariance(state: State) -> NDArray | float:
    """W of the frozen step, dense."""
    if state.memory.kick is None:
        return 0.0
    root = state.memory.kick.dense()
    return root @ root.T
