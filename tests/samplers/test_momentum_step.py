"""The step of control variates: its stationary distribution, and the coordinates."""

import math

import numpy as np
import pytest
from helpers import mode_from_zero

from skbayes_sg import BayesianLogisticRegression, theory
from skbayes_sg.linalg import Dense, Diag
from skbayes_sg.models import Linear, Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.control_variates import Expanded
from skbayes_sg.posterior.gaussian import find_mode
from skbayes_sg.posterior.target import ChainTarget
from skbayes_sg.samplers import UnderdampedLangevin
from skbayes_sg.samplers.langevin import operators
from skbayes_sg.samplers.target import ScaleMove


def spd(dim, seed):
    A = np.random.default_rng(seed).standard_normal((dim, dim))
    return A @ A.T + 0.1 * np.eye(dim)


@pytest.mark.parametrize("alpha", [1.0, 3**0.5, 4.0])
@pytest.mark.parametrize("diagonal", [True, False])
def test_the_posterior_is_stationary_under_any_gradient_noise(alpha, diagonal):
    Lam, I1 = spd(4, 0), 1e-3 * spd(4, 1)
    if diagonal:
        Lam, I1 = np.diag(Lam.diagonal()), np.diag(I1.diagonal())
    store = (lambda A: Diag(A.diagonal().copy())) if diagonal else Dense
    M, delta = 900 * I1, 2 / math.sqrt(1 + alpha**2)
    G, W = operators(store(Lam), store(M), delta)
    step = (delta, math.exp(-delta))
    found = theory.underdamped_cov(Lam, M, G.dense(), W.dense(), *step)
    np.testing.assert_allclose(found, np.linalg.inv(Lam), rtol=1e-9, atol=1e-12)
    assert np.linalg.eigvalsh(W.dense()).min() > 0


def test_without_noise_any_mass_is_exact():
    Lam, G = spd(3, 2), 0.1 * spd(3, 3)
    delta, c = 0.7, 0.4
    assert delta**2 * np.abs(np.linalg.eigvals(G @ Lam)).max() < 4
    found = theory.underdamped_cov(Lam, 0 * Lam, G, (1 - c**2) * G, delta, c)
    np.testing.assert_allclose(found, np.linalg.inv(Lam), rtol=1e-9)


def test_variance_and_autocorrelation_time_in_one_direction():
    lam, m, delta, c, s = 1.7, 0.3, 0.9, 0.5, 0.8
    one = np.eye(1)
    found = theory.underdamped_cov(lam * one, m * one, one, (1 - c**2) * s * one, delta, c)
    from_noise = m * delta**2 * (1 + c) / (lam * (1 - c) * (4 - delta**2 * lam))
    assert found.item() == pytest.approx(s / lam + from_noise)

    drift = 0.5 * delta * (1 + c)
    F = np.array([[1 - drift * delta * lam, drift], [-c * delta * lam, c]])
    noise = np.array([[delta / 2], [1.0]])
    Sigma = np.zeros((2, 2))
    for _ in range(500):
        Sigma = F @ Sigma @ F.T + (1 - c**2) * noise @ noise.T
    later = np.linalg.solve(np.eye(2) - F, F @ Sigma)[0, 0]
    iat = 4 * (1 - c) / (delta**2 * lam * (1 + c))
    assert 1 + 2 * later / Sigma[0, 0] == pytest.approx(iat)


def test_an_unstable_step_has_no_distribution():
    one = np.eye(1)
    with pytest.raises(ValueError, match=r"unstable.*lower time_step"):
        theory.underdamped_cov(5 * one, 0 * one, one, one, 1.0, 0.5)


def softmax_posterior(n_rows=400, n_features=4, n_classes=3, weights=None):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features)) * np.arange(1, n_features + 1)
    coef = rng.standard_normal((n_features, n_classes)) / 2
    y = (X @ coef + rng.gumbel(size=(n_rows, n_classes))).argmax(axis=1)
    model = Softmax(n_features, n_classes)
    precision = np.full(model.dim, 2.0)
    precision[-n_classes:] = 0.01
    return Posterior.of(model, X, y, precision, weights)


