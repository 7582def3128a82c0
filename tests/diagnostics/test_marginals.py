"""Moments of the posterior from gradients at draws of another distribution, and the warnings."""

import warnings

import numpy as np
import pytest
from helpers import warnings_of
from scipy.special import polygamma, psi
from sklearn.exceptions import ConvergenceWarning

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    diagnostics,
)
from skbayes_sg.diagnostics import gradients, judgements
from skbayes_sg.diagnostics.gradients import from_gradients
from skbayes_sg.inference import diagnose
from skbayes_sg.models import Linear, Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import IASG, SGD, SGFS, ConstantSGD

LAM = np.array([[2.0, 0.9], [0.9, 1.0]])
MEAN = np.array([3.0, -1.0])


def test_a_normal_posterior_is_found_from_any_draws(seed):
    """Exactly: its slope is linear, whatever the distribution of the draws."""
    theta = np.random.default_rng(seed).exponential(size=(40, 2)) @ [[1.0, 0.3], [0.0, 5.0]]
    found = from_gradients(theta, -(theta - MEAN) @ LAM)
    np.testing.assert_allclose(found.mean, MEAN)
    np.testing.assert_allclose(found.sd, np.sqrt(np.linalg.inv(LAM).diagonal()))
    np.testing.assert_allclose(found.mean_error, 0, atol=1e-8)
    np.testing.assert_allclose(found.sd_error, 0, atol=1e-8)


def test_draws_of_a_skewed_posterior_are_right_within_the_errors(seed):
    """Two correlated log gamma variables, whose log density is a e^-x - k x."""
    rng = np.random.default_rng(seed)
    shape, mix = np.array([1.5, 4.0]), np.array([[1.0, 0.4], [0.0, 1.0]])
    mean, sd = psi(shape) @ mix, np.sqrt(polygamma(1, shape) @ mix**2)
    errors = []
    for _ in range(40):
        x = np.log(rng.gamma(shape, size=(400, 2)))
        found = from_gradients(x @ mix, (shape - np.exp(x)) @ np.linalg.inv(mix).T)
        errors.append((found.mean - mean) / found.sd / found.mean_error)
        errors.append((found.sd / sd - 1) / found.sd_error)
    errors = np.array(errors)
    assert abs(errors.mean()) < 5 * errors.std() / np.sqrt(errors.size / 2)
    assert 0.5 < np.sqrt((errors**2).mean()) < 1.4  # errors are of the size that they say


@pytest.mark.parametrize(
    ("theta", "slope"),
    [
        (np.zeros((50, 1)), 0.0),  # draws that do not move
        (np.linspace(-1, 1, 50)[:, None], 1.0),  # a valley
        (np.linspace(-1, 1, 50)[:, None], np.inf),
    ],
)
def test_what_tells_nothing_is_none(theta, slope):
    with np.errstate(invalid="ignore"):
        assert from_gradients(theta, slope * theta) is None


def _linear(rng, d):
    X = rng.standard_normal((100, d))
    return Posterior.of(Linear(d, False, 1.0), X, X.sum(axis=1) + rng.standard_normal(100))


def test_the_worst_parameter_is_seen_where_the_average_is_right(seed):
    """Variances of 1/2 and 3/2 of the posterior's have a Stein ratio of 1."""
    rng = np.random.default_rng(seed)
    posterior = _linear(rng, 2)
    Lam = posterior.data.X.T @ posterior.data.X + np.eye(2)
    exact = np.linalg.solve(Lam, posterior.data.X.T @ posterior.data.y)
    root = np.linalg.cholesky(np.linalg.inv(Lam))
    z = rng.standard_normal((4, 500, 2))
    weights = np.full(500, 1 / 500)
    right = diagnose.of_gradients(posterior, exact + z @ root.T, weights, 256)
    assert abs(right["mean_shift"]) < 5 * right["mean_shift_se"]
    assert abs(right["sd_ratio"] - 1) < 5 * right["sd_ratio_se"]
    values, vectors = np.linalg.eigh(np.linalg.inv(Lam))
    wrong = exact + z * np.sqrt(values * [0.5, 1.5]) @ vectors.T + 0.4 * np.sqrt(values[0])
    found = diagnose.of_gradients(posterior, wrong, weights, 256)
    assert abs(found["sd_ratio"] - 1) > 0.1
    assert abs(found["mean_shift"]) > 0.2
    figures = found | {"stein_ratio": 1.0, "stein_se": 0.01}
    assert "mean_shift" in judgements.of_bias(figures, "remedy")[0]


