"""Averages of rows in double precision, by products in single precision where that is precise."""

import numpy as np
import pytest
from scipy.special import expit

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
    return model, X, rng.normal(0, 0.4, (DRAWS, model.dim)), np.full(DRAWS, 1 / DRAWS)


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
    model, X, draws, weights = rows_and_draws(seed, n_classes)
    model_of, at = model.unpack(np.arange(model.dim)[None]), np.zeros(len(draws))
    far = 2.0**20  # of the first column; the intercepts bring the logits back
    X[:, 0] += far
    for k in range(model.n_logits):
        coef, intercept = model_of["coef"][0, k, 0], model_of["intercept"][0, k]
        draws[:, intercept] = at - far * draws[:, coef]
    exact = averaged(model, X, draws, weights, single=False)
    np.testing.assert_allclose(averaged(model, X, draws, weights), exact, atol=1e-8)
    # and in single precision they would be lost
    lost = averaged(model, X.astype(np.float32), draws.astype(np.float32), weights)
    assert np.abs(lost - exact).max() > 1e-3


@pytest.mark.parametrize("sign", [-1, 1])
def test_small_probabilities_keep_their_digits(sign, seed):
    """Of either class, also where the other one is sure."""
    model, X, draws, weights = rows_and_draws(seed, 2)
    draws[:, -1] += 12 * sign
    found = averaged(model, X, draws, weights)
    exact = expit(-sign * (X @ draws[:, :6].T + draws[:, 6])).mean(axis=1)
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
    _, X, _, weights = rows_and_draws(seed, 3)
    model = Ordinal(6, np.arange(4))
    draws = np.random.default_rng(seed).normal(0, 0.4, (DRAWS, model.dim))
    exact = averaged(model, X, draws, weights, single=False)
    np.testing.assert_allclose(averaged(model, X, draws, weights), exact, rtol=1e-12)


def test_few_probabilities_are_in_double_precision(monkeypatch, seed):
    """Where they take no time, and batches of rows are to have the same ones."""
    case = rows_and_draws(seed, 2)
    monkeypatch.setattr(class_probabilities, "_MANY", ROWS * DRAWS)
    few, exact = averaged(*case), averaged(*case, single=False)
    np.testing.assert_allclose(few, exact, rtol=1e-12)
    monkeypatch.setattr(class_probabilities, "_MANY", ROWS * DRAWS - 1)
    assert np.abs(averaged(*case) - exact).max() > 1e-10
