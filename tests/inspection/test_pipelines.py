"""Functions for a Pipeline: its last step, for rows as it sees them."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbayes_sg import (
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianPoissonRegressor,
)
from skbayes_sg.inspection import predict_draws, predict_interval, predict_quantiles, summary

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = {"n_chains": 2, "n_draws": 20, "random_state": 0}
RNG = np.random.default_rng(3)
X = RNG.normal([5.0, -2.0], [3.0, 0.1], (80, 2))
HOURS = RNG.uniform(0.5, 2.0, 80)
COUNTS = RNG.poisson(HOURS * np.exp(0.2 * X[:, 0] - 1))


@pytest.fixture(scope="module")
def counts():
    model = BayesianPoissonRegressor(prior_precision=1.0, **SHORT)
    return make_pipeline(StandardScaler(), model).fit(
        X, COUNTS, bayesianpoissonregressor__exposure=HOURS
    )


def test_predictions_are_those_of_the_last_step(counts):
    model, rows, given = counts[-1], counts[:-1].transform(X[:5]), {"exposure": HOURS[:5]}
    for asked, more in (
        (predict_interval, {"level": 0.8, "kind": "mean"}),
        (predict_quantiles, {"levels": [0.2, 0.7]}),
        (predict_draws, {"random_state": 3}),
    ):
        found = asked(counts, X[:5], **more, **given)
        np.testing.assert_array_equal(found, getattr(model, asked.__name__)(rows, **more, **given))
        np.testing.assert_array_equal(found, asked(model, rows, **more, **given))


def test_the_table_is_in_the_units_of_the_columns(counts):
    table, inside = summary(counts, level=0.9), counts[-1].summary(level=0.9)
    slopes = np.asarray(inside["mean"])[:2] / counts[0].scale_
    np.testing.assert_allclose(np.asarray(table["mean"])[:2], slopes, rtol=1e-6)
    assert "eti90_lb" in table


def test_columns_have_the_names_of_the_frame():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"age": X[:, 0], "clinic": RNG.choice(["a", "b"], 80)})
    parts = [("numbers", StandardScaler(), ["age"]), ("factors", OneHotEncoder(), ["clinic"])]
    model = BayesianLogisticRegression(prior_precision=1.0, **SHORT)
    pipeline = make_pipeline(ColumnTransformer(parts), model).fit(frame, COUNTS > 1)
    assert summary(pipeline).index.tolist()[0].endswith("age")
    assert predict_interval(pipeline, frame.head(3)).shape == (3, 2, 2)


@pytest.mark.usefixtures("_short_searches")
def test_a_network_has_blocks_and_steps_that_mix_columns_are_refused():
    network = make_pipeline(StandardScaler(), BayesianMLPClassifier((2,), **SHORT))
    assert "coef_0" in summary(network.fit(X, COUNTS > 1)).index
    mixed = make_pipeline(PCA(), BayesianLogisticRegression(prior_precision=1.0, **SHORT))
    with pytest.raises(ValueError, match="scaler must"):
        summary(mixed.fit(X, COUNTS > 1))


def test_what_has_no_such_method_is_refused():
    plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, COUNTS > 1)
    with pytest.raises(ValueError, match="predict_interval needs an estimator with"):
        predict_interval(plain, X)
