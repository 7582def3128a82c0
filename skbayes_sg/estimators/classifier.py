"""The base of all classifiers: labels, weights and averaged probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Bunch
from sklearn.utils.class_weight import compute_class_weight

from skbayes_sg.data import InMemory
from skbayes_sg.data.passes import row_blocks
from skbayes_sg.estimators.base import BayesianEstimator
from skbayes_sg.estimators.fit_guard import all_or_nothing
from skbayes_sg.estimators.inputs import classes_of, known_classes, require_known
from skbayes_sg.estimators.out_of_core import in_blocks
from skbayes_sg.estimators.predictive import (
    batch_error,
    central_interval,
    entropy,
    keeps_sparse,
    under_each,
    under_some,
)
from skbayes_sg.models import Model
from skbayes_sg.models.categorical import Categorical
from skbayes_sg.posterior import Posterior
from skbayes_sg.priors import Prior
from skbayes_sg.validation import checked_weights, in_dtype, require_integer, require_level

_BLOCK_ROWS = 256  # rows of a prediction block
_SPARSE_ROWS = 1 << 14  # of a prediction block of sparse rows
_BLOCK_BYTES = 1 << 20  # of a prediction block, which decides how many draws: it stays in cache


class BayesianClassifier(ClassifierMixin, BayesianEstimator):
    """Classification by averaging a model's class probabilities over posterior draws."""

    class_weight: dict | str | None
    n_predict_draws: int | None
    classes_: NDArray

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        self._validate_predict_draws()

    def _validate_predict_draws(self) -> None:
        if self.n_predict_draws is not None:
            require_integer("n_predict_draws", self.n_predict_draws, 1, " or None")

    def _weights(
        self, y: NDArray, classes: NDArray, sample_weight: ArrayLike | None
    ) -> NDArray | None:
        """sample_weight times class_weight, or None where all are 1."""
        weight = checked_weights(sample_weight, len(y))
        _require_some("sample_weight", weight)
        if self.class_weight is not None:
            factors = self._class_weights(y[weight > 0], classes)
            weight = weight * factors[np.searchsorted(classes, y)]
            _require_some("class_weight", weight)
        return None if (weight == 1).all() else weight

    def _class_weights(
        self, y: NDArray, classes: NDArray, counts: NDArray | None = None
    ) -> NDArray:
        """Factor of each class; 1 for classes that the dict does not name.

        y are labels of rows, or each label once with its `counts` of rows.
        """
        if isinstance(self.class_weight, dict):
            factors = compute_class_weight(self.class_weight, classes=classes, y=classes)
            if not np.isfinite(factors).all() or factors.min() < 0:
                raise ValueError(
                    f"class_weight must be finite and not negative, got {self.class_weight!r}"
                )
            return factors
        present, factors = np.unique(y), np.ones(len(classes))
        balanced = compute_class_weight(self.class_weight, classes=present, y=y)
        if counts is not None:
            balanced = counts.sum() / (len(counts) * counts)
        factors[np.searchsorted(classes, present)] = balanced
        return factors

    def _bind(
        self, X, y: NDArray, classes: NDArray, weight: NDArray | None, n_total: float | None = None
    ) -> Posterior:
        """Posterior of the model given validated data, without rows of weight 0."""
        codes = np.searchsorted(classes, y)
        if n_total is None and weight is not None and (weight == 0).any():
            kept = np.flatnonzero(weight)
            X, codes, weight = X[kept], codes[kept], weight[kept]
            weight = None if (weight == 1).all() else weight
        if n_total is None and len(np.unique(codes)) < 2:
            raise ValueError(
                "y holds one class only (among rows of positive weight); at least two classes are "
                "needed"
            )
        model = self._make_model(X.shape[1], len(classes))
        if weight is not None:
            weight = in_dtype("sample_weight or class_weight", weight, X.dtype)
        y = model.encode(codes, X.dtype)
        data = InMemory.of(X, y, weight, n_total, model.takes_sparse)
        return Posterior(model, data, self._prior(model, data, classes, n_total is not None))

    def _checked_rows(self, X, y, sample_weight: ArrayLike | None):
        X, y = self._validate_data(X, y, reset=False)
        require_known(y, self.classes_)
        return X, y, self._weights(y, self.classes_, sample_weight)

    def _posterior_of(self, X, y, sample_weight: ArrayLike | None) -> Posterior:
        X, y, weight = self._checked_rows(X, y, sample_weight)
        return self._bind(X, y, self.classes_, weight)

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        """Sample the posterior.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            float32 stays float32. Sparse rows of more than 1,000 columns stay sparse with the
            default sampler, others are made dense one minibatch at a time. A memory map, zarr
            array or HDF5 dataset above 64 MB is read in blocks, and a dask array or data frame
            partition by partition. y and sample_weight may be such arrays too. Networks, and
            samplers given by name, need an array or a memory map.
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
            If data or parameters are impossible; raised before any sampling.
        FloatingPointError
            If a chain diverges.
        """
        self._validate_parameters()
        if self._fitted_in_blocks(X, y, sample_weight):
            return self
        X, y = self._validate_data(X, y)
        classes = classes_of(y)
        posterior = self._bind(X, y, classes, self._weights(y, classes, sample_weight))
        self._run_chains(posterior, X, y, classes_=classes, n_samples_seen_=X.shape[0])
        return self

    def _validate_chunk(self, X, y, classes: ArrayLike | None) -> tuple[Any, NDArray, NDArray]:
        """X, y and all labels that may occur in a stream."""
        self._validate_parameters()
        if isinstance(self.class_weight, str):
            raise ValueError(
                "class_weight: the shares of the classes in a stream are not known; give a dict"
            )
        first = not hasattr(self, "model_")
        X, y = self._validate_data(X, y, reset=first)
        given = None if classes is None else np.asarray(classes)
        return X, y, known_classes(y, given, None if first else self.classes_)

    def _make_model(self, n_features: int, n_classes: int) -> Categorical:
        raise NotImplementedError

    def _prior(
        self, model: Model, data: InMemory, classes: NDArray | None = None, streaming: bool = False
    ) -> Prior:
        """Prior of the parameters."""
        raise NotImplementedError

    # -- predictions --------------------------------------------------------------------------

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
            Columns in the order of `classes_`. For a dask collection this and all other predictions
            are lazy dask arrays.
        """
        X = self._check_predict(X)
        draws, weights = self._flat_draws(X.dtype)
        weights = weights.astype(X.dtype)
        n_outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        step = max(1, _BLOCK_BYTES // (_BLOCK_ROWS * self.model_.widest * X.dtype.itemsize))
        n_rows = _SPARSE_ROWS if keeps_sparse(self.model_, X) else _BLOCK_ROWS
        proba = np.zeros((X.shape[0], n_outputs))
        for start in range(0, X.shape[0], n_rows):
            rows = slice(start, start + n_rows)
            mean = 0.0
            for some, each in under_some(self.model_, draws, X[rows], step):
                mean = mean + weights[some] @ each.reshape(len(each), -1)
            proba[rows] = np.reshape(mean, (n_outputs, -1)).T
        return self._both_classes(proba, axis=1)

    @in_blocks()
    def predict_log_proba(self, X) -> NDArray:
        """Logarithm of `predict_proba`; minus infinity where the probability underflows."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @in_blocks()
    def predict(self, X) -> NDArray:
        """The class of largest averaged probability, shape (n_rows,)."""
        proba = self.predict_proba(X)
        return self.classes_[proba.argmax(axis=1)]

    @in_blocks(axis=1)
    def predict_proba_draws(self, X) -> NDArray:
        """Class probabilities under each draw, shape (draws, n_rows, n_classes).

        Draws in the order of `draws_`, chain by chain: `n_predict_draws` of them, or all. Draws of
        weight 0 are left out. An entry takes 8 bytes.
        """
        X = self._check_predict(X)
        draws, _ = self._flat_draws(X.dtype)
        return np.concatenate(
            [p.transpose(0, 2, 1) for _, p in self._probabilities(X, draws)], axis=1
        )

    @in_blocks()
    def predict_interval(self, X, level: float = 0.9) -> NDArray:
        """Central posterior interval of each class probability.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        level : float in (0, 1), default=0.9
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
            p = under_each(self.model_, draws, X[rows])
            for output in range(n_outputs):
                of_row = np.ascontiguousarray(p[:, output].T)
                ends[rows, output] = central_interval(of_row, level, weights)
        return ends if n_outputs > 1 else np.concatenate([1.0 - ends[..., ::-1], ends], axis=1)

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
            total[rows] = entropy(mean, axis=0)
            aleatoric[rows] = weights @ entropy(p, axis=1)
            error[rows] = batch_error(p - mean, weights, 4 * len(self.draws_)).T
        return Bunch(
            total=total, aleatoric=aleatoric, epistemic=total - aleatoric, standard_error=error
        )

    def _probabilities(self, X, draws: NDArray) -> Iterator[tuple[slice, NDArray]]:
        """Row blocks and their probabilities under every draw, (S, classes, rows) in float64."""
        for rows in row_blocks(X.shape[0], 8 * len(draws) * len(self.classes_), 16 * _BLOCK_BYTES):
            each = under_each(self.model_, draws, X[rows]).astype(np.float64)
            yield rows, self._both_classes(each, axis=1)

    def _both_classes(self, proba: NDArray, axis: int) -> NDArray:
        """Both classes from the output for the second one; more classes are scaled to sum to 1."""
        if len(self.classes_) == 2:
            proba = np.minimum(proba, 1.0)  # an average of ones may round above
            return np.concatenate([1.0 - proba, proba], axis=axis)
        return proba / proba.sum(axis=axis, keepdims=True)


def _require_some(name: str, weight: NDArray) -> None:
    if not (weight > 0).any():
        raise ValueError(
            f"{name} is zero for all rows; at least two classes need a positive weight"
        )
