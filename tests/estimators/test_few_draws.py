"""A few draws predict as all do, or all of them predict."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from skbayes_sg import BayesianLogisticRegression, BayesianOrdinalClassifier

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
    assert fitted._few.draws is not None
    assert len(fitted._few.draws) in (128, 256, 512)
    every = fitted.set_params(n_predict_draws=None).predict_proba(new)
    assert 0 < np.abs(few - every).max() < 0.005
    # some draws as they are have that error by chance
    some = fitted.set_params(n_predict_draws=len(fitted._few.draws)).predict_proba(new)
    assert np.abs(few - every).max() < 0.5 * np.abs(some - every).max()


def test_moments_are_those_of_all_draws():
    model, y = CASES["two classes"]
    fitted = clone(model).fit(X, y)
    draws = fitted.draws_.reshape(-1, 6)
    few = fitted._few.draws
    np.testing.assert_allclose(few.mean(axis=0), draws.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(np.cov(few.T, bias=True), np.cov(draws.T, bias=True), rtol=1e-9)


def test_all_draws_predict_where_few_would_not_do():
    """Of ten rows that a plane separates, where the posterior is far from normal."""
    rows = X[:10]
    model = BayesianLogisticRegression(random_state=0).fit(rows, rows[:, 0] > 0)
    assert model._few.draws is None
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
