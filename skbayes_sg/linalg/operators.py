"""One symmetric operator in four storages: `Diag`, `Rotated`, `Blocks`, `Dense`.

A noise covariance, a curvature and a preconditioner are the same kind of object: a symmetric
``D x D`` matrix that is averaged, added, inverted and multiplied with vectors. Vectors are rows:
``matvec`` takes ``(..., D)``, so one product serves all chains of a group. A `Layout` says which
entries of a matrix are kept, in one storage each.

``A + B`` adds a `Diag` to any storage, or two operators of equal storage. Other sums are not needed
here, and fail: B is asked to add itself to an operator of its own storage (`added_to`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

_NOT_DEFINITE = (
    "matrix is not positive definite: a direction has neither data noise nor prior; give every "
    "parameter a positive prior precision"
)


class Rotation:
    """An orthogonal change of coordinates: left (x) right for each (k, m) block of parameters.

    Parameters
    ----------
    bases : sequence of pairs (left, right)
        Orthogonal matrices (k, k) and (m, m); None is the identity. m is 1 for a block without
        features.
    shapes : sequence of tuple (k, m)
    """

    def __init__(
        self,
        bases: Sequence[tuple[NDArray | None, NDArray | None]],
        shapes: Sequence[tuple[int, int]],
    ) -> None:
        self.bases = list(bases)
        self.shapes = list(shapes)
        self._ends = np.cumsum([k * m for k, m in shapes])[:-1]

    def rotate(self, v: NDArray) -> NDArray:
        """R^T v: rotated coordinates of vectors (..., D)."""
        return self._apply(v, [(_transpose(left), right) for left, right in self.bases])

    def back(self, v: NDArray) -> NDArray:
        """R v: the vectors of rotated coordinates."""
        return self._apply(v, [(left, _transpose(right)) for left, right in self.bases])

    def rotate_diagonal(self, values: NDArray) -> NDArray:
        """Diagonal of R^T diag(values) R: the values themselves where a block has one."""
        squares = [tuple(None if b is None else b * b for b in pair) for pair in self.bases]
        return self._apply(values, [(_transpose(left), right) for left, right in squares])

    def _apply(
        self, v: NDArray, factors: Sequence[tuple[NDArray | None, NDArray | None]]
    ) -> NDArray:
        parts = []
        for (k, m), (left, right), part in zip(
            self.shapes, factors, np.split(v, self._ends, axis=-1), strict=True
        ):
            block = part.reshape(-1, m) if right is None else part.reshape(-1, m).dot(right)
            block = block.reshape(*v.shape[:-1], k, m)
            parts.append((block if left is None else left @ block).reshape(*v.shape[:-1], k * m))
        return np.concatenate(parts, axis=-1)


def _transpose(matrix: NDArray | None) -> NDArray | None:
    return None if matrix is None else matrix.T


class _Storage(ABC):
    """What storages answer alike, but for those that override it."""

    def __add__(self, other: Any) -> Self:
        return other.added_to(self)

    @abstractmethod
    def matvec(self, v: NDArray) -> NDArray:
        """A v of vectors (..., D)."""

    def squares(self, v: NDArray) -> NDArray:
        """Terms of the quadratic form v^T A v, one for each coordinate, (..., D)."""
        return self.matvec(v) * v

    def plain(self) -> Self:
        """The same matrix, in a storage that can be added: the shear of a prior cannot."""
        return self

    def in_blocks(self, parts: Sequence[NDArray]) -> Any:
        """Entries within blocks of coordinates, in a storage that can be added to such blocks."""
        return self

    def along(self, rotation: Rotation) -> Any:
        """The diagonal along rotated axes, in a storage that can be added to such a one."""
        return self


@dataclass(eq=False)
class _Values(_Storage):
    """A matrix that is diagonal in some coordinates, stored as `values` of shape (D,)."""

    values: NDArray

    @property
    def dim(self) -> int:
        return self.values.size

    def __mul__(self, scale: float) -> Self:
        return replace(self, values=scale * self.values)

    def blend(self, other: Self, weight: float) -> None:
        """Move towards `other` by `weight`, in place: a running average."""
        self.values += weight * (other.values - self.values)

    def inverse(self) -> Self:
        if not self.values.min() > 0:
            raise np.linalg.LinAlgError(_NOT_DEFINITE)
        return replace(self, values=1.0 / self.values)

    def cholesky(self) -> Self:
        """Square root L with L L^T = self. A zero entry is allowed: no noise in that direction."""
        if self.values.min() < 0:
            raise np.linalg.LinAlgError(_NOT_DEFINITE)
        return replace(self, values=np.sqrt(self.values))


class Diag(_Values):
    """A diagonal matrix, stored as its diagonal of shape (D,)."""

    def __add__(self, other: Any) -> Any:
        return other.plus_diagonal(self.values)

    def added_to(self, other: Operator) -> Operator:
        return other.plus_diagonal(self.values)

    def plus_diagonal(self, values: NDArray) -> Diag:
        return Diag(self.values + values)

    def matvec(self, v: NDArray) -> NDArray:
        return v * self.values

    def diagonal(self) -> NDArray:
        return self.values.copy()

    def dense(self) -> NDArray:
        return np.diag(self.values)

    def leading(self, n: int) -> Diag:
        """The block of the first n coordinates."""
        return Diag(self.values[:n])

    def bordered(self, scale: NDArray, corner: NDArray) -> Diag:
        """S A S for a diagonal S, and a diagonal of further coordinates."""
        return Diag(np.append(self.values * scale**2, corner))


@dataclass(eq=False)
class Rotated(_Values):
    """A matrix that is diagonal in rotated coordinates, R diag(values) R^T, stored as `values`.

    With the eigenvectors of Kronecker factors this keeps the correlations within a layer (George et
    al. 2018, EKFAC) at two small products per block. A `Diag` that is not constant within a block
    is not diagonal in rotated coordinates; the sum drops its entries off the diagonal.
    """

    rotation: Rotation

    def added_to(self, other: Rotated) -> Rotated:
        if other.rotation is not self.rotation:
            raise TypeError("operators of two rotations have no common diagonal")
        return Rotated(other.values + self.values, self.rotation)

    def plus_diagonal(self, values: NDArray) -> Rotated:
        return Rotated(self.values + self.rotation.rotate_diagonal(values), self.rotation)

    def matvec(self, v: NDArray) -> NDArray:
        return self.rotation.back(self.values * self.rotation.rotate(v))

    def diagonal(self) -> NDArray:
        return Rotation(
            [(_transpose(left), _transpose(right)) for left, right in self.rotation.bases],
            self.rotation.shapes,
        ).rotate_diagonal(self.values)

    def dense(self) -> NDArray:
        return self.matvec(np.eye(self.dim))


@dataclass(eq=False)
class Dense(_Storage):
    """A full matrix of shape (D, D)."""

    matrix: NDArray

    @property
    def dim(self) -> int:
        return len(self.matrix)

    def added_to(self, other: Dense) -> Dense:
        return Dense(other.matrix + self.matrix)

    def plus_diagonal(self, values: NDArray) -> Dense:
        matrix = self.matrix.copy()
        matrix.flat[:: len(matrix) + 1] += values
        return Dense(matrix)

    def __mul__(self, scale: float) -> Dense:
        return Dense(scale * self.matrix)

    def blend(self, other: Dense, weight: float) -> None:
        """Move towards `other` by `weight`: a running average."""
        self.matrix = self.matrix + weight * (other.matrix - self.matrix)
        vars(self).pop("_inverse", None)

    def matvec(self, v: NDArray) -> NDArray:
        return v.dot(self.matrix.T)

    def inverse(self) -> Dense:
        """Explicit inverse: a step then costs one D x D product, not two triangular solves.

        It is kept: a fit asks for that of its mode several times.
        """
        return Dense(self._inverse)

    @cached_property
    def _inverse(self) -> NDArray:
        lower, _ = lapack.dpotri(self.cholesky().matrix, lower=1)
        inverse = lower + lower.T
        inverse.flat[:: len(inverse) + 1] = lower.diagonal()
        return inverse

    def __getstate__(self) -> dict[str, Any]:
        """Without the inverse, in files and in copies."""
        return {"matrix": self.matrix}

    def cholesky(self) -> Dense:
        root, info = lapack.dpotrf(self.matrix, lower=1, clean=1)
        if info:
            raise np.linalg.LinAlgError(_NOT_DEFINITE)
        return Dense(np.ascontiguousarray(root))

    def diagonal(self) -> NDArray:
        return self.matrix.diagonal().copy()

    def dense(self) -> NDArray:
        return self.matrix.copy()

    def leading(self, n: int) -> Dense:
        """The block of the first n coordinates."""
        return Dense(self.matrix[:n, :n])

    def bordered(self, scale: NDArray, corner: NDArray) -> Dense:
        """S A S for a diagonal S, and a diagonal of further coordinates."""
        n = self.dim  # SciPy's block_diag takes as long as ten products of few parameters
        matrix = np.zeros((n + len(corner), n + len(corner)))
        np.multiply(self.matrix, np.outer(scale, scale), out=matrix[:n, :n])
        matrix[range(n, len(matrix)), range(n, len(matrix))] = corner
        return Dense(matrix)

    def in_blocks(self, parts: Sequence[NDArray]) -> Blocks:
        return Blocks.from_parts(parts, [self.matrix[np.ix_(part, part)] for part in parts])

    def along(self, rotation: Rotation) -> Rotated:
        turned = rotation.rotate(rotation.rotate(self.matrix).T)
        return Rotated(turned.diagonal().copy(), rotation)


@dataclass(eq=False)
class Blocks(_Storage):
    """A block-diagonal matrix under a partition of the coordinates.

    Smaller blocks are padded to the size of the largest with a phantom coordinate (index D). Its
    diagonal is 1 in a factorisation. So Cholesky, inverse and product run on one stack.

    Attributes
    ----------
    index : array of shape (n_blocks, size)
        Coordinates of each block; D marks padding.
    stack : array of shape (n_blocks, size, size)
    dim : int
        D.
    """

    index: NDArray
    stack: NDArray
    dim: int

    @classmethod
    def from_parts(cls, parts: Sequence[NDArray], matrices: Sequence[NDArray]) -> Blocks:
        """Build from the partition and one matrix per part."""
        dim = sum(len(part) for part in parts)
        size = max(len(part) for part in parts)
        index = np.full((len(parts), size), dim)
        stack = np.zeros((len(parts), size, size))
        for b, (part, matrix) in enumerate(zip(parts, matrices, strict=True)):
            index[b, : len(part)] = part
            stack[b, : len(part), : len(part)] = matrix
        return cls(index, stack, dim)

    def added_to(self, other: Blocks) -> Blocks:
        return replace(self, stack=other.stack + self.stack)

    def plus_diagonal(self, values: NDArray) -> Blocks:
        stack = self.stack.copy()
        size = stack.shape[1]
        stack[:, range(size), range(size)] += np.append(values, 0.0)[self.index]
        return replace(self, stack=stack)

    def __mul__(self, scale: float) -> Blocks:
        return replace(self, stack=scale * self.stack)

    def blend(self, other: Blocks, weight: float) -> None:
        """Move towards `other` by `weight`, in place: a running average."""
        self.stack += weight * (other.stack - self.stack)

    def matvec(self, v: NDArray) -> NDArray:
        padded = np.concatenate([v, np.zeros((*v.shape[:-1], 1))], axis=-1)
        product = np.matmul(self.stack, padded[..., self.index, None])[..., 0]
        padded[..., self.index] = product
        return padded[..., :-1]

    def inverse(self) -> Blocks:
        inverse = np.linalg.inv(self.cholesky().stack)
        return replace(self, stack=inverse.transpose(0, 2, 1) @ inverse)

    def cholesky(self) -> Blocks:
        stack = self.stack.copy()
        block, phantom = np.nonzero(self.index == self.dim)
        stack[block, phantom, phantom] = 1.0
        try:
            return replace(self, stack=np.linalg.cholesky(stack))
        except np.linalg.LinAlgError:
            raise np.linalg.LinAlgError(_NOT_DEFINITE) from None

    def diagonal(self) -> NDArray:
        values = np.empty(self.dim + 1)
        values[self.index] = np.diagonal(self.stack, axis1=1, axis2=2)
        return values[:-1]

    def dense(self) -> NDArray:
        matrix = np.zeros((self.dim + 1, self.dim + 1))
        for index, block in zip(self.index, self.stack, strict=True):
            matrix[np.ix_(index, index)] = block
        return matrix[:-1, :-1]


Operator = Diag | Rotated | Blocks | Dense


def stored(operator: Operator, dtype: type) -> Diag | Dense:
    """A matrix or diagonal in this precision.

    The matrix is stored by columns: products with few vectors then take half as long.
    """
    if isinstance(operator, Diag):
        return Diag(operator.values.astype(dtype, copy=False))
    return Dense(np.asfortranarray(operator.dense(), dtype))


def largest_eigenvalue(
    matvec: Callable[[NDArray], NDArray], dim: int, rng: np.random.Generator
) -> float:
    """Largest eigenvalue of a matrix with real non-negative spectrum, by power iterations.

    `matvec` maps (1, D) to (1, D). At most 50 iterations give it to a few per cent, enough for
    step-size rules and stability checks.
    """
    v = rng.standard_normal((1, dim))
    value = 0.0
    for _ in range(50):
        v /= np.linalg.norm(v)
        v = matvec(v)
        before, value = value, float(np.linalg.norm(v))
        if abs(value - before) <= 1e-3 * value:
            break
    return value


# -- layouts ----------------------------------------------------------------------------------


class Layout(ABC):
    """Which entries of a symmetric matrix are kept; `Scores.moment` makes such matrices."""

    diagonal = False
    """Whether one number is kept for each (rotated) coordinate; few minibatches determine it."""

    @abstractmethod
    def outer(self, vectors: NDArray) -> Operator:
        """Mean of v v^T over vectors (n, D)."""

    def keep(self, matrix: Operator) -> Operator:
        """The entries of a matrix that this layout stores."""
        return matrix


class Full(Layout):
    """All entries."""

    def outer(self, vectors: NDArray) -> Dense:
        return Dense(vectors.T @ vectors / len(vectors))


class Diagonal(Layout):
    """The diagonal alone."""

    diagonal = True

    def outer(self, vectors: NDArray) -> Diag:
        return Diag((vectors * vectors).mean(axis=0))

    def keep(self, matrix: Operator) -> Operator:
        return Diag(matrix.diagonal())


@dataclass(frozen=True, eq=False)
class Partitioned(Layout):
    """Blocks of coordinates.

    Attributes
    ----------
    parts : sequence of integer arrays
        Ascending coordinates of each block. Each of the D coordinates is in one block.
    """

    parts: Sequence[NDArray]

    def outer(self, vectors: NDArray) -> Blocks:
        n = len(vectors)
        blocks = [vectors[:, part].T @ vectors[:, part] / n for part in self.parts]
        return Blocks.from_parts(self.parts, blocks)

    def keep(self, matrix: Operator) -> Operator:
        return matrix.in_blocks(self.parts)


@dataclass(frozen=True, eq=False)
class RotatedDiagonal(Layout):
    """The diagonal in other coordinates, such as the eigenvectors of Kronecker factors."""

    rotation: Rotation

    diagonal = True

    def outer(self, vectors: NDArray) -> Rotated:
        return Rotated((self.rotation.rotate(vectors) ** 2).mean(axis=0), self.rotation)

    def keep(self, matrix: Operator) -> Operator:
        return matrix.along(self.rotation)


DIAGONAL = Diagonal()
FULL = Full()
