"""What models are: parameter blocks, log likelihoods and scores of rows, and what is predicted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from math import prod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data.rows import Batch, Data, stays_sparse
from skbayes_sg.linalg import Operator
from skbayes_sg.linalg.operators import Layout
from skbayes_sg.linalg.scores import Scores, dense
from skbayes_sg.priors import GaussianPrior, Prior

HIDDEN_VARIANCE = 10.0
"""Prior variance of the weighted sum into a hidden unit: a standard deviation of 3."""
FREE = 0.01
"""Prior precision of weights and biases whose prior is nearly flat."""


class NullDirections(NamedTuple):
    """Directions in which no probability changes: only the prior knows them."""

    coordinates: NDArray
    """(directions, members)"""
    signs: NDArray
    """(members,): 1 or -1, the direction's entries"""


class Model(ABC):
    """Stateless mathematics of a likelihood, without data; only `init` is random.

    ``theta`` is always (chains, dim): the parameter blocks of `shapes`, one after another, each in
    C order. X is a dense block of rows, (n, features) shared by the chains or (chains, n,
    features). y has shape (n,) or (chains, n), and an axis of responses more if there may be
    several. Results have X's precision.

    Attributes
    ----------
    shapes : dict of str to tuple of int
        Parameter blocks by name, also the prior's groups.
    axes : dict of str to tuple of str or None
        Name of each axis of each block, for labels: "feature", "class", or one of the model's own.
        None: an axis of length 1 that has no meaning.
    """

    shapes: dict[str, tuple[int, ...]]
    axes: dict[str, tuple[str | None, ...]]

    ratio = ""
    """Name of the exponential of a coefficient, if that has a meaning, as an odds ratio."""
    takes_sparse = False
    """Whether X may be a block of CSR rows, shared by the chains."""
    fixed_inputs = False
    """Whether the right factors of scores are independent of theta; control variates need it."""
    n_given = 0
    """Numbers of a row that no parameter moves, such as trials: the last of its outputs, and of the
    columns of X beyond the features, where they follow an offset."""
    conjugate = False
    """Whether the posterior is of the prior's family, so that one expansion gives it exactly."""

    @cached_property
    def dim(self) -> int:
        """Number of parameters."""
        return sum(prod(shape) for shape in self.shapes.values())

    @cached_property
    def row_size(self) -> int:
        """Numbers that a pass holds for each row of a chain; by default its scores."""
        return self.dim

    @cached_property
    def widest(self) -> int:
        """Numbers per row and chain in the largest array that a prediction holds."""
        return 1

    def keeps_sparse(self, X: Any) -> bool:
        """Whether predictions for X are products with sparse rows."""
        return self.takes_sparse and stays_sparse(X)

    def on_nonzero_columns(self, theta: NDArray, X: Any) -> tuple[Self, NDArray, Any]:
        """A model, parameters and rows that predict the same with less; by default those given."""
        return self, theta, X

    def unpack(self, theta: NDArray) -> dict[str, NDArray]:
        """Views of the blocks: name -> ``(..., *shape)``."""
        blocks, start = {}, 0
        for name, shape in self.shapes.items():
            stop = start + prod(shape)
            blocks[name] = theta[..., start:stop].reshape(*theta.shape[:-1], *shape)
            start = stop
        return blocks

    def natural(self, name: str, block: NDArray) -> tuple[str, NDArray]:
        """Name and draws of a block as users know it: a variance, say, of which it has the log."""
        return name, block

    @property
    def groups(self) -> list[list[str]]:
        """Names of the blocks that share a prior precision; by default each block has its own."""
        return [[name] for name in self.shapes]

    def prior_blocks(self, per: str) -> dict[str, NDArray]:
        """Coordinates that share a learned prior precision, by label.

        They are those of weights, the blocks with two axes; biases have a prior of their own. `per`
        is "block", "feature" (each column of the first block of weights, which takes X) or "class"
        (each row of the last block of weights).
        """
        names = self.unpack(np.arange(self.dim))
        blocks = {name: block.ravel() for name, block in names.items() if block.ndim == 2}
        first, last = next(iter(blocks)), list(blocks)[-1]
        if per == "feature":
            columns = {f"{first}[:, {j}]": column for j, column in enumerate(names[first].T)}
            return columns | {name: block for name, block in blocks.items() if name != first}
        if per == "class":
            rows = self._rows_of_classes(last, names[last])
            return {name: block for name, block in blocks.items() if name != last} | rows
        return blocks

    def _rows_of_classes(self, name: str, block: NDArray) -> dict[str, NDArray]:
        """Coordinates of each class in the last block of weights."""
        raise ValueError('VariationalEM: per="class" needs classes; use "block" or "feature"')

    def spread(self, of_block: dict[str, float]) -> NDArray:
        """The number of each block, repeated for each of its parameters, (dim,).

        It is 0 for blocks without one, which have a prior of their own.
        """
        return np.concatenate(
            [np.full(prod(shape), of_block.get(name, 0.0)) for name, shape in self.shapes.items()]
        )

    def units(self) -> list[NDArray]:
        """Ascending coordinates of each output unit: the natural blocks of a noise matrix.

        By default row k of every block belongs to unit k.
        """
        names = self.unpack(np.arange(self.dim))
        rows = max(len(block) for block in names.values())
        return [
            np.sort(
                np.concatenate([np.atleast_1d(b[k]).ravel() for b in names.values() if k < len(b)])
            )
            for k in range(rows)
        ]

    def null_directions(self) -> list[NullDirections]:
        """Directions, of coordinates that no two of them share, in which no probability changes."""
        return []

    def prior(self, precision: NDArray, mean: NDArray | float = 0.0, **units: Any) -> Prior:
        """Prior of the parameters, from one precision and one mean for each, (dim,).

        `units` are those of `GaussianPrior`.
        """
        return GaussianPrior(precision, mean, **units)

    @abstractmethod
    def init(self, rng: np.random.Generator) -> NDArray:
        """A starting point, shape (1, dim)."""

    def guess(self, y: NDArray, weight: NDArray | None, known: NDArray | None = None) -> NDArray:
        """Start of the search for the mode, (1, dim), from rows; by default zero.

        `known` are their columns beyond the features, (n, n_known), the offset first.

        Under a learned precision its intercepts are the prior's means.
        """
        return np.zeros((1, self.dim))

    def encode(self, y: NDArray, dtype: np.dtype) -> NDArray:
        """Targets as this model takes them, to go with X of the given dtype; by default as is."""
        return y

    def features(self, X: NDArray) -> NDArray:
        """The columns of X that have weights in the first block.

        Those beyond are known parts of the first outputs of each row, such as offsets.
        """
        n_features = next(iter(self.shapes.values()))[1]
        return X if X.shape[-1] == n_features else X[..., :n_features]

    @property
    def n_offsets(self) -> int:
        """Numbers of a row's offset: one for each output that has one."""
        return 1

    def plus_known(self, outputs: NDArray, X: NDArray) -> NDArray:
        """Outputs (chains, outputs, n) with the parts of them that X has beyond its features."""
        n_features = next(iter(self.shapes.values()))[1]
        if X.shape[-1] > n_features:
            known = dense(X[..., n_features:]).swapaxes(-1, -2)
            outputs[:, : known.shape[-2]] += known
        return outputs

    def outputs(self, theta: NDArray, X: NDArray) -> NDArray:
        """What a row depends on theta through, such as logits, (chains, outputs, n) in X's dtype.

        The caller may overwrite them.
        """
        raise NotImplementedError

    @abstractmethod
    def predict(self, theta: NDArray, X: NDArray) -> NDArray:
        """Mean of the response, or class probabilities: (chains, ., n)."""

    @abstractmethod
    def log_likelihood(self, theta: NDArray, X: NDArray, y: NDArray) -> NDArray:
        """log p(y_i | x_i, theta): (chains, n)."""

    def log_loss_moments(self, theta: NDArray, X: NDArray) -> tuple[NDArray, NDArray]:
        """Mean and variance of -log p(y | x, theta) over y of the model, at one theta, (n,)."""
        raise NotImplementedError

    @abstractmethod
    def scores(self, theta: NDArray, X: NDArray, y: NDArray) -> Scores:
        """Gradient of each row's log likelihood, as factors."""

    def value_and_scores(self, theta: NDArray, X: NDArray, y: NDArray) -> tuple[NDArray, Scores]:
        """Log likelihoods (chains, n) and scores; a model may share work between the two."""
        return self.log_likelihood(theta, X, y), self.scores(theta, X, y)

    @abstractmethod
    def fisher(self, theta: NDArray, X: NDArray) -> Scores:
        """A square root of the model Fisher, as factors.

        Their second moment is sum_i E_{y ~ model}[g_i g_i^T]. The labels are integrated out, so
        this is the curvature of the log likelihood and not the empirical covariance of the scores.
        The two agree only where the model is right (math/stationary.md#curvature-is-not-noise).
        """

    def information(self, theta: NDArray, batch: Batch, layout: Layout) -> Operator:
        """Sum over rows of their weighted model Fisher, at one theta (1, D)."""
        return self.fisher(theta, batch.X).moment(layout, batch.weight)

    def fisher_diagonal(self, theta: NDArray, X: NDArray) -> Scores:
        """Cheaper factors that reproduce only the diagonal of `fisher`; by default `fisher`."""
        return self.fisher(theta, X)


