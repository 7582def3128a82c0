"""Families of generalized linear models against SciPy's distributions, and their derivatives."""

import numpy as np
import pytest
from scipy import stats

from skbayes_sg.data import Batch
from skbayes_sg.linalg import FULL
from skbayes_sg.models import Gamma, NegativeBinomial, Poisson

RNG = np.random.default_rng(0)
NAMES = ["Poisson", "Gamma", "negative binomial"]
FAMILY = pytest.mark.parametrize("model", [Poisson(3), Gamma(3), NegativeBinomial(3)], ids=NAMES)
STEP = 1e-5


def distribution(model, outputs):
    """SciPy's distribution of y."""
    mu = np.exp(outputs[:, 0])
    if isinstance(model, Poisson):
        return stats.poisson(mu)
    phi = np.exp(outputs[:, 1])
    if isinstance(model, Gamma):
        return stats.gamma(1 / phi, scale=mu * phi)
    return stats.nbinom(1 / phi, 1 / (1 + phi * mu))


def some(model, chains=2, n=6):
    outputs = RNG.normal(size=(chains, model.widest, n))
    return outputs, RNG.poisson(3.0, n) + 0.5 * isinstance(model, Gamma)


def along_each_output(model, function, outputs):
    """Derivatives of a function of outputs, (outputs, ...)."""
    steps = STEP * np.eye(model.widest)[:, None, :, None]
    return [(function(outputs + e) - function(outputs - e)) / (2 * STEP) for e in steps]


@FAMILY
def test_density_and_distribution_are_those_of_the_distribution(model):
    outputs, y = some(model)
    expected = distribution(model, outputs)
    density = expected.logpdf if isinstance(model, Gamma) else expected.logpmf
    np.testing.assert_allclose(model.value(outputs, y), density(y))
    np.testing.assert_allclose(model.mean(outputs), expected.mean())
    np.testing.assert_allclose(model.variance(outputs), expected.var())
    for numbers in (y, np.full(len(y), -0.5), np.zeros(len(y)), y + 0.3):
        np.testing.assert_allclose(model.distribution(numbers, outputs), expected.cdf(numbers))


@FAMILY
def test_residuals_and_curvature_are_derivatives(model):
    outputs, y = some(model)
    slopes = along_each_output(model, lambda o: model.value(o, y), outputs)
    np.testing.assert_allclose(np.stack(slopes, 1), model.residual(outputs, y), atol=1e-6)
    bends = along_each_output(model, lambda o: model.residual(o, y), outputs)
    np.testing.assert_allclose(-np.stack(bends, 1), model.observed_at(outputs, y), atol=1e-5)


@pytest.mark.parametrize(
    ("dispersion", "of_counts"), [(0.01, 0.02), (0.2, 0.02), (1.0, 0.25), (5.0, 1.5)]
)
@FAMILY
def test_expected_curvature_is_the_mean_of_that_of_rows(model, dispersion, of_counts):
    """That of a dispersion of counts is an approximation, of which it says how good it is."""
    outputs = np.log([[[0.3, 2.0, 30.0]], [[dispersion] * 3]]).swapaxes(0, 1)[:, : model.widest]
    levels = (np.arange(20_000) + 0.5) / 20_000
    for row in range(3):
        y = distribution(model, outputs[:, :, row : row + 1]).ppf(levels)[0]
        each = model.observed_at(np.repeat(outputs[:, :, row : row + 1], len(y), axis=2), y)
        expected = model.expected(outputs)[0, ..., row]
        scale = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
        found = (each.mean(axis=3)[0] - expected) / scale
        if isinstance(model, NegativeBinomial):  # expected over the mean of rows
            assert expected[1, 1] / each[0, 1, 1].mean() == pytest.approx(1, abs=of_counts)
        else:
            assert np.abs(found).max() < 0.01
        assert abs(found[0, -1]) < 0.01 or model.widest == 1
        assert abs(found[0, 0]) < 0.01


