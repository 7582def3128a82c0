import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression
from skbayes_sg.inspection.names import feature_names, logit_names

SHORT = {"n_chains": 2, "n_draws": 4, "burn_in": 4, "thin": 1, "random_state": 0}
X = np.random.default_rng(0).standard_normal((60, 2))
FRAME = pd.DataFrame(X, columns=["age", "income"])
PAIR = np.where(X[:, 0] > 0, "yes", "no")
TRIPLE = np.array(["a", "b", "c"] * 20)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize(("data", "names"), [(X, ["x0", "x1"]), (FRAME, ["age", "income"])])
def test_one_coefficient_per_feature(data, names):
    logistic = BayesianLogisticRegression(**SHORT).fit(data, PAIR)
    linear = BayesianLinearRegression(**SHORT).fit(data, X[:, 0])
    for model in (logistic, linear):
        assert feature_names(model) == names
        assert logit_names(model) == []


def test_names_are_as_many_as_coefficients():
    model = BayesianLogisticRegression(**SHORT).fit(FRAME, TRIPLE)
    assert logit_names(model) == ["a", "b", "c"]
    assert np.shape(model.coef_) == (len(logit_names(model)), len(feature_names(model)))


def test_what_is_not_fitted_is_refused():
    with pytest.raises(NotFittedError):
        feature_names(BayesianLogisticRegression())
