"""Labels, weights and averaged probabilities: what all classifiers share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Bunch
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from skbayes_sg.estimators.checks import checked_weights, dense, in_dtype, require_integer, require_positive
from skbayes_sg.estimators.stream import StreamingEstimator, population
from skbayes_sg.posterior import Posterior
from skbayes_sg.rows import row_blocks

_BLOCK_ROWS = 256  # rows of a prediction block; draws are taken so many at a time that it stays in cache
_BLOCK_BYTES = 1 << 20


class BayesianClassifier(ClassifierMixin, StreamingEstimator):
    """Classification by averaging a model's class probabilities over posterior draws."""

    class_weight: dict | str | None
    n_predict_draws: int | None
    classes_: NDArray

    # -- data ---------------------------------------------------------------------------------------

    def _validate_run_length(self) -> None:
        super()._validate_run_length()
        self._validate_predict_draws()

    def _validate_predict_draws(self) -> None:
        if self.n_predict_draws is not None:
            require_integer("n_predict_draws", self.n_predict_draws, 1, " or None")

    def _weights(self, y: NDArray, sample_weight: ArrayLike | None) -> NDArray | None:
        """sample_weight times class_weight, or None where all are 1."""
        weight = checked_weights(sample_weight, len(y))
        if not (weight > 0).any():
            raise ValueError("sample_weight is zero for all rows; at least two classes need a positive weight")
        if self.class_weight is not None:
            weight = weight * self._class_weights(y, weight > 0)[np.searchsorted(self.classes_, y)]
            if not (weight > 0).any():
                raise ValueError("class_weight is zero for all rows; at least two classes need a positive weight")
        return None if (weight == 1).all() else weight

    def _class_weights(self, y: NDArray, used: NDArray) -> NDArray:
        """Factor of each class; classes that the dict does not name have 1."""
        if isinstance(self.class_weight, dict):
            factors = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)
            if not np.isfinite(factors).all() or factors.min() < 0:
                raise ValueError(f"class_weight must be finite and not negative, got {self.class_weight!r}")
            return factors
        present = np.unique(y[used])
        factors = np.ones(len(self.classes_))
        factors[np.searchsorted(self.classes_, present)] = compute_class_weight(
            self.class_weight, classes=present, y=y[used]
        )
        return factors

    def _bind(self, X, y: NDArray, weight: NDArray | None, n_total: float | None = None) -> Posterior:
        """Posterior of the model given validated data; rows of weight 0 are not in it."""
        codes = np.searchsorted(self.classes_, y)
        if n_total is None and weight is not None and (weight == 0).any():
            kept = np.flatnonzero(weight)
            X, codes, weight = X[kept], codes[kept], weight[kept]
            weight = None if (weight == 1).all() else weight
        if n_total is None and len(np.unique(codes)) < 2:
            raise ValueError("y holds one class only (among rows of positive weight); at least two classes are needed")
        self.model_ = self._make_model(X.shape[1], len(self.classes_))
        if weight is not None:
            weight = in_dtype("sample_weight or class_weight", weight, X.dtype)
        return Posterior(self.model_, X, self.model_.encode(codes, X.dtype), self._prior(X, weight), weight, n_total)

    def _posterior_of(self, X, y, sample_weight: ArrayLike | None) -> Posterior:
        X, y = self._validate_data(X, y, reset=False)
        if not np.isin(y, self.classes_).all():
            raise ValueError(f"y holds {np.setdiff1d(y, self.classes_)!r}, which is not among the classes of the fit")
        return self._bind(X, y, self._weights(y, sample_weight))

    def fit(self, X, y, sample_weight=None):
        """Sample the posterior.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            float32 stays float32; sparse rows are made dense one minibatch at a time.
        y : array-like of shape (n_rows,)
            Labels, strings or numbers, of at least two classes.
        sample_weight : array-like of shape (n_rows,), optional
            Factor of each row's log likelihood; an integer weight is a repetition.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For impossible data or parameters, before any sampling.
        FloatingPointError
            If a chain diverges.
        """
        self._validate_run_length()
        X, y = self._validate_data(X, y)
        self.classes_, self._stream = self._classes_of(y), None
        posterior = self._bind(X, y, self._weights(y, sample_weight))
        self._sample(posterior)
        self._read_off(self._with_learned_prior(posterior))
        self.n_rows_seen_ = X.shape[0]
        return self

    def partial_fit(self, X, y, classes=None, n_total: float | None = None):
        """Move one chain along a stream of data, one step per `batch_size` rows of this chunk.

        The chunks of all calls must be independent random samples of one population: a file read
        in order, or epoch after epoch, makes the variances too small. One chain only, as chains fed
        the same rows would coalesce. The last `n_draws` points after burn-in are kept, each `thin`
        steps apart; until burn-in is over (ten passes over `n_total` rows by default) the present point alone
        predicts. One pass is worth about one effective draw: `fit` on a memory-mapped X is the better way
        where it can be had.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            At least two rows.
        y : array-like of shape (n_rows,)
        classes : array-like, required in the first call
            All labels that may occur.
        n_total : float, optional
            Rows of the population: the scale of the likelihood, the same in every call. By default the rows
            seen so far, this chunk included: then the posterior narrows with the stream, the automatic
            burn-in never ends, and what predicts is a point that follows the mode.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For impossible data or parameters, before any step.
        FloatingPointError
            If the chain diverges.
        """
        self._validate_run_length()
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight: the shares of the classes in a stream are not known; give a dict")
        first = not hasattr(self, "draws_")
        X, y = self._validate_data(X, y, reset=first)
        if first and classes is None:
            raise ValueError("classes must be given in the first call of partial_fit: all labels that may occur")
        known = self._classes_of(np.asarray(classes)) if first else self.classes_
        if classes is not None and not np.array_equal(np.unique(classes), known):
            raise ValueError(f"classes={classes!r} are not those of the first call, {known!r}")
        if not np.isin(y, known).all():
            raise ValueError(f"y holds {np.setdiff1d(y, known)!r}, which is not among the classes {known!r}")
        seen = (0 if first else self.n_rows_seen_) + X.shape[0]
        total = population(n_total, X.shape[0], seen)
        self.classes_ = known
        posterior = self._bind(X, y, self._weights(y, None), total)
        self._follow(posterior)
        self.n_rows_seen_ = seen
        self._read_off(posterior)
        return self

    def _read_off(self, posterior: Posterior) -> None:
        """Set the attributes that are read off the draws."""
        raise NotImplementedError

    def _make_model(self, n_features: int, n_classes: int):
        raise NotImplementedError

    def _prior(self, X, weight: NDArray | None) -> NDArray:
        """Prior precision of every parameter."""
        raise NotImplementedError

    @staticmethod
    def _classes_of(y: NDArray) -> NDArray:
        """The labels, sorted."""
        check_classification_targets(y)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(f"y holds one class only, {classes[0]!r}; at least two classes are needed")
        return classes

    # -- predictions --------------------------------------------------------------------------------

    def _flat_draws(self, dtype: np.dtype) -> tuple[NDArray, NDArray]:
        """The draws that predict (S, D), `n_predict_draws` of them evenly spaced, and their weights, summing to 1."""
        draws, weights = super()._flat_draws(dtype)
        if not weights.all():
            draws, weights = draws[weights > 0], weights[weights > 0]
        self._validate_predict_draws()
        if self.n_predict_draws is None or self.n_predict_draws >= len(draws):
            return draws, weights
        some = np.linspace(0, len(draws) - 1, self.n_predict_draws).round().astype(int)
        return draws[some], weights[some] / weights[some].sum()

    def predict_proba(self, X) -> NDArray:
        """Class probabilities, averaged over posterior draws.

        Their Monte Carlo error is about the posterior standard deviation of the probability over the square root
        of the effective number of draws; `predict_uncertainty` gives it for each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows, n_classes)
            Columns in the order of `classes_`.
        """
        X = self._check_predict(X)
        draws, weights = self._flat_draws(X.dtype)
        weights = weights.astype(X.dtype)
        n_outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        step = max(1, _BLOCK_BYTES // (_BLOCK_ROWS * self.model_.widest * X.dtype.itemsize))
        proba = np.zeros((X.shape[0], n_outputs))
        for start in range(0, X.shape[0], _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            block = dense(X[rows])
            mean = 0.0
            for first in range(0, len(draws), step):
                some = slice(first, first + step)
                each = self.model_.predict(draws[some], block)
                mean = mean + weights[some] @ each.reshape(len(each), -1)
            proba[rows] = np.reshape(mean, (n_outputs, -1)).T
        return self._both_classes(proba, axis=1)

    def predict_log_proba(self, X) -> NDArray:
        """Logarithm of `predict_proba`; minus infinity where that underflows."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X) -> NDArray:
        """The class of largest averaged probability, shape (n_rows,)."""
        proba = self.predict_proba(X)
        return self.classes_[proba.argmax(axis=1)]

    def predict_proba_draws(self, X) -> NDArray:
        """Class probabilities under each draw, shape (n_chains * n_draws or n_predict_draws, n_rows, n_classes).

        Chain by chain in the order of `draws_`, without those of weight 0. Memory: 8 bytes an entry.
        """
        X = self._check_predict(X)
        draws, _ = self._flat_draws(X.dtype)
        return np.concatenate([p.transpose(0, 2, 1) for _, p in self._probabilities(X, draws)], axis=1)

    def predict_interval(self, X, level: float = 0.9) -> NDArray:
        """Central posterior interval of each class probability.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        level : float in (0, 1), default=0.9
            Posterior probability that the interval holds.

        Returns
        -------
        array of shape (n_rows, n_classes, 2)
            Lower and upper end.
        """
        require_positive("level", level, "give a probability such as 0.9")
        if level >= 1:
            raise ValueError(f"level must be below 1, got {level}; give a probability such as 0.9")
        X = self._check_predict(X)
        ends = np.empty((X.shape[0], len(self.classes_), 2))
        draws, weights = self._flat_draws(X.dtype)
        for rows, p in self._probabilities(X, draws):
            for end, q in enumerate([(1 - level) / 2, (1 + level) / 2]):
                ends[rows, :, end] = _quantile(p, q, weights).T
        return ends

    def predict_uncertainty(self, X) -> Bunch:
        """How unsure a prediction is, and why, in nats; and how well the draws determine it.

        Returns
        -------
        sklearn.utils.Bunch of arrays of shape (n_rows,)
            ``total``: entropy of the averaged probabilities; ``aleatoric``: averaged entropy, which
            more data cannot remove; ``epistemic``: their difference, what the parameters' uncertainty
            adds (the mutual information of label and parameters). ``standard_error`` (n_rows, n_classes): Monte
            Carlo error of the averaged probabilities, from the spread of batches of consecutive draws, four per
            chain; NaN for fewer than 8 draws.
        """
        X = self._check_predict(X)
        total, aleatoric = np.empty(X.shape[0]), np.empty(X.shape[0])
        error = np.empty((X.shape[0], len(self.classes_)))
        draws, weights = self._flat_draws(X.dtype)
        for rows, p in self._probabilities(X, draws):
            mean = np.tensordot(weights, p, axes=1)
            total[rows] = _entropy(mean, axis=0)
            aleatoric[rows] = weights @ _entropy(p, axis=1)
            error[rows] = _batch_error(p - mean, weights, 4 * len(self.draws_)).T
        return Bunch(total=total, aleatoric=aleatoric, epistemic=total - aleatoric, standard_error=error)

    def _probabilities(self, X, draws: NDArray) -> Iterator[tuple[slice, NDArray]]:
        """Row blocks and their probabilities under every draw, (S, classes, rows) in float64."""
        for rows in row_blocks(X.shape[0], 8 * len(draws) * len(self.classes_), 16 * _BLOCK_BYTES):
            each = self.model_.predict(draws, dense(X[rows])).astype(np.float64)
            yield rows, self._both_classes(each, axis=1)

    def _both_classes(self, proba: NDArray, axis: int) -> NDArray:
        """A model with one output gives the second class; the first has the rest. Others sum to 1 exactly."""
        if len(self.classes_) == 2:
            proba = np.minimum(proba, 1.0)  # an average of ones may round above
            return np.concatenate([1.0 - proba, proba], axis=axis)
        return proba / proba.sum(axis=axis, keepdims=True)


def _batch_error(deviation: NDArray, weights: NDArray, n_batches: int) -> NDArray:
    """Standard error of a weighted mean over axis 0 from batch means; NaN for fewer than two draws a batch."""
    if len(weights) < 2 * n_batches:
        n_batches = len(weights) // 2
    if n_batches < 4:
        return np.full(deviation.shape[1:], np.nan)
    batches = np.array_split(np.arange(len(weights)), n_batches)
    square = sum(np.tensordot(weights[batch], deviation[batch], axes=1) ** 2 for batch in batches)
    return np.sqrt(square * (n_batches / (n_batches - 1)))


def _entropy(p: NDArray, axis: int) -> NDArray:
    return -np.sum(p * np.log(np.maximum(p, np.finfo(p.dtype).tiny)), axis=axis)


def _quantile(p: NDArray, q: float, weights: NDArray) -> NDArray:
    """Quantile over axis 0; interpolated for equal weights, of the weighted sample otherwise."""
    if np.ptp(weights) == 0:
        return np.quantile(p, q, axis=0)
    return np.quantile(p, q, axis=0, weights=weights, method="inverted_cdf")
