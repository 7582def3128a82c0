"""A user's B and C in SGFS: to the letter of the papers, exact, or refused."""

import numpy as np
import pytest
from conftest import KnownGaussian, assert_moments, noise_of, start
from helpers import step_matrices
from sklearn.base import clone

from skbayes_sg import theory
from skbayes_sg.linalg import Dense, Diag
from skbayes_sg.samplers import SGFS

B = 500 * (np.diag([1.0, 0.5, 2.0, 1.5]) + 0.2)
C = 1e-3 * (np.diag([0.5, 1.0, 1.5, 2.0]) - 0.1)


def known_state(sampler, known):
    """A state whose averages are the true matrices, and whose operators are made of them."""
    calm = clone(sampler) if sampler.C is None else clone(sampler).set_params(alpha=1e3)
    state = start(calm, known.posterior, 1)
    if sampler.structure == "full":
        state.memory.I1, state.memory.fisher = Dense(known.I1), Dense(known.A)
    else:
        keep = state.memory.layout.keep
        state.memory.I1, state.memory.fisher = keep(Dense(known.I1)), keep(Dense(known.A))
    state.memory.fisher = None if sampler.variant == "paper" else state.memory.fisher
    sampler.refresh(state, known.posterior)
    return state


# -- B ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [B, B.diagonal()], ids=["matrix", "vector"])
def test_the_posterior_is_the_distribution_for_any_matrix_b(gaussian, shape):
    state = known_state(SGFS(2.0, B=shape, batch_size=20), gaussian)
    K, W = step_matrices(state)
    full = shape if shape.ndim == 2 else np.diag(shape)
    np.testing.assert_allclose(W, 4 * full + np.diag(state.memory.prior.values))
    assert theory.kl_stationary(gaussian.Lam, noise_of(gaussian, state) + W, K) < 1e-10


@pytest.mark.parametrize("variant", ["exact", "paper", "mandt"])
@pytest.mark.parametrize("structure", ["full", "block", "diag", "scalar"])
@pytest.mark.parametrize("n_rows", [200, 30])
def test_b_is_injected_whole_and_p_keeps_what_its_structure_keeps(variant, structure, n_rows):
    """Also where minibatches hold most of the rows, and curvature is injected beside B."""
    known = KnownGaussian(n_rows=n_rows)
    sampler = SGFS(3.0, structure, B, variant, batch_size=20)
    state = known_state(sampler, known)
    plain = sampler.set_params(B=1e-9)._operators(state, known.posterior)  # P, and what is beside B
    P, root = 2 * np.linalg.inv(plain[0].dense()), plain[1].dense()
    beside = root @ root.T - 9e-9 * np.eye(4)
    K, W = step_matrices(state)
    np.testing.assert_allclose(W, 9 * B + beside, rtol=1e-6)
    kept = {
        "full": np.ones((4, 4)),
        "block": np.kron(np.eye(2), np.ones((2, 2))),
        "diag": np.eye(4),
        "scalar": np.eye(4),
    }[structure]
    expected = P + 9 * B * kept
    if structure == "scalar":
        expected = P + 9 * B.diagonal().mean() * np.eye(4)
    np.testing.assert_allclose(np.linalg.inv(K) * 2, expected, rtol=1e-6, atol=1e-3)


@pytest.mark.parametrize(
    "given",
    [{"B": B}, {"B": B, "structure": "diag"}, {"C": C}, {"C": C.diagonal()}],
    ids=["B", "B diag", "C", "C vector"],
)
def test_moments_of_one_step(gaussian, given, seed):
    """4,000 chains leave one point; mean and covariance are those of theta + K (gradient + eta)."""
    sampler = SGFS(**{"alpha": 8.0, "batch_size": 20} | given)
    theta = np.full((4000, 4), 0.3)
    state = start(sampler, gaussian.posterior, 4000, seed, theta)
    state.memory.adapting = False
    K, W = step_matrices(state)
    sampler.step(state, gaussian.posterior)
    drift = K @ gaussian.Lam @ (gaussian.mean - theta[0])
    covariance = K @ (noise_of(gaussian, state) + W) @ K.T
    assert_moments(state.theta - theta, drift, covariance)


