"""Stochastic gradient descent, annealed to the mode, and as a sampler (Mandt, Hoffman & Blei 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from skbayes_sg import theory
from skbayes_sg.linalg import Dense, Diag, Operator, Rotated
from skbayes_sg.samplers.base import Linearised, Sampler, State
from skbayes_sg.samplers.preconditioned import Memory, PreconditionedSampler
from skbayes_sg.samplers.schedules import PolynomialDecay, Schedule, value_at

_MATRICES = ("full", "kron", "diag")  # structures of K with a gain for each direction that they know
_NOISELESS = 0.01  # gradient noise over curvature, below which noise is said to be missing


class SGD(Sampler):
    """Stochastic gradient descent with decreasing steps: the way to the mode, for comparison.

    ``theta += step_size(t) * gradient``

    Its points are no posterior draws; the mean of the kept ones is the averaged iterate, a MAP estimate. With
    ``batch_size`` at least the number of rows it is gradient descent.

    Parameters
    ----------
    step_size : float, callable or "auto", default="auto"
        eta_t, in units of a variance of theta. "auto": eta_0 (1 + t / 1000)^-0.75 with eta_0 = 0.5 / largest
        eigenvalue of the curvature at the start; constant where every step sees all rows.
    batch_size : int, default=500
        Rows per minibatch.
    replace : bool, default=False
        Draw the rows of a minibatch with replacement.

    Notes
    -----
    Source: Karagiannis, handout 4, Algorithms 10 and 13; Robbins & Monro 1951.

    Examples
    --------
    >>> from skbayes_sg.samplers import SGD, PolynomialDecay
    >>> SGD(step_size=PolynomialDecay(a=1.0, b=1000.0, power=1.0)).step_size(0)
    0.001
    """

    smallest_batch = 1
    remedy = "lower step_size"
    bias_remedy = "SGD goes to the mode; use SGFS or ConstantSGD for a posterior"

    def __init__(self, step_size: Schedule | str = "auto", batch_size: int = 500, replace: bool = False) -> None:
        self.step_size = step_size
        self.batch_size = batch_size
        self.replace = replace

    def validate(self, posterior) -> None:
        super().validate(posterior)
        _require_step(self.step_size)

    def start(self, state: State, posterior) -> None:
        """The automatic schedule, from the stiffness at the start."""
        if self.step_size != "auto":
            return
        here = Linearised(state, posterior)
        largest = 2.0 * here.largest(here.curvature)
        scale, power = 1000.0, 0.0 if state.rows.whole else 0.75
        state.memory = PolynomialDecay(a=scale**power / largest, b=scale, power=power)

    def step(self, state: State, posterior) -> None:
        scores = posterior.scores(state.theta, state.rows.draw())
        state.gradient = posterior.gradient(state.theta, scores)
        state.theta += self._eta(state) * state.gradient
        state.t += 1

    def _eta(self, state: State) -> float:
        if isinstance(self.step_size, str):
            return state.memory(state.t)
        eta = value_at(self.step_size, state.t, "step_size")
        if eta <= 0:
            raise ValueError(f"step_size must be positive, step_size({state.t}) is {eta}")
        return eta

    def spectral_radius(self, state: State, posterior) -> float:
        """Of I - eta Lam for a constant eta; a schedule may begin wherever it likes."""
        if self.step_size == "auto" or callable(self.step_size):
            return 0.0
        here = Linearised(state, posterior)
        return self._eta(state) * here.largest(here.curvature) - 1.0

    def stationary_covariance(self, state: State, Lam: NDArray, M: NDArray) -> NDArray:
        if self.step_size == "auto" or callable(self.step_size):
            raise ValueError("SGD with decreasing steps has no stationary law but the mode; use ConstantSGD")
        return theory.stationary_cov(Lam, M, self._eta(state))


class _ConstantStep(PreconditionedSampler):
    """``theta += step_size H gradient``: the minibatch noise alone carries the posterior's variance."""

    step_size: float | str
    follows_streams = False  # its law is that of the frozen step
    bias_remedy = 'use structure="full", or SGFS'
    remedy = 'use structure="full", or give a smaller step_size'

    def validate(self, posterior) -> None:
        super().validate(posterior)
        if callable(self.step_size):
            raise ValueError(f'step_size must be "auto" or a number, got {self.step_size!r}; SGD takes schedules')
        _require_step(self.step_size)

    def _precision(self, M: Operator, Lam: Operator) -> Operator:
        """P: the optimal K of the structure is 2 / P."""
        raise NotImplementedError

    def _operators(self, state: State, posterior) -> tuple[Operator, None]:
        M, Lam = self._noise_and_curvature(state, posterior)
        P = self._precision(M, Lam)
        H, optimum = _unscaled(self.structure, P, M)
        K = H * (optimum if isinstance(self.step_size, str) else float(self.step_size))
        return (_calmed(K, M, Lam) if self.structure in _MATRICES else K), None

    def _burn_in_operators(self, state: State, posterior) -> tuple[Operator, None]:
        """Steps that do not overshoot, while matrices are poor and there is no law to keep."""
        if self.structure not in _MATRICES or self.step_size != "auto":
            return self._operators(state, posterior)
        M, Lam = self._noise_and_curvature(state, posterior)
        return (self._precision(M, Lam) + Lam).inverse() * 2.0, None

    def _require_choice(self, name: str, allowed: tuple[str, ...]) -> None:
        if getattr(self, name) not in allowed:
            raise ValueError(f"{name} must be one of {allowed}, got {getattr(self, name)!r}")

    def freeze(self, state: State, posterior) -> None:
        """Stop learning, and count the directions to which no gradient noise gives variance."""
        super().freeze(state, posterior)
        M, Lam = self._noise_and_curvature(state, posterior)
        state.memory.noiseless = int(np.sum(_relative_noise(M, Lam) < _NOISELESS))

    def complaints(self, state: State) -> list[str]:
        found = super().complaints(state)
        if state.memory.noiseless:
            found.append(
                f"{type(self).__name__}: the gradient has next to no noise in {state.memory.noiseless} of "
                f"{state.theta.shape[1]} directions (constant or duplicate columns, a strong prior, softmax with more "
                "than two classes, minibatches of nearly all rows); their variance is far too small. Use SGFS"
            )
        return found


