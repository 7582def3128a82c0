import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from skbayes_sg.linalg import DIAGONAL, FULL, Partitioned, RotatedDiagonal, Rotation
from skbayes_sg.linalg.scores import CategoricalScores, Factor, Scores
from skbayes_sg.models import Softmax


class Case:
    """Random scores, and their rows by the definition: a matrix per chain, labels stacked."""

    def __init__(self, shapes, n_rows, n_chains, n_labels, shared, seed):
        self.rng = rng = np.random.default_rng(seed)
        q, lead = (n_labels,) if n_labels else (), () if shared else (n_chains,)
        self.factors = [
            Factor(
                rng.standard_normal((n_chains, *q, k, n_rows)),
                rng.standard_normal((*lead, n_rows, m)) if m else None,
            )
            for k, m in shapes
        ]
        self.scores, self.n_labels = Scores(*self.factors), max(1, n_labels)
        self.rows = [self.by_definition(chain) for chain in range(n_chains)]
        self.dim = self.rows[0].shape[1]
        self.second = np.mean([rows.T @ rows for rows in self.rows], axis=0)

    def by_definition(self, chain):
        blocks = []
        for left, right in self.factors:
            left = left[chain].reshape(-1, *left.shape[-2:])
            n_labels, _, n_rows = left.shape
            right = (
                np.ones((n_rows, 1))
                if right is None
                else (right[chain] if right.ndim == 3 else right)
            )
            blocks.append(
                [
                    [np.outer(left[q, :, i], right[i]).ravel() for i in range(n_rows)]
                    for q in range(n_labels)
                ]
            )
        return np.concatenate(
            [np.reshape(block, (n_labels * n_rows, -1)) for block in blocks], axis=1
        )

    def parts(self):
        n_parts = self.rng.integers(1, self.dim + 1)
        return [np.sort(part) for part in np.array_split(self.rng.permutation(self.dim), n_parts)]

    def check(self, operator_of, truth):
        """Every storage of what `operator_of` gives against the dense truth."""
        atol = 1e-10 * max(1.0, np.abs(truth).max())
        np.testing.assert_allclose(operator_of(FULL).dense(), truth, atol=atol)
        np.testing.assert_allclose(
            operator_of(DIAGONAL).dense(), np.diag(truth.diagonal()), atol=atol
        )
        parts = self.parts()
        mask = sum(
            np.outer(np.isin(range(self.dim), part), np.isin(range(self.dim), part))
            for part in parts
        )
        np.testing.assert_allclose(operator_of(Partitioned(parts)).dense(), truth * mask, atol=atol)
        rotation = eigenbasis(self.scores)
        R = rotation.back(np.eye(self.dim)).T
        np.testing.assert_allclose(
            operator_of(RotatedDiagonal(rotation)).values, np.diag(R.T @ truth @ R), atol=atol
        )


def cases(n_labels):
    shapes = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3)), min_size=1, max_size=3)
    return given(
        case=st.builds(
            Case,
            shapes,
            st.integers(2, 9),
            st.integers(1, 3),
            n_labels,
            st.booleans(),
            st.integers(0, 2**32 - 1),
        )
    )


@cases(st.integers(0, 3))
def test_moments_are_those_of_the_score_matrix(case):
    scores, rows = case.scores, case.rows
    assert scores.dim == case.dim
    case.check(scores.moment, case.second)
    with (
        pytest.MonkeyPatch.context() as patch
    ):  # one product for each pair of units, as if there were many columns
        patch.setattr("skbayes_sg.linalg.scores.is_worth_pairs", lambda n: True)
        case.check(scores.moment, case.second)
    v = case.rng.standard_normal((3, case.dim))
    np.testing.assert_allclose(scores.gram_matvec(v), v @ rows[0].T @ rows[0], atol=1e-10)
    for chain, mine in enumerate(rows):
        np.testing.assert_allclose(scores.rows(chain), mine)
        np.testing.assert_allclose(scores.of_chain(chain).rows(), mine)
        some = np.flatnonzero(case.rng.random(case.dim) < 0.5)
        if some.size:
            np.testing.assert_allclose(scores.rows(chain, some), mine[:, some])


@cases(st.just(0))
def test_totals_and_covariances_are_those_of_the_score_matrix(case):
    scores, rows = case.scores, case.rows
    np.testing.assert_allclose(scores.total(), [mine.sum(axis=0) for mine in rows], atol=1e-12)
    case.check(scores.covariance, np.mean([np.atleast_2d(np.cov(mine.T)) for mine in rows], axis=0))
    row, n = case.rng.integers(scores.n_rows), scores.n_rows
    centred = [mine[row] - mine.mean(axis=0) for mine in rows]
    case.check(
        lambda layout: scores.single_row_covariance(layout, row),
        np.mean([np.outer(v, v) for v in centred], axis=0) * n / (n - 1),
    )


@cases(st.integers(0, 3))
def test_scaling_weighs_each_row_and_pooling_keeps_the_sum_of_moments(case):
    scores, n_chains = case.scores, len(case.rows)
    shared, private = case.rng.random(scores.n_rows), case.rng.random((n_chains, scores.n_rows))
    for chain, mine in enumerate(case.rows):
        for scale, each in ((shared, shared), (private, private[chain])):
            np.testing.assert_allclose(
                scores.scaled(scale).rows(chain), mine * np.tile(each, case.n_labels)[:, None]
            )
    if case.n_labels == 1 and all(
        f.left.ndim == 3 and (f.right is None or f.right.ndim == 2) for f in case.factors
    ):
        case.check(scores.joined_chains().moment, n_chains * case.second)