def test_e_of_mandt_eq_35_to_the_letter():
    """H* = (2/N) (eps BB^T / S + E E^T)^-1, and the step -eps H g + sqrt(eps) H E w."""
    known, eps, S = KnownGaussian(), 0.01, 20
    E = np.random.default_rng(2).standard_normal((4, 6))
    C_of_mandt = known.I1
    H = 2 / known.N * np.linalg.inv(eps * C_of_mandt / S + E @ E.T)
    sampler = SGFS(1.0, B=known.N**2 / eps * E @ E.T, variant="mandt", replace=True, batch_size=S)
    state = known_state(sampler, known)
    K, W = step_matrices(state)
    np.testing.assert_allclose(K, eps / known.N * H)  # the gradient here is N times the mean's
    np.testing.assert_allclose(K @ W @ K, eps * H @ E @ E.T @ H)
    # and theorem 3: the posterior is the distribution in continuous time
    M = state.rows.noise_factor * known.N * known.I1
    assert theory.kl_stationary(known.Lam, M + W, K, discrete=False) < 1e-10


# -- C ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [C, C.diagonal()], ids=["matrix", "vector"])
def test_c_of_ahn_eq_9_to_the_letter(shape):
    """K = eps C / 2, and eps C - (eps^2 / 4) gamma C I_N C injected into theta."""
    known = KnownGaussian(misspecified=False)
    sampler = SGFS(5.0, C=shape, variant="paper", replace=True, batch_size=20)
    state = known_state(sampler, known)
    K, W = step_matrices(state)
    full = shape if shape.ndim == 2 else np.diag(shape)
    eps, gamma, I_N = 4 / 5.0**2, (20 + 200) / 20, 200 * known.I1
    np.testing.assert_allclose(K, eps / 2 * full)
    np.testing.assert_allclose(
        K @ W @ K, eps * full - eps**2 / 4 * gamma * full @ I_N @ full, atol=1e-12
    )


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("alpha", [5.0, 20.0])
def test_the_posterior_is_the_distribution_for_any_c(gaussian, replace, alpha):
    """With the prior and the right noise factor; curvature and noise do not commute with C."""
    sampler = SGFS(alpha, C=C, replace=replace, batch_size=20)
    state = known_state(sampler, gaussian)
    K, W = step_matrices(state)
    M = state.rows.noise_factor * gaussian.N * gaussian.I1
    assert theory.kl_stationary(gaussian.Lam, M + W, K) < 1e-10


def test_the_c_of_ahn_eq_10_is_the_step_with_b(gaussian):
    """C = 4 (eps gamma I_N + 4 B)^-1 turns Eq. 9 into Eq. 11."""
    by_B = SGFS(2.0, B=B, variant="paper", batch_size=20)
    P = 2 * np.linalg.inv(
        step_matrices(known_state(by_B, gaussian))[0]
    )  # gamma I_N + 4 B / eps, eps = 1
    by_C = SGFS(2.0, C=4 * np.linalg.inv(P), variant="paper", batch_size=20)
    for ours, theirs in zip(
        step_matrices(known_state(by_C, gaussian)),
        step_matrices(known_state(by_B, gaussian)),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)


@pytest.mark.parametrize("structure", ["full", "block", "diag", "scalar"])
def test_a_step_too_long_for_c_is_refused_with_the_alpha_that_is_not(gaussian, structure):
    """alpha^2 must exceed the largest eigenvalue of C (curvature + noise)."""
    sampler = SGFS(20.0, structure, C=C, batch_size=20)
    state = known_state(sampler, gaussian)
    with pytest.raises(ValueError, match="is too small for this C") as refused:
        sampler.set_params(alpha=0.1).refresh(state, gaussian.posterior)
    least = float(str(refused.value).split("alpha must be above ")[1].split(",")[0])
    sampler.set_params(alpha=1.01 * least).refresh(state, gaussian.posterior)
    with pytest.raises(ValueError, match="too small"):
        sampler.set_params(alpha=0.99 * least).refresh(state, gaussian.posterior)
    share = float(str(refused.value).split("C below ")[1].split(" times")[0])
    sampler.set_params(alpha=0.1, C=0.99 * share * C).refresh(state, gaussian.posterior)
    with pytest.raises(ValueError, match="too small"):
        sampler.set_params(C=1.01 * share * C).refresh(state, gaussian.posterior)


