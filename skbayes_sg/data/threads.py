"""Threads: how many BLAS has, and in how many blocks of rows are computed at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from os import cpu_count
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

# -- of BLAS ----------------------------------------------------------------------------------

_controller = cache(ThreadpoolController)  # to find the libraries takes as long as fifty steps
_LOCK, _INSIDE = Lock(), list[Any]()  # the limit that the first user set, and None for each other
_BEFORE = [1]  # threads before the limit


def threads_of_blas() -> int:
    """Threads that BLAS has outside of `one_thread`, and no more than there are cores.

    OMP_NUM_THREADS, threadpoolctl and the workers of joblib set them.
    """
    with _LOCK:
        if not _INSIDE:
            _BEFORE[0] = cpu_count() or 1
            for library in _controller().select(user_api="blas").info():
                _BEFORE[0] = max(1, min(_BEFORE[0], library["num_threads"]))
        return _BEFORE[0]


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS has one thread inside: more are slower for the small products of a step.

    The number belongs to the process. Fits in several threads, and one inside another, share the
    limit: the first sets it, and the last to end restores what was before.
    """
    threads_of_blas()  # while they can be seen
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


# -- of a pass ---------------------------------------------------------------------------------

_THREADS: ContextVar[int] = ContextVar("threads of a pass", default=1)


@contextmanager
def in_threads(count: int) -> Iterator[None]:
    """Passes inside compute `count` blocks at a time.

    It holds for this thread and not for the tasks of others, which have cores of their own.
    """
    before = _THREADS.set(count)
    try:
        yield
    finally:
        _THREADS.reset(before)


def in_order(function: Callable, blocks: Iterable) -> Iterator[Any]:
    """`function` of each block, in order, in as many threads as `in_threads` says.

    One block is computed as it is: a thread takes longer to start. A pass inside of one of these
    threads has no other.
    """
    count = _THREADS.get()
    if count == 1 or (isinstance(blocks, Sequence) and len(blocks) == 1):
        return map(function, blocks)

    def alone(block: Any) -> Any:
        with in_threads(1):
            return function(block)

    return ahead(alone, blocks, count)


def total_of(function: Callable[..., tuple], blocks: Iterable) -> tuple:
    """`function` of each block, added up entry by entry in the order of the blocks.

    So the sum does not depend on the number of threads, to the last bit. () is the sum of nothing.
    """
    total: tuple = ()
    for result in in_order(function, blocks):
        if total and result:
            total = tuple(a + b for a, b in zip(total, result, strict=True))
        else:
            total = total or result
    return total


def ahead(function: Callable, items: Iterable, count: int = 1) -> Iterator[Any]:
    """`function` of each, in order, computed in `count` threads while the last result is used."""
    pool, running = ThreadPoolExecutor(count), deque[Future]()
    try:
        for item in items:
            # NumPy's treatment of overflow belongs to the context, and a thread starts without
            running.append(pool.submit(copy_context().run, function, item))
            if len(running) > count:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def of_blocks(function: Callable, blocks: Sequence) -> Iterator[Any]:
    """`function` of each block, in order, in as many threads as BLAS has, which has one in each.

    The limit ends with a block: it does not outlive an error between two of them.
    """

    def alone(block: Any) -> Any:
        with one_thread():
            return function(block)

    count = threads_of_blas()
    if len(blocks) == 1 or count == 1:
        return map(function, blocks)
    return ahead(alone, blocks, count)
