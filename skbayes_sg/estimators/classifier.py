"""The bases of classifiers: labels and their weights, and those with coefficients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_class_weight

from skbayes_sg.data import InMemory, at_hand, of_columns
from skbayes_sg.estimators.class_predictions import ClassPredictions
from skbayes_sg.estimators.fit_guard import all_or_nothing
from skbayes_sg.estimators.inputs import (
    classes_of,
    known_classes,
    labels_are_missing,
    require_known,
    rows_that_count,
)
from skbayes_sg.estimators.linear_model import LinearPredictor
from skbayes_sg.estimators.out_of_core import FirstPass, is_out_of_core, source_of, weights_or_none
from skbayes_sg.models import Model
from skbayes_sg.models.categorical import Classification
from skbayes_sg.posterior import Posterior
from skbayes_sg.priors import Prior
from skbayes_sg.validation import checked_weights, in_dtype

_WEIGHTS = "sample_weight or class_weight"
_CERTAIN = 100.0  # a logit; a probability is 1 in double precision from 37 on


class BayesianClassifier(ClassifierMixin, ClassPredictions):
    """Classification by averaging a model's class probabilities over posterior draws."""

    class_weight: dict | str | None

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        self._validate_predict_draws()

    def _validate_data(self, X, y="no_validation", reset: bool = True, **more):
        """Also says what labels without a truth value are, which scikit-learn compares."""
        try:
            return super()._validate_data(X, y, reset, **more)
        except (ValueError, TypeError) as error:
            if labels_are_missing(y):
                raise ValueError("y has missing labels; leave out the rows without one") from error
            raise

    def _weights(
        self, y: NDArray, classes: NDArray, sample_weight: ArrayLike | None
    ) -> tuple[NDArray, NDArray | None]:
        """sample_weight (n,), and the factor of each class (n_classes,), None where all are 1."""
        weight = checked_weights(sample_weight, len(y))
        _require_some("sample_weight", weight)
        if self.class_weight is None:
            return weight, None
        codes = np.searchsorted(classes, y)
        factors = self._class_weights(np.bincount(codes, weight, len(classes)), classes)
        _require_some("class_weight", weight * factors[codes])
        return weight, factors

    def _class_weights(self, totals: NDArray, classes: NDArray) -> NDArray:
        """Factor of each class; 1 for classes that the dict does not name, or that have no rows.

        `totals` are the sums of the weights of each class, (n_classes,). With "balanced" the factor
        is sum of all / (classes * total of the class), so that an integer weight is a repetition
        here too, as in scikit-learn from 1.9 on.
        """
        if isinstance(self.class_weight, dict):
            factors = compute_class_weight(self.class_weight, classes=classes, y=classes)
            if not np.isfinite(factors).all() or factors.min() < 0:
                raise ValueError(
                    f"class_weight must be finite and not negative, got {self.class_weight!r}"
                )
            return factors
        present = totals > 0
        labels = classes[present]
        compute_class_weight(self.class_weight, classes=labels, y=labels)  # refuses other words
        factors = np.ones(len(classes))
        factors[present] = totals.sum() / (present.sum() * totals[present])
        return factors

    def _bind(
        self,
        X,
        y: NDArray,
        classes: NDArray,
        weights: tuple[NDArray, NDArray | None],
        n_total: float | None = None,
    ) -> Posterior:
        """Posterior of the model given validated data, without rows of weight 0.

        Classes have their factors after equal rows are merged: k f and a sum of k times f may
        differ in their last bit.
        """
        codes, streaming = np.searchsorted(classes, y), n_total is not None
        weight, factors = weights
        if factors is not None:
            weight = np.where(factors[codes] > 0, weight, 0.0)
        X, codes, counted = rows_that_count(X, codes, weight, streaming, _WEIGHTS)
        if not streaming:
            _require_two(len(np.unique(codes)))
        model = self._make_model(X.shape[1], classes)
        y = model.encode(codes, X.dtype)
        data = InMemory.of(X, y, counted, n_total, model.takes_sparse)
        if self._merges(model, data, streaming):
            data = data.merged()
        if factors is not None:
            labels = model.encode(np.arange(len(classes)), X.dtype)
            order = np.argsort(labels)
            of_row = factors[order][np.searchsorted(labels[order], data.y)]
            of_row = of_row if data.weight is None else of_row * data.weight
            data = replace(data, weight=in_dtype(_WEIGHTS, of_row, X.dtype))
        return Posterior(model, data, self._prior(model, data, classes, streaming))

    def _checked_rows(self, X, y, sample_weight: ArrayLike | None):
        X, y = self._validate_data(X, y, reset=False)
        require_known(y, self.classes_)
        weight, factors = self._weights(y, self.classes_, sample_weight)
        if factors is not None:
            weight = weight * factors[np.searchsorted(self.classes_, y)]
        return X, y, weight

    def _posterior_of(self, X, y, sample_weight: ArrayLike | None) -> Posterior:
        if is_out_of_core(X):
            return self._bind_blocks(X, y, sample_weight)[0]
        X, y = self._validate_data(X, y, reset=False)
        require_known(y, self.classes_)
        return self._bind(X, y, self.classes_, self._weights(y, self.classes_, sample_weight))

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
        classes = self._classes_of(y)
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
        given = None if classes is None else np.asarray(getattr(classes, "categories", classes))
        return X, y, known_classes(y, given, None if first else self.classes_)

    def _classes_of(self, y: NDArray) -> NDArray:
        """The labels of a fit, sorted."""
        return classes_of(y)

    def _make_model(self, n_features: int, classes: NDArray) -> Classification:
        """The model of so many columns and of these classes, which are sorted."""
        raise NotImplementedError

    def _prior(
        self, model: Model, data: InMemory, classes: NDArray | None = None, streaming: bool = False
    ) -> Prior:
        """Prior of the parameters."""
        raise NotImplementedError


