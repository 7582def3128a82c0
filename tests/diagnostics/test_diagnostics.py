import re
from pathlib import Path

import numpy as np
import pytest
from arviz_stats.base import array_stats

from skbayes_sg import BayesianLogisticRegression, diagnostics
from skbayes_sg.diagnostics import agreement, convergence, least_agreed, r_hat_and_ess_bulk


def draws_of(kind, n_draws=401):
    rng = np.random.default_rng(5)
    noise = rng.standard_normal((4, n_draws, 3))
    if kind == "iid":
        return noise
    if kind == "antithetic":
        return noise[:, 1:] - 0.9 * noise[:, :-1]
    if kind == "heavy":
        return rng.standard_cauchy((4, n_draws, 3))
    walk = np.cumsum(noise, axis=1)
    return walk if kind == "walk" else 0.1 * walk + noise + np.arange(4)[:, None, None]


@pytest.mark.parametrize("kind", ["iid", "antithetic", "heavy", "walk", "apart"])
@pytest.mark.parametrize("n_draws", [7, 100, 401])
def test_equal_to_arviz(kind, n_draws):
    x = draws_of(kind, n_draws)
    axes = {"chain_axis": 0, "draw_axis": 1}
    pairs = [
        (diagnostics.r_hat(x), array_stats.rhat(x, method="rank", **axes)),
        (diagnostics.ess_bulk(x), array_stats.ess(x, method="bulk", **axes)),
        (diagnostics.ess_tail(x), array_stats.ess(x, method="tail", prob=(0.05, 0.95), **axes)),
        (diagnostics.ess_mean(x), array_stats.ess(x, method="mean", **axes)),
        (diagnostics.mcse_mean(x), array_stats.mcse(x, method="mean", **axes)),
    ]
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_the_error_of_a_standard_deviation_is_that_of_repeated_draws(seed):
    """Of autoregressive draws with heavy tails; a spread of 300 has an error of 4 %."""
    rng = np.random.default_rng(seed)
    x = rng.standard_t(10, (4, 400, 300))
    for t in range(1, 400):
        x[:, t] = 0.5 * x[:, t - 1] + np.sqrt(0.75) * x[:, t]
    spread = np.log(x.std(axis=(0, 1))).std()
    assert np.median(diagnostics.sd_error(x)) == pytest.approx(spread, rel=0.25)


def test_one_chain_and_constant_parameters():
    x = np.zeros((1, 50, 2))
    x[..., 1] = np.random.default_rng(0).standard_normal((1, 50))
    assert diagnostics.ess_bulk(x)[0] == 50
    assert np.isnan(diagnostics.r_hat(x)[0])
    assert diagnostics.r_hat(x)[1] < 1.5


def test_the_limit_of_r_hat_is_that_of_ess_where_the_means_are_known():
    """S = m / (R^2 - 1) of m half chains (math/diagnostics.md#many-chains)."""
    for n_chains in (8, 32, 200):
        limit = diagnostics.r_hat_limit(n_chains, means_are_known=True)
        assert 2 * n_chains / (limit**2 - 1) == pytest.approx(diagnostics.ESS_LIMIT)
        assert diagnostics.r_hat_limit(n_chains, means_are_known=False) == 1.05
    assert diagnostics.r_hat_limit(1, means_are_known=True) == 1.05


@pytest.mark.parametrize("page", ["docs/posterior.md", "docs/glossary.md", "summary"])
def test_pages_and_summary_have_the_limit_of_the_code(page):
    if page == "summary":
        text = BayesianLogisticRegression.summary.__doc__
    else:
        text = (Path(__file__).parents[2] / page).read_text()
    about = re.split("R-hat|r_hat``", text)[1][:300]
    assert re.findall(r"\b1\.\d\d", about)[0] == f"{diagnostics.R_HAT_LIMIT}"
    assert "1.01" not in about


def test_autocorrelation_time_of_ar1():
    """(1 + rho) / (1 - rho) = 19 at rho = 0.9."""
    rng = np.random.default_rng(1)
    x = np.empty((8, 20_000, 4))
    x[:, 0] = rng.standard_normal((8, 4)) / np.sqrt(1 - 0.81)
    for t in range(1, x.shape[1]):
        x[:, t] = 0.9 * x[:, t - 1] + rng.standard_normal((8, 4))
    assert diagnostics.autocorrelation_time(x).mean() == pytest.approx(19, rel=0.05)


