"""SGHMC: its step against the formula, its scale, its distribution and what it refuses."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import KnownGaussian

from skbayes_sg.samplers import SGHMC, PolynomialDecay


def begun(sampler, n_chains=2, theta=0.5, seed=0):
    posterior = KnownGaussian().posterior
    start = np.full((n_chains, posterior.dim), theta)
    return posterior, sampler.init(posterior, start, np.random.default_rng(seed))


def test_without_noise_a_step_is_momentum_on_the_scaled_gradient():
    sampler = SGHMC(step_size=0.01, damping=0.25, temperature=0.0, batch_size=30)
    posterior, state = begun(sampler)
    sampler.freeze(state, posterior)
    preconditioner, theta = 0.01 * state.memory.preconditioner, state.theta.copy()
    state.t = 1  # the scale is looked at in every tenth step
    velocity = np.zeros_like(theta)
    for _ in range(3):
        sampler.step(state, posterior)
        velocity = 0.75 * velocity + preconditioner * state.gradient
        theta = theta + velocity
        np.testing.assert_allclose(state.theta, theta, rtol=1e-12)


def test_moments_of_the_noise_of_a_step(seed):
    sampler = SGHMC(step_size=0.01, damping=0.25, temperature=0.5, batch_size=10_000)  # all rows
    posterior, state = begun(sampler, n_chains=5000, seed=seed)
    sampler.freeze(state, posterior)
    state.t, start = 1, state.theta.copy()
    sampler.step(state, posterior)
    preconditioner = 0.01 * state.memory.preconditioner
    noise = state.theta - start - preconditioner * state.gradient
    expected = 2 * 0.5 * 0.25 * preconditioner
    np.testing.assert_allclose(noise.var(axis=0), expected, rtol=5 * math.sqrt(2 / 5000))


def test_the_scale_follows_gradients_in_burn_in_and_only_rises_afterwards():
    sampler = SGHMC(batch_size=30)
    posterior, state = begun(sampler)
    far = state.memory.square.copy()
    state.theta[:] = posterior.prior.mean
    for _ in range(300):
        sampler.step(state, posterior)
    assert (state.memory.square < far).any()
    sampler.freeze(state, posterior)
    frozen = state.memory.square.copy()
    for _ in range(200):
        sampler.step(state, posterior)
    assert (state.memory.square >= frozen).all()


@pytest.mark.parametrize("adapting", [True, False])
def test_a_gradient_far_beyond_its_scale_is_learned_before_it_throws_the_chain(adapting):
    sampler = SGHMC(step_size=0.01, temperature=0.0, batch_size=30)
    posterior, state = begun(sampler)
    if not adapting:
        sampler.freeze(state, posterior)
    memory = state.memory
    memory.square, memory.recent = np.zeros_like(memory.square), np.zeros_like(memory.recent)
    memory.preconditioner = 1e6 * memory.preconditioner  # as if gradients had been a millionth
    state.t, start = 1, state.theta.copy()
    sampler.step(state, posterior)
    assert np.abs(state.theta - start).max() < 0.01 * (2 * memory.window) ** 0.5


def test_chains_that_share_rows_see_one_minibatch_and_single_precision_stays():
    sampler = SGHMC(batch_size=30, share_rows=True, single=True)
    posterior, state = begun(sampler)
    before = state.theta.copy()
    sampler.step(state, posterior)
    assert state.theta.dtype == state.gradient.dtype == np.float32
    np.testing.assert_array_equal(state.gradient[0], state.gradient[1])  # at one point, so far
    assert (state.theta[0] != state.theta[1]).all()
    assert before.dtype == np.float32
    assert sampler.shares_rows
    assert sampler.report(state).rows_touched == 2 * 30


@pytest.mark.parametrize(
    ("n_rows", "thin"), [(200, 30), (60_000, 300), (200_000, 1000), (444_619, 1000)]
)
def test_a_draw_of_many_rows_takes_a_thousand_steps_and_no_whole_pass(n_rows, thin):
    rows = SimpleNamespace(noise_factor=n_rows / 200 - 1, size=200)
    state = SimpleNamespace(rows=rows, theta=np.empty((8, 5000)))
    assert SGHMC().run_length(state) == (5 * thin, thin)


def test_draws_weigh_as_the_steps_from_them():
    """As for SGLD: a step that is half as long moves half as far, and its draw counts half."""
    decay = PolynomialDecay(0.02, 5.0, 0.4)
    sampler = SGHMC(step_size=decay, batch_size=30)
    _, state = begun(sampler)
    weights = []
    for t in (0, 7, 50):
        state.t = t
        weights.append(sampler.draw(state)[1])
    steps = np.array([decay(t) for t in (0, 7, 50)])
    assert steps[2] < steps[0] / 2
    np.testing.assert_allclose(np.array(weights) / weights[0], steps / steps[0])
    fixed = begun(SGHMC(step_size=0.02, batch_size=30))[1]
    fixed.t = 50
    assert SGHMC(step_size=0.02).draw(fixed)[1] == pytest.approx(0.02)


def test_a_changing_step_has_no_distribution():
    posterior, state = begun(SGHMC(step_size=lambda t: 0.01))
    why = "^a step_size or temperature that changes has no stationary distribution; give numbers$"
    with pytest.raises(ValueError, match=why):
        SGHMC(step_size=lambda t: 0.01).stationary_distribution(state, posterior).covariance(
            np.eye(4), np.eye(4)
        )


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"step_size": -1.0}, r"step_size must be a finite number in \(0, inf\)"),
        ({"step_size": "long"}, r"step_size must be a finite number in \(0, inf\)"),
        ({"damping": 0.0}, r"damping must be a finite number in \(0, 1\]"),
        ({"temperature": -1.0}, r"temperature must be a finite number in \[0, inf\)"),
        ({"share_rows": 2}, "share_rows must be one of"),
        ({"single": "yes"}, "single must be one of"),
    ],
)
def test_impossible_parameters(parameters, match):
    with pytest.raises(ValueError, match=match):
        SGHMC(**parameters).validate(KnownGaussian().posterior)
