"""A parameter of a family at its limit: its normal score, and chains that move along it."""

import warnings
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

from skbayes_sg import (
    BayesianNegativeBinomialRegressor,
    BayesianRobustRegressor,
    VariationalEM,
    stored,
)
from skbayes_sg.data import InMemory
from skbayes_sg.models import BetaBinomial, NegativeBinomial, Poisson, Student
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.gaussian import find_mode
from skbayes_sg.posterior.normal_scores import has_steep_own, with_normal_score
from skbayes_sg.posterior.scored import ScoredPosterior
from skbayes_sg.posterior.targets import target_of
from skbayes_sg.samplers import UnderdampedLangevin


def bound(family, X, y):
    """The posterior of rows, of twelve trials each where they are successes, and its mode."""
    model = family(2)
    if family is BetaBinomial:
        X = np.column_stack([X, np.zeros(len(X)), np.full(len(X), 12.0)])
    data = replace(InMemory.of(X, y.astype(float)), n_known=X.shape[1] - 2)
    own = slice(model.dim - len(model.own), model.dim)
    precision, mean = np.full(model.dim, 0.1), np.zeros(model.dim)
    precision[own], mean[own] = np.array(model.own_sd) ** -2.0, model.own_mean
    posterior = Posterior(model, data, model.prior(precision, mean))
    start = model.guess(data.y, None, data.known)
    return posterior, find_mode(posterior, start, np.random.default_rng(0))


def at_limit(family, rng, n=600):
    """Rows of the limit of a family, and their posterior."""
    X = rng.standard_normal((n, 2))
    eta = 0.3 + X @ [0.4, -0.2]
    if family is Student:
        return bound(family, X, eta + rng.standard_normal(n))
    if family is NegativeBinomial:
        return bound(family, X, rng.poisson(np.exp(eta)))
    return bound(family, X, rng.binomial(12, 1 / (1 + np.exp(-eta))))


FAMILIES = [NegativeBinomial, Student, BetaBinomial]


@pytest.mark.parametrize("family", FAMILIES)
def test_derivatives_are_those_of_finite_differences(family, seed):
    rng = np.random.default_rng(seed)
    posterior, mode = at_limit(family, rng, 200)
    expansion = with_normal_score(posterior, mode)
    scored, h = ScoredPosterior(posterior, expansion.score), 1e-4
    x = expansion.score.transform(expansion.theta) + rng.normal(0, 0.05, mode.theta.shape)
    x[0, -1] += rng.normal()
    found, steps = scored.observed_expansion(x), h * np.eye(x.size)
    value, gradient = scored.logdensity_and_grad(x)
    assert found.log_prob == pytest.approx(value[0])
    np.testing.assert_allclose(found.gradient, gradient, atol=1e-7)
    numeric = (scored.log_prob(x + steps) - scored.log_prob(x - steps)) / (2 * h)
    np.testing.assert_allclose(gradient[0], numeric, atol=1e-5 * np.abs(numeric).max())
    ahead, behind = (scored.logdensity_and_grad(x + s)[1] for s in (steps, -steps))
    hessian = (behind - ahead) / (2 * h)
    atol = 1e-5 * np.abs(hessian).max()
    np.testing.assert_allclose(found.curvature.dense(), hessian, atol=atol)
    expected = scored.model.expected(np.zeros((1, 1 + len(scored.model.own), 3)) + 0.1)
    np.testing.assert_allclose(expected, expected.swapaxes(1, 2))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_marginal_density_of_the_score_is_normal(family, seed):
    """By normal approximations of the others at values between those that made it."""
    posterior, mode = at_limit(family, np.random.default_rng(seed), 200)
    expansion = with_normal_score(posterior, mode)
    scored, j = ScoredPosterior(posterior, expansion.score), mode.theta.size - 1
    x, others, density = expansion.score.transform(expansion.theta), np.arange(j), []
    places = np.arange(-3.75, 4.0, 0.75)
    for z in places:
        x[0, j] = z
        for _ in range(4):
            found = scored.observed_expansion(x)
            H = found.curvature.dense()[np.ix_(others, others)]
            x[0, others] += np.linalg.solve(H, found.gradient[0, others])
        density.append(found.log_prob - 0.5 * np.linalg.slogdet(H)[1])
    rest = np.array(density) - norm.logpdf(places)
    assert np.ptp(rest) < 0.05


def test_only_a_parameter_at_its_limit_is_steep(seed):
    rng, n = np.random.default_rng(seed), 4000
    X, rates = rng.standard_normal((n, 2)), rng.gamma(2.0, 1.0, n)
    assert has_steep_own(*bound(NegativeBinomial, X, rng.binomial(6, 0.3, n)))  # varies less
    assert not has_steep_own(*bound(NegativeBinomial, X, rng.poisson(rates)))
    assert not has_steep_own(*bound(Student, X, rng.standard_t(2, n)))


