import tracemalloc
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from helpers import mode_from_zero
from scipy import sparse

from skbayes_sg.linalg import DIAGONAL, FULL
from skbayes_sg.linalg.coordinates import LowRank
from skbayes_sg.models import Linear, Softmax
from skbayes_sg.models.poisson import Poisson
from skbayes_sg.posterior import Posterior, is_high_dimensional
from skbayes_sg.posterior.all_rows import AllRows
from skbayes_sg.posterior.nonzero_columns import nonzero_columns
from skbayes_sg.posterior.steepness import slopes_of
from skbayes_sg.posterior.target import ChainTarget
from skbayes_sg.posterior.whitening import _levels, low_rank
from skbayes_sg.samplers import SGLD


@pytest.fixture
def always_wide(monkeypatch):
    """Coordinates and products of very many columns, with few."""
    monkeypatch.setattr("skbayes_sg.linalg.sizes._IN_EVERY_STEP", 5)
    monkeypatch.setattr("skbayes_sg.linalg.sizes._ONCE", 5)
    monkeypatch.setattr("skbayes_sg.data.rows.bytes_to_keep", lambda: 0)
    monkeypatch.setattr("skbayes_sg.data.rows.has_many_columns", lambda n: n > 5)


def text(n_rows=400, n_columns=200, entries=20, seed=0):
    """Counts in columns of very different frequency."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, n_columns + 1)
    X = np.zeros((n_rows, n_columns))
    for row in X:
        words, counts = np.unique(
            rng.choice(n_columns, entries, p=share / share.sum()), return_counts=True
        )
        row[words] = np.log1p(counts)
    return X, X @ rng.standard_normal(n_columns) / 2


def problem(kind, X, eta, form=sparse.csr_array):
    rng = np.random.default_rng(1)
    n, p = X.shape
    weight = rng.uniform(0.5, 1.5, n)
    if kind == "linear":
        model, y = Linear(p, True), eta + rng.standard_normal(n)
    elif kind == "three classes":
        model = Softmax(p, 3)
        y = np.argmax(rng.gumbel(size=(n, 3)) + eta[:, None] * [1, 0, -1], axis=1)
    else:
        model, y = Softmax(p, 2), np.sign(eta + rng.logistic(size=n))
    return Posterior.of(model, form(X), y, 2.0, weight)


KINDS = ["two classes", "three classes", "linear"]


def random_coordinates(rng, outputs=2, c=7, m=3, r=2):
    V = np.linalg.qr(rng.standard_normal((outputs, outputs)))[0]
    roots = np.linalg.inv(rng.standard_normal((outputs, m, m)) + 3 * np.eye(m))
    return LowRank(
        centre=rng.standard_normal((1, outputs * c)),
        columns=rng.permutation(outputs * c).reshape(outputs, c),
        V=V,
        scale=rng.uniform(0.5, 2, (outputs, c)),
        leading=np.array([1, 4, 6]),
        roots=roots,
        inverses=np.linalg.inv(roots),
        Q=np.linalg.qr(rng.standard_normal((outputs * c, r)))[0],
        stretch=rng.uniform(0.5, 2, r),
    )


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_four_maps_belong_to_one_matrix(outputs, seed):
    rng = np.random.default_rng(seed)
    here = random_coordinates(rng, outputs)
    D = 7 * outputs
    if outputs == 1:
        follows = rng.standard_normal((3, 7))
        follows[:, here.leading] = 0
        here = replace(here, columns=np.arange(7)[None], V=np.ones((1, 1)), follows=follows)
    T = (here.inverse_transform(np.eye(D)) - here.centre).T
    u, g = rng.standard_normal((2, 4, D))
    np.testing.assert_allclose(here.inverse_transform(u), here.centre + u @ T.T)
    np.testing.assert_allclose(here.transform(here.inverse_transform(u)), u)
    np.testing.assert_allclose(here.pullback(g), g @ T)
    np.testing.assert_allclose(here.pushforward(here.pullback(g)), g)
    np.testing.assert_allclose(here.covariance(np.eye(D)), T @ T.T)
    np.testing.assert_allclose(here.pullback_matrix(np.diag(g[0])), T.T @ np.diag(g[0]) @ T)
    without = replace(here, Q=np.zeros((D, 0)), stretch=np.zeros(0))
    T = (without.inverse_transform(np.eye(D)) - here.centre).T
    np.testing.assert_allclose(
        without.pullback_diagonal(g[0]), np.diag(T.T @ np.diag(g[0]) @ T), atol=1e-12
    )


@pytest.mark.parametrize("kind", KINDS)
def test_products_with_sparse_rows_are_those_with_dense_ones(kind, always_wide):
    X, eta = text(60, 30)
    ours, theirs = problem(kind, X, eta), problem(kind, X, eta, np.asarray)
    assert ours.data.sparse_rows
    assert not theirs.data.sparse_rows
    assert sparse.issparse(ours.data.load(slice(None)).X)
    theta = 0.3 * np.random.default_rng(0).standard_normal((2, ours.dim))
    for rows in (slice(5, 40), np.array([3, 1, 7])):
        a, b = ours.scores(theta, rows), theirs.scores(theta, rows)
        np.testing.assert_allclose(a.total(), b.total(), atol=1e-12)
    np.testing.assert_allclose(ours.log_prob(theta), theirs.log_prob(theta))
    np.testing.assert_allclose(ours.full_gradient(theta), theirs.full_gradient(theta), atol=1e-9)
    for layout in (DIAGONAL, FULL):
        a, b = ours.expand(theta[:1], layout), theirs.expand(theta[:1], layout)
        np.testing.assert_allclose(a.curvature.dense(), b.curvature.dense(), atol=1e-9)
    v = np.random.default_rng(1).standard_normal((1, ours.dim))
    a, b = (p.fisher(theta[:1], slice(None)).gram_matvec(v) for p in (ours, theirs))
    np.testing.assert_allclose(a, b, atol=1e-9)
    np.testing.assert_allclose(ours.data.column_squares(), theirs.data.column_squares())


@pytest.mark.parametrize("kind", KINDS)
def test_curvature_is_about_the_identity_in_these_coordinates(kind, always_wide):
    posterior = problem(kind, *text())
    mode = mode_from_zero(posterior)
    here = low_rank(posterior, mode.theta)
    curvature = here.pullback_matrix(posterior.expand(mode.theta, FULL).curvature.dense())
    values = np.linalg.eigvalsh(curvature)
    assert 0.2 < values[0] < values[-1] < 3
    before = low_rank(posterior, mode.theta, outliers=False)
    values = np.linalg.eigvalsh(
        before.pullback_matrix(posterior.expand(mode.theta, FULL).curvature.dense())
    )
    if kind == "two classes":  # Lanczos iterations had something to find
        assert values[-1] / values[0] > 9


@pytest.mark.parametrize("form", [sparse.csr_array, np.asarray])
@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_of_a_step_is_that_of_all_rows(kind, form, always_wide):
    posterior = problem(kind, *text(), form)
    mode = mode_from_zero(posterior)
    target = ChainTarget(AllRows.low_rank(posterior, mode))
    u = np.random.default_rng(0).standard_normal((3, posterior.dim))
    other = posterior.with_prior(posterior.prior.with_precision(2 * posterior.prior.precision))
    for ours, theirs in ((target, posterior), (target.with_prior(other.prior), other)):
        expected = target.coordinates.pullback(
            theirs.full_gradient(target.coordinates.inverse_transform(u))
        )
        found = ours.grad_estimate(u, slice(None))
        np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max())
        value, slope = ours.logdensity_and_grad(u)
        np.testing.assert_array_equal(slope, ours.full_gradient(u))
        log_prob = theirs.log_prob(target.coordinates.inverse_transform(u))
        np.testing.assert_allclose(value, log_prob, rtol=1e-5, atol=1e-3)
    assert ours.single is ours
    assert not target.anchor.noise.diagonal().any()
    assert target.anchor.stiffness < 3
    assert target.anchor.steepness >= target.anchor.stiffness


def crossed(n_rows=2000, levels=(60, 2), seed=0):
    """Two numbers, and levels of crossed factors."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(size, size=n_rows) for size in levels]
    parts = [np.eye(size)[code] for size, code in zip(levels, codes, strict=True)]
    X = np.hstack([rng.standard_normal((n_rows, 2)) + 1, *parts])
    return X, X @ rng.standard_normal(X.shape[1]) / 2


