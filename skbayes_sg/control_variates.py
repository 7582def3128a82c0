"""Second-order control variates: the gradient of all rows expanded around an anchor.

    gradient = G_a - H_a (theta - a) + sum over a minibatch of r_i(theta) / (n q_i) + grad log prior

G_a and H_a are the gradient and minus the Hessian of the log likelihood of all rows at the anchor
a, a point near the posterior mean. r_i is the remainder of row i: what is left of its score beyond
first order (math.md#second-order-control-variates). Rows are drawn with probabilities q_i from a
`Pool`. The noise is that of the remainders, which are small near the anchor, so the bound of one
effective draw per pass (Mandt et al. 2017, section 5.2) does not hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.anchor import Mode, laplace_points
from skbayes_sg.coordinates import Coordinates, Natural, Whitened
from skbayes_sg.layouts import FULL
from skbayes_sg.linalg import Dense, Diag, Operator
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.pool import Pool, choose_pool
from skbayes_sg.posterior import Posterior
from skbayes_sg.priors import Prior
from skbayes_sg.rows import Minibatches, Rows
from skbayes_sg.samplers.base import NoGainError
from skbayes_sg.scores import Scores
from skbayes_sg.steepness import steepness

_NOISE_ROWS = 4000
_CELLS = 1 << 20  # numbers held at a time
_DIAGONAL = 1e-6  # entries off the diagonal that are rounding, of a matrix near the identity
_TURNED_DIM = 1000  # of the largest noise matrix whose eigenvectors are worth their cost


@dataclass(frozen=True, eq=False)
class Anchor:
    """The anchor under the present prior, in the coordinates of the chains.

    Attributes
    ----------
    theta : array of shape (1, D)
        The point, in the coordinates of the model.
    curvature : Operator
        Minus the Hessian of the log posterior of all rows there.
    noise : Operator
        Covariance of one row's contribution to the gradient, in the mean over the Laplace
        approximation; that of n rows is n times smaller, times N^2.
    pool : Pool
    n_total : float
    steepness : float
        Of the posterior around the anchor, see `steepness`.
    """

    theta: NDArray
    curvature: Operator
    noise: Operator
    pool: Pool
    n_total: float
    steepness: float = 1.0

    @property
    def pool_error(self) -> float:
        """Error of the gradient by the choice of the pool, in posterior standard deviations."""
        return self.pool.error

    @cached_property
    def noise_number(self) -> float:
        """kappa = n Tr(Lam^-1 M) / D for minibatches of n rows (math.md#noise-number)."""
        share = self.curvature.inverse().dense() * self.noise.dense()
        return float(self.n_total**2 * np.sum(share) / self.curvature.dim)


@dataclass(frozen=True, eq=False)
class PoolRows:
    """The rows of a pool, ready for steps.

    Attributes
    ----------
    model : Predictor
        In the coordinates of the chains.
    coordinates : Coordinates
    centre : array of shape (1, D)
        The anchor, in the coordinates of the model of the data.
    X : array of shape (m, columns)
    at_anchor : tuple of arrays (..., m)
        What remainders need of each row.
    weight : array of shape (m,)
        Of a row that is drawn, so that the mean over draws is that over the population.
    pool : Pool
    noise : Operator
    """

    model: Predictor
    coordinates: Coordinates
    centre: NDArray
    X: NDArray
    at_anchor: tuple[NDArray, ...]
    weight: NDArray
    pool: Pool
    noise: Operator

    @classmethod
    def of(
        cls, posterior: Posterior, centre: NDArray, pool: Pool, coordinates: Coordinates
    ) -> PoolRows:
        """Load the rows; their noise is not known yet."""
        model = posterior.model
        assert isinstance(model, Predictor)
        X, y, weight = posterior.data.load(pool.rows)
        at_anchor = model.expand_rows(model.outputs(centre, X), y)
        weight = pool.weight if weight is None else weight * pool.weight
        weight = weight / (posterior.n_rows * pool.probability)
        X = coordinates.inputs(X)
        return cls(
            model.bare(X.shape[1]) if isinstance(coordinates, Whitened) else model,
            coordinates,
            centre,
            X,
            tuple(kept.astype(X.dtype) for kept in at_anchor),
            weight.astype(X.dtype),
            pool,
            Diag(np.zeros(model.dim)),
        )

    def scores(self, change: NDArray, rows: Rows) -> Scores:
        """Weighted remainders of some rows of the pool, by number, at `change` from the anchor."""
        X = self.X[rows] if isinstance(rows, slice) else self.X.take(rows, axis=0)
        at_anchor = tuple(kept[..., rows] for kept in self.at_anchor)
        left = self.model.remainder(self.model.outputs(change, X), at_anchor)
        left *= self.weight[rows]
        return self.model.times_inputs(left, X)

    def with_noise_at(self, change: NDArray) -> PoolRows:
        """The same rows with their noise in the mean over points, (points, D) from the anchor.

        Up to a size the coordinates turn, so that it is diagonal.
        """
        noise = self.noise_at(change)
        coordinates = self.coordinates
        if isinstance(coordinates, Natural) or not coordinates.turns or len(noise) > _TURNED_DIM:
            return replace(self, noise=Dense(noise))
        values, V = np.linalg.eigh(noise)
        X = self.X @ V.astype(self.X.dtype)
        turned = coordinates.turned(V)
        return replace(self, coordinates=turned, X=X, noise=Diag(np.maximum(values, 0.0)))

    def noise_at(self, change: NDArray) -> NDArray:
        """Covariance of one draw in the mean over points, (points, D) from the anchor: (D, D).

        A step with the mean noise keeps the second moments of the posterior (math.md#mean-noise).
        """
        rng = np.random.default_rng(0)
        q, m = self.pool.probability, len(self.weight)
        rows = np.arange(m)
        share = q
        if m > _NOISE_ROWS:
            rows = np.sort(rng.choice(m, _NOISE_ROWS, p=q))
            share = np.full(_NOISE_ROWS, 1 / _NOISE_ROWS)
        total = np.zeros((len(change), self.model.dim))
        moment = Dense(np.zeros((self.model.dim,) * 2))
        for block in np.array_split(np.arange(len(rows)), 1 + len(rows) * len(change) // _CELLS):
            scores = self.scores(change, rows[block])
            total += scores.scaled(share[block]).total()
            moment = moment + scores.pooled().scaled(np.sqrt(share[block])).moment(FULL)
        return (moment.matrix - total.T @ total) / len(change)


class AnchoredPosterior(Posterior):
    """A posterior expanded around an anchor; gradients stay unbiased but for the pool's error.

    `minibatches`, `scores` and `gradient` are those of chains, in the coordinates of the chains and
    on the rows of the pool. All other methods are those of the posterior: theta is that of the
    model, and rows are those of the data. The chains of a group share their minibatches. Each chain
    multiplies the noise by a function of its own distance from the anchor, so the noises of
    different chains are hardly correlated.

    Parameters
    ----------
    posterior : Posterior
        Of a `Predictor`.
    rows : PoolRows
    information : array of shape (D, D)
        Minus the Hessian of the log likelihood of all rows at the anchor, in theta.
    gradient : array of shape (1, D)
        Gradient of that log likelihood there, in theta.
    """

    anchor: Anchor

    def __init__(
        self, posterior: Posterior, rows: PoolRows, information: NDArray, gradient: NDArray
    ) -> None:
        super().__init__(posterior.model, posterior.data, posterior.prior)
        self.coordinates = rows.coordinates
        self._rows, self._information, self._of_rows = rows, information, gradient
        at, pulled = rows.centre, rows.coordinates.pulled_matrix
        slope, hessian = gradient, information
        if self.prior.quadratic:
            slope = slope + self.prior.gradient(at)
            hessian = hessian + self.prior.hessian(at)
        self._slope_there = self.coordinates.pulled(slope)
        self._hessian = _stored(pulled(hessian))
        curvature = _stored(pulled(information + self.prior.hessian(at)))
        self.anchor = Anchor(at, curvature, rows.noise, rows.pool, self.n_total)
        self._origin = self.coordinates.whitened(at)

    def _steepness(self, points: NDArray) -> float:
        """`steepness` of the gradient that the pool gives, at points (points, D) in theta."""
        change = self.coordinates.whitened(points) - self._origin
        together = max(1, _CELLS // len(self._rows.weight))

        def gradient(change: NDArray) -> NDArray:
            parts = np.array_split(change, -(-len(change) // together))
            return np.concatenate([self.pool_gradient(self._origin + part) for part in parts])

        return steepness(gradient, self.anchor.curvature, self.anchor.noise, change)

    @classmethod
    def at(cls, posterior: Posterior, mode: Mode, whiten: bool = True) -> AnchoredPosterior:
        """The posterior anchored at a mode, in one pass over the rows.

        Parameters
        ----------
        posterior : Posterior
        mode : Mode
        whiten : bool, default=True
            Whether the chains move in whitened coordinates.

        Raises
        ------
        NoGainError
            If the Hessian at the mode is not definite.
        """
        assert isinstance(posterior.model, Predictor)
        at, prior = mode.theta, posterior.prior
        gradient = mode.gradient - prior.gradient(at)
        information = posterior.model.observed(
            (mode.curvature + prior.curvature(at) * -1.0).dense(), gradient
        )
        curvature = information + prior.hessian(at)
        try:
            np.linalg.cholesky(curvature)
        except np.linalg.LinAlgError:
            raise NoGainError(
                "the Hessian of the log posterior is not definite at the mode"
            ) from None
        pool = choose_pool(posterior, mode, np.random.default_rng(0))
        columns = posterior.model.columns()
        coordinates = Whitened.of(columns, at, curvature) if whiten else Natural()
        rows = PoolRows.of(posterior, at, pool, coordinates)
        points = laplace_points(posterior, mode)[0]
        change = coordinates.whitened(points) - coordinates.whitened(at)
        anchored = cls(posterior, rows.with_noise_at(change), information, gradient)
        anchored.anchor = replace(anchored.anchor, steepness=anchored._steepness(points))
        return anchored

    def with_prior(self, prior: Prior) -> AnchoredPosterior:
        """The same data and anchor under another prior."""
        return AnchoredPosterior(
            super().with_prior(prior), self._rows, self._information, self._of_rows
        )

    def minibatches(
        self, batch_size: int, replace: bool, rng: np.random.Generator, n_chains: int
    ) -> Minibatches:
        """One stream of the pool's rows for all chains of the group."""
        return Minibatches(
            len(self._rows.weight),
            batch_size,
            True,
            rng,
            1,
            self.n_total,
            probability=self._rows.pool.probability,
        )

    def scores(self, theta: NDArray, rows: Rows) -> Scores:
        """Remainders of the rows' scores, weighted so that their mean over draws is unbiased."""
        return self._rows.scores(theta - self._origin, rows)

    def gradient(self, theta: NDArray, scores: Scores) -> NDArray:
        return self._from_remainders(theta, scores.total() * (self.n_total / scores.n_rows))

    def pool_gradient(self, theta: NDArray) -> NDArray:
        """The gradient from the whole pool, (chains, D); exact if the pool has all rows."""
        scores = self._rows.scores(theta - self._origin, slice(None))
        remainders = scores.scaled(self._rows.pool.probability).total() * self.n_total
        return self._from_remainders(theta, remainders)

    def _from_remainders(self, theta: NDArray, gradient: NDArray) -> NDArray:
        """Gradient of the log posterior from the sum of all remainders, which it overwrites."""
        change = theta - self._origin
        gradient += self._slope_there
        gradient -= self._hessian.matvec(change)
        if not self.prior.quadratic:
            natural = self.coordinates.natural(theta)
            gradient += self.coordinates.pulled(self.prior.gradient(natural))
        return gradient

    def score_covariance(self, theta: NDArray) -> NDArray:
        """I1, the covariance of one draw's contribution at one point of a chain (1, D): (D, D)."""
        return self._rows.noise_at(theta - self._origin)


def _stored(matrix: NDArray) -> Operator:
    """As a diagonal if nothing but rounding is off it."""
    diagonal = matrix.diagonal()
    off = np.abs(matrix - np.diag(diagonal)).max() if len(matrix) > 1 else 0.0
    return Diag(diagonal.copy()) if off < _DIAGONAL * diagonal.min() else Dense(matrix)
