"""Coefficients with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csc_array, issparse
from sklearn.preprocessing import StandardScaler

from skbayes_sg.inspection.drawing import COLOURS, OF_COEFFICIENTS, axes_for, fitted_step, literal
from skbayes_sg.inspection.names import (
    column_labels,
    feature_names,
    logit_names,
    names_of_inputs,
    positions,
)
from skbayes_sg.inspection.summary import coefficients_of, is_turned
from skbayes_sg.validation import is_word, require_choice, require_integer, require_positive

_PANELS = 5  # side by side
_LEVELS = (0.5, 0.95)  # of the inner and the outer interval
_MOST_DECADES = 100.0  # of an axis, on which a factor of ten is a point or two wide


@dataclass(eq=False, repr=False)
class CoefficientsDisplay:
    """Posterior mean and two central intervals of each coefficient: a forest plot.

    The thick bar is the interval of 50 %, the thin one that of 95 %. A line marks no effect. More
    than two classes have a panel each. Their coefficients are drawn as differences from the mean
    over all classes, because adding a number to those of all classes changes no probability.

    Use `from_estimator`.

    Parameters
    ----------
    mean, sd : array of shape (n_logits, n_features)
    inner, outer : arrays of shape (n_logits, n_features, 2)
        Ends of the two intervals.
    feature_names : sequence of str
    class_names : sequence of str, default=()
        Titles of the panels.
    label : str, default="coefficient"
        Of the horizontal axis.
    odds_ratio : bool, default=False
        Write odds ratios, the exponentials of the coefficients, on a logarithmic axis.
    factors : sequence of str, default=()
        The factor of each feature; those of one factor are drawn together below its name.

    Attributes
    ----------
    shown_ : int array of shape (drawn features,)
        Their columns, from the top.
    ax_ : matplotlib Axes
        The first panel.
    axes_ : array of matplotlib Axes, one for each panel
    figure_ : matplotlib Figure
    points_ : list of matplotlib Line2D
        The means, panel by panel.
    bars_ : list of tuples (inner, outer) of matplotlib LineCollection

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianLinearRegression, CoefficientsDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = BayesianLinearRegression(prior_precision=1e-3, random_state=0).fit(X, y)
    >>> display = CoefficientsDisplay.from_estimator(model, max_features=3)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['bmi', 'bp', 's5']
    """

    mean: NDArray
    sd: NDArray
    inner: NDArray
    outer: NDArray
    feature_names: Sequence[str]
    class_names: Sequence[str] = ()
    _: KW_ONLY
    label: str = "coefficient"
    odds_ratio: bool = False
    factors: Sequence[str] = ()

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike | None = None,
        *,
        features: Sequence[str | int] | str | int | None = None,
        per: str | Mapping[Any, float] = "unit",
        by: Callable | Sequence[str] | None = None,
        classes: ArrayLike | None = None,
        positive: Any = None,
        max_features: int | None = 30,
        odds_ratio: bool = False,
        ax: Any = None,
        **kwargs: Any,
    ) -> CoefficientsDisplay:
        """Draw the coefficients of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator with ``coef_``, or a Pipeline that ends in one
            In a Pipeline the features are those of its last step, in their units.
        X : array-like of shape (n_rows, n_features), optional
            Rows, as the estimator or Pipeline is given them, for ``per="sd"``.
        features : str, int or list of them, optional
            Columns to draw, by name or position; the name of a factor selects all of its levels. By
            default all.
        per : {"unit", "sd"} or dict, default="unit"
            Effects per unit of a feature, or per standard deviation among the rows of X, which
            makes features of different units comparable; for a feature of two values, such as a
            level, "sd" is the step from one to the other. ``{"age": 10}`` sets the units of some
            features, by name or position; all others keep theirs.
        by : callable or sequence of str, optional
            The group of each feature, such as the factor of a level: a function of its name, or a
            label for each. Features with the same label are drawn together below it; those that are
            their own label come first. By default the levels of a factor (`factors_`) are drawn
            below its name.
        classes : array-like of labels, optional
            With more than two classes, those that have a panel. By default all.
        positive : label, optional
            With two classes, the class whose odds the coefficients describe; by default
            ``classes_[1]``.
        max_features : int or None, default=30
            Number of features to draw. They are sorted from the top by the absolute value of their
            mean over their standard deviation (the largest over the classes).
        odds_ratio : bool, default=False
            Write odds ratios, on a logarithmic axis. The points are exponentials of the means.
        ax : matplotlib Axes, or array of them for several classes, optional
        **kwargs
            For ``Axes.plot`` of the means; the bars have their colour.

        Returns
        -------
        CoefficientsDisplay

        Raises
        ------
        ValueError
            If the estimator has no coefficients or no odds, a class or a feature is unknown, X is
            needed, a unit is not positive, or odds ratios span more than a hundred decades.
        ImportError
            If matplotlib is not installed.
        """
        model, before = fitted_step(cls, estimator, OF_COEFFICIENTS, "coef_", "draws_")
        if odds_ratio and model.model_.ratio != "odds_ratio":
            raise ValueError("odds_ratio: this regression has no odds; leave it out")
        names, panels = names_of_inputs(model, before), logit_names(model)
        labels, factors = column_labels(model, before), list[str]()
        chosen = _chosen(model, panels, classes)
        sign = -1.0 if is_turned(model, positive) else 1.0
        mean, sd, inner, outer = (
            figure[chosen]
            for figure in _moments(model, sign * _units(per, X, names, model, before))
        )
        panels = [panels[k] for k in chosen] if panels else []
        label = _label(model, odds_ratio, positive) + (", per sd" if is_word(per, "sd") else "")
        if by is not None:
            factors = [str(by(name)) for name in names] if callable(by) else list(map(str, by))
            if len(factors) != len(names):
                raise ValueError(f"by must have a label for each of {len(names)} features")
        drawn = list(range(len(names))) if features is None else _drawn(features, names, labels)
        if by is None and model._design is not None:
            factors = [name for name, _ in labels]
            names = [str(level) if level != "" else name for name, level in labels]
        if isinstance(per, Mapping):
            for feature, unit in per.items():
                (column,) = positions(feature, names_of_inputs(model, before), "per")
                names[column] = f"{names[column]}, per {unit:g}"
        display = cls(
            mean[:, drawn],
            sd[:, drawn],
            inner[:, drawn],
            outer[:, drawn],
            [names[j] for j in drawn],
            panels,
            odds_ratio=odds_ratio,
            label=label,
            factors=[factors[j] for j in drawn] if factors else (),
        )
        return display.plot(max_features=max_features, ax=ax, **kwargs)

    def plot(
        self,
        *,
        max_features: int | None = 30,
        ax: Any = None,
        **kwargs: Any,
    ) -> CoefficientsDisplay:
        """Draw, on new axes if none are given.

        Parameters
        ----------
        max_features : int or None, default=30
        ax : matplotlib Axes, or array of them for several classes, optional
        **kwargs
            For ``Axes.plot`` of the means.

        Returns
        -------
        CoefficientsDisplay

        Raises
        ------
        ValueError
            If `max_features` is below 1, the number of given Axes is not that of the classes, or
            odds ratios span more than a hundred decades.
        ImportError
            If matplotlib is not installed.
        """
        self.shown_ = self._shown(max_features)
        # with the line of no effect
        decades = np.ptp(np.append(self.outer[:, self.shown_], 0.0)) / np.log(10)
        if self.odds_ratio and decades > _MOST_DECADES:
            raise ValueError(
                f"odds_ratio: the intervals span {decades:.0f} decades, on which no ratio can be "
                'read, as where the unit of a column is large; give per="sd" and X, or leave '
                "odds_ratio out"
            )
        n_panels = len(self.mean)
        n_columns = -(-n_panels // -(-n_panels // _PANELS))
        self.axes_ = axes_for(self, ax, n_panels, n_columns, **self._figure(n_panels, n_columns))
        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
        self.points_: list[Any] = []
        self.bars_: list[tuple[Any, Any]] = []
        for k, panel in enumerate(self.axes_):
            self._draw(k, panel, kwargs)
            below = k + n_columns >= n_panels
            panel.set_xlabel(self.label if below and n_panels == 1 else "")
            if ax is None:
                panel.tick_params(labelleft=k % n_columns == 0, labelbottom=below)
        if n_panels > 1:
            self.axes_[(n_panels - 1) // n_columns * n_columns].set_xlabel(self.label, loc="left")
        return self

    def _shown(self, max_features: int | None) -> NDArray:
        # a coefficient that is the same in all draws, as one of zero, comes last
        ratio = np.divide(self.mean, self.sd, out=np.zeros_like(self.mean), where=self.sd > 0)
        if max_features is not None:
            require_integer("max_features", max_features, 1, " or None")
        shown = np.argsort(-np.abs(ratio).max(axis=0), kind="stable")[:max_features]
        if not self.factors:
            return shown
        order = list(dict.fromkeys(self.factors[j] for j in shown))

        def place(j: int) -> tuple[bool, int]:
            """Those that are no part of a factor first."""
            return self.factors[j] != self.feature_names[j], order.index(self.factors[j])

        return np.array(sorted(shown, key=place))

    def _lines(self) -> tuple[NDArray, list[tuple[int, str, bool]]]:
        """Heights of the shown features, and names by height, of which some are of factors."""
        heights, names = np.arange(len(self.shown_)), []
        last = None
        for k, j in enumerate(self.shown_):
            if self.factors and self.factors[j] not in (last, self.feature_names[j]):
                last = self.factors[j]
                names.append((int(heights[k]), literal(last), True))
                heights[k:] += 1
            names.append((int(heights[k]), literal(self.feature_names[j]), False))
        return heights, names

    def _figure(self, n_panels: int, n_columns: int) -> dict[str, Any]:
        """Size of a figure of its own, in inches, by the labels that it must hold."""
        names = self._lines()[1]
        longest = max(len(name) for _, name, _ in names)
        n_rows = -(-n_panels // n_columns)
        width = 0.09 * longest + (4.5 if n_panels == 1 else 1.0 + 1.9 * n_columns)
        height = 0.6 + n_rows * (0.5 + 0.21 * len(names))
        return {"figsize": (max(width, 5.0), max(height, 2.2)), "sharex": True, "sharey": True}

    def _draw(self, k: int, ax: Any, kwargs: dict[str, Any]) -> None:
        rows, names = self._lines()
        scaled = np.exp if self.odds_ratio else np.asarray
        style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 5, "zorder": 3}
        style |= {"color": COLOURS[0], "markerfacecolor": "white", "markeredgewidth": 1.2}
        ax.axvline(1.0 if self.odds_ratio else 0.0, color="0.5", linewidth=1, zorder=1)
        (points,) = ax.plot(scaled(self.mean[k, self.shown_]), rows, **(style | kwargs))
        colour = points.get_color()
        thick, thin = (
            ax.hlines(rows, *scaled(ends[k, self.shown_].T), color=colour, linewidth=width)
            for ends, width in ((self.inner, 3.5), (self.outer, 1.2))
        )
        self.points_.append(points)
        self.bars_.append((thick, thin))
        if self.odds_ratio:
            _logarithmic(ax, np.ptp(self.outer[:, self.shown_]) / np.log(10))
        heights, labels, _ = zip(*names, strict=True)
        ax.set_yticks(heights, labels, fontsize="small")
        ax.set_ylim(len(names) - 0.4, -0.6)
        ticks = ax.yaxis.get_major_ticks(len(names))
        for tick, (_, _, is_factor) in zip(ticks, names, strict=True):
            tick.label1.set_fontweight("bold" if is_factor else "normal")
        ax.grid(axis="y", color="0.92", linewidth=0.8)
        ax.set_axisbelow(True)
        if self.class_names:
            ax.set_title(literal(self.class_names[k]), fontsize="medium")
        if k == 0 and len(self.shown_) < len(self.feature_names):
            ax.set_ylabel(f"largest {len(rows)} of {len(self.feature_names)}", fontsize="small")


def _drawn(features: Any, names: Sequence[str], labels: Sequence[tuple]) -> list[int]:
    """Columns of these names or positions, and of the levels of factors of these names."""
    columns = list[int]()
    for feature in [features] if np.ndim(features) == 0 else features:
        levels = [j for j, label in enumerate(labels) if len(label) > 1 and label[0] == feature]
        columns += levels or positions(feature, names)
    return sorted(set(columns))


def _chosen(model: Any, panels: Sequence[str], classes: ArrayLike | None) -> list[int]:
    """Rows of the coefficients of some classes."""
    if classes is None:
        return list(range(len(panels) or 1))
    if not panels:
        raise ValueError("classes: there is one row of coefficients; leave it out")
    labels = model.classes_.tolist()
    for label in np.atleast_1d(classes).tolist():
        require_choice("classes", label, labels)
    return [labels.index(label) for label in np.atleast_1d(classes).tolist()]


def _units(per: str | Mapping, X: Any, names: Sequence[str], model: Any, before: Any) -> NDArray:
    """Unit of each feature by which coefficients are multiplied."""
    units = np.ones(len(names))
    if isinstance(per, Mapping):
        for feature, unit in per.items():
            require_positive(f"the unit of {feature!r}", unit, "give a step of the column")
            units[positions(feature, names, "per")] = unit
        return units
    require_choice("per", per, ("unit", "sd"))
    if per == "unit":
        return units
    if X is None:
        raise ValueError("X: standard deviations are those among rows; give some of them")
    rows = X if before is None else before.transform(X)
    if model._design is not None:
        rows = model._validate_data(rows, reset=False)
    sd, step = np.sqrt(StandardScaler(with_mean=False).fit(rows).var_), _steps(rows)
    return np.where(np.isnan(step), sd, step)


def _steps(rows: Any) -> NDArray:
    """From one value to the other of each column that has two, and NaN of other columns."""
    if not issparse(rows):
        rows = np.asarray(rows, dtype=np.float64)
        low, high = rows.min(axis=0), rows.max(axis=0)
        has_more = ((rows != low) & (rows != high)).any(axis=0)
    else:
        rows = csc_array(rows)
        low, high = (ends.toarray().ravel() for ends in (rows.min(axis=0), rows.max(axis=0)))
        n_stored = np.diff(rows.indptr)
        column = np.repeat(np.arange(len(n_stored)), n_stored)
        is_other = (rows.data != low[column]) & (rows.data != high[column])
        has_more = np.bincount(column[is_other], minlength=len(n_stored)) > 0
        has_more |= (n_stored < rows.shape[0]) & (low < 0) & (high > 0)  # zero is a third value
    return np.where(has_more | (low == high), np.nan, high - low)


def _moments(model: Any, unit: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Means and sds (logits, features), and ends of the inner and of the outer interval."""
    draws = coefficients_of(model, model.draws_)[..., : len(feature_names(model))] * unit
    shape = draws.shape[2:]
    coefficients = model._draws.of(draws.reshape(*draws.shape[:2], -1))
    mean, sd = coefficients.moments()
    inner, outer = (
        coefficients.quantile(0.5 + 0.5 * level * np.array([-1, 1])).T.reshape(*shape, 2)
        for level in _LEVELS
    )
    return mean.reshape(shape), sd.reshape(shape), inner, outer


def _logarithmic(ax: Any, decades: float) -> None:
    """A logarithmic axis with plain numbers, as many as there is room for."""
    from matplotlib.ticker import AutoLocator, LogLocator, NullLocator

    ax.set_xscale("log")
    subs = (1, 2, 5) if decades < 1.6 else (1, 3) if decades < 3 else (1,)
    ax.xaxis.set_major_locator(AutoLocator() if decades < 0.8 else LogLocator(subs=subs))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter("{x:g}")


def _label(model: Any, odds_ratio: bool, positive: Any) -> str:
    quantity = "odds ratio" if odds_ratio else "coefficient"
    classes = list(getattr(model, "classes_", ()))
    if len(classes) == 2:
        return f"{quantity} of class {literal(classes[1] if positive is None else positive)}"
    return f"{quantity}, against the mean over classes" if len(classes) else quantity
