"""A few draws predict as all do, or all of them predict."""

import copy
import pickle

import numpy as np
import pytest
from scipy.special import expit, ndtri
from sklearn.base import clone

from skbayes_sg import (
    BayesianBinomialRegressor,
    BayesianGammaRegressor,
    BayesianLogisticRegression,
    BayesianOrdinalClassifier,
    BayesianRobustRegressor,
)
from skbayes_sg.data import InMemory
from skbayes_sg.estimators.few_draws import _telling_rows
from skbayes_sg.models import Gamma, Softmax

RNG = np.random.default_rng(4)
X = RNG.normal(size=(600, 5))
ETA = X @ [1.0, -1.0, 0.5, 0.0, 0.2] + RNG.logistic(size=600)
CASES = {
    "two classes": (BayesianLogisticRegression(random_state=0), ETA > 0),
    "three classes": (BayesianLogisticRegression(random_state=0), np.digitize(ETA, [-1, 1])),
    "in an order": (BayesianOrdinalClassifier(random_state=0), np.digitize(ETA, [-1, 1])),
}
EACH = pytest.mark.parametrize("name", CASES)


@EACH
def test_averages_are_those_of_all_draws(name):
    model, y = CASES[name]
    fitted = clone(model).fit(X, y)
    new = np.random.default_rng(1).normal(size=(300, 5))
    few = fitted.predict_proba(new)
    assert fitted._few.count in (128, 256, 512)
    every = fitted.set_params(n_predict_draws=None).predict_proba(new)
    assert 0 < np.abs(few - every).max() < 0.005
    # some draws as they are have that error by chance
    some = fitted.set_params(n_predict_draws=fitted._few.count).predict_proba(new)
    assert np.abs(few - every).max() < 0.5 * np.abs(some - every).max()


@pytest.mark.parametrize("cls", [BayesianGammaRegressor, BayesianBinomialRegressor])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_means_of_numbers_are_those_of_all_draws(cls, dtype, seed):
    """In either precision of the rows, also of rows that lie outside of those of the fit."""
    rng = np.random.default_rng(seed)
    rows, far = X.astype(dtype), rng.normal(0, 2, (300, 5)).astype(dtype)
    if cls is BayesianGammaRegressor:
        known, y = {}, rng.gamma(2, np.exp(X[:, 0] + 1))
        fitted = cls(random_state=seed).fit(rows, y)
    else:
        known = {"trials": rng.integers(1, 9, 300)}
        fitted = cls(random_state=seed).fit(rows, rng.binomial(7, expit(X[:, 0])), trials=7)
    assert fitted._few.count in (128, 256, 512)
    mean, std = fitted.predict(far, return_std=True, **known)
    assert mean.dtype == dtype
    np.testing.assert_allclose(mean, fitted.predict(far, **known), rtol=1e-5)
    outputs = fitted.model_.outputs(
        fitted.draws_.reshape(-1, fitted.model_.dim).astype(np.float64),
        np.column_stack([far, *(known and [np.zeros(300), known["trials"]])]).astype(np.float64),
    )
    each = fitted.model_.mean(outputs)
    assert (np.abs(mean - each.mean(axis=0)) < 0.02 * each.std(axis=0) + 1e-6 * mean).all()
    variance = fitted.model_.variance(outputs).mean(axis=0) + each.var(axis=0)
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=0.01)


def test_means_that_are_linear_take_one_product():
    rng = np.random.default_rng(0)
    fitted = BayesianRobustRegressor(random_state=0).fit(X, X[:, 0] + rng.standard_t(4, 600))
    assert fitted._few is None
    draws = fitted.predict_draws(X, kind="mean")
    np.testing.assert_allclose(fitted.predict(X), draws.mean(axis=0), rtol=1e-9, atol=1e-12)


def test_rows_that_are_known_least_tell_too(seed):
    """Whatever their place, among 128 others."""
    rng = np.random.default_rng(seed)
    rows, model = rng.normal(size=(900, 5)), Softmax(5, 2)
    far = rng.choice(900, 3, replace=False)
    rows[far, 0] = 1e3 + far
    draws = rng.normal(0, 1e-3, (64, 6))
    found = _telling_rows(model, InMemory.of(rows, np.ones(900)), draws)
    assert 128 <= len(found) <= 256
    assert set(1e3 + far) <= set(found[:, 0])


def test_a_file_holds_the_number_of_the_draws():
    model, y = CASES["two classes"]
    fitted = clone(model).fit(X, y)
    size = len(pickle.dumps(fitted))
    proba = fitted.predict_proba(X)
    assert len(pickle.dumps(fitted)) == size
    np.testing.assert_array_equal(copy.deepcopy(fitted).predict_proba(X), proba)


def test_moments_are_those_of_all_draws():
    model, y = CASES["two classes"]
    fitted = clone(model).fit(X, y)
    draws = fitted.draws_.reshape(-1, 6)
    numbers, few = fitted._few.of(draws)
    assert len(numbers) == len(few) == fitted._few.count
    np.testing.assert_allclose(few.mean(axis=0), draws.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(np.cov(few.T, bias=True), np.cov(draws.T, bias=True), rtol=1e-9)


def test_all_draws_predict_where_few_would_not_do():
    """Of ten rows that a plane separates, where the posterior is far from normal."""
    rows = X[:10]
    model = BayesianLogisticRegression(random_state=0).fit(rows, rows[:, 0] > 0)
    assert model._few.count is None
    proba = model.predict_proba(X)
    every = clone(model).set_params(n_predict_draws=None).fit(rows, rows[:, 0] > 0)
    np.testing.assert_array_equal(proba, every.predict_proba(X))


def test_a_stream_and_fewer_draws_predict_by_their_own(tmp_path):
    model, y = CASES["two classes"]
    fitted = clone(model).fit(X[:500], y[:500])
    small = fitted.compact(64)
    assert small._few is None
    np.testing.assert_allclose(small.predict_proba(X), fitted.predict_proba(X), atol=0.15)
    kept = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(kept.predict_proba(X), fitted.predict_proba(X))
    before = fitted.predict_proba(X)
    fitted.partial_fit(X[500:], y[500:])
    assert fitted._few is None
    assert np.abs(fitted.predict_proba(X) - before).max() > 1e-6


def test_a_width_in_place_of_a_variance_is_that_of_all_draws(monkeypatch):
    """Of a family whose variance may not be finite, and whose mean is not linear."""
    fitted = BayesianGammaRegressor(random_state=0).fit(X, RNG.gamma(2, np.exp(X[:, 0])))
    assert fitted._few.count is not None
    monkeypatch.setattr(Gamma, "has_variance", False)
    _, sd = fitted.predict(X[:5], return_std=True)
    ends = fitted.predict_interval(X[:5], 0.95)
    np.testing.assert_allclose(sd, np.diff(ends)[:, 0] / (2 * ndtri(0.975)), rtol=1e-9)
