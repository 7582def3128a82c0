"""Per-row gradients kept as outer-product factors, and their second moments.

The score of row i in parameter block b is ``outer(left[:, i], right[i])``: residual times input for
a linear predictor, back-propagated error times activation for a layer (math/networks.md#drbm,
math/networks.md#mlp). Sums, diagonals and blocks of the score covariance come from the factors. The
n x D matrix of scores is built only for a covariance over all columns.

Rows of X may be CSR. SciPy makes ``left @ X`` of them as ``(X.T @ left.T).T``: chains-major.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from skbayes_sg.linalg.operators import (
    Blocks,
    Dense,
    Diag,
    Diagonal,
    Layout,
    Operator,
    Partitioned,
    Rotated,
    RotatedDiagonal,
    Rotation,
)
from skbayes_sg.linalg.sizes import has_matrix_once, is_worth_pairs


class Factor(NamedTuple):
    """One parameter block of shape (k, m), or (k,) when `right` is None (a vector of ones).

    left : array of shape (chains, k, n), or (chains, q, k, n) with q virtual labels per row
    right : array or CSR rows of shape (n, m), shared by the chains, or (chains, n, m), or None
    """

    left: NDArray
    right: Any


class Scores:
    """Scores of n rows at the parameters of each chain in a group.

    The coordinates are those of theta: the blocks one after another, each in C order. Second
    moments are averaged over the chains, because the chains of a group share one preconditioner.

    Attributes
    ----------
    blocks : tuple of tuples (k, m)
        Units and features of each block; None for a block without features.
    dim : int
        Number of coordinates, D.
    """

    def __init__(self, *factors: Factor) -> None:
        self.factors = factors
        self.n_chains = factors[0].left.shape[0]
        self.n_rows = factors[0].left.shape[-1]
        self.blocks: tuple[tuple[int, int | None], ...] = ()
        self.dim = 0
        for left, right in factors:
            k, m = left.shape[-2], None if right is None else right.shape[-1]
            self.blocks += ((k, m),)
            self.dim += k if m is None else k * m

    @property
    def rights(self) -> list[Any]:
        """The right factor of each block."""
        return [right for _, right in self.factors]

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Units and features of each block; 1 for a block without features."""
        return [(k, 1 if m is None else m) for k, m in self.blocks]

    def scaled(self, row_scale: NDArray | None) -> Scores:
        """Each row's score times its entry of `row_scale`, shape (n,) or (chains, n).

        None stands for ones.
        """
        if row_scale is None:
            return self
        scale = row_scale.astype(self.factors[0].left.dtype, copy=False)
        if scale.ndim == 2:
            scale = np.expand_dims(scale, tuple(range(1, self.factors[0].left.ndim - 1)))
        scaled = {id(left): left * scale for left in self.lefts()}
        return Scores(*(Factor(scaled[id(f.left)], f.right) for f in self.factors))

    def of_chain(self, chain: int) -> Scores:
        """The scores of one chain, as a group of one; its right factors are (n, m)."""
        factors = []
        for left, right in self.factors:
            own = right is not None and right.ndim == 3
            factors.append(Factor(left[chain : chain + 1], right[chain] if own else right))
        return Scores(*factors)

    def lefts(self) -> list[NDArray]:
        """The distinct left factors; coefficients and intercept share one."""
        return list({id(f.left): f.left for f in self.factors}.values())

    def joined_chains(self) -> Scores:
        """The chains as virtual labels of one chain; they must share their right factors.

        Where all blocks share one left factor of one unit, the square root of its sum of squares is
        a single label with the same second moment.
        """
        lefts = self.lefts()
        if len(lefts) == 1 and lefts[0].shape[1] == 1:
            root = np.sqrt(np.einsum("cun,cun->un", lefts[0], lefts[0]))[None]
            return Scores(*(Factor(root, f.right) for f in self.factors))
        return Scores(*(Factor(f.left[None], f.right) for f in self.factors))

    def rotated(self, rotation: Rotation) -> Scores:
        """The same scores in rotated coordinates."""
        factors = []
        for (left, right), (basis, other) in zip(self.factors, rotation.bases, strict=True):
            if basis is not None:
                left = basis.T.astype(left.dtype, copy=False) @ left
            if right is not None and other is not None:
                right = right @ other.astype(right.dtype, copy=False)
            factors.append(Factor(left, right))
        return Scores(*factors)

    def total(self, dtype: DTypeLike = np.float64) -> NDArray:
        """Sum over rows, shape (chains, D), in float64 or as asked."""
        parts = []
        for left, right in self.factors:
            if right is not None and right.ndim == 3:
                total = left @ right
            else:
                # All chains and units in one product, which is faster than NumPy's sum.
                right = np.ones(self.n_rows, left.dtype) if right is None else right
                total = left.reshape(-1, self.n_rows) @ right
            parts.append(total.reshape(self.n_chains, -1))
        return np.concatenate(parts, axis=1, dtype=dtype)

    def rows(
        self, chain: int = 0, columns: NDArray | None = None, dtype: DTypeLike | None = None
    ) -> NDArray:
        """The score matrix of one chain, (n, D), or ascending `columns` of it.

        With q virtual labels it has n q rows.
        """
        asked = np.arange(self.dim) if columns is None else columns.astype(np.intp, copy=False)
        pieces = []
        for block, units, features in _segments(self.blocks, asked.tobytes()):
            left, right = self.factors[block]
            piece = left[chain][..., units, :].swapaxes(-1, -2)
            if right is not None:
                X = (right if right.ndim == 2 else right[chain])[:, features]
                piece = piece * (X.toarray() if sparse.issparse(X) else X)
            pieces.append(piece.reshape(-1, piece.shape[-1]))
        return np.concatenate(pieces, axis=1, dtype=dtype)

    # -- second moments -----------------------------------------------------------------------

    def moment(self, layout: Layout, weight: NDArray | None = None) -> Operator:
        """Sum over rows (and virtual labels) of weight g g^T, averaged over the chains."""
        scores = self if weight is None else self.scaled(np.sqrt(weight))
        match layout:
            case Diagonal():
                return Diag(scores.squares())
            case RotatedDiagonal(rotation):
                return Rotated(scores.rotated(rotation).squares(), rotation)
            case Partitioned(parts):
                return Blocks.from_parts(parts, [scores.gram(part) for part in parts])
        return Dense(scores.gram(np.arange(self.dim)))

    def covariance(self, layout: Layout) -> Operator:
        """Sample covariance over rows, divisor n - 1: V of Ahn et al., Algorithm 1, line 6.

        The mean is summed in float64. One that is rounded to float32 is not that of `moment`, and
        the covariance of a direction without noise may be negative.
        """
        n = self.n_rows
        mean = self._in_double().total() / n
        centred = self.moment(layout) + layout.outer(mean) * float(-n)
        return centred * (1.0 / (n - 1))

    def _in_double(self) -> Scores:
        """The same scores in float64."""
        factors = []
        for left, right in self.factors:
            wide = None if right is None else right.astype(np.float64, copy=False)
            factors.append(Factor(left.astype(np.float64, copy=False), wide))
        return Scores(*factors)

    def single_row_covariance(self, layout: Layout, row: int) -> Operator:
        """Covariance of a score from one row i, (g_i - gbar)(g_i - gbar)^T n/(n - 1).

        Source: Mandt et al. Eq. 25, without its bias (math/errata.md#e11).
        """
        n, single = self.n_rows, slice(row, row + 1)
        alone = Scores(
            *(
                Factor(left[..., single], None if right is None else right[..., single, :])
                for left, right in self.factors
            )
        )
        return layout.outer(alone.total() - self.total() / n) * (n / (n - 1))

    def squares(self, along: NDArray | None = None) -> NDArray:
        """Sum over rows (and virtual labels) of squared scores, averaged over the chains, (D,).

        Units are those of the blocks, or `along` directions in them, the columns of a matrix.
        """
        parts = []
        for block, right in enumerate(self.rights):
            weight = self.unit_squares(block, along)
            if right is None:
                squares = weight.sum(axis=-1)
            elif sparse.issparse(right):
                squares = weight.reshape(-1, self.n_rows) @ right.power(2)
                squares = squares.reshape(*weight.shape[:2], -1)
            else:
                squares = weight @ (right * right)
            parts.append(squares.sum(axis=0, dtype=np.float64).ravel())
        return np.concatenate(parts) / self.n_chains

    def unit_squares(self, block: int = 0, along: NDArray | None = None) -> NDArray:
        """Squares of the left factors of a block, summed over virtual labels, (chains, k, n)."""
        left = self.factors[block].left
        labels = left.reshape(self.n_chains, -1, *left.shape[-2:])
        if along is not None:
            labels = along.T.astype(left.dtype, copy=False) @ labels
        return np.einsum("cqkn,cqkn->ckn", labels, labels)

    def unit_moment(self) -> NDArray:
        """Sum over rows and labels of the products of two units of the first block, (k, k)."""
        left = self.factors[0].left
        labels = left.reshape(-1, *left.shape[-2:])
        return np.tensordot(labels, labels, axes=([0, 2], [0, 2])).astype(np.float64)

    def kronecker_factors(self) -> list[tuple[NDArray | None, NDArray | None]]:
        """Second moments of each block's left factors, (k, k), and right factors, (m, m).

        They are summed over rows and chains. Their Kronecker product is proportional to the moment
        of the block if the two factors are independent (Martens & Grosse 2015). None for a side of
        one entry, or of very many.
        """
        moments: list[tuple[NDArray | None, NDArray | None]] = []
        for k, m in self.shapes:
            of_units = np.zeros((k, k)) if k > 1 and has_matrix_once(k) else None
            of_features = np.zeros((m, m)) if m > 1 and has_matrix_once(m) else None
            moments.append((of_units, of_features))
        for chain in range(self.n_chains):
            pairs = zip(self.of_chain(chain).factors, moments, strict=True)
            for (left, right), (of_units, of_features) in pairs:
                if of_units is not None:
                    labels = left.reshape(-1, *left.shape[-2:])
                    of_units += np.tensordot(labels, labels, axes=([0, 2], [0, 2]))
                if of_features is not None:
                    X = dense(right)
                    of_features += X.T @ X
        return moments

    def gram_matvec(self, v: NDArray) -> NDArray:
        """Sum over rows of g (g . v) for one chain, v and the result (m, D); no n x D matrix."""
        inner, start = 0.0, 0
        factors = self.of_chain(0).factors
        labels = [left.reshape(-1, *left.shape[-2:]) for left, _ in factors]  # (q, k, n)
        for left, (_, right), (k, m) in zip(labels, factors, self.shapes, strict=True):
            along = v[:, start : start + k * m].reshape(-1, k, m)
            if right is not None:  # all vectors and units in one product
                along = (along.reshape(-1, m) @ right.T).reshape(len(v), k, -1)
            along = np.broadcast_to(along, (len(v), *left.shape[1:]))
            inner = inner + np.einsum("qkn,vkn->vqn", left, along)
            start += k * m
        parts = []
        for left, (_, right) in zip(labels, factors, strict=True):
            total = np.einsum("qkn,vqn->vkn", left, inner)
            if right is not None:
                total = total.reshape(-1, self.n_rows) @ right
            else:
                total = total.sum(axis=2)
            parts.append(total.reshape(len(v), -1))
        return np.concatenate(parts, axis=1, dtype=np.float64)

    def gram(self, columns: NDArray) -> NDArray:
        """Sum over rows (and virtual labels) of g g^T in ascending coordinates `columns`.

        Averaged over the chains.
        """
        gram = np.zeros((len(columns), len(columns)))
        n_labels = math.prod(self.factors[0].left.shape[1:-2])
        is_sparse = any(sparse.issparse(right) for _, right in self.factors)
        for chain in range(self.n_chains):
            if n_labels > 1 or is_sparse:
                segments = _segments(self.blocks, columns.astype(np.intp, copy=False).tobytes())
                products = self.n_rows * n_labels * (len(columns) / len(segments)) ** 2
                if is_sparse or is_worth_pairs(products):
                    gram += self._gram_of_virtual_labels(chain, segments)
                    continue
            # in float64: c N times the rounding of float32 would drown a weak prior in a direction
            # without data
            rows = self.rows(chain, columns, np.float64)
            gram += rows.T @ rows  # NumPy sends A.T @ A to syrk
        return gram / self.n_chains

    def _gram_of_virtual_labels(self, chain: int, segments: Sequence[_Segment]) -> NDArray:
        """Gram matrix of one chain, by one weighted Gram matrix of the inputs per pair of units.

        It takes q times fewer operations than the product of the score matrix with itself, and of
        sparse rows those of their stored numbers.
        """
        factors = self.of_chain(chain)._in_double().factors
        lefts, inputs, starts = [], [], [0]  # (q, units, n) and (n, m) each
        for block, units, features in segments:
            left, right = factors[block]
            labels = left[0].reshape(-1, *left.shape[-2:])
            lefts.append(labels[:, units])
            X = None if right is None else right[:, features]
            inputs.append(X)
            starts.append(starts[-1] + (len(units) if X is None else X.shape[1]))
        gram = np.empty((starts[-1], starts[-1]))
        for s, t in combinations_with_replacement(range(len(segments)), 2):
            rows, cols = slice(starts[s], starts[s + 1]), slice(starts[t], starts[t + 1])
            gram[rows, cols] = _weighted_gram(lefts[s], inputs[s], lefts[t], inputs[t])
            gram[cols, rows] = gram[rows, cols].T
        return gram


