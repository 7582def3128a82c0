import numpy as np
import pytest

from skbayes_sg.linalg import Blocks, Dense, Diag, largest_eigenvalue

PARTS = [np.array([0, 3]), np.array([1, 2, 4]), np.array([5])]


def spd(rng, n=6):
    root = rng.standard_normal((n, n))
    return root @ root.T + np.eye(n)


def make(kind, rng):
    matrix = spd(rng)
    if kind == "diag":
        return Diag(matrix.diagonal().copy())
    if kind == "dense":
        return Dense(matrix)
    return Blocks.from_parts(PARTS, [matrix[np.ix_(p, p)] for p in PARTS])


@pytest.mark.parametrize("kind", ["diag", "dense", "blocks"])
def test_every_storage_does_the_algebra_of_its_dense_matrix(kind):
    rng = np.random.default_rng(0)
    A, B, d = make(kind, rng), make(kind, rng), Diag(rng.random(6))
    v = rng.standard_normal((3, 6))
    a, b = A.dense(), B.dense()
    np.testing.assert_allclose((A + B).dense(), a + b)
    np.testing.assert_allclose((A + d).dense(), a + d.dense())
    np.testing.assert_allclose((d + A).dense(), a + d.dense())
    np.testing.assert_allclose((2.5 * A).dense(), 2.5 * a)
    np.testing.assert_allclose(A.matvec(v), v @ a)
    np.testing.assert_allclose(A.matvec(v[0]), v[0] @ a)
    np.testing.assert_allclose(A.inverse().dense(), np.linalg.inv(a), atol=1e-12)
    np.testing.assert_allclose(((A + B) * 0.5).inverse().dense(), np.linalg.inv((a + b) / 2), atol=1e-12)
    root = A.cholesky().dense()
    np.testing.assert_allclose(root @ root.T, a, atol=1e-12)
    np.testing.assert_allclose(A.cholesky().matvec(v), v @ root.T)
    np.testing.assert_array_equal(A.diagonal(), a.diagonal())
    assert A.dim == 6
    A.blend(B, 0.25)
    np.testing.assert_allclose(A.dense(), 0.75 * a + 0.25 * b)


@pytest.mark.parametrize("kind", ["diag", "dense", "blocks"])
def test_what_is_not_positive_definite_is_refused(kind):
    rng = np.random.default_rng(1)
    A = make(kind, rng) * -1.0
    with pytest.raises(np.linalg.LinAlgError, match="prior precision"):
        A.inverse()
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        A.cholesky()


def test_a_zero_on_a_diagonal_means_no_noise_there():
    assert Diag(np.array([0.0, 4.0])).cholesky().values.tolist() == [0.0, 2.0]


def test_storages_that_do_not_fit_are_not_added():
    rng = np.random.default_rng(2)
    with pytest.raises(TypeError):
        make("dense", rng) + make("blocks", rng)


def test_largest_eigenvalue():
    A = spd(np.random.default_rng(3), 20)
    found = largest_eigenvalue(Dense(A).matvec, 20, np.random.default_rng(0))
    assert found == pytest.approx(np.linalg.eigvalsh(A).max(), rel=0.01)
    assert largest_eigenvalue(lambda v: 0 * v, 20, np.random.default_rng(0)) == 0.0
