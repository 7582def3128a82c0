import matplotlib
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_diabetes, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    CoefficientsDisplay,
)
from skbayes_sg.samplers import SGLD, PolynomialDecay

matplotlib.use("Agg")
pytestmark = [
    pytest.mark.usefixtures("_closed_figures"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SHORT = {"n_chains": 3, "n_draws": 20, "burn_in": 8, "thin": 1, "random_state": 0}
X, NUMBERS = load_diabetes(return_X_y=True, as_frame=True)
IRIS, LABELS = load_iris(return_X_y=True, as_frame=True)
LABELS = load_iris().target_names[LABELS]


@pytest.fixture(scope="module")
def linear():
    return BayesianLinearRegression(**SHORT).fit(X, NUMBERS)


@pytest.fixture(scope="module")
def three():
    return BayesianLogisticRegression(**SHORT).fit(IRIS, LABELS)


def bars(lines):
    """Ends of horizontal lines, (lines, 2), from the top."""
    return np.array([segment[:, 0] for segment in lines.get_segments()])


def ticks(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_points_and_bars_are_means_and_quantiles(linear):
    display = CoefficientsDisplay.from_estimator(linear)
    draws = linear.coef_samples_.reshape(-1, 10)[:, display.shown_]
    np.testing.assert_allclose(display.points_[0].get_xdata(), linear.coef_[display.shown_])
    for lines, level in zip(display.bars_[0], (0.5, 0.95), strict=True):
        ends = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0).T
        np.testing.assert_allclose(bars(lines), ends)
    assert ticks(display.ax_) == X.columns[display.shown_].tolist()
    assert display.ax_.lines[0].get_xdata() == [0, 0]


def test_the_largest_come_first_and_the_picture_says_how_many_are_left_out(linear):
    order = np.argsort(-np.abs(linear.coef_ / linear.coef_std_))
    display = CoefficientsDisplay.from_estimator(linear, max_features=4)
    assert ticks(display.ax_) == X.columns[order[:4]].tolist()
    assert display.ax_.get_ylabel() == "largest 4 of 10"
    assert display.ax_.yaxis_inverted()
    np.testing.assert_allclose(display.points_[0].get_xdata(), linear.coef_[order[:4]])
    assert CoefficientsDisplay.from_estimator(linear, max_features=None).ax_.get_ylabel() == ""


def test_several_classes_have_a_panel_each_and_are_compared_with_their_mean(three):
    display = CoefficientsDisplay.from_estimator(three)
    assert [ax.get_title() for ax in display.axes_] == three.classes_.tolist()
    draws = three.coef_samples_.reshape(-1, 3, 4)[..., display.shown_]
    draws = draws - draws.mean(axis=1, keepdims=True)
    for k, (points, (_, outer)) in enumerate(zip(display.points_, display.bars_, strict=True)):
        np.testing.assert_allclose(points.get_xdata(), draws[:, k].mean(axis=0))
        np.testing.assert_allclose(bars(outer), np.quantile(draws[:, k], [0.025, 0.975], axis=0).T)
    some = CoefficientsDisplay.from_estimator(three, classes=["virginica", "setosa"])
    assert [ax.get_title() for ax in some.axes_] == ["virginica", "setosa"]
    of_setosa = [
        dict(zip(shown.shown_, shown.points_[k].get_xdata(), strict=True))
        for shown, k in ((some, 1), (display, 0))
    ]
    assert of_setosa[0] == of_setosa[1]


def test_odds_ratios_are_exponentials_on_a_logarithmic_axis():
    two = BayesianLogisticRegression(**SHORT).fit(IRIS, LABELS == "setosa")
    logs = CoefficientsDisplay.from_estimator(two)
    odds = CoefficientsDisplay.from_estimator(two, odds_ratio=True)
    assert odds.ax_.get_xscale() == "log"
    assert odds.ax_.lines[0].get_xdata() == [1, 1]
    assert odds.ax_.get_xlabel() == "odds ratio of class True"
    np.testing.assert_allclose(odds.points_[0].get_xdata(), np.exp(logs.points_[0].get_xdata()))
    np.testing.assert_allclose(bars(odds.bars_[0][1]), np.exp(bars(logs.bars_[0][1])))


@pytest.mark.parametrize("width", [0.01, 1.0, 20.0])
def test_odds_ratios_have_a_few_plain_ticks(width):
    mean = np.linspace(-width, width, 4)[None]
    ends = mean[..., None] + [-0.01, 0.01]
    display = CoefficientsDisplay(
        mean, 0.1 + 0 * mean, ends, ends, list("abcd"), odds_ratio=True
    ).plot()
    low, high = display.ax_.get_xlim()
    seen = [tick for tick in display.ax_.get_xticks() if low <= tick <= high]
    assert 3 <= len(seen) <= 12
    assert display.ax_.xaxis.get_major_formatter()(1000.0, 0) == "1000"


@pytest.mark.parametrize("shift", [0.0, 300.0, -300.0])
def test_odds_ratios_that_no_axis_holds_are_refused_and_others_drawn_without_a_warning(shift):
    """Exponentials overflow, and leave the axis empty."""
    for width, drawn in ((20.0, shift == 0), (400.0, False)):
        mean = shift + np.linspace(-width, width, 4)[None]
        ends = mean[..., None] + [-0.1, 0.1]
        display = CoefficientsDisplay(
            mean, 0.1 + 0 * mean, ends, ends, list("abcd"), odds_ratio=True
        )
        if drawn:
            low, high = display.plot().ax_.get_xlim()
            assert low < np.exp(mean.min())
            assert high > np.exp(mean.max())
            continue
        with pytest.raises(ValueError, match=r'intervals span \d+ decades.* give per="sd" and X'):
            display.plot()


def test_a_picture_of_raw_columns_is_per_standard_deviation():
    """Columns in units of a million and of a millionth; a Pipeline's rows are transformed."""
    scale = np.geomspace(1e-6, 1e6, 4)
    raw = BayesianLogisticRegression(**SHORT).fit(IRIS * scale, LABELS == "setosa")
    display = CoefficientsDisplay.from_estimator(raw, IRIS * scale, per="sd", odds_ratio=True)
    sd = (IRIS * scale).to_numpy().std(axis=0)
    draws = (raw.coef_samples_ * sd).reshape(-1, 4)[:, display.shown_]
    np.testing.assert_allclose(display.points_[0].get_xdata(), np.exp(draws.mean(axis=0)))
    ends = np.exp(np.quantile(draws, [0.025, 0.975], axis=0).T)
    np.testing.assert_allclose(bars(display.bars_[0][1]), ends)
    assert display.ax_.get_xlabel() == "odds ratio of class True, per sd"
    low, high = display.ax_.get_xlim()
    assert 0.01 * low < 1 < 100 * high  # the line of no effect is near
    both = make_pipeline(MinMaxScaler().set_output(transform="pandas"), raw)
    both[0].fit(IRIS * scale)
    piped = CoefficientsDisplay.from_estimator(both, IRIS * scale, per="sd")
    scaled = raw.coef_[0] * both[0].transform(IRIS * scale).to_numpy().std(axis=0)
    np.testing.assert_allclose(piped.points_[0].get_xdata(), scaled[piped.shown_])
    with pytest.raises(ValueError, match="X: standard deviations are those among rows"):
        CoefficientsDisplay.from_estimator(raw, per="sd")
    with pytest.raises(ValueError, match="per must be"):
        CoefficientsDisplay.from_estimator(raw, per="range")


def test_features_of_a_factor_stand_together_below_its_name(linear):
    flat = CoefficientsDisplay.from_estimator(linear)
    for by in (lambda name: name[0], [name[0] for name in X.columns]):
        display = CoefficientsDisplay.from_estimator(linear, by=by)
        names, labels = X.columns[display.shown_], ticks(display.ax_)
        headings = list(dict.fromkeys(name[0] for name in X.columns[flat.shown_]))
        assert [label for label in labels if label not in X.columns] == headings
        for heading in headings:
            first = labels.index(heading)
            group = [name for name in X.columns[flat.shown_] if name[0] == heading]
            assert labels[first + 1 : first + 1 + len(group)] == group
        heights = [labels.index(name) for name in names]
        np.testing.assert_array_equal(display.points_[0].get_ydata(), heights)
        np.testing.assert_allclose(display.points_[0].get_xdata(), linear.coef_[display.shown_])
        bold = [label.get_fontweight() == "bold" for label in display.ax_.get_yticklabels()]
        assert bold == [label in headings for label in labels]
    serum = CoefficientsDisplay.from_estimator(
        linear, by=lambda name: "serum" if name[-1].isdigit() else name
    )
    labels = ticks(serum.ax_)
    assert sorted(labels[:4]) == ["age", "bmi", "bp", "sex"]
    assert labels[4] == "serum"
    expected = [name for name in X.columns[flat.shown_] if name[-1].isdigit()]
    assert labels[5:] == expected
    with pytest.raises(ValueError, match="a label for each of 10 features"):
        CoefficientsDisplay.from_estimator(linear, by=["a"])


def test_odds_may_be_those_of_the_other_class(three):
    two = BayesianLogisticRegression(**SHORT).fit(IRIS, LABELS == "setosa")
    display, turned = (
        CoefficientsDisplay.from_estimator(two, positive=positive) for positive in (None, False)
    )
    np.testing.assert_allclose(turned.points_[0].get_xdata(), -display.points_[0].get_xdata())
    np.testing.assert_allclose(
        bars(turned.bars_[0][1]), -bars(display.bars_[0][1])[:, ::-1], rtol=1e-6
    )
    assert turned.ax_.get_xlabel() == "coefficient of class False"
    with pytest.raises(ValueError, match="positive is a class of two"):
        CoefficientsDisplay.from_estimator(three, positive="setosa")


def test_weights_of_draws_count():
    decaying = SGLD(PolynomialDecay(1e-3, 10.0, 0.55), batch_size=50)
    model = BayesianLogisticRegression(decaying, **SHORT).fit(IRIS, LABELS == "setosa")
    assert np.ptp(model.draw_weights_) > 0
    display = CoefficientsDisplay.from_estimator(model)
    np.testing.assert_allclose(display.points_[0].get_xdata(), model.coef_[0][display.shown_])


def test_what_is_not_there_is_refused(linear, three):
    with pytest.raises(ValueError, match="classes must be one of"):
        CoefficientsDisplay.from_estimator(three, classes=["rose"])
    with pytest.raises(ValueError, match="there is one row of coefficients"):
        CoefficientsDisplay.from_estimator(linear, classes=["rose"])
    with pytest.raises(ValueError, match="max_features must be at least 1 or None"):
        CoefficientsDisplay.from_estimator(linear, max_features=0)


@pytest.mark.parametrize("stored", [np.asarray, csr_array])
def test_of_two_values_a_standard_deviation_is_the_step_between_them(stored):
    """Levels, indicators and signs, beside a number and a column that is zero at three values."""
    rng = np.random.default_rng(0)
    rows = np.column_stack(
        [rng.normal(size=90), rng.integers(2, size=90), 2.0 * rng.choice([-1, 1], 90)]
    )
    rows = np.column_stack([rows, rng.permutation(np.repeat([-1.0, 0.0, 1.0], 30))])
    model = BayesianLinearRegression(**SHORT).fit(rows, rows @ [1.0, 2.0, 3.0, 4.0])
    display = CoefficientsDisplay.from_estimator(model, stored(rows), per="sd")
    steps = np.array([rows[:, 0].std(), 1.0, 4.0, rows[:, 3].std()])
    shown = display.shown_
    np.testing.assert_allclose(display.points_[0].get_xdata(), (model.coef_ * steps)[shown])


def test_units_of_single_features_are_given_by_name(linear):
    display = CoefficientsDisplay.from_estimator(linear, per={"bmi": 5, 0: 0.1})
    units = np.where(X.columns == "bmi", 5.0, np.where(X.columns == "age", 0.1, 1.0))
    drawn = display.points_[0].get_xdata()
    np.testing.assert_allclose(drawn, (linear.coef_ * units)[display.shown_])
    assert {"bmi, per 5", "age, per 0.1", "bp"} <= {*ticks(display.ax_)}
    with pytest.raises(ValueError, match="per: X has no column 'bim'"):
        CoefficientsDisplay.from_estimator(linear, per={"bim": 5})
    with pytest.raises(ValueError, match="the unit of 'bmi' must be positive"):
        CoefficientsDisplay.from_estimator(linear, per={"bmi": -5})
