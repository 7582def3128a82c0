"""Predictions under all draws: their memory, and those far from the rows of the fit."""

import tracemalloc
import warnings
from functools import partial

import numpy as np
import pytest
import sklearn

from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
)
from skbayes_sg.models.log_link import poisson_counts

RNG = np.random.default_rng(0)
X = RNG.standard_normal((100, 2))
TARGETS = {
    BayesianGammaRegressor: RNG.gamma(3.0, np.exp(X[:, 0]) / 3.0),
    BayesianLogisticRegression: RNG.random(100) < 1 / (1 + np.exp(-X[:, 0])),
}


def fitted(kind):
    return kind(n_chains=4, n_draws=250, random_state=0).fit(X, TARGETS[kind])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("what", ["observation", "mean"])
@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.quick(
    "BayesianLogisticRegression-mean-float32", "BayesianGammaRegressor-observation-float64"
)
def test_draws_are_held_once(kind, what, dtype):
    """Beside the result there are some blocks; it was held three to five times."""
    model, rows = fitted(kind), RNG.standard_normal((4000, 2)).astype(dtype)
    with sklearn.config_context(working_memory=64):
        tracemalloc.start()
        drawn = model.predict_draws(rows, what)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    n_draws, n_classes = drawn.shape[0], 2 if drawn.ndim == 3 else 1
    assert drawn.shape[:2] == (n_draws, 4000)
    # a block of probabilities has 16 MB in double precision, and there are some arrays of its size
    several_blocks = 4 * (2**24 if hasattr(model, "classes_") else 2**21)
    assert peak < 1.1 * drawn.nbytes + several_blocks
    if what == "mean":
        assert drawn.nbytes == n_draws * 4000 * n_classes * np.dtype(dtype).itemsize


def test_blocks_of_rows_have_the_draws_of_all():
    model, years = fitted(BayesianGammaRegressor), RNG.uniform(0.5, 4.0, len(X))
    whole = model.predict_draws(X, random_state=np.random.default_rng(1), exposure=years)
    means = model.predict_draws(X, "mean", exposure=years)
    rng, parts = np.random.default_rng(1), []
    for some in np.array_split(np.arange(len(X)), 3):
        parts.append(model.predict_draws(X[some], random_state=rng, exposure=years[some]))
        np.testing.assert_allclose(
            model.predict_draws(X[some], "mean", exposure=years[some]), means[:, some]
        )
    blocks = np.concatenate(parts, axis=1)
    error = whole.std(axis=0) * np.sqrt(2 / len(whole))
    assert (np.abs(blocks.mean(axis=0) - whole.mean(axis=0)) < 5 * error).all()


def test_a_block_that_single_precision_cannot_hold_makes_all_double():
    """Rows of the first blocks lie near 0, where it can."""
    model = fitted(BayesianGammaRegressor)
    rows = np.zeros((4000, 2), np.float32)
    rows[-1] = [300.0, 0.0]  # its exponential is beyond the numbers of single precision
    with sklearn.config_context(working_memory=1):
        single, double = (model.predict_draws(each, "mean") for each in (rows, rows.astype(float)))
    assert single.dtype == np.float64
    np.testing.assert_allclose(single[:, -1], double[:, -1], rtol=1e-3)
    np.testing.assert_allclose(single[:, 0], double[:, 0], rtol=1e-6)


def test_memory_that_is_full_in_a_prediction_is_told(monkeypatch):
    model = fitted(BayesianGammaRegressor)

    def full(*args):
        raise MemoryError("Unable to allocate 8 GiB")

    monkeypatch.setattr(type(model.model_), "outputs", full)
    monkeypatch.setattr(type(model.model_), "distribution", full)
    with_std = partial(model.predict, return_std=True)
    for method in (with_std, model.predict_interval, model.predict_draws):
        with pytest.raises(MemoryError, match=r"100 rows \(Unable.*8 GiB\); predict fewer rows"):
            method(X)


@pytest.mark.parametrize("cls", [BayesianPoissonRegressor, BayesianNegativeBinomialRegressor])
def test_counts_beyond_integers_are_drawn_too(cls):
    """About means that no integer holds, and infinite ones, in rows far from those of the fit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1))
    fitted = cls(random_state=0).fit(X, rng.poisson(np.exp(1 + X[:, 0])))
    far = np.array([[0.0], [60.0], [1e4]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # predictions are infinite, which they say
        drawn = fitted.predict_draws(far)
        low, high = fitted.predict_interval(far)[1]
    assert (drawn[:, 0] < 100).all()
    assert np.isinf(drawn[:, 2]).all()
    assert np.isfinite(drawn[:, 1]).all()
    assert (drawn[:, 1] > 2.0**63).any()
    share = ((drawn[:, 1] < low) | (drawn[:, 1] > high)).mean()
    assert abs(share - 0.05) < 5 * np.sqrt(0.05 * 0.95 / 400)


@pytest.mark.parametrize("mean", [0.9e11, 1.1e11, 1e30])
def test_counts_have_mean_and_variance_of_a_poisson_variable_on_either_side(mean, seed):
    drawn = poisson_counts(np.full(4000, mean), np.random.default_rng(seed)) - mean
    assert abs(drawn.mean()) < 5 * np.sqrt(mean / 4000)
    assert abs(drawn.var() / mean - 1) < 5 * np.sqrt(2 / 4000)