@pytest.mark.usefixtures("always_wide")
@pytest.mark.parametrize("kind", ["two classes", "Poisson"])
def test_levels_that_are_eliminated_leave_the_identity(kind):
    X, eta = crossed()
    if kind == "Poisson":
        y = np.random.default_rng(1).poisson(np.exp(eta / 2)).astype(float)
        posterior = Posterior.of(Poisson(X.shape[1]), sparse.csr_array(X), y, 2.0)
    else:
        posterior = problem(kind, X, eta)
    mode = mode_from_zero(posterior)
    here = low_rank(posterior, mode.theta)
    np.testing.assert_array_equal(here.leading, [0, 1, 62, 63, 64])  # and not the first factor
    assert not here.Q.size
    curvature = here.pullback_matrix(posterior.expand(mode.theta, FULL).curvature.dense())
    np.testing.assert_allclose(curvature, np.eye(posterior.dim), atol=2e-3)
    target = ChainTarget(AllRows.low_rank(posterior, mode))
    assert target.anchor.stiffness == pytest.approx(1, abs=0.05)


def test_levels_are_columns_of_which_no_row_has_two(always_wide, monkeypatch):
    X, eta = crossed()
    posterior = problem("two classes", X, eta)
    np.testing.assert_array_equal(_levels(posterior), np.arange(2, 62))
    shuffled = posterior.data.X.copy()
    for start, end in pairwise(shuffled.indptr):  # of a row, in any order
        shuffled.indices[start:end] = shuffled.indices[start:end][::-1]
        shuffled.data[start:end] = shuffled.data[start:end][::-1]
    shuffled.has_sorted_indices = False
    other = Posterior(posterior.model, replace(posterior.data, X=shuffled), posterior.prior)
    np.testing.assert_array_equal(_levels(other), np.arange(2, 62))
    X[7, [10, 30]] = 1  # a row of two levels ends the run between them
    np.testing.assert_array_equal(_levels_of(X, eta, monkeypatch), np.arange(11, 62))
    assert _levels(problem("three classes", X, eta)) is None  # outputs share rows
    assert _levels(problem("two classes", *text())) is None  # no run leaves few others


