"""float32 rows give float32 predictions, unless y lies where float32 has no numbers."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
    DRBMClassifier,
)

pytestmark = [
    pytest.mark.usefixtures("_short_searches"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SHORT = {"n_chains": 2, "n_draws": 25, "burn_in": 20, "random_state": 0}
RNG = np.random.default_rng(8)
SINGLE = RNG.standard_normal((90, 3)).astype(np.float32)
Z = SINGLE.astype(np.float64) @ [1, -0.5, 0] + RNG.standard_normal(90)
COUNTS = RNG.poisson(np.exp(0.5 * Z))
MODELS = {
    BayesianLogisticRegression: Z > 0,
    BayesianOrdinalClassifier: np.digitize(Z, [-1, 1]),
    BayesianMLPClassifier: np.digitize(Z, [-1, 1]),
    DRBMClassifier: Z > 0,
    BayesianLinearRegression: Z,
    BayesianRobustRegressor: Z,
    BayesianMLPRegressor: Z,
    BayesianPoissonRegressor: COUNTS,
    BayesianNegativeBinomialRegressor: COUNTS,
    BayesianGammaRegressor: np.exp(Z),
}
METHODS = (
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "predict_interval",
    "predict_uncertainty",
)
OF_NUMBERS = {  # of regressions
    "draws": ("predict_draws", {}),
    "interval of the mean": ("predict_interval", {"kind": "mean"}),
    "median": ("predict_quantiles", {"levels": 0.5}),
    "quantiles": ("predict_quantiles", {"levels": [0.1, 0.5]}),
    "quantile of the mean": ("predict_quantiles", {"levels": [0.1], "kind": "mean"}),
}


@cache
def fitted(kind, n_draws=25):
    """To single precision; tests only read it."""
    return kind(**SHORT | {"n_draws": n_draws}).fit(SINGLE, MODELS[kind])


def answers(model, X, **known):
    """Arrays of floats that the model predicts, by name."""
    found = {name: getattr(model, name)(X, **known) for name in METHODS if hasattr(model, name)}
    found["draws of means"] = model.predict_draws(X, "mean", **known)
    for name, value in found.pop("predict_uncertainty", {}).items():
        found[name] = value
    if not hasattr(model, "classes_"):
        found["mean"], found["sd"] = model.predict(X, return_std=True, **known)
        found["predict"] = model.predict(X, **known)
        for name, (method, options) in OF_NUMBERS.items():
            found[name] = getattr(model, method)(X, **options, **known)
    return found


@pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
@pytest.mark.quick(
    "BayesianLogisticRegression",
    "BayesianMLPClassifier",
    "BayesianLinearRegression",
    "BayesianPoissonRegressor",
    "BayesianGammaRegressor",
)
def test_predictions_are_in_the_precision_of_the_rows(kind):
    model = fitted(kind)
    double = answers(model, SINGLE.astype(np.float64))
    frame = pd.DataFrame(SINGLE)
    assert len(double) >= 4
    assert all(one.dtype == np.float64 for one in double.values())
    for rows in (SINGLE, sparse.csr_array(SINGLE), frame):
        single = answers(model, rows)
        for name, expected in double.items():
            assert single[name].dtype == np.float32, name
            np.testing.assert_allclose(single[name], expected, rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
@pytest.mark.quick(
    "BayesianLogisticRegression",
    "BayesianMLPClassifier",
    "BayesianLinearRegression",
    "BayesianPoissonRegressor",
    "BayesianGammaRegressor",
)
def test_offsets_leave_the_precision_of_the_rows(kind):
    offset = 0.1 * Z
    if kind is BayesianMLPClassifier:  # of three classes
        offset = np.column_stack([offset, -offset, offset])
    model = kind(**SHORT | {"n_draws": 10}).fit(SINGLE, MODELS[kind], offset=offset)
    double = answers(model, SINGLE.astype(np.float64), offset=offset)
    for name, single in answers(model, SINGLE, offset=offset).items():
        assert single.dtype == np.float32, name
        np.testing.assert_allclose(single, double[name], rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize(
    "kind", [BayesianLinearRegression, BayesianRobustRegressor, BayesianMLPRegressor]
)
@pytest.mark.quick("BayesianLinearRegression", "BayesianMLPRegressor")
def test_offsets_far_from_zero_keep_their_digits(kind):
    """Steps of float32 at 4e9 are 256."""
    offset = 4e9 + 100 * Z
    model = kind(**SHORT | {"n_draws": 10}).fit(SINGLE, Z + offset, offset=offset)
    for rows in (SINGLE, SINGLE.astype(np.float64)):
        found = model.predict(rows, offset=offset)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found - offset, model.predict(rows, offset=0), atol=1e-4)


def test_counts_that_float32_does_not_have_stay_double():
    """Steps of float32 at 1e13 are a third of a standard deviation."""
    counts = RNG.poisson(np.exp(30 + 0.01 * Z))
    model = BayesianPoissonRegressor(**SHORT | {"n_draws": 4, "burn_in": 4}).fit(SINGLE, counts)
    assert model.predict_draws(SINGLE).dtype == np.float64


def test_no_probability_is_rounded_to_zero():
    model = BayesianLogisticRegression(prior_precision=1.0, **SHORT).fit(SINGLE, Z > 0)
    far = np.array([[300, -150, 0], [-300, 150, 0]], dtype=np.float32)
    assert (model.predict_proba(far) > 0).all()
    assert np.isfinite(model.predict_log_proba(far)).all()


@pytest.mark.parametrize("kind", [BayesianLinearRegression, BayesianRobustRegressor])
@pytest.mark.quick("BayesianLinearRegression")
def test_predictions_far_from_zero_stay_double(kind):
    """Steps of float32 at 4e9 are 256."""
    y = 4e9 + 50 * Z
    model = kind(**SHORT).fit(SINGLE.astype(np.float64), y)
    double = answers(model, SINGLE.astype(np.float64))
    single = answers(model, SINGLE)
    width = np.diff(double["predict_interval"])
    for name in ("mean", "predict", "predict_interval"):
        assert single[name].dtype == np.float64
        assert np.abs(single[name] - double[name]).max() < 0.01 * width.min()
    np.testing.assert_allclose(np.diff(single["predict_interval"]), width, rtol=0.01)


@pytest.mark.parametrize(
    "kind", [BayesianPoissonRegressor, BayesianNegativeBinomialRegressor, BayesianGammaRegressor]
)
@pytest.mark.quick("BayesianPoissonRegressor", "BayesianGammaRegressor")
def test_predictions_that_overflow_are_infinite_and_say_so(kind):
    model = fitted(kind)
    slope = np.median(model.coef_samples_[..., 0])
    rows = np.array([[0.0, 0, 0], [710 / slope, 0, 0], [1e6, 0, 0], [-1e6, 0, 0]])
    infinite = [False, True, True, bool((model.coef_samples_[..., 0] < 0).any())]
    said = rf"predictions of {sum(infinite)} row\(s\) of X are infinite"
    with pytest.warns(RuntimeWarning, match=said):
        mean = model.predict(rows)
    np.testing.assert_array_equal(np.isinf(mean), infinite)
    with pytest.warns(RuntimeWarning, match="infinite"):
        assert np.isinf(model.predict(rows, return_std=True)[1][1:3]).all()
    with pytest.warns(RuntimeWarning, match="infinite"):
        ends = model.predict_interval(rows, 0.8)
    np.testing.assert_array_equal(ends[2], [np.inf, np.inf])
    assert ends[3].max() < 1e-300
    # quantiles over draws: those of eta are beside those of log y, which is as good as known
    eta = 710 / slope * model.coef_samples_[..., 0] + model.intercept_samples_
    assert 0 < ends[1, 0] < np.inf
    if kind is BayesianPoissonRegressor:
        low = np.quantile(eta, [0.08, 0.12])
        assert low[0] < np.log(ends[1, 0]) < low[1]
    with warnings.catch_warnings(action="error"):
        np.testing.assert_allclose(model.predict_interval(rows[:1], 0.8), ends[:1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "kind", [kind for kind in MODELS if hasattr(kind, "predict_proba")], ids=lambda k: k.__name__
)
@pytest.mark.quick("float32")
def test_probabilities_of_certain_rows_are_at_most_one(kind, dtype):
    """Averages over draws of ones, whose weights sum to 1 but for rounding."""
    for n_draws in (7, 25):
        model = fitted(kind, n_draws)
        far = (SINGLE * np.geomspace(1, 1e4, 90)[:, None]).astype(dtype)
        found = answers(model, far)
        for name in ("predict_proba", "draws of means", "predict_interval"):
            assert found[name].min() >= 0
            assert found[name].max() <= 1
        assert found["predict_log_proba"].max() <= 0
        for name in ("total", "aleatoric", "epistemic"):
            assert found[name].min() >= 0
