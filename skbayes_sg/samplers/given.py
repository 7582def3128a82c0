"""Matrices that the user gives: a diagonal (D,) or a matrix (D, D), checked."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from skbayes_sg.checks import real_array
from skbayes_sg.linalg import Dense, Diag

_ROUNDING = 1e-10  # asymmetry over the largest entry that a product of matrices may leave


def is_matrix(value: Any) -> bool:
    """Whether a parameter that may also be a name or a number is an array, or a list of numbers."""
    return not (value is None or isinstance(value, (str, Real, np.floating)) or callable(value))


def given_matrix(name: str, value: Any, dim: int) -> Diag | Dense:
    """The operator of a symmetric positive definite matrix, or of its diagonal.

    Raises
    ------
    ValueError
        If it is no such matrix; the message names the parameter.
    """
    A = real_array(name, value)
    if A.shape not in ((dim,), (dim, dim)):
        raise ValueError(f"{name} must have shape ({dim},) or ({dim}, {dim}), got {A.shape}")
    if not np.isfinite(A).all():
        raise ValueError(f"{name} must be finite")
    if A.ndim == 2 and np.abs(A - A.T).max() > _ROUNDING * np.abs(A).max():
        raise ValueError(f"{name} must be symmetric; give ({name} + {name}.T) / 2")
    operator = Diag(A) if A.ndim == 1 else Dense((A + A.T) / 2)
    try:
        operator.inverse()
    except np.linalg.LinAlgError:
        raise ValueError(
            f"{name} must be positive definite; add a multiple of the identity"
        ) from None
    return operator
