"""Second-order control variates: the gradient of all rows expanded around an anchor.

    gradient = G_a - H_a (theta - a) + sum over a minibatch of r_i(theta) / (n q_i) + grad log prior

G_a and H_a are the gradient and minus the Hessian of the log likelihood of all rows at the anchor
a, a point near the posterior mean. r_i is the remainder of row i: what is left of its score beyond
first order (math/control_variates.md#second-order-control-variates). The noise is that of the
remainders, which are small near the anchor, so the bound of one effective draw per pass (Mandt et
al. 2017, section 5.2) does not hold.

The remainders of most rows are so small that some thousand rows, the pool, stand for all. Row i
enters the pool with probability pi_i, in proportion to the size of its remainder, and with weight
1 / pi_i (math/control_variates.md#pools). A row with pi_i = 1 is certain. From the pool,
minibatches take rows with probability q_i, again in proportion to that size
(math/control_variates.md#rows-by-leverage).

`Expanded.at` is all of it in order: expand at the anchor, choose the pool, whiten the rows,
measure their noise. What it then constructs measures once how steep the posterior is around the
anchor, and is frozen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import Batch, in_order
from skbayes_sg.data.minibatches import Rows, deterministic_rng
from skbayes_sg.data.rows import row_blocks
from skbayes_sg.data.threads import total_of
from skbayes_sg.linalg import Dense, Diag, Operator
from skbayes_sg.linalg.coordinates import Identity, Whitened, reproducible_eigh
from skbayes_sg.linalg.operators import FULL
from skbayes_sg.linalg.scores import Scores, dense, outer_products
from skbayes_sg.linalg.sizes import elements_at_a_time, has_matrix
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.models.scored import Scored
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.calibrated import calibrated, has_sums
from skbayes_sg.posterior.gaussian import Mode, laplace_points
from skbayes_sg.posterior.steepness import column_steepness, slopes_of, steepness
from skbayes_sg.posterior.target import Density
from skbayes_sg.priors.scales import Scales
from skbayes_sg.samplers.base import NoExpansionError
from skbayes_sg.samplers.langevin import STEEP_COLUMN
from skbayes_sg.samplers.target import Anchor, FastGradient

_WIDTH = 2.0  # of the points, in posterior standard deviations: the remainder grows as its square
_UNIFORM = 0.1  # share of the draws that treats all rows alike: no weight is above ten
_FROZEN = 0.01  # error of the gradient by the choice of the pool, per direction
_SMALLEST = 2000  # rows of a pool
_CALIBRATED = 0.06  # the same error, under weights that leave none of it in the mean
_MANY = 0.1  # of the pool: to draw and gather so many rows takes as long as to take all
_BLOCK = 1 << 22  # bytes of rows that stay in the cache between two products
_HITS = 4  # rows of a minibatch in which a column counts
_LIKE_ROWS = 100  # rows of a minibatch that take as long as drawing it
_GROWS = 2.0  # noise number above which the noise of so few rows grows faster than the distance
_FEW_ROWS = 64  # of the fast gradient, at least
_SAVING = 16  # rows over these, from which the short steps cost little beside the long ones
_LINES = 32  # along which remainders of rows show where a posterior is steep
_INFLATION = 1e5  # of a variance by other parameters: single precision then has two digits left


class SecondOrder(NamedTuple):
    """The log likelihood of all rows to second order at theta."""

    theta: NDArray
    """(1, D), the anchor"""
    gradient: NDArray
    """(1, D)"""
    information: NDArray
    """(D, D), minus the Hessian"""
    fisher: NDArray
    """(D, D), the model Fisher"""


class Pool(NamedTuple):
    """Weights of the rows of a pool, and their probabilities in a minibatch."""

    weight: NDArray
    """(m,): 1 / inclusion probability"""
    probability: NDArray
    """(m,): probability of each row in a draw"""
    error: float
    """Standard deviation of the frozen error of the gradient per direction, in units of its own
    under the posterior, so that it is about the error of the mean in posterior standard deviations.
    0 if the pool has all rows."""
    noise_number: float
    """kappa of draws from the pool, from the sizes of the remainders: good to some tens of per cent
    and without a D x D matrix (math/control_variates.md#noise-number)."""
    batch_size: int
    """Rows of a minibatch whose noise is at most 1/32 of the curvature. All rows of the pool where
    that would be many of them, or D too large for a noise matrix."""


@dataclass(frozen=True, eq=False)
class PoolRows:
    """The rows of a pool, ready for steps: their remainders, and the noise of minibatches of them.

    Attributes
    ----------
    model : Predictor
        In the coordinates of the chains.
    coordinates : Identity or Whitened
    X : array of shape (m, columns)
    at_anchor : tuple of arrays (..., m)
        What remainders need of each row.
    weight : array of shape (m,)
        Weight of a row that is drawn, so that the mean over draws is that over the population.
    full_weight : array of shape (m,)
        Weight of each row where all are taken.
    pool : Pool
    points : array of shape (points, D)
        Distances from the anchor that stand for the normal approximation.
    """

    model: Predictor
    coordinates: Identity | Whitened
    X: NDArray
    at_anchor: tuple[NDArray, ...]
    weight: NDArray
    full_weight: NDArray
    pool: Pool
    points: NDArray

    @cached_property
    def by_column(self) -> NDArray:
        """X column by column, which the product that makes outputs of all rows reads fastest."""
        return np.asfortranarray(self.X)

    @cached_property
    def blocks(self) -> list[PoolRows]:
        """All rows in pieces that stay in the cache from the first of their products to the last.

        With few chains the products wait for memory: they take a tenth less time of such pieces,
        and one for each core.
        """
        pieces = row_blocks(len(self.X), self.X[0].nbytes, _BLOCK)
        return [self] if len(pieces) == 1 else list(map(self.some, pieces))

    def some(self, rows: Rows) -> PoolRows:
        """These rows where all are taken."""
        return replace(
            self,
            X=self.X[rows],
            at_anchor=tuple(values[..., rows] for values in self.at_anchor),
            full_weight=self.full_weight[rows],
        )

    def scores(self, change: NDArray, rows: Rows) -> Scores:
        """Weighted remainders at `change` from the anchor, of drawn rows by number or of all."""
        X, at_anchor, weight = self.X, self.at_anchor, self.full_weight
        if not isinstance(rows, slice):  # else the whole pool: the mean over all draws
            X, weight = self.X.take(rows, axis=0), self.weight[rows]
            at_anchor = tuple(kept[..., rows] for kept in self.at_anchor)
        remainder = self.model.remainder(self.model.outputs(change, X), at_anchor)
        remainder *= weight
        return self.model.times_inputs(remainder, X)

    def noise(self, change: NDArray) -> NDArray:
        """Covariance of one draw in the mean over points, (points, D) from the anchor: (D, D).

        A step with the mean noise keeps the second moments of the posterior
        (math/stationary.md#mean-noise). 4,000 rows tell it, drawn as minibatches draw them.
        """
        q, m, most = self.pool.probability, len(self.weight), 4000
        rows, share = np.arange(m), q
        if m > most:
            rows = np.sort(deterministic_rng("noise").choice(m, most, p=q))
            share = np.full(most, 1 / most)
        n_outputs = len(rows) * len(change) * self.model.widest
        n_blocks = 1 + int(n_outputs // elements_at_a_time())

        def sums(block: NDArray) -> tuple[NDArray, NDArray]:
            scores = self.scores(change, rows[block])
            moment = scores.joined_chains().scaled(np.sqrt(share[block])).moment(FULL)
            return scores.scaled(share[block]).total(), moment.dense()

        total, second = total_of(sums, np.array_split(np.arange(len(rows)), n_blocks))
        return (second - total.T @ total) / len(change)


class Expanded(Density):
    """A posterior expanded around an anchor; gradients stay unbiased but for the pool's error.

    Parameters
    ----------
    posterior : Posterior
        Of a `Predictor`.
    expansion : SecondOrder
    rows : PoolRows
    measured : function
        Measures the noise of the rows.
    steepness : pair of floats, optional
        `steepness` and `column_steepness` around the anchor. Measured by default.
    """

    anchor: Anchor
    coordinates: Identity | Whitened

    @classmethod
    def at(
        cls,
        posterior: Posterior,
        mode: Mode,
        whiten: bool = True,
        along: Scales | None = None,
    ) -> Expanded:
        """The posterior anchored at a mode, in one pass over the rows.

        Parameters
        ----------
        posterior : Posterior
        mode : Mode
        whiten : bool, default=True
            Whether the chains move in whitened coordinates.
        along : Scales, optional
            Groups whose sums of squares are to stay such sums in whitened coordinates.

        Raises
        ------
        NoExpansionError
            If the Hessian at the mode is not definite.
        """
        model, theta, prior = posterior.predictor, mode.theta, posterior.prior

        # what the log likelihood of all rows is to second order
        gradient = mode.gradient - prior.gradient(theta)
        fisher = (mode.curvature + prior.curvature(theta) * -1.0).dense()
        information = model.observed(fisher, gradient)
        if not model.canonical:
            information = posterior.observed(theta)
        curvature = information + prior.hessian(theta)
        try:
            np.linalg.cholesky(curvature)
        except np.linalg.LinAlgError:
            raise NoExpansionError(
                "the Hessian of the log posterior is not definite at the mode"
            ) from None

        # the rows that stand for what is left of it, in the coordinates of the chains
        typical = laplace_points(posterior, mode)[0]
        (X, y, weight, _), pool = choose_pool(posterior, mode, typical, deterministic_rng("pool"))
        at_anchor = model.expand_rows(model.outputs(theta, X), y)
        X = dense(model.features(X))
        coordinates: Identity | Whitened = Identity()
        if whiten:
            if along is None:
                coordinates = Whitened.of(model.columns(), theta, curvature)
            else:
                members = along.members(prior)
                coordinates = Whitened.along(model.columns(), theta, curvature, *members)
            model = model.on_columns(len(coordinates.S))
        m, pieces = len(pool.weight), row_blocks(len(X), X[:1].nbytes, _BLOCK)
        natural = X
        X = np.concatenate(list(in_order(lambda piece: coordinates.inputs(natural[piece]), pieces)))
        if pool.batch_size < m:
            pool = pool._replace(batch_size=_rows_of_minibatch(natural, X, pool, pieces))
        weight = pool.weight if weight is None else weight * pool.weight
        weight = (weight / (posterior.data.n_rows * pool.probability)).astype(X.dtype)
        rows = PoolRows(
            model,
            coordinates,
            X,
            tuple(kept.astype(X.dtype) for kept in at_anchor),
            weight,
            weight * (m * pool.probability).astype(X.dtype),
            pool,
            coordinates.transform(typical) - coordinates.transform(theta),
        )

        # their noise, which only minibatches have; it is diagonal where coordinates may rotate
        measured: Callable[[], Operator] = partial(_dense_noise, rows)
        if pool.batch_size < m:
            noise = rows.noise(rows.points)
            measured = partial(Dense, noise)
            if along is None and isinstance(coordinates, Whitened) and coordinates.rotates:
                values, V = reproducible_eigh(noise)
                coordinates = coordinates.rotated(V)
                points = coordinates.transform(typical) - coordinates.transform(theta)
                X = X @ V.astype(X.dtype)
                rows = replace(rows, coordinates=coordinates, X=X, points=points)
                measured = partial(Diag, np.maximum(values, 0.0))
        return cls(posterior, SecondOrder(theta, gradient, information, fisher), rows, measured)

    def __init__(
        self,
        posterior: Posterior,
        expansion: SecondOrder,
        rows: PoolRows,
        measured: Callable[[], Operator],
        steepness: tuple[float, float] | None = None,
    ) -> None:
        self.posterior, self.prior, self.dim = posterior, posterior.prior, posterior.dim
        self.coordinates, self.n_total = rows.coordinates, posterior.n_total
        self._expansion, self._rows, self._measured = expansion, rows, measured
        theta, slope, hessian, fisher = expansion
        prior, coordinates, pool = posterior.prior, rows.coordinates, rows.pool
        self._origin = coordinates.transform(theta)
        if prior.quadratic:  # then it is part of the expansion
            slope = slope + prior.gradient(theta)
            hessian = hessian + prior.hessian(theta)
        self._gradient_there = coordinates.pullback(slope)
        self._hessian = _stored(coordinates.pullback_matrix(hessian))
        # definite under any prior, also one under which the anchor is far from the mode
        curvature = self._hessian
        if fisher is not expansion.information or not prior.quadratic:
            fisher = fisher + prior.curvature(theta).dense()
            curvature = _stored(coordinates.pullback_matrix(fisher))

        # Where the pool has all rows, the Hessian of the likelihood cancels from a gradient of all:
        # the linear parts of their scores are the same. That saves its product, unless it is a
        # diagonal and the linear parts of the scores take longer, as 16 products do.
        m = len(rows.weight)
        wide = isinstance(self._hessian, Diag) and self.dim**2 > 16 * m
        self._cancels = m == posterior.data.n_rows and not wide
        self._hessian_left: Callable[[NDArray], NDArray] = self._hessian.matvec
        prior_curvature = coordinates.pullback_matrix(prior.curvature(theta).dense())
        of_prior = _stored(prior_curvature)
        if self._cancels and not prior.quadratic:
            self._hessian_left = np.zeros_like
        elif self._cancels:  # what is left is the precision of the prior
            self._hessian_left = of_prior.matvec
            outputs, columns = rows.model.columns().shape
            if outputs > 1 and isinstance(coordinates, Whitened) and not len(coordinates.rest):
                form = prior_curvature[:columns, :columns]
                error = np.abs(prior_curvature - np.kron(np.eye(outputs), form)).max()
                if error <= 1e-6 * np.abs(form).max():  # the same for each output
                    self._hessian_left = partial(_of_each_output, form)

        if steepness is None:
            steepness = self._measured_steepness(curvature, of_prior)
        self.anchor = Anchor(
            theta,
            curvature,
            m,
            pool.probability,
            pool.batch_size,
            self.n_total,
            measured,
            pool.error,
            pool.noise_number,
            *steepness,
            has_unit_scales=_has_unit_scales(curvature),
        )

    def _measured_steepness(self, curvature: Operator, prior: Operator) -> tuple[float, float]:
        """`steepness` of the gradient that the pool gives, and `column_steepness`.

        The latter is that of all parameters; 1 where the likelihood is quadratic.
        """
        rows, n_rows = self._rows, len(self._rows.weight)
        root = curvature.inverse().cholesky()
        if rows.pool.batch_size < n_rows:  # lines of the most noise
            axes = root.dense()
            lines = np.linalg.eigh(axes.T @ self._measured().dense() @ axes)[1].T[-_LINES:]
        else:  # remainders of the rows that have the largest, at some point
            size = rows.pool.probability / np.maximum(rows.full_weight, 1e-30)
            largest = np.argsort(-size)[:_LINES, None]
            lines = np.concatenate([rows.scores(rows.points[:1], i).total() for i in largest])
            lines = lines @ root.dense()
            lines = lines / np.maximum(np.linalg.norm(lines, axis=1, keepdims=True), 1e-300)
        together = max(1, int(elements_at_a_time() // (n_rows * rows.model.widest)))

        def gradient(change: NDArray) -> NDArray:
            parts = np.array_split(self._origin + change, -(-len(change) // together))
            of_pool = partial(self.grad_estimate, rows=slice(None))
            return np.concatenate(list(in_order(of_pool, parts)))

        steepest = steepness(gradient, slopes_of(gradient), curvature, lines, rows.points)
        if rows.model.conjugate:
            return steepest, 1.0
        units = self.coordinates.pullback(np.eye(self.dim))
        directions = curvature.inverse().matvec(units)
        directions /= np.sqrt(np.sum(directions * units, axis=1, keepdims=True))
        of_prior = prior.squares(directions).sum(axis=1)
        n_parts = -(-self.dim * n_rows * rows.model.widest // elements_at_a_time())
        forces = partial(
            rows.model.forces_along,
            X=rows.X,
            at_anchor=rows.at_anchor,
            weight=rows.full_weight,
        )
        along = partial(column_steepness, forces, limit=STEEP_COLUMN)
        parts = np.array_split(np.arange(self.dim), n_parts)
        return steepest, max(in_order(lambda part: along(directions[part], of_prior[part]), parts))

    def under(self, posterior: Posterior) -> Expanded:
        """The same expansion and rows; how steep it is under this prior is not measured."""
        return Expanded(posterior, self._expansion, self._rows, self._measured, (1.0, 1.0))

    def grad_estimate(self, u: NDArray, rows: Rows) -> NDArray:
        """Gradient from some rows of the pool, or from all.

        Where all rows are there, the Hessian of the likelihood cancels from it.
        """
        change, pool = u - self._origin, self._rows
        if not isinstance(rows, slice):
            scores = pool.scores(change, rows)
            rest = scores.total() * (self.n_total / scores.n_rows)
            return self._with_expansion(rest, change, self._hessian.matvec(change))
        of_rows = pool.model.difference if self._cancels else pool.model.remainder

        def total(piece: PoolRows) -> tuple[NDArray]:
            remainder = of_rows(piece.model.outputs(change, piece.by_column), piece.at_anchor)
            remainder *= piece.full_weight
            return (piece.model.times_inputs(remainder, piece.X).total(),)

        rest = total_of(total, pool.blocks)[0] * (self.n_total / len(pool.weight))
        return self._with_expansion(rest, change, self._hessian_left(change))

    def logdensity_and_grad(self, u: NDArray) -> tuple[NDArray, NDArray]:
        change = u - self._origin

        # what the log likelihood has beyond its expansion, of first order if the Hessian cancels
        def sums(rows: PoolRows) -> tuple[NDArray, NDArray]:
            outputs = rows.model.outputs(change, rows.by_column)
            if self._cancels:
                rest, remainder = rows.model.bregman_remainder(outputs, rows.at_anchor)
            else:
                rest, difference = rows.model.bregman_remainder(outputs.copy(), rows.at_anchor)
                remainder = rows.model.remainder(outputs.copy(), rows.at_anchor)
                # the remainder is the difference less its linear part
                rest += 0.5 * np.einsum("ckn,ckn->cn", outputs, remainder - difference)
            remainder *= rows.full_weight
            rest *= rows.full_weight
            total = rows.model.times_inputs(remainder, rows.X).total()
            return rest.sum(axis=1, dtype=np.float64), total

        value, rest = total_of(sums, self._rows.blocks)
        linear, scale = self._hessian_left(change), self.n_total / self.anchor.pool_size
        value = scale * value + change @ self._gradient_there[0]
        value = value - 0.5 * np.sum(change * linear, axis=1)
        if not self.prior.quadratic:
            value += self.prior.log_density(self.coordinates.inverse_transform(u))
        return value, self._with_expansion(rest * scale, change, linear)

    @cached_property
    def fast_gradient(self) -> FastGradient | None:
        """That of the expansion, and of the rows that it describes worst.

        It needs to follow the posterior where it is steep, and elsewhere only roughly: short steps
        with it are corrected by the gradient once in a while, and by the Metropolis test.
        """
        rows, n = self._rows, max(_FEW_ROWS, self.anchor.pool_size // 64)
        if n * _SAVING > self.anchor.pool_size:
            return None
        worst = np.sort(np.argsort(-rows.pool.probability, kind="stable")[:n])
        gradient = partial(self._gradient_of, rows.some(worst))
        there = self._origin + rows.points
        error = np.sqrt(np.mean((gradient(there) - self.grad_estimate(there, slice(None))) ** 2))
        return FastGradient(gradient, n, float(error)) if np.isfinite(error) else None

    def _gradient_of(self, rows: PoolRows, u: NDArray) -> NDArray:
        """Gradient of the expansion and of the remainders of these rows."""
        change = u - self._origin
        rest = rows.scores(change, slice(None)).total() * (self.n_total / self.anchor.pool_size)
        return self._with_expansion(rest, change, self._hessian.matvec(change))

    def _with_expansion(self, rest: NDArray, change: NDArray, linear: NDArray) -> NDArray:
        """Gradient of the log posterior at a change from the anchor.

        `rest` is what the expansion leaves, and is overwritten; `linear` is the Hessian of the
        expansion times the change.
        """
        rest += self._gradient_there
        rest -= linear
        if not self.prior.quadratic:
            natural = self.coordinates.inverse_transform(change + self._origin)
            rest += self.coordinates.pullback(self.prior.gradient(natural))
        return rest

    def score_covariance(self, u: NDArray) -> NDArray:
        """I1, the covariance of one draw's contribution at one point of a chain (1, D): (D, D)."""
        return self._rows.noise(u - self._origin)


def _dense_noise(rows: PoolRows) -> Operator:
    """The mean noise of minibatches, which steps of the whole pool do not ask for."""
    return Dense(rows.noise(rows.points))


def _of_each_output(form: NDArray, change: NDArray) -> NDArray:
    """The same matrix times the parameters of each output, (chains, D)."""
    return (change.reshape(-1, len(form)) @ form).reshape(change.shape)


def _has_unit_scales(curvature: Operator) -> bool:
    """Whether no parameter is known so much better given the others that single precision blurs it.

    Of the sum of the columns of a matrix in single precision the rounding is 6e-8 of the largest
    term: under a weak prior a common shift of all classes is as wide as that.
    """
    inflation = curvature.diagonal() * curvature.inverse().diagonal()
    return bool(inflation.max() < _INFLATION)


def _stored(matrix: NDArray) -> Operator:
    """The matrix, a diagonal if nothing but rounding, of one near the identity, is off it."""
    diagonal = matrix.diagonal()
    off = np.abs(matrix - np.diag(diagonal)).max() if len(matrix) > 1 else 0.0
    return Diag(diagonal.copy()) if off < 1e-6 * diagonal.min() else Dense(matrix)


# -- the pool ---------------------------------------------------------------------------------


def choose_pool(
    posterior: Posterior,
    mode: Mode,
    points: NDArray,
    rng: np.random.Generator,
    calibrate: bool = True,
) -> tuple[Batch, Pool]:
    """The pool of a posterior of a `Predictor` around a mode, in one pass over the rows.

    Where that takes many rows, fewer do whose weights are `calibrated`, unless the error that is
    measured then is larger.

    The size of a remainder is sqrt(E ||Lam^-1/2 r_i||^2), over points twice as far from the mode as
    `points`, which stand for the normal approximation N(mode, Lam^-1). The change of the outputs at
    these serves twice: as the argument of the remainder, and as a projection of it on random
    directions.
    """
    model, n_rows, n_drawable = posterior.predictor, posterior.data.n_rows, posterior.n_rows
    # at most 2^24 remainders of all rows at all points
    points = points[: max(8, (1 << 24) // (n_rows * model.widest))]
    row_size = len(points) * max(model.widest, 2)
    scale = posterior.n_total / n_rows

    def sizes(batch: Batch) -> tuple[list[NDArray]]:
        X, y, weight, _ = batch
        at_anchor = model.expand_rows(model.outputs(mode.theta, X), y)
        change = model.outputs(points - mode.theta, model.features(X))
        remainder = model.remainder(_WIDTH * change, at_anchor)
        # trace of the product of two second moments over the points, (outputs, outputs) each
        of_remainder = outer_products(remainder) / len(points)
        of_change = outer_products(change) / len(points)
        size = np.sqrt(np.einsum("nkl,nkl->n", of_remainder, of_change))
        size = size if weight is None else size * weight
        return ([size.astype(np.float64) * scale],)

    size = np.concatenate(posterior.data.sample.reduce(sizes, row_size)[0])
    total = float(size.sum()) * (n_rows / n_drawable)
    # half of the points' width would leave a quarter of each remainder
    spread = (total / _WIDTH**2) ** 2 / posterior.dim
    most = min(n_drawable, max(_SMALLEST, (1 << 24) // posterior.dim))  # 2^24 numbers
    m = int(np.clip(np.ceil(spread / _FROZEN**2), _SMALLEST, most))
    calibrate &= has_sums(posterior)
    fewer = max(2 * _SMALLEST, math.ceil(spread / _CALIBRATED**2))
    calibrate &= 2 * fewer <= m
    m = fewer if calibrate else m
    share = _mixed(size, total, _UNIFORM / n_rows)
    factor = np.inf if n_rows <= 2 * m else _factor(share, m * (n_drawable / n_rows))

    if posterior.of_sample is posterior:
        inclusion = np.minimum(1.0, factor * share)
        rows: Rows = slice(None)
        if n_rows > 2 * m:
            rows = np.flatnonzero(rng.random(n_rows) < inclusion)
        batch, size, inclusion = posterior.data.sample.load(rows), size[rows], inclusion[rows]
    else:
        # Rows on disk are chosen where they lie, each with a probability that depends on it alone.
        # The sample gives the sum of sizes that the probabilities are relative to. An error of it
        # changes how many are drawn, and biases nothing (math/high_dimensional.md#rows-on-disk).
        seed = int(rng.integers(2**63))

        def chosen(batch: Batch) -> tuple:
            ((size,),) = sizes(batch)
            inclusion = np.minimum(1.0, factor * _mixed(size, total, _UNIFORM / n_rows))
            u = np.random.default_rng([seed, batch.start]).random(len(size))
            kept = np.flatnonzero(u < inclusion)
            weight = np.ones(len(size)) if batch.weight is None else batch.weight
            return tuple([a[kept]] for a in (batch.X, batch.y, weight, size, inclusion))

        parts = posterior.data.reduce(chosen, row_size)
        X, y, weight, size, inclusion = map(np.concatenate, parts)
        batch = Batch(X, y, weight if posterior.weighted else None)

    weight = 1 / inclusion
    of_row = size * weight / _WIDTH**2
    error = float(np.sqrt(np.sum(of_row**2 * (1 - inclusion)) / posterior.dim))
    if calibrate and error > 0:
        weight, error = calibrated(posterior, mode, points, batch, weight)
        if not error <= _FROZEN:
            return choose_pool(posterior, mode, points, rng, calibrate=False)
        of_row = size * weight / _WIDTH**2
    q = _mixed(size * weight, float(np.sum(size * weight)), _UNIFORM * (weight / weight.sum()))
    noise_number = float(np.sum(of_row**2 / q) / posterior.dim)
    # the noise of a normal score is all along one direction, and not D times less in the mean
    along = posterior.dim if isinstance(posterior.model, Scored) else 1
    n = math.ceil(32 * max(1.0, along * noise_number))
    few = has_matrix(posterior.dim) and max(n, _LIKE_ROWS) <= _MANY * len(weight)
    few &= not (calibrate and noise_number > _GROWS)
    return batch, Pool(weight, q, error, noise_number, n if few else len(weight))


def _rows_of_minibatch(natural: NDArray, X: NDArray, pool: Pool, pieces: list[slice]) -> int:
    """Rows that keep the noise small, or so many that half of the columns are in some of them.

    The noise of a level of a factor comes from its own rows alone. Where a minibatch seldom has one
    of them, it is of rare and large kicks: farther out they grow as the square of the distance, and
    single draws are twenty standard deviations off.

    Parameters
    ----------
    natural, X : arrays (m, columns)
        Rows of the pool in coordinates of the model, and in whitened ones.
    pool : Pool
    pieces : list of slices
        Slices that make up all of them.
    """
    first, second = np.zeros((2, natural.shape[1]))
    for piece in pieces:
        square = np.maximum(np.square(X[piece]).sum(axis=1), 1e-30)
        share = np.square(natural[piece]) / square[:, None]
        first += pool.probability[piece] @ share
        second += pool.probability[piece] @ np.square(share, out=share)
    draws = np.divide(first**2, second, out=np.ones_like(first), where=second > 0)
    n = max(pool.batch_size, math.ceil(_HITS / np.median(draws)))
    return n if n <= _MANY * len(X) else len(X)


def _mixed(size: NDArray, total: float, uniform: float | NDArray) -> NDArray:
    """Shares of rows in the sum of all sizes, but for a tenth, which is `uniform`."""
    share = np.full(len(size), uniform / _UNIFORM)
    np.divide(size, total, out=share, where=total > 0)
    return (1 - _UNIFORM) * share + uniform


def _factor(size: NDArray, m: float) -> float:
    """c with sum min(1, c size) = m, for sizes (N,) that are positive and m < N."""
    certain = np.zeros(len(size), bool)
    while True:
        n_uncertain = m - certain.sum()
        c = n_uncertain / size[~certain].sum()
        new = ~certain & (c * size >= 1)
        if not new.any():
            return float(c)
        certain |= new
