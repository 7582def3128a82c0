"""Rows of numbers beside the levels of factors: dense columns apart from sparse ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_FULL = 0.25  # share of numbers that are not zero, from which on a column is dense


class SplitRows:
    """CSR rows (n, m) whose columns of many numbers are an array, for products with vectors.

    A stored number of a sparse product takes longer than one of a dense product. Without the full
    columns, what is left of a row is one number for each factor, so that a product gathers the
    coefficients of its levels, and the transposed one adds up by level. Slices of rows copy
    nothing.

    Parameters
    ----------
    numbers : array of shape (n, k)
    columns : integer array of shape (k,)
        Which of the m columns these are, ascending.
    others : CSR matrix of shape (n, m)
        The other ones, without entries in those.
    """

    __array_ufunc__ = None  # NumPy leaves products with an array to this class
    ndim = 2

    def __init__(self, numbers: NDArray, columns: NDArray, others: Any) -> None:
        self.numbers, self.columns, self.others = numbers, columns, others
        self.shape, self.dtype = others.shape, others.dtype

    @classmethod
    def of(cls, X: Any, last: int = 0) -> Any:
        """CSR rows with their full columns apart, and at least the `last` ones; X without any."""
        n, m = X.shape
        stored = np.bincount(X.indices, minlength=m)
        stored[m - last :] = n
        (columns,) = np.nonzero(stored > _FULL * n)
        if not len(columns):
            return X
        others = sparse.csr_array(X, copy=True)
        others.data[np.isin(others.indices, columns)] = 0.0
        others.eliminate_zeros()
        return cls(X[:, columns].toarray(), columns, others)

    @property
    def nnz(self) -> int:
        """Numbers that are stored."""
        return self.numbers.size + self.others.nnz

    @property
    def T(self) -> _Transposed:  # noqa: N802, as of arrays
        return _Transposed(self)

    def __getitem__(self, key: Any) -> SplitRows:
        """A slice of rows, or all rows of a slice of columns."""
        if isinstance(key, slice):
            return SplitRows(self.numbers[key], self.columns, row_slice(self.others, key))
        _, wanted = key
        start, stop, _ = wanted.indices(self.shape[1])
        inside = (self.columns >= start) & (self.columns < stop)
        others = self.others[:, wanted]
        return SplitRows(self.numbers[:, inside], self.columns[inside] - start, others)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        found = self.others.toarray()
        found[:, self.columns] = self.numbers
        return found if dtype is None else found.astype(dtype, copy=False)

    def __matmul__(self, vectors: NDArray) -> NDArray:
        """Of vectors (m, k): (n, k)."""
        found = self.others @ vectors
        found += self.numbers @ vectors[self.columns]
        return found

    def __rmatmul__(self, vectors: NDArray) -> NDArray:
        """Of vectors (k, n): (k, m)."""
        found = vectors @ self.others
        found[:, self.columns] = vectors @ self.numbers
        return found


class _Transposed:
    """The columns of `SplitRows`."""

    __array_ufunc__ = None

    def __init__(self, rows: SplitRows) -> None:
        self.rows = rows

    def __rmatmul__(self, vectors: NDArray) -> NDArray:
        return (self.rows @ vectors.T).T


def row_slice(X: Any, rows: slice) -> Any:
    """A slice of CSR rows that shares their numbers: SciPy's own copies them, in every pass."""
    start, stop, step = rows.indices(X.shape[0])
    if step != 1:
        return X[rows]
    ends = X.indptr[start : max(start, stop) + 1]
    stored = slice(ends[0], ends[-1])
    found = sparse.csr_array((len(ends) - 1, X.shape[1]), dtype=X.dtype)
    # its constructor copies an array that is a view of one twice as large
    found.data, found.indices, found.indptr = X.data[stored], X.indices[stored], ends - ends[0]
    return found
