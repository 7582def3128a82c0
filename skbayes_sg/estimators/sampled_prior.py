"""Draws of the hyperparameters of a prior whose precisions are sampled."""

from __future__ import annotations

import copy

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.chains.run import Chain
from skbayes_sg.estimators.base import BayesianEstimator
from skbayes_sg.inference.evidence import as_learned
from skbayes_sg.inference.learned_prior import Learned
from skbayes_sg.inference.run import Run
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.hierarchical import JointPosterior
from skbayes_sg.priors.integrated_precision import IntegratedPrecision
from skbayes_sg.priors.scales import OnePrecision, Scales


class SampledPrior(BayesianEstimator):
    """An estimator whose chains may sample precisions of the prior."""

    _scales: Scales | None = None
    """Of the last fit."""
    _hyper_draws: NDArray | None = None
    """(chains, draws, K)"""

    @property
    def prior_precision_draws_(self) -> NDArray:
        """Precision of each group under each draw, (n_chains, n_draws, groups)."""
        if self._hyper_draws is None:
            raise AttributeError(f"{type(self).__name__} has sampled no prior precision")
        assert self._scales is not None
        eta = self._hyper_draws
        ell = self._scales.log_precisions(eta.reshape(-1, eta.shape[-1]))
        return np.exp(ell).reshape(*eta.shape[:2], -1)

    @property
    def _prior_sd_draws(self) -> NDArray:
        """Root mean square of the prior sds of each group's coefficients, (chains, draws, groups).

        In the units of the coefficients.
        """
        scales, prior = self._scales, self._fitted_prior
        assert scales is not None
        assert prior is not None
        squares = scales.summed(1 / prior.unit[None, scales.block])
        variance = squares[0] / scales.sizes / self.prior_precision_draws_.astype(np.float64)
        if not prior.quadratic:  # it is in units of the noise variance
            variance = variance * np.exp(self.draws_[..., -1:])
        return np.sqrt(variance)

    def _without_hyperparameters(
        self, run: Run, chains: list[Chain], posterior: Posterior
    ) -> tuple[list[Chain], NDArray | None]:
        """Chains of the parameters alone, and draws of the hyperparameters, if there are some."""
        self._scales = self._hyper_draws = None
        if run.sampled is None:
            return chains, None
        scales = run.sampled.scales
        if chains[0].draws.shape[-1] > posterior.dim:
            k = scales.dim
            eta = np.concatenate([chain.draws[..., -k:] for chain in chains])
            return [chain._replace(draws=chain.draws[..., :-k]) for chain in chains], eta
        assert isinstance(scales, OnePrecision)
        prior, draws = posterior.prior, np.concatenate([chain.draws for chain in chains])
        flat = draws.reshape(-1, draws.shape[-1]).astype(np.float64)
        noise = 1.0 if prior.quadratic else np.exp(-flat[:, -1])
        squares = noise * scales.squares(prior, flat - prior.mean)[:, 0]
        # of a copy, so that a warm start goes on as if nothing was drawn
        rng = copy.deepcopy(chains[0].state.normals)
        eta = IntegratedPrecision(scales).draw(squares, rng)
        return chains, eta.reshape(*draws.shape[:2], 1)

    def _under_sampled(
        self, run: Run, posterior: Posterior, eta: NDArray, weights: NDArray
    ) -> tuple[Posterior, Learned]:
        """The posterior under geometric means of the drawn precisions, and what they are."""
        assert run.sampled is not None
        scales = run.sampled.scales
        self._scales, self._hyper_draws = scales, eta.astype(np.float32)
        ell = scales.log_precisions(eta.reshape(-1, scales.dim).astype(np.float64))
        ell = ell.reshape(*eta.shape[:2], -1)
        mean = np.einsum("cdg,d->g", ell, weights / weights.sum()) / len(ell)
        posterior = posterior.with_prior(scales.given(posterior.prior, mean))
        before = run.learned
        path = [] if before is None else [*before.path[:-1]]
        uninformed = np.zeros(len(mean), bool) if before is None else before.uninformed
        return posterior, as_learned(scales, posterior, np.array([*path, np.exp(mean)]), uninformed)

    def _with_precision(self) -> NDArray:
        """Draws of all parameters, hyperparameters last where they are some."""
        eta = self._hyper_draws
        return self.draws_ if eta is None else np.append(self.draws_, eta, axis=2)

    def _joint(self, posterior: Posterior) -> Posterior | JointPosterior:
        """The posterior of `_with_precision`."""
        sampled = None if self._run is None else self._run.sampled
        return posterior if sampled is None else JointPosterior(posterior, sampled.scales)
