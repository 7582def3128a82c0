"""Priors with a mean, and the posterior of one fit as the prior of another."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier

from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    DRBMClassifier,
    VariationalEM,
)
from skbayes_sg.samplers import HMC, SGFS, SGLD, ConstantSGD, UnderdampedLangevin

pytestmark = [
    pytest.mark.usefixtures("_short_searches"),
    pytest.mark.usefixtures("_short_runs_may_warn"),
]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((600, 3)) @ [[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, -0.5, 2.0]]
Y = X @ [1.0, -2.0, 0.5] + 3 + RNG.standard_normal(600)
LABELS = (Y + RNG.logistic(size=600) > 3).astype(int)
FRAME = pd.DataFrame(X, columns=["age", "income", "debt"])
SHORT = {"n_chains": 4, "n_draws": 50, "random_state": 0}
LINEAR = BayesianLinearRegression(random_state=0, prior_precision=1.0)
LOGISTIC = BayesianLogisticRegression(random_state=0, prior_precision=1.0)
MEAN = np.array([2.0, -1.0, 0.0])


# -- a mean -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"sampler": "hmc"},
        {"sampler": UnderdampedLangevin()},
        {"sampler": SGFS(batch_size=100)},
        {"sampler": "constant_sgd", "noise_variance": 1.0},
        {"prior_precision": VariationalEM(n_updates=16)},
        {"prior_precision": VariationalEM("feature", n_updates=16), "sampler": "sgfs"},
    ],
    ids=str,
)
@pytest.mark.quick(
    "{'sampler': 'hmc'}",
    "{'sampler': SGFS(batch_size=100)}",
    "{'prior_precision': VariationalEM(n_updates=16)}",
)
def test_a_mean_is_subtracted_from_coefficients_and_their_part_from_y(parameters):
    """The same numbers but for rounding; what is learned of the precision is the same too."""
    model = BayesianLinearRegression(**SHORT, prior_precision=1.0).set_params(
        **parameters, burn_in=60, thin=1
    )
    if "prior_precision" not in parameters:
        model.set_params(prior_precision=20.0)
    at_zero = clone(model).fit(X, Y - X @ MEAN)
    moved = clone(model).set_params(prior_mean=MEAN).fit(X, Y)
    sd = np.append(at_zero.coef_std_, at_zero.intercept_samples_.std())
    ours, theirs = moved.draws_[..., :4] - [*MEAN, 0.0], at_zero.draws_[..., :4]
    # a chain that learns its prior feels rounding in the choice of rows for the pool
    assert np.abs((ours - theirs) / sd).max() < 1e-3
    np.testing.assert_allclose(moved.prior_precision_, at_zero.prior_precision_, rtol=1e-4)


def test_a_mean_of_each_class_and_feature():
    labels = LABELS + (X[:, 0] > 1)
    mean = np.arange(9.0).reshape(3, 3)
    model = clone(LOGISTIC).set_params(prior_precision=1e6, prior_mean=mean, **SHORT)
    model.fit(X, labels)
    np.testing.assert_allclose(model.posterior_.mean[:9], mean.ravel(), atol=0.01)
    np.testing.assert_allclose(model.coef_, mean - mean.mean(axis=0), atol=0.01)
    model.set_params(prior_mean=mean[1]).fit(X, labels)
    np.testing.assert_allclose(model.posterior_.mean[:9], np.tile(mean[1], 3), atol=0.01)
    assert np.abs(model.intercept_).max() > 0.1


@pytest.mark.parametrize("cls", [BayesianMLPClassifier, DRBMClassifier])
def test_a_mean_of_each_block_of_a_network(cls):
    n_groups = 2
    model = cls(3, prior_precision=1e5, prior_mean=0.7, **SHORT | {"n_draws": 20}).fit(X, LABELS)
    np.testing.assert_allclose(model.draws_.mean(axis=(0, 1)), 0.7, atol=0.05)
    with pytest.raises(ValueError, match="prior_mean must be one number or"):
        clone(model).set_params(prior_mean=np.zeros(n_groups + 9)).fit(X, LABELS)
    with pytest.raises(ValueError, match="prior_mean must hold finite"):
        clone(model).set_params(prior_mean=np.nan).fit(X, LABELS)


@pytest.mark.parametrize(
    ("mean", "message"),
    [
        ([1.0, 2.0], r"prior_mean must be one number, one per feature, shape \(3,\)"),
        (np.zeros((2, 3)), r"one per class and feature, shape \(1, 3\)"),
        ([0.0, np.inf, 0.0], "prior_mean must hold finite"),
        ("zero", "prior_mean must hold real numbers"),
    ],
)
@pytest.mark.parametrize("model", [LINEAR, LOGISTIC], ids=["linear", "logistic"])
def test_impossible_means_are_named(model, mean, message):
    with pytest.raises(ValueError, match=message):
        clone(model).set_params(prior_mean=mean).fit(X, LABELS)


# -- a matrix ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sampler",
    [
        None,
        HMC(),
        HMC(structure="diag"),
        SGFS(batch_size=100),
        SGFS(alpha=2.0, structure="kron", batch_size=100),
        SGLD(preconditioner="diag", variance_reduction="control_variate"),
        ConstantSGD(batch_size=100),
    ],
    ids=str,
)
@pytest.mark.quick("None", "HMC()", "SGFS(batch_size=100)")
def test_every_sampler_samples_under_a_prior_with_a_matrix(sampler, seed):
    """Given the noise variance, the posterior of two halves is known."""
    first = BayesianLinearRegression(noise_variance=1.0, prior_precision=1.0).partial_fit(
        X[:20], Y[:20]
    )
    model = BayesianLinearRegression(sampler, noise_variance=1.0, prior=first.posterior_)
    burn_in = "auto" if sampler is None or isinstance(sampler, HMC) else 300
    model.set_params(n_chains=8, n_draws=120, burn_in=burn_in, random_state=seed)
    model.fit(X[20:], Y[20:])
    exact = first.partial_fit(X[20:], Y[20:]).posterior_
    root = np.linalg.cholesky(exact.precision)
    z = (model.draws_.reshape(-1, 4) - exact.mean) @ root
    error = 5 / np.sqrt(model.diagnostics_["ess_min"])
    assert np.abs(z.mean(axis=0)).max() < error
    np.testing.assert_allclose(np.cov(z.T), np.eye(4), atol=0.05 + np.sqrt(2) * error)


@pytest.mark.parametrize("model", [LINEAR, LOGISTIC], ids=["linear", "logistic"])
def test_the_posterior_of_one_fit_is_the_prior_of_another(model):
    y = LABELS if model is LOGISTIC else Y
    january = clone(model).fit(FRAME[:300], y[:300])
    february = (
        clone(model)
        .set_params(prior=january.posterior_, prior_precision="learned")
        .fit(FRAME[300:], y[300:])
    )
    both = clone(model).fit(FRAME, y)
    np.testing.assert_allclose(
        february.posterior_.mean,
        both.posterior_.mean,
        atol=0.2 * both.coef_std_.min() if model is LOGISTIC else 1e-6,
    )
    ratio = february.posterior_.covariance.diagonal() / both.posterior_.covariance.diagonal()
    # the rows of January determine all but a hundred-thousandth of the coefficients
    np.testing.assert_allclose(ratio, 1.0, atol=0.05 if model is LOGISTIC else 1e-4)
    assert np.abs(february.coef_ - both.coef_).max() < 0.3 * both.coef_std_.min()
    streamed = clone(february).partial_fit(
        FRAME[300:], y[300:], **({"classes": [0, 1]} if model is LOGISTIC else {})
    )
    np.testing.assert_allclose(streamed.posterior_.mean, february.posterior_.mean, atol=1e-3)


def test_a_prior_of_the_same_columns_in_another_order_is_refused():
    """Taken as it is, each coefficient would have the prior of another column."""
    fitted = clone(LINEAR).fit(FRAME, Y)
    turned = FRAME[list(FRAME.columns[::-1])]
    model = clone(LINEAR).set_params(prior=fitted.posterior_, prior_precision="learned")
    with pytest.raises(ValueError, match="prior has other features, or in another order"):
        model.fit(turned, Y)
    model.fit(turned[list(fitted.posterior_.feature_names)], Y)


def test_the_posterior_is_a_value():
    fitted = clone(LINEAR).fit(FRAME, Y)
    posterior = fitted.posterior_
    assert repr(posterior) == "FittedPosterior(coef: 1 x 3, intercept: 1, log_noise: 1)"
    assert posterior.feature_names == ("age", "income", "debt")
    np.testing.assert_allclose(posterior.mean, [*fitted.coef_, fitted.intercept_], atol=0.02)
    own = np.sqrt(posterior.covariance.diagonal())[:3]
    np.testing.assert_allclose(own, fitted.coef_std_, rtol=0.1)
    shape, rate = posterior.noise
    assert rate / (shape - 1) == pytest.approx(fitted.noise_variance_, rel=0.02)
    with pytest.raises(AttributeError):
        posterior.closed_form = None
    model = clone(clone(LINEAR).set_params(prior=posterior, prior_precision="learned"))
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.prior.precision, posterior.precision)
    np.testing.assert_array_equal(twin.fit(FRAME, Y).draws_, model.fit(FRAME, Y).draws_)
    assert "FittedPosterior(" in repr(model)
    logistic = clone(LOGISTIC).fit(X, LABELS).posterior_
    assert logistic.noise is None
    np.testing.assert_allclose(logistic.covariance @ logistic.precision, np.eye(4), atol=1e-9)


POSTERIOR = clone(LOGISTIC).partial_fit(FRAME, LABELS, classes=[0, 1]).posterior_


@pytest.mark.parametrize(
    ("parameters", "data", "y", "error", "message"),
    [
        ({}, FRAME[["income", "age", "debt"]], LABELS, ValueError, "or in another order"),
        (
            {},
            FRAME.rename(columns={"debt": "rent"}),
            LABELS,
            ValueError,
            "missing in X are debt; new are rent",
        ),
        (
            {},
            X[:, :2],
            LABELS,
            ValueError,
            "features, number of classes, whether there is an intercept",
        ),
        ({"fit_intercept": False}, X, LABELS, ValueError, "features, number of classes"),
        ({}, X, LABELS + (X[:, 0] > 1), ValueError, "features, number of classes"),
        ({}, X, LABELS + 1, ValueError, r"prior has the classes array\(\[0, 1\]\)"),
        ({"prior": LOGISTIC}, X, LABELS, TypeError, "prior must be the posterior_ of another fit"),
    ],
)
def test_posteriors_that_are_no_prior_of_this_fit_are_named(parameters, data, y, error, message):
    model = clone(LOGISTIC).set_params(
        **{"prior": POSTERIOR, "prior_precision": "learned"} | parameters
    )
    with pytest.raises(error, match=message):
        model.fit(data, y)


@pytest.mark.parametrize(
    "parameters",
    [
        {"prior_precision": 1.0},
        {"prior_precision": [1.0, 1.0, 2.0]},
        {"prior_precision": VariationalEM()},
        {"prior_mean": 1.0},
        {"prior_mean": [0.0, 0.0, 1.0]},
        {"prior_groups": "feature"},
        {"intercept_precision": 1.0},
        {"noise_prior": (2.0, 1.0)},
    ],
    ids=str,
)
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_a_posterior_is_the_whole_prior(parameters, call):
    """What says something else is refused, and zeros say what the default says."""
    first = BayesianLinearRegression().partial_fit(X, Y)
    model = BayesianLinearRegression(prior=first.posterior_, prior_mean=np.zeros(3))
    getattr(model, call)(X, Y)
    ((name, _),) = parameters.items()
    with pytest.raises(ValueError, match=f"in place of {name}, which is .*; leave it at"):
        getattr(model.set_params(**{"prior_mean": 0.0} | parameters), call)(X, Y)


def test_a_prior_of_given_noise_is_none_of_sampled_noise():
    given = (
        BayesianLinearRegression(noise_variance=1.0, prior_precision=1.0)
        .partial_fit(X, Y)
        .posterior_
    )
    with pytest.raises(ValueError, match="whether the noise variance is given"):
        BayesianLinearRegression(prior=given).fit(X, Y)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (BayesianLogisticRegression(), BayesianOrdinalClassifier()),
        (BayesianLogisticRegression(), BayesianPoissonRegressor()),
        (BayesianGammaRegressor(), BayesianNegativeBinomialRegressor()),
        (BayesianPoissonRegressor(), BayesianLinearRegression(noise_variance=1.0)),
    ],
    ids=str,
)
def test_the_posterior_of_another_family_is_none_of_this_one(first, second):
    """Their parameters have the same shapes, and other meanings."""
    counts, labels = 1 + np.random.default_rng(0).poisson(2, len(X)), LABELS
    posterior = first.fit(X, labels if is_classifier(first) else counts).posterior_
    second.set_params(prior=posterior)
    y = labels if is_classifier(second) else counts
    for fit in (second.fit, partial(second.partial_fit, **stream_of(second))):
        with pytest.raises(ValueError, match="parameters mean something else"):
            fit(X, y)


def stream_of(model):
    return {"classes": [0, 1]} if is_classifier(model) else {}


def test_the_posterior_of_classes_in_another_order_is_none_of_these():
    y = np.array(["low", "mid", "top"])[LABELS + (X[:, 0] > 1)]
    order = ["low", "mid", "top"]
    model = BayesianOrdinalClassifier(categories=order, n_chains=2, n_draws=50)
    posterior = clone(model).fit(X, y).posterior_
    again = clone(model).set_params(prior=posterior).fit(X, y)
    assert again.coef_std_.max() < posterior.covariance.diagonal()[:3].max() ** 0.5
    with pytest.raises(ValueError, match="in another order than categories"):
        clone(model).set_params(prior=posterior, categories=["mid", "low", "top"]).fit(X, y)
