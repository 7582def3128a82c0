"""Average effects and contrasts: formulas, units before a Pipeline, columns of words, errors."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbayes_sg import (
    BayesianLinearRegressionSGFS,
    BayesianLogisticRegressionSGFS,
    BayesianMLPClassifier,
)
from skbayes_sg.inspection import average_effects, contrast

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = {"n_chains": 4, "n_draws": 25, "burn_in": 20, "random_state": 0}
RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 3)) * [1, 5, 0.1] + [0, 20, 1]
Z = (X[:, 0] - 0.3 * X[:, 1] + 6) / 2
Y = RNG.logistic(size=200) < Z
FRAME = pd.DataFrame(X, columns=["age", "income", "debt"])
FRAME["town"] = RNG.choice(["Ghent", "Antwerp", "Bruges"], 200)
FRAME["owner"] = RNG.integers(0, 2, 200)


@pytest.fixture(scope="module")
def binary():
    return BayesianLogisticRegressionSGFS(**SHORT).fit(X, Y)


@pytest.fixture(scope="module")
def pipeline():
    columns = make_column_transformer(
        (StandardScaler(), ["age", "income", "debt"]),
        (OneHotEncoder(sparse_output=False), ["town"]),
        ("passthrough", ["owner"]),
    )
    model = BayesianLogisticRegressionSGFS(**SHORT)
    return make_pipeline(columns, model).fit(FRAME, Y)


def test_derivatives_are_those_of_the_logistic_function(binary):
    p = binary.predict_proba_draws(X)[..., 1]
    expected = (p * (1 - p)).mean(axis=1)[:, None] * binary.coef_samples_.reshape(-1, 3)
    table = average_effects(binary, X)
    assert table.index.tolist() == ["x0", "x1", "x2"]
    np.testing.assert_allclose(table["mean"], expected.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(table["sd"], expected.std(axis=0), rtol=1e-4)
    low = np.quantile(expected, 0.025, axis=0)
    np.testing.assert_allclose(table["eti95_lb"], low, rtol=1e-4)
    weights = RNG.random(200)
    weighted = average_effects(binary, X, [1], sample_weight=weights)["mean"].item()
    each = (
        np.average(p * (1 - p), axis=1, weights=weights) * binary.coef_samples_[..., 0, 1].ravel()
    )
    assert weighted == pytest.approx(each.mean(), rel=1e-5)


def test_of_a_regression_they_are_its_coefficients():
    model = make_pipeline(StandardScaler(), BayesianLinearRegressionSGFS(**SHORT)).fit(X, Z)
    table, expected = average_effects(model, X), model[-1].summary(scaler=model[0])
    for column in ("mean", "sd", "eti95_lb", "eti95_ub"):
        np.testing.assert_allclose(table[column], expected[column][:3], rtol=1e-6, atol=1e-9)


def test_of_classes_they_sum_to_nothing():
    labels = np.digitize(Z, [-1, 1])
    model = BayesianMLPClassifier((4,), sampler="hmc", **SHORT).fit(X, labels)
    table = average_effects(model, X, [0])
    assert table.index.tolist() == [("x0", "0"), ("x0", "1"), ("x0", "2")]
    assert abs(table["mean"].sum()) < 1e-9
    step = np.array([1e-3, 0, 0])
    p = [model.predict_proba(rows).mean(axis=0) for rows in (X + step, X - step)]
    np.testing.assert_allclose(table["mean"], (p[0] - p[1]) / 2e-3, rtol=1e-4, atol=1e-8)


def test_differences_are_in_the_units_that_a_pipeline_is_given(pipeline):
    table = average_effects(pipeline, FRAME, kind="difference")
    names = ["age", "income", "debt", "town[Bruges]", "town[Ghent]", "owner"]
    assert table.index.tolist() == names

    def mean(**values):
        return pipeline.predict_proba(FRAME.assign(**values))[:, 1].mean()

    expected = [
        mean(age=FRAME["age"] + 1) - mean(),
        mean(income=FRAME["income"] + 1) - mean(),
        mean(debt=FRAME["debt"] + 1) - mean(),
        mean(town="Bruges") - mean(town="Antwerp"),
        mean(town="Ghent") - mean(town="Antwerp"),
        mean(owner=1) - mean(owner=0),
    ]
    np.testing.assert_allclose(table["mean"], expected, rtol=1e-6, atol=1e-9)
    assert average_effects(pipeline, FRAME).index.tolist() == ["age", "income", "debt", "owner"]


def test_contrasts_are_of_averages_under_each_draw(pipeline):
    poor, rich = FRAME.assign(income=15.0), FRAME.assign(income=25.0)
    draws = [
        pipeline[-1].predict_proba_draws(pipeline[:-1].transform(rows))[..., 1].mean(axis=1)
        for rows in (rich, poor)
    ]
    difference, ratio = (contrast(pipeline, rich, poor, kind=k) for k in ("difference", "ratio"))
    assert difference["mean"].item() == pytest.approx((draws[0] - draws[1]).mean())
    assert ratio["mean"].item() == pytest.approx((draws[0] / draws[1]).mean())
    assert ratio["eti95_ub"].item() == pytest.approx(np.quantile(draws[0] / draws[1], 0.975))
    assert difference.index.tolist() == ["difference"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": ["wealth"]}, "X has no column 'wealth'"),
        ({"features": ["town"]}, "'town' holds words"),
        ({"kind": "slope"}, "kind must be"),
        ({"level": 1.5}, "level"),
        ({"sample_weight": -np.ones(200)}, "[Nn]egative"),
    ],
)
def test_errors_say_what_to_do(pipeline, arguments, message):
    with pytest.raises(ValueError, match=message):
        average_effects(pipeline, FRAME, **arguments)
