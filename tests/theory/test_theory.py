"""Closed forms, against the figures of the papers as corrected."""

import itertools

import numpy as np
import pytest
from numpy.linalg import matrix_power
from scipy.linalg import expm
from scipy.optimize import minimize, minimize_scalar

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
    ("ratio", "kl", "digits"),
    [(0.01, 0.00015, 5), (0.05, 0.00401, 5), (0.2, 0.0806, 4), (0.5, 0.9206, 4)],
)
def test_mandt_theorem_2_leaves_its_discretisation_error(ratio, kl, digits):
    Lam = spd(np.random.default_rng(1), 6, 20)
    M = Lam / ratio
    assert theory.kl_stationary(Lam, M, 2 * np.linalg.inv(M)) == pytest.approx(
        kl, abs=0.5 * 10**-digits
    )
    r = 1 / (1 - ratio)
    assert theory.kl_stationary(Lam, M, 2 * np.linalg.inv(M)) == pytest.approx(
        3 * (r - 1 - np.log(r))
    )
    assert theory.kl_stationary(Lam, M, 2 * np.linalg.inv(M), discrete=False) < 1e-10


def test_an_unstable_recursion_is_reported_with_its_radius(matrices):
    Lam, M, _ = matrices
    with pytest.raises(ValueError, match=r"spectral radius of I - K Lam is \d"):
        theory.stationary_cov(Lam, M, 10.0)
    with pytest.raises(ValueError, match="unstable"):
        theory.stationary_cov(Lam, M, -1.0, discrete=False)


@pytest.mark.parametrize(("alpha", "expected"), [(0, 20), (1, 41), (2, 104), (3, 209)])
def test_iat_of_sgfs(alpha, expected):
    """gamma (1 + alpha^2) - 1 at N/n = 20 with replacement."""
    Lam = spd(np.random.default_rng(2), 4, 10)
    M, gamma = 20 * Lam, 21
    W = alpha**2 * gamma * Lam
    K = 2 * np.linalg.inv(Lam + M + W)
    np.testing.assert_allclose(theory.iat(Lam, K, theory.stationary_cov(Lam, M + W, K)), expected)


def test_the_prior_enters_the_preconditioner_once():
    """Not at all (the paper) is biased and diverges under a strong prior, gamma times is biased."""
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
    """(1/2)(Lam Sigma + Sigma Lam) = I + (eps/4) M, eps = 2 step_size (math/errata.md#e3)."""
    Lam, M, P = matrices
    eta = 1e-3
    W = 2 / eta * np.eye(5)
    Sigma = theory.stationary_cov(Lam, M + W, eta, discrete=False)
    np.testing.assert_allclose((Lam @ Sigma + Sigma @ Lam) / 2, np.eye(5) + eta / 2 * M, atol=1e-10)
    discrete = theory.sgld_cov(Lam, M, eta)
    F = np.eye(5) - eta * Lam
    np.testing.assert_allclose(
        discrete, F @ discrete @ F + 2 * eta * np.eye(5) + eta**2 * M, atol=1e-10
    )
    tempered = theory.sgld_cov(Lam, 0 * M, 1e-7, temperature=3.0, P=P)
    np.testing.assert_allclose(tempered, 3 * np.linalg.inv(Lam), rtol=1e-4, atol=1e-5)


def test_noise_cov_and_kl():
    S = np.diag([1.0, 4.0])
    np.testing.assert_allclose(theory.noise_cov(S, 100, 20, replace=True, injected=S), 501 * S)
    np.testing.assert_allclose(theory.noise_cov(S, 100, 20, replace=False), 400 * S)
    assert theory.kl_gauss(S, S) == pytest.approx(0.0)
    assert theory.kl_gauss(S, S, m1=np.array([1.0, 2.0])) == pytest.approx(1.0)
    assert theory.kl_gauss(2 * S, S) == pytest.approx(1 - np.log(2))


# -- preconditioners --------------------------------------------------------------------------


