"""No fit of a network is wrong in silence: figures of averages and distributions, and real fits."""

import warnings

import numpy as np
import pytest
from helpers import warnings_of
from sklearn.base import clone
from sklearn.datasets import load_wine, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

from skbayes_sg import BayesianMLPClassifier, BayesianMLPRegressor, DRBMClassifier
from skbayes_sg.data import InMemory
from skbayes_sg.diagnostics import judgements
from skbayes_sg.estimators.multimodal_classifier import gain_over_shares
from skbayes_sg.inference import diagnose
from skbayes_sg.samplers import SGFS, SGHMC, MomentumSGD

GOOD = {
    "temperature": 1.0,
    "r_hat_max": 1.0,
    "between_chains": 0.0,
    "prediction_error": 0.001,
    "prediction_drift": 0.001,
    "prediction_gain": 0.5,
    "stein_ratio": 1.0,
    "stein_se": 0.01,
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, 0),
        ({"stein_ratio": 1.3, "stein_se": 0.1}, 0),  # too few draws to tell
        ({"stein_ratio": 1.3, "stein_se": 0.01}, 1),
        ({"stein_ratio": 5.5e7, "stein_se": 1.5e7}, 1),  # heavy tails
        ({"stein_ratio": 3.0, "stein_se": 2.0}, 1),
        ({"stein_ratio": 3.0, "stein_se": np.nan}, 1),
        ({"stein_ratio": 0.85, "stein_se": 0.01}, 1),
        ({"stein_ratio": 0.85, "stein_se": 0.05}, 0),
        ({"stein_ratio": -0.2, "stein_se": 1.0}, 1),
        ({"between_chains": 0.6}, 1),
        ({"between_chains": 0.6, "stein_ratio": 0.1}, 2),
        ({"information_ratio": 3.0, "information_ratio_se": 0.5}, 1),
        ({"information_ratio": 3.0, "information_ratio_se": 1.0}, 0),
        ({"information_ratio": 2.0, "information_ratio_se": 0.1}, 0),  # averages may be right
        ({"information_ratio": np.nan, "information_ratio_se": np.nan}, 0),
        ({"r_hat_max": 1.3}, 0),  # of the worst probability; averages have an error of their own
    ],
)
def test_the_distribution_at_temperature_one(changes, said):
    assert len(judgements.of_modes(GOOD | changes, "remedy")) == said


@pytest.mark.parametrize(
    ("changes", "exact", "enough"),
    [
        ({}, False, True),
        ({"prediction_error": 0.009, "prediction_drift": 0.009}, False, True),
        ({"prediction_error": 0.011}, False, False),
        ({"prediction_drift": 0.011}, True, False),
        ({"prediction_error": np.nan, "prediction_drift": np.nan}, False, True),  # of one chain
        ({"stein_ratio": 0.7}, False, False),
        ({"stein_ratio": 1.3}, False, True),  # a bias, which more draws have too
        ({"stein_ratio": 1.3}, True, False),
    ],
)
def test_draws_are_doubled_while_averages_are_not_known_and_draws_may_help(changes, exact, enough):
    assert judgements.averages_are_enough(GOOD | changes, exact) is enough


@pytest.mark.parametrize(("ratio", "said"), [(1.5, 0), (2.5, 1), (5e6, 1)])
def test_at_another_temperature_draws_may_not_be_far_too_wide(ratio, said):
    figures = GOOD | {"stein_ratio": ratio, "stein_se": 1e7}
    assert len(judgements.of_stein(figures, "remedy", 1.0)) == said


@pytest.mark.parametrize("gain", [-0.1, -50.0, np.nan])
def test_averages_that_are_worse_than_the_shares_are_reported(gain):
    (warning,) = judgements.of_averages(GOOD | {"prediction_gain": gain}, "lower step_size")
    assert "worse than without X; lower step_size" in warning


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gain_is_the_difference_of_two_log_losses(n_classes, weighted):
    rng = np.random.default_rng(n_classes)
    codes = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 40)])
    weight = rng.integers(0, 4, len(codes)).astype(float) if weighted else None
    proba = rng.dirichlet(np.ones(n_classes), len(codes))
    y = 2.0 * codes - 1 if n_classes == 2 else codes
    rows = InMemory.of(np.zeros((len(codes), 1)), y, weight)
    shares = np.bincount(codes, weight) / (len(codes) if weight is None else weight.sum())
    some = np.arange(0, len(codes), 2)
    few = None if weight is None else weight[some]
    losses = [
        log_loss(codes[some], p[some], sample_weight=few, labels=np.arange(n_classes))
        for p in (np.tile(shares, (len(codes), 1)), proba)
    ]
    found = gain_over_shares(proba[some], rows.some(some), rows)
    assert found == pytest.approx(losses[0] - losses[1])


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.mark.convergence_warnings
@pytest.mark.parametrize("temperature", [1.0, 0.1])
@pytest.mark.parametrize(
    ("cls", "sampler"),
    [
        (BayesianMLPClassifier, SGFS(0.0, "diag")),
        (BayesianMLPClassifier, SGHMC(1.0)),
        (DRBMClassifier, SGHMC(1.0)),
    ],
)
@pytest.mark.quick("1.0")
def test_chains_that_diverge_say_so(cls, sampler, temperature, wine):
    model = cls(5, sampler=sampler, temperature=temperature, random_state=0)
    model.set_params(n_draws=20, burn_in=100, thin=5)
    assert any("stein_ratio is" in said for said in warnings_of(model, *wine))
    assert model.diagnostics_["stein_ratio"] > 2


