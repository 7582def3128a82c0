"""Random numbers that are the same in every fit."""

from __future__ import annotations

import numpy as np


def deterministic_rng(purpose: str) -> np.random.Generator:
    """A generator that is the same in every fit, and that no user's data come from.

    Data made by ``default_rng(0)`` would otherwise be correlated with the rows that a fit picks.
    """
    return np.random.default_rng(list(f"skbayes_sg {purpose}".encode()))
