import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.datasets import load_iris

from skbayes_sg import BayesianLogisticRegressionSGFS, TraceDisplay
from skbayes_sg.diagnostics import r_hat
from skbayes_sg.samplers import SGLD, CosineCycle

matplotlib.use("Agg")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = {"n_chains": 3, "n_draws": 20, "burn_in": 8, "thin": 1, "random_state": 0}
X, Y = load_iris(return_X_y=True, as_frame=True)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    return BayesianLogisticRegressionSGFS(prior_precision=1.0, **SHORT).fit(X, Y)


def test_lines_are_the_draws_and_the_distribution_of_their_ranks():
    draws = np.random.default_rng(0).standard_normal((3, 50, 2))
    display = TraceDisplay(draws, ["a", "b"]).plot()
    flat = np.sort(draws[..., 1].ravel())
    for chain, trace, ranks in zip(draws, display.traces_[1], display.ranks_[1], strict=True):
        np.testing.assert_array_equal(trace.get_ydata(), chain[:, 1])
        u, difference = ranks.get_data()
        below = [np.mean(chain[:, 1] <= flat[: int(150 * v + 0.5)].max(initial=-9)) for v in u]
        np.testing.assert_allclose(difference + u, below, atol=1e-12)


def test_chains_that_agree_stay_within_their_band(seed):
    """Of independent draws at least 95 % of the fits, within five Monte Carlo errors."""
    rng = np.random.default_rng(seed)
    outside = TraceDisplay(rng.standard_normal((4, 100, 400)), [""] * 400).outside.any(axis=1)
    assert outside.mean() < 0.05 + 5 * np.sqrt(0.05 * 0.95 / 400)
    assert outside.mean() > 0.005  # and the band is no wider than it need be


def test_a_chain_elsewhere_stands_out():
    draws = np.random.default_rng(0).standard_normal((4, 100, 1))
    draws[2] += 1.0
    display = TraceDisplay(draws, ["a"]).plot()
    assert display.outside[0, 2]
    for lines in (display.traces_[0], display.ranks_[0]):
        for out, line in zip(display.outside[0], lines, strict=True):
            assert (line.get_linewidth() > 1) == out
            assert (line.get_color() == lines[2].get_color()) == out
    title = display.axes_[0, 0].get_title(loc="left")
    assert title.startswith(f"a: R-hat {r_hat(draws)[0]:.3f}, ESS")


def test_a_single_chain_is_cut_into_halves():
    drifting = np.linspace(0, 1, 40)[None, :, None] + np.zeros((1, 40, 1))
    display = TraceDisplay(drifting, ["a"]).plot()
    assert len(display.traces_[0]) == 1
    assert len(display.ranks_[0]) == 2
    assert np.abs(display.ranks_[0][0].get_ydata()).max() > 0.4


def test_the_worst_parameters_or_those_asked_for(model):
    worst = TraceDisplay.from_estimator(model, n_worst=2)
    np.testing.assert_allclose(worst.r_hat, np.sort(r_hat(model.draws_))[::-1][:2])
    chosen = TraceDisplay.from_estimator(model, parameters=["petal width (cm)[2]", 0])
    assert chosen.names == ["petal width (cm)[2]", "sepal length (cm)[0]"]
    np.testing.assert_array_equal(chosen.draws, model.draws_[..., [11, 0]])
    assert TraceDisplay.from_estimator(model, parameters="intercept[1]").names == ["intercept[1]"]


def test_probabilities_of_rows_in_place_of_parameters(model):
    display = TraceDisplay.from_estimator(model, X=X.iloc[[70, 80]], n_worst=3)
    every = model.predict_proba_draws(X.iloc[[70, 80]]).reshape(3, 20, 6)
    assert len(display.names) == 3
    for name, draws in zip(display.names, np.moveaxis(display.draws, 2, 0), strict=True):
        label, row = int(name[2]), int(name[-2])
        np.testing.assert_allclose(draws, every[..., 3 * row + label])
    some = BayesianLogisticRegressionSGFS(n_predict_draws=5, **SHORT).fit(X, Y)
    assert TraceDisplay.from_estimator(some, X=X.iloc[[70]]).draws.shape[:2] == (3, 20)


def test_draws_of_weight_zero_are_left_out():
    cyclical = SGLD(CosineCycle(1e-3, 1e-4, length=20), batch_size=50)
    cyclical_model = BayesianLogisticRegressionSGFS(
        cyclical, n_chains=2, n_draws=40, burn_in=8, thin=1, random_state=0
    ).fit(X, Y == 1)
    counting = cyclical_model.draw_weights_ > 0
    assert 8 < counting.sum() < 40
    display = TraceDisplay.from_estimator(cyclical_model, parameters=[1])
    np.testing.assert_array_equal(display.draws, cyclical_model.draws_[:, counting][..., [1]])


def test_what_is_not_there_is_refused(model):
    with pytest.raises(ValueError, match="parameters: there is no 'age'; give positions below 15"):
        TraceDisplay.from_estimator(model, parameters=["age"])
    with pytest.raises(ValueError, match="there is no 15"):
        TraceDisplay.from_estimator(model, parameters=[15])
    with pytest.raises(ValueError, match="give one of them"):
        TraceDisplay.from_estimator(model, parameters=[1], X=X)
    with pytest.raises(ValueError, match="n_worst must be at least 1"):
        TraceDisplay.from_estimator(model, n_worst=0)
    with pytest.raises(ValueError, match="no class probability of these rows is uncertain"):
        TraceDisplay.from_estimator(model, X=X.iloc[:1] - [0, 0, 1e3, 0])
    short = BayesianLogisticRegressionSGFS(**(SHORT | {"n_draws": 4})).fit(X, Y)
    with pytest.raises(ValueError, match="a trace needs 8 draws per chain, got 4; "):
        TraceDisplay.from_estimator(short)
