"""Precisions that are integrated out, beside closed forms in Bessel functions, and quadrature."""

import numpy as np
import pytest
from scipy.integrate import cumulative_trapezoid
from scipy.special import kve
from scipy.stats import geninvgauss, kstest

from skbayes_sg.priors import GaussianPrior, NormalInverseGammaPrior, StudentT
from skbayes_sg.priors.joint import IntegratedPrecisions, IntegratedPrior
from skbayes_sg.priors.scales import Groups, OnePrecision


def one_precision(size, unit=2.5):
    return OnePrecision(np.arange(size), np.zeros(size, int), ["coef"], unit)


def inverse_gaussian(scales, squares):
    """Order, argument and scale of the generalised inverse Gaussian law of lambda given Q."""
    a, b = 2 * scales.rate + squares, 2 * scales.least
    return scales.shape + 0.5 * scales.sizes[0], np.sqrt(a * b), np.sqrt(b / a)


@pytest.mark.parametrize("size", [1, 13, 80])
def test_density_and_mean_are_those_of_the_closed_form(size):
    scales = one_precision(size)
    integrated = IntegratedPrecisions(scales)
    squares = np.exp(np.linspace(-4, 10, 60))
    order, x, scale = inverse_gaussian(scales, squares)
    log_density = np.log(kve(order, x)) - x + order * np.log(scale)
    found = integrated.log_density(squares[:, None])
    np.testing.assert_allclose(found - found[0], log_density - log_density[0], atol=1e-6)
    mean = scale * kve(order + 1, x) / kve(order, x)
    np.testing.assert_allclose(integrated.mean(squares[:, None])[:, 0], mean, rtol=1e-4)


def test_the_mean_precision_is_minus_twice_the_slope_of_the_density_of_many_coefficients():
    integrated = IntegratedPrecisions(one_precision(900))  # Bessel functions overflow here
    squares, step = np.exp(np.linspace(1, 8, 20)), 1e-4
    ends = [integrated.log_density(squares[:, None] * np.exp(sign * step)) for sign in (1, -1)]
    slope = (ends[0] - ends[1]) / (2 * step * squares)
    np.testing.assert_allclose(-2 * slope, integrated.mean(squares[:, None])[:, 0], rtol=1e-4)


@pytest.mark.parametrize(("size", "squares"), [(1, 0.3), (1, 1e5), (13, 4.0), (13, 1e7)])
def test_draws_have_their_distribution_far_out_too(size, squares):
    scales = one_precision(size)
    rng = np.random.default_rng(0)
    drawn = IntegratedPrecisions(scales).draw(np.full((4000, 1), squares), rng)[:, 0]
    order, x, scale = inverse_gaussian(scales, squares)
    assert kstest(np.exp(drawn), geninvgauss(order, x, scale=scale).cdf).pvalue > 0.001


def test_only_independent_precisions_are_integrated_out():
    scales = one_precision(3)
    assert scales.independent() is scales
    mixture = StudentT().scales(Groups(np.arange(3), np.arange(3), list("abc"), 1.0), 1.0)
    with pytest.raises(TypeError, match="not independent a priori"):
        mixture.independent()


def of_groups(squares):
    """Groups of several sizes, in any order, and the densities of their log precisions given Q."""
    sizes, unit = np.array([3, 1, 40, 3]), 0.7
    group = np.random.default_rng(0).permutation(np.repeat(np.arange(4), sizes))
    scales = Groups(np.arange(len(group)), group, list("abcd"), unit)
    ell = np.linspace(-25.0, 45.0, 40_001)
    each = scales.power(ell) - scales.least * np.exp(-ell)
    each = each + 0.5 * sizes[:, None] * ell - 0.5 * squares[:, None] * np.exp(ell)
    return scales, ell, each


@pytest.mark.parametrize("factor", [0.02, 1.0, 300.0])
def test_groups_have_the_integrals_over_their_precisions(factor):
    """Far out, where a group is unlike its scale, and near zero, where the density has a pole."""
    squares = factor * np.array([2.0, 0.5, 30.0, 4.0])
    scales, ell, _ = of_groups(squares)
    here, there = (of_groups(s)[2] for s in (squares, 1.7 * squares))
    sums = [np.log(np.exp(each - 40).sum(axis=1)) for each in (here, there)]
    integrated = IntegratedPrecisions(scales)
    found = integrated.log_density(np.stack([squares, 1.7 * squares]))
    np.testing.assert_allclose(found[1] - found[0], (sums[1] - sums[0]).sum(), atol=2e-3)
    share = np.exp(here - 40)
    mean = (share * np.exp(ell)).sum(axis=1) / share.sum(axis=1)
    np.testing.assert_allclose(integrated.mean(squares[None])[0], mean, rtol=2e-3)


@pytest.mark.parametrize("factor", [0.02, 1.0, 300.0])
def test_draws_of_groups_have_their_distributions(factor):
    squares = factor * np.array([2.0, 0.5, 30.0, 4.0])
    scales, ell, each = of_groups(squares)
    rng = np.random.default_rng(1)
    drawn = IntegratedPrecisions(scales).draw(np.tile(squares, (4000, 1)), rng)
    for one, log_density in zip(drawn.T, each, strict=True):
        below = cumulative_trapezoid(np.exp(log_density - log_density.max()), ell, initial=0.0)
        assert kstest(np.interp(one, ell, below / below[-1]), "uniform").pvalue > 0.001


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
