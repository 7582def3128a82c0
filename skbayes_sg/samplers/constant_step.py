"""The base of constant-step samplers, whose variance comes from minibatch noise alone."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from skbayes_sg.linalg import Dense, Diag, Operator, Rotated
from skbayes_sg.samplers.base import NEEDS_ROWS_AGAIN, Report
from skbayes_sg.samplers.law import LinearLaw
from skbayes_sg.samplers.preconditioned import Memory, PreconditionedSampler
from skbayes_sg.samplers.schedules import require_step
from skbayes_sg.samplers.state import State
from skbayes_sg.target import Target

_MATRICES = ("full", "kron", "diag")  # structures with a step of its own for each direction
_NOISELESS = 0.01  # gradient noise over curvature, below which a direction has no noise


@dataclass
class ConstantMemory(Memory):
    """The averages of a sampler with a constant step."""

    noiseless: int = 0  # directions without gradient noise


class ConstantStep(PreconditionedSampler):
    """``theta += step_size H gradient``, where a subclass defines P and so H."""

    step_size: float | str
    memory_type: type[ConstantMemory] = ConstantMemory
    refuses_streams = NEEDS_ROWS_AGAIN  # its law is that of the frozen step
    bias_remedy = 'use structure="full", or SGFS'
    remedy = 'use structure="full", or give a smaller step_size'

    @property
    def starts_at_mode(self) -> bool:
        """A direction without gradient noise has small steps, but those of a whole matrix."""
        return self.structure != "full"

    def validate(self, target: Target) -> None:
        super().validate(target)
        if callable(self.step_size):
            raise ValueError(
                f'step_size must be "auto" or a number, got {self.step_size!r}; SGD takes schedules'
            )
        require_step(self.step_size)

    def freeze(self, state: State, target: Target) -> None:
        """Stop adapting, and count the directions without gradient noise."""
        super().freeze(state, target)
        M, Lam = self._noise_and_curvature(state, target)
        state.memory.noiseless = int(np.sum(relative_noise(M, Lam) < _NOISELESS))

    # -- the operators ------------------------------------------------------------------------

    def _precision(self, M: Operator, Lam: Operator) -> Operator:
        """P: the optimal K of the structure is 2 / P."""
        raise NotImplementedError

    def _operators(self, state: State, target: Target) -> tuple[Operator, None]:
        M, Lam = self._noise_and_curvature(state, target)
        P = self._precision(M, Lam)
        H, optimum = _unscaled(self.structure, P, M)
        K = H * (optimum if isinstance(self.step_size, str) else float(self.step_size))
        return (_calmed(K, M, Lam) if self.structure in _MATRICES else K), None

    def _burn_in_operators(self, state: State, target: Target) -> tuple[Operator, None]:
        """Operators of a shorter step, which does not overshoot while matrices are inaccurate."""
        if self.structure not in _MATRICES or self.step_size != "auto":
            return self._operators(state, target)
        M, Lam = self._noise_and_curvature(state, target)
        return (self._precision(M, Lam) + Lam).inverse() * 2.0, None

    def law(self, state: State, target: Target) -> LinearLaw:
        """That of the step after burn-in, also while matrices are still learnt."""
        if not state.memory.adapting or self._always_stable():
            return super().law(state, target)
        apart = replace(state, memory=copy.copy(state.memory))  # operators may be noted there
        return LinearLaw(self._operators(apart, target)[0])

    def report(self, state: State) -> Report:
        report = super().report(state)
        if state.memory.noiseless:
            report.complaints.append(
                f"{type(self).__name__}: the gradient has next to no noise in "
                f"{state.memory.noiseless} of {state.theta.shape[1]} directions (constant or "
                "duplicate columns, a strong prior, softmax with more than two classes, "
                "minibatches of nearly all rows); their variance is far too small. Use SGFS"
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


def _calmed(K: Operator, M: Operator, Lam: Operator) -> Operator:
    """K with a Newton step in the directions without noise.

    There 2 (Lam + M)^-1 would only change the sign. K, M and Lam are diagonal together in the
    eigenvectors V of (M, Lam), V^T Lam V = I.
    """
    if not isinstance(K, Dense):
        assert isinstance(K, (Diag, Rotated))
        assert isinstance(Lam, (Diag, Rotated))
        values = np.where(relative_noise(M, Lam) < _NOISELESS, 1.0 / Lam.values, K.values)
        return Rotated(values, K.rotation) if isinstance(K, Rotated) else Diag(values)
    assert isinstance(M, Dense)
    assert isinstance(Lam, Dense)
    values, V = eigh(M.matrix, Lam.matrix)
    V = V[:, values < _NOISELESS]
    dual = Lam.matrix @ V
    return (
        Dense(K.matrix + (V * (1 - np.sum(dual * (K.matrix @ dual), axis=0))) @ V.T)
        if V.shape[1]
        else K
    )


def relative_noise(M: Operator, Lam: Operator) -> NDArray:
    """Eigenvalues of gradient noise over curvature; from the diagonals if only they are stored."""
    if isinstance(M, Dense) and isinstance(Lam, Dense):
        return eigh(M.matrix, Lam.matrix, eigvals_only=True)
    assert isinstance(M, (Diag, Rotated))
    assert isinstance(Lam, (Diag, Rotated))
    return M.values / Lam.values
