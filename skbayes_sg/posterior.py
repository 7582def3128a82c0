"""A model bound to data, weights and a prior."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from skbayes_sg.linalg import Layout, Operator
from skbayes_sg.rows import Minibatches, row_blocks
from skbayes_sg.scores import Scores

_SMALL_SPARSE = 1 << 25  # a sparse matrix below 32 MB when dense is kept dense: rows then cost a copy, not a search

Rows = NDArray | slice
"""Row numbers, (n,) shared by the chains or (chains, n), or a slice."""


class Expansion(NamedTuple):
    """Second-order expansion of the log posterior at one theta."""

    log_prob: float
    gradient: NDArray
    """(1, D)"""
    curvature: Operator
    """Model Fisher plus prior precision: minus the expected Hessian."""


class Posterior:
    """log p(theta | data) = sum_i w_i log p(y_i | x_i, theta) + log prior(theta) + const.

    Sum units throughout (MATH 1): the likelihood is that of all rows, the prior enters once. A
    sampler asks it for the scores of a minibatch and turns them into a gradient; which estimator of
    the gradient that is, is not the sampler's business.

    Parameters
    ----------
    model : Model
    X : array or CSR matrix of shape (n_rows, n_features)
        Kept as given, float32 or float64. Sparse rows are made dense one minibatch at a time.
    y : array of shape (n_rows,)
        In the model's own coding.
    prior_precision : float or array of shape (dim,)
        Precision of the prior of each parameter, in 1 / parameter^2, of which the model makes its
        prior: by default -0.5 sum_k prior_precision_k theta_k^2.
    sample_weight : array of shape (n_rows,), optional
        Factor of each row's log likelihood: an integer weight is a repetition.
    n_total : float, optional
        Size of the population of which the rows are a random sample: the likelihood is scaled by
        ``n_total / n_rows``. By default the rows are all there is.
    """

    shares_rows = False
    """Whether the chains of a group draw one minibatch together."""

    def __init__(
        self,
        model,
        X: Any,
        y: NDArray,
        prior_precision: ArrayLike = 1.0,
        sample_weight: NDArray | None = None,
        n_total: float | None = None,
    ) -> None:
        self.model = model
        self._sparse = sparse.issparse(X)
        if self._sparse:
            small = X.shape[0] * X.shape[1] * X.dtype.itemsize <= _SMALL_SPARSE
            self.X = X.toarray() if small else X.tocsr()
            self._sparse = not small
        else:
            # C order, as rows are gathered; but a memmap stays on disk, without the cost of its subclass
            self.X = np.asarray(X) if isinstance(X, np.memmap) else np.ascontiguousarray(X)
        self.y = y
        self.prior_precision = np.full(model.dim, prior_precision, dtype=np.float64)
        self.prior = model.prior(self.prior_precision)
        self.sample_weight = sample_weight
        self.n_rows: int = X.shape[0]
        self.n_total = float(self.n_rows if n_total is None else n_total)

    @property
    def dim(self) -> int:
        return self.model.dim

    def with_prior(self, prior_precision: ArrayLike) -> Posterior:
        """The same data under another prior."""
        other = copy.copy(self)
        other.prior_precision = np.full(self.dim, prior_precision, dtype=np.float64)
        other.prior = self.model.prior(other.prior_precision)
        if "single" in self.__dict__:
            other.single = self.single.with_prior(prior_precision)
        return other

    @cached_property
    def single(self) -> Posterior:
        """The same posterior with rows, targets and weights in float32, where gradients need no more digits."""
        other = copy.copy(self)
        other.X = self.X.astype(np.float32, copy=False)
        if self.y.dtype.kind == "f":
            other.y = self.y.astype(np.float32, copy=False)
        if self.sample_weight is not None:
            other.sample_weight = self.sample_weight.astype(np.float32, copy=False)
        return other

    def merged(self) -> Posterior:
        """The same posterior with equal rows as one, of their total weight, in an order that depends on the rows alone.

        Sums over all rows are then the same to the last bit for repeated rows as for weights, in whatever order.
        """
        X = self.take(slice(None))
        rows, member = np.unique(np.column_stack([X, self.y]), axis=0, return_inverse=True)
        weight = np.bincount(member, self.sample_weight, len(rows)).astype(X.dtype)
        y = rows[:, -1].astype(self.y.dtype)
        return Posterior(
            self.model,
            rows[:, :-1].astype(X.dtype),
            y,
            self.prior_precision,
            None if (weight == 1).all() else weight,
            self.n_total * len(rows) / self.n_rows,
        )

    def minibatches(self, batch_size: int, replace: bool, rng: np.random.Generator, n_chains: int) -> Minibatches:
        """The stream of minibatch rows of one group of chains."""
        return Minibatches(self.n_rows, batch_size, replace, rng, n_chains, self.n_total)

    def layout(self, structure: str, block_size: int | None = None) -> Layout:
        """Storage of a noise matrix: "diag", "full", or "block" in runs of `block_size` or one per output unit."""
        if structure == "block":
            edges = None if block_size is None else np.arange(block_size, self.dim, block_size)
            return self.model.units() if edges is None else np.split(np.arange(self.dim), edges)
        return "diag" if structure == "diag" else "full"

    def take(self, rows: Rows) -> NDArray:
        """A dense block of rows of X, (*rows.shape, features)."""
        if self._sparse:
            dense = self.X[rows if isinstance(rows, slice) else rows.ravel()].toarray()
            return dense if isinstance(rows, slice) else dense.reshape(*rows.shape, -1)
        return self.X[rows] if isinstance(rows, slice) else self.X.take(rows, axis=0)

    def scores(self, theta: NDArray, rows: Rows) -> Scores:
        """Weighted scores of the rows at each chain's theta."""
        X, y, weight = self._load(rows)
        return _weighted(self.model.scores(theta, X, y), weight)

    def gradient(self, theta: NDArray, scores: Scores) -> NDArray:
        """Unbiased estimate of grad log p(theta | data), (chains, D)."""
        gradient = scores.total()
        gradient *= self.n_total / scores.n_rows
        gradient += self.prior.gradient(theta)
        return gradient

    def fisher(self, theta: NDArray, rows: Rows, layout: Layout = "full") -> Scores:
        """Square root of the rows' model Fisher, weighted, good for its moment in this layout."""
        X, _, weight = self._load(rows)
        diagonal = isinstance(layout, str) and layout == "diag"
        root = self.model.fisher_diagonal(theta, X) if diagonal else self.model.fisher(theta, X)
        return _weighted(root, None if weight is None else np.sqrt(weight))

    def information(self, theta: NDArray, rows: Rows, layout: Layout) -> Operator:
        """Estimate of the likelihood's model Fisher at all rows, without the prior."""
        fisher = self.fisher(theta, rows, layout)
        return fisher.moment(layout) * (self.n_total / fisher.n_rows)

    def curvature(self, theta: NDArray, rows: Rows, layout: Layout) -> Operator:
        """Estimate of minus the expected Hessian of the log posterior: model Fisher and prior."""
        return self.information(theta, rows, layout) + self.prior.curvature(theta)

    def score_covariance(self, theta: NDArray) -> NDArray:
        """I1, the covariance of one row's score over all rows (divisor n - 1), at one theta (1, D): (D, D)."""
        total, moment = np.zeros(self.dim), np.zeros((self.dim, self.dim))
        for block in self._blocks(None):
            scores = self.scores(theta, block)
            total += scores.total()[0]
            moment += scores.moment("full").dense()
        return (moment - np.outer(total, total) / self.n_rows) / (self.n_rows - 1)

    def full_gradient(self, theta: NDArray) -> NDArray:
        """Gradient of the log posterior from all rows, (chains, D)."""
        total = sum(self.scores(theta, block).total() for block in self._blocks(None))
        return total * (self.n_total / self.n_rows) + self.prior.gradient(theta)

    def log_prob(self, theta: NDArray) -> NDArray:
        """Log posterior of all rows up to a constant at each theta, (chains,)."""
        value = np.zeros(len(theta))
        for block in self._blocks(None):
            X, y, weight = self._load(block)
            value += _sum_rows(self.model.log_likelihood(theta, X, y), weight)
        return value * (self.n_total / self.n_rows) + self.prior.log_density(theta)

    def expand(self, theta: NDArray, layout: Layout, rows: NDArray | None = None) -> Expansion:
        """Value, gradient and curvature at one theta (1, D) in a single pass over all rows, or scaled up from some."""
        value, gradient, information = self._pass(theta, rows, layout)
        assert information is not None
        return Expansion(value, gradient, information + self.prior.curvature(theta))

    def slope(self, theta: NDArray, rows: NDArray | None = None) -> tuple[float, NDArray]:
        """Value and gradient at one theta (1, D) in a single pass over all rows, or scaled up from some."""
        return self._pass(theta, rows, None)[:2]

    def _pass(
        self, theta: NDArray, rows: NDArray | None, layout: Layout | None
    ) -> tuple[float, NDArray, Operator | None]:
        """Log posterior, gradient, and Fisher information if a layout is given; each block is loaded once."""
        value, gradient, information = 0.0, np.zeros((1, self.dim)), None
        for block in self._blocks(rows):
            X, y, weight = self._load(block)
            value += float(_sum_rows(self.model.log_likelihood(theta, X, y), weight)[0])
            gradient += _weighted(self.model.scores(theta, X, y), weight).total()
            if layout is not None:
                root = _weighted(self.model.fisher(theta, X), None if weight is None else np.sqrt(weight))
                moment = root.moment(layout)
                information = moment if information is None else information + moment
        scale = self.n_total / (self.n_rows if rows is None else len(rows))
        value = scale * value + float(self.prior.log_density(theta)[0])
        gradient = scale * gradient + self.prior.gradient(theta)
        return value, gradient, None if information is None else information * scale

    def _load(self, rows: Rows) -> tuple[NDArray, NDArray, NDArray | None]:
        """A block of X, y and weights."""
        if isinstance(rows, slice):
            weight = None if self.sample_weight is None else self.sample_weight[rows]
            return self.take(rows), self.y[rows], weight
        weight = None if self.sample_weight is None else self.sample_weight.take(rows)
        return self.take(rows), self.y.take(rows), weight

    def _blocks(self, rows: NDArray | None) -> list[Rows]:
        """All rows, or the given ones, in pieces of a few megabytes."""
        row_bytes = self.X.dtype.itemsize * max(self.X.shape[1], self.model.row_size)
        blocks = row_blocks(self.n_rows if rows is None else len(rows), row_bytes)
        return list(blocks) if rows is None else [rows[block] for block in blocks]


def _weighted(scores: Scores, weight: NDArray | None) -> Scores:
    return scores if weight is None else scores.scaled(weight)


def _sum_rows(each: NDArray, weight: NDArray | None) -> NDArray:
    """Sum over the rows of (chains, n), in float64."""
    return (each if weight is None else each * weight).sum(axis=1, dtype=np.float64)