class Classification(Model):
    """p(y = k | x) of some classes."""

    n_classes: int

    @abstractmethod
    def encode(self, codes: NDArray, dtype: np.dtype) -> NDArray:
        """Class numbers 0, 1, ... as the targets of this model, to go with X of the given dtype."""

    @abstractmethod
    def log_predict(self, theta: NDArray, X: NDArray) -> NDArray:
        """Logarithms of the probabilities of all classes, (chains, classes, n), in X's dtype.

        They are finite: no probability is computed that could underflow.
        """

    def mean_probabilities(self, theta: NDArray, weights: NDArray, X: NDArray) -> NDArray:
        """`predict` in the weighted sum over chains, (n, outputs), in X's dtype."""
        proba = self.predict(theta, X)
        return (weights @ proba.reshape(len(proba), -1)).reshape(-1, X.shape[0]).T

    def log_loss_moments(self, theta: NDArray, X: NDArray) -> tuple[NDArray, NDArray]:
        log_p = self.log_predict(theta, X)[0].astype(np.float64, copy=False)
        p = np.exp(log_p)
        mean = -np.sum(p * log_p, axis=0)
        return mean, np.sum(p * (log_p + mean) ** 2, axis=0)


class Response(Model):
    """Predictions of numbers: the distribution of y given its outputs, (chains, outputs, n)."""

    counts = False
    """Whether y are whole numbers."""
    has_variance = True
    """Whether the variance of y is finite for all parameters, and so in their posterior."""
    log_link = False
    """Whether the mean of y is the exponential of the linear predictor."""
    variance_power: float | None = None
    """Power of the mean in the variance, of the deviance that scores compare; None: R^2."""

    @classmethod
    def require_targets(cls, y: NDArray) -> None:
        """Raise ValueError for numbers that the model does not have; by default it has all."""

    @classmethod
    def require_together(cls, y: NDArray, known: NDArray) -> None:
        """Raise ValueError for numbers that do not go with known columns of their rows."""

    @classmethod
    def notices(cls, data: Data) -> list[str]:
        """Warnings of numbers and weights that are hardly what the model is for."""
        return []

    @classmethod
    def averaged(cls, y: NDArray, counts: NDArray) -> tuple[NDArray, NDArray]:
        """Targets of rows whose y are means of `counts` observations, and what they know.

        That are parts of the outputs, as of `plus_known`, (n, outputs): under them the targets have
        the distribution that the model has for one observation, or for a sum.
        """
        raise ValueError(
            "var_weights: the mean of several observations of this model is not of its family; "
            "give the single observations"
        )

    def predict(self, theta: NDArray, X: NDArray) -> NDArray:
        """Mean of the response: (chains, 1, n)."""
        return self.mean(self.outputs(theta, X))[:, None]

    def mean(self, outputs: NDArray) -> NDArray:
        """Mean of y, (chains, n); by default the first output."""
        return outputs[:, 0]

    def mean_over(self, weights: NDArray, theta: NDArray, X: NDArray) -> NDArray:
        """Mean of y, summed over chains by weights, (n,); of several responses one by one."""
        return weights @ self.mean(self.outputs(theta, X))

    @property
    def has_linear_mean(self) -> bool:
        """Whether the mean of y is an output that is linear in theta."""
        return self.fixed_inputs and type(self).mean is Response.mean

    @abstractmethod
    def variance(self, outputs: NDArray) -> NDArray:
        """Variance of y, (chains, n)."""

    def width(self, outputs: NDArray) -> NDArray:
        """A length on which the distribution of y varies, (chains, n)."""
        return np.sqrt(self.variance(outputs))

    @abstractmethod
    def distribution(self, y: NDArray, outputs: NDArray) -> NDArray:
        """Probability that y is no larger, (chains, n)."""

    @abstractmethod
    def draw(self, outputs: NDArray, rng: np.random.Generator) -> NDArray:
        """A y of each row, (chains, n)."""

    def cumulants(self, outputs: NDArray) -> NDArray:
        """The first four of y, (4, chains, n), which add up in sums of rows.

        Optional: sums of a model without them are drawn row by row.
        """
        raise NotImplementedError

    def sums_of_terms(self, theta: NDArray, X: NDArray, member: NDArray) -> NDArray:
        """What `cumulants_of_sums` takes of rows, added up: (terms, chains, sums, responses).

        `member` (n, sums) is 1 of the rows of a sum, and 0 of others. Here they are the cumulants.
        """
        each = self.cumulants(self.outputs(theta, X))
        each = each.reshape(*each.shape[:2], len(member), -1)
        return np.einsum("jsnk,ng->jsgk", each, member, optimize=True)

    def cumulants_of_sums(self, theta: NDArray, sums: NDArray) -> NDArray:
        """The first four cumulants of sums of y, (4, chains, sums, responses)."""
        return sums

    @property
    def has_cumulants(self) -> bool:
        """Whether there are `cumulants` of what `draw` draws, and not of a base class's y."""
        return self._is_of_draw("cumulants")

    def _is_of_draw(self, name: str) -> bool:
        """Whether a method was written with `draw`, or for a class that has its `draw`."""
        kinds = [vars(kind) for kind in type(self).__mro__]
        first = [next(k for k, kind in enumerate(kinds) if n in kind) for n in (name, "draw")]
        return first[0] <= first[1]


