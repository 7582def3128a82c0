"""Streams in any order: rows that are kept, rows that are folded, and what is said of them."""

import warnings
from functools import cache

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.data import InMemory
from skbayes_sg.data.kept_rows import n_bytes
from skbayes_sg.models import Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.gaussian import updated
from skbayes_sg.priors import GaussianPrior
from skbayes_sg.streams.folded_rows import FoldedRows

GIVEN = BayesianLogisticRegression(prior_precision=1.0, random_state=0)
LEARNING = BayesianLogisticRegression(random_state=0)


def data_of(n_rows, n_features, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    z = 2 * X @ rng.standard_normal((n_features, n_classes)) / np.sqrt(n_features)
    return X, (z + rng.gumbel(size=z.shape)).argmax(axis=1)


def zeros_first(X, y, share=1.0):
    zeros = np.flatnonzero(y == 0)
    first = zeros[: int(share * len(zeros))]
    return np.concatenate([first, np.setdiff1d(np.arange(len(y)), first)])


# as that of sorted rows does: see test_drift.py
MOVES = pytest.mark.filterwarnings("ignore:the truth moves along this stream")
ORDERS = {
    "sorted": lambda X, y: np.argsort(y, kind="stable"),
    "sorted downwards": lambda X, y: np.argsort(-y, kind="stable"),
    "zeros first": zeros_first,
    "90 % zeros first": lambda X, y: zeros_first(X, y, 0.9),
    "by a column": lambda X, y: np.argsort(X[:, 0]),
    "random": lambda X, y: np.arange(len(y)),
}


def streamed(model, X, y, order, n_chunks):
    model, classes = clone(model), np.unique(y)
    for rows in np.array_split(order, n_chunks):
        model.partial_fit(X[rows], y[rows], classes=classes)
    return model


def budget_of(n_rows, X):
    """A working memory whose sixteenth holds so many rows of two classes."""
    return config_context(working_memory=n_rows * 8 * (X.shape[1] + 1) * 16 / 2**20)


def at_once(model, X, y):
    """The distribution of all rows; `model` has the prior."""
    softmax = Softmax(X.shape[1], len(np.unique(y)))
    rows = InMemory.of(X, softmax.encode(y, X.dtype))
    posterior = Posterior(softmax, rows, softmax.prior(model.prior_precision_))
    distribution = updated(posterior, np.zeros((1, softmax.dim)))
    return updated(posterior, distribution.mean[None])


def off(model, distribution):
    """Root mean square over whitened directions, and extreme ratios of variances."""
    root = np.linalg.cholesky(distribution.operator.dense())
    shift = root.T @ (model.posterior_.mean - distribution.mean)
    ratios = np.linalg.eigvalsh(root.T @ model.posterior_.covariance @ root)
    return np.sqrt(np.mean(shift**2)), ratios.min(), ratios.max()


# -- within the budget ------------------------------------------------------------------------


@MOVES
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_within_the_budget_rows_come_in_any_order(order, n_classes):
    X, y = data_of(1000, 5, n_classes)
    model = streamed(GIVEN, X, y, order(X, y), 10)
    distance, low, high = off(model, at_once(model, X, y))
    assert distance < 0.05
    assert 0.95 < low <= high < 1.05
    assert model.diagnostics_.keys() == {"drift", "mean_shift", "sd_ratio", "density_sd"}


@MOVES
def test_the_posterior_is_right_after_each_chunk_and_to_ask_changes_nothing():
    X, y = data_of(1000, 3, 2)
    silent, asked = clone(GIVEN), clone(GIVEN)
    order = ORDERS["sorted"](X, y)
    for end in range(100, 1001, 100):
        rows = order[end - 100 : end]
        for model in (silent, asked):
            model.partial_fit(X[rows], y[rows], classes=[0, 1])
        both = order[:end]
        if len(np.unique(y[both])) == 2:
            assert off(asked, at_once(asked, X[both], y[both]))[0] < 0.1
        np.testing.assert_array_equal(asked.coef_, asked.coef_)
    np.testing.assert_array_equal(silent.draws_, asked.draws_)


def test_rows_that_are_kept_are_copies():
    X, y = data_of(600, 3, 2)
    right = streamed(GIVEN, X, y, np.arange(600), 3)
    model, buffer = clone(GIVEN), np.empty((200, 3))
    for rows in np.split(np.arange(600), 3):
        buffer[:] = X[rows]
        model.partial_fit(buffer, y[rows], classes=[0, 1])
    buffer[:] = 0
    np.testing.assert_array_equal(model.coef_, right.coef_)


@cache
def learned_at_once(n_classes):
    return streamed(LEARNING, *data_of(1000, 5, n_classes), np.arange(1000), 1)


@MOVES
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.quick("sorted-2", "random-2")
def test_a_learned_prior_is_learned_again_while_it_rests_on_few_rows(order, n_classes):
    X, y = data_of(1000, 5, n_classes)
    model = streamed(LEARNING, X, y, order(X, y), 10)
    whole = learned_at_once(n_classes)
    assert off(model, whole.posterior_.distribution)[0] < 0.1
    ratio = model.prior_precision_blocks_["coef"] / whole.prior_precision_blocks_["coef"]
    assert 0.6 < ratio < 1.6


@MOVES
def test_above_a_thousand_parameters_rows_are_kept_too():
    """A diagonal for each chunk would forget how coefficients depend on each other."""
    X, y = data_of(120, 1001, 2)
    given = clone(GIVEN).set_params(prior_precision=10.0)
    whole = streamed(given, X, y, np.arange(120), 1).posterior_.distribution
    model = streamed(given, X, y, ORDERS["sorted"](X, y), 3)
    shift = (model.posterior_.mean - whole.mean) / whole.variance**0.5
    assert np.sqrt(np.mean(shift**2)) < 0.05


def test_above_a_thousand_parameters_folded_rows_are_checked_by_their_diagonal():
    X, y = data_of(150, 1001, 2)
    given = clone(GIVEN).set_params(prior_precision=10.0)
    with budget_of(60, X), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = streamed(given, X, y, ORDERS["sorted"](X, y), 5)
    assert model.diagnostics_["folded_shift"] > 1
    assert "rows that are no longer kept" in str(said[-1].message)


# -- beyond the budget ------------------------------------------------------------------------


@MOVES
@pytest.mark.parametrize("name", ["sorted", "sorted downwards", "90 % zeros first"])
def test_beyond_the_budget_a_wrong_order_is_not_silent(name):
    X, y = data_of(6000, 4, 2)
    with budget_of(2000, X), pytest.warns(ConvergenceWarning) as found:
        model = streamed(GIVEN, X, y, ORDERS[name](X, y), 30)
    assert off(model, at_once(model, X, y))[0] > 1
    figures = model.diagnostics_
    assert figures["folded_shift"] > max(1, 2 * figures["folded_shift_se"])
    said = [str(one.message) for one in found if "no longer kept" in str(one.message)]
    assert len(said) == 1
    assert "fit on all rows, or shuffle them, or keep more" in said[0]


def test_a_handful_of_rows_says_so_too():
    """A sample of one row could not say how far it may be off: as many stay as parameters."""
    wrong = 0
    for seed in range(10):
        X, y = data_of(18, 4, 2, seed)
        with budget_of(4, X), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model = streamed(GIVEN, X, y, np.argsort(y, kind="stable"), 9)
        if off(model, at_once(model, X, y))[0] > 0.5:
            wrong += 1
            assert said
    assert wrong > 0


@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_classes", "kept", "skewed"),
    [
        (20_000, 2, 2, 2000, False),
        (10_000, 5, 2, 4000, False),
        (10_000, 10, 2, 4000, True),
        (10_000, 20, 2, 6000, False),
        (6000, 4, 3, 4000, False),
    ],
)
@pytest.mark.quick("5", "True")
def test_a_random_order_never_warns(n_rows, n_features, n_classes, kept, skewed, seed):
    X, y = data_of(n_rows, n_features, n_classes, seed)
    if skewed:
        X = np.exp(X / 2)
    with budget_of(kept, X):
        model = streamed(GIVEN, X, y, np.arange(n_rows), 40)  # warnings are errors
    assert 0 < model.diagnostics_["folded_shift"] < 0.3
    assert off(model, at_once(model, X, y))[0] < 0.1


