"""Coordinates of the chains: those of the model, or whitened ones around an anchor.

Of very many parameters a diagonal, a block and a matrix of low rank whiten.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack


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
    S, inverse : arrays of shape (c, c)
    """

    centre: NDArray
    columns: NDArray
    rest: NDArray
    S: NDArray
    inverse: NDArray

    @classmethod
    def of(cls, columns: NDArray, centre: NDArray, curvature: NDArray) -> Whitened:
        """Coordinates from the curvature (D, D) at the centre, averaged over outputs.

        S is lower triangular and the intercept comes last, so u is the same for columns that are
        shifted and scaled (by a positive number).
        """
        mean = curvature[columns[:, :, None], columns[:, None, :]].mean(axis=0)
        backwards = np.linalg.cholesky(mean[::-1, ::-1])
        S = np.ascontiguousarray(lapack.dtrtri(backwards, lower=1)[0].T[::-1, ::-1])
        inverse = np.ascontiguousarray(backwards.T[::-1, ::-1])
        return cls(centre, columns, np.setdiff1d(np.arange(centre.size), columns), S, inverse)

    @classmethod
    def along(
        cls,
        columns: NDArray,
        centre: NDArray,
        curvature: NDArray,
        weights: NDArray,
        group: NDArray,
    ) -> Whitened:
        """Coordinates that belong to one group each, of parameters with a precision each.

        A sum of squares ``sum(weights theta^2)`` of a group is such a sum of its coordinates. Of
        one group all curvature is about the identity, as in `of`; of more that is so within each.

        Parameters
        ----------
        columns, centre, curvature : arrays
            As in `of`.
        weights : array of shape (D,)
            The same for all outputs; 0 for parameters of no group.
        group : integer array of shape (D,)
        """
        mean = curvature[columns[:, :, None], columns[:, None, :]].mean(axis=0)
        of_first = columns[0]
        (own,), (free,) = np.nonzero(weights[of_first]), np.nonzero(weights[of_first] == 0)
        lower = np.linalg.cholesky(mean[np.ix_(free, free)])
        of_free = lapack.dtrtri(lower, lower=1)[0].T if len(free) else lower  # LAPACK wants one
        shift = of_free @ of_free.T @ mean[np.ix_(free, own)]
        complement = mean[np.ix_(own, own)] - mean[np.ix_(own, free)] @ shift
        scale, members = 1 / np.sqrt(weights[of_first[own]]), group[of_first[own]]
        # in units of the prior: the axes of each group, over the roots of their quadratic forms
        scaled = complement * np.outer(scale, scale)
        axes, form = np.zeros_like(scaled), np.empty(len(own))
        for label in np.unique(members):
            (in_group,) = np.nonzero(members == label)
            block = np.ix_(in_group, in_group)
            axes[block] = reproducible_eigh(scaled[block], apart=True)[1]
            squares = np.einsum("ij,ij->j", axes[block], scaled[block] @ axes[block])
            form[in_group] = np.sqrt(squares)
        S, inverse = np.zeros_like(mean), np.zeros_like(mean)
        S[np.ix_(own, own)] = scale[:, None] * axes / form
        S[np.ix_(free, own)] = -shift @ S[np.ix_(own, own)]
        S[np.ix_(free, free)] = of_free
        inverse[np.ix_(own, own)] = form[:, None] * axes.T / scale
        inverse[np.ix_(free, own)] = lower.T @ shift
        inverse[np.ix_(free, free)] = lower.T
        return cls(centre, columns, np.setdiff1d(np.arange(centre.size), columns), S, inverse)

    @property
    def rotates(self) -> bool:
        """Whether an orthogonal matrix may turn them: one output and nothing else."""
        return len(self.columns) == 1 and not len(self.rest)

    def rotated(self, V: NDArray) -> Whitened:
        """The same coordinates turned by an orthogonal matrix (c, c)."""
        return replace(self, S=self.S @ V, inverse=V.T @ self.inverse)

    def inverse_transform(self, u: NDArray) -> NDArray:
        """theta of u, (..., D)."""
        return self.centre + self._mapped(u, self.S.T)

    def transform(self, theta: NDArray) -> NDArray:
        """u of theta, (..., D)."""
        return self._back(theta - self.centre, self.inverse.T)

    def pullback(self, gradient: NDArray) -> NDArray:
        """T^T g: a gradient in theta as one in u, (..., D)."""
        return self._back(gradient, self.S)

    def pushforward(self, gradient: NDArray) -> NDArray:
        """The gradient in theta of a gradient in u, (..., D)."""
        return self._mapped(gradient, self.inverse)

    def pullback_matrix(self, A: NDArray) -> NDArray:
        """T^T A T of a symmetric matrix in theta, (D, D)."""
        return self.pullback(self.pullback(A).T)

    def pullback_diagonal(self, values: NDArray) -> NDArray:
        """The diagonal in u of a diagonal quadratic form in theta, (D,)."""
        return self._back(values, self.S**2)

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
        """Each output times `matrix`, from the order of the model on columns to the other."""
        if self.rotates:
            return u @ matrix
        k, c = self.columns.shape
        theta = np.empty(u.shape)
        blocks = u[..., : k * c].reshape(-1, c) @ matrix
        theta[..., self.columns.ravel()] = blocks.reshape(*u.shape[:-1], k * c)
        theta[..., self.rest] = u[..., k * c :]
        return theta

    def _back(self, theta: NDArray, matrix: NDArray) -> NDArray:
        """Each output times `matrix`, from the order of the model to that of it on columns."""
        if self.rotates:
            return theta @ matrix
        k, c = self.columns.shape
        blocks = theta[..., self.columns.ravel()].reshape(-1, c) @ matrix
        return np.concatenate(
            [blocks.reshape(*theta.shape[:-1], k * c), theta[..., self.rest]], axis=-1
        )


