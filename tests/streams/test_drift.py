"""Streams whose truth moves say so, and those that stand still do not."""

import pickle
import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
)
from skbayes_sg.models import Linear, Ordinal, Softmax
from skbayes_sg.models.gamma import Gamma
from skbayes_sg.models.negative_binomial import NegativeBinomial
from skbayes_sg.models.poisson import Poisson
from skbayes_sg.models.student import Student
from skbayes_sg.streams.drift import Drift

DRIFT_LIMIT = 5.0  # standard errors, of docs/streams.md
SAID = "the truth moves along this stream.*forgetting_factor"
CERTAIN = 5.0  # Monte Carlo errors


def labels(eta, rng, cuts):
    return np.digitize(eta + rng.logistic(size=eta.shape), cuts)


FAMILIES = {
    "logistic": (BayesianLogisticRegression, lambda eta, rng: labels(eta, rng, [0.3])),
    "softmax": (BayesianLogisticRegression, lambda eta, rng: labels(eta, rng, [-1, 0.5])),
    "ordinal": (BayesianOrdinalClassifier, lambda eta, rng: labels(eta, rng, [-0.5, 1])),
    "linear": (BayesianLinearRegression, lambda eta, rng: eta + rng.laplace(size=eta.shape)),
    "robust": (BayesianRobustRegressor, lambda eta, rng: eta + rng.standard_t(2, eta.shape)),
    "Poisson": (BayesianPoissonRegressor, lambda eta, rng: rng.poisson(np.exp(0.6 * eta))),
    "NB": (
        BayesianNegativeBinomialRegressor,
        lambda eta, rng: rng.poisson(np.exp(0.6 * eta + 1) * rng.gamma(2, 0.5, eta.shape)),
    ),
    "Gamma": (
        BayesianGammaRegressor,
        lambda eta, rng: np.exp(0.6 * eta) * rng.gamma(1.5, 1 / 1.5, eta.shape),
    ),
}
SLOW = {"robust", "NB", "Gamma", "ordinal"}  # whose chunks take longest
EACH = pytest.mark.parametrize(
    "name", [pytest.param(k, marks=[pytest.mark.slow] * (k in SLOW)) for k in FAMILIES]
)


def chunks_of(name, n_chunks, n_rows, seed, coef=None, n_features=3):
    """X and y of chunks; `coef` is a function of the time, from 0 to 1."""
    rng = np.random.default_rng(seed)
    fixed = rng.uniform(-1, 1, n_features)
    for t in np.linspace(0, 1, n_chunks):
        X = rng.standard_normal((n_rows, n_features))
        yield X, FAMILIES[name][1](X @ (fixed if coef is None else coef(t)), rng)


def streamed(name, chunks, **parameters):
    model = FAMILIES[name][0](prior_precision=1.0, random_state=0).set_params(**parameters)
    more = {}
    if name in ("logistic", "softmax", "ordinal"):
        more = {"classes": [0, 1] if name == "logistic" else [0, 1, 2]}
    for X, y in chunks:
        model.partial_fit(X, y, **more)
    return model


def there_and_on(t):
    return np.array([1.5 - 3 * t, 1.0, 2 * t])


@EACH
def test_a_truth_that_moves_is_told_once(name):
    with pytest.warns(ConvergenceWarning) as said:
        model = streamed(name, chunks_of(name, 20, 100, 3, there_and_on))
    said = [str(one.message) for one in said if "forgetting_factor" in str(one.message)]
    assert len(said) == 1
    assert "set forgetting_factor below 1 (now 1)" in said[0]
    assert model.diagnostics_["drift"] > DRIFT_LIMIT


@EACH
def test_a_truth_that_stands_still_is_silent(name, seed):
    """Warnings are errors."""
    model = streamed(name, chunks_of(name, 25, 40, seed))
    assert abs(model.diagnostics_["drift"]) < DRIFT_LIMIT


@pytest.mark.parametrize("name", ["linear", "Poisson"])
def test_a_model_that_is_always_wrong_in_the_same_way_does_not_drift(name, seed):
    """Noise that grows with a column, and effects that bend: only the log losses say it."""
    rng = np.random.default_rng(seed)
    chunks = []
    for _ in range(40):
        X = rng.standard_normal((60, 3))
        eta = 0.5 * X[:, 0] + 0.4 * X[:, 1] ** 2
        if name == "linear":
            y = eta + rng.standard_normal(60) * (0.1 + X[:, 2] ** 2)
        else:
            y = rng.poisson(np.exp(eta) * rng.gamma(2, 0.5, 60))
        chunks.append((X, y))
    model = streamed(name, chunks)
    assert abs(model.diagnostics_["drift"]) < DRIFT_LIMIT
    if name == "Poisson":
        loss, mean, sd = model.log_loss_path_[1:].T
        assert np.sum(loss - mean) / np.sqrt(np.sum(sd**2)) > 10


