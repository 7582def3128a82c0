"""What a sampler with control variates says of its anchor, and where it refuses one."""

from __future__ import annotations

import math

from skbayes_sg.samplers.base import NoAnchorError
from skbayes_sg.samplers.target import Anchored

_POOL_ERROR = 0.05  # in posterior standard deviations


def require_near(anchor: Anchored) -> None:
    """Refuse a pool of some rows around a point far from the mode.

    Rows were chosen by their remainders there. A pool of all rows is right around any point.

    Raises
    ------
    NoAnchorError
    """
    if math.isinf(anchor.steepness) and anchor.pool_error > 0:
        raise NoAnchorError(
            "the mode was not found to a posterior standard deviation per parameter, and control "
            "variates need it; columns with only a few rows that are not zero hide it"
        )


def figures(anchor: Anchored) -> dict[str, float]:
    """What `diagnostics_` tells of the anchor."""
    names = ("noise_number", "steepness", "column_steepness", "pool_error")
    return {name: getattr(anchor, name) for name in names}


def warnings(figures: dict[str, float]) -> list[str]:
    """A warning if the choice of the pool matters."""
    error = figures.get("pool_error", 0.0)
    if not error > _POOL_ERROR:
        return []
    return [
        f"pool_error is {error:.2f}: few rows dominate, and the posterior mean may be off by so "
        'many standard deviations; use sampler="hmc", which takes all rows at each step'
    ]
