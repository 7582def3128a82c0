"""The default of linear regression: independent draws of the conjugate posterior itself."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import digamma, polygamma
from sklearn.base import clone

from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression, VariationalEM
from skbayes_sg.models import Linear, Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.conjugate import Closed, product_with
from skbayes_sg.posterior.gaussian import expanded_twice
from skbayes_sg.posterior.target import ChainTarget
from skbayes_sg.priors import GaussianPrior
from skbayes_sg.samplers.independent_draws import IndependentDraws

BLR = BayesianLinearRegression
CERTAIN = 5.0  # Monte Carlo errors


def generated(n_rows=200, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)) * np.geomspace(0.1, 30, n_features) + 2.0
    return X, 3.0 + X @ rng.standard_normal(n_features) + 2.0 * rng.standard_normal(n_rows)


def closed_form(X, y, noise_variance, weight=None, prior=1.0, intercept=True, at_means=True):
    """Mean and covariance of the posterior, by the normal equations.

    Intercepts have their prior at the means of the columns, or at their zeros.
    """
    weight = np.ones(len(y)) if weight is None else weight
    A = np.column_stack([X, np.ones(len(X))]) if intercept else X
    scale = noise_variance or 1.0
    known = prior * np.eye(A.shape[1])
    if intercept:
        at = np.average(A, axis=0, weights=weight) if at_means else np.eye(A.shape[1])[-1]
        known[-1, -1] = 0.0
        known += 1e-6 * np.outer(at, at)
    precision = (A * weight[:, None]).T @ A / scale + known
    mean = np.linalg.solve(precision, A.T @ (weight * y) / scale)
    if noise_variance:
        return mean, np.linalg.inv(precision)
    determined = len(mean) - np.trace(np.linalg.solve(precision, known))
    shape = 1e-6 + (weight.sum() - determined) / 2
    rate = 1e-6 + 0.5 * (weight @ y**2 - mean @ precision @ mean)
    cov = np.zeros((len(mean) + 1,) * 2)
    cov[:-1, :-1] = np.linalg.inv(precision) * rate / (shape - 1)
    cov[-1, -1] = polygamma(1, shape)
    return np.append(mean, np.log(rate) - digamma(shape)), cov


def compare(model, mean, cov):
    """Means, and all second moments in the posterior's own axes, within Monte Carlo errors."""
    draws = model.draws_.reshape(-1, len(mean))
    values, vectors = np.linalg.eigh(cov)
    z = (draws - mean) @ vectors / np.sqrt(values)
    error = CERTAIN / np.sqrt(len(z))
    assert np.abs(z.mean(axis=0)).max() < error
    # tails heavier than normal ones: the error of a variance by the fourth moment
    spread = np.sqrt((z**4).mean(axis=0).max())
    assert np.abs(z.T @ z / len(z) - np.eye(len(mean))).max() < error * spread


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("noise_variance", [None, 2.0])
def test_draws_have_the_moments_of_the_closed_form(noise_variance, intercept, weighted, seed):
    X, y = generated()
    weight = np.random.default_rng(1).uniform(0.2, 3.0, len(y)) if weighted else None
    options = {"prior_precision": 1.0, "fit_intercept": intercept, "random_state": seed}
    model = BLR(noise_variance=noise_variance, **options).fit(X, y, weight)
    compare(model, *closed_form(X, y, noise_variance, weight, intercept=intercept))
    assert (model.burn_in_, model.thin_, model.n_passes_) == (0, 1, 2.0)
    assert (
        model.sampler_reason_ == "the posterior is conjugate: its draws are independent and exact"
    )


@pytest.mark.parametrize("as_given", [np.float32, sparse.csr_matrix], ids=["float32", "sparse"])
def test_rows_of_any_kind_lead_to_the_same_distribution(as_given):
    X, y = generated()
    given = as_given(X)
    model = BLR(prior_precision=1.0, random_state=0).fit(given, y.astype(given.dtype))
    mean, cov = closed_form(X, y, None)
    compare(model, mean, cov)
    off = (model.posterior_.mean - mean[:-1]) / np.sqrt(cov.diagonal()[:-1])
    assert np.abs(off).max() < 1e-3


