"""What is worth its cost at which size: where the algebra changes with the number of parameters.

Seconds are those of one core with AVX-512 and OpenBLAS.
"""

from __future__ import annotations

_IN_EVERY_STEP = 1000
_ONCE = 4000
_QUICK = 250


def has_matrix(dim: int) -> bool:
    """Whether a D x D matrix may serve in every step: the curvature, a metric, the noise.

    At 1,000 parameters it has 8 MB, a factorisation takes .02 s and a product with 32 chains .8 ms,
    which grow to 1 s and 17 ms at 4,000. Beyond, coordinates with a block and low rank do better
    (``benchmarks/cost/wide.py``).
    """
    return dim <= _IN_EVERY_STEP


def has_matrix_once(n: int) -> bool:
    """Whether a matrix of n rows and columns may be made, and decomposed, once in a fit.

    At 4,000 it has 128 MB, and its eigenvalue problem takes 12 s, which is what a learned precision
    costs there; chains take three times as long to learn it (``benchmarks/cost/wide.py``).
    """
    return n <= _ONCE


def has_quick_matrix(dim: int) -> bool:
    """Whether Fisher scoring, with its curvature, is preferred to L-BFGS in whitened coordinates.

    At 250 columns and 5,000 rows it takes .10 s where L-BFGS takes .04 s. Below, either takes a
    small part of a fit, and Fisher scoring ends nearer to the mode.
    """
    return dim < _QUICK
