"""Contract of every exported model, and what is special about each."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import expit, softmax

from skbayes_sg.chains.run import Length, run_chain
from skbayes_sg.data import Batch
from skbayes_sg.linalg import DIAGONAL, FULL, Partitioned
from skbayes_sg.models import (
    DRBM,
    MLP,
    Gamma,
    GaussianMLP,
    Linear,
    NegativeBinomial,
    Poisson,
    Softmax,
)
from skbayes_sg.models.predictor import Family, Predictor
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import SGFS

RNG = np.random.default_rng(0)
CLASSIFIERS = {
    "binary": Softmax(3, 2),
    "binary without intercept": Softmax(3, 2, fit_intercept=False),
    "three classes": Softmax(3, 3),
    "three classes without intercept": Softmax(3, 3, fit_intercept=False),
    "binary network": MLP(3, 2, (4,)),
    "network, tanh": MLP(3, 3, (4,), "tanh"),
    "deep network": MLP(3, 3, (4, 2)),
    "binary DRBM": DRBM(3, 2, 4),
    "DRBM": DRBM(3, 3, 2),
}
MODELS = CLASSIFIERS | {
    "linear": Linear(3, noise_variance=0.7),
    "linear, noise sampled": Linear(3),
    "linear, noise sampled, without intercept": Linear(3, fit_intercept=False),
    "network with noise": GaussianMLP(3, np.zeros(1), np.ones(1), (4,)),
    "network of two responses": GaussianMLP(3, np.array([1.0, -2]), np.array([0.5, 3]), (4, 2)),
    "Poisson": Poisson(3),
    "Poisson without intercept": Poisson(3, fit_intercept=False),
    "Gamma": Gamma(3),
    "Gamma without intercept": Gamma(3, fit_intercept=False),
    "negative binomial": NegativeBinomial(3),
}
MODEL = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
WITH_LABELS = [name for name in MODELS if not isinstance(MODELS[name], Family)]
OWN_LABELS = pytest.mark.parametrize(  # of the others see test_generalized_linear.py
    "model", [MODELS[name] for name in WITH_LABELS], ids=WITH_LABELS
)
CLASSIFIER = pytest.mark.parametrize("model", CLASSIFIERS.values(), ids=CLASSIFIERS)


def data(model, n=7, chains=None):
    shape = (n,) if chains is None else (chains, n)
    X = RNG.standard_normal((*shape, 3))
    if isinstance(model, Linear):
        return X, RNG.standard_normal(shape)
    if isinstance(model, GaussianMLP):
        return X, RNG.standard_normal((*shape, model.n_responses))
    if isinstance(model, Family):
        return X, RNG.poisson(2.0, shape) + 0.5 * isinstance(model, Gamma)
    return X, model.encode(RNG.integers(max(2, model.n_logits), size=shape), np.float64)


def labels(model, theta, X):
    """Labels of the model and their probabilities: all classes, or three nodes of the noise."""
    mean = model.predict(theta, X)[0]
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)  # exact for r^4
    if isinstance(model, GaussianMLP):
        distribution = model.outputs(theta, X)[0].reshape(2, len(X), -1)
        every = product(zip(nodes, weights / weights.sum(), strict=True), repeat=model.n_responses)
        each = [tuple(zip(*chosen, strict=True)) for chosen in every]
        return [
            (
                model.encode(distribution[0] + np.exp(distribution[1] / 2) * r, X.dtype),
                np.full(len(X), np.prod(w)),
            )
            for r, w in each
        ]
    if isinstance(model, Linear):
        scale = np.sqrt(0.7) if model.noise_variance else np.exp(0.5 * theta[0, -1])
        return [
            (mean[0] + scale * r, np.full(len(X), w / weights.sum()))
            for r, w in zip(nodes, weights, strict=True)
        ]
    p = np.stack([1 - mean[0], mean[0]]) if model.n_classes == 2 else mean
    return [(model.encode(np.full(len(X), k), np.float64), p[k]) for k in range(len(p))]


def theta_of(model, chains=1):
    return RNG.standard_normal((chains, model.dim))


@MODEL
def test_scores_are_the_gradient_of_the_log_likelihood(model):
    (X, y), theta = data(model), theta_of(model)
    h = 1e-5
    steps = h * np.eye(model.dim)
    difference = (
        model.log_likelihood(theta + steps, X, y) - model.log_likelihood(theta - steps, X, y)
    ) / (2 * h)
    np.testing.assert_allclose(model.scores(theta, X, y).rows(), difference.T, atol=1e-8)


@OWN_LABELS
def test_fisher_is_the_second_moment_of_scores_under_the_models_own_labels(model):
    X, _ = data(model)
    theta = theta_of(model)
    expected = np.zeros((model.dim, model.dim))
    for y, p in labels(model, theta, X):
        g = model.scores(theta, X, y).rows()
        expected += (g * p[:, None]).T @ g
    fisher = model.fisher(theta, X)
    np.testing.assert_allclose(fisher.moment(FULL).dense(), expected, atol=1e-12)
    np.testing.assert_allclose(fisher.moment(DIAGONAL).values, expected.diagonal())
    np.testing.assert_allclose(
        model.fisher_diagonal(theta, X).moment(DIAGONAL).values, expected.diagonal()
    )
    weight = np.arange(1.0, 1 + len(X))
    np.testing.assert_allclose(
        model.information(theta, Batch(X, y, weight), FULL).dense(),
        fisher.scaled(np.sqrt(weight)).moment(FULL).dense(),
        atol=1e-10,
    )
    for part in model.units():
        block = fisher.moment(Partitioned(model.units())).dense()[np.ix_(part, part)]
        np.testing.assert_allclose(block, expected[np.ix_(part, part)], atol=1e-12)


@MODEL
def test_a_pass_for_values_and_scores_gives_those_of_two_passes(model):
    theta, (X, y) = theta_of(model, chains=2), data(model)
    value, scores = model.value_and_scores(theta, X, y)
    np.testing.assert_allclose(value, model.log_likelihood(theta, X, y), rtol=1e-13, atol=1e-14)
    np.testing.assert_array_equal(scores.total(), model.scores(theta, X, y).total())


@MODEL
@pytest.mark.parametrize("private", [True, False], ids=["rows of its own", "shared rows"])
def test_vectorised_chains_equal_chains_one_by_one(model, private):
    X, y = data(model, chains=4 if private else None)
    theta = theta_of(model, 4)
    total = model.scores(theta, X, y).total()
    loglik = model.log_likelihood(theta, X, y)
    for c in range(4):
        Xc, yc = (X[c], y[c]) if private else (X, y)
        np.testing.assert_allclose(total[c], model.scores(theta[c : c + 1], Xc, yc).total()[0])
        np.testing.assert_allclose(loglik[c], model.log_likelihood(theta[c : c + 1], Xc, yc)[0])
        np.testing.assert_allclose(
            model.predict(theta, X)[c], model.predict(theta[c : c + 1], Xc)[0]
        )


@MODEL
def test_predictions_do_without_columns_of_zeros(model):
    """Also of sparse rows, and with an offset behind the columns."""
    theta = theta_of(model, chains=2)
    X = RNG.standard_normal((30, 4))
    X[:, 1] = 0
    expected = model.predict(theta, X)
    for rows in [X, sparse.csr_array(X)][: 1 + model.takes_sparse]:
        less, draws, few = model.on_nonzero_columns(theta, rows)
        np.testing.assert_allclose(less.predict(draws, few), expected, rtol=1e-12)
        if isinstance(model, Predictor):
            assert (less.dim, few.shape[1]) == (draws.shape[1], X.shape[1] - 1)


@MODEL
def test_blocks_units_and_start(model):
    names = model.unpack(np.arange(model.dim)[None])
    assert sum(block.size for block in names.values()) == model.dim
    np.testing.assert_array_equal(np.sort(np.concatenate(model.units())), np.arange(model.dim))
    assert model.init(np.random.default_rng(0)).shape == (1, model.dim)


@MODEL
def test_float32_rows_give_float32_scores_close_to_those_of_float64(model):
    (X, y), theta = data(model), theta_of(model)
    narrow = model.scores(
        theta, X.astype(np.float32), y.astype(np.float32) if y.dtype == float else y
    )
    assert narrow.factors[0].left.dtype == np.float32
    expected = model.scores(theta, X, y).total()
    np.testing.assert_allclose(narrow.total(), expected, rtol=1e-6, atol=1e-5)


def test_probabilities():
    model, theta = Softmax(3, 2), theta_of(Softmax(3, 2))
    X, _ = data(model)
    np.testing.assert_allclose(model.predict(theta, X)[0, 0], expit(X @ theta[0, :3] + theta[0, 3]))
    model, theta = Softmax(3, 4), theta_of(Softmax(3, 4))
    z = theta[0, :12].reshape(4, 3) @ X.T + theta[0, 12:, None]
    np.testing.assert_allclose(model.predict(theta, X)[0], softmax(z, axis=0))


@CLASSIFIER
def test_finite_where_logits_are_huge(model):
    (X, y), theta = data(model), 1e4 * theta_of(model)
    for value in (
        model.predict(theta, X),
        model.log_likelihood(theta, X, y),
        model.scores(theta, X, y).total(),
        model.fisher(theta, X).moment(FULL).dense(),
    ):
        assert np.isfinite(value).all()


def test_dimensions():
    assert Softmax(50, 2).dim == 51
    assert Softmax(64, 10).dim == 650
    assert [p.tolist() for p in Softmax(2, 3).units()] == [[0, 1, 6], [2, 3, 7], [4, 5, 8]]
    assert Linear(11).dim == 13
    assert Linear(11, noise_variance=1.0).dim == 12


def test_linear_likelihood_is_that_of_the_normal_distribution():
    for model, variance in [(Linear(3, noise_variance=0.7), 0.7), (Linear(3), None)]:
        (X, y), theta = data(model), theta_of(model, 2)
        for c in range(2):
            scale = np.sqrt(variance or np.exp(theta[c, -1]))
            expected = stats.norm.logpdf(y, X @ theta[c, :3] + theta[c, 3], scale)
            np.testing.assert_allclose(model.log_likelihood(theta, X, y)[c], expected)


def test_noise_of_a_network_is_normal_in_the_units_of_y():
    model = GaussianMLP(3, np.array([1.0, -2]), np.array([0.5, 3]), (4, 2))
    theta, X = theta_of(model, 2), RNG.standard_normal((7, 3))
    y = RNG.standard_normal((7, 2))
    outputs = model.outputs(theta, X)
    mean, sd = model.mean(outputs), np.sqrt(model.variance(outputs))
    np.testing.assert_allclose(mean.reshape(2, 7, 2).swapaxes(1, 2), model.predict(theta, X))
    np.testing.assert_allclose(
        sd.reshape(2, 7, 2), np.exp(theta[:, None, -2:] / 2) * model.scale * np.ones((2, 7, 2))
    )
    expected = stats.norm.logpdf(y.ravel(), mean, sd).reshape(2, 7, 2).sum(axis=2)
    np.testing.assert_allclose(model.log_likelihood(theta, X, model.encode(y, X.dtype)), expected)
    below = model.distribution(y.ravel(), outputs)
    np.testing.assert_allclose(below, stats.norm.cdf(y.ravel(), mean, sd))


# -- directions that the data do not see ------------------------------------------------------

HIDDEN = pytest.mark.parametrize("model", [MLP(4, 3, (5,)), DRBM(4, 3, 5)], ids=["network", "DRBM"])


@HIDDEN
def test_h_plus_1_directions_are_known_by_the_prior_alone(model):
    """The shift of all logits; output weights of each unit; for a DRBM U_j. + a and c_j - a."""
    rng = np.random.default_rng(0)
    theta, X = rng.standard_normal((1, model.dim)), rng.standard_normal((500, 4))
    values, vectors = np.linalg.eigh(model.fisher(theta, X).moment(FULL).dense())
    assert (values < 1e-9 * values[-1]).sum() == 6
    null = vectors[:, :6].T
    np.testing.assert_allclose(
        model.predict(theta + 0.7 * null, X), np.repeat(model.predict(theta, X), 6, axis=0)
    )


@HIDDEN
@pytest.mark.quick("network")
def test_null_directions_follow_the_prior_under_sgfs(model, seed):
    """Neither frozen nor exploding: the shift of all output biases is an independent draw at each
    step.
    """
    rng = np.random.default_rng(3)
    X, y = rng.uniform(size=(150, 4)), rng.integers(3, size=150)
    sampler, posterior = (
        SGFS(structure="full", alpha=3.0, batch_size=50),
        Posterior.of(model, X, y, 0.5),
    )
    theta = np.concatenate([model.init(np.random.default_rng(seed + k)) for k in range(16)])
    state = sampler.init(posterior, theta, np.random.default_rng(seed))
    biases = "intercept_1" if isinstance(model, MLP) else "d"
    shift = model.unpack(run_chain(sampler, posterior, state, Length(250, 500)).draws)[biases].mean(
        axis=-1
    )
    variance = 1 / (3 * 0.5)
    assert abs(shift.var() / variance - 1) < 5 * np.sqrt(2 / shift.size)
    assert abs(np.mean(shift[:, 1:] * shift[:, :-1]) / variance) < 5 / np.sqrt(shift.size)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_terms_of_rows_at_a_point_are_the_limit_of_those_over_a_narrow_distribution(n_classes):
    rng = np.random.default_rng(0)
    model, X = Softmax(3, n_classes), rng.standard_normal((20, 3))
    y = rng.integers(0, n_classes, 20)
    y = np.where(y, 1.0, -1.0) if n_classes == 2 else y
    theta = rng.standard_normal((1, model.dim))
    at_a_point = model.row_terms(theta, None, X, y)
    nearby = model.row_terms(theta, 1e-6 * np.eye(model.dim), X, y)
    for exact, close in zip(at_a_point, nearby, strict=True):
        assert exact.shape == close.shape
        np.testing.assert_allclose(exact, close, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_exponential_is_subnormal(dtype):
    """Such numbers are slow; none is in a gradient, a likelihood or a prediction."""
    low = np.log(np.finfo(dtype).tiny)
    X = np.linspace(0.0, 1.2, 25, dtype=dtype)[:, None]
    theta, y = np.array([[0.0, low, 2 * low]], dtype), np.zeros(25, int)
    model = Softmax(1, 3, fit_intercept=False)
    z = model.outputs(theta, X)
    value, residual = model.value_and_residual(z.copy(), y)
    np.testing.assert_allclose(value[0], -np.log1p(np.exp(z[0, 1]) + np.exp(z[0, 2])), atol=1e-6)
    for each in (residual[:, 1:], model.residual(z.copy(), y)[:, 1:], model.predict(theta, X)):
        assert (np.abs(each) >= np.finfo(dtype).tiny).all()
        np.testing.assert_allclose(
            np.abs(each[0, -1]), softmax(z[0], axis=0)[2], rtol=1e-5, atol=1e-30
        )


@pytest.mark.parametrize("width", [0.3, 2.9, 3.1, 12.0])
def test_probabilities_over_a_normal_logit_are_those_of_quadrature(width):
    """Their mean, and that of p (1 - p), on either side of where the normal limit takes over."""
    model, X = (
        Softmax(2, 2, fit_intercept=False),
        np.column_stack([np.linspace(-9, 9, 7), np.ones(7)]),
    )
    theta, root, y = np.array([[1.0, 0.0]]), np.diag([0.0, width]), np.where(X[:, 0] > 2, 1.0, -1.0)
    z = np.linspace(-10, 10, 4001)
    share = stats.norm.pdf(z) / stats.norm.pdf(z).sum()
    p = expit(X[:, :1] + width * z)
    residual, slope = model.row_terms(theta, root, X, y)
    np.testing.assert_allclose(residual[0], (y > 0) - p @ share, atol=2e-3)
    np.testing.assert_allclose(slope[0, 0], (p * (1 - p)) @ share, rtol=0.05, atol=1e-3)
