from types import SimpleNamespace

import numpy as np
import pytest
from conftest import KnownGaussian, logistic_data, second_moments, z_scores

from skbayes_sg import diagnostics
from skbayes_sg.chains.run import Length, restarts, run_chain
from skbayes_sg.linalg import FULL, Dense, Diag
from skbayes_sg.models import MLP, Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.control_variates import Expanded
from skbayes_sg.posterior.gaussian import find_mode
from skbayes_sg.posterior.target import ChainTarget
from skbayes_sg.samplers import HMC, hmc
from skbayes_sg.samplers.hmc import RescaledCurvature
from skbayes_sg.samplers.target import FastGradient, ScaleMove


def run(sampler, posterior, seed, n_chains=32, n_draws=400, burn_in=200, theta=None):
    theta = np.zeros((n_chains, posterior.dim)) if theta is None else theta
    state = sampler.init(posterior, theta, np.random.default_rng(seed))
    return run_chain(sampler, posterior, state, Length(n_draws, burn_in))


@pytest.mark.parametrize(
    "sampler", [HMC(), HMC(3), HMC(structure="diag"), HMC(single_gradients=True)], ids=str
)
@pytest.mark.quick("HMC()", "HMC(single_gradients=True)")
def test_a_gaussian_is_sampled_exactly(sampler, seed):
    known = KnownGaussian(n_rows=40)
    chain = run(sampler, known.posterior, seed)
    assert np.abs(z_scores(chain.draws.mean(axis=1), known.mean)).max() < 5
    assert (
        np.abs(z_scores(second_moments(chain.draws, known.mean), np.linalg.inv(known.Lam))).max()
        < 5
    )


def test_a_skewed_posterior_is_sampled_exactly(seed):
    """Separable data, one parameter: moments against quadrature; Laplace is off by a factor."""
    X = np.linspace(-1, 1, 30)[:, None]
    posterior = Posterior.of(Softmax(1, 2, fit_intercept=False), X, np.sign(X[:, 0]), 0.01)
    grid = np.linspace(-5, 80, 20_001)
    weight = np.exp(posterior.log_prob(grid[:, None]) - posterior.log_prob(grid[:, None]).max())
    weight /= weight.sum()
    mean = weight @ grid
    chain = run(HMC(), posterior, seed, n_draws=1500)
    theta = chain.draws[..., 0]
    assert np.abs(z_scores(theta.mean(axis=1), mean)) < 5
    assert np.abs(z_scores(((theta - mean) ** 2).mean(axis=1), weight @ (grid - mean) ** 2)) < 5


def test_the_distribution_is_exact_whatever_single_gradients_follow(seed):
    """Those of other rows: leapfrog steps stay reversible, and the energy decides."""
    X, y = logistic_data(50, 1, seed=3)
    posterior = Posterior.of(Softmax(1, 2, fit_intercept=False), X, y, 1.0)
    posterior.single = Posterior.of(
        posterior.model, 1.3 * X.astype(np.float32), y.astype(np.float32), 1.0
    )
    grid = np.linspace(-5, 8, 20_001)
    weight = np.exp(posterior.log_prob(grid[:, None]) - posterior.log_prob(grid[:, None]).max())
    weight /= weight.sum()
    mean = weight @ grid
    theta = run(HMC(3, single_gradients=True), posterior, seed, n_draws=1500).draws[..., 0]
    assert np.abs(z_scores(theta.mean(axis=1), mean)) < 5
    assert np.abs(z_scores(((theta - mean) ** 2).mean(axis=1), weight @ (grid - mean) ** 2)) < 5


def test_the_distribution_is_exact_whatever_short_steps_follow(monkeypatch, seed):
    """Two time scales: steps stay reversible with any fast gradient, and the energy decides."""
    X, y = logistic_data(50, 1, seed=3)
    posterior = Posterior.of(Softmax(1, 2, fit_intercept=False), X, y, 1.0)
    rough = FastGradient(lambda theta: 0.6 - 1.5 * theta, 5, error=0.0)
    monkeypatch.setattr(Posterior, "fast_gradient", rough)
    monkeypatch.setattr(hmc, "_LONG_STEP", 2.0)  # the posterior has no walls
    grid = np.linspace(-5, 8, 20_001)
    weight = np.exp(posterior.log_prob(grid[:, None]) - posterior.log_prob(grid[:, None]).max())
    weight /= weight.sum()
    mean = weight @ grid
    chain = run(HMC(target_accept=0.95), posterior, seed, n_draws=1500)
    theta = chain.draws[..., 0]
    assert np.abs(z_scores(theta.mean(axis=1), mean)) < 5
    assert np.abs(z_scores(((theta - mean) ** 2).mean(axis=1), weight @ (grid - mean) ** 2)) < 5
    path = HMC()._path(chain.state, posterior)
    assert path.fast is rough
    assert path.n_short >= 2


