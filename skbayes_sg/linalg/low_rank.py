"""Coordinates for very many parameters: a diagonal, a block and a matrix of low rank."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class LowRank:
    """``theta = centre + T u``: coordinates u in which a curvature is near the identity.

    T is V S (I + Q (diag(stretch) - I) Q^T). V turns the outputs. S scales every column, but for
    some leading columns, which it maps by a matrix for each output. No matrix is D x D
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

    @cached_property
    def single(self) -> LowRank:
        """The same in single precision."""
        names = ("centre", "V", "scale", "roots", "inverses", "Q", "stretch")
        return replace(self, **{name: getattr(self, name).astype(np.float32) for name in names})

    def inverse_transform(self, u: NDArray) -> NDArray:
        """theta of u, (..., D)."""
        theta = self._spread(self._split(self._stretched(u, self.stretch), self.scale, self.roots))
        theta += self.centre
        return theta

    def transform(self, theta: NDArray) -> NDArray:
        """u of theta, (..., D)."""
        u = self._split(self._gathered(theta - self.centre), 1 / self.scale, self.inverses)
        return self._stretched(u, 1 / self.stretch)

    def pullback(self, gradient: NDArray) -> NDArray:
        """T^T g: a gradient in theta as one in u, (..., D)."""
        u = self._split(self._gathered(gradient), self.scale, self.roots.swapaxes(1, 2))
        return self._stretched(u, self.stretch)

    def pushforward(self, gradient: NDArray) -> NDArray:
        """The gradient in theta of a gradient in u, (..., D)."""
        u = self._stretched(gradient, 1 / self.stretch)
        return self._spread(self._split(u, 1 / self.scale, self.inverses.swapaxes(1, 2)))

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
        diagonal[:, self.leading] = of_leading[:, 0]
        return diagonal.ravel()

    def _stretched(self, u: NDArray, by: NDArray) -> NDArray:
        """``u + Q (by - 1) Q^T u`` of each u, in an array of its own."""
        flat = u.reshape(-1, u.shape[-1])
        along = (flat @ self.Q) * (by - 1)
        return (flat + along @ self.Q.T).reshape(u.shape)

    def _split(self, u: NDArray, scale: NDArray, roots: NDArray) -> NDArray:
        """Each output's columns scaled, and its leading ones times a matrix; it overwrites u."""
        k, c = self.columns.shape
        each = u.reshape(-1, k, c)
        leading = each[:, :, self.leading].swapaxes(0, 1) @ roots.swapaxes(1, 2)
        each *= scale
        each[:, :, self.leading] = leading.swapaxes(0, 1)
        return each.reshape(u.shape)

    def _spread(self, u: NDArray) -> NDArray:
        """From outputs times columns to the order of theta, in an array that may be u."""
        k, c = self.columns.shape
        if k == 1:
            return u
        theta = np.empty_like(u)
        theta[..., self.columns] = self.V @ u.reshape(*u.shape[:-1], k, c)
        return theta

    def _gathered(self, theta: NDArray) -> NDArray:
        """From the order of theta to outputs times columns, in an array of its own."""
        if len(self.columns) == 1:
            return theta.copy()
        return (self.V.T @ theta[..., self.columns]).reshape(theta.shape)
