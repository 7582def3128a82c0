"""The table of predictions beside the draws that it sums up."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
)
from skbayes_sg.inspection import prediction_summary


def test_of_a_regression_it_has_the_interval_of_the_mean_and_of_an_observation():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X.index = [f"patient {i}" for i in range(len(X))]
    pipeline = make_pipeline(StandardScaler(), BayesianLinearRegression(random_state=0)).fit(X, y)
    found = prediction_summary(pipeline, X.head(7), level=0.8)
    model, Z = pipeline[-1], pipeline[:-1].transform(X.head(7))
    line = model.coef_samples_.reshape(-1, Z.shape[1]) @ Z.T
    line += model.intercept_samples_.reshape(-1, 1)
    np.testing.assert_allclose(found["mean"], line.mean(axis=0))
    np.testing.assert_allclose(found["sd"], line.std(axis=0))
    ends = np.quantile(line, [0.1, 0.9], axis=0).T
    np.testing.assert_allclose(found[["eti80_lb", "eti80_ub"]], ends, rtol=1e-3)
    np.testing.assert_allclose(
        found[["obs_eti80_lb", "obs_eti80_ub"]], model.predict_interval(Z, 0.8)
    )
    assert found.index.tolist() == X.index[:7].tolist()


def test_a_row_of_zeros_has_a_prediction_without_an_intercept():
    X, y = load_diabetes(return_X_y=True)
    model = BayesianLinearRegression(fit_intercept=False, n_draws=20, random_state=0).fit(X, y)
    found = prediction_summary(model, np.zeros((2, X.shape[1])))
    assert found["mean"].tolist() == found["sd"].tolist() == [0.0, 0.0]
    assert (found["obs_eti95_lb"] < 0).all()


def test_of_classes_it_has_each_and_of_two_the_second():
    X, y = load_iris(return_X_y=True)
    model = BayesianLogisticRegression(n_predict_draws=None, random_state=0).fit(X, y)
    found = prediction_summary(model, X[:5])
    np.testing.assert_allclose(found["mean"], model.predict_proba(X[:5]).ravel(), atol=1e-6)
    assert found.index.tolist()[:4] == [(0, 0), (0, 1), (0, 2), (1, 0)]
    ends = model.predict_interval(X[:5]).reshape(-1, 2)
    np.testing.assert_allclose(found[["eti95_lb", "eti95_ub"]], ends, rtol=0.02, atol=1e-6)
    two = BayesianLogisticRegression(n_predict_draws=None, random_state=0).fit(X, y > 0)
    found = prediction_summary(two, X[:5])
    np.testing.assert_allclose(found["mean"], two.predict_proba(X[:5])[:, 1], rtol=1e-6)
    assert "obs_eti95_lb" not in found


def test_rows_with_words_go_through_the_steps_of_a_pipeline():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"city": rng.choice(list("abc"), 200), "age": rng.normal(40, 10, 200)})
    y = rng.poisson(np.exp(0.02 * (frame["age"] - 40)))
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["city"]), remainder="passthrough"
    )
    pipeline = make_pipeline(columns, BayesianPoissonRegressor(random_state=0)).fit(frame, y)
    found = prediction_summary(pipeline, frame[:6])
    # `predict` has a few draws in place of all
    apart = np.abs(found["mean"] - pipeline.predict(frame[:6]))
    assert (apart < 0.02 * found["sd"]).all()
    assert (found["obs_eti95_ub"] >= np.ceil(found["mean"])).all()


def test_levels_that_are_none_are_refused():
    X, y = load_iris(return_X_y=True)
    model = BayesianLogisticRegression(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="level"):
        prediction_summary(model, X[:5], level=95)