def _levels_of(X, eta, monkeypatch):
    monkeypatch.setattr("skbayes_sg.linalg.sizes._IN_EVERY_STEP", 15)
    found = _levels(problem("two classes", X, eta))
    monkeypatch.setattr("skbayes_sg.linalg.sizes._IN_EVERY_STEP", 5)
    return found


@pytest.mark.usefixtures("always_wide")
@pytest.mark.parametrize("kind", KINDS)
def test_slopes_along_lines_are_those_of_gradients(kind):
    posterior = problem(kind, *crossed(300))
    target = AllRows.low_rank(posterior, mode_from_zero(posterior))
    start, *lines = np.random.default_rng(0).standard_normal((4, posterior.dim))
    ends, distances = np.array(lines), np.array([-1.0, 2.0])
    expected = slopes_of(lambda u: target.grad_estimate(u, slice(None)))(start, ends, distances)
    found = target._slopes(start, ends, distances)
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


def test_a_gradient_of_many_rows_holds_those_of_a_block():
    n, levels = 200_000, 2000
    X = sparse.csr_array((np.ones(n), np.arange(n) % levels, np.arange(n + 1)), shape=(n, levels))
    posterior = Posterior.of(Softmax(levels, 2), X, np.ones(n))
    blocks = posterior.data.blocks(posterior.model.row_size)
    assert len(blocks) > 1
    assert posterior.point_size == blocks[0].stop
    few = Posterior.of(Softmax(2, 2), X[:10, :2].toarray(), np.ones(10))
    assert few.point_size == 10


def test_few_dense_rows_leave_the_identity(monkeypatch):
    monkeypatch.setattr("skbayes_sg.linalg.sizes._IN_EVERY_STEP", 5)
    monkeypatch.setattr("skbayes_sg.linalg.sizes._ONCE", 60)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3)) @ rng.standard_normal((3, 80))
    X += 0.1 * rng.standard_normal(X.shape)
    posterior = Posterior.of(Softmax(80, 2), X, np.sign(X[:, 0]), 0.5)
    assert is_high_dimensional(posterior)
    here = low_rank(posterior, np.zeros((1, 81)))
    curvature = posterior.expand(np.zeros((1, 81)), FULL).curvature.dense()
    np.testing.assert_allclose(here.pullback_matrix(curvature), np.eye(81), atol=1e-3)


