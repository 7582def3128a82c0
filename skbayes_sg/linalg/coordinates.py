"""Coordinates of the chains: those of the model, or whitened ones around an anchor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from skbayes_sg.linalg.low_rank import LowRank


class Natural:
    """The coordinates of the model: every method returns its argument."""

    def natural(self, u: NDArray) -> NDArray:
        """theta of u, (..., D)."""
        return u

    def whitened(self, theta: NDArray) -> NDArray:
        """u of theta, (..., D)."""
        return theta

    def pulled(self, gradient: NDArray) -> NDArray:
        """A gradient in theta as one in u, (..., D)."""
        return gradient

    def pushed(self, gradient: NDArray) -> NDArray:
        """The gradient in theta of a gradient in u, (..., D)."""
        return gradient

    def pulled_matrix(self, A: NDArray) -> NDArray:
        """A quadratic form in theta as one in u, (D, D)."""
        return A

    def covariance(self, C: NDArray) -> NDArray:
        """The covariance of theta from that of u, (D, D)."""
        return C

    def inputs(self, X: NDArray) -> NDArray:
        """Columns of the model in these coordinates, (n, c)."""
        return X


@dataclass(frozen=True, eq=False)
class Whitened:
    """``theta = centre + T u``: coordinates u in which the curvature is about the identity.

    T turns the columns of every output by the same matrix S, so that the model keeps its form: it
    becomes the bare model, without intercept, on the columns ``[X, 1] S``.

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
    def turns(self) -> bool:
        """Whether an orthogonal matrix may turn them: one output and nothing else."""
        return len(self.columns) == 1 and not len(self.rest)

    def turned(self, V: NDArray) -> Whitened:
        """The same coordinates turned by an orthogonal matrix (c, c)."""
        return Whitened(self.centre, self.columns, self.rest, self.S @ V)

    @cached_property
    def _inverse(self) -> NDArray:
        return np.linalg.inv(self.S)

    def natural(self, u: NDArray) -> NDArray:
        """theta of u, (..., D)."""
        return self.centre + self._mapped(u, self.S.T)

    def whitened(self, theta: NDArray) -> NDArray:
        """u of theta, (..., D)."""
        return self._back(theta - self.centre, self._inverse.T)

    def pulled(self, gradient: NDArray) -> NDArray:
        """T^T g: a gradient in theta as one in u, (..., D)."""
        return self._back(gradient, self.S)

    def pushed(self, gradient: NDArray) -> NDArray:
        """The gradient in theta of a gradient in u, (..., D)."""
        return self._mapped(gradient, self._inverse)

    def pulled_matrix(self, A: NDArray) -> NDArray:
        """T^T A T of a symmetric matrix in theta, (D, D)."""
        return self.pulled(self.pulled(A).T)

    def covariance(self, C: NDArray) -> NDArray:
        """T C T^T: the covariance of theta from that of u, (D, D)."""
        once = self._mapped(C, self.S.T)
        return self._mapped(once.T, self.S.T)

    def inputs(self, X: NDArray) -> NDArray:
        """Columns of the bare model, ``[X, 1] S``, (n, c) in single precision."""
        return mapped_columns(X, self.S)

    def _mapped(self, u: NDArray, matrix: NDArray) -> NDArray:
        """From the order of the bare model to that of the model: each output times `matrix`."""
        k, c = self.columns.shape
        theta = np.empty(u.shape)
        blocks = u[..., : k * c].reshape(-1, c) @ matrix
        theta[..., self.columns.ravel()] = blocks.reshape(*u.shape[:-1], k * c)
        theta[..., self.rest] = u[..., k * c :]
        return theta

    def _back(self, theta: NDArray, matrix: NDArray) -> NDArray:
        """From the order of the model to that of the bare model."""
        k, c = self.columns.shape
        blocks = theta[..., self.columns.ravel()].reshape(-1, c) @ matrix
        return np.concatenate(
            [blocks.reshape(*theta.shape[:-1], k * c), theta[..., self.rest]], axis=-1
        )


