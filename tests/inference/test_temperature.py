"""Temperature of the networks' posterior, and chains that start in modes of their own."""

import copy
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from skbayes_sg import BayesianMLPClassifier, DRBMClassifier, VariationalEM
from skbayes_sg.diagnostics import agreement, judgements
from skbayes_sg.models import MLP
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import HMC, SGFS, SGHMC

SHORT = {"n_chains": 3, "n_draws": 8, "burn_in": 8, "thin": 2, "random_state": 0}
EACH = pytest.mark.parametrize("cls", [BayesianMLPClassifier, DRBMClassifier])
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    return X, (X @ rng.standard_normal((3, 3)) + rng.gumbel(size=(120, 3))).argmax(axis=1)


@pytest.fixture(scope="module")
def of_two_units(data):
    return {cls: cls(2, **SHORT).fit(*data) for cls in (BayesianMLPClassifier, DRBMClassifier)}


def test_a_tempered_posterior_is_the_likelihood_to_a_power_times_the_prior(data):
    X, y = data
    model = MLP(3, 3, (2,))
    posterior = Posterior.of(model, X, y, 2.0)
    cold, theta = posterior.tempered(0.25), model.init(np.random.default_rng(1))
    likelihood = model.log_likelihood(theta, X, y).sum()
    prior = posterior.prior.log_density(theta)
    np.testing.assert_allclose(cold.log_prob(theta), 4 * likelihood + prior)
    gain = cold.full_gradient(theta) - posterior.full_gradient(theta)
    score = model.scores(theta, X, y).total()
    np.testing.assert_allclose(gain, 3 * score, atol=1e-10)
    assert posterior.tempered(1.0) is posterior


@EACH
@pytest.mark.parametrize("sampler", [HMC(), SGFS(structure="diag", alpha=2.0, batch_size=30)])
def test_a_temperature_divides_the_weights_of_rows(cls, sampler, data):
    model = cls(2, sampler=sampler, **SHORT)
    divided = model.fit(*data, sample_weight=np.full(120, 4.0)).draws_
    model = cls(2, sampler=sampler, temperature=0.25, **SHORT)
    np.testing.assert_array_equal(model.fit(*data).draws_, divided)
    assert model.diagnostics_["temperature"] == 0.25


@EACH
def test_the_default_is_cold_and_that_of_samplers_and_learned_priors_is_bayes(
    cls, data, of_two_units
):
    assert cls()._temperature() < 1
    for changes in (
        {"sampler": "sgfs"},
        {"prior_precision": VariationalEM()},
        {"temperature": 1.0},
    ):
        assert cls(**changes)._temperature() == 1
    model = of_two_units[cls]
    assert isinstance(model.sampler_, SGHMC)
    assert "steps without noise find" in model.sampler_reason_
    bayes = cls(2, temperature=1.0, **SHORT).fit(*data)
    assert isinstance(bayes.sampler_, HMC)


@EACH
@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"temperature": 0.0}, ValueError, "temperature must be"),
        ({"temperature": "cold"}, (ValueError, TypeError), "temperature must be"),
        ({"temperature": 0.5, "prior_precision": VariationalEM()}, ValueError, "must be 1 where"),
    ],
)
def test_impossible_temperatures_leave_the_estimator_as_it_was(
    cls, changes, error, match, data, of_two_units
):
    model = copy.copy(of_two_units[cls])
    before = dict(vars(model))
    model.set_params(**changes)
    with pytest.raises(error, match=match):
        model.fit(*data)
    after = vars(model)
    assert {name for name in before if after[name] is not before[name]} <= set(changes)


def test_a_stream_is_at_temperature_one_unless_a_number_says_otherwise(data):
    X, y = data
    models = [
        BayesianMLPClassifier((2,), temperature=temperature, **SHORT).partial_fit(
            X, y, classes=[0, 1, 2], n_total=120
        )
        for temperature in (None, 1.0, 0.2)
    ]
    np.testing.assert_array_equal(models[0].draws_, models[1].draws_)
    assert not np.array_equal(models[0].draws_, models[2].draws_)


def test_chains_in_modes_average_to_more_than_each_and_pass_their_own_diagnostics(seed):
    X, y = load_digits(return_X_y=True)
    train, test, a, b = train_test_split(X / 16, y, random_state=seed, train_size=400)
    model = BayesianMLPClassifier((20,), n_chains=4, n_draws=8, random_state=seed)
    with warnings.catch_warnings(action="error"):
        model.fit(train, a)
    each = model.predict_draws(test, kind="mean").reshape(4, 8, len(test), 10)
    of_chain = [log_loss(b, p) for p in each.mean(axis=1)]
    assert log_loss(b, model.predict_proba(test)) < min(of_chain)
    assert model.diagnostics_["prediction_error"] < 0.02


def warnings_of(figures):
    """Of averages that are better than the shares of the classes."""
    good = {"prediction_gain": 1.0, "temperature": 0.05}
    return judgements.of_averages(good | figures, "remedy")


@pytest.mark.parametrize("shape", [(1, 8, 5), (2, 1, 5)], ids=["one chain", "one draw"])
def test_averages_whose_error_is_not_known_are_reported(shape):
    figures = agreement.of_predictions(np.random.default_rng(0).uniform(0, 0.01, shape), None)
    assert np.isnan(figures["prediction_drift"])
    (warning,) = warnings_of(figures)
    assert "raise n_chains or n_draws" in warning
    known = agreement.of_predictions(np.empty((2, 8, 0)), None)  # no probability varies
    assert warnings_of(known) == []


def test_averages_that_depend_on_the_chains_are_reported():
    p = np.zeros((2, 8, 5)) + np.array([0.1, 0.9])[:, None, None]
    figures = agreement.of_predictions(p, None)
    np.testing.assert_allclose(figures["prediction_error"], 0.4)
    assert figures["prediction_drift"] == 0
    (warning,) = warnings_of(figures)
    assert "raise n_chains" in warning
    assert warnings_of(figures | {"prediction_error": 0.01}) == []


def test_averages_that_still_move_are_reported(seed):
    rng = np.random.default_rng(seed)
    apart = rng.uniform(0.45, 0.55, (8, 1, 300)) + 0.02 * rng.standard_normal((8, 20, 300))
    still = agreement.of_predictions(apart, None)
    moving = agreement.of_predictions(apart + np.linspace(0, 0.1, 20)[:, None], None)
    error = 0.02 / np.sqrt(20 * 8)  # of an average against that of a half, by chance
    change = 0.1 * 5 / 19
    np.testing.assert_allclose(moving["prediction_drift"], change, atol=5 * error / 300**0.5)
    (warning,) = warnings_of(moving)
    assert "raise burn_in" in warning
    # the excess of 300 squares over their mean has 300^-1/2 (2 + 2/7)^1/2 of it as standard error
    assert still["prediction_drift"] ** 2 < 5 * error**2 * ((2 + 2 / 7) / 300) ** 0.5
    assert warnings_of(still) == []


def test_a_cold_fit_without_burn_in_warns_by_drift_and_one_with_it_does_not(seed):
    X, y = load_digits(return_X_y=True)
    found = []
    for burn_in in (1, 500):
        model = BayesianMLPClassifier(
            (10,), sampler="sghmc", temperature=0.05, burn_in=burn_in, n_draws=10, thin=10
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.set_params(random_state=seed).fit(X[:400] / 16, y[:400])
        found.append([str(warning.message) for warning in caught])
        assert model.diagnostics_["prediction_error"] < 0.02  # which sees nothing of it
    assert found[1] == []
    (warning,) = found[0]
    assert "raise burn_in" in warning
