"""A step size, temperature or alpha is a number or a callable of the step index."""

from __future__ import annotations

import math
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


@dataclass(frozen=True)
class CosineCycle:
    """From `first` to `last` along half a cosine in `length` steps, then again: warm restarts.

    As SGLD's step_size from large to small, or SGFS's alpha from small to large: a bold stretch that may leave a mode,
    then a fine one that samples where it has come to (Zhang et al. 2020, cyclical SG-MCMC).

    Parameters
    ----------
    first, last : float
        Values at the start and at the end of a cycle.
    length : int
        Steps of a cycle.
    keep : float, default=0.5
        Part of each cycle, at its end, whose draws count; the others get weight 0.

    Examples
    --------
    >>> from skbayes_sg.samplers import CosineCycle
    >>> cycle = CosineCycle(first=1.0, last=9.0, length=1000)
    >>> cycle(0), cycle(500), cycle(1000), cycle.weight(400), cycle.weight(600)
    (1.0, 5.0, 1.0, 0.0, 1.0)
    """

    first: float
    last: float
    length: int
    keep: float = 0.5

    def __call__(self, t: int) -> float:
        share = 0.5 - 0.5 * math.cos(math.pi * (t % self.length) / self.length)
        return self.first + (self.last - self.first) * share

    def weight(self, t: int) -> float:
        """Of a draw at step t."""
        return float(t % self.length >= (1 - self.keep) * self.length)


def weight_at(schedule: object, t: int) -> float:
    """Whether a draw at step t counts, 1 or 0, under a schedule that may say so."""
    return schedule.weight(t) if isinstance(schedule, CosineCycle) else 1.0


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
