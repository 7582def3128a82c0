"""The gradient of all rows expanded at an anchor, rows drawn in proportion to what is left of it,
and underdamped Langevin dynamics on them."""

import dataclasses
import math
import re
import warnings

import numpy as np
import pytest
from conftest import logistic_data, second_moments, z_scores
from scipy.special import expit
from sklearn.datasets import make_classification

from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression
from skbayes_sg.chains.run import Length, run_chain
from skbayes_sg.data import in_threads
from skbayes_sg.data.minibatches import Minibatches, SamplingFrame
from skbayes_sg.linalg import FULL, Dense, Diag
from skbayes_sg.models import Linear, Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior import control_variates as cv
from skbayes_sg.posterior.control_variates import Expanded, choose_pool
from skbayes_sg.posterior.gaussian import find_mode, laplace_points, posterior_mean
from skbayes_sg.posterior.steepness import slopes_of, steepness
from skbayes_sg.posterior.target import ChainTarget
from skbayes_sg.samplers import HMC, SGFS, SGLD, UnderdampedLangevin


def mode_of(posterior):
    guess = posterior.model.guess(posterior.data.y, posterior.data.weight)
    return find_mode(posterior, guess, np.random.default_rng(0))


def anchored(posterior, whiten=True):
    return ChainTarget(
        Expanded.at(posterior, posterior_mean(posterior, mode_of(posterior)), whiten)
    )


def posteriors():
    X, y = logistic_data(400, 3)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 400)
    three = np.arange(400) % 3
    yield "binary", Posterior.of(Softmax(3, 2), X, y, 1.0)
    yield "weighted", Posterior.of(Softmax(3, 2), X, y, 1.0, weight)
    yield "population", Posterior.of(Softmax(3, 2), X, y, 1.0, weight, 4000)
    yield "three classes", Posterior.of(Softmax(3, 3), X, three, [1.0, 2, 3] * 4)
    yield "without intercept", Posterior.of(Softmax(3, 3, fit_intercept=False), X, three, 1.0)
    yield "regression", Posterior.of(Linear(3), X, X[:, 0] + y, 1.0)
    yield "known noise", Posterior.of(Linear(3, noise_variance=2.0), X, X[:, 0] + y, 1.0)


EACH = [pytest.param(posterior, id=name) for name, posterior in posteriors()]
BOTH = pytest.mark.parametrize("whiten", [False, True])


@pytest.fixture(scope="module")
def binary():
    X, y = logistic_data(2000, 3)
    return Posterior.of(Softmax(3, 2), X, y, 1.0)


