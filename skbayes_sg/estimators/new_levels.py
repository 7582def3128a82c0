"""Levels of a factor that the fit never saw, whose effects their group's distribution gives.

Columns of a group of `prior_groups` that stand for the levels of a factor are 1 in one column of
each row. In a row of a new level they are all 0, and a coefficient of zero would be no prediction
for it: its effect is one more draw from the distribution of the levels' effects, of the standard
deviation that each draw of the posterior has (math/priors.md#new-levels). A draw has one effect for
all rows of a new level of the factor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtri

from skbayes_sg.data import Batch, Data
from skbayes_sg.data.minibatches import deterministic_rng
from skbayes_sg.linalg.scores import dense
from skbayes_sg.validation import warn

_SLOPES = "slopes of "


def levels_of(em: Any, data: Data) -> dict[str, tuple[int, ...]]:
    """Columns of the groups of which each row has one that is 1, and all others 0.

    Where it has one other number, they are slopes by level. These are groups of a label of their
    own here, as the row of a new level does not tell what its slope is of.
    """
    groups = {label: list(c) for label, c in (em.groups or {}).items() if len(c) > 1}

    def of_batch(batch: Batch) -> tuple[NDArray, NDArray]:
        each = [dense(batch.X[:, columns]) for columns in groups.values()]
        one = np.array([((X != 0).sum(axis=1) == 1).all() for X in each], int)
        ones = np.array([((X == 0) | (X == 1)).all() for X in each], int)
        return 1 - one, 1 - ones

    if not groups:
        return {}
    several, others = data.reduce(of_batch, data.n_features)
    found = {}
    for (label, columns), wrong, other in zip(groups.items(), several, others, strict=True):
        if not wrong:
            found[_SLOPES * bool(other) + label] = tuple(columns)
    return found


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
    new = {
        label: np.flatnonzero(features[:, list(columns)].astype(bool).sum(axis=1) == 0)
        for label, columns in levels.items()
    }
    slopes = [label for label in new if label.startswith(_SLOPES)]
    factors = [label for label in new if label not in slopes and len(new[label])]
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
                f"rows of new levels have slopes of {label.removeprefix(_SLOPES)!r} of zero: their "
                "columns do not tell what the slope is of, and intervals are too narrow by it",
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
        column[new[label]] = 1
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
    numbers = model.unpack(np.arange(model.dim))["coef"][:, list(estimator._levels[label])].ravel()
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
