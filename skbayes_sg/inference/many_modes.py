"""How chains of a posterior with many modes start, and by which samplers they move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.chains.tuning import choose_alpha, from_modes
from skbayes_sg.diagnostics import judgements
from skbayes_sg.inference.options import Choice, Options
from skbayes_sg.inference.plan import Plan
from skbayes_sg.inference.result import Fit
from skbayes_sg.linalg.sizes import has_cheap_gradients
from skbayes_sg.models import Model
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.gaussian import InitialPoint, Mode
from skbayes_sg.samplers import HMC, IASG, SGFS, SGHMC, SGLD, ConstantSGD, MomentumSGD

_EXPONENTIAL = 20  # cost of an exponential, in products
_NAMED_STEP = 3e-3  # of "sghmc"
_SHORT_STEP = 0.1  # over curvature plus noise; at 0.5 the DRBM on iris draws far too wide
_AVERAGED_STEP = 0.005  # over curvature; longer and shorter ones have no lower loss on digits
_MOST_DRAWS, _DRAWS_IN_MODES = 50, 20  # per chain
_DRAW_BYTES = 1 << 28  # largest size of the draws of all chains by default
_MANY_BYTES = 1 << 30  # above this size the user gets a warning
_DOUBLED = 16  # times as many draws divide the error of averages by four
_SMALL_BATCH = 20  # rows: constant SGD has no other noise than that of its minibatches


@dataclass(frozen=True)
class ManyModes(Plan):
    """Chains start from independent random points.

    Attributes
    ----------
    injected : str
        B of SGFS.
    temperature : float
        Temperature of the posterior.
    in_modes : bool
        Whether chains stay in modes of their own, each found by steps without noise.
    predictions : function, optional
        How far the chains of a fit agree on what they predict, given it and the posterior.
    """

    injected: str
    temperature: float
    in_modes: bool
    predictions: Callable[[Fit, Posterior, int], dict[str, float]] | None = None
    dtype: type = np.float32

    def first(self, posterior: Posterior) -> Choice:
        if self.in_modes:
            reason = "many modes that are sampled shortly predict best"
            if self.temperature != 1:
                cold = f"at temperature {self.temperature:g} the posterior is no longer Bayes's"
                reason = f"{cold}, and {reason}"
            return Choice(SGHMC(share_rows=True, single=True), reason, from_modes)
        products = gradient_products(posterior.model, posterior.n_rows)
        cost = f"a gradient of {posterior.n_rows} rows costs {products:.1e} products"
        if has_cheap_gradients(products):
            reason = f"{cost}: so few that all rows at every step, and exactness, cost little"
            return Choice(_of_all_rows(), reason)
        return Choice(self.of_minibatches(), f"{cost}: too many for all rows", choose_alpha)

    def of_minibatches(self) -> SGFS:
        """SGFS with injected noise in proportion to the curvature.

        Noise in proportion to the score covariance would vanish in a network that fits its labels.
        """
        return SGFS(structure="diag", B=self.injected)

    def presets(self, dim: int) -> dict[str, Choice]:
        """Samplers by name, in a form whose steps are short along every direction of a network.

        Steps as long as those of a Gaussian posterior leave the region in which a curvature holds.
        """
        small: dict[str, Any] = {"structure": "diag", "batch_size": _SMALL_BATCH}
        why = "longer steps diverge in a network, and these draw variances that are too small"
        return {
            "sgfs": Choice(self.of_minibatches(), "injected noise keeps its steps short"),
            "constant_sgd": Choice(ConstantSGD(step_size=_SHORT_STEP, **small), why),
            "momentum_sgd": Choice(MomentumSGD(step_size=_SHORT_STEP, **small), why),
            "iasg": Choice(IASG(step_size=_AVERAGED_STEP, **small), why),
            "sgld": Choice(SGLD(preconditioner="diag"), "each parameter has a step of its own"),
            "sghmc": Choice(SGHMC(step_size=_NAMED_STEP, single=True), "roundings are small"),
            "hmc": Choice(_of_all_rows(), "the form that sampler=None runs for few rows"),
        }

    def fallback(self, posterior: Posterior, why: str, expandable: bool = True) -> Choice:
        raise ValueError(why)

    def start(
        self,
        posterior: Posterior,
        rng: np.random.Generator,
        n_chains: int,
        last: NDArray | None,
        initial: InitialPoint | None = None,
    ) -> tuple[NDArray, Mode | None]:
        """Random points, or where the last fit stopped."""
        if last is None:
            last = np.concatenate([posterior.model.init(rng) for _ in range(n_chains)])
        return last, None

    def n_draws(
        self, options: Options, n_chains: int, dim: int, near_normal: bool = False
    ) -> tuple[int, int, list[str]]:
        """Draws, by default 50 of each chain, or fewer so that all take at most 256 MB.

        At temperature 1 up to sixteen times as many are drawn. No more are at another temperature,
        where chains are in modes of their own.
        """
        of_each = n_chains * dim * np.dtype(self.dtype).itemsize
        if options.n_draws == "auto":
            wanted = _DRAWS_IN_MODES if self.in_modes else _MOST_DRAWS
            n_draws = max(4, min(wanted, _DRAW_BYTES // of_each))
            most = min(_DOUBLED * n_draws, _DRAW_BYTES // of_each) if self.temperature == 1 else 0
            return n_draws, most, []
        n_draws = int(options.n_draws)
        if n_draws * of_each <= _MANY_BYTES:
            return n_draws, n_draws, []
        said = (
            f"{n_chains} chains of {n_draws} draws of {dim} parameters take "
            f"{n_draws * of_each / 1e9:.1f} GB of memory; lower n_draws, or set "
            'n_draws="auto"'
        )
        return n_draws, n_draws, [said]

    def agreement(self, fit: Fit, posterior: Posterior, n_gradients: int) -> dict[str, float]:
        """Agreement on averaged predictions: weights of hidden units can change places."""
        assert self.predictions is not None
        return self.predictions(fit, posterior, n_gradients)

    def is_enough(self, fit: Fit) -> bool:
        """Whether averaged predictions are known; chains may agree on nothing else."""
        assert fit.engine is not None
        return judgements.averages_are_enough(fit.figures, fit.engine.sampler.rejects)

    def gaussian(self, fit: Fit, posterior: Posterior) -> None:
        """None: a normal distribution cannot stand for many modes."""


def _of_all_rows() -> HMC:
    """HMC for hundreds of parameters whose gradients need no more than single precision."""
    return HMC(structure="diag", single_gradients=True)


def gradient_products(model: Model, n_rows: int) -> float:
    """Cost of a gradient from all rows: weights and exponentials, in products."""
    return float(n_rows * max(model.dim, _EXPONENTIAL * model.widest))
