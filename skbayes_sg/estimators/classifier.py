"""The base of all classifiers: labels and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_class_weight

from skbayes_sg.data import InMemory, at_hand
from skbayes_sg.estimators.class_predictions import ClassPredictions
from skbayes_sg.estimators.fit_guard import all_or_nothing
from skbayes_sg.estimators.inputs import classes_of, known_classes, require_known
from skbayes_sg.models import Model
from skbayes_sg.models.categorical import Classification
from skbayes_sg.posterior import Posterior
from skbayes_sg.priors import Prior
from skbayes_sg.validation import checked_weights, in_dtype


class BayesianClassifier(ClassifierMixin, ClassPredictions):
    """Classification by averaging a model's class probabilities over posterior draws."""

    class_weight: dict | str | None

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        self._validate_predict_draws()

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
        model = self._make_model(X.shape[1], classes)
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

    def score(self, X, y, sample_weight=None) -> float:
        """Accuracy.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Or a dask collection, whose predictions are computed partition by partition.
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
        """
        y, predicted, weight = at_hand(y, self.predict(X), sample_weight)
        return float(accuracy_score(y, predicted, sample_weight=weight))

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

    def _make_model(self, n_features: int, classes: NDArray) -> Classification:
        """The model of so many columns and of these classes, which are sorted."""
        raise NotImplementedError

    def _prior(
        self, model: Model, data: InMemory, classes: NDArray | None = None, streaming: bool = False
    ) -> Prior:
        """Prior of the parameters."""
        raise NotImplementedError


def _require_some(name: str, weight: NDArray) -> None:
    if not (weight > 0).any():
        raise ValueError(
            f"{name} is zero for all rows; at least two classes need a positive weight"
        )
