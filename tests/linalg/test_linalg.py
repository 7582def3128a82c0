import copy
import pickle
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skbayes_sg.linalg import Blocks, Dense, Diag, Rotated, Rotation, largest_eigenvalue


def rotation(rng):
    """Of a (2, 2) block and a (2, 1) one."""

    def basis(n):
        return np.linalg.qr(rng.standard_normal((n, n)))[0]

    return Rotation([(basis(2), basis(2)), (basis(2), None)], [(2, 2), (2, 1)])


ROTATION = rotation(np.random.default_rng(9))


def spd(rng, n=6):
    root = rng.standard_normal((n, n))
    return root @ root.T + np.eye(n)


KINDS = ["diag", "rotated", "dense", "blocks"]


class Family:
    """Operators of one storage, and diagonal ones that can be added to them, over random blocks of
    parameters.
    """

    def __init__(self, kind, shapes, seed):
        self.rng = np.random.default_rng(seed)
        self.kind, self.shapes, self.sizes = kind, shapes, [k * m for k, m in shapes]
        self.dim = sum(self.sizes)
        self.rotation = Rotation([tuple(self.basis(n) for n in shape) for shape in shapes], shapes)
        shuffled, n_parts = self.rng.permutation(self.dim), self.rng.integers(1, self.dim + 1)
        self.parts = [np.sort(part) for part in np.array_split(shuffled, n_parts)]

    def basis(self, n):
        """Orthogonal; where it has one entry, None may stand for it."""
        return np.linalg.qr(self.rng.standard_normal((n, n)))[0] if n > 1 else None

    def member(self):
        matrix = spd(self.rng, self.dim)
        if self.kind == "diag":
            return Diag(matrix.diagonal().copy())
        if self.kind == "dense":
            return Dense(matrix)
        if self.kind == "rotated":
            return Rotated(matrix.diagonal().copy(), self.rotation)
        return Blocks.from_parts(self.parts, [matrix[np.ix_(p, p)] for p in self.parts])

    def diagonal(self):
        """Constant within the blocks of parameters, which is what a rotation can take."""
        return Diag(np.repeat(self.rng.uniform(0.1, 2.0, len(self.sizes)), self.sizes))

    def vectors(self, *shape):
        return self.rng.standard_normal((*shape, self.dim))


SHAPES = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=3)
FAMILY = given(family=st.builds(Family, st.sampled_from(KINDS), SHAPES, st.integers(0, 2**32 - 1)))


def close(operator, matrix):
    np.testing.assert_allclose(
        operator.dense(), matrix, rtol=1e-9, atol=1e-10 * np.abs(matrix).max()
    )


@FAMILY
def test_sums_and_multiples_are_those_of_the_dense_matrices(family):
    A, B, d = family.member(), family.member(), family.diagonal()
    a, b = A.dense(), B.dense()
    for scale in (0.0, 2.5, -3):
        close(A * scale, scale * a)
    close(A + B, a + b)
    close(A + d, a + d.dense())
    close(d + A, a + d.dense())
    close((A + B) * 0.5 + d, (a + b) / 2 + d.dense())
    assert A.dim == (A + B).dim == family.dim
    np.testing.assert_allclose((A + B).diagonal(), (a + b).diagonal())


@FAMILY
def test_products_inverses_and_roots_are_those_of_the_dense_matrices(family):
    A, B = family.member(), family.member()
    a = A.dense()
    for v in (family.vectors(), family.vectors(1), family.vectors(2, 3)):
        np.testing.assert_allclose(A.matvec(v), v @ a, atol=1e-9)
        np.testing.assert_allclose(A.cholesky().matvec(v), v @ A.cholesky().dense().T, atol=1e-9)
        np.testing.assert_allclose(A.inverse().matvec(A.matvec(v)), v, atol=1e-8)
    close(A.inverse(), np.linalg.inv(a))
    close((A + B * 0.5).inverse(), np.linalg.inv(a + B.dense() / 2))
    root = A.cholesky().dense()
    np.testing.assert_allclose(root @ root.T, a, atol=1e-10 * np.abs(a).max())


