"""What a feature does to predictions: averages over rows under each draw, with intervals.

A coefficient is an effect on logits, of one unit of a column behind all transformers. These are
effects on probabilities, or on the response of a regression, in the columns and units that a
Pipeline is given. Source: math/monte_carlo.md#average-effects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skbayes_sg import frames
from skbayes_sg.data.row_metadata import offset_of
from skbayes_sg.inspection.comparisons import comparisons
from skbayes_sg.inspection.drawing import fitted_step
from skbayes_sg.inspection.names import labels_by
from skbayes_sg.inspection.products import products
from skbayes_sg.inspection.responses import (
    REMEDY,
    draws_enough,
    rows_of,
    sums_under_draws,
    table_of_outputs,
    warn_of_rows,
    weights_of,
)
from skbayes_sg.inspection.summary import figures_of
from skbayes_sg.validation import require_choice, warn

_SCALES = ("difference", "ratio", "odds_ratio")


def average_effects(
    model: Any,
    X: ArrayLike,
    features: Sequence | str | int | None = None,
    *,
    kind: str = "auto",
    scale: str = "difference",
    reference: Mapping | None = None,
    by: ArrayLike | str | None = None,
    positive: Any = None,
    level: float = 0.95,
    rope: Any = None,
    full: bool = False,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    n_draws: int | str | None = "auto",
):
    """Average effect of each feature on predictions, with posterior intervals.

    Predictions are the probability of ``classes_[1]``, or of each of more than two classes, or the
    expected response of a regression, in binomial regression the share of successes. Under each
    draw of the posterior predictions are averaged over the rows of X and compared; the table
    summarises the posterior of the comparison.

    Parameters
    ----------
    model : fitted estimator or Pipeline
        The steps of a Pipeline before the estimator transform the changed rows.
    X : array-like of shape (n_rows, n_features)
        Rows over which effects are averaged, as the model is given them.
    features : str, int or list of them, optional
        Columns of X by name or number. By default all; for derivatives, the columns of numbers of a
        data frame.
    kind : {"auto", "derivative", "difference"}, default="auto"
        "derivative": change of the prediction per unit of the column, at its values in X.
        "difference": for a column of two values, the prediction at the larger one against that at
        the smaller, for all rows; for other numbers, that for one unit more; for words and
        categories, each against the reference. "auto": differences of words, categories, numbers of
        two values, and whole numbers of at most ten values; derivatives of other numbers.
    scale : {"difference", "ratio", "odds_ratio"}, default="difference"
        How averages of predictions are compared: one less the other, one over the other (of counts
        a rate ratio, of probabilities a risk ratio), or the odds of one over those of the other.
        Ratios of a derivative are per unit of the column.
    reference : dict, optional
        For each column, the level with which others are compared. By default it is the first
        category that occurs in an Enum or in pandas' categories, else the first in alphabetical
        order. Numbers with a reference are compared value by value.
    by : str or array-like of shape (n_rows,), optional
        A column of X, or the group of each row: effects are averaged separately over the rows of
        each value.
    positive : label, optional
        With two classes, the class whose probability is compared.
    level : float in (0, 1), default=0.95
        Posterior probability of the intervals.
    rope : float or (float, float), optional
        Region of practical equivalence, as in `summary`; a number is its half width around no
        effect: 0, or 1 for ratios.
    full : bool, default=False
        Whether to return all columns of `summary` instead of the main ones.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows in averages.
    offset, exposure : float or array-like, optional
        As in `predict`; needed where the fit had one.
    n_draws : int, "auto" or None, default="auto"
        How many draws of the posterior, evenly spaced. "auto": the number of effective draws
        (``diagnostics_["ess_min"]`` or ``["ess_tail_min"]``), but at least 400; for a default fit,
        whose draws are matched to their gradients, all (math/matched.md). None: all.

    Returns
    -------
    pandas.DataFrame
        A row for each comparison, for each value of `by`, and for each of more than two classes,
        with the columns of `summary`. Without pandas, a Bunch of arrays. ``attrs["quantity"]``,
        also the name of the columns, is the quantity that is compared, and its class.
        ``attrs["reference of city"]`` is the level with which other cities are compared, and
        ``attrs["rows left out of age"]`` the number of rows that are left out of the effect of age.

    Warns
    -----
    UserWarning
        If rows are left out because the cell to be changed is missing. If a column of X is the
        product of the changed column and another: it stays fixed.

    Raises
    ------
    ValueError
        If a feature is not a column of X, if a derivative is asked of a column of words, if a
        column has no cells or no two values to compare, if a reference does not occur, if odds are
        asked of a regression or ratios of means that are not positive, if the estimator has no
        draws, or if the mean of y overflows.

    Notes
    -----
    X may have missing cells (NaN, None, NA, NaT or null) where the steps of a Pipeline impute them.
    The values to compare are those of the cells that are not missing. A comparison of two values
    uses all rows, since it replaces their cells. A step from a missing cell has no meaning: such
    rows are left out of the effect of this column.

    Odds are those of average probabilities. The odds ratio in `summary` is that of a single row,
    with all other columns fixed, and is further from 1.

    The Monte Carlo error of an effect is at most about its standard deviation over the root of the
    number of draws; ``mcse_mean`` of the `full` table has it.

    Source: math/monte_carlo.md#average-effects. Statisticians call these average marginal effects.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbayes_sg import BayesianLogisticRegression
    >>> from skbayes_sg.inspection import average_effects
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X = X[["mean radius", "mean texture"]]
    >>> model = make_pipeline(StandardScaler(), BayesianLogisticRegression(random_state=0))
    >>> effects = average_effects(model.fit(X, y), X)
    >>> bool(effects.loc["mean radius", "eti95_ub"] < 0)
    True
    >>> effects.attrs["quantity"]
    'probability of 1'
    """
    require_choice("kind", kind, ("auto", "derivative", "difference"))
    require_choice("scale", scale, _SCALES)
    X = rows_of(X)
    means = _Averages(average_effects, model, scale, positive, n_draws, (offset, exposure))
    weight, groups = weights_of(sample_weight, X)[:, None], [""]
    if by is not None:
        labels_of, member = labels_by("by", by, X)
        groups = labels_of.tolist()
        weight = weight * (member[:, None] == np.arange(len(groups)))
    labels: list[tuple[Any, ...]] = []
    draws, attrs, left_out = [], {}, {}
    compared = comparisons(X, features, kind, reference)
    _warn_of_products(X, [column for column, _ in compared])
    for column, comparison in compared:
        averages = (means.of(version, weight, comparison.rows) for version in comparison.versions)
        first = next(averages)
        for label, average in zip(comparison.labels, averages, strict=True):
            labels += [(label,) if by is None else (label, group) for group in groups]
            draws.append(means.compared(average, first, comparison.size))
        if comparison.reference is not None:
            attrs[f"reference of {column}"] = comparison.reference
        if len(comparison.rows) < len(weight):
            left_out[column] = len(weight) - len(comparison.rows)
    warn_of_rows("the effect of a column", left_out, len(weight))
    attrs |= {f"rows left out of {column}": n for column, n in left_out.items()}
    names = ["term"] if by is None else ["term", by if isinstance(by, str) else "by"]
    return means.table(labels, names, draws, attrs, {"level": level, "rope": rope, "full": full})


def contrast(
    model: Any,
    X_a: ArrayLike,
    X_b: ArrayLike,
    *,
    scale: str = "difference",
    positive: Any = None,
    level: float = 0.95,
    rope: Any = None,
    full: bool = False,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    n_draws: int | str | None = "auto",
):
    """Average prediction of some rows against that of others, with posterior intervals.

    Parameters
    ----------
    model : fitted estimator or Pipeline
    X_a, X_b : array-like of shape (n_rows, n_features)
        Two profiles: a row each, or many rows, whose predictions are averaged under each draw.
    scale : {"difference", "ratio", "odds_ratio"}, default="difference"
        The average of `X_a` minus that of `X_b`, their ratio, or the ratio of their odds.
    positive : label, optional
        With two classes, the class whose probability is compared.
    level : float in (0, 1), default=0.95
        Posterior probability of the intervals.
    rope : float or (float, float), optional
        Region of practical equivalence, as in `summary`; a number is its half width around no
        effect: 0, or 1 for ratios.
    full : bool, default=False
        Whether to return all columns of `summary` instead of the main ones.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows in averages, the same for both.
    offset, exposure : float or array-like, optional
        As in `predict`, the same for both.
    n_draws : int, "auto" or None, default="auto"
        How many draws, as in `average_effects`.

    Returns
    -------
    pandas.DataFrame
        One row, or one for each of more than two classes, with the columns of `summary`. Without
        pandas, a Bunch of arrays.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianLinearRegression
    >>> from skbayes_sg.inspection import contrast
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = BayesianLinearRegression(random_state=0).fit(X, y)
    >>> higher = contrast(model, X.assign(bmi=X["bmi"] + 5), X)
    >>> bool(higher.loc["difference", "eti95_lb"] > 0)
    True
    """
    require_choice("scale", scale, _SCALES)
    means = _Averages(contrast, model, scale, positive, n_draws, (offset, exposure))
    a, b = (
        means.of(X, weights_of(sample_weight, X)[:, None], np.arange(len(X)))
        for X in map(rows_of, (X_a, X_b))
    )
    draws = means.compared(a, b)
    figures = {"level": level, "rope": rope, "full": full}
    return means.table([(scale,)], ["term"], [draws], {}, figures)


def _warn_of_products(X: Any, moved: list[str]) -> None:
    """That columns of X which are products do not move with their factors."""
    names = [name if isinstance(name, str) else f"x{name}" for name in frames.column_names(X)]
    found = products(X, [names.index(name) for name in moved])
    if not found:
        return
    shown = [f"{names[j]!r} (of {names[factor]!r})" for j, factor in found.items()]
    more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
    warn(
        f"average_effects: X has products of columns that move: {', '.join(shown[:3])}{more}; "
        "they stay as they are, so that effects leave out what they add; make them inside the "
        "model's Pipeline, as by PolynomialFeatures, or compare two complete tables by contrast",
        UserWarning,
    )


class _Averages:
    """Expected responses averaged over rows, under draws of a model, and their comparisons."""

    def __init__(
        self,
        asking: Callable,
        model: Any,
        scale: str,
        positive: Any,
        n_draws: Any,
        offsets: tuple[Any, Any],
    ) -> None:
        self.asking, self.model, self.scale = asking, model, scale
        self.estimator, before = fitted_step(asking, model, REMEDY, "draws_")
        if before is None:  # a column of a level that is moved to zero makes no new level
            self.model = self.estimator._without_levels_of_columns()
        self.classes = list(getattr(self.estimator, "classes_", []))
        self.has_odds = getattr(self.estimator.model_, "ratio", "") == "odds_ratio"
        if scale == "odds_ratio" and not (self.classes or self.has_odds):
            raise ValueError('this regression has no odds; take "ratio", or "difference"')
        if positive is not None:
            if len(self.classes) != 2:
                raise ValueError("positive is a class of two; with more, each has a row")
            require_choice("positive", positive, self.classes)
        self.is_turned = positive is not None and positive == self.classes[0]
        offset = offset_of(*offsets, getattr(self.estimator.model_, "log_link", False))
        self.offset = None if offset is None else np.asarray(offset)
        self.kept, self.draws = draws_enough(self.estimator, n_draws)

    def of(self, X: Any, weight: NDArray, rows: NDArray) -> NDArray:
        """Averages over versions of the rows of these numbers: (chains, draws, groups, k).

        The weights of all rows are (rows, groups). There is an average for each of k outputs.
        """
        offset = self.offset
        if offset is not None and offset.ndim:
            if len(offset) != len(weight):
                raise ValueError(
                    f"offset, or exposure, must have a number for each of {len(weight)} rows, or "
                    f"one for all; got shape {offset.shape}"
                )
            offset = offset[rows]
        weight = weight[rows]
        sums = weight.sum(axis=0)
        if not (sums > 0).all():
            raise ValueError(
                "sample_weight is zero for all rows that are compared, or, with by, for all rows "
                "of a value of it"
            )
        average = sums_under_draws(self.asking, self.model, X, weight / sums, offset, self.kept)
        return np.swapaxes(average, 2, 3)

    def compared(self, a: NDArray, b: NDArray, size: float = 1.0) -> NDArray:
        """Draws of the comparison of two averages, (chains, draws, groups x outputs)."""
        if self.is_turned:
            a, b = 1 - a, 1 - b
        if self.scale == "odds_ratio":
            a, b = a / (1 - a), b / (1 - b)
        if self.scale == "difference":
            effect = (a - b) / size
        elif (a > 0).all() and (b > 0).all():
            effect = (a / b) ** (1 / size)
        else:
            raise ValueError(
                'a ratio is of means above 0, and these are not under all draws; take "difference"'
            )
        return effect.reshape(*effect.shape[:2], -1)

    def table(
        self, labels: list, names: list[str], draws: list[NDArray], attrs: dict, figures: dict
    ):
        """Figures of each comparison, and of each class or response where there are several."""
        if not labels:
            raise ValueError("features: there are no columns whose effect could be computed")
        null = 0.0 if self.scale == "difference" else 1.0
        effects = self.draws.of(np.concatenate(draws, axis=2))
        columns = figures_of(effects, null=null, estimator=self.estimator, **figures)
        attrs = {"quantity": self._quantity()} | attrs
        return table_of_outputs(self.estimator, names, labels, columns, attrs)

    def _quantity(self) -> str:
        """What is compared, in words."""
        words = dict(zip(_SCALES, ("probability", "risk ratio", "odds ratio"), strict=True))
        if not self.classes and self.has_odds:
            return "share" if self.scale == "difference" else words[self.scale]
        if not self.classes:
            ratio = getattr(self.estimator.model_, "ratio", "") or "ratio of means"
            return "mean of y" if self.scale == "difference" else ratio.replace("_", " ")
        of_class = f" of {self.classes[0 if self.is_turned else 1]}"
        return words[self.scale] + (of_class if len(self.classes) == 2 else "")