@pytest.fixture(scope="module")
def regression():
    """Sampled noise variance: what is left beyond second order is not zero."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 3)) @ (np.eye(3) + 0.4 * rng.standard_normal((3, 3)))
    y = X @ rng.standard_normal(3) + 1.2 * rng.standard_normal(60)
    return Posterior.of(Linear(3, fit_intercept=False), X, y, 2.0)


# -- the expansion ----------------------------------------------------------------------------


@pytest.mark.parametrize("posterior", EACH)
def test_remainders_are_scores_without_their_linear_part(posterior):
    """Against central differences of the scores at the anchor."""
    model, rng = posterior.model, np.random.default_rng(1)
    X, y = posterior.data.X[:7], posterior.data.y[:7]
    at, change = 0.5 * rng.standard_normal((2, 1, model.dim))
    step = 1e-5 * np.eye(model.dim)
    ahead, behind = (
        np.stack([model.scores(at + s, X, y).rows() for s in sign * step]) for sign in (1, -1)
    )
    jacobian = (ahead - behind) / 2e-5  # (D, n, D): by parameter, row and score
    linear = model.scores(at, X, y).rows() + np.einsum("j,jnd->nd", change[0], jacobian)
    left = model.remainder(model.outputs(change, X), model.expand_rows(model.outputs(at, X), y))
    found = model.times_inputs(left, X).rows()
    np.testing.assert_allclose(found, model.scores(at + change, X, y).rows() - linear, atol=1e-8)
    hessian = -jacobian.sum(axis=1)
    fisher = model.fisher(at, X).gram(np.arange(model.dim))
    observed = model.observed(fisher, model.scores(at, X, y).total())
    np.testing.assert_allclose(observed, hessian, atol=1e-7)


@BOTH
@pytest.mark.parametrize("posterior", EACH)
def test_values_and_gradients_of_the_pool_are_those_of_one_function(posterior, whiten, monkeypatch):
    """With all rows it is the log posterior; with a pool its gradient is that of the steps."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr("skbayes_sg.posterior.control_variates._SMALLEST", 50)
    monkeypatch.setattr("skbayes_sg.posterior.control_variates._FROZEN", 1.0)
    pool = anchored(posterior, whiten)
    monkeypatch.undo()
    whole = anchored(posterior, whiten)
    assert pool.anchor.pool_size < posterior.n_rows == whole.anchor.pool_size
    spread = posterior.expand(whole.anchor.theta, FULL).curvature.inverse().cholesky()
    theta = whole.anchor.theta + spread.matvec(rng.standard_normal((3, posterior.dim)))
    for mine in (pool, whole):
        u = mine.coordinates.transform(theta)
        value, gradient = mine.logdensity_and_grad(u)
        scale = np.abs(gradient).max()
        np.testing.assert_allclose(gradient, mine.full_gradient(u), atol=1e-9 * scale)
        step = 0.1 * (mine.coordinates.transform(theta + spread.dense().T[0]) - u)
        ahead, behind = mine.logdensity_and_grad(u + step)[0], mine.logdensity_and_grad(u - step)[0]
        along = np.sum(gradient * step, axis=1)
        np.testing.assert_allclose(ahead - behind, 2 * along, rtol=5e-3, atol=5e-4)
    difference = value - posterior.log_prob(theta)
    np.testing.assert_allclose(difference, difference[0], atol=1e-3)


@BOTH
@pytest.mark.parametrize("posterior", EACH)
def test_rows_in_pieces_have_the_same_sums_in_any_number_of_threads(posterior, whiten, monkeypatch):
    whole = anchored(posterior, whiten)
    u = whole.coordinates.transform(whole.anchor.theta)
    u = u + 0.1 * np.random.default_rng(0).standard_normal((3, u.shape[1]))
    monkeypatch.setattr(cv, "_BLOCK", 1000)
    pieces = anchored(posterior, whiten)
    assert len(pieces.density._rows.blocks) > 1 == len(whole.density._rows.blocks)
    value, gradient = pieces.logdensity_and_grad(u)
    scale = np.abs(gradient).max()
    np.testing.assert_allclose(gradient, whole.logdensity_and_grad(u)[1], atol=1e-5 * scale)
    np.testing.assert_allclose(
        value - value[0],
        whole.logdensity_and_grad(u)[0] - whole.logdensity_and_grad(u)[0][0],
        atol=1e-3,
    )
    with in_threads(2):
        np.testing.assert_array_equal(pieces.logdensity_and_grad(u)[0], value)
        np.testing.assert_array_equal(pieces.full_gradient(u), pieces.logdensity_and_grad(u)[1])


@BOTH
@pytest.mark.parametrize("posterior", EACH)
def test_gradients_are_unbiased(posterior, whiten, seed):
    mine, rng = anchored(posterior, whiten), np.random.default_rng(seed)
    spread = posterior.expand(mine.anchor.theta, FULL).curvature.inverse().cholesky()
    theta = mine.anchor.theta + spread.matvec(rng.standard_normal((3, posterior.dim)))
    u = mine.coordinates.transform(theta)
    exact = mine.coordinates.pullback(posterior.full_gradient(theta))
    rounding = 1e-4 * np.abs(exact).max()  # rows are in single precision
    np.testing.assert_allclose(mine.full_gradient(u), exact, atol=rounding)
    stream = mine.minibatches(16, False, rng, 3)
    draws = np.array([mine.grad_estimate(u, stream.draw()) for _ in range(600)])
    if np.abs(draws - exact).max() > rounding:  # no noise at all where the noise variance is given
        assert np.abs(z_scores(draws, exact)).max() < 5


