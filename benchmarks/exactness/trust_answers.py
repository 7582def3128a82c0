"""What the cases of `trust.py` give, and how they call the package."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from skbayes_sg import BayesianLinearRegressionSGFS, BayesianLogisticRegressionSGFS

LOGISTIC = BayesianLogisticRegressionSGFS(random_state=0)
LINEAR = BayesianLinearRegressionSGFS(random_state=0)


class Answer(NamedTuple):
    """A figure of a case, and what it has to be."""

    of: str
    figure: str
    value: float
    low: float = -np.inf
    high: float = np.inf
    warnings: int = 0
    may_warn: bool = False
    """whether a warning is an answer, too"""


class Call(NamedTuple):
    """What a call gave."""

    result: Any
    """or the error that it raised"""
    warnings: int
    seconds: float


def call(job: Callable[[], Any]) -> Call:
    """Result or error, number of warnings, and processor time."""
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = job()
        except (ValueError, TypeError, FloatingPointError) as error:
            result = error
    return Call(result, len(caught), time.process_time() - start)


def fitted(model: Any, X: Any, y: Any, **more: Any) -> Call:
    """A clone of the model, fitted."""
    return call(lambda: clone(model).fit(X, y, **more))
