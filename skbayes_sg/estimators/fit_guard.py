"""Ends of a call of `fit` or `partial_fit`: warnings at the user's line, or no change at all."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from functools import partial, wraps
from itertools import takewhile
from traceback import walk_stack
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

_LIBRARIES = ("skbayes_sg", "sklearn", "joblib", "pickle", "copy", "skops")
_WRAPPERS = ("skbayes_sg", "sklearn.base", "sklearn.callback")  # around `fit`
_STARTS_WORKERS = ("multiprocessing", "threading", "concurrent")
_OF_ONE_FIT = (
    "skbayes_sg.estimators.base",
    "skbayes_sg.estimators.fit_guard",
    "skbayes_sg.estimators.classifier",
    "skbayes_sg.estimators.ordinal",
    "skbayes_sg.estimators.regressor",
    "sklearn.base",
    "sklearn.callback",
    "sklearn.pipeline",
)
_RESCALE = (
    "scale the columns of X, for example by StandardScaler, and numbers in y; or bring weights and "
    "precisions of the prior nearer to 1"
)
_NOT_FINITE = ("cannot convert float NaN", "array must not contain infs or NaNs")  # not our words
_SINGULAR = "the posterior is singular in double precision ({}); " + _RESCALE
_FULL = "memory is full ({}); lower n_draws, n_chains or n_jobs, or fit fewer rows or columns"
_OUTLIVES = "attributes of the estimator that outlive this error"
_KILLED = (
    "a worker process ended before its chains did, most often because memory was full ({}); lower "
    "n_jobs or n_draws; callbacks.Checkpoint saves draws on the way"
)


def warn(messages: str | Iterable[str], category: type[Warning] = ConvergenceWarning) -> None:
    """Warn at the user's line: the first one outside this package and those that call it.

    A worker does not know the user's line. There it is the line that called this package.
    """
    modules = list(_modules_of_callers())
    level = _first_outside(_LIBRARIES, modules)
    if _of(_STARTS_WORKERS, modules[level]):
        level = _first_outside(_WRAPPERS, modules)
    for message in [messages] if isinstance(messages, str) else messages:
        warnings.warn(message, category, stacklevel=level + 1)


def _first_outside(packages: tuple[str, ...], modules: list[str]) -> int:
    """Number of the first frame whose module is of none of the packages, or of the last frame."""
    return next((i for i, name in enumerate(modules) if not _of(packages, name)), len(modules) - 1)


@contextmanager
def quietly() -> Iterator[None]:
    """Show no ConvergenceWarning of a fit whose warnings are handed on in another way."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def is_all_of_the_call() -> bool:
    """Whether the user's line fits this estimator alone, or in a pipeline.

    A search or an ensemble would go on with its next fit.
    """
    inside = takewhile(partial(_of, _LIBRARIES), _modules_of_callers())
    return all(module.startswith(_OF_ONE_FIT) for module in inside)


def _modules_of_callers() -> Iterator[str]:
    """Names of the modules on the stack, from that of the caller outwards."""
    return (frame.f_globals.get("__name__", "") for frame, _ in walk_stack(sys._getframe(1)))


def _of(packages: tuple[str, ...], module: str) -> bool:
    return f"{module}.".startswith(tuple(f"{package}." for package in packages))


def outlives(error: BaseException, **attributes: Any) -> None:
    """Let attributes of the estimator outlive the error that ends a call."""
    vars(error)[_OUTLIVES] = attributes


def all_or_nothing(method: Callable) -> Callable:
    """Restore the attributes of the estimator, but for `outlives`, if a call raises.

    NumPy does not warn of overflow on the way. A result that is not finite is refused
    (`require_finite`), and so is a matrix or number that overflow or underflow made singular. An
    error of the machine (memory is full, a worker process was killed) gets a remedy.
    """

    @wraps(method)
    def guarded(self, *args, **kwargs):
        before = dict(vars(self))
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                return method(self, *args, **kwargs)
        except BaseException as error:
            vars(self).clear()
            vars(self).update(before | vars(error).get(_OUTLIVES, {}))
            singular = isinstance(error, (np.linalg.LinAlgError, ZeroDivisionError, OverflowError))
            if singular or str(error).startswith(_NOT_FINITE):
                raise ValueError(_SINGULAR.format(error)) from error
            if isinstance(error, MemoryError):
                raise MemoryError(_FULL.format(error)) from error
            if isinstance(error, BrokenExecutor):
                raise RuntimeError(_KILLED.format(str(error).split("\n")[0])) from error
            raise

    return guarded


def require_finite(**attributes: Any) -> None:
    """Raise FloatingPointError if a number of an attribute is not finite."""
    for name, values in attributes.items():
        if not np.isfinite(values).all():
            raise FloatingPointError(f"{name} is not finite; {_RESCALE}")