@dataclass(frozen=True, eq=False)
class LowRank:
    """``theta = centre + T u``: coordinates u in which a curvature is near the identity.

    T is V F S (I + Q (diag(stretch) - I) Q^T). V turns the outputs. S scales every column, but for
    some leading columns, which it maps by a matrix for each output. F moves the other columns by
    what they follow the leading ones. No matrix is D x D
    (math/high_dimensional.md#a-diagonal-a-block-and-low-rank).

    Attributes
    ----------
    centre : array of shape (1, D)
    columns : integer array of shape (outputs, c)
        Coordinates of theta of the parameters of each output.
    V : array of shape (outputs, outputs)
        Orthogonal.
    scale : array of shape (outputs, c)
    leading : integer array of shape (m,)
        Columns with a matrix.
    roots, inverses : arrays of shape (outputs, m, m)
        Their matrices, and the inverses.
    Q : array of shape (D, r)
        Orthonormal columns, in u.
    stretch : array of shape (r,)
    follows : array of shape (m, c), optional
        How much less a column is for each unit of a leading one; 0 for the leading ones. None where
        none follows, and of several outputs.
    """

    centre: NDArray
    columns: NDArray
    V: NDArray
    scale: NDArray
    leading: NDArray
    roots: NDArray
    inverses: NDArray
    Q: NDArray
    stretch: NDArray
    follows: NDArray | None = None

    @cached_property
    def single(self) -> LowRank:
        """The same in single precision."""
        names = ("centre", "V", "scale", "roots", "inverses", "Q", "stretch", "follows")
        arrays = {name: getattr(self, name) for name in names}
        return replace(
            self, **{name: a.astype(np.float32) for name, a in arrays.items() if a is not None}
        )

    def inverse_transform(self, u: NDArray) -> NDArray:
        """theta of u, (..., D)."""
        theta = self._split(self._stretched(u, self.stretch), self.scale, self.roots)
        if self.follows is not None:
            theta -= theta[..., self.leading] @ self.follows
        theta = self._spread(theta)
        theta += self.centre
        return theta

    def transform(self, theta: NDArray) -> NDArray:
        """u of theta, (..., D)."""
        u = self._gathered(theta - self.centre)
        if self.follows is not None:
            u += u[..., self.leading] @ self.follows
        u = self._split(u, 1 / self.scale, self.inverses)
        return self._stretched(u, 1 / self.stretch)

    def pullback(self, gradient: NDArray) -> NDArray:
        """T^T g: a gradient in theta as one in u, (..., D)."""
        u = self._gathered(gradient)
        u = u.copy() if u is gradient else u
        if self.follows is not None:
            u[..., self.leading] -= u @ self.follows.T
        u = self._split(u, self.scale, self.roots.swapaxes(1, 2))
        return self._stretched(u, self.stretch)

    def pushforward(self, gradient: NDArray) -> NDArray:
        """The gradient in theta of a gradient in u, (..., D)."""
        u = self._stretched(gradient, 1 / self.stretch)
        u = self._split(u, 1 / self.scale, self.inverses.swapaxes(1, 2))
        if self.follows is not None:
            u[..., self.leading] += u @ self.follows.T
        return self._spread(u)

    def pullback_matrix(self, A: NDArray) -> NDArray:
        """T^T A T of a symmetric matrix in theta, (D, D)."""
        return self.pullback(self.pullback(A).T)

    def covariance(self, C: NDArray) -> NDArray:
        """The covariance of theta from that of u, (D, D)."""
        once = self.inverse_transform(C) - self.centre
        return self.inverse_transform(once.T) - self.centre

    def pullback_diagonal(self, values: NDArray) -> NDArray:
        """The diagonal in u of a diagonal quadratic form in theta, but for Q, (D,)."""
        values = (self.V**2).T @ values[self.columns]
        diagonal = self.scale**2 * values
        of_leading = values[:, None, self.leading] @ self.roots**2
        if self.follows is not None:
            of_leading += values[:, None] @ (self.follows.T @ self.roots) ** 2
        diagonal[:, self.leading] = of_leading[:, 0]
        return diagonal.ravel()

    def _stretched(self, u: NDArray, by: NDArray) -> NDArray:
        """``u + Q (by - 1) Q^T u`` of each u, in an array of its own."""
        if not len(by):
            return u.copy()
        flat = u.reshape(-1, u.shape[-1])
        along = (flat @ self.Q) * (by - 1)
        return (flat + along @ self.Q.T).reshape(u.shape)

    def _split(self, u: NDArray, scale: NDArray, roots: NDArray) -> NDArray:
        """Each output's columns scaled, and its leading ones times a matrix; it overwrites u."""
        k, c = self.columns.shape
        outputs = u.reshape(-1, k, c)
        leading = outputs[:, :, self.leading].swapaxes(0, 1) @ roots.swapaxes(1, 2)
        outputs *= scale
        outputs[:, :, self.leading] = leading.swapaxes(0, 1)
        return outputs.reshape(u.shape)

    def _spread(self, u: NDArray) -> NDArray:
        """Outputs times columns in the order of theta, in an array that may be u."""
        k, c = self.columns.shape
        if k == 1:
            return u
        theta = np.empty_like(u)
        theta[..., self.columns] = self.V @ u.reshape(*u.shape[:-1], k, c)
        return theta

    def _gathered(self, theta: NDArray) -> NDArray:
        """Outputs times columns from the order of theta, in an array that may be theta."""
        if len(self.columns) == 1:
            return theta
        return (self.V.T @ theta[..., self.columns]).reshape(theta.shape)


