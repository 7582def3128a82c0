"""Stochastic gradient Fisher scoring (Ahn, Korattikara & Welling 2012)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from skbayes_sg.linalg import Diag, Layout, Operator, largest_eigenvalue
from skbayes_sg.samplers.base import Sampler, State, first_chain
from skbayes_sg.samplers.schedules import Schedule, value_at


@dataclass
class _Memory:
    layout: Layout
    noise: Operator  # I1: running average of the score covariance of one row
    curvature: Operator | None  # running average of the model Fisher of one row
    count: float = 1.0  # minibatches in the averages
    turn: int = 0  # measurements so far
    adapting: bool = True
    alpha: float = 0.0  # the one that `gain` and `kick` were made with
    gain: Operator | None = None  # 2 P^-1
    kick: Operator | None = None  # a square root of the injected covariance W, None without injection
    radius: float = 0.0  # spectral radius at the start or at the freeze, where it is not known to be below 1


class SGFS(Sampler):
    """Stochastic gradient Fisher scoring.

    ``theta += 2 P^-1 (gradient + eta)``,  ``eta ~ N(0, W)``,  ``P = curvature + noise + W``

    with the curvature of the log posterior (model Fisher plus prior precision), the covariance of the
    minibatch gradient's noise, measured, and the covariance W of noise injected into the gradient. In
    the Gaussian regime this has the posterior as its stationary law, without discretisation error,
    for any SPD matrices in the three places (MATH 2).

    Parameters
    ----------
    alpha : float or callable, default=0.0
        ``2 / sqrt(eps)`` of the paper: injected noise W = alpha^2 B. Zero mixes fastest (one effective
        draw per pass); more follows a non-Gaussian posterior better, at IAT gamma (1 + alpha^2) - 1
        steps. A callable of the step index anneals.
    structure : {"full", "diag", "block"}, default="full"
        Which part of the matrices is kept. "full" is exact; "diag" and "block" misjudge variances
        along correlated directions unless alpha is large.
    block_size : int, optional
        With "block": coordinates per block; by default one block per output unit (class).
    B : "fisher" or float, default="fisher"
        The paper's B: gamma I_N, or this number times the identity (in 1 / parameter^2).
    variant : {"exact", "paper"}, default="exact"
        "exact": the prior enters P once, the noise factor is that of the row scheme, and prior noise
        is injected, so that directions without data follow the prior. "paper": Algorithm 1 as
        printed, P = gamma I_N + alpha^2 B with gamma = (n + N) / n; diverges under a strong prior. To the
        letter it goes with ``adapt="always"``, ``refresh_every=1`` and ``replace=True``.
    curvature : {"model", "empirical"}, default="model"
        "model": Fisher with the labels integrated out. "empirical": the score covariance serves as
        curvature too, as always in the paper's variant; right only where the model is.
    covariance : {"minibatch", "single_row"}, default="minibatch"
        Estimator of one row's score covariance: all rows of the minibatch, or one of them, at random
        (Mandt et al. Eq. 25, bias removed). The latter needs n times as many steps for the same precision:
        some hundred times D in burn-in.
    adapt : {"burn_in", "always"}, default="burn_in"
        Freeze the averages after burn-in, or go on with kappa_t = 1/t, restarted there.
    refresh_every : int or "auto", default="auto"
        While adapting, measure and factorise every so many steps; auto is max(1, D // 40), and 1 for
        single rows.
    batch_size : int, default=500
        Rows per minibatch, n. With no more rows than this each step uses all of them.
    replace : bool, default=False
        Draw the rows of a minibatch with replacement.

    Notes
    -----
    Source: Ahn et al. 2012, Algorithm 1 and Eq. 11; MATH 2 and 3.1. Where fewer than half of the rows
    are left out (noise factor c < 1) the gradient noise alone is smaller than the curvature and the
    chain would overshoot, F = 1 - 2/(1 + c) < 0, down to flipping sign for ever at c = 0. There
    (1 - c) times the model Fisher is injected as well: F = 0, and any SPD W is exact.

    Examples
    --------
    >>> from skbayes_sg.samplers import SGFS
    >>> SGFS(alpha=2.0, structure="diag")
    SGFS(alpha=2.0, structure='diag')
    """

    remedy = "raise alpha, or batch_size"

    def __init__(
        self,
        alpha: Schedule = 0.0,
        structure: str = "full",
        block_size: int | None = None,
        B: str | float = "fisher",
        variant: str = "exact",
        curvature: str = "model",
        covariance: str = "minibatch",
        adapt: str = "burn_in",
        refresh_every: int | str = "auto",
        batch_size: int = 500,
        replace: bool = False,
    ) -> None:
        self.alpha = alpha
        self.structure = structure
        self.block_size = block_size
        self.B = B
        self.variant = variant
        self.curvature = curvature
        self.covariance = covariance
        self.adapt = adapt
        self.refresh_every = refresh_every
        self.batch_size = batch_size
        self.replace = replace

    def validate(self, posterior) -> None:
        super().validate(posterior)
        choices = {
            "structure": ("full", "diag", "block"),
            "variant": ("exact", "paper"),
            "curvature": ("model", "empirical"),
            "covariance": ("minibatch", "single_row"),
            "adapt": ("burn_in", "always"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {getattr(self, name)!r}")
        if not 0 <= value_at(self.alpha, 0, "alpha") <= 1e6:
            raise ValueError(f"alpha must lie between 0 and 1e6, got {self.alpha!r}")
        if isinstance(self.B, str):
            if self.B != "fisher":
                raise ValueError(f'B must be "fisher" or a positive number, got {self.B!r}')
        elif not value_at(self.B, 0, "B") > 0:
            raise ValueError(f'B must be "fisher" or a positive number, got {self.B!r}')
        if self.refresh_every != "auto" and not _is_count(self.refresh_every):
            raise ValueError(f'refresh_every must be "auto" or an integer of at least 1, got {self.refresh_every!r}')
        if self.block_size is not None and not (_is_count(self.block_size) and self.block_size <= posterior.dim):
            raise ValueError(
                f"block_size must be an integer from 1 to the number of parameters, {posterior.dim}, "
                f"got {self.block_size!r}"
            )
        if posterior.sample_weight is not None and self._empirical:
            raise ValueError(
                "sample_weight or class_weight: the score covariance of weighted rows is not their curvature; "
                'use variant="exact" with curvature="model"'
            )

    @property
    def _empirical(self) -> bool:
        return self.variant == "paper" or self.curvature == "empirical"

    # -- the update -------------------------------------------------------------------------------

    def step(self, state: State, posterior) -> None:
        memory = state.memory
        rows = state.rows.draw()
        scores = posterior.scores(state.theta, rows)
        gradient = posterior.gradient(state.theta, scores)
        if memory.adapting and state.t % self._period(posterior) == 0:
            self._learn(state, posterior, rows, scores)
            self._factorise(state, posterior)
        elif callable(self.alpha):
            self._follow_alpha(state, posterior)

        force = gradient
        if memory.kick is not None:
            force = gradient + memory.kick.matvec(state.noise.standard_normal(state.theta.shape))
        state.theta += memory.gain.matvec(force)
        state.gradient = gradient
        state.t += 1

    def _period(self, posterior) -> int:
        if self.refresh_every != "auto":
            return int(self.refresh_every)
        return max(1, posterior.dim // 40) if self.covariance == "minibatch" else 1

    def _follow_alpha(self, state: State, posterior) -> None:
        """Rebuild when alpha moved by 1 %: a step with the old one in P and in W is as exact."""
        alpha = value_at(self.alpha, state.t, "alpha")
        if abs(alpha - state.memory.alpha) > 0.01 * state.memory.alpha:
            self._factorise(state, posterior)

    # -- what is learnt on the way ------------------------------------------------------------------

    def start(self, state: State, posterior) -> None:
        """Average over enough minibatches at the initial points for full rank (MATH trap 4)."""
        layout = posterior.layout(self.structure, self.block_size)
        rows = state.rows.draw()
        scores = posterior.scores(state.theta, rows)
        state.memory = _Memory(layout, *self._measure(state, posterior, rows, scores, layout, turn=0))
        if not state.rows.whole:
            rank = state.rows.size if self.covariance == "minibatch" else 1
            for _ in range(math.ceil(5 * posterior.dim / rank)):
                rows = state.rows.draw()
                self._learn(state, posterior, rows, posterior.scores(state.theta, rows))
        self._factorise(state, posterior)
        if self.structure != "full":
            state.memory.radius = self._spectral_radius(state, posterior)

    def _measure(self, state, posterior, rows, scores, layout, turn) -> tuple[Operator, Operator | None]:
        """Score covariance and model Fisher of one row, at the minibatch of one chain.

        The chains of a group take turns: their minibatches are equally good, and one at a time spreads
        the average over more of the path. The row of Eq. 25 is drawn (minibatches are sorted, the first
        row is not any row).
        """
        chain = turn % len(state.theta)
        one = scores.of_chain(chain)
        if self.covariance == "minibatch":
            noise = one.covariance(layout)
        else:
            noise = one.single_row_covariance(layout, int(state.noise.integers(one.n_rows)))
        if self._empirical:
            return noise, None
        its_rows = rows if isinstance(rows, slice) else rows[chain : chain + 1]
        fisher = posterior.fisher(state.theta[chain : chain + 1], its_rows)
        return noise, fisher.moment(layout) * (1.0 / fisher.n_rows)

    def _learn(self, state: State, posterior, rows, scores) -> None:
        """I1 <- (1 - kappa) I1 + kappa V with kappa = 1/t (Ahn Eq. 12), and the curvature likewise."""
        memory = state.memory
        memory.turn += 1
        noise, curvature = self._measure(state, posterior, rows, scores, memory.layout, memory.turn)
        memory.count += 1
        memory.noise.blend(noise, 1 / memory.count)
        if curvature is not None:
            memory.curvature.blend(curvature, 1 / memory.count)

    def _factorise(self, state: State, posterior) -> None:
        memory = state.memory
        memory.alpha = value_at(self.alpha, state.t, "alpha")
        if not 0 <= memory.alpha <= 1e6:
            raise ValueError(f"alpha must lie between 0 and 1e6, alpha({state.t}) is {memory.alpha}")
        P, W = self._operators(memory, posterior, state.rows)
        try:
            memory.gain = P.inverse() * 2.0
            memory.kick = None if W is None else W.cholesky()
        except np.linalg.LinAlgError as error:
            if self.variant == "exact":
                raise
            raise ValueError(
                'variant="paper" has no prior in P, which is singular where a direction has no data noise (constant or '
                'duplicated columns, more than two classes); use variant="exact", or a number for B with alpha > 0'
            ) from error

    def _operators(self, memory: _Memory, posterior, rows) -> tuple[Operator, Operator | None]:
        """P = curvature + noise + W, and W."""
        fisher = memory.noise * posterior.n_total  # N I1
        alpha2 = memory.alpha**2
        if self.variant == "paper":
            gamma = (rows.size + posterior.n_total) / rows.size
            injected = self._injected(alpha2, gamma, fisher) if alpha2 > 0 else None
            return (fisher * gamma if injected is None else fisher * gamma + injected), injected
        c = rows.noise_factor
        curvature = fisher if memory.curvature is None else memory.curvature * posterior.n_total
        W: Operator = posterior.prior  # in a direction without data F = 0: an independent draw of the prior
        if alpha2 > 0:
            W = self._injected(alpha2, c + 1.0, fisher) + W
        if c < 1.0:
            W = curvature * (1.0 - c) + W
        return curvature + fisher * c + posterior.prior + W, W

    def _injected(self, alpha2: float, gamma: float, fisher: Operator) -> Operator:
        """W = alpha^2 B = 4 B / eps."""
        if self.B == "fisher":
            return fisher * (alpha2 * gamma)
        return Diag(np.full(fisher.dim, alpha2 * float(self.B)))

    def restart(self, state: State, posterior) -> None:
        """Keep the averages as if from the square root of their number of minibatches (MATH trap 5)."""
        state.memory.count = math.sqrt(state.memory.count)

    def freeze(self, state: State, posterior) -> None:
        if self.adapt == "always":
            self.restart(state, posterior)
            return
        self._factorise(state, posterior)
        state.memory.adapting = False
        if self.structure != "full":
            state.memory.radius = max(state.memory.radius, self._spectral_radius(state, posterior))

    def _spectral_radius(self, state: State, posterior) -> float:
        """Of I - 2 P^-1 Lam with the whole curvature Lam, estimated from the Fisher of ten minibatches."""
        batches = [first_chain(state.rows.draw()) for _ in range(1 if state.rows.whole else 10)]
        fishers = [posterior.fisher(state.theta[:1], rows) for rows in batches]

        def gain_curvature(v):
            Lam_v = posterior.prior_precision * v
            for fisher in fishers:
                Lam_v = Lam_v + fisher.gram_matvec(v) * (posterior.n_total / fisher.n_rows / len(fishers))
            return state.memory.gain.matvec(Lam_v)

        return largest_eigenvalue(gain_curvature, posterior.dim, np.random.default_rng(0)) - 1.0

    def auto_burn_in(self, state: State) -> int:
        """As `Sampler.auto_burn_in`, for the autocorrelation time (1 + alpha^2) N/n."""
        return max(1000, math.ceil(10 * self._relative_time(state)))

    def auto_thin(self, state: State) -> int:
        """As `Sampler.auto_thin`."""
        return max(1, round(self._relative_time(state) / 5))

    def _relative_time(self, state: State) -> float:
        return (1 + value_at(self.alpha, 0, "alpha") ** 2) * (state.rows.noise_factor + 1)

    def complaints(self, state: State) -> list[str]:
        if state.memory.radius < 1.0:
            return []
        return [
            f'SGFS(structure="{self.structure}") is unstable here: spectral radius {state.memory.radius:.2f} >= 1 at '
            f'alpha={state.memory.alpha:g}; raise alpha, or use structure="full"'
        ]


def _is_count(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1
