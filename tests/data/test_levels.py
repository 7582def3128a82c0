"""Factors: levels that have rows, their columns, and what becomes of other levels."""

import numpy as np
import pandas as pd
import pytest

from skbayes_sg.data.factors import MISSING, NONE, Design, Factor, in_order, labels_of

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
CELLS = ["b", "a", None, "b"]
NUMBERS = np.array([[1.0], [0.0], [3.0], [4.0]])
FRAMES = {
    "pandas": pd.DataFrame({"c": pd.Categorical(CELLS), "x": NUMBERS[:, 0]}),
    "polars": pl.DataFrame({"c": pl.Series(CELLS, dtype=pl.Categorical), "x": NUMBERS[:, 0]}),
    "pandas of Arrow": pd.DataFrame(
        {
            "c": pd.array(CELLS, pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))),
            "x": NUMBERS[:, 0],
        }
    ),
    "Arrow": pa.table({"c": pa.array(CELLS).dictionary_encode(), "x": NUMBERS[:, 0]}),
}


@pytest.mark.parametrize("library", FRAMES)
def test_levels_have_columns_and_missing_cells_are_one(library):
    design = Design.of(FRAMES[library], [0])
    assert design.column_names == ["c[a]", "c[b]", "c[missing]", "x"]
    matrix, new = design.matrix(FRAMES[library], NUMBERS)
    expected = [[0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 1, 3], [0, 1, 0, 4]]
    np.testing.assert_array_equal(matrix.toarray(), expected)
    assert matrix.nnz == np.count_nonzero(expected)
    assert not len(new["c"].rows)


def test_levels_without_rows_have_no_columns_and_the_order_is_that_of_the_type():
    cells = pd.Categorical(["low", "high"] * 2, ["none", "low", "mid", "high"], ordered=True)
    assert Design.of(pd.DataFrame({"c": cells}), [0]).column_names == ["c[low]", "c[high]"]
    enum = pl.DataFrame({"c": pl.Series(["z", "a"], dtype=pl.Enum(["z", "y", "a"]))})
    assert Design.of(enum, [0]).column_names == ["c[z]", "c[a]"]


def test_levels_that_have_no_column_are_told_and_may_get_one():
    design = Design.of(FRAMES["pandas"].iloc[:2], [0])
    rows = pd.DataFrame({"c": ["c", "a", None, "c"], "x": 0.0})
    matrix, new = design.matrix(rows, np.zeros((4, 1)))
    np.testing.assert_array_equal(matrix.toarray(), np.eye(3)[[0]] * [[0], [1], [0], [0]])
    assert new["c"].rows.tolist() == [0, 2, 3]
    assert new["c"].labels == ["c", MISSING, "c"]
    grown = design.with_levels_of(rows)
    assert grown.column_names == ["c[a]", "c[b]", "x", "c[c]", "c[missing]"]
    matrix, new = grown.matrix(rows, np.full((4, 1), 7.0))
    expected = [[0, 0, 7, 1, 0], [1, 0, 7, 0, 0], [0, 0, 7, 0, 1], [0, 0, 7, 1, 0]]
    np.testing.assert_array_equal(matrix.toarray(), expected)
    assert not len(new["c"].rows)


def test_a_flat_factor_has_no_column_for_its_first_level():
    design = Design.of(FRAMES["pandas"], [0], flat=["c"])
    assert design.column_names == ["c[b]", "c[missing]", "x"]
    assert design.factors[0].columns == (NONE, 0, 1)
    matrix, new = design.matrix(FRAMES["pandas"].assign(c=["a", "b", "d", None]), NUMBERS)
    expected = [[0, 0, 1], [1, 0, 0], [0, 0, 3], [0, 1, 4]]
    np.testing.assert_array_equal(matrix.toarray(), expected)
    assert new["c"].labels == ["d"]  # the first level has no column either, and is not new
    np.testing.assert_array_equal(design.spread(np.array([5.0, 6.0])), [5, 5, 6])


def test_codes_of_arrays_are_levels_whatever_their_type():
    of_numbers = np.array([[2.0, 1.0], [np.nan, 1.0], [10.0, 1.0]])
    design = Design.of(of_numbers, [0])
    assert design.column_names == ["x0[2]", "x0[10]", "x0[missing]", "x1"]
    integers = np.array([[10, 1], [2, 1]])
    matrix, _ = design.matrix(integers, np.ones((2, 1)))
    np.testing.assert_array_equal(matrix.toarray()[:, :3], [[0, 1, 0], [1, 0, 0]])
    with pytest.raises(ValueError, match="'x0' of X has the level '2', and those of the fit"):
        design.matrix(np.array([["2", 1.0]], object), np.ones((1, 1)))
    with pytest.raises(ValueError, match="'x0' of X has the level '2', and those of the fit"):
        design.with_levels_of(np.array([["2", 1.0]], object))  # as of a later chunk


def test_labels_of_any_kind_have_an_order():
    assert in_order([True, "b", MISSING, 3, "a", 2.5]) == [True, 2.5, 3, "a", "b", MISSING]
    cut = pd.DataFrame({"c": pd.cut(pd.Series([0.5, 2.5, 1.5]), [0, 1, 2, 3])})
    assert Design.of(cut, [0]).column_names == ["c[(0, 1]]", "c[(1, 2]]", "c[(2, 3]]"]
    assert labels_of(pd.DataFrame({"c": pd.array([True, None], dtype="boolean")}), 0) == [
        True,
        MISSING,
    ]
    assert repr(Factor("c", ("a",), (0,))) == "Factor('c', 1 levels)"
