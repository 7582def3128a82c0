"""The base of constant-step samplers, whose variance comes from the noise of minibatches."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from skbayes_sg.data.minibatches import Minibatches
from skbayes_sg.linalg import Dense, Diag, Operator, Rotated
from skbayes_sg.samplers.base import NEEDS_ROWS_AGAIN, Report
from skbayes_sg.samplers.preconditioned import Memory, PreconditionedSampler
from skbayes_sg.samplers.schedules import require_step
from skbayes_sg.samplers.state import State
from skbayes_sg.samplers.stationary import LinearStep
from skbayes_sg.samplers.target import Target
from skbayes_sg.validation import require_choice

_MATRICES = ("full", "kron", "diag")  # structures with a step of its own for each direction
_NOISELESS = 0.01  # gradient noise over curvature, below which a direction has no noise
_MINIBATCHES = 20  # per pass: noise of up to twenty times the curvature where the model is right
_MOST_ROWS = 500


@dataclass
class ConstantMemory(Memory):
    """The averages of a sampler with a constant step."""

    noiseless: int = 0  # directions without noise of any kind


class ConstantStep(PreconditionedSampler):
    """``theta += step_size H gradient``, where a subclass defines P and so H."""

    structures: tuple[str, ...] = ("full", "diag", "scalar")
    """What `structure` may be."""
    memory_type: type[ConstantMemory] = ConstantMemory
    refuses_streams = NEEDS_ROWS_AGAIN  # its distribution is that of the frozen step
    bias_remedy = 'use structure="full", or SGFS'
    remedy = 'use structure="full", or give a smaller step_size'
    steepest_column = 5.0  # its noise is that of minibatches, which walls stop

    @property
    def starts_at_mode(self) -> bool:
        """A direction without gradient noise has small steps, but those of a whole matrix."""
        return self.structure != "full"

    def validate(self, target: Target) -> None:
        super().validate(target)
        require_choice("structure", self.structure, self.structures)
        if callable(self.step_size):
            raise ValueError(
                f'step_size must be "auto" or a number, got {self.step_size!r}; SGD takes schedules'
            )
        require_step(self.step_size)

    def resolve_auto(self, target: Target) -> str:
        """Choose batch_size if it is "auto"."""
        if self.batch_size != "auto":
            return ""
        self.batch_size = _rows_of_a_batch(target)
        return f"; batch_size={self.batch_size} of {target.n_rows} rows"

    def minibatches(self, target: Target, rng: np.random.Generator, n_chains: int) -> Minibatches:
        size = _rows_of_a_batch(target) if isinstance(self.batch_size, str) else self.batch_size
        return target.minibatches(size, self.replace, rng, n_chains)

    def freeze(self, state: State, target: Target) -> None:
        """Stop adapting, and count the directions without noise."""
        super().freeze(state, target)
        if state.memory.noise_root is None:
            M, Lam = self._noise_and_curvature(state, target)
            state.memory.noiseless = int(np.sum(relative_noise(M, Lam) < _NOISELESS))

    # -- the operators ------------------------------------------------------------------------

    def _precision(self, M: Operator, Lam: Operator) -> Operator:
        """P: the optimal K of the structure is 2 / P."""
        raise NotImplementedError

    @property
    def _fills(self) -> bool:
        """Whether noise is injected where the gradient has less than the curvature."""
        return self.structure in _MATRICES

    def _terms(
        self, state: State, target: Target
    ) -> tuple[Operator, Operator, Operator, Operator | None]:
        """P, M and Lam, with the noise W that is missing in M, and a root of W."""
        M, Lam = self._noise_and_curvature(state, target)
        root = _root_of_missing(M, Lam) if self._fills else None
        if root is not None:
            M = M + _square(root)
        return self._precision(M, Lam), M, Lam, root

    def _operators(self, state: State, target: Target) -> tuple[Operator, Operator | None]:
        P, M, _, root = self._terms(state, target)
        H, optimum = _unscaled(self.structure, P, M)
        return H * (optimum if isinstance(self.step_size, str) else float(self.step_size)), root

    def _burn_in_operators(self, state: State, target: Target) -> tuple[Operator, Operator | None]:
        """Operators of a shorter step, which does not overshoot while matrices are inaccurate."""
        if self.structure not in _MATRICES or self.step_size != "auto":
            return self._operators(state, target)
        P, _, Lam, root = self._terms(state, target)
        return (P + Lam).inverse() * 2.0, root

    def stationary_distribution(self, state: State, target: Target) -> LinearStep:
        """That of the step after burn-in, also while matrices are still learnt."""
        if not state.memory.adapting or self._always_stable():
            return super().stationary_distribution(state, target)
        apart = replace(state, memory=copy.copy(state.memory))  # operators may be noted there
        return LinearStep(*self._operators(apart, target))

    def _always_stable(self) -> bool:
        return (self.structure, self.step_size) == ("full", "auto")

    def report(self, state: State) -> Report:
        report = super().report(state)
        if state.memory.noiseless:
            report.warnings.append(
                f"{type(self).__name__}: the gradient has next to no noise in "
                f"{state.memory.noiseless} of {state.theta.shape[1]} directions (constant or "
                "duplicate columns, a strong prior, softmax with more than two classes, "
                f"minibatches of {state.rows.size:g} rows are nearly all); what is drawn there is "
                "not the posterior's variance. Use SGFS"
            )
        return report


def _unscaled(structure: str, P: Operator, M: Operator) -> tuple[Operator, float]:
    """H, and the step that makes it the optimum of `theory.optimal_preconditioner`."""
    if structure in _MATRICES:
        try:
            return P.inverse(), 2.0
        except np.linalg.LinAlgError as error:
            raise ValueError(
                "the gradient has no noise in some direction (constant or duplicate columns, more "
                "than two classes, all rows in a minibatch), and the continuous-time step is "
                'infinite; use correction="discrete" or SGFS'
            ) from error
    if structure == "sqrt" and not M.diagonal().min() > 0:
        raise ValueError(
            'structure="sqrt" divides by gradient noise, of which a constant column has none; use '
            '"diag"'
        )
    scale = np.ones(P.dim) if structure == "scalar" else M.diagonal() ** -0.5
    return Diag(scale), float(2 * P.dim / np.sum(P.diagonal() * scale))


def _rows_of_a_batch(target: Target) -> int:
    """A twentieth of the rows, within bounds: fewer need more steps, and no fewer passes."""
    return min(_MOST_ROWS, max(2, target.n_rows // _MINIBATCHES))


def _root_of_missing(M: Operator, Lam: Operator) -> Operator | None:
    """Of the noise W that lifts the gradient's to the curvature; None if it is nowhere less.

    M, Lam and W are diagonal together in the eigenvectors V of (M, Lam), V^T Lam V = I. Without W
    the step would change the sign of a direction that has no noise
    (math/constant_sgd.md#constant-sgd).
    """
    if not isinstance(M, Dense):
        assert isinstance(M, (Diag, Rotated))
        assert isinstance(Lam, (Diag, Rotated))
        root = np.sqrt(np.maximum(Lam.values - M.values, 0.0))
        return replace(M, values=root) if root.any() else None
    assert isinstance(Lam, Dense)
    values, V = eigh(M.matrix, Lam.matrix)
    some = values < 1.0
    if not some.any():
        return None
    root = np.zeros_like(V)
    root[:, some] = (Lam.matrix @ V[:, some]) * np.sqrt(1.0 - np.clip(values[some], 0.0, 1.0))
    return Dense(root)


def _square(root: Operator) -> Operator:
    """root root^T"""
    if isinstance(root, Dense):
        return Dense(root.matrix @ root.matrix.T)
    assert isinstance(root, (Diag, Rotated))
    return replace(root, values=root.values**2)


def relative_noise(M: Operator, Lam: Operator) -> NDArray:
    """Eigenvalues of gradient noise over curvature; from the diagonals if only they are stored."""
    if isinstance(M, Dense) and isinstance(Lam, Dense):
        return eigh(M.matrix, Lam.matrix, eigvals_only=True)
    assert isinstance(M, (Diag, Rotated))
    assert isinstance(Lam, (Diag, Rotated))
    return M.values / Lam.values
