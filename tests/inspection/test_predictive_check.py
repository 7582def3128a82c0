"""Posterior predictive checks: what is drawn, which distributions they refute, what is refused."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import (
    BayesianLinearRegressionSGFS,
    BayesianLogisticRegressionSGFS,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    PredictiveCheckDisplay,
)

matplotlib.use("Agg")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = {"n_chains": 4, "n_draws": 50, "random_state": 0}
RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 2))
COUNTS = RNG.poisson(RNG.gamma(1.0, np.exp(1 + 0.5 * X[:, 0])))
NUMBERS = X[:, 0] + RNG.standard_normal(300)
ANSWERS = ["never", "rarely", "often", "always"]
GRADES = np.array(ANSWERS)[np.digitize(X[:, 0] + RNG.logistic(size=300), [-1, 0, 2])]
check = PredictiveCheckDisplay.from_estimator


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def linear():
    return BayesianLinearRegressionSGFS(**SHORT).fit(X, NUMBERS)


@pytest.fixture(scope="module")
def poisson():
    return BayesianPoissonRegressor(**SHORT).fit(X, COUNTS)


def places(display):
    """Share of the sets below the data, in each bar or point."""
    return (display.new < display.seen).mean(axis=0)


def test_numbers_are_drawn_as_distribution_functions(linear):
    display = check(linear, X, NUMBERS, n_draws=7)
    assert display.new.shape == (7, 300)
    np.testing.assert_allclose(display.seen, np.sort(NUMBERS))
    *lines, data = display.ax_.lines
    assert len(lines) == 7
    np.testing.assert_array_equal(data.get_xdata(), display.seen)
    assert (np.diff(lines[0].get_xdata()) >= 0).all()
    low, high = display.ax_.get_xlim()
    assert low < NUMBERS.min()
    assert high > NUMBERS.max()


def test_sets_are_those_of_the_export(linear):
    """All of 200 draws: their order is that of the draws of `to_arviz`."""
    new = linear.to_arviz(X, posterior_predictive=True)["posterior_predictive"]["y"].values
    found = check(linear, X, NUMBERS, n_draws=1000).new
    np.testing.assert_allclose(found, np.sort(new.reshape(200, 300), axis=1))


def test_many_rows_are_drawn_by_their_quantiles():
    y = RNG.standard_normal(5000)
    display = PredictiveCheckDisplay(y, RNG.standard_normal((3, 5000)))
    assert display.seen.shape == (512,)
    # distance of two distribution functions by chance (Smirnov), three times
    gap = np.abs(np.searchsorted(np.sort(y), display.seen) / 5000 - display._grid)
    assert gap.max() < 3 / 5000


def test_counts_have_a_bar_each_and_intervals_over_them(poisson):
    y = np.minimum(COUNTS, 12)
    display = check(poisson, X, y, n_draws=200, level=0.8)
    np.testing.assert_array_equal(display.seen, np.bincount(y, minlength=len(display.seen)))
    assert display.seen.sum() == 300
    np.testing.assert_array_equal(display.new.sum(axis=1), 300)
    heights = [bar.get_height() for bar in display.ax_.patches]
    np.testing.assert_array_equal(heights, display.seen)
    (drawn,) = display.ax_.collections
    ends = np.array([segment[:, 1] for segment in drawn.get_segments()])
    np.testing.assert_allclose(ends.T, np.quantile(display.new, [0.1, 0.9], axis=0), atol=1e-9)
    assert display.ax_.get_ylim()[1] > max(ends.max(), max(heights))


def test_large_counts_share_bars_and_the_last_has_the_rest():
    y, new = np.array([0, 7, 400]), np.array([[0, 399, 10_000], [1, 2, 3]])
    new = np.repeat(new, 300, axis=1)  # one of 900 in six is far
    display = PredictiveCheckDisplay(y, np.minimum(new, 450), kind="counts").plot()
    assert len(display.seen) <= 30
    np.testing.assert_array_equal(display.seen.nonzero()[0], [0, 400 // display._step])
    far = PredictiveCheckDisplay(y, np.append(new[1:], [[9000]], axis=1), kind="counts").plot()
    assert far.new.sum() == 901
    assert f"{far._step * (len(far.seen) - 1)} and more" in far.ax_.get_xlabel()


def test_a_distribution_too_narrow_for_the_counts_is_found_and_the_right_one_is_not(poisson):
    assert places(check(poisson, X, COUNTS, n_draws=200))[0] == 1  # more zeros than in any set
    wider = BayesianNegativeBinomialRegressor(**SHORT).fit(X, COUNTS)
    assert 0.005 < places(check(wider, X, COUNTS, n_draws=200))[0] < 0.995


def test_classes_are_shares_in_the_order_of_the_categories():
    model = BayesianOrdinalClassifier(categories=ANSWERS, **SHORT).fit(X, GRADES)
    display = check(model, X, GRADES)
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ANSWERS
    expected = [(answer == GRADES).mean() for answer in ANSWERS]
    np.testing.assert_allclose(display.seen, expected)
    proba = model.predict_proba_draws(X)[:, :, np.searchsorted(model.classes_, ANSWERS)]
    mean, n_draws = proba.mean(axis=(0, 1)), len(display.new)
    # of a mean over sets: rows of their own, and few draws of the parameters
    error = np.sqrt((mean * (1 - mean) / 300 + proba.mean(axis=1).var(axis=0)) / n_draws)
    assert (np.abs(display.new.mean(axis=0) - mean) < 5 * error).all()


def test_pipelines_sparse_rows_and_streams():
    scaled = make_pipeline(StandardScaler(), BayesianLogisticRegressionSGFS(**SHORT))
    frame = pd.DataFrame(5 + 3 * X, columns=["age", "debt"])
    piped = check(scaled.fit(frame, GRADES), frame, GRADES)
    alone = check(scaled[-1], scaled[0].transform(frame), GRADES)
    np.testing.assert_array_equal(piped.new, alone.new)
    model = BayesianLogisticRegressionSGFS(**SHORT).fit(X, GRADES)
    thin = check(model, sparse.csr_array(X), GRADES)
    np.testing.assert_allclose(thin.new, check(model, X, GRADES).new, atol=1 / 300)
    stream = BayesianLinearRegressionSGFS(**SHORT).partial_fit(X, NUMBERS)
    assert check(stream, X, NUMBERS).new.shape == (50, 300)


def test_the_look_of_the_data_is_given(linear, poisson):
    line = check(linear, X, NUMBERS, color="red", label="patients").ax_.lines[-1]
    assert (line.get_color(), line.get_label()) == ("red", "patients")
    bar = check(poisson, X, COUNTS, color="red").ax_.patches[0]
    assert bar.get_facecolor() == (1, 0, 0, 1)


@pytest.mark.parametrize(
    ("y", "given", "message"),
    [
        (COUNTS, {"n_draws": 0}, "n_draws must be"),
        (COUNTS, {"level": 1.0}, "level must be"),
        (COUNTS + 0.5, {}, "y must hold counts"),
        (None, {}, "PredictiveCheckDisplay needs y"),
        (COUNTS[:9], {}, "inconsistent numbers of samples"),
    ],
)
def test_what_cannot_be_drawn_is_named(poisson, y, given, message):
    with pytest.raises(ValueError, match=message):
        check(poisson, X, y, **given)


def test_an_unknown_kind_is_named():
    with pytest.raises(ValueError, match="kind must be one of"):
        PredictiveCheckDisplay(NUMBERS, NUMBERS[None], kind="words")