def test_optimal_preconditioners_are_those_of_the_papers(matrices):
    Lam, M, _ = matrices
    P = Lam + M
    np.testing.assert_allclose(theory.optimal_preconditioner(Lam, M, "full"), 2 * np.linalg.inv(P))
    assert theory.optimal_preconditioner(Lam, M, "scalar") == pytest.approx(10 / np.trace(P))
    np.testing.assert_allclose(
        theory.optimal_preconditioner(Lam, M, "ou-full"), 2 * np.linalg.inv(M)
    )
    np.testing.assert_allclose(theory.optimal_preconditioner(Lam, M, "ou-diag"), 2 / M.diagonal())
    assert theory.optimal_preconditioner(Lam, M, "ou-scalar") == pytest.approx(10 / np.trace(M))
    G = np.sqrt(M.diagonal())
    np.testing.assert_allclose(
        theory.optimal_preconditioner(Lam, M, "ou-sqrt"), 10 / np.trace(M / G) / G
    )
    with pytest.raises(ValueError, match='kind must be "full"'):
        theory.optimal_preconditioner(Lam, M, "best")


def test_mandt_theorem_1_is_the_best_scalar_in_continuous_time(matrices):
    Lam, M, _ = matrices
    best = minimize_scalar(
        lambda s: theory.kl_stationary(Lam, M, np.exp(s), discrete=False), bounds=(-9, 0)
    ).fun
    K = theory.optimal_preconditioner(Lam, M, "ou-scalar")
    assert theory.kl_stationary(Lam, M, K, discrete=False) == pytest.approx(best, abs=1e-4)


def test_mandt_appendix_e_is_the_best_scale_of_its_preconditioner(matrices):
    Lam, M, _ = matrices
    G = np.sqrt(M.diagonal())
    best = minimize_scalar(
        lambda s: theory.kl_stationary(Lam, M, np.exp(s) / G, discrete=False), bounds=(-9, 3)
    ).fun
    K = theory.optimal_preconditioner(Lam, M, "ou-sqrt")
    assert theory.kl_stationary(Lam, M, K, discrete=False) == pytest.approx(best, abs=1e-4)


def test_the_best_diagonal_is_that_of_a_search_without_slopes(matrices):
    """Near one that is stable, and from one that is not: two columns that are nearly the same."""
    close = np.array([[1.0, 0.999], [0.999, 1.0]])
    for Lam, M in (matrices[:2], (100 * close, np.eye(2))):
        k = theory.optimal_preconditioner(Lam, M, "diag")
        assert k.shape == (len(Lam),)

        def divergence(log_k, Lam=Lam, M=M):
            try:
                return theory.kl_stationary(Lam, M, np.exp(log_k))
            except ValueError:  # unstable
                return np.inf

        searched = minimize(divergence, np.log(k) + 0.05, method="Nelder-Mead")
        assert divergence(np.log(k)) < searched.fun + 1e-4
    with pytest.raises(ValueError, match="unstable"):
        theory.kl_stationary(Lam, M, 2 / (Lam + M).diagonal())


def test_the_best_diagonal_is_exact_where_matrices_are_diagonal():
    Lam = np.diag([1.0, 2.0, 30.0])
    k = theory.optimal_preconditioner(Lam, 9 * Lam, "diag")
    np.testing.assert_allclose(k, [0.2, 0.1, 1 / 150], rtol=1e-4)


def test_mandt_corollary_1_is_not_the_best_diagonal(matrices):
    """Erratum math/errata.md#e2: a search finds a better one."""
    Lam, M, _ = matrices
    K = theory.optimal_preconditioner(Lam, M, "ou-diag")
    found = minimize(
        lambda s: theory.kl_stationary(Lam, M, np.exp(s), discrete=False), np.log(K), method="BFGS"
    ).fun
    assert found < theory.kl_stationary(Lam, M, K, discrete=False) - 0.01


def test_scalar_steps_at_large_minibatches():
    """S/N = .3, condition 30: Theorem 1, 2 D / Tr(M + Lam) and the optimum."""
    Lam = np.diag(np.geomspace(1, 30, 6))
    M = Lam / 0.3
    for kind, kl in [("ou-scalar", 14.98), ("scalar", 3.94)]:
        K = theory.optimal_preconditioner(Lam, M, kind)
        assert theory.kl_stationary(Lam, M, K) == pytest.approx(kl, abs=0.005)
    best = minimize_scalar(
        lambda s: theory.kl_stationary(Lam, M, np.exp(s)), bounds=(-6, np.log(2 / 30) - 1e-9)
    ).fun
    assert best == pytest.approx(2.59, abs=0.005)


