"""A pool: the rows that carry what is not linear in the gradient, and how often each is drawn.

Around an anchor the gradient of all rows is known to second order. What is left of row i, its
remainder r_i, is small for most rows. Row i enters the pool with probability pi_i, in proportion to
the size of its remainder, and with weight 1 / pi_i (math/control_variates.md#pools). A row with
pi_i = 1 is certain. From the pool, minibatches take rows with probability q_i, again in proportion
to that size (math/control_variates.md#rows-by-leverage).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import Batch
from skbayes_sg.data.minibatches import Rows
from skbayes_sg.linalg.scores import outer_products
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.laplace import laplace_points
from skbayes_sg.posterior.mode import Mode

_WIDTH = 2.0  # of the points, in posterior standard deviations: the remainder grows as its square
_EVALUATIONS = 1 << 24  # of a row's remainder at a point, for all rows
_FEWEST_POINTS = 8
_UNIFORM = 0.1  # share of the draws that treats all rows alike: no weight is above ten
_FROZEN = 0.01  # error of the gradient by the choice of the pool, per direction
_SMALLEST = 2000  # rows
_LARGEST = 1 << 24  # numbers


class Pool(NamedTuple):
    """Weights of the rows of a pool, and their probabilities in a minibatch."""

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
    and without a D x D matrix (math/control_variates.md#noise-number)."""

    @classmethod
    def of_all(cls, n_rows: int) -> Pool:
        """All rows, for chains that take them all in every step."""
        return cls(np.ones(n_rows), np.full(n_rows, 1 / n_rows), 0.0, 0.0)


class _Drawn(NamedTuple):
    rows: Batch
    size: NDArray  # (m,): of their remainders
    inclusion: NDArray  # (m,): probabilities


def choose_pool(posterior: Posterior, mode: Mode, rng: np.random.Generator) -> tuple[Batch, Pool]:
    """The pool of a posterior of a `Predictor` around a mode, in one pass over the rows."""
    size_of = _RemainderSize(posterior, mode)
    size = size_of.sample(posterior)
    n_rows, n_drawable = posterior.data.n_rows, posterior.n_rows
    total = float(size.sum()) * (n_rows / n_drawable)
    # half of the points' width would leave a quarter of each remainder
    spread = (total / _WIDTH**2) ** 2 / posterior.dim
    most = min(n_drawable, max(_SMALLEST, _LARGEST // len(mode.theta[0])))
    m = int(np.clip(np.ceil(spread / _FROZEN**2), _SMALLEST, most))
    share = _mixed(size, total, n_rows)
    factor = np.inf if n_rows <= 2 * m else _factor(share, m * (n_drawable / n_rows))
    if posterior.of_sample is posterior:
        inclusion = np.minimum(1.0, factor * share)
        rows: Rows = slice(None)
        if n_rows > 2 * m:
            rows = np.flatnonzero(rng.random(n_rows) < inclusion)
        drawn = _Drawn(posterior.data.sample.load(rows), size[rows], inclusion[rows])
    else:
        drawn = _drawn_in_a_pass(posterior, size_of, total, factor, rng)
    weight = 1 / drawn.inclusion
    frozen = (drawn.size * weight / _WIDTH**2) ** 2 * (1 - drawn.inclusion)
    error = float(np.sqrt(np.sum(frozen) / posterior.dim))
    q = (1 - _UNIFORM) * _share(drawn.size * weight) + _UNIFORM * _share(weight)
    share = drawn.size * weight / _WIDTH**2
    noise_number = float(np.sum(share**2 / q) / posterior.dim)
    return drawn.rows, Pool(weight, q, error, noise_number)


def _drawn_in_a_pass(
    posterior: Posterior,
    size_of: _RemainderSize,
    total: float,
    factor: float,
    rng: np.random.Generator,
) -> _Drawn:
    """Rows chosen where they lie, each with a probability that depends on it alone.

    The sample gives the sum of sizes that the probabilities are relative to. An error of it changes
    how many rows are drawn, and biases nothing (math/high_dimensional.md#rows-on-disk).
    """
    seed, n_rows = int(rng.integers(2**63)), posterior.data.n_rows

    def chosen(batch: Batch) -> tuple:
        size = size_of(batch)
        inclusion = np.minimum(1.0, factor * _mixed(size, total, n_rows))
        u = np.random.default_rng([seed, batch.start]).random(len(size))
        kept = np.flatnonzero(u < inclusion)
        weight = np.ones(len(size)) if batch.weight is None else batch.weight
        return tuple([a[kept]] for a in (batch.X, batch.y, weight, size, inclusion))

    parts = posterior.data.reduce(chosen, size_of.cells)
    X, y, weight, size, inclusion = map(np.concatenate, parts)
    return _Drawn(Batch(X, y, weight if posterior.weighted else None), size, inclusion)


class _RemainderSize:
    """sqrt(E ||Lam^-1/2 r_i||^2) of rows, over points twice as wide as Laplace's.

    The change of the outputs at points with covariance Lam^-1 serves twice: as the argument of the
    remainder, and as a projection of it on random directions.
    """

    def __init__(self, posterior: Posterior, mode: Mode) -> None:
        model, n_rows = posterior.model, posterior.data.n_rows
        assert isinstance(model, Predictor)
        theta, _ = laplace_points(posterior, mode)
        most = _EVALUATIONS // (n_rows * model.widest)
        self._model, self._centre = model, mode.theta
        self._theta = theta[: max(_FEWEST_POINTS, most)]
        self._scale = posterior.n_total / n_rows
        self.cells = len(self._theta) * max(model.widest, 2)

    def __call__(self, batch: Batch) -> NDArray:
        """Of the rows of a batch, (n,)."""
        X, y, weight, _ = batch
        at_anchor = self._model.expand_rows(self._model.outputs(self._centre, X), y)
        change = self._model.outputs(self._theta - self._centre, X)
        left = self._model.remainder(_WIDTH * change, at_anchor)
        # trace of the product of two second moments over the points, (outputs, outputs) each
        of_left = outer_products(left) / len(self._theta)
        of_change = outer_products(change) / len(self._theta)
        size = np.sqrt(np.einsum("nkl,nkl->n", of_left, of_change))
        size = size if weight is None else size * weight
        return size.astype(np.float64) * self._scale

    def sample(self, posterior: Posterior) -> NDArray:
        """Of all rows that can be drawn."""
        (found,) = posterior.data.sample.reduce(lambda batch: ([self(batch)],), self.cells)
        return np.concatenate(found)


def _factor(size: NDArray, m: float) -> float:
    """c with sum min(1, c size) = m, for sizes (N,) that are positive and m < N."""
    certain = np.zeros(len(size), bool)
    while True:
        left = m - certain.sum()
        c = left / size[~certain].sum()
        new = ~certain & (c * size >= 1)
        if not new.any():
            return float(c)
        certain |= new


def _mixed(size: NDArray, total: float, n_rows: int) -> NDArray:
    """Shares of rows in the sum of all sizes, a tenth of them uniform."""
    share = size / total if total > 0 else np.full(len(size), 1 / n_rows)
    return (1 - _UNIFORM) * share + _UNIFORM / n_rows


def _share(size: NDArray) -> NDArray:
    """Sizes divided by their sum; uniform if all are 0."""
    total = size.sum()
    return size / total if total > 0 else np.full(len(size), 1 / len(size))