class CategoricalScores(Scores):
    """Scores of K virtual labels, whose units have the products ``w (diag(p) - p p^T)`` in a row.

    They are the Fisher of class probabilities. Squares, and products with vectors, take K numbers
    of a row; the K^2 of its labels are written where they are asked for.

    Parameters
    ----------
    p : array of shape (chains, K, n)
    rights : list of arrays or CSR rows of shape (n, m), or None
        The right factor of each block.
    weight : array of shape (n,) or (chains, n), optional
    """

    def __init__(self, p: NDArray, rights: list[Any], weight: NDArray | None = None) -> None:
        self._p, self._rights, self._weight = p, rights, weight
        self.n_chains, k, self.n_rows = p.shape
        self.blocks = tuple((k, None if X is None else X.shape[-1]) for X in rights)
        self.dim = sum(math.prod(shape) for shape in self.shapes)

    @property
    def rights(self) -> list[Any]:
        return self._rights

    @cached_property
    def factors(self) -> tuple[Factor, ...]:  # type: ignore[override]
        """With the residuals of each label times the root of its probability, (chains, K, K, n)."""
        virtual = np.eye(self._p.shape[1], dtype=self._p.dtype)[:, :, None] - self._p[:, None]
        root = np.sqrt(self._p)[:, :, None] * virtual
        if self._weight is not None:
            root *= np.sqrt(self._weight)[..., None, None, :]
        return tuple(Factor(root, right) for right in self._rights)

    def scaled(self, row_scale: NDArray | None) -> Scores:
        if row_scale is None:
            return self
        weight = np.square(row_scale.astype(self._p.dtype, copy=False))
        if self._weight is not None:
            weight = weight * self._weight
        return CategoricalScores(self._p, self._rights, weight)

    def unit_squares(self, block: int = 0, along: NDArray | None = None) -> NDArray:
        """Variances of the units, or along directions in them, under p, in float64."""
        p = self._in_sum()
        if along is None:
            variance = p * (1 - p)
        else:  # what rounding takes from a variance of zero is no variance
            variance = np.maximum(np.square(along).T @ p - np.square(along.T @ p), 0.0)
        return variance if self._weight is None else variance * self._weight[..., None, :]

    def _in_sum(self) -> NDArray:
        """The probabilities, with a sum of 1 in double precision: their differences have digits."""
        p = self._p.astype(np.float64, copy=False)
        return p / p.sum(axis=1, keepdims=True)

    def unit_moment(self) -> NDArray:
        p = self._in_sum()
        weighted = p if self._weight is None else p * self._weight[..., None, :]
        products = np.diag(weighted.sum(axis=(0, 2)))
        for one, other in zip(weighted, p, strict=True):
            products -= one @ other.T
        return products

    def gram_matvec(self, v: NDArray) -> NDArray:
        p, start = self._p[0], 0
        inner: Any = 0.0
        rights = [X[0] if X is not None and X.ndim == 3 else X for X in self._rights]
        for right, (k, m) in zip(rights, self.shapes, strict=True):
            along = v[:, start : start + k * m].reshape(-1, m)
            along = along if right is None else along @ right.T
            inner = inner + along.reshape(len(v), k, -1)
            start += k * m
        residual = inner - np.einsum("kn,vkn->vn", p, inner)[:, None]
        residual *= p
        if self._weight is not None:
            residual *= self._weight.reshape(-1, self.n_rows)[0]
        return Scores(*(Factor(residual, right) for right in rights)).total()


