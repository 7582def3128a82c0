"""The parameters of columns that occur; those of columns of zeros have their prior."""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.linalg import Diag
from skbayes_sg.posterior import Drawn, Posterior, is_high_dimensional
from skbayes_sg.priors import Prior


class NonzeroColumns(Posterior):
    """The posterior of the parameters that the rows can say something about.

    The coefficient of a column that is zero in all rows is independent of all others given the
    noise variance, and has its prior. So chains leave it out, and it is drawn beside each of their
    draws (math/high_dimensional.md#columns-that-never-occur).

    Attributes
    ----------
    kept, uninformed : integer arrays
        Coordinates of the parameters that are here, and of all others.
    """

    def __init__(self, all_columns: Posterior, columns: NDArray) -> None:
        model, data = all_columns.predictor, all_columns.data.sample
        uninformed = np.zeros(model.dim, bool)
        coef = uninformed[: math.prod(model.shapes["coef"])].reshape(model.shapes["coef"])
        coef[:] = True
        coef[:, columns] = False
        self.uninformed, self.kept = np.flatnonzero(uninformed), np.flatnonzero(~uninformed)
        self._all_columns = all_columns
        prior = all_columns.normal_prior.restricted(self.kept)
        model = model.on_columns(len(columns), model.fit_intercept)
        super().__init__(model, data.with_columns(columns), prior)

    @property
    def all_columns(self) -> Posterior:
        return self._all_columns

    def with_prior(self, prior: Prior) -> Posterior:
        """Another prior of the parameters that are here.

        The others follow where it is a multiple of the present one: one precision is learned for
        all coefficients.
        """
        other = copy.copy(self)
        other.prior = prior
        for cached in ("single", "of_sample"):  # they have the prior of before
            other.__dict__.pop(cached, None)
        normal = self.prior.precision > 0
        ratio = prior.precision[normal] / self.prior.precision[normal]
        of_coef = ratio[: math.prod(self.model.shapes["coef"])]
        precision = self.all_columns.prior.precision.copy()
        precision[self.kept] = prior.precision
        if np.allclose(of_coef, of_coef[0]):
            precision[self.uninformed] *= of_coef[0]
        other._all_columns = self.all_columns.with_prior(
            self.all_columns.prior.with_precision(precision)
        )
        return other

    def completed(self, chains: Sequence[Drawn], relative: NDArray | None = None) -> NDArray:
        """Draws of all parameters, (chains, draws, D).

        The generator of the numbers beside a draw is seeded by that draw. So they are the same for
        all ways to run the chains, and for a run that was stopped and went on.
        """
        n_chains = sum(len(chain.draws) for chain in chains)
        _, n_draws, _ = chains[0].draws.shape
        dtype = chains[0].draws.dtype
        draws: NDArray = np.empty((n_chains, n_draws, self.all_columns.dim), dtype)
        sd = (1 / np.sqrt(self.all_columns.prior.precision[self.uninformed])).astype(dtype)
        mean, first = self.all_columns.prior.mean[self.uninformed].astype(dtype), 0
        for chain in chains:
            group = slice(first, first + len(chain.draws))
            draws[group][..., self.kept] = chain.draws
            for k in range(n_draws):
                rng = seeded_by(chain.draws[:, k])
                normals = rng.standard_normal((len(chain.draws), len(sd)), np.float32)
                if self.normal_prior.noise is not None:
                    normals *= np.exp(0.5 * chain.draws[:, k, -1:].astype(np.float64))
                if relative is not None:
                    normals /= np.sqrt(relative[group, k, None])
                draws[group, k, self.uninformed] = mean + sd * normals
            first = group.stop
        return draws


def nonzero_columns(posterior: Posterior) -> Posterior:
    """Without the columns of zeros, if there are some that the prior does not tie to others.

    Parameters that have a matrix have no need of it.
    """
    if not is_high_dimensional(posterior):
        return posterior
    columns = posterior.data.sample.nonzero_columns
    independent = isinstance(posterior.normal_prior.operator, Diag)
    if len(columns) in (0, posterior.data.n_features) or not independent:
        return posterior
    return NonzeroColumns(posterior, columns)


def seeded_by(draws: NDArray) -> np.random.Generator:
    """A generator that depends on the draws of a group alone, (chains, D)."""
    some = draws[:, :256].astype(np.float32)
    digest = hashlib.blake2b(some.tobytes(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))
