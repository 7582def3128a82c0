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


def alpha_at(alpha: Schedule | str, t: int) -> float:
    """The alpha of a step, between 0 and 1e6; 0 where it is "auto" and not chosen yet."""
    if isinstance(alpha, str):
        if alpha != "auto":
            raise ValueError(f'alpha must be "auto", a number or a callable, got {alpha!r}')
        return 0.0
    value = value_at(alpha, t, "alpha")
    if not 0 <= value <= 1e6:
        got = f"alpha({t}) is {value}" if callable(alpha) else f"got {alpha!r}"
        raise ValueError(f"alpha must lie between 0 and 1e6, {got}")
    return value


def weight_at(schedule: object, t: int) -> float:
    """Weight of a draw at step t: 0 in the first part of a `CosineCycle`, else 1."""
    return schedule.weight(t) if isinstance(schedule, CosineCycle) else 1.0


def value_at(schedule: Schedule, t: int, name: str) -> float:
    """The value of a number-or-callable at step t.

    Raises
    ------
    ValueError
        If it is not a finite number; the message names the parameter.
    """
    value = schedule(t) if callable(schedule) else schedule
    if (
        isinstance(value, (Real, np.floating))
        and not isinstance(value, bool)
        and np.isfinite(value)
    ):
        return float(value)
    origin = f"{name}({t})" if callable(schedule) else name
    raise ValueError(
        f"{origin} must be a finite number, got {value!r}; give a number or a callable of the step "
        "index"
    )


def require_step(step_size: Schedule | str) -> None:
    """Raise ValueError unless it is "auto", a positive number, or a callable positive at step 0."""
    if isinstance(step_size, str):
        if step_size != "auto":
            raise ValueError(f'step_size must be "auto", a number or a callable, got {step_size!r}')
    elif not value_at(step_size, 0, "step_size") > 0:
        raise ValueError(f"step_size must be positive, got {step_size!r}")


def require_damping(damping: Schedule) -> None:
    """Raise ValueError unless it is a number in (0, 1]."""
    if callable(damping) or not 0 < value_at(damping, 0, "damping") <= 1:
        raise ValueError(
            f"damping must lie in (0, 1], got {damping!r}; 1 is a step without momentum"
        )


def step_at(step_size: Schedule, t: int) -> float:
    """The step size at step t, which must be positive."""
    step = value_at(step_size, t, "step_size")
    if step <= 0:
        raise ValueError(f"step_size must be positive, step_size({t}) is {step}")
    return step


def temperature_at(temperature: Schedule, t: int) -> float:
    """The temperature at step t, which must not be negative."""
    value = value_at(temperature, t, "temperature")
    if value < 0:
        raise ValueError(f"temperature must be at least 0, got {value} at step {t}")
    return value