def test_errors_of_ahn_eq_14():
    assert diagnostics.mean_error(np.array([1.1, -2.0]), np.array([1.0, -2.0])) == pytest.approx(
        0.1 / 3
    )
    assert diagnostics.covariance_error(np.eye(2), 2 * np.eye(2)) == pytest.approx(0.5)


def test_stein_ratio_is_the_variance_ratio_of_a_gaussian(seed):
    """With gradient -Lam theta + noise, R is Sigma Lam, whatever distribution theta has."""
    rng = np.random.default_rng(seed)
    Lam = np.array([4.0, 1.0])
    theta = rng.standard_normal((50_000, 2)) * np.sqrt([0.25, 0.5])
    gradient = -Lam * theta + 3.0 * rng.standard_normal(theta.shape)
    terms = -(theta * gradient)
    se = terms.std(axis=0) / np.sqrt(len(theta))
    assert np.all(np.abs(diagnostics.stein_ratio(theta, gradient) - [1.0, 0.5]) < 5 * se)


def test_running_sums_equal_the_ratio_of_the_arrays():
    rng = np.random.default_rng(2)
    theta = 1e4 + rng.standard_normal((128, 2, 3))  # far from zero: nothing may cancel
    gradient = rng.standard_normal((128, 2, 3)) - (theta - 1e4)
    sums = diagnostics.SteinSums(theta[0])
    sums.add(theta[:64], gradient[:64])
    sums.add(theta[64:], gradient[64:])
    ratio, se = diagnostics.stein_ratio_of_sums([sums])
    assert ratio == pytest.approx(diagnostics.stein_ratio(theta, gradient).mean(), abs=1e-9)
    assert 0 < se < 0.5
    one = diagnostics.SteinSums(theta[0, :1])
    one.add(theta[:, :1], gradient[:, :1])
    assert np.isnan(diagnostics.stein_ratio_of_sums([one])[1])


def test_r_hat_and_ess_from_one_ranking_are_those_from_two():
    draws = np.random.default_rng(0).standard_normal((4, 300, 3)).cumsum(axis=1)
    r_hat, ess = diagnostics.r_hat_and_ess_bulk(draws)
    np.testing.assert_array_equal(r_hat, diagnostics.r_hat(draws))
    np.testing.assert_array_equal(ess, diagnostics.ess_bulk(draws))


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.7])
def test_r_hat_of_many_short_chains_is_what_theory_says(rho, seed):
    """1 + (tau - 1) / 2h to first order in tau / h, for 32 stationary chains of 124 draws."""
    rng, tau, h = np.random.default_rng(seed), (1 + rho) / (1 - rho), 62
    x = np.empty((32, 124, 60))  # independent parameters
    x[:, 0] = rng.standard_normal((32, 60))
    for t in range(1, 124):
        noise = rng.standard_normal((32, 60))
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * noise
    ranked, _ = convergence._of_ranks(convergence._split(x))
    expected = np.sqrt(1 - 1 / h + tau / h / (1 - tau / h))
    error = ranked.std() / np.sqrt(len(ranked))
    assert abs(ranked.mean() - expected) < 5 * error + (tau / h) ** 2
    x[0] += 1.0  # one chain elsewhere by one standard deviation
    assert (diagnostics.r_hat(x) > ranked).mean() > 0.95


def test_the_parameters_that_agree_least_are_those_that_are_ranked():
    """One of 500 has a chain elsewhere, one a chain that is wider; the figures miss neither."""
    draws = np.random.default_rng(0).standard_normal((4, 200, 500))
    draws[0, :, 123] += 1.0
    draws[1, :, 321] *= 3.0
    draws[:, :, 7] = 1.0  # never moves
    worst = least_agreed(draws, 20)
    assert {7, 123, 321} <= set(worst)
    assert len(worst) <= 40
    moving = np.delete(draws, 7, axis=2)
    r_hat, ess = r_hat_and_ess_bulk(moving)
    found = agreement.of_draws(moving)
    assert found["r_hat_max"] == r_hat.max()
    assert found["ess_min"] == ess.min()


FIGURES = ["r_hat", "ess_bulk", "ess_tail", "ess_mean", "mcse_mean"]


