"""A step size, temperature or alpha is a number or a callable of the step index."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

Schedule = float | Callable[[int], float]

ANY, POSITIVE = "(-inf, inf)", "(0, inf)"
"""Intervals, as `value_at` takes them."""


@dataclass(frozen=True)
class PolynomialDecay:
    """A step that falls as a power of time, ``a * (b + t) ** -power`` (Welling & Teh 2011).

    Parameters
    ----------
    a, b, power : float
        Scale, offset in steps, and exponent, all positive. The steps have an infinite sum, without
        which the chain stops on its way, if ``power <= 1``, and a finite sum of squares if
        ``power > 1/2`` (handout, Condition 25). A law of large numbers for step-weighted averages
        needs only the first; 1/3 has the smallest error (math/errata.md#e25).

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

    For SGLD's step_size from large to small, or SGFS's alpha from small to large. The first part of
    a cycle takes long steps and may leave a mode. The last part takes short steps and samples
    (Zhang et al. 2020, cyclical SG-MCMC).

    Parameters
    ----------
    first, last : float
        Values at the start and at the end of a cycle.
    length : int
        Steps of a cycle.
    keep : float, default=0.5
        Last part of each cycle, whose draws count; other draws have weight 0.

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
        """Weight of a draw at step t, 1 or 0."""
        return float(t % self.length >= (1 - self.keep) * self.length)


def is_auto(value: object) -> bool:
    """Whether a parameter is to be chosen for the user."""
    return isinstance(value, str) and value == "auto"


def value_at(schedule: Any, t: int | None, name: str, interval: str = ANY) -> float:
    """The value of a number-or-callable at step t, in an interval such as "(0, 1]".

    Without t it must be a number.

    Raises
    ------
    ValueError
        If it is no such number; the message names the parameter and the interval.
    """
    value = schedule
    if callable(schedule) and t is not None:
        value, name = schedule(t), f"{name}({t})"
    if isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value):
        number, (low, high) = float(value), map(float, interval[1:-1].split(","))
        closed = (number == low and interval[0] == "[") or (number == high and interval[-1] == "]")
        if closed or low < number < high:
            return number
    where = "" if interval == ANY else f" in {interval}"
    raise ValueError(f"{name} must be a finite number{where}, got {value!r}")


def weight_at(schedule: object, t: int) -> float:
    """Weight of a draw at step t: 0 in the first part of a `CosineCycle`, else 1."""
    return schedule.weight(t) if isinstance(schedule, CosineCycle) else 1.0
