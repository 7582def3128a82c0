import numpy as np
import pytest
from scipy import sparse

from skbayes_sg.linalg.split_rows import SplitRows, row_slice


def rows_of_factors(rng, n=60, numbers=3, levels=(20, 7), dtype=np.float32):
    """Numbers before, between and behind the columns of two factors."""
    codes = [rng.integers(size, size=n) for size in levels]
    X = rng.standard_normal((n, numbers))
    parts = [X[:, :1], np.eye(levels[0])[codes[0]], X[:, 1:2], np.eye(levels[1])[codes[1]]]
    return sparse.csr_array(np.hstack([*parts, X[:, 2:]]).astype(dtype))


def test_products_are_those_of_the_rows(seed):
    rng = np.random.default_rng(seed)
    X = rows_of_factors(rng)
    rows = SplitRows.of(X)
    np.testing.assert_array_equal(rows.columns, [0, 21, 29])
    assert np.diff(rows.others.indptr).max() == 2  # one number for each factor
    assert rows.nnz == X.nnz
    assert rows.shape == X.shape
    np.testing.assert_array_equal(np.asarray(rows), X.toarray())
    V, W = rng.standard_normal((4, X.shape[1])), rng.standard_normal((5, len(X.toarray())))
    V, W = V.astype(X.dtype), W.astype(X.dtype)
    np.testing.assert_allclose(rows @ V.T, X.toarray() @ V.T, atol=1e-5)
    np.testing.assert_allclose(V @ rows.T, V @ X.toarray().T, atol=1e-5)
    np.testing.assert_allclose(W @ rows, W @ X.toarray(), atol=1e-5)
    assert (V @ rows.T).dtype == (W @ rows).dtype == X.dtype


@pytest.mark.parametrize("part", [slice(10, 25), slice(50, 99), slice(7, 7), slice(None)])
def test_slices_are_those_of_the_rows(part, seed):
    X = rows_of_factors(np.random.default_rng(seed))
    rows = SplitRows.of(X)
    np.testing.assert_array_equal(np.asarray(rows[part]), X.toarray()[part])
    for columns in (slice(None, 29), slice(29, None), slice(5, 25)):
        some = rows[part][..., columns]
        np.testing.assert_array_equal(np.asarray(some), X.toarray()[part, columns])
        np.testing.assert_array_equal(np.asarray(rows[:, columns]), X.toarray()[:, columns])


def test_last_columns_are_apart_however_few_numbers_they_have():
    X = rows_of_factors(np.random.default_rng(0)).tolil()
    X[5:, -1] = 0
    X = sparse.csr_array(X)
    assert SplitRows.of(X).columns[-1] == 21
    rows = SplitRows.of(X, last=1)
    assert rows.columns[-1] == 29
    np.testing.assert_array_equal(np.asarray(rows), X.toarray())


def test_rows_without_full_columns_stay_as_they_are():
    X = rows_of_factors(np.random.default_rng(0))[:, 1:21]
    assert SplitRows.of(X) is X


def test_repeated_entries_add_up():
    X = sparse.csr_array(([1.0, 2.0, 3.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    np.testing.assert_array_equal(np.asarray(SplitRows.of(X)), X.toarray())


@pytest.mark.parametrize("part", [slice(3, 9), slice(4, 4), slice(55, 80), slice(1, 20, 3)])
def test_a_slice_of_sparse_rows_shares_their_numbers(part):
    X = rows_of_factors(np.random.default_rng(0))
    some = row_slice(X, part)
    np.testing.assert_array_equal(some.toarray(), X.toarray()[part])
    assert np.shares_memory(some.data, X.data) == (part.step is None and some.nnz > 0)
