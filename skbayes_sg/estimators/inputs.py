"""What is wrong with rows and labels that scikit-learn does not refuse, or not by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from skbayes_sg.data import InMemory
from skbayes_sg.inference.many_modes import gradient_products
from skbayes_sg.linalg.sizes import has_cheap_gradients, is_sorted_soon
from skbayes_sg.models import Model
from skbayes_sg.posterior import Posterior
from skbayes_sg.validation import checked_weights, in_dtype, shown

_DOUBLE = np.finfo(np.float64)


def require_squares(X, of_fit: bool) -> None:
    """Raise ValueError if the square of a value of X overflows in its precision.

    Or, in a fit, for a column whose numbers are too small to be multiplied: their fourth powers,
    which curvatures of squares are, underflow in double precision, or their last digits in that of
    X.
    """
    values = X.data if sparse.issparse(X) else X
    if values.size and max(values.max(), -values.min()) > np.sqrt(np.finfo(X.dtype).max):
        raise ValueError(
            "X holds values whose squares overflow; scale its columns, for example by "
            "StandardScaler"
        )
    if not of_fit:
        return
    large, small = X.max(axis=0), X.min(axis=0)
    if sparse.issparse(X):
        large, small = large.toarray().ravel(), small.toarray().ravel()
    size = np.maximum(large, -small)
    wrong = (size > 0) & (size < max(_DOUBLE.tiny**0.25, _smallest(X.dtype)))
    if wrong.any():
        raise ValueError(
            f"X holds numbers of at most {size[wrong].max():.1g} in column(s) "
            f"{', '.join(map(str, np.flatnonzero(wrong)[:5]))}, whose products underflow; multiply "
            "such columns by a constant, or leave them out"
        )


def require_spread(y: NDArray, dtype: np.dtype) -> None:
    """Raise ValueError if the squares of differences within y underflow.

    Or if 1 / y, the unit of coefficients' precisions, does in the precision of X.
    """
    spread = float(np.ptp(y))
    least = max(float(np.sqrt(_smallest(_DOUBLE.dtype))), _smallest(dtype))
    if 0 < spread < least or spread * _smallest(dtype) > 1:
        raise ValueError(
            f"y holds numbers that differ by up to {spread:.1g}, whose products underflow or "
            f"overflow with X of {dtype}; divide y by its scale"
        )


def _smallest(dtype: np.dtype) -> float:
    """The smallest number that has all its digits, and some to spare."""
    info = np.finfo(dtype)
    return float(info.tiny) / float(info.eps)


def labels_are_missing(y: Any) -> bool:
    """Whether labels of objects hold None, NaN or pandas.NA, which cannot be compared."""
    values = np.asarray(y)
    return (
        values.ndim > 0
        and values.dtype == object
        and any(
            one is None or type(one).__name__ == "NAType" or (isinstance(one, float) and one != one)
            for one in values.ravel()
        )
    )


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
        f"the weights of {n_rows} rows sum to {total:.3g}: a weight is a factor of its row's log "
        f"likelihood, so the posterior is that of {total:.3g} rows, and the prior decides; if "
        "weights are relative, give sample_weight / sample_weight.mean()"
    ]


def rows_that_count(
    X: Any, y: NDArray, weight: NDArray, streaming: bool, name: str
) -> tuple[Any, NDArray, NDArray | None]:
    """Rows of positive weight, or all of a stream; and weights in X's precision, None if all 1."""
    if not (streaming or weight.all()):
        kept = np.flatnonzero(weight)
        X, y, weight = X[kept], y[kept], weight[kept]
    return X, y, None if (weight == 1).all() else in_dtype(name, weight, X.dtype)


def merged(data: InMemory, model: Model, never: bool) -> InMemory:
    """With equal rows merged into one where the data are few.

    After merging, a weight of 2 and two copies of a row give bitwise the same draws: HMC amplifies
    rounding differences.
    """
    if model.fixed_inputs:
        few = is_sorted_soon(data.n_rows, model.dim)
    else:
        few = has_cheap_gradients(gradient_products(model, data.n_rows))
    return data if never or not few else data.merged()


