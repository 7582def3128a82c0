"""Fitted attributes that are read off the fit, by chains or by a stream alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class FromFit:
    """A fitted attribute that is read off the fit when it is asked for.

    To draw takes longer than to update a stream, and so may a look at all rows that are kept; and
    most chunks are followed by another one.

    Parameters
    ----------
    value : function
        Of the estimator and its fit. None: this fit has no such attribute.
    kept : bool, default=False
        Whether the fit keeps the value. The next one has values of its own.
    """

    def __init__(self, value: Callable[[Any, Any], Any], kept: bool = False) -> None:
        self._value, self._kept = value, kept

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, estimator: Any, owner: type) -> Any:
        if estimator is None:
            return self
        fit = estimator._fit
        if fit is None:
            raise AttributeError(f"{owner.__name__} has no {self._name} before fit")
        value = fit.values.get(self._name)
        if value is None:
            value = self._value(estimator, fit)
            if self._kept:
                fit.values[self._name] = value
        if value is None:
            raise AttributeError(f"{owner.__name__} has no {self._name} after this fit")
        return value
