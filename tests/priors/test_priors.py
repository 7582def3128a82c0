import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import digamma, polygamma

from skbayes_sg.data import InMemory
from skbayes_sg.linalg import FULL, Dense
from skbayes_sg.models import Linear
from skbayes_sg.posterior import Posterior
from skbayes_sg.priors import GaussianPrior, Horseshoe, NormalInverseGammaPrior
from skbayes_sg.priors.normal import Sheared, standardised
from skbayes_sg.priors.scales import Groups

SPREAD = np.random.default_rng(5).standard_normal((3, 3))
MATRIX = Dense(SPREAD @ SPREAD.T + np.eye(3))
MEAN = np.array([0.3, -1.0, 2.0])
THETA = np.random.default_rng(0).standard_normal((3, 4))
PRIORS = [
    GaussianPrior(np.array([0.5, 1.0, 2.0, 4.0])),
    NormalInverseGammaPrior(np.array([0.5, 1.0, 2.0]), (1.5, 0.7)),
]


def test_densities_up_to_a_constant():
    """Beta N(0, s2 / precision), s2 inverse gamma, with the Jacobian of gamma = log s2."""
    gaussian, scaled = PRIORS
    expected = stats.norm.logpdf(THETA, scale=gaussian.precision**-0.5).sum(axis=1)
    np.testing.assert_allclose(np.diff(gaussian.log_density(THETA)), np.diff(expected))
    s2 = np.exp(THETA[:, -1])
    expected = stats.norm.logpdf(
        THETA[:, :-1], scale=np.sqrt(s2[:, None] / scaled.precision[:-1])
    ).sum(axis=1)
    expected += stats.invgamma.logpdf(s2, 1.5, scale=0.7) + THETA[:, -1]
    np.testing.assert_allclose(np.diff(scaled.log_density(THETA)), np.diff(expected))


def test_curvature_is_minus_the_expected_second_derivative(seed):
    gaussian, scaled = PRIORS
    np.testing.assert_array_equal(gaussian.curvature(THETA).values, gaussian.precision)
    one = THETA[:1]
    rng = np.random.default_rng(seed)
    s2 = 0.7 / rng.gamma(1.5, size=200_000)  # the prior's own draws
    beta = rng.standard_normal((200_000, 3)) * np.sqrt(s2[:, None] / scaled.precision[:-1])
    second = 0.5 * (scaled.precision[:-1] * beta**2).sum(axis=1) / s2 + 0.7 / s2
    curvature = scaled.curvature(one).values
    assert abs(second.mean() - curvature[-1]) < 5 * second.std() / np.sqrt(len(second))
    np.testing.assert_allclose(curvature[:-1], np.exp(-one[0, -1]) * scaled.precision[:-1])


def test_scaled_squares_have_mean_one_under_the_prior(seed):
    rng = np.random.default_rng(seed)
    s2 = 0.7 / rng.gamma(1.5, size=50_000)
    for prior in PRIORS:
        precision = prior.precision[prior.precision > 0]
        scale = np.ones_like(s2) if isinstance(prior, GaussianPrior) else s2
        theta = rng.standard_normal((50_000, len(precision))) * np.sqrt(scale[:, None] / precision)
        if isinstance(prior, NormalInverseGammaPrior):
            theta = np.column_stack([theta, np.log(s2)])
        squares = prior.scaled_squares(theta)[:, : len(precision)]
        assert np.abs(squares.mean(axis=0) - 1).max() < 5 * np.sqrt(2 / 50_000)
    assert (PRIORS[1].scaled_squares(THETA)[:, -1] == 0).all()


