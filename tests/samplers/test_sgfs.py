"""SGFS against closed forms: one step, and the corners where the paper's form fails."""

import numpy as np
import pytest
from conftest import (
    GaussianTarget,
    KnownGaussian,
    assert_moments,
    logistic_data,
    noise_of,
    second_moments,
    start,
    z_scores,
)
from helpers import step_matrices

from skbayes_sg import theory
from skbayes_sg.chains.run import Length, run_chain
from skbayes_sg.linalg import FULL, Dense, Diag
from skbayes_sg.models import Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import SGFS
from skbayes_sg.samplers.sgfs import exact, mandt, paper

EXACT = [
    pytest.param(
        {"structure": s, "replace": r, "alpha": a},
        id=f"{s}-{'with' if r else 'without'}-alpha{a:g}",
    )
    for s in ("full", "diag", "block")
    for r in (False, True)
    for a in (0.0, 2.0)
]


# -- one step ---------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", EXACT)
def test_moments_of_one_step(gaussian, parameters, seed):
    """4,000 chains leave one point; mean and covariance are those of theta + K (gradient + eta)."""
    sampler = SGFS(batch_size=20, **parameters)
    theta = np.full((4000, 4), 0.3)
    state = start(sampler, gaussian.posterior, 4000, seed, theta)
    K, W = step_matrices(state)
    state.memory.adapting = False
    sampler.step(state, gaussian.posterior)
    drift = K @ gaussian.Lam @ (gaussian.mean - theta[0])
    covariance = K @ (noise_of(gaussian, state) + W) @ K.T
    assert_moments(state.theta - theta, drift, covariance)


def test_moments_of_one_step_on_logistic_regression(seed):
    """With a real model: drift from all rows, noise from their score covariance at theta."""
    X, y = logistic_data(400, 3)
    posterior = Posterior.of(Softmax(3, 2), X, y, 2.0)
    sampler = SGFS(alpha=1.0, batch_size=40)
    theta = np.tile([0.5, -0.2, 0.1, 0.3], (4000, 1))
    state = start(sampler, posterior, 4000, seed, theta)
    K, W = step_matrices(state)
    state.memory.adapting = False
    sampler.step(state, posterior)
    scores = posterior.scores(theta[:1], slice(None))
    drift = K @ posterior.gradient(theta[:1], scores)[0]
    M = state.rows.noise_factor * 400 * scores.covariance(FULL).dense()
    centred = state.theta - theta - drift
    assert np.abs(z_scores(centred, 0.0)).max() < 5
    assert np.abs(z_scores(np.einsum("ci,cj->cij", centred, centred), K @ (M + W) @ K.T)).max() < 5


# -- stationary distribution ----------------------------------------------------------------------


def stationary_draws(sampler, known, seed, n_chains=64, n_draws=400, thin=5, burn_in=600):
    state = start(sampler, known.posterior, n_chains, seed, np.tile(known.mean, (n_chains, 1)))
    return run_chain(sampler, known.posterior, state, Length(n_draws, burn_in, thin))


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
@pytest.mark.parametrize("prior_precision", [1.0, 300.0])
@pytest.mark.parametrize("B", ["fisher", 50.0])
def test_exact_operators_have_the_posterior_as_stationary_distribution(
    replace, alpha, prior_precision, B
):
    """KL < 1e-10 for full matrices, from the sampler's own P and W, whatever the settings."""
    known = KnownGaussian(prior_precision=prior_precision)
    sampler = SGFS(alpha=alpha, B=B, batch_size=20, replace=replace)
    state = start(sampler, known.posterior, 1)
    state.memory.I1, state.memory.fisher = Dense(known.I1), Dense(known.A)
    P, W = exact(state.memory, known.N, state.rows, B)
    P = P + W
    M = state.rows.noise_factor * known.N * known.I1
    assert theory.kl_stationary(known.Lam, M + W.dense(), 2 * P.inverse().dense()) < 1e-10


def test_the_papers_form_is_biased_by_a_strong_prior_and_then_diverges():
    for prior_precision, fails in [(100.0, False), (1e4, True)]:
        known = KnownGaussian(prior_precision=prior_precision, misspecified=False)
        sampler = SGFS(variant="paper", batch_size=20, replace=True)
        state = start(sampler, known.posterior, 1)
        state.memory.I1 = Dense(known.A.copy())  # the right model: score covariance = Fisher
        P, W = paper(state.memory, known.N, state.rows, "fisher")
        assert W is None
        np.testing.assert_allclose(P.dense(), (1 + 200 / 20) * 200 * known.A)  # gamma I_N, no prior
        M = state.rows.noise_factor * 200 * known.A
        if fails:
            with pytest.raises(ValueError, match="unstable"):
                theory.kl_stationary(known.Lam, M, 2 * P.inverse().dense())
        else:
            assert theory.kl_stationary(known.Lam, M, 2 * P.inverse().dense()) > 1e-3


