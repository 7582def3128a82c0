"""The base of classifiers: labels and their weights, probabilities averaged over draws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr
from sklearn.metrics import accuracy_score
from sklearn.utils import Bunch
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from skbayes_sg.bases import ClassifierMixin
from skbayes_sg.data import InMemory, at_hand
from skbayes_sg.data.row_metadata import RowMetadata, known_columns, with_known
from skbayes_sg.data.rows import row_blocks
from skbayes_sg.estimators.base import (
    BayesianEstimator,
    all_or_nothing,
    merged,
    rows_that_count,
    with_offset,
)
from skbayes_sg.estimators.class_probabilities import (
    BLOCK_BYTES,
    are_many,
    averaged,
    batch_error,
    log_average,
    log_averaged,
    probabilities,
    rows_below,
    under_each,
)
from skbayes_sg.estimators.mixture_predictions import ends_of
from skbayes_sg.estimators.out_of_core import in_blocks, is_out_of_core, require_chunk
from skbayes_sg.models import Model
from skbayes_sg.models.base import Classification
from skbayes_sg.posterior import Posterior
from skbayes_sg.priors import Prior
from skbayes_sg.validation import (
    checked_weights,
    in_dtype,
    require_choice,
    require_level,
    require_predict_draws,
    shown,
)

WEIGHTS = "sample_weight or class_weight"


class BayesianClassifier(ClassifierMixin, BayesianEstimator):
    """Classification by averaging a model's class probabilities over posterior draws.

    Averages are computed in double precision, and results are in that of X.

    Parameters
    ----------
    class_weight : dict, "balanced" or None, default=None
        Factors of the classes' log likelihoods. "balanced": inverse to the shares of the classes.
    n_predict_draws : int, "auto" or None, default="auto"
        Number of evenly spaced draws that predict; None takes all. The time of a prediction is
        proportional to it. The Monte Carlo error of a probability is its posterior standard
        deviation (at most 1/2) over the square root of this number; see `predict_uncertainty`.
        "auto" takes 400 to 800, every so many of all: as many as a fit has effective ones at least.
        Averaged probabilities of linear models are then those of 128, 256 or 512 draws with the
        mean and covariance of all, if rows of the fit have under them the probabilities under all
        to .0025, and otherwise of all draws, as long as these are no more than a million numbers.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted: the order of the columns of probabilities.
    """

    n_predict_draws: int | str | None
    classes_: NDArray

    class_weight: dict | str | None

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        require_predict_draws(self.n_predict_draws)

    def _validate_data(self, X, y="no_validation", reset: bool = True, **more):
        """Also says what labels without a truth value are, which scikit-learn compares."""
        try:
            return super()._validate_data(X, y, reset, **more)
        except (ValueError, TypeError) as error:
            if labels_are_missing(y):
                raise ValueError("y has missing labels; leave out the rows without one") from error
            raise

    def _bind(
        self,
        X,
        y: NDArray,
        classes: NDArray,
        metadata: RowMetadata,
        n_total: float | None = None,
    ) -> Posterior:
        """Posterior of the model given validated data, without rows of weight 0."""
        streaming = n_total is not None
        model, data = self._rows(X, y, classes, metadata, n_total)
        posterior = Posterior(model, data, self._prior(model, data, classes, streaming))
        return self._tempered(posterior, streaming)

    def _rows(
        self,
        X,
        y: NDArray,
        classes: NDArray,
        metadata: RowMetadata,
        n_total: float | None = None,
    ) -> tuple[Classification, InMemory]:
        """The model, and the rows with all that is known of them.

        Classes have their factors after equal rows are merged: k f and a sum of k times f may
        differ in their last bit.
        """
        codes, streaming = np.searchsorted(classes, y), n_total is not None
        weight, factors = class_weights(self.class_weight, y, classes, metadata.sample_weight)
        if factors is not None:
            weight = np.where(factors[codes] > 0, weight, 0.0)
        model = self._make_model(X.shape[1], classes)
        n_features = X.shape[1]
        if metadata.offset is not None:
            X = with_known(X, known_columns(metadata.offset, X.shape[0], model.n_offsets))
        X, codes, counted = rows_that_count(X, codes, weight, streaming, WEIGHTS)
        if not streaming:
            require_two(len(np.unique(codes)))
        y = model.encode(codes, X.dtype)
        data = InMemory.of(X, y, counted, n_total, model.takes_sparse)
        data = replace(data, n_known=X.shape[1] - n_features)
        data = merged(data, model, streaming or self.sampler is not None)
        if factors is not None:
            labels = model.encode(np.arange(len(classes)), X.dtype)
            order = np.argsort(labels)
            of_row = factors[order][np.searchsorted(labels[order], data.y)]
            of_row = of_row if data.weight is None else of_row * data.weight
            data = replace(data, weight=in_dtype(WEIGHTS, of_row, X.dtype))
        return model, data

    def _checked_rows(self, X, y, metadata: RowMetadata):
        X, y = self._validate_data(X, y, reset=False)
        require_known(y, self.classes_)
        sample_weight, classes = metadata.sample_weight, self.classes_
        weight, factors = class_weights(self.class_weight, y, classes, sample_weight)
        if factors is not None:
            weight = weight * factors[np.searchsorted(classes, y)]
        return with_offset(self, X, metadata.offset), y, weight

    def _posterior_of(self, X, y, metadata: RowMetadata) -> Posterior:
        if is_out_of_core(X):
            return self._bind_blocks(X, y, metadata)[0]
        X, y = self._validate_data(X, y, reset=False)
        require_known(y, self.classes_)
        return self._bind(X, y, self.classes_, metadata)

    @all_or_nothing
    def fit(self, X, y, sample_weight=None, offset=None) -> Self:
        """Sample the posterior.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            float32 stays float32. Sparse rows of more than 1,000 columns, or of few numbers that
            are not zero, stay sparse with the default sampler; others are made dense one minibatch
            at a time. A memory map, zarr array or HDF5 dataset above 64 MB is read in blocks, and a
            dask array or data frame partition by partition. y and sample_weight may be such arrays
            too. Networks, and samplers given by name, need an array or a memory map.
        y : array-like of shape (n_rows,)
            Labels, strings or numbers, of at least two classes.
        sample_weight : array-like of shape (n_rows,), optional
            Factor of each row's log likelihood; an integer weight repeats the row.
        offset : array-like of shape (n_rows,) or (n_rows, n_classes), optional
            Known part of the logits: with two classes, of the second one; with more, of each; with
            ordered classes, of the linear predictor. Predictions then need it too.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data or parameters are invalid; raised before any sampling.
        FloatingPointError
            If a chain diverges.
        """
        self._validate_parameters()
        metadata = RowMetadata(sample_weight, offset)
        if self._fitted_in_blocks(X, y, metadata):
            return self
        rows, y = self._validate_data(X, y)
        classes = self._classes_of(y)
        posterior = self._bind(rows, y, classes, metadata)
        rows = rows if self._design is None else X
        self._sample(posterior, rows, y, metadata, {"classes_": classes})
        return self

    def score(self, X, y, sample_weight=None, offset=None) -> float:
        """Accuracy.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Or a dask collection, whose predictions are computed partition by partition.
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
        offset : array-like, optional
            As in `fit`.

        Returns
        -------
        float
        """
        y, predicted, weight = at_hand(y, self.predict(X, offset=offset), sample_weight)
        return float(accuracy_score(y, predicted, sample_weight=weight))

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

    # -- predictions --------------------------------------------------------------------------

    @in_blocks()
    def predict_proba(self, X, *, offset=None) -> NDArray:
        """Class probabilities, averaged over posterior draws.

        The Monte Carlo error of a probability is at most about its posterior standard deviation
        over the square root of the effective number of draws; of draws that are matched to their
        gradients it is far less. `predict_uncertainty` gives that bound for each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        offset : array-like, optional
            As in `fit`; a single number applies to all rows.

        Returns
        -------
        array of shape (n_rows, n_classes)
            Columns in the order of `classes_`. Of float32 rows this and all other predictions are
            float32. For a dask collection they are lazy dask arrays.
        """
        model, X, draws, _ = self._to_predict(X, offset, average=True)
        proba = averaged(model, X, draws)
        of_dtype = np.finfo(X.dtype)
        least = tiny = of_dtype.tiny  # none is rounded to 0
        if not are_many(model, X, draws.flat):
            least = tiny**0.9 / of_dtype.eps  # below, the least number of a softmax counts
        tail = rows_below(proba, least)
        exact = np.maximum(np.exp(log_average(model, X[tail], draws)), tiny)
        proba[tail] = np.where(proba[tail] < least, exact, proba[tail])
        return proba.astype(X.dtype, copy=False)

    @in_blocks()
    def predict_log_proba(self, X, *, offset=None) -> NDArray:
        """Logarithm of `predict_proba`, finite also where a probability rounds to 0."""
        model, X, draws, _ = self._to_predict(X, offset, average=True)
        return log_averaged(model, X, draws).astype(X.dtype, copy=False)

    @in_blocks()
    def decision_function(self, X, *, offset=None) -> NDArray:
        """Logits of the averaged probabilities, in the order of `predict_proba`.

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
        It is not the average of the logits over draws, which is usually further from 0 where draws
        disagree, and may have another order. Scores are finite, and differ even where probabilities
        are rounded to the same number near 0 or 1.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.preprocessing import scale
        >>> from skbayes_sg import BayesianLogisticRegression
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = BayesianLogisticRegression(random_state=0).fit(scale(X), y)
        >>> score, p = model.decision_function(scale(X)), model.predict_proba(scale(X))[:, 1]
        >>> bool(np.allclose(1 / (1 + np.exp(-score)), p))
        True
        """
        model, X, draws, _ = self._to_predict(X, offset, average=True)
        log_proba = log_averaged(model, X, draws)
        score = log_proba[:, 1] - log_proba[:, 0] if len(self.classes_) == 2 else log_proba
        return score.astype(X.dtype, copy=False)

    @in_blocks()
    def predict(self, X, *, offset=None) -> NDArray:
        """The class of largest averaged probability, shape (n_rows,)."""
        proba = self.predict_proba(X, offset=offset)
        return self.classes_[proba.argmax(axis=1)]

    @in_blocks(axis=1)
    def predict_draws(
        self, X, kind: str = "observation", *, random_state: Any = 0, offset=None
    ) -> NDArray:
        """Draws of predictions, one for each draw of the posterior.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        kind : {"observation", "mean"}, default="observation"
            "observation": a label of each row. "mean": the class probabilities of each row.
        random_state : int or Generator, default=0
            Seed of new observations.
        offset : array-like, optional
            As in `fit`; a single number applies to all rows.

        Returns
        -------
        array of shape (draws, n_rows), or (draws, n_rows, n_classes) of probabilities
            In the order of `draws_`, chain by chain: `n_predict_draws` of them. All have equal
            weights: where `draw_weights_` differ, draws are repeated and left out in proportion to
            them. A number takes 8 bytes, and 4 of float32 rows. Many rows need not be held at once:
            ask for blocks of them, with one Generator as `random_state`.
        """
        require_choice("kind", kind, ("observation", "mean"))
        model, X, draws, _ = self._to_predict(X, offset)
        theta = draws.resampled(len(draws.weights)).flat
        rng = np.random.default_rng(random_state)
        shape = len(theta), X.shape[0]
        if kind == "mean":
            proba = np.empty((*shape, len(self.classes_)), X.dtype)
            for rows, p in probabilities(model, X, theta):
                proba[:, rows] = p.transpose(0, 2, 1)
            return proba
        labels = np.empty(shape, self.classes_.dtype)
        for rows, p in probabilities(model, X, theta):
            u = rng.random((len(theta), 1, p.shape[2]))
            # of the last class is what is left
            labels[:, rows] = self.classes_[(u > np.cumsum(p[:, :-1], axis=1)).sum(axis=1)]
        return labels

    @in_blocks()
    def predict_interval(
        self, X, level: float = 0.95, *, kind: str = "mean", offset=None
    ) -> NDArray:
        """Central posterior interval of each class probability.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        level : float in (0, 1), default=0.95
            Posterior probability of the interval.
        kind : "mean"
            The credible interval of the probabilities. Labels have no interval; `predict_draws`
            draws new labels.
        offset : array-like, optional
            As in `fit`; a single number applies to all rows.

        Returns
        -------
        array of shape (n_rows, n_classes, 2)
            Lower and upper end.

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1, or if an interval of labels is asked for.

        Examples
        --------
        A Pipeline forwards only `predict` and `predict_proba`; `inspection` has a function for
        pipelines:

        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.preprocessing import StandardScaler
        >>> from skbayes_sg import BayesianLogisticRegression
        >>> from skbayes_sg.inspection import predict_interval
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = BayesianLogisticRegression(random_state=0)
        >>> pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
        >>> predict_interval(pipeline, X[:3]).shape
        (3, 2, 2)
        """
        require_level(level)
        require_choice("kind", kind, ("mean",))
        model, X, draws, _ = self._to_predict(X, offset)
        n_outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        ends = np.empty((X.shape[0], n_outputs, 2))
        for rows in row_blocks(X.shape[0], X.dtype.itemsize * len(draws.flat), BLOCK_BYTES):
            p = under_each(model, X[rows], draws.flat)
            quantiles = draws.of(p.reshape(1, len(p), -1)).quantile(ends_of(level))
            ends[rows] = quantiles.reshape(2, *p.shape[1:]).T
        if n_outputs == 1:
            ends = np.concatenate([1.0 - ends[..., ::-1], ends], axis=1)
        return ends.astype(X.dtype, copy=False)

    @in_blocks()
    def predict_uncertainty(self, X, *, offset=None) -> Bunch:
        """Uncertainty of a prediction by cause, in nats, and its Monte Carlo error.

        Returns
        -------
        sklearn.utils.Bunch of arrays of shape (n_rows,)
            ``total``: entropy of the averaged probabilities. ``aleatoric``: averaged entropy, which
            more data cannot remove. ``epistemic``: their difference, which comes from the
            parameters (mutual information of label and parameters). ``standard_error`` (n_rows,
            n_classes): Monte Carlo error of the averaged probabilities, from the spread of batches
            of consecutive draws, four per chain; NaN for fewer than 8 draws. Of draws that are
            matched to their gradients it is a bound (math/matched.md#predictions).

        Notes
        -----
        The epistemic part is due to the uncertainty of the parameters. Rows far from the training
        data can have less of it than rows near by, if all draws extrapolate alike, as is frequent
        for networks at a temperature below 1, and for relu units at any
        (networks.md#far-from-the-training-data). Check the range of the columns as well.
        """
        model, X, draws, _ = self._to_predict(X, offset, average=True)
        weights = draws.flat_weights
        total, aleatoric = np.empty(X.shape[0]), np.empty(X.shape[0])
        error = np.empty((X.shape[0], len(self.classes_)))
        for rows, p in probabilities(model, X, draws.flat):
            mean = np.tensordot(weights, p, axes=1)
            mean /= mean.sum(axis=0)  # which is 1 but for rounding; the entropy of more is negative
            total[rows] = entr(mean).sum(axis=0)
            aleatoric[rows] = weights @ entr(p).sum(axis=1)
            error[rows] = batch_error(p - mean, weights, 4 * len(self.draws_)).T
        # the entropy of a mean is at least the mean entropy: what is below 0 is rounding
        epistemic = np.maximum(total - aleatoric, 0.0)
        uncertainty = {"total": total, "aleatoric": aleatoric, "epistemic": epistemic}
        uncertainty["standard_error"] = error
        return Bunch(
            **{name: values.astype(X.dtype, copy=False) for name, values in uncertainty.items()}
        )


# -- labels and their weights -----------------------------------------------------------------


def chunk_of(
    estimator: Any, X: Any, y: Any, classes: ArrayLike | None
) -> tuple[Any, NDArray, NDArray]:
    """X, y and all labels that may occur in a stream."""
    require_chunk(X)
    estimator._validate_parameters()
    if isinstance(estimator.class_weight, str):
        raise ValueError(
            "class_weight: the shares of the classes in a stream are not known; give a dict"
        )
    first = not hasattr(estimator, "model_")
    if not first:
        estimator._take_levels_of(X)
    X, y = estimator._validate_data(X, y, reset=first)
    if first and classes is None:
        raise ValueError(
            "classes must be given in the first call of partial_fit: all labels that may occur"
        )
    stream_classes: Any = None if first else estimator.classes_
    if classes is not None:
        labels = np.asarray(getattr(classes, "categories", classes))
        ordered = sorted_labels("classes", labels)
        stream_classes = classes_of(ordered) if first else stream_classes
        if not np.array_equal(ordered, stream_classes):
            raise ValueError(
                f"classes={shown(labels)} are not those of the first call, {shown(stream_classes)}"
            )
    require_known(y, stream_classes)
    return X, y, stream_classes


def class_weights(
    asked: dict | str | None, y: NDArray, classes: NDArray, sample_weight: ArrayLike | None
) -> tuple[NDArray, NDArray | None]:
    """sample_weight (n,), and the factor of each class (n_classes,), None where all are 1."""
    weight, factors = checked_weights(sample_weight, len(y)), None
    counted, name = weight, "sample_weight"
    if asked is not None and weight.any():
        codes = np.searchsorted(classes, y)
        factors = class_factors(asked, np.bincount(codes, weight, len(classes)), classes)
        counted, name = weight * factors[codes], "class_weight"
    if not counted.any():
        raise ValueError(
            f"{name} is zero for all rows; at least two classes need a positive weight"
        )
    return weight, factors


def class_factors(asked: dict | str, totals: NDArray, classes: NDArray) -> NDArray:
    """Factor of each class; 1 for classes that the dict does not name, or that have no rows.

    `totals` are the sums of the weights of each class, (n_classes,). With "balanced" the factor is
    sum of all / (classes * total of the class), so that an integer weight repeats the row here too,
    as in scikit-learn from 1.9 on.
    """
    if isinstance(asked, dict):
        factors = compute_class_weight(asked, classes=classes, y=classes)
        if not np.isfinite(factors).all() or factors.min() < 0:
            raise ValueError(f"class_weight must be finite and not negative, got {asked!r}")
        return factors
    present = totals > 0
    labels = classes[present]
    compute_class_weight(asked, classes=labels, y=labels)  # refuses other words
    factors = np.ones(len(classes))
    factors[present] = totals.sum() / (present.sum() * totals[present])
    return factors


def require_two(n_classes: int) -> None:
    """Raise ValueError for rows of one class."""
    if n_classes < 2:
        raise ValueError(
            "y holds one class only (among rows of positive weight); at least two classes are "
            "needed"
        )


def classes_of(y: NDArray) -> NDArray:
    """The labels, sorted."""
    classes = sorted_labels("y", y)
    check_classification_targets(y)
    if len(classes) < 2:
        raise ValueError(
            f"y holds one class only, {shown(classes[0])}; at least two classes are needed"
        )
    return classes


def require_known(y: NDArray, classes: NDArray) -> None:
    """Raise ValueError unless each label is one of the classes."""
    new = np.setdiff1d(sorted_labels("y", y), classes, assume_unique=True)
    if new.size:
        raise ValueError(f"y holds {shown(new)}, which is not among the classes {shown(classes)}")


def labels_are_missing(y: Any) -> bool:
    """Whether labels of objects hold None, NaN or pandas.NA, which cannot be compared."""
    values = np.asarray(y)
    return (
        values.ndim > 0
        and values.dtype == object
        and any(
            label is None
            or type(label).__name__ == "NAType"
            or (isinstance(label, float) and label != label)
            for label in values.ravel()
        )
    )


def sorted_labels(name: str, labels: NDArray) -> NDArray:
    """The different labels in order, or a TypeError where strings and numbers are mixed."""
    try:
        return np.unique(labels)
    except TypeError:
        if labels_are_missing(labels):
            raise ValueError(f"{name} has missing labels; leave out the rows without one") from None
        kinds = ", ".join(sorted({type(label).__name__ for label in labels.ravel()}))
        raise TypeError(
            f"{name} holds labels of several types, {kinds}, which cannot be sorted; give them one "
            "type, for example by np.asarray(labels).astype(str)"
        ) from None
