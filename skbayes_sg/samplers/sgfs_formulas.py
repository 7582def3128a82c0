"""P and W of SGFS, in the formulas of the papers and of this package.

The step is ``theta += 2 (P + W)^-1 (gradient + eta)``, ``eta ~ N(0, W)``. Each formula takes the
averages of one row, the number of rows N, the minibatches (n rows, noise factor c) and B, and
returns P and W; W is None without injection. B is a name, a number or an operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skbayes_sg.data.minibatches import Batches
from skbayes_sg.linalg import Dense, Diag, Operator
from skbayes_sg.samplers.preconditioned import Memory


@dataclass
class FisherMemory(Memory):
    """The averages of SGFS."""

    alpha: float = 0.0  # alpha of the present `preconditioner` and `noise_root`
    step: float = 1.0  # K of an annealed alpha over 2 P^-1, mean over the coordinates


def exact(
    memory: FisherMemory, N: float, rows: Batches, B: str | float | Operator
) -> tuple[Operator, Operator]:
    """P = F + c N I1 + prior and W = alpha^2 B + prior, F the model Fisher of all rows.

    In a direction without data the step is an independent draw of the prior. Where c < 1, (1 - c) F
    is injected as well (math/stationary.md#the-exact-step, math/sgfs.md#sgfs).
    """
    I_N, c = memory.I1 * N, rows.noise_factor
    F = I_N if memory.fisher is None else memory.fisher * N
    P = F + I_N * c + memory.prior
    W: Operator = memory.prior
    if memory.alpha > 0:
        W = shape_of(B, I_N * (c + 1.0), P) * memory.alpha**2 + W
    if c < 1.0:
        W = _sum(F * (1.0 - c), W)
    return P, W


def paper(
    memory: FisherMemory, N: float, rows: Batches, B: str | float | Operator
) -> tuple[Operator, Operator | None]:
    """P = gamma I_N, gamma = (n + N) / n; W = alpha^2 B: Algorithm 1 of Ahn et al. as printed."""
    P = memory.I1 * N * ((rows.size + N) / rows.size)
    return P, shape_of(B, P, P) * memory.alpha**2 if memory.alpha > 0 else None


def mandt(
    memory: FisherMemory, N: float, rows: Batches, B: str | float | Operator
) -> tuple[Operator, Operator | None]:
    """P = c N I1: optimal in continuous time (Mandt et al. Eq. 36 and the corollary after it)."""
    I_N, c = memory.I1 * N, rows.noise_factor
    P = I_N * c
    return P, shape_of(B, I_N * (c + 1.0), P) * memory.alpha**2 if memory.alpha > 0 else None


def with_preconditioner(C: Operator, alpha: float, P: Operator) -> tuple[Operator, Operator]:
    """K = (eps/2) C and W = alpha^2 C^-1 - P, eps = 4 / alpha^2: Eq. 9 of Ahn et al. for any P.

    K W K = eps C - (eps^2/4) C P C is the covariance injected into theta (math/sgfs.md#a-given-c).

    Raises
    ------
    ValueError
        If W is not positive definite; the message says from which alpha it is.
    """
    W = _sum(C.inverse() * alpha**2, P * -1.0)
    try:
        W.cholesky()
    except np.linalg.LinAlgError:
        least = math.sqrt(np.linalg.eigvals(C.dense() @ P.dense()).real.max())
        raise ValueError(
            f"alpha={alpha:.3g} is too small for this C, the step is too long: the noise left to "
            f"inject has no positive definite covariance; alpha must be above {least:.3g}, or "
            f"C below {(alpha / least) ** 2:.3g} times the present one"
        ) from None
    return C * (2.0 / alpha**2), W


def shape_of(B: str | float | Operator, fisher: Operator, P: Operator) -> Operator:
    """B itself, by its name, or a number times the identity."""
    if isinstance(B, Operator):
        return B
    if B == "fisher":
        return fisher
    if B == "precision":
        return P
    if B == "bounded":
        return P + _identity(P, P.diagonal().mean())
    return _identity(P, float(B))


def _sum(A: Operator, B: Operator) -> Operator:
    """A + B; the sum of a matrix and blocks is a matrix."""
    if isinstance(A, Dense) != isinstance(B, Dense) and Diag not in (type(A), type(B)):
        return Dense(A.dense() + B.dense())
    return A + B


def _identity(like: Operator, level: float) -> Diag:
    return Diag(np.full(like.dim, level))


FORMULAS: dict[str, Callable[..., tuple[Operator, Operator | None]]] = {
    "exact": exact,
    "paper": paper,
    "mandt": mandt,
}
