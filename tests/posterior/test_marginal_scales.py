"""Hyperparameters beside normal parameters: their density, against integrals over these."""

import numpy as np
import pytest

from skbayes_sg import BayesianLinearRegression, BayesianRobustRegressor
from skbayes_sg.models import Linear
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.conjugate import Quadratic
from skbayes_sg.posterior.gaussian import expanded_twice, known_at
from skbayes_sg.posterior.marginal_scales import MarginalScales
from skbayes_sg.posterior.precision import JointDistribution
from skbayes_sg.posterior.target import ChainTarget
from skbayes_sg.priors.scales import Groups, OnePrecision


def made(noise_variance, kind=Groups):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    X[:, 2:] += 3 * X[:, :2]  # columns of one group follow those of the other
    X *= 0.3
    y = X @ [1.0, -1.0, 0.1, 0.2] + rng.standard_normal(40)
    model = Linear(4, True, noise_variance, (1.0, 1.0))
    prior = model.prior(np.append(np.full(4, 2.0), [0.01] * (model.dim - 4)))
    posterior = Posterior(model, Posterior.of(model, X, y).data, prior)
    distribution = known_at(posterior, expanded_twice(posterior, model.guess(y, None)))
    group = np.array([0, 0, 1, 1]) if kind is Groups else np.zeros(4, int)
    scales = kind(np.arange(4), group, ["a", "b"][: group.max() + 1], 0.7)
    return posterior, scales, distribution


@pytest.mark.parametrize("noise_variance", [None, 1.5])
def test_the_gradient_is_that_of_the_density_and_vanishes_at_the_mode(noise_variance):
    posterior, scales, distribution = made(noise_variance)
    marginal = MarginalScales(scales, distribution, posterior.prior)
    eta = np.array([0.3, -0.8])
    _, gradient = marginal.log_density(eta)
    for k, step in enumerate(1e-5 * np.eye(2)):
        slope = (marginal.log_density(eta + step)[0] - marginal.log_density(eta - step)[0]) / 2e-5
        assert gradient[k] == pytest.approx(slope, rel=1e-5)
    mode = marginal.mode(eta[None])
    np.testing.assert_allclose(marginal.log_density(mode)[1], 0.0, atol=1e-3)
    h = 1e-3
    for k, step in enumerate(h * np.eye(2)):
        ends = [marginal.log_density(mode + sign * step)[0] for sign in (1, -1)]
        curvature = -(sum(ends) - 2 * marginal.log_density(mode)[0]) / h**2
        assert marginal.width(mode)[k] == pytest.approx(curvature**-0.5, rel=0.05)


@pytest.mark.parametrize("noise_variance", [None, 1.5])
def test_one_precision_has_the_distribution_on_a_grid(noise_variance):
    posterior, scales, distribution = made(noise_variance, OnePrecision)
    marginal = MarginalScales(scales, distribution, posterior.prior)
    joint, _ = JointDistribution.of(distribution, posterior.prior, scales)
    rho = np.linspace(-3, 3, 7)
    found = np.array([marginal.log_density(one[None])[0] for one in rho])
    grid, share = joint._grid
    expected = np.interp(rho, grid, np.log(share))
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-3)
    mode = marginal.mode(np.zeros((1, 1)))
    values, below = marginal.distributions(mode, marginal.width(mode))
    levels = np.array([0.005, 0.1, 0.5, 0.9, 0.995])
    quantiles = np.interp(levels, below[0], values[0])
    np.testing.assert_allclose(quantiles, joint.quantiles(levels), atol=0.01 * joint.sd)


def test_what_is_known_of_groups_sums_to_what_is_known():
    posterior, scales, distribution = made(1.5)
    marginal = MarginalScales(scales, distribution, posterior.prior)
    known = marginal.known(scales.of(posterior.prior))
    covariance = distribution.operator.inverse().dense().diagonal()[:4]
    np.testing.assert_allclose(known.sum(), (1 - 2.0 * covariance).sum(), rtol=1e-9)


