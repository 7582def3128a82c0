"""SGFS with control variates: its formula, and its automatic parameters."""

from __future__ import annotations

import math

from skbayes_sg.linalg import Operator
from skbayes_sg.rows import Batches
from skbayes_sg.samplers.base import NoGainError
from skbayes_sg.samplers.formulas import FisherMemory, shape_of
from skbayes_sg.target import Target

_HEAVY = 5  # noise number over that of normal rows, above which a few rows dominate the noise


def anchored(
    memory: FisherMemory, N: float, rows: Batches, B: str | float | Operator
) -> tuple[Operator, Operator]:
    """P = Lam + c N I1 and W = alpha^2 B, Lam the curvature at the anchor; "fisher" is Lam.

    Source: math.md#control-variates.
    """
    assert memory.Lam is not None
    Lam = memory.Lam
    P = Lam + memory.I1 * (rows.noise_factor * N)
    return P, shape_of(B, Lam, Lam) * memory.alpha**2


def chosen(alpha: float | None, batch_size: int | None, target: Target) -> tuple[float, int]:
    """Alpha and the batch size by the noise number of the data, where they are None.

    In units of the curvature, noise is m = kappa / n and injection w = alpha^2. A step is
    2 / (1 + m + w) of a Newton step, and the autocorrelation time m + w steps. Any m + w is exact
    for a Gaussian posterior; 3 keeps the bias on others small. w is at least 2 m, because noise
    feedback multiplies a bias by (m + w) / w. Source: math.md#noise-number,
    math.md#noise-feedback.

    Raises
    ------
    NoGainError
        If control variates do not pay on these data.
    """
    assert target.anchor is not None
    kappa = target.anchor.noise_number()
    if batch_size is None:
        # a row of leverage h multiplies the distance from the mode by 1 - (N/n) h / 2
        bearable = math.ceil(target.anchor.largest_row() / 4)
        n = max(32, round(kappa), bearable)
    else:
        n = batch_size
    w = max(3.0 - kappa / n, 2 * kappa / n) if alpha is None else alpha**2
    needed = 2 * (n * w + kappa)
    if target.n_total < needed:
        raise NoGainError(
            f"control variates do not pay: the {target.n_total:.0f} rows are fewer than "
            f"2 (n w + kappa) = {needed:.0f}, with kappa={kappa:.0f} the noise number of these "
            f"data, n={n} rows a step and w={w:.2g} injected",
            heavy=kappa > _HEAVY * target.dim,
        )
    return math.sqrt(w) if alpha is None else alpha, n
