"""BayesianMLPRegressor: its noise, its predictions, their units, and what it refuses."""

import pickle

import numpy as np
import pytest
from scipy.special import logsumexp, ndtr
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning

from skbayes_sg import BayesianMLPRegressor, VariationalEM
from skbayes_sg.inspection import average_effects, prediction_summary
from skbayes_sg.samplers import SGHMC, UnderdampedLangevin

SHORT = {"n_chains": 2, "n_draws": 10, "burn_in": 20, "thin": 1, "random_state": 0}
CERTAIN = 5.0  # Monte Carlo errors
pytestmark = [
    pytest.mark.usefixtures("_short_searches"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@pytest.fixture(scope="module")
def data():
    """Two responses of noise variances .04 and 1."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (300, 2))
    mean = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] ** 2])
    return X, mean + rng.standard_normal((300, 2)) * [0.2, 1.0]


@pytest.fixture(scope="module")
def fitted(data):
    X, y = data
    return BayesianMLPRegressor((8,), "tanh", burn_in=800, random_state=0).fit(X, y)


# -- the posterior ----------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [1.0, 0.25])
@pytest.mark.quick("1.0")
def test_noise_about_a_known_mean_has_the_posterior_of_quadrature(temperature, seed):
    """A prior without room holds the network at 0, so that y itself is noise."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    run = {"n_chains": 8, "n_draws": 250, "burn_in": 200, "thin": 3, "random_state": seed}
    model = BayesianMLPRegressor(
        1, sampler="hmc", prior_precision=1e10, temperature=temperature, **run
    )
    draws = np.log(model.fit(X, y).noise_variance_samples_ / y.var())
    a = np.linspace(-4, 4, 4001)
    log_density = -0.5 * 30 / temperature * (a + np.exp(-a)) - 0.5 * (a / 3) ** 2
    p = np.exp(log_density - logsumexp(log_density))
    mean = p @ a
    sd = np.sqrt(p @ (a - mean) ** 2)
    by_chain = draws.mean(axis=1)
    error = max(by_chain.std(ddof=1), sd / np.sqrt(250)) / np.sqrt(8)
    assert abs(by_chain.mean() - mean) < CERTAIN * error
    assert abs(draws.std() / sd - 1) < CERTAIN / np.sqrt(2 * (sd / error) ** 2)


@pytest.mark.slow
def test_the_default_agrees_with_a_long_run_of_hmc(seed):
    """On a network so small that chains visit all that matters of its posterior."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (40, 1))
    y = X[:, 0] + 0.5 * rng.standard_normal(40)
    default = BayesianMLPRegressor(1, "tanh", prior_precision=1.0, random_state=seed)
    long = clone(default).set_params(
        sampler="hmc", n_chains=8, n_draws=150, burn_in=300, thin=3, random_state=seed + 1
    )
    found = []
    for model in (default, long):
        model.fit(X, y)
        outputs = model.model_.outputs(model.draws_.reshape(-1, model.draws_.shape[2]), X[:6])
        each = np.column_stack([outputs[:, 0], outputs[:, 1, 0]])
        found.append(each.reshape(8, -1, 7).mean(axis=1))
    errors = [means.var(axis=0, ddof=1) / 8 for means in found]
    difference = np.subtract(*[means.mean(axis=0) for means in found])
    assert (np.abs(difference) < CERTAIN * np.sqrt(sum(errors))).all()


def test_noise_and_mean_of_each_response_are_recovered(fitted, data):
    X, y = data
    assert fitted.noise_variance_.shape == (2,)
    assert fitted.noise_variance_samples_.shape == (8, 20, 2)
    error = np.sqrt(2 / 300)  # of a variance from as many rows, relative
    np.testing.assert_allclose(fitted.noise_variance_ / [0.04, 1.0], 1, atol=CERTAIN * error)
    assert fitted.score(X, y) > 0.7
    assert isinstance(fitted.sampler_, SGHMC)
    assert fitted.sampler_reason_.startswith("many modes that are sampled shortly predict best")
    assert fitted.diagnostics_["temperature"] == 1
    assert fitted.diagnostics_["prediction_gain"] > 0.5


# -- predictions ------------------------------------------------------------------------------


def test_predictions_are_those_of_the_mixture_over_draws(fitted, data):
    X, y = data[0][:9], data[1][:9]
    mean, sd = fitted.predict(X, return_std=True)
    ends = fitted.predict_interval(X, level=0.8)
    assert mean.shape == sd.shape == (9, 2)
    assert ends.shape == (9, 2, 2)
    draws = fitted.draws_.reshape(-1, fitted.draws_.shape[2]).astype(np.float64)
    f = fitted.model_.predict(draws, X).transpose(0, 2, 1)
    noise = fitted.noise_variance_samples_.reshape(-1, 1, 2)
    np.testing.assert_allclose(mean, f.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(sd**2, f.var(axis=0) + noise.mean(axis=0), rtol=1e-5)
    for side, q in enumerate((0.1, 0.9)):
        below = ndtr((ends[..., side] - f) / np.sqrt(noise)).mean(axis=0)
        np.testing.assert_allclose(below, q, atol=2.5e-4)  # a fourth of a thousandth
    np.testing.assert_array_equal(fitted.predict(X), mean)
    density = fitted.model_.log_likelihood(draws, X, fitted.model_.encode(y, X.dtype))
    by_hand = norm.logpdf(y, f, np.sqrt(noise)).sum(axis=2)
    np.testing.assert_allclose(density, by_hand, rtol=1e-4, atol=1e-4)


def test_one_column_is_a_vector(data):
    X, y = data
    one = BayesianMLPRegressor(2, **SHORT).fit(X, y[:, 0])
    assert isinstance(one.noise_variance_, float)
    assert one.predict(X).shape == (300,)
    assert one.predict_interval(X).shape == (300, 2)
    with pytest.warns(DataConversionWarning):
        same = clone(one).fit(X, y[:, :1])
    np.testing.assert_array_equal(same.draws_, one.draws_)


def test_predictions_are_in_the_unit_of_y(data):
    X, y = data
    model = BayesianMLPRegressor(2, **SHORT)
    one, other = clone(model).fit(X, y), clone(model).fit(X, 1024 * y)
    np.testing.assert_array_equal(one.draws_, other.draws_)
    for a, b in zip(one.predict(X, True), other.predict(X, True), strict=True):
        np.testing.assert_allclose(1024 * a, b)
    np.testing.assert_allclose(1024 * one.predict_interval(X[:5]), other.predict_interval(X[:5]))
    np.testing.assert_allclose(2**20 * one.noise_variance_, other.noise_variance_)
    wide = clone(model).fit(8 * X, y)
    ratio = np.unique(wide.prior_precision_ / one.prior_precision_)
    np.testing.assert_allclose(ratio, [1, 64])


def test_a_large_mean_of_y_loses_no_digits_in_single_precision(data):
    X, y = data[0].astype(np.float32), data[1][:, 0]
    near, far = (BayesianMLPRegressor(2, **SHORT).fit(X, y + shift) for shift in (0, 2**24))
    np.testing.assert_allclose(far.predict(X) - 2**24, near.predict(X), atol=1e-4)


def test_a_constant_y_is_predicted():
    X = np.random.default_rng(0).standard_normal((50, 2))
    model = BayesianMLPRegressor(2, burn_in=500, thin=20, random_state=0).fit(X, np.full(50, 0.1))
    mean, sd = model.predict(X, return_std=True)
    assert np.abs(mean - 0.1).max() < 0.5
    assert (sd < 1).all()


def test_figures_of_held_out_rows_and_a_table_of_the_network_alone(fitted, data):
    assert fitted.diagnose(data[0][::10])["prediction_error"] < 0.1
    table = fitted.summary()
    assert list(table.index) == ["coef_0", "intercept_0", "coef_1", "intercept_1"]
    twin = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(twin.predict(data[0]), fitted.predict(data[0]))


def test_tables_and_exports_tell_responses_apart(fitted, data):
    X, y = data[0][:20], data[1][:20]
    effects = average_effects(fitted, X)
    assert effects.index.tolist() == [("x0", 0), ("x0", 1), ("x1", 0), ("x1", 1)]
    rows = prediction_summary(fitted, X[:2], level=0.5)
    assert rows.index.tolist() == [(0, 0), (0, 1), (1, 0), (1, 1)]
    ends = fitted.predict_interval(X[:2], level=0.5).reshape(4, 2)
    np.testing.assert_array_equal(rows[["obs_eti50_lb", "obs_eti50_ub"]], ends)
    pytest.importorskip("arviz_base")
    tree = fitted.to_arviz(X, y, log_likelihood=True, posterior_predictive=True)
    assert tree["posterior_predictive"]["y"].shape == (8, 20, 20, 2)
    assert tree["log_likelihood"]["y"].shape == (8, 20, 20)
    assert tree["posterior"]["log_noise"].dims == ("chain", "draw", "response")


# -- streams ----------------------------------------------------------------------------------


def test_a_stream_keeps_the_units_of_its_first_chunk(data):
    X, y = data
    model = BayesianMLPRegressor(3, n_draws=20, burn_in=50, thin=1, random_state=0)
    rng, scales = np.random.default_rng(0), []
    for _ in range(80):
        rows = rng.choice(300, 50)
        model.partial_fit(X[rows], y[rows], n_total=300)
        scales.append(model.model_.scale)
    assert len(np.unique(scales, axis=0)) == 1
    assert model.draws_.shape == (1, 20, model.model_.dim)
    assert model.diagnostics_["temperature"] == 1
    with pytest.raises(ValueError, match=r"y has 1 column\(s\), but BayesianMLPRegressor was"):
        model.partial_fit(X, y[:, 0], n_total=300)


# -- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"hidden_layer_sizes": (0,)}, ValueError, "hidden_layer_sizes must be at least 1"),
        ({"hidden_layer_sizes": ()}, ValueError, "BayesianLinearRegression"),
        ({"activation": "sine"}, ValueError, "activation must be one of"),
        ({"prior_precision": [1.0, 2.0, 3.0]}, ValueError, "one number or 2, for coef_0\\+interc"),
        ({"prior_precision": VariationalEM(per="class")}, ValueError, "needs classes"),
        ({"temperature": 0.0}, ValueError, "temperature must be positive"),
        ({"sampler": UnderdampedLangevin()}, ValueError, "use sampler=.hmc"),
    ],
)
def test_bad_parameters_are_named(data, parameters, error, message):
    with pytest.raises(error, match=message):
        BayesianMLPRegressor(**SHORT | parameters).fit(*data)


@pytest.mark.parametrize("scale", [1e-300, 1e-160])
def test_a_response_whose_squares_underflow_is_named(data, scale):
    X, y = data
    for of_one in (y * [1, scale], y[:, 1] * scale):
        with pytest.raises(ValueError, match=r"y holds numbers .* divide y by its scale"):
            BayesianMLPRegressor(**SHORT).fit(X, of_one)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.full((300, 2), np.nan), "NaN"),
        (np.full(300, "a"), "y must hold real numbers"),
        (np.zeros((300, 2, 2)), "Found array with dim 3"),
        (np.full((300, 2), 1e200), "y holds values whose squares overflow"),
        (np.zeros(20), "inconsistent numbers of samples"),
    ],
)
def test_bad_responses_are_named(data, y, message):
    with pytest.raises(ValueError, match=message):
        BayesianMLPRegressor(**SHORT).fit(data[0], y)
