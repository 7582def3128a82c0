"""The base of regressions: numbers y and their weights, and mixtures that predict them."""

from __future__ import annotations

from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.metrics import r2_score
from sklearn.utils import column_or_1d

from skbayes_sg.bases import RegressorMixin
from skbayes_sg.data import at_hand, row_blocks
from skbayes_sg.data.row_metadata import RowMetadata, offset_of
from skbayes_sg.estimators.base import (
    BayesianEstimator,
    all_or_nothing,
    rows_that_count,
    with_offset,
)
from skbayes_sg.estimators.mixture_predictions import (
    Mixture,
    ends_of,
    in_precision,
    is_held,
    mixture_means,
    mixture_moments,
    outputs_of,
    warn_of_overflow,
)
from skbayes_sg.estimators.mixture_quantiles import mixture_quantiles
from skbayes_sg.estimators.out_of_core import in_blocks, is_out_of_core
from skbayes_sg.linalg.scores import dense
from skbayes_sg.posterior import Posterior
from skbayes_sg.validation import checked_weights, real_array, require_choice, require_level

_CENTRAL = 0.95  # of an interval that stands for a standard deviation where there is none
_IN_CACHE = 1 << 20  # bytes of outputs, of which several copies are made
NO_WEIGHT = "sample_weight is zero for all rows; at least one row needs a positive weight"

_CONSTANT = (
    "y has one value in all rows: predictions are near it, X says nothing of it, and diagnostics_ "
    "may not resolve so little noise; check that y is the column that was meant"
)


