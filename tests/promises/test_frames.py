"""Data frames of any library are fitted by name, and refused in the words of scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skbayes_sg import (
    BayesianLinearRegressionSGFS,
    BayesianLogisticRegressionSGFS,
    frames,
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
    model = BayesianLogisticRegressionSGFS(**SHORT).fit(of(library, FRAME), Y)
    expected = BayesianLogisticRegressionSGFS(**SHORT).fit(FRAME, Y)
    np.testing.assert_array_equal(model.draws_, expected.draws_)
    assert model.summary().index.tolist() == ["a", "b", "c", "intercept"]


@LIBRARIES
@pytest.mark.parametrize("kind", [BayesianLogisticRegressionSGFS, BayesianLinearRegressionSGFS])
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
    words = FRAME.assign(town="Ghent", day=pd.date_range("2020", periods=40), b=["x", None] * 20)
    with pytest.raises(ValueError, match=r"text or dates in column\(s\) 'b', 'town', 'day'"):
        BayesianLogisticRegressionSGFS(**SHORT).fit(of(library, words), Y)


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
    assert (
        frames.values(frames.take(rows, np.array([3, 3])), 0).tolist() == [frame["a"].iloc[3]] * 2
    )


def test_queries_are_not_read():
    lazy = pytest.importorskip("dask.dataframe").from_pandas(FRAME, npartitions=2)
    assert frames.is_lazy(lazy)
    assert not frames.is_frame(lazy)
    assert frames.text_columns(lazy) == []
    assert not any(frames.is_lazy(X) for X in (FRAME, FRAME.to_numpy(), [[1.0]]))
