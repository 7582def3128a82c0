"""Rows with their targets and weights: in memory, and what a pass over rows anywhere is.

A pass goes over blocks, in threads, and adds up in the order of the blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skbayes_sg.data.minibatches import Rows
from skbayes_sg.data.threads import total_of
from skbayes_sg.linalg.sizes import bytes_to_keep, has_many_columns, is_mostly_zero
from skbayes_sg.linalg.split_rows import SplitRows, row_slice


class Batch(NamedTuple):
    """A block of rows, dense unless the model takes sparse ones."""

    X: NDArray
    """(n, features), an array or CSR rows; (chains, n, features) where each chain has its own.

    Columns beyond the features are known parts of the outputs, such as offsets.
    """
    y: NDArray
    """(n,) or (chains, n), and an axis of responses more if there may be several"""
    weight: NDArray | None
    """(n,) or (chains, n); None where all weights are 1"""
    start: int = 0
    """number of the first row in the data, in a pass over all"""


class Data(ABC):
    """Rows of X with their targets and weights. All posteriors of a fit share one, so it is frozen.

    Attributes
    ----------
    n_total : float
        Size of the population of which the rows are a random sample; `n_rows` if they are all.
    """

    n_total: float

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Rows of X."""

    @property
    def n_features(self) -> int:
        """Columns of X that have coefficients."""
        return self.sample.X.shape[1] - self.sample.n_known

    @property
    @abstractmethod
    def sample(self) -> InMemory:
        """Rows in memory that can be drawn: all rows, or a random sample of them."""

    @abstractmethod
    def reduce(
        self, function: Callable[[Batch], tuple], row_size: int, pairs: bool = False
    ) -> tuple:
        """`function` of each block, added up entry by entry: one pass over the rows.

        Parameters
        ----------
        function : function
            Of a batch; a tuple of numbers, arrays, operators or lists.
        row_size : int
            Numbers that it holds for each row, if more than its features.
        pairs : bool, default=False
            Whether a sum has a number for each pair of them.
        """