def test_the_exact_and_mandts_form_inject_alpha_squared_b(gaussian):
    """B is gamma I_N, the precision, or a number; the exact form injects the prior as well."""
    for formula, variant, more in [(exact, "exact", True), (mandt, "mandt", False)]:
        sampler = SGFS(alpha=3.0, variant=variant, batch_size=20)
        state = start(sampler, gaussian.posterior, 1)
        prior = state.memory.prior.dense() if more else 0.0
        _, W = formula(state.memory, gaussian.N, state.rows, "fisher")
        gamma = state.rows.noise_factor + 1
        I_N = gaussian.N * state.memory.I1.dense()
        np.testing.assert_allclose(W.dense(), 9 * gamma * I_N + prior)
        _, W = formula(state.memory, gaussian.N, state.rows, 7.0)
        np.testing.assert_allclose(W.dense(), 63 * np.eye(4) + prior)
    sampler = SGFS(alpha=3.0, batch_size=20)
    state = start(sampler, gaussian.posterior, 1)
    for B, level in [("precision", 0.0), ("bounded", 1.0)]:
        P, W = exact(state.memory, gaussian.N, state.rows, B)
        injected = P.dense() + level * P.diagonal().mean() * np.eye(4)
        np.testing.assert_allclose(W.dense(), 9 * injected + state.memory.prior.dense())


def test_paper_variant_injects_alpha_squared_b(gaussian):
    for B, expected in [("fisher", 4 * 11 * 200), (7.0, None)]:
        sampler = SGFS(alpha=2.0, B=B, variant="paper", batch_size=20)
        state = start(sampler, gaussian.posterior, 1)
        P, W = paper(state.memory, gaussian.N, state.rows, B)
        I1 = state.memory.I1.dense()
        np.testing.assert_allclose(W.dense(), 28 * np.eye(4) if expected is None else expected * I1)
        np.testing.assert_allclose(P.dense(), 11 * 200 * I1)
        preconditioner = 2 * np.linalg.inv(11 * 200 * I1 + W.dense())
        np.testing.assert_allclose(state.memory.preconditioner.dense(), preconditioner)


# -- corners ----------------------------------------------------------------------------------


def test_a_direction_without_data_follows_the_prior(seed):
    """Independent draws of N(0, 1/lam) each step, and nothing frozen or flipping sign."""
    known = KnownGaussian(null=True, prior_precision=4.0)
    chain = stationary_draws(SGFS(batch_size=20), known, seed, thin=1)
    draws = chain.draws[..., -1]
    assert np.abs(z_scores((draws**2).mean(axis=1), 0.25)) < 5
    assert np.abs(z_scores((draws[:, 1:] * draws[:, :-1]).mean(axis=1), 0.0)) < 5


@pytest.mark.parametrize("structure", ["full", "diag", "block"])
@pytest.mark.quick("full")
def test_fewer_rows_than_the_minibatch(structure, seed):
    """No gradient noise is left: what is injected carries the variance, in steps that forget."""
    known = KnownGaussian(n_rows=30)
    chain = stationary_draws(SGFS(structure=structure, batch_size=500), known, seed, thin=1)
    K, W = step_matrices(chain.state)
    predicted = theory.stationary_cov(known.Lam, W, K)
    assert np.abs(z_scores(second_moments(chain.draws, known.mean), predicted)).max() < 5
    if structure == "full":
        np.testing.assert_allclose(predicted, np.linalg.inv(known.Lam), rtol=1e-8)
        np.testing.assert_allclose(np.eye(4) - K @ known.Lam, 0, atol=1e-8)