def classes_of(y: NDArray) -> NDArray:
    """The labels, sorted."""
    classes = _sorted("y", y)
    check_classification_targets(y)
    if len(classes) < 2:
        raise ValueError(
            f"y holds one class only, {shown(classes[0])}; at least two classes are needed"
        )
    return classes


def require_known(y: NDArray, classes: NDArray) -> None:
    """Raise ValueError unless each label is one of the classes."""
    new = np.setdiff1d(_sorted("y", y), classes, assume_unique=True)
    if new.size:
        raise ValueError(f"y holds {shown(new)}, which is not among the classes {shown(classes)}")


def known_classes(y: NDArray, classes: NDArray | None, before: NDArray | None) -> NDArray:
    """All labels that may occur in a stream: `before` are those of the first call."""
    if classes is None and before is None:
        raise ValueError(
            "classes must be given in the first call of partial_fit: all labels that may occur"
        )
    known = before
    if classes is not None:
        given = _sorted("classes", classes)
        known = classes_of(given) if before is None else before
        if not np.array_equal(given, known):
            raise ValueError(
                f"classes={shown(classes)} are not those of the first call, {shown(known)}"
            )
    assert known is not None
    require_known(y, known)
    return known


def _sorted(name: str, labels: NDArray) -> NDArray:
    """The different labels in order, or a TypeError where strings and numbers are mixed."""
    try:
        return np.unique(labels)
    except TypeError:
        if labels_are_missing(labels):
            raise ValueError(f"{name} has missing labels; leave out the rows without one") from None
        kinds = ", ".join(sorted({type(label).__name__ for label in labels.ravel()}))
        raise TypeError(
            f"{name} holds labels of several types, {kinds}, which cannot be sorted; give them one "
            "type, for example by np.asarray(labels).astype(str)"
        ) from None


def class_weights(
    asked: dict | str | None, y: NDArray, classes: NDArray, sample_weight: ArrayLike | None
) -> tuple[NDArray, NDArray | None]:
    """sample_weight (n,), and the factor of each class (n_classes,), None where all are 1."""
    weight = checked_weights(sample_weight, len(y))
    require_some("sample_weight", weight)
    if asked is None:
        return weight, None
    codes = np.searchsorted(classes, y)
    factors = class_factors(asked, np.bincount(codes, weight, len(classes)), classes)
    require_some("class_weight", weight * factors[codes])
    return weight, factors


def class_factors(asked: dict | str, totals: NDArray, classes: NDArray) -> NDArray:
    """Factor of each class; 1 for classes that the dict does not name, or that have no rows.

    `totals` are the sums of the weights of each class, (n_classes,). With "balanced" the factor is
    sum of all / (classes * total of the class), so that an integer weight is a repetition here too,
    as in scikit-learn from 1.9 on.
    """
    if isinstance(asked, dict):
        factors = compute_class_weight(asked, classes=classes, y=classes)
        if not np.isfinite(factors).all() or factors.min() < 0:
            raise ValueError(f"class_weight must be finite and not negative, got {asked!r}")
        return factors
    present = totals > 0
    labels = classes[present]
    compute_class_weight(asked, classes=labels, y=labels)  # refuses other words
    factors = np.ones(len(classes))
    factors[present] = totals.sum() / (present.sum() * totals[present])
    return factors


def require_some(name: str, weight: NDArray) -> None:
    """Raise ValueError for weights that are all zero."""
    if not (weight > 0).any():
        raise ValueError(
            f"{name} is zero for all rows; at least two classes need a positive weight"
        )


def require_two(n_classes: int) -> None:
    """Raise ValueError for rows of one class."""
    if n_classes < 2:
        raise ValueError(
            "y holds one class only (among rows of positive weight); at least two classes are "
            "needed"
        )