def test_short_steps_with_the_gradient_itself_are_leapfrog_steps():
    """Then the long steps have nothing to add, and as many leapfrog steps end at the same point."""
    X, y = logistic_data(50, 3)
    posterior = Posterior.of(Softmax(3, 2), X, y, 1.0)
    momentum = np.random.default_rng(0).standard_normal((4, 4))
    state = HMC().init(posterior, np.ones((4, 4)), np.random.default_rng(0))
    ends = []
    for path in (
        hmc._Path(0.1, 6),
        hmc._Path(0.1, 2, 3, FastGradient(posterior.full_gradient, 50, 1.0)),
    ):
        p = momentum.copy()
        theta, _, gradient = HMC()._trajectory(state, posterior, p, path)
        ends.append(np.hstack([theta, p, gradient]))
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-10)


def test_trajectories_are_near_a_quarter_of_a_period(seed):
    """Squares have autocorrelation E cos^2(L) = .31 for L uniform in (.7, 2.8), and 1 at L = pi.

    One trajectory in ten has five steps 3 to 30 times shorter.
    """
    known = KnownGaussian(n_rows=40)
    chain = run(HMC(target_accept=0.98), known.posterior, seed, n_draws=600, burn_in=300)
    z = (chain.draws - known.mean) @ np.linalg.cholesky(known.Lam)
    squares = z**2 - 1
    products = np.mean(squares[:, 1:] * squares[:, :-1], axis=(1, 2))
    short = 5 * np.exp(chain.state.memory.log_step.item()) * 10 ** -np.linspace(0.5, 1.5, 101)
    cosines = np.cos(np.concatenate([np.linspace(0.7, 2.8, 909), short])) ** 2
    excess = products - cosines.mean() * np.mean(squares**2, axis=(1, 2))
    # all chains have trajectories of one length, and squares have variance 2
    error = np.hypot(excess.std(ddof=1) / np.sqrt(32), 2 * cosines.std() / np.sqrt(600))
    # a rejected trajectory, one in fifty, leaves its square as it was
    assert abs(excess.mean() - 0.02) < 5 * error


def test_burn_in_reaches_the_target_and_then_freezes():
    X, y = logistic_data(200, 20)
    posterior = Posterior.of(Softmax(20, 2), X, y, 1.0)
    for target in (0.6, 0.9):
        chain = run(HMC(n_leapfrog=4, target_accept=target), posterior, 0, burn_in=500)
        assert HMC().report(chain.state).figures["accept_rate"] == pytest.approx(target, abs=0.07)
        assert not chain.state.memory.adapting
        assert chain.state.memory.log_step.shape == (1, 1)  # one step, after the last restart
        assert chain.state.memory.restarts == len(restarts(500)) == hmc._RESTARTS
        assert chain.state.memory.steps == 360  # one in ten has short steps


def test_rows_touched_count_every_gradient():
    known = KnownGaussian(n_rows=40)
    chain = run(HMC(n_leapfrog=3), known.posterior, 0, n_chains=2, n_draws=10, burn_in=0)
    assert HMC().report(chain.state).rows_touched == 3 * 10 * 40 * 2


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_leapfrog": 0}, "n_leapfrog must be"),
        ({"n_leapfrog": 2.5}, "n_leapfrog must be"),
        ({"target_accept": lambda t: 0.8}, r"target_accept must be a finite number in \(0, 1\)"),
        ({"structure": "block"}, "structure must be"),
        ({"target_accept": 1.0}, r"target_accept must be a finite number in \(0, 1\)"),
        ({"single_gradients": "yes"}, "single_gradients must be"),
        ({"target_accept": "high"}, "target_accept must be a finite number"),
    ],
)
def test_impossible_parameters_are_named(gaussian, parameters, message):
    with pytest.raises((TypeError, ValueError), match=message):
        HMC(**parameters).validate(gaussian.posterior)


