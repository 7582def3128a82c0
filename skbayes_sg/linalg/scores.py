"""Per-row gradients kept as outer-product factors.

The score of row i in parameter block b is ``outer(left[:, i], right[i])``: residual times input for
a linear predictor, back-propagated error times activation for a layer (math/networks.md#drbm,
math/networks.md#mlp). Sums, diagonals and blocks of the score covariance come from the factors. The
n x D matrix of scores is built only for a covariance over all columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from skbayes_sg.linalg import Operator, Rotation
from skbayes_sg.linalg.layouts import Layout
from skbayes_sg.linalg.products import dense, squared, times_transposed, weighted_sums
from skbayes_sg.linalg.sizes import has_matrix_once, is_worth_pairs


class Factor(NamedTuple):
    """One parameter block of shape (k, m), or (k,) when `right` is None (a vector of ones).

    left : array of shape (chains, k, n), or (chains, q, k, n) with q virtual labels per row
    right : array of shape (n, m), shared by the chains, or (chains, n, m), or None
    """

    left: NDArray
    right: NDArray | None


class _Segment(NamedTuple):
    """Columns of the score matrix: features of one unit, or units of a block without features."""

    block: int
    units: NDArray
    features: NDArray | slice | None


class Scores:
    """Scores of n rows at the parameters of each chain in a group.

    The coordinates are those of theta: the blocks one after another, each in C order. Second
    moments are averaged over the chains, because the chains of a group share one preconditioner.
    """

    def __init__(self, *factors: Factor) -> None:
        self.factors = factors
        self.n_chains = factors[0].left.shape[0]
        self.n_rows = factors[0].left.shape[-1]

    @property
    def dim(self) -> int:
        """Number of coordinates, D."""
        return sum(self.sizes)

    @property
    def sizes(self) -> list[int]:
        """Number of coordinates of each block."""
        return [k * m for k, m in self.shapes]

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Units and features of each block; 1 for a block without features."""
        return [
            (f.left.shape[-2], 1 if f.right is None else f.right.shape[-1]) for f in self.factors
        ]

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
        """The scores of one chain, as a group of one."""
        one = slice(chain, chain + 1)
        return Scores(
            *(Factor(f.left[one], self._right(b, chain)) for b, f in enumerate(self.factors))
        )

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

    def total(self, dtype: DTypeLike = np.float64) -> NDArray:
        """Sum over rows, shape (chains, D), in float64 or as asked."""
        parts = []
        for left, right in self.factors:
            if right is None:
                total = np.add.reduce(left, axis=-1)
            elif right.ndim == 3:
                total = left @ right
            else:
                # all chains and units in one product
                total = weighted_sums(left.reshape(-1, self.n_rows), right)
            parts.append(total.reshape(self.n_chains, -1))
        return np.concatenate(parts, axis=1, dtype=dtype)

    def covariance(self, layout: Layout) -> Operator:
        """Sample covariance over rows, divisor n - 1: V of Ahn et al., Algorithm 1, line 6."""
        n = self.n_rows
        mean = self._in_double().total() / n
        centred = self.moment(layout) + layout.outer(mean) * float(-n)
        return centred * (1.0 / (n - 1))

    def _in_double(self) -> Scores:
        """The same scores in float64.

        A mean that is rounded to float32 is not that of `moment`, and the covariance of a direction
        without noise may be negative.
        """
        if self.factors[0].left.dtype == np.float64:
            return self
        wide = {id(left): left.astype(np.float64) for left in self.lefts()}
        rights = {id(f.right): f.right for f in self.factors if f.right is not None}
        rights = {key: right.astype(np.float64) for key, right in rights.items()}
        return Scores(*(Factor(wide[id(f.left)], rights.get(id(f.right))) for f in self.factors))

    def single_row_covariance(self, layout: Layout, row: int) -> Operator:
        """Covariance of a score from one row i, (g_i - gbar)(g_i - gbar)^T n/(n - 1).

        Source: Mandt et al. Eq. 25, without its bias (math/errata.md#e11).
        """
        n, one = self.n_rows, slice(row, row + 1)
        alone = Scores(
            *(
                Factor(left[..., one], None if right is None else right[..., one, :])
                for left, right in self.factors
            )
        )
        return layout.outer(alone.total() - self.total() / n) * (n / (n - 1))

    def moment(self, layout: Layout) -> Operator:
        """Sum over rows (and virtual labels) of g g^T, not centred, averaged over the chains."""
        return layout.moment(self)

    def squares(self) -> NDArray:
        """Sum over rows (and virtual labels) of squared scores, averaged over the chains, (D,)."""
        return np.concatenate([self._squares(f) for f in self.factors]) / self.n_chains

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

    def kronecker_factors(self) -> list[tuple[NDArray | None, NDArray | None]]:
        """Second moments of each block's left factors, (k, k), and right factors, (m, m).

        They are summed over rows and chains. Their Kronecker product is proportional to the moment
        of the block if the two factors are independent (Martens & Grosse 2015). None for a side of
        one entry, or of very many.
        """
        moments: list[tuple[NDArray | None, NDArray | None]] = []
        for b, (factor, (k, m)) in enumerate(zip(self.factors, self.shapes, strict=True)):
            of_units = np.zeros((k, k)) if k > 1 and has_matrix_once(k) else None
            of_features = np.zeros((m, m)) if m > 1 and has_matrix_once(m) else None
            for chain in range(self.n_chains):
                left, right = factor.left[chain].reshape(-1, k, self.n_rows), self._right(b, chain)
                if of_units is not None:
                    of_units += np.tensordot(left, left, axes=([0, 2], [0, 2]))
                if of_features is not None and right is not None:
                    right = dense(right)
                    of_features += right.T @ right
            moments.append((of_units, of_features))
        return moments

    def gram_matvec(self, v: NDArray) -> NDArray:
        """Sum over rows of g (g . v) for one chain, v and the result (1, D); no n x D matrix."""
        inner = 0.0
        labels = [f.left[0].reshape(-1, *f.left.shape[-2:]) for f in self.factors]  # (q, k, n)
        inputs = [self._right(b, 0) for b in range(len(self.factors))]
        blocks = np.split(v[0], np.cumsum(self.sizes)[:-1])
        for left, right, block in zip(labels, inputs, blocks, strict=True):
            units = block.reshape(left.shape[1], -1)
            along = units if right is None else times_transposed(units, right)
            inner = inner + np.einsum("qkn,kn->qn", left, np.broadcast_to(along, left.shape[1:]))
        parts = []
        for left, right in zip(labels, inputs, strict=True):
            weighted = np.einsum("qkn,qn->kn", left, inner)
            total = weighted.sum(axis=1) if right is None else weighted_sums(weighted, right)
            parts.append(total.ravel())
        return np.concatenate(parts, dtype=np.float64)[None]

    def rows(
        self, chain: int = 0, columns: NDArray | None = None, dtype: DTypeLike | None = None
    ) -> NDArray:
        """The score matrix of one chain, (n, D), or ascending `columns` of it.

        With q virtual labels it has n q rows.
        """
        pieces = [self._columns(chain, segment) for segment in self._segments(columns)]
        return np.concatenate(pieces, axis=1, dtype=dtype)

    def _segments(self, columns: NDArray | None) -> list[_Segment]:
        """Ascending coordinates, split into segments."""
        if columns is None:
            columns = np.arange(self.dim)
        rights = (None if f.right is None else f.right.shape[-1] for f in self.factors)
        return _segments_of(tuple(self.sizes), tuple(rights), columns.astype(np.intp).tobytes())

    def _left(self, chain: int, segment: _Segment) -> NDArray:
        """Left factors of a segment, (..., units, n)."""
        return self.factors[segment.block].left[chain][..., segment.units, :]

    def _columns(self, chain: int, segment: _Segment) -> NDArray:
        left = self._left(chain, segment).swapaxes(-1, -2)
        right = self._right(segment.block, chain)
        columns = left if right is None else left * dense(right[:, segment.features])
        return columns.reshape(-1, columns.shape[-1])

    def _right(self, block: int, chain: int) -> NDArray | None:
        right = self.factors[block].right
        return right[chain] if right is not None and right.ndim == 3 else right

    def gram(self, columns: NDArray) -> NDArray:
        """Sum over rows (and virtual labels) of g g^T in ascending coordinates `columns`.

        Averaged over the chains.
        """
        gram = np.zeros((len(columns), len(columns)))
        for chain in range(self.n_chains):
            n_labels = math.prod(self.factors[0].left.shape[1:-2])
            segments = self._segments(columns)
            products = self.n_rows * n_labels * (len(columns) / len(segments)) ** 2
            if n_labels == 1 or not is_worth_pairs(products):
                # in float64: c N times the rounding of float32 would drown a weak prior in a
                # direction without data
                rows = self.rows(chain, columns, np.float64)
                gram += rows.T @ rows  # NumPy sends A.T @ A to syrk
            else:
                gram += self._gram_of_virtual_labels(chain, segments)
        return gram / self.n_chains

    def _gram_of_virtual_labels(self, chain: int, segments: Sequence[_Segment]) -> NDArray:
        """Gram matrix of one chain, by one weighted Gram matrix of the inputs per pair of units.

        It takes q times fewer operations than the product of the score matrix with itself.
        """
        rights = [self._right(b, chain) for b in range(len(self.factors))]
        wide = [None if x is None else x.astype(np.float64, copy=False) for x in rights]
        inputs = [
            None if (x := wide[segment.block]) is None else dense(x[:, segment.features])
            for segment in segments
        ]
        # (q, units, n) each
        lefts = [self._left(chain, segment).astype(np.float64) for segment in segments]
        pairs = zip(lefts, inputs, strict=True)
        ends = np.cumsum([left.shape[1] if x is None else x.shape[1] for left, x in pairs])
        starts = np.concatenate([[0], ends[:-1]])
        gram = np.empty((ends[-1], ends[-1]))
        for s, t in combinations_with_replacement(range(len(segments)), 2):
            rows, cols = slice(starts[s], ends[s]), slice(starts[t], ends[t])
            gram[rows, cols] = _weighted_gram(lefts[s], inputs[s], lefts[t], inputs[t])
            gram[cols, rows] = gram[rows, cols].T
        return gram

    def _squares(self, factor: Factor) -> NDArray:
        left, right = factor
        labels = left.reshape(self.n_chains, -1, *left.shape[-2:])
        weight = np.einsum("cqkn,cqkn->ckn", labels, labels)
        if right is None:
            squares = weight.sum(axis=-1)
        elif isinstance(right, np.ndarray):
            squares = weight @ (right * right)
        else:
            squares = weighted_sums(weight.reshape(-1, self.n_rows), squared(right))
            squares = squares.reshape(*weight.shape[:2], -1)
        return squares.sum(axis=0, dtype=np.float64).ravel()


