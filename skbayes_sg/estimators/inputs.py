"""What is wrong with rows that scikit-learn does not refuse, or not by name."""

from __future__ import annotations

import numpy as np
from scipy import sparse


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
        try:
            np.asarray(X.iloc[:, position], dtype=np.float64)
        except (ValueError, TypeError):
            text.append(name)
    return text
