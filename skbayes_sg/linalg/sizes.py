"""What is worth its cost at which size: where the algebra changes with the number of parameters.

``benchmarks/cost/sizes.py`` has the seconds of each side of a limit.
"""

from __future__ import annotations

_IN_EVERY_STEP = 1000
_ONCE = 4000
_QUICK = 250


def has_matrix(dim: int) -> bool:
    """Whether a D x D matrix may serve in every step: the curvature, a metric, the noise.

    At 1,000 parameters a product with 32 chains takes 1 ms and the factorisation .02 s; at 4,000 it
    is 26 ms and .7 s. Beyond, coordinates with a block and low rank take its place.
    """
    return dim <= _IN_EVERY_STEP


def has_matrix_once(n: int) -> bool:
    """Whether a matrix of n rows and columns may be made, and decomposed, once in a fit.

    At 4,000 it has 122 MB, and its eigenvalue problem, which a learned precision needs, takes 12 s.
    """
    return n <= _ONCE


def has_quick_matrix(dim: int) -> bool:
    """Whether Fisher scoring, with its curvature, is preferred to L-BFGS in whitened coordinates.

    At 250 columns and 5,000 rows it takes .07 s where L-BFGS takes .05 s, at 900 .7 s and .4 s.
    Below, both take about the same.
    """
    return dim < _QUICK