class _Segment(NamedTuple):
    """Columns of the score matrix: features of one unit, or units of a block without features."""

    block: int
    units: NDArray
    features: NDArray | slice | None


@lru_cache(maxsize=128)
def _segments(blocks: tuple[tuple[int, int | None], ...], columns: bytes) -> list[_Segment]:
    """Ascending coordinates, split into segments; a sampler asks for the same ones in each step."""
    asked = np.frombuffer(columns, np.intp)
    segments, end = [], 0
    for b, (k, m) in enumerate(blocks):
        start, end = end, end + (k if m is None else k * m)
        inside = asked[(asked >= start) & (asked < end)] - start
        if m is None:
            segments += [_Segment(b, inside, None)] if len(inside) else []
            continue
        for unit in np.unique(inside // m):
            features = inside[inside // m == unit] - unit * m
            whole = len(features) == m
            segments.append(_Segment(b, np.array([unit]), slice(None) if whole else features))
    return segments


def _weighted_gram(left: NDArray, X: Any, other: NDArray, Z: Any) -> NDArray:
    """Sum over labels q and rows n of the products of two segments' columns.

    The inputs X and Z are (n, m), or None for ones. A segment with inputs has one unit.
    """
    if X is None and Z is None:
        return np.tensordot(left, other, axes=([0, 2], [0, 2]))
    if X is None:
        return _weighted_gram(other, Z, left, X).T
    if Z is None:
        return X.T @ np.einsum("qn,qkn->nk", left[:, 0], other)
    return dense(scaled_rows(X, np.einsum("qn,qn->n", left[:, 0], other[:, 0])).T @ Z)


def gram_of_rows(X: Any, weight: NDArray, Z: Any) -> NDArray:
    """X^T diag(w) Z of arrays or CSR rows (n, m), for each w of `weight` (..., n): an array."""
    if not sparse.issparse(X):
        return X.T @ (weight[..., None] * Z)
    moments = np.empty((*weight.shape[:-1], X.shape[1], Z.shape[1]))
    for index in np.ndindex(weight.shape[:-1]):
        moments[index] = (X.T @ scaled_rows(Z, weight[index])).toarray()
    return moments


def scaled_rows(X: Any, weight: NDArray) -> Any:
    """Rows of an array, or CSR rows, times a number each."""
    if not sparse.issparse(X):
        return X * weight[:, None]
    scaled = X.copy()
    scaled.data *= np.repeat(weight, np.diff(X.indptr))
    return scaled


def outer_products(vectors: NDArray) -> NDArray:
    """Sum over labels of ``v v^T`` for each row, (n, k, k), of vectors (labels, k, n)."""
    if vectors.shape[1] < 8:
        return np.einsum("qkn,qln->nkl", vectors, vectors)
    by_row = np.ascontiguousarray(vectors.transpose(2, 1, 0))  # row by row, for BLAS
    return by_row @ by_row.swapaxes(1, 2)


def dense(X: Any) -> NDArray:
    """A block of rows as an array."""
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def with_ones(X: NDArray) -> NDArray:
    """Rows, dense or sparse, with a last column of ones."""
    if sparse.issparse(X):
        return sparse.csr_array(sparse.hstack([X, np.ones((X.shape[0], 1), X.dtype)], format="csr"))
    with_one = np.ones((X.shape[0], X.shape[1] + 1), X.dtype)
    with_one[:, :-1] = X
    return with_one