@BOTH
@pytest.mark.parametrize("posterior", EACH)
def test_mean_noise_is_that_over_the_laplace_approximation(posterior, whiten):
    mine = anchored(posterior, whiten)
    spread = mine.anchor.curvature.inverse().cholesky()
    origin = mine.coordinates.transform(mine.anchor.theta)
    normals = np.random.default_rng(1).standard_normal((100, posterior.dim))
    each = [mine.density.score_covariance(origin + spread.matvec(z[None])) for z in normals]
    expected, found = np.mean(each, axis=0), mine.anchor.noise.dense()
    error = np.linalg.norm(found - expected)
    noise = np.linalg.norm(np.std(each, axis=0) / 10)
    if not np.any(found):  # the noise variance is given
        assert not np.any(expected)
        return
    # the points have the second moments of the draws; noise is of fourth order in the distance
    assert error < 5 * noise + 0.5 * np.linalg.norm(expected)
    kappa = posterior.n_total**2 * np.trace(np.linalg.solve(mine.anchor.curvature.dense(), found))
    if mine.anchor.batch_size < mine.anchor.pool_size:
        assert mine.anchor.noise_number == pytest.approx(kappa / posterior.dim)
    else:  # from the sizes of remainders at points twice as wide
        assert 0.5 < mine.anchor.noise_number / (kappa / posterior.dim) < 2


@pytest.mark.parametrize("posterior", EACH)
def test_coordinates_change_vectors_gradients_and_matrices_together(posterior):
    mine = anchored(posterior)
    here, rng, dim = mine.coordinates, np.random.default_rng(2), posterior.dim
    theta, gradient = mine.anchor.theta + rng.standard_normal((2, 3, dim))
    u = here.transform(theta)
    np.testing.assert_allclose(here.inverse_transform(u), theta)
    np.testing.assert_allclose(here.pushforward(here.pullback(gradient)), gradient)
    change = np.sum((theta - mine.anchor.theta) * gradient, axis=1)
    np.testing.assert_allclose(np.sum(u * here.pullback(gradient), axis=1), change)
    A = np.cov(rng.standard_normal((dim, 2 * dim)))
    quadratic = np.einsum("ci,ij,cj->c", theta - mine.anchor.theta, A, theta - mine.anchor.theta)
    np.testing.assert_allclose(np.einsum("ci,ij,cj->c", u, here.pullback_matrix(A), u), quadratic)
    covariance = here.covariance(np.linalg.inv(here.pullback_matrix(A)))
    np.testing.assert_allclose(covariance, np.linalg.inv(A), rtol=1e-6, atol=1e-9)


def test_whitened_curvature_of_one_output_is_the_identity(binary):
    mine = anchored(binary)
    np.testing.assert_allclose(mine.anchor.curvature.dense(), np.eye(4), atol=1e-9)
    noise = mine.anchor.noise.dense()
    np.testing.assert_array_equal(noise, np.diag(noise.diagonal()))


# -- rows -------------------------------------------------------------------------------------


def test_sizes_of_remainders_in_one_dimension():
    """sqrt(E r^2 / Lam) at the two points at twice the posterior standard deviation."""
    rng = np.random.default_rng(0)
    X, weight = rng.standard_normal((50, 1)), rng.uniform(0.5, 2, 50)
    y = np.where(rng.random(50) < 0.7, 1.0, -1.0)
    posterior = Posterior.of(Softmax(1, 2, fit_intercept=False), X, y, 1.0, weight)
    mode = mode_of(posterior)
    sd = mode.curvature.dense()[0, 0] ** -0.5
    z = mode.theta[0, 0] * X[:, 0]
    p = expit(z)

    def squared(t):
        return (p - expit(z + t * X[:, 0]) + p * (1 - p) * t * X[:, 0]) ** 2

    mean = (squared(2 * sd) + squared(-2 * sd)) / 2
    expected = weight * np.sqrt(mean) * np.abs(X[:, 0]) * sd
    points = laplace_points(posterior, mode)[0]
    _, pool = choose_pool(posterior, mode, points, np.random.default_rng(0))
    share = 0.9 * expected / expected.sum() + 0.1 / 50  # of the draws of a pool of all rows
    np.testing.assert_allclose(pool.probability, share, rtol=1e-6)
    noise_number = np.sum((expected / 4) ** 2 / share)
    assert pool.noise_number == pytest.approx(noise_number, rel=1e-6)


