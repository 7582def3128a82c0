import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbayes_sg import BayesianLogisticRegression, UncertaintyDisplay
from skbayes_sg.inspection import uncertainty

matplotlib.use("Agg")
pytestmark = [
    pytest.mark.usefixtures("_closed_figures"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SHORT = {"n_chains": 3, "n_draws": 20, "burn_in": 8, "thin": 1, "random_state": 0}
X, Y = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def model():
    return BayesianLogisticRegression(**SHORT).fit(X, Y)


def test_surfaces_are_the_uncertainty_with_the_other_features_at_their_means(model):
    display = UncertaintyDisplay.from_estimator(model, X, features=(2, "x0"), grid_resolution=4)
    rows = np.tile(X.mean(axis=0), (16, 1))
    rows[:, 2], rows[:, 0] = display.xx0.ravel(), display.xx1.ravel()
    expected = model.predict_uncertainty(rows)
    for kind, surface in zip(("total", "epistemic", "aleatoric"), display.surfaces_, strict=True):
        np.testing.assert_allclose(display.values[kind].ravel(), expected[kind])
        assert surface.levels[0] == 0
        assert surface.levels[-1] == pytest.approx(expected[kind].max())
    low, high = X[:, 2].min(), X[:, 2].max()
    np.testing.assert_allclose(
        display.xx0[0, [0, -1]], [1.5 * low - 0.5 * high, 1.5 * high - 0.5 * low]
    )
    assert display.ax_.get_xlabel() == "x2"
    assert display.ax_.get_ylabel() == "x0"


def test_other_features_are_at_their_mean(model):
    display = UncertaintyDisplay.from_estimator(
        model, X, features=(0, 2), kinds="total", grid_resolution=3
    )
    mean = X.mean(axis=0)
    rows = np.c_[display.xx0.ravel(), np.full(9, mean[1]), display.xx1.ravel(), np.full(9, mean[3])]
    np.testing.assert_allclose(
        display.values["total"].ravel(), model.predict_uncertainty(rows).total
    )
    assert len(display.axes_) == 1


def test_weights_count_rows_in_the_means_of_the_other_features(model):
    weight = np.arange(150) % 4
    again = np.repeat(np.arange(150), weight)
    asked = {"features": (0, 2), "kinds": "total", "grid_resolution": 3}
    alone, one = (
        UncertaintyDisplay.from_estimator(model, X, sample_weight=each, **asked)
        for each in (None, weight)
    )
    rows = np.tile(X[again].mean(axis=0), (9, 1))
    rows[:, 0], rows[:, 2] = one.xx0.ravel(), one.xx1.ravel()
    expected = model.predict_uncertainty(rows).total
    np.testing.assert_allclose(one.values["total"].ravel(), expected)
    assert not np.allclose(alone.values["total"].ravel(), expected)


def test_data_lie_on_top_with_a_marker_for_each_label(model):
    display = UncertaintyDisplay.from_estimator(
        model, X, y=Y, features=(2, 3), kinds=["epistemic"], grid_resolution=3
    )
    assert len(display.points_) == 3
    for label, points in enumerate(display.points_):
        np.testing.assert_allclose(points.get_offsets(), X[label == Y][:, [2, 3]])
    faces = [tuple(points.get_facecolor()[0]) for points in display.points_]
    assert len(set(faces)) == 3
    (legend,) = display.figure_.legends
    assert [text.get_text() for text in legend.get_texts()] == ["0", "1", "2"]
    plain = UncertaintyDisplay.from_estimator(model, X, kinds="total", grid_resolution=3)
    assert len(plain.points_) == 1
    assert not plain.figure_.legends


def test_columns_of_text_are_held_at_their_most_frequent_value():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    frame.insert(0, "place", pd.Categorical(np.where(np.arange(150) % 3, "inland", "coast")))
    frame["floor"] = np.arange(150) % 4
    encode = make_column_transformer((OneHotEncoder(), ["place"]), remainder=StandardScaler())
    model = make_pipeline(encode, BayesianLogisticRegression(**SHORT)).fit(frame, Y)
    display = UncertaintyDisplay.from_estimator(
        model, frame, features=["a", "c"], kinds="total", grid_resolution=3
    )
    rows = pd.DataFrame({"place": "inland", "a": display.xx0.ravel()}, index=range(9))
    rows = rows.assign(b=X[:, 1].mean(), c=display.xx1.ravel(), d=X[:, 3].mean(), floor=1.4866667)
    expected = model[-1].predict_uncertainty(model[:-1].transform(rows)).total
    np.testing.assert_allclose(display.values["total"].ravel(), expected, rtol=1e-5)


def test_single_precision_and_constant_columns(model):
    narrow = X.astype(np.float32)
    narrow[:, 1] = 3
    display = UncertaintyDisplay.from_estimator(model, narrow, grid_resolution=3)
    np.testing.assert_allclose(display.xx1[[0, -1], 0], [2.5, 3.5])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"features": (0, "age")},
            "features: X has no column 'age'; give positions below 4, or names",
        ),
        ({"features": (1, 1)}, "features must be two different columns"),
        ({"features": (1,)}, "features must be two different columns"),
        ({"kinds": "entropy"}, "kinds must be one of"),
        ({"grid_resolution": 1}, "grid_resolution must be at least 2"),
        ({"margin": -1.0}, "margin must be positive"),
        ({"y": Y[:3]}, "inconsistent numbers of samples"),
    ],
)
def test_what_is_not_there_is_refused(model, options, message):
    with pytest.raises(ValueError, match=message):
        UncertaintyDisplay.from_estimator(model, X, **options)


