"""Products with rows of X, a dense block or a CSR one.

SciPy's products want the many columns of the other factor next to each other, and the results of
this package are chains-major. So a product with CSR rows is made transposed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skbayes_sg.linalg.sizes import has_many_outputs


def times_transposed(vectors: NDArray, X: Any) -> NDArray:
    """``vectors X^T``, (k, n), of vectors (k, m) and rows (n, m)."""
    return vectors.dot(X.T) if isinstance(X, np.ndarray) else (X @ vectors.T).T


def weighted_sums(weights: NDArray, X: Any) -> NDArray:
    """``weights X``, (k, m), of weights (k, n) and rows (n, m)."""
    return weights.dot(X) if isinstance(X, np.ndarray) else (X.T @ weights.T).T


def squared(X: Any) -> Any:
    """Every entry of a block squared."""
    return X * X if isinstance(X, np.ndarray) else X.power(2)


def outer_products(vectors: NDArray) -> NDArray:
    """Sum over labels of ``v v^T`` for each row, (n, k, k), of vectors (labels, k, n)."""
    if not has_many_outputs(vectors.shape[1]):
        return np.einsum("qkn,qln->nkl", vectors, vectors)
    each = np.ascontiguousarray(vectors.transpose(2, 1, 0))  # for BLAS
    return each @ each.swapaxes(1, 2)


def dense(X: Any) -> NDArray:
    """A block of rows as an array."""
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def eigenvectors(A: NDArray) -> NDArray:
    """Of a symmetric matrix (D, D), in columns; those of equal eigenvalues are the same each time.

    A diagonal far below the largest entry tells equal eigenvalues apart, where rounding would.
    """
    tie = 1e-8 * np.abs(A).max(initial=0.0) / len(A)
    return with_signs(np.linalg.eigh(A + tie * np.diag(np.arange(len(A))))[1])


def with_signs(V: NDArray) -> NDArray:
    """Eigenvectors (D, D) whose largest entries are positive: rounding must not choose signs."""
    return V * np.sign(V[np.abs(V).argmax(axis=0), range(len(V))])


def eigenvectors_within(A: NDArray, group: NDArray) -> NDArray:
    """Eigenvectors of the block of each group, over the roots of their quadratic forms, (D, D)."""
    rotation = np.zeros_like(A)
    for one in np.unique(group):
        block = np.ix_(group == one, group == one)
        rotation[block] = eigenvectors(A[block])
    return rotation / np.sqrt(np.einsum("ij,ij->j", rotation, A @ rotation))


def by_group(group: NDArray) -> tuple[NDArray, NDArray]:
    """Members (P,) in the order of their groups, and where each group starts; none is empty."""
    order = np.argsort(group, kind="stable")
    return order, np.unique(group[order], return_index=True)[1]


def sums_of_groups(each: NDArray, order: NDArray, starts: NDArray) -> NDArray:
    """Sums of numbers (n, P) over the members of each group, (n, groups); see `by_group`."""
    return np.add.reduceat(each[:, order], starts, axis=1)
