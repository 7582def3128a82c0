"""Stochastic gradient Fisher scoring (Ahn, Korattikara & Welling 2012)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from skbayes_sg.linalg import Diag, Layout, Operator
from skbayes_sg.samplers.base import NoGainError, State
from skbayes_sg.samplers.preconditioned import Memory, PreconditionedSampler
from skbayes_sg.samplers.schedules import Schedule, value_at, weight_at

_HEAVY = 5  # noise number over that of normal rows, beyond which single rows throw a chain


@dataclass
class _Memory(Memory):
    alpha: float = 0.0  # the one that `gain` and `kick` were made with


class SGFS(PreconditionedSampler):
    """Stochastic gradient Fisher scoring.

    ``theta += 2 P^-1 (gradient + eta)``,  ``eta ~ N(0, W)``,  ``P = curvature + noise + W``

    with the curvature of the log posterior (model Fisher plus prior precision), the covariance of the
    minibatch gradient's noise, measured, and the covariance W of noise injected into the gradient. In
    the Gaussian regime this has the posterior as its stationary law, without discretisation error,
    for any SPD matrices in the three places (MATH 2).

    Parameters
    ----------
    alpha : float, callable or "auto", default="auto"
        ``2 / sqrt(eps)`` of the paper: injected noise W = alpha^2 B. Zero mixes fastest (one effective
        draw per pass); more follows a non-Gaussian posterior better, at IAT gamma (1 + alpha^2) - 1
        steps. A callable of the step index anneals. "auto": 0; with control variates what makes the IAT 3 steps; in
        estimators, with a structure that drops correlations, by the Stein ratio of short runs.
    structure : {"full", "kron", "block", "diag", "scalar"}, default="full"
        Which part of the matrices is kept. "full" is exact; the others misjudge variances along
        correlated directions unless alpha is large. "kron": the diagonal in the eigenvectors of the Kronecker factors
        of each layer's Fisher, which follows the correlations of inputs and of units at two small products
        a step. "scalar": the mean of the diagonal of P.
    block_size : int, optional
        With "block": coordinates per block; by default one block per output unit (class).
    B : {"fisher", "precision", "bounded"} or float, default="fisher"
        The paper's B: gamma I_N, or this number times the identity (in 1 / parameter^2). "fisher" with control
        variates: the curvature Lam. "precision": curvature, prior included, plus gradient noise: it does not
        vanish where a flexible model fits the labels and their scores do, and steps shrink in all directions as alpha
        grows, so that any posterior is followed in the limit. "bounded": the same plus the mean of its diagonal in
        every direction, which bounds the leap where scores have all but vanished and a rare row brings them back.
    variant : {"exact", "paper", "mandt"}, default="exact"
        "exact": the prior enters P once, the noise factor is that of the row scheme, and prior noise
        is injected, so that directions without data follow the prior. "paper": Algorithm 1 as
        printed, P = gamma I_N + alpha^2 B with gamma = (n + N) / n; diverges under a strong prior. To the
        letter it goes with ``adapt="always"``, ``refresh_every=1`` and ``replace=True``. "mandt": optimal in
        continuous time, P = noise + W (Mandt et al. Eq. 36 and the corollary after it).
    h_max : float, optional
        With "diag" or "scalar": largest gain K_kk, a variance of theta (the paper's eps h_max / N). Where the noise
        alone would give more, W_kk = 2 / h_max - P_kk is injected (Mandt et al., section 4.2).
    curvature : {"model", "empirical"}, default="model"
        "model": Fisher with the labels integrated out. "empirical": the score covariance serves as
        curvature too, as always in the variant "paper"; right only where the model is.
    covariance : {"minibatch", "single_row"}, default="minibatch"
        Estimator of one row's score covariance: all rows of the minibatch, or one of them, at random
        (Mandt et al. Eq. 25, bias removed). The latter needs n times as many steps for the same precision:
        some hundred times D in burn-in.
    adapt : {"burn_in", "always"}, default="burn_in"
        Freeze the averages after burn-in, or go on with kappa_t = 1/t, restarted there.
    refresh_every : int or "auto", default="auto"
        While adapting, measure and factorise every so many steps; auto is max(1, D // 40), and 1 for
        single rows.
    batch_size : int or "auto", default="auto"
        Rows per minibatch, n. With no more rows than this each step uses all of them. "auto": 500; with control
        variates kappa, at least 32, where gradient noise is as large as the curvature; more where a row has a leverage
        that would throw the chain.
    replace : bool, default=False
        Draw the rows of a minibatch with replacement.
    variance_reduction : {None, "control_variate"}, default=None
        "control_variate": gradients corrected by those near the posterior mean, so that noise is that of the
        change of the scores; some tens of effective draws per pass instead of one. For estimators whose scores
        are residuals times inputs. Refused where N < 2 (n alpha^2 + kappa), kappa the noise number of the
        data (about the number of parameters; more with heavy-tailed rows).

    Notes
    -----
    Source: Ahn et al. 2012, Algorithm 1 and Eq. 11; Mandt et al. 2017, section 4.2; MATH 2, 3.1, 3.2, 9. Where
    fewer than half of the rows are left out (noise factor c < 1) the gradient noise alone is smaller than
    the curvature and the chain would overshoot, F = 1 - 2/(1 + c) < 0, down to flipping sign for ever at
    c = 0. There (1 - c) times the model Fisher is injected as well: F = 0, and any SPD W is exact.

    Examples
    --------
    >>> from skbayes_sg.samplers import SGFS
    >>> SGFS(alpha=2.0, structure="diag")
    SGFS(alpha=2.0, structure='diag')
    """

    remedy = 'raise alpha, or batch_size, or use structure="full"'
    bias_remedy = "raise alpha"
    memory_type = _Memory

    def __init__(
        self,
        alpha: Schedule | str = "auto",
        structure: str = "full",
        block_size: int | None = None,
        B: str | float = "fisher",
        variant: str = "exact",
        h_max: float | None = None,
        curvature: str = "model",
        covariance: str = "minibatch",
        adapt: str = "burn_in",
        refresh_every: int | str = "auto",
        batch_size: int | str = "auto",
        replace: bool = False,
        variance_reduction: str | None = None,
    ) -> None:
        self.alpha = alpha
        self.structure = structure
        self.block_size = block_size
        self.B = B
        self.variant = variant
        self.h_max = h_max
        self.curvature = curvature
        self.covariance = covariance
        self.adapt = adapt
        self.refresh_every = refresh_every
        self.batch_size = batch_size
        self.replace = replace
        self.variance_reduction = variance_reduction

    def validate(self, posterior) -> None:
        super().validate(posterior)
        choices = {
            "structure": ("full", "kron", "diag", "block", "scalar"),
            "variant": ("exact", "paper", "mandt"),
            "curvature": ("model", "empirical"),
            "covariance": ("minibatch", "single_row"),
            "adapt": ("burn_in", "always"),
            "variance_reduction": (None, "control_variate"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {getattr(self, name)!r}")
        if not 0 <= self._alpha_at(0) <= 1e6:
            raise ValueError(f"alpha must lie between 0 and 1e6, got {self.alpha!r}")
        if isinstance(self.B, str):
            if self.B not in ("fisher", "precision", "bounded"):
                raise ValueError(f'B must be "fisher", "precision", "bounded" or a positive number, got {self.B!r}')
            if self.B != "fisher" and (self.variant != "exact" or self.variance_reduction is not None):
                raise ValueError(f'B="{self.B}" needs variant="exact" without control variates')
        elif not value_at(self.B, 0, "B") > 0:
            raise ValueError(f'B must be "fisher", "precision", "bounded" or a positive number, got {self.B!r}')
        if self.refresh_every != "auto" and not _is_count(self.refresh_every):
            raise ValueError(f'refresh_every must be "auto" or an integer of at least 1, got {self.refresh_every!r}')
        if self.block_size is not None and not (_is_count(self.block_size) and self.block_size <= posterior.dim):
            raise ValueError(
                f"block_size must be an integer from 1 to the number of parameters, {posterior.dim}, "
                f"got {self.block_size!r}"
            )
        if self.h_max is not None:
            if callable(self.h_max) or not value_at(self.h_max, 0, "h_max") > 0:
                raise ValueError(f"h_max must be None or a positive number, got {self.h_max!r}")
            if self.structure not in ("diag", "scalar"):
                raise ValueError('h_max bounds the entries of a diagonal; use structure="diag" or "scalar"')
        if posterior.sample_weight is not None and self._empirical:
            raise ValueError(
                "sample_weight or class_weight: the score covariance of weighted rows is not their curvature; "
                'use variant="exact" with curvature="model"'
            )

        if self.variance_reduction is not None:
            self._validate_control_variates()

    def _validate_control_variates(self) -> None:
        if self.variant != "exact" or self.curvature != "model" or self.structure != "full":
            raise ValueError(
                'variance_reduction="control_variate" needs the curvature apart from the noise: '
                'variant="exact", curvature="model", structure="full"'
            )
        if isinstance(self.alpha, (int, float)) and self.alpha == 0:
            raise ValueError(
                'variance_reduction="control_variate" leaves too little noise to sample with; alpha must be positive'
            )

    def settle(self, posterior) -> None:
        """Numbers for alpha and batch_size; for control variates from the noise number of the data (MATH 9).

        With noise m = kappa / n and injection w = alpha^2, in units of the curvature, a step is 2 / (1 + m + w) of a
        Newton step and the autocorrelation time m + w steps. Any sum is exact for a Gaussian posterior; 3 keeps
        the bias on others small. As the noise grows with the variance that it makes, a bias is
        multiplied by (m + w) / w: w is at least 2 m.
        """
        if self.variance_reduction is None:
            self.alpha = self._alpha_at(0) if isinstance(self.alpha, str) else self.alpha
            self.batch_size = self.rows_per_step
            return
        kappa = posterior.noise_number()
        n = self.batch_size
        if isinstance(n, str):  # a row of leverage h multiplies the distance from the mode by 1 - (N/n) h / 2
            n = max(32, round(kappa), math.ceil(posterior.largest_row() / 4))
        w = max(3.0 - kappa / n, 2 * kappa / n) if isinstance(self.alpha, str) else self._alpha_at(0) ** 2
        if posterior.n_total < 2 * (n * w + kappa):
            raise NoGainError(
                f"control variates do not pay: the {posterior.n_total:.0f} rows are fewer than 2 (n w + kappa) = "
                f"{2 * (n * w + kappa):.0f}, with kappa={kappa:.0f} the noise number of these data, n={n} rows a step "
                f"and w={w:.2g} injected",
                heavy=kappa > _HEAVY * posterior.dim,
            )
        self.batch_size = n
        if isinstance(self.alpha, str):
            self.alpha = math.sqrt(w)

    def _alpha_at(self, t: int) -> float:
        if isinstance(self.alpha, str):
            if self.alpha != "auto":
                raise ValueError(f'alpha must be "auto", a number or a callable, got {self.alpha!r}')
            return 0.0
        return value_at(self.alpha, t, "alpha")

    @property
    def _empirical(self) -> bool:
        """Whether the score covariance serves as curvature."""
        return self.variant == "paper" or (self.variant == "exact" and self.curvature == "empirical")

    # -- what is learnt on the way ------------------------------------------------------------------

    def _period(self, posterior) -> int:
        return 1 if self.refresh_every == "auto" and self.covariance == "single_row" else super()._period(posterior)

    def _rank(self, state: State) -> float:
        return super()._rank(state) if self.covariance == "minibatch" else 1

    def start(self, state: State, posterior) -> None:
        """With control variates nothing is left to learn: curvature and mean noise are the anchor's."""
        if not posterior.shares_rows:
            super().start(state, posterior)
            return
        prior = posterior.prior.curvature(posterior.anchor)
        state.memory = _Memory("full", posterior.noise, posterior.anchor_curvature, prior)
        state.memory.adapting = False
        self.refresh(state, posterior)

    def _noise(self, state: State, scores, layout: Layout) -> Operator:
        """The row of Eq. 25 is drawn (minibatches are sorted, the first row is not any row)."""
        if self.covariance == "minibatch":
            return super()._noise(state, scores, layout)
        return scores.single_row_covariance(layout, int(state.noise.integers(scores.n_rows)))

    def _curvature(self, posterior, theta, rows, layout: Layout) -> Operator | None:
        if self._empirical or self.variant == "mandt":
            return None
        return super()._curvature(posterior, theta, rows, layout)

    def _follow_schedule(self, state: State, posterior) -> None:
        """Rebuild when alpha moved by 1 %: a step with the old one in P and in W is as exact."""
        if callable(self.alpha):
            alpha = self._alpha_at(state.t)
            if abs(alpha - state.memory.alpha) > 0.01 * state.memory.alpha:
                self.refresh(state, posterior)

    def freeze(self, state: State, posterior) -> None:
        if self.variance_reduction is not None:
            return
        if self.adapt == "always":
            self.restart(state, posterior)
        else:
            super().freeze(state, posterior)

    # -- the operators ------------------------------------------------------------------------------

    def _operators(self, state: State, posterior) -> tuple[Operator, Operator | None]:
        """K = 2 P^-1, and W."""
        state.memory.alpha = self._alpha_at(state.t)
        if not 0 <= state.memory.alpha <= 1e6:
            raise ValueError(f"alpha must lie between 0 and 1e6, alpha({state.t}) is {state.memory.alpha}")
        P, W = (
            self._anchored_precision(state, posterior)
            if posterior.shares_rows
            else self._precision(state.memory, posterior.n_total, state.rows)
        )
        if self.structure == "scalar":
            P = Diag(np.full(P.dim, P.diagonal().mean()))
        try:
            return P.inverse() * 2.0, W
        except np.linalg.LinAlgError as error:
            if self.variant == "exact":
                raise
            raise ValueError(
                f'variant="{self.variant}" has no prior in P, which is singular where a direction has no data noise '
                '(constant or duplicated columns, more than two classes); use variant="exact", or a number for B '
                "with alpha > 0"
            ) from error

    def _precision(self, memory: _Memory, N: float, rows) -> tuple[Operator, Operator | None]:
        """P = curvature + noise + W, and W."""
        fisher, c = memory.noise * N, rows.noise_factor  # N I1
        gamma = (rows.size + N) / rows.size if self.variant == "paper" else c + 1.0
        curvature = fisher if memory.curvature is None else memory.curvature * N
        exact = curvature + fisher * c + memory.prior
        W = self._given(fisher * gamma, exact) * memory.alpha**2 if memory.alpha > 0 else None
        if self.variant == "paper":
            P = fisher * gamma
        elif self.variant == "mandt":
            P = fisher * c
        else:
            # in a direction without data F = 0: an independent draw of the prior
            W = memory.prior if W is None else W + memory.prior
            if c < 1.0:
                W = curvature * (1.0 - c) + W
            P = exact
        if self.h_max is not None:
            floor = Diag(np.maximum(0.0, 2.0 / self.h_max - (P if W is None else P + W).diagonal()))
            W = floor if W is None else W + floor
        return (P if W is None else P + W), W

    def _anchored_precision(self, state: State, posterior) -> tuple[Operator, Operator]:
        """P = (1 + w) Lam + noise and W = w Lam, Lam the curvature at the anchor (MATH 9)."""
        Lam, w = posterior.anchor_curvature, state.memory.alpha**2
        W = Lam * w if self.B == "fisher" else Lam * 0.0 + Diag(np.full(Lam.dim, w * float(self.B)))
        return Lam + state.memory.noise * (state.rows.noise_factor * posterior.n_total) + W, W

    def _given(self, fisher: Operator, exact: Operator) -> Operator:
        """B: the paper's, from the Fisher matrix, or a number; or from P without injection."""
        if self.B == "fisher":
            return fisher
        if self.B == "precision":
            return exact
        level = Diag(np.full(fisher.dim, exact.diagonal().mean() if self.B == "bounded" else float(self.B)))
        return exact + level if self.B == "bounded" else level

    def weight(self, state: State) -> float:
        """0 in the bold part of a cycle."""
        return weight_at(self.alpha, state.t)

    def _always_stable(self) -> bool:
        return self.structure == "full" and self.variant == "exact" and self.curvature == "model"

    def auto_burn_in(self, state: State) -> int:
        """As `Sampler.auto_burn_in`, for the autocorrelation time (1 + alpha^2) N/n; 100 with control variates.

        They have nothing to learn, and forget the start in some ten steps.
        """
        if self.variance_reduction is not None:
            return 100
        return max(1000, math.ceil(10 * self._relative_time(state)))

    def auto_thin(self, state: State) -> int:
        """As `Sampler.auto_thin`; one autocorrelation time with control variates."""
        if self.variance_reduction is not None:
            return 3
        return max(1, round(self._relative_time(state) / 5))

    def _relative_time(self, state: State) -> float:
        return (1 + self._alpha_at(0) ** 2) * (state.rows.noise_factor + 1)


def _is_count(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1
