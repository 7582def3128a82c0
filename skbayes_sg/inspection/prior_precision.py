"""Pictures of fitted estimators, in the manner of scikit-learn's displays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

_MOST_NAMED = 10


class PriorPrecisionDisplay:
    """Learned prior precisions, on a logarithmic scale (needs the extra ``plot``).

    `from_estimator` draws the way to them over the updates of one fit. `from_hyperparameter_path`
    draws the validation loss over given precisions, and the points that variational EM finds.

    Parameters
    ----------
    path : array of shape (updates, blocks)
    values : array of shape (blocks,)
        The learned precisions.
    labels : sequence of str

    Attributes
    ----------
    ax_ : matplotlib Axes
    lines_ : list of matplotlib Artist
        One for each block.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianLinearRegressionSGFS, PriorPrecisionDisplay
    >>> model = BayesianLinearRegressionSGFS(prior_precision="em", random_state=0)
    >>> display = PriorPrecisionDisplay.from_estimator(model.fit(*load_diabetes(return_X_y=True)))
    >>> display.ax_.get_ylabel()
    'prior precision'
    """

    def __init__(self, path: NDArray, values: NDArray, labels: Sequence[str]) -> None:
        self.path = path
        self.values = values
        self.labels = labels

    @classmethod
    def from_estimator(cls, estimator, *, ax=None) -> PriorPrecisionDisplay:
        """Draw the path of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator with ``prior_precision="em"`` or a VariationalEM
        ax : matplotlib Axes, optional

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
        check_is_fitted(estimator)
        if not hasattr(estimator, "prior_precision_path_"):
            raise ValueError(
                "the prior precision of this estimator was not learned; fit with "
                'prior_precision="em"'
            )
        blocks = estimator.prior_precision_blocks_
        values = np.array(list(blocks.values()))
        return cls(estimator.prior_precision_path_, values, list(blocks)).plot(ax=ax)

    @classmethod
    def from_hyperparameter_path(cls, result: Bunch, *, ax=None) -> PriorPrecisionDisplay:
        """Draw what `hyperparameter_path` found: loss over precisions, and both learned points.

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
        >>> from sklearn.datasets import load_diabetes
        >>> from skbayes_sg import BayesianLinearRegressionSGFS, PriorPrecisionDisplay
        >>> from skbayes_sg import hyperparameter_path
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = BayesianLinearRegressionSGFS(random_state=0)
        >>> with warnings.catch_warnings(action="ignore"):  # constant SGD is slow there
        ...     result = hyperparameter_path(model, X, y, X, y, prior_precisions=3)
        >>> display = PriorPrecisionDisplay.from_hyperparameter_path(result)
        >>> [line.get_marker() for line in display.lines_]
        ['.', 'o', 'x']
        """
        return _OverPrecisions(result).plot(ax=ax)

    def plot(self, *, ax=None) -> PriorPrecisionDisplay:
        """Draw, on new axes if none are given.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        PriorPrecisionDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        self.ax_ = _axes(ax)
        few = len(self.labels) <= _MOST_NAMED
        self.lines_ = self.ax_.plot(np.arange(1, len(self.path) + 1), self.path, linewidth=1)
        for line, value, label in zip(self.lines_, self.values, self.labels, strict=True):
            line.set_label(f"{label}: {value:.3g}")
            if few:
                self.ax_.axhline(value, color=line.get_color(), linestyle=":", linewidth=0.8)
        self.ax_.set(yscale="log", xlabel="update", ylabel="prior precision")
        if few:
            self.ax_.legend(frameon=False)
        return self


class _OverPrecisions(PriorPrecisionDisplay):
    """Validation loss over precisions."""

    def __init__(self, result: Bunch) -> None:
        self.result = result

    def plot(self, *, ax=None) -> PriorPrecisionDisplay:
        self.ax_, result = _axes(ax), self.result
        curve = self.ax_.plot(result.prior_precisions, result.loss, ".-", color="grey")
        curve[0].set_label("given precisions")
        # open marks of two shapes: neither hides the other, nor the curve
        circle = self._points("em_", type(result.em_sampler).__name__, marker="o", color="C0")
        cross = self._points("sgd_em_", "constant SGD", marker="x", color="C1")
        self.lines_ = [*curve, *circle, *cross]
        self.ax_.set(xscale="log", xlabel="prior precision", ylabel="validation loss (nats)")
        self.ax_.legend(frameon=False)
        return self

    def _points(self, prefix: str, name: str, **style) -> list:
        values, loss = self.result[f"{prefix}precisions"], self.result[f"{prefix}loss"]
        if np.isnan(loss):
            label = "refused"
        else:
            label = f"{values[0]:.3g}" if len(values) == 1 else f"{len(values)} precisions"
            label += " (with warnings)" if self.result[f"{prefix}warnings"] else ""
        shape = {"linestyle": "none", "markersize": 10, "fillstyle": "none", "zorder": 3}
        heights = np.full(len(values), loss)
        return self.ax_.plot(values, heights, label=f"EM in {name}: {label}", **shape, **style)


def _axes(ax):
    """The given axes, or new ones."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            'PriorPrecisionDisplay needs matplotlib: pip install "skbayes_sg[plot]"'
        ) from error
    return plt.subplots()[1] if ax is None else ax
