"""SGD and its kin; for covariances see test_stationary_distribution.py."""

import re

import numpy as np
import pytest
from conftest import KnownGaussian, logistic_data, noise_of, start, z_scores
from helpers import step_matrices
from scipy.optimize import minimize_scalar

from skbayes_sg import diagnostics, theory
from skbayes_sg.chains.run import Length, run_chain
from skbayes_sg.linalg import Dense, Diag
from skbayes_sg.models import Linear, Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import IASG, SGD, ConstantSGD, MomentumSGD, PolynomialDecay
from skbayes_sg.samplers.iasg import averaged_variance, right_on_average


def known_state(sampler, known, dense):
    """A state whose averages are the true matrices."""
    state = start(sampler, known.posterior, 1)
    keep = Dense if dense else (lambda matrix: Diag(matrix.diagonal().copy()))
    state.memory.I1, state.memory.fisher = keep(known.I1), keep(known.A)
    state.memory.adapting = False
    return state


def injected(state):
    """Covariance of the noise that is added to the gradient; 0 for SGD and IASG."""
    noise_root = getattr(state.memory, "noise_root", None)
    return 0.0 if noise_root is None else noise_root.dense() @ noise_root.dense().T


# -- one step ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sampler",
    [
        SGD(step_size=2e-4),
        ConstantSGD(),
        ConstantSGD("sqrt", correction="ou"),
        MomentumSGD(),
        IASG(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("replace", [False, True])
def test_moments_of_one_step(gaussian, sampler, replace, seed):
    """4,000 chains leave one point; mean and covariance are those of theta + K (gradient + eta)."""
    sampler.set_params(batch_size=20, replace=replace)
    theta = np.full((4000, 4), 0.3)
    state = start(sampler, gaussian.posterior, 4000, seed, theta)
    K = 2e-4 * np.eye(4) if isinstance(sampler, SGD) else state.memory.preconditioner.dense()
    if not isinstance(sampler, SGD):
        state.memory.adapting = False
    sampler.step(state, gaussian.posterior)
    drift = K @ gaussian.Lam @ (gaussian.mean - theta[0])
    covariance = K @ (noise_of(gaussian, state) + injected(state)) @ K.T
    centred = state.theta - theta - drift
    assert np.abs(z_scores(centred, 0.0)).max() < 5
    assert np.abs(z_scores(np.einsum("ci,cj->cij", centred, centred), covariance)).max() < 5


def test_momentum_keeps_a_share_of_the_last_step(gaussian):
    sampler = MomentumSGD(damping=0.25, structure="scalar", step_size=1e-4, batch_size=20)
    state = start(sampler, gaussian.posterior, 2)
    sampler.step(state, gaussian.posterior)
    first, velocity = state.theta.copy(), state.theta.copy()
    sampler.step(state, gaussian.posterior)
    np.testing.assert_allclose(state.theta - first, 0.75 * velocity + 1e-4 * state.gradient)


# -- steps of the theory ----------------------------------------------------------------------


@pytest.mark.parametrize("correction", ["discrete", "ou"])
@pytest.mark.parametrize("structure", ["full", "diag", "scalar", "sqrt"])
def test_steps_are_those_of_the_theory(gaussian, structure, correction):
    sampler = ConstantSGD(structure, correction, batch_size=20)
    state = known_state(sampler, gaussian, dense=structure == "full")
    M = state.rows.noise_factor * gaussian.N * gaussian.I1
    kind = structure if correction == "discrete" else f"ou-{structure}"
    K, root = sampler._operators(state, gaussian.posterior)
    K, root = K.dense(), np.zeros((4, 4)) if root is None else root.dense()
    M = M + root @ root.T
    if kind == "diag":  # that of SGFS; the best one takes a search
        expected = 2 / (gaussian.Lam + M).diagonal()
    else:
        expected = theory.optimal_preconditioner(gaussian.Lam, M, kind)
    np.testing.assert_allclose(K, expected * np.eye(4) if np.ndim(expected) < 2 else expected)


@pytest.mark.parametrize("damping", [0.05, 0.3, 1.0])
def test_momentum_has_the_posterior_as_stationary_distribution_for_any_damping(gaussian, damping):
    sampler = MomentumSGD(damping, batch_size=20)
    state = known_state(sampler, gaussian, dense=True)
    sampler.refresh(state, gaussian.posterior)
    M = state.rows.noise_factor * gaussian.N * gaussian.I1
    distribution = sampler.stationary_distribution(state, gaussian.posterior).covariance(
        gaussian.Lam, M
    )
    assert theory.kl_gauss(distribution, np.linalg.inv(gaussian.Lam)) < 1e-10


@pytest.mark.parametrize("damping", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("structure", ["diag", "scalar"])
def test_the_steps_of_momentum_are_those_of_the_theory(gaussian, structure, damping):
    """2 / P_kk and 2 D / Tr P with P = M / mu + Lam / (2 - mu)."""
    sampler = MomentumSGD(damping, structure, batch_size=20)
    state = known_state(sampler, gaussian, dense=False)
    M = state.rows.noise_factor * gaussian.N * gaussian.I1
    P = M / damping + gaussian.Lam / (2 - damping)
    expected = 2 / P.diagonal() if structure == "diag" else np.full(4, 8 / np.trace(P))
    K = sampler._operators(state, gaussian.posterior)[0]
    np.testing.assert_allclose(K.values, expected)


def test_mandts_step_with_momentum_is_the_best_scalar_in_continuous_time():
    """h / mu = 2 D / Tr M where curvature and noise commute (Mandt et al., section 3.3)."""
    Lam, M, mu = np.diag([1.0, 2.0, 5.0]), 1e4 * np.diag([3.0, 1.0, 4.0]), 0.1
    best = minimize_scalar(
        lambda s: theory.kl_gauss(
            theory.momentum_cov(Lam, M, np.exp(s), mu, discrete=False), np.linalg.inv(Lam)
        ),
        bounds=(-14, -6),
    )
    assert np.exp(best.x) == pytest.approx(mu * 6 / np.trace(M), rel=1e-3)


def test_window_is_solved_for_a_variance_ratio_of_one():
    known = KnownGaussian(n_rows=2000, misspecified=False, prior_precision=1e-3)
    sampler = IASG(batch_size=20)
    state = known_state(sampler, known, dense=True)
    K = sampler._operators(state, known.posterior)[0].dense()
    M = state.rows.noise_factor * known.N * known.I1
    assert 60 < state.memory.window.length < 100  # a little less than one pass of 100 steps
    averaged = theory.iasg_cov(known.Lam, M, K, state.memory.window.length)
    assert np.trace(averaged @ known.Lam) / 4 == pytest.approx(1.0, abs=0.01)
    one_pass = IASG(structure="scalar", batch_size=20)
    assert known_state(one_pass, known, dense=True).memory.window.length == 99


@pytest.mark.parametrize("rho", [0.5, 0.98, 0.0, -0.9])
def test_the_window_is_the_best_of_all_lengths(rho):
    for noise in (0.1, 0.9, 3.3, 40.2, 999.5):
        lengths = range(1, int(noise) + 3)  # up to the next integer above `noise` and one more
        off = [abs(noise * averaged_variance(rho, T) - 1) for T in lengths]
        assert right_on_average(noise, rho) == lengths[np.argmin(off)]


def test_the_window_of_heavy_weights_is_found_at_once():
    T = right_on_average(1e9, 1 - 5e-9)
    assert 1e9 * averaged_variance(1 - 5e-9, T) == pytest.approx(1.0, abs=1e-6)


def test_step_size_multiplies_the_preconditioned_gradient(gaussian):
    for structure, scale in [("full", 0.5), ("diag", 0.5), ("scalar", None)]:
        auto = known_state(
            ConstantSGD(structure, batch_size=20), gaussian, dense=structure == "full"
        )
        given = ConstantSGD(structure, step_size=1.0 if scale else 1e-4, batch_size=20)
        K = given._operators(auto, gaussian.posterior)[0].dense()
        reference = (
            ConstantSGD(structure, batch_size=20)._operators(auto, gaussian.posterior)[0].dense()
        )
        np.testing.assert_allclose(K, scale * reference if scale else 1e-4 * np.eye(4))


# -- annealed SGD -----------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [20, 200], ids=["minibatches", "all rows"])
def test_sgd_goes_to_the_mode(gaussian, batch_size):
    """Mean of the last points within a tenth of a posterior standard deviation; n = N is gradient
    descent.
    """
    sampler = SGD(batch_size=batch_size)
    state = start(sampler, gaussian.posterior, 8, theta=np.full((8, 4), 5.0))
    chain = run_chain(sampler, gaussian.posterior, state, Length(3000, 3000))
    sd = np.sqrt(np.linalg.inv(gaussian.Lam).diagonal())
    assert np.abs((chain.draws.mean(axis=(0, 1)) - gaussian.mean) / sd).max() < 0.1
    if batch_size == 200:
        np.testing.assert_allclose(chain.draws[:, -1], np.tile(gaussian.mean, (8, 1)), rtol=1e-6)


@pytest.mark.parametrize("step_size", ["auto", PolynomialDecay(1e-3, 1.0, 1.0)], ids=str)
def test_decreasing_steps_have_no_distribution_and_say_so(gaussian, step_size):
    sampler = SGD(step_size, batch_size=20)
    state = start(sampler, gaussian.posterior, 1)
    with pytest.raises(
        ValueError, match=r"no stationary distribution but the mode; use ConstantSGD$"
    ):
        sampler.stationary_distribution(state, gaussian.posterior).covariance(
            gaussian.Lam, gaussian.Lam
        )
    (warning,) = sampler.report(state).warnings
    remedy = "their standard deviations mean nothing; use SGFS or ConstantSGD for a posterior"
    assert warning.endswith(remedy)
    assert SGD(1e-4, batch_size=20).report(state).warnings == []


def test_sgd_takes_a_schedule(gaussian):
    state = start(SGD(PolynomialDecay(1e-3, 1.0, 1.0), batch_size=20), gaussian.posterior, 1)
    sampler = SGD(PolynomialDecay(1e-3, 1.0, 1.0), batch_size=20)
    sampler.step(state, gaussian.posterior)
    np.testing.assert_allclose(state.theta, 1e-3 * state.gradient)


# -- averages of all iterates -----------------------------------------------------------------


def test_the_average_depends_on_the_rows_read_only(gaussian):
    """Mandt et al. Eq. 42: not on step, batch size and preconditioner, as the iterates do."""
    n_read, N, inverse = 4_000_000, gaussian.N, np.linalg.inv(gaussian.Lam)
    expected = N**2 / n_read * inverse @ gaussian.I1 @ inverse
    P = np.diag([1.0, 0.5, 2.0, 1.5]) + 0.2
    spread = []
    for K in (1e-4, 5e-4, 2e-4 * np.array([1.0, 3.0, 0.5, 2.0]), 3e-4 * P, 0.1 * inverse):
        for n in (1, 10, 100):
            M = theory.noise_cov(gaussian.I1, N, n, replace=True)
            averaged = theory.iasg_cov(gaussian.Lam, M, K, n_read // n)
            np.testing.assert_allclose(averaged, expected, atol=0.01 * np.abs(expected).max())
            spread.append(np.trace(theory.stationary_cov(gaussian.Lam, M, K)))
    assert max(spread) > 100 * min(spread)


@pytest.mark.parametrize(
    "sampler",
    [
        SGD(1e-3, batch_size=20, replace=True),
        SGD(3e-3, batch_size=40, replace=True),
        ConstantSGD(step_size=0.5, batch_size=10, replace=True),
    ],
    ids=repr,
)
def test_the_mean_of_the_draws_is_the_average(gaussian, sampler, seed):
    """16,000 rows by each: covariances as iasg_cov says, and that of Eq. 42 within a tenth."""
    n_steps, inverse = 16_000 // sampler.batch_size, np.linalg.inv(gaussian.Lam)
    theta = np.tile(gaussian.mean, (200, 1))
    state = start(sampler, gaussian.posterior, 200, seed, theta)
    chain = run_chain(sampler, gaussian.posterior, state, Length(n_steps, 200))
    means = chain.draws.mean(axis=1) - gaussian.mean
    K = 1.0 if isinstance(sampler, SGD) else chain.state.memory.preconditioner.dense()
    K = sampler.step_size * K if isinstance(sampler, SGD) else K
    predicted = theory.iasg_cov(gaussian.Lam, noise_of(gaussian, chain.state), K, n_steps)
    limit = 200**2 / 16_000 * inverse @ gaussian.I1 @ inverse
    assert np.abs(predicted - limit).max() < 0.1 * np.abs(limit).max()
    assert np.abs(z_scores(np.einsum("ci,cj->cij", means, means), predicted)).max() < 5


# -- corners ----------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [20, 200, 1000])
@pytest.mark.parametrize("sampler", [ConstantSGD(), MomentumSGD()], ids=repr)
def test_the_distribution_is_the_posteriors_however_little_noise_the_gradient_has(
    sampler, batch_size
):
    """Of all 1,000 rows it has none, and along the null column it never has."""
    known = KnownGaussian(null=True, prior_precision=4.0)
    state = known_state(sampler.set_params(batch_size=batch_size), known, dense=True)
    sampler.refresh(state, known.posterior)
    M = state.rows.noise_factor * known.N * known.I1
    distribution = sampler.stationary_distribution(state, known.posterior).covariance(known.Lam, M)
    assert theory.kl_gauss(distribution, np.linalg.inv(known.Lam)) < 1e-9
    K, W = step_matrices(state)
    assert np.abs(np.linalg.eigvals(np.eye(4) - K @ known.Lam)).max() < 1
    least = np.linalg.eigvals(np.linalg.solve(known.Lam, M + W)).real.min()
    assert least == pytest.approx(1.0)  # no more is injected than is missing


@pytest.mark.parametrize("sampler", [ConstantSGD(), ConstantSGD("diag"), MomentumSGD()], ids=repr)
@pytest.mark.quick("ConstantSGD()")
def test_a_direction_that_only_the_prior_knows_is_drawn_from_it(sampler, seed):
    """Under 2 (Lam + M)^-1 it would swing from side to side for ever, without variance."""
    known = KnownGaussian(null=True, prior_precision=4.0)
    sampler.set_params(batch_size=20)
    state = start(sampler, known.posterior, 16, seed, theta=np.full((16, 4), 3.0))
    chain = run_chain(sampler, known.posterior, state, Length(200, 400, 10))
    assert not sampler.report(chain.state).warnings
    error = 4 * np.sqrt(0.5 / diagnostics.ess_mean(chain.draws)[-1])
    assert chain.draws[..., -1].std() * 2 == pytest.approx(1.0, abs=error)


def test_one_step_for_all_directions_reports_those_without_noise():
    X, y = logistic_data(300, 3)
    posterior = Posterior.of(Softmax(3, 2), X, y, 1.0)
    sampler = ConstantSGD("scalar", batch_size=300)
    state = start(sampler, posterior, 4, theta=np.full((4, 4), 0.3))
    chain = run_chain(sampler, posterior, state, Length(100, 200))
    said = sampler.report(chain.state).warnings
    assert any("4 of 4 directions" in one and "minibatches of 300 rows" in one for one in said)


def test_the_batch_size_leaves_noise_to_sample_with():
    X, y = logistic_data(900, 3)
    posterior = Posterior.of(Softmax(3, 2), X, y, 1.0)
    for sampler in (ConstantSGD(), MomentumSGD(), IASG()):
        assert sampler.init(posterior, np.zeros((2, 4)), np.random.default_rng(0)).rows.size == 45
        assert "batch_size=45 of 900 rows" in sampler.resolve_auto(posterior)
        assert sampler.batch_size == 45
        assert sampler.resolve_auto(posterior) == ""


def test_iasg_draws_are_averages_of_windows(gaussian):
    sampler = IASG(window=5, batch_size=20)
    state = start(sampler, gaussian.posterior, 2)
    points = []
    for _ in range(12):
        sampler.step(state, gaussian.posterior)
        points.append(state.theta.copy())
    np.testing.assert_allclose(sampler.draw(state)[0], np.mean(points[5:10], axis=0))
    fresh = start(sampler, gaussian.posterior, 2)
    np.testing.assert_array_equal(sampler.draw(fresh)[0], fresh.theta)


def test_the_window_of_iasg_starts_with_the_frozen_step(gaussian):
    sampler = IASG(window=5, batch_size=20)
    state = start(sampler, gaussian.posterior, 2)
    for _ in range(3):
        sampler.step(state, gaussian.posterior)
    sampler.freeze(state, gaussian.posterior)
    points = []
    for _ in range(5):
        sampler.step(state, gaussian.posterior)
        points.append(state.theta.copy())
    np.testing.assert_allclose(sampler.draw(state)[0], np.mean(points, axis=0))


def test_iasg_names_the_condition_number_where_a_scalar_step_cannot_serve():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 3)) * [1.0, 1.0, 30.0]
    y = X @ [1.0, 1.0, 0.1] + rng.standard_normal(2000)
    posterior = Posterior.of(Linear(3, fit_intercept=False, noise_variance=1.0), X, y, 1.0)
    for structure, heard in [("scalar", True), ("full", False)]:
        sampler = IASG(structure=structure, batch_size=20)
        state = run_chain(sampler, posterior, start(sampler, posterior, 2), Length(10, 400)).state
        found = sampler.report(state).warnings
        assert bool(found) == heard
        if heard:
            named = float(re.search(r"condition number of the curvature is (\S+) ", found[0])[1])
            assert named == pytest.approx(
                np.linalg.cond(X.T @ X + np.eye(3)), rel=0.12
            )  # 8,000 rows: 5 se
            # Mandt et al. Eq. 47, for an error of a tenth
            assert 20 / 2000 * np.linalg.cond(X.T @ X + np.eye(3)) > 2 / 10


def test_iasg_averages_correlated_parameters_less_along_a_diagonal_and_says_so():
    """The window of one pass suits the sum of the columns, not their differences."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 3)) @ (np.eye(3) + 1.5)
    y = X.sum(axis=1) + rng.standard_normal(2000)
    posterior = Posterior.of(Linear(3, fit_intercept=False, noise_variance=1.0), X, y, 1e-3)
    Lam = X.T @ X
    root = np.linalg.cholesky(Lam)
    for structure, smallest in [("diag", (0.1, 0.5)), ("full", (0.9, 1.0))]:
        sampler = IASG(structure=structure, batch_size=20, step_size=0.1)
        state = run_chain(sampler, posterior, start(sampler, posterior, 2), Length(10, 400)).state
        covariance = sampler.stationary_distribution(state, posterior).covariance(Lam, 99 * Lam)
        low, high = smallest
        assert low < np.linalg.eigvalsh(root.T @ covariance @ root)[0] < high
        found = sampler.report(state).warnings
        assert any("correlated parameters" in each for each in found) == (structure == "diag")


def test_iasg_reports_the_sandwich():
    """Noise four times what the model has it: averages spread four times as widely."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 3))
    y = np.where(X[:, 0] > 0, 3.0, 0.1) * rng.standard_normal(2000)
    posterior = Posterior.of(
        Linear(3, fit_intercept=False, noise_variance=1.0), X * [1, 1, 3], y, 1e-3
    )
    sampler = IASG(window=99, batch_size=20)
    state = run_chain(sampler, posterior, start(sampler, posterior, 2), Length(10, 4000)).state
    mode = np.zeros((1, 3)) + np.linalg.solve(
        posterior.data.X.T @ posterior.data.X, posterior.data.X.T @ y
    )
    Lam = posterior.data.X.T @ posterior.data.X + 1e-3 * np.eye(3)
    M = 99 * 2000 * posterior.score_covariance(mode)
    ratios = np.linalg.eigvals(
        sampler.stationary_distribution(state, posterior).covariance(Lam, M) @ Lam
    ).real
    assert ratios.min() > 3
    np.testing.assert_allclose(state.memory.window.expected, (ratios.min(), ratios.max()), rtol=0.1)
    (warning,) = sampler.report(state).warnings
    assert f"from {state.memory.window.expected[0]:.2f}" in warning
    assert warning.endswith("the prior counts, or the window is off; use SGFS")


@pytest.mark.parametrize(
    ("sampler", "error", "message"),
    [
        (SGD(step_size=0.0), ValueError, r"step_size must be a finite number in \(0, inf\)"),
        (SGD(step_size=lambda t: "big"), ValueError, r"step_size\(0\) must be a finite number"),
        (SGD(step_size="fast"), ValueError, r"step_size must be a finite number in \(0, inf\)"),
        (
            ConstantSGD(step_size=-1.0),
            ValueError,
            r"step_size must be a finite number in \(0, inf\)",
        ),
        (
            ConstantSGD(step_size=lambda t: 1.0),
            ValueError,
            r"step_size must be a finite number in .*, got <function",
        ),
        (ConstantSGD(structure="block"), ValueError, "structure must be one of"),
        (ConstantSGD(correction="none"), ValueError, "correction must be one of"),
        (MomentumSGD(damping=0.0), ValueError, r"damping must be a finite number in \(0, 1\]"),
        (MomentumSGD(damping=1.5), ValueError, r"damping must be a finite number in \(0, 1\]"),
        (MomentumSGD(damping="high"), ValueError, "damping must be a finite number"),
        (
            MomentumSGD(damping=lambda t: 0.5),
            ValueError,
            r"damping must be a finite number in \(0, 1\]",
        ),
        (MomentumSGD(structure="sqrt"), ValueError, "structure must be one of"),
        (IASG(window=0), ValueError, "window must be at least 1"),
        (IASG(window=2.5), TypeError, 'window must be an integer or "pass"'),
        (IASG(window="epoch"), TypeError, 'window must be an integer or "pass"'),
        (IASG(structure="sqrt"), ValueError, "structure must be one of"),
        (ConstantSGD(covariance="all"), ValueError, "covariance must be one of"),
        (
            MomentumSGD(covariance="single_row", batch_size=1),
            ValueError,
            "must have 2 rows or more",
        ),
        (IASG(batch_size=0), ValueError, "batch_size must be at least 1"),
    ],
)
def test_impossible_parameters_are_named(gaussian, sampler, error, message):
    with pytest.raises(error, match=message):
        sampler.validate(gaussian.posterior)


def test_a_schedule_that_stops_being_positive_is_named(gaussian):
    sampler = SGD(lambda t: 1e-4 - 1e-4 * t, batch_size=20)
    state = start(sampler, gaussian.posterior, 1)
    sampler.step(state, gaussian.posterior)
    with pytest.raises(
        ValueError, match=r"step_size\(1\) must be a finite number in \(0, inf\), got 0"
    ):
        sampler.step(state, gaussian.posterior)


def test_the_continuous_time_step_needs_noise_everywhere():
    known = KnownGaussian(null=True, prior_precision=4.0)
    for structure, remedy in [("full", 'use correction="discrete"'), ("sqrt", 'use "diag"')]:
        with pytest.raises(ValueError, match=remedy):
            start(ConstantSGD(structure, "ou", batch_size=20), known.posterior, 1)


@pytest.mark.parametrize(
    ("sampler", "stable"),
    [
        (ConstantSGD(), True),
        (ConstantSGD("diag"), False),
        (ConstantSGD(correction="ou"), False),
        (ConstantSGD(step_size=1.0), False),
        (MomentumSGD(), True),
        (IASG(), True),
    ],
    ids=repr,
)
def test_the_automatic_step_of_a_matrix_is_stable_on_any_data(gaussian, sampler, stable):
    sampler.set_params(batch_size=20)
    state = start(sampler, gaussian.posterior, 1)
    distribution = sampler.stationary_distribution(state, gaussian.posterior)
    assert (distribution.spectral_radius(state, gaussian.posterior) == 0.0) == stable


@pytest.mark.parametrize(
    ("sampler", "stable", "unstable"),
    [
        (ConstantSGD("scalar"), 1.9, 2.1),
        (SGD(step_size=1.0), 1.9, 2.1),
        (MomentumSGD(damping=0.2, structure="scalar"), 3.5, 3.7),
    ],
    ids=repr,
)
def test_spectral_radius_crosses_one_where_theory_says(sampler, stable, unstable):
    """Step times the largest eigenvalue below 2, or 2 (2 - damping) with momentum."""
    known = KnownGaussian()
    largest = np.linalg.eigvalsh(known.Lam).max()
    for factor, below in [(stable, True), (unstable, False)]:
        sampler.set_params(step_size=factor / largest, batch_size=50)
        state = start(sampler, known.posterior, 1)
        radius = sampler.stationary_distribution(state, known.posterior).spectral_radius(
            state, known.posterior
        )
        assert (radius < 1) == below
