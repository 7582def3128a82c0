"""Bayesian regression of ordered classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skbayes_sg.estimators.base import all_or_nothing, where_it_streams
from skbayes_sg.estimators.classifier import sorted_labels
from skbayes_sg.estimators.linear_model import LinearClassifier
from skbayes_sg.frames import ordered_levels
from skbayes_sg.models import Ordinal
from skbayes_sg.validation import shown, warn


@dataclass(eq=False, repr=False)
class BayesianOrdinalClassifier(LinearClassifier):
    """Classification into ordered classes, such as grades, with a posterior.

    ``log(P(y <= k) / P(y > k)) = threshold_k - coef . x``: one coefficient per column determines
    how it changes the odds of all higher classes against all lower ones (proportional odds).
    Thresholds are sampled too, in order: the logarithms of their gaps are normal a priori, of mean
    0 and standard deviation 2. It takes the place of OrderedModel of statsmodels.

    Parameters
    ----------
    sampler : Sampler, str or None, default=None
    prior_precision : float, array (n_features,), "learned" or VariationalEM, default="learned"
    categories : array-like of shape (n_classes,), optional
        All labels, from the lowest to the highest. Classes without rows have small probabilities,
        given by the prior of the gap between their thresholds, so that a fold of a cross-validation
        may lack a rare class. By default numbers are in increasing order, and ordered categories,
        as of pandas, have their own order and all of their levels. Other labels are sorted
        alphabetically, with a warning.
    intercept_precision : float, default=0.01
        Prior precision of the middle threshold, the lower one of two, where columns have their
        means. Under a learned `prior_precision` its prior mean is that of the share of the classes
        below it.
    prior_mean : float or array of shape (n_features,) or (1, n_features), default=0.0
    prior : {"horseshoe", "student_t"}, Horseshoe, StudentT or FittedPosterior, optional
    prior_groups : {"share", "feature", "prefix"}, dict or callable, optional
    new_levels : {"sample", "zero", "refuse"}, default="sample"
    forgetting_factor : float in (0, 1], default=1.0
    categorical_features : {"from_dtype"}, list or None, default="from_dtype"
    n_chains : int or "auto", default="auto"
    n_draws : int or "auto", default="auto"
    burn_in : int or "auto", default="auto"
    thin : int or "auto", default="auto"
    warm_start : bool, default=False
    n_jobs : int, optional
    random_state : int, RandomState, Generator or None
    class_weight : dict, "balanced" or None, default=None
    n_predict_draws : int, "auto" or None, default="auto"

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Sorted, as everywhere in scikit-learn: the order of the columns of probabilities.
    categories_ : array of shape (n_classes,)
        The classes from the lowest to the highest.
    factors_
    coef_names_
    coef_, coef_std_
    thresholds_ : array of shape (n_classes - 1,)
        Posterior means.
    coef_samples_
    threshold_samples_ : array of shape (n_chains, n_draws, n_classes - 1)
        Draws of `thresholds_`.
    intercept_
    intercept_samples_
    n_features_in_
    feature_names_in_
    draws_ : array of shape (n_chains, n_draws, dim)
        Posterior draws: coefficients, minus the middle threshold, the lower one of two, and the
        logarithms of the gaps between thresholds, from the lowest on.
    draw_weights_
    sampler_
    sampler_reason_
    states_
    model_ : Ordinal
    n_iter_
    n_passes_
    burn_in_, thin_
    diagnostics_
    posterior_
    n_samples_seen_
    log_loss_path_
    prior_precision_
    prior_precision_path_
    prior_precision_blocks_
    prior_precision_draws_

    Notes
    -----
    Source: McCullagh 1980; math/models.md#ordered-classes.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import BayesianOrdinalClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 2))
    >>> z = X @ [1.0, 0.0] + rng.logistic(size=300)
    >>> y = np.array(["low", "middle", "high"])[np.digitize(z, [-1.0, 1.0])]
    >>> model = BayesianOrdinalClassifier(categories=["low", "middle", "high"], random_state=0)
    >>> model.fit(X, y).summary().index.tolist()
    ['x0', 'x1', 'low | middle', 'middle | high']
    """

    categories: ArrayLike | None = None
    fit_intercept: ClassVar[bool] = True  # type: ignore[misc] # no parameter: thresholds are needed

    _has_rows = False
    _order_of_column: Any = field(default=None, init=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # of classes without an order, as in its checks
        return tags

    # -- the order ----------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X, y, sample_weight=None, offset=None) -> Self:
        self._order_of_column = ordered_levels(y)
        return super().fit(X, y, sample_weight, offset)

    @where_it_streams
    @all_or_nothing
    def partial_fit(self, X, y, classes=None, sample_weight=None, offset=None) -> Self:
        """Update the posterior by a chunk; see `BayesianLogisticRegression.partial_fit`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            A chunk may lack classes. The order of a column of ordered categories is kept, and must
            be the same in all chunks.
        classes : array-like or type of a column of categories, optional
            All labels that may occur; required in the first call, unless `categories` or the column
            name them. The order is theirs; or that of `classes`, where it is the type of a column
            of ordered categories, or such a column.
        sample_weight, offset : array-like of shape (n_rows,), optional
            As in `fit`; the offset in all chunks or in none.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data or parameters are invalid, or if orders contradict each other; raised before any
            update.
        """
        of_y, of_classes = ordered_levels(y), ordered_levels(classes)
        # the order of the first chunk is kept, and another one is refused
        if hasattr(self, "model_"):
            first_order = self.categories_.tolist()
        else:
            self._order_of_column = first_order = of_y if of_classes is None else of_classes
        for name, levels in (("y", of_y or []), ("classes", of_classes or [])):
            shared = [level for level in levels if level in first_order]
            in_order = [level for level in first_order or [] if level in shared]
            if self.categories is None and shared != in_order:
                raise ValueError(
                    f"{name} has ordered categories {shown(levels)}, and the order of the stream "
                    f"is {shown(first_order)}; give all chunks one type, or give categories"
                )
        order = self._order
        if self.categories is not None and classes is not None:
            labels = np.asarray(getattr(classes, "categories", classes))
            _require_places(sorted_labels("classes", labels), order)
            classes = order
        first = not hasattr(self, "model_")
        if not (first or order is None or np.array_equal(order, self.categories_)):
            raise ValueError("categories must stay as they were in the first chunk")
        return super().partial_fit(
            X, y, order if first and classes is None else classes, sample_weight, offset
        )

    @property
    def _order(self) -> NDArray | None:
        """The levels from the lowest to the highest; None where labels themselves say it."""
        asked = self._order_of_column if self.categories is None else self.categories
        if asked is None:
            return None
        order = np.asarray(asked)
        if order.ndim != 1 or len(sorted_labels("categories", order)) != len(order):
            raise ValueError(
                "categories must have each label once, from the lowest to the highest; got "
                f"{asked!r}"
            )
        return order

    def _classes_of(self, y: NDArray) -> NDArray:
        """All levels of the order, also those that no row has."""
        present, order = super()._classes_of(y), self._order
        if order is None or set(present.tolist()) == set(order.tolist()):
            return present
        _require_places(present, order)
        empty = [level for level in order.tolist() if level not in present.tolist()]
        if self.categories is None:
            warn(
                f"no row has the level {shown(empty)} of y, whose probability the prior decides; "
                "take unused categories off the column, or give categories to keep them without "
                "this warning",
                UserWarning,
            )
        is_object = present.dtype == object
        return np.unique(order.astype(object)) if is_object else np.union1d(present, order)

    def _make_model(self, n_features: int, classes: NDArray) -> Ordinal:
        order = self._order
        if order is None:
            if classes.dtype.kind not in "biuf":
                warn(
                    f"y holds labels {shown(classes)} without an order, which are taken in "
                    "alphabetical order; give categories, from the lowest to the highest",
                    UserWarning,
                )
            return Ordinal(n_features, np.arange(len(classes)))
        _require_places(classes, order)
        places = np.argsort([level for level in order.tolist() if level in classes.tolist()])
        return Ordinal(n_features, places)

    # -- what the draws say -------------------------------------------------------------------

    @property
    def categories_(self) -> NDArray:
        """The classes from the lowest to the highest."""
        return self.classes_[np.argsort(self.model_.ranks)]

    @property
    def threshold_samples_(self) -> NDArray:
        """Draws of `thresholds_`, (n_chains, n_draws, n_classes - 1)."""
        return self.model_.thresholds(self.draws_, self.intercept_samples_)

    @property
    def thresholds_(self) -> NDArray:
        """Posterior means."""
        return self._draws.of(self.threshold_samples_).mean()

    def _terms_beside(self, intercepts: NDArray) -> dict[str, NDArray]:
        """The thresholds, for `summary`, which may have moved the intercepts (., ., 1)."""
        thresholds = self.model_.thresholds(self.draws_, intercepts[..., 0])
        names = self._names_of_thresholds()
        return dict(zip(names, np.moveaxis(thresholds, -1, 0)[..., None], strict=True))

    def _names_of_thresholds(self) -> list[str]:
        return [f"{low} | {high}" for low, high in pairwise(self.categories_)]


def _require_places(labels: NDArray, order: NDArray | None) -> None:
    places = [] if order is None else order.tolist()
    missing = [label for label in labels.tolist() if label not in places]
    if missing:
        raise ValueError(
            f"categories must have all labels, from the lowest to the highest: {shown(missing)} "
            f"have no place in {shown(places)}"
        )