def test_draws_that_stay_in_a_plane_are_seen():
    """As those of constant SGD along the shift of all classes, that moves by the prior alone."""
    rng = np.random.default_rng(0)
    posterior = _linear(rng, 2)
    z = rng.standard_normal((4, 100, 1)) * [0.1, 0.1]
    found = diagnose.of_gradients(posterior, z, np.full(100, 0.01), 256)
    assert found["sd_ratio"] < 1e-6
    figures = found | {"stein_ratio": 1.0, "stein_se": 0.01}
    assert "sd_ratio" in judgements.of_bias(figures, "remedy")[0]
    still = np.zeros((4, 100, 2))
    assert diagnose.of_gradients(posterior, still, np.full(100, 0.01), 256)["sd_ratio"] == 0


def test_gradients_tell_a_spread_whose_square_is_lost(seed):
    """Correlations of 1 - 1e-13, as of an intercept and the coefficient of a far column."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((400, 2))
    for far in (1e3, 3e6):
        shear = np.array([[1.0, 0.0], [-far, 1.0]])  # (u, v) to (u, v - far u)
        theta = z @ shear.T
        slope = -z @ np.linalg.inv(shear) / 0.81  # of standard deviations of .9
        found = from_gradients(theta, slope)
        sd = 0.9 * np.array([1.0, np.hypot(far, 1.0)])
        np.testing.assert_allclose(found.sd, sd, rtol=1e-4)
        np.testing.assert_allclose(found.mean, 0.0, atol=1e-4 * sd.max())


def test_the_average_over_directions_speaks_where_single_parameters_are_right():
    """Stiff directions that are far too wide are a small part of each parameter's spread."""
    right = {"mean_shift": 0.1, "mean_shift_se": 0.05, "sd_ratio": 1.1, "sd_ratio_se": 0.03}
    said = judgements.of_bias(right | {"stein_ratio": 5.4, "stein_se": 0.1}, "remedy")
    assert [one.split()[0] for one in said] == ["stein_ratio"]
    for known in (right, dict.fromkeys(right, np.nan)):
        for ratio, n_warnings in ((1.2, 1), (1.09, 0)):
            found = judgements.of_bias(known | {"stein_ratio": ratio, "stein_se": 0.01}, "remedy")
            assert len(found) == n_warnings


def test_few_gradients_say_nothing():
    posterior = _linear(np.random.default_rng(0), 10)
    draws = np.random.default_rng(1).standard_normal((4, 50, 10))
    n = gradients.fewest(10) - 1
    found = diagnose.of_gradients(posterior, draws, np.full(50, 1 / 50), n)
    assert np.isnan(list(found.values())).all()


