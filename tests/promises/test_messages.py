"""What fits and exports say of data that they were not meant for, and the numbers they name."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from skbayes_sg import (
    BayesianLinearRegressionSGFS,
    BayesianLogisticRegressionSGFS,
    BayesianMLPClassifier,
)
from skbayes_sg.estimators.inputs import small_weights
from skbayes_sg.estimators.linear_model import _require_outputs
from skbayes_sg.inspection import export, under_draws
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
    model = BayesianLogisticRegressionSGFS(**SHORT)
    said = rf"sums to {total:.3g} for 178 rows.*sample_weight / sample_weight.mean\(\)"
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


def test_dates_in_a_data_frame_are_named():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": np.arange(20.0), "when": pd.date_range("2020", periods=20)})
    with pytest.raises(ValueError, match=r"text or dates in column\(s\) 'when'"):
        BayesianLogisticRegressionSGFS(**SHORT).fit(X, np.arange(20) % 2)


def test_lengths_of_the_run_are_attributes_and_named_by_warnings():
    X, y = wine()
    model = BayesianLogisticRegressionSGFS("sgld", burn_in=5, thin=1, **SHORT)
    with pytest.warns(ConvergenceWarning, match=r"or burn_in.*\(now burn_in=5, thin=1"):
        model.fit(X, y)
    assert (model.burn_in_, model.thin_) == (5, 1)
    streamed = BayesianLinearRegressionSGFS(**SHORT).partial_fit(X, y)
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
        BayesianLogisticRegressionSGFS(**SHORT).fit(np.eye(3), np.zeros(3))
    with pytest.raises(TypeError, match=r"got 2\.5$"):
        require_integer("thin", np.float64(2.5), 1)
    with pytest.raises(ValueError, match=r"got 3$"):
        require_choice("kind", np.int64(3), (1, 2))


def test_an_export_that_memory_cannot_hold_is_refused_with_the_number_of_rows(monkeypatch):
    pytest.importorskip("arviz_base")
    X, y = wine()
    model = BayesianLinearRegressionSGFS(**SHORT).fit(X, y)
    monkeypatch.setattr(export, "_memory", lambda: 8 * 16 * 100)
    model.to_arviz(X[:100], y[:100], log_likelihood=True)
    with pytest.raises(ValueError, match=r"178 rows under each of 16 draws.* at most 100 rows"):
        model.to_arviz(X, y, log_likelihood=True)
    model.to_arviz(X, y)  # without a number for each row
    monkeypatch.undo()
    assert export._memory() is None or export._memory() > 1e6


def test_models_without_outputs_are_refused_by_name():
    class Poisson(Model):
        shapes, axes = {"coef": (1, 2)}, {"coef": (None, "feature")}
        init = log_likelihood = scores = fisher = predict = None

    with pytest.raises(TypeError, match=r"Poisson does not; derive it from .*Predictor"):
        _require_outputs(Poisson())
    with pytest.raises(ValueError, match="Poisson has neither a noise_variance nor classes"):
        under_draws._noise_variance(Poisson())