@dataclass
class _Constant(Memory):
    noiseless: int = 0  # directions without gradient noise


class ConstantSGD(_ConstantStep):
    """Constant-step SGD whose stationary law is the posterior's Gaussian approximation, or near it.

    ``theta += step_size H gradient``

    with P = Lam + M, curvature and gradient noise, measured:

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
        Preconditioner; "kron": the diagonal in the eigenvectors of the Kronecker factors of each layer's Fisher. All
        but "full" misjudge variances along correlated directions; `predicted_covariance` of the estimators says by
        how much.
    correction : {"discrete", "ou"}, default="discrete"
        "ou": P = M, the paper's formulas, which hold in continuous time; the variances are too large by a
        factor 1 / (1 - n/N) where the model is right, and the chain may be unstable.
    step_size : float or "auto", default="auto"
        Multiplies H gradient.
    batch_size : int, default=500
        Rows per minibatch, n: more than half of the rows leave too little noise to sample with.
    replace : bool, default=False
        Draw the rows of a minibatch with replacement.

    Notes
    -----
    Source: Mandt et al. 2017, section 3.1 and Appendix E, with E2 and E12; MATH 3.4. A direction whose gradient
    has less than a hundredth of its curvature as noise would swing from side to side under "full" and "diag"
    (F = -1); there a Newton step goes to the mode instead, and the fit says how many there are.

    Examples
    --------
    >>> from skbayes_sg.samplers import ConstantSGD
    >>> ConstantSGD(structure="scalar", correction="ou")
    ConstantSGD(correction='ou', structure='scalar')
    """

    memory_type = _Constant

    def __init__(
        self,
        structure: str = "full",
        correction: str = "discrete",
        step_size: float | str = "auto",
        batch_size: int = 500,
        replace: bool = False,
    ) -> None:
        self.structure = structure
        self.correction = correction
        self.step_size = step_size
        self.batch_size = batch_size
        self.replace = replace

    def validate(self, posterior) -> None:
        super().validate(posterior)
        self._require_choice("structure", ("full", "kron", "diag", "scalar", "sqrt"))
        self._require_choice("correction", ("discrete", "ou"))

    def _precision(self, M: Operator, Lam: Operator) -> Operator:
        return Lam + M if self.correction == "discrete" else M

    def _always_stable(self) -> bool:
        return (self.structure, self.correction, self.step_size) == ("full", "discrete", "auto")


@dataclass
class _WithVelocity(_Constant):
    velocity: NDArray | float = 0.0


