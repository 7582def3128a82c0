"""Predictive uncertainty over a slice of two features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_consistent_length

from skbayes_sg import frames
from skbayes_sg.inspection.drawing import MARKERS, axes_for, fitted_step, literal
from skbayes_sg.inspection.names import positions
from skbayes_sg.inspection.responses import rows_of, warn_of_rows, weights_of
from skbayes_sg.validation import require_choice, require_integer, require_positive

_KINDS = ("total", "epistemic", "aleatoric")
_FEW_POINTS = 300
_FACES, _EDGES = ("white", "black", "0.6"), ("black", "white", "black")


@dataclass(eq=False, repr=False)
class UncertaintyDisplay:
    """Aleatoric and epistemic uncertainty of predictions over two features, with the data.

    All other features are fixed. Aleatoric uncertainty remains with any number of rows. Epistemic
    uncertainty comes from the parameters, and grows away from the data. The total is their sum, in
    nats. Each panel has its own scale of colours.

    Use `from_estimator`.

    Parameters
    ----------
    xx0, xx1 : arrays of shape (grid_resolution, grid_resolution)
        Values of the two features.
    values : dict of str to array of that shape
        One panel each.
    feature_names : tuple of two str
    points : array of shape (n_rows, 2), optional
        The data.
    labels : array of shape (n_rows,), optional
        Up to seven different labels have markers of their own.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The first panel.
    axes_ : array of matplotlib Axes, one for each panel
    figure_ : matplotlib Figure
    surfaces_ : list of matplotlib QuadContourSet
    points_ : list of matplotlib PathCollection
        One for each panel and label.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from skbayes_sg import BayesianLogisticRegression, UncertaintyDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = BayesianLogisticRegression(n_predict_draws=200, random_state=0).fit(X, y)
    >>> columns = ["petal length (cm)", "petal width (cm)"]
    >>> display = UncertaintyDisplay.from_estimator(
    ...     model, X, features=columns, y=y, grid_resolution=20
    ... )
    >>> display.values["epistemic"].shape
    (20, 20)
    """

    xx0: NDArray
    xx1: NDArray
    values: dict[str, NDArray]
    feature_names: Sequence[str]
    _: KW_ONLY
    points: NDArray | None = None
    labels: NDArray | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        features: Sequence[str | int] = (0, 1),
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        kinds: Sequence[str] | str = _KINDS,
        grid_resolution: int = 50,
        margin: float = 0.5,
        ax: Any = None,
        **kwargs: Any,
    ) -> UncertaintyDisplay:
        """Draw the uncertainty of a fitted classifier around some rows.

        Parameters
        ----------
        estimator : fitted classifier of this package, or a Pipeline that ends in one
        X : array-like of shape (n_rows, n_features), at least two features
            The data that are drawn on top. They also determine the range of the slice and the
            values of the other features: their means over X, or their most frequent values if they
            are not numbers. Rows in which one of the two cells is missing are not drawn, with a
            warning.
        features : two names or positions of columns of X, default=(0, 1)
        y : array-like of shape (n_rows,), optional
            Labels of X, for the markers.
        sample_weight : array-like of shape (n_rows,), optional
            For the means and most frequent values of the other features; an integer weight repeats
            the row.
        kinds : one or several of "total", "epistemic", "aleatoric", default=all
        grid_resolution : int, default=50
            Points of the grid in each direction.
        margin : float, default=0.5
            How far the slice goes beyond the data, as a share of their range.
        ax : matplotlib Axes, or array of one for each of `kinds`, optional
        **kwargs
            For ``Axes.contourf``.

        Returns
        -------
        UncertaintyDisplay

        Raises
        ------
        ValueError
            If the estimator has no ``predict_uncertainty``, or a feature is unknown.
        ImportError
            If matplotlib is not installed.
        """
        remedy = "give a classifier of this package"
        model, before = fitted_step(cls, estimator, remedy, "predict_uncertainty")
        kinds = [kinds] if isinstance(kinds, str) else list(kinds)
        for kind in kinds:
            require_choice("kinds", kind, _KINDS)
        require_integer("grid_resolution", grid_resolution, 2)
        require_positive("margin", margin, "0.5 is half of the range of the data")
        X = rows_of(X)
        names = [n if isinstance(n, str) else f"x{n}" for n in frames.column_names(X)]
        pair = _pair(features, names)
        labels = None if y is None else column_or_1d(y)
        check_consistent_length(X, labels)
        missing = [frames.is_missing(X, j) for j in pair]
        counts = {names[j]: int(gaps.sum()) for j, gaps in zip(pair, missing, strict=True)}
        warn_of_rows("the picture", {name: n for name, n in counts.items() if n}, len(X))
        complete = np.flatnonzero(~np.logical_or(*missing))
        if not len(complete):
            raise ValueError(f"X: no row has cells in both {' and '.join(counts)}")
        drawn, labels = frames.take(X, complete), None if labels is None else labels[complete]
        points = np.column_stack([frames.numbers(drawn, j) for j in pair]).astype(np.float64)
        xx0, xx1 = _grid(points, grid_resolution, margin)
        held = {pair[0]: xx0.ravel(), pair[1]: xx1.ravel()}
        rows = _rows(X, held, xx0.size, weights_of(sample_weight, X))
        uncertainty = model.predict_uncertainty(rows if before is None else before.transform(rows))
        values = {kind: uncertainty[kind].reshape(xx0.shape) for kind in kinds}
        display = cls(xx0, xx1, values, [names[j] for j in pair], points=points, labels=labels)
        return display.plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> UncertaintyDisplay:
        """Draw, on new axes if none are given.

        Parameters
        ----------
        ax : matplotlib Axes, or array of one for each panel, optional
        **kwargs
            For ``Axes.contourf``.

        Returns
        -------
        UncertaintyDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        n = len(self.values)
        size = {"figsize": (0.8 + 3.6 * n, 3.6), "sharex": True, "sharey": True}
        self.axes_ = axes_for(self, ax, n, n, **size)
        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
        self.surfaces_: list[Any] = []
        self.points_: list[Any] = []
        for panel, (kind, values) in zip(self.axes_, self.values.items(), strict=True):
            style = {"levels": np.linspace(0, values.max() or 1.0, 13), "cmap": "viridis"}
            surface = panel.contourf(self.xx0, self.xx1, values, **(style | kwargs))
            self.surfaces_.append(surface)
            self.figure_.colorbar(surface, ax=panel, format="{x:.2g}", ticks=surface.levels[::3])
            self._scatter(panel)
            panel.set(title=f"{kind} uncertainty (nats)", xlabel=literal(self.feature_names[0]))
            panel.title.set_fontsize("medium")
        self.ax_.set_ylabel(literal(self.feature_names[1]))
        self._legend(own=ax is None)
        return self

    def _scatter(self, ax: Any) -> None:
        if self.points is None:
            return
        size = {"s": 22 if len(self.points) <= _FEW_POINTS else 10, "linewidth": 0.6}
        if self.labels is None or not self._told_apart:
            look = {"color": "white", "edgecolor": "black"}
            self.points_.append(ax.scatter(*self.points.T, **look, **size))
            return
        for k, label in enumerate(np.unique(self.labels)):
            of_label = self.points[self.labels == label]
            look = {"color": _FACES[k % 3], "edgecolor": _EDGES[k % 3], "marker": MARKERS[k]}
            self.points_.append(ax.scatter(*of_label.T, label=literal(label), **look, **size))

    @property
    def _told_apart(self) -> bool:
        return self.labels is not None and len(np.unique(self.labels)) <= len(MARKERS)

    def _legend(self, own: bool) -> None:
        if self.points is None or not self._told_apart:
            return
        look = {"fontsize": "small", "facecolor": "0.85"}
        if own:
            handles, names = self.ax_.get_legend_handles_labels()
            place = {"loc": "outside lower center", "ncols": len(handles)}
            self.figure_.legend(handles, names, **place, **look)
        else:
            self.ax_.legend(**look)


