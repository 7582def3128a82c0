import numpy as np
import pytest
from conftest import logistic_data
from scipy import sparse

from skbayes_sg.chains.run import Length, run_chain
from skbayes_sg.linalg import DIAGONAL, FULL, Dense
from skbayes_sg.linalg.coordinates import affine
from skbayes_sg.linalg.normal_score import NormalScore
from skbayes_sg.models import MLP, Linear, Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.control_variates import Expanded
from skbayes_sg.posterior.gaussian import expanded, find_mode, posterior_mean
from skbayes_sg.posterior.scored import ScoredPosterior
from skbayes_sg.priors import GaussianPrior
from skbayes_sg.priors.joint import IntegratedPrior
from skbayes_sg.priors.scales import OnePrecision
from skbayes_sg.samplers import HMC


@pytest.fixture
def posterior():
    X, y = logistic_data()
    return Posterior.of(Softmax(4, 2), X, y, np.linspace(0.5, 2.5, 5))


THETA = np.random.default_rng(1).standard_normal((3, 5))


def test_gradient_of_all_rows_is_that_of_log_prob(posterior):
    h = 1e-5
    for k in range(5):
        step = h * np.eye(5)[k]
        difference = (posterior.log_prob(THETA + step) - posterior.log_prob(THETA - step)) / (2 * h)
        gradient = posterior.gradient(THETA, posterior.scores(THETA, slice(None)))
        np.testing.assert_allclose(gradient[:, k], difference, rtol=1e-6)


def test_minibatch_gradients_average_to_the_full_one(posterior, seed):
    stream = posterior.minibatches(20, False, np.random.default_rng(seed), 3)
    draws = np.array(
        [posterior.gradient(THETA, posterior.scores(THETA, stream.draw())) for _ in range(3000)]
    )
    full = posterior.gradient(THETA, posterior.scores(THETA, slice(None)))
    assert np.abs((draws.mean(axis=0) - full) / (draws.std(axis=0) / np.sqrt(3000))).max() < 5


def test_an_integer_weight_is_a_repetition():
    X, y = logistic_data(50)
    weight = np.random.default_rng(0).integers(1, 4, 50)
    weighted = Posterior.of(Softmax(4, 2), X, y, 1.0, weight.astype(float))
    repeated = Posterior.of(Softmax(4, 2), X.repeat(weight, 0), y.repeat(weight), 1.0)
    np.testing.assert_allclose(weighted.log_prob(THETA), repeated.log_prob(THETA))
    gradient = weighted.gradient(THETA, weighted.scores(THETA, slice(None)))
    np.testing.assert_allclose(gradient, repeated.full_gradient(THETA))
    a, b = weighted.expand(THETA[:1], FULL), repeated.expand(THETA[:1], FULL)
    np.testing.assert_allclose(a.gradient, b.gradient)
    np.testing.assert_allclose(a.curvature.dense(), b.curvature.dense())


def test_expand_is_value_gradient_and_hessian(posterior):
    point = posterior.expand(THETA[:1], FULL)
    assert point.log_prob == pytest.approx(posterior.log_prob(THETA[:1])[0])
    h = 1e-5
    hessian = [
        (
            posterior.expand(THETA[:1] + s, DIAGONAL).gradient
            - posterior.expand(THETA[:1] - s, DIAGONAL).gradient
        )[0]
        / (2 * h)
        for s in h * np.eye(5)
    ]
    np.testing.assert_allclose(point.curvature.dense(), -np.array(hessian), atol=1e-5)


def test_sparse_rows_and_memory_maps_equal_dense_ones(tmp_path, monkeypatch):
    X, y = logistic_data()
    X[np.abs(X) < 0.7] = 0
    np.save(tmp_path / "X.npy", X)
    dense = Posterior.of(Softmax(4, 2), X, y)
    monkeypatch.setattr("skbayes_sg.data.rows.bytes_to_keep", lambda: 0)
    rows = np.array([[3, 5, 7], [0, 1, 2], [9, 8, 7]])
    for other in (sparse.csr_matrix(X), np.load(tmp_path / "X.npy", mmap_mode="r")):
        same = Posterior.of(Softmax(4, 2), other, y)
        np.testing.assert_array_equal(same.data.take(rows), dense.data.take(rows))
        np.testing.assert_allclose(
            same.scores(THETA, rows).total(), dense.scores(THETA, rows).total()
        )
        np.testing.assert_allclose(same.log_prob(THETA), dense.log_prob(THETA))
    assert sparse.issparse(Posterior.of(Softmax(4, 2), sparse.csr_matrix(X), y).data.X)


def test_single_has_the_gradient_in_float32_and_follows_the_prior():
    X, y = logistic_data(200, 3)
    weight = np.linspace(0.5, 1.5, 200)
    posterior = Posterior.of(Softmax(3, 2), X, y, 1.0, weight)
    theta = np.random.default_rng(0).standard_normal((2, 4))
    assert (
        posterior.single.data.X.dtype
        == posterior.single.data.y.dtype
        == posterior.single.data.weight.dtype
        == np.float32
    )
    for one in (posterior, posterior.with_prior(GaussianPrior(np.full(4, 7.0)))):
        assert one.single.full_gradient(theta) == pytest.approx(
            one.full_gradient(theta), rel=1e-5, abs=1e-3
        )
    assert posterior.data.X.dtype == np.float64


