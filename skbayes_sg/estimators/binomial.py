"""Bayesian regression of successes out of so many trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from skbayes_sg.data import at_hand
from skbayes_sg.data.row_metadata import RowMetadata, with_trials
from skbayes_sg.estimators.base import all_or_nothing, require_offset, where_it_streams
from skbayes_sg.estimators.dispersion import with_dispersion
from skbayes_sg.estimators.linear_model import LinearRegressor, mean_of, of_draws
from skbayes_sg.estimators.mixture_predictions import ends_of
from skbayes_sg.estimators.out_of_core import in_blocks
from skbayes_sg.models import BetaBinomial, Binomial
from skbayes_sg.posterior import Posterior
from skbayes_sg.validation import checked_weights, real_array, require_choice, require_level

_MISSING = (
    "trials is missing: y is how many trials of a row succeeded, and that says nothing without how "
    "many there were; give trials, one number for each row or one for all. Where each row is a "
    "single yes or no that is trials=1"
)
_UNKNOWN = (
    "trials is missing: {} needs how many trials of a row there will be; give trials, one number "
    "for each row or one for all, or ask for the share of successes{}"
)
_REMEDY = (
    "counts of successes vary so many times as much as binomial ones do, and all intervals are too "
    "narrow; set overdispersed=True"
)


@dataclass(eq=False, repr=False)
class BayesianBinomialRegressor(LinearRegressor):
    """Bayesian regression of successes out of trials.

    ``logit(p) = coef . x + intercept`` determines the probability of each of the `trials` of a row,
    of which y succeeded. The posterior is that of logistic regression with a row for each trial.
    `summary` has the odds ratios, ``exp(coefficient)``.

    Parameters
    ----------
    sampler : Sampler, str or None, default=None
    prior_precision : float, array (n_features,), "learned" or VariationalEM, default="learned"
        1 / variance of the prior of each coefficient. "learned": one for all, sampled with the
        coefficients, in units of the columns.
    overdispersed : bool, default=False
        Whether the probability varies between rows that are alike in all columns: it is a Beta
        variable of mean p and variance ``rho p (1 - p)``, so that y is beta-binomial. The
        correlation rho of two trials of a row is sampled too, under a weak prior: its logit is
        normal of mean -3 and standard deviation 2.
    fit_intercept : bool, default=True
    intercept_precision : float, default=0.01
        Prior precision of the intercept, where columns have their means: a standard deviation
        of 10 logits. Under a learned `prior_precision` its mean is the logit of the share of
        successes.
    prior_mean : float or array of shape (n_features,) or (1, n_features), default=0.0
    prior : {"horseshoe", "student_t"}, Horseshoe, StudentT or FittedPosterior, optional
    prior_groups : {"share", "feature", "prefix"}, dict or callable, optional
    new_levels : {"sample", "zero", "refuse"}, default="sample"
    forgetting_factor : float in (0, 1], default=1.0
    categorical_features : {"from_dtype"}, list or None, default="from_dtype"
    n_chains : int or "auto", default="auto"
    n_draws : int or "auto", default="auto"
    burn_in : int or "auto", default="auto"
    thin : int or "auto", default="auto"
    warm_start : bool, default=False
    n_jobs : int, optional
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    n_features_in_
    feature_names_in_
    draws_ : array of shape (n_chains, n_draws, dim)
        Posterior draws: coefficients, the intercept, and if `overdispersed` the logit of rho.
    factors_
    coef_names_
    coef_, coef_std_
    intercept_
    coef_samples_
    intercept_samples_
    correlation_ : float, if `overdispersed`
        Posterior mean of rho.
    correlation_samples_ : array of shape (n_chains, n_draws), if `overdispersed`
        Draws of rho.
    draw_weights_
    sampler_
    sampler_reason_
    states_
    model_ : Binomial or BetaBinomial
    n_iter_
    n_passes_
    burn_in_, thin_
    diagnostics_
    posterior_
    n_samples_seen_
    log_loss_path_
    prior_precision_
    prior_precision_path_
    prior_precision_blocks_
    prior_precision_draws_

    Notes
    -----
    Source: McCullagh & Nelder 1989, chapter 4; Prentice 1986; math/models.md#shares-of-trials. It
    takes the place of ``glm`` of R, with ``cbind(successes, failures)``, or ``GLM`` of statsmodels
    with the family Binomial. Without `overdispersed`, ``diagnostics_["dispersion"]`` is the
    variance of y around n p over that of a binomial variable (Pearson's),
    ``sum(w (y - n p)**2 / (n p (1 - p))) / (sum(w) - k)`` with k effective parameters, and a fit
    warns where it is above 1.5. Rows of single trials cannot vary more than that. A weight w in
    `sample_weight` is w equal rows, of as many trials each.

    Without `trials` predictions are of the share of successes. With trials they are of the number.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import BayesianBinomialRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, n = rng.standard_normal((300, 2)), rng.integers(1, 40, size=300)
    >>> y = rng.binomial(n, 1 / (1 + np.exp(1 - X @ [0.5, 0.0])))
    >>> model = BayesianBinomialRegressor(random_state=0).fit(X, y, trials=n)
    >>> ratio = model.summary().loc["x0", "odds_ratio"]
    >>> bool(1.5 < ratio < 1.8)
    True
    >>> model.predict(X[:2]).round(1), model.predict(X[:2], trials=100).round(-1)
    (array([0.3, 0.3]), array([30., 30.]))
    """

    overdispersed: bool = False

    @property
    def _family(self) -> type[Binomial]:
        return BetaBinomial if self.overdispersed else Binomial

    correlation_samples_ = of_draws("logit_correlation")
    correlation_ = mean_of("correlation_samples_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        require_choice("overdispersed", self.overdispersed, (True, False))

    def _explained(self, posterior: Posterior, warnings: list[str]) -> list[str]:
        """Also Pearson's dispersion, where the model has none of its own."""
        if not posterior.predictor.own:
            warnings = with_dispersion(self, posterior, warnings, _REMEDY)
        return super()._explained(posterior, warnings)

    # -- fitting ------------------------------------------------------------------------------

    @all_or_nothing
    def fit(  # type: ignore[override]
        self, X, y, sample_weight=None, offset=None, trials=None
    ) -> Self:
        """Sample the posterior.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            As in `BayesianLogisticRegression`, also on disk or on workers.
        y : array-like of shape (n_rows,)
            How many trials of each row succeeded: whole numbers from 0 to `trials`.
        sample_weight : array-like of shape (n_rows,), optional
            Factor of each row's log likelihood; an integer weight repeats the row.
        offset : array-like of shape (n_rows,), optional
            Known part of the logit, whose coefficient is 1. Predictions need it too.
        trials : int or array-like of shape (n_rows,)
            How many trials each row had, from 1 on; a single number applies to all rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data or parameters are invalid, or `trials` is missing; raised before any sampling.
        FloatingPointError
            If a chain diverges.
        """
        self._validate_parameters()
        return self._fitted_to(X, y, _metadata(sample_weight, offset, trials))

    @where_it_streams
    @all_or_nothing
    def partial_fit(  # type: ignore[override]
        self, X, y, sample_weight=None, offset=None, trials=None
    ) -> Self:
        """Update the posterior with a chunk of rows.

        See `BayesianLogisticRegression.partial_fit`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
            Factor of each row's log likelihood; an integer weight repeats the row.
        offset : array-like of shape (n_rows,), optional
            As in `fit`, in all chunks or in none.
        trials : int or array-like of shape (n_rows,)
            As in `fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data or parameters are invalid; raised before any update.
        """
        return self._updated_by(X, y, _metadata(sample_weight, offset, trials))

    def score(self, X, y, sample_weight=None, offset=None, trials=None) -> float:
        """D^2, the share of the binomial deviance that is explained.

        It is 1 at best, and 0 for the share of successes of all rows together.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
        offset : array-like of shape (n_rows,), optional
            As in `fit`.
        trials : int or array-like of shape (n_rows,)
            As in `fit`.

        Returns
        -------
        float
        """
        trials = _metadata(None, None, trials).trials
        share = self.predict(X, offset=offset)
        y, share, weight, trials = at_hand(y, share, sample_weight, trials)
        y, share = real_array("y", y), share.astype(np.float64)
        columns = with_trials(None, trials, share)
        self._family.require_targets(y)
        self._family.require_together(y, columns)
        weight, trials = checked_weights(weight, len(y)), columns[:, 1]
        common = np.full(len(y), weight @ y / (weight @ trials))
        deviance, null_deviance = (weight @ _deviance(y, trials, p) for p in (share, common))
        return float(1 - deviance / null_deviance) if null_deviance > 0 else float(deviance == 0)

    # -- predictions --------------------------------------------------------------------------

    @overload  # type: ignore[override]
    def predict(
        self, X, return_std: Literal[False] = False, *, offset=None, trials=None
    ) -> NDArray: ...

    @overload
    def predict(
        self, X, return_std: Literal[True], *, offset=None, trials=None
    ) -> tuple[NDArray, NDArray]: ...

    @overload
    def predict(
        self, X, return_std: bool = False, *, offset=None, trials=None
    ) -> NDArray | tuple[NDArray, NDArray]: ...

    @in_blocks()
    def predict(
        self, X, return_std: bool = False, *, offset=None, trials=None
    ) -> NDArray | tuple[NDArray, NDArray]:
        """Posterior mean of the share of successes, or of their number in so many trials.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        return_std : bool, default=False
            Whether to return a standard deviation too; it needs `trials`.
        offset : float or array-like of shape (n_rows,), optional
            As in `fit`; a single number applies to all rows.
        trials : int or array-like of shape (n_rows,), optional
            How many trials there will be. Without it the share is predicted.

        Returns
        -------
        mean : array of shape (n_rows,)
        std : array of shape (n_rows,), if `return_std`
            Of a new number of successes, from the uncertainty of the share and chance.
        """
        if return_std and trials is None:
            raise ValueError(_UNKNOWN.format("return_std", " alone"))
        return super().predict(X, return_std, offset=self._beside(X, offset, trials))

    @in_blocks()
    def predict_interval(  # type: ignore[override]
        self, X, level: float = 0.95, *, kind: str = "observation", offset=None, trials=None
    ) -> NDArray:
        """Central interval for a new number of successes, or for their mean.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        level : float in (0, 1), default=0.95
        kind : {"observation", "mean"}, default="observation"
            "observation": of a new number of successes, with a probability of at least `level`; it
            needs `trials`. "mean": of the share of successes, or of their mean number in `trials`.
        offset : float or array-like of shape (n_rows,), optional
            As in `fit`; a single number applies to all rows.
        trials : int or array-like of shape (n_rows,), optional
            As in `predict`.

        Returns
        -------
        array of shape (n_rows, 2)
            Lower and upper end.

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1, or if `trials` is missing.
        """
        require_level(level)
        return self.predict_quantiles(X, ends_of(level), kind=kind, offset=offset, trials=trials)

    @in_blocks()
    def predict_quantiles(  # type: ignore[override]
        self, X, levels, *, kind: str = "observation", offset=None, trials=None
    ) -> NDArray:
        """Quantiles of a new number of successes, or of their mean.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        levels : array-like of shape (n_levels,)
            Probabilities between 0 and 1.
        kind : {"observation", "mean"}, default="observation"
            As in `predict_interval`.
        offset : float or array-like of shape (n_rows,), optional
            As in `fit`; a single number applies to all rows.
        trials : int or array-like of shape (n_rows,), optional
            As in `predict`.

        Returns
        -------
        array of shape (n_rows, n_levels)
            For numbers of successes the smallest number that they do not exceed with the
            probability.

        Raises
        ------
        ValueError
            If a level is not between 0 and 1, or if `trials` is missing.
        """
        offset = self._beside(X, offset, trials, kind)
        return super().predict_quantiles(X, levels, kind=kind, offset=offset)

    @in_blocks(axis=1)
    def predict_draws(  # type: ignore[override]
        self, X, kind: str = "observation", *, random_state: Any = 0, offset=None, trials=None
    ) -> NDArray:
        """Draws of predictions, one for each draw of the posterior.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        kind : {"observation", "mean"}, default="observation"
            "observation": a new number of successes of each row; it needs `trials`. "mean": the
            share of successes, or their mean number in `trials`.
        random_state : int or Generator, default=0
            Seed of new observations.
        offset : float or array-like of shape (n_rows,), optional
            As in `fit`; a single number applies to all rows.
        trials : int or array-like of shape (n_rows,), optional
            As in `predict`.

        Returns
        -------
        array of shape (draws, n_rows)
            In the order of `draws_`, chain by chain. All have equal weights: where `draw_weights_`
            differ, draws are repeated and left out in proportion to them.
        """
        offset = self._beside(X, offset, trials, kind)
        return super().predict_draws(X, kind, random_state=random_state, offset=offset)

    def _beside(self, X, offset, trials, kind: str = "mean") -> Any:
        """Offsets of rows to predict, and trials where they are given.

        Raises
        ------
        ValueError
            If trials are missing and something else than a mean is asked for.
        """
        if trials is None:
            if kind == "observation":
                raise ValueError(_UNKNOWN.format("a new observation", ', kind="mean"'))
            return offset
        require_offset(self, offset)
        return with_trials(offset, trials, X)


def _metadata(sample_weight, offset, trials) -> RowMetadata:
    """What is known of rows, with trials."""
    if trials is None:
        raise ValueError(_MISSING)
    return RowMetadata(sample_weight, offset, trials=trials)


def _deviance(y: NDArray, trials: NDArray, p: NDArray) -> NDArray:
    """Twice the log likelihood of each row that is lost against its own share, (n_rows,)."""
    failures = trials - y
    of_own = xlogy(y, y) + xlogy(failures, failures)
    return 2 * (of_own - xlogy(y, trials * p) - xlogy(failures, trials * (1 - p)))
