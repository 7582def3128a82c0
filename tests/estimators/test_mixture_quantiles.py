"""Quantiles of mixtures of distributions of y, beside their distribution functions."""

import numpy as np
import pytest
from scipy import stats

from skbayes_sg import BayesianGammaRegressor
from skbayes_sg.estimators.mixture_predictions import Mixture
from skbayes_sg.estimators.mixture_quantiles import (
    _AGREED,
    SharedParameters,
    gauss_rules,
    mixture_quantiles,
)
from skbayes_sg.models import Gamma, Linear, NegativeBinomial, Poisson, Student
from skbayes_sg.models.log_link import LogLink

LEVELS = np.array([0.005, 0.025, 0.3, 0.5, 0.9, 0.975])
OWN = {Poisson: [], NegativeBinomial: [-1.0], Gamma: [-1.0], Linear: [0.2], Student: [0.0, 1.0]}


def a_mixture(cls, spread, seed, weighted=False, n_draws=800):
    """Rows whose predictors have skewed draws, that depend on those of the shared parameters.

    Their sd is `spread` for a usual row. One in ten rows is five times as far out.
    """
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n_draws, 4 + len(OWN[cls])))
    z[:, :3] += 0.3 * (z[:, :3] ** 2 - 1)
    z[:, 4:] += 0.4 * z[:, :1]
    draws = spread * z / 2
    draws[:, :4] += [0.5, -0.3, 0.0, 1.0]
    draws[:, 4:] += OWN[cls]
    X = rng.standard_normal((20, 3)) * np.where(np.arange(20) % 10, 1.0, 5.0)[:, None]
    weights = rng.dirichlet(np.ones(n_draws)) if weighted else np.full(n_draws, 1 / n_draws)
    return Mixture(cls(3), X, draws, weights, X.dtype)


def test_positive_numbers_neither_overflow_nor_underflow():
    """Quantiles of a Gamma variable are the mean's multiples, however large or small it is."""
    mixture = a_mixture(Gamma, 0.3, 0)
    expected = np.log(mixture_quantiles(mixture, LEVELS)[0])
    for shift in (-700.0, 700.0):
        moved = mixture._replace(draws=mixture.draws + shift * (np.arange(5) == 3))
        found = np.log(mixture_quantiles(moved, LEVELS)[0])
        np.testing.assert_allclose(found, expected + shift, atol=1e-3)
    for shift, end in ((-1e4, 0.0), (1e4, np.inf)):
        moved = mixture._replace(draws=mixture.draws + shift * (np.arange(5) == 3))
        assert (mixture_quantiles(moved, LEVELS)[0] == end).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("spread", [0.03, 0.3, 1.0])
@pytest.mark.parametrize("cls", OWN)
@pytest.mark.quick("0.03", "0.3")
def test_probabilities_below_quantiles_are_the_levels(cls, spread, weighted, seed):
    mixture = a_mixture(cls, spread, seed, weighted)
    ends, width = mixture_quantiles(mixture, LEVELS)
    outputs = mixture.model.outputs(mixture.draws, mixture.X)
    np.testing.assert_allclose(
        width, mixture.weights @ mixture.model.width(outputs), rtol=0.1 * spread
    )

    def below(y):
        return mixture.weights @ mixture.model.distribution(y, outputs)

    for end, level in zip(ends.T, LEVELS, strict=True):
        if mixture.model.counts:
            assert (end == np.rint(end)).all()
            assert (below(end) > level - _AGREED).all()
            assert (below(end - 1) < level + _AGREED).all()
        else:
            np.testing.assert_allclose(below(end), level, atol=_AGREED)


@pytest.mark.parametrize("n_draws", [1, 2, 9, 33])
def test_few_draws_are_all_taken(n_draws):
    mixture = a_mixture(Gamma, 0.5, 0, n_draws=n_draws)
    ends, _ = mixture_quantiles(mixture, LEVELS)
    outputs = mixture.model.outputs(mixture.draws, mixture.X)
    for end, level in zip(ends.T, LEVELS, strict=True):
        below = mixture.weights @ mixture.model.distribution(end, outputs)
        np.testing.assert_allclose(below, level, atol=_AGREED)


@pytest.mark.parametrize("n_nodes", [2, 4, 8])
def test_a_gauss_rule_has_the_moments_of_the_draws(n_nodes):
    rng = np.random.default_rng(0)
    eta, weights = rng.gamma(2.0, size=(500, 3)) * [1.0, 0.0, 1e4], rng.dirichlet(np.ones(500))
    fine, coarse = gauss_rules(
        eta, weights, SharedParameters.of(np.empty((500, 0)), weights, 2), n_nodes
    )
    sd = np.sqrt(weights @ (eta - weights @ eta) ** 2)
    centre, unit = weights @ eta, np.where(sd > 0, sd, 1.0)
    for rule, n in ((fine, n_nodes), (coarse, n_nodes - 1)):
        assert rule.outputs.shape == (n, 1, 3)
        z = (rule.outputs[:, 0] - centre) / unit
        for power in range(2 * n):
            moment = weights @ ((eta - centre) / unit) ** power
            np.testing.assert_allclose(rule.mean(z**power), moment, rtol=1e-3, atol=1e-5)


def test_groups_of_draws_have_mean_and_variance_of_all():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((1000, 2)) @ [[1.0, 0.5], [0.0, 0.1]] + [3.0, -2.0]
    weights = rng.dirichlet(np.full(1000, 5.0))
    shared = SharedParameters.of(values, weights, 4)
    assert sorted(np.concatenate(shared.groups)) == list(range(1000))
    share = [weights[group].sum() for group in shared.groups]
    for each in (shared.values, shared.coarse):
        covariance = np.cov(values.T, aweights=weights, ddof=0)
        found = np.cov(each.T, aweights=share, ddof=0)
        np.testing.assert_allclose(found, covariance, atol=0.02 * np.trace(covariance))
        np.testing.assert_allclose(share @ each, weights @ values, atol=0.05)


class Dice(LogLink):
    """Multiples of a third, which it does not say are counts."""

    asked = 0

    def value(self, outputs, y):
        raise NotImplementedError

    residual = observed_at = value

    def expected(self, outputs):
        raise NotImplementedError

    def variance(self, outputs):
        return self.mean(outputs)

    def distribution(self, y, outputs):
        self.asked += 1
        return stats.poisson.cdf(np.floor(3 * y), self.mean(outputs))

    def draw(self, outputs, rng):
        raise NotImplementedError


def test_the_search_ends_where_the_distribution_function_jumps():
    """Its lower ends were 8e-308 in place of 0, after a thousand steps."""
    mixture = a_mixture(Poisson, 0.1, 0)
    mixture = mixture._replace(model=Dice(3))
    ends, _ = mixture_quantiles(mixture, LEVELS)
    assert mixture.model.asked < 1000
    counts, _ = mixture_quantiles(a_mixture(Poisson, 0.1, 0), LEVELS)
    np.testing.assert_allclose(3 * ends, counts, atol=1e-5)


def test_intervals_are_of_the_draws_of_all_chains():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    model = BayesianGammaRegressor(n_chains=8, n_draws=50, random_state=0)
    model.fit(X, rng.gamma(2.0, np.exp(X[:, 0])))
    for kind in ("observation", "mean"):
        before = model.predict_interval(X, kind=kind)
        for chain in (0, 7):  # as if it had found other coefficients
            intercepts = model.intercept_samples_[chain]
            intercepts += 3
            assert (model.predict_interval(X, kind=kind)[:, 1] > 1.3 * before[:, 1]).all()
            intercepts -= 3
