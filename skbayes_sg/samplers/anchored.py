"""SGFS with control variates: its formula, its automatic parameters and its figures."""

from __future__ import annotations

import math

from skbayes_sg.linalg import Operator
from skbayes_sg.rows import Batches
from skbayes_sg.samplers.base import NoGainError
from skbayes_sg.samplers.formulas import FisherMemory
from skbayes_sg.target import Anchored

_INJECTED = 3.0  # alpha^2: right up to a steepness of 2
_FEWEST_ROWS = 32  # of a minibatch: its noise is at most 1/32 of the curvature
_LARGEST_NOISE = 100  # noise number: above, minibatches have thousands of rows
_POOL_ERROR = 0.05  # in posterior standard deviations


def anchored(memory: FisherMemory, N: float, rows: Batches) -> tuple[Operator, Operator]:
    """P = Lam + c N I1 and W = alpha^2 Lam, Lam the curvature at the anchor.

    Source: math.md#control-variates.
    """
    assert memory.Lam is not None
    P = memory.Lam + memory.I1 * (rows.noise_factor * N)
    return P, memory.Lam * memory.alpha**2


def chosen(alpha: float | None, batch_size: int | None, anchor: Anchored) -> tuple[float, int]:
    """Alpha and the batch size by the noise number of the data, where they are None.

    In units of the curvature, noise is m = kappa / n and injection w = alpha^2. A step is
    2 / (1 + m + w) of a Newton step, and the autocorrelation time m + w steps. It overshoots where
    the gradient is more than (1 + w) / 2 times as steep as at the anchor. Any m + w is exact for a
    Gaussian posterior; 3 keeps the bias on others small. Source: math.md#noise-number,
    math.md#steepness.

    Raises
    ------
    NoGainError
        If the posterior is too steep for this alpha, or the noise number above 100.
    """
    w = _INJECTED if alpha is None else alpha**2
    limit, kappa = (1 + w) / 2, anchor.noise_number
    if not kappa <= _LARGEST_NOISE:
        raise NoGainError(
            f"few rows carry the noise of control variates: noise number {kappa:.3g}, above "
            f"{_LARGEST_NOISE}"
        )
    if not anchor.steepness <= limit:
        raise NoGainError(
            "the posterior is too far from Gaussian for control variates: its gradient is up to "
            f"{anchor.steepness:.1f} times as steep as at the anchor, above (1 + alpha^2) / 2 = "
            f"{limit:.3g}"
        )
    if batch_size is None:
        batch_size = math.ceil(_FEWEST_ROWS * max(1.0, kappa))
    return math.sqrt(w) if alpha is None else alpha, batch_size


def in_words(anchor: Anchored) -> str:
    """The figures by which control variates were found to be right."""
    return f" (noise number {anchor.noise_number:.2g}, steepness {anchor.steepness:.2g})"


def figures(anchor: Anchored) -> dict[str, float]:
    """What `diagnostics_` tells of the anchor."""
    return {
        "noise_number": anchor.noise_number,
        "steepness": anchor.steepness,
        "pool_error": anchor.pool_error,
    }


def complaints(figures: dict[str, float]) -> list[str]:
    """A warning if the choice of the pool matters."""
    error = figures.get("pool_error", 0.0)
    if not error > _POOL_ERROR:
        return []
    return [
        f"pool_error is {error:.2f}: few rows dominate, and the posterior mean may be off by so "
        "many standard deviations; use SGFS() without control variates"
    ]
