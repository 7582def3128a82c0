"""Levels of a factor that the fit never saw, whose effects their group's distribution gives.

A row of a new level has none of the factor's columns, and a coefficient of zero would be no
prediction for it: its effect is one more draw from the distribution of the levels' effects, of the
mean and the standard deviation that each draw of the posterior has (math/priors.md#new-levels).
Each level has an effect of its own, the same in all of its rows and in every call.

Which rows are new is known of the factors of a `Design`. Columns of a group of `prior_groups` may
be the levels of a factor too, made elsewhere (`estimators.one_hot`). Their rows of zeros do not
tell one new level from another, and have one effect. Slopes by level are such effects times the
column of X that they are slopes of, if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtri

from skbayes_sg.data.factors import MISSING, Factor, NewLevels, level_name
from skbayes_sg.data.minibatches import deterministic_rng
from skbayes_sg.linalg.scores import dense
from skbayes_sg.linalg.sizes import has_many_columns
from skbayes_sg.validation import warn

UNNAMED = ""
"""The label of levels that columns of zeros do not tell apart."""
_SHOWN = 5  # levels that a message names


class Levels(NamedTuple):
    """A factor as predictions see it: what tells a new level, and what its effect is drawn from."""

    factor: Factor
    group: str | None
    """Of the precisions; None where the levels are not shrunken."""
    present: tuple[bool, ...]
    """Whether each level has rows. One that has none is new too, though it has a column."""
    off: tuple[float, ...]
    on: tuple[float, ...]
    """Of the column of each level: its value in rows of other levels, and in those of its own."""
    known: bool = True
    """whether a row of a new level tells what its effect is times of"""
    slope_of: int | None = None
    """the column of X that has this number in every row, instead of 1"""
    given: tuple[NDArray, float] | None = None
    """Means (outputs,) and standard deviation of effects, where another fit has learned them."""
    error: float = 0.0
    """Relative error of that standard deviation."""

    @classmethod
    def of(cls, factor: Factor, group: str | None, present: list[bool]) -> Levels:
        """Of columns of zeros and ones."""
        zeros, ones = (0.0,) * len(present), (1.0,) * len(present)
        return cls(factor, group, tuple(present), zeros, ones)

    @property
    def seen(self) -> Factor:
        """The levels that have rows."""
        return self.factor.some([k for k, has_rows in enumerate(self.present) if has_rows])

    @property
    def step(self) -> NDArray:
        """By how much the columns of levels with rows differ between rows, (levels,)."""
        return (np.array(self.on) - np.array(self.off))[np.array(self.present)]

    def new_rows(self, features: Any, of_frame: NewLevels | None = None) -> NewLevels:
        """Rows of levels that have no rows in the fit.

        Those that have a column are told by it. Those that have none are `of_frame`, or, where
        columns are all that is known, rows that have none of them.
        """
        low, high = np.array(self.off), np.array(self.on)
        empty = np.flatnonzero(~np.array(self.present))
        rows, labels = np.empty(0, np.intp), list[Any]()
        if of_frame is not None:
            rows, labels = of_frame.rows, list(of_frame.labels)
        else:
            columns, present = list(self.factor.columns), np.array(self.present)
            if sparse.issparse(features):
                is_on = features[:, columns].astype(bool)[:, np.flatnonzero(present)]
            else:
                X = dense(features[:, columns])
                is_on = ((X - low > high - X) if self.is_indicator else X != 0)[:, present]
            (rows,) = np.nonzero(np.asarray(is_on.sum(axis=1)).ravel() == 0)
            labels = [UNNAMED] * len(rows)
        for k in empty:
            column = dense(features[:, [self.factor.columns[k]]]).ravel()
            (those,) = np.nonzero(column != low[k])
            kept = np.flatnonzero(~np.isin(rows, those))
            labels = [labels[at] for at in kept] + [self.factor.levels[k]] * len(those)
            rows = np.append(rows[kept], those)
        return NewLevels(rows, labels)

    @property
    def is_indicator(self) -> bool:
        """Whether a column has one of two values, and not a number."""
        return self.known and self.slope_of is None


class _New(NamedTuple):
    """Rows of one level that is new."""

    name: str
    """Of the factor."""
    label: Any
    rows: NDArray
    size: NDArray
    """What the effect is times of in each, (n,)."""


def new_levels_of(estimator: Any, X: Any, of_frame: Mapping[str, NewLevels]) -> list[_New]:
    """The levels that rows have and the fit did not see.

    `of_frame` are rows of a data frame whose levels have no columns, by factor.

    Raises
    ------
    ValueError
        If the estimator refuses new levels, or if the factor is not shrunken.
    """
    features, found = estimator.model_.features(X), list[_New]()
    for name, levels in estimator._levels.items():
        new = list(_by_level(levels, X, levels.new_rows(features, of_frame.get(name))))
        if new and levels.group is None and levels.given is None:
            raise ValueError(
                f"{_said_of(new)}, and nothing is known of its effect, because the factor is "
                '"flat" in prior_groups; leave out such rows, or let its levels be shrunken'
            )
        if new and levels.known and estimator.new_levels == "refuse":
            raise ValueError(
                f'{_said_of(new)}; leave out such rows, or set new_levels to "sample" or "zero"'
            )
        found += new
    return found if estimator.new_levels == "sample" else []


def _by_level(levels: Levels, X: Any, new: NewLevels) -> Iterator[_New]:
    """Rows of each level."""
    rows, labels = new.rows, np.empty(len(new.rows), object)
    labels[:] = new.labels
    size = np.ones(len(rows), X.dtype)
    if levels.slope_of is not None:
        size = dense(X[rows][:, [levels.slope_of]]).ravel()
    kept = np.flatnonzero(size)
    rows, labels, size = rows[kept], labels[kept], size[kept]
    number = {label: n for n, label in enumerate(dict.fromkeys(labels))}
    member = np.fromiter((number[label] for label in labels), np.intp, len(labels))
    order = np.argsort(member, kind="stable")
    counts = np.bincount(member, minlength=len(number))
    for label, count, end in zip(number, counts, np.cumsum(counts), strict=True):
        those = order[end - count : end]
        yield _New(levels.factor.name, label, rows[those], size[those])


def with_new_levels(
    estimator: Any, X: Any, draws: NDArray, some: Any, found: list[_New]
) -> tuple[Any, Any, NDArray]:
    """Model, rows and draws with a column and effects for each new level that rows have.

    `some` are the numbers of the draws among all.
    """
    model, levels = estimator.model_, estimator._levels
    slopes = [new for new in found if not levels[new.name].known]
    found = [new for new in found if levels[new.name].known]
    if not found:
        return model, X, draws
    for name in dict.fromkeys(new.name for new in slopes):
        rows = np.concatenate([new.rows for new in slopes if new.name == name])
        if any(np.isin(new.rows, rows).any() for new in found):
            warn(
                f"rows of new levels have slopes of {name!r} of zero: their columns do not tell "
                "what the slope is of, and intervals are too narrow by it; a column of X that is "
                "the sum of the group's columns would tell",
                UserWarning,
            )

    # The effects, a normal quantile for each draw in random order, so that their mean is zero.
    n_draws, n_outputs = estimator.draws_[..., 0].size, model.shapes["coef"][0]
    middles = ndtri((np.arange(n_draws) + 0.5) / n_draws)
    distributions = {name: effects_of(estimator, name) for name in {new.name for new in found}}
    effects = np.empty((len(np.empty(n_draws)[some]), n_outputs, len(found)))
    for k, new in enumerate(found):
        rng = deterministic_rng(f"new level {_key(new.label)} of {new.name}")
        normals = np.stack([rng.permutation(middles) for _ in range(n_outputs)], axis=1)
        mean, sd = distributions[new.name]
        effects[..., k] = (mean + sd[:, None] * normals)[some]
    blocks = model.unpack(draws)
    coef = np.concatenate([blocks.pop("coef"), effects], axis=-1)
    rest = [block.reshape(len(draws), -1) for block in blocks.values()]
    draws = np.concatenate([coef.reshape(len(draws), -1), *rest], axis=1).astype(draws.dtype)
    n_features = model.shapes["coef"][1]
    model = model.on_columns(coef.shape[-1], model.fit_intercept)

    column = np.repeat(np.arange(len(found)), [len(new.rows) for new in found])
    rows = np.concatenate([new.rows for new in found])
    size = np.concatenate([new.size for new in found])
    more = sparse.csr_array((size, (rows, column)), shape=(X.shape[0], len(found)), dtype=X.dtype)
    if sparse.issparse(X) or has_many_columns(len(found)):
        X = sparse.csr_array(X)
        parts = [X[:, :n_features], more, X[:, n_features:]]
        return model, sparse.csr_array(sparse.hstack(parts, format="csr")), draws
    return model, np.hstack([X[:, :n_features], more.toarray(), X[:, n_features:]]), draws


def _said_of(new: list[_New]) -> str:
    """That rows have new levels of a factor, and which."""
    row = min(int(each.rows[0]) for each in new)
    labels = [repr(level_name(each.label)) for each in new if each.label is not UNNAMED]
    which = f": {', '.join(labels[:_SHOWN])}" if labels else ""
    more = f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else ""
    return f"row {row} of X has a level of {new[0].name!r} that the fit did not see{which}{more}"


def _key(label: Any) -> str:
    """The same for equal labels: numbers may come as integers or not."""
    if label is MISSING or isinstance(label, str):
        return repr(label)
    return repr(float(label)) if isinstance(label, bool | int | float) else str(label)


def effects_of(estimator: Any, name: str) -> tuple[NDArray, NDArray]:
    """Prior means (outputs,) and standard deviations (S,), under each draw, of a level's effect.

    They are those of its column, times the difference that the column makes between rows: in the
    mean, and in the root mean square, over the levels with rows. The latter is one number for all
    draws where the precision is given.
    """
    fit, model, levels = estimator._fit, estimator.model_, estimator._levels[name]
    n_draws = estimator.draws_[..., 0].size
    if levels.given is not None:
        mean, sd = levels.given
        return mean, np.full(n_draws, sd)
    numbers = model.unpack(np.arange(model.dim))["coef"][:, list(levels.seen.columns)]
    step = levels.step
    mean = (fit.prior.mean[numbers] * step).mean(axis=1)
    squares = np.broadcast_to(step**2, numbers.shape).ravel()
    numbers = numbers.ravel()
    variance = np.full(n_draws, np.mean(squares / estimator.prior_precision_[numbers]))
    if hasattr(estimator, "prior_precision_draws_"):
        scales = fit.scales
        group = np.full(model.dim, -1)
        group[scales.block] = scales.group
        of_level = group[numbers]
        if (of_level >= 0).all():
            drawn = estimator.prior_precision_draws_.reshape(n_draws, -1)
            each = squares / fit.prior.unit[numbers]
            if (of_level == of_level[0]).all():
                variance = np.mean(each) / drawn[:, of_level[0]].astype(np.float64)
            else:  # a scale for each column: that of a level at random
                pick = deterministic_rng(f"scales of {name}").integers(len(numbers), size=n_draws)
                own = drawn[np.arange(n_draws), of_level[pick]].astype(np.float64)
                variance = each[pick] / own
    if "log_noise" in model.shapes:  # in units of the noise variance
        variance = variance * np.exp(estimator.draws_[..., -1].reshape(-1))
    return mean, np.sqrt(variance)


def with_effects(estimator: Any) -> dict[str, Levels]:
    """The factors of an estimator, with the distribution of effects in the mean over the draws."""
    found = {}
    for name, levels in estimator._levels.items():
        found[name] = levels
        if levels.given is None and levels.group is not None and levels.seen.levels:
            mean, sd = effects_of(estimator, name)
            square = estimator._draws.flat_weights @ sd**2
            log_sd = estimator._draws.of(np.log(sd).reshape(estimator.draws_.shape[:2]))
            least = 0.0 if estimator._fit.learned is None else 0.5**0.5  # of effects that are known
            least /= np.sqrt(len(levels.seen.levels))
            error = float(max(log_sd.moments()[1], least))
            found[name] = levels._replace(given=(mean, float(np.sqrt(square))), error=error)
    return found
