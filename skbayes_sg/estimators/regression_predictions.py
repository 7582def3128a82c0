"""Predictions of linear regression: normal given the noise variance, a mixture over its draws."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_blas_funcs

from skbayes_sg.data.passes import row_blocks
from skbayes_sg.estimators.out_of_core import in_blocks
from skbayes_sg.estimators.predictive import keeps_sparse, scale_mixture_quantile
from skbayes_sg.estimators.regressor import Regressor
from skbayes_sg.linalg.products import dense
from skbayes_sg.validation import require_level

_BLOCK_BYTES = 1 << 18  # stays in cache


class LinearPredictions(Regressor):
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
        if not return_std:
            return np.asarray(X @ self.coef_).ravel() + self.intercept_
        mean, square = self._response(X, np.ones(1))
        return mean, np.sqrt(square + self.noise_variance_)

    @in_blocks()
    def predict_interval(self, X, level: float = 0.95) -> NDArray:
        """Central interval that holds a new observation with probability `level`.

        Given the noise variance the posterior of the coefficients is normal, and so is y. The ends
        are quantiles of the mixture of these distributions over the draws of the noise variance.
        Source: math/monte_carlo.md#predictive-intervals. Of a Pipeline it is
        ``pipeline[-1].predict_interval(pipeline[:-1].transform(X))``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        level : float in (0, 1), default=0.95

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
        noise = np.sqrt(self.noise_variance_samples_).ravel()
        _, weights = self._flat_draws(np.dtype(np.float64))
        mean, square = self._response(X, noise)
        half = np.sqrt(1 + square) * scale_mixture_quantile(0.5 + 0.5 * level, weights, noise)
        return np.column_stack([mean - half, mean + half])

    def _response(self, X, scale: NDArray) -> tuple[NDArray, NDArray]:
        """The mean of y without noise, and mean square of (its draws - mean) / scale, (n_rows,).

        The square is the squared length of root x + shift, plus rest. Among many rows the root is
        triangular, so that a row costs as much as half a product with a matrix of D x D.
        """
        _, weights = self._flat_draws(np.dtype(np.float64))
        factor = (np.sqrt(weights) / scale)[:, None]
        root = self.coef_samples_.reshape(-1, X.shape[1]) - self.coef_
        shift = self.intercept_samples_.reshape(-1, 1) - self.intercept_
        root, shift, rest = root * factor, shift * factor, 0.0
        times: Callable[[NDArray], NDArray] = partial(np.matmul, root)
        if root.shape[1] < min(len(root), X.shape[0]):
            R = np.asarray(np.linalg.qr(np.hstack([root, shift]), mode="r"))
            root, shift, rest = R[:-1, :-1], R[:-1, -1:], float(R[-1, -1]) ** 2
            times = partial(get_blas_funcs("trmm", (root,)), 1.0, root)
        mean, square = np.empty((2, X.shape[0]))
        sparse = keeps_sparse(self.model_, X)
        row_size = 8 * (len(root) if sparse else max(root.shape))
        for rows in row_blocks(X.shape[0], row_size, _BLOCK_BYTES):
            block = (X[rows] if sparse else dense(X[rows])).astype(np.float64, copy=False)
            mean[rows] = block @ self.coef_ + self.intercept_
            z = (block @ root.T).T if sparse else times(block.T)
            z += shift
            square[rows] = np.vecdot(z.T, z.T) + rest
        return mean, square