class MomentumSGD(_ConstantStep):
    """Constant-step SGD with momentum.

    ``velocity = (1 - damping) velocity + step_size H gradient``,  ``theta += velocity``

    With P = M / damping + Lam / (2 - damping): H and the automatic step as in `ConstantSGD`. For "full" the
    stationary law is the posterior's, in discrete time, for any damping, curvature Lam and noise M.

    Parameters
    ----------
    damping : float, default=0.2
        mu in (0, 1]; 1 is SGD without momentum. The autocorrelation time depends on step / damping only.
    structure : {"full", "diag", "scalar"}, default="full"
        "scalar" is the paper's: its step over damping is 2 D / Tr M as the batch gets small.
    step_size : float or "auto", default="auto"
        Multiplies H gradient (the paper's eps / N).
    batch_size : int, default=500
        Rows per minibatch.
    replace : bool, default=False
        Draw the rows of a minibatch with replacement.

    Notes
    -----
    Source: Mandt et al. 2017, section 3.3 with E7 (its Eq. 31 lacks a commutator); MATH 3.5. In one
    dimension Var = (h m / (2 mu lam)) / (1 - h lam / (2 (2 - mu))), from which P follows by setting it to
    1 / lam; Lam and M are diagonal together in some coordinates, and K with them, so the matrix case decouples.

    Examples
    --------
    >>> from skbayes_sg.samplers import MomentumSGD
    >>> MomentumSGD(damping=0.1)
    MomentumSGD(damping=0.1)
    """

    memory_type = _WithVelocity

    def __init__(
        self,
        damping: float = 0.2,
        structure: str = "full",
        step_size: float | str = "auto",
        batch_size: int = 500,
        replace: bool = False,
    ) -> None:
        self.damping = damping
        self.structure = structure
        self.step_size = step_size
        self.batch_size = batch_size
        self.replace = replace

    def validate(self, posterior) -> None:
        super().validate(posterior)
        self._require_choice("structure", ("full", "diag", "scalar"))
        if callable(self.damping) or not 0 < value_at(self.damping, 0, "damping") <= 1:
            raise ValueError(f"damping must lie in (0, 1], got {self.damping!r}; 1 is SGD without momentum")

    def _precision(self, M: Operator, Lam: Operator) -> Operator:
        return Lam * (1 / (2 - self.damping)) + M * (1 / self.damping)

    def _move(self, state: State, push: NDArray) -> None:
        state.memory.velocity = (1 - self.damping) * state.memory.velocity + push
        state.theta += state.memory.velocity

    def _always_stable(self) -> bool:
        return (self.structure, self.step_size) == ("full", "auto")

    def _radius_of(self, gain: float) -> float:
        return theory.momentum_radius(np.array([[1.0]]), gain, self.damping)

    def stationary_covariance(self, state: State, Lam: NDArray, M: NDArray) -> NDArray:
        return theory.momentum_cov(Lam, M, state.memory.gain.dense(), self.damping)


@dataclass
class _Window(_Constant):
    length: int = 1  # T
    averaging: float = 0.0  # variance of a draw over M / Lam, of "full"
    expected: tuple[float, float] = (1.0, 1.0)  # smallest and largest variance ratio, of "full"
    slowest: float = math.inf  # step * smallest eigenvalue * T
    condition: float = 1.0  # number of K Lam
    total: NDArray | float = 0.0  # of the iterates of the present window
    filled: int = 0
    average: NDArray | None = field(default=None)  # of the last whole window


