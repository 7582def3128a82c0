"""Bayesian regression of ordered classes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skbayes_sg.estimators.classifier import LinearClassifier
from skbayes_sg.estimators.fit_guard import all_or_nothing, warn
from skbayes_sg.estimators.gaussian_posterior import FittedPosterior
from skbayes_sg.models import Ordinal
from skbayes_sg.priors.shrinkage import Horseshoe, StudentT
from skbayes_sg.samplers import Sampler
from skbayes_sg.validation import shown


class BayesianOrdinalClassifier(LinearClassifier):
    """Classification into ordered classes, such as grades, with a posterior.

    ``log(P(y <= k) / P(y > k)) = threshold_k - coef . x``: one coefficient per column says how it
    moves the odds of all higher classes against all lower ones (proportional odds). Thresholds are
    sampled too, in order: the logarithms of their gaps are normal a priori, of mean 0 and standard
    deviation 2. It stands where OrderedModel of statsmodels would.

    Parameters
    ----------
    sampler : Sampler, str or None, default=None
        As in `BayesianLogisticRegressionSGFS`, as all parameters that are not described here.
    prior_precision : float, array (n_features,), "learned" or VariationalEM, default="learned"
    categories : array-like of shape (n_classes,), optional
        All labels, from the lowest to the highest. By default numbers are in increasing order, and
        a pandas column of ordered categories in its own. Other labels are taken in alphabetical
        order, with a warning.
    intercept_precision : float, default=0.01
        Prior precision of the first threshold, where columns have their means. Under a learned
        `prior_precision` its prior mean is that of the share of the lowest class.
    prior_mean : float or array of shape (n_features,) or (1, n_features), default=0.0
    prior : {"horseshoe", "student_t"}, Horseshoe, StudentT or FittedPosterior, optional
    prior_groups : {"feature", "prefix"}, dict or callable, optional
    forgetting_factor : float in (0, 1], default=1.0
    n_chains : int or "auto", default="auto"
    n_draws : int or "auto", default="auto"
    burn_in : int or "auto", default="auto"
    thin : int or "auto", default="auto"
    warm_start : bool, default=False
    n_jobs : int, optional
    random_state : int, RandomState, Generator or None
    class_weight : dict, "balanced" or None, default=None
    n_predict_draws : int, optional

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Sorted, as everywhere in scikit-learn: the order of the columns of probabilities.
    categories_ : array of shape (n_classes,)
        The classes from the lowest to the highest.
    coef_, coef_std_ : arrays of shape (n_features,)
        Posterior means and standard deviations.
    thresholds_ : array of shape (n_classes - 1,)
        Posterior means.
    coef_samples_ : array of shape (n_chains, n_draws, n_features)
    threshold_samples_ : array of shape (n_chains, n_draws, n_classes - 1)
    intercept_, intercept_samples_ :
        Minus the first threshold.
    n_features_in_, feature_names_in_, draws_, draw_weights_, sampler_, sampler_reason_, states_ :
    model_, n_iter_, n_passes_, burn_in_, thin_, diagnostics_, posterior_, n_samples_seen_ :
    prior_precision_, prior_precision_path_, prior_precision_blocks_, prior_precision_draws_ :
        As in `BayesianLogisticRegressionSGFS`.

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

    fit_intercept = True
    _ratio = "odds_ratio"
    _has_rows = False
    _order_of_column: Any = None
    categories: ArrayLike | None

    def __init__(
        self,
        sampler: Sampler | str | None = None,
        prior_precision: ArrayLike | str = "learned",
        *,
        categories: ArrayLike | None = None,
        intercept_precision: float = 0.01,
        prior_mean: ArrayLike = 0.0,
        prior: FittedPosterior | Horseshoe | StudentT | str | None = None,
        prior_groups: Any = None,
        forgetting_factor: float = 1.0,
        n_chains: int | str = "auto",
        n_draws: int | str = "auto",
        burn_in: int | str = "auto",
        thin: int | str = "auto",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        class_weight: dict | str | None = None,
        n_predict_draws: int | None = None,
    ) -> None:
        self._keep_parameters(locals())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # of classes without an order, as in its checks
        return tags

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        dtype: Any = getattr(y, "dtype", None)
        self._order_of_column = dtype.categories if getattr(dtype, "ordered", False) else None
        return super().fit(X, y, sample_weight)

    def _make_model(self, n_features: int, classes: NDArray) -> Ordinal:
        return Ordinal(n_features, self._ranks(classes))

    def _ranks(self, classes: NDArray) -> NDArray:
        """Place of each class in the order, from 0."""
        if self.categories is None and self._order_of_column is None:
            if classes.dtype.kind not in "biuf":
                warn(
                    f"y holds labels {shown(classes)} without an order, which are taken in "
                    "alphabetical order; give categories, from the lowest to the highest",
                    UserWarning,
                )
            return np.arange(len(classes))
        given = self.categories if self.categories is not None else self._order_of_column
        order = np.asarray(given)
        if self.categories is None:
            order = order[np.isin(order, classes)]  # a column may have lost some
        if order.ndim != 1 or len(np.unique(order)) != len(order):
            raise ValueError(
                "categories must have each label once, from the lowest to the highest; got "
                f"{given!r}"
            )
        if not np.array_equal(np.sort(order), classes):
            raise ValueError(
                f"categories must be the labels of y, {shown(classes)}, in their order; got "
                f"{shown(order)}"
            )
        return np.argsort(order)

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
        return self._moments(self.threshold_samples_)[0]

    def _terms_beside(self, intercepts: NDArray) -> dict[str, NDArray]:
        """The thresholds, for `summary`, which may have moved the intercepts (., ., 1)."""
        each = self.model_.thresholds(self.draws_, intercepts[..., 0])
        names = self._names_of_thresholds()
        return dict(zip(names, np.moveaxis(each, -1, 0)[..., None], strict=True))

    def _names_of_thresholds(self) -> list[str]:
        return [f"{low} | {high}" for low, high in pairwise(self.categories_)]
