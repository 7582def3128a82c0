"""Estimators with coefficients: their prior, classifiers, regressions and streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.metrics import d2_tweedie_score, mean_tweedie_deviance
from sklearn.utils.validation import check_is_fitted, validate_data

from skbayes_sg.data import Columns, Data, InMemory, at_hand, of_columns
from skbayes_sg.data.blockwise import in_partitions
from skbayes_sg.data.factors import Factor
from skbayes_sg.data.row_metadata import (
    RowMetadata,
    counts_of_means,
    known_columns,
    metadata_of_fit,
    offset_of,
    require_trials,
    with_known,
    with_trials,
)
from skbayes_sg.diagnostics.batches import Batches
from skbayes_sg.diagnostics.limits import SHIFT_LIMIT
from skbayes_sg.estimators import updating
from skbayes_sg.estimators.base import (
    BayesianEstimator,
    all_or_nothing,
    merged,
    of_chunk,
    require_offset,
    require_spread,
    where_it_streams,
)
from skbayes_sg.estimators.classifier import (
    WEIGHTS,
    BayesianClassifier,
    chunk_of,
    class_factors,
    require_two,
)
from skbayes_sg.estimators.coefficient_prior import hyperprior_of, prior_of, shrinkage_of
from skbayes_sg.estimators.factors import factors_of
from skbayes_sg.estimators.few_draws import FewDraws, few_draws
from skbayes_sg.estimators.from_fit import FromFit
from skbayes_sg.estimators.gaussian_posterior import FittedPosterior
from skbayes_sg.estimators.out_of_core import FirstPass, require_chunk, source_of, weights_or_none
from skbayes_sg.estimators.predicted_covariance import predicted_covariance
from skbayes_sg.estimators.regressor import NO_WEIGHT, BayesianRegressor, of_positive_weight
from skbayes_sg.estimators.updating import update
from skbayes_sg.estimators.warnings_of_rows import (
    is_separated,
    moved_by_intercepts,
    of_certain_rows,
    of_columns_without_unit,
)
from skbayes_sg.frames import as_table
from skbayes_sg.inference.one_mode import OneMode
from skbayes_sg.inference.precision import SEPARATED, Hyperprior
from skbayes_sg.inference.result import Fit
from skbayes_sg.inference.variational_em import VariationalEM
from skbayes_sg.inspection.names import feature_names
from skbayes_sg.inspection.summary import of_coefficients, of_groups
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.models import Model
from skbayes_sg.models.base import Response
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior
from skbayes_sg.priors import Distribution, Prior
from skbayes_sg.priors.shrinkage import ScaleMixture
from skbayes_sg.samplers import Sampler
from skbayes_sg.streams.bayesian_updating import Stream
from skbayes_sg.validation import checked_weights, require_choice, warn


@dataclass(eq=False, repr=False)
class LinearModel(BayesianEstimator):
    """An estimator whose response depends on coefficients times features plus intercept.

    Its posterior has one mode, near which a normal distribution can stand for it: `posterior_`.
    Streams update that distribution (`updating.update`).

    Parameters
    ----------
    sampler : Sampler, str or None, default=None
        A sampler, or "sgfs", "sghmc", "sgld", "sgd", "constant_sgd", "momentum_sgd", "iasg", "hmc"
        or "underdamped_langevin": with its own defaults up to 1,000 parameters, and without full
        matrices above. None: "underdamped_langevin" where the posterior is near Gaussian enough for
        control variates, HMC on the same pool of rows elsewhere. `sampler_reason_` says what ran.
    prior_precision : float, array (n_features,), "learned" or VariationalEM, default="learned"
        1 / variance of the prior of each coefficient: one number, or one per feature, in squared
        units of its column of X. "learned": one for all coefficients, sampled with them under a
        weak hyperprior (math/priors.md#a-sampled-precision). Above 1,000 parameters it is found by
        chains, and then fixed, unless columns are more than rows, and rows are few
        (math/high_dimensional.md#fewer-rows-than-columns). Such a precision is relative to a unit
        of each column (math/priors.md#units-of-the-columns), so a default fit does not change when
        columns are shifted or scaled; a given one is in the units of X. A `VariationalEM` learns
        one per class or feature, in the sampler.
    fit_intercept : bool, default=True
        Whether there is an intercept. Without one the response of a row of zeros is fixed.
    prior_mean : float or array of shape (n_features,) or (1, n_features), default=0.0
        Mean of the prior of each coefficient; a learned precision is learned around it.
    prior : {"horseshoe", "student_t"}, Horseshoe, StudentT or FittedPosterior, optional
        Replaces the normal prior: for columns of which few matter (`priors.Horseshoe`), or some
        matter much more (`priors.StudentT`). Or the `posterior_` of another fit of the same kind,
        with the same features, which replaces all other parameters of the prior; these keep their
        defaults. A precision that it sampled is sampled again, with the rows of both, up to 1,000
        parameters (math/streams.md#the-prior-of-the-next-fit).
    prior_groups : {"share", "feature", "prefix"}, dict or callable, optional
        Columns that share a learned precision. By default each factor of `categorical_features`
        with more than two levels is a group, so that its levels are random intercepts and the model
        is hierarchical (math/priors.md#groups), and all other columns share one. A dict changes
        this by the name or number of a column: "own", "share", or "flat", which does not shrink it;
        a flat factor has no column for its first level, with which the others are compared. The
        dict may also have lists of columns by the label of their group, and slopes of a column by
        the levels of a factor, ``{("days", "person"): "own"}``. "share": one precision for all.
        "feature": each column of X has its own. A function maps a column's name to a label.
        "prefix": the part of the name before "__", as `ColumnTransformer` names the levels of a
        factor.
    new_levels : {"sample", "zero", "refuse"}, default="sample"
        Predictions for levels that are not in the training data. "sample": the effect is drawn from
        the distribution of the levels' effects, under the standard deviation of each draw; each
        level has its own draws, the same in every call. "zero": the effect is zero. "refuse": a
        ValueError names the levels. If a factor was encoded as columns of zeros and ones, a row of
        zeros is a new level if each row of the fit had a one; `factors_` lists which groups are
        factors, and why others are not (math/priors.md#new-levels).
    forgetting_factor : float in (0, 1], default=1.0
        For streams that drift: `partial_fit` multiplies the information of all earlier rows by it
        before each chunk, but not that of the prior. With 1 nothing is forgotten.
    n_chains : int or "auto", default="auto"
        Independent chains. "auto" is 32 where one product of matrices serves all chains of a group
        (HMC, control variates), 16 where steps of HMC are long (4,000 outputs of rows or more), and
        8 otherwise. With control variates and more than 1,000 parameters it is 8 of dense rows and
        16 of sparse ones. Such groups have up to 64 chains, others four.
    n_draws : int or "auto", default="auto"
        Draws kept per chain by each `fit`. "auto" is 2,048 over the number of chains, 1,280 over it
        near a normal distribution and at most 128 above 1,000 parameters, and half as many more
        each time, up to 16,384 in all, while R-hat is above its limit or the effective draws of
        bulk or tails are fewer than 400 (Vehtari et al. 2021). It adds none that take more than a
        minute, and keeps at most what 400 MB hold, with a warning if that is less. A fit that ends
        with fewer than 400 effective draws warns, unless time is the reason and there are more than
        200.
    burn_in : int or "auto", default="auto"
        Sampler steps before the first kept draw. "auto" is 64 for HMC, or 150 with fewer than 8
        chains in a group, 25 or more for SGFS with control variates, and max(1000, 10 (1 + alpha^2)
        rows / batch_size) without.
    thin : int or "auto", default="auto"
        Sampler steps per kept draw. "auto" is 1 for HMC, 2 or more for SGFS with control variates,
        and (1 + alpha^2) rows / (5 batch_size), a fifth of the autocorrelation time, without.

    Attributes
    ----------
    factors_ : dict of str to Factor
        Factors, with their `levels` that have rows; for a group of `prior_groups` that is not a
        factor but might be, the reason.
    coef_names_ : array of shape (n_features,)
        Names of the coefficients: of the columns of X, and of a factor's levels, ``city[Rome]``.
    coef_, coef_std_ : arrays of shape (n_features,)
        Posterior means and standard deviations, in double precision whatever that of X. With more
        than two classes these and their draws are of differences to the mean over the classes, as
        one number added to the coefficients of all classes changes no probability.
    intercept_ : float
        Posterior mean.
    coef_samples_ : array of shape (n_chains, n_draws, n_features)
        Draws of `coef_`: a view of `draws_`, or of such differences.
    intercept_samples_ : array of shape (n_chains, n_draws)
        Draws of `intercept_`.
    posterior_ : FittedPosterior
        Normal approximation of the posterior: `mean`, `covariance`, `precision`. It may be the
        `prior` of another fit, and `partial_fit` goes on from it. It does not depend on the draws;
        above 1,000 parameters it has their means and variances. Where that takes several passes
        over few rows it is computed when its numbers are read, from a copy of the rows.
    prior_precision_path_ : array of shape (updates, blocks), where the prior was learned
        Path of the precisions: those on the way to the last, or geometric means over groups of
        chains.
    prior_precision_blocks_ : dict of str to float, where the prior was learned
        Learned precision of each block, in the order of the columns of the path and in units of the
        columns of X: that of standardised columns.
    prior_precision_draws_ : array of shape (n_chains, n_draws, n_groups), where it was sampled
        The precisions of each draw; `prior_precision_blocks_` are their geometric means. Those of a
        stream do not depend on the coefficients of the same draw.
    log_loss_path_ : array of shape (n_chunks, 3), of a stream
        For the last 10,000 chunks: the weighted mean log loss of the rows at the posterior mean
        before the chunk was learned, and its mean and standard deviation if the model is right. NaN
        for the first rows, before which there is only the prior.
    diagnostics_ : dict of str to float
        ``r_hat_max`` and ``r_hat_limit``, above which the fit warns
        (math/diagnostics.md#many-chains). ``r_hat_coef`` under the horseshoe, of the coefficients:
        whether chains agree on which columns matter. ``ess_min`` (bulk), ``ess_tail_min``,
        ``ess_per_pass``. ``sd_error``, the largest relative Monte Carlo error of a standard
        deviation. ``stein_ratio`` (drawn over wanted variance, averaged over directions; 1 for
        exact draws of any posterior) and its standard error ``stein_se``. ``mean_shift`` and
        ``sd_ratio`` with standard errors ``mean_shift_se`` and ``sd_ratio_se``: the largest error
        of a posterior mean, in posterior standard deviations, and the worst ratio of a drawn to the
        right standard deviation, by gradients of all rows; NaN if these would take more than a
        tenth of the fit (math/diagnostics.md#moments-from-gradients). ``accept_rate`` for HMC.
    """

    sampler: Sampler | str | None = None
    prior_precision: ArrayLike | str = "learned"
    _: KW_ONLY
    fit_intercept: bool = True
    intercept_precision: float = 0.01
    prior_mean: ArrayLike = 0.0
    prior: FittedPosterior | ScaleMixture | str | None = None
    prior_groups: Any = None
    new_levels: str = "sample"
    forgetting_factor: float = 1.0
    categorical_features: Any = "from_dtype"
    n_chains: int | str = "auto"
    n_draws: int | str = "auto"
    burn_in: int | str = "auto"
    thin: int | str = "auto"
    warm_start: bool = False
    n_jobs: int | None = None
    random_state: Any = None

    _reads_blocks = True
    _rows_of_columns: ClassVar[NDArray | None] = None
    """Rows in which the column of a level is not 0."""
    _columns: ClassVar[Columns | None] = None  # a class variable is no parameter
    """Means and units of the columns in all rows, where a prior is in these units."""
    _spread: ClassVar[tuple[float, float] | None] = None
    """Middle and half width of the y of a fit, where it has a unit."""
    _has_rows = False
    """Whether `coef_` has a row for each logit, and `intercept_` an entry, also for one."""
    prior_precision_ = FromFit(lambda self, fit: _normal_precision(fit))
    posterior_ = FromFit(lambda self, fit: updating.posterior_of(self, fit), kept=True)
    coef_ = FromFit(lambda self, fit: self._coefficients[0])
    coef_std_ = FromFit(lambda self, fit: self._coefficients[1])
    intercept_ = FromFit(lambda self, fit: self._coefficients[2])
    _coefficients = FromFit(lambda self, fit: updating.moments_of(self, fit), kept=True)
    draws_ = FromFit(lambda self, fit: updating.draws_of(self, fit))
    draw_weights_ = FromFit(lambda self, fit: updating.weights_of(self, fit))
    _hyper_draws = FromFit(lambda self, fit: updating.hyper_draws_of(self, fit))

    @property
    def log_loss_path_(self) -> NDArray:
        """Log loss of each chunk of a stream before it was learned, and what was predicted for it.

        Array of shape (n_chunks, 3), of the last 10,000 chunks: the log loss of a row, in the
        weighted mean over the chunk, at the posterior mean before it; its mean and its standard
        deviation if the model is right. NaN for the first rows, before which there is only the
        prior, and predictions for rates of counts are NaN too.
        """
        if self._stream is None:
            raise AttributeError("log_loss_path_ is of a stream: only partial_fit keeps it")
        return self._stream.drift.path.copy()

    @property
    def _batches(self) -> Batches | None:
        return updating.batches_of(self, self._fit)

    @property
    def coef_samples_(self) -> NDArray:
        """Draws of `coef_`, (n_chains, n_draws, ...)."""
        return updating.coef_and_intercept(self, self.draws_)[0]

    @property
    def intercept_samples_(self) -> NDArray:
        """Draws of `intercept_`, (n_chains, n_draws, ...); zeros without one."""
        return updating.coef_and_intercept(self, self.draws_)[1]

    @property
    def coef_names_(self) -> NDArray:
        """Names of the columns of `coef_`: those of X, and ``city[Rome]`` of a level."""
        return np.array(feature_names(self), object)

    @property
    def factors_(self) -> dict[str, Factor | str]:
        """Factors, with their levels that have rows; in words, why a group is none."""
        check_is_fitted(self, "model_")
        factors: dict[str, Factor | str] = {}
        for name, levels in self._levels.items():
            factors[name] = levels.seen
            if not levels.known:
                factors[name] = "no factor: slopes of a column that is not in X"
            elif levels.slope_of is not None:
                factors[name] = f"slopes of {self.coef_names_[levels.slope_of]!r} by level"
        return factors | {name: f"no factor: {why}" for name, why in self._no_factors.items()}

    @property
    def prior_precision_draws_(self) -> NDArray:
        """Precision of each group under each draw, (n_chains, n_draws, groups)."""
        eta = getattr(self, "_hyper_draws", None)
        if eta is None:
            raise AttributeError(f"{type(self).__name__} has sampled no prior precision")
        flat = self._fit.scales.precisions(eta.reshape(-1, eta.shape[-1]))
        return flat.reshape(*eta.shape[:2], -1)

    # -- what `fit` and `inference.sample` ask for ----------------------------------------------

    def _plan(self, twin: Callable[[Fit], Any] | None = None) -> OneMode:
        return OneMode()

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        require_choice("new_levels", self.new_levels, ("sample", "zero", "refuse"))

    def _em(self) -> VariationalEM | Hyperprior | None:
        """How the prior precision is learned or sampled; None if it is given, or the prior is."""
        if self.prior is None or shrinkage_of(self.prior) is not None:
            return hyperprior_of(self) or super()._em()
        if isinstance(self.prior, FittedPosterior):
            return self.prior.hyperprior(self._design)
        return None

    def _prior(
        self, model: Model, data: Data, classes: NDArray | None = None, streaming: bool = False
    ) -> Prior:
        if not isinstance(model, Predictor):
            raise TypeError(
                "an estimator with coefficients needs a model that derives from Predictor, and "
                f"{type(model).__name__} does not; derive it from "
                "skbayes_sg.models.predictor.Predictor and write what that asks for, or sample it "
                "by chains.run_chain"
            )
        return prior_of(self, model, data, classes, streaming)

    def _require_streams(self) -> None:
        if self.sampler is not None:
            raise AttributeError(
                "sampler: partial_fit updates the posterior without a sampler; set sampler=None"
            )
        if shrinkage_of(self.prior) is not None:
            raise AttributeError(
                f"prior={self.prior!r}: partial_fit keeps a normal posterior, which this prior "
                "does not lead to; call fit, or set prior=None"
            )

    def _facts(self, posterior: Posterior) -> dict[str, Any]:
        data, columns = posterior.data, None
        if self._asks_columns(posterior.dim):
            columns = of_columns(data)
        if isinstance(self.prior, FittedPosterior):
            before = self.prior.with_columns_of(posterior.predictor, self._design)
            columns = columns if before.columns is None else before.columns.and_of(data)
        facts = {"_columns": columns, "_spread": posterior.predictor.spread_of_y(data)}
        return facts | factors_of(self, data)

    def _asks_columns(self, dim: int) -> bool:
        """Whether the prior knows units or means of the columns, or was in another fit."""
        at_means = self.fit_intercept and has_matrix(dim)
        return at_means or self._em() is not None or isinstance(self.prior, FittedPosterior)

    def _warnings_of_stream(self, stream: Stream) -> dict[str, str]:
        """What the rows of a stream are warned of, by kind."""
        return {}

    def _notices(self, posterior: Posterior, facts: dict[str, Any]) -> list[str]:
        """Warnings about columns of one value, where the prior is in units of the columns."""
        if self._em() is None or isinstance(self.prior, FittedPosterior):
            return []
        of_levels = [column for new in facts["_levels"].values() for column in new.factor.columns]
        columns, names = of_columns(posterior.data), self._column_names
        return of_columns_without_unit(columns, of_levels, names, self.fit_intercept)

    def _explained(self, posterior: Posterior, warnings: list[str]) -> list[str]:
        """Also a warning of a coefficient that the prior of an intercept at zero moves."""
        warnings = super()._explained(posterior, warnings)
        at_zero = self.fit_intercept and not has_matrix(posterior.dim)
        if not at_zero or isinstance(self.prior, FittedPosterior):
            return warnings
        of_intercepts = posterior.predictor.unpack(posterior.prior.precision)["intercept"]
        precision = float(of_intercepts.flat[0])
        sd, ess = np.atleast_2d(self.coef_std_), self.diagnostics_["ess_min"]
        moved = moved_by_intercepts(posterior, self._draws, sd, precision, ess)
        column = int(moved.argmax())
        if not moved[column] > SHIFT_LIMIT:
            return warnings
        return [
            *warnings,
            f"the prior of the intercept moves the coefficient of column "
            f"{self._column_names[column]!r} by about {moved[column]:.1f} of its posterior "
            "standard deviations: with more than 1,000 parameters it is where columns are zero, "
            "far from the mean of this one; take off the means of such columns, for example by "
            "StandardScaler, or lower intercept_precision",
        ]

    def _few_draws(self, posterior: Posterior) -> FewDraws | None:
        # effects of new levels are balanced over all draws; a mean that is linear takes one product
        linear = isinstance(posterior.model, Response) and posterior.model.has_linear_mean
        if linear or self._levels or not self._draws.count_alike:
            return None
        return few_draws(posterior, self._draws.flat)

    def _take_levels_of(self, X: Any) -> None:
        if self._design is not None:
            validate_data(self, X := as_table(X), reset=False, skip_check_array=True)
            self._design = self._design.with_levels_of(X)

    def _require_bounds(self, distribution: Distribution) -> None:
        """Raise ValueError if a stream leaves a parameter of its own without bounds."""

    # -- theory and tables ----------------------------------------------------------------------

    def predicted_covariance(
        self,
        X,
        y,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        var_weights: ArrayLike | None = None,
        trials: ArrayLike | None = None,
    ) -> NDArray:
        """Covariance of the draws of this fit in theory (math/stationary.md#predicted-covariance).

        Only estimators with coefficients have this method, because the theory is that of a
        posterior with one mode, near a Gaussian. Networks have many modes.

        The result is the stationary covariance of the fitted sampler, as its chains froze it after
        burn-in. Its curvature is that of all rows at the posterior mean. Its gradient noise is the
        mean over the points of a chain, whose covariance is the one that is predicted: exact for
        noise that is quadratic in the parameters, as that of linear regression. Where the prior
        precision is sampled, the curvature is the inverse covariance of a mixture of normal
        distributions over it. The call costs some passes over the data for each parameter, up to 32
        parameters. The result differs from the posterior covariance (the inverse curvature) by the
        sampler's bias. It differs from the covariance of
        the draws by Monte Carlo error and by the posterior's deviation from a Gaussian.

        Parameters
        ----------
        X, y, sample_weight, offset, var_weights, trials :
            The data of the fit; of an exposure the logarithm is the offset.

        Returns
        -------
        array of shape (dim, dim)
            In the order of `draws_`.

        Raises
        ------
        ValueError
            If the sampler has no stationary distribution: its steps decrease, are clipped, or are
            unstable on these data. Also for very many parameters.
        NotFittedError
            If there was no `fit`, only `partial_fit`.

        Examples
        --------
        >>> from sklearn.datasets import make_regression
        >>> from skbayes_sg import BayesianLinearRegression
        >>> X, y = make_regression(n_samples=1000, n_features=3, noise=1.0, random_state=0)
        >>> model = BayesianLinearRegression("constant_sgd", n_draws=250, random_state=0)
        >>> drawn = model.fit(X, y).draws_.reshape(-1, 5).var(axis=0)
        >>> bool((abs(drawn / model.predicted_covariance(X, y).diagonal() - 1) < 0.3).all())
        True
        """
        check_is_fitted(self, "model_")
        engine = self._fit.engine
        if engine is None or self._stream is not None:
            raise NotFittedError(
                "predicted_covariance needs a `fit`: a stream has no stationary distribution"
            )
        metadata = RowMetadata(sample_weight, offset, var_weights, trials)
        metadata = metadata_of_fit(self, metadata)
        posterior = self._posterior_of(X, y, metadata)
        return predicted_covariance(engine, posterior, self._draws.mean()[None])

    def summary(
        self,
        level: float = 0.95,
        *,
        scaler=None,
        reference=None,
        positive=None,
        rope=None,
        most="auto",
        groups=False,
        full=False,
    ):
        """Table of the posterior: a row for each coefficient, intercept and sampled noise variance.

        Parameters
        ----------
        level : float in (0, 1), default=0.95
            Posterior probability of the intervals.
        scaler : fitted transformer, optional
            The steps before this estimator: a StandardScaler, a ColumnTransformer or a Pipeline of
            them, ``pipeline[:-1]``. The table is then in the units before them, intercept included.
            Only steps that shift and stretch each column can be undone; columns of encoders keep
            their units. If the estimator has no column names, they come from these steps.
        reference : label or dict, optional
            For more than two classes, the class with which the others are compared. Or, by the name
            of a factor, the level with which its others are compared: their rows are then contrasts
            with it, and the intercept is that of the level. By default factors of fewer than five
            levels are compared with their first one, as in the tables of most regressions; with
            ``reference={}`` all levels have rows.
        positive : label, optional
            With two classes, the class whose odds the coefficients describe; by default
            ``classes_[1]``.
        rope : float or (float, float), optional
            Region of practical equivalence, in which coefficients are too small to matter. A number
            is its half width around 0; with 0 only signs count. The table then has its posterior
            probability, and the expected share of false discoveries.
        most : int, "auto" or None, default="auto"
            Number of coefficients in the table, sorted by the probability of being beyond `rope` on
            one side, or without `rope` by the mean over the standard deviation. The rows of other
            parameters follow. None: all coefficients, in the order of the columns. "auto": the
            same, but a factor of more than 50 levels has one row, of the standard deviation of
            their effects, if its precision is sampled and no other column has it. Of several
            classes it has one for each, of the differences that the other rows are.
        groups : bool, default=False
            Whether to return the spread of the coefficients of each group of `prior_groups`
            instead.
        full : bool, default=False
            Whether to return all columns instead of the main ones.

        Returns
        -------
        pandas.DataFrame
            Its index has the names of the columns of X, "intercept", and "noise_variance" or
            "dispersion". Where X has factors (`categorical_features`), the index has a second
            level, of the levels of a factor: ``table.loc["city"]`` are those of one, and
            ``table.loc[("age", "")]`` is the row of a column of numbers. Without pandas it is a
            `sklearn.utils.Bunch` of arrays that prints as a table.

            - ``mean``, ``sd``: of the posterior.
            - ``eti95_lb``, ``eti95_ub``: ends of the equal-tailed interval.
            - ``odds_ratio``, ``odds_ratio_eti95_lb``, ``odds_ratio_eti95_ub``: of classifiers, the
              posterior median of exp(coefficient) and its interval: the factor of the odds per unit
              of the column. In the row of an intercept they are the odds where all columns are 0;
              with more than two classes only if `full`, and NaN otherwise. With a log link
              ``rate_ratio``: the factor of the mean. NaN in the row of a dispersion, which is no
              coefficient.
            - ``p_direction``: probability of direction, that the number has the sign of its median:
              from 0.5 where the sign is open to 1 where it is certain. Of a model with ratios if
              `full`.
            - ``p_rope``: probability of the region of practical equivalence, if `rope` is given.
            - ``fdr``: expected share of false discoveries among the rows that are at least as sure
              as this one. A discovery says that a coefficient is beyond `rope`, and on which side.
              So its probability of error is ``1 - max(P(coef > upper), P(coef < lower))``, with the
              ends of `rope` (Stephens 2017), and ``fdr`` is the mean of those (Müller, Parmigiani &
              Rice 2006). See the notes.

            If `full`, also

            - ``hdi95_lb``, ``hdi95_ub``: ends of the highest density interval, the shortest one.
            - ``ess_bulk``, ``ess_tail``: effective number of independent draws for the centre, and
              for the 5 % and 95 % quantiles.
            - ``r_hat``: 1 where the chains agree. The fit warns above its
              ``diagnostics_["r_hat_limit"]``: 1.05, or more for many chains.
            - ``mcse_mean``, ``mcse_sd``: Monte Carlo errors of ``mean`` and ``sd``, many times
              smaller than `ess_bulk` tells where draws were matched to their gradients
              (math/matched.md#remaining-errors).

            Of groups, the numbers are those of the root mean square of their coefficients' prior
            standard deviations, in the units of X: of a factor's levels, the standard deviation of
            random intercepts. ``n_coefficients`` counts them. ``attrs`` holds the prior precisions
            that were learned, and as "quantity", which is the name of the columns too, of which
            class the odds are and against which.

        Raises
        ------
        ValueError
            If `scaler` does more than shift and stretch columns, if `reference` is not one of at
            least three classes, if `most` is not a positive integer, if a stream has not drawn
            yet, or if `groups` is asked for where the prior is given.

        Notes
        -----
        With more than two classes, adding a number to the coefficients of all classes changes no
        probability, so that only differences have a meaning. The rows, with the class as first
        level of the index, are differences from the mean over the classes, as in `coef_`, or from
        `reference`.

        Of the rows with fdr below 0.05 at most 5 % are expected to be wrong, over coefficients such
        as the prior describes. Under a normal prior none is zero, and nearly all are beyond a
        `rope` that is small relative to the standard deviations, so that only their signs are
        uncertain. If most columns may have no effect at all, use the horseshoe, and as `rope` the
        size of an effect that matters.

        Weights of draws (`draw_weights_`) count in every column.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.preprocessing import StandardScaler
        >>> from skbayes_sg import BayesianLogisticRegression
        >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        >>> model = BayesianLogisticRegression(random_state=0)
        >>> pipeline = make_pipeline(StandardScaler(), model).fit(X.iloc[:, :3], y)
        >>> table = model.summary(scaler=pipeline[0])
        >>> table.index.tolist()
        ['mean radius', 'mean texture', 'mean perimeter', 'intercept']
        >>> bool(table.loc["mean texture", "odds_ratio_eti95_ub"] < 1)
        True
        """
        if groups:
            return of_groups(self, level, full)
        asked = {"scaler": scaler, "reference": reference, "positive": positive, "most": most}
        return of_coefficients(self, level, rope=rope, full=full, **asked)


@dataclass(eq=False, repr=False)
class LinearClassifier(LinearModel, BayesianClassifier):
    """A classifier whose logits are linear in its coefficients. The model is the subclass's."""

    _: KW_ONLY
    class_weight: dict | str | None = None
    n_predict_draws: int | str | None = "auto"

    _has_rows = True

    @where_it_streams
    @all_or_nothing
    def partial_fit(self, X, y, classes=None, sample_weight=None, offset=None) -> Self:
        """Update the posterior with a chunk of rows.

        The posterior after one chunk is the prior of the next. Chunks may have any size from one
        row, and come in any order. Rows are kept up to a budget, a sixteenth of
        `sklearn.get_config()["working_memory"]`: 64 MB by default. The posterior is a normal
        distribution (math/streams.md#streams-as-bayesian-updating), which is computed again from
        the kept rows if it has moved and is asked for. Beyond the budget the oldest rows are
        replaced by a normal approximation at the present mean. `diagnostics_` then has
        ``folded_shift``, the estimated error of the mean in the worst direction, in posterior
        standard deviations, its Monte Carlo error ``folded_shift_se``, and ``folded_variance``, the
        relative error of variances. A large shift, with a ConvergenceWarning, is a sign of a long
        stream that is not in random order, or drifts.

        `log_loss_path_` has the log loss of each chunk before it is learned, and its prediction. If
        the coefficients move, the posterior mean lags behind them, and each chunk would have a
        smaller log loss if the mean had moved further in the direction of the last ones:
        ``diagnostics_["drift"]`` is that slope of the log losses in standard errors, which is near
        0 or below if nothing moves, even if the model is wrong (math/streams.md#drift). A
        ConvergenceWarning says when it passes 5, or -5 if nothing is forgotten. Rows that are
        sorted by y drift too. Each kind of warning comes once in a stream, and its figure is in
        `diagnostics_`.

        Nothing is sampled: `sampler` must be None, and `draws_` are independent draws from the
        present posterior, made on demand. After `fit` or `compact` the stream continues from
        `posterior_`, without the rows of before. Units of columns and y, and a prior precision that
        is to be learned, are those of all rows so far: of linear regression after each chunk, else
        each time that rows, or those outside the largest class, have grown by a tenth
        (math/streams.md#priors-that-depend-on-the-rows). Above 1,000 parameters the precision of
        the posterior is a diagonal.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            A chunk may lack classes.
        classes : array-like, required in the first call
            All labels that may occur.
        sample_weight : array-like of shape (n_rows,), optional
            Factor of each row's log likelihood; an integer weight repeats the row.
        offset : array-like of shape (n_rows,) or (n_rows, n_classes), optional
            As in `fit`, in all chunks or in none.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data or parameters are invalid; raised before any update.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import make_classification
        >>> from skbayes_sg import BayesianLogisticRegression
        >>> X, y = make_classification(5000, random_state=0)
        >>> model = BayesianLogisticRegression(random_state=0)
        >>> for rows in np.array_split(np.arange(5000), 100):
        ...     model = model.partial_fit(X[rows], y[rows], classes=[0, 1])
        >>> model.n_samples_seen_, model.draws_.shape
        (5000, (8, 256, 21))
        """
        X, y, labels = chunk_of(self, X, y, classes)
        metadata = RowMetadata(sample_weight, offset)
        attributes = of_chunk(self, X, metadata) | {"classes_": labels}
        model, data = self._rows(X, y, labels, metadata, n_total=X.shape[0])
        update(self, data, lambda rows: model, attributes)
        return self

    def _explained(self, posterior: Posterior, warnings: list[str]) -> list[str]:
        """That a plane separates the classes, where chains have learned the precision.

        And a column whose prior alone allows a coefficient that makes rows certain.
        """
        fit, warnings = self._fit, super()._explained(posterior, warnings)
        assert fit is not None
        by_chains = fit.scales is None and fit.learned is not None
        mean = self._draws.mean()[None]
        if by_chains and is_separated(posterior, self.model_.is_right, mean):
            warnings = [*warnings, SEPARATED]
        return warnings and warnings + of_certain_rows(posterior, self._column_names)

    def _bind_blocks(self, X, y, metadata: RowMetadata) -> tuple[Posterior, dict[str, Any]]:
        """Posterior of rows out of core, and the facts about them."""
        source = source_of(X, y, metadata, self._design)
        first_pass = FirstPass(source, labels=True)
        classes, factors = self._classes_of(first_pass.labels), None
        totals = np.zeros(len(classes))
        totals[np.searchsorted(classes, first_pass.labels)] = first_pass.totals
        present = totals > 0
        if self.class_weight is not None:
            factors = class_factors(self.class_weight, totals, classes)
            present &= factors > 0
        require_two(present.sum())
        model, dtype = self._make_model(source.n_features, classes), source.dtype
        if source.n_known not in (0, model.n_offsets):
            raise ValueError(
                f"offset has {source.n_known} column(s), and the model takes {model.n_offsets}"
            )

        def encode(y: NDArray, weight: NDArray | None) -> tuple[NDArray, NDArray | None]:
            codes = np.searchsorted(classes, y)
            if factors is not None:
                weight = factors[codes] if weight is None else weight * factors[codes]
            return model.encode(codes, dtype), weights_or_none(WEIGHTS, weight, dtype)

        data = first_pass.data(encode)
        return Posterior(model, data, self._prior(model, data, classes)), {"classes_": classes}


class LinearRegressor(BayesianRegressor, LinearModel):
    """A regression whose mean is a function of coefficients times features plus intercept."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self._family.variance_power is not None
        return tags

    def score(self, X, y, sample_weight=None, offset=None, exposure=None) -> float:
        """D^2, the share of the deviance that is explained; 1 at best, 0 for the mean of y.

        It is R^2, the share of the variance, where noise does not depend on the mean. Where all y
        are the same it is 0, or 1 if all are predicted exactly.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
        offset, exposure : array-like of shape (n_rows,), optional
            As in `fit`.

        Returns
        -------
        float
        """
        power = self._family.variance_power
        offset = offset_of(offset, exposure, self._family.log_link, X)
        if power is None:
            return super().score(X, y, sample_weight, offset)
        y, predicted, weight = at_hand(y, self.predict(X, offset=offset), sample_weight)
        how = {"sample_weight": weight, "power": power}
        deviance, y = mean_tweedie_deviance(y, predicted, **how), np.asarray(y)
        if len(y) > 1 and not np.ptp(y[checked_weights(weight, len(y)) > 0]):
            return float(deviance == 0)  # none is to be explained, as in R^2
        return float(d2_tweedie_score(y, predicted, **how))

    # -- data and model -------------------------------------------------------------------------

    def _make_model(self, data: Data) -> Predictor:
        return self._family.of_data(data, self.fit_intercept)

    def _notices(self, posterior: Posterior, facts: dict[str, Any]) -> list[str]:
        notices = super()._notices(posterior, facts)
        if getattr(self, "noise_variance", None) is not None:  # either kind of weight is the other
            return notices
        return notices + self._family.notices(posterior.data)

    def _bind(
        self, X, y: NDArray, metadata: RowMetadata, n_total: float | None = None
    ) -> Posterior:
        data = self._rows(X, y, metadata, n_total)
        model = self._make_model(data)
        data = merged(data, model, self.sampler is not None)
        return Posterior(model, data, self._prior(model, data))

    def _rows(self, X, y: NDArray, metadata: RowMetadata, n_total: float | None = None) -> InMemory:
        """The rows with all that is known of them; of a stream those of weight 0 too."""
        n_features = X.shape[1]
        X, y, metadata = self._with_metadata(X, y, metadata)
        X, y, weights = of_positive_weight(X, y, metadata.sample_weight, n_total)
        data = InMemory.of(X, y, weights, n_total, Predictor.takes_sparse)
        if self._family.has_location:
            require_spread(y, data.X.dtype)
        return replace(data, n_known=X.shape[1] - n_features)

    def _checked_rows(self, X, y, metadata: RowMetadata):
        if metadata.var_weights is None and metadata.trials is None:
            return super()._checked_rows(X, y, metadata)
        require_offset(self, metadata.offset)
        X, y, metadata = self._with_metadata(*self._validate_pair(X, y, reset=False), metadata)
        return X, y, checked_weights(metadata.sample_weight, len(y))

    def _with_metadata(
        self, X, y: NDArray, metadata: RowMetadata
    ) -> tuple[Any, NDArray, RowMetadata]:
        """Rows with all that is known of them: in X, in y, or in the weight.

        Where rows depend on y less its linear predictor alone, an offset is taken off y. It may be
        as far from zero as y, and X in single precision.
        """
        weight, offset, counts, trials = metadata
        columns = None if offset is None else known_columns(offset, len(y), 1)
        if trials is not None:
            columns = with_trials(offset, trials, X)
            require_trials(columns[:, 1], X.dtype)
        if counts is not None:
            k = counts_of_means(counts, len(y))
            if getattr(self, "noise_variance", None) is not None:  # k rows say no more of it
                weight = k * checked_weights(weight, len(y))
            else:
                y, of_means = self._family.averaged(y, k)
                if columns is not None:
                    of_means[:, :1] += columns
                columns = of_means
        self._family.require_targets(y)
        if columns is not None:
            self._family.require_together(y, columns)
        if columns is not None and self._family.has_location:
            y, columns = y - columns[:, 0], np.column_stack([0 * columns[:, 0], columns[:, 1:]])
            columns = columns if columns.shape[1] > 1 else None
        X = X if columns is None else with_known(X, columns)
        return X, y, RowMetadata(weight)

    def _bind_blocks(self, X, y, metadata: RowMetadata) -> tuple[Posterior, dict[str, Any]]:
        """Posterior of rows out of core, and the facts about them."""
        if metadata.var_weights is not None:
            raise ValueError(
                "var_weights: rows that are read in blocks have none; give sums and their exposure "
                "where y are counts, or arrays in memory"
            )
        if metadata.offset is not None and self._family.has_location:
            y = y if in_partitions(y) else np.asarray(y)
            y, metadata = y - metadata.offset, metadata._replace(offset=None)
        source = source_of(X, y, metadata, self._design)
        first_pass = FirstPass(source, labels=False, require=self._family.require_together)
        if not first_pass.n_weighted:
            raise ValueError(NO_WEIGHT)

        def encode(y: NDArray, weight: NDArray | None) -> tuple[NDArray, NDArray | None]:
            self._family.require_targets(y)
            return y.astype(np.float64), weights_or_none("sample_weight", weight, source.dtype)

        data = first_pass.data(encode)
        model = self._make_model(data)
        if model.has_location:
            require_spread(data.sample.y, source.dtype)
        return Posterior(model, data, self._prior(model, data)), {}

    @where_it_streams
    @all_or_nothing
    def partial_fit(
        self, X, y, sample_weight=None, offset=None, exposure=None, var_weights=None
    ) -> Self:
        """Update the posterior with a chunk of rows.

        The posterior of linear regression is exact up to 1,000 parameters: any chunks in any order
        lead to that of all rows (math/streams.md#streams-as-bayesian-updating). Its `coef_std_` and
        `noise_variance_` are infinite until the noise variance has a mean, at three rows or so. For
        the rest see `BayesianLogisticRegression.partial_fit`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
            Factor of each row's log likelihood; an integer weight repeats the row.
        offset, exposure, var_weights : array-like of shape (n_rows,), optional
            As in `fit`; the first two in all chunks or in none.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data or parameters are invalid; raised before any update.
        """
        offset = offset_of(offset, exposure, self._family.log_link, X)
        return self._updated_by(X, y, RowMetadata(sample_weight, offset, var_weights))

    def _updated_by(self, X, y, metadata: RowMetadata) -> Self:
        """`partial_fit`, given all that is known of the rows."""
        require_chunk(X)
        self._validate_parameters()
        first = not hasattr(self, "model_")
        if not first:
            self._take_levels_of(X)
        X, y = self._validate_pair(X, y, reset=first)
        attributes = of_chunk(self, X, metadata)
        data = self._rows(X, y, metadata, n_total=X.shape[0])
        warn(self._family.notices(data))
        update(self, data, self._make_model, attributes)
        return self


def of_draws(block: str) -> property:
    """Attribute: draws of a parameter of the family in its own unit, (n_chains, n_draws)."""

    def drawn(estimator: Any) -> NDArray:
        model = estimator.model_
        if block not in model.shapes:
            raise AttributeError(f"the model of this fit has no parameter {block}")
        return model.natural(block, model.unpack(estimator.draws_)[block][..., 0])[1]

    return property(drawn)


def mean_of(samples: str) -> property:
    """Attribute: the posterior mean of such draws."""
    return property(lambda self: float(self._draws.of(getattr(self, samples)).mean()))


def _normal_precision(fit: Any) -> NDArray:
    """Precisions of the prior, in the order of the parameters that are normal."""
    n_normal = fit.model.dim - ("log_noise" in fit.model.shapes)
    return fit.prior.precision[:n_normal].copy()
