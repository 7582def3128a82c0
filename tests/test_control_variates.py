"""Gradients corrected at an anchor, and SGFS on them."""

import math
import re
import warnings

import numpy as np
import pytest
from conftest import logistic_data, second_moments, z_scores
from sklearn.exceptions import ConvergenceWarning

from skbayes_sg import (
    BayesianLinearRegressionSGFS,
    BayesianLogisticRegressionSGFS,
    control_variates,
)
from skbayes_sg.anchor import find_mode
from skbayes_sg.chains import run_chain
from skbayes_sg.control_variates import AnchoredPosterior
from skbayes_sg.layouts import FULL
from skbayes_sg.models import Linear, Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import HMC, SGFS, SGLD

CV = {"variance_reduction": "control_variate"}


def anchored(posterior):
    mode = find_mode(posterior, np.zeros((1, posterior.dim)), np.random.default_rng(0))
    curvature = posterior.expand(mode.theta, FULL).curvature
    return AnchoredPosterior.at(posterior, mode._replace(curvature=curvature))


@pytest.fixture(scope="module")
def binary():
    X, y = logistic_data(2000, 3)
    return Posterior.of(Softmax(3, 2), X, y, 1.0)


@pytest.fixture(scope="module")
def regression():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((2000, 3)) @ (np.eye(3) + 0.4 * rng.standard_normal((3, 3)))
    y = X @ rng.standard_normal(3) + 1.2 * rng.standard_normal(2000)
    return Posterior.of(Linear(3, fit_intercept=False, noise_variance=1.5), X, y, 2.0)


def posteriors():
    X, y = logistic_data(400, 3)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 400)
    yield "binary", Posterior.of(Softmax(3, 2), X, y, 1.0)
    yield "weighted", Posterior.of(Softmax(3, 2), X, y, 1.0, weight)
    yield "three classes", Posterior.of(Softmax(3, 3), X, np.arange(400) % 3, 1.0)
    yield "regression", Posterior.of(Linear(3), X, X[:, 0] + y, 1.0)


# -- the gradient -----------------------------------------------------------------------------


@pytest.mark.parametrize("posterior", [pytest.param(p, id=name) for name, p in posteriors()])
def test_gradients_are_unbiased_and_scores_are_differences(posterior, seed):
    mine = anchored(posterior)
    rng = np.random.default_rng(seed)
    theta = mine.anchor.theta + 0.1 * rng.standard_normal((3, posterior.dim))
    full = posterior.full_gradient(theta)
    np.testing.assert_allclose(mine.full_gradient(theta), full, rtol=1e-9, atol=1e-8)
    rows = np.arange(30)
    difference = posterior.scores(theta, rows).rows(1) - posterior.scores(
        mine.anchor.theta, rows
    ).rows(0)
    np.testing.assert_allclose(mine.scores(theta, rows).rows(1), difference, atol=1e-12)
    stream = mine.minibatches(20, False, rng, 3)
    draws = np.array([mine.gradient(theta, mine.scores(theta, stream.draw())) for _ in range(3000)])
    assert np.abs(z_scores(draws, full)).max() < 5
    at_anchor = np.repeat(mine.anchor.theta, 2, axis=0)
    exact = posterior.full_gradient(at_anchor)
    np.testing.assert_allclose(
        mine.gradient(at_anchor, mine.scores(at_anchor, stream.draw())), exact, atol=1e-8
    )


@pytest.mark.parametrize("posterior", [pytest.param(p, id=name) for name, p in posteriors()])
def test_mean_noise_is_that_over_the_laplace_approximation(posterior):
    mine = anchored(posterior)
    rng = np.random.default_rng(1)
    root = np.linalg.cholesky(np.linalg.inv(mine.anchor.curvature.dense()))
    each = []
    for _ in range(400):
        theta = mine.anchor.theta + (root @ rng.standard_normal(posterior.dim))[None]
        each.append(np.cov(mine.scores(theta, slice(None)).rows().T))
    expected, found = np.mean(each, axis=0), mine.anchor.noise.dense()
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    spread = np.linalg.norm(np.std(each, axis=0) / 20) / np.linalg.norm(expected)
    assert (
        error < 5 * spread + 0.03
    )  # the points have the second moments of the draws, not their fourth


