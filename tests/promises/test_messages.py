"""What fits and exports say of data that they were not meant for, and the numbers they name."""

import re
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.preprocessing import scale

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
    DRBMClassifier,
)
from skbayes_sg.estimators.base import small_weights
from skbayes_sg.inspection import export
from skbayes_sg.models import Model, Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import SGD
from skbayes_sg.validation import require_choice, require_integer

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)  # chains are short
SHORT = {"n_chains": 2, "n_draws": 8, "random_state": 0, "prior_precision": 1.0}


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X)[:, :3], y == 1


@pytest.mark.parametrize("total", [1.0, 1e-10])
def test_weights_that_sum_to_one_are_said_to_be_one_row(total):
    X, y = wine()
    model = BayesianLogisticRegression(**SHORT)
    said = rf"weights of 178 rows sum to {total:.3g}: .*sample_weight / sample_weight.mean\(\)"
    with pytest.warns(ConvergenceWarning, match=said):
        model.fit(X, y, sample_weight=np.full(len(y), total / len(y)))


@pytest.mark.parametrize("mean", [0.03, 0.5, 1.0, 20.0])
@pytest.mark.parametrize("n_rows", [4, 178, 5000])
def test_ordinary_weights_are_not_commented(mean, n_rows):
    X, y = np.ones((n_rows, 1)), np.arange(n_rows) % 2
    weight = np.random.default_rng(0).exponential(mean, n_rows)
    weight *= max(mean, 2.5 / n_rows) / weight.mean()
    of_rows = Posterior.of(Softmax(1, 2), X, y, 1.0, weight)
    assert small_weights(of_rows) == []
    assert small_weights(Posterior.of(Softmax(1, 2), X, y, 1.0)) == []


def test_lengths_of_the_run_are_attributes_and_named_by_warnings():
    X, y = wine()
    model = BayesianLogisticRegression("sgld", burn_in=5, thin=1, **SHORT)
    with pytest.warns(ConvergenceWarning, match=r"or burn_in.*\(now burn_in=5, thin=1"):
        model.fit(X, y)
    assert (model.burn_in_, model.thin_) == (5, 1)
    streamed = BayesianLinearRegression(**SHORT).partial_fit(X, y)
    assert not hasattr(streamed, "burn_in_")


def test_overflow_on_the_way_is_not_reported_in_the_words_of_numpy():
    """Warnings are errors here; what comes out is checked, and is finite."""
    X = np.random.default_rng(0).standard_normal((30, 3))
    model = BayesianMLPClassifier(
        (2,),
        class_weight={0: 1e300},
        sampler=SGD(),
        temperature=1.0,
        n_chains=3,
        n_draws=12,
        burn_in=0,
        thin=1,
        random_state=0,
    )
    assert np.isfinite(model.fit(X, np.arange(30) % 3).draws_).all()


def test_numbers_in_messages_are_plain():
    with pytest.raises(ValueError, match=r"one class only, 0\.0;"):
        BayesianLogisticRegression(**SHORT).fit(np.eye(3), np.zeros(3))
    with pytest.raises(TypeError, match=r"got 2\.5$"):
        require_integer("thin", np.float64(2.5), 1)
    with pytest.raises(ValueError, match=r"got 3$"):
        require_choice("kind", np.int64(3), (1, 2))


def test_an_export_that_memory_cannot_hold_is_refused_with_the_number_of_rows(monkeypatch):
    pytest.importorskip("arviz_base")
    X, y = wine()
    model = BayesianLinearRegression(**SHORT).fit(X, y)
    monkeypatch.setattr(export, "_memory", lambda: 8 * 16 * 100)
    model.to_arviz(X[:100], y[:100], log_likelihood=True)
    with pytest.raises(ValueError, match=r"178 rows under each of 16 draws.* at most 100 rows"):
        model.to_arviz(X, y, log_likelihood=True)
    model.to_arviz(X, y)  # without a number for each row
    monkeypatch.undo()
    assert export._memory() is None or export._memory() > 1e6


