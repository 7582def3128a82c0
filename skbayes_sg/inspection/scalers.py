"""Units of columns before the steps that scaled them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

_FAR_PROBE = 2.0**30  # so far that the origin takes no digits of the unit
_REMEDY = (
    "scaler must be fitted and shift and stretch each column, as StandardScaler does, or be a "
    "ColumnTransformer or Pipeline of such steps, encoders and imputers"
)


def units_before(step: Any, n_columns: int) -> tuple[NDArray, NDArray]:
    """Origin and unit of each column before a step: x = origin + unit * column.

    Columns that an encoder makes, and those that an imputer fills, are in units of their own.

    Raises
    ------
    ValueError
        If the step does more than shift and stretch each column, or has other columns.
    """
    if isinstance(step, Pipeline):
        origin, unit = np.zeros(n_columns), np.ones(n_columns)
        for _, each in reversed(step.steps):
            before, stretch = units_before(each, n_columns)
            origin, unit = before + stretch * origin, stretch * unit
            if hasattr(each, "categories_"):  # the columns before an encoder are others
                break
        return origin, unit
    if isinstance(step, ColumnTransformer):
        return _of_parts(step, n_columns)
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return np.zeros(n_columns), np.ones(n_columns)
    if hasattr(step, "categories_") or hasattr(step, "missing_values"):  # an encoder, or an imputer
        check_is_fitted(step)
        _require_columns(step, len(step.get_feature_names_out()), n_columns)
        return np.zeros(n_columns), np.ones(n_columns)
    return _of_scaler(step, n_columns)


def _of_parts(step: ColumnTransformer, n_columns: int) -> tuple[NDArray, NDArray]:
    """Of the columns that each part gives."""
    check_is_fitted(step)
    parts = [(part, step.output_indices_[name]) for name, part, _ in step.transformers_]
    _require_columns(step, max(at.stop for _, at in parts), n_columns)
    origin, unit = np.zeros(n_columns), np.ones(n_columns)
    for part, at in parts:
        if at.stop > at.start:
            origin[at], unit[at] = units_before(part, at.stop - at.start)
    return origin, unit


def _of_scaler(scaler: Any, n_columns: int) -> tuple[NDArray, NDArray]:
    """By what it makes of three rows when it is undone."""
    one_way = getattr(scaler, "func", None) is not None and scaler.inverse_func is None
    if one_way or not hasattr(scaler, "inverse_transform"):
        raise ValueError(f"{_REMEDY}; got {scaler!r}")
    check_is_fitted(scaler)
    _require_columns(scaler, scaler.n_features_in_, n_columns)
    ramp = np.arange(1.0, n_columns + 1) / n_columns
    probes = np.stack([np.zeros(n_columns), np.full(n_columns, _FAR_PROBE), ramp])
    try:
        with np.errstate(all="ignore"):
            origin, far, found = np.asarray(scaler.inverse_transform(probes), dtype=np.float64)
            unit = (far - origin) / _FAR_PROBE
            expected = origin + unit * ramp
    except (ValueError, TypeError) as error:
        raise ValueError(f"{_REMEDY}; {scaler!r} cannot undo any numbers") from error
    if not np.allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(unit).min()):
        raise ValueError(f"{_REMEDY}; {scaler!r} does something else")
    return origin, unit


def _require_columns(step: Any, n_given: int, n_columns: int) -> None:
    if n_given != n_columns:
        raise ValueError(
            f"scaler was fitted on {n_given} columns, the estimator on {n_columns}; give the step "
            "that comes right before the estimator"
        )