class IASG(_ConstantStep):
    """Iterate averaging: a draw is the mean of a window of successive iterates of constant SGD.

    ``theta += step_size H gradient``;  draw = mean of `window` iterates

    The average of about one pass has the posterior's covariance where the model is right and the prior
    negligible, whatever the preconditioner; elsewhere that of the sandwich Lam^-1 M Lam^-1 / window.

    Parameters
    ----------
    window : "pass" or int, default="pass"
        Iterates per draw, T. "pass", with "full": the number, about one pass over the rows, at which theory
        puts the mean variance ratio at 1; with "scalar": the noise factor (N/n, or N/n - 1 without replacement).
    structure : {"full", "scalar"}, default="full"
        H = Lam^-1, curvature measured in burn-in, so that all directions average alike; or H = 1, the paper's.
    step_size : float or "auto", default="auto"
        Multiplies H gradient. "auto": for "full" 5 / window, at most 0.5, at which the iterates spread over 2.5
        posterior variances and successive windows are near independent; for "scalar" 1 / largest eigenvalue
        of Lam.
    batch_size : int, default=500
        Rows per minibatch.
    replace : bool, default=False
        Draw the rows of a minibatch with replacement.

    Notes
    -----
    Source: Mandt et al. 2017, Algorithm 1 and section 5.2, with E8; MATH 3.6. Rows are drawn afresh at every step:
    averaging over a reshuffled epoch leaves next to no variance. ``thin="auto"`` records one draw per window;
    a smaller `thin` repeats draws. A scalar step can serve all directions only if (n/N) times the condition
    number of the curvature is small (Eq. 47); the fit warns with that number where it is not.

    Examples
    --------
    >>> from skbayes_sg.samplers import IASG
    >>> IASG(window=100)
    IASG(window=100)
    """

    memory_type = _Window
    draws_are_points = False
    bias_remedy = "use SGFS"

    def __init__(
        self,
        window: str | int = "pass",
        structure: str = "full",
        step_size: float | str = "auto",
        batch_size: int = 500,
        replace: bool = False,
    ) -> None:
        self.window = window
        self.structure = structure
        self.step_size = step_size
        self.batch_size = batch_size
        self.replace = replace

    def validate(self, posterior) -> None:
        super().validate(posterior)
        self._require_choice("structure", ("full", "scalar"))
        if self.window == "pass":
            return
        if isinstance(self.window, bool) or not isinstance(self.window, Integral):
            raise TypeError(f'window must be "pass" or an integer, got {self.window!r}')
        if self.window < 1:
            raise ValueError(f"window must be at least 1 iterate, got {self.window}")

    def _layout(self, state: State, posterior):
        return "full"

    def _operators(self, state: State, posterior) -> tuple[Operator, None]:
        """K, and with it the window."""
        M, Lam = self._noise_and_curvature(state, posterior)
        assert isinstance(M, Dense)
        assert isinstance(Lam, Dense)
        choose = self._averaged_alike if self.structure == "full" else self._of_one_scalar
        return choose(state.memory, M, Lam, state.rows.noise_factor), None

    _burn_in_operators = _operators

    def _averaged_alike(self, memory: _Window, M: Dense, Lam: Dense, c: float) -> Operator:
        """K = k Lam^-1: in every direction the same F = 1 - k."""
        covariance = Lam.inverse()
        noise = float(np.sum(covariance.matrix * M.matrix)) / Lam.dim  # Tr(Lam^-1 M) / D
        length = noise if isinstance(self.window, str) else self.window
        k = min(0.5, 5 / max(length, 1.0)) if self.step_size == "auto" else float(self.step_size)
        candidates = np.arange(1, math.ceil(max(noise, 1.0)) + 2) if self.window == "pass" else np.array([self.window])
        averaging = _averaging(1 - k, candidates)
        best = np.abs(noise * averaging - 1).argmin()
        memory.length, memory.averaging = int(candidates[best]), float(averaging[best])
        return covariance * k

    def _of_one_scalar(self, memory: _Window, M: Dense, Lam: Dense, c: float) -> Operator:
        """K = h for all directions: those of small curvature average least."""
        eigenvalues = np.linalg.eigvalsh(Lam.matrix)
        h = 1 / eigenvalues[-1] if self.step_size == "auto" else float(self.step_size)
        memory.length = max(1, round(c)) if self.window == "pass" else int(self.window)
        memory.slowest = h * eigenvalues[0] * memory.length
        memory.condition = eigenvalues[-1] / eigenvalues[0]
        return Diag(np.full(Lam.dim, h))

    def _move(self, state: State, push: NDArray) -> None:
        memory = state.memory
        state.theta += push
        memory.total = memory.total + state.theta
        memory.filled += 1
        if memory.filled >= memory.length:
            memory.average = memory.total / memory.filled
            memory.total, memory.filled = 0.0, 0

    def freeze(self, state: State, posterior) -> None:
        """A window begins with the frozen step; the first draw is the last one before it."""
        super().freeze(state, posterior)
        memory = state.memory
        memory.total, memory.filled = 0.0, 0
        if self.structure == "full":
            ratios = _relative_noise(*self._noise_and_curvature(state, posterior)) * memory.averaging
            memory.expected = float(ratios.min()), float(ratios.max())

    def draw(self, state: State) -> NDArray:
        """The average of the last whole window; before there is one, the point itself."""
        return state.theta if state.memory.average is None else state.memory.average

    def auto_burn_in(self, state: State) -> int:
        """At least two windows."""
        return max(super().auto_burn_in(state), 2 * state.memory.length)

    def auto_thin(self, state: State) -> int:
        """One window."""
        return state.memory.length

    def _always_stable(self) -> bool:
        return (self.structure, self.step_size) == ("full", "auto")

    def stationary_covariance(self, state: State, Lam: NDArray, M: NDArray) -> NDArray:
        return theory.iasg_cov(Lam, M, state.memory.gain.dense(), state.memory.length)

    def complaints(self, state: State) -> list[str]:
        found = super().complaints(state)
        memory = state.memory
        if memory.slowest < 10:
            found.append(
                f"IASG: one step for all directions leaves variances up to {-theory.iasg_error(memory.slowest):.0%} "
                f"too small, as the condition number of the curvature is {memory.condition:.3g} (Mandt et al. Eq. 47); "
                'use structure="full"'
            )
        low, high = memory.expected
        if low < 0.75 or high > 1.33:
            found.append(
                f"IASG: theory expects from {low:.2f} to {high:.2f} times the posterior's variance, by direction: the "
                "scatter of the rows is not the model's, the prior counts, or the window is off; use SGFS"
            )
        return found


