"""Posteriors with one mode: where their chains start, and by which samplers they move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.chains.tuning import raise_alpha
from skbayes_sg.diagnostics import agreement, judgements
from skbayes_sg.inference import diagnose
from skbayes_sg.inference.deferred import Deferred, kept
from skbayes_sg.inference.options import Choice, Options, RowsNeededError
from skbayes_sg.inference.plan import Plan
from skbayes_sg.inference.result import Fit
from skbayes_sg.linalg import Diag
from skbayes_sg.linalg.sizes import has_cheap_passes, has_matrix
from skbayes_sg.posterior import Posterior, affordable
from skbayes_sg.posterior.gaussian import (
    Distribution,
    InitialPoint,
    Mode,
    agreeing_with,
    distribution_at,
    find_mode,
    known_at,
    with_observed,
)
from skbayes_sg.posterior.information import least_known
from skbayes_sg.posterior.misfit import misfit_of
from skbayes_sg.posterior.steepness import steepness_of_draws
from skbayes_sg.priors import GaussianPrior, NormalInverseGammaPrior
from skbayes_sg.samplers import HMC, IASG, SGFS, SGLD, ConstantSGD, MomentumSGD, UnderdampedLangevin
from skbayes_sg.samplers.base import Need
from skbayes_sg.samplers.independent_draws import IndependentDraws

_DRAWS, _MOST_DRAWS = 2048, 16_384  # of all chains, where their number is "auto"
_NORMAL_DRAWS = 1280  # near a normal distribution: quantiles are as good after matching
_MOST_BYTES = 400 << 20  # of draws whose number is "auto"
_FEWEST = 8  # draws of a chain
_ACCEPT = 0.9  # at HMC's own .8 single chains of nearly separable classes are stuck for a while


@dataclass(frozen=True)
class OneMode(Plan):
    """Chains start around the one mode; control variates can be anchored there."""

    dtype: type = np.float64

    def first(self, posterior: Posterior) -> Choice:
        if posterior.predictor.conjugate and affordable(posterior):
            return Choice(
                IndependentDraws(),
                "the posterior is conjugate: its draws are independent and exact",
            )
        if not has_matrix(posterior.dim):
            _require_rows(posterior, _too_many(posterior.dim))
        return Choice(
            UnderdampedLangevin(),
            "the posterior is near enough to Gaussian for control variates",
        )

    def presets(self, dim: int) -> dict[str, Choice]:
        """Samplers by name, for `dim` parameters; 0 if the number is not known yet.

        "sgfs" has no control variates, since its parameters hold for any posterior then. With
        control variates alpha = 0, posteriors far from Gaussian and streams are refused.
        """
        if has_matrix(dim):
            why = (
                "exact for any number of rows, and slower than sampler=None, which adds control "
                "variates where the posterior is near Gaussian"
            )
            scaled = Choice(SGLD(preconditioner="diag"), "each parameter has a step of its own")
            return {"sgfs": Choice(SGFS(), why), "sgld": scaled}
        why = _too_many(dim)
        # large minibatches, and noise in proportion to P, bear rows with heavy tails
        sgfs = SGFS(structure="kron", alpha=3.0, B="precision", batch_size=2000)
        return {
            "sgfs": Choice(sgfs, why, raise_alpha),
            "constant_sgd": Choice(ConstantSGD(structure="kron"), why),
            "momentum_sgd": Choice(MomentumSGD(structure="diag"), why),
            "iasg": Choice(IASG(structure="diag"), why),
        }

    def fallback(self, posterior: Posterior, why: str, expandable: bool = True) -> Choice:
        """HMC on a pool of rows, or on all where they are few or there is no expansion."""
        if not expandable:
            _require_rows(posterior, why)
            return Choice(HMC(), why)
        return Choice(HMC(target_accept=_ACCEPT, variance_reduction="control_variate"), why)

    def start(
        self,
        posterior: Posterior,
        rng: np.random.Generator,
        n_chains: int,
        last: NDArray | None,
        initial: InitialPoint | None = None,
    ) -> tuple[NDArray, Mode | None]:
        """Over-dispersed around the mode, or where the last fit stopped."""
        sample = posterior.data.sample
        near = initial or InitialPoint(
            posterior.model.guess(sample.y, sample.weight, sample.known), None
        )
        if last is not None and initial is None:
            near = InitialPoint(last.mean(axis=0)[None], None)
        mode = find_mode(posterior, near.theta, rng, near.curvature, near.coordinates)
        # A diagonal ignores correlations. Twice its width starts chains too far out to learn
        # useful matrices.
        factor = 1.0 if isinstance(mode.curvature, Diag) else 2.0
        normals = rng.standard_normal((n_chains, posterior.dim))
        return mode.away(factor * normals) if last is None else last, mode

    def n_draws(
        self, options: Options, n_chains: int, dim: int, near_normal: bool = False
    ) -> tuple[int, int, list[str]]:
        """Draws, by default 2,048 in all, and up to 16,384, or as many as 400 megabytes hold.

        Near a normal distribution matched draws have the quantiles of 2,048 from 1,280 on. With
        over 1,000 parameters, where a step is dear, chains have 128 each at most.
        """
        if options.n_draws != "auto":
            return int(options.n_draws), int(options.n_draws), []
        held = max(_FEWEST, _MOST_BYTES // (4 * dim) // n_chains)
        wanted = _NORMAL_DRAWS if near_normal else _DRAWS
        share = max(_FEWEST, wanted // (n_chains if has_matrix(dim) else max(n_chains, 16)))
        n_draws, most = min(share, held), min(_MOST_DRAWS // n_chains, held)
        if held >= share:
            return n_draws, most, []
        said = (
            f"{n_chains} chains keep {n_draws} draws each of {dim} parameters, and not {share}: "
            f"they fill {_MOST_BYTES >> 20} MB; n_draws sets another number"
        )
        return n_draws, most, [said]

    def agreement(self, fit: Fit, posterior: Posterior, n_gradients: int) -> dict[str, float]:
        """R-hat and effective draws, and what gradients say where a pass over the rows is at hand.

        With an expansion the sampler has measured the columns' steepness itself.
        """
        draws = fit.draws if fit.hyper_draws is None else np.append(fit.draws, fit.hyper_draws, 2)
        figures = agreement.of_draws(draws)
        if fit.scales is not None and fit.scales.has_heavy_tails:
            figures["sd_error"] = np.nan  # of a column in the spike, by its rare visits to the slab
            coef = fit.draws[..., fit.scales.block]
            figures["r_hat_coef"] = agreement.of_draws(coef)["r_hat_max"]
        if posterior.of_sample is not posterior:
            return figures
        figures |= diagnose.of_gradients(posterior, draws, fit.weights, n_gradients, fit.scales)
        assert fit.engine is not None
        sampler = fit.engine.sampler
        if np.isfinite(sampler.steepest_column) and fit.engine.expansion is None:
            figures |= steepness_of_draws(posterior, fit.draws, fit.weights)
            if fit.scales is not None and has_matrix(posterior.dim):
                mean = np.average(fit.draws.mean(axis=0), axis=0, weights=fit.weights)[None]
                mean = mean.astype(np.float64)
                figures |= least_known(posterior, fit.scales, mean)
        return figures

    def is_enough(self, fit: Fit) -> bool:
        """Also where steps without a Metropolis test threw chains out: the next sampler runs."""
        assert fit.engine is not None
        sampler = fit.engine.sampler
        adjusted = sampler.rejects or sampler.asked_for
        thrown = not adjusted and diagnose.is_thrown(fit.figures)
        return thrown or judgements.is_enough(fit.figures)

    def gaussian(self, fit: Fit, posterior: Posterior) -> Distribution | Deferred[Distribution]:
        """The distribution as if all rows were one chunk of a stream.

        That takes up to a quarter of a fit, and few ask for it: it is computed when it is read.

        Many rows, and rows on disk, are not read again, or once for the observed information:
        there the curvature of the expansion is that distribution's. Above 1,000 parameters it has
        the moments of the draws. Draws of all parameters in closed form are of that distribution.
        """
        assert fit.engine is not None
        before, expansion, prior = posterior.prior, fit.engine.expansion, fit.prior
        n_chains, _, dim = fit.draws.shape
        draws, weights = fit.draws.reshape(-1, dim), np.tile(fit.weights / n_chains, n_chains)
        exact = Need.CLOSED_FORM in fit.engine.sampler.needs
        along_rows = expansion is not None and expansion.theta.shape[1] < dim
        if along_rows or not (exact or has_matrix(dim)):
            family = GaussianPrior if prior.quadratic else NormalInverseGammaPrior
            return family.of_draws(draws, weights)
        posterior = posterior.with_prior(prior)
        if expansion is not None and fit.scales is not None:
            expansion = expansion.under(before, prior)
        if exact:
            assert expansion is not None
            return known_at(posterior, expansion)
        # near a normal distribution the expansion is good enough
        outputs = 1 if fit.engine.sampler.rejects else posterior.predictor.widest
        cheap = has_cheap_passes(posterior.n_rows, dim, outputs)
        cheap &= posterior.data.sample is posterior.data
        if expansion is not None and not cheap:
            return distribution_at(expansion, posterior)
        posterior = Posterior(posterior.model, kept(posterior.data.sample), posterior.prior)

        def agreeing() -> Distribution:
            found = with_observed(posterior, agreeing_with(posterior, draws, weights))
            if not posterior.model.conjugate:
                found.misfit = misfit_of(posterior, found)
            return found

        return Deferred(agreeing)


def _require_rows(posterior: Posterior, why: str) -> None:
    """Refuse another sampler than that with control variates where rows are read in blocks."""
    if posterior.of_sample is not posterior:
        raise RowsNeededError(f"{why}; another sampler visits rows at each step")


def _too_many(dim: int) -> str:
    return f"{dim} parameters are too many for full matrices"
