"""Quantiles of mixtures of distributions of y, beside their distribution functions."""

import numpy as np
import pytest
from scipy import stats

from skbayes_sg import BayesianGammaRegressor
from skbayes_sg.diagnostics.draws import Draws
from skbayes_sg.estimators.mixture_predictions import Mixture
from skbayes_sg.estimators.mixture_quantiles import (
    _PROMISED,
    ProductRules,
    gauss_rule,
    mixture_quantiles,
    orthonormal,
)
from skbayes_sg.models import Gamma, Linear, NegativeBinomial, Poisson, Student
from skbayes_sg.models.log_link import LogLink

LEVELS = np.array([0.005, 0.025, 0.3, 0.5, 0.9, 0.975])
OWN = {Poisson: [], NegativeBinomial: [-1.0], Gamma: [-1.0], Linear: [0.2], Student: [0.0, 1.0]}


def a_mixture(cls, spread, seed, evenness=np.inf, n_draws=800, n_rows=20):
    """Rows whose predictors have skewed draws, that depend on those of the shared parameters.

    Their sd is `spread` for a usual row. One in ten rows is five times as far out. Weights of draws
    have the coefficient of variation ``evenness^-0.5``.
    """
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n_draws, 4 + len(OWN[cls])))
    z[:, :3] += 0.3 * (z[:, :3] ** 2 - 1)
    z[:, 4:] += 0.4 * z[:, :1]
    draws = spread * z / 2
    draws[:, :4] += [0.5, -0.3, 0.0, 1.0]
    draws[:, 4:] += OWN[cls]
    X = rng.standard_normal((n_rows, 3)) * np.where(np.arange(n_rows) % 10, 1.0, 5.0)[:, None]
    even = np.full(n_draws, 1 / n_draws)
    weights = even if evenness == np.inf else rng.dirichlet(np.full(n_draws, evenness))
    return Mixture(cls(3), X, Draws(draws[None], weights), X.dtype)


def shifted(mixture, by):
    """With other parameters under the same draws."""
    draws = mixture.draws
    return mixture._replace(draws=draws.of(draws.values + by))


def test_positive_numbers_neither_overflow_nor_underflow():
    """Quantiles of a Gamma variable are the mean's multiples, however large or small it is."""
    mixture = a_mixture(Gamma, 0.3, 0)
    expected = np.log(mixture_quantiles(mixture, LEVELS)[0])
    for shift in (-700.0, 700.0):
        moved = shifted(mixture, shift * (np.arange(5) == 3))
        found = np.log(mixture_quantiles(moved, LEVELS)[0])
        np.testing.assert_allclose(found, expected + shift, atol=1e-3)
    for shift, end in ((-1e4, 0.0), (1e4, np.inf)):
        moved = shifted(mixture, shift * (np.arange(5) == 3))
        assert (mixture_quantiles(moved, LEVELS)[0] == end).all()


@pytest.mark.parametrize("evenness", [np.inf, 1.0, 0.1])
@pytest.mark.parametrize("spread", [0.03, 0.3, 1.0])
@pytest.mark.parametrize("cls", OWN)
@pytest.mark.quick("0.03", "0.3")
def test_probabilities_below_quantiles_are_the_levels(cls, spread, evenness, seed):
    mixture = a_mixture(cls, spread, seed, evenness, n_rows=80)
    ends, width = mixture_quantiles(mixture, LEVELS)
    outputs = mixture.model.outputs(mixture.draws.flat, mixture.X)
    exact = mixture.draws.flat_weights @ mixture.model.width(outputs)
    assert (np.abs(np.log(width / exact)) < np.log(3)).all()  # roundings are small beside it

    def below(y):
        return mixture.draws.flat_weights @ mixture.model.distribution(y, outputs)

    for end, level in zip(ends.T, LEVELS, strict=True):
        if mixture.model.counts:
            assert (end == np.rint(end)).all()
            assert (below(end) > level - _PROMISED).all()
            assert (below(end - 1) < level + _PROMISED).all()
        else:
            np.testing.assert_allclose(below(end), level, atol=_PROMISED)


def test_narrow_predictors_take_no_moments_of_draws(monkeypatch):
    """Their mean and standard deviation are those of all draws, and others have all moments."""
    counted, moments = [], ProductRules.moments

    def noted(rules, X):
        counted.append(len(X))
        return moments(rules, X)

    monkeypatch.setattr(ProductRules, "moments", noted)
    for cls in OWN:
        for spread, is_narrow in ((0.02, True), (1.0, False)):
            counted.clear()
            mixture_quantiles(a_mixture(cls, spread, 0, n_rows=80), LEVELS)
            assert sum(counted) < 20 if is_narrow else sum(counted) > 60


