"""Labels of classifiers: which there are, and whether they are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from skbayes_sg.checks import shown


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
    labels = _sorted("y", y)
    if not np.isin(labels, classes).all():
        new = labels[~np.isin(labels, classes)]
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
        kinds = ", ".join(sorted({type(label).__name__ for label in labels.ravel()}))
        raise TypeError(
            f"{name} holds labels of several types, {kinds}, which cannot be sorted; give them one "
            "type, for example by np.asarray(labels).astype(str)"
        ) from None