class LinearClassifier(LinearPredictor, BayesianClassifier):
    """A classifier whose logits are linear in its coefficients. The model is the subclass's."""

    _has_rows = True

    @all_or_nothing
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Update the posterior by a chunk of rows: the posterior of one is the prior of the next.

        Rows come in chunks of any size from one row, and in any order. They are kept up to a
        budget, a sixteenth of `sklearn.get_config()["working_memory"]`: 64 MB by default. The
        posterior is a normal distribution around the present mean
        (math/streams.md#streams-as-bayesian-updating). It is found again from the rows that are
        kept whenever it has moved and is asked for. Beyond the budget the oldest rows are summed up
        at the present mean, and are kept no longer. A sample of them says what that leaves out:
        `diagnostics_` then has ``folded_shift``, by how many posterior standard deviations the mean
        is off in the worst direction, its Monte Carlo error ``folded_shift_se``, and
        ``folded_variance``, by what share variances are. A ConvergenceWarning names a large shift.
        It is large where the order of a long stream is not random, or where the truth drifts.

        Each chunk is judged before it is learned. `log_loss_path_` has its log loss beside what the
        posterior predicted. Where the truth moves, the posterior mean lags behind, and each chunk
        would have a smaller log loss if it had gone on where the last ones pulled it:
        ``diagnostics_["drift"]`` is that slope of the log losses in its standard errors, which is
        near 0 or below where nothing moves, whether the model is right or not
        (math/streams.md#drift). A ConvergenceWarning says when it passes 5. Rows that are sorted
        by y drift too.

        Nothing is sampled: `sampler` must be None, and `draws_` are independent draws of the
        present posterior, made whenever they are asked for. After `fit` it goes on from
        `posterior_`. A prior precision that is to be learned is learned from the first chunk, and
        again each time the rows outside the largest class have doubled, until there were ten of
        them for each parameter. Above 1,000 parameters the precision of the posterior is a
        diagonal.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            A chunk may lack classes.
        classes : array-like, required in the first call
            All labels that may occur.
        sample_weight : array-like of shape (n_rows,), optional
            Factor of each row's log likelihood; an integer weight is a repetition.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data or parameters are impossible; raised before any update.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import make_classification
        >>> from skbayes_sg import BayesianLogisticRegressionSGFS
        >>> X, y = make_classification(5000, random_state=0)
        >>> model = BayesianLogisticRegressionSGFS(random_state=0)
        >>> for rows in np.array_split(np.arange(5000), 100):
        ...     model = model.partial_fit(X[rows], y[rows], classes=[0, 1])
        >>> model.n_samples_seen_, model.draws_.shape
        (5000, (8, 256, 21))
        """
        X, y, known = self._validate_chunk(X, y, classes)
        weights = self._weights(y, known, sample_weight)
        seen = getattr(self, "n_samples_seen_", 0) + X.shape[0]
        posterior = self._bind(X, y, known, weights, n_total=X.shape[0])
        self._update(posterior, classes_=known, n_samples_seen_=seen)
        return self

    def _explained(self, posterior: Posterior, warnings: list[str]) -> list[str]:
        """With a column whose prior alone allows a coefficient that makes rows certain.

        Where it separates the classes, its posterior is as wide as the prior, and no number of
        draws helps. An intercept takes the mean of a column, however far from zero.
        """
        if not warnings:
            return []
        precision = self.model_.unpack(posterior.prior.precision)["coef"].max(axis=0)
        columns = of_columns(posterior.data)
        square = columns.variance + (0.0 if self.fit_intercept else columns.mean**2)
        logits = np.sqrt(square / precision)
        column = int(logits.argmax())
        if not logits[column] > _CERTAIN:
            return warnings
        name = getattr(self, "feature_names_in_", range(len(logits)))[column]
        return [
            *warnings,
            f"the prior of column {name!r} of X allows logits of {logits[column]:.1g}, far beyond "
            "certainty; scale the columns, for example by StandardScaler, or raise prior_precision "
            "for it",
        ]

    def _separated(self, posterior: Posterior) -> bool:
        """Whether the posterior mean is right about every row."""
        rows = posterior.data.sample
        mean = self._moments(self.draws_)[0][None]
        batches = map(rows.load, rows.blocks(self.model_.row_size))
        return all(self.model_.is_right(mean, batch.X, batch.y).all() for batch in batches)

    def _bind_blocks(self, X, y, sample_weight) -> tuple[Posterior, dict[str, Any]]:
        """Posterior of rows out of core, and the facts about them."""
        source = source_of(X, y, sample_weight)
        found = FirstPass(source, labels=True)
        classes, factors = self._classes_of(found.labels), None
        totals = np.zeros(len(classes))
        totals[np.searchsorted(classes, found.labels)] = found.totals
        present = totals > 0
        if self.class_weight is not None:
            factors = self._class_weights(totals, classes)
            present &= factors > 0
        _require_two(present.sum())
        model, dtype = self._make_model(source.n_features, classes), source.dtype

        def encode(y: NDArray, weight: NDArray | None) -> tuple[NDArray, NDArray | None]:
            codes = np.searchsorted(classes, y)
            if factors is not None:
                weight = factors[codes] if weight is None else weight * factors[codes]
            return model.encode(codes, dtype), weights_or_none(_WEIGHTS, weight, dtype)

        data = found.data(encode)
        prior = self._prior(model, data, classes)
        return Posterior(model, data, prior), {"classes_": classes, "n_samples_seen_": X.shape[0]}


def _require_some(name: str, weight: NDArray) -> None:
    if not (weight > 0).any():
        raise ValueError(
            f"{name} is zero for all rows; at least two classes need a positive weight"
        )


def _require_two(n_classes: int) -> None:
    if n_classes < 2:
        raise ValueError(
            "y holds one class only (among rows of positive weight); at least two classes are "
            "needed"
        )
