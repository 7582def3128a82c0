"""Predictions of classifiers: probabilities averaged over draws, their logarithms and spread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr
from sklearn.utils import Bunch

from skbayes_sg.data.passes import row_blocks
from skbayes_sg.estimators.base import BayesianEstimator
from skbayes_sg.estimators.out_of_core import in_blocks
from skbayes_sg.linalg.memory import elements_at_a_time
from skbayes_sg.linalg.products import dense
from skbayes_sg.models import Model
from skbayes_sg.models.base import Classification
from skbayes_sg.validation import require_integer, require_level

_BLOCK_ROWS = 256  # rows of a prediction block
_SPARSE_ROWS = 1 << 14  # of a prediction block of sparse rows
_BLOCK_BYTES = 1 << 20  # of a prediction block, which decides how many draws: it stays in cache


class ClassPredictions(BayesianEstimator):
    """A classifier that predicts; what it is fitted to is the subclass's.

    Averages over draws are computed in double precision, and results are in that of X.
    """

    n_predict_draws: int | None
    classes_: NDArray

    def _validate_predict_draws(self) -> None:
        if self.n_predict_draws is not None:
            require_integer("n_predict_draws", self.n_predict_draws, 1, " or None")

    def _flat_draws(self, dtype: np.dtype) -> tuple[NDArray, NDArray]:
        """`n_predict_draws` draws (S, D), evenly spaced, and their weights, which sum to 1."""
        draws, weights = super()._flat_draws(dtype)
        if not weights.all():
            draws, weights = draws[weights > 0], weights[weights > 0]
        self._validate_predict_draws()
        if self.n_predict_draws is None or self.n_predict_draws >= len(draws):
            return draws, weights
        some = np.linspace(0, len(draws) - 1, self.n_predict_draws).round().astype(int)
        return draws[some], weights[some] / weights[some].sum()

    @in_blocks()
    def predict_proba(self, X) -> NDArray:
        """Class probabilities, averaged over posterior draws.

        The Monte Carlo error of a probability is about its posterior standard deviation over the
        square root of the effective number of draws. `predict_uncertainty` gives it for each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows, n_classes)
            Columns in the order of `classes_`. Of float32 rows this and all other predictions are
            float32. For a dask collection they are lazy dask arrays.
        """
        X = self._check_predict(X)
        proba, least = self._averaged(X), np.finfo(X.dtype).tiny  # none is rounded to 0
        for rows, log_proba in self._below(least, proba, X):
            exact = np.maximum(np.exp(log_proba), least)
            proba[rows] = np.where(proba[rows] < least, exact, proba[rows])
        return proba.astype(X.dtype, copy=False)

    def _averaged(self, X) -> NDArray:
        """Averaged probabilities of validated rows."""
        draws, weights = self._flat_draws(X.dtype)
        weights = weights.astype(X.dtype)
        n_outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        step = max(1, _BLOCK_BYTES // (_BLOCK_ROWS * self.model_.widest * X.dtype.itemsize))
        n_rows = _SPARSE_ROWS if self.model_.keeps_sparse(X) else _BLOCK_ROWS
        proba = np.zeros((X.shape[0], n_outputs))
        for rows in row_blocks(X.shape[0], 1, n_rows):
            mean = 0.0
            for some, each in _under_some(self.model_, draws, X[rows], step):
                mean = mean + weights[some] @ each.reshape(len(each), -1)
            proba[rows] = np.reshape(mean, (n_outputs, -1)).T
        return self._both_classes(proba)

    @in_blocks()
    def predict_log_proba(self, X) -> NDArray:
        """Logarithm of `predict_proba`, finite also where a probability rounds to 0."""
        X = self._check_predict(X)
        return self._log_averaged(X).astype(X.dtype, copy=False)

    def _log_averaged(self, X) -> NDArray:
        """Logarithms of averaged probabilities of validated rows, in double precision."""
        proba, least = self._averaged(X), np.sqrt(np.finfo(X.dtype).eps)
        log_proba = np.log(np.maximum(proba, least))
        # below `least`, 1 - p has lost half of its digits; at most log(least) keeps the order
        for rows, exact in self._below(least, proba, X):
            exact = np.minimum(exact, np.log(least))
            log_proba[rows] = np.where(proba[rows] < least, exact, log_proba[rows])
        return log_proba

    def _below(self, least: float, proba: NDArray, X) -> Iterator[tuple[NDArray, NDArray]]:
        """Rows that have a probability below `least`, and logarithms that no rounding touched."""
        draws, weights = self._flat_draws(X.dtype)
        tail = np.flatnonzero((proba < least).any(axis=1))
        for block in row_blocks(len(tail), 8 * len(draws) * proba.shape[1], 16 * _BLOCK_BYTES):
            rows = tail[block]
            yield rows, _log_average(self.model_, draws, weights, X[rows])

    @in_blocks()
    def decision_function(self, X) -> NDArray:
        """Averaged probabilities as scores without bounds, in the order of `predict_proba`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,) or (n_rows, n_classes)
            Of two classes log(p / (1 - p)), where p is the averaged probability of ``classes_[1]``;
            it is positive where that is predicted. Of more, the logarithms of `predict_proba`, of
            which the largest is predicted.

        Notes
        -----
        It is not the average of the logits over draws: where draws disagree that is as a rule
        further from 0, and in another order. Scores are finite, and tell rows apart whose
        probabilities are rounded to the same number near 0 or 1.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.preprocessing import scale
        >>> from skbayes_sg import BayesianLogisticRegressionSGFS
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = BayesianLogisticRegressionSGFS(random_state=0).fit(scale(X), y)
        >>> score, p = model.decision_function(scale(X)), model.predict_proba(scale(X))[:, 1]
        >>> bool(np.allclose(1 / (1 + np.exp(-score)), p))
        True
        """
        X = self._check_predict(X)
        log_proba = self._log_averaged(X)
        score = log_proba[:, 1] - log_proba[:, 0] if len(self.classes_) == 2 else log_proba
        return score.astype(X.dtype, copy=False)

    @in_blocks()
    def predict(self, X) -> NDArray:
        """The class of largest averaged probability, shape (n_rows,)."""
        proba = self.predict_proba(X)
        return self.classes_[proba.argmax(axis=1)]

    @in_blocks(axis=1)
    def predict_proba_draws(self, X) -> NDArray:
        """Class probabilities under each draw, shape (draws, n_rows, n_classes).

        Draws in the order of `draws_`, chain by chain: `n_predict_draws` of them, or all. Draws of
        weight 0 are left out. An entry takes 8 bytes, and 4 of float32 rows.
        """
        X = self._check_predict(X)
        draws, _ = self._flat_draws(X.dtype)
        parts = [p.astype(X.dtype, copy=False) for _, p in self._probabilities(X, draws)]
        return np.concatenate([p.transpose(0, 2, 1) for p in parts], axis=1)

    @in_blocks()
    def predict_interval(self, X, level: float = 0.95) -> NDArray:
        """Central posterior interval of each class probability.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        level : float in (0, 1), default=0.95
            Posterior probability of the interval.

        Returns
        -------
        array of shape (n_rows, n_classes, 2)
            Lower and upper end.

        Examples
        --------
        A Pipeline forwards `predict` and `predict_proba` alone. Its other steps transform the rows:

        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.preprocessing import StandardScaler
        >>> from skbayes_sg import BayesianLogisticRegressionSGFS
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = BayesianLogisticRegressionSGFS(random_state=0)
        >>> pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
        >>> pipeline[-1].predict_interval(pipeline[:-1].transform(X[:3])).shape
        (3, 2, 2)
        """
        require_level(level)
        X = self._check_predict(X)
        draws, weights = self._flat_draws(X.dtype)
        n_outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        ends = np.empty((X.shape[0], n_outputs, 2))
        for rows in row_blocks(X.shape[0], X.dtype.itemsize * len(draws), _BLOCK_BYTES):
            p = _under_each(self.model_, draws, X[rows])
            ends[rows] = central_interval(p.transpose(2, 1, 0), level, weights)
        both = ends if n_outputs > 1 else np.concatenate([1.0 - ends[..., ::-1], ends], axis=1)
        return both.astype(X.dtype, copy=False)

    @in_blocks()
    def predict_uncertainty(self, X) -> Bunch:
        """Uncertainty of a prediction by cause, in nats, and its Monte Carlo error.

        Returns
        -------
        sklearn.utils.Bunch of arrays of shape (n_rows,)
            ``total``: entropy of the averaged probabilities. ``aleatoric``: averaged entropy, which
            more data cannot remove. ``epistemic``: their difference, which comes from the
            parameters (mutual information of label and parameters). ``standard_error`` (n_rows,
            n_classes): Monte Carlo error of the averaged probabilities, from the spread of batches
            of consecutive draws, four per chain; NaN for fewer than 8 draws.

        Notes
        -----
        The epistemic part is the doubt that the model has about itself. Rows far from those of the
        fit can have less of it than rows near by, where all draws agree on how to go on. Networks
        at a temperature below 1, and those of relu units at any, are often so
        (networks.md#far-from-the-rows). Check the range of the columns beside it.
        """
        X = self._check_predict(X)
        total, aleatoric = np.empty(X.shape[0]), np.empty(X.shape[0])
        error = np.empty((X.shape[0], len(self.classes_)))
        draws, weights = self._flat_draws(X.dtype)
        for rows, p in self._probabilities(X, draws):
            mean = np.tensordot(weights, p, axes=1)
            mean /= mean.sum(axis=0)  # which is 1 but for rounding; the entropy of more is negative
            total[rows] = entr(mean).sum(axis=0)
            aleatoric[rows] = weights @ entr(p).sum(axis=1)
            error[rows] = _batch_error(p - mean, weights, 4 * len(self.draws_)).T
        # the entropy of a mean is at least the mean entropy: what is below 0 is rounding
        epistemic = np.maximum(total - aleatoric, 0.0)
        found = {"total": total, "aleatoric": aleatoric, "epistemic": epistemic}
        found["standard_error"] = error
        return Bunch(**{name: each.astype(X.dtype, copy=False) for name, each in found.items()})

    def _probabilities(self, X, draws: NDArray) -> Iterator[tuple[slice, NDArray]]:
        """Row blocks and their probabilities under every draw, (S, classes, rows) in float64."""
        for rows in row_blocks(X.shape[0], 8 * len(draws) * len(self.classes_), 16 * _BLOCK_BYTES):
            each = _under_each(self.model_, draws, X[rows]).astype(np.float64)
            yield rows, self._both_classes(each)

    def _both_classes(self, proba: NDArray) -> NDArray:
        """Both classes, on axis 1, from the second one; more classes are scaled to sum to 1."""
        if len(self.classes_) == 2:
            # none is above 1, and weights sum to 1 but for rounding: so much is what is cut off
            proba = np.minimum(proba, 1.0)
            return np.concatenate([1.0 - proba, proba], axis=1)
        return proba / proba.sum(axis=1, keepdims=True)


def _under_some(model: Model, draws: NDArray, X: Any, step: int) -> Iterator[tuple[slice, NDArray]]:
    """Predictions of a block of rows under up to `step` draws at a time, (draws, outputs, n)."""
    if model.keeps_sparse(X):
        step = max(1, elements_at_a_time() // draws.shape[1])
    else:
        X = dense(X)
    for some in row_blocks(len(draws), 1, step):
        yield some, model.predict(draws[some], X)


def _under_each(model: Model, draws: NDArray, X: Any) -> NDArray:
    """Predictions of a block of rows under every draw, (S, outputs, n)."""
    if not model.keeps_sparse(X):
        return model.predict(draws, dense(X))
    return np.concatenate([each for _, each in _under_some(model, draws, X, len(draws))])


def _log_average(model: Classification, draws: NDArray, weights: NDArray, X: Any) -> NDArray:
    """Logarithms of averaged class probabilities, (n, classes), finite where these underflow."""
    X = X if model.keeps_sparse(X) else dense(X)
    blocks = row_blocks(len(draws), draws.shape[1], elements_at_a_time())
    each = np.concatenate([model.log_predict(draws[some], X) for some in blocks])
    largest = each.max(axis=0)
    each -= largest
    np.exp(each, out=each)
    return (largest + np.log(np.tensordot(weights, each, axes=1))).T


def _batch_error(deviation: NDArray, weights: NDArray, n_batches: int) -> NDArray:
    """Standard error of a weighted mean over axis 0, by batch means; NaN for fewer than 8 draws."""
    if len(weights) < 2 * n_batches:
        n_batches = len(weights) // 2
    if n_batches < 4:
        return np.full(deviation.shape[1:], np.nan)
    batches = np.array_split(np.arange(len(weights)), n_batches)
    square = sum(np.tensordot(weights[batch], deviation[batch], axes=1) ** 2 for batch in batches)
    return np.sqrt(square * (n_batches / (n_batches - 1)))


def central_interval(samples: NDArray, level: float, weights: NDArray) -> NDArray:
    """Ends (..., 2) of the central interval of samples (..., S).

    For equal weights the quantiles are interpolated between two samples. Otherwise they are
    samples: the first at which the sum of the weights reaches the probability.
    """
    q = np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level])
    how: dict[str, Any] = {"weights": weights, "method": "inverted_cdf"} if np.ptp(weights) else {}
    return np.moveaxis(np.quantile(samples, q, axis=-1, **how), 0, -1)
