"""The choice of alpha by short runs: what they measure, and where the grid goes."""

import warnings

import numpy as np
import pytest
from conftest import GaussianTarget, KnownGaussian, differences, leaves
from helpers import step_matrices
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from skbayes_sg import BayesianMLPClassifier, theory
from skbayes_sg.chains import tuning
from skbayes_sg.chains.tuning import choose_alpha
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import SGFS, SGHMC


def short_run(sampler, known, n_steps, n_chains, seed, about=None):
    """A short run from draws of the posterior; the Stein ratio is about a point, or the start."""
    root = np.linalg.cholesky(np.linalg.inv(known.Lam))
    rng = np.random.default_rng(seed)
    theta = known.mean + rng.standard_normal((n_chains, len(root))) @ root.T
    state = sampler.init(known.posterior, theta, rng)
    about = theta if about is None else np.broadcast_to(about, theta.shape)
    return tuning._short_run(sampler, known.posterior, n_steps, (state, about))


def expected_ratio(known, sampler, state):
    """tr(Sigma Lam) / D of the frozen chain, by the discrete Lyapunov equation."""
    M = state.rows.noise_factor * known.N * known.I1
    K, W = step_matrices(state)
    Sigma = theory.stationary_cov(known.Lam, M + W, K)
    return np.trace(Sigma @ known.Lam) / len(K)


@pytest.mark.parametrize("structure", ["diag", "block", "kron", "scalar"])
@pytest.mark.quick("diag", "block")
def test_the_balance_is_the_stein_ratio_of_the_stationary_distribution(structure, seed):
    known = KnownGaussian(misspecified=False)
    sampler = SGFS(1.0, structure, batch_size=20)
    run = short_run(sampler, known, 500, 64, seed, about=known.mean)
    wanted = expected_ratio(known, sampler, run.state)
    for found in (run.balance, run.about_start):
        each = found.mean(axis=0)
        assert abs(each.mean() - wanted) < 5 * each.std(ddof=1) / np.sqrt(len(each))


def test_the_balance_needs_no_motion(seed):
    """Alpha = 20 has an autocorrelation time of 4,000 steps: nothing has moved after 50."""
    known = KnownGaussian(misspecified=False)
    run = short_run(SGFS(20.0, "diag", B="precision", batch_size=20), known, 100, 320, seed)
    assert run.about_start.mean() < 0.1  # some .05, with a Monte Carlo error of .009
    assert run.balance.mean() == pytest.approx(1.0, abs=0.01)  # alpha^2 / (1 + alpha^2) is tr K W


def correlated(n_rows=400, dim=16, correlation=0.95):
    """Equally correlated directions: posterior, curvature, and score covariance of a row."""
    A = (1 - correlation) * np.eye(dim) + correlation
    X = np.random.default_rng(0).standard_normal((n_rows, dim))
    X = (X - X.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(X.T))).T
    X = X @ np.linalg.cholesky(np.linalg.inv(A)).T  # the model is right: cov X = A^-1
    return Posterior.of(GaussianTarget(A), X, np.zeros(n_rows), 1.0), n_rows * A + np.eye(dim), A


@pytest.mark.slow
def test_alpha_is_the_smallest_that_theory_allows(seed):
    n = 100
    posterior, Lam, I1 = correlated()
    M = (posterior.n_rows / n - 1) * posterior.n_rows * I1
    expected = {}
    for alpha in sorted(tuning._ALPHAS):
        P = np.diag(np.diag(Lam + M))
        W = alpha**2 * P + np.eye(len(Lam))
        K = 2 * np.linalg.inv(P + W)
        if np.abs(np.linalg.eigvals(np.eye(len(Lam)) - K @ Lam)).max() < 1:
            Sigma = theory.stationary_cov(Lam, M + W, K)
            expected[alpha] = np.trace(Sigma @ Lam) / len(Lam)
    smallest = min(alpha for alpha, ratio in expected.items() if abs(ratio - 1) <= 0.1)
    assert 1 not in expected  # alpha = 0 and 1 diverge, alpha = 2 is 57 % too wide
    sampler = SGFS(structure="diag", B="precision", batch_size=n)
    start = np.zeros((4, posterior.dim))
    chosen = choose_alpha(sampler, posterior, start, np.random.SeedSequence(seed))
    assert chosen.sampler.alpha == smallest
    assert f"{expected[smallest]:.1f}" == f"{float(chosen.remark.rpartition(', ')[2]):.1f}"
    assert not chosen.warnings
    assert sum(len(state.theta) for state in chosen.states) == len(start)


