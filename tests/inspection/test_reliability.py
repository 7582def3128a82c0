import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from scipy.stats import norm
from sklearn.calibration import calibration_curve

from skbayes_sg import ReliabilityDisplay

matplotlib.use("Agg")
RNG = np.random.default_rng(0)
P = RNG.beta(0.7, 0.7, 500)
Y = (RNG.random(500) < P).astype(int)
THREE = RNG.dirichlet([1.0, 1.0, 1.0], 300)
ABC = np.array(["a", "b", "c"])[(THREE.cumsum(axis=1) < RNG.random((300, 1))).sum(axis=1)]


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_the_curve_is_that_of_scikit_learn(strategy):
    display = ReliabilityDisplay.from_predictions(Y, P, n_bins=7, strategy=strategy)
    frequency, mean = calibration_curve(Y, P, n_bins=7, strategy=strategy)
    np.testing.assert_allclose(display.line_.get_xydata(), np.c_[mean, frequency])
    assert display.counts.sum() == 500
    gaps = display.counts / 500 @ np.abs(frequency - mean)
    assert display.calibration_error == pytest.approx(gaps)


def test_bars_are_wilson_intervals_and_the_histogram_counts_rows():
    display = ReliabilityDisplay.from_predictions(Y, P, n_bins=4, level=0.9)
    z, n, f = norm.ppf(0.95), display.counts, display.prob_true
    centre = (f + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(f * (1 - f) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    np.testing.assert_allclose(display.interval, np.c_[centre - half, centre + half])
    drawn = [bar[:, 1] for bar in display.errorbar_[2][0].get_segments()]
    np.testing.assert_allclose(drawn, display.interval)
    counts, edges = np.histogram(P, bins=20, range=(0, 1))
    np.testing.assert_array_equal(display.histogram_.get_data().values, counts)
    np.testing.assert_allclose(display.histogram_.get_data().edges, edges)


def test_the_histogram_shows_the_part_of_the_axis_that_the_curve_shows():
    display = ReliabilityDisplay.from_predictions(Y, P)
    display.ax_.set_xlim(0.5, 1)
    assert display.counts_ax_.get_xlim() == (0.5, 1)
    assert not display.ax_.xaxis.get_tick_params()["labelbottom"]
    assert display.counts_ax_.xaxis.get_tick_params().get("labelbottom", True)


def test_intervals_cover_the_probability(seed):
    """Those of 95 % of bins, within five Monte Carlo errors, where the model is right."""
    rng, held = np.random.default_rng(seed), []
    for _ in range(100):
        p = rng.integers(1, 10, 400) / 10  # one probability per bin
        display = ReliabilityDisplay(p, rng.random(400) < p, n_bins=10)
        held.append((display.interval[:, 0] < display.prob_pred).astype(float))
        held[-1] *= display.prob_pred < display.interval[:, 1]
    covered = np.concatenate(held)
    assert abs(covered.mean() - 0.95) < 5 * np.sqrt(0.95 * 0.05 / len(covered))


def test_of_several_classes_the_predicted_one_or_the_chosen_one():
    top = ReliabilityDisplay.from_predictions(ABC, THREE, n_bins=5)
    np.testing.assert_array_equal(top.y_prob, THREE.max(axis=1))
    np.testing.assert_array_equal(top.event, np.array(["a", "b", "c"])[THREE.argmax(axis=1)] == ABC)
    assert top.counts_ax_.get_xlabel() == "predicted probability of the predicted class"
    one = ReliabilityDisplay.from_predictions(ABC, THREE, pos_label="b", n_bins=5)
    frequency, mean = calibration_curve(ABC == "b", THREE[:, 1], n_bins=5)
    np.testing.assert_allclose(one.line_.get_xydata(), np.c_[mean, frequency])
    assert one.ax_.get_ylabel() == "share of class b"


def test_of_two_classes_either_may_be_drawn():
    both = np.c_[1 - P, P]
    second = ReliabilityDisplay.from_predictions(Y, both)
    np.testing.assert_allclose(second.y_prob, P)
    first = ReliabilityDisplay.from_predictions(Y, both, pos_label=0)
    np.testing.assert_allclose(first.y_prob, 1 - P)
    assert first.calibration_error == pytest.approx(second.calibration_error, abs=0.02)


@pytest.mark.parametrize(
    ("y", "p", "options", "message"),
    [
        (Y, P + 0.5, {}, "y_prob must hold probabilities"),
        (Y, np.c_[P, P], {}, "y_prob must hold probabilities"),
        (ABC, P[:300], {}, "2 columns for 3 classes; give classes"),
        (ABC[:3], THREE[:4], {}, "inconsistent numbers of samples"),
        (ABC, THREE, {"classes": ["c", "b", "a"]}, "classes must be sorted"),
        (ABC, THREE, {"classes": ["a", "b", "d"]}, "not among the classes"),
        (Y, P, {"pos_label": 2}, r"pos_label must be one of \(0, 1\)"),
        (Y, P, {"strategy": "kmeans"}, "strategy must be one of"),
        (Y, P, {"n_bins": 0}, "n_bins must be at least 1"),
        (Y, P, {"level": 1.0}, "level must be below 1"),
    ],
)
def test_what_does_not_fit_is_refused(y, p, options, message):
    with pytest.raises(ValueError, match=message):
        ReliabilityDisplay.from_predictions(y, p, **options)
