"""Pictures of fitted estimators, in the manner of scikit-learn's displays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

_MOST_NAMED = 10


class PriorPrecisionDisplay:
    """The path of learned prior precisions, on a logarithmic scale (needs the extra ``plot``).

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

    def plot(self, *, ax=None) -> PriorPrecisionDisplay:
        """Draw the path, on new axes if none are given.

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
        try:
            from matplotlib import pyplot as plt
        except ImportError as error:
            raise ImportError(
                'PriorPrecisionDisplay needs matplotlib: pip install "skbayes_sg[plot]"'
            ) from error
        self.ax_ = plt.subplots()[1] if ax is None else ax
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