def eigenbasis(scores):
    pairs = scores.kronecker_factors()
    return Rotation(
        [tuple(None if A is None else np.linalg.eigh(A)[1] for A in pair) for pair in pairs],
        scores.shapes,
    )


def test_kronecker_factors_are_those_of_a_kronecker_product():
    """Left and right factors that are independent over the rows: every pair occurs once."""
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((3, 4)), rng.standard_normal((5, 2))
    pairs = Scores(Factor(np.repeat(left, 5, axis=1)[None], np.tile(right, (4, 1))))
    (units, features) = pairs.kronecker_factors()[0]
    np.testing.assert_allclose(np.kron(units / 20, features / 20) * 20, pairs.moment(FULL).dense())
    rotation = eigenbasis(pairs)
    np.testing.assert_allclose(
        pairs.moment(RotatedDiagonal(rotation)).dense(), pairs.moment(FULL).dense(), atol=1e-12
    )


def test_a_side_of_one_entry_has_no_kronecker_factor():
    wide, tall = np.ones((1, 1, 6)), np.ones((1, 3, 6))
    units, features = Scores(Factor(wide, np.ones((6, 2)))).kronecker_factors()[0]
    assert units is None
    assert features.shape == (2, 2)
    units, features = Scores(Factor(tall, np.ones((6, 1)))).kronecker_factors()[0]
    assert units.shape == (3, 3)
    assert features is None


def test_grams_of_float32_rows_are_summed_in_float64():
    """A direction that the rows do not see stays one: c N times float32 rounding would drown a weak
    prior.
    """
    X = np.random.default_rng(0).standard_normal((5000, 3)).astype(np.float32)
    model, shift = Softmax(3, 3), np.zeros(12)
    shift[9:] = 1.0  # all intercepts alike
    theta, y = np.random.default_rng(1).standard_normal((1, 12)), np.arange(5000) % 3
    for scores in (model.scores(theta, X, y), model.fisher(theta, X)):
        assert abs(shift @ scores.moment(FULL).dense() @ shift) < 5000 * 1e-12


def test_single_row_covariance_is_unbiased_where_mandt_eq_25_is_not():
    """Eq. 25 has expectation (1 - 1/n) S2 under permutations of the rows: 0.5 for n = 2."""
    rng = np.random.default_rng(4)
    left, right = rng.standard_normal((1, 2, 6)), rng.standard_normal((6, 2))
    total, pairs = 0.0, [(i, j) for i in range(6) for j in range(6) if i != j]
    for i, j in pairs:
        total = (
            total
            + Scores(Factor(left[..., [i, j]], right[[i, j]]))
            .single_row_covariance(FULL, 0)
            .dense()
        )
    S2 = np.cov(Scores(Factor(left, right)).rows().T)
    np.testing.assert_allclose(total / len(pairs), S2)


def test_single_precision_leaves_no_negative_variance():
    """A mean summed in float32 is not that of the second moment, and n times the error counts."""
    rng = np.random.default_rng(0)
    left = (1.0 + 1e-4 * rng.standard_normal((1, 3, 3000))).astype(np.float32)
    scores = Scores(Factor(left, rng.random((3000, 4)).astype(np.float32)), Factor(left, None))
    values = np.linalg.eigvalsh(scores.covariance(FULL).dense())
    assert values.min() > -1e-12 * values.max()


@pytest.mark.parametrize("private", [False, True], ids=["shared rows", "rows of its own"])
@pytest.mark.parametrize("weighted", [False, True], ids=["rows alike", "weighted"])
def test_scores_of_classes_are_those_of_their_virtual_labels(private, weighted):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(4, 0.5), size=(2, 9)).swapaxes(1, 2)
    X = rng.standard_normal((2, 9, 3) if private else (9, 3))
    scores = CategoricalScores(p, [X, None]).scaled(rng.random(9) if weighted else None)
    labels = Scores(*scores.factors)
    V = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    close = {"rtol": 1e-10, "atol": 1e-14}
    for along in (None, V):
        np.testing.assert_allclose(scores.squares(along), labels.squares(along), **close)
        np.testing.assert_allclose(
            scores.unit_squares(1, along), labels.unit_squares(1, along), **close
        )
    np.testing.assert_allclose(scores.unit_moment(), labels.unit_moment(), **close)
    v = rng.standard_normal((5, scores.dim))
    np.testing.assert_allclose(scores.gram_matvec(v), labels.gram_matvec(v), **close)
    twice = scores.scaled(np.full(9, 2.0))
    np.testing.assert_allclose(twice.squares(), 4 * scores.squares(), **close)


def test_sure_classes_have_no_negative_variance():
    """Of probabilities in single precision, which do not sum to 1 to the last digit."""
    z = np.random.default_rng(0).standard_normal((1, 200, 500)).astype(np.float32)
    scores = CategoricalScores(softmax(z, axis=1), [None])
    all_alike = np.full((200, 1), 200**-0.5)
    along = scores.unit_squares(0, all_alike)
    assert along.min() >= 0
    assert along.max() < 1e-15
