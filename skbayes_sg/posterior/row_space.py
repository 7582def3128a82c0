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

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skbayes_sg.data.rows import InMemory
from skbayes_sg.linalg import Diag
from skbayes_sg.linalg.coordinates import reproducible_eigh
from skbayes_sg.linalg.scores import dense
from skbayes_sg.linalg.sizes import has_matrix, has_matrix_once
from skbayes_sg.models.base import Response
from skbayes_sg.posterior import Posterior, affordable
from skbayes_sg.posterior.nonzero_columns import Informed, nonzero_columns
from skbayes_sg.priors import Prior
from skbayes_sg.priors.normal import GaussianPrior
from skbayes_sg.priors.normal_inverse_gamma import NormalInverseGammaPrior


class RowSpace(Informed):
    """The posterior of u and of the parameters that are no coefficients.

    Parameters
    ----------
    all_columns : Posterior
        Whose coefficients have independent priors, alike for all outputs.
    q : array of shape (features,)
        Precisions of the coefficients, relative to the one that is given or learned.
    """

    def __init__(self, all_columns: Posterior, q: NDArray) -> None:
        model, data = all_columns.predictor, all_columns.data.sample
        (k, p), prior = model.shapes["coef"], all_columns.normal_prior
        self._all_columns, self._q, self.beside = all_columns, q, np.arange(k * p)
        self._X, fixed = data.X[:, :p], dense(data.X[:, p:])
        self._mean = prior.mean[: k * p].reshape(k, p)
        if self._mean.any():
            offset = self._X @ self._mean.T.astype(data.X.dtype)
            fixed = np.hstack([fixed[:, :k] + offset, fixed[:, k:]]) if data.n_known else offset
        root = 1 / np.sqrt(q)
        scaled = self._X.multiply(root).tocsr() if sparse.issparse(self._X) else self._X * root
        values, vectors = reproducible_eigh(dense(scaled @ scaled.T).astype(np.float64))
        kept = values > values[-1] * len(values) * np.finfo(data.X.dtype).eps
        scale = np.sqrt(values[kept])
        self._back = vectors[:, kept] / scale  # V = Q^-1/2 X^T back
        Z = (vectors[:, kept] * scale).astype(data.X.dtype)
        rows = InMemory.of(np.hstack([Z, fixed]), data.y, data.weight, data.n_total)
        reduced, n_coef = model.on_columns(len(scale), model.fit_intercept), k * len(scale)
        precision = np.append(np.full(n_coef, prior.precision[0] / q[0]), prior.precision[k * p :])
        unit = np.append(np.full(n_coef, prior.unit[0] / q[0]), prior.unit[k * p :])
        mean = np.append(np.zeros(n_coef), prior.mean[k * p :])
        of_reduced: Prior = GaussianPrior(precision, mean, unit)
        if not prior.quadratic:
            assert prior.noise is not None
            of_reduced = NormalInverseGammaPrior(precision[:-1], prior.noise, mean[:-1], unit[:-1])
        super().__init__(reduced, replace(rows, n_known=fixed.shape[1]), of_reduced)

    def _complete(self, theta: NDArray, informed: NDArray, drawn: NDArray) -> None:
        """A draw of the prior, corrected along the rows (Matheron's rule)."""
        (k, p), rank = self._mean.shape, self._back.shape[1]
        away = (drawn.reshape(-1, k, p) - self._mean).reshape(-1, p)  # (chains x outputs, p)
        along = informed[:, : k * rank].reshape(-1, rank) - (away @ self._X.T) @ self._back
        change = ((along @ self._back.T) @ self._X) / self._q
        theta[:, : k * p] = drawn + change.reshape(-1, k * p)
        theta[:, k * p :] = informed[:, k * rank :]


def informed(posterior: Posterior) -> Posterior:
    """The posterior without what only the prior knows, if there is such a part: `Informed`.

    Coefficients that share a precision, or whose precisions are given, are asked for.
    """
    if has_matrix(posterior.dim) or not posterior.model.fixed_inputs:
        return posterior
    return row_space(posterior) or nonzero_columns(posterior)


def row_space(posterior: Posterior) -> Posterior | None:
    """A posterior without a matrix along its rows, where these are fewer than its columns.

    None elsewhere, and of so many rows of classes that a matrix of them is too large for every
    step: chains of all columns are faster then, and the rows tell more of lambda.
    """
    model, data, prior = posterior.predictor, posterior.data.sample, posterior.normal_prior
    # the posterior of a conjugate model is worth its matrix, if there can be one
    if model.conjugate and affordable(posterior):
        return None
    in_memory, independent = data.n_rows == posterior.data.n_rows, isinstance(prior.operator, Diag)
    k, p = model.shapes["coef"]
    if not (in_memory and independent and data.n_rows < p):
        return None
    may = has_matrix_once if isinstance(model, Response) else has_matrix
    if not may(k * data.n_rows + posterior.dim - k * p) or len(data.nonzero_columns) == 0:
        return None
    # relative to the precision that is learned, or what is given, alike for all outputs
    precision, unit = prior.precision[: k * p], prior.unit[: k * p]
    learned = np.allclose(precision, unit * (precision[0] / unit[0]), rtol=1e-9)
    q = (unit if learned else precision).reshape(k, p)
    return RowSpace(posterior, q[0]) if (q == q[0]).all() else None