def test_separable_data_stay_finite_under_the_prior(seed):
    X = np.linspace(-1, 1, 200)[:, None]
    posterior = Posterior.of(Softmax(1, 2), X, np.sign(X[:, 0]), 0.01)
    sampler = SGFS(batch_size=50)
    chain = run_chain(sampler, posterior, start(sampler, posterior, 32, seed), Length(500, 500))
    slope = chain.draws[..., 0]
    grid = np.linspace(-10, 200, 401)
    theta = np.stack(np.meshgrid(grid, np.linspace(-30, 30, 61), indexing="ij"), axis=-1).reshape(
        -1, 2
    )
    logp = np.concatenate([posterior.log_prob(part) for part in np.array_split(theta, 40)])
    weight = np.exp(logp - logp.max())
    exact_mean = weight @ theta[:, 0] / weight.sum()
    exact_sd = np.sqrt(weight @ (theta[:, 0] - exact_mean) ** 2 / weight.sum())
    assert abs(slope.mean() - exact_mean) < exact_sd  # far from Gaussian: near, and honest about it
    assert np.isfinite(chain.draws).all()


def test_constant_column_and_intercept_share_what_the_data_say():
    X, y = logistic_data(300, 2)
    posterior = Posterior.of(Softmax(3, 2), np.column_stack([X, np.full(300, 5.0)]), y, 1.0)
    sampler = SGFS(batch_size=50)
    chain = run_chain(sampler, posterior, start(sampler, posterior, 16), Length(1000, 500))
    across = (chain.draws[..., 2] - 5 * chain.draws[..., 3]) / np.sqrt(
        26
    )  # the direction the data do not see
    assert across.var() == pytest.approx(1.0, abs=0.1)


# -- adaptation -------------------------------------------------------------------------------


def test_score_covariance_converges_to_that_of_all_rows(gaussian):
    """kappa = 1/t, both estimators; Eq. 25 with its bias removed."""
    cases = [("minibatch", 1, 500, 0.06), ("single_row", 4, 2000, 0.1)]
    for covariance, n_chains, n_steps, tolerance in cases:
        sampler = SGFS(batch_size=10, covariance=covariance, refresh_every=1)
        theta = np.tile(gaussian.mean, (n_chains, 1))
        state = start(sampler, gaussian.posterior, n_chains, theta=theta)
        for _ in range(n_steps):
            sampler.step(state, gaussian.posterior)
        error = np.abs(state.memory.I1.dense() - gaussian.I1).max() / np.abs(gaussian.I1).max()
        assert (
            error < tolerance
        )  # the diagonal's standard error is about .02 and .016 after so many rows


def test_burn_in_freezes_or_not(gaussian):
    for adapt in ("burn_in", "always"):
        sampler = SGFS(batch_size=10, adapt=adapt)
        state = run_chain(
            sampler, gaussian.posterior, start(sampler, gaussian.posterior, 2), Length(1, 64)
        ).state
        before = state.memory.I1.dense()
        count = state.memory.count
        for _ in range(10):
            sampler.step(state, gaussian.posterior)
        assert np.array_equal(before, state.memory.I1.dense()) == (adapt == "burn_in")
        assert (state.memory.count == count) == (adapt == "burn_in")


def test_restart_keeps_the_square_root_of_the_count(gaussian):
    sampler = SGFS(batch_size=10)
    state = start(sampler, gaussian.posterior, 1)
    state.memory.count = 100.0
    sampler.restart(state, gaussian.posterior)
    assert state.memory.count == 10


def test_refresh_every_decides_when_matrices_are_factorised(gaussian):
    sampler = SGFS(batch_size=10, refresh_every=5)
    state = start(sampler, gaussian.posterior, 1)
    gains = []
    for _ in range(11):
        sampler.step(state, gaussian.posterior)
        gains.append(state.memory.preconditioner)
    assert len({id(g) for g in gains}) == 3


def test_alpha_may_anneal_after_the_freeze(gaussian, seed):
    """Each step is exact at its own alpha, so the stationary distribution does not move."""
    sampler = SGFS(alpha=lambda t: 3.0 / (1 + t / 200), batch_size=20)
    chain = stationary_draws(sampler, gaussian, seed)
    assert chain.state.memory.alpha < 0.4
    K, W = step_matrices(chain.state)
    predicted = theory.stationary_cov(gaussian.Lam, noise_of(gaussian, chain.state) + W, K)
    assert theory.kl_gauss(predicted, np.linalg.inv(gaussian.Lam)) < 0.01
    ratio = second_moments(chain.draws, gaussian.mean) @ gaussian.Lam
    assert (
        np.abs(z_scores(np.trace(ratio, axis1=1, axis2=2) / 4, 1.0)) < 8
    )  # and 5 + 3 for the learnt matrices


