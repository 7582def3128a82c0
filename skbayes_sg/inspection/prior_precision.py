"""Learned prior precisions: their way, and the loss beside that of given ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from skbayes_sg.inspection.drawing import axes_for, fitted_step, literal
from skbayes_sg.inspection.names import names_of_inputs


class PriorPrecisionDisplay:
    """Learned prior precisions, on a logarithmic scale (needs the extra ``plot``).

    `from_estimator` draws their path over the updates of one fit. `from_hyperparameter_path` draws
    the validation loss over given precisions, and the points that variational EM finds.

    Up to ten precisions have a name, in the order in which their lines end. Of more, the ten
    smallest have one, those of the largest coefficients, and the others are grey. The names stand
    beside the lines, unless the figure of a given `ax` has no layout engine to make room for them.

    Parameters
    ----------
    path : array of shape (updates, blocks)
    values : array of shape (blocks,)
        The learned precisions.
    labels : sequence of str

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Artist
        One for each block.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianLinearRegression, PriorPrecisionDisplay
    >>> model = BayesianLinearRegression(random_state=0)
    >>> display = PriorPrecisionDisplay.from_estimator(model.fit(*load_diabetes(return_X_y=True)))
    >>> display.ax_.get_ylabel()
    'prior precision'
    """

    def __init__(self, path: NDArray, values: NDArray, labels: Sequence[str]) -> None:
        self.path = path
        self.values = values
        self.labels = labels

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, **kwargs: Any) -> PriorPrecisionDisplay:
        """Draw the path of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator whose prior was learned
            Or a Pipeline that ends in one.
        ax : matplotlib Axes, optional
        **kwargs
            For ``Axes.plot``.

        Returns
        -------
        PriorPrecisionDisplay

        Raises
        ------
        ValueError
            If the prior precision of the fit was given, not learned.
        ImportError
            If matplotlib is not installed.
        """
        remedy = 'its prior precision was not learned; fit with prior_precision="learned"'
        model, before = fitted_step(cls, estimator, remedy, "prior_precision_path_")
        blocks, features = model.prior_precision_blocks_, names_of_inputs(model, before)
        labels = [_named(label, features, getattr(model, "classes_", ())) for label in blocks]
        display = cls(model.prior_precision_path_, np.array(list(blocks.values())), labels)
        return display.plot(ax=ax, **kwargs)

    @classmethod
    def from_hyperparameter_path(cls, result: Bunch, *, ax=None) -> PriorPrecisionDisplay:
        """Draw the result of `hyperparameter_path`: loss over precisions, and both learned points.

        A circle is what the estimator's own sampler learned, a cross what constant SGD learned. A
        cross within the circle means that they agree. With several blocks there is one mark for
        the precision of each, all at the height of the loss.

        Parameters
        ----------
        result : Bunch
            From `hyperparameter_path`.
        ax : matplotlib Axes, optional

        Returns
        -------
        PriorPrecisionDisplay
            ``lines_`` are the curve, the circle and the cross.

        Raises
        ------
        ImportError
            If matplotlib is not installed.

        Examples
        --------
        >>> import warnings
        >>> import matplotlib; matplotlib.use("Agg")
        >>> from sklearn.datasets import make_classification
        >>> from skbayes_sg import BayesianLogisticRegression, PriorPrecisionDisplay
        >>> from skbayes_sg import VariationalEM, hyperparameter_path
        >>> X, y = make_classification(200, 3, n_informative=3, n_redundant=0, random_state=0)
        >>> model = BayesianLogisticRegression(n_draws=20, random_state=0)
        >>> em = VariationalEM(n_updates=8)
        >>> with warnings.catch_warnings(action="ignore"):  # constant SGD is slow there
        ...     result = hyperparameter_path(model, X, y, X, y, prior_precisions=[1.0], em=em)
        >>> display = PriorPrecisionDisplay.from_hyperparameter_path(result)
        >>> [line.get_marker() for line in display.lines_]
        ['.', 'o', 'x']
        """
        display = cls(np.empty((0, 0)), np.empty(0), ())
        (display.ax_,) = axes_for(display, ax)
        display.figure_ = display.ax_.figure
        style: dict[str, Any] = {"linestyle": "-", "marker": ".", "color": "0.4"}
        display.lines_ = display.ax_.plot(result.prior_precisions, result.loss, **style)
        display.lines_[0].set_label("given precisions")
        # open marks of two shapes: neither hides the other, nor the curve
        open_mark: dict[str, Any] = {
            "linestyle": "none",
            "markersize": 10,
            "fillstyle": "none",
            "zorder": 3,
        }
        for prefix, name, look in (
            ("em_", type(result.em_sampler).__name__, {"marker": "o", "color": "C0"}),
            ("sgd_em_", "constant SGD", {"marker": "x", "color": "C1"}),
        ):
            values, loss = result[f"{prefix}precisions"], result[f"{prefix}loss"]
            if np.isnan(loss):
                label = "refused"
            else:
                label = f"{values[0]:.3g}" if len(values) == 1 else f"{len(values)} precisions"
                label += " (with warnings)" if result[f"{prefix}warnings"] else ""
            look = {**open_mark, **look, "label": f"EM in {name}: {label}"}
            display.lines_ += display.ax_.plot(values, np.full(len(values), loss), **look)
        display.ax_.set(xscale="log", xlabel="prior precision", ylabel="validation loss (nats)")
        display.ax_.legend(frameon=False)
        return display

    def plot(self, *, ax=None, **kwargs: Any) -> PriorPrecisionDisplay:
        """Draw, on new axes if none are given.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            For ``Axes.plot``.

        Returns
        -------
        PriorPrecisionDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        (self.ax_,) = axes_for(self, ax)
        self.figure_ = self.ax_.figure
        named = np.argsort(self.values, kind="stable")[:10][::-1]
        steps, lines = np.arange(1, len(self.path) + 1), {}
        faint: dict[str, Any] = {"color": "0.8", "linestyle": "-", "marker": "", "zorder": 1.5}
        label = f"{len(self.values) - len(named)} larger ones"
        for j in np.setdiff1d(np.arange(len(self.values)), named):
            style = {"linewidth": 0.8, "label": label} | faint | kwargs
            (lines[j],) = self.ax_.plot(steps, self.path[:, j], **style)
            label = "_"  # one entry of the legend for all
        for j in named:
            style = {"linewidth": 1.5, "markevery": (0.1, 0.2), "markersize": 4}
            style["label"] = f"{literal(self.labels[j])}: {self.values[j]:.3g}"
            (lines[j],) = self.ax_.plot(steps, self.path[:, j], **(style | kwargs))
        self.lines_ = [lines[j] for j in range(len(lines))]
        self.ax_.set(yscale="log", xlabel="update", ylabel="prior precision")
        # beside the lines, where the figure makes room for it
        outside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "frameon": False}
        within = {"fontsize": "small", "framealpha": 0.7}
        self.ax_.legend(**(outside if self.figure_.get_layout_engine() else within))
        return self


def _named(label: str, features: Sequence[str], classes: Sequence) -> str:
    """A block's label, with the name of its feature or class in place of its number."""
    column = re.fullmatch(r"\w+\[:, (\d+)\]", label)
    if column:
        return features[int(column[1])]
    row = re.fullmatch(r"\w+\[(\d+)\]", label)
    return str(classes[int(row[1])]) if row and len(classes) > 2 else label
