import numpy as np
import pytest
from conftest import noise_of, z_scores

from skbayes_sg import theory
from skbayes_sg.chains.run import Length, run_chain
from skbayes_sg.data.minibatches import Minibatches, SamplingFrame
from skbayes_sg.samplers import SGLD, PolynomialDecay
from skbayes_sg.samplers.sgld import clip_by_norm, clip_by_value, scale_to_norm

P_DIAG = np.array([1.0, 0.5, 2.0, 1.5])
P_FULL = np.diag(P_DIAG) + 0.2


@pytest.mark.parametrize("preconditioner", [None, P_DIAG, P_FULL], ids=["none", "diagonal", "full"])
@pytest.mark.parametrize("temperature", [1.0, 0.3])
def test_moments_of_one_step(gaussian, preconditioner, temperature, seed):
    sampler = SGLD(1e-3, temperature, preconditioner, batch_size=20)
    theta = np.full((4000, 4), 0.3)
    state = sampler.init(gaussian.posterior, theta, np.random.default_rng(seed))
    sampler.step(state, gaussian.posterior)
    P = np.eye(4) if preconditioner is None else np.atleast_2d(preconditioner)
    P = np.diag(P[0]) if len(P) == 1 else P
    centred = state.theta - theta - 1e-3 * P @ gaussian.Lam @ (gaussian.mean - theta[0])
    covariance = 2 * temperature * 1e-3 * P + 1e-6 * P @ noise_of(gaussian, state) @ P
    assert np.abs(z_scores(centred, 0.0)).max() < 5
    assert np.abs(z_scores(np.einsum("ci,cj->cij", centred, centred), covariance)).max() < 5


def test_moments_of_a_step_under_a_schedule_of_the_temperature(gaussian, seed):
    """Large first, then 1: the noise of a step is that of its own temperature."""
    schedule = PolynomialDecay(100.0, 1.0, 1.0)
    sampler = SGLD(1e-3, schedule, batch_size=20)
    theta = np.full((4000, 4), 0.3)
    for t in (0, 9, 99):
        state = sampler.init(gaussian.posterior, theta, np.random.default_rng(seed + t))
        state.t = t
        sampler.step(state, gaussian.posterior)
        centred = state.theta - theta - 1e-3 * gaussian.Lam @ (gaussian.mean - theta[0])
        covariance = 2e-3 * schedule(t) * np.eye(4) + 1e-6 * noise_of(gaussian, state)
        moments = np.einsum("ci,cj->cij", centred, centred)
        assert np.abs(z_scores(moments, covariance)).max() < 5


@pytest.mark.parametrize("shape", [P_DIAG, P_FULL], ids=["diagonal", "full"])
def test_moments_of_a_step_under_a_schedule_of_the_preconditioner(gaussian, shape, seed):
    """Handout Eq. 3.9, with the factor 2 that it lacks."""
    sampler = SGLD(1e-3, preconditioner=lambda t: shape / (1 + t), batch_size=20)
    theta = np.full((4000, 4), 0.3)
    state = sampler.init(gaussian.posterior, theta, np.random.default_rng(seed))
    for t in (0, 3):
        state.theta, state.t = theta.copy(), t
        sampler.step(state, gaussian.posterior)
        P = (np.diag(shape) if shape.ndim == 1 else shape) / (1 + t)
        centred = state.theta - theta - 1e-3 * P @ gaussian.Lam @ (gaussian.mean - theta[0])
        covariance = 2e-3 * P + 1e-6 * P @ noise_of(gaussian, state) @ P
        moments = np.einsum("ci,cj->cij", centred, centred)
        assert np.abs(z_scores(centred, 0.0)).max() < 5
        assert np.abs(z_scores(moments, covariance)).max() < 5


