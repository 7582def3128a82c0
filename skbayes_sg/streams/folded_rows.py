"""A check of what a stream no longer keeps: a sample of those rows, and their remainders.

A row that is folded into a normal distribution counts by its score and its information at the mean
of that time. What these leave out at the present mean is its remainder. Source:
math/streams.md#streams-as-bayesian-updating.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import Batch, InMemory, deterministic_rng
from skbayes_sg.data.kept_rows import joined, n_bytes, some_of, weight_of
from skbayes_sg.diagnostics.limits import FOLDED_SHIFT_LIMITS
from skbayes_sg.linalg import DIAGONAL, FULL, Diag, Layout, Operator
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior.gaussian import Distribution
from skbayes_sg.priors import Precision

_MOST_ROWS, _FEWEST_KEPT = 4096, 1000
_TINY = 1e-300


class Remainder(NamedTuple):
    """What the sum of the remainders would change: entries of `diagnostics_`."""

    folded_shift: float
    """Shift of the mean, in posterior standard deviations, in the direction where it is most."""
    folded_shift_se: float
    """Monte Carlo error of that shift: the rows are a sample."""
    folded_variance: float
    """Change of the variances, relative to them, in the root mean square over directions."""

    @property
    def is_large(self) -> bool:
        """Whether the shift is, and not by chance; of a very large one that may be unclear."""
        small, large = FOLDED_SHIFT_LIMITS
        return self.folded_shift > max(small, min(2 * self.folded_shift_se, large))


class Terms(NamedTuple):
    """Rows at a distribution: what of a row counts when it is folded."""

    outputs: NDArray
    """Outputs at the mean, (outputs, n)."""
    residual: NDArray
    """Residuals in the mean over the distribution, (outputs, n)."""
    between: NDArray
    """Information of the outputs, in the mean over the distribution, (outputs, outputs, n)."""

    @classmethod
    def of(cls, model: Predictor, rows: InMemory, distribution: Distribution) -> Terms:
        """Above 1,000 parameters at the mode, by the expected information."""
        theta, (X, y, _, _) = distribution.mode, rows.load(slice(None))
        spread = None
        if has_matrix(model.dim):
            spread = distribution.operator.inverse().cholesky().dense()
        observed = spread is not None and not distribution.by_expected
        return cls(model.outputs(theta, X)[0], *model.row_terms(theta, spread, X, y, observed))

    def residual_at(self, outputs: NDArray) -> NDArray:
        """The residuals at other outputs, if they were linear."""
        change = (outputs - self.outputs)[: len(self.between)]  # what is given of rows stays
        return self.residual - np.einsum("kln,ln->kn", self.between, change)

    def some(self, rows: NDArray) -> Terms:
        """Terms of these rows."""
        return Terms(*(values[..., rows] for values in self))

    def followed(self, following: Terms) -> Terms:
        """Terms of these rows and then of others."""
        pairs = zip(self, following, strict=True)
        return Terms(*(np.concatenate(pair, axis=-1) for pair in pairs))


@dataclass(frozen=True, eq=False)
class FoldedRows:
    """Rows of a stream by priority sampling (Duffield, Lund & Thorup 2007).

    A row of size s has the priority s / u with u uniform. The rows of the highest priorities stay.
    If t is the highest of the others, then s is replaced by max(s, t) to estimate sums over all
    rows without bias.

    Attributes
    ----------
    rows : InMemory
    terms : Terms
        At the distribution where each row was folded.
    size, priority : arrays of shape (n_rows,)
    threshold : float
        Highest priority of a row that did not stay.
    n_folded : int
    """

    rows: InMemory
    terms: Terms
    size: NDArray
    priority: NDArray
    threshold: float
    n_folded: int

    @classmethod
    def of(
        cls, model: Predictor, rows: InMemory, distribution: Distribution, n_before: int
    ) -> FoldedRows:
        """All of some rows, folded at a distribution. Sizes are weight and leverage."""
        size = np.ones(rows.n_rows) if rows.weight is None else rows.weight.astype(np.float64)
        if has_matrix(model.dim):
            root = distribution.operator.inverse().cholesky().dense()
            along = model.outputs(root.T, model.features(rows.load(slice(None)).X))
            leverage = np.einsum("dkn,dkn->n", along, along)
            size = size * (1 + leverage / leverage.mean())
        priority = size / deterministic_rng(f"folded rows {n_before}").random(rows.n_rows)
        terms = Terms.of(model, rows, distribution)
        return cls(rows, terms, size, priority, 0.0, n_before + rows.n_rows)

    def sampled(self, n_rows: int) -> FoldedRows:
        """At most so many of these rows."""
        if self.rows.n_rows <= n_rows:
            return self
        order = np.argsort(-self.priority)
        stay = np.sort(order[:n_rows])
        return replace(
            self,
            rows=some_of(self.rows, stay),
            terms=self.terms.some(stay),
            size=self.size[stay],
            priority=self.priority[stay],
            threshold=max(self.threshold, float(self.priority[order[n_rows]])),
        )

    def followed(self, new: FoldedRows) -> FoldedRows:
        """These rows and then all of others."""
        return FoldedRows(
            joined([self.rows, new.rows]),
            self.terms.followed(new.terms),
            np.concatenate([self.size, new.size]),
            np.concatenate([self.priority, new.priority]),
            self.threshold,
            new.n_folded,
        )

    def forgotten(self, share: float) -> FoldedRows:
        """The rows with their weights multiplied by a number."""
        return replace(self, rows=self.rows.repeated(share))

    @property
    def factor(self) -> NDArray:
        """Factor by which each row counts for others too."""
        factor = np.maximum(1.0, self.threshold / np.maximum(self.size, _TINY))
        return factor

    @property
    def weighted(self) -> InMemory:
        """The rows with the weights of all that they stand for."""
        return replace(
            self.rows, weight=(weight_of(self.rows) * self.factor).astype(self.rows.X.dtype)
        )

    def remainder(self, model: Predictor, distribution: Distribution) -> Remainder:
        """What the rows leave out at a distribution."""
        batch = self.rows.load(slice(None))
        X, weight = batch.X, batch.weight
        now = Terms.of(model, self.rows, distribution)
        factor = self.factor
        weight = np.ones(len(factor)) if weight is None else weight
        layout = DIAGONAL if not has_matrix(model.dim) else FULL
        residual = now.residual - self.terms.residual_at(now.outputs)
        remainders = model.times_inputs(residual[None], X)
        covariance = distribution.operator.inverse()
        total = remainders.scaled(weight * factor).total()
        chance = remainders.scaled(weight * np.sqrt(factor * (factor - 1))).moment(layout)
        scaled = batch._replace(weight=weight * factor)
        after, before = (
            _information(model, terms.between, scaled, layout) for terms in (now, self.terms)
        )
        square = np.sum(covariance.matvec(total) * total)
        of_chance, _ = _traces(covariance, chance)
        _, of_change = _traces(covariance, after + before * -1.0)
        return Remainder(*np.sqrt([square, of_chance, of_change / model.dim]).tolist())


def with_folded(
    before: FoldedRows | None,
    model: Predictor,
    old: Sequence[InMemory],
    distribution: Distribution,
    budget: float,
) -> FoldedRows | None:
    """The sample after some more rows were folded at the mean of a distribution, within a budget.

    As many rows as there are parameters stay in any case: fewer could not say how much is left out,
    and these take no more than the precision matrix of the distribution.
    """
    least = min(model.dim, _FEWEST_KEPT)
    for rows in old:
        new = FoldedRows.of(model, rows, distribution, 0 if before is None else before.n_folded)
        if before is not None:
            new = before.followed(new)
        most = min(_MOST_ROWS, budget * new.rows.n_rows / n_bytes(new.rows))
        before = new.sampled(max(least, int(most)))
    return before


def _information(model: Predictor, between: NDArray, batch: Batch, layout: Layout) -> Operator:
    """Sum over rows of information whose outputs have these products, (outputs, outputs, n)."""
    if not layout.diagonal:
        return model.moment_of(between, batch)
    root = np.sqrt(np.einsum("kkn->kn", between))[None]
    return model.times_inputs(root, batch.X).moment(layout, batch.weight)


def _traces(covariance: Precision, matrix: Operator) -> tuple[float, float]:
    """Traces of the product of two symmetric matrices, and of its square."""
    if isinstance(covariance, Diag):
        diagonal = covariance.values * matrix.diagonal()
        return diagonal.sum(), diagonal @ diagonal
    product = covariance.matvec(matrix.dense())
    return np.trace(product), np.sum(product * product.T)
