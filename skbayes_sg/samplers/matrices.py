"""Matrices that the user gives, checked: B, C and a largest gain of SGFS, a preconditioner."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from skbayes_sg.linalg import Dense, Diag
from skbayes_sg.samplers.schedules import Schedule, value_at
from skbayes_sg.validation import real_array

_NAMES = ("fisher", "precision", "bounded")
_REMEDY = 'give "fisher", "precision", "bounded", a positive number or an array'
_KRON = '{} as an array needs single coordinates, which structure="kron" does not keep; {}'
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


def require_shape(B: Any, dim: int, structure: str, named: bool) -> None:
    """Raise ValueError unless B is a name, a positive number or an SPD matrix.

    `named` says whether the formula knows names besides "fisher".
    """
    if is_matrix(B):
        given_matrix("B", B, dim)
        if structure == "kron":
            raise ValueError(_KRON.format("B", "give a name or a number"))
    elif not isinstance(B, str):
        if callable(B) or not value_at(B, 0, "B") > 0:
            raise ValueError(f"B must be positive, got {B!r}; {_REMEDY}")
    elif B not in _NAMES:
        raise ValueError(f"B must be one of its names or values, got {B!r}; {_REMEDY}")
    elif B != "fisher" and not named:
        raise ValueError(f'B="{B}" needs variant="exact" without control variates')


def require_preconditioner(
    C: Any, dim: int, alpha: Schedule | str, structure: str, others: dict[str, Any]
) -> None:
    """Raise ValueError unless C is None, or SPD and beside it only alpha sets the injected noise.

    `others` are the parameters that C leaves no room for, which must have their defaults.
    """
    if C is None:
        return
    given_matrix("C", C, dim)
    if isinstance(alpha, str) or value_at(alpha, 0, "alpha") == 0:
        raise ValueError(f"C needs a step eps = 4 / alpha^2: alpha must be positive, got {alpha!r}")
    for name, value in others.items():
        if is_matrix(value) or value not in (None, "fisher"):
            raise ValueError(f"C determines the injected noise: leave {name} out, or C")
    if structure == "kron":
        raise ValueError(_KRON.format("C", 'use "full", "block", "diag" or "scalar"'))


def require_h_max(h_max: Any, structure: str) -> None:
    """Raise ValueError unless h_max is None, or a positive number and the matrices are diagonal."""
    if h_max is None:
        return
    if callable(h_max) or not value_at(h_max, 0, "h_max") > 0:
        raise ValueError(f"h_max must be None or a positive number, got {h_max!r}")
    if structure not in ("diag", "scalar"):
        raise ValueError('h_max bounds the entries of a diagonal; use structure="diag" or "scalar"')
