"""Risk against coverage of a classifier that may abstain."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_consistent_length

from skbayes_sg.inspection.drawing import axes_for, literal, require_method
from skbayes_sg.inspection.responses import weights_of


class AbstentionDisplay:
    """Error rate of the answers that a classifier gives, against the share of rows it answers.

    The classifier abstains on the rows that it is least certain of. At coverage 1 it answers every
    row, and the risk is its error rate. The lower the curve and its area, the better the
    uncertainty tells wrong answers from right ones. Rows of equal uncertainty share their errors.

    Use `from_estimator` or `from_predictions`. To compare several models, give ``ax=display.ax_``
    to the later ones.

    Parameters
    ----------
    wrong : bool array of shape (n_rows,)
        Whether the predicted class of each row is wrong.
    uncertainty : array of shape (n_rows,)
        The classifier abstains first on the rows with the largest values.
    name : str, optional
        Label in the legend.
    sample_weight : array of shape (n_rows,), optional
        An integer weight repeats the row. Rows of weight 0 are left out.

    Attributes
    ----------
    coverage, risk : arrays of shape (n_rows,)
        Share of rows answered, ascending, and the share of wrong answers among them.
    area : float
        Area under the curve: the mean of `risk` over the rows (Geifman & El-Yaniv 2017).
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from skbayes_sg import AbstentionDisplay
    >>> display = AbstentionDisplay.from_predictions([0, 1, 1, 0], [0.1, 0.9, 0.4, 0.2])
    >>> display.risk
    array([0.  , 0.  , 0.  , 0.25])
    >>> display.area
    0.0625
    """

    def __init__(
        self,
        wrong: NDArray,
        uncertainty: NDArray,
        *,
        name: str | None = None,
        sample_weight: NDArray | None = None,
    ) -> None:
        if sample_weight is not None:
            counting = sample_weight > 0
            wrong, uncertainty = wrong[counting], uncertainty[counting]
        self.wrong, self.uncertainty, self.name = wrong, uncertainty, name
        weight = np.ones(len(wrong)) if sample_weight is None else sample_weight[counting]
        _, tied = np.unique(uncertainty, return_inverse=True)
        shared = np.bincount(tied, weight * wrong) / np.bincount(tied, weight)
        order = np.argsort(tied, kind="stable")
        weight, shared = weight[order], shared[tied[order]]
        answered, errors = weight.cumsum(), (weight * shared).cumsum()
        self.coverage, self.risk = answered / answered[-1], errors / answered
        # the sum of the risks after each of the repetitions: (E + j s) / (C + j), j = 1 ... w
        before, excess = answered - weight, errors - answered * shared
        sums = weight * shared + excess * (digamma(answered + 1) - digamma(before + 1))
        self.area = float(sums.sum() / answered[-1])

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> AbstentionDisplay:
        """Draw the curve of a fitted classifier for new rows.

        It abstains first where the probability of the predicted class is smallest.

        Parameters
        ----------
        estimator : fitted classifier with ``predict_proba``, or a Pipeline that ends in one
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
            An integer weight repeats the row.
        name : str, optional
            By default the name of the estimator's class.
        ax : matplotlib Axes, optional
        **kwargs
            For ``Axes.plot``.

        Returns
        -------
        AbstentionDisplay

        Raises
        ------
        ValueError
            If the estimator has no ``predict_proba``.
        ImportError
            If matplotlib is not installed.
        """
        require_method(cls, estimator, "predict_proba", "give a classifier")
        name, proba = type(estimator).__name__ if name is None else name, estimator.predict_proba(X)
        keywords = {"classes": estimator.classes_, "sample_weight": sample_weight}
        return cls.from_predictions(y, proba, **keywords, name=name, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> AbstentionDisplay:
        """Draw the curve of given probabilities.

        The classifier abstains first where the probability of the predicted class is smallest.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,)
        y_prob : array-like of shape (n_rows, n_classes) or (n_rows,)
            A vector is the probability of the second of two classes.
        classes : array-like of shape (n_classes,), optional
            The label of each column. By default the labels in `y_true`, sorted.
        sample_weight : array-like of shape (n_rows,), optional
            An integer weight repeats the row.
        name : str, optional
            Label in the legend.
        ax : matplotlib Axes, optional
        **kwargs
            For ``Axes.plot``.

        Returns
        -------
        AbstentionDisplay

        Raises
        ------
        ValueError
            If labels, probabilities and weights do not fit each other.
        ImportError
            If matplotlib is not installed.
        """
        y_true = column_or_1d(y_true)
        proba = check_array(y_prob, ensure_2d=False, dtype=np.float64, input_name="y_prob")
        check_consistent_length(y_true, proba)
        proba = np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba
        # in single precision rows sum to 1 but for roundings
        sums = proba.sum(axis=1)
        if proba.min() < 0 or proba.max() > 1 or np.abs(sums - 1).max() > 1e-3:
            raise ValueError(
                "y_prob must hold probabilities: numbers from 0 to 1, and rows that sum to 1"
            )
        labels = np.unique(y_true if classes is None else np.asarray(classes))
        if classes is not None and not np.array_equal(labels, classes):
            raise ValueError("classes must be sorted and differ, as in classes_ of a classifier")
        if len(labels) != proba.shape[1]:
            raise ValueError(
                f"y_prob has {proba.shape[1]} columns for {len(labels)} classes; give classes, the "
                "label of each column"
            )
        if not np.isin(y_true, labels).all():
            raise ValueError(f"y_true holds labels that are not among the classes {labels!r}")
        wrong, uncertainty = labels[proba.argmax(axis=1)] != y_true, 1 - proba.max(axis=1)
        weight = None if sample_weight is None else weights_of(sample_weight, uncertainty)
        return cls(wrong, uncertainty, name=name, sample_weight=weight).plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> AbstentionDisplay:
        """Draw, on new axes if none are given.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            For ``Axes.plot``.

        Returns
        -------
        AbstentionDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        (self.ax_,) = axes_for(self, ax)
        self.figure_ = self.ax_.figure
        named = "" if self.name is None else f"{literal(self.name)}: "
        style: dict[str, Any] = {"label": f"{named}area {self.area:.3g}"}
        style |= {"marker": "", "linewidth": 1.5, "drawstyle": "steps-post"}
        (self.line_,) = self.ax_.plot(self.coverage, self.risk, **(style | kwargs))
        self.ax_.set(xlim=(0, 1), xlabel="coverage (share answered)", ylabel="risk (error rate)")
        self.ax_.set_ylim(bottom=0, auto=True)
        self.ax_.legend(loc="best", fontsize="small", framealpha=0.9)
        return self
