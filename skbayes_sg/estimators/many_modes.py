"""How chains of a posterior with many modes start, and by which samplers they move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.chains.optimised_starts import from_modes
from skbayes_sg.chains.tuning import choose_alpha
from skbayes_sg.inference.plan import Plan, Start
from skbayes_sg.inference.request import Choice
from skbayes_sg.linalg.sizes import has_cheap_gradients
from skbayes_sg.models import Model
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.gaussian import InitialPoint
from skbayes_sg.samplers import HMC, IASG, SGFS, SGHMC, SGLD, ConstantSGD, MomentumSGD
from skbayes_sg.samplers.base import NoGainError

_EXPONENTIAL = 20  # cost of an exponential, in products
_NAMED_STEP = 3e-3  # of "sghmc"
_SHORT_STEP = 0.1  # over curvature plus noise; the DRBM on iris draws ten times its variance at 0.5
_AVERAGED_STEP = 0.005  # over curvature; of 0.1, 0.02 and 0.001 none has a lower loss on digits
_SMALL_BATCH = 20  # rows: constant SGD has no other noise than that of its minibatches


@dataclass(frozen=True)
class ManyModes(Plan):
    """Chains start from independent random points.

    Attributes
    ----------
    injected : str
        B of SGFS.
    temperature : float
        Of the posterior.
    in_modes : bool
        Whether chains stay in modes of their own, each found by steps without noise.
    """

    injected: str
    temperature: float
    in_modes: bool

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

    def fallback(self, posterior: Posterior, refused: NoGainError) -> Choice:
        raise refused

    def start(
        self,
        posterior: Posterior,
        rng: np.random.Generator,
        n_chains: int,
        last: NDArray | None,
        initial: InitialPoint | None = None,
    ) -> Start:
        """Random points, or where the last fit stopped."""
        if last is None:
            last = np.concatenate([posterior.model.init(rng) for _ in range(n_chains)])
        return Start(last, None)


def _of_all_rows() -> HMC:
    """HMC for hundreds of parameters whose gradients need no more than single precision."""
    return HMC(structure="diag", single_gradients=True)


def gradient_products(model: Model, n_rows: int) -> float:
    """Cost of a gradient from all rows: weights and exponentials, in products."""
    return float(n_rows * max(model.dim, _EXPONENTIAL * model.widest))