def test_one_feature_has_no_slice():
    one = BayesianLogisticRegression(**SHORT).fit(X[:, :1], Y)
    with pytest.raises(ValueError, match="X has 1 feature; a slice needs two"):
        UncertaintyDisplay.from_estimator(one, X[:, :1])


@pytest.mark.parametrize("library", ["array", "pandas", "pyarrow", "polars"])
@pytest.mark.quick("pandas", "array")
def test_rows_with_gaps_are_drawn_where_they_have_both_cells(library):
    gaps = X.copy()
    gaps[::5, 0], gaps[1::7, 1], gaps[::3, 3] = np.nan, np.nan, np.nan
    pipeline = make_pipeline(SimpleImputer(), BayesianLogisticRegression(**SHORT))
    pipeline.fit(X, Y)
    rows = gaps
    if library != "array":
        names = [f"x{j}" for j in range(4)]
        rows = pd.DataFrame(gaps, columns=names)
        pipeline.fit(pd.DataFrame(X, columns=names), Y)
    if library in ("pyarrow", "polars"):
        rows = pytest.importorskip("pyarrow").Table.from_pandas(rows)
    if library == "polars":
        rows = pytest.importorskip("polars").from_arrow(rows)
    draw = {"features": (0, 1), "y": Y, "kinds": "total", "grid_resolution": 3}
    counts = r"x0 \(30 of 150\), x1 \(22 of 150\)"
    with pytest.warns(UserWarning, match=counts):
        display = UncertaintyDisplay.from_estimator(pipeline, rows, **draw)
    both = ~np.isnan(gaps[:, :2]).any(axis=1)
    np.testing.assert_array_equal(display.points, X[both, :2])
    np.testing.assert_array_equal(display.labels, Y[both])
    held = np.tile(np.nanmean(gaps, axis=0), (9, 1))
    held[:, 0], held[:, 1] = display.xx0.ravel(), display.xx1.ravel()
    expected = pipeline[-1].predict_uncertainty(held).total
    np.testing.assert_allclose(display.values["total"].ravel(), expected)


def test_rows_without_both_cells_are_refused(model):
    gaps = X.copy()
    gaps[::2, 0], gaps[1::2, 1] = np.nan, np.nan
    with (
        pytest.warns(UserWarning, match="x0"),
        pytest.raises(ValueError, match="no row has cells in both x0 and x1"),
    ):
        UncertaintyDisplay.from_estimator(model, gaps)


def test_the_usual_word_of_a_column_is_that_of_most_weight():
    frame = pd.DataFrame({"x": [0.0, 1.0, 5.0], "town": ["Ghent", "Ghent", "Bruges"]})
    for weight, town in (([1.0, 1.0, 1.0], "Ghent"), ([1.0, 1.0, 5.0], "Bruges")):
        rows = uncertainty._rows(frame, {0: np.array([2.0, 3.0])}, 2, np.array(weight))
        assert rows["town"].tolist() == [town, town]
