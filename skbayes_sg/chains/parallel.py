"""Functions of each group of chains in several processes or threads: joblib lives here."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

from skbayes_sg.chains.deadline import under_limit
from skbayes_sg.chains.threads import one_thread


def in_parallel(function: Callable, each: Iterable, n_jobs: int | None) -> list:
    """`function` of each, in order, as joblib tasks.

    BLAS runs with one thread. The products of a step are too small for two threads, workers must
    not compete for cores, and a sum that is split over threads rounds differently.
    """
    task = delayed(under_limit(function))
    with one_thread():  # outermost, as threads of one process share the limit
        return Parallel(n_jobs=n_jobs)(task(one) for one in each)


def cores(n_jobs: int | None) -> int:
    """Tasks that may run at a time here."""
    return effective_n_jobs(n_jobs)
