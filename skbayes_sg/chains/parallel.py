"""How the tasks of a fit run: as joblib tasks, with BLAS in one thread, until the time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from math import inf
from threading import Lock
from typing import Any, NamedTuple

from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController  # a dependency of scikit-learn

cores = effective_n_jobs
"""Tasks that may run at a time here, of `n_jobs`."""


def in_parallel(function: Callable, each: Iterable, n_jobs: int | None) -> list:
    """`function` of each, in order, as joblib tasks.

    BLAS runs with one thread. The products of a step are too small for two threads, workers must
    not compete for cores, and a sum that is split over threads rounds differently.
    """
    task = delayed(under_limit(function))
    with one_thread():  # outermost, as threads of one process share the limit
        return Parallel(n_jobs=n_jobs)(map(task, each))


# -- BLAS -------------------------------------------------------------------------------------

_controller = cache(ThreadpoolController)  # to find the libraries takes as long as fifty steps
_LOCK, _INSIDE = Lock(), list[Any]()  # the limit that the first user set, and None for each other


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS has one thread inside: two take three times as long for the small products of a step.

    The number belongs to the process. Fits in several threads, and one inside another, share the
    limit: the first sets it, and the last to end restores what was before.
    """
    with _LOCK:
        _INSIDE.append(None if _INSIDE else _controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _LOCK:
            limit = _INSIDE.pop()
            if limit is not None:
                limit.restore_original_limits()
            # let other threads set the number: threadpoolctl 3.8 heeds the first one until then
            for library in _controller().lib_controllers:
                if hasattr(library, "clear_controlling_thread"):
                    library.clear_controlling_thread()


# -- the time of a fit ------------------------------------------------------------------------


class _Limit(NamedTuple):
    end: float  # by `time.time`, which processes share
    cut: list[str]


_NONE = _Limit(inf, [])
_LIMIT: ContextVar[_Limit] = ContextVar("limit of the time of a fit", default=_NONE)
"""What comes before the draws asks for it at its joints. It belongs to the thread, as the number of
threads of a pass does; tasks of other threads and processes carry it with them."""


@contextmanager
def time_limit(end: float) -> Iterator[list[str]]:
    """Inside, time is up from this moment on; the value is the list of what was cut short."""
    limit = _Limit(end, [])
    before = _LIMIT.set(limit)
    try:
        yield limit.cut
    finally:
        _LIMIT.reset(before)


def under_limit(function: Callable) -> Callable:
    """The function for a task of another thread or process, under the present limit."""
    return partial(_under, _LIMIT.get().end, function)


def _under(end: float, function: Callable, *args: Any) -> Any:
    with time_limit(end):
        return function(*args)


def time_is_up() -> bool:
    """Whether to stop at the next joint."""
    return time.time() >= _LIMIT.get().end


def cut_short(what: str, made: int, of: int) -> None:
    """Note what was cut short where the time is up, unless it is complete."""
    if made < of and time_is_up():
        _LIMIT.get().cut.append(f"{what} ({made} of {of})")


def is_cut() -> bool:
    """Whether anything was cut short so far."""
    return bool(_LIMIT.get().cut)