def test_noise_number_is_that_of_the_fourth_moments(regression, monkeypatch):
    """Mean square leverage; D + 1 for Gaussian rows."""
    mine = anchored(regression)
    inverse = np.linalg.inv(mine.anchor.curvature.dense())
    leverage = np.einsum("ij,jk,ik->i", regression.data.X, inverse, regression.data.X) / 1.5
    share = inverse @ regression.data.X.T @ regression.data.X / 1.5  # of the data in the curvature
    kappa = 2000 * np.sum(leverage**2) / 3 - np.trace(share @ share) / 3
    assert mine.anchor.noise_number() == pytest.approx(kappa, rel=1e-3)
    assert kappa == pytest.approx(4.0, rel=0.2)
    assert mine.anchor.largest_row() == pytest.approx(2000 * leverage.max())
    monkeypatch.setattr(control_variates, "_EXACT_LEVERAGE", 0)
    assert mine.anchor.largest_row() == pytest.approx(2000 * leverage.max(), rel=0.6)


# -- the law of the chain ---------------------------------------------------------------------


def groups(sampler, posterior, seed, n_groups=16, n_draws=600, thin=3):
    """Draws of independent groups of chains that share rows, (groups, chains, draws, D)."""
    out = []
    for stream in np.random.SeedSequence(seed).spawn(n_groups):
        theta = np.repeat(posterior.anchor.theta, 4, axis=0)
        state = sampler.init(posterior, theta, np.random.default_rng(stream))
        out.append(
            run_chain(sampler, posterior, state, n_draws=n_draws, burn_in=100, thin=thin).draws
        )
    return np.array(out)


@pytest.mark.parametrize("batch_size", ["auto", 8, 200])
@pytest.mark.parametrize("replace", [False, True])
def test_linear_regression_is_exact_for_every_batch_size(regression, batch_size, replace, seed):
    mine = anchored(regression)
    sampler = SGFS(batch_size=batch_size, replace=replace, **CV)
    sampler.settle(mine)
    Lam = mine.anchor.curvature.dense()
    draws = groups(sampler, mine, seed)
    moments = np.array([second_moments(d, mine.anchor.theta[0]).mean(axis=0) for d in draws])
    assert np.abs(z_scores(moments, np.linalg.inv(Lam))).max() < 5
    assert np.abs(z_scores(draws.mean(axis=(1, 2)), mine.anchor.theta[0])).max() < 5


def test_without_the_noise_in_the_preconditioner_variances_are_too_large(regression, seed):
    """It is indispensable there."""
    mine = anchored(regression)
    mine.anchor.differences.__dict__["noise"] = mine.anchor.noise * 0.0
    sampler = SGFS(alpha=1.0, batch_size=4, **CV)
    draws = groups(sampler, mine, seed, n_groups=4)
    ratio = (
        np.trace(
            second_moments(draws.reshape(1, -1, 3), mine.anchor.theta[0])[0]
            @ mine.anchor.curvature.dense()
        )
        / 3
    )
    assert ratio > 1.3


def test_logistic_regression_against_hmc(binary, seed):
    mine = anchored(binary)
    sampler = SGFS(**CV)
    sampler.settle(mine)
    draws = groups(sampler, mine, seed, n_draws=1500).reshape(-1, 4)
    hmc = HMC()
    state = hmc.init(binary, np.repeat(mine.anchor.theta, 8, axis=0), np.random.default_rng(seed))
    exact = run_chain(hmc, binary, state, n_draws=4000, burn_in=300).draws.reshape(-1, 4)
    sd = exact.std(axis=0)
    assert np.abs((draws.mean(axis=0) - exact.mean(axis=0)) / sd).max() < 0.05
    assert np.abs(draws.std(axis=0) / sd - 1).max() < 0.03


def test_chains_that_share_rows_are_uncorrelated(binary, seed):
    mine = anchored(binary)
    sampler = SGFS(**CV)
    sampler.settle(mine)
    draws = groups(sampler, mine, seed, n_draws=2000)
    centred = draws - mine.anchor.theta
    products = (centred[:, 0] * centred[:, 1]).mean(axis=1) / (centred[:, 0] ** 2).mean(axis=1)
    assert np.abs(z_scores(products, 0.0)).max() < 5


# -- choices ----------------------------------------------------------------------------------


def test_settings_follow_from_the_noise_number(binary):
    mine = anchored(binary)
    kappa = mine.anchor.noise_number()
    sampler = SGFS(**CV)
    sampler.settle(mine)
    assert sampler.batch_size == max(32, round(kappa), math.ceil(mine.anchor.largest_row() / 4))
    assert sampler.alpha**2 + kappa / sampler.batch_size == pytest.approx(3.0)
    small = SGFS(batch_size=4, **CV)
    small.settle(mine)
    assert small.alpha**2 == pytest.approx(max(3 - kappa / 4, kappa / 2))
    plain = SGFS()
    plain.settle(binary)
    assert (plain.alpha, plain.batch_size) == (0.0, 500)