def test_rows_take_no_more_than_the_budget():
    X, y = data_of(6000, 4, 2)
    model = clone(GIVEN)
    for rows in np.split(np.arange(6000), 60):
        with budget_of(2000, X):
            model.partial_fit(X[rows], y[rows], classes=[0, 1])
        stream = model._stream
        kept = [*stream.kept.blocks, *([stream.sample.rows] if stream.sample else [])]
        assert sum(map(n_bytes, kept)) <= 2000 * 8 * 5
    assert stream.sample.n_folded + stream.kept.data.n_rows == 6000


def test_the_remainder_of_all_folded_rows_is_the_difference_of_their_expansions(seed):
    X, y = data_of(500, 3, 3, seed)
    model = Softmax(3, 3)
    rows = InMemory.of(X, model.encode(y, X.dtype), np.linspace(0.5, 2, 500))
    prior = model.prior(np.ones(model.dim))
    before = updated(Posterior(model, rows, prior), np.zeros((1, model.dim)))
    distribution = GaussianPrior(
        before.operator * 0.5, before.draw(np.random.default_rng(seed), 1)[0]
    )
    folded = FoldedRows.of(model, rows, before, 0)
    found = folded.remainder(model, distribution)
    flat = Posterior(model, rows, GaussianPrior(np.zeros(model.dim)))
    roots = (one.operator.inverse().cholesky().dense() for one in (before, distribution))
    (gradient, curvature), (other, change) = (
        flat.expected_under_gaussian(one.mean[None], root)
        for one, root in zip((before, distribution), roots, strict=True)
    )
    left = other - (gradient - (distribution.mean - before.mean) @ curvature.dense())
    covariance = distribution.operator.inverse().dense()
    assert found.folded_shift == pytest.approx(np.sqrt((left @ covariance @ left.T).item()))
    product = covariance @ (change.dense() - curvature.dense())
    variance = np.sqrt(np.trace(product @ product) / model.dim)
    assert found.folded_variance == pytest.approx(variance)
    assert found.folded_shift_se == 0
    assert folded.remainder(model, before).folded_shift == pytest.approx(0, abs=1e-9)