def test_inclusion_probabilities_are_in_proportion_to_the_size_up_to_one():
    size = np.random.default_rng(0).pareto(1.0, 1000)
    inclusion = np.minimum(1, cv._factor(size, 100) * size)
    assert inclusion.sum() == pytest.approx(100)
    assert inclusion.max() == 1
    share = (inclusion / size)[inclusion < 1]
    np.testing.assert_allclose(share, share[0])
    assert (size[inclusion == 1] * share[0] >= 1).all()


@pytest.mark.parametrize("kind", ["numbers", "levels"])
def test_minibatches_have_some_rows_of_each_level_of_most(kind):
    """Of dense columns each row has a part of all, and the noise alone says how many there are."""
    rng, n, p = np.random.default_rng(0), 4000, 60
    X = rng.standard_normal((n, p)) if kind == "numbers" else np.eye(p)[np.arange(n) % p]
    pool = cv.Pool(np.ones(n), np.full(n, 1 / n), 0.0, 1.0, 32)
    whitened = X @ np.linalg.inv(np.linalg.cholesky(X.T @ X)).T
    found = cv._rows_of_minibatch(X, whitened, pool, [slice(0, 1000), slice(1000, n)])
    assert found == (32 if kind == "numbers" else pytest.approx(cv._HITS * p, rel=0.05))
    m = 1200  # of which a minibatch would be a fifth
    pool = pool._replace(probability=np.full(m, 1 / m))
    found = cv._rows_of_minibatch(X[:m], whitened[:m], pool, [slice(0, m)])
    assert found == (32 if kind == "numbers" else m)


def test_a_pool_is_unbiased_and_its_error_is_the_one_it_tells(monkeypatch, seed):
    """The mean gradient over pools, and its spread, where the posterior has its mass."""
    X, y = logistic_data(6000, 3)
    posterior = Posterior.of(Softmax(3, 2), X, y, 1.0)
    monkeypatch.setattr(cv, "_SMALLEST", 300)
    monkeypatch.setattr(cv, "_FROZEN", 1.0)
    mode, rng = mode_of(posterior), np.random.default_rng(seed)
    points = laplace_points(posterior, mode)[0]
    pools = iter([choose_pool(posterior, mode, points, rng) for _ in range(60)])
    monkeypatch.setattr(cv, "choose_pool", lambda *_: next(pools))
    spread = mode.curvature.inverse().cholesky()
    theta = mode.theta + spread.matvec(rng.standard_normal((20, 4)))
    exact = posterior.full_gradient(theta)
    errors, told = [], []
    for _ in range(60):
        mine = ChainTarget(Expanded.at(posterior, mode))
        assert 200 < mine.anchor.pool_size < 400
        found = mine.coordinates.pushforward(mine.full_gradient(mine.coordinates.transform(theta)))
        errors.append((found - exact) @ spread.dense())
        told.append(mine.anchor.pool_error)
    errors = np.array(errors)  # (pools, points, D)
    assert np.abs(z_scores(errors, 0.0)).max() < 5
    of_pool = np.sqrt((errors**2).mean(axis=(1, 2)))
    # it is that of twice the width over four, at which heavy remainders saturate
    assert 0.5 < np.mean(told) / np.sqrt((of_pool**2).mean()) < 2.0


def test_a_pool_of_all_rows_has_no_error(binary):
    assert anchored(binary).anchor.pool_error == 0.0


def test_rows_are_drawn_with_their_probabilities(seed):
    probability = np.array([0.5, 0.0, 0.3, 0.2])
    rows = Minibatches(SamplingFrame(4, None, probability), 50, True, np.random.default_rng(seed))
    assert rows.shared
    found = np.bincount(np.concatenate([rows.draw() for _ in range(400)]), minlength=4) / 20000
    se = np.sqrt(probability * (1 - probability) / 20000)
    assert (np.abs(found - probability) <= 5 * se).all()


def test_one_stream_of_the_pool_serves_all_chains(binary):
    mine, rng = anchored(binary), np.random.default_rng(0)
    size = mine.anchor.pool_size
    few, all_of_it = (mine.minibatches(n, False, rng, 4) for n in (20, size))
    assert (few.replace, few.shared, few.draw().shape) == (True, True, (20,))
    assert few.noise_factor == binary.n_total / 20
    assert (all_of_it.replace, all_of_it.noise_factor, all_of_it.size) == (False, 0.0, size)


