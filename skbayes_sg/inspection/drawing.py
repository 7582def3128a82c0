"""What all displays share: axes, colours, and the last step of a pipeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
"""Colours of Okabe and Ito (2008), which the colour-blind tell apart."""
STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = "os^DvPX"
"""Styles and markers tell series apart in grey too."""
OF_COEFFICIENTS = "give one of the regressions of this package"


def axes_for(display: Any, ax: Any, n_axes: int = 1, n_columns: int = 1, **figure: Any) -> NDArray:
    """The given Axes, or those of a new figure, as an array in the order of reading.

    Empty Axes get colours, styles and markers of their own, so that later series differ.

    Raises
    ------
    ValueError
        If the number of given Axes is not the one needed.
    ImportError
        If matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        name = type(display).__name__
        raise ImportError(f"{name} needs matplotlib: pip install matplotlib") from error
    if ax is None:
        n_rows = -(-n_axes // n_columns)
        # labels outside the axes are not clipped in a constrained layout
        drawn = plt.subplots(n_rows, n_columns, squeeze=False, layout="constrained", **figure)[1]
        for surplus in drawn.ravel()[n_axes:]:
            surplus.remove()
        ax = drawn.ravel()[:n_axes]
    axes = np.asarray(ax, dtype=object).ravel()
    if len(axes) != n_axes:
        raise ValueError(
            f"ax: this picture needs {n_axes} Axes, got {len(axes)}; leave ax out for a figure of "
            "its own"
        )
    for panel in axes:
        if not panel.has_data():
            panel.set_prop_cycle(color=COLOURS, linestyle=STYLES, marker=list(MARKERS))
    return axes


def literal(label: Any) -> str:
    """A label that is written as it is.

    In matplotlib legends hide what begins with an underscore, and dollars enclose a formula.
    """
    text = str(label).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def require_method(display: Callable, estimator: Any, method: str, remedy: str) -> None:
    """Raise ValueError unless the estimator has the method that a picture or table is made from."""
    if not hasattr(estimator, method):
        raise ValueError(
            f"{display.__name__} needs an estimator with {method}, which "
            f"{type(estimator).__name__} has not; {remedy}"
        )


def fitted_step(
    display: Callable, estimator: Any, remedy: str, *methods: str
) -> tuple[Any, Pipeline | None]:
    """The last step of a Pipeline and the steps before it, if any; else the estimator itself.

    It must be fitted and have what a picture or table is made from.
    """
    model, before = estimator, None
    if isinstance(estimator, Pipeline):
        model, before = estimator[-1], estimator[:-1] if len(estimator) > 1 else None
    check_is_fitted(model)
    for method in methods:
        require_method(display, model, method, remedy)
    return model, before