@dataclass(frozen=True, eq=False)
class InMemory(Data):
    """Rows in arrays. `InMemory.of` converts the arrays of a user.

    Attributes
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
    y : array of shape (n_rows,) or (n_rows, n_responses)
        In the model's own coding.
    weight : array of shape (n_rows,), or None
        Factor of each row's log likelihood: an integer weight is a repetition.
    n_total : float
    """

    X: Any
    y: NDArray
    weight: NDArray | None
    n_total: float
    sparse_rows: bool = False
    """Whether shared rows are loaded as CSR rows, and not as dense ones."""
    given: NDArray | None = None
    """Rows that were given and are merged into each; None where each is one."""
    n_known: int = 0
    """Last columns of X that are known parts of the outputs, such as offsets."""

    @classmethod
    def of(
        cls,
        X: Any,
        y: NDArray,
        weight: NDArray | None = None,
        n_total: float | None = None,
        takes_sparse: bool = False,
    ) -> Self:
        """Convert to the storage with the fastest row access: C order, small sparse matrices dense.

        Sparse matrices of many columns stay sparse in every product, if the model takes them. A
        memory map becomes a plain array, because the subclass costs time at every access.
        """
        sparse_rows = False
        if sparse.issparse(X):
            small = X.shape[0] * X.shape[1] * X.dtype.itemsize <= bytes_to_keep() / 2
            X = X.toarray() if small else _canonical(X)
            sparse_rows = takes_sparse and stays_sparse(X)
        else:
            X = aligned(X)
        n_total = float(X.shape[0] if n_total is None else n_total)
        weight = None if weight is None else aligned(weight)
        return cls(X, aligned(y), weight, n_total, sparse_rows)

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    @property
    def known(self) -> NDArray | None:
        """Known parts of the outputs of each row, (n_rows, n_known), the offset first."""
        if not self.n_known:
            return None
        known = self.X[:, self.n_features :]
        return np.asarray(known.toarray() if sparse.issparse(known) else known, np.float64)

    @property
    def is_dense(self) -> bool:
        """Whether a block of rows needs no conversion."""
        return isinstance(self.X, np.ndarray)

    @property
    def sample(self) -> InMemory:
        return self

    def load(self, rows: Rows) -> Batch:
        """A block of rows, (n,) shared by the chains or (chains, n), or a slice.

        It is dense but for shared rows of data that stay sparse.
        """
        shared = isinstance(rows, slice) or rows.ndim == 1
        if not (self.sparse_rows and shared):
            X = self.take(rows)
        elif isinstance(rows, slice) and sparse.issparse(self.X):
            X = row_slice(self.X, rows)
        else:
            X = self.X[rows]
        return Batch(X, self.y[rows], None if self.weight is None else self.weight[rows])

    def take(self, rows: Rows) -> NDArray:
        """A dense block of rows of X, (*rows.shape, features)."""
        if isinstance(rows, slice):
            return self.X[rows] if self.is_dense else self.X[rows].toarray()
        if self.is_dense:
            return self.X.take(rows, axis=0)  # faster than self.X[rows]
        return self.X[rows.ravel()].toarray().reshape(*rows.shape, -1)

    def reduce(
        self, function: Callable[[Batch], tuple], row_size: int, pairs: bool = False
    ) -> tuple:
        blocks = self.blocks(row_size, pairs)
        if len(blocks) == 1:  # a thread takes longer to start
            return function(self.load(blocks[0]))
        return total_of(function, map(self.load, blocks))

    def blocks(self, row_size: int, pairs: bool = False) -> list[slice]:
        """All rows in pieces for a pass that holds so many numbers for each row, see `reduce`.

        They stay in the processor's cache with what is computed of them. If the sums have a number
        for each pair of columns, they have four rows for each column, in 16 MB at most: otherwise
        adding up would cost more than the rows. Of sparse rows these are few, and so are numbers
        that another pass holds for each: every piece costs a matrix, or a vector of D.
        """
        columns, itemsize = max(self.X.shape[1], row_size), self.X.dtype.itemsize
        if self.sparse_rows and not pairs:
            n_beside = row_size - self.X.shape[1] if row_size > self.X.shape[1] else row_size
            held = max(self.X.nnz // max(1, self.n_rows), n_beside, _CHAINS)
            return row_blocks(self.n_rows, held * itemsize, 1 << 24)
        if self.sparse_rows:
            return row_blocks(self.n_rows, columns * itemsize, 1 << 26)
        of_pairs = 4 * columns**2 * itemsize if pairs else 0
        return row_blocks(self.n_rows, columns * itemsize, min(max(of_pairs, _CACHED), 1 << 24))

    def some(self, rows: Rows) -> InMemory:
        """These rows alone, as a sample of the same population."""
        X, y, weight, _ = self.load(rows)
        return replace(self, X=X, y=y, weight=weight, given=None)

    @cached_property
    def single(self) -> InMemory:
        """Rows, targets and weights in float32, where gradients need no more digits."""
        y = self.y.astype(np.float32, copy=False) if self.y.dtype.kind == "f" else self.y
        weight = None if self.weight is None else self.weight.astype(np.float32, copy=False)
        return replace(self, X=_in_single(self.X), y=y, weight=weight)

    @cached_property
    def split(self) -> InMemory:
        """`single` for products with vectors: full columns of sparse rows are apart."""
        rows = self.single
        return replace(rows, X=SplitRows.of(rows.X, self.n_known)) if self.sparse_rows else rows

    def repeated(self, times: float) -> InMemory:
        """The rows with their weights multiplied by a number."""
        dtype = self.X.dtype
        weight = np.ones(self.n_rows, dtype) if self.weight is None else self.weight
        return replace(self, weight=(weight * times).astype(dtype))

    def merged(self) -> InMemory:
        """Merge equal rows into one of their total weight, in an order given by X and y alone.

        Sums over all rows are then the same to the last bit for repeated rows and for weights, in
        any order of the rows.
        """
        X = self.take(slice(None))
        table = np.column_stack([X, self.y])
        rows, member = np.unique(table, axis=0, return_inverse=True)
        member = member.ravel()  # NumPy 2.0.0 gives a column
        weight = np.bincount(member, self.weight, len(rows)).astype(X.dtype)
        n = X.shape[1]
        return InMemory(
            np.ascontiguousarray(rows[:, :n].astype(X.dtype)),
            rows[:, n:].astype(self.y.dtype).reshape(-1, *self.y.shape[1:]),
            None if (weight == 1).all() else weight,
            self.n_total * len(rows) / self.n_rows,
            given=np.bincount(member),
            n_known=self.n_known,
        )

    def column_squares(self) -> NDArray:
        """Mean square of each column, from up to 10,000 rows, (features,)."""
        rows = evenly_spaced(self.n_rows, 10_000)
        weight = None if self.weight is None else self.weight[rows]
        if self.sparse_rows:
            counts = np.ones(len(rows)) if weight is None else weight.astype(np.float64)
            return (counts[None] / counts.sum() @ self.X[rows].power(2))[0][: self.n_features]
        squares = np.square(self.take(rows)[:, : self.n_features], dtype=np.float64)
        return np.average(squares, axis=0, weights=weight)

    @cached_property
    def nonzero_columns(self) -> NDArray:
        """Numbers of the columns that are not zero in all rows, ascending."""
        columns = nonzero_columns(self.X)
        return columns[columns < self.n_features]

    def with_columns(self, columns: NDArray) -> InMemory:
        """The same rows with some of their columns."""
        known = np.arange(self.n_features, self.X.shape[1])
        X = self.X[:, np.append(columns, known)]
        rows = InMemory.of(X, self.y, self.weight, self.n_total, self.sparse_rows)
        return replace(rows, n_known=self.n_known)


def aligned(values: Any, dtype: Any = None) -> NDArray:
    """A plain array in C order whose numbers are where the processor expects them.

    An array that came out of a message or a file may begin at any byte, and NumPy's products of
    such an array round otherwise.
    """
    return np.require(values, dtype, ["C", "ALIGNED", "ENSUREARRAY"])


def _canonical(X: Any) -> Any:
    """CSR rows whose columns ascend, each once; a copy where they do not.

    SciPy would bring them into this order in place where a square is asked for, and leave others
    that share their columns, as single precision and blocks do, with numbers of other columns.
    """
    rows = sparse.csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _in_single(X: Any) -> Any:
    """Rows in float32; sparse ones share the numbers of their columns."""
    if sparse.issparse(X) and X.dtype != np.float32:
        return sparse.csr_array((X.data.astype(np.float32), X.indices, X.indptr), X.shape)
    return X.astype(np.float32, copy=False)


def stays_sparse(X: Any) -> bool:
    """Whether products with such a matrix are made without a dense copy."""
    if not sparse.issparse(X):
        return False
    return has_many_columns(X.shape[1]) or is_mostly_zero(X.nnz, X.shape[0] * X.shape[1])


# -- passes ----------------------------------------------------------------------------------

_CACHED = 1 << 21  # bytes of a block that stays in the cache with what is computed of it
_CHAINS = 64  # whose outputs of a row take more than its few stored numbers


def nonzero_columns(X: Any) -> NDArray:
    """Numbers of the columns that are not zero in all of these rows, ascending."""
    if isinstance(X, np.ndarray):
        return np.flatnonzero(X.any(axis=0))
    return np.flatnonzero(np.bincount(X.indices, X.data != 0, X.shape[1]))


def evenly_spaced(n: int, most: int) -> NDArray:
    """Numbers of all of n rows, or of so many of them at even distances, ascending."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(int)


def row_blocks(n_rows: int, row_bytes: int, block_bytes: int = _CACHED) -> list[slice]:
    """Contiguous slices of about `block_bytes` each, which together cover all rows."""
    step = max(1, block_bytes // max(1, row_bytes))
    return list(map(slice, range(0, n_rows, step), [*range(step, n_rows, step), n_rows]))
