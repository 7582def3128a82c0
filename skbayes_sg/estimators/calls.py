"""Ends of a call of `fit` or `partial_fit`: warnings at the user's line, or no change at all."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from sklearn.exceptions import ConvergenceWarning

_LIBRARIES = ("skbayes_sg", "sklearn", "joblib", "pickle", "copy", "skops")


def warn(messages: Iterable[str], category: type[Warning] = ConvergenceWarning) -> None:
    """Warn at the user's line: the first one outside this package and those that call it."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and _of_a_library(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    for message in messages:
        warnings.warn(message, category, stacklevel=level)


@contextmanager
def quietly() -> Iterator[None]:
    """Show no ConvergenceWarning of a fit whose warnings are handed on in another way."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _of_a_library(module: str) -> bool:
    return module.partition(".")[0] in _LIBRARIES


def all_or_nothing(method: Callable) -> Callable:
    """Restore the attributes of the estimator if a call raises or is interrupted."""

    @functools.wraps(method)
    def guarded(self, *args, **kwargs):
        before = dict(vars(self))
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return guarded