@pytest.mark.parametrize("name", ["logistic", "linear", "Gamma", "robust"])
@pytest.mark.quick("logistic", "linear")
def test_rows_that_are_sorted_by_y_drift_and_those_that_are_sorted_by_a_column_do_not(name):
    X, y = (np.concatenate(each) for each in zip(*chunks_of(name, 20, 60, 1), strict=True))
    by_y, by_column = np.argsort(y, kind="stable"), np.argsort(X[:, 1])
    with pytest.warns(ConvergenceWarning) as said:
        model = streamed(name, [(X[rows], y[rows]) for rows in np.split(by_y, 20)])
    assert sum(re.match(SAID, str(one.message)) is not None for one in said) == 1
    still = streamed(name, [(X[rows], y[rows]) for rows in np.split(by_column, 20)])
    assert still.diagnostics_["drift"] < DRIFT_LIMIT
    whole = streamed(name, [(X, y)])  # all rows are kept
    for one in (model, still):
        assert (np.abs(one.coef_ - whole.coef_) < 0.05 * whole.coef_std_).all()


def test_a_stream_that_forgets_fast_enough_follows():
    chunks = list(chunks_of("linear", 40, 120, 5, there_and_on))
    with pytest.warns(ConvergenceWarning, match=r"lower forgetting_factor \(now 0.99\)"):
        streamed("linear", chunks, forgetting_factor=0.99)
    model = streamed("linear", chunks, forgetting_factor=0.5)  # warnings are errors
    assert model.diagnostics_["drift"] < DRIFT_LIMIT


@pytest.mark.filterwarnings("ignore:no normal distribution")  # until there are some events
@pytest.mark.parametrize("rate", [0.001, 0.006])
@pytest.mark.quick("0.001")
def test_rare_events_that_come_at_the_same_rate_do_not_drift(rate, seed):
    """Until one comes, all scores of a chunk are the same, and small."""
    rng, highest = np.random.default_rng(seed), []
    for _ in range(6):
        model = BayesianLogisticRegression(random_state=0)
        for _ in range(15):
            X = rng.standard_normal((400, 2))
            eta = 0.4 * X[:, 0] + np.log(rate / (1 - rate))
            model.partial_fit(X, (eta + rng.logistic(size=400) > 0).astype(int), classes=[0, 1])
        highest.append(model._stream.drift.highest)
    assert max(highest) < 4  # 1 in 30,000 of a normal variable, of which there are some hundred


@pytest.mark.slow
def test_single_rows_drift_too(seed):
    chunks = list(chunks_of("linear", 400, 1, seed, there_and_on))
    with pytest.warns(ConvergenceWarning, match=SAID):
        streamed("linear", chunks)
    still = streamed("linear", chunks_of("linear", 200, 1, seed))
    assert still.diagnostics_["drift"] < DRIFT_LIMIT


@pytest.mark.parametrize("name", ["linear", "logistic", "NB"])
@pytest.mark.quick("linear", "logistic")
def test_a_weight_of_two_is_the_row_twice(name):
    model, n = FAMILIES[name][0](prior_precision=1.0, random_state=0), 60
    weighted, repeated = clone(model), clone(model)
    first = {"classes": [0, 1]} if name == "logistic" else {}
    for X, y in chunks_of(name, 6, n, 2):
        weight = np.where(X[:, 0] > 0, 2, 1)
        weighted.partial_fit(X, y, sample_weight=weight, **first)
        repeated.partial_fit(np.repeat(X, weight, axis=0), np.repeat(y, weight), **first)
    paths = [one.log_loss_path_[1:] for one in (weighted, repeated)]
    np.testing.assert_allclose(*paths, rtol=0.01, atol=0.01)
    drifts = [one.diagnostics_["drift"] for one in (weighted, repeated)]
    assert drifts[0] == pytest.approx(drifts[1], abs=0.2)  # modes are found to hundredths
    alone = clone(model)
    for X, y in chunks_of(name, 6, n, 2):
        alone.partial_fit(X, y, **first)
    assert np.abs(alone.log_loss_path_[1:] - paths[0]).max() > 0.02


def test_a_stream_after_a_fit_predicts_its_first_chunk_and_a_fit_has_no_path():
    (X, y), (new, then), *_ = chunks_of("logistic", 2, 300, 0)
    model = BayesianLogisticRegression(prior_precision=1.0, random_state=0).fit(X, y)
    with pytest.raises(AttributeError, match="only partial_fit keeps it"):
        _ = model.log_loss_path_
    eta = new @ model.posterior_.mean[:3] + model.posterior_.mean[3]
    model.partial_fit(new, then)
    expected = np.mean(np.logaddexp(0, np.where(then == 1, -eta, eta)))
    assert model.log_loss_path_.shape == (1, 3)
    assert model.log_loss_path_[0, 0] == pytest.approx(expected)
    fresh = BayesianLogisticRegression(prior_precision=1.0).partial_fit(X, y, classes=[0, 1])
    assert np.isnan(fresh.log_loss_path_).all()


