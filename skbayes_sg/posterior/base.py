"""A model bound to data and a prior: the log posterior in the coordinates of the model."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skbayes_sg.data import Batch, Data, InMemory
from skbayes_sg.data.minibatches import Minibatches, Rows, SamplingFrame
from skbayes_sg.linalg import DIAGONAL, FULL, Dense, Diag, Diagonal, Layout, Operator, Partitioned
from skbayes_sg.linalg.coordinates import Identity
from skbayes_sg.linalg.normal_score import NormalScore
from skbayes_sg.linalg.scores import Scores
from skbayes_sg.linalg.sizes import has_matrix, has_matrix_once
from skbayes_sg.models import Model
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.priors import NormalPrior, Prior
from skbayes_sg.samplers.target import Target


class Expansion(NamedTuple):
    """Second-order expansion of the log posterior at one theta."""

    theta: NDArray
    """(1, D)"""
    log_prob: float
    gradient: NDArray
    """(1, D)"""
    curvature: Diag | Dense
    """Model Fisher plus prior precision: minus the expected Hessian."""
    passes: float = 1.0
    """Rows touched over rows, to find theta and to expand there."""
    score: NormalScore | None = None
    """That of a parameter whose posterior is far from normal: chains move along it."""

    def under(self, before: Prior, after: Prior) -> Expansion:
        """The same point under another prior, which moves gradient and curvature."""
        gradient = self.gradient - before.gradient(self.theta) + after.gradient(self.theta)
        information = self.curvature + before.curvature(self.theta) * -1.0
        curvature = information + after.curvature(self.theta)
        return self._replace(curvature=curvature, gradient=gradient)

    def away(self, z: NDArray) -> NDArray:
        """Points (n, D) so many standard deviations z (n, D) from theta."""
        return self.theta + self.curvature.inverse().cholesky().matvec(z)


class Posterior(Target):
    """log p(theta | data) = sum_i w_i log p(y_i | x_i, theta) + log prior(theta) + const.

    Units are sums over rows (math/notation.md#notation): the likelihood is that of all rows, and
    the prior enters once. theta is that of the model everywhere. It is also the simplest `Target`:
    chains may move in the coordinates of the model, on minibatches of all rows.

    Parameters
    ----------
    model : Model
    data : Data
    prior : Prior
    """

    coordinates: Identity = Identity()

    def __init__(self, model: Model, data: Data, prior: Prior) -> None:
        self.model = model
        self.data = data
        self.prior = prior
        self.dim = model.dim
        self.n_total = data.n_total
        self.widest = model.widest  # numbers of the largest array of a gradient, per row and chain
        self._row_size = model.row_size
        self._scale = data.n_total / data.n_rows  # rows of the population for each row of a pass

    @classmethod
    def of(
        cls,
        model: Model,
        X: Any,
        y: NDArray,
        prior_precision: ArrayLike = 1.0,
        sample_weight: NDArray | None = None,
        n_total: float | None = None,
    ) -> Posterior:
        """The posterior of a model given arrays.

        Parameters
        ----------
        model : Model
        X : array or CSR matrix of shape (n_rows, n_features)
            Kept as given, float32 or float64. Rows of more than 1,000 columns, or with few numbers
            that are not zero, stay sparse where chains share them; others are made dense one
            minibatch at a time.
        y : array of shape (n_rows,)
            In the model's own coding.
        prior_precision : float or array of shape (dim,)
            Of each parameter, in 1 / parameter^2. The model makes its log prior from it, by default
            -0.5 sum_k prior_precision_k theta_k^2.
        sample_weight : array of shape (n_rows,), optional
            Factor of each row's log likelihood: an integer weight is a repetition.
        n_total : float, optional
            Size of the population of which the rows are a random sample. The likelihood is scaled
            by ``n_total / n_rows``. By default the rows are the population.
        """
        precision = np.full(model.dim, prior_precision, dtype=np.float64)
        data = InMemory.of(X, y, sample_weight, n_total, model.takes_sparse)
        return Posterior(model, data, model.prior(precision))

    def with_prior(self, prior: Prior) -> Posterior:
        """The same data under another prior."""
        return Posterior(self.model, self.data, prior)

    def tempered(self, temperature: float) -> Posterior:
        """The likelihood to the power 1 / temperature, times the prior.

        Source: math/networks.md#temperature.
        """
        if temperature == 1:
            return self
        data = self.data.sample.repeated(1 / temperature)
        return Posterior(self.model, data, self.prior)

    @cached_property
    def n_rows(self) -> int:  # type: ignore[override]
        """Rows that can be drawn."""
        return self.data.sample.n_rows

    @cached_property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.data.sample.weight is not None

    @cached_property
    def point_size(self) -> int:
        """Numbers that a gradient from all rows holds for each point: those of a block."""
        block = self.data.sample.blocks(self._row_size)[0]
        return max(self.dim, len(range(*block.indices(self.n_rows))) * self.widest)

    @property
    def has_dense_rows(self) -> bool:
        """Whether rows are arrays, and not sparse."""
        return self.data.sample.is_dense

    @property
    def one_mode(self) -> bool:
        """Whether there is one mode, around which the posterior is not far from Gaussian."""
        return self.model.fixed_inputs

    @property
    def predictor(self) -> Predictor:
        """The model of a posterior with one mode: rows depend on outputs linear in theta."""
        if isinstance(self.model, Predictor):
            return self.model
        raise TypeError(f"the posterior of {type(self.model).__name__} has many modes")

    @property
    def normal_prior(self) -> NormalPrior:
        """The prior of such a posterior, of whose family its Gaussian approximation is."""
        if isinstance(self.prior, NormalPrior):
            return self.prior
        raise TypeError(f"{type(self.prior).__name__} is of no family of distributions")

    @property
    def all_columns(self) -> Posterior:
        """The posterior of all parameters of the fit."""
        return self

    @property
    def posterior(self) -> Posterior:  # type: ignore[override]
        """Itself: chains that move on it move in its own coordinates."""
        return self

    @cached_property
    def single(self) -> Posterior:
        """The same posterior with rows in float32, where gradients need no more digits."""
        return Posterior(self.model, self.data.sample.single, self.prior)

    @cached_property
    def split(self) -> Posterior:
        """`single`, for gradients alone: columns of many numbers are apart from sparse ones."""
        return Posterior(self.model, self.data.sample.split, self.prior)

    @cached_property
    def of_sample(self) -> Posterior:
        """The posterior of the rows that can be drawn, which stand for all."""
        sample = self.data.sample
        return self if sample is self.data else Posterior(self.model, sample, self.prior)

    def of_rows(self, rows: Rows) -> Posterior:
        """The posterior of some of these rows, which stand for all."""
        return Posterior(self.model, self.data.sample.some(rows), self.prior)

    def minibatches(
        self, batch_size: int, replace: bool, rng: np.random.Generator, n_chains: int
    ) -> Minibatches:
        """The stream of minibatch rows of one group of chains."""
        frame = SamplingFrame(self.n_rows, self.n_total)
        return Minibatches(frame, batch_size, replace, rng, n_chains)

    def layout(self, structure: str) -> Layout:
        """Storage of a noise matrix: "diag", "full", or "block", one for each output unit."""
        if structure == "block":
            return Partitioned(self.model.units())
        return DIAGONAL if structure == "diag" else FULL

    # -- minibatches --------------------------------------------------------------------------

    def scores(self, theta: NDArray, rows: Rows) -> Scores:
        """Weighted scores of the rows at each chain's theta."""
        X, y, weight, _ = self.data.sample.load(rows)
        return self.model.scores(theta, X, y).scaled(weight)

    def gradient(self, theta: NDArray, scores: Scores) -> NDArray:
        """Unbiased estimate of grad log p(theta | data), (chains, D)."""
        gradient = scores.total(theta.dtype)
        gradient *= self.n_total / scores.n_rows
        gradient += self.prior.gradient(theta)
        return gradient

    def grad_estimate(self, theta: NDArray, rows: Rows) -> NDArray:
        """The estimate from these rows, where nobody asks for their scores."""
        return self.gradient(theta, self.scores(theta, rows))

    def fisher(self, theta: NDArray, rows: Rows, layout: Layout = FULL) -> Scores:
        """Square root of the rows' weighted model Fisher, right in the entries of this layout."""
        batch = self.data.sample.load(rows)
        of_diagonal = isinstance(layout, Diagonal)  # fewer factors, where the model can do so
        root = (self.model.fisher_diagonal if of_diagonal else self.model.fisher)(theta, batch.X)
        return root if batch.weight is None else root.scaled(np.sqrt(batch.weight))

    def information(self, theta: NDArray, rows: Rows, layout: Layout) -> Operator:
        """Estimate of the likelihood's model Fisher at all rows, without the prior."""
        fisher = self.fisher(theta, rows, layout)
        return fisher.moment(layout) * (self.n_total / fisher.n_rows)

    def curvature(self, theta: NDArray, rows: Rows, layout: Layout) -> Operator:
        """Estimate of minus the expected Hessian of the log posterior: model Fisher and prior."""
        return self.information(theta, rows, layout) + layout.keep(self.prior.curvature(theta))

    # -- passes over all rows -----------------------------------------------------------------

    def score_covariance(self, theta: NDArray) -> NDArray:
        """I1, the covariance of one row's score over all rows at one theta (1, D): (D, D).

        Divisor n - 1.
        """
        model = self.model

        def sums(batch: Batch) -> tuple[NDArray, NDArray]:
            scores = model.scores(theta, batch.X, batch.y).scaled(batch.weight)
            return scores.total()[0], scores.moment(FULL).dense()

        row_size = max(self.dim, self._row_size)
        total, moment = self.data.reduce(sums, row_size, pairs=True)
        n_rows = self.data.n_rows
        return (moment - np.outer(total, total) / n_rows) / (n_rows - 1)

    def _held(self, theta: NDArray) -> int:
        """Numbers that a pass holds for each row: of all chains (chains, D) the outputs."""
        return max(self._row_size, len(theta) * self.widest)

    def full_gradient(self, theta: NDArray) -> NDArray:
        """Gradient of the log posterior from all rows, (chains, D)."""
        model = self.model

        def total(batch: Batch) -> tuple[NDArray]:
            scores = model.scores(theta, batch.X, batch.y)
            return (scores.scaled(batch.weight).total(),)

        (gradient,) = self.data.reduce(total, self._held(theta))
        return gradient * self._scale + self.prior.gradient(theta)

    def log_prob(self, theta: NDArray) -> NDArray:
        """Log posterior of all rows up to a constant at each theta, (chains,)."""
        model = self.model

        def total(batch: Batch) -> tuple[NDArray]:
            value = model.log_likelihood(theta, batch.X, batch.y)
            value = value if batch.weight is None else value * batch.weight
            return (value.sum(axis=1, dtype=np.float64),)

        (value,) = self.data.reduce(total, self._held(theta))
        return value * self._scale + self.prior.log_density(theta)

    def expand(self, theta: NDArray, layout: Layout) -> Expansion:
        """Value, gradient and curvature at one theta (1, D), in one pass over all rows."""
        sums, pairs = partial(_sums, self.model, theta, layout), not layout.diagonal
        row_size = max(self.dim, self._row_size) if pairs else self._row_size
        value, gradient, information = self.data.reduce(sums, row_size, pairs)
        value = self._scale * value + self.prior.log_density(theta)
        gradient = self._scale * gradient + self.prior.gradient(theta)
        curvature = information * self._scale + layout.keep(self.prior.curvature(theta))
        return Expansion(theta, float(value[0]), gradient, curvature)

    def expected_under_gaussian(
        self, theta: NDArray, root: NDArray, observed: bool = False
    ) -> tuple[NDArray, Dense]:
        """Gradient and curvature in the mean over N(theta, root root^T), in one pass.

        The posterior is that of a `Predictor`, and the prior quadratic. The curvature is that of
        `expand`, or minus the Hessian itself where that is `observed`, which need not be positive.
        """
        model = self.predictor

        def total(batch: Batch) -> tuple:
            residual, between = model.row_terms(theta, root, batch.X, batch.y, observed)
            scores = model.times_inputs(residual[None], batch.X)
            return scores.scaled(batch.weight).total(), model.moment_of(between, batch)

        row_size = self.dim * model.widest
        gradient, information = self.data.reduce(total, row_size, pairs=True)
        return gradient + self.prior.gradient(theta), information + self.prior.curvature(theta)

    def observed(self, theta: NDArray) -> NDArray:
        """Minus the Hessian of the log likelihood at one theta (1, D), in one pass, (D, D)."""
        model = self.predictor

        def total(batch: Batch) -> tuple[Operator]:
            outputs = model.outputs(theta, batch.X).astype(np.float64, copy=False)
            return (model.moment_of(model.observed_at(outputs, batch.y)[0], batch),)

        (information,) = self.data.reduce(total, self.dim * model.widest, pairs=True)
        return information.dense() * self._scale

    def observed_expansion(self, theta: NDArray) -> Expansion:
        """As `expand`, of a `Family`, with minus the Hessian itself, which need not be positive."""
        model = self.predictor

        def sums(batch: Batch) -> tuple[NDArray, NDArray, Operator]:
            outputs = model.outputs(theta, batch.X).astype(np.float64, copy=False)
            value, residual = model.value_and_residual(outputs, batch.y)
            value = value if batch.weight is None else value * batch.weight
            gradient = model.times_inputs(residual, batch.X).scaled(batch.weight).total()
            curvature = model.moment_of(model.observed_at(outputs, batch.y)[0], batch)
            return value.sum(axis=1), gradient, curvature

        value, gradient, information = self.data.reduce(sums, self.dim * model.widest, pairs=True)
        value = self._scale * value + self.prior.log_density(theta)
        gradient = self._scale * gradient + self.prior.gradient(theta)
        curvature = Dense(information.dense() * self._scale + self.prior.hessian(theta))
        return Expansion(theta, float(value[0]), gradient, curvature)

    def logdensity_and_grad(self, theta: NDArray) -> tuple[NDArray, NDArray]:
        """Log posterior (chains,) and gradient (chains, D), in one pass over all rows."""
        sums = partial(_sums, self.model, theta, None)
        value, gradient = self.data.reduce(sums, self._held(theta))
        value = self._scale * value + self.prior.log_density(theta)
        return value, self._scale * gradient + self.prior.gradient(theta)

    def forces_along(self, theta: NDArray, directions: NDArray, distances: NDArray) -> NDArray:
        """`Predictor.forces_along` of all rows, on lines through theta (1, D)."""
        model = self.predictor

        def total(batch: Batch) -> tuple[NDArray]:
            at_theta = model.expand_rows(model.outputs(theta, batch.X), batch.y)
            return (model.forces_along(directions, distances, batch.X, at_theta, batch.weight),)

        (forces,) = self.data.reduce(total, len(directions) * model.widest)
        return forces * self._scale


def _sums(
    model: Model, theta: NDArray, layout: Layout | None, batch: Batch
) -> tuple[NDArray, NDArray] | tuple[NDArray, NDArray, Operator]:
    """Log likelihood of the rows, its gradient, and their information in a layout if there is one.

    Values are summed in float64.
    """
    X, y, weight, _ = batch
    value, scores = model.value_and_scores(theta, X, y)
    value = (value if weight is None else value * weight).sum(axis=1, dtype=np.float64)
    gradient = scores.scaled(weight).total()
    if layout is None:
        return value, gradient
    return value, gradient, model.information(theta, batch, layout)


def is_high_dimensional(posterior: Posterior) -> bool:
    """Whether coordinates of a diagonal, a block and low rank take the place of a matrix."""
    in_memory = posterior.data.sample.n_rows == posterior.data.n_rows
    return in_memory and posterior.model.fixed_inputs and not affordable(posterior)


def affordable(posterior: Posterior) -> bool:
    """Whether a D x D curvature is worth its cost, once per fit."""
    if has_matrix(posterior.dim):
        return True
    one = posterior.model.fixed_inputs and len(posterior.predictor.columns()) == 1
    return one and posterior.data.sample.is_dense and has_matrix_once(posterior.dim)
