"""A check of what a stream no longer keeps: a sample of those rows, and their remainders.

A row that is folded into a normal distribution counts by its score and its Fisher information at
the mean of that time. What these leave out at the present mean is its remainder. Source:
math.md#streams-as-bayesian-updating.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import InMemory
from skbayes_sg.kept_rows import joined, n_bytes
from skbayes_sg.layouts import DIAGONAL, FULL, Layout
from skbayes_sg.linalg import Dense, Diag, Operator
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.priors import Precision
from skbayes_sg.rows import fixed_rng
from skbayes_sg.variational import Law
from skbayes_sg.whitening import FULL_CURVATURE_DIM

_MOST_ROWS = 4096


class Remainder(NamedTuple):
    """What the sum of the remainders would change in the worst parameter."""

    mean_remainder: float
    """Shift of a mean, in posterior standard deviations."""
    mean_remainder_error: float
    """Monte Carlo error of that shift: the rows are a sample."""
    variance_remainder: float
    """Change of a variance, relative to it."""


@dataclass(frozen=True, eq=False)
class FoldedRows:
    """Rows of a stream by priority sampling (Duffield, Lund & Thorup 2007).

    A row of size s has the priority s / u with u uniform. The rows of the highest priorities stay.
    If t is the highest of the others, then s is replaced by max(s, t) to estimate sums over all
    rows without bias.

    Attributes
    ----------
    rows : InMemory
    outputs : array of shape (outputs, n_rows)
        At the mean where each row was folded.
    size, priority : arrays of shape (n_rows,)
    threshold : float
        Highest priority of a row that did not stay.
    n_folded : int
    """

    rows: InMemory
    outputs: NDArray
    size: NDArray
    priority: NDArray
    threshold: float
    n_folded: int

    @classmethod
    def of(cls, model: Predictor, rows: InMemory, law: Law, n_before: int) -> FoldedRows:
        """All of some rows, folded at the mean of a law. Sizes are weight and leverage."""
        outputs = model.outputs(law.mean[None], rows.X)[0]
        size = np.ones(rows.n_rows) if rows.weight is None else rows.weight.astype(np.float64)
        if isinstance(law.operator, Dense):
            root = law.operator.inverse().cholesky().dense()
            along = model.outputs(root.T, rows.X) - model.outputs(0 * root[:1], rows.X)
            leverage = np.einsum("dkn,dkn->n", along, along)
            size = size * (1 + leverage / leverage.mean())
        priority = size / fixed_rng(f"folded rows {n_before}").random(rows.n_rows)
        return cls(rows, outputs, size, priority, 0.0, n_before + rows.n_rows)

    def sampled(self, n_rows: int) -> FoldedRows:
        """At most so many of these rows."""
        if self.rows.n_rows <= n_rows:
            return self
        order = np.argsort(-self.priority)
        stay = np.sort(order[:n_rows])
        return replace(
            self,
            rows=joined([self.rows.some(stay)]),
            outputs=self.outputs[:, stay],
            size=self.size[stay],
            priority=self.priority[stay],
            threshold=max(self.threshold, float(self.priority[order[n_rows]])),
        )

    def forgotten(self, share: float) -> FoldedRows:
        """The rows with their weights multiplied by a number."""
        return replace(self, rows=self.rows.repeated(share))

    def remainder(self, model: Predictor, law: Law) -> Remainder:
        """What the rows leave out at the mean of a law."""
        X, y, weight, _ = self.rows.load(slice(None))
        now = model.outputs(law.mean[None], X)
        at_fold = model.expand_rows(self.outputs[None], y)
        factor = np.maximum(1.0, self.threshold / np.maximum(self.size, 1e-300))
        weight = np.ones(len(factor)) if weight is None else weight
        layout = DIAGONAL if model.dim > FULL_CURVATURE_DIM else FULL
        left = model.times_inputs(model.remainder(now - self.outputs, at_fold), X)
        covariance = law.operator.inverse()
        shift = covariance.matvec(left.scaled(weight * factor).total())[0]
        chance = left.scaled(weight * np.sqrt(factor * (factor - 1))).moment(layout)
        after, before = (
            _information(model, outputs, X, weight * factor, layout)
            for outputs in (now, self.outputs[None])
        )
        variance = covariance.diagonal()
        each = np.abs(shift) / np.sqrt(variance)
        worst = int(each.argmax())
        error = np.sqrt(_sandwich(covariance, chance)[worst] / variance[worst])
        relative = np.abs(_sandwich(covariance, after + before * -1.0)) / variance
        return Remainder(float(each[worst]), float(error), float(relative.max()))


def with_folded(
    before: FoldedRows | None, model: Predictor, old: Sequence[InMemory], law: Law, budget: float
) -> FoldedRows:
    """The sample after some more rows were folded at the mean of a law, within a budget."""
    n_before = 0 if before is None else before.n_folded
    new = FoldedRows.of(model, joined(old), law, n_before)
    most = int(min(_MOST_ROWS, budget / max(1, n_bytes(new.rows) // new.rows.n_rows)))
    if before is not None:
        new = FoldedRows(
            joined([before.rows, new.rows]),
            np.concatenate([before.outputs, new.outputs], axis=1),
            np.concatenate([before.size, new.size]),
            np.concatenate([before.priority, new.priority]),
            before.threshold,
            new.n_folded,
        )
    return new.sampled(max(1, most))


def _information(
    model: Predictor, outputs: NDArray, X: NDArray, weight: NDArray, layout: Layout
) -> Operator:
    root = model.times_inputs(model.residual_root(outputs), X)
    return root.scaled(np.sqrt(weight)).moment(layout)


def _sandwich(covariance: Precision, matrix: Operator) -> NDArray:
    """Diagonal of covariance matrix covariance."""
    if isinstance(covariance, Diag):
        return covariance.values**2 * matrix.diagonal()
    return np.sum(covariance.matvec(matrix.dense()) * covariance.matrix, axis=1)
