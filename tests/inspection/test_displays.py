"""What all displays share: where they draw, what they refuse, and that nothing is clipped."""

import sys
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import skbayes_sg
from skbayes_sg import (
    AbstentionDisplay,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    CoefficientsDisplay,
    PriorPrecisionDisplay,
    UncertaintyDisplay,
    inspection,
)

matplotlib.use("Agg")
pytestmark = [
    pytest.mark.usefixtures("_closed_figures"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
DISPLAYS = [name for name in inspection.__all__ if name.endswith("Display")]
SHORT = {"n_chains": 3, "n_draws": 20, "burn_in": 8, "thin": 1, "random_state": 0}
X, Y = load_iris(return_X_y=True, as_frame=True)
Y = load_iris().target_names[Y]


@pytest.fixture(scope="module")
def model():
    return BayesianLogisticRegression(**SHORT).fit(X, Y)


def random_display(cls, n_features, n_classes):
    """A picture of made-up numbers, drawn with long names."""
    rng = np.random.default_rng(0)
    names = [f"quantity of interest {j}" for j in range(n_features)]
    n_logits = 1 if n_classes == 2 else n_classes
    if cls is CoefficientsDisplay:
        mean = 30 * rng.standard_normal((n_logits, n_features))
        width = rng.random((n_logits, n_features, 1)) * [-1, 1]
        labels = [f"class {k}" for k in range(n_logits)] if n_logits > 1 else []
        ends = mean[..., None] + width, mean[..., None] + 3 * width
        return cls(mean, width[..., 1], *ends, names, labels).plot()
    if cls is PriorPrecisionDisplay:
        path = np.exp(rng.standard_normal((20, n_features)))
        return cls(path, path[-1], names).plot()
    if cls is UncertaintyDisplay:
        grid = np.meshgrid(np.arange(5.0), 1e4 * np.arange(5.0))
        values = dict.fromkeys(("total", "epistemic", "aleatoric"), rng.random((5, 5)))
        points, labels = rng.random((40, 2)), np.arange(40) % n_classes
        return cls(*grid, values, names[:2], points=points, labels=labels).plot()
    proba, y = rng.dirichlet(np.ones(n_classes), 200), rng.integers(0, n_classes, 200)
    display = cls.from_predictions(y, proba, name="the first of two models")
    return cls.from_predictions(y, proba[::-1], name="the other model", ax=display.ax_)


EVERY = pytest.mark.parametrize(
    "cls", [getattr(inspection, name) for name in DISPLAYS], ids=lambda cls: cls.__name__
)
OF_THE_PACKAGE = pytest.mark.parametrize(
    ("cls", "arguments"),
    [
        (CoefficientsDisplay, ()),
        (UncertaintyDisplay, (X,)),
    ],
)


def overlapping(labels):
    """Pairs of neighbouring labels that lie upon each other."""
    boxes = [label.get_window_extent() for label in labels if label.get_text()]
    return [(a, b) for a, b in pairwise(boxes) if a.overlaps(b)]


def seen(axis):
    """Labels of the ticks within the limits."""
    low, high = sorted(axis.get_view_interval())
    return [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]


@pytest.mark.parametrize(
    ("cls", "n_features", "n_classes"),
    [(CoefficientsDisplay, 3, 2)] + [(getattr(inspection, n), 60, 10) for n in DISPLAYS],
)
def test_nothing_is_clipped_and_no_labels_overlap(cls, n_features, n_classes):
    display = random_display(cls, n_features, n_classes)
    figure = display.figure_
    assert getattr(skbayes_sg, cls.__name__) is cls
    axes = display.axes_ if hasattr(display, "axes_") else display.ax_
    assert {ax.figure for ax in np.ravel(axes)} == {figure}
    figure.draw_without_rendering()
    drawn, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert drawn.x0 >= -0.02
    assert drawn.y0 >= -0.02
    assert drawn.x1 <= width + 0.02
    assert drawn.y1 <= height + 0.02
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            labels = [label for label in seen(axis) if label.get_visible()]
            assert not overlapping(labels), (ax.get_title(), [label.get_text() for label in labels])


@EVERY
def test_matplotlib_is_asked_for_by_name(cls, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        ImportError, match=rf"{cls.__name__} needs matplotlib: pip install matplotlib"
    ):
        random_display(cls, 3, 2)


@OF_THE_PACKAGE
def test_pictures_of_given_axes(cls, arguments, model):
    own = cls.from_estimator(model, *arguments)
    number = np.size(getattr(own, "axes_", own.ax_ if hasattr(own, "ax_") else None))
    axes = plt.figure().subplots(1, number + 1)
    given = cls.from_estimator(model, *arguments, ax=axes[:-1])
    drawn = given.axes_ if hasattr(given, "axes_") else given.ax_
    assert np.ravel(drawn).tolist() == axes[:-1].tolist()
    with pytest.raises(ValueError, match=rf"ax: .* needs {number} Axes, got {number + 1}"):
        cls.from_estimator(model, *arguments, ax=axes)


@OF_THE_PACKAGE
def test_other_and_unfitted_estimators_are_refused(cls, arguments):
    for other in (LogisticRegression(), LinearRegression()):
        other.fit(X, Y == "setosa")
        with pytest.raises(ValueError, match=rf"{cls.__name__} needs .* has not; "):
            cls.from_estimator(other, *arguments)
    with pytest.raises(NotFittedError):
        cls.from_estimator(BayesianLogisticRegression(), *arguments)


def test_regressions_and_unfitted_classifiers_are_refused():
    with pytest.raises(ValueError, match=r"needs an estimator with predict_proba.*a classifier"):
        AbstentionDisplay.from_estimator(LinearRegression(), X, Y)
    with pytest.raises(NotFittedError):
        AbstentionDisplay.from_estimator(BayesianLogisticRegression(), X, Y)


def test_a_pipeline_is_drawn_as_its_last_step_with_the_names_of_the_first():
    scaled = make_pipeline(StandardScaler(), BayesianLogisticRegression(**SHORT)).fit(X, Y)
    names = [
        label.get_text()
        for label in CoefficientsDisplay.from_estimator(scaled).ax_.get_yticklabels()
    ]
    assert sorted(names) == sorted(X.columns)
    slices = UncertaintyDisplay.from_estimator(scaled, X, grid_resolution=3)
    corner = X.mean().to_frame().T
    corner.iloc[0, :2] = slices.xx0[0, 0], slices.xx1[0, 0]
    expected = scaled[1].predict_uncertainty(scaled[0].transform(corner)).total[0]
    assert slices.values["total"][0, 0] == pytest.approx(expected)
    curve = AbstentionDisplay.from_estimator(scaled, X, Y)
    np.testing.assert_array_equal(curve.uncertainty, 1 - scaled.predict_proba(X).max(axis=1))
    unnamed = make_pipeline(FunctionTransformer(np.log1p), BayesianLogisticRegression(**SHORT))
    ticks = CoefficientsDisplay.from_estimator(unnamed.fit(X.to_numpy(), Y)).ax_.get_yticklabels()
    assert {tick.get_text() for tick in ticks} == {"x0", "x1", "x2", "x3"}


@pytest.mark.usefixtures("_short_searches")
def test_networks_have_uncertainty_and_abstention_and_no_coefficients():
    network = BayesianMLPClassifier((2,), **SHORT).fit(X, Y)
    assert UncertaintyDisplay.from_estimator(network, X, grid_resolution=3).values["total"].any()
    assert AbstentionDisplay.from_estimator(network, X, Y).area < 1
    with pytest.raises(ValueError, match="which BayesianMLPClassifier has not"):
        CoefficientsDisplay.from_estimator(network)


def test_keywords_reach_matplotlib(model):
    look = {"color": "black"}
    assert CoefficientsDisplay.from_estimator(model, **look).points_[0].get_color() == "black"
    assert AbstentionDisplay.from_estimator(model, X, Y, **look).line_.get_color() == "black"
    drawn = UncertaintyDisplay.from_estimator(model, X, cmap="magma", grid_resolution=3)
    assert drawn.surfaces_[0].get_cmap().name == "magma"


def test_series_differ_in_colour_and_style():
    """So that they can be told apart in grey, and by the colour-blind."""
    rng = np.random.default_rng(0)
    ax = None
    for _ in range(3):
        display = AbstentionDisplay.from_predictions(np.arange(50) % 2, rng.random(50), ax=ax)
        ax = display.ax_
    assert len({line.get_color() for line in ax.lines}) == 3
    assert len({line.get_linestyle() for line in ax.lines}) == 3


def test_names_are_written_as_they_are():
    """Neither as formulas, nor left out of a legend."""
    names = ["$pri$ce", "_private", "age"]
    ends = np.array([[[0.0, 1.0]] * 3])
    display = CoefficientsDisplay(ends[..., 0], ends[..., 1], ends, ends, names).plot()
    display.figure_.canvas.draw()
    ticks = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert ticks == [r"\$pri\$ce", " _private", "age"]
    y, p = [0, 1, 1, 0], [0.1, 0.9, 0.4, 0.2]
    legend = AbstentionDisplay.from_predictions(y, p, name="_model").ax_.get_legend()
    assert "_model" in legend.get_texts()[-1].get_text()
    path = np.ones((3, 3))
    legend = PriorPrecisionDisplay(path, path[-1], names).plot().ax_.get_legend()
    assert len(legend.get_texts()) == 3


def test_regressions_have_coefficients_and_no_odds():
    X, y = load_breast_cancer(return_X_y=True)
    linear = BayesianLinearRegression(**SHORT).fit(X[:, :3], y)
    assert CoefficientsDisplay.from_estimator(linear).ax_.get_xlabel() == "coefficient"
    with pytest.raises(ValueError, match="this regression has no odds"):
        CoefficientsDisplay.from_estimator(linear, odds_ratio=True)
    with pytest.raises(ValueError, match="UncertaintyDisplay needs an estimator with"):
        UncertaintyDisplay.from_estimator(linear, X[:, :3])
