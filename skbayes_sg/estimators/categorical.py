"""Columns of categories on their way to a matrix: which they are, and what scikit-learn checks.

Before this rows are as the user has them, and behind it all is a matrix (`data.factors`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array, check_X_y

from skbayes_sg import frames
from skbayes_sg.data.factors import Design, NewLevels
from skbayes_sg.validation import is_integer, is_word

KINDS: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
    "order": "C",
}
"""Of arrays that estimators take."""
REMEDY = (
    "give such a column the type category (in pandas by astype), or name it in "
    "categorical_features, and it is a factor; or encode it, for example with OneHotEncoder"
)


def categorical_columns(asked: Any, X: Any) -> list[int]:
    """Numbers of the columns of X that `categorical_features` says are factors.

    Raises
    ------
    ValueError, TypeError
        If it names a column that is not there, or is no list of names, numbers or truth values.
    """
    if asked is None:
        return []
    if is_word(asked, "from_dtype"):
        return frames.categorical_columns(X)
    if np.ndim(X) != 2 and not frames.is_frame(X):  # which validation refuses
        return []
    X = frames.as_table(X)
    names = frames.column_names(X)
    given = np.asarray(asked, object)
    if isinstance(asked, str) or given.ndim != 1:
        raise ValueError(
            'categorical_features must be "from_dtype", None, or a list of names, numbers or truth '
            f"values of columns, got {asked!r}"
        )
    if sparse.issparse(X) and given.size:
        raise TypeError(
            "categorical_features: X is sparse, whose columns are numbers; give an array or a data "
            'frame, or leave categorical_features at "from_dtype"'
        )
    if given.size and all(isinstance(one, bool | np.bool_) for one in given):
        if len(given) != len(names):
            raise ValueError(
                f"categorical_features has {len(given)} truth values, and X has {len(names)} "
                "columns; give one for each"
            )
        return np.flatnonzero(given.astype(bool)).tolist()
    return sorted({_number_of(one, names, frames.is_frame(X)) for one in given})


def _number_of(column: Any, names: list, named: bool) -> int:
    if isinstance(column, str) and named and column in names:
        return names.index(column)
    if is_integer(column) and -len(names) <= column < len(names):
        return int(column) % len(names)
    some = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
    known = f"its columns are {some}" if named else f"it has {len(names)} columns without names"
    raise ValueError(f"categorical_features: X has no column {column!r}; {known}")


def validated(
    estimator: Any, X: Any, y: Any, design: Design, more: dict[str, Any]
) -> tuple[Any, dict[str, NewLevels]]:
    """Rows with factors as a sparse matrix, and those of levels without a column.

    The rows are a pair of X and y where there is a y, as `validate_data` gives them.
    """
    numbers, columns = np.empty((len(X), 0)), list(design.numbers)
    if columns:
        part = frames.select(X, columns)
        numbers = check_array(part, estimator=estimator, input_name="X", **KINDS)
    matrix, new = design.matrix(X, numbers)
    if is_word(y, "no_validation"):
        return check_array(matrix, estimator=estimator, input_name="X", **KINDS), new
    return check_X_y(matrix, y, estimator=estimator, **KINDS, **more), new
