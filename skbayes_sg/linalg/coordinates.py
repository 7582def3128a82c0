"""Coordinates of the chains: those of the model, or whitened ones around an anchor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from skbayes_sg.linalg.low_rank import LowRank
from skbayes_sg.linalg.products import eigenvectors_within


class Identity:
    """The coordinates of the model: every method returns its argument."""

    def _unchanged(self, array: NDArray) -> NDArray:
        """The same array; `Whitened` says what each method asks for."""
        return array

    inverse_transform = transform = pullback = pushforward = _unchanged
    pullback_matrix = covariance = inputs = _unchanged


@dataclass(frozen=True, eq=False)
class Whitened:
    """``theta = centre + T u``: coordinates u in which the curvature is about the identity.

    T turns the columns of every output by the same matrix S, so that the model keeps its form: it
    becomes the model without intercept, on the columns ``[X, 1] S``.

    Attributes
    ----------
    centre : array of shape (1, D)
    columns : integer array of shape (outputs, c)
        Coordinates of theta of the coefficients of each output, with its intercept.
    rest : integer array
        All other coordinates; they stay as they are.
    S : array of shape (c, c)
    """

    centre: NDArray
    columns: NDArray
    rest: NDArray
    S: NDArray

    @classmethod
    def of(cls, columns: NDArray, centre: NDArray, curvature: NDArray) -> Whitened:
        """From the curvature (D, D) at the centre, averaged over outputs.

        S is lower triangular and the intercept comes last, so u is the same for columns that are
        shifted and scaled (by a positive number).
        """
        rest = np.setdiff1d(np.arange(centre.size), columns)
        mean = np.mean([curvature[np.ix_(of, of)] for of in columns], axis=0)
        backwards = np.linalg.cholesky(mean[::-1, ::-1])
        S = solve_triangular(backwards, np.eye(len(mean)), lower=True).T[::-1, ::-1]
        return cls(centre, columns, rest, np.ascontiguousarray(S))

    @property
    def rotates(self) -> bool:
        """Whether an orthogonal matrix may turn them: one output and nothing else."""
        return len(self.columns) == 1 and not len(self.rest)

    def rotated(self, V: NDArray) -> Whitened:
        """The same coordinates turned by an orthogonal matrix (c, c)."""
        return Whitened(self.centre, self.columns, self.rest, self.S @ V)

    def along(self, weights: NDArray, group: NDArray) -> Whitened:
        """Coordinates that belong to one group each, of parameters with a precision each.

        A sum of squares ``sum(weights theta^2)`` of a group is such a sum of its coordinates. Of
        one group all curvature is about the identity, as in `of`; of more that is so within each.

        Parameters
        ----------
        weights : array of shape (D,)
            The same for all outputs; 0 for parameters of no group.
        group : integer array of shape (D,)
        """
        at = self.columns[0]
        (own,), (free,) = np.nonzero(weights[at]), np.nonzero(weights[at] == 0)
        curvature = self._inverse.T @ self._inverse
        lower = np.linalg.cholesky(curvature[np.ix_(free, free)])
        of_free = np.linalg.inv(lower).T
        shift = of_free @ of_free.T @ curvature[np.ix_(free, own)]
        rest = curvature[np.ix_(own, own)] - curvature[np.ix_(own, free)] @ shift
        scale = 1 / np.sqrt(weights[at[own]])
        S = np.zeros_like(self.S)
        S[np.ix_(own, own)] = scale[:, None] * eigenvectors_within(
            rest * np.outer(scale, scale), group[at[own]]
        )
        S[np.ix_(free, own)] = -shift @ S[np.ix_(own, own)]
        S[np.ix_(free, free)] = of_free
        return replace(self, S=S)

    @cached_property
    def _inverse(self) -> NDArray:
        return np.linalg.inv(self.S)

    def inverse_transform(self, u: NDArray) -> NDArray:
        """theta of u, (..., D)."""
        return self.centre + self._mapped(u, self.S.T)

    def transform(self, theta: NDArray) -> NDArray:
        """u of theta, (..., D)."""
        return self._back(theta - self.centre, self._inverse.T)

    def pullback(self, gradient: NDArray) -> NDArray:
        """T^T g: a gradient in theta as one in u, (..., D)."""
        return self._back(gradient, self.S)

    def pushforward(self, gradient: NDArray) -> NDArray:
        """The gradient in theta of a gradient in u, (..., D)."""
        return self._mapped(gradient, self._inverse)

    def pullback_matrix(self, A: NDArray) -> NDArray:
        """T^T A T of a symmetric matrix in theta, (D, D)."""
        return self.pullback(self.pullback(A).T)

    def covariance(self, C: NDArray) -> NDArray:
        """T C T^T: the covariance of theta from that of u, (D, D)."""
        once = self._mapped(C, self.S.T)
        return self._mapped(once.T, self.S.T)

    def inputs(self, X: NDArray) -> NDArray:
        """Columns of the model on columns, ``[X, 1] S``, (n, c) in single precision.

        The column of ones is there only where S has a row for it. Rows in single precision make a
        step faster. Distances from the anchor are of the order of 1 here, so their digits suffice
        for any scale of X.
        """
        if X.shape[1] < len(self.S):
            X = np.concatenate([X, np.ones((len(X), 1), X.dtype)], axis=1)
        return (X.astype(np.float64, copy=False) @ self.S).astype(np.float32)

    def _mapped(self, u: NDArray, matrix: NDArray) -> NDArray:
        """From the order of the model on columns to the other: each output times `matrix`."""
        k, c = self.columns.shape
        theta = np.empty(u.shape)
        blocks = u[..., : k * c].reshape(-1, c) @ matrix
        theta[..., self.columns.ravel()] = blocks.reshape(*u.shape[:-1], k * c)
        theta[..., self.rest] = u[..., k * c :]
        return theta

    def _back(self, theta: NDArray, matrix: NDArray) -> NDArray:
        """From the order of the model to that of the model on columns."""
        k, c = self.columns.shape
        blocks = theta[..., self.columns.ravel()].reshape(-1, c) @ matrix
        return np.concatenate(
            [blocks.reshape(*theta.shape[:-1], k * c), theta[..., self.rest]], axis=-1
        )


Coordinates = Identity | Whitened | LowRank