def _pair(features: Sequence[str | int], names: Sequence[str]) -> list[int]:
    if len(names) < 2:
        raise ValueError(f"X has {len(names)} feature; a slice needs two")
    pair = positions(features, names)
    if len(pair) != 2 or pair[0] == pair[1]:
        raise ValueError(f"features must be two different columns of X, got {features!r}")
    return pair


def _grid(points: NDArray, resolution: int, margin: float) -> Sequence[NDArray]:
    """Both coordinates of a grid around the points."""
    low, high = points.min(axis=0), points.max(axis=0)
    border = margin * np.where(high > low, high - low, 1.0)
    sides = np.linspace(low - border, high + border, resolution)
    return np.meshgrid(sides[:, 0], sides[:, 1])


def _rows(X: Any, held: dict[int, Any], n: int, weight: NDArray) -> Any:
    """Rows like those of X, at the given values, and otherwise where X is on average.

    Averages are those of the cells that are there, in rows that count.
    """
    rows = frames.take(X, np.zeros(n, dtype=int))
    for j, name in enumerate(frames.column_names(X)):
        if j in held:
            rows = frames.with_values(rows, j, np.broadcast_to(held[j], n))
            continue
        present = np.flatnonzero(~frames.is_missing(X, j) & (weight > 0))
        if not len(present):
            raise ValueError(f"X: all cells of column {name!r} are missing; leave it out")
        if frames.is_number(X, j):
            mean = np.average(frames.numbers(frames.take(X, present), j), weights=weight[present])
            rows = frames.with_values(rows, j, np.full(n, mean))
        else:
            cells = frames.values(X, j)[present]
            counts: Counter[Any] = Counter()
            for cell, share in zip(cells.tolist(), weight[present].tolist(), strict=True):
                counts[cell] += share
            most = max(counts.values())
            often = min((cell for cell, count in counts.items() if count == most), key=str)
            rows = frames.with_cell(rows, j, int(present[np.argmax(cells == often)]), X)
    return rows
