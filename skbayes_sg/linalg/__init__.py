"""Operators, factored scores and linear changes of variables. Imports nothing of the package."""

from skbayes_sg.linalg.operators import (
    DIAGONAL,
    FULL,
    Blocks,
    Dense,
    Diag,
    Diagonal,
    Layout,
    Operator,
    Partitioned,
    Rotated,
    RotatedDiagonal,
    Rotation,
    largest_eigenvalue,
    stored,
)

__all__ = [
    "DIAGONAL",
    "FULL",
    "Blocks",
    "Dense",
    "Diag",
    "Diagonal",
    "Layout",
    "Operator",
    "Partitioned",
    "Rotated",
    "RotatedDiagonal",
    "Rotation",
    "largest_eigenvalue",
    "stored",
]