def test_rates_have_a_log_loss_and_no_prediction():
    rng = np.random.default_rng(0)
    model = BayesianPoissonRegressor(prior_precision=1.0, random_state=0)
    for _ in range(3):
        X, exposure = rng.standard_normal((80, 2)), rng.uniform(1, 3, 80)
        y = rng.poisson(exposure * np.exp(0.3 * X[:, 0])) / exposure
        with pytest.warns(ConvergenceWarning, match="give the counts as y, and exposure"):
            model.partial_fit(X, y, sample_weight=exposure)
    assert np.isfinite(model.log_loss_path_[1:, 0]).all()
    assert np.isnan(model.log_loss_path_[:, 1:]).all()


def test_the_drift_goes_on_out_of_a_pickle():
    first, second = list(chunks_of("Gamma", 6, 50, 1)), list(chunks_of("Gamma", 6, 50, 2))
    model = streamed("Gamma", first)
    copy = pickle.loads(pickle.dumps(model))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for one in (model, copy):
            for X, y in second:
                one.partial_fit(X, y)
    np.testing.assert_array_equal(model.log_loss_path_, copy.log_loss_path_)
    assert model.diagnostics_ == copy.diagnostics_


# -- what is predicted ------------------------------------------------------------------------


@EACH
@pytest.mark.quick("logistic", "linear")
def test_log_losses_of_a_model_that_is_right_are_as_predicted(name, seed):
    """In units of the predicted standard deviation, over chunks."""
    chunks = list(chunks_of(name, 60, 30, seed, n_features=2))
    if name in ("linear", "robust", "softmax"):  # the others are right as they are
        rng, b = np.random.default_rng(seed), np.array([1.0, -0.5])
        for k, (X, _) in enumerate(chunks):
            z = X @ b
            y = {
                "linear": lambda z: z + rng.standard_normal(len(z)),
                "robust": lambda z: z + rng.standard_t(4, len(z)),
                "softmax": lambda z: (np.outer(z, [0, 1, 2]) + rng.gumbel(size=(len(z), 3))).argmax(
                    axis=1
                ),
            }[name](z)
            chunks[k] = X, y
    loss, mean, sd = streamed(name, chunks).log_loss_path_[8:].T
    z = (loss - mean) / sd
    assert abs(z.mean()) < CERTAIN / np.sqrt(len(z))
    assert 0.6 < z.std() < 1.6


@pytest.mark.parametrize(
    ("model", "theta"),
    [
        (Softmax(2, 2), [1.0, -1.0, 0.5]),
        (Softmax(2, 3), [1.0, -1.0, 0.5, 0.0, 0.3, 2.0, 0.1, -0.5, 0.2]),
        (Ordinal(2, np.array([1, 0, 2, 3])), [1.0, -1.0, 0.5, 0.0, 0.3]),
        (Linear(2), [1.0, -1.0, 0.5, 0.7]),
        (Student(2), [1.0, -1.0, 0.5, 0.7, 1.0]),
        (Gamma(2), [1.0, -1.0, 0.5, 0.7]),
        (Gamma(2), [1.0, -1.0, 0.5, -2.7]),
        (Poisson(2), [1.0, -1.0, -1.0]),
        (Poisson(2), [1.0, -1.0, 9.0]),
        (NegativeBinomial(2), [1.0, -1.0, -1.0, 1.0]),
        (NegativeBinomial(2), [1.0, -1.0, 3.0, -3.0]),
        (NegativeBinomial(2), [1.0, -1.0, 9.0, 1.0]),
    ],
)
def test_moments_of_the_log_loss_are_those_of_draws(model, theta, seed):
    rng, n_draws = np.random.default_rng(seed), 1000
    X, theta = rng.standard_normal((15, 2)), np.array([theta])
    mean, variance = model.log_loss_moments(theta, X)
    if hasattr(model, "log_predict"):
        share = np.exp(model.log_predict(theta, X)[0]).cumsum(axis=0)
        codes = (rng.random((n_draws, 1, 15)) > share[:-1]).sum(axis=1)
        y = [model.encode(each, X.dtype) for each in codes]
    else:
        y = [model.draw(model.outputs(theta, X), rng)[0] for _ in range(n_draws)]
    loss = np.array([-model.log_likelihood(theta, X, each)[0] for each in y])
    z = (loss.mean(axis=0) - mean) / (loss.std(axis=0) / np.sqrt(n_draws))
    assert (np.abs(z) < CERTAIN).all()
    square = (loss - mean) ** 2
    z = (square.mean(axis=0) - variance) / (square.std(axis=0) / np.sqrt(n_draws))
    assert (np.abs(z) < 1.5 * CERTAIN).all()  # squares of long tails are far from normal


@pytest.mark.parametrize("share", [0.9, 0.5])
def test_forgetting_lowers_a_sum_and_its_standard_error_alike(share):
    """Rows that count less are no more certain: the sum in its errors stays what it was."""
    drift = Drift(n_rows=200.0, slope=6.0, square=4.0, highest=3.0)
    later = drift.forgotten(share)
    assert later.n_rows == pytest.approx(share * 200)
    assert later.slope == pytest.approx(share * 6)
    assert later.z == pytest.approx(drift.z) == pytest.approx(3.0)