def test_a_matrix_is_stored_as_a_diagonal_if_rounding_is_all_that_is_off_it():
    matrix = np.diag([1.0, 2.0, 3.0]) + 1e-13
    assert isinstance(cv._stored(matrix), Diag)
    assert isinstance(cv._stored(matrix + 1e-3), Dense)
    assert isinstance(cv._stored(np.eye(1)), Diag)


# -- steepness --------------------------------------------------------------------------------


def test_steepness_is_the_largest_slope_where_the_posterior_has_mass(
    regression, binary, monkeypatch
):
    """1 for a Gaussian; in one dimension the largest -gradient / distance of a skewed density."""
    lines = []

    def along(gradient, slopes, curvature, least_linear, points):
        lines.append(least_linear)
        return steepness(gradient, slopes, curvature, least_linear, points)

    monkeypatch.setattr(cv, "steepness", along)
    linear = Posterior.of(Linear(3, noise_variance=1.0), *regression.data.load(slice(None))[:2])
    assert anchored(linear).anchor.steepness == pytest.approx(1.0, abs=1e-4)
    assert 1.0 < anchored(binary).anchor.steepness < 1.3
    few = anchored(dict(posteriors())["three classes"]).anchor
    assert few.batch_size == few.pool_size
    for least_linear in lines[1:]:  # unit vectors, also where a step has all rows of the pool
        assert len(least_linear) > 1
        np.testing.assert_allclose(np.linalg.norm(least_linear, axis=1), 1.0)

    def gradient(d):  # of log density -(e^(s d) - s d - 1) / s^2: 1 at 0, steeper to the right
        return -(np.expm1(0.5 * d)) / 0.5

    one = np.eye(1)
    points = np.array([[-1.0], [1.0]])
    found = steepness(gradient, slopes_of(gradient), Dense(one), one, points)
    d = np.arange(1.0, 5.0)
    log_density = -(np.expm1(0.5 * d) - 0.5 * d) / 0.25
    assert (log_density > -9).tolist() == [True, True, True, False]
    assert found == pytest.approx(float((np.expm1(0.5 * 3) / 0.5) / 3), rel=0.01)


def test_rare_levels_that_were_standardised_take_short_steps_of_all_rows():
    """A step that suits the anchor overshoots along them, and throws the chain."""
    rng = np.random.default_rng(0)
    level = np.minimum(rng.zipf(1.6, 4000) - 1, 25)
    X = np.eye(26)[level]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = np.where(rng.random(4000) < 0.3, 1.0, -1.0)
    mine = anchored(Posterior.of(Softmax(26, 2), X, y, 1.0))
    assert mine.anchor.steepness > 2
    refused = UnderdampedLangevin(alpha=1.0).refusal(mine)
    assert re.search(r"too far from Gaussian.* times as steep", refused)
    sampler = UnderdampedLangevin()
    sampler.resolve_auto(mine)
    assert sampler.batch_size == mine.anchor.pool_size
    assert sampler.alpha**2 == pytest.approx(3 * mine.anchor.steepness - 1)


# -- the distribution of the chain ----------------------------------------------------------------


def groups(sampler, posterior, seed, n_groups=24, n_draws=84, thin=3):
    """Draws of independent groups of chains that share rows, (groups, chains, draws, D)."""
    out = []
    origin = posterior.coordinates.transform(posterior.anchor.theta)
    for stream in np.random.SeedSequence(seed).spawn(n_groups):
        start = np.repeat(origin, 16, axis=0)
        state = sampler.init(posterior, start, np.random.default_rng(stream))
        out.append(run_chain(sampler, posterior, state, Length(n_draws, 50, thin)).draws)
    return np.array(out)