def normal_cumulants(mean: NDArray, variance: NDArray) -> NDArray:
    """(4, chains, n): none beyond the variance."""
    return np.stack([mean, variance, np.zeros_like(mean), np.zeros_like(mean)])


def notices_of_means(data: Data, remedy: str = "give their numbers as var_weights") -> list[str]:
    """A warning of weights that look like the numbers of observations of which y are means.

    They are whole, as counts are, and three or more in the mean, which those of a bootstrap are
    not; and no two y are equal, as repetitions of a row would be before they were counted.
    """
    y, weight, given = data.sample.y, data.sample.weight, data.sample.given
    merged = given is not None and (given > 1).any()
    if weight is None or merged or len(y) < 20 or np.ptp(weight) == 0:
        return []
    if weight.mean() < 3 or (weight != np.rint(weight)).any() or len(np.unique(y)) < len(y):
        return []
    return [
        "sample_weight are whole numbers, and no two y are equal: a weight of k is k equal rows; "
        f"where each y is the mean of so many observations, {remedy}"
    ]


class Network(Model):
    """A model with hidden units: its posterior has many modes.

    A row's log likelihood is a function of its outputs, (chains, outputs, n). A subclass says what
    the outputs are, and how an error there becomes scores; or what the log likelihood is, given
    outputs, which it may overwrite.
    """

    @abstractmethod
    def reference_precision(self, input_square: float) -> NDArray:
        """Prior precision of every parameter, by the scale of the inputs, (dim,).

        `input_square` is the mean over rows of the sum of the features' squares.
        """

    @abstractmethod
    def _forward(self, theta: NDArray, X: NDArray) -> tuple[NDArray, Any]:
        """Outputs (chains, outputs, n), and what `_backward` needs besides, as of hidden units."""

    @abstractmethod
    def _backward(self, error: NDArray, X: NDArray, kept: Any) -> Scores:
        """Scores from the error at the outputs, (chains, [labels,] outputs, n).

        It may overwrite what was kept.
        """

    @abstractmethod
    def value_and_residual(self, outputs: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
        """Log likelihoods (chains, n), and `residual`."""

    @abstractmethod
    def residual(self, outputs: NDArray, y: NDArray) -> NDArray:
        """Gradient of the log likelihood in the outputs, as these."""

    @abstractmethod
    def residual_root(self, outputs: NDArray) -> NDArray:
        """A square root of the Fisher matrix of the outputs, (chains, [labels,] outputs, n)."""

    def outputs(self, theta: NDArray, X: NDArray) -> NDArray:
        """Outputs, (chains, outputs, n) in X's dtype."""
        return self._forward(theta, X)[0]

    def log_likelihood(self, theta: NDArray, X: NDArray, y: NDArray) -> NDArray:
        return self.value_and_residual(self._forward(theta, X)[0], y)[0]

    def scores(self, theta: NDArray, X: NDArray, y: NDArray) -> Scores:
        z, kept = self._forward(theta, X)
        return self._backward(self.residual(z, y), X, kept)

    def value_and_scores(self, theta: NDArray, X: NDArray, y: NDArray) -> tuple[NDArray, Scores]:
        """`log_likelihood` and `scores` by one forward pass."""
        z, kept = self._forward(theta, X)
        value, residual = self.value_and_residual(z, y)
        return value, self._backward(residual, X, kept)

    def fisher(self, theta: NDArray, X: NDArray) -> Scores:
        """As `scores`, for the residuals of virtual labels: the generalised Gauss-Newton matrix."""
        z, kept = self._forward(theta, X)
        return self._backward(self.residual_root(z), X, kept)
