"""Layouts: which entries of a symmetric D x D matrix are kept, and how they are computed.

A layout has three methods: the second moment of scores, the mean outer product of a few vectors,
and the stored part of a matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.linalg import Blocks, Dense, Diag, Operator, Rotated, Rotation


class Factored(Protocol):
    """The interface of scores kept as factors to a layout."""

    @property
    def dim(self) -> int:
        """Number of coordinates, D."""

    def squares(self) -> NDArray:
        """Sum over rows of the squared scores, averaged over the chains, (D,)."""

    def gram(self, columns: NDArray) -> NDArray:
        """Sum over rows of g g^T in some ascending coordinates, averaged over the chains."""

    def rotated(self, rotation: Rotation) -> Self:
        """The same scores in rotated coordinates."""


class Layout(ABC):
    """How a symmetric matrix is stored."""

    diagonal = False
    """Whether one number is kept for each (rotated) coordinate; few minibatches determine it."""

    @abstractmethod
    def moment(self, scores: Factored) -> Operator:
        """Sum over rows of g g^T, averaged over the chains."""

    @abstractmethod
    def outer(self, vectors: NDArray) -> Operator:
        """Mean of v v^T over vectors (n, D)."""

    def keep(self, matrix: Operator) -> Operator:
        """The entries of a matrix that this layout stores."""
        return matrix


class Diagonal(Layout):
    """The diagonal alone."""

    diagonal = True

    def moment(self, scores: Factored) -> Diag:
        return Diag(scores.squares())

    def outer(self, vectors: NDArray) -> Diag:
        return Diag((vectors * vectors).mean(axis=0))

    def keep(self, matrix: Operator) -> Operator:
        return Diag(matrix.diagonal()) if isinstance(matrix, Dense) else matrix


class Full(Layout):
    """All entries."""

    def moment(self, scores: Factored) -> Dense:
        return Dense(scores.gram(np.arange(scores.dim)))

    def outer(self, vectors: NDArray) -> Dense:
        return Dense(vectors.T @ vectors / len(vectors))


class Partitioned(Layout):
    """Blocks of coordinates.

    Parameters
    ----------
    parts : sequence of integer arrays
        Ascending coordinates of each block. Each of the D coordinates is in one block.
    """

    def __init__(self, parts: Sequence[NDArray]) -> None:
        self.parts = parts

    def moment(self, scores: Factored) -> Blocks:
        return Blocks.from_parts(self.parts, [scores.gram(part) for part in self.parts])

    def outer(self, vectors: NDArray) -> Blocks:
        n = len(vectors)
        blocks = [vectors[:, part].T @ vectors[:, part] / n for part in self.parts]
        return Blocks.from_parts(self.parts, blocks)

    def keep(self, matrix: Operator) -> Operator:
        if not isinstance(matrix, Dense):
            return matrix
        blocks = [matrix.matrix[np.ix_(part, part)] for part in self.parts]
        return Blocks.from_parts(self.parts, blocks)


class RotatedDiagonal(Layout):
    """The diagonal in other coordinates, such as the eigenvectors of Kronecker factors.

    Parameters
    ----------
    rotation : Rotation
    """

    diagonal = True

    def __init__(self, rotation: Rotation) -> None:
        self.rotation = rotation

    def keep(self, matrix: Operator) -> Operator:
        if not isinstance(matrix, Dense):
            return matrix
        rotate = self.rotation.rotate
        return Rotated(rotate(rotate(matrix.matrix).T).diagonal().copy(), self.rotation)

    def moment(self, scores: Factored) -> Rotated:
        return Rotated(scores.rotated(self.rotation).squares(), self.rotation)

    def outer(self, vectors: NDArray) -> Rotated:
        return Rotated((self.rotation.rotate(vectors) ** 2).mean(axis=0), self.rotation)


DIAGONAL = Diagonal()
FULL = Full()