@BOTH
@pytest.mark.parametrize("batch_size", ["auto", 4, 200])
@pytest.mark.quick("auto", "4-False")
def test_a_gaussian_posterior_is_exact_for_every_batch_size(whiten, batch_size, seed):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 3)) @ (np.eye(3) + 0.4 * rng.standard_normal((3, 3)))
    y = X @ rng.standard_normal(3) + 1.2 * rng.standard_normal(200)
    posterior = Posterior.of(Linear(3, fit_intercept=False, noise_variance=1.5), X, y, 2.0)
    mine = anchored(posterior, whiten)
    sampler = UnderdampedLangevin(batch_size=batch_size)
    sampler.resolve_auto(mine)
    draws = groups(sampler, mine, seed, n_groups=16, n_draws=42)
    Lam = X.T @ X / 1.5 + 2 * np.eye(3)
    mean = np.linalg.solve(Lam, X.T @ y / 1.5)
    moments = np.array([second_moments(d, mean).mean(axis=0) for d in draws])
    assert np.abs(z_scores(moments, np.linalg.inv(Lam))).max() < 5
    assert np.abs(z_scores(draws.mean(axis=(1, 2)), mean)).max() < 5


@pytest.mark.slow
def test_normal_inverse_gamma_posterior_of_sixty_rows(regression, seed):
    """Coefficients and log noise variance against their exact moments, by draws."""
    mine = anchored(regression)
    sampler = UnderdampedLangevin()
    sampler.resolve_auto(mine)
    draws = groups(sampler, mine, seed).reshape(-1, 4)
    X, y = regression.data.X, regression.data.y
    P = X.T @ X + 2 * np.eye(3)
    mean = np.linalg.solve(P, X.T @ y)
    shape, rate = 1 + 30, 1 + 0.5 * (y @ y - mean @ P @ mean)
    exact_sd = np.sqrt(rate / (shape - 1) * np.linalg.inv(P).diagonal())
    assert np.abs((draws[:, :3].mean(axis=0) - mean) / exact_sd).max() < 0.03
    assert np.abs(draws[:, :3].std(axis=0) / exact_sd - 1).max() < 0.03
    rng = np.random.default_rng(seed)
    log_noise = -np.log(rng.gamma(shape, 1 / rate, 100_000))
    assert abs(draws[:, 3].mean() - log_noise.mean()) < 0.05 * log_noise.std()
    assert abs(draws[:, 3].std() / log_noise.std() - 1) < 0.05


@pytest.mark.parametrize("name", ["binary", "population", "three classes"])
def test_rows_beside_the_expansion_have_their_remainders(name, monkeypatch):
    """All of them are the gradient; without a row the gradient lacks its remainder."""
    monkeypatch.setattr(cv, "_SAVING", 1)
    posterior = dict(posteriors())[name]
    theta = np.random.default_rng(0).standard_normal((5, posterior.dim))
    found = {}
    for n in (400, 399):
        monkeypatch.setattr(cv, "_FEW_ROWS", n)
        mine = anchored(posterior)
        assert mine.fast_gradient.n_rows == n
        found[n] = mine.fast_gradient.gradient(mine.density._origin + theta)
    full = mine.full_gradient(mine.density._origin + theta)
    size = np.abs(full).max()
    np.testing.assert_allclose(found[400], full, atol=1e-5 * size)
    rows, last = mine.density._rows, np.argmin(mine.density._rows.pool.probability)
    remainder = rows.model.remainder(rows.model.outputs(theta, rows.X), rows.at_anchor)
    remainder *= rows.full_weight
    remainder[..., np.arange(400) != last] = 0
    lost = rows.model.times_inputs(remainder, rows.X).total() * (mine.n_total / 400)
    np.testing.assert_allclose(found[399] + lost, full, atol=1e-5 * size)


def test_short_steps_have_few_rows_where_there_are_many():
    """And none where a gradient of all rows is as fast, or the expansion describes none of them."""
    assert anchored(dict(posteriors())["binary"]).fast_gradient is None
    X, y = logistic_data(3000, 3)
    mine = anchored(Posterior.of(Softmax(3, 2), X, y, 1.0))
    fast = mine.fast_gradient
    assert fast.n_rows == 64
    theta = mine.density._origin + mine.density._rows.points
    off = np.abs(fast.gradient(theta) - mine.full_gradient(theta))
    assert np.sqrt(np.mean(off**2)) == pytest.approx(fast.error)
    assert fast.error < 0.1
    assert mine.with_prior(mine.prior).fast_gradient.error == pytest.approx(fast.error)
    far = mine.with_prior(mine.prior)
    beyond = np.full((1, far.dim), 1e39)  # single precision
    far.density._rows = dataclasses.replace(far.density._rows, points=beyond)
    with np.errstate(all="ignore"):
        assert far.fast_gradient is None