def test_refused_with_figures_where_it_does_not_pay():
    X, y = logistic_data(150, 3)
    with pytest.raises(
        ValueError, match=r"do not pay: the 150 rows are fewer than 2 \(n w \+ kappa\) = \d+"
    ):
        BayesianLogisticRegressionSGFS(SGFS(**CV)).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"structure": "diag"}, 'structure="full"'),
        ({"variant": "paper"}, 'variant="exact"'),
        ({"alpha": 0.0}, "alpha must be positive"),
    ],
)
def test_impossible_combinations_are_named(binary, parameters, message):
    with pytest.raises(ValueError, match=message):
        SGFS(**parameters, **CV).validate(binary)
    with pytest.raises(ValueError, match="variance_reduction must be"):
        SGFS(variance_reduction="saga").validate(binary)
    with pytest.raises(ValueError, match="variance_reduction must be"):
        SGLD(variance_reduction="saga").validate(binary)


# -- in the estimators ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many():
    X, y = logistic_data(8000, 4)
    return X, y


def test_the_default_shows_its_choice_and_why(many):
    model = BayesianLogisticRegressionSGFS(random_state=0).fit(*many)
    assert model.sampler_.variance_reduction == "control_variate"
    assert model.sampler_.batch_size >= 32
    assert "more effective draws than they cost" in model.sampler_reason_
    assert model.diagnostics_["ess_per_pass"] > 25
    few = BayesianLogisticRegressionSGFS(n_draws=50, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert "few" in few.fit(many[0][:500], many[1][:500]).sampler_reason_
        given = BayesianLogisticRegressionSGFS("sgfs", n_draws=50, random_state=0).fit(*many)
    assert given.sampler_reason_.startswith('"sgfs" stands for SGFS(): exact')


def test_predicted_covariance_with_control_variates(many):
    X, y = many
    model = BayesianLogisticRegressionSGFS(n_draws=2000, random_state=0).fit(X, y)
    ratio = model.draws_.reshape(-1, 5).var(axis=0) / model.predicted_covariance(X, y).diagonal()
    assert np.abs(ratio - 1).max() < 0.08


def test_sgld_takes_control_variates(many):
    model = BayesianLogisticRegressionSGFS(
        SGLD(preconditioner="diag", **CV), n_draws=2000, thin=5, random_state=0
    )
    model.fit(*many)
    exact = BayesianLogisticRegressionSGFS(n_draws=2000, random_state=0).fit(*many)
    assert np.abs(model.coef_std_ / exact.coef_std_ - 1).max() < 0.15
    assert model.diagnostics_["stein_ratio"] == pytest.approx(1.0, abs=0.12)


@pytest.mark.parametrize("rows", ["sorted", "duplicated", "leverage", "heavy tails"])
def test_odd_rows_are_sampled_rightly_or_warned_of(rows, seed):
    """Against the exact conjugate posterior: variances within 15 %, or a warning of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((9000, 4))
    y = X.sum(axis=1) + rng.standard_normal(9000)
    if rows == "sorted":
        order = np.argsort(y)
        X, y = X[order], y[order]
    elif rows == "duplicated":
        X, y = np.repeat(X[:900], 10, axis=0), np.repeat(y[:900], 10)
    elif rows == "leverage":
        X[17] *= 1000
        y[17] = X[17].sum()
    else:
        X = rng.standard_t(2.5, size=(9000, 4))
        y = X.sum(axis=1) + rng.standard_normal(9000)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = BayesianLinearRegressionSGFS(noise_variance=1.0, random_state=seed).fit(X, y)
    Z = np.column_stack([X, np.ones(9000)])
    cov = np.linalg.inv(Z.T @ Z + np.diag([1, 1, 1, 1, 1e-6]))
    values, vectors = np.linalg.eigh(cov)
    ratio = (model.draws_.reshape(-1, 5) @ vectors).var(axis=0) / values
    said = any(re.search("stein_ratio|r_hat_max|ess_min", str(w.message)) for w in heard)
    assert said or np.abs(ratio - 1).max() < 0.15, (
        rows,
        ratio,
        model.sampler_,
        model.sampler_reason_,
    )
    assert not heard or rows in ("leverage", "heavy tails")
