"""What a row stands for beside X and y: how often it counts, and what is known of its response.

A known part of the linear predictor, an offset, is one more column of X whose coefficient is 1. So
are the logarithms by which a mean of several observations differs from a single one: of the sum's
mean, and of the dispersion. The trials of which y succeeded are a column behind the offset. All of
them go with the rows wherever these go, in minibatches, pools, passes over blocks on disk and
predictions, and a model adds them to its outputs (`Model.plus_known`).
"""

from __future__ import annotations

from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from skbayes_sg.data.blockwise import in_partitions
from skbayes_sg.validation import real_array, require_bounded


class RowMetadata(NamedTuple):
    """What `fit` is given beside X and y, as scikit-learn calls it."""

    sample_weight: ArrayLike | None = None
    """How often each row counts"""
    offset: ArrayLike | None = None
    """Known part of the linear predictor"""
    var_weights: ArrayLike | None = None
    """Number of observations that each y is the mean of"""
    trials: ArrayLike | None = None
    """Number of trials that each y is the successes of"""

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of those that are a part of each row's likelihood."""
        return tuple(name for name in self._fields[1:] if getattr(self, name) is not None)

    def known(self, X: Any) -> Any:
        """Offsets, and behind them trials where there are any, of rows X; None without both."""
        return self.offset if self.trials is None else with_trials(self.offset, self.trials, X)


def metadata_of_fit(estimator: Any, metadata: RowMetadata) -> RowMetadata:
    """What is said again of the rows of a fit, as far as the estimator takes it.

    Raises
    ------
    ValueError
        If there are `var_weights` or `trials` and the estimator has none, or if the fit had an
        offset, `var_weights` or trials and there are none.
    """
    _, offset, var_weights, trials = metadata
    taken = signature(estimator.fit).parameters
    if (trials is None) == ("trials" in taken):
        name = type(estimator).__name__
        if trials is None:
            raise ValueError(
                f"trials of the fit are a part of {name}'s likelihood; give them again"
            )
        raise ValueError(f"trials: {name} takes none; they are of BayesianBinomialRegressor")
    if offset is None and "offset" in estimator._metadata_of_fit:
        raise ValueError(
            f"{type(estimator).__name__} was fitted with an offset or exposure, which is a part of "
            "the likelihood of its rows; give it again as offset, of an exposure its logarithm"
        )
    if var_weights is None and "var_weights" in estimator._metadata_of_fit:
        raise ValueError(
            f"{type(estimator).__name__} was fitted with var_weights, which are a part of the "
            "likelihood of its rows; give them again"
        )
    if var_weights is not None and "var_weights" not in taken:
        name = type(estimator).__name__
        raise ValueError(
            f"var_weights are of means: labels have none, and {name} takes none; leave them out"
        )
    return metadata


def offset_of(offset: Any, exposure: Any, log_link: bool, X: Any = None) -> Any:
    """The offset, or the logarithm of an exposure, of rows X where these are known by now.

    Raises
    ------
    ValueError
        If both are given, if the exposure is not positive or not one number or one for each row, or
        if the link is no logarithm.
    """
    if exposure is None:
        return offset
    if offset is not None:
        raise ValueError(
            "offset and exposure say the same, as offset = log(exposure); give one of them"
        )
    if not log_link:
        raise ValueError(
            "exposure multiplies a mean that is an exponential, and this model's is none; give "
            "offset, which is added to the linear predictor"
        )
    if in_partitions(exposure):
        return np.log(exposure)
    values = real_array("exposure", exposure)
    shape = values.shape if X is None or in_partitions(X) else np.shape(X)[:1]
    if values.ndim and values.shape != shape:
        raise ValueError(f"exposure must have shape {shape}, one for each row, got {values.shape}")
    if not ((values > 0) & (values < np.inf)).all():
        raise ValueError("exposure must be positive and finite; leave out rows without exposure")
    return np.log(values)


def known_columns(offset: ArrayLike, n_rows: int, n_offsets: int, n_given: int = 0) -> NDArray:
    """The offsets of rows as columns, (n_rows, n_offsets); one number stands for all rows.

    Numbers that are given of each row may follow them (`with_trials`).

    Raises
    ------
    ValueError
        If the shape is another, or a number is not finite.
    """
    values = real_array("offset", offset)
    if n_given and values.shape == (n_rows, n_offsets + n_given):
        return values
    shape = (n_rows,) if n_offsets == 1 else (n_rows, n_offsets)
    if values.ndim and values.shape != shape:
        of_classes = "" if n_offsets == 1 else ", one for each class or response"
        raise ValueError(f"offset must have shape {shape}{of_classes}, got {values.shape}")
    require_bounded("offset", values)
    return np.broadcast_to(values, shape).reshape(n_rows, n_offsets)


def with_trials(offset: Any, trials: Any, X: Any) -> NDArray:
    """Offsets, zero without any, and trials of rows X as two columns, (n_rows, 2).

    Raises
    ------
    ValueError
        If the shape is another, or trials are no positive whole numbers.
    """
    values, shape = real_array("trials", trials), np.shape(X)[:1]
    if values.ndim and values.shape != shape:
        raise ValueError(f"trials must have shape {shape}, one for each row, got {values.shape}")
    require_trials(values)
    offsets = known_columns(0.0 if offset is None else offset, shape[0], 1)
    return np.column_stack([offsets, np.broadcast_to(values, shape)])


def require_trials(values: NDArray, dtype: np.dtype | None = None) -> None:
    """Raise ValueError for numbers that are no positive whole ones, or not in a precision of X."""
    if not ((values >= 1) & (values < np.inf) & (values == np.rint(values))).all():
        raise ValueError(
            "trials must be whole numbers from 1 on; leave out rows without trials, which say "
            "nothing of the share of successes"
        )
    if dtype is not None and (values.astype(dtype) != values).any():
        raise ValueError(f"trials are too many for the digits of {dtype}; give X in float64")


def counts_of_means(var_weights: ArrayLike, n_rows: int) -> NDArray:
    """`var_weights` as positive numbers, (n_rows,)."""
    values = real_array("var_weights", var_weights)
    if values.shape != (n_rows,):
        raise ValueError(
            f"var_weights must have shape ({n_rows},), the number of observations of which each y "
            f"is the mean, got {values.shape}"
        )
    if not ((values > 0) & (values < np.inf)).all():
        raise ValueError(
            "var_weights must be positive and finite; leave out rows of no observation"
        )
    return values


def with_known(X: Any, known: NDArray) -> Any:
    """X with known parts of the outputs as its last columns, in its precision."""
    known = known.astype(X.dtype)
    if not sparse.issparse(X):
        return np.hstack([X, known])
    return sparse.csr_array(sparse.hstack([X, sparse.csr_array(known)], format="csr"))