def test_columns_of_zeros_are_left_out_and_follow_the_prior(always_wide):
    X, eta = text(60, 30)
    X[:, [2, 17]] = 0
    X[:, 29] = np.where(np.arange(60) == 3, 1.0, 0.0)
    whole = problem("three classes", X, eta)
    part = nonzero_columns(whole)
    assert part.all_columns is whole
    coef = whole.model.unpack(np.arange(93))["coef"]
    np.testing.assert_array_equal(part.beside, coef[:, [2, 17]].ravel())
    theta = np.random.default_rng(0).standard_normal((2, 93))
    gradient = whole.full_gradient(theta)
    np.testing.assert_allclose(part.full_gradient(theta[:, part.kept]), gradient[:, part.kept])
    np.testing.assert_allclose(gradient[:, part.beside], -2 * theta[:, part.beside])
    learned = part.prior.precision.copy()
    learned[:-3] *= 3
    np.testing.assert_allclose(
        part.with_prior(part.prior.with_precision(learned)).all_columns.prior.precision[
            part.beside
        ],
        6.0,
    )
    assert nonzero_columns(problem("linear", X[:, 3:10], eta)).all_columns.dim == 9


def test_langevin_dynamics_take_the_gradient_in_the_coordinates_of_the_chains(always_wide):
    """They once took that of the model at a point of the chain."""
    posterior = problem("two classes", *text())
    mode = mode_from_zero(posterior)
    target = ChainTarget(AllRows.low_rank(posterior, mode))
    sampler = SGLD(1e-3, variance_reduction="control_variate", batch_size=posterior.n_rows)
    u = np.random.default_rng(0).standard_normal((1, posterior.dim))
    state = sampler.init(target, u, np.random.default_rng(1))
    sampler.step(state, target)
    here = target.coordinates.inverse_transform(u)
    expected = target.coordinates.pullback(posterior.full_gradient(here))
    np.testing.assert_allclose(state.gradient, expected, atol=2e-5 * np.abs(expected).max())


@pytest.mark.usefixtures("always_wide")
@pytest.mark.parametrize("kind", KINDS)
def test_products_of_sparse_rows_are_those_of_dense_ones(kind, monkeypatch):
    """Whether the rows are multiplied as they are, or in dense pieces of a few."""
    X, eta = text()
    posterior = problem(kind, X, eta)
    mode = mode_from_zero(posterior).theta
    found = []
    for share, budget in ((0.0, 1 << 20), (1.0, 1 << 20), (0.0, 100)):
        monkeypatch.setattr("skbayes_sg.posterior.whitening._SPARSE", share)
        monkeypatch.setattr("skbayes_sg.posterior.whitening.elements_at_a_time", lambda n=budget: n)
        found.append(low_rank(posterior, mode, outliers=False))
    for other in found[1:]:
        np.testing.assert_array_equal(other.leading, found[0].leading)
        np.testing.assert_allclose(other.roots, found[0].roots, rtol=1e-3, atol=1e-5)


@pytest.mark.usefixtures("always_wide")
@pytest.mark.parametrize("shared", [1, 0])
def test_products_of_rare_entries_make_no_dense_rows(shared):
    """A factor of many levels has one entry a row: 40 MB if dense, and as much when weighted.

    Its levels are eliminated, unless rows have two of them.
    """
    n, levels = 10_000, 1000
    rng = np.random.default_rng(0)
    each = 2 - shared
    member = rng.integers(levels, size=n * each)
    ends = np.arange(n + 1) * each
    X = sparse.csr_array((np.ones(n * each), member, ends), shape=(n, levels))
    y = np.where(np.random.default_rng(1).random(n) < 0.5, 1.0, -1.0)
    posterior = Posterior.of(Softmax(levels, 2), X, y, 0.01)
    tracemalloc.start()
    found = low_rank(posterior, np.zeros((1, posterior.dim)), outliers=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.leading) == (1 if shared else 1000)
    assert peak < 6 * 8 * levels**2  # matrices of the columns
