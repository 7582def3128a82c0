"""Wall times: medians of repeats, and what is left of a time after parts of it."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Clock:
    """Seconds of a block: ``with Clock() as clock: ...``, then ``clock.seconds``.

    now : the seconds of the wall, or `time.process_time`: of this process and all its threads
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self.now, self.seconds = now, 0.0

    def __enter__(self) -> Clock:
        """Start."""
        self._begin = self.now()
        return self

    def __exit__(self, *error) -> None:
        """Stop."""
        self.seconds = self.now() - self._begin


def seconds(job: Callable) -> float:
    """Seconds of one call."""
    with Clock() as clock:
        job()
    return clock.seconds


def in_turn(jobs: dict[str, Callable], repeats: int) -> dict[str, list[float]]:
    """Seconds of every call of every job; the jobs take turns, so that a slow spell meets all."""
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            found[name].append(seconds(job))
    return found


def microseconds(function: Callable, n_calls: int = 2000, repeats: int = 9) -> NDArray:
    """Mean time of a call in each repeat."""
    return np.array(timeit.repeat(function, number=n_calls, repeat=repeats)) / n_calls * 1e6


def median(times: ArrayLike) -> float:
    """As a Python float."""
    return float(np.median(times))


def rest(whole: Sequence[float] | NDArray, *parts: ArrayLike) -> float | None:
    """Median over repeats of the whole less its parts; None if that does not exceed its range.

    The parts may have been timed on their own. Then the rest can come out negative, or be nothing
    but scatter. Such a figure says nothing, and the times themselves are to be stated instead.
    """
    left = np.asarray(whole, dtype=float) - sum(np.asarray(part, dtype=float) for part in parts)
    return median(left) if median(left) > np.ptp(left) else None