def test_rows_on_disk_lead_to_the_same_distribution(tmp_path, monkeypatch):
    X, y = generated(3000)
    np.save(tmp_path / "X.npy", X)
    monkeypatch.setattr(
        "skbayes_sg.estimators.out_of_core.is_out_of_core", lambda X: isinstance(X, np.memmap)
    )
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = BLR(prior_precision=1.0, random_state=0).fit(X, y)
    mean, cov = closed_form(np.asarray(X), y, None)
    compare(model, mean, cov)
    rounding = 1e-9 * np.abs(mean).max()
    np.testing.assert_allclose(model.posterior_.mean, mean[:-1], atol=rounding)
    assert type(model.sampler_) is IndependentDraws


def test_successive_draws_and_chains_are_independent():
    X, y = generated()
    draws = BLR(prior_precision=1.0, n_draws=500, random_state=0).fit(X, y).draws_
    z = (draws - draws.mean(axis=(0, 1))) / draws.std(axis=(0, 1))
    error = CERTAIN / np.sqrt(z[..., 0].size)
    assert np.abs((z[:, 1:] * z[:, :-1]).mean(axis=(0, 1))).max() < error
    assert np.abs((z[1:] * z[:-1]).mean(axis=(0, 1))).max() < error


@pytest.mark.usefixtures("as_drawn")
def test_draws_do_not_depend_on_where_a_run_stops():
    X, y = generated()
    two = BLR(n_draws=100, n_chains=4, prior_precision=1.0, warm_start=True, random_state=0)
    both = clone(two).set_params(n_draws=200).fit(X, y).draws_
    first = two.fit(X, y).draws_
    np.testing.assert_array_equal(np.concatenate([first, two.fit(X, y).draws_], axis=1), both)