# -- preconditioners -------------------------------------------------------------------------------------


def _unscaled(structure: str, P: Operator, M: Operator) -> tuple[Operator, float]:
    """H, and the step that makes it the optimum of `theory.optimal_preconditioner`."""
    if structure in _MATRICES:
        try:
            return P.inverse(), 2.0
        except np.linalg.LinAlgError as error:
            raise ValueError(
                "the gradient has no noise in some direction (constant or duplicate columns, more than two classes, "
                'all rows in a minibatch), and the continuous-time step is infinite; use correction="discrete" or SGFS'
            ) from error
    if structure == "sqrt" and not M.diagonal().min() > 0:
        raise ValueError('structure="sqrt" divides by gradient noise, of which a constant column has none; use "diag"')
    scale = np.ones(P.dim) if structure == "scalar" else M.diagonal() ** -0.5
    return Diag(scale), float(2 * P.dim / np.sum(P.diagonal() * scale))


def _calmed(K: Operator, M: Operator, Lam: Operator) -> Operator:
    """K with a Newton step in the directions without noise, where 2 (Lam + M)^-1 only changes the sign.

    K, M and Lam are diagonal together in the eigenvectors V of (M, Lam), V^T Lam V = I.
    """
    if not isinstance(K, Dense):
        assert isinstance(K, (Diag, Rotated))
        assert isinstance(Lam, (Diag, Rotated))
        values = np.where(_relative_noise(M, Lam) < _NOISELESS, 1.0 / Lam.values, K.values)
        return Rotated(values, K.rotation) if isinstance(K, Rotated) else Diag(values)
    assert isinstance(M, Dense)
    assert isinstance(Lam, Dense)
    values, V = eigh(M.matrix, Lam.matrix)
    V = V[:, values < _NOISELESS]
    dual = Lam.matrix @ V
    return Dense(K.matrix + (V * (1 - np.sum(dual * (K.matrix @ dual), axis=0))) @ V.T) if V.shape[1] else K


def _relative_noise(M: Operator, Lam: Operator) -> NDArray:
    """Eigenvalues of gradient noise over curvature; those of the diagonals where no more is stored."""
    if isinstance(M, Dense) and isinstance(Lam, Dense):
        return eigh(M.matrix, Lam.matrix, eigvals_only=True)
    assert isinstance(M, (Diag, Rotated))
    assert isinstance(Lam, (Diag, Rotated))
    return M.values / Lam.values


def _averaging(rho: float, T: NDArray) -> NDArray:
    """Variance of the mean of T iterates with F = rho over the noise M / Lam, per direction (MATH 3.6)."""
    return (1 - 2 * rho * (1 - rho**T) / (T * (1 - rho * rho))) / T


def _require_step(step_size: Schedule | str) -> None:
    if isinstance(step_size, str):
        if step_size != "auto":
            raise ValueError(f'step_size must be "auto" or a number, got {step_size!r}')
    elif not value_at(step_size, 0, "step_size") > 0:
        raise ValueError(f"step_size must be positive, got {step_size!r}")