@pytest.mark.parametrize(
    "posterior",
    [
        softmax_posterior(),
        softmax_posterior(n_classes=2),
        Posterior.of(Linear(3), np.random.default_rng(4).standard_normal((50, 3)), np.arange(50.0)),
    ],
    ids=["softmax", "binary", "linear"],
)
def test_the_whole_pool_of_all_rows_has_no_noise(posterior):
    mode = find_mode(
        posterior,
        posterior.model.guess(posterior.data.y, posterior.data.weight),
        np.random.default_rng(0),
    )
    mine = ChainTarget(Expanded.at(posterior, mode))
    rows = mine.minibatches(10**6, False, np.random.default_rng(0), 1)
    assert rows.full_data
    assert rows.noise_factor == 0
    u = mine.coordinates.transform(mode.theta)
    u = u + 0.5 * np.random.default_rng(5).standard_normal((3, posterior.dim))
    expected = mine.coordinates.pullback(
        posterior.full_gradient(mine.coordinates.inverse_transform(u))
    )
    found = mine.grad_estimate(u, rows.draw())
    np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max() + 1e-4)


def test_steps_are_counted():
    posterior = softmax_posterior()
    mode = mode_from_zero(posterior)
    mine = ChainTarget(Expanded.at(posterior, mode))
    sampler = UnderdampedLangevin(2.0, batch_size=30)
    state = sampler.init(mine, np.zeros((2, posterior.dim)), np.random.default_rng(0))
    for t in range(3):
        assert state.t == t
        sampler.step(state, mine)
    assert sampler.report(state).rows_touched == 3 * 30  # both chains see the same rows


def test_alpha_may_follow_a_schedule_within_bounds():
    posterior = softmax_posterior()
    mode = mode_from_zero(posterior)
    mine, start = ChainTarget(Expanded.at(posterior, mode)), np.zeros((2, posterior.dim))
    sampler = UnderdampedLangevin(lambda t: 3.0 + t, batch_size=30)
    state = sampler.init(mine, start, np.random.default_rng(0))
    for _ in range(3):
        sampler.step(state, mine)
    assert state.memory.alpha == 5.0
    assert state.memory.time_step == pytest.approx(2 / math.sqrt(26))
    assert 0 < sampler.draw(state)[1] <= 1
    assert sampler.steepest_column == 50
    falls = UnderdampedLangevin(lambda t: 1.0 - t, batch_size=30)
    state = falls.init(mine, start, np.random.default_rng(0))
    falls.step(state, mine)
    with pytest.raises(
        ValueError, match=r"alpha\(1\) must be a finite number in \(0, 1e6\], got 0"
    ):
        falls.step(state, mine)
    for alpha in (-1.0, "long"):
        with pytest.raises(ValueError, match="alpha must be a finite number in"):
            UnderdampedLangevin(alpha).validate(mine)


class Steep:
    """A target whose anchor has given figures."""

    theta = curvature = noise = None
    pool_size, batch_size, pool_error, noise_number = 500, 32, 0.0, 0.5
    stiffness = column_steepness = 1.0
    far_from_mode = None
    dim, sampled, scale_move = 3, None, None

    def __init__(self, steepness):
        self.steepness, self.anchor, self.posterior = steepness, self, self


def chosen(alpha, batch_size, target):
    sampler = UnderdampedLangevin(alpha, batch_size)
    sampler.resolve_auto(target)
    return sampler.alpha, sampler.batch_size


def test_alpha_and_rows_follow_from_the_steepness():
    assert chosen("auto", "auto", Steep(1.2)) == (math.sqrt(3), 32)
    assert chosen("auto", "auto", Steep(4.0)) == (math.sqrt(11), 500)
    assert chosen(5.0, 10_000, Steep(4.0)) == (5.0, 500)
    stiff = Steep(4.0)
    stiff.stiffness = 3.0
    assert chosen("auto", "auto", stiff) == (math.sqrt(7), 500)


