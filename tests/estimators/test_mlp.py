"""BayesianMLPClassifier: what it predicts, what it says of itself, and what it refuses."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from skbayes_sg import BayesianMLPClassifier
from skbayes_sg.chains.tuning import stable_start
from skbayes_sg.inference import many_modes
from skbayes_sg.models import MLP
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import HMC, SGFS, SGLD, UnderdampedLangevin

SHORT = {"n_chains": 2, "n_draws": 10, "burn_in": 20, "thin": 1, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def fitted(iris):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return BayesianMLPClassifier((6,), n_chains=3, random_state=0).fit(*iris)


# -- the model --------------------------------------------------------------------------------


def test_dimensions_groups_and_units():
    model = MLP(20, 10, (30,))
    assert model.dim == 940
    assert MLP(784, 10, (100,)).dim == 79_510
    assert model.groups == [["coef_0", "intercept_0"], ["coef_1", "intercept_1"]]
    assert [len(unit) for unit in model.units()] == [21] * 30 + [31] * 10


@pytest.mark.parametrize(
    ("activation", "function"),
    [("logistic", expit), ("tanh", np.tanh), ("relu", lambda z: z * (z > 0))],
)
def test_probabilities_are_those_of_the_network(activation, function):
    rng = np.random.default_rng(0)
    model = MLP(3, 4, (5, 2), activation)
    theta, X = rng.standard_normal((2, model.dim)), rng.standard_normal((7, 3))
    for c, p in enumerate(model.predict(theta, X)):
        b = {name: block[c] for name, block in model.unpack(theta).items()}
        h = function(X @ b["coef_0"].T + b["intercept_0"])
        h = function(h @ b["coef_1"].T + b["intercept_1"])
        np.testing.assert_allclose(p, softmax(h @ b["coef_2"].T + b["intercept_2"], axis=1).T)


def test_relu_scores_are_the_gradient_away_from_the_kinks():
    rng = np.random.default_rng(1)
    model = MLP(3, 3, (4,), "relu")
    theta, X, y = rng.standard_normal((1, model.dim)), rng.standard_normal((6, 3)), np.arange(6) % 3
    steps = 1e-6 * np.eye(model.dim)
    difference = (
        model.log_likelihood(theta + steps, X, y) - model.log_likelihood(theta - steps, X, y)
    ) / 2e-6
    np.testing.assert_allclose(model.scores(theta, X, y).rows(), difference.T, atol=1e-8)


def test_the_reference_prior_does_not_depend_on_the_unit_of_the_inputs():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), np.arange(40) % 2
    fits = [BayesianMLPClassifier((2,), **SHORT).fit(c * X, y) for c in (1.0, 8.0)]
    first = [fit.model_.unpack(fit.prior_precision_[None])["coef_0"][0, 0, 0] for fit in fits]
    assert first[1] == pytest.approx(64 * first[0])
    rest = [fit.prior_precision_[6:] for fit in fits]
    np.testing.assert_array_equal(*rest)


# -- predictions and warnings ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_rows", "accuracy", "loss"),
    [
        pytest.param(100, 0.85, 0.5, marks=pytest.mark.slow),
        pytest.param(350, 0.94, 0.25, marks=pytest.mark.slow),
        pytest.param(1347, 0.97, 0.118, marks=pytest.mark.slow),
    ],
)
def test_digits_at_temperature_one(n_rows, accuracy, loss):
    X, y = load_digits(return_X_y=True)
    train, test, a, b = train_test_split(X, y, train_size=n_rows, random_state=0)
    model = BayesianMLPClassifier(temperature=1.0, random_state=0).fit(train, a)
    assert model.score(test, b) >= accuracy
    assert log_loss(b, model.predict_proba(test)) <= loss
    assert model.draws_.dtype == np.float32
    assert model.draws_.shape == (4, 50, 2260)
    assert isinstance(model.sampler_, HMC)
    assert f"{n_rows} rows costs {n_rows * 2260:.1e} products" in model.sampler_reason_


def test_figures_are_of_predictions_and_the_log_posterior(fitted, iris):
    found = fitted.diagnostics_
    assert {
        "r_hat_max",
        "ess_min",
        "ess_tail_min",
        "between_chains",
        "stein_ratio",
        "prediction_error",
        "prediction_drift",
        "temperature",
    } <= set(found)
    assert 0 <= found["between_chains"] < 0.5
    assert found["r_hat_max"] >= 1
    of_rows = fitted.diagnose(iris[0][::10])
    assert set(of_rows) == {
        "r_hat_max",
        "ess_min",
        "ess_tail_min",
        "between_chains",
        "prediction_error",
        "prediction_drift",
    }
    assert of_rows["ess_min"] > 1


def test_hidden_units_that_change_places_change_no_figure(fitted, iris):
    """The figures are functions of what is predicted."""
    swapped = pickle.loads(pickle.dumps(fitted))
    blocks = swapped.model_.unpack(swapped.draws_)
    order = np.random.default_rng(0).permutation(6)
    blocks["coef_0"][0], blocks["intercept_0"][0] = (
        blocks["coef_0"][0][:, order],
        blocks["intercept_0"][0][:, order],
    )
    blocks["coef_1"][0] = blocks["coef_1"][0][..., order]
    assert np.abs(swapped.draws_ - fitted.draws_).max() > 0.1
    before, after = (model.diagnose(iris[0]) for model in (fitted, swapped))
    assert after == pytest.approx(before, rel=1e-3)


def test_chains_in_different_modes_are_told(iris):
    """Draws that stay at a point each: all variance lies between the chains."""
    model = BayesianMLPClassifier((3,), sampler=SGLD(step_size=1e-12), **SHORT)
    with pytest.warns(ConvergenceWarning, match="sit in different modes"):
        model.fit(*iris)
    assert model.diagnostics_["between_chains"] > 0.99


def test_chains_that_are_still_on_their_way_are_told(iris):
    """Slow chains from four random points: less than half of the variance lies between them."""
    sampler = SGLD(step_size=2e-4, batch_size=50)
    model = BayesianMLPClassifier(
        (3,), sampler=sampler, n_draws=40, burn_in=100, thin=20, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="prediction_drift is .*the chains still move"):
        model.fit(*iris)
    assert model.diagnostics_["between_chains"] < 0.5


def test_probabilities_that_are_known_have_no_r_hat(iris):
    """Under a prior that leaves nothing open."""
    model = BayesianMLPClassifier((3,), prior_precision=1e8, **SHORT).fit(*iris)
    found = model.diagnose(iris[0])
    for name in ("between_chains", "prediction_error", "prediction_drift"):
        assert found.pop(name) == 0.0
    assert np.isnan(list(found.values())).all()


def test_uncertainty_adds_up_and_its_monte_carlo_error_is_that_of_means(fitted, iris):
    X, _ = iris
    found = fitted.predict_uncertainty(X)
    np.testing.assert_allclose(found.total, found.aleatoric + found.epistemic)
    assert (found.epistemic > -1e-9).all()
    draws = fitted.predict_draws(X, kind="mean")
    naive = draws.std(axis=0) / np.sqrt(len(draws))
    assert (
        np.median(found.standard_error / np.maximum(naive, 1e-9)) > 1
    )  # draws of a chain are alike
    assert found.standard_error.shape == (150, 3)


def test_fewer_draws_predict_nearly_as_well(fitted, iris):
    X, _ = iris
    all_draws = fitted.predict_proba(X)
    few = clone(fitted).set_params(n_predict_draws=30)
    few.__dict__.update({name: value for name, value in vars(fitted).items() if name.endswith("_")})
    few._fit = fitted._fit
    assert few.predict_draws(X, kind="mean").shape == (30, 150, 3)
    assert np.abs(few.predict_proba(X) - all_draws).max() <= 6 * 0.5 / np.sqrt(30)
    with pytest.raises(ValueError, match="n_predict_draws must be at least 1"):
        few.set_params(n_predict_draws=0).predict_proba(X)


def test_a_stream(iris):
    X, y = iris
    model = BayesianMLPClassifier((3,), n_draws=20, burn_in=50, thin=1, random_state=0)
    rng = np.random.default_rng(0)
    for _ in range(100):
        rows = rng.choice(150, 50)
        model.partial_fit(X[rows], y[rows], classes=[0, 1, 2], n_total=150)
    assert model.score(X, y) > 0.85
    assert model.draws_.shape == (1, 20, model.model_.dim)


def test_a_stream_after_a_fit_begins_at_the_mean_of_weighted_draws(iris):
    X, y = iris
    still = SGLD(step_size=1e-13, batch_size=20)
    model = BayesianMLPClassifier((2,), sampler=still, **SHORT).fit(X, y)
    moved = model.draws_ + np.arange(10.0)[:, None]  # as if each had moved
    model._fit = replace(model._fit, draws=moved, weights=np.arange(10.0) / 45)
    mean = np.average(model.draws_, axis=1, weights=model.draw_weights_).mean(axis=0)
    model.partial_fit(X, y, n_total=150)
    np.testing.assert_allclose(model.draws_[0, -1], mean, atol=1e-3)


# -- alpha by the Stein ratio -----------------------------------------------------------------


@pytest.mark.slow
def test_alpha_is_chosen_by_the_stein_ratio(iris, monkeypatch):
    monkeypatch.setattr("skbayes_sg.chains.tuning._SETTLING", 60)
    monkeypatch.setattr("skbayes_sg.chains.tuning._STEPS", 50)
    model = BayesianMLPClassifier(
        (2,), sampler=SGFS(structure="diag", batch_size=30), **SHORT | {"n_draws": 20}
    )
    model.fit(*iris)
    assert 0 <= model.sampler_.alpha <= 30
    assert f"alpha={model.sampler_.alpha:g} by the Stein ratio" in model.sampler_reason_
    assert model.n_passes_ > 40 * 2 * 30 / 150  # the pilots count


def test_stable_alpha_settles(iris):
    X, y = iris
    model = MLP(4, 3, (5,))
    posterior = Posterior.of(model, X, y, 1.0)
    sampler = SGFS(structure="diag", alpha=3.0, batch_size=140)
    state = sampler.init(posterior, model.init(np.random.default_rng(0)), np.random.default_rng(0))
    alpha = stable_start(sampler, posterior, state).alpha
    assert (
        sampler.set_params(alpha=alpha)
        .init(posterior, state.theta, np.random.default_rng(0))
        .memory.radius
        < 1
    )


# -- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"hidden_layer_sizes": (0,)}, ValueError, "hidden_layer_sizes must be at least 1"),
        ({"hidden_layer_sizes": ()}, ValueError, "BayesianLogisticRegression"),
        ({"hidden_layer_sizes": (3, 2.5)}, TypeError, "hidden_layer_sizes must be an integer"),
        ({"activation": "sine"}, ValueError, "activation must be one of"),
        (
            {"prior_precision": [1.0, 2.0, 3.0]},
            ValueError,
            "one number or 2, for coef_0\\+intercept_0",
        ),
        ({"prior_precision": -1.0}, ValueError, "prior_precision must be positive"),
        (
            {"prior_precision": "flat"},
            ValueError,
            'prior_precision must be "scale", a VariationalEM or numbers',
        ),
        ({"n_draws": "many"}, TypeError, 'n_draws must be an integer or "auto"'),
        ({"n_predict_draws": 1.5}, TypeError, "n_predict_draws must be an integer"),
        ({"sampler": UnderdampedLangevin()}, ValueError, "use sampler=.hmc"),
    ],
)
def test_bad_parameters_are_named(iris, parameters, error, message):
    with pytest.raises(error, match=message):
        BayesianMLPClassifier(**SHORT | parameters).fit(*iris)


def test_one_class_and_far_columns(iris):
    X, y = iris
    with pytest.raises(ValueError, match="one class only"):
        BayesianMLPClassifier(**SHORT).fit(X, np.zeros(150))
    frame = pd.DataFrame(X * [1, 1, 1e6, 1], columns=list("abcd"))
    with pytest.warns(ConvergenceWarning, match="column 'c' of X holds values up to"):
        BayesianMLPClassifier((3,), **SHORT).fit(frame, y)


def test_a_diverging_chain_raises(iris):
    model = BayesianMLPClassifier(
        (3,), sampler=SGLD(step_size=1e6), **SHORT | {"prior_precision": 1.0}
    )
    with pytest.raises(FloatingPointError, match="lower step_size"):
        model.fit(*iris)


class StoppedError(Exception):
    """Raised in place of the run that would fill the memory."""


WIDE = BayesianMLPClassifier(
    (2000,), sampler=SGLD(step_size=1e-9), burn_in=0, thin=1, random_state=0
)


def test_draws_that_fill_the_memory_are_announced(monkeypatch):
    def stop(message, *more):
        raise StoppedError(str(message))

    X, y = np.random.default_rng(0).standard_normal((20, 100)), np.arange(20) % 2
    assert (
        clone(WIDE).set_params(n_chains=2, n_draws=4).fit(X, y).draws_.nbytes == 2 * 4 * 204_001 * 4
    )
    monkeypatch.setattr(warnings, "showwarning", stop)
    warnings.simplefilter("always", UserWarning)
    with pytest.raises(
        StoppedError, match=r"2 chains of 700 draws of 204001 parameters take 1.1 GB"
    ):
        clone(WIDE).set_params(n_chains=2, n_draws=700).fit(X, y)


def test_draws_take_256_megabytes_by_default_at_most(monkeypatch):
    """However many more are drawn, as chains that hardly move never agree."""
    X, y = np.random.default_rng(0).standard_normal((20, 100)), np.arange(20) % 2
    model = clone(WIDE).set_params(hidden_layer_sizes=(20,))
    assert many_modes._DRAW_BYTES == 256 << 20
    monkeypatch.setattr(many_modes, "_DRAW_BYTES", 1 << 20)
    for n_chains in (2, 8):
        draws = clone(model).set_params(n_chains=n_chains).fit(X, y).draws_
        n_draws = (1 << 20) // draws[:, 0].nbytes
        assert draws.shape == (n_chains, n_draws, 20 * 101 + 21)
        assert (n_draws > many_modes._MOST_DRAWS) == (n_chains == 2)
