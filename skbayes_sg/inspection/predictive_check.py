"""New rows from the posterior beside those that were seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skbayes_sg.inspection.drawing import COLOURS, axes_for, fitted_step, literal
from skbayes_sg.inspection.under_draws import Given, kept_draws, new_rows
from skbayes_sg.validation import require_choice, require_integer, require_level

_POINTS = 512  # of a distribution function
_BARS = 30
_LINE, _BAR = COLOURS[0], COLOURS[-1]
_MOST = 0.99  # of what is made up lies within the picture, or has a bar of its own


class PredictiveCheckDisplay:
    """Posterior predictive check: the data beside data that the model makes up for the same rows.

    Each draw of the posterior makes up a y for every row. If the model is right, the data look like
    one of these sets: where they do not, its intervals and probabilities are wrong too.

    Numbers are shown by their distribution functions, one thin line for a set. Counts are shown by
    how many rows have each, on an axis of square roots (a rootogram), and classes by their shares.
    Bars are those of the data, with the interval of the sets over each.

    Use `from_estimator`.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Numbers, counts, or numbers of classes.
    y_new : array of shape (n_sets, n_rows)
        Made-up data of the same kind.
    kind : {"numbers", "counts", "classes"}, default="numbers"
    level : float in (0, 1), default=0.95
        Of the intervals over bars.
    class_names : sequence of str, optional
        Labels of the classes.

    Attributes
    ----------
    seen : array of shape (bars,) or (points,)
        Of numbers, quantiles of the data; of counts, how many rows; of classes, their shares.
    new : array of shape (n_sets, bars) or (n_sets, points)
        The same of each made-up set.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Notes
    -----
    Source: Gelman, Meng & Stern 1996, Statistica Sinica 6. Rootograms: Kleiber & Zeileis
    2016, The American Statistician 70. The draws have seen the rows of the fit, so that with these
    the check is kind to a model that follows them closely: give it new rows then.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianLinearRegressionSGFS, PredictiveCheckDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BayesianLinearRegressionSGFS(random_state=0).fit(X, y)
    >>> display = PredictiveCheckDisplay.from_estimator(model, X, y)
    >>> bool(display.seen[0] > 0 > display.new[:, 0].max())  # normal noise does not know 0
    True
    """

    def __init__(
        self,
        y: NDArray,
        y_new: NDArray,
        *,
        kind: str = "numbers",
        level: float = 0.95,
        class_names: Sequence[str] = (),
    ) -> None:
        require_choice("kind", kind, ("numbers", "counts", "classes"))
        require_level(level)
        self.kind, self.level, self.class_names = kind, level, class_names
        self._ends = _ends(y, y_new)
        if kind == "numbers":
            n_points = min(len(y), _POINTS)
            self._grid = (np.arange(n_points) + 0.5) / n_points
            self.seen = np.quantile(y, self._grid, method="hazen")  # y itself, of few rows
            self.new = np.quantile(y_new, self._grid, axis=1, method="hazen").T
            return
        self._step = 1
        if kind == "counts":
            self._step = int(self._ends[1]) // _BARS + 1
        n_bars = len(class_names) or int(self._ends[1]) // self._step + 1
        self._more = bool(y_new.max() >= n_bars * self._step)
        total = len(y) if kind == "classes" else 1
        self.seen, *new = (self._in_bars(each, n_bars) / total for each in (y, *y_new))
        self.new = np.array(new)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        n_draws: int = 50,
        level: float = 0.95,
        ax: Any = None,
        **kwargs: Any,
    ) -> PredictiveCheckDisplay:
        """Draw the data beside sets that a fitted estimator makes up.

        Parameters
        ----------
        estimator : fitted estimator of this package, or a Pipeline that ends in one
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows of the fit, or new ones.
        y : array-like of shape (n_rows,)
        n_draws : int, default=50
            Sets, each under another draw of the posterior. All draws, if there are fewer.
        level : float in (0, 1), default=0.95
            Of the intervals over bars.
        ax : matplotlib Axes, optional
        **kwargs
            For the data: for ``Axes.plot`` of numbers, ``Axes.bar`` of counts and ``Axes.barh`` of
            classes.

        Returns
        -------
        PredictiveCheckDisplay

        Raises
        ------
        ValueError
            If the estimator has no posterior draws, or makes up counts where y holds none, as rates
            with an exposure in ``sample_weight`` are.
        ImportError
            If matplotlib is not installed.
        """
        model, before = fitted_step(cls, estimator, "give an estimator of this package", "to_arviz")
        require_integer("n_draws", n_draws, 1)
        given = Given.to(model, X if before is None else before.transform(X), y, None)
        if given.y is None:
            raise ValueError(f"{cls.__name__} needs y, the data that it shows")
        _, draws = kept_draws(model)
        flat = draws.reshape(-1, draws.shape[2])
        some = np.linspace(0, len(flat) - 1, min(n_draws, len(flat))).astype(int)
        y_new = np.concatenate(list(new_rows(model, flat[some], given)))
        if hasattr(model, "classes_"):
            seen, y_new, names = _in_order(model, given.y, y_new)
            display = cls(seen, y_new, kind="classes", level=level, class_names=names)
            return display.plot(ax=ax, **kwargs)
        kind = "counts" if getattr(model.model_, "counts", False) else "numbers"
        if kind == "counts" and (given.y != np.floor(given.y)).any():
            raise ValueError("y must hold counts; rates times exposures make up no whole numbers")
        return cls(given.y, y_new, kind=kind, level=level).plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> PredictiveCheckDisplay:
        """Draw, on new axes if none are given.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            For the data, as in `from_estimator`.

        Returns
        -------
        PredictiveCheckDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        (self.ax_,) = axes_for(self, ax, figsize=self._size())
        self.figure_ = self.ax_.figure
        {"numbers": self._lines, "counts": self._upright, "classes": self._lying}[self.kind](kwargs)
        place: dict[str, Any] = {"loc": "best", "framealpha": 0.9}
        if self.kind == "classes":  # bars leave no room
            place = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": 2}
        self.ax_.legend(fontsize="small", **place)
        return self

    def _size(self) -> tuple[float, float]:
        """Of a figure of its own, in inches, by the labels that it must hold."""
        if self.kind != "classes":
            return 5.6, 4.2
        return 5.0 + 0.08 * max(map(len, self.class_names)), 1.8 + 0.32 * len(self.class_names)

    def _in_bars(self, values: NDArray, n_bars: int) -> NDArray:
        """How many values belong to each bar; the last has all beyond."""
        codes = np.minimum(values.astype(int) // self._step, n_bars - 1)
        return np.bincount(codes, minlength=n_bars)

    def _lines(self, kwargs: dict[str, Any]) -> None:
        thin = {"color": "0.6", "linewidth": 0.6, "linestyle": "-", "marker": "", "zorder": 1}
        for k, each in enumerate(self.new):
            label = f"{len(self.new)} sets of the model" if k == 0 else None
            self.ax_.plot(each, self._grid, label=label, **thin)
        look: dict[str, Any] = {"color": _LINE, "linewidth": 2, "linestyle": "-", "marker": ""}
        self.ax_.plot(self.seen, self._grid, **(look | {"label": "data"} | kwargs))
        low, high = self._ends
        margin = 0.03 * (high - low)
        self.ax_.set(xlim=(low - margin, high + margin), ylim=(-0.02, 1.02), xlabel="y")
        self.ax_.set_ylabel("share of rows up to y")

    def _interval(self) -> tuple[NDArray, NDArray]:
        """Medians of the sets, and how far the ends of the intervals are from them."""
        tail = 0.5 * (1 - self.level)
        low, middle, high = np.quantile(self.new, [tail, 0.5, 1 - tail], axis=0)
        return middle, np.array([middle - low, high - middle])

    def _over_bars(self) -> dict[str, Any]:
        return {
            "fmt": "o", "color": "black", "markersize": 3, "elinewidth": 1.2, "capsize": 2,
            "label": f"{100 * self.level:g} % of {len(self.new)} sets",
        }  # fmt: skip

    def _upright(self, kwargs: dict[str, Any]) -> None:
        place = self._step * np.arange(len(self.seen)) + 0.5 * (self._step - 1)
        look: dict[str, Any] = {"width": 0.9 * self._step, "color": _BAR, "label": "data"}
        self.ax_.bar(place, self.seen, **(look | kwargs))
        middle, away = self._interval()
        self.ax_.errorbar(place, middle, yerr=away, **self._over_bars())
        self.ax_.set_yscale("function", functions=(_root, np.square))
        last = self._step * (len(self.seen) - 1)
        self.ax_.set_xlabel(f"count; in the last bar {last} and more" if self._more else "count")
        self.ax_.set_ylabel("rows")
        self.ax_.set_ylim(0, 1.1 * max(self.seen.max(), (middle + away[1]).max()))

    def _lying(self, kwargs: dict[str, Any]) -> None:
        place = np.arange(len(self.seen))
        look: dict[str, Any] = {"height": 0.8, "color": _BAR, "label": "data"}
        self.ax_.barh(place, self.seen, **(look | kwargs))
        middle, away = self._interval()
        self.ax_.errorbar(middle, place, xerr=away, **self._over_bars())
        self.ax_.set_yticks(place, [literal(name) for name in self.class_names])
        self.ax_.set(xlabel="share of rows", ylim=(len(place) - 0.4, -0.6), xlim=(0, None))


def _ends(y: NDArray, y_new: NDArray) -> tuple[float, float]:
    """Between which there are all data, and nearly all that is made up."""
    low, high = np.quantile(y_new, [1 - _MOST, _MOST])
    return float(min(y.min(), low)), float(max(y.max(), high))


def _root(values: NDArray) -> NDArray:
    return np.sqrt(np.maximum(values, 0.0))


def _in_order(model: Any, y: NDArray, y_new: NDArray) -> tuple[NDArray, NDArray, list[str]]:
    """Numbers of classes in the order of the model's categories, and these by name."""
    categories = getattr(model, "categories_", model.classes_)
    place = np.argsort(np.searchsorted(model.classes_, categories))
    return place[y], place[y_new], [str(one) for one in categories]
