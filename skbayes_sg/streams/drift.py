"""Whether the truth moves along a stream: each chunk is judged before it is learned.

The posterior mean lags behind a moving truth, so that the next rows would have a smaller log loss
if it had gone on where the last rows pulled it. If nothing moves, their scores in that direction
have the mean zero, whether the model is right or not. Source: math/streams.md#drift.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import Batch, InMemory
from skbayes_sg.linalg import Diag, Operator
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior.gaussian import Distribution
from skbayes_sg.priors import NormalInverseGammaPrior

_MEMORY = 4.0  # a quarter of the rows says where the truth goes
_ROWS_A_PARAMETER = 4  # before which nothing is judged
_STEP = 0.01  # of a row's standard deviation: differences of log likelihoods are slopes
_LONGEST = 10_000  # chunks of the path


@dataclass(frozen=True, eq=False)
class Drift:
    """What the chunks of a stream said before they were learned.

    Attributes
    ----------
    n_rows : float
        Total weight of the rows that the posterior knows.
    pull : array of shape (1, D)
        Way from the mean to where the last quarter of the rows alone would have it.
    move : array of shape (1, D)
        Move of the mean by the last chunk.
    slope, square : float
        Sums over rows of the slopes of their log likelihoods in these directions, and of the
        squares.
    expected : float
        Sum of the squares that the model expects.
    highest : float
        The largest `z` so far, up or, where nothing is forgotten, down: rows in order may turn
        back. A mean that forgets swings back by itself.
    forgets : bool
    path : array of shape (chunks, 3)
        Log loss of a row of each chunk at the mean before it; mean and standard deviation that were
        predicted for it.
    """

    n_rows: float = 0.0
    pull: NDArray = field(default_factory=lambda: np.zeros((1, 1)))
    move: NDArray = field(default_factory=lambda: np.zeros((1, 1)))
    slope: float = 0.0
    square: float = 0.0
    expected: float = 0.0
    highest: float = 0.0
    forgets: bool = False
    path: NDArray = field(default_factory=lambda: np.empty((0, 3)))

    @property
    def z(self) -> float:
        """The sum of the slopes in its standard errors.

        Of rare events the squares are near zero until one comes, and what the model expects of
        them is not. Both together bound a sum of slopes of any distribution.
        """
        square = max(self.square, (self.square + 2 * self.expected) / 3)
        return float(self.slope / np.sqrt(square)) if square > 0 else 0.0

    def forgotten(self, share: float) -> Drift:
        """The same with the weight of earlier rows multiplied by a number."""
        return replace(
            self,
            n_rows=share * self.n_rows,
            slope=share * self.slope,
            square=share**2 * self.square,
            expected=share**2 * self.expected,
            forgets=True,
        )

    def after(
        self, model: Predictor, rows: InMemory, before: Distribution, after: Distribution
    ) -> Drift:
        """The drift after a chunk that leads from one distribution to another."""
        weight = float(rows.n_rows if rows.weight is None else rows.weight.sum(dtype=np.float64))
        total, point = self.n_rows + weight, _point(before)
        if self.n_rows == 0:  # by the prior alone nothing is predicted
            return replace(self, n_rows=total, path=np.full((1, 3), np.nan))
        metric = before.curvature(point)
        ahead = self._ahead(metric)
        points = np.concatenate([point, point + _STEP * ahead, point - _STEP * ahead])
        sums = rows.reduce(lambda batch: _sums(model, points, batch), 3 * model.widest)
        loss, mean, variance, slope, square = (float(value) for value in sums)
        mean += 0.5 * _learned(metric, after.curvature(point))
        if getattr(model, "counts", False) and (rows.y != np.rint(rows.y)).any():
            mean = variance = np.nan  # rates, whose exposures are their weights
        of_chunk = np.array([[loss, mean, np.sqrt(variance)]]) / weight
        now = replace(
            self._pulled(_point(after) - point, weight / total),
            n_rows=total,
            path=np.concatenate([self.path, of_chunk])[-_LONGEST:],
        )
        if self.n_rows < _ROWS_A_PARAMETER * point.size or not np.isfinite(square):
            return now
        gained = 0.0
        if ahead.any():
            change = after.curvature(point).matvec(ahead) - metric.matvec(ahead)
            gained = float(np.sum(ahead * change))
        share = total / self.n_rows  # what is not known of the mean is the same in all its rows
        now = replace(
            now,
            slope=self.slope + slope,
            square=self.square + share * square,
            expected=self.expected + share * gained,
        )
        far = max(now.z, -now.z * (not self.forgets))
        return replace(now, highest=max(now.highest, far))

    def _ahead(self, metric: Operator) -> NDArray:
        """Where the mean goes if the truth moves on as the last quarter of the rows, and the last
        chunk, have moved it.

        In the mean over rows it changes outputs by a standard deviation.
        """
        both = _unit(self.pull, metric) + _unit(self.move, metric)
        return np.sqrt(self.n_rows) * _unit(both, metric)

    def _pulled(self, move: NDArray, share: float) -> Drift:
        """After a chunk, a share of all rows, whose move of the mean leads that share of the way to
        its own mean."""
        new = min(1.0, _MEMORY * share)
        return replace(self, move=move, pull=(1 - new) * self.pull + (new / share - 1) * move)


def _point(distribution: Distribution) -> NDArray:
    """The mean, (1, D), with the noise variance under which residuals have their size."""
    point = distribution.mode
    if isinstance(distribution, NormalInverseGammaPrior):
        point[0, -1] = np.log(distribution.rate / distribution.shape)
    return point


def _unit(direction: NDArray, metric: Operator) -> NDArray:
    """A posterior standard deviation long; nothing stays nothing."""
    if not direction.any():
        return direction
    return direction / np.sqrt(np.sum(direction * metric.matvec(direction)))


def _learned(before: Operator, after: Operator) -> float:
    """Information of a chunk over that before it, summed over directions: tr(Q^-1 Q') - D."""
    if isinstance(before, Diag):
        return float(np.sum(after.diagonal() / before.diagonal() - 1))
    return float(np.sum(before.inverse().dense() * after.dense()) - before.dim)


def _sums(model: Predictor, points: NDArray, batch: Batch) -> tuple[NDArray, ...]:
    """Log loss, its mean and variance under the model, and slopes and squares of them."""
    value = model.log_likelihood(points, batch.X, batch.y).astype(np.float64, copy=False)
    slope = (value[1] - value[2]) / (2 * _STEP)
    mean, variance = model.log_loss_moments(points[:1], batch.X)
    of_rows = np.stack([-value[0], mean, variance, slope, slope * slope])
    weight = np.ones(len(slope)) if batch.weight is None else batch.weight
    return tuple(of_rows @ weight.astype(np.float64, copy=False))