@pytest.mark.parametrize("name", FIGURES)
def test_draws_of_weight_zero_do_not_count_and_equal_weights_are_none(name):
    x, figure = draws_of("apart", 60), getattr(diagnostics, name)
    some = np.arange(60) % 3 > 0
    np.testing.assert_array_equal(figure(x, np.full(60, 0.1)), figure(x))
    np.testing.assert_array_equal(figure(x, some / some.sum()), figure(x[:, some]))


@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_error_of_a_weighted_mean_is_the_spread_of_repetitions(rho, seed):
    """200 runs of AR(1) chains under weights that fall as those of a decreasing step."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((4, 500, 200))
    for t in range(1, 500):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho * rho) * x[:, t]
    weights = np.arange(1, 501) ** -0.5
    means, sd = diagnostics.moments(x, weights)
    spread, error = means.std(ddof=1), diagnostics.mcse_mean(x, weights)
    relative = 1 / np.sqrt(2 * 199)  # of the spread of 200 means
    assert abs(np.sqrt(np.mean(error**2)) / spread - 1) < 5 * relative
    np.testing.assert_allclose(error, sd / np.sqrt(diagnostics.ess_mean(x, weights)))
    # to the mean's error belongs a size that weights of 1 / sqrt(t) lower by a fifth or more
    assert diagnostics.ess_bulk(x, weights).mean() < 0.8 * diagnostics.ess_bulk(x).mean()


def test_quantiles_of_equal_weights_interpolate_and_of_others_are_draws():
    x = np.arange(12.0).reshape(2, 6, 1)
    assert diagnostics.quantile(x, 0.5) == 5.5
    assert diagnostics.quantile(x, 0.5, np.full(6, 0.2)) == 5.5
    assert diagnostics.quantile(x, 0.5, np.array([0, 0, 0, 0, 1.0, 3.0])) == 5.0


def test_a_parameter_that_never_moves_keeps_its_size_under_weights():
    x = np.zeros((2, 10, 1))
    assert diagnostics.ess_mean(x, np.arange(1.0, 11)) == 20
    assert diagnostics.mcse_mean(x, np.arange(1.0, 11)) == 0


def test_moments_of_very_many_draws_are_taken_by_parts(monkeypatch):
    rng = np.random.default_rng(0)
    draws, weights = rng.standard_normal((3, 40, 7)), rng.dirichlet(np.ones(40))
    at_once = diagnostics.moments(draws, weights)
    monkeypatch.setattr(convergence, "_MANY_ELEMENTS", 300)
    np.testing.assert_allclose(diagnostics.moments(draws, weights), at_once, atol=1e-12)


@pytest.mark.parametrize("equal", [True, False])
def test_no_share_is_above_one(equal):
    """Sums of weights that are 1 by rounding only, in any order."""
    rng = np.random.default_rng(3)
    for n in range(4, 400):
        weights = np.ones(n) if equal else rng.random(n) + 0.01
        weights /= weights.sum()
        events = np.ones((6, n, 2), bool)
        events[0, 0, 1] = False
        always, nearly = diagnostics.share(events, weights)
        assert always == 1
        assert nearly == pytest.approx(1 - weights[0] / 6, abs=1e-14)
        assert nearly < 1
        assert diagnostics.share(~events, weights)[0] == 0


def test_a_share_is_the_weighted_mean_of_events():
    rng = np.random.default_rng(4)
    events, weights = rng.random((3, 50, 4)) < 0.3, rng.random(50)
    expected = np.average(events.mean(axis=0), axis=0, weights=weights)
    np.testing.assert_allclose(diagnostics.share(events, weights), expected, rtol=1e-13)
    np.testing.assert_array_equal(diagnostics.share(events), events.mean(axis=(0, 1)))


@pytest.mark.parametrize("n", [1, 2, 7, 10])
def test_draws_that_stand_for_others_are_from_the_middle_of_their_parts(n):
    """Of 210 equal ones, cut into n parts; and as often as they weigh, rounded up or down."""
    positions = diagnostics.systematic(np.full(210, 1 / 210), n)
    assert np.abs(positions - ((np.arange(n) + 0.5) * 210 / n - 0.5)).max() <= 0.5
    weights = np.random.default_rng(n).dirichlet(np.full(20, 0.5))
    times = np.bincount(diagnostics.systematic(weights, 40), minlength=20)
    assert (np.abs(times - 40 * weights) < 1).all()
