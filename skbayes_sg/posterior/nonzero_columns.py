"""What rows say something about, such as columns that occur; of the rest the prior is drawn."""

from __future__ import annotations

import copy
import hashlib
import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.linalg import Diag
from skbayes_sg.posterior import Posterior, is_high_dimensional
from skbayes_sg.priors import Distribution, Prior


class Informed(Posterior):
    """The posterior of what rows can say something about; of the rest the prior is drawn beside.

    Coefficients have one precision, which multiplies that of each. What is here comes first in the
    parameters, and then those that are no coefficients.
    """

    _all_columns: Posterior
    beside: NDArray
    """Coordinates of the coefficients that are drawn from the prior."""

    @property
    def all_columns(self) -> Posterior:
        return self._all_columns

    def with_prior(self, prior: Prior) -> Self:
        """Another prior of the parameters that are here; the precision of the others follows."""
        posterior, whole = copy.copy(self), self.all_columns
        posterior.prior = prior
        for name in vars(self):  # those of other rows have the prior of before
            if isinstance(getattr(type(self), name, None), cached_property):
                del posterior.__dict__[name]
        ratio = prior.precision[0] / self.prior.precision[0]
        n_coef = math.prod(whole.predictor.shapes["coef"])
        rest = prior.precision[math.prod(self.predictor.shapes["coef"]) :]
        precision = np.append(ratio * whole.prior.precision[:n_coef], rest)
        posterior._all_columns = whole.with_prior(whole.prior.with_precision(precision))
        return posterior

    def completed(self, groups: Sequence[NDArray], relative: NDArray | None = None) -> NDArray:
        """Draws of all parameters, (chains, draws, D), from those of groups of chains.

        `relative` are the prior precisions of draws of one that is sampled, over that of `prior`,
        (chains, draws).

        The generator of the numbers beside a draw is seeded by that draw. So they are the same for
        all ways to run the chains, and for a run that was stopped and went on.
        """
        prior, dtype = self.all_columns.prior, groups[0].dtype
        n_chains, first, n_draws = sum(map(len, groups)), 0, groups[0].shape[1]
        draws: NDArray = np.empty((n_chains, n_draws, self.all_columns.dim), dtype)
        sd = (1 / np.sqrt(prior.precision[self.beside])).astype(dtype)
        mean = prior.mean[self.beside].astype(dtype)
        for of_group in groups:
            group = slice(first, first + len(of_group))
            for k in range(n_draws):
                informed = of_group[:, k]
                normals = _seeded_by(informed).standard_normal((len(informed), len(sd)), np.float32)
                if not prior.quadratic:
                    normals *= np.exp(0.5 * informed[:, -1:].astype(np.float64))
                if relative is not None:
                    normals /= np.sqrt(relative[group, k, None])
                self._complete(draws[group, k], informed, mean + sd * normals)
            first = group.stop
        return draws

    @abstractmethod
    def _complete(self, theta: NDArray, informed: NDArray, drawn: NDArray) -> None:
        """Write all parameters (chains, D), from informed ones and draws of the prior beside."""


class NonzeroColumns(Informed):
    """The posterior without the coefficients of columns that are zero in all rows.

    Such a coefficient is independent of all others given the noise variance, and has its prior
    (math/high_dimensional.md#columns-that-never-occur).

    Attributes
    ----------
    kept, beside : integer arrays
        Coordinates of the parameters that are here, and of all others.
    """

    def __init__(self, all_columns: Posterior, prior: Distribution, columns: NDArray) -> None:
        model, data = all_columns.predictor, all_columns.data.sample
        beside = np.zeros(model.dim, bool)
        coef = beside[: math.prod(model.shapes["coef"])].reshape(model.shapes["coef"])
        coef[:] = True
        coef[:, columns] = False
        self.beside, self.kept = np.flatnonzero(beside), np.flatnonzero(~beside)
        self._all_columns = all_columns
        model = model.on_columns(len(columns), model.fit_intercept)
        super().__init__(model, data.with_columns(columns), prior.restricted(self.kept))

    def _complete(self, theta: NDArray, informed: NDArray, drawn: NDArray) -> None:
        theta[:, self.kept], theta[:, self.beside] = informed, drawn


def nonzero_columns(posterior: Posterior) -> Posterior:
    """The posterior without columns of zeros, if the prior ties none of them to others.

    Parameters that have a matrix have no need of it.
    """
    if not is_high_dimensional(posterior):
        return posterior
    columns, prior = posterior.data.sample.nonzero_columns, posterior.prior
    if len(columns) in (0, posterior.data.n_features):
        return posterior
    if isinstance(prior, Distribution) and isinstance(prior.operator, Diag):
        return NonzeroColumns(posterior, prior, columns)
    return posterior


def _seeded_by(draws: NDArray) -> np.random.Generator:
    """A generator that depends on the draws of a group alone, (chains, D)."""
    leading = draws[:, :256].astype(np.float32)
    digest = hashlib.blake2b(leading.tobytes(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))
