"""What is wrong with rows that scikit-learn does not refuse, or not by name."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from skbayes_sg.posterior import Posterior


def require_squares(X) -> None:
    """Raise ValueError if the square of a value of X overflows in its precision."""
    values = X.data if sparse.issparse(X) else X
    if values.size and max(values.max(), -values.min()) > np.sqrt(np.finfo(X.dtype).max):
        raise ValueError(
            "X holds values whose squares overflow; scale its columns, for example by "
            "StandardScaler"
        )


def columns_without_numbers(X) -> list:
    """Names of the data frame columns that are not numbers."""
    if not hasattr(X, "columns"):
        return []
    text = []
    for position, name in enumerate(X.columns):
        column = X.iloc[:, position]
        try:
            np.asarray(column, dtype=np.float64)
            if np.asarray(column).dtype.kind in "mM":  # NumPy takes them for nanoseconds
                text.append(name)
        except (ValueError, TypeError):
            text.append(name)
    return text


def small_weights(posterior: Posterior) -> list[str]:
    """A warning of weights that sum to next to nothing, as those that were normalised do.

    That is a hundredth of the rows, or two rows where there are at least eight.
    """
    weight = posterior.data.sample.weight
    if weight is None or posterior.of_sample is not posterior:
        return []
    n_rows, total = len(weight), float(weight.sum())
    if total > max(2.0, 0.01 * n_rows) or total > 0.25 * n_rows:
        return []
    return [
        f"sample_weight (with class_weight) sums to {total:.3g} for {n_rows} rows: a weight is a "
        f"factor of its row's log likelihood, so the posterior is that of {total:.3g} rows, and "
        "the prior decides; if weights are relative, give sample_weight / sample_weight.mean()"
    ]
