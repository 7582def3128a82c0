"""Matrices that the user gives, checked: B and C of SGFS, and a preconditioner of SGLD."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from skbayes_sg.linalg import Dense, Diag
from skbayes_sg.validation import real_array


def is_matrix(value: Any) -> bool:
    """Whether a parameter that may also be a name or a number is an array, or a list of numbers."""
    return not (value is None or isinstance(value, (str, Real)) or callable(value))


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
    # a product of matrices may be asymmetric by roundings
    if A.ndim == 2 and np.abs(A - A.T).max() > 1e-10 * np.abs(A).max():
        raise ValueError(f"{name} must be symmetric; give ({name} + {name}.T) / 2")
    operator = Diag(A) if A.ndim == 1 else Dense((A + A.T) / 2)
    try:
        operator.inverse()
    except np.linalg.LinAlgError:
        raise ValueError(
            f"{name} must be positive definite; add a multiple of the identity"
        ) from None
    return operator
