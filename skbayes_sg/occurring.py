"""The parameters of columns that occur; those of columns of zeros have their prior."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.chains import Chain
from skbayes_sg.linalg import Diag
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior
from skbayes_sg.priors import GaussianPrior, NormalInverseGammaPrior, Prior


class Occurring(Posterior):
    """The posterior of the parameters that the rows can say something about.

    The coefficient of a column that is zero in all rows is independent of all others given the
    noise variance, and has its prior. So chains leave it out, and it is drawn beside each of their
    draws (math.md#columns-that-never-occur).

    Attributes
    ----------
    kept, silent : integer arrays
        Coordinates of the parameters that are here, and of all others.
    """

    def __init__(self, whole: Posterior, columns: NDArray) -> None:
        model, data = whole.model, whole.data.sample
        assert isinstance(model, Predictor)
        silent = np.ones(model.shapes["coef"], bool)
        silent[:, columns] = False
        self.silent = np.flatnonzero(silent)
        self.kept = np.setdiff1d(np.arange(model.dim), self.silent)
        self._whole = whole
        prior = _restricted(whole.prior, self.kept)
        super().__init__(model.with_columns(len(columns)), data.with_columns(columns), prior)

    @property
    def whole(self) -> Posterior:
        return self._whole

    def with_prior(self, prior: Prior) -> Posterior:
        """Another prior of the parameters that are here.

        The others follow where it is a multiple of the present one: one precision is learned for
        all coefficients.
        """
        other = object.__new__(Occurring)
        other.__dict__.update(self.__dict__, prior=prior)
        normal = self.prior.precision > 0
        ratio = prior.precision[normal] / self.prior.precision[normal]
        n_coef = self.model.shapes["coef"][0] * self.model.shapes["coef"][1]
        of_coef = ratio[:n_coef]
        precision = self.whole.prior.precision.copy()
        precision[self.kept] = prior.precision
        if np.allclose(of_coef, of_coef[0]):
            precision[self.silent] *= of_coef[0]
        other._whole = self.whole.with_prior(self.whole.prior.with_precision(precision))
        return other

    def completed(self, chains: Sequence[Any], thin: int) -> NDArray:
        """Draws of all parameters, (chains, draws, D).

        The numbers beside a draw depend on its group and step, so that a run that went on has those
        of a long run.
        """
        n_chains = sum(len(chain.draws) for chain in chains)
        _, n_draws, _ = chains[0].draws.shape
        dtype = chains[0].draws.dtype
        draws: NDArray = np.empty((n_chains, n_draws, self.whole.dim), dtype)
        sd = 1 / np.sqrt(self.whole.prior.precision[self.silent])
        mean, first = self.whole.prior.mean[self.silent], 0
        for chain in chains:
            group = slice(first, first + len(chain.draws))
            draws[group][..., self.kept] = chain.draws
            seed = int(_unused(chain).integers(2**63))
            for k in range(n_draws):
                step = chain.state.t - (n_draws - k) * thin
                rng = np.random.default_rng([seed, step])
                normals = rng.standard_normal((len(chain.draws), len(sd)), np.float32)
                scale = self._noise(chain.draws[:, k])
                draws[group, k, self.silent] = mean + scale * sd * normals
            first = group.stop
        return draws

    def _noise(self, draws: NDArray) -> NDArray | float:
        """The scale of the prior under each draw, (chains, 1)."""
        if isinstance(self.prior, NormalInverseGammaPrior):
            return np.exp(0.5 * draws[:, -1:].astype(np.float64))
        return 1.0


def occurring(posterior: Posterior) -> Posterior:
    """Without the columns of zeros, if there are some that the prior does not tie to others."""
    columns = posterior.data.sample.occurring
    prior = posterior.prior
    independent = isinstance(getattr(prior, "operator", None), Diag)
    if len(columns) in (0, posterior.data.n_features) or not independent:
        return posterior
    return Occurring(posterior, columns)


def _restricted(prior: Prior, kept: NDArray) -> Prior:
    """The prior of some parameters, the last included where it is the log noise variance."""
    assert isinstance(prior, GaussianPrior | NormalInverseGammaPrior)
    if isinstance(prior, GaussianPrior):
        return GaussianPrior(prior.precision[kept], prior.mean[kept])
    coef = kept[:-1]
    return NormalInverseGammaPrior(prior.precision[coef], prior.shape, prior.rate, prior.mean[coef])


def _unused(chain: Chain) -> np.random.Generator:
    """A copy of the group's generator of rows, which steps of all rows never use."""
    state = chain.state.rows.rng.bit_generator
    copy = type(state)()
    copy.state = state.state
    return np.random.Generator(copy)
