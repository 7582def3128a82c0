"""One memory budget, scikit-learn's ``working_memory``, for temporary arrays and for kept rows."""

from __future__ import annotations

from sklearn import get_config

_TEMPORARY, _KEPT = 128, 16  # parts of the budget
_FEWEST = 1 << 14


def elements_at_a_time() -> int:
    """Numbers of a temporary array in double precision: 8 MB of the default of 1 GB."""
    return max(_FEWEST, int(_bytes() / (8 * _TEMPORARY)))


def bytes_to_keep() -> float:
    """Bytes of rows in memory, and of draws in double precision: 64 MB of the default of 1 GB."""
    return _bytes() / _KEPT


def _bytes() -> float:
    return get_config()["working_memory"] * 2**20
