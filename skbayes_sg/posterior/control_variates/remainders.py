"""The rows of a pool, ready for steps: their remainders, and the noise of minibatches of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import Batch, deterministic_rng
from skbayes_sg.data.minibatches import Rows
from skbayes_sg.linalg import FULL, Dense, Diag, Operator
from skbayes_sg.linalg.coordinates import Identity, Whitened, reproducible_eigh
from skbayes_sg.linalg.scores import Scores
from skbayes_sg.linalg.sizes import elements_at_a_time
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.control_variates.subsample import Pool

_NOISE_ROWS = 4000
_STEEP_ROWS = 32  # rows whose remainders show where a posterior is steep


@dataclass(frozen=True, eq=False)
class PoolRows:
    """The rows of a pool, ready for steps.

    Attributes
    ----------
    model : Predictor
        In the coordinates of the chains.
    coordinates : Natural or Whitened
    centre : array of shape (1, D)
        The anchor, in the coordinates of the model of the data.
    X : array of shape (m, columns)
    at_anchor : tuple of arrays (..., m)
        What remainders need of each row.
    weight : array of shape (m,)
        Of a row that is drawn, so that the mean over draws is that over the population.
    pool : Pool
    """

    model: Predictor
    coordinates: Identity | Whitened
    centre: NDArray
    X: NDArray
    at_anchor: tuple[NDArray, ...]
    weight: NDArray
    pool: Pool

    @classmethod
    def of(
        cls,
        posterior: Posterior,
        centre: NDArray,
        batch: Batch,
        pool: Pool,
        coordinates: Identity | Whitened,
    ) -> PoolRows:
        """From the rows as they are in the data."""
        model = posterior.model
        assert isinstance(model, Predictor)
        X, y, weight, _ = batch
        at_anchor = model.expand_rows(model.outputs(centre, X), y)
        weight = pool.weight if weight is None else weight * pool.weight
        weight = weight / (posterior.data.n_rows * pool.probability)
        X = coordinates.inputs(X)
        return cls(
            model.on_columns(X.shape[1]) if isinstance(coordinates, Whitened) else model,
            coordinates,
            centre,
            X,
            tuple(kept.astype(X.dtype) for kept in at_anchor),
            weight.astype(X.dtype),
            pool,
        )

    @cached_property
    def full_weight(self) -> NDArray:
        """Weight of each row where all are taken, (m,)."""
        return self.weight * (len(self.weight) * self.pool.probability).astype(self.weight.dtype)

    @cached_property
    def _by_column(self) -> NDArray:
        """X column by column, which the product that makes outputs of all rows reads fastest."""
        return np.asfortranarray(self.X)

    def differences(self, change: NDArray) -> Scores:
        """Weighted changes of the scores of all rows at `change` from the anchor."""
        left = self.model.difference(self.model.outputs(change, self._by_column), self.at_anchor)
        left *= self.full_weight
        return self.model.times_inputs(left, self.X)

    def slope(self, change: NDArray, order: int) -> tuple[NDArray, Scores]:
        """What the log likelihood of all rows has beyond its expansion of this order, 1 or 2.

        At `change` from the anchor: values (chains,), and `differences` or `scores`, their
        gradients.
        """
        outputs = self.model.outputs(change, self._by_column)
        if order == 1:
            value, left = self.model.bregman_remainder(outputs, self.at_anchor)
        else:
            value, difference = self.model.bregman_remainder(outputs.copy(), self.at_anchor)
            left = self.model.remainder(outputs.copy(), self.at_anchor)
            # the remainder is the difference less its linear part
            value += 0.5 * np.einsum("ckn,ckn->cn", outputs, left - difference)
        left *= self.full_weight
        value *= self.full_weight
        return value.sum(axis=1, dtype=np.float64), self.model.times_inputs(left, self.X)

    def scores(self, change: NDArray, rows: Rows) -> Scores:
        """Weighted remainders at `change` from the anchor, of drawn rows by number or of all."""
        if isinstance(rows, slice):  # the whole pool: the mean over all draws
            X, at_anchor, weight = self.X, self.at_anchor, self.full_weight
        else:
            X, weight = self.X.take(rows, axis=0), self.weight[rows]
            at_anchor = tuple(kept[..., rows] for kept in self.at_anchor)
        left = self.model.remainder(self.model.outputs(change, X), at_anchor)
        left *= weight
        return self.model.times_inputs(left, X)

    def noise(self, change: NDArray) -> Operator:
        """`noise_at` as an operator."""
        return Dense(self.noise_at(change))

    def rotated(self, change: NDArray) -> tuple[PoolRows, Operator]:
        """The same rows and their noise, which is diagonal where coordinates may rotate.

        Points are (points, D) from the anchor.
        """
        noise, coordinates = self.noise_at(change), self.coordinates
        if not isinstance(coordinates, Whitened) or not coordinates.rotates:
            return self, Dense(noise)
        values, V = reproducible_eigh(noise)
        X = self.X @ V.astype(self.X.dtype)
        return replace(self, coordinates=coordinates.rotated(V), X=X), Diag(np.maximum(values, 0.0))

    def least_linear(self, change: NDArray) -> NDArray:
        """Remainders of the rows that have the largest at some point (1, D), (rows, D)."""
        size = self.pool.probability / np.maximum(self.full_weight, 1e-30)
        each = [self.scores(change, np.array([i])).total() for i in np.argsort(-size)[:_STEEP_ROWS]]
        return np.concatenate(each)

    def largest(self, n: int) -> PoolRows:
        """The n rows with the largest remainders, with the weight that each has in a sum of all."""
        kept = np.sort(np.argsort(-self.pool.probability, kind="stable")[:n])
        return replace(
            self,
            X=self.X[kept],
            at_anchor=tuple(each[..., kept] for each in self.at_anchor),
            weight=self.full_weight[kept],
            pool=Pool.of_all(n),
        )

    def forces_along(self, directions: NDArray, distances: NDArray) -> NDArray:
        """`Predictor.forces_along` of the rows, from the anchor."""
        rows = self.X, self.at_anchor, self.full_weight
        return self.model.forces_along(directions, distances, *rows)

    def noise_at(self, change: NDArray) -> NDArray:
        """Covariance of one draw in the mean over points, (points, D) from the anchor: (D, D).

        A step with the mean noise keeps the second moments of the posterior
        (math/stationary.md#mean-noise).
        """
        rng = deterministic_rng("noise")
        q, m = self.pool.probability, len(self.weight)
        rows = np.arange(m)
        share = q
        if m > _NOISE_ROWS:
            rows = np.sort(rng.choice(m, _NOISE_ROWS, p=q))
            share = np.full(_NOISE_ROWS, 1 / _NOISE_ROWS)
        total = np.zeros((len(change), self.model.dim))
        moment = Dense(np.zeros((self.model.dim,) * 2))
        n_blocks = 1 + len(rows) * len(change) // elements_at_a_time()
        for block in np.array_split(np.arange(len(rows)), n_blocks):
            scores = self.scores(change, rows[block])
            total += scores.scaled(share[block]).total()
            moment = moment + scores.joined_chains().scaled(np.sqrt(share[block])).moment(FULL)
        return (moment.matrix - total.T @ total) / len(change)
