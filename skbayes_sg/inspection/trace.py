"""Traces of the chains, and the ranks of their draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kstwobign, rankdata

from skbayes_sg.diagnostics import R_HAT_LIMIT, ess_bulk, r_hat_and_ess_bulk
from skbayes_sg.inspection.drawing import COLOURS, axes_for, fitted_step, literal, require_method
from skbayes_sg.inspection.names import parameter_names, positions
from skbayes_sg.validation import require_integer

_LEVEL = 0.95  # of the bands, for all chains together
_FEWEST_DRAWS = 8
_GRID = 200  # points of an ECDF
_MATTERS = 0.01  # standard deviation of a probability that matters, as in `diagnose`


class TraceDisplay:
    """Draws of every chain in their order, and the ranks of each chain's draws among all draws.

    On the left are the traces. On the right is, for each chain, the empirical distribution of its
    ranks minus the uniform one (Sailynoja, Buerkner & Vehtari 2022). A chain that draws too many
    small values is above zero. If the chains sample one distribution, all lines of a parameter stay
    within the grey band in at least 95 % of fits (math/monte_carlo.md#bands-of-ranks). Chains that
    leave it are red and thick, on both sides. A wide band means that each chain has few effective
    draws, so that even chains far apart may stay within it. Where R-hat is above 1.05 the title is
    red and bold. A single chain is cut into halves.

    Use `from_estimator`.

    Parameters
    ----------
    draws : array of shape (n_chains, n_draws, n_parameters)
    names : sequence of str
    weights : array of shape (n_draws,), optional
        Weights of the draws of a chain. Draws of weight 0 are left out.

    Attributes
    ----------
    r_hat, ess : arrays of shape (n_parameters,)
        Rank-normalised split R-hat and bulk effective size (`skbayes_sg.diagnostics`).
    band : array of shape (n_parameters,)
        Half width of each band.
    outside : bool array of shape (n_parameters, chains)
        Which chains leave the band.
    axes_ : array of matplotlib Axes of shape (n_parameters, 2)
    figure_ : matplotlib Figure
    traces_, ranks_ : lists of lists of matplotlib Line2D
        One list for each parameter, one line for each chain.

    Raises
    ------
    ValueError
        If there are fewer than 8 draws.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from skbayes_sg import BayesianLogisticRegressionSGFS, TraceDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = BayesianLogisticRegressionSGFS(random_state=0).fit(X, y)
    >>> display = TraceDisplay.from_estimator(model, parameters=["petal width (cm)[2]"])
    >>> display.axes_.shape, bool(display.r_hat[0] < 1.05)
    ((1, 2), True)
    """

    def __init__(
        self, draws: NDArray, names: Sequence[str], *, weights: NDArray | None = None
    ) -> None:
        if weights is not None:
            draws, weights = draws[:, weights > 0], weights[weights > 0]
        _require_draws(draws)
        self.draws, self.names = draws, names
        self.r_hat, self.ess = r_hat_and_ess_bulk(draws, weights)
        chains = draws
        if len(draws) == 1:
            half = draws.shape[1] // 2
            chains = np.concatenate([draws[:, :half], draws[:, -half:]])
        each = np.mean([ess_bulk(chain[None]) for chain in chains], axis=0)
        n_chains = len(chains)
        limit = kstwobign.ppf(_LEVEL ** (1 / n_chains)) * np.sqrt(1 - 1 / n_chains)
        self.band = limit / np.sqrt(each)
        self._grid = np.linspace(0, 1, _GRID + 1)
        self._ecdf = _ecdf_of_ranks(chains, self._grid) - self._grid
        self.outside = (np.abs(self._ecdf) > self.band[:, None, None]).any(axis=2)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        parameters: Iterable[str | int] | None = None,
        X: Any = None,
        n_worst: int = 4,
        ax: Any = None,
        **kwargs: Any,
    ) -> TraceDisplay:
        """Draw parameters of a fitted estimator, or the class probabilities of some rows.

        Weights of hidden units have no meaning of their own, as units can change places. So give
        rows X for networks.

        Parameters
        ----------
        estimator : fitted estimator, or a Pipeline that ends in one
        parameters : iterable of str or int, optional
            Names, or positions in the last axis of ``draws_``. By default those of largest R-hat.
        X : array-like or sparse matrix of shape (n_rows, n_features), optional
            Draw the probabilities of these rows instead (those of largest R-hat, among those whose
            standard deviation is above 0.01).
        n_worst : int, default=4
            How many are drawn, if they are not named.
        ax : array of 2 matplotlib Axes for each parameter, optional
        **kwargs
            For ``Axes.plot`` of the traces.

        Returns
        -------
        TraceDisplay

        Raises
        ------
        ValueError
            If a parameter is unknown, there are too few draws, or both `parameters` and X are
            given.
        ImportError
            If matplotlib is not installed.
        """
        model, before = fitted_step(cls, estimator, "give an estimator of this package", "draws_")
        require_integer("n_worst", n_worst, 1)
        counting = model.draw_weights_ > 0
        if X is None:
            draws, names = model.draws_[:, counting], parameter_names(model, before)
        elif parameters is not None:
            raise ValueError("parameters and X are given; give one of them")
        else:
            require_method(cls, model, "predict_proba_draws", "leave X out")
            rows = X if before is None else before.transform(X)
            draws, names = _probabilities(model, rows)
        _require_draws(draws)
        if parameters is not None:
            chosen = positions(parameters, names)
        else:
            chosen = _worst(draws, n_worst, 0.0 if X is None else _MATTERS)
        weights = model.draw_weights_[counting]
        display = cls(draws[..., chosen], [names[j] for j in chosen], weights=weights)
        return display.plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> TraceDisplay:
        """Draw, on new axes if none are given.

        Parameters
        ----------
        ax : array of 2 matplotlib Axes for each parameter, optional
        **kwargs
            For ``Axes.plot`` of the traces.

        Returns
        -------
        TraceDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        n = len(self.names)
        size = {"figsize": (8.0, 0.5 + 1.7 * n), "width_ratios": (3, 2)}
        self.axes_ = axes_for(self, ax, 2 * n, 2, **size).reshape(n, 2)
        self.figure_ = self.axes_[0, 0].figure
        self.traces_ = [self._trace(j, left, kwargs) for j, (left, _) in enumerate(self.axes_)]
        self.ranks_ = [self._ranks(j, right) for j, (_, right) in enumerate(self.axes_)]
        self.axes_[-1, 0].set_xlabel("draw")
        self.axes_[-1, 1].set_xlabel("rank among all draws (share)")
        return self

    def _trace(self, j: int, ax: Any, kwargs: dict[str, Any]) -> list:
        lines = []
        for chain, style in zip(self.draws[..., j], self._styles(j), strict=False):
            common = {"marker": "", "linestyle": "-"}
            lines += ax.plot(np.arange(1, len(chain) + 1), chain, **(common | style | kwargs))
        title = f"{literal(self.names[j])}: R-hat {self.r_hat[j]:.3f}, ESS {self.ess[j]:,.0f}"
        poor = {"color": COLOURS[1], "fontweight": "bold"} if self.r_hat[j] > R_HAT_LIMIT else {}
        ax.set_title(title, fontsize="medium", loc="left", **poor)
        ax.margins(x=0)
        return lines

    def _ranks(self, j: int, ax: Any) -> list:
        ax.axhspan(-self.band[j], self.band[j], color="0.9", zorder=0)
        ax.axhline(0, color="0.6", linewidth=0.8, zorder=1)
        lines = []
        for ecdf, style in zip(self._ecdf[j], self._styles(j), strict=True):
            lines += ax.plot(self._grid, ecdf, marker="", linestyle="-", **style)
        ax.set_xlim(0, 1)
        ax.set_ylabel("ECDF - uniform", fontsize="small")
        return lines

    def _styles(self, j: int) -> list[dict[str, Any]]:
        """Thin and translucent, the more chains the more so; chains outside the band stand out."""
        faint = float(np.clip(3 / len(self.outside[j]), 0.25, 0.8))
        inside = {"color": COLOURS[0], "linewidth": 0.8, "alpha": faint, "zorder": 2}
        outside = {"color": COLOURS[1], "linewidth": 1.6, "zorder": 3}
        return [outside if out else inside for out in self.outside[j]]


def _require_draws(draws: NDArray) -> None:
    if draws.shape[1] < _FEWEST_DRAWS:
        raise ValueError(
            f"a trace needs {_FEWEST_DRAWS} draws per chain, got {draws.shape[1]}; raise n_draws, "
            "or feed more rows to partial_fit"
        )


def _ecdf_of_ranks(draws: NDArray, grid: NDArray) -> NDArray:
    """Distribution of the ranks of each chain among all draws, (parameters, chains, grid)."""
    n_chains, n_draws, n = draws.shape
    ranks = rankdata(draws.reshape(-1, n), axis=0).reshape(n_chains, n_draws, n)
    ranks = np.sort((ranks - 0.5) / (n_chains * n_draws), axis=1)
    ecdf = [[np.searchsorted(r, grid, side="right") for r in ranks[..., j]] for j in range(n)]
    return np.array(ecdf) / n_draws


def _worst(draws: NDArray, n_worst: int, least_sd: float) -> list[int]:
    """Positions of the largest R-hat; a parameter that never moves is the worst of all."""
    r_hat = np.full(draws.shape[2], -np.inf)
    moving = draws.std(axis=(0, 1)) >= least_sd
    if not moving.any():
        raise ValueError("X: no class probability of these rows is uncertain; give other rows")
    r_hat[moving] = np.nan_to_num(r_hat_and_ess_bulk(draws[..., moving])[0], nan=np.inf)
    return np.argsort(-r_hat, kind="stable")[: min(n_worst, int(moving.sum()))].tolist()


def _probabilities(model: Any, X: Any) -> tuple[NDArray, list[str]]:
    """Class probabilities under every draw (chains, draws, .), and their names."""
    p = copy(model).set_params(n_predict_draws=None).predict_proba_draws(X)
    labels = list(enumerate(model.classes_))
    if len(labels) == 2:
        p, labels = p[..., 1:], labels[1:]
    names = [f"p({label} | row {row})" for row in range(p.shape[1]) for _, label in labels]
    return p.reshape(len(model.draws_), -1, len(names)), names
