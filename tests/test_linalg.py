import numpy as np
import pytest

from skbayes_sg.linalg import Blocks, Dense, Diag, Rotated, Rotation, largest_eigenvalue


def rotation(rng):
    """Of a (2, 2) block and a (2, 1) one."""

    def basis(n):
        return np.linalg.qr(rng.standard_normal((n, n)))[0]

    return Rotation([(basis(2), basis(2)), (basis(2), None)], [(2, 2), (2, 1)])


ROTATION = rotation(np.random.default_rng(9))
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
    if kind == "rotated":
        return Rotated(matrix.diagonal().copy(), ROTATION)
    return Blocks.from_parts(PARTS, [matrix[np.ix_(p, p)] for p in PARTS])


@pytest.mark.parametrize("kind", ["diag", "rotated", "dense", "blocks"])
def test_every_storage_does_the_algebra_of_its_dense_matrix(kind):
    rng = np.random.default_rng(0)
    A, B, d = make(kind, rng), make(kind, rng), Diag(np.repeat(rng.random(2), [4, 2]))
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
    np.testing.assert_allclose(A.diagonal(), a.diagonal(), rtol=1e-12)
    assert A.dim == 6
    A.blend(B, 0.25)
    np.testing.assert_allclose(A.dense(), 0.75 * a + 0.25 * b)


@pytest.mark.parametrize("kind", ["diag", "rotated", "dense", "blocks"])
def test_what_is_not_positive_definite_is_refused(kind):
    rng = np.random.default_rng(1)
    A = make(kind, rng) * -1.0
    with pytest.raises(np.linalg.LinAlgError, match="prior precision"):
        A.inverse()
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        A.cholesky()


def test_a_zero_on_a_diagonal_means_no_noise_there():
    assert Diag(np.array([0.0, 4.0])).cholesky().values.tolist() == [0.0, 2.0]


def test_a_rotation_is_orthogonal_and_keeps_a_diagonal_as_well_as_one_can():
    rng = np.random.default_rng(4)
    R = ROTATION.back(np.eye(6)).T  # columns: the new axes
    np.testing.assert_allclose(R.T @ R, np.eye(6), atol=1e-14)
    v = rng.standard_normal((2, 3, 6))
    np.testing.assert_allclose(ROTATION.rotate(v), v @ R)
    np.testing.assert_allclose(ROTATION.back(ROTATION.rotate(v)), v)
    values = rng.random(6)
    np.testing.assert_allclose(ROTATION.rotate_diagonal(values), np.diag(R.T @ np.diag(values) @ R))
    other = Rotated(values, rotation(rng))
    with pytest.raises(TypeError):
        Rotated(values, ROTATION) + other


def test_storages_that_do_not_fit_are_not_added():
    rng = np.random.default_rng(2)
    with pytest.raises(TypeError):
        make("dense", rng) + make("blocks", rng)


def test_largest_eigenvalue():
    A = spd(np.random.default_rng(3), 20)
    found = largest_eigenvalue(Dense(A).matvec, 20, np.random.default_rng(0))
    assert found == pytest.approx(np.linalg.eigvalsh(A).max(), rel=0.01)
    assert largest_eigenvalue(lambda v: 0 * v, 20, np.random.default_rng(0)) == 0.0