@pytest.mark.parametrize("n_draws", [1, 2, 9, 33])
def test_few_draws_are_all_taken(n_draws):
    mixture = a_mixture(Gamma, 0.5, 0, n_draws=n_draws)
    ends, _ = mixture_quantiles(mixture, LEVELS)
    outputs = mixture.model.outputs(mixture.draws.flat, mixture.X)
    for end, level in zip(ends.T, LEVELS, strict=True):
        below = mixture.draws.flat_weights @ mixture.model.distribution(end, outputs)
        np.testing.assert_allclose(below, level, atol=_PROMISED)


@pytest.mark.parametrize("n_nodes", [2, 3, 4])
def test_a_gauss_rule_has_the_moments_of_the_draws(n_nodes):
    rng = np.random.default_rng(0)
    draws, weights = rng.gamma(2.0, size=500) - 2, rng.dirichlet(np.ones(500))
    polynomials, jacobi = orthonormal(draws, weights, 4)
    np.testing.assert_allclose((weights * polynomials) @ polynomials.T, np.eye(4), atol=1e-12)
    nodes, at_nodes = gauss_rule(jacobi[:n_nodes, :n_nodes])
    for power in range(2 * n_nodes):
        np.testing.assert_allclose(at_nodes[0] @ nodes**power, weights @ draws**power, rtol=1e-9)
    # and a polynomial's coefficients
    found = at_nodes @ nodes
    np.testing.assert_allclose(found, (weights * polynomials[:n_nodes]) @ draws, atol=1e-12)


@pytest.mark.parametrize("n_numbers", [1, 2, 3])
def test_a_gauss_rule_of_as_many_nodes_as_numbers_is_the_numbers(n_numbers):
    """Rounding is left of further polynomials, and no number may come of it."""
    rng = np.random.default_rng(n_numbers)
    numbers, weights = rng.standard_normal(n_numbers), rng.dirichlet(np.ones(40))
    draws = numbers[np.arange(40) % n_numbers]
    nodes, at_nodes = gauss_rule(orthonormal(draws, weights, 4)[1])
    for end in np.append(np.sort(numbers) + 1e-3, -np.inf):
        np.testing.assert_allclose(at_nodes[0] @ (nodes <= end), weights @ (draws <= end))


@pytest.mark.parametrize("cls", [Poisson, Gamma, Student])
def test_a_rule_has_the_mixed_moments_of_the_draws(cls):
    """Of predictors and shared parameters, to the degrees for which it has nodes."""
    mixture = a_mixture(cls, 0.5, 0, evenness=1.0)
    rules, weights = ProductRules(mixture), mixture.draws.flat_weights
    theta = mixture.draws.flat.copy()
    theta[:, :4] = rules.rest  # whose predictors have no mean given the shared parameters
    mixture = mixture._replace(draws=mixture.draws.of(theta[None]))
    rules, X = ProductRules(mixture), mixture.X
    eta = X @ theta[:, :3].T + theta[:, 3]
    moments = rules.moments(X)
    for numbers in rules.numbers:
        rule = rules.rule(X, numbers, moments)
        np.testing.assert_allclose(rule.weights.sum(axis=0), 1, atol=1e-5)
        for power in range(numbers[0]):
            unit = np.sqrt(weights @ eta.T ** (2 * power))
            for own in range(numbers[1] if OWN[cls] else 1):
                shared = theta[:, -1] ** own
                expected = eta**power @ (weights * shared)
                found = rule.mean(rule.outputs[:, 0] ** power * rule.outputs[:, -1] ** own)
                size = unit * np.sqrt(weights @ shared**2)
                np.testing.assert_allclose(found / size, expected / size, atol=1e-4)


def test_draws_that_depend_on_shared_parameters_in_another_way_are_all_taken():
    """The mean of rows jumps where the dispersion is half of its largest: no quadratic does."""
    mixture = a_mixture(Gamma, 0.3, 0, n_rows=80)
    theta = mixture.draws.flat
    mixture = shifted(mixture, 3 * np.outer(theta[:, 4] > -1.0, np.arange(5) == 3))
    ends, _ = mixture_quantiles(mixture, LEVELS)
    outputs = mixture.model.outputs(mixture.draws.flat, mixture.X)
    for end, level in zip(ends.T, LEVELS, strict=True):
        below = mixture.draws.flat_weights @ mixture.model.distribution(end, outputs)
        np.testing.assert_allclose(below, level, atol=_PROMISED)


@pytest.mark.parametrize("cls", [Poisson, NegativeBinomial])
def test_a_search_for_counts_ends_however_large_they_are(cls):
    """Values that were halved often underflowed, and a search went on for ever."""
    mixture = a_mixture(cls, 0.3, 0)
    for size in (20.0, 40.0, 400.0, -400.0, 1e4):
        X = size * np.eye(3)[:1] * np.ones((4, 1))
        ends, _ = mixture_quantiles(mixture._replace(X=X), LEVELS)
        assert (ends[:, 1:] >= ends[:, :-1]).all()


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
