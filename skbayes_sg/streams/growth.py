"""A stream, or the posterior of a fit, with coefficients for columns that later rows have first.

The rows so far had a zero in such a column, and said nothing of its coefficient. So its posterior
is its prior, independent of all others, as if the column had been there from the beginning.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skbayes_sg.data import Columns, InMemory
from skbayes_sg.data.kept_rows import KeptRows
from skbayes_sg.inference.precision import Hyperprior
from skbayes_sg.linalg import Dense, Diag
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior.gaussian import Distribution
from skbayes_sg.priors import (
    ConditionedPrior,
    GaussianPrior,
    NormalInverseGammaPrior,
    NormalPrior,
)
from skbayes_sg.priors.normal import Sheared
from skbayes_sg.streams.bayesian_updating import Stream


class Growth(NamedTuple):
    """Where parameters are among those of a model with more columns."""

    n_before: int
    n_more: int
    """Columns that are new."""
    old: NDArray
    """Coordinates of the parameters that were there, (D,)."""
    new: NDArray
    """Coordinates of the others, (outputs x n_more,)."""

    @classmethod
    def of(cls, before: Predictor, after: Predictor) -> Growth:
        n_before, n_columns = before.shapes["coef"][1], after.shapes["coef"][1]
        is_new = np.zeros(after.dim, bool)
        after.unpack(is_new)["coef"][:, n_before:] = True
        return cls(n_before, n_columns - n_before, np.flatnonzero(~is_new), np.flatnonzero(is_new))

    def vector(self, values: NDArray, of_new: NDArray | float = 0.0) -> NDArray:
        """Numbers of the parameters, (..., D) or without the last ones, and of the new ones."""
        n_last = len(self.old) - values.shape[-1]  # that an operator does not have
        old = self.old[: len(self.old) - n_last]
        both = np.empty((*values.shape[:-1], values.shape[-1] + len(self.new)), values.dtype)
        both[..., old], both[..., self.new] = values, of_new
        return both

    def distribution(
        self, before: Distribution, precision: NDArray, unit: NDArray, mean: NDArray
    ) -> Distribution:
        """With independent coefficients of the new columns, (outputs x n_more,) each."""
        operator: Any = before.operator
        if isinstance(operator, Sheared):
            means = np.append(operator.centre, np.zeros(self.n_more))
            operator = Sheared(self.vector(operator.values, precision), means, operator.n_others)
        elif isinstance(operator, Diag):
            operator = Diag(self.vector(operator.values, precision))
        else:
            old = self.old[: operator.dim]
            matrix = np.diag(self.vector(np.ones(operator.dim), precision))
            matrix[np.ix_(old, old)] = operator.dense()
            operator = Dense(matrix)
        centre = None
        if before.centre is not None:
            centre = np.append(before.centre, np.zeros(self.n_more))
        if isinstance(before, NormalInverseGammaPrior):
            after: Any = NormalInverseGammaPrior(
                operator,
                before.noise,
                self.vector(before.mean[:-1], mean),
                self.vector(before.unit[:-1], unit),
                centre,
            )
            after.free_shape = before.free_shape
        else:
            after = GaussianPrior(
                operator,
                self.vector(before.mean, mean),
                self.vector(before.unit, unit),
                centre,
                before.n_others,
            )
            after.by_expected = before.by_expected
        after.precision = self.vector(before.precision, precision)
        return after

    def prior(
        self, given: NormalPrior, precision: NDArray, unit: NDArray, mean: NDArray
    ) -> NormalPrior:
        """As `distribution`, of a prior that may have what other rows said beside it."""
        if not isinstance(given, ConditionedPrior):
            return self.distribution(given, precision, unit, mean)
        both = (
            self.distribution(each, precision, unit, mean) for each in (given.whole, given.alone)
        )
        return ConditionedPrior.of(*both)

    def rows(self, given: InMemory) -> InMemory:
        """With zeros in the new columns."""
        n_rows, n_known = given.n_rows, given.n_known
        if given.n_features > self.n_before:  # they are there
            return given
        parts = [given.X[:, : self.n_before], None, given.X[:, self.n_before :]]
        if sparse.issparse(given.X):
            parts[1] = sparse.csr_array((n_rows, self.n_more), dtype=given.X.dtype)
            X: Any = sparse.csr_array(sparse.hstack(parts, format="csr"))
        else:
            parts[1] = np.zeros((n_rows, self.n_more), given.X.dtype)
            X = np.hstack(parts)
        wider = InMemory.of(X, given.y, given.weight, given.n_total, takes_sparse=True)
        return replace(wider, n_known=n_known)

    def columns(self, columns: Columns) -> Columns:
        """Columns with those that have had zeros."""
        zeros = np.zeros(self.n_more)
        several = np.stack([zeros, np.full(self.n_more, np.nan)])
        weights = np.stack([zeros, np.full(self.n_more, columns.n_rows)])
        return Columns(
            np.append(columns.unit, zeros),
            np.append(columns.mean, zeros),
            np.append(columns.variance, zeros),
            columns.n_rows,
            np.concatenate([columns.value, several], axis=1),
            np.concatenate([columns.others, weights], axis=1),
            np.append(columns.is_level, np.zeros(self.n_more, bool)),  # which chunks say
        )


def grown(stream: Stream, model: Predictor, hyperprior: Any, weak: NormalPrior) -> Stream:
    """A stream whose columns a model has more of; `weak` is the prior that a chunk asks for.

    A coefficient takes the precision that is learned for its group.
    """
    assert stream.model is not None
    growth = Growth.of(stream.model, model)
    after = stream.model.on_columns(model.shapes["coef"][1], stream.model.fit_intercept)
    new, prior = growth.new, stream.prior
    precision, unit, mean = weak.precision[new], weak.unit[new], weak.mean[new]
    if isinstance(hyperprior, Hyperprior):
        scales = hyperprior.scales_of(after, weak)
        place = np.full(after.dim, -1)
        place[scales.block] = scales.group
        before = growth.vector(prior.precision / prior.unit, np.nan)
        for group in np.unique(place[new][place[new] >= 0]):
            of_group = before[place == group]
            if np.isfinite(of_group).any():
                precision[place[new] == group] = (
                    of_group[np.isfinite(of_group)][0] * unit[place[new] == group]
                )

    made: dict[int, Any] = {}  # which are one object stay one

    def distribution(given: NormalPrior) -> Any:
        if id(given) not in made:
            made[id(given)] = growth.prior(given, precision, unit, mean)
        return made[id(given)]

    learned = stream.learned
    if learned is not None:
        sampled = learned.sampled
        if sampled is not None and isinstance(hyperprior, Hyperprior):
            sampled = sampled._replace(scales=hyperprior.scales_of(after, weak), curves=None)
        of_all = growth.vector(learned.precision, precision)
        learned = replace(learned, precision=of_all, sampled=sampled)
    drift = stream.drift
    if drift.pull.shape[1] == len(growth.old):  # of a stream of some chunks
        drift = replace(drift, pull=growth.vector(drift.pull), move=growth.vector(drift.move))
    sample, kept, rows = stream.sample, stream.kept, growth.rows
    return replace(
        stream,
        model=after,
        prior=distribution(prior),
        folded=distribution(stream.folded),
        posterior=distribution(stream.posterior),
        weak=None if stream.weak is None else distribution(stream.weak),
        kept=KeptRows(tuple(map(rows, kept.blocks)), kept.shares),
        centre=None if stream.centre is None else growth.vector(stream.centre),
        sample=None if sample is None else replace(sample, rows=rows(sample.rows)),
        columns=None if stream.columns is None else growth.columns(stream.columns),
        stand_in=None if stream.stand_in is None else rows(stream.stand_in),
        hyperprior=hyperprior if stream.hyperprior is not None else None,
        learned=learned,
        drift=drift,
    )
