"""Data frames of any library are fitted by name, and refused in the words of scikit-learn."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    frames,
)
from skbayes_sg.inspection import (
    average_effects,
    prediction_summary,
    prior_sensitivity,
    sandwich_summary,
    totals,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = {"n_chains": 2, "n_draws": 8, "random_state": 0, "prior_precision": 1.0}
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.standard_normal((40, 3)), columns=["a", "b", "c"])
Y = RNG.logistic(size=40) < FRAME["a"]


def of(library, frame):
    if library == "pandas":
        return frame
    arrow = pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)
    return arrow if library == "pyarrow" else pytest.importorskip("polars").from_arrow(arrow)


LIBRARIES = pytest.mark.parametrize("library", ["pandas", "pyarrow", "polars"])


@LIBRARIES
def test_frames_fit_to_the_same_draws(library):
    model = BayesianLogisticRegression(**SHORT).fit(of(library, FRAME), Y)
    expected = BayesianLogisticRegression(**SHORT).fit(FRAME, Y)
    np.testing.assert_array_equal(model.draws_, expected.draws_)
    assert model.summary().index.tolist() == ["a", "b", "c", "intercept"]


@LIBRARIES
@pytest.mark.parametrize("kind", [BayesianLogisticRegression, BayesianLinearRegression])
def test_frames_are_refused_as_scikit_learn_refuses_them(library, kind):
    gaps = FRAME.assign(b=FRAME["b"].where(FRAME["b"] > 0))
    for rows, y in ((gaps, Y), (FRAME.iloc[:0], Y[:0]), (FRAME.iloc[:30], Y)):
        with pytest.raises(ValueError, match=r".") as theirs:
            LogisticRegression().fit(of(library, rows), np.asarray(y))
        with pytest.raises(ValueError, match=r".") as ours:
            kind(**SHORT).fit(of(library, rows), np.asarray(y, dtype=float))
        first = [str(error.value).splitlines()[0] for error in (theirs, ours)]
        assert first[0].replace("LogisticRegression", kind.__name__) == first[1]
    model = kind(**SHORT).fit(of(library, FRAME), Y.astype(float))
    for rows in (FRAME.rename(columns={"b": "other"}), FRAME[["a", "b"]]):
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(of(library, rows))


@LIBRARIES
def test_columns_that_hold_no_numbers_are_named(library):
    words = FRAME.assign(town="Ghent", b=["x", None] * 20)
    with pytest.raises(ValueError, match=r"no numbers in column\(s\) 'b', 'town'; give such"):
        BayesianLogisticRegression(**SHORT).fit(of(library, words), Y)


DAYS = pd.Series(pd.date_range("2021-03-01", periods=40))
OF_TIME = {
    "dates": DAYS.astype("datetime64[us]"),
    "dates in nanoseconds": DAYS.astype("datetime64[ns]"),
    "dates of a zone": DAYS.dt.tz_localize("UTC"),
    "durations": DAYS - DAYS[0],
    "days": DAYS.dt.date,
    "objects": (DAYS - DAYS[0]).astype(object),
}


@LIBRARIES
@pytest.mark.parametrize("name", OF_TIME)
@pytest.mark.parametrize("alone", [True, False])
def test_dates_have_no_numbers_before_they_have_a_unit(library, name, alone):
    """They have some in the unit of their type, which a file or a library chooses."""
    day = {"when": OF_TIME[name]}
    rows = of(library, pd.DataFrame(day) if alone else FRAME[["a", "b"]].assign(**day))
    number = {"when": np.arange(40.0)}
    numbers = of(library, pd.DataFrame(number) if alone else FRAME[["a", "b"]].assign(**number))
    model = BayesianLinearRegression(**SHORT)
    message = r"X holds dates or times in column\(s\) 'when'"
    for method in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=message):
            method(rows, Y.astype(float))
    model.fit(numbers, Y.astype(float))
    for asked in (model.predict, model.predict_interval, lambda X: average_effects(model, X)):
        with pytest.raises(ValueError, match=message):
            asked(rows)


@pytest.mark.parametrize("dtype", ["datetime64[us]", "datetime64[D]", "timedelta64[s]", object])
def test_dates_in_an_array_have_no_numbers_either(dtype):
    days = np.arange("2021-03-01", "2021-04-10", dtype="datetime64[D]")
    when = (days - days[0] if dtype == "timedelta64[s]" else days).astype(dtype)[:, None]
    for rows in (when, when.tolist() if dtype is object else list(when)):
        with pytest.raises(ValueError, match=r"dates or times in column\(s\) 0"):
            BayesianLinearRegression(**SHORT).fit(rows, np.arange(40.0))
    model = BayesianLinearRegression(**SHORT).fit(np.arange(40.0)[:, None], np.arange(40.0))
    with pytest.raises(ValueError, match=r"dates or times in column\(s\) 0"):
        model.predict(when)
    with pytest.raises(ValueError, match=r"dates or times in column\(s\) 0"):
        average_effects(model, when)


def test_dates_as_the_message_has_them_predict_the_same_in_any_unit():
    """What is done by its words."""
    day = np.timedelta64(1, "D")
    as_days = [
        ((DAYS.astype(f"datetime64[{unit}]") - np.datetime64("2020-01-01")) / day).to_frame("when")
        for unit in ("us", "ns")
    ]
    model = BayesianLinearRegression(**SHORT).fit(as_days[0], np.arange(40.0))
    np.testing.assert_array_equal(model.predict(as_days[0]), model.predict(as_days[1]))
    durations = [((DAYS - DAYS[0]).astype(f"timedelta64[{u}]") / day) for u in ("us", "ns")]
    np.testing.assert_array_equal(*durations)


def test_numbers_and_truth_values_beside_na_are_no_text():
    found = pd.DataFrame(
        {
            "objects": pd.Series([0, 1, pd.NA], dtype=object),
            "nullable": pd.array([1, None, 3], dtype="Int64"),
            "truth": pd.array([True, None, False], dtype="boolean"),
            "word": ["x", None, "y"],
        }
    )
    assert frames.text_columns(found) == ["word"]
    numbers = [frames.is_number(found, j) for j in range(4)]
    assert numbers == [True, True, False, False]
    missing = [[False, False, True], *[[False, True, False]] * 3]
    assert [frames.is_missing(found, j).tolist() for j in range(4)] == missing


@LIBRARIES
def test_cells_are_replaced_in_a_copy(library):
    frame = FRAME.set_index(FRAME.index[::-1]).head(4)
    rows = of(library, frame)
    other = frames.with_values(rows, 1, [4.0, 3.0, 2.0, 1.0])
    assert frames.column_names(other) == ["a", "b", "c"]
    assert frames.values(other, 1).tolist() == [4, 3, 2, 1]
    assert frames.values(rows, 1).tolist() == frame["b"].tolist()
    assert frames.values(other, 2).tolist() == frame["c"].tolist()
    assert frames.values(frames.with_cell(rows, 0, 2), 0).tolist() == [frame["a"].iloc[2]] * 4
    taken = frames.values(frames.take(rows, np.array([3, 0, 3])), 0)
    assert taken.tolist() == frame["a"].iloc[[3, 0, 3]].tolist()


def test_queries_are_not_read():
    lazy = pytest.importorskip("dask.dataframe").from_pandas(FRAME, npartitions=2)
    assert frames.is_lazy(lazy)
    assert not frames.is_frame(lazy)
    assert frames.text_columns(lazy) == []
    assert not any(frames.is_lazy(X) for X in (FRAME, FRAME.to_numpy(), [[1.0]]))


@LIBRARIES
def test_whole_numbers_of_a_frame_have_all_digits(library):
    rows = of(library, pd.DataFrame({"id": [2**53, 2**53 + 1], "size": [1.5, 2.0]}))
    assert frames.numbers(rows, 0).tolist() == [2**53, 2**53 + 1]
    assert frames.numbers(rows, 1).tolist() == [1.5, 2.0]


def test_rows_have_the_labels_of_their_index_and_levels_the_order_of_their_type():
    size = pd.Categorical(["tall", "short", "tall"], ["tall", "short", "middle"])
    rows = pd.DataFrame({"size": size}, index=["x", "y", "x"])
    assert frames.row_labels(rows) == ["x", "y", "x"]
    assert frames.row_labels(rows.to_numpy()) == [0, 1, 2]
    assert frames.categories(rows, 0) == ["tall", "short", "middle"]
    other = frames.with_values(rows, 0, ["short", "tall", "middle"])
    assert frames.values(other, 0).tolist() == ["short", "tall", "middle"]  # by place, not label
    assert frames.row_labels(other) == ["x", "y", "x"]


def test_a_missing_number_is_one_in_every_library():
    """polars tells a null from a NaN that was computed; neither is a number."""
    pl = pytest.importorskip("polars")
    for column in (pl.Series([1.0, np.nan, None]), pd.Series([1.0, np.nan, None])):
        assert frames.cells_of(column)[1].tolist() == [False, True, True]


# -- columns beside the rows ----------------------------------------------------------------------


def column_of(library, values):
    """A Series, ChunkedArray or Series of polars."""
    frame = of(library, pd.DataFrame({"only": values}))
    return frame.column("only") if library == "pyarrow" else frame["only"]


@LIBRARIES
def test_what_is_known_of_rows_may_be_columns_of_any_library(library):
    rows, years = of(library, FRAME), RNG.uniform(0.5, 2.0, 40)
    counts, weights, patient = RNG.poisson(years), 1.0 + np.arange(40) % 2, np.arange(40) // 4
    y, exposure, weight, groups = (
        column_of(library, each) for each in (counts, years, weights, patient)
    )
    model = BayesianPoissonRegressor(**SHORT).fit(rows, y, exposure=exposure, sample_weight=weight)
    plain = BayesianPoissonRegressor(**SHORT)
    plain.fit(FRAME, counts, exposure=years, sample_weight=weights)
    np.testing.assert_array_equal(model.draws_, plain.draws_)

    def answers(model, rows, y, groups, **known):
        yield model.predict(rows, exposure=known["exposure"])
        yield model.predict_quantiles(rows, [0.1, 0.9], exposure=known["exposure"])
        yield model.predict_draws(rows, exposure=known["exposure"])
        yield model.score(rows, y, **known)
        yield totals(model, rows, by=groups, exposure=known["exposure"])
        yield totals(model, rows, by="a", exposure=known["exposure"])
        yield sandwich_summary(model, rows, y, groups=groups, **known)

    given = {"exposure": exposure, "sample_weight": weight}
    arrays = {"exposure": years, "sample_weight": weights}
    ours = answers(model, rows, y, groups, **given)
    for one, other in zip(ours, answers(plain, FRAME, counts, patient, **arrays), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-9)


@LIBRARIES
def test_tables_are_those_of_pandas(library):
    rows, y = of(library, FRAME), column_of(library, FRAME["a"] + FRAME["b"] ** 2)
    plain = FRAME["a"] + FRAME["b"] ** 2
    model = BayesianLinearRegression(**SHORT).fit(rows, y)
    for one, other in (
        (average_effects(model, rows), average_effects(model, FRAME)),
        (prediction_summary(model, rows), prediction_summary(model, FRAME)),
        (
            prior_sensitivity(model, rows, y)["prior"],
            prior_sensitivity(model, FRAME, plain)["prior"],
        ),
    ):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-9)


@LIBRARIES
def test_ordered_columns_say_the_order_of_classes(library):
    words = np.where(Y, "much", "little")
    if library == "pandas":
        y = pd.Series(pd.Categorical(words, ["much", "little"], ordered=True))
    elif library == "polars":
        pl = pytest.importorskip("polars")
        y = pl.Series(words).cast(pl.Enum(["much", "little"]))
    else:
        pa = pytest.importorskip("pyarrow")
        codes = pa.array((~Y).astype(np.int32))
        y = pa.chunked_array(
            [pa.DictionaryArray.from_arrays(codes, ["much", "little"], ordered=True)]
        )
    model = BayesianOrdinalClassifier(**SHORT).fit(of(library, FRAME), y)
    assert model.categories_.tolist() == ["much", "little"]


@LIBRARIES
def test_missing_cells_of_a_column_are_found(library):
    for values in ([1.0, None, 3.0], ["x", None, "y"], [1, 2, 3]):
        column = column_of(library, pd.array(values) if values[-1] == 3 else values)
        cells, missing = frames.cells_of(column)
        assert missing.tolist() == [one is None for one in values]
        assert cells[0] == values[0]
    assert frames.cells_of(np.array(["x", None, np.nan], dtype=object))[1].tolist() == [0, 1, 1]
    assert frames.cells_of([1.0, np.nan])[1].tolist() == [False, True]


# -- arrays of other libraries --------------------------------------------------------------------

FOREIGN = """
import numpy as np
import sklearn
from skbayes_sg import BayesianLogisticRegression

