"""BLAS with one thread while chains run."""

from __future__ import annotations

from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController  # a dependency of scikit-learn


class OneThread:
    """BLAS has one thread inside: two take three times as long for the small products of a step.

    The number belongs to the process. Fits in several threads, and one inside another, share the
    limit: the first sets it, and the last to end restores what was before.
    """

    def __init__(self) -> None:
        self._lock, self._users = Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._limit = _controller().limit(limits=1, user_api="blas")
            self._users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._limit.restore_original_limits()
            release()


def release() -> None:
    """Let other threads set the number: threadpoolctl 3.8 heeds the first one until then."""
    for library in _controller().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread()


@cache
def _controller() -> ThreadpoolController:
    """To find the libraries takes as long as fifty steps."""
    return ThreadpoolController()


_SHARED = OneThread()


def one_thread() -> OneThread:
    """The limit that all fits share."""
    return _SHARED
