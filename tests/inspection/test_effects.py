"""Average effects and contrasts: formulas, units before a Pipeline, columns of words, errors."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbayes_sg import (
    BayesianLinearRegressionSGFS,
    BayesianLogisticRegressionSGFS,
    BayesianMLPClassifier,
    BayesianPoissonRegressor,
)
from skbayes_sg.inspection import average_effects, contrast, prediction_summary

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = {"n_chains": 4, "n_draws": 25, "burn_in": 20, "random_state": 0}
RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 3)) * [1, 5, 0.1] + [0, 20, 1]
Z = (X[:, 0] - 0.3 * X[:, 1] + 6) / 2
Y = RNG.logistic(size=200) < Z
FRAME = pd.DataFrame(X, columns=["age", "income", "debt"])
FRAME["town"] = RNG.choice(["Ghent", "Antwerp", "Bruges"], 200)
FRAME["owner"] = RNG.integers(0, 2, 200)


@pytest.fixture(scope="module")
def binary():
    return BayesianLogisticRegressionSGFS(**SHORT).fit(X, Y)


@pytest.fixture(scope="module")
def pipeline():
    columns = make_column_transformer(
        (StandardScaler(), ["age", "income", "debt"]),
        (OneHotEncoder(sparse_output=False), ["town"]),
        ("passthrough", ["owner"]),
    )
    model = BayesianLogisticRegressionSGFS(**SHORT)
    return make_pipeline(columns, model).fit(FRAME, Y)


def test_derivatives_are_those_of_the_logistic_function(binary):
    p = binary.predict_draws(X, kind="mean")[..., 1]
    expected = (p * (1 - p)).mean(axis=1)[:, None] * binary.coef_samples_.reshape(-1, 3)
    table = average_effects(binary, X)
    assert table.index.tolist() == ["x0", "x1", "x2"]
    np.testing.assert_allclose(table["mean"], expected.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(table["sd"], expected.std(axis=0), rtol=1e-4)
    low = np.quantile(expected, 0.025, axis=0)
    np.testing.assert_allclose(table["eti95_lb"], low, rtol=1e-4)
    weights = RNG.random(200)
    weighted = average_effects(binary, X, [1], sample_weight=weights)["mean"].item()
    each = (
        np.average(p * (1 - p), axis=1, weights=weights) * binary.coef_samples_[..., 0, 1].ravel()
    )
    assert weighted == pytest.approx(each.mean(), rel=1e-5)


def test_of_a_regression_they_are_its_coefficients():
    model = make_pipeline(StandardScaler(), BayesianLinearRegressionSGFS(**SHORT)).fit(X, Z)
    table, expected = average_effects(model, X), model[-1].summary(scaler=model[0])
    for column in ("mean", "sd", "eti95_lb", "eti95_ub"):
        np.testing.assert_allclose(table[column], expected[column][:3], rtol=1e-6, atol=1e-9)


def test_of_classes_they_sum_to_nothing():
    labels = np.digitize(Z, [-1, 1])
    model = BayesianMLPClassifier((4,), sampler="hmc", **SHORT).fit(X, labels)
    table = average_effects(model, X, [0])
    assert table.index.tolist() == [("x0", "0"), ("x0", "1"), ("x0", "2")]
    assert abs(table["mean"].sum()) < 1e-9
    step = np.array([1e-3, 0, 0])
    p = [model.predict_proba(rows).mean(axis=0) for rows in (X + step, X - step)]
    np.testing.assert_allclose(table["mean"], (p[0] - p[1]) / 2e-3, rtol=1e-4, atol=1e-8)


def test_differences_are_in_the_units_that_a_pipeline_is_given(pipeline):
    table = average_effects(pipeline, FRAME, kind="difference")
    names = ["age", "income", "debt", "town[Bruges]", "town[Ghent]", "owner"]
    assert table.index.tolist() == names

    def mean(**values):
        return pipeline.predict_proba(FRAME.assign(**values))[:, 1].mean()

    expected = [
        mean(age=FRAME["age"] + 1) - mean(),
        mean(income=FRAME["income"] + 1) - mean(),
        mean(debt=FRAME["debt"] + 1) - mean(),
        mean(town="Bruges") - mean(town="Antwerp"),
        mean(town="Ghent") - mean(town="Antwerp"),
        mean(owner=1) - mean(owner=0),
    ]
    np.testing.assert_allclose(table["mean"], expected, rtol=1e-6, atol=1e-9)
    assert average_effects(pipeline, FRAME).index.tolist() == ["age", "income", "debt", "owner"]


def test_contrasts_are_of_averages_under_each_draw(pipeline):
    poor, rich = FRAME.assign(income=15.0), FRAME.assign(income=25.0)
    draws = [
        pipeline[-1].predict_draws(pipeline[:-1].transform(rows), kind="mean")[..., 1].mean(axis=1)
        for rows in (rich, poor)
    ]
    difference, ratio = (contrast(pipeline, rich, poor, kind=k) for k in ("difference", "ratio"))
    assert difference["mean"].item() == pytest.approx((draws[0] - draws[1]).mean())
    assert ratio["mean"].item() == pytest.approx((draws[0] / draws[1]).mean())
    assert ratio["eti95_ub"].item() == pytest.approx(np.quantile(draws[0] / draws[1], 0.975))
    assert difference.index.tolist() == ["difference"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": ["wealth"]}, "X has no column 'wealth'"),
        ({"features": ["town"]}, "'town' holds words"),
        ({"kind": "slope"}, "kind must be"),
        ({"level": 1.5}, "level"),
        ({"sample_weight": -np.ones(200)}, "[Nn]egative"),
    ],
)
def test_errors_say_what_to_do(pipeline, arguments, message):
    with pytest.raises(ValueError, match=message):
        average_effects(pipeline, FRAME, **arguments)


# -- rows with missing cells ------------------------------------------------------------------


def with_gaps(missing):
    """The frame with such cells in a column of each kind, and the rows that have them."""
    rng = np.random.default_rng(2)
    frame, gaps = FRAME.copy(), {}
    for name, share in (("age", 0.1), ("owner", 0.3), ("town", 0.2)):
        gaps[name] = rng.random(200) < share
        column = frame[name].astype(object if missing is pd.NA or name == "town" else float)
        column[gaps[name]] = missing
        frame[name] = column
    return frame, gaps


def imputing(missing=np.nan):
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "income", "debt"]),
        (SimpleImputer(strategy="most_frequent"), ["owner"]),
        (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), ["town"]),
    )
    return make_pipeline(columns, BayesianLogisticRegressionSGFS(**SHORT))


@pytest.fixture(scope="module")
def gaps_and_model():
    frame, gaps = with_gaps(np.nan)
    return frame, gaps, imputing().fit(frame, Y)


def mean_of(model, frame, **values):
    return model.predict_proba(frame.assign(**values))[:, 1].mean()


def test_a_column_of_two_values_is_one_where_cells_are_missing(gaps_and_model):
    frame, _, model = gaps_and_model
    table = average_effects(model, frame, ["owner", "town"], kind="difference")
    assert table.index.tolist() == ["owner", "town[Bruges]", "town[Ghent]"]
    assert table.attrs == {}  # all rows can be compared
    expected = [
        mean_of(model, frame, owner=1.0) - mean_of(model, frame, owner=0.0),
        mean_of(model, frame, town="Bruges") - mean_of(model, frame, town="Antwerp"),
        mean_of(model, frame, town="Ghent") - mean_of(model, frame, town="Antwerp"),
    ]
    np.testing.assert_allclose(table["mean"], expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["derivative", "difference"])
def test_rows_that_cannot_be_moved_are_left_out_and_counted(gaps_and_model, kind):
    frame, gaps, model = gaps_and_model
    n = int(gaps["age"].sum())
    assert n > 10
    weights = np.random.default_rng(0).random(200)
    with pytest.warns(UserWarning, match=re.escape(f"age ({n} of 200)")):
        table = average_effects(model, frame, ["age", "debt"], kind=kind, sample_weight=weights)
    assert table.attrs == {"rows left out of age": n}
    there = ~gaps["age"]
    complete = average_effects(model, frame[there], "age", kind=kind, sample_weight=weights[there])
    for name in table:
        assert table.loc["age", name] == pytest.approx(complete.loc["age", name], rel=1e-9)
    assert table.notna().all(axis=None)


@pytest.mark.parametrize("missing", [None, pd.NA])
def test_all_kinds_of_missing_cells_are_missing(gaps_and_model, missing):
    frame, _, model = gaps_and_model
    other, _ = with_gaps(missing)
    impute = make_pipeline(  # scikit-learn's steps take NaN alone
        FunctionTransformerToNaN(), *[step for _, step in model.steps]
    )
    for kind, features in (("derivative", ["age"]), ("difference", ["age", "owner", "town"])):
        with pytest.warns(UserWarning, match="age"):
            tables = [average_effects(impute, X, features, kind=kind) for X in (frame, other)]
        pd.testing.assert_frame_equal(*tables, rtol=1e-7)
        assert tables[0].attrs == tables[1].attrs != {}


class FunctionTransformerToNaN(StandardScaler):
    """Takes None and NA to NaN, and numbers among objects to floats."""

    def transform(self, X):
        X = X.copy()
        for name in ("age", "owner"):
            X[name] = pd.to_numeric(X[name]).astype(float)
        X["town"] = X["town"].astype(object).where(X["town"].notna(), np.nan)
        return X

    def __sklearn_is_fitted__(self):
        return True


def test_of_arrays_too():
    rows = X.copy()
    gaps = np.random.default_rng(1).random(200) < 0.2
    rows[gaps, 1] = np.nan
    model = make_pipeline(SimpleImputer(), BayesianLogisticRegressionSGFS(**SHORT)).fit(rows, Y)
    with pytest.warns(UserWarning, match="x1"):
        table = average_effects(model, rows)
    assert table.attrs == {"rows left out of x1": gaps.sum()}
    complete = average_effects(model, rows[~gaps], 1)
    assert table.loc["x1", "sd"] == pytest.approx(complete.loc["x1", "sd"], rel=1e-9)
    assert table.notna().all(axis=None)


def test_columns_that_have_nothing_to_compare_are_refused(pipeline):
    for values, message in (
        ({"town": np.full(200, None, dtype=object)}, "all cells of column 'town' are missing"),
        ({"town": "Ghent"}, "'town' has one value"),
        ({"town": [1, "Ghent"] * 100}, "no order among them"),
    ):
        with pytest.raises(ValueError, match=message):
            average_effects(pipeline, FRAME.assign(**values), "town", kind="difference")
    with pytest.raises(ValueError, match="no columns"):
        average_effects(pipeline, FRAME, [])


# -- frames of other libraries, categories ----------------------------------------------------


@pytest.mark.parametrize("library", ["pyarrow", "polars"])
def test_frames_of_all_libraries_have_the_same_effects(library):
    pytest.importorskip(library)
    frame = FRAME.drop(columns="town")
    native = _frame_of(library, frame)
    model = make_pipeline(StandardScaler(), BayesianLogisticRegressionSGFS(**SHORT))
    model.fit(native, Y)
    assert model[0].feature_names_in_.tolist() == ["age", "income", "debt", "owner"]
    gaps = frame.assign(age=frame["age"].where(frame["age"] < 1))
    for kind in ("derivative", "difference"):
        expected = average_effects(model, frame, kind=kind)
        assert expected.index.tolist() == ["age", "income", "debt", "owner"]
        pd.testing.assert_frame_equal(average_effects(model, native, kind=kind), expected)
        named = average_effects(model, native, "owner", kind=kind)
        pd.testing.assert_frame_equal(named, expected.loc[["owner"]])
    imputing = make_pipeline(SimpleImputer(), *[clone(step) for _, step in model.steps])
    imputing.fit(frame, Y)
    with pytest.warns(UserWarning, match="age"):
        tables = [average_effects(imputing, X) for X in (gaps, _frame_of(library, gaps))]
    pd.testing.assert_frame_equal(*tables)
    assert tables[0].attrs == tables[1].attrs == {"rows left out of age": gaps["age"].isna().sum()}
    labels = prediction_summary(model, native).index
    assert labels.tolist() == [str(row) for row in range(200)]
    difference = contrast(model, native, _frame_of(library, frame.assign(owner=0)))
    expected = contrast(model, frame, frame.assign(owner=0))
    pd.testing.assert_frame_equal(difference, expected)


def _frame_of(library, frame):
    import pyarrow

    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    if library == "pyarrow":
        return table
    import polars

    return polars.from_arrow(table)


@pytest.mark.parametrize("dtype", ["category", "string", "string[pyarrow]", "object"])
def test_categories_keep_their_type(pipeline, dtype):
    plain = average_effects(pipeline, FRAME, ["town"], kind="difference")
    seen = []

    class Recorder(StandardScaler):
        def transform(self, rows):
            seen.append(rows["town"].dtype)
            return rows

        def __sklearn_is_fitted__(self):
            return True

    typed = FRAME.assign(town=FRAME["town"].astype(dtype)).set_index(FRAME.index[::-1])
    model = make_pipeline(Recorder(), *[step for _, step in pipeline.steps])
    table = average_effects(model, typed, ["town"], kind="difference")
    pd.testing.assert_frame_equal(table, plain)
    assert set(seen) == {typed["town"].dtype}


def test_numbers_as_categories_are_compared_as_levels(pipeline):
    typed = FRAME.assign(owner=FRAME["owner"].astype("category"))
    table = average_effects(pipeline, typed, ["owner"], kind="difference")
    assert table.index.tolist() == ["owner[1]"]
    expected = average_effects(pipeline, FRAME, ["owner"], kind="difference")
    np.testing.assert_allclose(table, expected)
    with pytest.raises(ValueError, match="'owner' holds words"):
        average_effects(pipeline, typed, ["owner"])


# -- words ------------------------------------------------------------------------------------


def test_a_feature_may_stand_alone(pipeline, binary):
    for alone in ("age", np.str_("age"), 0, np.int64(0)):
        pd.testing.assert_frame_equal(
            average_effects(pipeline, FRAME, alone), average_effects(pipeline, FRAME, ["age"])
        )
    assert average_effects(binary, X, 2).index.tolist() == ["x2"]
    with pytest.raises(ValueError, match="X has no column 'ag'"):
        average_effects(pipeline, FRAME, "ag")


@pytest.mark.parametrize(
    "function",
    [average_effects, prediction_summary, lambda model, rows: contrast(model, rows, rows)],
)
def test_an_estimator_without_draws_is_told_so(function):
    fitted = LogisticRegression().fit(X, Y)
    search = GridSearchCV(BayesianLogisticRegressionSGFS(**SHORT), {"n_draws": [20]}, cv=2)
    for model in (fitted, make_pipeline(StandardScaler(), fitted).fit(X, Y), search.fit(X, Y)):
        name = "GridSearchCV" if model is search else "LogisticRegression"
        with pytest.raises(ValueError, match=f"draws_, which {name} has not; give an estimator"):
            function(model, X)
    with pytest.raises(NotFittedError):
        function(BayesianLogisticRegressionSGFS(), X)


def test_lazy_rows_and_rows_too_far_out_are_refused(binary):
    dask = pytest.importorskip("dask.dataframe")
    lazy = dask.from_pandas(FRAME[["age", "income", "debt"]], npartitions=2)
    with pytest.raises(ValueError, match=r"rows in memory.*X\.compute\(\)"):
        average_effects(binary, lazy)
    counts = BayesianPoissonRegressor(**SHORT).fit(X[:, :1], np.rint(np.exp(X[:, 0])))
    with pytest.raises(ValueError, match="beyond the largest number under some draws, as in row 1"):
        average_effects(counts, [[0.0], [1e5], [1e5]])