def test_n_total_scales_the_likelihood_and_not_the_prior():
    X, y = logistic_data()
    scaled = Posterior.of(Softmax(4, 2), X, y, 1.0, n_total=900)
    tripled = Posterior.of(Softmax(4, 2), np.tile(X, (3, 1)), np.tile(y, 3), 1.0)
    np.testing.assert_allclose(scaled.log_prob(THETA), tripled.log_prob(THETA))
    other = scaled.with_prior(GaussianPrior(np.full(5, 2.0)))
    assert (other.prior.precision == 2).all()
    assert (scaled.prior.precision == 1).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_mode_has_no_gradient_left(n_classes, monkeypatch):
    """Newton on growing subsets, and L-BFGS where D is large, end within 0.1 posterior sd."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30_000, 5)) * np.array([1e-3, 1, 1, 1, 1e3])
    model = Softmax(5, n_classes)
    y = model.encode(rng.integers(n_classes, size=len(X)), X.dtype)
    posterior = Posterior.of(model, X, y, 1.0)

    def distance(mode):
        here = posterior.expand(mode.theta, FULL)
        return np.sqrt(
            np.sum(here.gradient * here.curvature.inverse().matvec(here.gradient)) / model.dim
        )

    newton = find_mode(posterior, model.init(rng), rng)
    assert distance(newton) < 0.1
    assert newton.passes < 6
    assert isinstance(newton.curvature, Dense)
    monkeypatch.setattr("skbayes_sg.linalg.sizes._IN_EVERY_STEP", 1)
    assert distance(find_mode(posterior, model.init(rng), rng)) < 0.1


def test_posterior_mean_is_nearer_to_the_mean_than_the_mode():
    """On a skewed posterior, against long exact draws; on one that is Gaussian nothing moves."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 3))
    y = np.where(rng.random(150) < 1 / (1 + np.exp(-X @ [2.0, -1.0, 0.5] - 1.5)), 1.0, -1.0)
    posterior = Posterior.of(Softmax(3, 2), X, y, 0.1)
    mode = find_mode(posterior, np.zeros((1, 4)), rng)
    hmc = HMC()
    state = hmc.init(posterior, np.repeat(mode.theta, 16, axis=0), np.random.default_rng(1))
    draws = run_chain(hmc, posterior, state, Length(1500, 300)).draws.reshape(-1, 4)
    mean, sd = draws.mean(axis=0), draws.std(axis=0)
    moved = posterior_mean(posterior, mode)
    assert np.linalg.norm((moved.theta[0] - mean) / sd) < 0.3 * np.linalg.norm(
        (mode.theta[0] - mean) / sd
    )
    target = Posterior.of(Linear(3, noise_variance=1.0), X, y, 1.0)
    gaussian = find_mode(target, np.zeros((1, 4)), rng)
    assert posterior_mean(target, gaussian) is gaussian


def test_the_mark_of_a_prior_by_the_expected_information_stays():
    """A stream has it from the chunk that needed it until one takes the observed information."""
    X, y = logistic_data(200, 2)
    posterior = Posterior.of(Softmax(2, 2), X, y, 1.0)
    near = expanded(posterior, posterior.with_prior(posterior.prior).normal_prior)
    assert not near.by_expected
    marked = posterior.with_prior(posterior.normal_prior.as_expected())
    assert expanded(marked, near).by_expected


def test_what_a_posterior_does_not_have_is_said():
    """The error names the kind that has no such part."""
    X, y = np.eye(3), np.array([0, 1, 0])
    of_many, softmax = Posterior.of(MLP(3, 2, (2,)), X, y), Softmax(3, 2)
    of_one = Posterior.of(softmax, X, y)
    scales = OnePrecision(np.arange(3), np.zeros(3, int), ["coef"], 1.0)
    integrated = IntegratedPrior(softmax.prior(np.ones(4)), scales.independent())
    natural = Expanded.at(of_one, of_one.expand(np.zeros((1, 4)), FULL), False)
    line = np.linspace(-2, 2, 5)
    with pytest.raises(TypeError, match="MLP has many modes"):
        _ = of_many.predictor
    with pytest.raises(TypeError, match="IntegratedPrior is of no family"):
        _ = of_one.with_prior(integrated).normal_prior
    with pytest.raises(TypeError, match="Softmax has no parameter of its own"):
        ScoredPosterior(of_one, NormalScore.through(np.arange(1), 0, line, line[:, None]))
    with pytest.raises(TypeError, match="int is no affine function"):
        affine(0)
    with pytest.raises(TypeError, match="Expanded is not in whitened coordinates"):
        _ = natural.whitening
