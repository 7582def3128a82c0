"""A pool: the rows that carry what is not linear in the gradient, and how often each is drawn.

Around an anchor the gradient of all rows is known to second order. What is left of row i, its
remainder r_i, is small for most rows. Row i enters the pool with probability pi_i, in proportion to
the size of its remainder, and with weight 1 / pi_i (math.md#pools). A row with pi_i = 1 is certain.
From the pool, minibatches take rows with probability q_i, again in proportion to that size
(math.md#rows-by-leverage).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.anchor import Mode, laplace_points
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior

_WIDTH = 2.0  # of the points, in posterior standard deviations: the remainder grows as its square
_CELLS = 1 << 20  # numbers held at a time
_EVALUATIONS = 1 << 24  # of a row's remainder at a point, for all rows
_FEWEST_POINTS = 8
_UNIFORM = 0.1  # share of the draws that treats all rows alike: no weight is above ten
_FROZEN = 0.01  # error of the gradient by the choice of the pool, per direction
_SMALLEST = 2000  # rows
_LARGEST = 1 << 24  # numbers


class Pool(NamedTuple):
    """Rows with weights, and their probabilities in a minibatch."""

    rows: NDArray
    """(m,): ascending positions in the data"""
    weight: NDArray
    """(m,): 1 / inclusion probability"""
    probability: NDArray
    """(m,): of each draw"""
    error: float
    """Standard deviation of the frozen error of the gradient per direction, in units of its own
    under the posterior, so that it is about the error of the mean in posterior standard deviations.
    0 if the pool has all rows."""
    noise_number: float
    """kappa of draws from the pool, from the sizes of the remainders: good to some tens of per cent
    and without a D x D matrix (math.md#noise-number)."""


def choose_pool(posterior: Posterior, mode: Mode, rng: np.random.Generator) -> Pool:
    """The pool of a posterior of a `Predictor` around a mode, in one pass over the rows."""
    size = remainder_sizes(posterior, mode)
    n_rows = posterior.n_rows
    # half of the points' width would leave a quarter of each remainder
    spread = (size.sum() / _WIDTH**2) ** 2 / posterior.dim
    most = max(_SMALLEST, _LARGEST // len(mode.theta[0]))
    m = int(np.clip(np.ceil(spread / _FROZEN**2), _SMALLEST, most))
    if n_rows <= 2 * m:
        rows, weight, error = np.arange(n_rows), np.ones(n_rows), 0.0
    else:
        inclusion = inclusion_probabilities((1 - _UNIFORM) * _share(size) + _UNIFORM / n_rows, m)
        rows = np.flatnonzero(rng.random(n_rows) < inclusion)
        weight, size, inclusion = 1 / inclusion[rows], size[rows], inclusion[rows]
        frozen = np.sum((size * weight / _WIDTH**2) ** 2 * (1 - inclusion)) / posterior.dim
        error = float(np.sqrt(frozen))
    q = (1 - _UNIFORM) * _share(size * weight) + _UNIFORM * _share(weight)
    share = size * weight / _WIDTH**2
    return Pool(rows, weight, q, error, float(np.sum(share**2 / q) / posterior.dim))


def remainder_sizes(posterior: Posterior, mode: Mode) -> NDArray:
    """sqrt(E ||Lam^-1/2 r_i||^2) of every row, over points twice as wide as Laplace's, (N,).

    The change of the outputs at points with covariance Lam^-1 serves twice: as the argument of the
    remainder, and as a projection of it on random directions.
    """
    model = posterior.model
    assert isinstance(model, Predictor)
    theta, _ = laplace_points(posterior, mode)
    most = _EVALUATIONS // (posterior.n_rows * model.widest)
    theta = theta[: max(_FEWEST_POINTS, most)]
    cells = len(theta) * max(model.widest, 2)
    found = []
    step = max(1, _CELLS // cells)
    for start in range(0, posterior.n_rows, step):
        X, y, weight = posterior.data.load(slice(start, min(start + step, posterior.n_rows)))
        at_anchor = model.expand_rows(model.outputs(mode.theta, X), y)
        change = model.outputs(theta - mode.theta, X)
        left = model.remainder(_WIDTH * change, at_anchor)
        # trace of the product of two second moments over the points, (outputs, outputs) each
        of_left = np.einsum("pkn,pln->kln", left, left) / len(theta)
        of_change = np.einsum("pkn,pln->kln", change, change) / len(theta)
        size = np.sqrt(np.einsum("kln,kln->n", of_left, of_change))
        found.append(size if weight is None else size * weight)
    return np.concatenate(found).astype(np.float64) * (posterior.n_total / posterior.n_rows)


def inclusion_probabilities(size: NDArray, m: float) -> NDArray:
    """min(1, c size) with sum m, for sizes (N,) that are positive and m < N."""
    certain = np.zeros(len(size), bool)
    while True:
        left = m - certain.sum()
        c = left / size[~certain].sum()
        new = ~certain & (c * size >= 1)
        if not new.any():
            return np.where(certain, 1.0, c * size)
        certain |= new


def _share(size: NDArray) -> NDArray:
    """Sizes divided by their sum; uniform if all are 0."""
    total = size.sum()
    return size / total if total > 0 else np.full(len(size), 1 / len(size))
