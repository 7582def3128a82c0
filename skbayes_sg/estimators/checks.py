"""What is asked of data and parameters before anything runs: errors that name them and say what to do."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

_SCALE_ROWS = 10_000


def column_squares(X, weight: NDArray | None) -> NDArray:
    """Mean square of each column, from up to 10,000 rows, (features,)."""
    rows = np.unique(np.linspace(0, X.shape[0] - 1, _SCALE_ROWS).astype(int))
    squares = np.square(dense(X[rows]), dtype=np.float64)
    return np.average(squares, axis=0, weights=None if weight is None else weight[rows])


def checked_weights(sample_weight: ArrayLike | None, n_rows: int) -> NDArray:
    """`sample_weight` as float64, one per row, finite and not negative; ones by default."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = real_array("sample_weight", sample_weight)
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected {(n_rows,)}: one weight per row")
    if not np.isfinite(weight).all() or weight.min() < 0:
        raise ValueError("sample_weight must be finite and not negative; 0 leaves a row out")
    return weight


def in_dtype(name: str, values: NDArray, dtype: np.dtype) -> NDArray:
    """`values` in X's precision, or a ValueError that names them if they do not fit."""
    with np.errstate(over="ignore"):
        values = values.astype(dtype)
    if not np.isfinite(values).all():
        raise ValueError(f"{name} is too large for {dtype}; divide all by a constant")
    return values


def dense(X) -> NDArray:
    """A block of rows as an array."""
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def require_integer(name: str, value: Any, least: int, otherwise: str = "") -> None:
    """Raise TypeError or ValueError, naming the parameter, unless `value` is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer{otherwise}, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}{otherwise}, got {value}")


def real_array(name: str, value: Any) -> NDArray:
    """`value` as an array of float64, or a ValueError that names it."""
    try:
        array = np.asarray(value)
        if array.dtype.kind in "biuf" or (array.dtype.kind == "O" and not np.iscomplexobj(array)):
            return array.astype(np.float64)
    except (ValueError, TypeError):
        pass
    raise ValueError(f"{name} must hold real numbers, got {value!r}")


def require_positive(name: str, value: Any, remedy: str) -> None:
    """Raise TypeError or ValueError, naming the parameter, unless `value` is a finite positive number."""
    if isinstance(value, bool) or not isinstance(value, (Real, np.floating)):
        raise TypeError(f"{name} must be a number, got {value!r}; {remedy}")
    if not 0 < float(value) < np.inf:
        raise ValueError(f"{name} must be positive and finite, got {value}; {remedy}")


def columns_without_numbers(X) -> list:
    """Names of the data frame columns that are not numbers."""
    if not hasattr(X, "columns"):
        return []
    text = []
    for position, name in enumerate(X.columns):
        try:
            np.asarray(X.iloc[:, position], dtype=np.float64)
        except (ValueError, TypeError):
            text.append(name)
    return text
