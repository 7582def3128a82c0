"""A value of a fit that is computed when it is asked for, from a copy of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np

from skbayes_sg.data import InMemory
from skbayes_sg.data.threads import one_thread

T = TypeVar("T")


class Deferred(Generic[T]):
    """The result of a function without arguments, which is called once.

    A file or a copy has the result, and never the function and the rows that it holds.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        self._function: Callable[[], T] | None = function
        self._value: T | None = None

    @property
    def value(self) -> T:
        """The result.

        Raises
        ------
        ValueError
            If a matrix is singular.
        """
        function = self._function
        if function is not None:
            try:
                with one_thread(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                    self._value = function()
            except np.linalg.LinAlgError as error:
                raise ValueError(
                    f"the posterior is singular in double precision ({error}); scale the columns "
                    "of X, for example by StandardScaler"
                ) from error
            self._function = None  # lets go of the rows
        assert self._value is not None
        return self._value

    def __getstate__(self) -> dict[str, Any]:
        return {"_value": self.value, "_function": None}


def kept(data: InMemory) -> InMemory:
    """The rows as they are now: the user may change the arrays after the fit."""
    weight = None if data.weight is None else data.weight.copy()
    return replace(data, X=data.X.copy(), y=data.y.copy(), weight=weight)
