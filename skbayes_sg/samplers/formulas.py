"""P and W of SGFS, in the formulas of the papers and of this package.

The step is ``theta += 2 (P + W)^-1 (gradient + eta)``, ``eta ~ N(0, W)``. Each formula takes the
averages of one row, the number of rows N, the minibatches (n rows, noise factor c) and B, and
returns P and W; W is None without injection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skbayes_sg.linalg import Diag, Operator
from skbayes_sg.rows import Batches
from skbayes_sg.samplers.preconditioned import Memory


@dataclass
class FisherMemory(Memory):
    """The averages of SGFS."""

    alpha: float = 0.0  # alpha of the present `gain` and `kick`
    Lam: Operator | None = None  # curvature at the anchor, prior included


def exact(
    memory: FisherMemory, N: float, rows: Batches, B: str | float
) -> tuple[Operator, Operator]:
    """P = F + c N I1 + prior and W = alpha^2 B + prior, F the model Fisher of all rows.

    In a direction without data the step is an independent draw of the prior. Where c < 1, (1 - c) F
    is injected as well (math.md#the-exact-step, math.md#sgfs).
    """
    I_N, c = memory.I1 * N, rows.noise_factor
    F = I_N if memory.fisher is None else memory.fisher * N
    P = F + I_N * c + memory.prior
    W: Operator = memory.prior
    if memory.alpha > 0:
        W = _matrix(B, I_N * (c + 1.0), P) * memory.alpha**2 + W
    if c < 1.0:
        W = F * (1.0 - c) + W
    return P, W


def paper(
    memory: FisherMemory, N: float, rows: Batches, B: str | float
) -> tuple[Operator, Operator | None]:
    """P = gamma I_N, gamma = (n + N) / n; W = alpha^2 B: Algorithm 1 of Ahn et al. as printed."""
    P = memory.I1 * N * ((rows.size + N) / rows.size)
    return P, _matrix(B, P, P) * memory.alpha**2 if memory.alpha > 0 else None


def mandt(
    memory: FisherMemory, N: float, rows: Batches, B: str | float
) -> tuple[Operator, Operator | None]:
    """P = c N I1: optimal in continuous time (Mandt et al. Eq. 36 and the corollary after it)."""
    I_N, c = memory.I1 * N, rows.noise_factor
    P = I_N * c
    return P, _matrix(B, I_N * (c + 1.0), P) * memory.alpha**2 if memory.alpha > 0 else None


def anchored(
    memory: FisherMemory, N: float, rows: Batches, B: str | float
) -> tuple[Operator, Operator]:
    """P = Lam + c N I1 and W = alpha^2 B, Lam the curvature at the anchor; B = Lam or a number.

    Source: math.md#control-variates.
    """
    assert memory.Lam is not None
    Lam, w = memory.Lam, memory.alpha**2
    W = Lam * w if B == "fisher" else Lam * 0.0 + _identity(Lam, w * float(B))
    return Lam + memory.I1 * (rows.noise_factor * N), W


def _matrix(B: str | float, fisher: Operator, P: Operator) -> Operator:
    """B by its name, or a number times the identity."""
    if B == "fisher":
        return fisher
    if B == "precision":
        return P
    if B == "bounded":
        return P + _identity(P, P.diagonal().mean())
    return _identity(P, float(B))


def _identity(like: Operator, level: float) -> Diag:
    return Diag(np.full(like.dim, level))


FORMULAS: dict[str, Callable[..., tuple[Operator, Operator | None]]] = {
    "exact": exact,
    "paper": paper,
    "mandt": mandt,
    "anchored": anchored,
}