def test_a_large_temperature_first_leaves_a_mode_and_one_then_samples_it(seed):
    """Two modes 12 deviations apart (handout, Remark 26): at temperature 1 all chains stay
    where they start; with a large one first half of them end in the other mode, with its variance.
    """
    target = TwoModes()
    for schedule, crossed in [(1.0, 0.0), (lambda t: 60.0 if t < 2000 else 1.0, 0.5)]:
        sampler = SGLD(0.05, schedule, batch_size=1)
        state = sampler.init(target, np.full((200, 1), 6.0), np.random.default_rng(seed))
        for _ in range(2500):
            sampler.step(state, target)
        share = np.mean(state.theta < 0)
        assert abs(share - crossed) <= 5 * np.sqrt(crossed * (1 - crossed) / 200)
        expected = theory.sgld_cov(np.eye(1), np.zeros((1, 1)), 0.05)[0, 0]
        around = np.abs(state.theta[:, 0]) - 6
        assert np.abs(z_scores(around**2, expected)) < 5


class TwoModes:
    """Equal parts of N(-6, 1) and N(6, 1), with exact gradients."""

    dim, n_rows, n_total, anchor = 1, 1, 1.0, None

    def minibatches(self, batch_size, replace, rng, n_chains):
        return Minibatches(SamplingFrame(1), 1, False, rng, n_chains)

    def grad_estimate(self, theta, rows):
        return 6 * np.tanh(6 * theta) - theta


def test_the_automatic_step_keeps_the_variance_bias_near_a_tenth(gaussian):
    state = SGLD(batch_size=20).init(
        gaussian.posterior, gaussian.mean[None], np.random.default_rng(0)
    )
    M = noise_of(gaussian, state)
    largest = np.linalg.eigvalsh(gaussian.Lam + M).max()
    assert state.memory.step_size == pytest.approx(0.2 / largest, rel=0.1)  # of ten minibatches
    Sigma = theory.sgld_cov(gaussian.Lam, M, state.memory.step_size)
    ratios = np.linalg.eigvals(Sigma @ gaussian.Lam).real
    assert 1.0 < ratios.max() < 1.15


@pytest.mark.parametrize("preconditioner", [None, "diag"])
def test_the_automatic_step_follows_a_stronger_prior(gaussian, preconditioner):
    """It stays stable, by a bound of the new largest eigenvalue; and is what it was afterwards."""
    sampler, posterior = SGLD(preconditioner=preconditioner, batch_size=20), gaussian.posterior
    state = sampler.init(posterior, gaussian.mean[None], np.random.default_rng(0))
    before, P = state.memory.step_size, state.memory.preconditioner
    largest = 1e4 * (1.0 if P is None else P.diagonal().max())
    stronger = posterior.prior.with_precision(posterior.prior.precision + 1e4)
    sampler.change_prior(state, posterior.with_prior(stronger))
    assert state.memory.step_size == pytest.approx(0.2 / (0.2 / before + largest))
    sampler.change_prior(state, posterior)
    assert state.memory.step_size == pytest.approx(before)


def test_the_adapted_diagonal_is_that_of_the_curvature(gaussian):
    sampler = SGLD(preconditioner="diag", batch_size=20)
    state = sampler.init(gaussian.posterior, gaussian.mean[None], np.random.default_rng(0))
    chain = run_chain(sampler, gaussian.posterior, state, Length(5, 50))
    np.testing.assert_allclose(
        chain.state.memory.preconditioner.values, 1 / gaussian.Lam.diagonal()
    )
    assert not chain.state.memory.adapting


def test_zero_temperature_is_gradient_descent(gaussian):
    sampler = SGLD(1e-3, temperature=0.0, batch_size=500)
    state = sampler.init(gaussian.posterior, np.zeros((1, 4)), np.random.default_rng(0))
    for _ in range(2000):
        sampler.step(state, gaussian.posterior)
    np.testing.assert_allclose(state.theta[0], gaussian.mean, atol=1e-10)


def test_clips():
    v = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    np.testing.assert_allclose(clip_by_norm(v, 1.0), [[0.6, 0.8], [0.3, 0.4], [0, 0]])
    np.testing.assert_allclose(clip_by_value(v, 1.0), [[1, 1], [0.3, 0.4], [0, 0]])
    np.testing.assert_allclose(scale_to_norm(v, 1.0), [[0.6, 0.8], [0.6, 0.8], [0, 0]])


