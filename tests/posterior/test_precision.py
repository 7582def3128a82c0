"""Coefficients and a sampled precision: their joint distribution, against quadrature."""

import numpy as np
import pytest
from scipy.special import digamma, polygamma
from sklearn.preprocessing import scale

from skbayes_sg import BayesianLinearRegression
from skbayes_sg.models import Linear
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.conjugate import Closed
from skbayes_sg.posterior.gaussian import expanded_twice, known_at
from skbayes_sg.posterior.target import ChainTarget
from skbayes_sg.priors.scales import OnePrecision

CERTAIN = 5.0  # Monte Carlo errors
PRECISION = OnePrecision(np.arange(4), np.zeros(4, int), ["coef"], 0.7)


def generated(n_rows=30, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    return X, X @ rng.standard_normal(n_features) + 2 * rng.standard_normal(n_rows)


def bound(noise_variance, intercept=True, lam=3.0):
    X, y = generated()
    model = Linear(4, intercept, noise_variance, (1.0, 1.0))
    precision = np.full(model.dim, lam)
    precision[4:] = 0.01
    posterior = Posterior(model, Posterior.of(model, X, y).data, model.prior(precision))
    anchor = expanded_twice(posterior, model.guess(y, None))
    return posterior, anchor, known_at(posterior, anchor)


def quadrature(X, y, noise_variance, intercept, rate=0.5 / 0.7, shape=0.5, noise=(1.0, 1.0)):
    """Mean and covariance of (theta, gamma, rho), by the normal equations for each precision."""
    A = np.column_stack([X, np.ones(len(X))]) if intercept else X
    least = 1e-3 * shape / rate
    rho, weight, means, covs = np.linspace(-14, 8, 3001), [], [], []
    for one in rho:
        known = np.append(np.full(X.shape[1], np.exp(one)), np.full(int(intercept), 0.01))
        precision = A.T @ A / (noise_variance or 1.0) + np.diag(known)
        mean = np.linalg.solve(precision, A.T @ y / (noise_variance or 1.0))
        energy = y @ y / (noise_variance or 1.0) - mean @ precision @ mean
        value = (shape + 0.5 * X.shape[1]) * one - rate * np.exp(one) - least * np.exp(-one)
        value -= 0.5 * np.linalg.slogdet(precision)[1]
        cov = np.linalg.inv(precision)
        if noise_variance:
            value -= 0.5 * energy
        else:
            a, b = noise[0] + 0.5 * len(y), noise[1] + 0.5 * energy
            value -= a * np.log(b)
            mean = np.append(mean, np.log(b) - digamma(a))
            cov = np.pad(cov * b / (a - 1), (0, 1))
            cov[-1, -1] = polygamma(1, a)
        weight.append(value)
        means.append(np.append(mean, one))
        covs.append(np.pad(cov, (0, 1)))
    weight = np.exp(weight - np.max(weight))
    weight /= weight.sum()
    mean = weight @ np.array(means)
    away = np.array(means) - mean
    return mean, np.einsum("g,gij->ij", weight, covs) + (away * weight[:, None]).T @ away


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("noise_variance", [None, 4.0])
@pytest.mark.quick("4.0-True", "None-False")
def test_draws_and_moments_are_those_of_quadrature(noise_variance, intercept):
    posterior, anchor, _ = bound(noise_variance, intercept)
    target = ChainTarget(Closed(posterior, anchor, PRECISION))
    mean, cov = quadrature(*generated(), noise_variance, intercept)
    draws = target.coordinates.inverse_transform(
        target.closed_form.draw(np.random.default_rng(0), 40_000)
    )
    values, vectors = np.linalg.eigh(cov)
    z = (draws - mean) @ vectors / np.sqrt(values)
    assert np.abs(z.mean(axis=0)).max() < CERTAIN / 200
    spread = np.sqrt((z**4).mean(axis=0).max())
    assert np.abs(z.T @ z / len(z) - np.eye(len(mean))).max() < CERTAIN * spread / 200
    exact = target.coordinates.whitened.covariance(target.closed_form.covariance)
    np.testing.assert_allclose(exact, cov[:-1, :-1], rtol=1e-3, atol=1e-3 * cov.max())
    assert target.closed_form.mean == pytest.approx(mean[-1], abs=1e-3)
    assert target.closed_form.sd == pytest.approx(cov[-1, -1] ** 0.5, rel=1e-3)


def under(posterior, rho):
    return posterior.with_prior(PRECISION.given(posterior.prior, np.array([rho])))


@pytest.mark.parametrize("noise_variance", [None, 4.0])
def test_the_gradient_is_that_of_the_density_and_the_density_that_of_the_posterior(noise_variance):
    posterior, anchor, _ = bound(noise_variance)
    target = ChainTarget(Closed(posterior, anchor, PRECISION))
    rng = np.random.default_rng(0)
    x, v = rng.standard_normal((2, 5, target.dim)) * 0.5
    if noise_variance is None:
        x[:, -2] += anchor.theta[0, -1]
    up, down = (target.closed_form.log_density(x + step * v) for step in (1e-5, -1e-5))
    slope = (target.closed_form.gradient(x) * v).sum(axis=1)
    np.testing.assert_allclose((up - down) / 2e-5, slope, rtol=1e-5, atol=1e-5)
    theta = target.coordinates.inverse_transform(x)
    expected = [
        posterior.with_prior(PRECISION.given(posterior.prior, one[-1:])).log_prob(one[None, :-1])
        + PRECISION.log_density(one[None, -1:])
        for one in theta
    ]
    found = target.closed_form.log_density(x)
    np.testing.assert_allclose(found - found[0], np.ravel(expected) - expected[0], rtol=1e-7)


@pytest.mark.parametrize("n_features", [20, 60])
@pytest.mark.quick("20")
def test_rows_that_are_met_exactly_leave_a_proper_distribution(n_features):
    """With more columns than rows the squares left go to zero with the precision."""
    rng = np.random.default_rng(0)
    X = scale(rng.standard_normal((30, n_features)))
    y = X[:, 0] + rng.standard_normal(30)
    model = BayesianLinearRegression(random_state=0, fit_intercept=False).fit(X, y)
    rho = np.log(model.prior_precision_draws_.ravel())
    rate = 0.5 / (n_features / 10)  # under the weak prior outputs have a variance of 10
    mean, cov = quadrature(X, y, None, False, rate, 0.5, (1e-6, 1e-6 * np.var(y)))
    assert rho.mean() == pytest.approx(mean[-1], abs=CERTAIN * rho.std() / np.sqrt(len(rho)))
    assert rho.std() == pytest.approx(cov[-1, -1] ** 0.5, rel=0.1)


def test_the_precision_does_not_depend_on_units_and_noise_is_bounded_from_above():
    """Of columns of no use: at most a few times that of the weak prior, which is its scale."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 12)), rng.standard_normal(300)
    fits = [
        BayesianLinearRegression(random_state=0).fit(X * unit, y).prior_precision_blocks_["coef"]
        for unit in (1.0, 1e-3)
    ]
    assert fits[0] == pytest.approx(fits[1], rel=1e-9)
    assert 2 < fits[0] < 20
