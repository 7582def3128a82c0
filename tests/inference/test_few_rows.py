"""Few rows under a sampled precision by SGFS, and levels that are far apart: by quadrature."""

import numpy as np
import pytest
from scipy.special import log_expit

from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression, diagnostics
from skbayes_sg.samplers import SGFS

pytestmark = pytest.mark.usefixtures("_short_runs_may_warn")

ONE_SIDED = {"ones in both": (3, 8), "none in the rare level": (0, 6), "separated": (0, 20)}


def of_two_cells(rare, ones, of_others):
    """Mean and sd of coefficient, intercept and log precision; `rare` rows have x = 1.

    Of these `ones` have y = 1, and `of_others` of the other twenty.
    """
    share = rare / (20 + rare)
    u, v = np.linspace(-5.0, 5.0, 281)[:, None, None], np.linspace(-4.2, 4.2, 131)[:, None]
    b, a = np.sinh(u), np.sinh(v)  # per half of the range, its unit, and at the mean of x
    rho = np.linspace(-9.0, 4.0, 40)
    weak = 4 * share * (1 - share)
    log_p = np.log(np.cosh(u)) + np.log(np.cosh(v))
    log_p = log_p - 0.5 * 0.01 * a**2 - 0.5 * np.exp(rho) * b**2 + 0.5 * rho  # P / 2
    log_p = log_p + 0.5 * rho - 0.5 * np.exp(rho) / weak - 1e-3 * weak * np.exp(-rho)
    for n, k, x in ((rare, ones, 1.0), (20, of_others, 0.0)):
        eta = a + 2 * b * (x - share)
        log_p = log_p + k * log_expit(eta) + (n - k) * log_expit(-eta)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    each = [2 * b, a - 2 * b * share, rho]
    mean = np.array([np.sum(p * one) for one in each])
    square = np.array([np.sum(p * one**2) for one in each])
    return mean, np.sqrt(square - mean**2)


@pytest.mark.parametrize("kind", ONE_SIDED)
@pytest.mark.quick("separated")
def test_sgfs_of_few_rows_has_the_posterior_of_quadrature(kind, seed):
    """Long steps of a normal posterior drew .6 of the standard deviation where a cell is empty."""
    ones, of_others = ONE_SIDED[kind]
    x = np.repeat([1.0, 0.0], [7, 20])
    y = np.concatenate([np.arange(7) < ones, np.arange(20) < of_others])
    model = BayesianLogisticRegression("sgfs", random_state=seed).fit(x[:, None], y)
    parts = model.coef_samples_, model.intercept_samples_, np.log(model.prior_precision_draws_)
    draws = np.concatenate([one.reshape(*one.shape[:2], -1) for one in parts], axis=2)
    draws = draws.astype(np.float64)
    mean, sd = of_two_cells(7, ones, of_others)
    found, spread = diagnostics.moments(draws)
    assert (np.abs(found - mean) / sd < 0.05 + 4 * diagnostics.mcse_mean(draws) / sd).all()
    assert (np.abs(spread / sd - 1) < 0.1 + 4 * diagnostics.sd_error(draws)).all()


def test_sgfs_moves_about_the_mode_only_where_a_step_takes_all_rows():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 2)), rng.random(40) < 0.5
    short = {"n_draws": 8, "burn_in": 20, "thin": 1, "random_state": 0}
    alphas = {}
    for name, sampler, more in (
        ("all rows", SGFS(), {}),
        ("minibatches", SGFS(batch_size=20), {}),
        ("with replacement", SGFS(replace=True), {}),
        ("given alpha", SGFS(2.0), {}),
        ("another matrix", SGFS(variant="paper"), {}),
        ("given precision", SGFS(), {"prior_precision": 1.0}),
    ):
        model = BayesianLogisticRegression(sampler, **more, **short).fit(X, y)
        alphas[name] = model.sampler_.alpha
    assert alphas.pop("all rows") == 8.0
    assert alphas.pop("given alpha") == 2.0
    assert not any(alphas.values())


# -- levels that are far apart ------------------------------------------------------------------


def log_precision_of_levels(y):
    """Mean and sd of log precision, and the sd of a row of a new level; y is (levels, rows)."""
    L, n = y.shape
    means = y.mean(axis=1)
    within, between = np.sum((y - means[:, None]) ** 2), n * np.sum((means - means.mean()) ** 2)
    rho, weak = np.linspace(-30.0, 10.0, 4001), 4 / L * (1 - 1 / L)
    weak = max(weak, L * weak / 10)
    variance = 4 * np.exp(-rho)  # of the levels over that of the noise; the unit is half the range
    shrink = 1 / (1 + n * variance)
    rate = 0.5e-6 * 2 * y.var() + 0.5 * (within + shrink * between)
    log_p = 0.5 * (L - 1) * np.log(shrink) - 0.5 * (L * n - 1) * np.log(rate)
    log_p += -0.5 * rho - np.logaddexp(0.0, np.log(weak) - rho)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = p @ rho
    noise = rate / (0.5 * (L * n - 1) - 1)
    new = p @ (noise * (1 + variance * (1 + 1 / L)))
    return mean, np.sqrt(p @ (rho - mean) ** 2), np.sqrt(new)


@pytest.mark.parametrize("apart", [1.0, 100.0, 500.0])
@pytest.mark.quick("100.0")
def test_levels_that_are_far_apart_are_not_shrunk(apart, seed):
    """The factor for separable classes took a third from the spread of the farthest."""
    rng = np.random.default_rng(seed)
    y = apart * np.linspace(-1.5, 1.5, 12)[:, None] + rng.standard_normal((12, 10))
    X = np.eye(12)[np.repeat(np.arange(12), 10)]
    groups = {"level": list(range(12))}
    model = BayesianLinearRegression(prior_groups=groups, random_state=seed).fit(X, y.ravel())
    draws = np.log(model.prior_precision_draws_).astype(np.float64)
    mean, sd, new = log_precision_of_levels(y)
    error = diagnostics.mcse_mean(draws)[0]
    assert abs(draws.mean() - mean) < 0.02 * sd + 4 * error
    assert abs(draws.std() / sd - 1) < 0.02 + 4 * diagnostics.sd_error(draws)[0]
    predicted = model.predict(np.zeros((1, 12)), return_std=True)[1][0]
    assert abs(predicted / new - 1) < 0.02 + 4 * error  # of a log precision