@lru_cache(maxsize=128)
def _segments_of(
    sizes: tuple[int, ...], widths: tuple[int | None, ...], columns: bytes
) -> list[_Segment]:
    """Ascending coordinates, split into segments; a sampler asks for the same ones in each step."""
    asked = np.frombuffer(columns, np.intp)
    segments = []
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    for b, width in enumerate(widths):
        inside = asked[(asked >= offsets[b]) & (asked < offsets[b + 1])] - offsets[b]
        if width is None:
            segments += [_Segment(b, inside, None)] if len(inside) else []
            continue
        for unit in np.unique(inside // width):
            features = inside[inside // width == unit] - unit * width
            whole = len(features) == width
            segments.append(_Segment(b, np.array([unit]), slice(None) if whole else features))
    return segments


def _weighted_gram(left: NDArray, X: NDArray | None, other: NDArray, Z: NDArray | None) -> NDArray:
    """Sum over labels q and rows n of the products of two segments' columns.

    The inputs X and Z are (n, m), or None for ones. A segment with inputs has one unit.
    """
    if X is None and Z is None:
        return np.tensordot(left, other, axes=([0, 2], [0, 2]))
    if X is None:
        return _weighted_gram(other, Z, left, X).T
    if Z is None:
        return X.T @ np.einsum("qn,qkn->nk", left[:, 0], other)
    return (X * np.einsum("qn,qn->n", left[:, 0], other[:, 0])[:, None]).T @ Z
