"""What an uncertain prior precision adds to the draws, against quadrature over the precision."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skbayes_sg import BayesianLinearRegressionSGFS, BayesianLogisticRegressionSGFS, VariationalEM
from skbayes_sg.inference.precision_uncertainty import (
    LearnedPrecision,
    averaged,
    averaged_covariance,
    measured,
)

SHAPE, RATE = 0.5, 0.5


def rows(n=30, p=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, X @ rng.standard_normal(p) + 2 * rng.standard_normal(n)


class Exact:
    """Regression with noise variance 4 and no intercept: everything given the precision."""

    def __init__(self, X, y):
        self.G, self.h, self.p = X.T @ X / 4, X.T @ y / 4, X.shape[1]

    def given(self, rho):
        cov = np.linalg.inv(self.G + np.exp(rho) * np.eye(self.p))
        return cov @ self.h, cov

    def log_density(self, rho):
        mean, cov = self.given(rho)
        evidence = 0.5 * (self.p * rho + np.linalg.slogdet(cov)[1] + mean @ self.h)
        return evidence + SHAPE * rho - RATE * np.exp(rho)

    def best(self):
        grid = np.linspace(-6, 6, 601)
        return grid[np.argmax([self.log_density(rho) for rho in grid])]

    def derivatives(self, f, rho, d=1e-4):
        up, here, down = f(rho + d), f(rho), f(rho - d)
        return (up - down) / (2 * d), (up - 2 * here + down) / d**2


def draws_under(exact, rho, n=20_000):
    mean, cov = exact.given(rho)
    rng = np.random.default_rng(1)
    half = rng.standard_normal((2, n // 4, exact.p)) @ np.linalg.cholesky(cov).T
    return mean + np.concatenate([half, -half], axis=1)  # in pairs: the mean is exact


def law_of(exact, rho):
    draws, lam = draws_under(exact, rho), np.exp(rho)
    weights = np.full(draws.shape[1], 1 / draws.shape[1])
    squares = lam * (draws**2).sum(axis=2)
    precision = LearnedPrecision(exact.p, (SHAPE, RATE * lam), np.nan)
    return draws, weights, measured(draws, weights, squares, precision)


@pytest.mark.parametrize("off", [-0.5, 0.0, 0.5])
def test_figures_are_the_derivatives_of_the_evidence_and_of_the_mean(off):
    exact = Exact(*rows())
    rho = exact.best() + off
    draws, _, law = law_of(exact, rho)
    slope, _ = exact.derivatives(lambda r: exact.given(r)[0], rho)
    first, second = exact.derivatives(exact.log_density, rho)
    error = draws.std(axis=(0, 1)) * np.sqrt(2 * exact.p / draws.size * exact.p)
    assert (np.abs(law.slope - slope) < 5 * error).all()
    assert law.sd**-2 == pytest.approx(-second, rel=0.1)
    assert law.score / law.sd == pytest.approx(first, abs=5 * np.sqrt(exact.p / 2 / 20_000))


def test_averaged_draws_have_the_variance_over_all_precisions():
    exact = Exact(*rows())
    draws, weights, law = law_of(exact, exact.best())
    grid = np.linspace(-6, 6, 401)
    share = np.exp([exact.log_density(rho) for rho in grid])
    share /= share.sum()
    means, variances = zip(*((m, c.diagonal()) for m, c in map(exact.given, grid)), strict=True)
    mean = share @ means
    true = share @ (variances + (means - mean) ** 2)
    widened = averaged(draws, weights, law, np.ones(exact.p, bool))
    sd = np.sqrt(true)
    before, after = (d.var(axis=(0, 1)) / true - 1 for d in (draws, widened))
    assert np.abs(after).mean() < 0.7 * np.abs(before).mean()
    assert np.abs(after).max() < 0.1
    assert (np.abs(widened.mean(axis=(0, 1)) - mean) < 0.1 * sd).all()


def test_coordinates_that_do_not_scale_keep_their_spread():
    exact = Exact(*rows())
    draws, weights, law = law_of(exact, exact.best())
    law = law._replace(slope=np.zeros(exact.p))
    widened = averaged(draws, weights, law, np.arange(exact.p) > 0)
    np.testing.assert_array_equal(widened[..., 0], draws[..., 0])
    assert (widened[..., 1:].std(axis=(0, 1)) > draws[..., 1:].std(axis=(0, 1))).all()
    still = law._replace(shrinkage=0.0)
    np.testing.assert_array_equal(averaged(draws, weights, still, np.ones(exact.p, bool)), draws)


def test_the_covariance_of_averaged_draws_is_known():
    exact = Exact(*rows())
    draws, weights, law = law_of(exact, exact.best())
    scales = np.arange(exact.p) > 2
    widened = averaged(draws, weights, law, scales).reshape(-1, exact.p)
    before = np.cov(draws.reshape(-1, exact.p).T)
    expected, found = averaged_covariance(before, law, scales), np.cov(widened.T)
    sd = np.sqrt(expected.diagonal())
    assert np.abs(found - expected).max() < (5 * np.outer(sd, sd) / np.sqrt(len(widened))).max()
    assert np.abs(before - expected).max() > 10 * np.abs(found - expected).max()


def test_draws_that_are_too_few_leave_the_other_estimate():
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((4, 10, 600))  # of the prior: the information is a difference
    squares = (draws**2).sum(axis=2)
    law = measured(draws, np.full(10, 0.1), squares, LearnedPrecision(600, (SHAPE, RATE), 0.25))
    assert law.sd == 0.25


def test_only_the_default_averages():
    X, y = rows(60, 5)
    fits = {
        "default": BayesianLinearRegressionSGFS(random_state=0),
        "em": BayesianLinearRegressionSGFS(
            prior_precision=VariationalEM(n_updates=20), random_state=0
        ),
        "given": BayesianLinearRegressionSGFS(prior_precision=1.0, random_state=0),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        shifts = {name: model.fit(X, y).diagnostics_ for name, model in fits.items()}
    assert "precision_shift" in shifts["default"]
    assert "precision_shift" not in shifts["em"] | shifts["given"]


def test_separable_classes_are_said_to_leave_the_precision_open():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 20))
    y = (X @ rng.standard_normal(20) > 0).astype(int)
    with pytest.warns(ConvergenceWarning, match="precision_shift is .* intervals are too narrow"):
        model = BayesianLogisticRegressionSGFS(random_state=0).fit(X, y)
    assert model.diagnostics_["precision_shift"] > 1.5
    rng.shuffle(y)  # noise bounds the precision from below
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BayesianLogisticRegressionSGFS(random_state=0).fit(X, y)