def test_a_direction_of_the_prior_alone_leaves_the_others_their_digits():
    """All weights of three classes may shift together by 600, and differ by 0.2.

    With momenta in single precision hardly a trajectory was accepted.
    """
    kinds = {"n_informative": 10, "n_redundant": 0, "n_classes": 3, "n_clusters_per_class": 1}
    X, y = make_classification(1000, 10, **kinds, class_sep=2.0, random_state=42)
    model = BayesianLogisticRegression(prior_precision=1e-6, n_draws=100, random_state=0)
    model.fit(X[::2], y[::2])
    assert isinstance(model.sampler_, HMC)
    assert model.sampler_.variance_reduction is not None
    assert model.diagnostics_["accept_rate"] > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [30, 1000])
def test_logistic_regression_against_hmc(n_rows, seed):
    X, y = logistic_data(n_rows, 3)
    posterior = Posterior.of(Softmax(3, 2), X, y, 1.0)
    mine = anchored(posterior)
    sampler = UnderdampedLangevin()
    sampler.resolve_auto(mine)
    draws = groups(sampler, mine, seed).reshape(-1, 4)
    hmc = HMC()
    start = np.repeat(mine.anchor.theta, 32, axis=0)
    state = hmc.init(posterior, start, np.random.default_rng(seed))
    exact = run_chain(hmc, posterior, state, Length(2000, 100)).draws.reshape(-1, 4)
    sd = exact.std(axis=0)
    assert np.abs((draws.mean(axis=0) - exact.mean(axis=0)) / sd).max() < 0.05
    assert np.abs(draws.std(axis=0) / sd - 1).max() < 0.03


def test_the_noise_in_the_step_keeps_variances_right(seed, monkeypatch):
    """One row a step: its noise is a good part of the curvature."""
    monkeypatch.setattr(cv, "_LIKE_ROWS", 1)
    monkeypatch.setattr(cv, "_MANY", 1.0)
    X, y = logistic_data(60, 3)
    posterior = Posterior.of(Softmax(3, 2), 2 * X, y, 1.0)
    mine = anchored(posterior)
    sampler = UnderdampedLangevin(alpha=2.0, batch_size=1)
    state = sampler.init(mine, np.zeros((4, 4)), np.random.default_rng(seed))
    M = state.rows.noise_factor * mine.n_total * mine.anchor.noise.diagonal()
    mass = 1 / state.memory.preconditioner.diagonal()
    assert M.max() > 0.1
    np.testing.assert_allclose(mass, 1 + M, rtol=1e-6)


def test_chains_that_share_rows_are_uncorrelated(binary, seed):
    mine = anchored(binary)
    sampler = UnderdampedLangevin()
    sampler.resolve_auto(mine)
    draws = groups(sampler, mine, seed, n_groups=16, n_draws=42)
    centred = draws - mine.anchor.theta
    products = (centred[:, 0] * centred[:, 1]).mean(axis=1) / (centred[:, 0] ** 2).mean(axis=1)
    assert np.abs(z_scores(products, 0.0)).max() < 5


# -- choices ----------------------------------------------------------------------------------


def test_settings_follow_from_the_noise_number(binary):
    mine = anchored(binary)
    sampler = UnderdampedLangevin()
    words = sampler.resolve_auto(mine)
    assert f"noise number {mine.anchor.noise_number:.2g}" in words
    assert sampler.batch_size == 32 * max(1, math.ceil(mine.anchor.noise_number))
    assert sampler.alpha**2 == pytest.approx(3.0)
    given = UnderdampedLangevin(alpha=2.0, batch_size=7)
    given.resolve_auto(mine)
    assert (given.alpha, given.batch_size) == (2.0, 7)
    plain = SGFS()
    plain.resolve_auto(binary)
    assert (plain.alpha, plain.batch_size) == (0.0, 500)


