"""Second-order control variates: the gradient of all rows expanded around an anchor.

    gradient = G_a - H_a (theta - a) + sum over a minibatch of r_i(theta) / (n q_i) + grad log prior

G_a and H_a are the gradient and minus the Hessian of the log likelihood of all rows at the anchor
a, a point near the posterior mean. r_i is the remainder of row i: what is left of its score beyond
first order (math/control_variates.md#second-order-control-variates). Rows are drawn with
probabilities q_i from a `Pool`. The noise is that of the remainders, which are small near the
anchor, so the bound of one effective draw per pass (Mandt et al. 2017, section 5.2) does not hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import deterministic_rng
from skbayes_sg.data.minibatches import Rows
from skbayes_sg.linalg import Dense, Diag, Operator
from skbayes_sg.linalg.coordinates import Identity, Whitened
from skbayes_sg.linalg.sizes import elements_at_a_time
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.chain_target import Anchor, ChainTarget
from skbayes_sg.posterior.control_variates.nonlinearity import column_steepness, steepness
from skbayes_sg.posterior.control_variates.remainders import PoolRows
from skbayes_sg.posterior.control_variates.subsample import choose_pool
from skbayes_sg.posterior.laplace import laplace_points
from skbayes_sg.posterior.mode import Mode
from skbayes_sg.priors import Prior
from skbayes_sg.priors.scales import Scales
from skbayes_sg.samplers.base import NoAnchorError
from skbayes_sg.samplers.langevin import STEEP_COLUMN
from skbayes_sg.samplers.target import FastGradient

_DIAGONAL = 1e-6  # entries off the diagonal that are rounding, of a matrix near the identity
_FEW_ROWS, _SHARE = 64, 64  # rows of the fast gradient: so many at least, and one in so many
_SAVING = 16  # rows over these, from which the short steps cost little beside the long ones
_AS_LONG = 16  # products of a matrix that take as long as the linear part of a row's score
_LEAST_LINEAR = 32  # rows whose remainders show where a posterior is steep


class Expansion(NamedTuple):
    """The log likelihood of all rows to second order at the anchor, in theta."""

    fisher: NDArray
    """(D, D), the model Fisher"""
    information: NDArray
    """(D, D), minus the Hessian"""
    gradient: NDArray
    """(1, D)"""


class ExpandedTarget(ChainTarget):
    """A posterior expanded around an anchor; gradients stay unbiased but for the pool's error.

    Parameters
    ----------
    posterior : Posterior
        Of a `Predictor`.
    rows : PoolRows
    measured : function
        Measures the noise of the rows.
    expansion : Expansion
    """

    anchor: Anchor
    coordinates: Identity | Whitened
    points: NDArray
    """Distances from the anchor that stand for the normal approximation."""

    def __init__(
        self,
        posterior: Posterior,
        rows: PoolRows,
        measured: Callable[[], Operator],
        expansion: Expansion,
    ) -> None:
        self._rows, self._measured, self._expansion = rows, measured, expansion
        at, prior, pullback = rows.centre, posterior.prior, rows.coordinates.pullback_matrix
        fisher, hessian, slope = expansion
        if prior.quadratic:
            slope = slope + prior.gradient(at)
            hessian = hessian + prior.hessian(at)
        self._slope_there = rows.coordinates.pullback(slope)
        self._hessian = _stored(pullback(hessian))
        # definite under any prior, also one under which the anchor is far from the mode
        curvature = self._hessian
        if fisher is not expansion.information or not prior.quadratic:
            curvature = _stored(pullback(fisher + prior.curvature(at).dense()))
        super().__init__(posterior, rows.coordinates)
        self.anchor = Anchor(at, curvature, rows.pool, self.n_total, measured)
        self._origin = self.coordinates.transform(at)
        wide = isinstance(self._hessian, Diag) and self.dim**2 > _AS_LONG * len(rows.pool.weight)
        self._cancels = len(rows.pool.weight) == posterior.data.n_rows and not wide
        self._bend = self._prior_bend() if self._cancels else self._hessian.matvec

    def _steepness(self, points: NDArray) -> float:
        """`steepness` of the gradient that the pool gives, at points (points, D) in theta."""
        change = self.coordinates.transform(points) - self._origin
        together = max(1, elements_at_a_time() // len(self._rows.weight))

        def gradient(change: NDArray) -> NDArray:
            parts = np.array_split(change, -(-len(change) // together))
            return np.concatenate([self.full_gradient(self._origin + part) for part in parts])

        root = self.anchor.curvature.inverse().cholesky()
        if self.anchor.batch_size < self.anchor.pool_size:
            axes = root.dense()
            lines = np.linalg.eigh(axes.T @ self.anchor.noise.dense() @ axes)[1].T[-_LEAST_LINEAR:]
        else:
            lines = self._rows.least_linear(change[:1]) @ root.dense()
            lines = lines / np.maximum(np.linalg.norm(lines, axis=1, keepdims=True), 1e-300)
        return steepness(gradient, self.anchor.curvature, lines, change)

    def _column_steepness(self) -> float:
        """`column_steepness` of all parameters; 1 where the likelihood is quadratic."""
        if self._rows.model.conjugate:
            return 1.0
        units = self.coordinates.pullback(np.eye(self.dim))
        directions = self.anchor.curvature.inverse().matvec(units)
        directions /= np.sqrt(np.sum(directions * units, axis=1, keepdims=True))
        precision = self.coordinates.pullback_matrix(
            self.prior.curvature(self.anchor.theta).dense()
        )
        of_prior = np.einsum("ld,de,le->l", directions, precision, directions, optimize=True)
        each = len(self._rows.weight) * self._rows.model.widest
        parts = np.array_split(np.arange(self.dim), -(-self.dim * each // elements_at_a_time()))
        along = partial(column_steepness, self._rows.forces_along, limit=STEEP_COLUMN)
        return max(along(directions[i], of_prior[i]) for i in parts)

    @classmethod
    def at(
        cls,
        posterior: Posterior,
        mode: Mode,
        whiten: bool = True,
        along: Scales | None = None,
    ) -> ExpandedTarget:
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
        NoAnchorError
            If the Hessian at the mode is not definite.
        """
        assert isinstance(posterior.model, Predictor)
        at, prior = mode.theta, posterior.prior
        gradient = mode.gradient - prior.gradient(at)
        fisher = (mode.curvature + prior.curvature(at) * -1.0).dense()
        information = posterior.model.observed(fisher, gradient)
        if not posterior.model.canonical:
            information = posterior.observed(at)
        curvature = information + prior.hessian(at)
        try:
            np.linalg.cholesky(curvature)
        except np.linalg.LinAlgError:
            raise NoAnchorError(
                "the Hessian of the log posterior is not definite at the mode"
            ) from None
        batch, pool = choose_pool(posterior, mode, deterministic_rng("pool"))
        columns = posterior.model.columns()
        coordinates = Whitened.of(columns, at, curvature) if whiten else Identity()
        if along is not None:
            assert isinstance(coordinates, Whitened)
            coordinates = coordinates.along(*along.members(prior))
        rows = PoolRows.of(posterior, at, batch, pool, coordinates)
        expansion = Expansion(fisher, information, gradient)
        points = laplace_points(posterior, mode)[0]
        change = coordinates.transform(points) - coordinates.transform(at)
        anchored = cls(posterior, rows, partial(rows.noise, change), expansion)
        if anchored.anchor.batch_size < anchored.anchor.pool_size and along is None:
            rows, noise = rows.rotated(change)
            anchored = cls(posterior, rows, partial(_known, noise), expansion)
        anchored.points = change
        anchored.anchor = replace(
            anchored.anchor,
            steepness=anchored._steepness(points),
            column_steepness=anchored._column_steepness(),
        )
        return anchored

    def with_prior(self, prior: Prior) -> ExpandedTarget:
        posterior = self.posterior.with_prior(prior)
        target = ExpandedTarget(posterior, self._rows, self._measured, self._expansion)
        target.points = self.points
        return target

    def noisy_gradient(self, theta: NDArray, rows: Rows) -> NDArray:
        """Gradient from some rows of the pool, or from all.

        Where all rows are there, the Hessian of the likelihood cancels from it.
        """
        change = theta - self._origin
        if self._cancels and isinstance(rows, slice):
            scores, bent = self._rows.differences(change), self._bend(change)
        else:
            scores, bent = self._rows.scores(change, rows), self._hessian.matvec(change)
        return self._with_expansion(scores.total() * (self.n_total / scores.n_rows), change, bent)

    def slope(self, theta: NDArray) -> tuple[NDArray, NDArray]:
        change, scale = theta - self._origin, self.n_total / self.anchor.pool_size
        rest, scores = self._rows.slope(change, 1 if self._cancels else 2)
        bent = self._bend(change)
        value = scale * rest + change @ self._slope_there[0] - 0.5 * np.sum(change * bent, axis=1)
        if not self.prior.quadratic:
            value += self.prior.log_density(self.coordinates.inverse_transform(theta))
        return value, self._with_expansion(scores.total() * scale, change, bent)

    @cached_property
    def fast_gradient(self) -> FastGradient | None:
        """That of the expansion, and of the rows that it describes worst.

        It needs to follow the posterior where it is steep, and elsewhere only roughly: short steps
        with it are corrected by the gradient once in a while, and by the Metropolis test.
        """
        n = max(_FEW_ROWS, self.anchor.pool_size // _SHARE)
        if n * _SAVING > self.anchor.pool_size:
            return None
        gradient = partial(self._beside, self._rows.largest(n))
        there = self._origin + self.points
        error = np.sqrt(np.mean((gradient(there) - self.full_gradient(there)) ** 2))
        return FastGradient(gradient, n, float(error)) if np.isfinite(error) else None

    def _beside(self, rows: PoolRows, theta: NDArray) -> NDArray:
        """Gradient of the expansion and of the remainders of these rows."""
        change = theta - self._origin
        rest = rows.scores(change, slice(None)).total() * (self.n_total / self.anchor.pool_size)
        bent = self._hessian.matvec(change)
        return self._with_expansion(rest, change, bent)

    def _with_expansion(self, rest: NDArray, change: NDArray, bent: NDArray) -> NDArray:
        """Gradient of the log posterior at a change from the anchor.

        `rest` is what the expansion leaves, and is overwritten; `bent` is the Hessian of the
        expansion times the change.
        """
        rest += self._slope_there
        rest -= bent
        if not self.prior.quadratic:
            natural = self.coordinates.inverse_transform(change + self._origin)
            rest += self.coordinates.pullback(self.prior.gradient(natural))
        return rest

    def _prior_bend(self) -> Callable[[NDArray], NDArray]:
        """Multiplies changes by the precision of the prior; by 0 if the prior is not normal."""
        prior, coordinates = self.prior, self.coordinates
        if not prior.quadratic:
            return np.zeros_like
        precision = prior.curvature(self.anchor.theta)
        whitened = coordinates if isinstance(coordinates, Whitened) else None
        if isinstance(precision, Diag) and whitened is not None and not len(whitened.rest):
            first, *others = precision.values[whitened.columns]
            if all((other == first).all() for other in others):
                form = (whitened.S.T * first) @ whitened.S
                return partial(_of_each_output, form.astype(np.float32))
        return _stored(coordinates.pullback_matrix(precision.dense())).matvec

    def score_covariance(self, theta: NDArray) -> NDArray:
        """I1, the covariance of one draw's contribution at one point of a chain (1, D): (D, D)."""
        return self._rows.noise_at(theta - self._origin)


def _of_each_output(form: NDArray, change: NDArray) -> NDArray:
    """The same matrix times the parameters of each output, (chains, D)."""
    return (change.reshape(-1, len(form)) @ form).reshape(change.shape)


def _known(noise: Operator) -> Operator:
    return noise


def _stored(matrix: NDArray) -> Operator:
    """As a diagonal if nothing but rounding is off it."""
    diagonal = matrix.diagonal()
    off = np.abs(matrix - np.diag(diagonal)).max() if len(matrix) > 1 else 0.0
    return Diag(diagonal.copy()) if off < _DIAGONAL * diagonal.min() else Dense(matrix)