@st.composite
def cases(draw):
    """A prior of one to five parameters, with a mean, and theta of one to three chains."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dim, n_chains = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    precision, theta = rng.uniform(0.1, 10.0, dim), rng.standard_normal((n_chains, dim))
    mean = draw(st.sampled_from([0.0, 1.0])) * rng.standard_normal(dim)
    if draw(st.booleans()):
        spread = rng.standard_normal((dim, dim))
        precision = Dense(spread @ spread.T + np.diag(precision))
    if draw(st.booleans()):
        return GaussianPrior(precision, mean), theta
    scaled = NormalInverseGammaPrior(precision, rng.uniform(0.1, 3.0, 2), mean)
    return scaled, np.column_stack([theta, rng.standard_normal(n_chains)])


def slopes(function, theta, h=1e-5):
    """Central differences along each coordinate, last axis."""
    steps = h * np.eye(theta.shape[1])
    return np.stack(
        [(function(theta + step) - function(theta - step)) / (2 * h) for step in steps], axis=-1
    )


@given(cases())
def test_gradient_is_that_of_the_density(case):
    prior, theta = case
    np.testing.assert_allclose(
        prior.gradient(theta), slopes(prior.log_density, theta), rtol=1e-6, atol=1e-6
    )


@given(cases())
def test_curvature_is_minus_the_second_derivative_averaged_over_chains(case):
    """That of the log noise variance is its value where the slope vanishes."""
    prior, theta = case
    minus = -np.diagonal(slopes(prior.gradient, theta), axis1=1, axis2=2)
    if isinstance(prior, NormalInverseGammaPrior):
        minus = np.column_stack([minus[:, :-1], minus[:, -1] - prior.gradient(theta)[:, -1]])
    np.testing.assert_allclose(
        prior.curvature(theta).diagonal(), minus.mean(axis=0), rtol=1e-6, atol=1e-6
    )


@given(cases())
def test_hessian_is_minus_all_second_derivatives(case):
    prior, theta = case[0], case[1][:1]
    minus = -slopes(prior.gradient, theta)[0]
    np.testing.assert_allclose(prior.hessian(theta), minus, rtol=1e-6, atol=1e-6)
    ours = prior.curvature(theta).dense()[: prior.operator.dim, : prior.operator.dim]
    np.testing.assert_allclose(ours, minus[: len(ours), : len(ours)], rtol=1e-6, atol=1e-6)


@given(cases())
def test_scaled_squares_are_what_the_density_is_made_of(case):
    prior, theta = case
    rest = prior.log_density(theta) + 0.5 * prior.scaled_squares(theta).sum(axis=1)
    at_mean = np.where(prior.precision > 0, prior.mean, theta)
    np.testing.assert_allclose(rest, prior.log_density(at_mean), atol=1e-9)


# -- posteriors as priors ---------------------------------------------------------------------


def same_up_to_a_constant(one, other):
    np.testing.assert_allclose(one - one[0], other - other[0], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("given_noise", [True, False])
def test_the_updated_prior_is_the_posterior(given_noise):
    """Its density is that of rows and prior, wherever the expansion is made."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 2)), rng.standard_normal(20) + 3
    model = Linear(2, True, 0.5 if given_noise else None, (1.5, 0.7))
    prior = GaussianPrior(MATRIX, MEAN)
    if not given_noise:
        prior = NormalInverseGammaPrior(MATRIX, (1.5, 0.7), MEAN)
    posterior = Posterior(model, InMemory.of(X, y), prior)
    theta = rng.standard_normal((5, model.dim))
    here = posterior.expand(theta[:1], FULL)
    updated = prior.updated(theta[:1], here.gradient, here.curvature)
    same_up_to_a_constant(updated.log_density(theta), posterior.log_prob(theta))
    assert np.abs(updated.gradient(updated.mode)).max() < 1e-9


@given(cases(), st.floats(0.01, 1.0))
def test_a_mixture_has_the_weighted_geometric_mean_of_the_densities(case, share):
    prior, theta = case
    rng = np.random.default_rng(0)
    precision, mean = (
        rng.uniform(0.5, 2.0, prior.operator.dim),
        prior.mean[: prior.operator.dim] + 1,
    )
    noise = () if prior.quadratic else ((2.0, 0.3),)
    other = type(prior)(precision, *noise, mean)
    theta = np.concatenate([theta, theta + rng.standard_normal(theta.shape)])
    expected = share * prior.log_density(theta) + (1 - share) * other.log_density(theta)
    same_up_to_a_constant(prior.mixed(other, share).log_density(theta), expected)


@pytest.mark.parametrize(
    "prior", [GaussianPrior(MATRIX, MEAN), NormalInverseGammaPrior(MATRIX, (5.0, 2.0), MEAN)]
)
def test_draws_have_the_moments_of_the_distribution(prior, seed):
    draws = prior.draw(np.random.default_rng(seed), 40_000)
    coef, error = draws[:, :3], 5 / np.sqrt(40_000)
    sd = np.sqrt(prior.variance[:3])
    assert np.abs((coef.mean(axis=0) - MEAN) / sd).max() < error
    np.testing.assert_allclose(coef.var(axis=0) / sd**2, 1.0, atol=2 * error)
    again = type(prior).of_draws(draws, np.full(len(draws), 1 / len(draws)))
    np.testing.assert_allclose(again.variance, prior.variance, rtol=2 * error)
    if not prior.quadratic:
        s2 = np.exp(draws[:, 3])
        assert draws[:, 3].var() == pytest.approx(prior.variance[3], rel=3 * error)
        assert abs(s2.mean() / prior.noise_variance - 1) < error
        assert again.shape == pytest.approx(5.0, rel=3 * error)
        assert again.noise_variance == pytest.approx(prior.noise_variance, rel=2 * error)


