"""The precision that is integrated out, beside its closed form where all is in Bessel functions."""

import numpy as np
import pytest
from scipy.special import kve
from scipy.stats import geninvgauss, kstest

from skbayes_sg.priors import GaussianPrior, NormalInverseGammaPrior
from skbayes_sg.priors.joint import IntegratedPrecision, IntegratedPrior
from skbayes_sg.priors.scales import OnePrecision


def one_precision(size, unit=2.5):
    return OnePrecision(np.arange(size), np.zeros(size, int), ["coef"], unit)


def inverse_gaussian(scales, squares):
    """Order, argument and scale of the generalised inverse Gaussian law of lambda given Q."""
    a, b = 2 * scales.rate + squares, 2 * scales.least
    return scales.shape + 0.5 * scales.sizes[0], np.sqrt(a * b), np.sqrt(b / a)


@pytest.mark.parametrize("size", [1, 13, 80])
def test_density_and_mean_are_those_of_the_closed_form(size):
    scales = one_precision(size)
    integrated = IntegratedPrecision(scales)
    squares = np.exp(np.linspace(-4, 10, 60))
    order, x, scale = inverse_gaussian(scales, squares)
    log_density = np.log(kve(order, x)) - x + order * np.log(scale)
    found = integrated.log_density(squares)
    np.testing.assert_allclose(found - found[0], log_density - log_density[0], atol=1e-6)
    mean = scale * kve(order + 1, x) / kve(order, x)
    np.testing.assert_allclose(integrated.mean_precision(squares), mean, rtol=1e-4)


def test_the_mean_precision_is_minus_twice_the_slope_of_the_density_of_many_coefficients():
    integrated = IntegratedPrecision(one_precision(900))  # Bessel functions overflow here
    squares, step = np.exp(np.linspace(1, 8, 20)), 1e-4
    ends = [integrated.log_density(squares * np.exp(sign * step)) for sign in (1, -1)]
    slope = (ends[0] - ends[1]) / (2 * step * squares)
    np.testing.assert_allclose(-2 * slope, integrated.mean_precision(squares), rtol=1e-4)


@pytest.mark.parametrize(("size", "squares"), [(1, 0.3), (1, 1e5), (13, 4.0), (13, 1e7)])
def test_draws_have_their_distribution_far_out_too(size, squares):
    scales = one_precision(size)
    drawn = IntegratedPrecision(scales).draw(np.full(4000, squares), np.random.default_rng(0))
    order, x, scale = inverse_gaussian(scales, squares)
    assert kstest(np.exp(drawn), geninvgauss(order, x, scale=scale).cdf).pvalue > 0.001


@pytest.mark.parametrize("noise", [None, (2.0, 3.0)])
def test_the_prior_of_all_parameters_is_the_integral_over_the_precision(noise):
    """Of three coefficients, and of others that have a prior of their own."""
    scales, rng = one_precision(3), np.random.default_rng(0)
    precision, unit = np.array([1.3, 5.2, 2.6, 0.4]), np.array([1.0, 4.0, 2.0, 1.0])
    mean = np.array([0.2, 0.0, -0.3, 0.0])

    def given(lam):
        each = np.append(lam * unit[:3], 0.4)
        if noise is None:
            return GaussianPrior(each, mean, unit)
        return NormalInverseGammaPrior(each, noise, mean, unit)

    prior = IntegratedPrior(given(1.3), scales)
    np.testing.assert_allclose(prior.precision[:4], precision)
    theta = rng.standard_normal((6, 4 + (noise is not None)))
    rho = np.linspace(-12, 8, 4001)[:, None]
    under = np.stack([given(lam).log_density(theta) for lam in np.exp(rho[:, 0])])
    each = under + scales.log_density(rho)[:, None]
    expected = np.log(np.exp(each - each.max()).sum(axis=0)) + each.max()
    found = prior.log_density(theta)
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-5)
    step = 1e-5 * rng.standard_normal(theta.shape)
    change = prior.log_density(theta + step) - prior.log_density(theta - step)
    np.testing.assert_allclose(2 * (prior.gradient(theta) * step).sum(axis=1), change, rtol=1e-3)
