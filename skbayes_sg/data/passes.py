"""A pass over blocks: in threads, with sums in the order of the blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any

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


def total_of(function: Callable[..., tuple], blocks: Iterable) -> tuple:
    """`function` of each block, added up entry by entry in the order of the blocks.

    So the sum does not depend on the number of threads, to the last bit.
    """
    total: tuple = ()
    count = _THREADS.get()
    parts = map(function, blocks) if count == 1 else ahead(function, blocks, count)
    for part in parts:
        total = added(total, part)
    return total


def added(total: tuple, part: tuple) -> tuple:
    """Two sums, entry by entry; () is the sum of nothing."""
    if not (total and part):
        return total or part
    return tuple(a + b for a, b in zip(total, part, strict=True))


def ahead(function: Callable, each: Iterable, count: int = 1) -> Iterator[Any]:
    """`function` of each, in order, computed in `count` threads while the last result is used."""
    pool, running = ThreadPoolExecutor(count), deque[Future]()
    try:
        for one in each:
            # NumPy's treatment of overflow belongs to the context, and a thread starts without
            running.append(pool.submit(copy_context().run, function, one))
            if len(running) > count:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


_CACHED, _LARGEST = 1 << 20, 1 << 22  # bytes
_ROWS_PER_COLUMN = 4


def pass_blocks(n_rows: int, columns: int, itemsize: int, pairs: bool) -> list[slice]:
    """The blocks of a pass, which stay in the processor's cache with what is computed of them.

    They have some rows for each column, as far as that is possible, if the sums have a number for
    each pair of columns. Otherwise adding up would cost more than the rows.
    """
    size = _ROWS_PER_COLUMN * columns**2 * itemsize if pairs else 0
    return row_blocks(n_rows, columns * itemsize, min(max(size, _CACHED), _LARGEST))


def row_blocks(n_rows: int, row_bytes: int, block_bytes: int = 1 << 20) -> list[slice]:
    """Contiguous slices of about `block_bytes` each, which together cover all rows."""
    step = max(1, block_bytes // max(1, row_bytes))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