@pytest.mark.parametrize("shape", [0.4, 3.0, 40.0])
def test_matched_draws_have_the_moments_of_a_noise_variance(shape, seed):
    prior = NormalInverseGammaPrior(MATRIX, (shape, 2.0), MEAN)
    draws = prior.draw(np.random.default_rng(seed), 300, matched=True)
    noise = draws[:, 3]
    assert noise.mean() == pytest.approx(np.log(2.0) - digamma(shape), rel=1e-12)
    assert noise.var() == pytest.approx(polygamma(1, shape), rel=1e-12)
    z = (draws[:, :3] - MEAN) * np.exp(-0.5 * noise)[:, None]
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(z.T @ z / 300 @ MATRIX.dense(), np.eye(3), atol=1e-12)
    np.testing.assert_allclose(z.T @ (noise - noise.mean()) / 300, 0, atol=1e-12)


def test_means_of_matched_draws_are_nearer_under_a_noise_variance(seed):
    """The noise varies by a sixth, and so much of the error is left, or less."""
    prior = NormalInverseGammaPrior(MATRIX, (40.0, 2.0), MEAN)
    streams = np.random.SeedSequence(seed).spawn(60)
    error = {}
    for matched in (False, True):
        draws = [prior.draw(np.random.default_rng(each), 300, matched)[:, :3] for each in streams]
        found = np.array([[each.mean(axis=0), each.std(axis=0)] for each in draws])
        truth = np.array([MEAN, np.sqrt(prior.variance[:3])])
        error[matched] = np.sqrt(((found - truth) ** 2).mean(axis=(0, 2)))
    assert (error[True] < error[False] / [8, 3]).all()


@pytest.mark.parametrize("n_draws", [8, 30, 40, 60, 2000])
def test_standardised_draws_have_the_mean_0_and_the_covariance_1(n_draws, seed):
    rng = np.random.default_rng(seed)
    draws = rng.normal(3.0, 2.0, (n_draws, 12)) @ (np.eye(12) + 0.2)
    after = standardised(draws)
    if n_draws < 32:  # too few even for one coordinate
        assert after is draws
        return
    np.testing.assert_allclose(after.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(after.var(axis=0), 1, rtol=1e-12)
    off = np.abs(after.T @ after / n_draws - np.eye(12)).max()
    assert (off < 1e-12) == (n_draws >= 48)  # four draws for each coordinate


@pytest.mark.parametrize("kind", [GaussianPrior, NormalInverseGammaPrior])
def test_the_prior_of_weighted_draws_is_that_of_repeated_draws(kind):
    rng = np.random.default_rng(0)
    draws, times = rng.standard_normal((30, 4)), np.arange(30) % 4
    weighted = kind.of_draws(draws, times / times.sum())
    repeated = kind.of_draws(np.repeat(draws, times, axis=0), np.full(times.sum(), 1 / times.sum()))
    np.testing.assert_allclose(weighted.mean, repeated.mean)
    np.testing.assert_allclose(weighted.variance, repeated.variance)


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_diagonal_at_the_means_of_the_columns_is_the_matrix_of_its_quadratic_form(outputs):
    """The sum of the squares of coefficients and of outputs at the means, weighted."""
    rng = np.random.default_rng(0)
    values, centre = rng.exponential(size=3 * outputs), rng.standard_normal(2)
    prior = Sheared(values, centre)
    S = np.eye(3 * outputs)
    for output in range(outputs):
        S[2 * outputs + output, 2 * output : 2 * output + 2] = centre
    matrix = S.T @ np.diag(values) @ S
    v = rng.standard_normal((4, 3 * outputs))
    np.testing.assert_allclose(prior.shear(v), v @ S.T)
    np.testing.assert_allclose(prior.matvec(v), v @ matrix)
    np.testing.assert_allclose((prior * 2).dense(), 2 * matrix)
    np.testing.assert_allclose((prior * 2.0).diagonal(), 2 * matrix.diagonal())
    np.testing.assert_allclose(prior.inverse().dense(), np.linalg.inv(matrix), atol=1e-9)
    np.testing.assert_allclose(prior.cholesky().dense(), np.linalg.cholesky(matrix), atol=1e-9)


def test_the_hyperprior_of_a_horseshoe_is_that_of_the_paper():
    """Half-Cauchy tau and l, and an inverse gamma c^2 (Piironen & Vehtari 2017, Eqs. 2.8, 3.12).

    The scale of tau is that at which rows of so much information leave so many columns.
    """
    labels = [f"x{j}" for j in range(10)]
    columns = Groups(np.arange(10), np.arange(10), labels, 1.0)
    scales = Horseshoe(expected_nonzero=2, slab_scale=3.0, slab_df=5.0).scales(columns, 40.0)
    eta = np.random.default_rng(0).normal(0.0, 1.5, (20, 12))
    tau, c2, local = np.exp(eta[:, 0]), np.exp(eta[:, 1]), np.exp(eta[:, 2:])
    expected = stats.halfcauchy.logpdf(tau, scale=2 / 8 / np.sqrt(40.0))
    expected += stats.halfcauchy.logpdf(local).sum(axis=1)
    expected += stats.invgamma.logpdf(c2, 2.5, scale=2.5 * 3.0**2) + eta.sum(axis=1)
    found = scales.log_hyperprior(eta)
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-9)
