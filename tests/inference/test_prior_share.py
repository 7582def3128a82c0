"""The control variate of variational EM has mean zero, and hides what a chain does without data."""

import warnings

import numpy as np
import pytest
from conftest import z_scores
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from skbayes_sg import BayesianLogisticRegression, VariationalEM
from skbayes_sg.inference.variational_em import DiagonalControlVariate, MatrixControlVariate
from skbayes_sg.models import DRBM, MLP, Linear, Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import HMC, IASG, SGLD, ConstantSGD, MomentumSGD

MODELS = [Softmax(4, 3), MLP(4, 3, (5,)), DRBM(4, 3, 2)]
CLASSES = np.random.default_rng(3).integers(0, 3, 300)


def features(n_features=4, null=1):
    """Correlated columns, the last ones constantly zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, n_features)) @ (
        0.3 + rng.standard_normal((n_features, n_features))
    )
    return np.column_stack([X, np.zeros((300, null))])


def shares(posterior, theta):
    null = posterior.model.null_directions()
    return MatrixControlVariate(posterior, theta), DiagonalControlVariate(posterior, theta, null)


def test_terms_have_mean_zero_under_the_posterior(seed):
    X = features()
    y = X @ np.arange(5.0) + np.random.default_rng(1).standard_normal(300)
    posterior = Posterior.of(Linear(5, False, 1.0), X, y, np.linspace(0.5, 8.0, 5))
    precision = X.T @ X + np.diag(posterior.prior.precision)
    mean = np.linalg.solve(precision, X.T @ y)
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(np.linalg.inv(precision))
    theta = mean + rng.standard_normal((20_000, 5)) @ root.T
    gradient = (mean - theta) @ precision
    for share in shares(posterior, mean[None]):
        terms = share.term(posterior, theta, gradient)
        assert terms.std(axis=0).max() > 0.01
        assert np.abs(z_scores(terms[:, :4], np.zeros(4))).max() < 5
        # without data the square and the term cancel at every theta
        squares = posterior.prior.scaled_squares(theta)[:, 4]
        np.testing.assert_allclose(squares - 1 + terms[:, 4], 0.0, atol=1e-10)


def test_without_data_a_parameter_is_counted_from_its_prior_mean():
    """Square and term then cancel at every theta, wherever the prior is."""
    X = features(n_features=1, null=1)
    mean = np.array([0.7, -3.0])
    posterior = Posterior.of(Linear(2, False, 1.0), X, X[:, 0], 2.0)
    posterior = posterior.with_prior(posterior.model.prior(np.full(2, 2.0), mean))
    theta = np.random.default_rng(0).normal([0.0, 5.0], size=(50, 2))
    squares = posterior.prior.scaled_squares(theta)
    np.testing.assert_allclose(squares[:, 1], 2.0 * (theta[:, 1] + 3.0) ** 2)
    gradient = posterior.full_gradient(theta)
    for share in shares(posterior, mean[None]):
        term = share.term(posterior, theta, gradient)
        np.testing.assert_allclose(squares[:, 1] - 1 + term[:, 1], 0.0, atol=1e-9)


def test_a_matrix_leaves_nothing_of_the_variance_that_is_drawn():
    """Of a Gaussian posterior: linear in theta, with the variance that the curvature gives."""
    X = features()
    y = X @ np.arange(5.0)
    posterior = Posterior.of(Linear(5, False, 1.0), X, y, 2.0)
    covariance = np.linalg.inv(X.T @ X + 2 * np.eye(5))
    mean = covariance @ X.T @ y
    theta = mean + 10 * np.random.default_rng(2).standard_normal((50, 5))
    term = MatrixControlVariate(posterior, mean[None]).term(
        posterior, theta, posterior.full_gradient(theta)
    )
    excess = posterior.prior.scaled_squares(theta) - 1 + term
    np.testing.assert_allclose(excess, 2 * (mean * theta + covariance.diagonal()) - 1, atol=1e-8)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_null_directions_change_no_probability(model):
    X = features(null=0)
    theta = np.random.default_rng(0).standard_normal((1, model.dim))
    seen = np.zeros(model.dim, bool)
    for coordinates, signs in model.null_directions():
        assert not seen[coordinates].any()
        seen[coordinates] = True
        for members in coordinates:
            moved = theta.copy()
            moved[0, members] += 1.7 * signs
            np.testing.assert_allclose(model.predict(moved, X), model.predict(theta, X))


def test_the_shift_of_all_classes_has_no_part_in_what_is_learned():
    X = features()
    posterior = Posterior.of(Softmax(5, 3), X, CLASSES, 3.0)
    theta = 0.3 * np.random.default_rng(1).standard_normal((4, posterior.dim))
    coef = np.arange(15)
    shifted = theta.copy()
    shifted[:, coef] += np.tile(np.random.default_rng(2).standard_normal(5), 3)
    share = MatrixControlVariate(posterior, np.zeros((1, posterior.dim)))

    def excess(theta):
        term = share.term(posterior, theta, posterior.full_gradient(theta))
        return (posterior.prior.scaled_squares(theta) - 1 + term)[:, coef].mean(axis=1)

    np.testing.assert_allclose(excess(shifted), excess(theta), atol=1e-9)


def test_known_null_directions_are_restored_where_a_chain_stands_still():
    """At the mode the mean of K terms lacks no 1 / K; without the model's directions it does."""
    X = 5 * features(null=0)
    posterior = Posterior.of(Softmax(4, 3), X, CLASSES, 3.0)
    mode = np.zeros((1, posterior.dim))  # where the sum over classes of the gradient is zero
    gradient = posterior.full_gradient(mode)
    null = posterior.model.null_directions()
    found, without = (
        DiagonalControlVariate(posterior, mode, given)
        .term(posterior, mode, gradient)[0, :12]
        .mean()
        for given in (null, [])
    )
    assert without < 0.05
    assert found == pytest.approx(1 / 3, abs=0.05)


