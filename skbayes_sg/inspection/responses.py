"""Expected responses of rows under each draw, of an estimator or of a Pipeline that ends in one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from skbayes_sg.inspection.drawing import last_step
from skbayes_sg.inspection.table import table
from skbayes_sg.linalg.memory import elements_at_a_time


def rows_of(X: ArrayLike) -> Any:
    """A data frame as it is, and anything else as an array of numbers."""
    if hasattr(X, "columns") and hasattr(X, "assign"):
        return X
    return check_array(X, dtype=np.float64, ensure_all_finite="allow-nan", input_name="X")


def under_draws(model: Any, X: Any) -> Iterator[tuple[NDArray, NDArray]]:
    """Blocks of rows, and their expected responses, (chains, draws, outputs, rows)."""
    estimator, before = last_step(model)
    check_is_fitted(estimator, "draws_")
    draws = estimator.draws_
    flat = draws.reshape(-1, draws.shape[-1]).astype(np.float64, copy=False)
    n_blocks = 1 + len(X) * len(flat) * estimator.model_.widest // elements_at_a_time()
    for rows in np.array_split(np.arange(len(X)), min(len(X), n_blocks)):
        some = _safe_indexing(X, rows)
        some = some if before is None else before.transform(some)
        some = validate_data(estimator, some, reset=False, dtype=np.float64)
        each = estimator.model_.predict(flat, some)
        yield rows, each.reshape(*draws.shape[:2], *each.shape[1:])


def table_of_outputs(estimator: Any, axis: str, labels: list[str], columns: dict[str, NDArray]):
    """A table with a row for each label, and each class or response where there are several."""
    n_outputs = len(columns["mean"]) // len(labels)
    if n_outputs == 1:
        return table(labels, [axis], columns)
    outputs, of_output = getattr(estimator, "classes_", None), "class"
    if outputs is None:
        outputs, of_output = range(n_outputs), "response"
    pairs = [(label, str(one)) for label in labels for one in outputs]
    return table(pairs, [axis, of_output], columns)