def test_an_unstable_diagonal_form_says_so():
    """Strongly correlated scores at alpha = 0 and a small noise factor."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 1)) + 0.1 * rng.standard_normal((300, 8))
    y = np.where(rng.random(300) < 0.5, 1.0, -1.0)
    posterior = Posterior.of(Softmax(8, 2), X, y, 0.01)
    Lam = posterior.expand(np.zeros((1, 9)), FULL).curvature.dense()
    for alpha, unstable in [(0.0, True), (4.0, False)]:
        sampler = SGFS(alpha=alpha, structure="diag", batch_size=150)
        state = start(sampler, posterior, 2)
        radius = theory.spectral_radius(Lam, state.memory.preconditioner.dense())
        assert (radius >= 1) == unstable
        if unstable:
            assert sampler.stationary_distribution(state, posterior).spectral_radius(
                state, posterior
            ) == pytest.approx(radius, rel=0.05)
        state = run_chain(sampler, posterior, state, Length(10, 200)).state
        said = sampler.report(state).warnings
        assert bool(said) == unstable
        assert all("raise alpha" in one for one in said)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": -1.0}, r"alpha must be a finite number in \[0, 1e6\]"),
        ({"alpha": 1e200}, r"alpha must be a finite number in \[0, 1e6\]"),
        ({"refresh_every": True}, "refresh_every must be"),
        ({"alpha": "big"}, r"alpha must be a finite number in \[0, 1e6\]"),
        ({"alpha": lambda t: None}, r"alpha\(0\) must be a finite number"),
        ({"structure": "blocks"}, "structure must be one of"),
        ({"variant": "new"}, "variant must be one of"),
        ({"curvature": "hessian"}, "curvature must be one of"),
        ({"covariance": "all"}, "covariance must be one of"),
        ({"adapt": "never"}, "adapt must be one of"),
        ({"B": 0.0}, "B must be"),
        ({"B": "wide"}, "B must be"),
        ({"h_max": -1.0, "structure": "diag"}, r"h_max must be a finite number in \(0, inf\)"),
        ({"h_max": 1.0, "structure": "block"}, "h_max bounds the entries of a diagonal"),
        ({"B": "precision", "variant": "paper"}, 'B="precision" needs variant="exact"'),
        ({"B": "bounded", "variant": "mandt"}, 'B="bounded" needs variant="exact"'),
        ({"refresh_every": 0}, "refresh_every must be"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
    ],
)
def test_impossible_parameters_are_named(gaussian, parameters, message):
    with pytest.raises((TypeError, ValueError), match=message):
        SGFS(**parameters).validate(gaussian.posterior)


def test_batch_size_must_be_an_integer(gaussian):
    with pytest.raises(TypeError, match="batch_size must be an integer"):
        SGFS(batch_size=50.0).validate(gaussian.posterior)


def test_weights_need_the_model_fisher():
    X, y = logistic_data()
    posterior = Posterior.of(Softmax(4, 2), X, y, 1.0, np.full(300, 2.0))
    with pytest.raises(ValueError, match='curvature="model"'):
        SGFS(variant="paper").validate(posterior)
    SGFS().validate(posterior)


def test_a_singular_preconditioner_names_the_remedy():
    posterior = Posterior.of(GaussianTarget(np.zeros((2, 2))), np.ones((50, 2)), np.zeros(50), 1.0)
    with pytest.raises(ValueError, match='variant="exact" and curvature="empirical"'):
        start(SGFS(variant="paper", batch_size=10), posterior, 1)
    start(SGFS(batch_size=10), posterior, 1)


def test_default_block_is_one_per_output_unit():
    X, _ = logistic_data(100, 3)
    y = np.arange(100) % 3
    posterior = Posterior.of(Softmax(3, 3), X, y, 1.0)
    state = start(SGFS(structure="block", batch_size=20), posterior, 1)
    assert state.memory.I1.stack.shape == (3, 4, 4)
    assert isinstance(start(SGFS(structure="diag", batch_size=20), posterior, 1).memory.I1, Diag)


def test_bounded_noise_is_that_of_precision_plus_its_mean_everywhere(gaussian):
    posterior, alpha, injected = gaussian.posterior, 2.0, {}
    for B in ("precision", "bounded"):
        sampler = SGFS(alpha=alpha, B=B, structure="diag", batch_size=20)
        state = sampler.init(posterior, np.zeros((1, posterior.dim)), np.random.default_rng(0))
        injected[B] = np.diag(step_matrices(state)[1])
    proportional = (
        injected["precision"] - posterior.prior.precision
    )  # the prior's part is there for both
    np.testing.assert_allclose(injected["bounded"] - injected["precision"], proportional.mean())