def test_as_alpha_grows_the_step_is_that_of_sgld_with_p_the_inverse_of_b(gaussian):
    """K = (eps/2) B^-1 and K W K = eps B^-1 in the limit (Ahn et al. after Algorithm 1)."""
    for variant in ("exact", "paper", "mandt"):
        errors = []
        for alpha in (1e2, 1e3):
            state = known_state(SGFS(alpha, B=B, variant=variant, batch_size=20), gaussian)
            K, W = step_matrices(state)
            eps, P = 4 / alpha**2, np.linalg.inv(B)
            error = max(np.abs(K - eps / 2 * P).max(), np.abs(K @ W @ K - eps * P).max())
            errors.append(error / np.abs(eps * P).max())
        assert errors[1] < 1e-3
        assert errors[1] / errors[0] == pytest.approx(0.01, rel=0.2)  # proportional to eps


# -- h_max ------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["exact", "paper", "mandt"])
def test_the_gain_is_h_max_where_it_would_be_larger(gaussian, variant):
    """W = 2 / h_max - P there, and nothing elsewhere."""
    plain = known_state(SGFS(0.0, "diag", variant=variant, batch_size=20), gaussian)
    free = plain.memory.preconditioner.values
    h_max = np.sort(free)[1:3].mean()
    sampler = SGFS(0.0, "diag", variant=variant, h_max=h_max, batch_size=20)
    state = known_state(sampler, gaussian)
    np.testing.assert_allclose(state.memory.preconditioner.values, np.minimum(free, h_max))
    before = 0.0 if plain.memory.noise_root is None else plain.memory.noise_root.values**2
    injected = state.memory.noise_root.values**2 - before
    np.testing.assert_allclose(injected, np.maximum(0, 2 / h_max - 2 / free), atol=1e-8)


# -- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"B": np.eye(3)}, r"B must have shape \(4,\) or \(4, 4\)"),
        ({"B": [1.0, 1.0, 1.0, 0.0]}, "B must be positive definite"),
        ({"B": [1.0, 1.0, 1.0, np.nan]}, "B must be finite"),
        ({"B": np.triu(np.ones((4, 4)))}, "B must be symmetric"),
        ({"B": ["a"] * 4}, "B must hold real numbers"),
        ({"B": lambda t: 1.0}, "B must be a finite number in .*, got <function"),
        ({"B": B, "structure": "kron"}, "keeps no coordinates for an array B"),
        ({"C": C}, "alpha must be positive, got 'auto'"),
        ({"C": C, "alpha": 0.0}, "alpha must be positive, got 0.0"),
        ({"C": -C, "alpha": 1.0}, "C must be positive definite"),
        ({"C": C, "alpha": 1.0, "B": B}, "leave B and h_max out"),
        ({"C": C, "alpha": 1.0, "B": 2.0}, "leave B and h_max out"),
        ({"C": C, "alpha": 1.0, "structure": "diag", "h_max": 1.0}, "leave B and h_max out"),
        ({"C": C, "alpha": 1.0, "structure": "kron"}, "keeps no coordinates for C"),
    ],
)
def test_impossible_parameters_are_named(gaussian, parameters, message):
    with pytest.raises(ValueError, match=message):
        SGFS(**parameters).validate(gaussian.posterior)


def test_numbers_of_numpy_are_numbers(gaussian):
    for number in (np.float32(7.0), np.int64(7), 7):
        state = known_state(SGFS(2.0, B=number, variant="paper", batch_size=20), gaussian)
        assert isinstance(sampler_noise(state), Diag)
    SGFS(2.0, B=1e-3, batch_size=20).validate(gaussian.posterior)  # below 1 too


def sampler_noise(state):
    """The root of W, a multiple of the identity."""
    np.testing.assert_allclose(state.memory.noise_root.dense(), np.sqrt(28.0) * np.eye(4))
    return state.memory.noise_root