@FAMILY
def test_an_expansion_is_what_a_row_has_beyond_first_and_second_order(model):
    outputs, y = some(model, 1)
    change = 0.3 * RNG.normal(size=(4, model.widest, len(y)))
    at = model.expand_rows(outputs, y)
    difference = model.residual(outputs + change, y) - model.residual(outputs, y)
    np.testing.assert_allclose(model.difference(change.copy(), at), difference, atol=1e-10)
    linear = np.einsum("kln,cln->ckn", model.observed_at(outputs, y)[0], change)
    np.testing.assert_allclose(model.remainder(change.copy(), at), difference + linear, atol=1e-10)
    value, slope = model.bregman_remainder(change.copy(), at)
    np.testing.assert_allclose(slope, difference, atol=1e-10)
    beyond = model.value(outputs + change, y) - model.value(outputs, y)
    beyond -= (model.residual(outputs, y) * change).sum(axis=1)
    np.testing.assert_allclose(value, beyond, atol=1e-10)


@FAMILY
def test_information_and_means_over_a_normal_distribution(model):
    X, theta = RNG.standard_normal((6, 3)), 0.3 * RNG.standard_normal((1, model.dim))
    y, weight = some(model)[1], np.arange(1.0, 7.0)
    batch = Batch(X, y, weight)
    _, between = model.row_terms(theta, None, X, y)
    np.testing.assert_allclose(
        model.moment_of(between, batch).dense(), model.information(theta, batch, FULL).dense()
    )
    root = np.diag(np.full(model.dim, 0.1))
    found = model.row_terms(theta, root, X, y)
    observed = model.row_terms(theta, root, X, y, observed=True)[1]
    draws = theta + 0.1 * RNG.standard_normal((30_000, model.dim))
    outputs = model.outputs(draws, X)
    wanted = model.residual(outputs, y), model.expected(outputs), model.observed_at(outputs, y)
    for one, each in zip((*found, observed), wanted, strict=True):
        error = each.std(axis=0) / np.sqrt(len(draws))
        assert (np.abs(one - each.mean(axis=0)) <= 5 * error + 1e-4 * np.abs(one)).all()


@FAMILY
def test_draws_have_the_moments_of_the_distribution(model):
    outputs = np.repeat(some(model, 1, 3)[0] * 0.3, 100_000, axis=0)
    draws = model.draw(outputs, RNG)
    error = np.sqrt(model.variance(outputs)[0] / len(draws))
    assert (np.abs(draws.mean(axis=0) - model.mean(outputs)[0]) < 5 * error).all()
    np.testing.assert_allclose(draws.var(axis=0), model.variance(outputs)[0], rtol=0.1)


def test_with_hardly_any_dispersion_amounts_are_lognormal():
    """To all digits of the density and its slope, which are differences of far larger numbers."""
    model, residual = Gamma(1, fit_intercept=False), np.array([-2.0, -0.5, 0.0, 1.0])
    for nu in (1e10, 1e20):
        x = residual / np.sqrt(nu)
        y, outputs = np.exp(x), np.zeros((1, 2, 4))
        outputs[:, 1] = -np.log(nu)
        x = np.log(y)  # rounded
        wanted = 0.5 * np.log(nu / (2 * np.pi)) - 0.5 * nu * x**2 - x
        np.testing.assert_allclose(model.value(outputs, y)[0], wanted, atol=2e-4)
        of_a = model.residual(outputs, y)[0, 1]
        np.testing.assert_allclose(of_a, 0.5 * (nu * x**2 - 1), atol=2e-4)


def test_with_hardly_any_dispersion_counts_are_those_of_poisson():
    outputs, y = some(NegativeBinomial(3))
    outputs[:, 1] = -18.0
    poisson = Poisson(3)
    found = NegativeBinomial(3).value(outputs, y), NegativeBinomial(3).residual(outputs, y)[:, :1]
    expected = poisson.value(outputs, y), poisson.residual(outputs[:, :1], y)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("counts", [RNG.poisson(3, 400), RNG.poisson(3000, 400)])
@pytest.mark.parametrize("shared", [True, False])
def test_counts_that_rows_share_change_nothing(counts, shared):
    """Of every row by itself, whose count is none that others share."""
    model, n, rng = NegativeBinomial(2), 400, np.random.default_rng(1)
    outputs = rng.normal(size=(3, 2, n))
    outputs[:, 1] = outputs[:, 1, :1] if shared else outputs[:, 1]
    y = counts.astype(float)
    for name in ("value", "residual", "observed_at"):
        of_all = getattr(model, name)(outputs.copy(), y)
        one = [getattr(model, name)(outputs[..., i : i + 1].copy(), y[i : i + 1]) for i in range(n)]
        np.testing.assert_array_equal(of_all, np.concatenate(one, axis=-1))
