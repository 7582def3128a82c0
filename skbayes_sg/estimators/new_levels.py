"""Levels of a factor that the fit never saw, whose effects their group's distribution gives.

Columns of a group of `prior_groups` that stand for the levels of a factor are 1 in one column of
each row. In a row of a new level they are all 0, and a coefficient of zero would be no prediction
for it: its effect is one more draw from the distribution of the levels' effects, of the standard
deviation that each draw of the posterior has (math/priors.md#new-levels). A draw has one effect for
all rows of a new level of the factor. Slopes by level are such effects times the column of X that
they are slopes of, if there is one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtri

from skbayes_sg.data import Batch, Data
from skbayes_sg.data.minibatches import deterministic_rng
from skbayes_sg.linalg.scores import dense
from skbayes_sg.validation import warn

_FIRST_ROWS = 100  # that rule out most columns of which there might be slopes


class Levels(NamedTuple):
    """Columns of a group of which each row of the fit has one at most that is not 0."""

    columns: tuple[int, ...]
    known: bool = True
    """whether a row of a new level tells what its effect is times of"""
    slope_of: int | None = None
    """the column of X that has this number in every row, instead of 1"""


def levels_of(em: Any, data: Data) -> dict[str, Levels]:
    """Factors of which each row has a level, and slopes by level.

    Slopes are of the column of X that is their columns' sum. Without one, what slopes are is not
    known; they are told by a number in each row.
    """
    groups = {label: list(c) for label, c in (em.groups or {}).items() if len(c) > 1}

    def of_batch(batch: Batch) -> tuple[NDArray, NDArray, NDArray]:
        each = [batch.X[:, columns] for columns in groups.values()]
        counts = [X.astype(bool).sum(axis=1) for X in each]
        several = np.array([(n > 1).any() for n in counts], int)
        none = np.array([(n == 0).any() for n in counts], int)
        numbers: list[Any] = [X.data if sparse.issparse(X) else X for X in each]
        others = np.array([((x != 0) & (x != 1)).any() for x in numbers], int)
        return several, none, others

    if not groups:
        return {}
    found = {}
    kinds = zip(*data.reduce(of_batch, data.n_features), strict=True)
    for (label, columns), (several, none, others) in zip(groups.items(), kinds, strict=True):
        if several:
            continue
        slope_of = _sum_of(columns, data) if none or others else None
        known = slope_of is not None or not (none or others)
        if known or not none:
            found[label] = Levels(tuple(columns), known, slope_of)
    return found


def _sum_of(columns: list[int], data: Data) -> int | None:
    """The first other column that is the sum of these in all rows."""
    first = dense(data.sample.X[:_FIRST_ROWS])
    equal = (first == first[:, columns].sum(axis=1, keepdims=True)).all(axis=0)
    equal[columns] = False
    some = np.flatnonzero(equal)

    def differ(batch: Batch) -> tuple[NDArray]:
        total = batch.X[:, columns].sum(axis=1)[:, None]
        return ((dense(batch.X[:, some]) != total).sum(axis=0),)

    if not len(some):
        return None
    same = some[data.reduce(differ, data.n_features)[0] == 0]
    return int(same[0]) if len(same) else None


def with_new_levels(estimator: Any, X: Any, draws: NDArray, some: Any) -> tuple[Any, Any, NDArray]:
    """Model, rows and draws with a column and effects for each factor of which rows are new.

    `some` are the numbers of the draws among all.

    Raises
    ------
    ValueError
        If the estimator refuses new levels.
    """
    model, levels = estimator.model_, estimator._levels
    features = model.features(X)
    sizes, new = {}, {}  # what effects are times of, and the rows of new levels
    for label, (columns, _, slope_of) in levels.items():
        size = np.ones(X.shape[0], X.dtype)
        if slope_of is not None:
            size = dense(X[:, [slope_of]]).ravel()
        none = features[:, list(columns)].astype(bool).sum(axis=1) == 0
        sizes[label], new[label] = size, np.flatnonzero(none & (size != 0))
    slopes = [label for label in new if not levels[label].known]
    factors = [label for label in new if levels[label].known and len(new[label])]
    if not factors or estimator.new_levels == "zero":
        return model, X, draws
    if estimator.new_levels == "refuse":
        label = factors[0]
        raise ValueError(
            f"row {new[label][0]} of X has a level of {label!r} that the fit did not see; leave "
            'out such rows, or set new_levels to "sample" or "zero"'
        )
    for label in slopes:
        if any(np.isin(new[factor], new[label]).any() for factor in factors):
            warn(
                f"rows of new levels have slopes of {label!r} of zero: their columns do not tell "
                "what the slope is of, and intervals are too narrow by it; a column of X that is "
                "the sum of the group's columns would tell",
                UserWarning,
            )

    # The effects, a normal quantile for each draw in random order, so that their mean is zero.
    n_draws, n_outputs = estimator.draws_[..., 0].size, model.shapes["coef"][0]
    middles = ndtri((np.arange(n_draws) + 0.5) / n_draws)
    effects, columns = [], []
    for label in factors:
        rng = deterministic_rng(f"new level of {label}")
        normals = np.stack([rng.permutation(middles) for _ in range(n_outputs)], axis=1)
        effects.append((group_sd(estimator, label)[:, None] * normals)[some])
        column = np.zeros(X.shape[0], X.dtype)
        column[new[label]] = sizes[label][new[label]]
        columns.append(column)
    blocks = model.unpack(draws)
    coef = np.concatenate([blocks.pop("coef"), np.stack(effects, axis=-1)], axis=-1)
    rest = [block.reshape(len(draws), -1) for block in blocks.values()]
    draws = np.concatenate([coef.reshape(len(draws), -1), *rest], axis=1).astype(draws.dtype)
    model = model.on_columns(coef.shape[-1], model.fit_intercept)
    n_features, more = features.shape[1], np.stack(columns, axis=1)
    if sparse.issparse(X):
        parts = [features, sparse.csr_array(more), X[:, n_features:]]
        return model, sparse.csr_array(sparse.hstack(parts, format="csr")), draws
    return model, np.hstack([features, more, X[:, n_features:]]), draws


def group_sd(estimator: Any, label: str) -> NDArray:
    """Prior standard deviation of a coefficient of a group under each draw, (S,), as a root mean
    square over the group: of a factor in zeros and ones it is that of the levels' effects.

    It is one number for all draws where the precision is no longer drawn, as in a stream.
    """
    fit, model = estimator._fit, estimator.model_
    columns = list(estimator._levels[label].columns)
    numbers = model.unpack(np.arange(model.dim))["coef"][:, columns].ravel()
    precision = estimator.prior_precision_[numbers]
    n_draws = estimator.draws_[..., 0].size
    variance = np.full(n_draws, np.mean(1 / precision))
    if fit is not None and fit.hyper_draws is not None:
        group = list(estimator.prior_precision_blocks_).index(label)
        drawn = fit.prior_precision_draws[..., group].reshape(-1).astype(np.float64)
        variance = np.mean(1 / fit.prior.unit[numbers]) / drawn
    if "log_noise" in model.shapes:  # in units of the noise variance
        variance = variance * np.exp(estimator.draws_[..., -1].reshape(-1))
    return np.sqrt(variance)