class BayesianRegressor(RegressorMixin, BayesianEstimator):
    """A regression: its data, `fit`, and predictions. Model and posterior are the subclass's.

    Predictions are those of a mixture, over draws of the posterior, of distributions of y. The
    model is a `Response`.
    """

    _family: Any
    """The model's class, a `Response`."""

    # -- data ---------------------------------------------------------------------------------

    def _validate_pair(self, X, y, reset: bool) -> tuple[Any, NDArray]:
        """X, and y in float64: a vector, or several columns where the estimator takes them."""
        several = self.__sklearn_tags__().target_tags.multi_output
        X, y = self._validate_data(X, y, reset=reset, multi_output=several)
        if y.ndim == 1 or y.shape[1] == 1 or not several:
            y = column_or_1d(y, warn=True)
        y = real_array("y", y)
        if np.isnan(y).any():  # None of an object array
            raise ValueError("y contains NaN; leave out the rows without a target")
        with np.errstate(over="ignore"):
            if not np.isfinite(np.vdot(y, y)):
                raise ValueError("y holds values whose squares overflow; divide it by its scale")
        return X, y

    def _bind(
        self, X, y: NDArray, metadata: RowMetadata, n_total: float | None = None
    ) -> Posterior:
        """Posterior of the model given validated data, without rows of weight 0."""
        raise NotImplementedError

    def _explained(self, posterior: Posterior, warnings: list[str]) -> list[str]:
        """Warnings, of which one stands for all others where y is constant.

        A sample of the rows does not tell whether it is constant: events may be rare.
        """
        data, rows = posterior.data, posterior.data.sample
        y = rows.y
        if posterior.model.n_given:  # of a number of trials
            assert rows.known is not None
            y = y / rows.known[:, -1]
        is_constant = rows is data and bool((y == y[0]).all())
        return [_CONSTANT] if is_constant else super()._explained(posterior, warnings)

    def _checked_rows(self, X, y, metadata: RowMetadata):
        X, y = self._validate_pair(X, y, reset=False)
        self.model_.require_targets(y)
        if metadata.var_weights is not None:
            self.model_.averaged(y, y)  # raises: models with coefficients have gone another way
        weight = checked_weights(metadata.sample_weight, len(y))
        return with_offset(self, X, metadata.offset), y, weight

    def _posterior_of(self, X, y, metadata: RowMetadata) -> Posterior:
        if is_out_of_core(X):
            return self._bind_blocks(X, y, metadata)[0]
        return self._bind(*self._validate_pair(X, y, reset=False), metadata)

    # -- fitting ------------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X, y, sample_weight=None, offset=None, exposure=None, var_weights=None) -> Self:
        """Sample the posterior.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            float32 stays float32. Sparse rows of more than 1,000 columns, or of few numbers that
            are not zero, stay sparse with the default sampler; others are made dense one minibatch
            at a time. Rows may be on disk or on workers, as in `BayesianLogisticRegression`.
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
            Factor of each row's log likelihood; an integer weight repeats the row.
        offset : array-like of shape (n_rows,), optional
            Known part of the linear predictor, whose coefficient is 1. Predictions need it too.
        exposure : array-like of shape (n_rows,), optional
            With a log link: factor of the mean of y, such as the years or people that a count is
            of. It stands for ``offset=log(exposure)``.
        var_weights : array-like of shape (n_rows,), optional
            Of how many observations y is the mean. Its variance is that of one, divided by their
            number: noise and dispersion are those of single observations, and so are predictions.

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
        offset = offset_of(offset, exposure, self._family.log_link, X)
        return self._fitted_to(X, y, RowMetadata(sample_weight, offset, var_weights))

    def _fitted_to(self, X, y, metadata: RowMetadata) -> Self:
        """`fit`, given all that is known of the rows."""
        if self._fitted_in_blocks(X, y, metadata):
            return self
        rows, y = self._validate_pair(X, y, reset=True)
        posterior = self._bind(rows, y, metadata)
        self._sample(posterior, rows if self._design is None else X, y, metadata, {})
        return self

    def score(self, X, y, sample_weight=None, offset=None) -> float:
        """R^2, the share of the variance that is explained, in the mean over responses.

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
        return float(r2_score(y, predicted, sample_weight=weight))

    # -- predictions --------------------------------------------------------------------------

    @overload
    def predict(
        self, X, return_std: Literal[False] = False, *, offset=None, exposure=None
    ) -> NDArray: ...

    @overload
    def predict(
        self, X, return_std: Literal[True], *, offset=None, exposure=None
    ) -> tuple[NDArray, NDArray]: ...

    @overload
    def predict(
        self, X, return_std: bool = False, *, offset=None, exposure=None
    ) -> NDArray | tuple[NDArray, NDArray]: ...

    @in_blocks()
    def predict(
        self, X, return_std: bool = False, *, offset=None, exposure=None
    ) -> NDArray | tuple[NDArray, NDArray]:
        """Posterior mean of the mean of y, and the standard deviation of a new y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        return_std : bool, default=False
        offset, exposure : float or array-like of shape (n_rows,), optional
            As in `fit`; a single number applies to all rows.

        Returns
        -------
        mean : array of shape (n_rows,), or (n_rows, n_responses) if y had several columns
        std : array like `mean`, if `return_std`
            Of a new observation, from the uncertainty of the mean and the distribution of y given
            it.

        Notes
        -----
        Results for float32 rows are float32, unless rounding to it would move one by more than a
        twentieth of its standard deviation, as where y are times in seconds since 1970. A mean or
        standard deviation beyond the largest number is infinite, with a warning.

        A few draws stand for all where the fit found that no mean differs by more than a hundredth
        of its posterior standard deviation (math/matched.md#predictions).

        Noise of `BayesianRobustRegressor` has no variance under draws of two degrees of freedom or
        less, and so a new y has none. Its `std` is that of the normal distribution whose central
        interval of 95 % is as wide as that of y.
        """
        # a width in place of a variance is that of all draws
        average = not return_std or self._family.has_variance
        mixture = self._mixture(X, offset, exposure, average)
        mean, sd, spread = self._moments(mixture, return_std)
        warn_of_overflow(sd)
        mean = in_precision(mean, mixture.dtype, spread)
        return (mean, in_precision(sd, mixture.dtype, spread)) if return_std else mean

    @in_blocks()
    def predict_interval(
        self, X, level: float = 0.95, *, kind: str = "observation", offset=None, exposure=None
    ) -> NDArray:
        """Central interval that holds a new observation, or its mean, with probability `level`.

        The ends are those of `predict_quantiles`. Of counts the probability is at least `level`. Of
        a Pipeline it is ``inspection.predict_interval(pipeline, X)``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        level : float in (0, 1), default=0.95
        kind : {"observation", "mean"}, default="observation"
            "observation": of a new y, noise and all. "mean": of the mean of y, the credible
            interval of the line.
        offset, exposure : float or array-like of shape (n_rows,), optional
            As in `fit`; a single number applies to all rows.

        Returns
        -------
        array of shape (n_rows, 2), or (n_rows, n_responses, 2) if y had several columns
            Lower and upper end; infinite, with a warning, beyond the largest number.

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1.
        """
        require_level(level)
        options = {"kind": kind, "offset": offset, "exposure": exposure}
        return self.predict_quantiles(X, ends_of(level), **options)

    @in_blocks()
    def predict_quantiles(
        self, X, levels, *, kind: str = "observation", offset=None, exposure=None
    ) -> NDArray:
        """Quantiles of a new observation, or of its mean.

        They are those of the mixture, over draws of the posterior, of the distributions of y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        levels : array-like of shape (n_levels,)
            Probabilities between 0 and 1.
        kind : {"observation", "mean"}, default="observation"
            As in `predict_interval`.
        offset, exposure : float or array-like of shape (n_rows,), optional
            As in `fit`; a single number applies to all rows.

        Returns
        -------
        array of shape (n_rows, n_levels), or (n_rows, n_responses, n_levels)
            Infinite, with a warning, beyond the largest number. Of counts each is the first number
            that y does not exceed with the probability.

        Raises
        ------
        ValueError
            If a level is not between 0 and 1.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from skbayes_sg import BayesianLinearRegression
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = BayesianLinearRegression(random_state=0).fit(X, y)
        >>> model.predict_quantiles(X[:3], [0.1, 0.5, 0.9]).shape
        (3, 3)
        """
        q = probabilities_of(levels)
        require_choice("kind", kind, ("observation", "mean"))
        mixture = self._mixture(X, offset, exposure)
        quantiles, spread = self._quantiles(mixture, q, kind)
        warn_of_overflow(quantiles)
        return in_precision(quantiles, mixture.dtype, spread[..., None])

    @in_blocks(axis=1)
    def predict_draws(
        self, X, kind: str = "observation", *, random_state: Any = 0, offset=None, exposure=None
    ) -> NDArray:
        """Draws of predictions, one for each draw of the posterior.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        kind : {"observation", "mean"}, default="observation"
            "observation": a new y of each row. "mean": the mean of y.
        random_state : int or Generator, default=0
            Seed of new observations.
        offset, exposure : float or array-like of shape (n_rows,), optional
            As in `fit`; a single number applies to all rows.

        Returns
        -------
        array of shape (draws, n_rows), or (draws, n_rows, n_responses) if y had several columns
            In the order of `draws_`, chain by chain. All have equal weights: where `draw_weights_`
            differ, draws are repeated and left out in proportion to them. A number takes 8 bytes,
            and 4 of float32 rows.

        Notes
        -----
        Many rows need not be held at once: ask for blocks of them, with one Generator as
        `random_state`, and add up or write down what each block gives.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_diabetes
        >>> from skbayes_sg import BayesianLinearRegression
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = BayesianLinearRegression(random_state=0).fit(X, y)
        >>> rng, total = np.random.default_rng(0), 0.0
        >>> for block in np.array_split(X, 4):
        ...     total = total + model.predict_draws(block, random_state=rng).sum(axis=1)
        >>> bool(abs(total.mean() - y.sum()) < total.std())
        True
        """
        require_choice("kind", kind, ("observation", "mean"))
        model, X, draws, dtype = self._mixture(X, offset, exposure)
        theta = draws.resampled(len(draws.weights)).flat
        rng = np.random.default_rng(random_state)
        n_columns = X.shape[0] * getattr(model, "n_responses", 1)
        values, stop = np.empty((len(theta), n_columns), dtype), 0
        for outputs in outputs_of(model, X, theta):
            block = model.draw(outputs, rng) if kind == "observation" else model.mean(outputs)
            start, stop = stop, stop + block.shape[1]
            with np.errstate(over="ignore"):
                rounded = block.astype(values.dtype, copy=False)
                if rounded is not block and not is_held(block, rounded, block.std(axis=0)):
                    before, values = values[:, :start], np.empty(values.shape)
                    rounded, values[:, :start] = block, before
            values[:, start:stop] = rounded
        return values if n_columns == X.shape[0] else values.reshape(len(theta), X.shape[0], -1)

    def _cumulants(self, X, sums: NDArray, *, offset=None, exposure=None) -> NDArray:
        """Cumulants of sums of y by the draws of `predict_draws`, (4, draws, sums, responses).

        `sums` (n,) are the numbers of the sums that rows belong to, in ascending order.
        """
        model, X, draws, _ = self._mixture(X, offset, exposure)
        theta = draws.resampled(len(draws.weights)).flat
        total = np.zeros(0)
        for rows in row_blocks(X.shape[0], 8 * len(theta) * model.widest, _IN_CACHE):
            block = X[rows] if model.keeps_sparse(X) else dense(X[rows])
            block, these = block.astype(np.float64, copy=False), sums[rows]
            some = np.arange(these[0], these[-1] + 1)
            with np.errstate(over="ignore", invalid="ignore"):
                part = model.sums_of_terms(theta, block, these[:, None] == some)
                if not total.size:
                    total = np.zeros((*part.shape[:2], sums[-1] + 1, part.shape[-1]))
                total[:, :, some] += part
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(model.cumulants_of_sums(theta, total))

    def _mixture(self, X, offset, exposure, average: bool = False) -> Mixture:
        """Distributions of y under the draws that count, or a few that have their averages."""
        offset = offset_of(offset, exposure, self._family.log_link, X)
        model, X, draws, dtype = self._to_predict(X, offset, np.float64, average=average)
        # a mean may be infinite, and 0 times that is not 0
        return Mixture(model, X, draws.counting(), dtype)

    def _moments(self, mixture: Mixture, return_std: bool) -> tuple[NDArray, ...]:
        """Mean of y, its standard deviation if asked, and a spread that roundings are small to."""
        if not (return_std and mixture.model.has_variance):
            mean, spread = (self._of_rows([figure]) for figure in mixture_means(mixture))
            sd = mean
            if return_std:
                ends = self._quantiles(mixture, ends_of(_CENTRAL), "observation")[0]
                sd = np.diff(ends)[..., 0] / np.ptp(ndtri(ends_of(_CENTRAL)))
            return mean, sd, spread
        model, X, draws, _ = mixture
        weights = draws.flat_weights
        blocks = [
            mixture_moments(model, outputs, weights) for outputs in outputs_of(model, X, draws.flat)
        ]
        mean, sd = (self._of_rows(list(figure)) for figure in zip(*blocks, strict=True))
        return mean, sd, sd

    def _quantiles(self, mixture: Mixture, q: NDArray, kind: str) -> tuple[NDArray, ...]:
        """Quantiles of y, or of its mean, and a spread that roundings are small to."""
        if kind == "observation":
            ends, width = mixture_quantiles(mixture, q)
            return self._of_rows([ends]), self._of_rows([width])
        model, X, draws, _ = mixture
        parts = []
        with np.errstate(over="ignore", invalid="ignore"):
            for outputs in outputs_of(model, X, draws.flat):
                means = model.mean(outputs)
                parts.append((draws.of(means[None]).quantile(q).T, means.std(axis=0)))
        return tuple(self._of_rows(list(figure)) for figure in zip(*parts, strict=True))

    def _of_rows(self, parts: list[NDArray]) -> NDArray:
        """Predictions of all blocks of rows, one for each row."""
        return np.concatenate(parts)


def probabilities_of(levels: ArrayLike) -> NDArray:
    """Levels as an array of probabilities between 0 and 1."""
    q = np.atleast_1d(real_array("levels", levels))
    if q.ndim != 1 or not ((q > 0) & (q < 1)).all():
        raise ValueError(f"levels must be probabilities between 0 and 1, got {levels!r}")
    return q


def of_positive_weight(
    X, y: NDArray, sample_weight: ArrayLike | None, n_total: float | None
) -> tuple[Any, NDArray, NDArray | None]:
    """Rows of positive weight, or all rows of a stream; and weights in X's precision."""
    weight = checked_weights(sample_weight, len(y))
    if not (weight > 0).any():
        raise ValueError(NO_WEIGHT)
    return rows_that_count(X, y, weight, n_total is not None, "sample_weight")