def test_chains_on_their_way_are_not_diagnosed_in_silence(monkeypatch):
    monkeypatch.setattr(tuning, "_SETTLING", 20)
    monkeypatch.setattr(tuning, "_STEPS", 20)
    monkeypatch.setattr(tuning, "_PASSES", 1)
    X, y = load_iris(return_X_y=True)
    sampler = SGFS(structure="diag", B="precision", batch_size=30)
    model = BayesianMLPClassifier(
        (5,), sampler=sampler, n_chains=2, n_draws=4, burn_in=5, thin=1, random_state=0
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(scale(X), y)
    assert any("SGFS chose alpha before the chains were stat" in str(w.message) for w in caught)
    assert "not yet stationary after" in model.sampler_reason_


def test_a_run_that_diverges_is_taken_back():
    posterior, _, _ = correlated()
    sampler = SGFS(structure="diag", B="precision", batch_size=100)
    states = [
        SGFS(0.0, "diag", batch_size=100).init(
            posterior, np.zeros((2, 16)), np.random.default_rng(0)
        )
    ]
    grid = tuning._Grid(sampler, posterior, states, None)
    before = leaves(grid.states)
    lowest = len(tuning._ALPHAS) - 1
    assert not grid.run(lowest, 400)
    assert not differences(before, leaves(grid.states))
    assert (grid.place, grid.steps) == (0, 400)


def test_a_run_that_leaves_its_posterior_is_taken_back(monkeypatch):
    """It need not overflow: a balance of 2 is that of chains on their way out."""
    known = KnownGaussian()
    states = [SGFS().init(known.posterior, np.zeros((2, 4)), np.random.default_rng(0))]
    grid = tuning._Grid(SGFS(), known.posterior, states, None)
    for balance, kept in ((1.9, True), (2.1, False)):
        ratios = np.full((16, 2), balance)
        monkeypatch.setattr(
            tuning, "_short_run", lambda *args, r=ratios: tuning._ShortRun(states[0], r, r)
        )
        assert grid.run(3 if kept else 4, 10) == kept
        assert (grid.place, grid.balance) == (3, 1.9)


def test_runs_towards_stationarity_double(monkeypatch):
    """One that is too short to show that chains move is not repeated at its length for ever."""

    def run(self, place, n_steps):
        lengths.append(n_steps)
        self.place, self.steps = place, self.steps + n_steps
        self.balance, self.about_start = 1.0, 5.0
        self.balance_se = self.about_start_se = 0.0
        return True

    lengths = []
    monkeypatch.setattr(tuning._Grid, "run", run)
    known = KnownGaussian()
    choose_alpha(SGFS(), known.posterior, np.zeros((2, 4)), np.random.SeedSequence(0))
    down = len(tuning._ALPHAS)  # a settling run, and one at each lower alpha
    assert lengths[down : down + 2] == [tuning._SETTLING, 2 * tuning._SETTLING]


def test_modes_are_searched_without_noise():
    """With all rows in each step two searches from one point differ by their noise alone."""
    known = KnownGaussian()
    sampler = SGHMC(batch_size=known.posterior.n_rows)
    theta = np.full((2, 4), 0.5)
    ends = [
        tuning.from_modes(sampler, known.posterior, theta, np.random.SeedSequence(seed)).states
        for seed in (0, 1)
    ]
    for one, other in zip(*ends, strict=True):
        np.testing.assert_allclose(one.theta, other.theta, atol=1e-6)