@FAMILY
def test_a_blend_moves_in_place_and_nothing_else_does(family):
    A, B = family.member(), family.member()
    a, b = A.dense(), B.dense()
    derived = [A + B, A * 1.0, A + family.diagonal(), A.inverse(), A.cholesky()]
    for other in derived:
        other.blend(B, 0.5)  # of what was made of A and B
    A.diagonal()[:] = 0.0
    close(A, a)
    close(B, b)
    before = derived[0].dense()
    A.blend(B, 0.25)
    close(A, 0.75 * a + 0.25 * b)
    close(A.inverse(), np.linalg.inv(A.dense()))
    close(B, b)
    close(derived[0], before)


@FAMILY
def test_what_is_not_positive_definite_is_refused(family):
    A = family.member() * -1.0
    with pytest.raises(np.linalg.LinAlgError, match="prior precision"):
        A.inverse()
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        A.cholesky()


@given(SHAPES, st.integers(0, 2**32 - 1))
def test_a_rotation_keeps_of_a_diagonal_what_is_diagonal_in_its_axes(shapes, seed):
    family = Family("rotated", shapes, seed)
    R = family.rotation.back(np.eye(family.dim)).T  # columns: the new axes
    A, d = family.member(), Diag(family.rng.uniform(0.1, 2.0, family.dim))
    kept = np.diag(R.T @ (A.dense() + d.dense()) @ R)
    np.testing.assert_allclose((A + d).dense(), (R * kept) @ R.T, atol=1e-10)


def test_storages_that_do_not_fit_are_not_added():
    dense, blocks, rotated = (Family(kind, [(2, 2), (2, 1)], 0).member() for kind in KINDS[:0:-1])
    for a, b in [(dense, blocks), (dense, rotated), (blocks, rotated)]:
        with pytest.raises(AttributeError):
            a + b
        with pytest.raises(AttributeError):
            b + a


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


def test_largest_eigenvalue():
    A = spd(np.random.default_rng(3), 20)
    found = largest_eigenvalue(Dense(A).matvec, 20, np.random.default_rng(0))
    assert found == pytest.approx(np.linalg.eigvalsh(A).max(), rel=0.01)
    assert largest_eigenvalue(lambda v: 0 * v, 20, np.random.default_rng(0)) == 0.0


def test_an_inverse_that_is_kept_is_that_of_the_present_matrix_and_in_no_file():
    """It is kept with the matrix: a weak dictionary calls a function where one is gone, and Python
    forgets an interrupt that arrives in such a function.
    """
    A, B = (
        root @ root.T + np.eye(4) for root in np.random.default_rng(0).standard_normal((2, 4, 4))
    )
    matrix = Dense(A)
    assert matrix.inverse().matrix is matrix.inverse().matrix
    assert weakref.getweakrefcount(matrix) == 0
    for twin in (copy.deepcopy(matrix), pickle.loads(pickle.dumps(matrix))):
        assert list(vars(twin)) == ["matrix"]
        np.testing.assert_array_equal(twin.inverse().matrix, matrix.inverse().matrix)
    matrix.blend(Dense(B), 0.25)
    np.testing.assert_allclose(matrix.inverse().matrix, np.linalg.inv(0.75 * A + 0.25 * B))


@pytest.mark.parametrize("kind", [Diag, Dense])
def test_a_border_scales_both_sides_of_a_matrix(kind):
    """As other units of its coordinates do, beside coordinates that are independent of them."""
    rng = np.random.default_rng(0)
    scale, corner = rng.uniform(0.5, 2.0, 4), rng.uniform(1.0, 2.0, 2)
    matrix = kind(spd(rng, 4) if kind is Dense else rng.uniform(1.0, 2.0, 4))
    expected = np.zeros((6, 6))
    expected[:4, :4] = np.diag(scale) @ matrix.dense() @ np.diag(scale)
    expected[4:, 4:] = np.diag(corner)
    np.testing.assert_allclose(matrix.bordered(scale, corner).dense(), expected, rtol=1e-12)
