"""A step size, temperature or alpha is a number or a callable of the step index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import numpy as np

Schedule = float | Callable[[int], float]


@dataclass(frozen=True)
class PolynomialDecay:
    """``a * (b + t) ** -power``: the annealed step of Welling & Teh.

    Parameters
    ----------
    a, b, power : float
        Positive scale, offset in steps, and exponent. A law of large numbers for step-weighted
        averages needs ``power <= 1``; 1/3 has the smallest error (MATH E25).

    Examples
    --------
    >>> from skbayes_sg.samplers import PolynomialDecay
    >>> PolynomialDecay(a=1.0, b=1000.0, power=1.0)(0)
    0.001
    """

    a: float
    b: float
    power: float

    def __call__(self, t: int) -> float:
        return self.a * (self.b + t) ** -self.power


def value_at(schedule: Schedule, t: int, name: str) -> float:
    """The value of a number-or-callable at step t.

    Raises
    ------
    ValueError
        If it is not a finite number; the message names the parameter.
    """
    value = schedule(t) if callable(schedule) else schedule
    if isinstance(value, (Real, np.floating)) and not isinstance(value, bool) and np.isfinite(value):
        return float(value)
    origin = f"{name}({t})" if callable(schedule) else name
    raise ValueError(f"{origin} must be a finite number, got {value!r}; give a number or a callable of the step index")