def test_posterior_and_predicted_covariance_are_the_distribution():
    X, y = generated()
    model = BLR(prior_precision=1.0, random_state=0).fit(X, y)
    mean, cov = closed_form(X, y, None)
    np.testing.assert_allclose(model.predicted_covariance(X, y), cov, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(model.posterior_.mean, mean[:-1], rtol=1e-8)
    np.testing.assert_allclose(model.posterior_.covariance, cov[:-1, :-1], rtol=1e-6)


@pytest.mark.parametrize("noise_variance", [None, 2.0])
def test_another_prior_needs_no_pass_over_the_rows(noise_variance):
    X, y = generated()
    model = Linear(4, True, noise_variance, (1.0, 1.0))
    before, after = (Posterior.of(model, X, y, precision) for precision in (0.3, 40.0))
    guess = model.guess(y, None)
    moved = ChainTarget(Closed(before, expanded_twice(before, guess))).with_prior(after.prior)
    fresh = ChainTarget(Closed(after, expanded_twice(after, guess)))
    np.testing.assert_allclose(
        moved.coordinates.centre, fresh.coordinates.centre, rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(moved.coordinates.S, fresh.coordinates.S, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(moved.closed_form.variance, fresh.closed_form.variance, rtol=1e-9)
    theta = np.random.default_rng(0).standard_normal((3, model.dim))
    natural = fresh.coordinates.inverse_transform(theta)
    pullback = fresh.coordinates.pullback(after.full_gradient(natural))
    np.testing.assert_allclose(fresh.closed_form.gradient(theta), pullback, rtol=1e-6, atol=1e-6)


def test_prior_precisions_learned_in_the_chains_are_those_of_the_evidence():
    """MacKay's fixed point, lambda E|theta|^2 = P in units of the noise, in closed form."""
    X, y = generated(60)
    X -= X.mean(axis=0)
    em = VariationalEM(n_updates=150)
    model = BLR(prior_precision=em, noise_variance=4.0, random_state=0).fit(X, y)
    assert type(model.sampler_) is IndependentDraws
    unit = model.prior_precision_[:4] / model.prior_precision_blocks_["coef"]
    lam = 1.0
    for _ in range(200):
        precision = X.T @ X / 4 + np.diag(lam * unit)
        mean, cov = np.linalg.solve(precision, X.T @ y / 4), np.linalg.inv(precision)
        lam = 4 / (unit @ (mean**2 + cov.diagonal()))
    assert model.prior_precision_blocks_["coef"] == pytest.approx(lam, rel=0.1)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of few draws
def test_more_columns_than_rows_are_drawn_exactly():
    """Above 1,000 parameters too, under the prior that was learned."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 1001))
    y = X[:, 0] + rng.standard_normal(40)
    model = BLR(n_draws=4, random_state=0, fit_intercept=False).fit(X, y)
    assert type(model.sampler_) is IndependentDraws
    precision = X.T @ X + np.diag(model.prior_precision_)
    mean = np.linalg.solve(precision, X.T @ y)
    np.testing.assert_allclose(model.posterior_.mean, mean, atol=1e-9)
    np.testing.assert_allclose(model.posterior_.precision, precision, atol=1e-9)


def test_a_posterior_without_a_closed_form_is_refused():
    X, y = generated()
    posterior = Posterior.of(Softmax(4, 2), X, (y > 0).astype(float), 1.0)
    with pytest.raises(ValueError, match="needs a posterior in closed form"):
        IndependentDraws().validate(posterior)
    with pytest.raises(ValueError, match="needs a posterior in closed form"):
        BayesianLogisticRegression(IndependentDraws(), random_state=0).fit(X, y > 0)


def test_the_distribution_is_standard_in_its_own_coordinates():
    X, y = generated()
    posterior = Posterior.of(Linear(4, True, 2.0), X, y, np.append(np.ones(4), 1e-6))
    target = ChainTarget(Closed(posterior, expanded_twice(posterior, np.zeros((1, 5)))))
    assert isinstance(target.closed_form, GaussianPrior)
    np.testing.assert_array_equal(target.closed_form.precision, np.ones(5))
    mean, cov = closed_form(X, y, 2.0, at_means=False)
    np.testing.assert_allclose(target.coordinates.covariance(np.eye(5)), cov, rtol=1e-7)
    np.testing.assert_allclose(target.coordinates.centre[0], mean, rtol=1e-7)


@pytest.mark.parametrize("noise_variance", [2.0, None])
def test_the_target_of_chains_is_the_posterior_in_their_coordinates(noise_variance):
    X, y = generated()
    model = Linear(4, True, noise_variance)
    posterior = Posterior.of(model, X, y, np.full(model.dim, 0.5))
    start = np.zeros((1, posterior.dim))
    target = ChainTarget(Closed(posterior, expanded_twice(posterior, start)))
    u = np.random.default_rng(0).standard_normal((4, posterior.dim))
    at = target.coordinates.inverse_transform(u)
    value, slope = target.logdensity_and_grad(u)
    expected = posterior.log_prob(at)
    np.testing.assert_allclose(value - value[0], expected - expected[0], rtol=1e-6)
    gradient = target.coordinates.pullback(posterior.full_gradient(at))
    np.testing.assert_allclose(slope, gradient, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(target.grad_estimate(u, slice(None)), slope)


@pytest.mark.parametrize("rounding", [0.0, 1e-4], ids=["whitened", "collinear"])
def test_products_with_a_curvature_of_groups_are_those_with_the_matrix(rounding):
    """Also where it is the identity within no group."""
    rng, group = np.random.default_rng(0), np.array([0, 1, 1, 2, 1, 0, 1, 1])
    same = group[:, None] == group
    curvature = rng.standard_normal((8, 8)) / 10
    curvature = np.where(same, np.eye(8) + rounding, curvature + curvature.T)
    v = rng.standard_normal((5, 8))
    found = product_with(curvature, group)(v)
    np.testing.assert_allclose(found, v @ curvature, rtol=1e-12, atol=1e-14)