def logistic_posterior(n_rows, seed=3):
    X, y = logistic_data(n_rows, 1, seed=seed)
    return Posterior.of(Softmax(1, 2, fit_intercept=False), 3 * X, y, 1.0)


@pytest.mark.parametrize("of_all", [True, False], ids=["all rows", "a pool"])
def test_the_distribution_is_that_of_the_pool(of_all, seed, monkeypatch):
    """Quadrature of the log density that the pool gives; with all rows it is the posterior's."""
    posterior = logistic_posterior(60 if of_all else 400)
    if not of_all:
        monkeypatch.setattr("skbayes_sg.posterior.control_variates._SMALLEST", 50)
        monkeypatch.setattr("skbayes_sg.posterior.control_variates._FROZEN", 1.0)
    mode = find_mode(posterior, np.zeros((1, 1)), np.random.default_rng(0))
    mine = ChainTarget(Expanded.at(posterior, mode))
    assert (mine.anchor.pool_size == posterior.n_rows) == of_all
    grid = np.linspace(-8, 8, 4001)[:, None]
    log_density = mine.logdensity_and_grad(grid)[0]
    if of_all:
        exact = posterior.log_prob(mine.coordinates.inverse_transform(grid))
        np.testing.assert_allclose(log_density - exact, (log_density - exact)[0], atol=1e-3)
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    mean = weight @ grid[:, 0]
    sampler = HMC(variance_reduction="control_variate")
    start = np.random.default_rng(seed).standard_normal((32, 1))
    theta = run(sampler, mine, seed, n_draws=800, burn_in=64, theta=start).draws[..., 0]
    theta = mine.coordinates.transform(theta[..., None])[..., 0]
    assert np.abs(z_scores(theta.mean(axis=1), mean)) < 5
    square = weight @ (grid[:, 0] - mean) ** 2
    assert np.abs(z_scores(((theta - mean) ** 2).mean(axis=1), square)) < 5


def test_directions_without_data_stay_fast(seed):
    """Shifts of all classes: with factors for coordinates they would be hundreds of times slow."""
    X = np.random.default_rng(1).standard_normal((150, 3))
    y = np.random.default_rng(2).integers(0, 3, 150)
    posterior = Posterior.of(Softmax(3, 3), X, y, 1e-3)
    start = np.random.default_rng(3).standard_normal((16, 12))
    chain = run(HMC(), posterior, seed, n_draws=200, burn_in=64, theta=start)
    intercepts = chain.draws[..., 9:].sum(axis=2, keepdims=True)
    assert diagnostics.autocorrelation_time(intercepts)[0] < 6


def test_chains_that_hardly_move_are_reported():
    """A chain that accepts nothing, among others that accept."""
    known = KnownGaussian(n_rows=40)
    chain = run(HMC(), known.posterior, 0, n_chains=16, n_draws=20, burn_in=64)
    assert HMC().report(chain.state).warnings == []
    chain.state.memory.accepted[3] = 0.0
    (warning,) = HMC().report(chain.state).warnings
    assert warning.startswith("1 of 16 chains hardly moved")
    assert "raise target_accept" in warning


def test_a_chain_in_a_narrow_corner_gets_out(seed):
    """Separable data, a weak prior: near 0 the posterior is a thousand times as curved."""
    X = np.random.default_rng(0).standard_normal((40, 4))
    y = np.sign(X[:, 0])
    posterior = Posterior.of(Softmax(4, 2), X, y, 0.01)
    mode = find_mode(posterior, np.zeros((1, 5)), np.random.default_rng(0))
    mine = ChainTarget(Expanded.at(posterior, mode))
    spread = mode.curvature.inverse().cholesky()
    start = mode.theta + spread.matvec(np.random.default_rng(seed).standard_normal((16, 5)))
    start[0] = 0.0
    sampler = HMC(variance_reduction="control_variate")
    start = mine.coordinates.transform(start)
    chain = run(sampler, mine, seed, n_draws=200, burn_in=48, theta=start)
    assert sampler.report(chain.state).warnings == []
    assert diagnostics.r_hat(chain.draws).max() < 1.1