def test_a_family_without_own_parameters_has_none(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((100, 2))
    posterior = Posterior.of(Poisson(2), X, rng.poisson(1.0, 100).astype(float))
    mode = find_mode(posterior, np.zeros((1, 3)), rng)
    assert with_normal_score(posterior, mode) is None
    assert not has_steep_own(posterior, mode)


def test_a_target_is_the_posterior_in_other_coordinates(seed):
    """All rows in the pool: the gradient is that of the exact posterior, by the chain rule."""
    rng = np.random.default_rng(seed)
    posterior, mode = at_limit(NegativeBinomial, rng)
    expansion = with_normal_score(posterior, mode)
    target = target_of(posterior, expansion, UnderdampedLangevin())
    u = rng.standard_normal((3, mode.theta.size))
    theta = target.coordinates.inverse_transform(u)
    np.testing.assert_allclose(target.coordinates.transform(theta), u, atol=1e-6)
    value, gradient = target.logdensity_and_grad(u)
    x = expansion.score.transform(theta)
    exact = posterior.log_prob(theta) + expansion.score.log_volume(x)[0]
    np.testing.assert_allclose(value - value[0], exact - exact[0], atol=2e-3)
    steps = 1e-3 * np.eye(u.shape[1])
    numeric = [
        (
            target.logdensity_and_grad(point + steps)[0]
            - target.logdensity_and_grad(point - steps)[0]
        )
        / 2e-3
        for point in u
    ]
    np.testing.assert_allclose(gradient, numeric, atol=0.02)
    under = target.with_prior(posterior.prior.with_precision(posterior.prior.precision * 2))
    assert under.posterior.prior.precision[0] == 2 * posterior.prior.precision[0]
    np.testing.assert_array_equal(under.coordinates.inverse_transform(u), theta)


def test_an_expansion_with_a_score_can_be_kept_in_a_file(seed):
    posterior, mode = at_limit(NegativeBinomial, np.random.default_rng(seed), 100)
    expansion, file = with_normal_score(posterior, mode), BytesIO()
    stored.write(file, expansion)
    again = stored.read(file)
    x = expansion.score.transform(expansion.theta) + 0.5
    first, second = (e.score.inverse_transform(x) for e in (expansion, again))
    np.testing.assert_array_equal(first, second)


def test_variational_em_has_no_scores(seed):
    """It reads gradients in the coordinates of the model."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((150, 2)), rng.binomial(6, 0.3, 150)
    em = VariationalEM(n_updates=20)
    model = BayesianNegativeBinomialRegressor(prior_precision=em, n_draws=20, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert "normal score" not in model.fit(X, y).sampler_reason_


def test_the_predicted_covariance_is_to_first_order(seed):
    """That of the coefficients is the drawn one, and the score's is not."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((4000, 2)), rng.binomial(6, 0.3, 4000)
    model = BayesianNegativeBinomialRegressor(prior_precision=1.0, random_state=seed).fit(X, y)
    assert "normal score" in model.sampler_reason_
    drawn = np.cov(model.draws_.reshape(-1, 4)[:, :3].T)  # at 4,000 rows the line is steep
    predicted = model.predicted_covariance(X, y)[:3, :3]
    np.testing.assert_allclose(predicted.diagonal(), drawn.diagonal(), rtol=0.2)


@pytest.mark.parametrize(
    "estimator",
    [
        BayesianNegativeBinomialRegressor,
        pytest.param(BayesianRobustRegressor, marks=pytest.mark.slow),
    ],
)
def test_a_fit_at_the_limit_has_the_quantiles_of_long_runs(estimator, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((150, 2))
    eta = X @ [0.3, -0.2]
    negative = estimator is BayesianNegativeBinomialRegressor
    y = rng.poisson(np.exp(eta)) if negative else eta + rng.standard_normal(150)
    model = estimator(prior_precision=0.5, random_state=seed).fit(X, y)
    assert isinstance(model.sampler_, UnderdampedLangevin)
    long = estimator(prior_precision=0.5, sampler="hmc", n_draws=64, random_state=seed).fit(X, y)
    draws, exact = (m.draws_.reshape(-1, m.draws_.shape[-1]) for m in (model, long))
    error = 1 / np.sqrt(model.diagnostics_["ess_min"]) + 1 / np.sqrt(long.diagnostics_["ess_min"])
    sd = exact.std(axis=0)
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - exact.mean(axis=0)), 4 * error * sd)
    for level in (0.1, 0.9):  # sqrt(p (1 - p)) over the normal density there is 1.7
        away = np.quantile(draws, level, axis=0) - np.quantile(exact, level, axis=0)
        np.testing.assert_array_less(np.abs(away), 4 * 1.7 * error * sd)
