import numpy as np
import pytest

from skbayes_sg.linalg import Rotation
from skbayes_sg.models import Softmax
from skbayes_sg.scores import Factor, Scores

N, CHAINS = 12, 2
PARTS = [np.array([0, 1, 7]), np.array([2, 3, 6, 9]), np.array([4, 5, 8, 10])]


def make(shared, labels, rng):
    """Blocks (3, 2), (3,) and (2, 1): 11 coordinates."""
    q = (4,) if labels else ()
    lead = () if shared else (CHAINS,)
    return Scores(
        Factor(rng.standard_normal((CHAINS, *q, 3, N)), rng.standard_normal((*lead, N, 2))),
        Factor(rng.standard_normal((CHAINS, *q, 3, N)), None),
        Factor(rng.standard_normal((CHAINS, *q, 2, N)), rng.standard_normal((*lead, N, 1))),
    )


def brute_rows(scores, chain):
    """The n x D score matrix by its definition, virtual labels stacked."""
    blocks = []
    for left, right in scores.factors:
        left = left[chain].reshape(-1, *left.shape[-2:])
        right = np.ones((N, 1)) if right is None else (right[chain] if right.ndim == 3 else right)
        blocks.append(np.einsum("qkn,nm->qnkm", left, right).reshape(left.shape[0] * N, -1))
    return np.concatenate(blocks, axis=1)


def eigenbasis(scores):
    pairs = scores.kronecker_factors()
    return Rotation([tuple(None if A is None else np.linalg.eigh(A)[1] for A in pair) for pair in pairs], scores.shapes)


def test_kronecker_factors_are_those_of_a_kronecker_product():
    """Left and right factors that are independent over the rows: every pair occurs once."""
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((3, 4)), rng.standard_normal((5, 2))
    pairs = Scores(Factor(np.repeat(left, 5, axis=1)[None], np.tile(right, (4, 1))))
    (units, features) = pairs.kronecker_factors()[0]
    np.testing.assert_allclose(np.kron(units / 20, features / 20) * 20, pairs.moment("full").dense())
    rotation = eigenbasis(pairs)
    np.testing.assert_allclose(pairs.moment(rotation).dense(), pairs.moment("full").dense(), atol=1e-12)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("labels", [True, False])
def test_moments_are_those_of_the_score_matrix(shared, labels):
    scores = make(shared, labels, np.random.default_rng(0))
    rows = [brute_rows(scores, c) for c in range(CHAINS)]
    second = np.mean([r.T @ r for r in rows], axis=0)
    np.testing.assert_allclose(scores.moment("full").dense(), second)
    np.testing.assert_allclose(scores.moment("diag").dense(), np.diag(second.diagonal()))
    rotation = eigenbasis(scores)
    R = rotation.back(np.eye(11)).T
    np.testing.assert_allclose(scores.moment(rotation).values, np.diag(R.T @ second @ R))
    blocks = scores.moment(PARTS).dense()
    for part in PARTS:
        np.testing.assert_allclose(blocks[np.ix_(part, part)], second[np.ix_(part, part)])
    v = np.random.default_rng(1).standard_normal((1, 11))
    np.testing.assert_allclose(scores.gram_matvec(v), v @ rows[0].T @ rows[0])
    np.testing.assert_allclose(scores.of_chain(1).moment("full").dense(), rows[1].T @ rows[1])
    assert scores.dim == 11


@pytest.mark.parametrize("shared", [True, False])
def test_totals_and_sample_covariance(shared):
    scores = make(shared, False, np.random.default_rng(2))
    rows = [brute_rows(scores, c) for c in range(CHAINS)]
    np.testing.assert_allclose(scores.rows(1), rows[1])
    np.testing.assert_allclose(scores.total(), [r.sum(axis=0) for r in rows])
    V = np.mean([np.cov(r.T) for r in rows], axis=0)
    np.testing.assert_allclose(scores.covariance("full").dense(), V, atol=1e-12)
    np.testing.assert_allclose(scores.covariance("diag").values, V.diagonal())
    rotation = eigenbasis(scores)
    R = rotation.back(np.eye(11)).T
    np.testing.assert_allclose(scores.covariance(rotation).values, np.diag(R.T @ V @ R), atol=1e-12)
    np.testing.assert_allclose(
        scores.covariance(PARTS).dense()[np.ix_(PARTS[1], PARTS[1])], V[np.ix_(PARTS[1], PARTS[1])]
    )


def test_grams_of_float32_rows_are_summed_in_float64():
    """A direction that the rows do not see stays one: c N times float32 rounding would drown a weak prior."""
    X = np.random.default_rng(0).standard_normal((5000, 3)).astype(np.float32)
    model, shift = Softmax(3, 3), np.zeros(12)
    shift[9:] = 1.0  # all intercepts alike
    theta, y = np.random.default_rng(1).standard_normal((1, 12)), np.arange(5000) % 3
    for scores in (model.scores(theta, X, y), model.fisher(theta, X)):
        assert abs(shift @ scores.moment("full").dense() @ shift) < 5000 * 1e-12


def test_scaling_weighs_each_row():
    scores = make(False, True, np.random.default_rng(3))
    shared, private = np.arange(N, dtype=float), np.arange(2.0 * N).reshape(2, N)
    np.testing.assert_allclose(scores.scaled(shared).rows(1), brute_rows(scores, 1) * np.tile(shared, 4)[:, None])
    np.testing.assert_allclose(scores.scaled(private).rows(1), brute_rows(scores, 1) * np.tile(private[1], 4)[:, None])


def test_single_row_covariance_is_unbiased_where_mandt_eq_25_is_not():
    """Eq. 25 has expectation (1 - 1/n) S2 under permutations of the rows: 0.5 for n = 2 (MATH E11)."""
    rng = np.random.default_rng(4)
    left, right = rng.standard_normal((1, 2, 6)), rng.standard_normal((6, 2))
    total, pairs = 0.0, [(i, j) for i in range(6) for j in range(6) if i != j]
    for i, j in pairs:
        total = total + Scores(Factor(left[..., [i, j]], right[[i, j]])).single_row_covariance("full", 0).dense()
    S2 = np.cov(Scores(Factor(left, right)).rows().T)
    np.testing.assert_allclose(total / len(pairs), S2)