def test_precisions_that_are_known_give_the_posterior_under_them():
    """The intercept too, which no precision shrinks, and which goes with coefficients here."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 4)) + np.array([4.0, -3.0, 0.0, 2.0])
    y = 5.0 + X @ [1.0, -1.0, 0.5, 0.2] + rng.standard_normal(30)
    model = Linear(4, True, 1.5, (1.0, 1.0))
    scales = Groups(np.arange(4), np.array([0, 0, 1, 1]), ["a", "b"], 0.7)

    def under(precision):
        prior = model.prior(np.append(precision, np.full(model.dim - 4, 0.01)))
        posterior = Posterior.of(model, X, y).with_prior(prior)
        return prior, known_at(posterior, expanded_twice(posterior, model.guess(y, None)))

    prior, distribution = under(np.full(4, 2.0))
    eta = np.array([0.3, -0.8])
    mean, precision = MarginalScales(scales, distribution, prior).over(eta, np.full(2, 1e-9))
    _, expected = under(np.exp(scales.log_precisions(eta[None])[0])[scales.group])
    np.testing.assert_allclose(mean, expected.mean, rtol=1e-6)
    np.testing.assert_allclose(precision.dense(), expected.operator.dense(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("n_levels", "spread"), [(3, 1.0), (30, 0.0)])
def test_the_moments_over_a_precision_are_those_of_an_integral_over_all_of_them(n_levels, spread):
    """Few levels have any small precision, and levels that may all be alike any large one."""
    rng = np.random.default_rng(8)
    member = np.arange(150) % n_levels
    X = (member[:, None] == np.arange(n_levels)).astype(float)
    y = 1.0 + X @ (spread * rng.standard_normal(n_levels)) + rng.standard_normal(150)
    model = Linear(n_levels, True, 1.0, (1.0, 1.0))
    scales, free = Groups(np.arange(n_levels), np.zeros(n_levels, int), ["a"], 0.7), 0.01
    prior = model.prior(np.append(np.full(n_levels, 2.0), free))
    posterior = Posterior.of(model, X, y).with_prior(prior)
    distribution = known_at(posterior, expanded_twice(posterior, model.guess(y, None)))
    marginal = MarginalScales(scales, distribution, prior)
    mode = marginal.mode(np.zeros((1, 1)))
    mean, precision = marginal.over(mode, marginal.width(mode))

    eta, moments = np.linspace(-25, 30, 276), []
    columns = np.column_stack([X, np.ones(150)])
    for lam in np.exp(scales.log_precisions(eta[:, None]).ravel()):
        given = np.append(np.full(n_levels, lam), free)
        covariance = np.linalg.inv(columns.T @ columns + np.diag(given))
        middle = covariance @ columns.T @ y
        log_det = np.linalg.slogdet(covariance)[1]  # that of the prior is in `scales`
        moments.append((0.5 * (log_det + y @ columns @ middle), middle, covariance))
    values, means, covariances = map(np.array, zip(*moments, strict=True))
    values += scales.log_density(eta[:, None])
    share = np.exp(values - values.max())
    share /= share.sum()
    expected = share @ means
    spread_of_means = (share[:, None] * (means - expected)).T @ (means - expected)
    variance = (np.tensordot(share, covariances, 1) + spread_of_means).diagonal()
    np.testing.assert_allclose(mean, expected, atol=0.01 * np.sqrt(variance.min()))
    found = precision.inverse().diagonal()
    np.testing.assert_allclose(found[:n_levels], variance[:n_levels], rtol=0.01)
    np.testing.assert_allclose(found[n_levels], variance[n_levels], rtol=0.02)


@pytest.mark.parametrize("noise_variance", [None, 1.5])
def test_the_density_in_units_of_the_noise_has_its_gradient(noise_variance):
    """Far from the prior mean too, which moves with the noise there."""
    posterior, scales, _ = made(noise_variance)
    mean = np.append([3.0, -2.0, 1.0, 0.0, 5.0], np.zeros(posterior.dim - 5))
    far = posterior.model.prior(posterior.prior.precision, mean)
    posterior = posterior.with_prior(far)
    mode = expanded_twice(posterior, posterior.model.guess(posterior.data.y, None))
    target = ChainTarget(Quadratic(posterior, mode, scales))
    theta = 0.5 * np.random.default_rng(1).standard_normal((3, posterior.dim))
    _, gradient = target.logdensity_and_grad(theta)
    value = [
        np.stack([target.logdensity_and_grad(theta + h * e)[0] for e in np.eye(posterior.dim)], 1)
        for h in (1e-5, -1e-5)
    ]
    np.testing.assert_allclose(gradient, (value[0] - value[1]) / 2e-5, rtol=1e-5, atol=1e-4)
    at = target.coordinates.inverse_transform(theta)
    expected = posterior.log_prob(at)
    if noise_variance is None:  # five coefficients are as many times their standard deviation
        expected = expected + 0.5 * 5 * at[:, -1]
    found = target.logdensity_and_grad(theta)[0]
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("far", [1e4, 1e5])
@pytest.mark.parametrize("cls", [BayesianLinearRegression, BayesianRobustRegressor])
@pytest.mark.parametrize("groups", [None, {"a": [0, 1], "levels": [2, 3, 4]}])
@pytest.mark.quick("100000.0")
def test_columns_far_from_zero_leave_the_precisions_of_a_stream(cls, groups, far):
    """An intercept is tied to them, by which rows know coefficients as small differences."""
    rng = np.random.default_rng(7)
    numbers, levels = rng.standard_normal((120, 2)), np.eye(3)[np.arange(120) % 3]
    y = numbers @ [1.0, -0.5] + levels @ [1.0, 0.0, -0.6] + rng.standard_normal(120)
    near, shifted = (cls(prior_groups=groups, random_state=0) for _ in range(2))
    for rows in np.split(np.arange(120), 3):
        near.partial_fit(np.column_stack([numbers, levels])[rows], y[rows])
        shifted.partial_fit(np.column_stack([numbers + far, levels])[rows], y[rows])
    np.testing.assert_allclose(shifted.coef_, near.coef_, atol=1e-3)
    np.testing.assert_allclose(shifted.coef_std_, near.coef_std_, rtol=1e-3)
