"""Averages of rows in double precision, by products in single precision where that is precise."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.diagnostics.draws import Draws
from skbayes_sg.estimators import class_probabilities
from skbayes_sg.estimators.class_probabilities import averaged, log_averaged
from skbayes_sg.models import Ordinal, Softmax

DRAWS, ROWS = 200, 700


@pytest.fixture(autouse=True)
def many(monkeypatch):
    monkeypatch.setattr(class_probabilities, "_MANY", 0)


def rows_and_draws(seed, n_classes, size=1.0, offset=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(0, size, (ROWS, 6 + offset * (1 if n_classes == 2 else n_classes)))
    model = Softmax(6, n_classes)
    return model, X, Draws.equal(rng.normal(0, 0.4, (1, DRAWS, model.dim)))


@pytest.mark.parametrize("offset", [False, True], ids=["", "offset"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("size", [0.01, 1.0, 20.0, 1000.0])
def test_probabilities_are_off_by_a_millionth_at_most(n_classes, size, offset, seed):
    case = rows_and_draws(seed, n_classes, size, offset)
    found, exact = averaged(*case), averaged(*case, single=False)
    off = np.abs(found - exact).max()
    assert off < 1e-6
    assert (off < 1e-13) == (size == 1000)  # those were multiplied in double precision


@pytest.mark.parametrize("n_classes", [2, 3])
def test_terms_that_cancel_are_added_in_double_precision(n_classes, seed):
    model, X, draws = rows_and_draws(seed, n_classes)
    theta = draws.flat
    model_of, at = model.unpack(np.arange(model.dim)[None]), np.zeros(len(theta))
    far = 2.0**20  # of the first column; the intercepts bring the logits back
    X[:, 0] += far
    for k in range(model.n_logits):
        coef, intercept = model_of["coef"][0, k, 0], model_of["intercept"][0, k]
        theta[:, intercept] = at - far * theta[:, coef]
    exact = averaged(model, X, draws, single=False)
    np.testing.assert_allclose(averaged(model, X, draws), exact, atol=1e-8)
    # and in single precision they would be lost
    in_single = draws.of(draws.values.astype(np.float32))
    lost = averaged(model, X.astype(np.float32), in_single)
    assert np.abs(lost - exact).max() > 1e-3


@pytest.mark.parametrize("sign", [-1, 1])
def test_small_probabilities_keep_their_digits(sign, seed):
    """Of either class, also where the other one is sure."""
    model, X, draws = rows_and_draws(seed, 2)
    theta = draws.flat
    theta[:, -1] += 12 * sign
    found = averaged(model, X, draws)
    exact = expit(-sign * (X @ theta[:, :6].T + theta[:, 6])).mean(axis=1)
    small = found[:, 0 if sign == 1 else 1]
    assert exact.min() < 1e-4
    np.testing.assert_allclose(small, exact, rtol=2e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logarithms_are_those_of_probabilities(n_classes, seed):
    case = rows_and_draws(seed, n_classes, size=3.0)
    found = log_averaged(*case)
    np.testing.assert_allclose(found, np.log(averaged(*case)), rtol=1e-12)
    exact = averaged(*case, single=False)
    np.testing.assert_allclose(found, np.log(exact), atol=2e-4)


def test_models_of_thresholds_are_in_double_precision(seed):
    _, X, _ = rows_and_draws(seed, 3)
    model = Ordinal(6, np.arange(4))
    draws = Draws.equal(np.random.default_rng(seed).normal(0, 0.4, (1, DRAWS, model.dim)))
    exact = averaged(model, X, draws, single=False)
    np.testing.assert_allclose(averaged(model, X, draws), exact, rtol=1e-12)


def test_few_probabilities_are_in_double_precision(monkeypatch, seed):
    """Where they take no time, and batches of rows are to have the same ones."""
    case = rows_and_draws(seed, 2)
    monkeypatch.setattr(class_probabilities, "_MANY", ROWS * DRAWS)
    few, exact = averaged(*case), averaged(*case, single=False)
    np.testing.assert_allclose(few, exact, rtol=1e-12)
    monkeypatch.setattr(class_probabilities, "_MANY", ROWS * DRAWS - 1)
    assert np.abs(averaged(*case) - exact).max() > 1e-10


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("form", ["dense", "offset", "sparse"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_means_over_draws_are_those_of_the_predictions_of_each(n_classes, form, fit_intercept):
    """Few passes over all logits give what the probabilities under each draw do."""
    rng = np.random.default_rng(n_classes)
    n_known = (1 if n_classes == 2 else n_classes) * (form == "offset")
    X = rng.normal(0, 20, (40, 6 + n_known)) * (rng.random((40, 1)) < 0.8)
    model = Softmax(6, n_classes, fit_intercept)
    theta, weights = rng.normal(0, 5, (30, model.dim)), rng.dirichlet(np.ones(30))
    each = model.predict(theta, X)
    given = sparse.csr_matrix(X) if form == "sparse" else X
    found = model.mean_probabilities(theta, weights, given)
    np.testing.assert_allclose(found, np.einsum("s,skn->nk", weights, each), rtol=1e-11)


@pytest.mark.parametrize("size", [1.0, 30.0, 70.0, 90.0, 1e4])
def test_logits_of_any_size_have_probabilities_in_single_precision(size):
    """Also those whose exponentials are infinite or 0 in it, all of a row or some."""
    rng, model = np.random.default_rng(0), Softmax(2, 3, fit_intercept=False)
    theta = rng.normal(0, 0.01, (20, 6)).astype(np.float32)
    theta[:, ::2] += np.float32([1.0, 1.0, 0.9])
    X = np.array([[size, 0.0], [-size, 1.0]], np.float32)
    weights = np.full(20, 0.05)
    found = model.mean_probabilities(theta, weights.astype(np.float32), X)
    expected = model.mean_probabilities(theta.astype(float), weights, X.astype(float))
    np.testing.assert_allclose(found, expected, atol=2 * size * 2.0**-24 + 1e-6)


def test_rows_in_single_precision_take_no_second_look_where_they_are_many(seed, monkeypatch):
    """Their smallest probabilities end where exponentials do, in either precision."""
    _, X, draws = rows_and_draws(seed, 3)
    y = (X @ draws.flat[:3, :6].T).argmax(axis=1)
    fitted = BayesianLogisticRegression(random_state=0).fit(X[:500], y[:500])
    far = 40 * X.astype(np.float32)
    many = fitted.predict_proba(far)
    monkeypatch.setattr(class_probabilities, "_MANY", 1 << 62)
    few = fitted.predict_proba(far)
    assert 0 < few.min() < 1e-36 < many.min()
    np.testing.assert_allclose(many, few, atol=1e-6)
