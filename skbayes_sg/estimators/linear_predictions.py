"""Predictions of linear regression: the mixture over draws of a normal distribution of y."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.checks import require_level
from skbayes_sg.estimators.coefficients import LinearPredictor
from skbayes_sg.estimators.elsewhere import in_blocks
from skbayes_sg.estimators.predictive import mixture_quantile, under_each
from skbayes_sg.rows import row_blocks

_BLOCK_BYTES = 1 << 24


class LinearPredictions(LinearPredictor):
    """A linear regression that predicts; how it is fitted is the subclass's."""

    noise_variance_: float

    @property
    def noise_variance_samples_(self) -> NDArray:
        """Draws of the noise variance, or the given value, (n_chains, n_draws)."""
        given, draws = self.model_.noise_variance, self.draws_
        return np.exp(draws[..., -1]) if given is None else np.full(draws.shape[:2], given)

    @in_blocks()
    def predict(self, X, return_std: bool = False) -> NDArray | tuple[NDArray, NDArray]:
        """Mean and standard deviation of the predictive distribution of y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        return_std : bool, default=False

        Returns
        -------
        mean : array of shape (n_rows,)
        std : array of shape (n_rows,), if `return_std`
            Of a new observation, from the uncertainty of the mean and from the noise.
        """
        X = self._check_predict(X)
        mean = np.asarray(X @ self.coef_).ravel() + self.intercept_
        if not return_std:
            return mean
        variance = np.empty(len(mean))
        _, weights = self._flat_draws(np.dtype(np.float64))
        for rows, centre in self._centres(X):
            variance[rows] = weights @ (centre - mean[rows]) ** 2
        return mean, np.sqrt(variance + self.noise_variance_)

    @in_blocks()
    def predict_interval(self, X, level: float = 0.9) -> NDArray:
        """Central interval that holds a new observation with probability `level`.

        Its ends are quantiles of the predictive distribution, which is the mixture of the normal
        distributions of all draws. Of a Pipeline it is
        ``pipeline[-1].predict_interval(pipeline[:-1].transform(X))``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        level : float in (0, 1), default=0.9

        Returns
        -------
        array of shape (n_rows, 2)
            Lower and upper end.

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1.
        """
        require_level(level)
        X = self._check_predict(X)
        scale = np.sqrt(self.noise_variance_samples_).reshape(-1, 1)
        _, weights = self._flat_draws(np.dtype(np.float64))
        ends = np.empty((X.shape[0], 2))
        for rows, centre in self._centres(X):
            for side, q in enumerate(((1 - level) / 2, (1 + level) / 2)):
                ends[rows, side] = mixture_quantile(q, weights, centre, scale)
        return ends

    def _centres(self, X):
        """Row blocks and their mean under every draw, (S, rows)."""
        draws = self._flat_draws(np.dtype(np.float64))[0]
        for rows in row_blocks(X.shape[0], 8 * len(draws), _BLOCK_BYTES):
            block = X[rows].astype(np.float64, copy=False)
            yield rows, under_each(self.model_, draws, block)[:, 0]