def test_theorem_2_may_be_unstable_and_says_so():
    """A != C at S/N >= .2."""
    rng = np.random.default_rng(5)
    Lam, M = spd(rng, 5, 50), spd(rng, 5, 30) / 0.2
    with pytest.raises(ValueError, match="unstable"):
        theory.kl_stationary(Lam, M, theory.optimal_preconditioner(Lam, M, "ou-full"))


# -- momentum ---------------------------------------------------------------------------------


def test_momentum_in_one_dimension():
    lam, m, h, mu = 2.0, 3.0, 0.3, 0.2
    assert theory.momentum_cov(np.array([[lam]]), np.array([[m]]), h, mu)[0, 0] == pytest.approx(
        1.35, abs=1e-12
    )
    continuous = theory.momentum_cov(np.array([[lam]]), np.array([[m]]), h, mu, discrete=False)[
        0, 0
    ]
    assert continuous == pytest.approx(h * m / (2 * mu * lam))
    stable, unstable = (np.array([[2 * (2 - mu) / h * factor]]) for factor in (0.99, 1.01))
    assert theory.momentum_radius(stable, h, mu) < 1 <= theory.momentum_radius(unstable, h, mu)
    with pytest.raises(ValueError, match="spectral radius with momentum"):
        theory.momentum_cov(unstable, np.eye(1), h, mu)


def test_mandt_eq_31_lacks_a_commutator(matrices):
    """Exact once (h / (2 mu^2)) [Lam, [Sigma, Lam]] stands on its right side, wrong without it
    (math/errata.md#e7).
    """
    Lam, M, _ = matrices
    h, mu = 0.3 * 0.2 / 50, 0.2
    Sigma = theory.momentum_cov(Lam, M, h, mu, discrete=False)

    def commute(a, b):
        return a @ b - b @ a

    printed = Lam @ Sigma + Sigma @ Lam - h / mu * M
    corrected = printed - h / (2 * mu**2) * commute(Lam, commute(Sigma, Lam))
    scale = np.abs(h / mu * M).max()
    assert np.abs(corrected).max() / scale < 1e-12
    assert np.abs(printed).max() / scale > 1e-3


def test_momentum_of_one_is_no_momentum(matrices):
    Lam, M, _ = matrices
    K = 0.3 * theory.optimal_preconditioner(Lam, M, "diag")
    np.testing.assert_allclose(
        theory.momentum_cov(Lam, M, K, 1.0), theory.stationary_cov(Lam, M, K), atol=1e-12
    )


def test_a_preconditioner_that_is_exact_with_momentum(matrices):
    Lam, M, _ = matrices
    for mu in (0.05, 0.3, 1.0):
        K = 2 * np.linalg.inv(M / mu + Lam / (2 - mu))
        assert theory.kl_gauss(theory.momentum_cov(Lam, M, K, mu), np.linalg.inv(Lam)) < 1e-10


# -- averages ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "ou", "discrete"), [(5, 0.80135, 0.80140), (10, 0.9, 0.90005), (20, 0.95, 0.95005)]
)
def test_averaged_variance_of_one_pass(x, ou, discrete):
    """A = C, 10,000 iterates: 1 + (e^-x - 1) / x (Mandt et al. Eq. 45, 46)."""
    T, lam = 10_000, np.eye(1)
    h = x / T
    assert theory.iasg_cov(lam, T * lam, h, T, discrete=False)[0, 0] == pytest.approx(ou, abs=1e-5)
    assert theory.iasg_cov(lam, T * lam, h, T)[0, 0] == pytest.approx(discrete, abs=1e-5)
    assert 1 + theory.iasg_error(x) == pytest.approx(ou, abs=1e-5)


