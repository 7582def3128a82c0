"""Stochastic gradient Fisher scoring (Ahn, Korattikara & Welling 2012)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skbayes_sg.data.minibatches import Batches, Rows
from skbayes_sg.linalg import Dense, Diag, Layout, Operator
from skbayes_sg.samplers.base import RunLength
from skbayes_sg.samplers.matrices import given_matrix, is_matrix
from skbayes_sg.samplers.preconditioned import Memory, PreconditionedSampler
from skbayes_sg.samplers.schedules import (
    POSITIVE,
    Schedule,
    is_auto,
    value_at,
    weight_at,
)
from skbayes_sg.samplers.target import State, Target
from skbayes_sg.validation import require_choice, require_integer

_STEEP_COLUMN = 15.0  # where all noise is that of minibatches
_ALPHA_OF_ALL_ROWS = 8.0  # below, ends of intervals are off where few rows are separable
_CHOICES = {
    "structure": ("full", "kron", "diag", "block", "scalar"),
    "variant": ("exact", "paper", "mandt"),
    "curvature": ("model", "empirical"),
    "adapt": ("burn_in", "always"),
}
_ALWAYS_STABLE = {"variant": "exact", "curvature": "model", "structure": "full"}


@dataclass(eq=False, repr=False)
class SGFS(PreconditionedSampler):
    """Stochastic gradient Fisher scoring.

    A step is the gradient of a minibatch times a matrix. The matrix is such that the noise of the
    minibatch does the work of random draws, and long steps stay right.

    ``theta += 2 P^-1 (gradient + eta)``,  ``eta ~ N(0, W)``,  ``P = curvature + noise + W``

    The curvature is that of the log posterior (model Fisher plus prior precision). The noise is the
    measured covariance of the minibatch gradient. W is the covariance of noise injected into the
    gradient. In the Gaussian regime the posterior is the stationary distribution, without
    discretisation error, for any SPD matrices in the three places
    (math/stationary.md#the-exact-step).

    Parameters
    ----------
    alpha : float, callable or "auto", default="auto"
        ``2 / sqrt(eps)`` of the paper: injected noise W = alpha^2 B. Zero mixes fastest (one
        effective draw per pass). A larger alpha follows a non-Gaussian posterior better; the IAT is
        gamma (1 + alpha^2) - 1 steps. A callable of the step index anneals, and a draw is then
        weighted by the step taken from it (math/sgfs.md#weights-of-annealed-draws). "auto": 0. In
        estimators the Stein ratio of short runs chooses it if `structure` drops correlations, and
        where each step takes all rows and the prior precision is sampled it is 8, in coordinates
        that follow the precision (math/sgfs.md#few-rows).
    structure : {"full", "kron", "block", "diag", "scalar"}, default="full"
        Which part of the matrices is kept. "full" is exact. The others give wrong variances along
        correlated directions unless alpha is large. "kron": the diagonal in the eigenvectors of the
        Kronecker factors of each layer's Fisher, which keeps correlations of inputs and of units at
        two small products a step. "block": a block per output unit (class); k blocks of size d take
        k d^3 operations for a measurement's factorisation, in place of D^3. "scalar": the mean of
        the diagonal of P.
    B : {"fisher", "precision", "bounded"}, float or array of shape (D,) or (D, D), default="fisher"
        An array is any symmetric positive definite matrix, or its diagonal, in 1 / parameter^2, and
        a number its multiple of the identity. It is injected whole, and P takes the part of it that
        `structure` keeps; "kron" takes no array. "fisher": the paper's
        gamma I_N. "precision": curvature with prior, plus gradient
        noise. It does not vanish with the scores of a model that fits its labels. As alpha grows,
        steps get shorter in all directions, and the chain follows any posterior. "bounded": as
        "precision", plus a constant (the mean of the diagonal). It keeps steps short where
        gradients are almost zero for most rows and large for a few.
    variant : {"exact", "paper", "mandt"}, default="exact"
        "exact": the prior enters P once, the noise factor is that of the row scheme, and prior
        noise is injected, so that directions without data follow the prior. "paper": Algorithm 1 as
        printed, P = gamma I_N + alpha^2 B with gamma = (n + N) / n; diverges under a strong prior.
        The paper also has ``adapt="always"``, ``refresh_every=1``, ``replace=True`` and
        ``kappa=lambda t: 1 / t``. Where P is singular, as in all models of more than two classes,
        "exact" with ``curvature="empirical"`` is the same step with the prior in P and in the
        noise. "mandt":
        optimal in continuous time, P = noise + W (Mandt et al. Eq. 36 and its corollary).
    h_max : float, optional
        With "diag" or "scalar": largest gain K_kk, a variance of theta (the paper's eps h_max / N).
        Where K_kk would be larger, W_kk = 2 / h_max - P_kk is injected (Mandt et al., section 4.2).
    curvature : {"model", "empirical"}, default="model"
        "model": Fisher with the labels integrated out. "empirical": the score covariance, as always
        in the variant "paper"; it is the curvature only where the model is right.
    covariance : {"minibatch", "single_row"}, default="minibatch"
        Estimator of one row's score covariance: all rows of the minibatch, or one of them, at
        random (Mandt et al. Eq. 25, bias removed). One row needs n times as many steps for the same
        precision: some hundred times D in burn-in. Minibatches of one row measure it over steps.
    adapt : {"burn_in", "always"}, default="burn_in"
        Freeze the averages after burn-in, or restart them there and go on.
    refresh_every : int or "auto", default="auto"
        Steps between two measurements while adapting. "auto": max(1, D // 40), at most 20 for
        "kron" and 10 for "diag" and "scalar"; 1 for single rows.
    batch_size : int or "auto", default="auto"
        Rows per minibatch, n. With no more rows than this each step uses all of them. "auto": 500.
    replace : bool, default=False
        Draw the rows of a minibatch with replacement.
    C : array of shape (D,) or (D, D), optional
        The paper's preconditioner, any symmetric positive definite matrix or its diagonal: K is
        (eps/2) C with eps = 4 / alpha^2, and W = alpha^2 C^-1 - curvature - noise (Eq. 9), in place
        of alpha^2 B. An alpha too small for W to be positive definite is refused.
    kappa : callable, optional
        The paper's schedule kappa_t: weight of the t-th measurement after the start, t = 1, 2, ...,
        in the running averages, in (0, 1]. The averages are then never restarted. By default 1/t,
        where t also counts the measurements of the start, restarted within burn-in.

    Notes
    -----
    Source: Ahn et al. 2012, Algorithm 1 and Eq. 11; Mandt et al. 2017, section 4.2;
    math/stationary.md#the-exact-step, math/sgfs.md#sgfs, math/sgfs.md#sgfs-variants. With more than
    half of the rows in a minibatch the noise factor c is below 1, and gradient noise is smaller
    than the curvature. The chain would overshoot, F = 1 - 2/(1 + c) < 0, and change sign for ever
    at c = 0. There (1 - c) times the model Fisher is injected as well, so that F = 0.

    Examples
    --------
    >>> from skbayes_sg.samplers import SGFS
    >>> SGFS(alpha=2.0, structure="diag")
    SGFS(alpha=2.0, structure='diag')
    """

    bias_remedy = "raise alpha"
    remedy_of_default = 'raise burn_in, or use sampler="hmc"'
    follows_coordinates = True

    alpha: Schedule | str = "auto"
    structure: str = "full"
    B: str | float | ArrayLike = "fisher"
    variant: str = "exact"
    h_max: float | None = None
    curvature: str = "model"
    covariance: str = "minibatch"
    adapt: str = "burn_in"
    refresh_every: int | str = "auto"
    batch_size: int | str = "auto"
    replace: bool = False
    C: ArrayLike | None = None
    kappa: Callable[[int], float] | None = None

    @property
    def remedy(self) -> str:
        for name, value in _ALWAYS_STABLE.items():
            if getattr(self, name) != value:
                return f'use {name}="{value}", or raise alpha'
        return "raise alpha or batch_size"

    # -- parameters ---------------------------------------------------------------------------

    def validate(self, target: Target) -> None:
        super().validate(target)
        for name, allowed in _CHOICES.items():
            require_choice(name, getattr(self, name), allowed)
        alpha = self._alpha_at(0)
        if is_matrix(self.B):
            given_matrix("B", self.B, target.dim)
            if self.structure == "kron":
                raise ValueError('structure="kron" keeps no coordinates for an array B')
        elif self.B not in ("fisher", "precision", "bounded"):
            value_at(self.B, None, "B", POSITIVE)
        elif self.B != "fisher" and self.variant != "exact":
            raise ValueError(f'B="{self.B}" needs variant="exact"')
        if self.h_max is not None:
            value_at(self.h_max, None, "h_max", POSITIVE)
            if self.structure not in ("diag", "scalar"):
                raise ValueError(
                    'h_max bounds the entries of a diagonal; use structure="diag" or "scalar"'
                )
        if self.C is not None:
            given_matrix("C", self.C, target.dim)
            if not alpha > 0:
                raise ValueError(
                    f"C needs a step eps = 4 / alpha^2: alpha must be positive, got {self.alpha!r}"
                )
            if self.h_max is not None or is_matrix(self.B) or self.B != "fisher":
                raise ValueError("C determines the injected noise: leave B and h_max out, or C")
            if self.structure == "kron":
                raise ValueError('structure="kron" keeps no coordinates for C; use "full"')
        if self.kappa is not None:
            if not callable(self.kappa):
                raise TypeError(f"kappa must be None or a callable of t, got {self.kappa!r}")
            value_at(self.kappa, 1, "kappa", "(0, 1]")
        if self.refresh_every != "auto":
            require_integer("refresh_every", self.refresh_every, 1, ' or "auto"')
        if target.posterior.weighted and self._empirical:
            raise ValueError(
                "the score covariance of weighted rows, as by sample_weight, is not their "
                'curvature; use variant="exact" with curvature="model"'
            )

    @property
    def needs_pilots(self) -> bool:
        """Whether alpha is "auto" and correlations are dropped, so that short runs must choose."""
        return is_auto(self.alpha) and self.structure != "full"

    def follows_precision(self, target: Target) -> bool:
        """Whether a step takes all rows, so that no matrix of their noise is to be measured."""
        as_named = self._always_stable() and isinstance(self.B, str) and self.B == "fisher"
        as_named &= self.C is None and self.kappa is None and self.adapt == "burn_in"
        all_rows = self.rows_per_step >= target.n_rows and not self.replace
        return is_auto(self.alpha) and as_named and all_rows

    def resolve_auto(self, target: Target) -> str:
        """Choose alpha and batch_size if they are "auto"."""
        rows, anchor = self.rows_per_step, target.anchor
        if self.alpha == "auto":
            self.alpha = 0.0 if anchor is None else _ALPHA_OF_ALL_ROWS
        self.batch_size = rows if anchor is None else anchor.pool_size
        return "" if anchor is None else "; all rows in each step, beside the prior precision"

    def _alpha_at(self, t: int) -> float:
        return 0.0 if is_auto(self.alpha) else value_at(self.alpha, t, "alpha", "[0, 1e6]")

    @property
    def _empirical(self) -> bool:
        """Whether the score covariance serves as curvature."""
        return self.curvature == "empirical" if self.variant == "exact" else self.variant == "paper"

    # -- motion -------------------------------------------------------------------------------

    def start(self, state: State, target: Target) -> None:
        if target.anchor is None:
            super().start(state, target)
        else:  # where the curvature is known
            state.memory = Memory(target.posterior.layout("full"))
            self.refresh(state, target)

    def step(self, state: State, target: Target) -> None:
        """The step of all of its kind; about an anchor from all rows, with a truncated drift.

        Far out in the funnel of a precision the gradient grows faster than the distance, and a step
        as long as it says would throw the chain. So no parameter drifts by more than a standard
        deviation in one step (Roberts & Tweedie 1996; math/sgfs.md#few-rows).
        """
        if target.anchor is None:
            super().step(state, target)
            return
        memory, gradient = state.memory, target.full_gradient(state.theta)
        drift = memory.preconditioner.matvec(gradient)
        np.clip(drift, -memory.longest, memory.longest, out=drift)
        normals = state.normals.standard_normal(state.theta.shape)
        noise = memory.preconditioner.matvec(memory.noise_root.matvec(normals))
        state.theta = state.theta + drift + noise
        state.gradient = gradient
        state.t += 1

    def _follow_schedule(self, state: State, target: Target) -> None:
        """Rebuild P and W when alpha moved by 1 %: a step with the old alpha in both is exact."""
        if callable(self.alpha):
            alpha = self._alpha_at(state.t)
            if abs(alpha - state.memory.alpha) > 0.01 * state.memory.alpha:
                self.refresh(state, target)

    def freeze(self, state: State, target: Target) -> None:
        if self.adapt == "always":
            self.restart(state, target)
        else:
            super().freeze(state, target)

    def draw(self, state: State) -> tuple[NDArray, float]:
        """Weighted by the step taken from the draw if alpha anneals; 0 as a cycle begins.

        Source: handout Eq. 3.8; math/sgfs.md#weights-of-annealed-draws.
        """
        return state.theta, weight_at(self.alpha, state.t) * state.memory.step

    # -- the operators ------------------------------------------------------------------------

    def _operators(self, state: State, target: Target) -> tuple[Operator, Operator | None]:
        """K = 2 P^-1, and a square root of W."""
        memory = state.memory
        memory.alpha = self._alpha_at(state.t)
        if target.anchor is not None:  # all rows: M = 0, and the model is right, I_N = Lam
            Lam = target.anchor.curvature
            memory.longest = np.sqrt(Lam.inverse().diagonal())
            W = Lam * (1.0 + memory.alpha**2)
            return (Lam + W).inverse() * 2.0, W.cholesky()
        P, W = FORMULAS[self.variant](memory, target.n_total, state.rows, self.B)
        if self.C is not None:
            C = given_matrix("C", self.C, target.dim)
            K, W = with_preconditioner(C, memory.alpha, self._kept(P))
        else:
            K, W = self._with_noise(memory.layout, P, W)
        if callable(self.alpha):
            memory.step = float(np.mean(K.diagonal() * P.diagonal()) / 2)
        return K, None if W is None else W.cholesky()

    def _with_noise(
        self, layout: Layout, P: Operator, W: Operator | None
    ) -> tuple[Operator, Operator | None]:
        """K = 2 (P + W)^-1 and W, with what h_max adds to it."""
        if self.h_max is not None:
            precision = (P if W is None else P + layout.keep(W)).diagonal()
            floor = Diag(np.maximum(0.0, 2.0 / self.h_max - precision))
            W = floor if W is None else W + floor
        return self._preconditioner(self._kept(P if W is None else P + layout.keep(W))), W

    def _kept(self, P: Operator) -> Operator:
        return Diag(np.full(P.dim, P.diagonal().mean())) if self.structure == "scalar" else P

    def _preconditioner(self, P: Operator) -> Operator:
        try:
            return P.inverse() * 2.0
        except np.linalg.LinAlgError as error:
            if self.variant == "exact":
                raise
            raise ValueError(
                f'variant="{self.variant}" has no prior in P, which is singular where a direction '
                "has no data noise (constant or duplicated columns, more than two classes); with "
                'variant="exact" and curvature="empirical" the same step has the prior there'
            ) from error

    def _fisher(
        self, target: Target, theta: NDArray, rows: Rows, layout: Layout
    ) -> Operator | None:
        unused = self._empirical or self.variant == "mandt"
        return None if unused else super()._fisher(target, theta, rows, layout)

    # -- distribution and report ------------------------------------------------------------------

    def run_length(self, state: State) -> RunLength:
        """As `Sampler.run_length`, for the autocorrelation time (1 + alpha^2) N/n."""
        passes = (1 + self._alpha_at(0) ** 2) * (state.rows.noise_factor + 1)
        share = 5 if state.memory.longest is None else 2  # far from normal, tails take longer
        return RunLength(max(1000, math.ceil(10 * passes)), max(1, round(passes / share)))

    @property
    def steepest_column(self) -> float:
        """Minibatches give the share 1 / (1 + alpha^2) of the noise, and walls stop it."""
        share = 1 / (1 + self._alpha_at(0) ** 2)
        return _STEEP_COLUMN / share

    def _always_stable(self) -> bool:
        return all(getattr(self, name) == value for name, value in _ALWAYS_STABLE.items())


# -- P and W, in the formulas of the papers and of this package ---------------------------------
#
# Each takes the averages of one row, the number of rows N, the minibatches (n rows, noise factor c)
# and B, a name, a number or an array, and returns P and W; W is None without injection.


def exact(
    memory: Memory, N: float, rows: Batches, B: str | float | ArrayLike
) -> tuple[Operator, Operator]:
    """P = F + c N I1 + prior and W = alpha^2 B + prior, F the model Fisher of all rows.

    In a direction without data the step is an independent draw of the prior. Where c < 1, (1 - c) F
    is injected as well (math/stationary.md#the-exact-step, math/sgfs.md#sgfs).
    """
    I_N, c = memory.I1 * N, rows.noise_factor
    F = I_N if memory.fisher is None else memory.fisher * N
    P = F + I_N * c + memory.prior
    W: Operator = memory.prior
    if memory.alpha > 0:
        W = shape_of(B, I_N * (c + 1.0), P) * memory.alpha**2 + W
    if c < 1.0:
        W = _sum(F * (1.0 - c), W)
    return P, W


def paper(
    memory: Memory, N: float, rows: Batches, B: str | float | ArrayLike
) -> tuple[Operator, Operator | None]:
    """P = gamma I_N, gamma = (n + N) / n; W = alpha^2 B: Algorithm 1 of Ahn et al. as printed."""
    P = memory.I1 * N * ((rows.size + N) / rows.size)
    return P, shape_of(B, P, P) * memory.alpha**2 if memory.alpha > 0 else None


def mandt(
    memory: Memory, N: float, rows: Batches, B: str | float | ArrayLike
) -> tuple[Operator, Operator | None]:
    """P = c N I1: optimal in continuous time (Mandt et al. Eq. 36 and the corollary after it)."""
    I_N, c = memory.I1 * N, rows.noise_factor
    P = I_N * c
    return P, shape_of(B, I_N * (c + 1.0), P) * memory.alpha**2 if memory.alpha > 0 else None


def with_preconditioner(C: Operator, alpha: float, P: Operator) -> tuple[Operator, Operator]:
    """K = (eps/2) C and W = alpha^2 C^-1 - P, eps = 4 / alpha^2: Eq. 9 of Ahn et al. for any P.

    K W K = eps C - (eps^2/4) C P C is the covariance injected into theta (math/sgfs.md#a-given-c).

    Raises
    ------
    ValueError
        If W is not positive definite; the message says from which alpha it is.
    """
    W = _sum(C.inverse() * alpha**2, P * -1.0)
    try:
        W.cholesky()
    except np.linalg.LinAlgError:
        least = math.sqrt(np.linalg.eigvals(C.dense() @ P.dense()).real.max())
        raise ValueError(
            f"alpha={alpha:.3g} is too small for this C, the step is too long: the noise left to "
            f"inject has no positive definite covariance; alpha must be above {least:.3g}, or "
            f"C below {(alpha / least) ** 2:.3g} times the present one"
        ) from None
    return C * (2.0 / alpha**2), W


def shape_of(B: str | float | ArrayLike, fisher: Operator, P: Operator) -> Operator:
    """The matrix that `B` names or is; a number is a multiple of the identity."""
    if is_matrix(B):
        return given_matrix("B", B, P.dim)
    if B == "fisher":
        return fisher
    if B == "precision":
        return P
    if B == "bounded":
        return P + Diag(np.full(P.dim, P.diagonal().mean()))
    return Diag(np.full(P.dim, float(B)))  # type: ignore[arg-type]


def _sum(A: Operator, B: Operator) -> Operator:
    """A + B; the sum of a matrix and blocks is a matrix."""
    if isinstance(A, Dense) != isinstance(B, Dense) and Diag not in (type(A), type(B)):
        return Dense(A.dense() + B.dense())
    return A + B


FORMULAS: dict[str, Callable[..., tuple[Operator, Operator | None]]] = {
    "exact": exact,
    "paper": paper,
    "mandt": mandt,
}
