"""Ends of a call of `fit` or `partial_fit`: a result, or an error and no change at all."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from functools import wraps
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

_RESCALE = (
    "scale the columns of X, for example by StandardScaler, and numbers in y; or bring weights and "
    "precisions of the prior nearer to 1"
)
_NOT_FINITE = ("cannot convert float NaN", "array must not contain infs or NaNs")  # not our words
_SINGULAR = "the posterior is singular in double precision ({}); " + _RESCALE
_FULL = "memory is full ({}); lower n_draws, n_chains or n_jobs, or fit fewer rows or columns"
_KILLED = (
    "a worker process ended before its chains did, most often because memory was full ({}); lower "
    "n_jobs or n_draws; callbacks.Checkpoint saves draws on the way"
)


@contextmanager
def quietly() -> Iterator[None]:
    """Show no ConvergenceWarning of a fit whose warnings are handed on in another way."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


class KeptInterrupt(KeyboardInterrupt):
    """Ctrl-C, after which the estimator has the draws so far."""


def all_or_nothing(method: Callable) -> Callable:
    """Restore the attributes of the estimator if a call raises.

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
        except KeptInterrupt:
            raise
        except BaseException as error:
            vars(self).clear()
            vars(self).update(before)
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