def test_averaged_covariance_is_the_sum_it_closes(matrices):
    Lam, M, W = matrices
    K = 0.02 * W / 7
    Sigma, F = theory.stationary_cov(Lam, M, K), np.eye(5) - K @ Lam
    for T in (1, 2, 9):
        total = T * Sigma
        for k in range(1, T):
            lagged = (T - k) * np.linalg.matrix_power(F, k) @ Sigma
            total = total + lagged + lagged.T
        np.testing.assert_allclose(theory.iasg_cov(Lam, M, K, T), total / T**2, atol=1e-10)
    sandwich = np.linalg.solve(Lam, np.linalg.solve(Lam, M).T)
    np.testing.assert_allclose(
        1e5 * theory.iasg_cov(Lam, M, 0.01, 10**5), sandwich, rtol=0.01, atol=1e-3
    )
    with pytest.raises(ValueError, match="T must be at least 1"):
        theory.iasg_cov(Lam, M, K, 0)


def test_averaging_error():
    assert theory.iasg_error(0.0) == -1
    np.testing.assert_allclose(theory.iasg_error([1e-9, 100.0]), [-1, -0.01], atol=1e-8)


# -- autocovariance ---------------------------------------------------------------------------


def test_autocovariance_and_time_in_both_clocks(matrices):
    """The time is the sum, or the integral, of the autocorrelation over all lags."""
    Lam, M, _ = matrices
    K = 0.02
    for discrete, lags in [(True, np.arange(1, 4000)), (False, np.arange(0, 400, 0.05))]:
        Sigma = theory.stationary_cov(Lam, M, K, discrete)
        F = np.eye(len(Lam)) - K * Lam
        each = np.array(
            [
                ((matrix_power(F, lag) if discrete else expm(-lag * K * Lam)) @ Sigma).diagonal()
                for lag in lags
            ]
        )
        rho = each / Sigma.diagonal()
        total = 1 + 2 * rho.sum(axis=0) if discrete else 2 * np.trapezoid(rho, lags, axis=0)
        np.testing.assert_allclose(theory.iat(Lam, K, Sigma, discrete), total, rtol=1e-3)


# -- linear regression ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def least_squares():
    """N = 1000, D = 5, the model right, prior precision 1.

    The data were found for these figures. Other draws scatter, by a tenth at n/N = .5.
    """
    rng = np.random.default_rng(3)
    X = rng.standard_normal((1000, 5))
    y = X @ rng.standard_normal(5) + rng.standard_normal(1000)
    Lam = X.T @ X + np.eye(5)
    scores = X * (y - X @ np.linalg.solve(Lam, X.T @ y))[:, None]
    return X, y, Lam, np.cov(scores.T)


@pytest.mark.parametrize(
    ("share", "ratio"), [(0.05, 1.059), (0.1, 1.118), (0.2, 1.257), (0.5, 2.017)]
)
def test_theorem_2_on_real_minibatches(least_squares, share, ratio):
    """2 M^-1 with replacement."""
    X, y, Lam, I1 = least_squares
    n = int(1000 * share)
    K = theory.optimal_preconditioner(Lam, theory.noise_cov(I1, 1000, n, replace=True), "ou-full")
    found = np.trace(Lam @ theory.lsq_cov(X, y, K, n, replace=True)) / 5
    assert found == pytest.approx(ratio, abs=0.01)


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.5])
@pytest.mark.parametrize("replace", [True, False])
def test_the_posterior_mean_of_the_noise_makes_it_exact(least_squares, share, replace):
    """2 (Lam + Mbar + W)^-1 with Mbar the mean noise over the posterior, for every n and W."""
    X, y, Lam, _ = least_squares
    n = int(1000 * share)
    _, M = theory.lsq_noise(X, y, lambda Lam, M: np.linalg.inv(Lam), n, replace)
    for W in (0 * Lam, 4 * Lam):
        K = 2 * np.linalg.inv(Lam + M + W)
        assert np.trace(Lam @ theory.lsq_cov(X, y, K, n, replace, injected=W)) / 5 == pytest.approx(
            1.0, abs=1e-10
        )
        if not replace:  # the factor of the other row scheme: 1 - n/N of the variance, or so
            wrong = 2 * np.linalg.inv(
                Lam + theory.lsq_noise(X, y, lambda L, M: np.linalg.inv(L), n, True)[1]
            )
            if W.max() == 0:
                found = np.trace(Lam @ theory.lsq_cov(X, y, wrong, n, False)) / 5
                assert found == pytest.approx(1 - share, abs=0.015)


