"""Closed forms, against the figures of the papers as corrected."""

import numpy as np
import pytest

from skbayes_sg import theory


def spd(rng, dim, cond):
    q, _ = np.linalg.qr(rng.standard_normal((dim, dim)))
    return q * np.geomspace(1, cond, dim) @ q.T


@pytest.fixture
def matrices():
    rng = np.random.default_rng(0)
    return spd(rng, 5, 50), spd(rng, 5, 30), spd(rng, 5, 7)


def test_one_formula_is_exact_for_any_three_matrices(matrices):
    Lam, M, W = matrices
    assert theory.kl_stationary(Lam, M + W, 2 * np.linalg.inv(Lam + M + W)) < 1e-10


@pytest.mark.parametrize(
    ("ratio", "kl", "digits"), [(0.01, 0.00015, 5), (0.05, 0.00401, 5), (0.2, 0.0806, 4), (0.5, 0.9206, 4)]
)
def test_mandt_theorem_2_leaves_its_discretisation_error(ratio, kl, digits):
    Lam = spd(np.random.default_rng(1), 6, 20)
    M = Lam / ratio
    assert theory.kl_stationary(Lam, M, 2 * np.linalg.inv(M)) == pytest.approx(kl, abs=0.5 * 10**-digits)
    r = 1 / (1 - ratio)
    assert theory.kl_stationary(Lam, M, 2 * np.linalg.inv(M)) == pytest.approx(3 * (r - 1 - np.log(r)))
    assert theory.kl_stationary(Lam, M, 2 * np.linalg.inv(M), discrete=False) < 1e-10


def test_an_unstable_recursion_is_reported_with_its_radius(matrices):
    Lam, M, _ = matrices
    with pytest.raises(ValueError, match=r"spectral radius of I - K Lam is \d"):
        theory.stationary_cov(Lam, M, 10.0)
    with pytest.raises(ValueError, match="unstable"):
        theory.stationary_cov(Lam, M, -1.0, discrete=False)


@pytest.mark.parametrize(("alpha", "expected"), [(0, 20), (1, 41), (2, 104), (3, 209)])
def test_iat_of_sgfs(alpha, expected):
    """gamma (1 + alpha^2) - 1 at N/n = 20 with replacement (MATH 7.1)."""
    Lam = spd(np.random.default_rng(2), 4, 10)
    M, gamma = 20 * Lam, 21
    W = alpha**2 * gamma * Lam
    K = 2 * np.linalg.inv(Lam + M + W)
    np.testing.assert_allclose(theory.iat(Lam, K, theory.stationary_cov(Lam, M + W, K)), expected)


def test_the_prior_enters_the_preconditioner_once():
    """Not at all (the paper) is biased and diverges under a strong prior, gamma times is biased (MATH E16)."""
    eig = np.geomspace(500, 15000, 6)
    fisher, M = np.diag(eig), np.diag(10 * eig)

    def kl(lam, P):
        return theory.kl_stationary(fisher + lam * np.eye(6), M, 2 * np.linalg.inv(P))

    def kl_of_ratios(ratio):
        return 0.5 * np.sum(ratio - 1 - np.log(ratio))

    for lam in (1000.0, 5000.0):
        assert kl(lam, 11 * fisher + lam * np.eye(6)) < 1e-10
        gamma_times = 10 * eig / (11 * (eig + lam) - (eig + lam))
        assert kl(lam, 11 * (fisher + lam * np.eye(6))) == pytest.approx(kl_of_ratios(gamma_times))
    assert kl(1000.0, 11 * fisher) == pytest.approx(kl_of_ratios(10 / (10 - 1000.0 / eig)))
    with pytest.raises(ValueError, match="unstable"):
        kl(5001.0, 11 * fisher)  # stable iff lam < (gamma - 1) min eig I_N


def test_constant_step_sgld_obeys_mandt_eq_34_as_corrected(matrices):
    """(1/2)(Lam Sigma + Sigma Lam) = I + (eps/4) M in continuous time; eps = 2 step_size (E3)."""
    Lam, M, P = matrices
    eta = 1e-3
    W = 2 / eta * np.eye(5)
    Sigma = theory.stationary_cov(Lam, M + W, eta, discrete=False)
    np.testing.assert_allclose((Lam @ Sigma + Sigma @ Lam) / 2, np.eye(5) + eta / 2 * M, atol=1e-10)
    discrete = theory.sgld_cov(Lam, M, eta)
    F = np.eye(5) - eta * Lam
    np.testing.assert_allclose(discrete, F @ discrete @ F + 2 * eta * np.eye(5) + eta**2 * M, atol=1e-10)
    tempered = theory.sgld_cov(Lam, 0 * M, 1e-7, temperature=3.0, P=P)
    np.testing.assert_allclose(tempered, 3 * np.linalg.inv(Lam), rtol=1e-4, atol=1e-5)


def test_noise_cov_and_kl():
    S = np.diag([1.0, 4.0])
    np.testing.assert_allclose(theory.noise_cov(S, 100, 20, replace=True, injected=S), 501 * S)
    np.testing.assert_allclose(theory.noise_cov(S, 100, 20, replace=False), 400 * S)
    assert theory.kl_gauss(S, S) == pytest.approx(0.0)
    assert theory.kl_gauss(S, S, m1=np.array([1.0, 2.0])) == pytest.approx(1.0)
    assert theory.kl_gauss(2 * S, S) == pytest.approx(1 - np.log(2))
