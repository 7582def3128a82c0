"""Samplers by name draw the posterior of few rows, or warn that they do not."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression, diagnostics


def conjugate(X, y):
    """Mean and standard deviations of a linear regression under precision and noise 1."""
    Z = np.column_stack([X, np.ones(len(X))])
    covariance = np.linalg.inv(Z.T @ Z + np.eye(Z.shape[1]))
    return covariance @ (Z.T @ y), np.sqrt(covariance.diagonal())


@pytest.mark.parametrize(
    ("name", "n_rows"),
    [
        ("constant_sgd", 40),
        ("momentum_sgd", 442),
        ("constant_sgd", 442),
        ("momentum_sgd", 40),
    ],
)
@pytest.mark.quick("constant_sgd-40")
def test_a_linear_regression_by_name_is_conjugate(name, n_rows):
    """Minibatches of 500 rows, the default before, were all rows, and had no noise."""
    X, y = load_diabetes(return_X_y=True)
    X, y = scale(X)[:n_rows, :4], scale(y)[:n_rows]
    model = BayesianLinearRegression(
        name, prior_precision=1.0, intercept_precision=1.0, noise_variance=1.0, random_state=0
    )
    with warnings.catch_warnings(action="error", category=ConvergenceWarning):
        model.fit(X, y)
    mean, sd = conjugate(X, y)
    draws = model.draws_.astype(float)
    ess = np.minimum(diagnostics.ess_mean(draws), diagnostics.ess_mean((draws - mean) ** 2))
    found, found_sd = diagnostics.moments(draws)
    assert (np.abs(found - mean) / sd < 4 / np.sqrt(ess)).all()
    assert (np.abs(found_sd / sd - 1) < 4 / np.sqrt(2 * ess)).all()
    assert model.sampler_.batch_size == max(2, n_rows // 20)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["constant_sgd", "momentum_sgd"])
def test_classes_by_name_have_the_variance_that_only_the_prior_knows(name):
    """The common shift of three classes is N(0, 1 / precision) in the mean of the classes / 3."""
    X, y = load_iris(return_X_y=True)
    model = BayesianLogisticRegression(name, prior_precision=1.0, random_state=0)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model.fit(scale(X)[:, :2], y)
    shift = model.model_.unpack(model.draws_)["coef"].mean(axis=-2)[..., 0]
    assert shift.std() * np.sqrt(3) == pytest.approx(1.0, abs=0.1)
    assert not any("next to no noise" in said for said in model._warnings)
    assert abs(model.diagnostics_["stein_ratio"] - 1) < 0.1


@pytest.mark.slow
def test_langevin_by_name_runs_until_its_slowest_direction_has_mixed():
    """Condition number 100: a draw per step would leave some few effective draws."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2)) @ np.linalg.cholesky([[1.0, 0.98], [0.98, 1.0]]).T
    y = X @ [1.0, -1.0] + rng.standard_normal(300)
    model = BayesianLinearRegression(
        "sgld", prior_precision=1.0, intercept_precision=1.0, noise_variance=1.0, random_state=0
    )
    with warnings.catch_warnings(action="error", category=ConvergenceWarning):
        model.fit(X, y)
    assert model.sampler_.preconditioner == "diag"
    assert model.diagnostics_["ess_min"] > 100
    mean, sd = conjugate(X, y)
    found, found_sd = diagnostics.moments(model.draws_.astype(float))
    ess = diagnostics.ess_mean(model.draws_.astype(float))
    assert (np.abs(found - mean) / sd < 4 / np.sqrt(ess)).all()
    assert (found_sd / sd < 1.05 + 4 / np.sqrt(ess)).all()  # variances at most 10 % too large
    assert (found_sd / sd > 1 - 4 / np.sqrt(ess)).all()


@pytest.mark.slow
def test_averages_by_name_warn_where_the_sandwich_is_not_the_posterior():
    """Only the prior knows the common shift of three classes; rows have no noise there."""
    X, y = load_iris(return_X_y=True)
    model = BayesianLogisticRegression("iasg", prior_precision=1.0, random_state=0, n_draws=100)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(scale(X), y)
    assert any("IASG: theory expects from" in str(one.message) for one in said)
    assert model.sampler_.batch_size == 7


def test_a_fit_without_an_intercept_is_silent(capfd):
    """LAPACK writes to the terminal where it is given a matrix of no rows."""
    X = np.random.default_rng(0).standard_normal((40, 2))
    BayesianLogisticRegression(fit_intercept=False, random_state=0).fit(X, X[:, 0] > 0.3)
    assert capfd.readouterr() == ("", "")
