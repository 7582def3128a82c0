"""The injected noise that a user may prescribe to SGFS: B, C or a largest gain."""

from __future__ import annotations

from typing import Any

from skbayes_sg.linalg import Operator
from skbayes_sg.samplers.given import given_matrix, is_matrix
from skbayes_sg.samplers.schedules import Schedule, value_at

_NAMES = ("fisher", "precision", "bounded")
_REMEDY = 'give "fisher", "precision", "bounded", a positive number or an array'
_KRON = '{} as an array needs single coordinates, which structure="kron" does not keep; {}'


def operator_of(B: Any, dim: int) -> str | float | Operator:
    """B as the formulas of SGFS take it: a name, a number or an operator."""
    return given_matrix("B", B, dim) if is_matrix(B) else B


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


def require_largest_gain(h_max: Any, structure: str) -> None:
    """Raise ValueError unless h_max is None, or a positive number and the matrices are diagonal."""
    if h_max is None:
        return
    if callable(h_max) or not value_at(h_max, 0, "h_max") > 0:
        raise ValueError(f"h_max must be None or a positive number, got {h_max!r}")
    if structure not in ("diag", "scalar"):
        raise ValueError('h_max bounds the entries of a diagonal; use structure="diag" or "scalar"')
