"""Checks of parameters, one error message for each kind of value, and warnings.

The message of an error names the parameter and the remedy.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection
from numbers import Integral, Real
from traceback import walk_stack
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

_LIBRARIES = ("skbayes_sg", "sklearn", "joblib", "pickle", "copy", "skops")
_STARTS_WORKERS = ("multiprocessing", "threading", "concurrent")
_WRAPPERS = ("skbayes_sg.", "sklearn.base.", "sklearn.callback.")  # around `fit`


def warn(messages: str | Collection[str], category: type[Warning] = ConvergenceWarning) -> None:
    """Warn at the user's line: the first one outside this package and those that call it.

    A worker does not know the user's line. There it is the line that called this package.
    """
    if not messages:
        return
    stack = walk_stack(sys._getframe())
    modules = [frame.f_globals.get("__name__", "") + "." for frame, _ in stack]
    packages = [module.partition(".")[0] for module in modules]
    outside = [i for i, package in enumerate(packages) if package not in _LIBRARIES]
    level = outside[0] if outside else len(modules) - 1
    if packages[level] in _STARTS_WORKERS:
        level = next(i for i, module in enumerate(modules) if not module.startswith(_WRAPPERS))
    for message in [messages] if isinstance(messages, str) else messages:
        warnings.warn(message, category, stacklevel=level + 1)


def shown(value: Any) -> str:
    """`value` as a user would write it: 0.0 for np.float64(0.0), [0, 1] for array([0, 1])."""
    return repr(value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value)


def is_integer(value: Any) -> bool:
    """Whether `value` is an integer and not a truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_word(value: Any, word: str) -> bool:
    """Whether `value`, which may be an array, is this word."""
    return isinstance(value, str) and value == word


def require_integer(name: str, value: Any, least: int, otherwise: str = "") -> None:
    """Raise TypeError or ValueError unless `value` is an integer of at least `least`."""
    if not is_integer(value):
        raise TypeError(f"{name} must be an integer{otherwise}, got {shown(value)}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}{otherwise}, got {value}")


def require_bounded(name: str, values: NDArray) -> None:
    """Raise ValueError unless values are finite and their squares, times a precision, too."""
    if not (np.abs(values) <= 1e100).all():
        raise ValueError(f"{name} must hold finite numbers of at most 1e+100")


def require_positive(name: str, value: Any, remedy: str) -> None:
    """Raise TypeError or ValueError unless `value` is a finite positive number."""
    if isinstance(value, bool) or not isinstance(value, (Real, np.floating)):
        raise TypeError(f"{name} must be a number, got {shown(value)}; {remedy}")
    if not 0 < float(value) < np.inf:
        raise ValueError(f"{name} must be positive and finite, got {value}; {remedy}")


def require_level(level: Any) -> None:
    """Raise TypeError or ValueError unless `level` is a probability between 0 and 1."""
    require_positive("level", level, "give a probability such as 0.95")
    if level >= 1:
        raise ValueError(f"level must be below 1, got {level}; give a probability such as 0.95")


def require_choice(name: str, value: Any, allowed: Collection) -> None:
    """Raise ValueError unless `value` is one of `allowed`."""
    for choice in allowed:
        if value is choice or value == choice:
            return
    raise ValueError(f"{name} must be one of {tuple(allowed)}, got {shown(value)}")


def require_predict_draws(n_draws: Any) -> None:
    """Raise ValueError or TypeError for what is no `n_predict_draws`."""
    if isinstance(n_draws, str):
        require_choice("n_predict_draws", n_draws, ("auto",))
    elif n_draws is not None:
        require_integer("n_predict_draws", n_draws, 1, ', "auto" or None')


def real_array(name: str, value: Any) -> NDArray:
    """`value` as an array of float64, or a ValueError that names it."""
    try:
        array = np.asarray(value)
        if array.dtype.kind in "biuf" or (array.dtype.kind == "O" and not np.iscomplexobj(array)):
            return array.astype(np.float64)
    except (ValueError, TypeError):
        pass
    raise ValueError(f"{name} must hold real numbers, got {shown(value)}")


def checked_weights(sample_weight: ArrayLike | None, n_rows: int) -> NDArray:
    """`sample_weight` as float64, one per row, finite and not negative; ones by default."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = real_array("sample_weight", sample_weight)
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight.shape == {weight.shape}, expected {(n_rows,)}: one weight per row"
        )
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