def learned_on_three_classes(sampler):
    """The prior precision; short runs, and directions without noise, are warned of."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4))
    y = (X @ rng.standard_normal((4, 3)) + rng.gumbel(size=(500, 3))).argmax(axis=1)
    em = VariationalEM(n_updates=150)
    model = BayesianLogisticRegression(sampler, em, n_chains=2, n_draws=10, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y).prior_precision_blocks_["coef"]


@pytest.fixture(scope="module")
def learned_by_hmc():
    return learned_on_three_classes(HMC())


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler",
    [
        ConstantSGD("scalar", batch_size=50),
        pytest.param(ConstantSGD(batch_size=50), marks=pytest.mark.slow),
        pytest.param(MomentumSGD(batch_size=50), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_sampler_without_noise_there_learns_what_hmc_learns(sampler, learned_by_hmc):
    """Three classes: without the term the precision would be half too large.

    Over random states the logarithm has a standard deviation of .015, and of HMC one of .007.
    """
    assert learned_on_three_classes(sampler) == pytest.approx(
        learned_by_hmc, rel=5 * np.hypot(0.015, 0.007)
    )


@pytest.mark.slow
def test_predicted_covariance_of_averages_has_the_noise_at_the_iterates():
    """A scalar step spreads the iterates more than their averages."""
    from skbayes_sg import BayesianLinearRegression

    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 4))
    y = X @ np.ones(4) + rng.standard_normal(2000)
    sampler = IASG(structure="scalar", batch_size=10)
    model = BayesianLinearRegression(
        sampler,
        noise_variance=1.0,
        n_chains=8,
        n_draws=400,
        random_state=0,
        prior_precision=1.0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    draws = model.draws_.reshape(-1, 5)
    ratio = draws.var(axis=0) / model.predicted_covariance(X, y).diagonal()
    assert abs(ratio.mean() - 1) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [10, "auto"])
def test_no_covariance_is_predicted_where_iterates_leave_the_normal_region(batch_size):
    """One step for all directions and ten rows: the draws have a fraction of what theory says."""
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)[:, :5]
    model = BayesianLogisticRegression(
        IASG(structure="scalar", batch_size=batch_size), prior_precision=1.0, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    if batch_size == "auto":
        assert np.linalg.eigvalsh(model.predicted_covariance(X, y))[0] > 0
    else:
        with pytest.raises(ValueError, match="times that at the mean of the draws"):
            model.predicted_covariance(X, y)


def test_chains_start_at_the_mode_where_a_start_is_never_forgotten():
    assert ConstantSGD("scalar").starts_at_mode
    assert not ConstantSGD("full").starts_at_mode
    assert not SGLD().starts_at_mode
