"""Predictions of regressions: mixtures, over draws of the posterior, of distributions of y."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize.elementwise import find_root

from skbayes_sg.data.passes import row_blocks
from skbayes_sg.estimators.base import BayesianEstimator
from skbayes_sg.estimators.out_of_core import in_blocks
from skbayes_sg.linalg.memory import elements_at_a_time
from skbayes_sg.linalg.products import dense
from skbayes_sg.models.response import Response
from skbayes_sg.validation import require_level

_OF_INTERVALS = 500  # draws: what is left of their spread is small beside that of y
_OF_AN_END = 1e-6  # relative error of the probability outside an interval


class MixturePredictions(BayesianEstimator):
    """A regression that predicts; its model is a `Response`."""

    @in_blocks()
    def predict(self, X, return_std: bool = False) -> NDArray | tuple[NDArray, NDArray]:
        """Posterior mean of the mean of y, and the standard deviation of a new y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        return_std : bool, default=False

        Returns
        -------
        mean : array of shape (n_rows,), or (n_rows, n_responses) if y had several columns
        std : array like `mean`, if `return_std`
            Of a new observation, from the uncertainty of the mean and the distribution of y given
            it.
        """
        X = self._check_predict(X)
        draws, weights = self._flat_draws(np.dtype(np.float64))
        each = outputs_of(self.model_, X, draws)
        if not return_std:
            return self._of_rows([weights @ self.model_.mean(outputs) for outputs in each])
        moments = [mixture_moments(self.model_, outputs, weights) for outputs in each]
        mean, sd = (self._of_rows(list(parts)) for parts in zip(*moments, strict=True))
        return mean, sd

    @in_blocks()
    def predict_interval(self, X, level: float = 0.95) -> NDArray:
        """Central interval that holds a new observation with probability `level`.

        The ends are quantiles of the mixture, over draws of the posterior, of the distributions of
        y. Of counts the probability is at least `level`. Of a Pipeline it is
        ``pipeline[-1].predict_interval(pipeline[:-1].transform(X))``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        level : float in (0, 1), default=0.95

        Returns
        -------
        array of shape (n_rows, 2), or (n_rows, n_responses, 2) if y had several columns
            Lower and upper end.

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1.
        """
        require_level(level)
        X = self._check_predict(X)
        draws, weights = self._flat_draws(np.dtype(np.float64))
        return self._of_rows(list(mixture_intervals(self.model_, X, draws, weights, level)))

    def _of_rows(self, parts: list[NDArray]) -> NDArray:
        """Predictions of all blocks of rows, one for each row."""
        return np.concatenate(parts)


def outputs_of(model: Any, X, draws: NDArray) -> Iterator[NDArray]:
    """Outputs of blocks of rows under the draws, (draws, outputs, n)."""
    for rows in row_blocks(X.shape[0], 8 * len(draws) * model.widest, 8 * elements_at_a_time()):
        block = X[rows] if model.keeps_sparse(X) else dense(X[rows])
        yield model.outputs(draws, block.astype(np.float64, copy=False))


def mixture_intervals(
    model: Any, X, draws: NDArray, weights: NDArray, level: float
) -> Iterator[NDArray]:
    """Central intervals (n, 2) of y in blocks of rows, of the mixture over some hundred draws."""
    (some,) = np.nonzero(weights)
    some = some[np.linspace(0, len(some) - 1, min(len(some), _OF_INTERVALS)).astype(int)]
    weights = weights[some] / weights[some].sum()
    for outputs in outputs_of(model, X, draws[some]):
        yield mixture_quantiles(model, outputs, weights, level)


def mixture_moments(model: Response, outputs: NDArray, weights: NDArray) -> tuple[NDArray, NDArray]:
    """Mean and standard deviation of the mixture of distributions of y, (n,) each."""
    each = model.mean(outputs)
    mean = weights @ each
    return mean, np.sqrt(weights @ (model.variance(outputs) + (each - mean) ** 2))


def mixture_quantiles(model: Response, outputs: NDArray, weights: NDArray, level: float) -> NDArray:
    """Ends (n, 2) of the central interval of a mixture of distributions of y, (draws, outputs, n).

    Of counts an end is the first number at which the distribution function reaches its probability.
    """
    each = model.mean(outputs)
    mean = weights @ each
    width = np.sqrt(weights @ (model.width(outputs) ** 2 + (each - mean) ** 2))

    def short_of(y: NDArray, rows: NDArray, q: NDArray) -> NDArray:
        return weights @ model.distribution(y, outputs[:, :, rows]) - q

    ends, rows = np.empty((len(mean), 2)), np.arange(len(mean))
    tolerance = (
        {"xatol": 0.25, "xrtol": 0.0} if model.counts else {"fatol": _OF_AN_END * (1 - level)}
    )
    for end, side in zip(ends.T, (-0.5, 0.5), strict=True):
        q = np.full(len(mean), 0.5 + side * level)
        low, high = mean - 2 * width, mean + 2 * width + 1.0 * model.counts
        while (reached := short_of(low, rows, q) >= 0).any():
            low = np.where(reached, 2 * low - mean, low)
        while (short := short_of(high, rows, q) < 0).any():
            high = np.where(short, 2 * high - mean, high)
        found = find_root(short_of, (low, high), args=(rows, q), tolerances=tolerance)
        end[:] = np.floor(found.bracket[1]) if model.counts else found.x
    return ends