@pytest.mark.convergence_warnings
@pytest.mark.parametrize("cls", [BayesianMLPClassifier, DRBMClassifier])
@pytest.mark.quick("BayesianMLPClassifier")
def test_a_right_fit_is_silent_and_gains(cls, wine):
    X, y = (part[::2] for part in wine)  # fewer than a hundred rows, all of which are diagnosed
    model = cls(5, random_state=0)
    assert warnings_of(model, X, y) == []
    shares = np.bincount(y) / len(y)
    entropy = -(shares * np.log(shares)).sum()
    gain = entropy - log_loss(y, model.predict_proba(X))
    assert model.diagnostics_["prediction_gain"] == pytest.approx(gain, abs=1e-6)


@pytest.mark.convergence_warnings
def test_predictions_that_a_prior_forbids_to_learn_say_so(wine):
    X, y = wine[0][:90], wine[1][:90] == 0
    model = BayesianMLPClassifier((2,), prior_precision=1e8, n_chains=2, random_state=0)
    model.set_params(n_draws=4, burn_in=4, thin=1)
    assert any("lower prior_precision" in said for said in warnings_of(model, X, y))
    share = y.mean()
    entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
    gain = entropy - np.log(2)
    assert model.diagnostics_["prediction_gain"] == pytest.approx(gain, abs=1e-3)


@pytest.mark.convergence_warnings
def test_predictions_are_diagnosed_at_temperature_one_too(wine):
    """Chains that never move agree on nothing."""
    sampler = SGHMC(1e-9)
    model = BayesianMLPClassifier((2,), sampler=sampler, n_draws=8, burn_in=8, thin=1)
    said = warnings_of(model.set_params(random_state=0), *wine)
    assert any("prediction_error is" in text for text in said)


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.3, random_state=3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cls", [BayesianMLPClassifier, pytest.param(DRBMClassifier, marks=pytest.mark.slow)]
)
def test_fits_at_temperature_one_draw_until_averages_are_known_and_are_silent(cls, moons, seed):
    """A reference of sixteen times as many draws tells how far averages are from the posterior's.

    A fit goes on until an estimate of this distance is below .01. From four chains the estimate has
    at least three degrees of freedom: the distance is four times as large in about 2 % of fits.
    """
    X, y = moons
    model = cls(4, temperature=1.0, prior_precision=1.0, random_state=seed)
    long = clone(model).set_params(n_draws=800, n_chains=8, burn_in=500, random_state=seed + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.fit(X, y), long.fit(X, y)
    figures = model.diagnostics_
    assert max(figures["prediction_error"], figures["prediction_drift"]) <= 0.01
    away = model.predict_proba(X) - long.predict_proba(X)
    assert np.sqrt((away**2).mean()) < 4 * 0.01


def test_only_at_temperature_one_and_by_default_are_draws_doubled(moons):
    """Steps so short that chains never agree."""
    X, y = moons
    model = BayesianMLPClassifier((2,), sampler=SGHMC(1e-9), burn_in=4, thin=1, random_state=0)
    numbers = {}
    for temperature, n_draws in ((1.0, "auto"), (1.0, 50), (0.1, "auto")):
        with warnings.catch_warnings(action="ignore"):
            model.set_params(temperature=temperature, n_draws=n_draws).fit(X, y)
        numbers[temperature, n_draws] = model.draws_.shape[1]
    assert numbers == {(1.0, "auto"): 800, (1.0, 50): 50, (0.1, "auto"): 50}


def test_the_information_is_that_of_the_covariance_where_it_is_stiff(gaussian, seed):
    """tr(C Lambda^2) / tr(Lambda) of normal draws of covariance C; and 1 of the posterior's."""
    precision = gaussian.Lam
    values, axes = np.linalg.eigh(np.linalg.inv(precision))
    rng = np.random.default_rng(seed)
    for factors in (np.ones(4), np.array([4.0, 0.5, 1.0, 1.0])):  # of variances, the stiffest first
        draws = (
            gaussian.mean + rng.standard_normal((8, 100, 4)) * np.sqrt(factors * values) @ axes.T
        )
        found = diagnose.of_information(gaussian.posterior, draws, 2400)
        expected = np.trace((axes * factors * values) @ axes.T @ precision @ precision)
        expected /= np.trace(precision)
        off = abs(found["information_ratio"] - expected)
        assert off < 5 * found["information_ratio_se"] < 0.7 * expected
    assert diagnose.of_information(gaussian.posterior, draws, 60) == {}


@pytest.mark.convergence_warnings
@pytest.mark.parametrize(
    "cls", [BayesianMLPClassifier, pytest.param(BayesianMLPRegressor, marks=pytest.mark.slow)]
)
def test_steps_too_long_where_rows_know_the_weights_are_said(cls, moons):
    """And the default is silent on the same rows."""
    X, y = moons
    X = np.column_stack([X, X[:, 0] * X[:, 1]])
    wrong = cls((3,), sampler=MomentumSGD(structure="diag"), temperature=1.0, random_state=0)
    wrong.set_params(prior_precision=1.0, n_chains=4, n_draws=100)
    assert any("information_ratio is" in text for text in warnings_of(wrong, X, y))
    right = clone(wrong).set_params(sampler=None)
    assert not any("information_ratio is" in text for text in warnings_of(right, X, y))


@pytest.mark.convergence_warnings
def test_a_regressor_is_judged_as_a_classifier_is(moons):
    """Chains in modes of their own that never move."""
    X, y = moons[0][:, :1], moons[0][:, 1]
    model = BayesianMLPRegressor((3,), sampler=SGHMC(1e-9, share_rows=True), random_state=0)
    said = warnings_of(model.set_params(n_draws=8, burn_in=8, thin=1), X, y)
    assert any("prediction_error is" in text for text in said)
    assert any("sit in different modes" in text for text in said)