@pytest.mark.parametrize(
    ("sampler", "word"),
    [
        (IASG(structure="scalar", batch_size=5), "mean_shift"),
        (ConstantSGD("scalar", batch_size=5), "sd_ratio"),
        (SGD(batch_size=5), "goes to the mode"),
    ],
)
def test_what_was_silent_speaks(sampler, word):
    """Draws whose Stein ratio is near 1 or unknown: a heavy tail, and nearly equal columns."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(2, (100, 1))
    if isinstance(sampler, ConstantSGD):
        X = rng.standard_normal((100, 1)) + 0.3 * rng.standard_normal((100, 3))
    y = (0.7 * X[:, 0] + rng.logistic(size=100) > 0.5).astype(int)
    model = BayesianLogisticRegression(
        sampler, 0.1, intercept_precision=0.1, n_draws=60, burn_in=100, random_state=0
    )
    assert word in " ".join(warnings_of(model, X, y))


def test_many_short_chains_that_agree_in_the_mean_are_no_alarm():
    """R-hat of 32 chains of 40 draws is above 1.05, and the pooled mean is good."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = (X[:, 0] + rng.logistic(size=300) > 0).astype(int)
    model = BayesianLogisticRegression(n_draws=30, thin=1, prior_precision=1.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)
    r_hat = model.diagnostics_["r_hat_max"]
    assert diagnostics.R_HAT_LIMIT < r_hat < model.diagnostics_["r_hat_limit"]
    assert abs(model.diagnostics_["mean_shift"]) < 0.2


def test_gradients_of_many_classes_are_those_of_the_whole_posterior():
    """A pass in parts is a pass."""
    rng = np.random.default_rng(0)
    posterior = Posterior.of(Softmax(2, 3), rng.standard_normal((30, 2)), rng.integers(0, 3, 30))
    draws, weights = rng.standard_normal((2, 40, 9)), np.full(40, 1 / 40)
    whole = diagnose.of_gradients(posterior, draws, weights, 64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diagnose, "elements_at_a_time", lambda: 100)
        assert diagnose.of_gradients(posterior, draws, weights, 64) == pytest.approx(whole)


@pytest.mark.parametrize("sampler", ["sgfs", "hmc"])
@pytest.mark.quick("sgfs")
def test_more_parameters_than_sixty_four_are_diagnosed_one_by_one(sampler):
    """One of 179 has a standard deviation of half of what it should be, by SGFS and not by HMC."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((31, 177))
    y = X @ rng.standard_normal(177) / 177**0.5 + rng.standard_normal(31)
    model = BayesianLinearRegression(sampler, prior_precision=1, noise_prior=(2, 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.set_params(random_state=0).fit(X, y)
    assert np.isfinite(model.diagnostics_["sd_ratio"])
    said = [str(one.message) for one in caught]
    assert [one.split()[0] for one in said] == ["sd_ratio"] * (sampler == "sgfs"), said


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.slow
def test_directions_that_only_the_prior_knows_are_said_of_long_steps(n_classes):
    """Beside a column of one value, and the shift of all classes, which do not count."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 2))
    y = np.digitize(X[:, 0] + rng.logistic(size=60), np.linspace(-1, 1, n_classes + 1)[1:-1])
    held = np.column_stack([X, np.full(60, 3.0)])
    model = BayesianLogisticRegression(SGFS(batch_size=30), random_state=0)
    assert model.fit(held, y).diagnostics_["least_known"] > 0.4
    collinear = np.column_stack([X, X[:, 0] + 0.01 * rng.standard_normal(60)])
    with pytest.warns(ConvergenceWarning, match=r"least_known is .* below 0\.33.* heavy tails"):
        assert model.fit(collinear, y).diagnostics_["least_known"] < 0.05
    assert "least_known" not in model.set_params(sampler="hmc").fit(collinear, y).diagnostics_


@pytest.mark.parametrize("bend", [0.1, 0.5, 2.0])
def test_errors_are_doubled_where_few_draws_may_decide(bend, seed):
    """Where slopes are as far from linear as from zero: the draw that matters may be absent."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal((20_000, 1))
    rest = bend * rng.choice([-1.0, 1.0], theta.shape)
    found = from_gradients(theta, rest - theta)
    plain = bend / np.sqrt(20_000)
    times = 1 + min(1.0, bend**2)
    assert found.mean_error[0] == pytest.approx(times * plain, rel=0.1)
    assert found.sd_error[0] == pytest.approx(0.5 * times * plain, rel=0.1)