def test_steep_posteriors_are_refused_with_the_reason():
    assert UnderdampedLangevin().refusal(Steep(4.0)) is None
    assert "4.0 times as steep" in UnderdampedLangevin(2.0).refusal(Steep(4.0))
    assert "too far from Gaussian" in UnderdampedLangevin().refusal(Steep(50.0))
    joint = Steep(1.2)
    joint.scale_move = ScaleMove(lambda theta, log_scale: (theta, log_scale), 1.0)
    assert "steps of one length" in UnderdampedLangevin().refusal(joint)


def test_more_than_a_thousand_parameters_of_many_classes(monkeypatch):
    monkeypatch.setattr("skbayes_sg.linalg.sizes._IN_EVERY_STEP", 10)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    y = (X @ rng.standard_normal((4, 3)) + rng.gumbel(size=(300, 3))).argmax(axis=1)
    wide = BayesianLogisticRegression(random_state=0, n_draws=125, prior_precision=1.0).fit(X, y)
    assert isinstance(wide.sampler_, UnderdampedLangevin)
    assert wide.sampler_.batch_size == 300
    monkeypatch.undo()
    full = BayesianLogisticRegression("hmc", random_state=0, n_draws=500, prior_precision=1.0).fit(
        X, y
    )
    sd = full.draws_.std(axis=(0, 1))
    # some 2,000 effective draws each: 6 Monte Carlo errors of their difference
    np.testing.assert_allclose(wide.draws_.std(axis=(0, 1)), sd, rtol=6 / math.sqrt(2000))
    shift = (wide.draws_.mean(axis=(0, 1)) - full.draws_.mean(axis=(0, 1))) / sd
    assert np.abs(shift).max() < 6 * math.sqrt(2 / 2000)


def test_steps_of_all_rows_measure_no_noise(monkeypatch):
    def refuse(*args):
        raise AssertionError("the noise of rows that are all taken was measured")

    monkeypatch.setattr("skbayes_sg.posterior.control_variates.PoolRows.noise", refuse)
    X = np.random.default_rng(0).standard_normal((100, 3))
    model = BayesianLogisticRegression(random_state=0, prior_precision=1.0).fit(
        X, X[:, 0] + X[:, 1] ** 2 > 0.5
    )
    assert model.sampler_.batch_size == 100


def test_operators_have_the_noise_that_minibatches_have(seed):
    """G = (Lam + M)^-1, with M that of gradients over the posterior: sums over all rows."""
    posterior = softmax_posterior(n_classes=2)
    mine, rng = (
        ChainTarget(Expanded.at(posterior, mode_from_zero(posterior))),
        np.random.default_rng(seed),
    )
    sampler = UnderdampedLangevin(2.0, batch_size=4)
    state = sampler.init(mine, np.zeros((500, mine.dim)), rng)
    Lam = mine.anchor.curvature.dense()
    M = np.linalg.inv(state.memory.preconditioner.dense().astype(np.float64)) - Lam
    theta = mine.coordinates.transform(mine.anchor.theta)
    theta = theta + rng.standard_normal((500, mine.dim)) @ np.linalg.cholesky(np.linalg.inv(Lam)).T
    noise = [
        mine.grad_estimate(theta, rows) - mine.logdensity_and_grad(theta)[1]
        for rows in (state.rows.draw() for _ in range(40))
    ]
    measured = np.einsum("sci,scj->ij", noise, noise) / (40 * 500)
    found, expected = (np.trace(np.linalg.solve(Lam, one)) / mine.dim for one in (M, measured))
    assert expected > 0.01
    assert found == pytest.approx(expected, rel=0.5)


def test_operators_follow_a_prior_of_which_one_precision_moves():
    posterior = softmax_posterior(n_classes=2)
    mine = ChainTarget(Expanded.at(posterior, mode_from_zero(posterior)))
    sampler = UnderdampedLangevin(2.0, batch_size=30)
    state = sampler.init(mine, np.zeros((2, posterior.dim)), np.random.default_rng(0))
    before, precision = state.memory.preconditioner, posterior.prior.precision
    for factor, same in ((1.005, True), (50.0, False)):
        changed = np.append(factor * precision[:1], precision[1:])
        sampler.change_prior(state, mine.with_prior(posterior.prior.with_precision(changed)))
        assert (state.memory.preconditioner is before) == same
