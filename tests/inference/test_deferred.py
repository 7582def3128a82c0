"""The normal distribution of a fit is computed when it is read, from the rows of the fit."""

import copy
import gc
import pickle

import numpy as np
import pytest

from skbayes_sg import BayesianLogisticRegression, BayesianNegativeBinomialRegressor
from skbayes_sg.data import InMemory
from skbayes_sg.inference.deferred import Deferred

RNG = np.random.default_rng(8)
X = RNG.normal(size=(300, 3))
COUNTS = RNG.poisson(RNG.gamma(2, np.exp(X[:, 0]))).astype(float)


def fitted(rows=X, y=COUNTS):
    return BayesianNegativeBinomialRegressor(random_state=0).fit(rows, y)


def is_open(model):
    return model._fit.gaussian._function is not None


def test_a_fit_computes_none_and_a_reader_gets_it_once():
    model = fitted()
    assert is_open(model)
    first = model.posterior_
    mean = first.mean
    assert not is_open(model)
    assert model.posterior_ is first
    np.testing.assert_array_equal(first.mean, mean)
    apart = np.abs(mean - model.draws_.mean(axis=(0, 1))) / model.draws_.std(axis=(0, 1))
    assert (apart < 0.2).all()


def test_rows_may_change_after_the_fit():
    rows, y = X.copy(), COUNTS.copy()
    model, wanted = fitted(rows, y), fitted().posterior_
    rows[:], y[:] = 0.0, 1.0
    np.testing.assert_array_equal(model.posterior_.mean, wanted.mean)
    np.testing.assert_array_equal(model.posterior_.precision, wanted.precision)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_files_and_copies_have_the_result_and_no_rows(copied):
    model = fitted()
    twin = copied(model)
    assert not is_open(twin)
    assert not is_open(model)
    np.testing.assert_array_equal(twin.posterior_.mean, model.posterior_.mean)
    gc.collect()
    held = [one for one in gc.get_objects() if isinstance(one, InMemory)]
    assert not any(one.X.shape == X.shape and np.array_equal(one.X, X) for one in held)


def test_a_stream_and_a_prior_go_on_from_it():
    known, asked = fitted(), fitted()
    asked.posterior_.covariance  # noqa: B018
    new, y = RNG.normal(size=(50, 3)), RNG.poisson(2.0, 50)
    ours, theirs = known.partial_fit(new, y), asked.partial_fit(new, y)
    np.testing.assert_array_equal(ours.posterior_.mean, theirs.posterior_.mean)
    labels = X[:, 1] > 0.3 * RNG.normal(size=300)
    fit = BayesianLogisticRegression(random_state=0).fit(X, labels)
    after = BayesianLogisticRegression(prior=fit.posterior_, random_state=0).fit(X, labels)
    assert (after.coef_std_ < fit.coef_std_).all()


def test_what_cannot_be_computed_is_said_with_a_remedy():
    def singular():
        raise np.linalg.LinAlgError("not positive definite")

    with pytest.raises(ValueError, match=r"singular in double precision .* scale the columns"):
        _ = Deferred(singular).value