Affine = Identity | Whitened | LowRank
"""Coordinates that are an affine function of the parameters."""


class Coordinates(Protocol):
    """Coordinates x of parameters theta, with hyperparameters if these are coordinates too."""

    def transform(self, theta: NDArray) -> NDArray:
        """x of theta, (n, D)."""

    def inverse_transform(self, x: NDArray) -> NDArray:
        """theta of x, (..., D)."""


def affine(coordinates: Coordinates) -> Affine:
    """These coordinates, which take gradients and curvatures back and forth.

    Raises
    ------
    TypeError
        If they are no affine function of the parameters.
    """
    if isinstance(coordinates, Affine):
        return coordinates
    raise TypeError(f"{type(coordinates).__name__} is no affine function of the parameters")


def reproducible_eigh(A: NDArray, apart: bool = False) -> tuple[NDArray, NDArray]:
    """Eigenvalues, and eigenvectors in columns, of a symmetric matrix (D, D): the same each time.

    Rounding must not choose signs: the largest entry of each vector is positive. Nor must it choose
    among vectors of equal eigenvalues, where these are to be kept `apart`: a diagonal far below the
    largest entry does.
    """
    if apart:
        A = A + 1e-8 * np.abs(A).max(initial=0.0) / len(A) * np.diag(np.arange(len(A)))
    values, V = np.linalg.eigh(A)
    return values, V * np.sign(V[np.abs(V).argmax(axis=0), range(len(V))])