def test_a_diagonal_metric_is_one_with_an_anchor_too():
    rng = np.random.default_rng(1)
    posterior = Posterior.of(Softmax(3, 3), rng.standard_normal((60, 3)), rng.integers(0, 3, 60))
    mode = find_mode(posterior, np.zeros((1, 12)), rng)
    mine = ChainTarget(Expanded.at(posterior, mode))
    for structure, storage in (("diag", Diag), ("full", Dense)):
        sampler = HMC(structure=structure, variance_reduction="control_variate")
        chain = run(sampler, mine, 0, n_chains=16, n_draws=4, burn_in=48, theta=np.zeros((16, 12)))
        assert isinstance(chain.state.memory.metric.inverse, storage)


def test_a_metric_is_in_single_precision_around_an_anchor_only():
    posterior = logistic_posterior(60)
    mode = find_mode(posterior, np.zeros((1, 1)), np.random.default_rng(0))
    mine = ChainTarget(Expanded.at(posterior, mode))
    for target, dtype in ((posterior, np.float64), (mine, np.float32)):
        metric = HMC().init(target, np.zeros((2, 1)), np.random.default_rng(0)).memory.metric
        assert metric.inverse.diagonal().dtype == metric.root.diagonal().dtype == dtype


def test_a_metric_weighs_the_spread_of_draws_against_the_curvature(gaussian):
    """(n variance + 10) / (n + 10) along the axes, n the number of points."""
    metric = RescaledCurvature(gaussian.posterior, np.zeros((3, 4)), FULL)
    spread = 2 * np.linalg.cholesky(np.linalg.inv(gaussian.Lam))
    points = np.random.default_rng(0).standard_normal((10, 3, 4)) @ spread.T
    for t, theta in enumerate(points):
        metric.see(gaussian.posterior, theta, t)
    metric.restart(gaussian.posterior, points[-1])
    d = np.sqrt(gaussian.Lam.diagonal())
    values, V = np.linalg.eigh(gaussian.Lam / np.outer(d, d))
    along = np.sqrt(values)[:, None] * V.T * d  # to coordinates of unit curvature
    variance = (points.reshape(30, 4) @ along.T).var(axis=0)
    back = np.linalg.inv(along) * np.sqrt((30 * variance + 10) / 40)
    np.testing.assert_allclose(metric.inverse.dense(), back @ back.T)
    root = metric.root.dense()
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(back @ back.T))


def scaled(theta, log_scale):
    """All four coordinates but the last times exp(log_scale), and the last less twice that."""
    grown = theta * np.exp(log_scale)[:, None]
    grown[:, -1] = theta[:, -1] - 2 * log_scale
    return grown, 3 * log_scale


def test_a_metric_knows_the_spread_along_the_scale(gaussian, monkeypatch):
    """Along the tangent at the mean it is that of the draws, and across it as without a move."""
    metrics, rng = [], np.random.default_rng(0)
    tangent = np.array([1.0, 2.0, -1.0, -2.0])
    common = (
        5 * rng.standard_normal((40, 30, 1)) * tangent / np.sqrt(tangent @ gaussian.Lam @ tangent)
    )
    spread = np.linalg.cholesky(np.linalg.inv(gaussian.Lam))
    points = rng.standard_normal((40, 30, 4)) @ spread.T + common
    points += np.append(tangent[:3], 0.0) - points.mean(axis=(0, 1))
    for move in (None, ScaleMove(scaled, 1.0)):
        monkeypatch.setattr(Posterior, "scale_move", move)
        metric = RescaledCurvature(gaussian.posterior, np.zeros((30, 4)), FULL)
        for t, theta in enumerate(points):
            metric.see(gaussian.posterior, theta, t)
        metric.restart(gaussian.posterior, points[-1])
        root = metric.root.dense()
        np.testing.assert_allclose(root @ root.T @ metric.inverse.dense(), np.eye(4), atol=1e-9)
        metrics.append(root @ root.T)
    plain, along = metrics
    at = plain @ tangent  # what the plain metric measures along the tangent
    variance = (points.reshape(-1, 4) @ at).var() / (tangent @ at)  # 1 where the metric is right
    variance = (1200 * variance + 10) / 1210
    assert variance > 1.5
    change = np.outer(at, at) / (tangent @ at) * (1 / variance - 1)
    np.testing.assert_allclose(along, plain + change, rtol=1e-5, atol=1e-5 * np.abs(plain).max())


