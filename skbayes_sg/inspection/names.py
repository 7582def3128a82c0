"""Names of the features and logits of a fitted estimator, for tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skbayes_sg import frames
from skbayes_sg.validation import is_integer


def feature_names(estimator) -> list[str]:
    """Names of the columns that have coefficients, x0, x1, ... where X had none.

    They are those of X, and of a factor one for each level, as in ``city[Rome]``.

    Parameters
    ----------
    estimator : fitted estimator

    Returns
    -------
    list of str
        In the order of the columns of X.
    """
    check_is_fitted(estimator)
    if estimator._design is not None:
        return estimator._design.column_names
    named = getattr(estimator, "feature_names_in_", None)
    if named is None:
        return [f"x{column}" for column in range(estimator.n_features_in_)]
    return [str(name) for name in named]


def column_labels(estimator: Any, before: Pipeline | None = None) -> list[tuple[Any, ...]]:
    """`names_of_inputs` as rows of a table: of a fit with factors, pairs of a name and a level.

    The level of a column of numbers is "".
    """
    if estimator._design is not None:
        return estimator._design.column_labels
    return [(name,) for name in names_of_inputs(estimator, before)]


def logit_names(estimator) -> list[Any]:
    """Class of each row of `coef_`, of its own type; none where there is one row.

    Two classes have one logit, that of ``classes_[1]`` against ``classes_[0]``, and classes in an
    order have one, that of higher classes against lower ones.
    """
    check_is_fitted(estimator)
    is_single = estimator.model_.shapes.get("coef", (0,))[0] == 1
    return [] if is_single else np.asarray(getattr(estimator, "classes_", ())).tolist()


def names_of_inputs(model: Any, before: Pipeline | None) -> list[str]:
    """Names of the features of a model; those that the steps before it give, if it knows none."""
    knows = hasattr(model, "feature_names_in_") or model._design is not None
    if before is not None and not knows:
        try:
            return [str(name) for name in before.get_feature_names_out()]
        except AttributeError:  # a step that does not name its columns
            pass
    return feature_names(model)


def labels_by(name: str, by: Any, rows: Any) -> tuple[NDArray, NDArray]:
    """Labels, sorted, and of each row the number of its label.

    Parameters
    ----------
    name : str
        Of the parameter, for messages.
    by : array-like of shape (n_rows,), or the name of a column of the rows
    rows : data frame or array

    Raises
    ------
    ValueError
        If there is no such column, if a label is missing, or if there is not one for each row.
    """
    if isinstance(by, str):
        names = frames.column_names(rows)
        if by not in names:
            raise ValueError(f"{name}: X has no column {by!r}; give one of its names, or an array")
        by = frames.column(rows, names.index(by))
    labels, missing = frames.cells_of(by)
    if labels.shape != (rows.shape[0],):
        raise ValueError(f"{name} must have shape ({rows.shape[0]},), got {labels.shape}")
    if missing.any():
        raise ValueError(
            f"{name} is missing in row {missing.argmax()}; give such rows a label of their own, or "
            "leave them out"
        )
    return np.unique(labels, return_inverse=True)


def positions(features: Any, names: Sequence[Any], parameter: str = "features") -> list[int]:
    """Positions of one or more columns that are given by name or position.

    Raises
    ------
    ValueError
        If there is no such column; the message has some names.
    """
    columns = []
    for feature in [features] if np.ndim(features) == 0 else features:
        if feature in names:
            columns.append(list(names).index(feature))
        elif is_integer(feature) and 0 <= feature < len(names):
            columns.append(int(feature))
        else:
            examples = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
            raise ValueError(
                f"{parameter}: X has no column {feature!r}; give positions below {len(names)}, or "
                f"names such as {examples}"
            )
    return columns
