"""The rows that a stream keeps, the oldest first, in blocks that stay in the processor's cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skbayes_sg.data.minibatches import Rows
from skbayes_sg.data.rows import Batch, Data, InMemory, row_blocks
from skbayes_sg.data.threads import total_of

_LEAST_SHARE = 0.01  # of a weight, that forgetting left
_BLOCK = 1 << 20  # bytes, of which a call copies one at most besides its own rows


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Copies of rows: the user's arrays may change.

    Attributes
    ----------
    blocks : tuple of InMemory
    shares : tuple of float
        Of each block: the factor that forgetting left of its last row's weight.
    """

    blocks: tuple[InMemory, ...] = ()
    shares: tuple[float, ...] = ()

    @property
    def weight(self) -> float:
        """Weight of all rows, of which forgetting leaves less; their number if none has any."""
        return sum(total_weight(block) for block in self.blocks)

    @property
    def data(self) -> InBlocks:
        """All rows, if there are some."""
        return InBlocks(self.blocks)

    def with_rows(self, rows: InMemory) -> KeptRows:
        """These rows and newer ones."""
        blocks, shares = list(self.blocks), list(self.shares)
        for numbers in row_blocks(rows.n_rows, max(1, n_bytes(rows) // rows.n_rows), _BLOCK):
            new = some_of(rows, numbers)
            if blocks and n_bytes(blocks[-1]) + n_bytes(new) <= _BLOCK:
                blocks[-1], shares[-1] = joined([blocks[-1], new]), 1.0
            else:
                blocks.append(joined([new]))  # a copy
                shares.append(1.0)
        return KeptRows(tuple(blocks), tuple(shares))

    def forgotten(self, share: float) -> KeptRows:
        """The rows with their weights multiplied by a number."""
        blocks = tuple(block.repeated(share) for block in self.blocks)
        return KeptRows(blocks, tuple(share * kept for kept in self.shares))

    def split(self, budget: float) -> tuple[Sequence[InMemory], KeptRows]:
        """The oldest blocks, and the others: those that count, and that the budget holds."""
        first, total = len(self.blocks), 0
        forgotten = self._forgotten()
        while first > forgotten:
            total += n_bytes(self.blocks[first - 1])
            if total > budget:
                break
            first -= 1
        return self.blocks[:first], KeptRows(self.blocks[first:], self.shares[first:])

    def _forgotten(self) -> int:
        """How many of the oldest blocks count next to nothing, in each row and in all."""
        old = sum(share < _LEAST_SHARE for share in self.shares)
        if old == 0:
            return 0
        weights = np.cumsum([total_weight(block) for block in self.blocks])
        return int(np.sum(weights[:old] < _LEAST_SHARE * weights[-1]))


class InBlocks(Data):
    """Rows in blocks, which a pass visits one after the other.

    Parameters
    ----------
    blocks : sequence of InMemory
        At least one.
    """

    def __init__(self, blocks: Sequence[InMemory]) -> None:
        self._blocks = blocks
        self.n_total = float(self.n_rows)

    @property
    def n_rows(self) -> int:
        return sum(rows.n_rows for rows in self._blocks)

    @cached_property
    def sample(self) -> InMemory:
        """A copy of all rows."""
        return joined(self._blocks)

    def reduce(
        self, function: Callable[[Batch], tuple], row_size: int, pairs: bool = False
    ) -> tuple:
        batches = (map(rows.load, rows.blocks(row_size, pairs)) for rows in self._blocks)
        return total_of(function, chain.from_iterable(batches))


def some_of(rows: InMemory, which: Rows) -> InMemory:
    """Some of the rows; sparse ones stay sparse."""
    weight = None if rows.weight is None else rows.weight[which]
    return replace(rows, X=rows.X[which], y=rows.y[which], weight=weight)


def n_bytes(rows: InMemory) -> int:
    """Memory that the rows take."""
    X: Any = rows.X
    arrays = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    weight = () if rows.weight is None else (rows.weight,)
    return sum(array.nbytes for array in (*arrays, rows.y, *weight))


def joined(blocks: Sequence[InMemory]) -> InMemory:
    """A copy of all these rows."""
    weight = None
    if any(rows.weight is not None for rows in blocks):
        weight = np.concatenate([weight_of(rows) for rows in blocks])
    if any(sparse.issparse(rows.X) for rows in blocks):
        X: Any = sparse.vstack([sparse.csr_array(rows.X) for rows in blocks], format="csr")
    else:
        X = np.concatenate([rows.X for rows in blocks])
    whole = InMemory.of(X, np.concatenate([rows.y for rows in blocks]), weight, takes_sparse=True)
    return replace(whole, n_known=blocks[0].n_known)


def total_weight(rows: InMemory) -> float:
    """Weight of all rows, without an array of ones."""
    return float(rows.n_rows if rows.weight is None else rows.weight.sum(dtype=np.float64))


def weight_of(rows: InMemory) -> NDArray:
    """Weight of each row; ones if none has any."""
    return np.ones(rows.n_rows, rows.X.dtype) if rows.weight is None else rows.weight