def test_impossible_parameters_are_named(binary):
    with pytest.raises(ValueError, match=r"alpha must be a finite number in \(0, 1e6\]"):
        UnderdampedLangevin(alpha=0.0).validate(binary)
    for cls in (SGLD, HMC):
        with pytest.raises(ValueError, match="variance_reduction must be"):
            cls(variance_reduction="saga").validate(binary)


# -- in the estimators ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many():
    return logistic_data(8000, 4)


def test_the_default_shows_its_choice_and_why(many):
    X, y = many
    for n_rows in (8000, 100):
        model = BayesianLogisticRegression(random_state=0, prior_precision=1.0).fit(
            X[:n_rows], y[:n_rows]
        )
        assert model.sampler_.variance_reduction == "control_variate"
        assert "near enough to Gaussian" in model.sampler_reason_
        assert 0 < model.diagnostics_["noise_number"] < 1
        assert 1 < model.diagnostics_["steepness"] < 2
        assert model.draws_.shape == (32, 40, 5)
        assert model.diagnostics_["ess_min"] > 0.5 * 32 * 40
    separable = BayesianLogisticRegression(prior_precision=0.01, random_state=0)
    separable.fit(X[:40], X[:40, 0] > 0)
    assert isinstance(separable.sampler_, HMC)
    assert "too far from Gaussian" in separable.sampler_reason_
    given = separable.set_params(sampler=UnderdampedLangevin())
    with pytest.raises(ValueError, match=r'too far from Gaussian.*; use sampler="hmc"'):
        given.fit(X[:40], X[:40, 0] > 0)


def test_predicted_covariance_with_control_variates(many):
    X, y = many
    model = BayesianLogisticRegression(n_draws=500, random_state=0, prior_precision=1.0).fit(X, y)
    ratio = model.draws_.reshape(-1, 5).var(axis=0) / model.predicted_covariance(X, y).diagonal()
    assert np.abs(ratio - 1).max() < 0.08


@pytest.mark.slow
def test_sgld_takes_control_variates(many):
    model = BayesianLogisticRegression(
        SGLD(preconditioner="diag", variance_reduction="control_variate"),
        n_chains=32,
        n_draws=100,
        thin=20,
        random_state=0,
        prior_precision=1.0,
    )
    model.fit(*many)
    exact = BayesianLogisticRegression(random_state=0, prior_precision=1.0).fit(*many)
    assert np.abs(model.coef_std_ / exact.coef_std_ - 1).max() < 0.15
    assert model.diagnostics_["stein_ratio"] == pytest.approx(1.0, abs=0.12)


@pytest.mark.parametrize("rows", ["sorted", "duplicated", "leverage", "heavy tails"])
def test_odd_rows_are_sampled_rightly_or_warned_of(rows, seed):
    """Against the exact conjugate posterior: variances within 15 %, or a warning of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((9000, 4))
    y = X.sum(axis=1) + rng.standard_normal(9000)
    if rows == "sorted":
        order = np.argsort(y)
        X, y = X[order], y[order]
    elif rows == "duplicated":
        X, y = np.repeat(X[:900], 10, axis=0), np.repeat(y[:900], 10)
    elif rows == "leverage":
        X[17] *= 1000
        y[17] = X[17].sum()
    else:
        X = rng.standard_t(2.5, size=(9000, 4))
        y = X.sum(axis=1) + rng.standard_normal(9000)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = BayesianLinearRegression(
            noise_variance=1.0, random_state=seed, prior_precision=1.0
        ).fit(X, y)
    Z = np.column_stack([X, np.ones(9000)])
    cov = np.linalg.inv(Z.T @ Z + np.diag([1, 1, 1, 1, 1e-6]))
    values, vectors = np.linalg.eigh(cov)
    ratio = (model.draws_.reshape(-1, 5) @ vectors).var(axis=0) / values
    said = any(re.search("stein_ratio|r_hat_max|ess_min", str(w.message)) for w in heard)
    assert said or np.abs(ratio - 1).max() < 0.15, (
        rows,
        ratio,
        model.sampler_,
        model.sampler_reason_,
    )
    assert not heard or rows in ("leverage", "heavy tails")
