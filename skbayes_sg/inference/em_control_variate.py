"""The control variate of variational EM: what only the prior knows takes no noise from the chains.

Integration by parts makes ``E[theta_k (A dU/dtheta)_k] = A_kk`` under any posterior exp(-U), for
any matrix A (math/diagnostics.md#stein-ratio). So ``theta_k (A dU/dtheta)_k - A_kk`` has mean zero,
also with theta_k counted from the prior mean. It may be subtracted from the square of a weight. A
is the prior's share of what is known, ``Lam_0 (Lam_0 + F)^-1``, with the prior's curvature Lam_0
and the information F of the data. What the data do not determine of the square is then replaced by
its mean under the Gaussian approximation. A sampler that draws too little or too much there biases
nothing (math/priors.md#learning-the-prior).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.linalg import DIAGONAL, FULL
from skbayes_sg.models import NullDirections
from skbayes_sg.samplers.target import ModelPosterior

_DIAGONAL_ROWS = 2000  # from which a diagonal is measured
_ROWS_PER_PARAMETER = 20  # from which a matrix is


class MatrixControlVariate:
    """A is a matrix: directions that the data leave open may be any.

    Parameters
    ----------
    posterior : ModelPosterior
    theta : array of shape (1, D)
        Where the curvatures are measured.
    """

    def __init__(self, posterior: ModelPosterior, theta: NDArray) -> None:
        rows = some_rows(posterior.n_rows, max(_DIAGONAL_ROWS, _ROWS_PER_PARAMETER * posterior.dim))
        prior = posterior.prior.curvature(theta)
        curvature = posterior.information(theta, rows, FULL) + prior
        self._prior = posterior.prior.independent(theta)
        self._covariance = curvature.inverse().dense()
        self._A = self._prior[:, None] * self._covariance

    def term(self, posterior: ModelPosterior, theta: NDArray, gradient: NDArray) -> NDArray:
        """At theta (chains, D), with the gradient of the log posterior there, (chains, D)."""
        return (theta - posterior.prior.mean) * gradient.dot(self._A.T) + self._A.diagonal()

    def well_determined(self, block: NDArray) -> NDArray:
        """The data's share of what is known of some parameters, (n, n)."""
        root = np.sqrt(self._prior[block])
        return np.eye(len(block)) - root[:, None] * self._covariance[np.ix_(block, block)] * root


class DiagonalControlVariate:
    """A is diagonal, but for directions that are known to change no probability.

    Along such a direction, sum_k s_k theta_k with signs s, the gradient is the prior's alone. Its
    share is c_k = lambda_k / sum lambda, and the rest of each coordinate has beta_k as its own:

        beta_k (theta_k g_k + 1) + (1 - beta_k) c_k (s_k theta_k sum_j s_j g_j + 1)

    Parameters
    ----------
    posterior : ModelPosterior
    theta : array of shape (1, D)
        Where the information of the data is measured.
    null : sequence of NullDirections
    """

    def __init__(
        self, posterior: ModelPosterior, theta: NDArray, null: Sequence[NullDirections]
    ) -> None:
        rows = some_rows(posterior.n_rows, _DIAGONAL_ROWS)
        self._information = posterior.information(theta, rows, DIAGONAL).diagonal()
        self._prior = posterior.prior.curvature(theta).diagonal()
        self._null = null

    def term(self, posterior: ModelPosterior, theta: NDArray, gradient: NDArray) -> NDArray:
        """As of `MatrixControlVariate`."""
        prior = posterior.prior.curvature(theta).diagonal()
        theta = theta - posterior.prior.mean
        beta = prior / (self._information + prior)
        term = beta * (theta * gradient + 1)
        for coordinates, signs in self._null:
            of_prior = prior[coordinates]
            share = of_prior / of_prior.sum(axis=1, keepdims=True)  # (directions, members)
            along = (signs * gradient[:, coordinates]).sum(axis=2, keepdims=True)
            rest = (1 - beta[coordinates]) * share
            term[:, coordinates] += rest * (signs * theta[:, coordinates] * along + 1)
        return term

    def well_determined(self, block: NDArray) -> NDArray:
        """The diagonal of the data's share, (n,)."""
        information = self._information[block]
        return information / (information + self._prior[block])


ControlVariate = MatrixControlVariate | DiagonalControlVariate
"""A term of mean zero for each parameter, and what the data know of it."""


def some_rows(n_rows: int, most: int) -> NDArray:
    """Up to so many row numbers, evenly spaced."""
    return np.unique(np.linspace(0, n_rows - 1, most).astype(int))
