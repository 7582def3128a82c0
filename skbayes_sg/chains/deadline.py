"""The end of the time of a fit. What comes before the draws asks for it at its joints.

It belongs to the thread, as the number of threads of a pass does. Tasks of other threads and
processes carry it with them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from math import inf
from typing import Any, NamedTuple


class _Limit(NamedTuple):
    end: float  # by `time.time`, which processes share
    cut: list[str]


_LIMIT: ContextVar[_Limit | None] = ContextVar("limit of the time of a fit", default=None)


@contextmanager
def time_limit(end: float) -> Iterator[list[str]]:
    """Inside, time is up from this moment on; the value is the list of what was cut short."""
    limit = _Limit(end, [])
    before = _LIMIT.set(limit)
    try:
        yield limit.cut
    finally:
        _LIMIT.reset(before)


def time_is_up() -> bool:
    """Whether to stop at the next joint."""
    limit = _LIMIT.get()
    return limit is not None and time.time() >= limit.end


def cut_short(what: str, made: int, of: int) -> None:
    """Note what was cut short where the time is up, unless it is complete."""
    limit = _LIMIT.get()
    if limit is not None and made < of and time_is_up():
        limit.cut.append(f"{what} ({made} of {of})")


def is_cut() -> bool:
    """Whether anything was cut short so far."""
    limit = _LIMIT.get()
    return limit is not None and bool(limit.cut)


def warnings_of(cut: list[str]) -> list[str]:
    """A warning of what was cut short, if anything was."""
    return [
        f"TimeLimit: the time was up before the first draw; cut short: {', '.join(cut)}; results "
        "may be off; raise seconds"
    ] * bool(cut)


def under_limit(function: Callable) -> Callable:
    """The function for a task of another thread or process, under the present limit."""
    limit = _LIMIT.get()
    return partial(_under, inf if limit is None else limit.end, function)


def _under(end: float, function: Callable, *args: Any) -> Any:
    with time_limit(end):
        return function(*args)