@dataclass(frozen=True, eq=False)
class Kronecker:
    """``theta = centre + V (scale * u) U^T``, as matrices of outputs times columns.

    V turns the outputs and U maps the columns, so that the curvature of a model with many outputs
    is about the identity without a D x D matrix (math.md#many-outputs).

    Attributes
    ----------
    centre : array of shape (1, D)
    columns : integer array of shape (outputs, c)
        Coordinates of theta of the coefficients of each output, with its intercept.
    V : array of shape (outputs, outputs)
        Orthogonal.
    U, inverse : arrays of shape (c, c)
        U and its inverse.
    scale : array of shape (outputs, c)
    """

    centre: NDArray
    columns: NDArray
    V: NDArray
    U: NDArray
    inverse: NDArray
    scale: NDArray

    def bare(self, u: NDArray) -> NDArray:
        """Parameters of the bare model on the columns ``[X, 1] U``, (..., D)."""
        return self._flat(self.V @ (self.scale * self._matrix(u)))

    def pulled_bare(self, gradient: NDArray) -> NDArray:
        """A gradient of the bare model as one in u, (..., D)."""
        return self._flat(self.scale * (self.V.T @ self._matrix(gradient)))

    def natural(self, u: NDArray) -> NDArray:
        """theta of u, (..., D)."""
        theta = np.empty(u.shape)
        theta[..., self.columns.ravel()] = self._flat(self._matrix(self.bare(u)) @ self.U.T)
        return theta + self.centre

    def whitened(self, theta: NDArray) -> NDArray:
        """u of theta, (..., D)."""
        change = self._matrix((theta - self.centre)[..., self.columns.ravel()])
        return self._flat((self.V.T @ (change @ self.inverse.T)) / self.scale)

    def pulled(self, gradient: NDArray) -> NDArray:
        """A gradient in theta as one in u, (..., D)."""
        blocks = self._matrix(gradient[..., self.columns.ravel()]) @ self.U
        return self.pulled_bare(self._flat(blocks))

    def pushed(self, gradient: NDArray) -> NDArray:
        """The gradient in theta of a gradient in u, (..., D)."""
        theta = np.empty(gradient.shape)
        blocks = (self.V @ (self._matrix(gradient) / self.scale)) @ self.inverse
        theta[..., self.columns.ravel()] = self._flat(blocks)
        return theta

    def pulled_matrix(self, A: NDArray) -> NDArray:
        """A quadratic form in theta as one in u, (D, D)."""
        return self.pulled(self.pulled(A).T)

    def covariance(self, C: NDArray) -> NDArray:
        """The covariance of theta from that of u, (D, D)."""
        once = self.natural(C) - self.centre
        return self.natural(once.T) - self.centre

    def pulled_diagonal(self, values: NDArray) -> NDArray:
        """The diagonal in u of a diagonal quadratic form in theta, (D,)."""
        blocks = (self.V**2).T @ values[self.columns] @ self.U**2
        return (self.scale**2 * blocks).ravel()

    def inputs(self, X: NDArray) -> NDArray:
        """Columns of the bare model, ``[X, 1] U``, (n, c) in single precision."""
        return mapped_columns(X, self.U)

    def _matrix(self, u: NDArray) -> NDArray:
        return u.reshape(*u.shape[:-1], *self.columns.shape)

    def _flat(self, matrix: NDArray) -> NDArray:
        return matrix.reshape(*matrix.shape[:-2], -1)


def mapped_columns(X: NDArray, U: NDArray) -> NDArray:
    """``[X, 1] U`` in single precision; the column of ones only where U has a row for it.

    Rows in single precision make a step faster. Distances from the anchor are of the order of 1
    here, so their digits suffice for any scale of X.
    """
    if X.shape[1] < len(U):
        X = np.concatenate([X, np.ones((len(X), 1), X.dtype)], axis=1)
    return (X.astype(np.float64, copy=False) @ U).astype(np.float32)


Coordinates = Natural | Whitened | Kronecker | LowRank
