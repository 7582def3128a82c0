"""How large is large: what is worth its cost at which size, and the budget of memory.

``python -m benchmarks.cost.sizes`` prints the seconds of each side of a limit, unless another
benchmark is named.
"""

from __future__ import annotations

from math import prod

from sklearn import get_config

_IN_EVERY_STEP = 1000
_ONCE = 4000


def has_matrix(dim: int) -> bool:
    """Whether a D x D matrix may serve in every step: the curvature, a metric, the noise.

    At 1,000 parameters a product with 32 chains takes .8 ms and the factorisation .01 s, at 4,000
    11 ms and .5 s. Beyond, coordinates with a block and low rank take its place.
    """
    return dim <= _IN_EVERY_STEP


def has_matrix_once(n: int) -> bool:
    """Whether a matrix of n rows and columns may be made, and decomposed, once in a fit.

    At 4,000 it has 122 MB, and its eigenvalue problem, which a learned precision needs, takes 9 s.
    """
    return n <= _ONCE


def is_worth_pairs(n_products: float) -> bool:
    """Whether a Gram matrix is made by pairs of units, with so many products for each of them.

    That takes fewer products by the number of virtual labels, and 10 us for each pair.
    """
    return n_products > 2e5


def is_overhead(n_elements: int) -> bool:
    """Whether most of a step with arrays of so many numbers is overhead.

    One group of chains then pays it once; ``python -m benchmarks.cost.seconds`` times such fits.
    """
    return n_elements <= 1 << 17


def has_cheap_passes(*sizes: int) -> bool:
    """Whether a posterior of so many rows and parameters may be expanded at several points more.

    A pass with the curvature then takes 7 ms.
    """
    return prod(sizes) <= 2_000_000


def has_cheap_gradients(n_products: float) -> bool:
    """Whether a gradient of a network from all rows takes some milliseconds at most.

    HMC of all rows, and SGHMC from modes beyond, are compared on either side by ``python -m
    benchmarks.prediction.networks``.
    """
    return n_products <= 1e7


def has_many_columns(n_columns: int) -> bool:
    """Whether rows of so many columns stay sparse, however many of their numbers are zero.

    ``python -m benchmarks.cost.wide`` times fits of both.
    """
    return n_columns > 1000


def is_mostly_zero(n_stored: int, n_numbers: int) -> bool:
    """Whether products with sparse rows are faster than with their dense copies.

    A stored number takes as long as ten of a row in a product with vectors, and twenty in one with
    the row itself. The levels of factors are one number for each row of hundreds of columns.
    """
    return 16 * n_stored <= n_numbers


# -- one memory budget, scikit-learn's `working_memory` ---------------------------------------


def elements_at_a_time() -> int:
    """Numbers of a temporary array in double precision: 8 MB of the default of 1 GB."""
    budget = get_config()["working_memory"] * 2**20
    return max(1 << 14, int(budget / (8 * 128)))


def bytes_to_keep() -> float:
    """Bytes of rows in memory, and of draws in double precision: 64 MB of the default of 1 GB."""
    return get_config()["working_memory"] * 2**20 / 16
