"""Labels beside the class probabilities that were predicted for them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_consistent_length

_ROUNDING = 1e-3  # of sums of probabilities in single precision


class Predictions(NamedTuple):
    """Codes of the true labels (n,), probabilities (n, K), and the K classes."""

    codes: NDArray
    proba: NDArray
    classes: NDArray

    @classmethod
    def of(cls, y_true: ArrayLike, y_prob: ArrayLike, classes: ArrayLike | None) -> Predictions:
        """Check labels and probabilities; a vector is the probability of the second class.

        Raises
        ------
        ValueError
            If they do not fit each other; the message says what to give.
        """
        y_true = column_or_1d(y_true)
        proba = check_array(y_prob, ensure_2d=False, dtype=np.float64, input_name="y_prob")
        check_consistent_length(y_true, proba)
        proba = np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba
        sums = proba.sum(axis=1)
        if proba.min() < 0 or proba.max() > 1 or np.abs(sums - 1).max() > _ROUNDING:
            raise ValueError(
                "y_prob must hold probabilities: numbers from 0 to 1, and rows that sum to 1"
            )
        known = np.unique(y_true if classes is None else np.asarray(classes))
        if classes is not None and not np.array_equal(known, classes):
            raise ValueError("classes must be sorted and differ, as in classes_ of a classifier")
        if len(known) != proba.shape[1]:
            raise ValueError(
                f"y_prob has {proba.shape[1]} columns for {len(known)} classes; give classes, the "
                "label of each column"
            )
        if not np.isin(y_true, known).all():
            raise ValueError(f"y_true holds labels that are not among the classes {known!r}")
        return cls(np.searchsorted(known, y_true), proba, known)

    @property
    def wrong(self) -> NDArray:
        """Whether the likeliest class is not the true one, (n,)."""
        return self.proba.argmax(axis=1) != self.codes
