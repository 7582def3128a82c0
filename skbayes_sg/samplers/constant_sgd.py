"""Stochastic gradient descent as a sampler (Mandt, Hoffman & Blei 2017), and what its kin share."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from skbayes_sg.data.minibatches import Minibatches
from skbayes_sg.linalg import Dense, Diag, Operator, Rotated
from skbayes_sg.samplers.base import NEEDS_ROWS_AGAIN, Report
from skbayes_sg.samplers.preconditioned import PreconditionedSampler
from skbayes_sg.samplers.schedules import POSITIVE, is_auto, value_at
from skbayes_sg.samplers.stationary import LinearStep
from skbayes_sg.samplers.target import State, Target
from skbayes_sg.validation import require_choice

_NOISE_KNOWN = 0.05  # sqrt(D / rows), a tenth of variances: gradient noise of fewer rows is said
_MATRICES = ("full", "kron", "diag")  # structures with a step of its own for each direction


class ConstantStep(PreconditionedSampler):
    """``theta += step_size H gradient``, where a subclass defines P and so H."""

    structures: tuple[str, ...] = ("full", "diag", "scalar")
    """What `structure` may be."""
    refuses_streams = NEEDS_ROWS_AGAIN  # its distribution is that of the frozen step
    steepest_column = 5.0  # its noise is that of minibatches, which walls stop

    @property
    def remedy(self) -> str:
        if self.structure == "full" or not is_auto(self.step_size):
            return "give a smaller step_size"
        return 'use structure="full", or give a smaller step_size'

    @property
    def bias_remedy(self) -> str:
        return "use SGFS" if self.structure == "full" else 'use structure="full", or SGFS'

    @property
    def starts_at_mode(self) -> bool:
        """A direction without gradient noise has small steps, but those of a whole matrix."""
        return self.structure != "full"

    def validate(self, target: Target) -> None:
        super().validate(target)
        require_choice("structure", self.structure, self.structures)
        if not is_auto(self.step_size):
            value_at(self.step_size, None, "step_size", POSITIVE)

    def resolve_auto(self, target: Target) -> str:
        """Choose batch_size if it is "auto"."""
        if self.batch_size != "auto":
            return ""
        self.batch_size = _rows_of_a_batch(target)
        return f"; batch_size={self.batch_size} of {target.n_rows} rows"

    def minibatches(self, target: Target, rng: np.random.Generator, n_chains: int) -> Minibatches:
        size = _rows_of_a_batch(target) if self.batch_size == "auto" else int(self.batch_size)
        return target.minibatches(size, self.replace, rng, n_chains)

    def freeze(self, state: State, target: Target) -> None:
        """Stop adapting, and count the directions without noise."""
        super().freeze(state, target)
        if state.memory.noise_root is None:
            M, Lam = self._noise_and_curvature(state, target)
            noise = relative_noise(M, Lam)
            state.memory.noiseless = int(np.sum(noise < 0.01))  # next to none of the curvature

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
        W, root = _missing(M, Lam) if self._fills else (None, None)
        if W is not None:
            M = M + W
        return self._precision(M, Lam), M, Lam, root

    def _operators(self, state: State, target: Target) -> tuple[Operator, Operator | None]:
        P, M, _, root = self._terms(state, target)
        H, optimum = _unscaled(self.structure, P, M)
        return H * (optimum if self.step_size == "auto" else float(self.step_size)), root

    def _burn_in_operators(self, state: State, target: Target) -> tuple[Operator, Operator | None]:
        """Operators of a shorter step, which does not overshoot while matrices are inaccurate."""
        if self.structure not in _MATRICES or self.step_size != "auto":
            return self._operators(state, target)
        P, _, Lam, root = self._terms(state, target)
        return (P + Lam).inverse() * 2.0, root

    def stationary_distribution(self, state: State, target: Target) -> LinearStep:
        """Distribution of the step after burn-in, also while matrices are still learnt."""
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
        self._report_noise(state, report)
        return report

    def _report_noise(self, state: State, report: Report) -> None:
        """The error by chance of gradient noise that was measured from one row at a time.

        With K = 2 / (Lam + measured M) the variance along a direction is that of the posterior
        times M over the measured M. The eigenvalues of a sample covariance of normal rows over the
        true one lie between (1 - a)^2 and (1 + a)^2, a = sqrt(D / rows) (Marchenko & Pastur 1967).
        Heavier tails spread them farther.
        """
        memory = state.memory
        if memory.over_steps is None and self.covariance != "single_row":
            return
        error = math.sqrt(state.theta.shape[1] / memory.count)
        if error > _NOISE_KNOWN:
            lowest = math.ceil(state.theta.shape[1] / _NOISE_KNOWN**2)
            report.warnings.append(
                f"{type(self).__name__}: the gradient noise is measured from {memory.count:.0f} "
                f"single rows, by which variances are from {(1 + error) ** -2:.2f} to "
                f"{(1 - error) ** -2 if error < 1 else math.inf:.2f} times what they should "
                f"be, by direction, or farther off where rows have outliers; raise burn_in to "
                f'{2 * lowest}, or use covariance="minibatch" with minibatches of several rows'
            )


@dataclass(eq=False, repr=False)
class ConstantSGD(ConstantStep):
    """Constant-step SGD, stationary at the posterior's Gaussian approximation, or near it.

    SGD with a step that never shrinks moves about the mode for ever. The step is chosen so that
    this motion is as wide as the posterior. Noise is injected only where the gradient has less than
    the curvature: in directions that only the prior knows, and in all for large minibatches.

    ``theta += step_size H (gradient + eta)``,  ``eta ~ N(0, W)``

    With P = Lam + M, the sum of measured curvature and gradient noise (M + W in place of M for
    "full", "kron" and "diag"):

    ===========  ==================  =============================  ==========================
    structure    H                   step_size="auto"               Mandt et al.
    ===========  ==================  =============================  ==========================
    "full"       P^-1                2: exact, for any Lam and M    Theorem 2
    "kron"       1 / P_kk, rotated   2
    "diag"       1 / P_kk            2                              Corollary 1
    "scalar"     1                   2 D / Tr P                     Theorem 1
    "sqrt"       M_kk^-1/2           2 D / sum_k P_kk M_kk^-1/2     Appendix E
    ===========  ==================  =============================  ==========================

    Parameters
    ----------
    structure : {"full", "kron", "diag", "scalar", "sqrt"}, default="full"
        Preconditioner. "kron": the diagonal in the eigenvectors of the Kronecker factors of each
        layer's Fisher. All but "full" give wrong variances along correlated directions;
        `predicted_covariance` of the estimators computes them.
    correction : {"discrete", "ou"}, default="discrete"
        "ou": P = M, the paper's formulas, which hold in continuous time; nothing is injected. Where
        the model is right, the variances are too large by about 1 + n/N, and the chain may be
        unstable.
    step_size : float or "auto", default="auto"
        Multiplies H gradient.
    batch_size : int or "auto", default="auto"
        Rows per minibatch, n. "auto": a twentieth of the rows, at least 2 and at most 500.
    replace : bool, default=False
        Draw the rows of a minibatch with replacement.
    covariance : {"minibatch", "single_row"}, default="minibatch"
        Estimator of the gradient noise: all rows of the minibatch, or one of them, at random (Mandt
        et al. Eq. 25, bias removed), which needs n times as many steps. Minibatches of one row
        measure it over steps (math/gradient_noise.md#minibatches-of-one-row). The fit warns where
        the rows of burn-in are too few (math/constant_sgd.md#noise-that-is-measured-from-few-rows).

    Notes
    -----
    Source: Mandt et al. 2017, section 3.1 and Appendix E, with errata math/errata.md#e2 and
    math/errata.md#e12; math/constant_sgd.md#constant-sgd. Without W the chain would change sign at
    every step where the gradient has no noise (F = -1). "scalar" and "sqrt", as printed, inject
    nothing, and the fit warns with the number of directions without noise.

    Examples
    --------
    >>> from skbayes_sg.samplers import ConstantSGD
    >>> ConstantSGD(structure="scalar", correction="ou")
    ConstantSGD(correction='ou', structure='scalar')
    """

    structures = ("full", "kron", "diag", "scalar", "sqrt")

    structure: str = "full"
    correction: str = "discrete"
    step_size: float | str = "auto"
    batch_size: int | str = "auto"
    replace: bool = False
    covariance: str = "minibatch"

    def validate(self, target: Target) -> None:
        super().validate(target)
        require_choice("correction", self.correction, ("discrete", "ou"))

    @property
    def _fills(self) -> bool:
        return super()._fills and self.correction == "discrete"

    def _precision(self, M: Operator, Lam: Operator) -> Operator:
        return Lam + M if self.correction == "discrete" else M

    def _always_stable(self) -> bool:
        return super()._always_stable() and self.correction == "discrete"


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
    """A twentieth of the rows, within bounds: fewer need more steps, and no fewer passes.

    Where the model is right, the noise is up to twenty times the curvature.
    """
    return min(500, max(2, target.n_rows // 20))


def _missing(M: Operator, Lam: Operator) -> tuple[Operator | None, Operator | None]:
    """The noise W that lifts the gradient's to the curvature, and a root; None if it lacks nowhere.

    M, Lam and W are diagonal together in the eigenvectors V of (M, Lam), V^T Lam V = I. Without W
    the step would change the sign of a direction that has no noise
    (math/constant_sgd.md#constant-sgd).
    """
    if isinstance(M, Diag | Rotated):
        root = np.sqrt(np.maximum(_values(Lam) - M.values, 0.0))
        return (replace(M, values=root**2), replace(M, values=root)) if root.any() else (None, None)
    values, V = eigh(M.dense(), Lam.dense())
    lacking = values < 1.0
    if not lacking.any():
        return None, None
    root = np.zeros_like(V)
    root[:, lacking] = (Lam.dense() @ V[:, lacking]) * np.sqrt(
        1.0 - np.clip(values[lacking], 0.0, 1.0)
    )
    return Dense(root @ root.T), Dense(root)


def relative_noise(M: Operator, Lam: Operator) -> NDArray:
    """Eigenvalues of gradient noise over curvature; from the diagonals if only they are stored."""
    if isinstance(M, Dense):
        return eigh(M.matrix, Lam.dense(), eigvals_only=True)
    return _values(M) / _values(Lam)


def _values(A: Operator) -> NDArray:
    """Eigenvalues of a matrix that is diagonal in some coordinates."""
    assert isinstance(A, Diag | Rotated)
    return A.values