@pytest.mark.parametrize("replace", [True, False])
def test_least_squares_against_all_minibatches(replace):
    """Second moments by counting each minibatch of two of five rows, no formula used."""
    rng = np.random.default_rng(6)
    X, y, n = rng.standard_normal((5, 2)), rng.standard_normal(5), 2
    Lam = X.T @ X + np.eye(2)
    mode, K = np.linalg.solve(Lam, X.T @ y), np.array([[0.09, 0.02], [0.01, 0.07]])
    W = np.array([[2.0, 0.5], [0.5, 1.0]])
    pick = itertools.product if replace else itertools.combinations
    batches = [list(b) for b in (pick(range(5), repeat=n) if replace else pick(range(5), n))]
    # theta' - mode = F_b (theta - mode) + K g_b, and the mean of g_b is 0
    F = [np.eye(2) - K @ (np.eye(2) + 5 / n * X[b].T @ X[b]) for b in batches]
    g = [K @ (5 / n * X[b].T @ (y[b] - X[b] @ mode) - mode) for b in batches]
    np.testing.assert_allclose(np.mean(g, axis=0), 0, atol=1e-12)
    carried = np.mean([np.kron(f, f) for f in F], axis=0)
    fresh = np.mean([np.outer(v, v) for v in g], axis=0) + K @ W @ K.T
    Sigma = np.linalg.solve(np.eye(4) - carried, fresh.ravel()).reshape(2, 2)
    np.testing.assert_allclose(theory.lsq_cov(X, y, K, n, replace, injected=W), Sigma, rtol=1e-9)


def test_the_mean_of_data_is_linear_regression_on_ones():
    """Mandt et al. Appendix A: a step eps towards the mean of S rows, whose variance is s2 / S."""
    y, eps, S = np.random.default_rng(7).standard_normal(50), 0.3, 4
    found = theory.lsq_cov(np.ones((50, 1)), y, eps / 50, S, True, prior_precision=0.0)
    assert found.item() == pytest.approx(eps / (2 - eps) * y.var() / S, rel=1e-12)


def test_variance_that_feeds_on_itself_is_reported(least_squares):
    X, y, Lam, _ = least_squares
    with pytest.raises(ValueError, match="unstable"):
        theory.lsq_cov(X, y, 1.9 * np.linalg.inv(Lam), 2, replace=True)


def test_variances_of_shuffled_epochs():
    """At the start, over the epoch, the Stein ratio (math/gradient_noise.md#why-epochs-fail)."""

    def of(n_batches):
        K, M = 2 / n_batches, n_batches - 1
        F = (1 - K) ** np.arange(n_batches + 1)
        sums = np.concatenate([[0], F.cumsum()[:-1]])  # of the errors so far, for each step
        squares = np.concatenate([[0], (F**2).cumsum()[:-1]])
        added = K**2 * (M * squares - (sums**2 - squares))
        start = added[-1] / (1 - F[-1] ** 2)
        variance = F**2 * start + added
        stein = (variance + M + 2 * K * sums)[:-1].mean() / n_batches
        return start, variance[1:].mean(), stein

    assert of(5000)[:2] == pytest.approx((0.238, 0.432), abs=0.001)
    means = [of(20)[1], of(10)[1], of(5)[1]]
    assert means == pytest.approx([0.469, 0.508, 0.596], abs=0.0005)
    assert of(20)[2] == pytest.approx(1.03, abs=0.005)


def test_divergence_of_a_prior_in_the_wrong_place():
    """math/stationary.md#the-prior-enters-once: left out of P, and gamma times in it."""
    eigenvalues = np.geomspace(500, 15_000, 6)
    fisher, M = np.diag(eigenvalues), np.diag(10 * eigenvalues)

    def kl(prior, P):
        Lam = fisher + prior * np.eye(6)
        return theory.kl_stationary(Lam, M, 2 * np.linalg.inv(P))

    def gamma_times(prior):
        return kl(prior, 11 * (fisher + prior * np.eye(6)))

    found = kl(1000, 11 * fisher), gamma_times(1000), gamma_times(5000)
    assert found == pytest.approx((0.0173, 0.369, 1.71), rel=0.005)