def test_a_model_without_linear_predictors_is_refused_by_name():
    class Poisson(Model):
        shapes, axes = {"coef": (1, 2)}, {"coef": (None, "feature")}
        init = log_likelihood = scores = fisher = predict = None

    with pytest.raises(TypeError, match=r"Poisson does not; derive it from .*Predictor"):
        BayesianPoissonRegressor()._prior(Poisson(), None)


NETWORKS = [BayesianMLPClassifier, BayesianMLPRegressor, DRBMClassifier]


def said_before_the_chains_run(cls, X):
    X = np.asarray(X)
    model = cls(2, n_chains=2, n_draws=8, burn_in=2, thin=1, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, np.arange(len(X)) % 2)
    said = [str(each.message) for each in caught]
    return [each for each in said if "standard deviations," in each or "saturate" in each]


@pytest.mark.usefixtures("_short_searches")
@pytest.mark.parametrize("cls", NETWORKS)
def test_networks_say_of_columns_far_from_zero_to_take_the_means_off(cls):
    """And not to scale them, which would leave them as far from zero."""
    X = np.random.default_rng(0).standard_normal((60, 3))
    assert said_before_the_chains_run(cls, X + 2) == []
    for far in (X + 40, 1e4 * (X + 40), X * [1, 1, 50] + [0, 0, 2015]):
        (said,) = said_before_the_chains_run(cls, far)
        times = np.sqrt((far.mean(axis=0) ** 2).sum() / far.var(axis=0).sum())
        assert re.search(rf"are {times:.0f} times as large .*; take the means off", said)
    assert "column 2" in said
    (said,) = said_before_the_chains_run(cls, 5e3 * X)
    assert re.search(r"up to 1.\de\+04, which saturate .*; scale the columns", said)


@pytest.mark.slow
def test_means_of_the_columns_do_harm_where_a_network_says_so():
    """Log losses on the rows of the fit, over those of columns about zero."""
    X, y = load_iris(return_X_y=True)
    X = scale(X)
    loss = {}
    for shift in (0, 3, 10):
        model = BayesianMLPClassifier((4,), random_state=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X + shift, y)
        assert any("take the means off" in str(one.message) for one in caught) == (shift == 10)
        loss[shift] = log_loss(y, model.predict_proba(X + shift))
    assert loss[3] < 1.5 * loss[0]
    assert loss[10] > 1.5 * loss[0]


def test_columns_far_from_zero_give_no_false_alarm(seed):
    """Gradients know the spread of a coefficient that is tied to its intercept by 1e-12."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((150, 2))
    y = rng.gamma(3, np.exp(0.4 * X[:, 1]) / 3)
    near = BayesianRobustRegressor(random_state=0).fit(X, np.log(y))
    far = BayesianRobustRegressor(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        far.fit(0.3 * X + [0, 5e5], np.log(y))
    error = 5 * np.sqrt(2 / 400)  # of each mean, in standard deviations
    assert (np.abs(0.3 * far.coef_ - near.coef_) < error * near.coef_std_).all()
    assert abs(far.diagnostics_["sd_ratio"] - 1) < 0.15
    assert far.diagnostics_["sd_ratio_se"] > 0


@pytest.mark.parametrize(
    "cls",
    [BayesianLinearRegression, BayesianLogisticRegression, BayesianPoissonRegressor],
)
def test_columns_too_far_from_zero_for_double_precision_are_refused_by_name(cls):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    seconds = 1.7e9 + rng.uniform(0, 60, 80)
    X = pd.DataFrame({"a": rng.standard_normal(80), "when": seconds})
    y = rng.integers(0, 2, 80)
    with pytest.raises(ValueError, match=r"column 'when' of X is 1e\+08 of .*; take off the mean"):
        cls(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"column 'when' of X is 1e\+08 of .*; take off the mean"):
        cls(random_state=0).partial_fit(
            X, y, **({"classes": [0, 1]} if "Logistic" in cls.__name__ else {})
        )
    cls(random_state=0, fit_intercept=False).fit(X, y)  # nothing is tied to an intercept