def test_a_gaussian_is_sampled_exactly_with_a_metric_along_the_scale(seed, monkeypatch):
    monkeypatch.setattr(Posterior, "scale_move", ScaleMove(scaled, 0.1))
    known = KnownGaussian(n_rows=40)
    chain = run(HMC(), known.posterior, seed)
    assert np.abs(z_scores(chain.draws.mean(axis=1), known.mean)).max() < 5
    moments = second_moments(chain.draws, known.mean)
    assert np.abs(z_scores(moments, np.linalg.inv(known.Lam))).max() < 5


@pytest.mark.parametrize(("n_hidden", "thin"), [(17, 1), (18, 2)])
def test_draws_of_many_parameters_are_thinned(n_hidden, thin):
    posterior = Posterior.of(MLP(9, 4, (n_hidden,)), np.zeros((8, 9)), np.arange(8) % 4, 1.0)
    assert posterior.dim == (242 if thin == 1 else 256)
    state = HMC().init(posterior, np.zeros((2, posterior.dim)), np.random.default_rng(0))
    assert HMC().run_length(state) == (300, thin)


def test_a_metric_that_overflows_is_refused_with_a_remedy(gaussian, monkeypatch):
    state = HMC().init(gaussian.posterior, np.zeros((2, 4)), np.random.default_rng(0))
    infinite = Diag(np.full(4, np.inf))
    monkeypatch.setattr(
        state.memory.metric, "restart", lambda *_: setattr(state.memory.metric, "inverse", infinite)
    )
    with pytest.raises(FloatingPointError, match=r"or divide the weights by a constant$"):
        HMC().freeze(state, gaussian.posterior)


def test_a_density_that_overflows_is_never_accepted():
    """Far out single precision overflows, to plus infinity as well: no chain may go there."""
    for change in (np.inf, -np.inf, np.nan):
        assert hmc._or_never(np.array([change, 1.0])).tolist() == [-np.inf, 1.0]


def test_chains_are_accepted_one_by_one(gaussian, monkeypatch, seed):
    """Of two at the same chance of a half, one moves without the other in half of the steps."""

    def halved(self, state, target, momentum, path):
        memory = state.memory
        return state.theta + 1.0, memory.log_prob - np.log(2), memory.gradient

    monkeypatch.setattr(HMC, "_trajectory", halved)
    sampler, target = HMC(), gaussian.posterior
    state = sampler.init(target, np.zeros((2, target.dim)), np.random.default_rng(seed))
    sampler.freeze(state, target)
    moved = np.empty((1000, 2))
    for moves in moved:
        before = state.theta
        sampler.step(state, target)
        moves[:] = (state.theta != before).all(axis=1)
    assert abs(moved - 0.5).mean() == 0.5
    error = 5 * 0.5 / np.sqrt(1000)
    assert np.abs(moved.mean(axis=0) - 0.5).max() < error
    assert abs(np.mean(moved[:, 0] == moved[:, 1]) - 0.5) < error


def test_moves_along_the_scale_are_accepted_one_by_one(gaussian, monkeypatch, seed):
    sampler, target = HMC(), gaussian.posterior
    state = sampler.init(target, np.zeros((2, target.dim)), np.random.default_rng(seed))

    def halved(theta):
        return state.memory.log_prob - np.log(2), np.zeros_like(theta)

    along = SimpleNamespace(logdensity_and_grad=halved)
    move = ScaleMove(lambda theta, log_scale: (theta + 1, 0.0), 1.0)
    moved = np.empty((1000, 2))
    for moves in moved:
        before = state.theta
        sampler._rescale(state, along, move)
        moves[:] = (state.theta != before).all(axis=1)
    error = 5 * 0.5 / np.sqrt(1000)
    assert np.abs(moved.mean(axis=0) - 0.5).max() < error
    assert abs(np.mean(moved[:, 0] == moved[:, 1]) - 0.5) < error