class Foreign:
    def __init__(self, values):
        self.values, self.shape, self.dtype = values, values.shape, "of its own"

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)

    def __array_namespace__(self, api_version=None):
        raise AssertionError("it was not made an array of NumPy")

X = np.arange(20.0).reshape(10, 2)
with sklearn.config_context(array_api_dispatch=True):
    model = BayesianLogisticRegression(n_draws=4, n_chains=2, prior_precision=1.0)
    print(type(model.fit(Foreign(X), X[:, 0] > 8).predict_proba(Foreign(X))).__name__)
"""


@pytest.mark.slow
def test_arrays_of_other_libraries_become_those_of_numpy():
    """Also where scikit-learn would hand them on (array_api_dispatch)."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FOREIGN],
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
    )
    assert run.stdout.strip() == "ndarray", run.stderr


def test_a_query_is_refused_by_what_to_do():
    pl = pytest.importorskip("polars")
    rows = pl.DataFrame({"a": [0.0, 1.0, 2.0, 3.0]})
    model = BayesianLogisticRegression(n_draws=8, random_state=0)
    with pytest.raises(ValueError, match=r"X is a query .*X\.collect\(\)"):
        model.fit(rows.lazy(), [0, 1, 0, 1])
    model.fit(rows, [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"X is a query .*X\.collect\(\)"):
        model.predict(rows.lazy())
