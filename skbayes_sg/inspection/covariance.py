"""The covariance that theory predicts beside that of the draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2, t

from skbayes_sg.inspection.drawing import COLOURS, axes_for, fitted_step, literal
from skbayes_sg.inspection.names import parameter_names, positions

_LEVEL = 0.9  # of the ellipses
_INTERVAL = 0.95  # of the entries
_MOST_POINTS = 2000


class CovarianceDisplay:
    """Predicted covariance of the draws beside the drawn one.

    On the left are draws of two parameters, and the ellipses that hold 90 % of a normal
    distribution with the drawn and with the predicted covariance. On the right are all entries of
    both matrices, divided by the predicted standard deviations: variances lie at 1, covariances at
    the predicted correlation. On the diagonal both agree. Vertical bars are 95 % intervals of the
    drawn entries, from the spread of the chains (Student's t). Source:
    math/stationary.md#predicted-covariance.

    Use `from_estimator`.

    Parameters
    ----------
    predicted : array of shape (dim, dim)
    draws : array of shape (n_chains, n_draws, dim)
    names : sequence of str
    weights : array of shape (n_draws,), optional
        Weights of the draws of a chain; equal by default.
    pair : tuple of two int, optional
        The parameters on the left. By default those of the largest predicted correlation.

    Attributes
    ----------
    drawn, standard_error : arrays of shape (dim, dim)
        Covariance of the draws and its Monte Carlo error, which is NaN for one chain.
    covered : float
        Share of the entries whose interval holds the predicted one; .95 if theory is right.
    axes_ : array of two matplotlib Axes
    figure_ : matplotlib Figure
    ellipses_ : list of two matplotlib Ellipse
        The drawn and the predicted one.
    entries_ : list of two matplotlib ErrorbarContainer
        Variances and covariances.

    Raises
    ------
    ValueError
        If there are fewer than two parameters.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianLinearRegressionSGFS, CovarianceDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = BayesianLinearRegressionSGFS(random_state=0).fit(X, y)
    >>> display = CovarianceDisplay.from_estimator(model, X, y, parameters=["bmi", "bp"])
    >>> bool(display.covered > 0.8)
    True
    """

    def __init__(
        self,
        predicted: NDArray,
        draws: NDArray,
        names: Sequence[str],
        *,
        weights: NDArray | None = None,
        pair: Sequence[int] | None = None,
    ) -> None:
        if len(predicted) < 2:
            raise ValueError("the posterior has one parameter; a covariance needs two")
        self.predicted, self.draws, self.names = predicted, draws, names
        if weights is None:
            weights = np.full(draws.shape[1], 1 / draws.shape[1])
        self.mean = np.tensordot(weights, draws.mean(axis=0), axes=1)
        total, square = np.zeros_like(predicted), np.zeros_like(predicted)
        for chain in draws:
            centred = chain - self.mean
            covariance = (centred.T * weights) @ centred
            total += covariance
            square += covariance**2
        n = len(draws)
        self.drawn = total / n
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.maximum(square / n - self.drawn**2, 0.0)
            self.standard_error = np.sqrt(spread / np.float64(n - 1))
        self._half_width = t.ppf(0.5 + _INTERVAL / 2, max(n - 1, 1)) * self.standard_error
        upper = np.triu_indices(len(predicted))
        held = np.abs(self.drawn - predicted) <= self._half_width
        self.covered = float(held[upper].mean()) if n > 1 else np.nan
        self.pair = _most_correlated(predicted) if pair is None else pair

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        parameters: Iterable[str | int] | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> CovarianceDisplay:
        """Draw the covariances of a fitted estimator with coefficients.

        Parameters
        ----------
        estimator : fitted estimator with ``predicted_covariance``, or a Pipeline that ends in one
        X, y, sample_weight :
            The data of the fit.
        parameters : two names, or positions in the last axis of ``draws_``, optional
            By default those of the largest predicted correlation.
        ax : array of two matplotlib Axes, optional
        **kwargs
            For ``Axes.plot`` of the draws.

        Returns
        -------
        CovarianceDisplay

        Raises
        ------
        ValueError
            If the estimator has no ``predicted_covariance``, its sampler has no stationary
            distribution, or a parameter is unknown.
        NotFittedError
            If there was no `fit`, only `partial_fit`.
        ImportError
            If matplotlib is not installed.
        """
        remedy = "networks have no one mode"
        model, before = fitted_step(cls, estimator, remedy, "predicted_covariance")
        rows = X if before is None else before.transform(X)
        predicted = model.predicted_covariance(rows, y, sample_weight)
        names = parameter_names(model, before)
        pair = None if parameters is None else positions(parameters, names)
        if pair is not None and len(set(pair)) != 2:
            raise ValueError(f"parameters must be two different ones, got {parameters!r}")
        display = cls(predicted, model.draws_, names, weights=model.draw_weights_, pair=pair)
        return display.plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> CovarianceDisplay:
        """Draw, on new axes if none are given.

        Parameters
        ----------
        ax : array of two matplotlib Axes, optional
        **kwargs
            For ``Axes.plot`` of the draws.

        Returns
        -------
        CovarianceDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        self.axes_ = axes_for(self, ax, 2, 2, figsize=(9.0, 4.4))
        self.figure_ = self.axes_[0].figure
        self._pair(self.axes_[0], kwargs)
        self._entries(self.axes_[1])
        return self

    def _pair(self, ax: Any, kwargs: dict[str, Any]) -> None:
        from matplotlib.patches import Ellipse

        i, j = self.pair
        flat = self.draws.reshape(-1, len(self.names))[:, [i, j]]
        some = np.unique(np.linspace(0, len(flat) - 1, _MOST_POINTS).astype(int))
        style: dict[str, Any] = {"linestyle": "none", "marker": ".", "markersize": 3}
        style |= {"color": "0.7", "zorder": 1, "label": "draws", "markeredgewidth": 0}
        ax.plot(*flat[some].T, **(style | kwargs))
        self.ellipses_ = []
        for name, matrix, colour, line in (
            ("drawn", self.drawn, COLOURS[0], "-"),
            ("predicted", self.predicted, COLOURS[1], "--"),
        ):
            width, height, angle = _ellipse(matrix[np.ix_([i, j], [i, j])])
            patch = Ellipse(tuple(self.mean[[i, j]]), width, height, angle=angle, label=name)
            patch.set(fill=False, linewidth=2, edgecolor=colour, linestyle=line)
            self.ellipses_.append(ax.add_patch(patch))
        ax.autoscale_view()
        ax.locator_params(nbins=6)
        ax.set(xlabel=literal(self.names[i]), ylabel=literal(self.names[j]))
        ax.set_title(f"ellipses that hold {_LEVEL:.0%}", fontsize="medium")
        ax.legend(loc="best", fontsize="small", framealpha=0.9)

    def _entries(self, ax: Any) -> None:
        sd = np.sqrt(self.predicted.diagonal())
        scale = np.outer(sd, sd)
        self.entries_, several = [], len(self.draws) > 1
        looks = {"variances": ("s", COLOURS[1], 0), "covariances": ("o", COLOURS[0], 1)}
        ax.axline((0, 0), slope=1, color="0.6", linewidth=1, zorder=1)
        for name, (marker, colour, offset) in looks.items():
            at = np.diag_indices(len(sd)) if offset == 0 else np.triu_indices(len(sd), 1)
            x, y, bar = ((m / scale)[at] for m in (self.predicted, self.drawn, self._half_width))
            style: dict[str, Any] = {"linestyle": "none", "marker": marker, "color": colour}
            style |= {"markersize": 4, "markerfacecolor": "white", "elinewidth": 0.6}
            style["alpha"] = float(np.clip(100 / len(x), 0.2, 1.0))
            bars = ax.errorbar(x, y, yerr=bar if several else None, label=name, **style)
            self.entries_.append(bars)
        ax.set(xlabel="predicted covariance (scaled)", ylabel="drawn covariance (scaled)")
        said = f"{_INTERVAL:.0%} intervals hold {self.covered:.0%} of the entries"
        ax.set_title(said if several else "all entries", fontsize="medium")
        ax.legend(loc="upper left", fontsize="small", framealpha=0.9)


def _most_correlated(covariance: NDArray) -> tuple[int, int]:
    sd = np.sqrt(covariance.diagonal())
    size = np.abs(np.triu(covariance / np.outer(sd, sd), 1))
    i, j = np.unravel_index(size.argmax(), size.shape)
    return int(i), int(j)


def _ellipse(covariance: NDArray) -> tuple[float, float, float]:
    """Width, height and angle in degrees of the ellipse that holds 90 %."""
    values, vectors = np.linalg.eigh(covariance)
    angle = np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0]))
    width, height = 2 * np.sqrt(np.maximum(values, 0.0) * chi2.ppf(_LEVEL, 2))
    return float(width), float(height), float(angle)
