"""The running averages of noise and curvature: their weights, and what they converge to."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import KnownGaussian, logistic_data, noise_of, start, z_scores
from scipy.special import expit
from scipy.stats import binom, chi2

from skbayes_sg import theory
from skbayes_sg.chains.run import Length, run_chain
from skbayes_sg.data.minibatches import Partition
from skbayes_sg.linalg import FULL, Diag
from skbayes_sg.models import Linear, Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import IASG, SGFS, ConstantSGD, MomentumSGD, PolynomialDecay
from skbayes_sg.samplers.preconditioned import OverSteps
from skbayes_sg.samplers.sgfs import exact


class Recorded(SGFS):
    """SGFS that keeps each measured score covariance."""

    def _noise(self, *measured):
        V = super()._noise(*measured)
        self.seen.append(V.dense().copy())
        return V


def recorded(**parameters):
    sampler = Recorded(**{"batch_size": 10, "refresh_every": 1} | parameters)
    sampler.seen = []
    return sampler


# -- kappa ------------------------------------------------------------------------------------


def test_by_default_the_average_is_the_plain_mean_of_all_measurements(gaussian):
    """kappa_t = 1/t, the start included, until the first restart."""
    sampler = recorded()
    state = start(sampler, gaussian.posterior, 2)
    assert len(sampler.seen) == 1 + 2  # 5 D / n more than the first
    for _ in range(30):
        sampler.step(state, gaussian.posterior)
    np.testing.assert_allclose(state.memory.I1.dense(), np.mean(sampler.seen, axis=0))


@pytest.mark.parametrize("kappa", [lambda t: 1 / t, lambda t: 0.3, PolynomialDecay(0.9, 1.0, 0.6)])
def test_a_schedule_weighs_the_measurements_after_the_start(gaussian, kappa):
    """Also through the ends of the parts of burn-in, at which averages restart otherwise."""
    sampler = recorded(kappa=kappa, adapt="always")
    state = start(sampler, gaussian.posterior, 2)
    expected, n_start = state.memory.I1.dense(), len(sampler.seen)
    state = run_chain(sampler, gaussian.posterior, state, Length(20, 40)).state
    for t, V in enumerate(sampler.seen[n_start:], start=1):
        expected = (1 - kappa(t)) * expected + kappa(t) * V
    assert len(sampler.seen) == n_start + 60
    np.testing.assert_allclose(state.memory.I1.dense(), expected)


def test_algorithm_1_of_ahn_to_the_letter():
    """Each step from the matrices and gradients of its minibatch, B = gamma I_N, eps = infinity."""
    posterior = KnownGaussian(misspecified=False, prior_precision=1.0).posterior
    letter = {"variant": "paper", "adapt": "always", "replace": True, "kappa": lambda t: 1 / t}
    sampler = recorded(alpha=0.0, batch_size=40, **letter)
    state = start(sampler, posterior, 1)
    sampler.seen.clear()
    gamma, N = (40 + 200) / 40, 200
    for _ in range(40):
        before = state.theta.copy()
        sampler.step(state, posterior)
        I1 = np.mean(sampler.seen, axis=0)
        expected = before + state.gradient @ np.linalg.inv(gamma * N * I1) * 2
        np.testing.assert_allclose(state.theta, expected, rtol=1e-8)
        if state.t in (5, 10, 20):
            sampler.restart(state, posterior)
    sampler.freeze(state, posterior)
    sampler.step(state, posterior)
    assert len(sampler.seen) == 41


@pytest.mark.parametrize("alpha", [0.0, 2.0])
@pytest.mark.quick("0.0")
def test_with_the_prior_algorithm_1_of_ahn_runs_where_its_p_is_singular(alpha, seed):
    """P = gamma I_N + 2 prior, and noise of the prior: where P is singular, independent draws."""
    rng = np.random.default_rng(seed)
    X, model = rng.standard_normal((200, 2)), Softmax(2, 3)
    posterior = Posterior.of(model, X, rng.integers(3, size=200), 2.0)
    letter = {"replace": True, "adapt": "always", "refresh_every": 1, "kappa": lambda t: 1 / t}
    sampler = SGFS(alpha, curvature="empirical", batch_size=40, **letter)
    state = start(sampler, posterior, 1)
    memory, gamma_I_N = state.memory, (40 + 200) / 40 * 200 * state.memory.I1.dense()
    prior = np.diag(posterior.prior.precision)
    assert np.linalg.matrix_rank(gamma_I_N) == 6
    P = (1 + alpha**2) * gamma_I_N + 2 * prior
    np.testing.assert_allclose(memory.preconditioner.dense(), 2 * np.linalg.inv(P), rtol=1e-8)
    noise = memory.noise_root.dense() @ memory.noise_root.dense().T
    np.testing.assert_allclose(noise, alpha**2 * gamma_I_N + prior, atol=1e-8 * noise.max())
    draws = run_chain(sampler, posterior, state, Length(2000, 100)).draws[0]
    coordinates = np.concatenate([null.coordinates for null in model.null_directions()])
    shifts = draws[:, coordinates].sum(axis=2) / np.sqrt(3)
    squares = (shifts**2).mean(axis=0) * posterior.prior.precision[coordinates[:, 0]]
    assert np.abs(squares - 1).max() < 5 * np.sqrt(2 / 2000)
    lagged = np.mean(shifts[1:] * shifts[:-1], axis=0) / shifts.var(axis=0)
    assert np.abs(lagged).max() < 5 / np.sqrt(2000)


@pytest.mark.parametrize(
    ("kappa", "error", "message"),
    [
        (0.5, TypeError, "kappa must be None or a callable"),
        (lambda t: 0.0, ValueError, r"kappa\(1\) must be a finite number in \(0, 1\], got 0"),
        (lambda t: 1.5, ValueError, r"kappa\(1\) must .*, got 1.5"),
        (lambda t: "small", ValueError, r"kappa\(1\) must be a finite number"),
    ],
)
def test_an_impossible_schedule_is_named(gaussian, kappa, error, message):
    with pytest.raises(error, match=message):
        SGFS(kappa=kappa).validate(gaussian.posterior)


def test_a_schedule_that_turns_bad_on_the_way_is_named(gaussian):
    sampler = SGFS(kappa=lambda t: 3.0 - t, batch_size=20, refresh_every=1)
    with pytest.raises(ValueError, match=r"kappa\(1\) must .*, got 2"):
        sampler.validate(gaussian.posterior)
    sampler.set_params(kappa=lambda t: 1.0 - (t - 1) / 4, adapt="always")
    state = start(sampler, gaussian.posterior, 1)
    with pytest.raises(ValueError, match=r"kappa\(5\) must .*, got 0"):
        run_chain(sampler, gaussian.posterior, state, Length(10))


# -- one row ----------------------------------------------------------------------------------


def test_minibatches_of_one_row_measure_the_scatter_of_the_scores_over_steps(gaussian):
    """N/c times the sample covariance of all scores so far, wherever they were taken."""
    posterior, scores = gaussian.posterior, []

    class Seen(ConstantSGD):
        def _noise(self, state, of_one, layout, over_steps):
            scores.append(of_one.total()[0])
            return super()._noise(state, of_one, layout, over_steps)

    for replace, scale in [(False, 200 / 199), (True, 1.0)]:
        scores.clear()
        sampler = Seen(batch_size=1, replace=replace)
        state = start(sampler, posterior, 1)
        for _ in range(100):
            sampler.step(state, posterior)
        # the very first score, which is only compared with, from the mean of all
        n = len(scores) + 1
        first = n * state.memory.over_steps.mean - np.sum(scores, axis=0)
        expected = scale * np.cov(np.vstack([first, *scores]).T)
        np.testing.assert_allclose(state.memory.I1.dense(), expected)


def test_the_drift_of_the_iterates_adds_one_over_c_to_noise_over_steps(seed):
    """Its mean is I1 + N A Sigma A N / (c N), Sigma the covariance of the iterates."""
    known = KnownGaussian(n_rows=20, dim=3)
    sampler = ConstantSGD("scalar", step_size=0.02, batch_size=1)
    state = start(sampler, known.posterior, 40, seed, np.tile(known.mean, (40, 1)))
    state.memory.adapting, seen = False, []
    Sigma = theory.stationary_cov(known.Lam, noise_of(known, state), 0.02)
    for _ in range(900):
        rows = state.rows.draw()
        scores = known.posterior.scores(state.theta, rows)
        seen.append(scores.total())
        state.theta += 0.02 * known.posterior.gradient(state.theta, scores)
    over_steps = [OverSteps(x[0], 20 / 19) for x in np.swapaxes(seen, 0, 1)]
    found = []
    for one, x in zip(over_steps, np.swapaxes(seen, 0, 1), strict=True):
        V = [one.covariance(score[None], FULL).matrix for score in x[1:]]
        found.append(np.mean(V[400:], axis=0))
    bias = 20 * known.A @ Sigma @ known.A * 20 / (19 * 20)
    assert np.abs(z_scores(np.array(found), known.I1 + bias)).max() < 5
    assert np.abs(z_scores(np.array(found), known.I1)).max() > 5  # it can be seen


@pytest.mark.parametrize(
    "sampler",
    [
        ConstantSGD(),
        MomentumSGD(),
        SGFS(alpha=1.0),
        ConstantSGD(covariance="single_row"),
    ],
    ids=repr,
)
@pytest.mark.slow
def test_what_is_learnt_from_one_row_a_step_is_near_the_posterior(gaussian, sampler):
    """The covariance of the frozen step, with its measured matrices, has 3 % errors at most."""
    n, burn_in = (20, 2000) if sampler.covariance == "single_row" else (1, 6000)
    sampler.set_params(batch_size=n)
    state = start(sampler, gaussian.posterior, 4, theta=np.tile(gaussian.mean, (4, 1)))
    state = run_chain(sampler, gaussian.posterior, state, Length(1, burn_in)).state
    M = noise_of(gaussian, state)
    predicted = sampler.stationary_distribution(state, gaussian.posterior).covariance(
        gaussian.Lam, M
    )
    assert theory.kl_gauss(predicted, np.linalg.inv(gaussian.Lam)) < 0.005


def test_a_row_that_is_measured_before_the_step_bounds_it():
    """Its step along an empty direction, for any score (math/sgfs.md, Matrices that follow)."""
    N, n, precision, alpha, t = 1e5, 100, 2.0, 3.0, 50
    scores = np.geomspace(1e-6, 1e6, 2000)
    prior, rows = Diag(np.full(2000, precision)), SimpleNamespace(noise_factor=N / n)
    steps = []
    for I1 in (Diag(scores**2 / n / t), Diag(np.zeros(2000))):
        memory = SimpleNamespace(I1=I1, fisher=None, prior=prior, alpha=alpha)
        P, W = exact(memory, N, rows, "fisher")
        steps.append(2 * N / n * scores / (P + W).values)
    follows, frozen = steps
    bound = np.sqrt(t / (2 + 2 * alpha**2) / precision)
    assert follows.max() == pytest.approx(bound, rel=0.01)
    np.testing.assert_allclose(frozen, N / n * scores / precision)


@pytest.mark.slow
def test_noise_from_few_single_rows_is_said_with_the_error_of_variances():
    """Along the axes of (M, Lam) variances are M over the measured M, of Marchenko and Pastur."""
    known, ratios = KnownGaussian(dim=4), []
    sampler = ConstantSGD(covariance="single_row", batch_size=20)
    for seed in range(20):
        state = start(sampler, known.posterior, 1, seed, known.mean[None])
        state = run_chain(sampler, known.posterior, state, Length(1, 200)).state
        (warning,) = sampler.report(state).warnings
        measured = state.memory.I1.dense()
        ratios.append(1 / np.linalg.eigvals(np.linalg.solve(known.I1, measured)).real)
    said = re.search(r"from (\d+) single rows.* from ([\d.]+) to ([\d.]+) times", warning)
    rows, low, high = (float(number) for number in said.groups())
    assert rows == round(state.memory.count) == pytest.approx(100, abs=20)
    # the mean extremes of four eigenvalues are inside their limits for many, but not far inside
    lowest, highest = np.min(ratios, axis=1).mean(), np.max(ratios, axis=1).mean()
    assert low < lowest < (1 + low) / 2
    assert (1 + high) / 2 < highest < high
    state = start(sampler, known.posterior, 1, 0, known.mean[None])
    state = run_chain(sampler, known.posterior, state, Length(1, 3600)).state
    assert not sampler.report(state).warnings


@pytest.mark.slow
def test_iasg_with_one_row_averages_over_a_pass():
    known = KnownGaussian(misspecified=False, prior_precision=1e-3)
    sampler = IASG(batch_size=1)
    state = start(sampler, known.posterior, 4, theta=np.tile(known.mean, (4, 1)))
    state = run_chain(sampler, known.posterior, state, Length(1, 4000)).state
    predicted = sampler.stationary_distribution(state, known.posterior).covariance(
        known.Lam, noise_of(known, state)
    )
    assert np.trace(predicted @ known.Lam) / 4 == pytest.approx(1.0, abs=0.1)
    assert 120 < state.memory.window.length < 200


def test_a_window_is_ten_passes_at_most_and_the_report_says_so():
    """Rows that contradict the model by a factor of 100 would have windows of 100 passes."""
    known = KnownGaussian(misspecified=False, prior_precision=1e-3)
    sampler = IASG(batch_size=20)
    state = start(sampler, known.posterior, 2, theta=np.tile(known.mean, (2, 1)))
    state = run_chain(sampler, known.posterior, state, Length(1, 400)).state
    assert not sampler.report(state).warnings
    one_pass, before = state.rows.noise_factor, state.memory.window.length
    assert before < 2 * one_pass
    state.memory.I1 = state.memory.I1 * 100.0
    sampler.freeze(state, known.posterior)
    assert 5 * one_pass < state.memory.window.length <= 10 * one_pass
    (warning,) = sampler.report(state).warnings
    assert "IASG: theory expects from" in warning


def test_a_part_of_one_row_among_larger_ones_is_not_measured(gaussian):
    """The last part of a chunk: it has no spread, and is not one of successive single rows."""
    sampler = SGFS(batch_size=2, refresh_every=1)
    state = start(sampler, gaussian.posterior, 1)
    state.rows = Partition(3, 2, np.random.default_rng(0), 200.0)
    before = state.memory.count
    for _ in range(2):
        sampler.step(state, gaussian.posterior)
    assert state.memory.count == before + 1
    assert np.isfinite(state.theta).all()


def test_a_single_row_of_data_has_no_noise():
    known = KnownGaussian(n_rows=2)
    posterior = known.posterior.__class__.of(
        known.posterior.model, known.posterior.data.X[:1], np.zeros(1), 1.0
    )
    state = start(SGFS(batch_size=5), posterior, 2)
    assert state.memory.I1.dense().max() == 0
    assert np.isfinite(state.memory.preconditioner.dense()).all()


# -- theorem 1 of Ahn et al. ------------------------------------------------------------------


class TwoInputs:
    """Logistic regression on N/2 rows with x = 1 and N/2 with x = 2, labels from slope 0.7.

    The counts of ones are binomial and sufficient, so that all means are finite sums.
    """

    slope = 0.7

    def __init__(self, N):
        self.half = N // 2
        self.k = np.arange(self.half + 1)
        self.grid = self.slope + np.linspace(-7, 7, 81) / np.sqrt(N * self.information())

    def information(self):
        p, q = expit(self.slope), expit(2 * self.slope)
        return (p * (1 - p) + 4 * q * (1 - q)) / 2

    def score_covariance(self, k1, k2, theta):
        """Over all rows, divisor N - 1: the scores are 1 - p or -p, and twice 1 - q or -q."""
        half, p, q = self.half, expit(theta), 2 * expit(2 * theta)
        total = k1 - half * p + 2 * k2 - half * q
        squares = k1 * (1 - 2 * p) + half * p**2 + k2 * (4 - 4 * q) + half * q**2
        return (squares - total**2 / (2 * half)) / (2 * half - 1)

    def mean(self):
        """Of V_T as T grows: over the posterior of each data set, and over all data sets."""
        k1, k2 = self.k[:, None, None], self.k[None, :, None]
        log = k1 * self.grid + 2 * k2 * self.grid
        log = log + self.half * (np.log(expit(-self.grid)) + np.log(expit(-2 * self.grid)))
        weight = np.exp(log - log.max(axis=2, keepdims=True) - self.grid**2 / 2 * 1e-6)
        V = np.sum(weight * self.score_covariance(k1, k2, self.grid), axis=2) / weight.sum(axis=2)
        chance = [binom.pmf(self.k, self.half, expit(x * self.slope)) for x in (1, 2)]
        return chance[0] @ V @ chance[1]


def test_the_score_covariance_of_two_inputs_is_that_of_the_package():
    known = TwoInputs(10)
    X, y = np.repeat([[1.0], [2.0]], 5, axis=0), np.array([1, 1, 1, -1, -1, 1, -1, -1, -1, -1.0])
    posterior = Posterior.of(Softmax(1, 2, fit_intercept=False), X, y, 1e-6)
    found = posterior.score_covariance(np.array([[0.4]]))
    np.testing.assert_allclose(found, known.score_covariance(3, 1, 0.4))


def rate(sizes, errors):
    """Slope of log error against log N."""
    return np.polyfit(np.log(sizes), np.log(np.abs(errors)), 1)[0]


def test_in_logistic_regression_the_average_is_nearer_than_theorem_1_says():
    """No term in 1/N if scores are linear in labels (math/gradient_noise.md#theorem-1-of-ahn)."""
    sizes = np.array([100, 150, 200, 300])
    errors = [known.mean() - known.information() for known in map(TwoInputs, sizes)]
    assert rate(sizes, errors) == pytest.approx(-2.0, abs=0.15)  # -1.91 at these N, on its way


def mean_for_noise_variance(N, log_noise=0.7):
    """Of V_T for the log variance rho of y ~ N(0, e^rho), N(0, 1) its prior: 1/2 plus O(1/N).

    The score is (y^2 e^-rho - 1) / 2. The posterior depends on s = sum y^2 only, and y^2 / s, a
    Dirichlet variable that is independent of s, has Var_N(y^2) = s^2 (3/(N + 2) - 1/N) / (N - 1).
    """
    s = np.exp(log_noise) * chi2.ppf((np.arange(2000) + 0.5) / 2000, N)[:, None]
    rho = log_noise + np.linspace(-9, 9, 301) * np.sqrt(2 / N)
    log = -N * rho / 2 - s * np.exp(-rho) / 2 - rho**2 / 2
    weight = np.exp(log - log.max(axis=1, keepdims=True))
    inverse_square = weight @ np.exp(-2 * rho) / weight.sum(axis=1)
    return np.mean(inverse_square * s[:, 0] ** 2) * (3 / (N + 2) - 1 / N) / (N - 1) / 4


def test_the_average_converges_to_the_fisher_information_at_rate_one_over_n():
    """Theorem 1, by quadrature without Monte Carlo."""
    sizes = np.array([200, 400, 800, 1600])
    errors = [mean_for_noise_variance(N) - 0.5 for N in sizes]
    assert rate(sizes, errors) == pytest.approx(-1.0, abs=0.05)


def test_the_score_of_the_noise_variance_is_that_of_the_package():
    y, rho = np.random.default_rng(0).standard_normal(20), 0.3
    posterior = Posterior.of(Linear(1, fit_intercept=False), np.zeros((20, 1)), y, 1.0)
    scores = posterior.scores(np.array([[0.0, rho]]), slice(None))
    found = scores.covariance(FULL).matrix[1, 1]
    np.testing.assert_allclose(found, np.var(y**2, ddof=1) * np.exp(-2 * rho) / 4)


@pytest.mark.slow
def test_a_chain_of_the_posterior_averages_the_score_covariance_over_it(seed):
    """V_T of a chain against its mean over the posterior, for one data set."""
    X, y = logistic_data(200, 1)
    posterior = Posterior.of(Softmax(1, 2, fit_intercept=False), X, y, 1.0)
    theta = np.linspace(-2, 4, 401)[:, None]
    weight = np.exp(posterior.log_prob(theta) - posterior.log_prob(theta).max())
    V = [posterior.scores(one[None], slice(None)).covariance(FULL).matrix[0, 0] for one in theta]
    expected = weight @ V / weight.sum()
    averages = []
    for chain in range(8):
        sampler = SGFS(batch_size=20, refresh_every=1, adapt="always", kappa=lambda t: 1 / t)
        state = start(sampler, posterior, 1, 100 * seed + chain)
        for _ in range(600):
            sampler.step(state, posterior)
        averages.append(state.memory.I1.matrix[0, 0])
    error = np.std(averages, ddof=1) / np.sqrt(len(averages))
    assert abs(np.mean(averages) - expected) < 5 * error
    assert error < 0.03 * expected