@pytest.mark.parametrize("kind", ["norm", "value", "scale"])
def test_clipping_more_than_one_step_in_a_hundred_is_reported(gaussian, kind):
    for threshold, warns in [(1e-3, True), (1e9, kind == "scale")]:
        sampler = SGLD(1e-6 if threshold < 1 else 1e-12, clip=(kind, threshold), batch_size=20)
        state = sampler.init(gaussian.posterior, np.zeros((1, 4)), np.random.default_rng(0))
        chain = run_chain(sampler, gaussian.posterior, state, Length(50, 10))
        assert chain.state.memory.steps == 50
        assert bool(sampler.report(chain.state).warnings) == warns


def test_draws_are_weighted_by_the_step_that_leaves_them(gaussian):
    schedule = PolynomialDecay(1e-3, 10, 1.0)
    sampler = SGLD(schedule, batch_size=20)
    state = sampler.init(gaussian.posterior, np.zeros((1, 4)), np.random.default_rng(0))
    chain = run_chain(sampler, gaussian.posterior, state, Length(5, 4, 2))
    np.testing.assert_allclose(chain.weights, [schedule(t) for t in (4, 6, 8, 10, 12)])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"step_size": 0.0}, r"step_size must be a finite number in \(0, inf\)"),
        ({"step_size": -1}, r"step_size must be a finite number in \(0, inf\)"),
        ({"step_size": "large"}, r"step_size must be a finite number in \(0, inf\)"),
        ({"step_size": lambda t: "x"}, r"step_size\(0\) must be a finite number"),
        ({"temperature": -1.0}, r"temperature must be a finite number in \[0, inf\)"),
        (
            {"preconditioner": lambda t: np.ones(4)},
            'step_size="auto" is that of one preconditioner; give a step_size, a number or a '
            "callable, with a callable preconditioner$",
        ),
        (
            {"preconditioner": lambda t: np.ones(3), "step_size": 0.1},
            r"preconditioner\(0\) must have",
        ),
        ({"clip": ("norm", 0.0)}, "the threshold of clip must be"),
        ({"clip": 3.0}, "clip must be"),
        ({"preconditioner": [["a"] * 4] * 4}, "preconditioner must hold real numbers"),
        ({"preconditioner": "full"}, "preconditioner, if no array, must be one of"),
        ({"preconditioner": np.ones(3)}, "preconditioner must have shape"),
        ({"preconditioner": -np.eye(4)}, "preconditioner must be positive definite"),
        ({"preconditioner": np.triu(np.ones((4, 4)))}, "preconditioner must be symmetric"),
    ],
)
def test_impossible_parameters_are_named(gaussian, parameters, message):
    with pytest.raises(ValueError, match=message):
        SGLD(**parameters).validate(gaussian.posterior)


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (SGLD(lambda t: 1e-4 if t < 3 else 0.0), r"step_size\(3\)"),
        (
            SGLD(1e-4, lambda t: 2.0 - t),
            r"temperature\(3\) must be a finite number in \[0, inf\), got -1.0",
        ),
        (
            SGLD(1e-4, preconditioner=lambda t: np.full(4, 3.0 - t)),
            r"preconditioner\(3\) must be pos",
        ),
    ],
    ids=["step_size", "temperature", "preconditioner"],
)
def test_a_schedule_that_turns_bad_on_the_way_is_named(gaussian, sampler, message):
    sampler.set_params(batch_size=20)
    state = sampler.init(gaussian.posterior, np.zeros((1, 4)), np.random.default_rng(0))
    with pytest.raises(ValueError, match=message):
        run_chain(sampler, gaussian.posterior, state, Length(10))


def test_a_schedule_has_no_stationary_distribution(gaussian):
    for changing in ({"temperature": lambda t: 1.0}, {"preconditioner": lambda t: P_DIAG}):
        sampler = SGLD(1e-4, batch_size=20, **changing)
        state = sampler.init(gaussian.posterior, np.zeros((1, 4)), np.random.default_rng(0))
        distribution = sampler.stationary_distribution(state, gaussian.posterior)
        with pytest.raises(ValueError, match="that changes has no stationary distribution"):
            distribution.covariance(gaussian.Lam, noise_of(gaussian, state))
