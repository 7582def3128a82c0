"""Predicted probabilities beside observed frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest

from skbayes_sg.inspection.drawing import axes_for, literal, require_method
from skbayes_sg.inspection.predictions import Predictions
from skbayes_sg.validation import require_choice, require_integer, require_level

_REFERENCE = "perfectly calibrated"
_COUNTS = "counts of the reliability diagram"
_BARS = 20


class ReliabilityDisplay:
    """Reliability of class probabilities: observed frequency against predicted probability.

    Rows are binned by their predicted probability. A vertical bar is the interval of the bin's
    frequency. Where it does not cross the diagonal, the probabilities are wrong there. Below, a
    histogram has the number of rows over their predicted probability. With two classes the
    probability is that of one class. With more it is that of the predicted class, and the frequency
    is the share of rows where that class is right.

    Use `from_estimator` or `from_predictions`. To draw several models over each other, give
    ``ax=display.ax_`` to the later ones.

    Parameters
    ----------
    y_prob : array of shape (n_rows,)
        Predicted probability of the event of each row.
    event : bool array of shape (n_rows,)
        Whether it occurred.
    n_bins : int, default=10
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of about equal numbers of rows.
    level : float in (0, 1), default=0.95
        Level of the intervals (Wilson's, for a binomial share).
    name : str, optional
        Stands in the legend.
    event_name : str, optional
        What the probability is that of. By default that the predicted class is right.

    Attributes
    ----------
    prob_pred, prob_true : arrays of shape (filled bins,)
        Mean predicted probability and observed frequency.
    interval : array of shape (filled bins, 2)
    counts : int array of shape (filled bins,)
    calibration_error : float
        Mean distance of the two, weighted by the counts. It is positive by chance alone, the more
        so the fewer rows there are in a bin.
    ax_, counts_ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    errorbar_ : matplotlib ErrorbarContainer
    line_ : matplotlib Line2D
        Its line of means.
    histogram_ : matplotlib StepPatch

    Raises
    ------
    ValueError
        If there is no row.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skbayes_sg import BayesianLogisticRegressionSGFS, ReliabilityDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BayesianLogisticRegressionSGFS(prior_precision=1.0, random_state=0)
    >>> model = model.fit(scale(X)[::2], y[::2])
    >>> display = ReliabilityDisplay.from_estimator(model, scale(X)[1::2], y[1::2], n_bins=5)
    >>> bool(display.calibration_error < 0.05)
    True
    """

    def __init__(
        self,
        y_prob: NDArray,
        event: NDArray,
        *,
        n_bins: int = 10,
        strategy: str = "uniform",
        level: float = 0.95,
        name: str | None = None,
        event_name: str | None = None,
    ) -> None:
        require_integer("n_bins", n_bins, 1)
        require_choice("strategy", strategy, ("uniform", "quantile"))
        require_level(level)
        self.y_prob, self.event = y_prob, event
        self.name, self.event_name = name, event_name
        edges = np.linspace(0, 1, n_bins + 1)
        if strategy == "quantile":
            edges = np.quantile(y_prob, edges)
        bins = np.searchsorted(edges[1:-1], y_prob, side="right")
        counts = np.bincount(bins, minlength=n_bins)
        filled = counts > 0
        hits = np.bincount(bins, weights=event, minlength=n_bins)[filled].astype(int)
        self.counts = counts[filled]
        self.prob_pred = np.bincount(bins, weights=y_prob, minlength=n_bins)[filled] / self.counts
        self.prob_true = hits / self.counts
        self.interval = np.array(
            [
                binomtest(k, n).proportion_ci(level, method="wilson")
                for k, n in zip(hits.tolist(), self.counts.tolist(), strict=True)
            ]
        )
        gaps = np.abs(self.prob_pred - self.prob_true)
        self.calibration_error = float(np.average(gaps, weights=self.counts))

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, name: str | None = None, **options: Any
    ) -> ReliabilityDisplay:
        """Draw the reliability of a fitted classifier on rows it has not seen.

        Parameters
        ----------
        estimator : fitted classifier with ``predict_proba``, or a Pipeline that ends in one
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        name : str, optional
            By default the name of the estimator's class.
        **options
            As in `from_predictions`.

        Returns
        -------
        ReliabilityDisplay

        Raises
        ------
        ValueError
            If the estimator has no ``predict_proba``, or `pos_label` is unknown.
        ImportError
            If matplotlib is not installed.
        """
        require_method(cls, estimator, "predict_proba", "give a classifier")
        name = type(estimator).__name__ if name is None else name
        proba = estimator.predict_proba(X)
        return cls.from_predictions(y, proba, classes=estimator.classes_, name=name, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        pos_label: Any = None,
        n_bins: int = 10,
        strategy: str = "uniform",
        level: float = 0.95,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """Draw the reliability of given probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,)
        y_prob : array-like of shape (n_rows, n_classes) or (n_rows,)
            A vector is the probability of the second of two classes.
        classes : array-like of shape (n_classes,), optional
            The label of each column. By default the labels in `y_true`, sorted.
        pos_label : label, optional
            Whose probability is drawn. By default it is the second of two classes, and with more
            classes the predicted one.
        n_bins : int, default=10
        strategy : {"uniform", "quantile"}, default="uniform"
            Bins of equal width, or of about equal numbers of rows.
        level : float in (0, 1), default=0.95
            Level of the intervals of the bins' frequencies.
        name : str, optional
            Stands in the legend.
        ax : matplotlib Axes, optional
        **kwargs
            For ``Axes.errorbar``.

        Returns
        -------
        ReliabilityDisplay

        Raises
        ------
        ValueError
            If labels and probabilities do not fit each other, or `pos_label` is unknown.
        ImportError
            If matplotlib is not installed.
        """
        given = Predictions.of(y_true, y_prob, classes)
        if pos_label is None and len(given.classes) == 2:
            pos_label = given.classes[1]
        if pos_label is None:
            p, event, event_name = given.proba.max(axis=1), ~given.wrong, None
        else:
            require_choice("pos_label", pos_label, given.classes.tolist())
            code = int(np.flatnonzero(given.classes == pos_label)[0])
            p, event, event_name = given.proba[:, code], given.codes == code, f"class {pos_label}"
        bins: dict[str, Any] = {"n_bins": n_bins, "strategy": strategy, "level": level}
        display = cls(p, event, name=name, event_name=event_name, **bins)
        return display.plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> ReliabilityDisplay:
        """Draw, on new axes if none are given.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            For ``Axes.errorbar``.

        Returns
        -------
        ReliabilityDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        (self.ax_,) = axes_for(self, ax, figsize=(5.2, 5.8))
        self.figure_, self.counts_ax_ = self.ax_.figure, _axes_below(self.ax_)
        if _REFERENCE not in self.ax_.get_legend_handles_labels()[1]:
            reference = {"color": "0.6", "linestyle": "-", "marker": "", "linewidth": 1}
            self.ax_.plot([0, 1], [0, 1], label=_REFERENCE, zorder=1, **reference)
        named = "" if self.name is None else f"{literal(self.name)}: "
        style: dict[str, Any] = {"capsize": 2, "markersize": 5, "linewidth": 1.5, "elinewidth": 1}
        style["label"] = f"{named}calibration error {self.calibration_error:.3f}"
        away = np.abs(self.interval - self.prob_true[:, None]).T
        self.errorbar_ = self.ax_.errorbar(
            self.prob_pred, self.prob_true, yerr=away, **(style | kwargs)
        )
        self.line_ = self.errorbar_[0]
        # the same line below, so that the legend serves both
        seen = {name: getattr(self.line_, f"get_{name}")() for name in ("color", "linestyle")}
        bars, edges = np.histogram(self.y_prob, bins=_BARS, range=(0, 1))
        self.histogram_ = self.counts_ax_.stairs(bars, edges, linewidth=1.5, **seen)
        self._label()
        return self

    def _label(self) -> None:
        what, share = "the predicted class", "share where it is right"
        if self.event_name is not None:
            what = literal(self.event_name)
            share = f"share of {what}"
        self.ax_.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), ylabel=share)
        self.ax_.tick_params(labelbottom=False)
        self.ax_.legend(loc="best", fontsize="small", framealpha=0.9)
        self.counts_ax_.set(ylabel="rows")
        self.counts_ax_.set_xlabel(f"predicted probability of {what}")


def _axes_below(ax: Any) -> Any:
    """The axes of the histogram under these, made anew if there are none."""
    for child in ax.child_axes:
        if child.get_label() == _COUNTS:
            return child
    return ax.inset_axes([0, -0.27, 1, 0.24], label=_COUNTS, sharex=ax)
