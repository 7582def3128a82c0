import numpy as np
import pytest
from scipy import stats

from skbayes_sg.priors import GaussianPrior, NormalInverseGammaPrior

THETA = np.random.default_rng(0).standard_normal((3, 4))
PRIORS = [GaussianPrior(np.array([0.5, 1.0, 2.0, 4.0])), NormalInverseGammaPrior(np.array([0.5, 1.0, 2.0]), 1.5, 0.7)]


@pytest.mark.parametrize("prior", PRIORS)
def test_gradient_is_that_of_the_density(prior):
    for k in range(4):
        step = 1e-5 * np.eye(4)[k]
        difference = (prior.log_density(THETA + step) - prior.log_density(THETA - step)) / 2e-5
        np.testing.assert_allclose(prior.gradient(THETA)[:, k], difference, rtol=1e-6)


def test_densities_up_to_a_constant():
    """Beta N(0, s2 / precision), s2 inverse gamma, with the Jacobian of gamma = log s2."""
    gaussian, scaled = PRIORS
    expected = stats.norm.logpdf(THETA, scale=gaussian.precision**-0.5).sum(axis=1)
    np.testing.assert_allclose(np.diff(gaussian.log_density(THETA)), np.diff(expected))
    s2 = np.exp(THETA[:, -1])
    expected = stats.norm.logpdf(THETA[:, :-1], scale=np.sqrt(s2[:, None] / scaled.precision)).sum(axis=1)
    expected += stats.invgamma.logpdf(s2, 1.5, scale=0.7) + THETA[:, -1]
    np.testing.assert_allclose(np.diff(scaled.log_density(THETA)), np.diff(expected))


def test_curvature_is_minus_the_expected_second_derivative():
    gaussian, scaled = PRIORS
    np.testing.assert_array_equal(gaussian.curvature(THETA).values, gaussian.precision)
    one = THETA[:1]
    rng = np.random.default_rng(1)
    s2 = 0.7 / rng.gamma(1.5, size=200_000)  # the prior's own draws
    beta = rng.standard_normal((200_000, 3)) * np.sqrt(s2[:, None] / scaled.precision)
    second = 0.5 * (scaled.precision * beta**2).sum(axis=1) / s2 + 0.7 / s2
    curvature = scaled.curvature(one).values
    assert abs(second.mean() - curvature[-1]) < 5 * second.std() / np.sqrt(len(second))
    np.testing.assert_allclose(curvature[:-1], np.exp(-one[0, -1]) * scaled.precision)


def test_scaled_squares_have_mean_one_under_the_prior():
    rng = np.random.default_rng(2)
    s2 = 0.7 / rng.gamma(1.5, size=50_000)
    for prior in PRIORS:
        scale = np.ones_like(s2) if isinstance(prior, GaussianPrior) else s2
        theta = rng.standard_normal((50_000, len(prior.precision))) * np.sqrt(scale[:, None] / prior.precision)
        if isinstance(prior, NormalInverseGammaPrior):
            theta = np.column_stack([theta, np.log(s2)])
        squares = prior.scaled_squares(theta)[:, : len(prior.precision)]
        assert np.abs(squares.mean(axis=0) - 1).max() < 5 * np.sqrt(2 / 50_000)
    assert (PRIORS[1].scaled_squares(THETA)[:, -1] == 0).all()
