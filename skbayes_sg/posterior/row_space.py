"""The posterior along the rows, where they are fewer than the columns; across them it is the prior.

Outputs of the n rows are X beta, so a likelihood says nothing of the part of beta that is
orthogonal to all rows. With independent normal priors of precisions lambda q_j, and

    beta = m + Q^-1/2 (V u + (I - V V^T) z / sqrt(lambda)),   X Q^-1/2 = U S V^T

of rank r, the coefficients u (r,) of the columns Z = U S have the precision lambda, z is standard
normal, and X m is a known part of the outputs. So the posterior of u and lambda is that of a
regression on r <= n columns, and z is drawn beside each of its draws
(math/high_dimensional.md#fewer-rows-than-columns).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skbayes_sg.data.rows import InMemory
from skbayes_sg.linalg import Diag
from skbayes_sg.linalg.coordinates import reproducible_eigh
from skbayes_sg.linalg.scores import dense
from skbayes_sg.linalg.sizes import has_matrix_once
from skbayes_sg.models.base import Response
from skbayes_sg.posterior import Drawn, Posterior, affordable
from skbayes_sg.posterior.nonzero_columns import seeded_by
from skbayes_sg.priors import Prior
from skbayes_sg.priors.normal import GaussianPrior
from skbayes_sg.priors.normal_inverse_gamma import NormalInverseGammaPrior


class RowSpace(Posterior):
    """The posterior of u and of the parameters that are no coefficients.

    Parameters
    ----------
    all_columns : Posterior
        Of one output, whose coefficients have independent priors.
    q : array of shape (features,)
        Precisions of the coefficients, relative to the one that is given or learned.
    """

    def __init__(self, all_columns: Posterior, q: NDArray) -> None:
        model, data = all_columns.predictor, all_columns.data.sample
        prior, p = all_columns.normal_prior, data.n_features
        self._all_columns, self._q = all_columns, q
        X, known = data.X[:, :p], dense(data.X[:, p:])
        self._mean = prior.mean[:p]
        if self._mean.any():
            offset = (X @ self._mean.astype(X.dtype))[:, None]
            known = np.hstack([known[:, :1] + offset, known[:, 1:]]) if data.n_known else offset
        self._rows = X.multiply(1 / np.sqrt(q)).tocsr() if sparse.issparse(X) else X / np.sqrt(q)
        values, vectors = reproducible_eigh(dense(self._rows @ self._rows.T).astype(np.float64))
        kept = values > values[-1] * len(values) * np.finfo(data.X.dtype).eps
        scale = np.sqrt(values[kept])
        self._back = vectors[:, kept] / scale  # V = rows^T back
        Z = (vectors[:, kept] * scale).astype(data.X.dtype)
        rows = InMemory.of(np.hstack([Z, known]), data.y, data.weight, data.n_total)
        here, rank = model.on_columns(len(scale), model.fit_intercept), len(scale)
        precision = np.append(np.full(rank, prior.precision[0] / q[0]), prior.precision[p:])
        unit = np.append(np.full(rank, prior.unit[0] / q[0]), prior.unit[p:])
        mean = np.append(np.zeros(rank), prior.mean[p:])
        of_here: Prior = GaussianPrior(precision, mean, unit)
        if not prior.quadratic:
            assert prior.noise is not None
            of_here = NormalInverseGammaPrior(precision[:-1], prior.noise, mean[:-1], unit[:-1])
        super().__init__(here, replace(rows, n_known=known.shape[1]), of_here)

    @property
    def all_columns(self) -> Posterior:
        return self._all_columns

    def with_prior(self, prior: Prior) -> Posterior:
        """Another prior of u, and so of all coefficients."""
        other = copy.copy(self)
        other.prior = prior
        for cached in ("single", "of_sample"):  # they have the prior of before
            other.__dict__.pop(cached, None)
        whole, rank = self.all_columns, self._back.shape[1]
        precision = np.append(prior.precision[0] * self._q, prior.precision[rank:])
        other._all_columns = whole.with_prior(whole.prior.with_precision(precision))
        return other

    def completed(self, chains: Sequence[Drawn], relative: NDArray | None = None) -> NDArray:
        """Draws of all parameters, (chains, draws, D); z is seeded as in `NonzeroColumns`."""
        (_, n_draws, _), dtype = chains[0].draws.shape, chains[0].draws.dtype
        n_chains, first = sum(len(chain.draws) for chain in chains), 0
        draws: NDArray = np.empty((n_chains, n_draws, self.all_columns.dim), dtype)
        p, rank = len(self._q), self._back.shape[1]
        for chain in chains:
            group = slice(first, first + len(chain.draws))
            sd = np.full((len(chain.draws), n_draws), 1 / np.sqrt(self.prior.precision[0]))
            if relative is not None:
                sd /= np.sqrt(relative[group])
            if not self.prior.quadratic:
                sd *= np.exp(0.5 * chain.draws[..., -1].astype(np.float64))
            for k in range(n_draws):
                u = chain.draws[:, k, :rank]
                z = seeded_by(chain.draws[:, k]).standard_normal((len(u), p), np.float32)
                z = sd[:, k, None] * z
                along = u - (z @ self._rows.T) @ self._back  # with V = rows^T back
                beta = z + (along @ self._back.T) @ self._rows
                draws[group, k, :p] = self._mean + beta / np.sqrt(self._q)
            draws[group, :, p:] = chain.draws[..., rank:]
            first = group.stop
        return draws


def row_space(posterior: Posterior) -> Posterior | None:
    """Along the rows, where these are fewer than the columns of a posterior without a matrix.

    None elsewhere, and of classes: so few rows are separated by planes, say next to nothing of
    lambda, and chains of both do not mix.
    """
    model, data, prior = posterior.predictor, posterior.data.sample, posterior.normal_prior
    # the posterior of a conjugate model is worth its matrix, if there can be one
    if model.conjugate and affordable(posterior):
        return None
    in_memory, independent = data.n_rows == posterior.data.n_rows, isinstance(prior.operator, Diag)
    few, p = data.n_rows < data.n_features, data.n_features
    if not (isinstance(model, Response) and in_memory and independent and few):
        return None
    if not has_matrix_once(data.n_rows + posterior.dim - p) or len(data.nonzero_columns) == 0:
        return None
    # relative to the precision that is learned, or what is given
    precision, unit = prior.precision[:p], prior.unit[:p]
    learned = np.allclose(precision, unit * (precision[0] / unit[0]), rtol=1e-9)
    return RowSpace(posterior, unit if learned else precision)