def test_a_sample_of_folded_rows_stands_for_all(seed):
    X, y = data_of(4000, 3, 2, seed)
    model = Softmax(3, 2)
    rows = InMemory.of(X, model.encode(y, X.dtype))
    distribution = updated(Posterior(model, rows, model.prior(np.ones(4))), np.zeros((1, 4)))
    away = GaussianPrior(distribution.operator, distribution.mean + 1.0)
    draws = [FoldedRows.of(model, rows, distribution, 4000 * start) for start in range(40)]
    exact = draws[0].remainder(model, away).folded_shift
    found = [each.sampled(400).remainder(model, away) for each in draws]
    errors = np.array([one.folded_shift_se for one in found])
    squares = np.array([one.folded_shift for one in found]) ** 2 - errors**2  # of the noise
    assert abs(squares.mean() - exact**2) < 5 * squares.std() / np.sqrt(40)
    # they are errors of all directions together, and that of the shift's own is a part of one
    assert 0.2 < squares.std() / np.mean(2 * exact * errors) < 1.2


@MOVES
def test_rows_that_forgetting_leaves_next_to_nothing_of_are_folded():
    """The truth turns round, and what was folded of the old one does not matter."""
    X, y = data_of(40_000, 4, 2)
    model = clone(GIVEN).set_params(forgetting_factor=0.8)
    for chunk, rows in enumerate(np.split(np.arange(40_000), 80)):
        model.partial_fit(X[rows], y[rows] if chunk < 40 else 1 - y[rows], classes=[0, 1])
    assert model.diagnostics_["folded_shift"] < 0.3
    labels, weight = np.where(np.arange(40_000) < 20_000, y, 1 - y), 0.8 ** np.arange(79, -1, -1)
    kept = slice(20_000, None)
    exact = clone(GIVEN).partial_fit(
        X[kept], labels[kept], classes=[0, 1], sample_weight=np.repeat(weight[40:], 500)
    )
    assert off(model, exact.posterior_.distribution)[0] < 0.1
