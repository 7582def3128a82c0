"""What is a factor of a fit: columns of categories, and columns that are the levels of one."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from skbayes_sg.data import Batch, Data
from skbayes_sg.data.factors import NONE
from skbayes_sg.estimators.coefficient_prior import own_factors
from skbayes_sg.estimators.new_levels import Levels
from skbayes_sg.estimators.one_hot import columns_of_groups, levels_of, tallies_of, warnings_of
from skbayes_sg.inspection.names import feature_names
from skbayes_sg.validation import is_word, warn


def factors_of(estimator: Any, data: Data, streaming: bool = False) -> dict[str, Any]:
    """Attributes that tell what is a factor; `streaming`: of these rows and those before.

    Warns of groups of `prior_groups` that may be factors and are taken for none.

    Raises
    ------
    ValueError
        If new levels of such a group shall be refused, or if a prefix holds several factors.
    """
    em, design, found = estimator._em(), estimator._design, dict[str, Levels]()
    known = getattr(estimator.prior, "levels", {})  # of another fit
    if em is not None:  # their standard deviations are sampled again
        known = {name: each._replace(given=None, error=0.0) for name, each in known.items()}
    groups = columns_of_groups(estimator, em)
    tallies = tallies_of(groups, data)
    before = estimator._tallies if streaming else {}
    for label in tallies.keys() & before.keys():
        tallies[label] = before[label].and_of(tallies[label])
    if design is not None:
        counts = _rows_of_columns(data)
        if streaming and estimator._rows_of_columns is not None:
            so_far = estimator._rows_of_columns
            counts[: len(so_far)] += so_far
        slope_of = {
            factor.name: design.numbers[number] for (number, _), factor in design.slopes.items()
        }
        for factor in design.all_factors:
            present = [at == NONE or counts[at] > 0 for at in factor.columns]
            if (earlier := known.get(factor.name)) is not None:
                present[: len(earlier.present)] = np.logical_or(
                    earlier.present, present[: len(earlier.present)]
                ).tolist()
            levels = Levels.of(factor, _group_of(em, factor.columns), present)
            if earlier is not None:
                group = earlier.group if em is None else levels.group
                levels = levels._replace(group=group, given=earlier.given, error=earlier.error)
            found[factor.name] = levels._replace(slope_of=slope_of.get(factor.name))
    of_groups, why = dict[str, Levels](), dict[str, str]()
    if tallies:
        by_prefix = is_word(estimator.prior_groups, "prefix")
        of_groups, why = levels_of(tallies, groups, feature_names(estimator), by_prefix)
    news = {label: each for label, each in why.items() if label not in estimator._no_factors}
    warn(warnings_of(tallies, news if streaming else why, estimator.new_levels), UserWarning)
    facts = {"_levels": {**known, **found, **of_groups}, "_tallies": tallies, "_no_factors": why}
    of_rows = {"_rows_of_columns": None if design is None else counts}
    return facts | of_rows | {"_own_factors": own_factors(estimator)}


def _rows_of_columns(data: Data) -> np.ndarray:
    """Rows in which each column is not 0, (features,)."""

    def counted(batch: Batch) -> tuple[np.ndarray]:
        X: Any = batch.X[:, : data.n_features]
        if sparse.issparse(X):
            return (np.bincount(X.indices, X.data != 0, X.shape[1]),)
        return (np.count_nonzero(X, axis=0).astype(float),)

    return data.reduce(counted, data.n_features)[0]


def _group_of(em: Any, columns: tuple[int, ...]) -> str | None:
    """The group of a factor's columns; None if they are in none, and nothing shrinks them."""
    groups = getattr(em, "groups", None)
    if groups is None:
        return "coef"
    of_column = {column: label for label, each in groups.items() for column in each}
    return of_column.get(columns[-1])
