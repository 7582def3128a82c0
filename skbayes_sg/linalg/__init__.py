"""Operators, factored scores and linear changes of variables. Imports nothing of the package."""

from skbayes_sg.linalg.operators import (
    Blocks,
    Dense,
    Diag,
    Operator,
    Rotated,
    Rotation,
    largest_eigenvalue,
    stored,
)

__all__ = [
    "Blocks",
    "Dense",
    "Diag",
    "Operator",
    "Rotated",
    "Rotation",
    "largest_eigenvalue",
    "stored",
]
