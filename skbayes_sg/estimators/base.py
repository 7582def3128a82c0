"""The base of all estimators: from constructor parameters to fitted attributes.

`fit` of the subclasses validates the data and makes a posterior. `_sample` samples it by
`inference.sample`, writes the fitted attributes once, and warns.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from types import MappingProxyType
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn import config_context
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from skbayes_sg.bases import BaseEstimator
from skbayes_sg.callbacks import CallbackRunner, CallbackSupportMixin, with_callbacks
from skbayes_sg.data import InMemory
from skbayes_sg.data.factors import Design, NewLevels, level_name
from skbayes_sg.data.row_metadata import RowMetadata, known_columns, metadata_of_fit, with_known
from skbayes_sg.diagnostics.batches import Batches
from skbayes_sg.diagnostics.draws import Draws
from skbayes_sg.diagnostics.limits import ENOUGH_ESS
from skbayes_sg.estimators.categorical import (
    KINDS,
    REMEDY,
    categorical_columns,
    validated,
)
from skbayes_sg.estimators.coefficient_prior import flat_columns, slopes_of
from skbayes_sg.estimators.descriptions import complete
from skbayes_sg.estimators.few_draws import FewDraws
from skbayes_sg.estimators.foreign_parameters import (
    SignatureOfInit,
    called_here,
    require_known_parameters,
)
from skbayes_sg.estimators.from_fit import FromFit
from skbayes_sg.estimators.gaussian_posterior import FittedPosterior
from skbayes_sg.estimators.new_levels import Levels, new_levels_of, with_new_levels
from skbayes_sg.estimators.notebook import doc_link_template, with_diagnostics, without_draws
from skbayes_sg.estimators.one_hot import Tally, warnings_of
from skbayes_sg.estimators.out_of_core import Method, design_of, is_out_of_core, validate_columns
from skbayes_sg.frames import as_table, is_frame, is_lazy, require_no_dates, select, text_columns
from skbayes_sg.inference.many_modes import gradient_products
from skbayes_sg.inference.options import Choice, Options, RowsNeededError
from skbayes_sg.inference.plan import Plan
from skbayes_sg.inference.precision import Hyperprior
from skbayes_sg.inference.result import Fit, in_single_precision
from skbayes_sg.inference.sample import sample
from skbayes_sg.inference.variational_em import VariationalEM
from skbayes_sg.inspection import export
from skbayes_sg.linalg.sizes import has_cheap_gradients
from skbayes_sg.models import Model
from skbayes_sg.models.base import Response
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import SAMPLERS, Sampler
from skbayes_sg.samplers.base import Need
from skbayes_sg.validation import in_dtype, is_word, require_integer, require_predict_draws, warn
from skbayes_sg.version import __version__

FORMAT = 14
"""Number of the format of fitted attributes, raised when their names or meaning change."""
_OF_DISTRIBUTION = (
    *("coef_", "coef_std_", "intercept_", "posterior_"),
    *("prior_precision_", "prior_precision_path_", "prior_precision_blocks_"),
    "noise_variance_",
)

_DOUBLE = np.finfo(np.float64)
_RESCALE = (
    "scale the columns of X, for example by StandardScaler, and numbers in y; or bring weights and "
    "precisions of the prior nearer to 1"
)
_NOT_FINITE = ("cannot convert float NaN", "array must not contain infs or NaNs")  # not our words
_SINGULAR = "the posterior is singular in double precision ({}); " + _RESCALE
_FULL = "memory is full ({}); lower n_draws, n_chains or n_jobs, or fit fewer rows or columns"
_KILLED = (
    "a worker process ended before its chains did, most often because memory was full ({}); lower "
    "n_jobs or n_draws; callbacks.Checkpoint saves draws on the way"
)


class BayesianEstimator(CallbackSupportMixin, BaseEstimator):
    """An estimator that samples a posterior; a `Plan` of its kind says how its chains run.

    Every constructor has the parameters of a fit in this order: the sampler, the prior, length and
    seed of a run. Parameters of the model stand where a user of scikit-learn expects them: hidden
    units first, as in MLPClassifier, and the rest after `prior_precision`. From `n_chains` on all
    go by keyword.

    Parameters
    ----------
    categorical_features : {"from_dtype"}, list or None, default="from_dtype"
        Columns of X that are factors, as in HistGradientBoostingClassifier: each level that has
        rows becomes a column of zeros and ones. "from_dtype": the columns of categories of a data
        frame, `category` of pandas, `Categorical` and `Enum` of polars, and dictionaries of Arrow.
        Or names or numbers of columns, or a mask of all columns, which may then hold text, whole
        numbers or truth values, also in arrays. Missing cells are a level of their own
        (groups.md#which-columns-are-factors).
    warm_start : bool, default=False
        Whether `fit` continues where the last fit stopped, without burn-in: the chains are those of
        one longer fit. Draws of a default are matched to the gradients of their own fit. With other
        data or parameters only the positions of the chains are kept, and burn-in is repeated.
    n_jobs : int, optional
        Processes for the chains (joblib). By default they run in threads where steps are long, as
        many as BLAS may use (OMP_NUM_THREADS). The draws do not depend on it.
    random_state : int, RandomState, Generator or None
        Seed of the draws: an integer gives the same ones in every fit.

    Attributes
    ----------
    n_features_in_ : int
        Columns of X in the last fit.
    feature_names_in_ : array of shape (n_features,), where X had string column names
        Their names.
    draw_weights_ : array of shape (n_draws,)
        Weights of the draws of a chain, equal unless the sampler's step size decreases.
    sampler_ : Sampler
        The sampler that ran, with numbers in place of "auto".
    sampler_reason_ : str
        Why this sampler ran, or what its name stood for.
    states_ : list of State
        Where the chains stopped, for `warm_start`.
    model_ : Model
        The model whose parameters were drawn: ``model_.unpack(draws_)`` gives them by name.
    prior_precision_ : array of shape (dim,)
        Prior precisions of the parameters in the order of `draws_`, in the units of X.
    n_samples_seen_ : int
        Rows of the last `fit`, and of all chunks that `partial_fit` has read since.
    n_iter_ : int
        Steps of each chain so far.
    burn_in_, thin_ : int
        Steps before the first kept draw, and for each, in the last fit.
    n_passes_ : float
        Rows read by the last fit, search for the mode included, over rows. Chains that share a
        minibatch read it once.
    """

    sampler: Any
    prior_precision: Any
    categorical_features: Any
    n_chains: int | str
    n_draws: int | str
    burn_in: int | str
    thin: int | str
    warm_start: bool
    n_jobs: int | None
    random_state: Any

    _reads_blocks = False
    """Whether rows on disk or on workers are read in blocks, by passes over all."""
    _bind_blocks: Callable[..., tuple[Posterior, dict[str, Any]]]
    """Posterior of such X, y and metadata, and fitted attributes that tell of them."""
    _metadata_of_fit: tuple[str, ...] = ()
    """Names of what was a part of the likelihood of each row of the last fit, beside X and y."""
    _design: Design | None = None
    """Columns of levels of the last fit, where X had factors."""
    _levels: Mapping[str, Levels] = MappingProxyType({})
    """Factors of which predictions know new levels, and slopes by level."""
    _own_factors: tuple[str, ...] = ()
    """Names of those that have a precision of their own, as soon as rows may tell it."""
    _no_factors: Mapping[str, str] = MappingProxyType({})
    """Why other groups of `prior_groups` are no factors."""
    _tallies: Mapping[str, Tally] = MappingProxyType({})
    """Counts of the rows of these groups, from which what is a factor is told."""
    new_levels: str

    # set by `_set_fit`
    model_: Any
    diagnostics_: dict[str, float]
    n_samples_seen_: int
    draws_: Any = FromFit(lambda self, fit: fit.draws)
    draw_weights_: Any = FromFit(lambda self, fit: fit.weights)
    prior_precision_: Any = FromFit(lambda self, fit: fit.prior.precision.copy())
    prior_precision_path_: Any = FromFit(lambda self, fit: fit.learned and fit.learned.path)
    prior_precision_blocks_: Any = FromFit(lambda self, fit: fit.learned and fit.learned.blocks)
    sampler_: Any = FromFit(lambda self, fit: fit.ran.sampler)
    sampler_reason_: Any = FromFit(lambda self, fit: fit.ran.reason)
    n_iter_: Any = FromFit(lambda self, fit: fit.ran.n_iter)
    burn_in_: Any = FromFit(lambda self, fit: fit.ran.burn_in)
    thin_: Any = FromFit(lambda self, fit: fit.ran.thin)
    n_passes_: Any = FromFit(lambda self, fit: fit.n_passes)
    states_: Any = FromFit(lambda self, fit: fit.ran.reason and fit.engine and fit.engine.states)
    _fit: Any = None
    _warnings: list[str]  # of the last fit
    _stream: Any = None  # of partial_fit
    _few: FewDraws | None = None  # that predict averages as all do

    __signature__ = SignatureOfInit()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        complete(cls)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        require_known_parameters(cls, args, kwargs)
        return super().__new__(cls)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- what a notebook shows; scikit-learn asks for attributes from version 1.9 on -----------

    _doc_link_module = "skbayes_sg"
    _doc_link_template = property(lambda self: doc_link_template())

    def _get_params_html(self, *args: Any, **kwargs: Any) -> Any:
        return with_diagnostics(self, super()._get_params_html(*args, **kwargs))

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        return without_draws(super()._get_fitted_attr_html(doc_link))

    # -- methods of a family of estimators ----------------------------------------------------

    def _plan(self, twin: Callable[[Fit], Any] | None = None) -> Plan:
        """How chains run; `twin` makes a copy of the estimator with the attributes of a fit."""
        raise NotImplementedError

    def _posterior_of(self, X, y, metadata: RowMetadata) -> Posterior:
        """The posterior under data of the fitted shape."""
        raise NotImplementedError

    def _checked_rows(self, X, y, metadata: RowMetadata):
        """X with what is known of rows, y and weights, validated, of data of the fitted shape."""
        raise NotImplementedError

    def _tempered(self, posterior: Posterior, streaming: bool) -> Posterior:
        """The posterior at the temperature of the estimator; by default it is Bayes's."""
        return posterior

    def _require_streams(self) -> None:
        """Raise AttributeError if parameters leave no `partial_fit`; the message says why."""
        raise NotImplementedError

    def _facts(self, posterior: Posterior) -> dict[str, Any]:
        """Attributes that tell of the rows."""
        return {}

    def _notices(self, posterior: Posterior, facts: dict[str, Any]) -> list[str]:
        """Warnings about the data, of which attributes tell too, before the chains run."""
        return []

    def _explained(self, posterior: Posterior, warnings: list[str]) -> list[str]:
        """Warnings of the chains, with what the data say given the draws, or in place of them.

        It may add to `diagnostics_`.
        """
        return warnings

    @property
    def _draws(self) -> Draws:
        """The draws and what each counts, as whatever averages over them reads them."""
        return Draws(self.draws_, self.draw_weights_)

    @property
    def _batches(self) -> Batches | None:
        """Batches of draws that were matched to their gradients."""
        return self._fit.batches

    def _few_draws(self, posterior: Posterior) -> FewDraws | None:
        """A few draws that predict averages as all do, if there are such draws."""
        return None

    # -- data ---------------------------------------------------------------------------------

    def _validate_data(self, X, y="no_validation", reset: bool = True, **more):
        """X as float32 or float64, dense in C order or CSR, and y; copied only where necessary.

        Rows are gathered, so C order is faster. Data frames come in Fortran order. Columns of
        categories become columns of their levels (`data.factors`).
        """
        return self._read(X, y, reset, **more)[0]

    def _read(
        self, X, y="no_validation", reset: bool = True, **more
    ) -> tuple[Any, dict[str, NewLevels]]:
        """`_validate_data`, and of each factor the rows of levels that it does not have."""
        design, new, of_numbers = self._design, dict[str, NewLevels](), X
        if reset:
            categorical = categorical_columns(self.categorical_features, X)
            asked = getattr(self, "prior_groups", None)
            design = None
            if categorical:
                design = Design.of(table := as_table(X), categorical, flat_columns(asked))
                names = list(design.names) if is_frame(table) else None
                design = design.with_slopes(slopes_of(asked, names, len(design.names)))
            if isinstance(prior := getattr(self, "prior", None), FittedPosterior):
                design = prior.design_of(as_table(X)) or design
        if design is not None:
            validate_data(self, X := as_table(X), reset=reset, skip_check_array=True)  # its names
            of_numbers = select(X, list(design.numbers))
        require_no_dates(of_numbers)
        if is_lazy(of_numbers):
            raise ValueError(
                f"X is a query without rows in memory, a {type(X).__name__}; give X.collect()"
            )
        try:
            with config_context(array_api_dispatch=False):  # arrays of any library become NumPy's
                if design is None:
                    checked = validate_data(self, X, y, reset=reset, **KINDS, **more)
                else:
                    checked, new = validated(self, X, y, design, more)
        except (ValueError, TypeError) as error:
            if columns := text_columns(of_numbers):
                raise ValueError(
                    f"X holds no numbers in column(s) {', '.join(map(repr, columns))}; {REMEDY}"
                ) from error
            raise
        require_squares(checked[0] if isinstance(checked, tuple) else checked, of_fit=reset)
        if reset:
            self._design = design
        return checked, new

    def _take_levels_of(self, X: Any) -> None:
        """Give columns to levels of a chunk that those before did not have, or say that none have.

        The weights of a network are those of its first chunk.
        """
        new = {} if self._design is None else self._read(X, reset=False)[1]
        for name, levels in new.items():
            labels = [repr(level_name(label)) for label in dict.fromkeys(levels.labels)]
            if labels:
                more = f" and {len(labels) - 5} more" if len(labels) > 5 else ""
                warn(
                    f"column {name!r} of X has levels that the first chunk did not have, "
                    f"{', '.join(labels[:5])}{more}: their rows have zeros in its columns; begin "
                    "the stream with rows of each level",
                    UserWarning,
                )

    @property
    def _column_names(self) -> Sequence[Any]:
        """Names of the columns that the model sees, for messages; numbers where X had none."""
        if self._design is not None:
            return self._design.column_names
        return getattr(self, "feature_names_in_", range(self.n_features_in_))

    def _fitted_in_blocks(self, X, y, metadata: RowMetadata) -> bool:
        """Fit rows out of core by passes over them; False if X is, or has to serve as, an array.

        A memory map serves as one: the system finds the rows that are drawn.
        """
        if not is_out_of_core(X):
            return False
        try:
            if not self._reads_blocks:
                raise RowsNeededError(f"{type(self).__name__} visits rows at each step")
            asked = self._asked(self.sampler)
            if asked is not None and Need.ROWS in asked.sampler.needs:
                raise RowsNeededError(
                    f"sampler={self.sampler!r}, unlike None, visits rows at each step"
                )
            asked = getattr(self, "prior_groups", None)
            design = design_of(self.categorical_features, flat_columns(asked), X)
            if design is not None:
                pairs = slopes_of(asked, list(design.names), len(design.names))
                design = design.with_slopes(pairs)
            self._design = design
            validate_columns(self, X, reset=True)
            posterior, attributes = self._bind_blocks(X, y, metadata)
            self._sample(posterior, X, y, metadata, attributes)
        except RowsNeededError:
            if isinstance(X, np.memmap):
                return False
            raise
        return True

    # -- parameters ---------------------------------------------------------------------------

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the estimator, and those of its sampler as ``sampler__<parameter>``.

        A sampler given by name becomes an instance first, in the form that the name stands for.

        Parameters
        ----------
        **params : dict
            For example ``sampler="sgfs", sampler__alpha=2.0``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If there is no such parameter, or if ``sampler=None`` leaves the sampler to `fit`.
        TypeError
            If parameters are set of a sampler that is none.

        Examples
        --------
        >>> from skbayes_sg import BayesianMLPClassifier
        >>> BayesianMLPClassifier(sampler="sgfs").set_params(sampler__alpha=2.0).sampler
        SGFS(B='precision', alpha=2.0, structure='diag')
        """
        of_sampler = {name: params[name] for name in params if name.startswith("sampler__")}
        sampler = params.get("sampler", self.sampler)
        if of_sampler and not isinstance(sampler, Sampler):
            asked = self._asked(sampler)
            if asked is None:
                raise ValueError(
                    f"Invalid parameter {next(iter(of_sampler))!r} for estimator {self}: with "
                    "sampler=None, fit chooses the sampler by the data. Name it in the same call, "
                    'for example set_params(sampler="sgfs", sampler__alpha=2.0)'
                )
            sampler = asked.sampler.set_params(
                **{name.removeprefix("sampler__"): value for name, value in of_sampler.items()}
            )
            of_estimator = {name: params[name] for name in params if name not in of_sampler}
            params = of_estimator | {"sampler": sampler}
        return super().set_params(**params)

    def _asked(self, sampler: Any, dim: int = 0) -> Choice | None:
        """The sampler that the user gives, by name or as an instance; None for the best default."""
        if sampler is None:
            return None
        if isinstance(sampler, str):
            name = sampler.lower()
            if name not in SAMPLERS:
                raise ValueError(
                    f"sampler must be one of {sorted(SAMPLERS)}, an instance or None, "
                    f"got {sampler!r}{called_here('sampler', sampler)}"
                )
            form = self._plan().presets(dim).get(name)
            form = form or Choice(SAMPLERS[name](), "its defaults")
            reason = f'"{name}" stands for {form.sampler}: {form.reason}'
            return replace(form, reason=reason, asked_for=True)
        if not isinstance(sampler, Sampler):
            called = f"; give {sampler.__name__}()" if isinstance(sampler, type) else ""
            raise TypeError(
                f"sampler must be a Sampler instance, a name out of {sorted(SAMPLERS)} or None, "
                f"got {sampler!r}{called}"
            )
        return Choice(sampler, "as given", asked_for=True)

    def _validate_parameters(self) -> None:
        for name, least in {"n_chains": 1, "n_draws": 4, "burn_in": 0, "thin": 1}.items():
            value = getattr(self, name)
            if not is_word(value, "auto"):
                require_integer(name, value, least, ' or "auto"')

    def _em(self) -> VariationalEM | Hyperprior | None:
        """How the prior precision is learned or sampled; None if it is given."""
        if not isinstance(self.prior_precision, VariationalEM):
            return None
        self.prior_precision.validate()
        return self.prior_precision

    def _options(self, dim: int) -> Options:
        """How a posterior of so many parameters is sampled."""
        last = None
        if self.warm_start and self._fit is not None and self._fit.engine is not None:
            points = self._fit.engine.last
            last = points if self.n_chains in ("auto", len(points)) else None
        return Options(
            self._asked(self.sampler, dim),
            self._em(),
            self.n_chains if self.n_chains == "auto" else int(self.n_chains),
            self.n_draws if self.n_draws == "auto" else int(self.n_draws),
            self.burn_in,
            self.thin,
            self.random_state,
            self.n_jobs,
            self.warm_start,
            last,
        )

    # -- fit ----------------------------------------------------------------------------------

    @with_callbacks
    def _sample(
        self, posterior: Posterior, X, y, metadata: RowMetadata, attributes: dict[str, Any]
    ) -> None:
        """Sample, write the fitted attributes, warn; `attributes` are those of the subclass."""
        attributes["n_samples_seen_"] = X.shape[0] if hasattr(X, "shape") else len(X)
        attributes["_metadata_of_fit"] = metadata.parts

        def twin(fit: Fit) -> BayesianEstimator:
            other = copy.copy(self)
            other._set_fit(fit, attributes)
            return other

        attributes |= self._facts(posterior)
        warn(small_weights(posterior) + self._notices(posterior, attributes))
        earlier = None if self._fit is None else self._fit.engine
        callbacks = CallbackRunner(self, twin, X=X, y=y)
        fit = sample(posterior, self._plan(twin), self._options(posterior.dim), callbacks, earlier)
        self._set_fit(fit, attributes)
        posterior = posterior.with_prior(fit.prior)
        self._few = self._few_draws(posterior)
        self._warnings = [*fit.notes, *self._explained(posterior, list(fit.warnings))]
        warn(self._warnings)
        if fit.interrupted:
            raise KeptInterrupt

    def _set_fit(self, fit: Fit, attributes: dict[str, Any]) -> None:
        """Write what is not read off the fit, and see that what is read off is finite."""
        self.__dict__.update(attributes)
        self._fit, self._stream, self._few, self.model_ = fit, None, None, fit.model
        self.diagnostics_ = fit.figures
        for name in ("prior_precision_", "coef_", "coef_std_", "intercept_", "noise_variance_"):
            require_finite(name, getattr(self, name, 0.0))

    # -- draws --------------------------------------------------------------------------------

    def _to_predict(
        self,
        X,
        offset: ArrayLike | None,
        dtype: Any = None,
        every: bool = False,
        average: bool = False,
    ) -> tuple[Any, Any, Draws, np.dtype]:
        """The model, rows and draws of a prediction, these as of one chain, and the dtype of X.

        The rows have offsets as last columns, and effects of new levels may have made model, rows
        and draws larger. They are in double precision where offsets may be far from zero. The draws
        are `draws_that_predict`, in a dtype, by default that of X; for an `average` they may be a
        few that stand for them.
        """
        check_is_fitted(self, "model_")
        X, new = self._read(X, reset=False)
        of_rows, X = X.dtype, with_offset(self, X, offset)
        draws, asked = self._draws.flat, "auto"
        if hasattr(self, "n_predict_draws"):  # of classes
            asked = self.n_predict_draws
        if average and self._few is not None and is_word(asked, "auto"):
            numbers, draws = self._few.of(draws)
            weights = np.full(len(numbers), 1 / len(numbers))
        else:
            numbers, weights = draws_that_predict(self, every)
            draws = draws[numbers]
        dtype = X.dtype if dtype is None else np.dtype(dtype)
        if dtype.itemsize < draws.itemsize:  # else a model casts some at a time
            draws = draws.astype(dtype)
        if self._no_factors and self.new_levels == "refuse":  # which may have been set since
            warnings_of(self._tallies, self._no_factors, self.new_levels)
        new_levels = new_levels_of(self, X, new) if self._levels else []
        if new_levels:
            model, X, draws = with_new_levels(self, X, draws, numbers, new_levels)
            return model, X, Draws(draws[None], weights), of_rows
        return self.model_, X, Draws(draws[None], weights), of_rows

    def _with_new_levels(
        self, rows: Any, X: Any, draws: NDArray, numbers: Any
    ) -> tuple[Any, Any, NDArray]:
        """Model, rows and draws with columns and effects of levels that are new.

        `rows` are as they were given, X as the model sees them, `some` the numbers of the draws.
        """
        new = []
        if self._levels:
            new = new_levels_of(self, X, self._read(rows, reset=False)[1])
        return with_new_levels(self, X, draws, numbers, new) if new else (self.model_, X, draws)

    def _without_levels_of_columns(self) -> Self:
        """A copy that predicts rows without any of the columns of a factor as they are.

        Of a data frame's factors new levels are known as such.
        """
        factors = () if self._design is None else self._design.all_factors
        twin = copy.copy(self)
        twin._levels = {factor.name: self._levels[factor.name] for factor in factors}
        return twin

    # -- files, copies, ArviZ -----------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_written_by": (FORMAT, __version__)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        written, version = state.pop("_written_by", (0, "before 0.1.0"))
        if written != FORMAT:
            raise ValueError(
                f"this {type(self).__name__} was written by skbayes_sg {version} in format "
                f"{written}, and skbayes_sg {__version__} reads format {FORMAT} alone: fit it "
                f"again, or load it with skbayes_sg {version}"
            )
        super().__setstate__(state)

    def compact(self, n_draws: int | None = None) -> Self:
        """A copy for predictions that takes less space, in memory and in files.

        Draws are in single precision, unless that would blur their spread. The states of the chains
        are left out, so that a warm start begins anew and `predicted_covariance` is not available.
        So are the rows that a stream keeps: `partial_fit` continues from the normal distribution
        that replaces them. `coef_`, `coef_std_` and `diagnostics_` remain those of all draws.

        Parameters
        ----------
        n_draws : int, optional
            Draws to keep, of all chains together, evenly spaced. The Monte Carlo error of a
            prediction is its posterior standard deviation over the square root of their number. By
            default all are kept.

        Returns
        -------
        estimator of the same kind

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError, TypeError
            If `n_draws` is not an integer of at least the number of chains.

        Examples
        --------
        >>> import pickle
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.preprocessing import scale
        >>> from skbayes_sg import BayesianLogisticRegression
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = BayesianLogisticRegression(random_state=0).fit(scale(X), y)
        >>> small = model.compact(n_draws=320)
        >>> small.draws_.shape
        (32, 10, 31)
        >>> len(pickle.dumps(small)) < len(pickle.dumps(model)) / 5
        True
        """
        check_is_fitted(self, "draws_")
        draws, kept = self._draws.counting(), np.flatnonzero(self._draws.weights)
        if n_draws is not None:
            n_chains = len(draws.values)
            require_integer("n_draws", n_draws, n_chains)
            if n_draws // n_chains < len(kept):
                kept = self._draws.standing(n_draws // n_chains)
                draws = self._draws.resampled(n_draws // n_chains)
        small, fit, few = copy.copy(self), self._fit, self._few
        eta = fit.hyper_draws
        learned = None if fit.learned is None else replace(fit.learned, sampled=None)
        small._stream, small._few = None, None
        if n_draws is None and few is not None:
            small._few = FewDraws(few.count)
        small._fit = Fit(
            None,
            fit.model,
            fit.prior,
            in_single_precision(draws.values),
            draws.weights,
            fit.n_passes,
            learned,
            None if eta is None else fit.scales,
            None if eta is None else eta[:, kept],
            self._batches if n_draws is None else None,
            ran=fit.ran,
        )
        for name in _OF_DISTRIBUTION:  # those of all draws
            if hasattr(self, name):
                small._fit.values[name] = getattr(self, name)
        return small

    def to_arviz(
        self,
        X=None,
        y=None,
        *,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        var_weights: ArrayLike | None = None,
        trials: ArrayLike | None = None,
        log_likelihood: bool = False,
        posterior_predictive: bool = False,
    ):
        """The draws in the format of ArviZ, with names (needs ArviZ: the extra ``arviz``).

        Parameters
        ----------
        X, y, sample_weight, offset, var_weights, trials : array-like, optional
            The data of the fit, or others: held-out rows for `log_likelihood`, or X alone for
            `posterior_predictive`. The offset of an exposure is its logarithm. Counts that have
            `var_weights` are sums in the tree.
        log_likelihood : bool, default=False
            Add the log likelihood of each row under each draw, for ``loo`` and ``compare``. It
            takes 8 bytes for each row and draw, and is refused beyond half of the available memory
            (Linux). The log likelihood of a row of weight w, by
            `sample_weight` or `class_weight`, is that of w rows.
        posterior_predictive : bool, default=False
            Add a new label or number for each row under each draw.

        Returns
        -------
        xarray.DataTree
            - ``posterior``: a variable for each block of parameters, dimensions (chain, draw) and
              "feature", "class" or hidden units, by name. Two classes have no dimension "class":
              coefficients are those of ``classes_[1]``. A sampled noise variance is one variable.
              A factor that X has as one column, such as city, has its effects as ``coef_city``, and
              its levels as dimension ``city`` (``city_level`` where ArviZ has a dimension of that
              name); slopes of days by person are ``coef_days:person``, of the same levels.
            - ``sample_stats``, if X and y are given after a `fit`: ``lp``, the log posterior given
              these rows, up to a constant. Steps and acceptance are not recorded draw by draw.
              Their figures, with `diagnostics_`, the sampler and the reason for it, are attributes
              of the tree.
            - ``log_prior``, where ``sample_stats`` is: the log density of the prior of all
              ``parameters``, up to a constant, and where a precision is sampled, that of its
              logarithm, ``hyperparameters``. With `log_likelihood` they are what
              ``psense_summary`` asks for; see `inspection.prior_sensitivity`.
            - ``log_likelihood``, ``posterior_predictive``: ``y``, dimensions (chain, draw, row).
            - ``observed_data``, ``constant_data``: y and X, where given, and for a factor as
              ``city_idx`` the number of each row's level, -1 if it is new. Labels are
              their number in `classes_`, here and in ``posterior_predictive``.

        Raises
        ------
        ImportError
            If ArviZ is not installed; the message says how to install it.
        ValueError
            If X or y is missing for what was asked, or does not fit the estimator.

        Notes
        -----
        Hidden units of a network can be permuted, so that R-hat of its weights has little meaning:
        judge a network by `diagnostics_` and `diagnose`.

        ArviZ has no weights of draws. If `draw_weights_` differ, draws are repeated and left out in
        proportion to their weights (systematic resampling), the same in every chain.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from skbayes_sg import BayesianLogisticRegression
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = BayesianLogisticRegression(random_state=0).fit(X, y)
        >>> tree = model.to_arviz(X, y, log_likelihood=True)
        >>> tree["posterior"]["coef"].dims
        ('chain', 'draw', 'class', 'feature')
        >>> tree["log_likelihood"]["y"].sizes["row"]
        150
        """
        check_is_fitted(self, "model_")
        metadata = RowMetadata(sample_weight, offset, var_weights, trials)
        if X is not None:
            metadata = metadata_of_fit(self, metadata)
        return export.to_arviz(self, X, y, metadata, log_likelihood, posterior_predictive)


# -- rows -------------------------------------------------------------------------------------


def require_squares(X, of_fit: bool) -> None:
    """Raise ValueError if the square of a value of X overflows in its precision.

    Or, in a fit, for a column whose numbers are too small to be multiplied: their fourth powers,
    which curvatures of squares are, underflow in double precision, or their last digits in that of
    X.
    """
    values = X.data if sparse.issparse(X) else X
    if values.size and max(values.max(), -values.min()) > np.sqrt(np.finfo(X.dtype).max):
        raise ValueError(
            "X holds values whose squares overflow; scale its columns, for example by "
            "MaxAbsScaler, which takes no squares"
        )
    if not of_fit:
        return
    large, small = X.max(axis=0), X.min(axis=0)
    if sparse.issparse(X):
        large, small = large.toarray().ravel(), small.toarray().ravel()
    size = np.maximum(large, -small)
    wrong = (size > 0) & (size < max(_DOUBLE.tiny**0.25, _smallest(X.dtype)))
    if wrong.any():
        raise ValueError(
            f"X holds numbers of at most {size[wrong].max():.1g} in column(s) "
            f"{', '.join(map(str, np.flatnonzero(wrong)[:5]))}, whose products underflow; multiply "
            "such columns by a constant, or leave them out"
        )


def require_spread(y: NDArray, dtype: np.dtype) -> None:
    """Raise ValueError if the squares of differences within y underflow.

    Or if 1 / y, the unit of coefficients' precisions, does in a precision, that of X.
    """
    spread = float(np.ptp(y))
    least = max(float(np.sqrt(_smallest(_DOUBLE.dtype))), _smallest(dtype))
    if 0 < spread < least or spread * _smallest(dtype) > 1:
        raise ValueError(
            f"y holds numbers that differ by up to {spread:.1g}, whose products underflow or "
            f"overflow in {dtype}; divide y by its scale"
        )


def _smallest(dtype: np.dtype) -> float:
    """The smallest number that has all its digits, and some to spare."""
    info = np.finfo(dtype)
    return float(info.tiny) / float(info.eps)


def small_weights(posterior: Posterior) -> list[str]:
    """A warning of weights that sum to next to nothing, as those that were normalised do.

    That is a hundredth of the rows, or two rows where there are at least eight.
    """
    weight = posterior.data.sample.weight
    if weight is None or posterior.of_sample is not posterior:
        return []
    n_rows, total = len(weight), float(weight.sum())
    if total > max(2.0, 0.01 * n_rows) or total > 0.25 * n_rows:
        return []
    return [
        f"the weights of {n_rows} rows sum to {total:.3g}: a weight is a factor of its row's log "
        f"likelihood, so the posterior is that of {total:.3g} rows, and the prior decides; if "
        "weights are relative, give sample_weight / sample_weight.mean()"
    ]


def rows_that_count(
    X: Any, y: NDArray, weight: NDArray, streaming: bool, name: str
) -> tuple[Any, NDArray, NDArray | None]:
    """Rows of positive weight, or all of a stream; and weights in X's precision, None if all 1."""
    if not (streaming or weight.all()):
        kept = np.flatnonzero(weight)
        X, y, weight = X[kept], y[kept], weight[kept]
    return X, y, None if (weight == 1).all() else in_dtype(name, weight, X.dtype)


def merged(data: InMemory, model: Model, never: bool) -> InMemory:
    """The data, with equal rows merged into one where they are few.

    After merging, a weight of 2 and two copies of a row give bitwise the same draws: HMC amplifies
    rounding differences.
    """
    if model.fixed_inputs:  # then to sort the rows takes far less than to sample
        few = data.n_rows * model.dim <= 20_000
    else:
        few = has_cheap_gradients(gradient_products(model, data.n_rows))
    return data if never or not few else data.merged()


# -- ends of a call of `fit` or `partial_fit`: a result, or an error and no change at all ----


class KeptInterrupt(KeyboardInterrupt):
    """Ctrl-C, after which the estimator has the draws so far."""


def all_or_nothing(method: Method) -> Method:
    """Restore the attributes of the estimator if a call raises.

    scikit-learn's validation sets some before anything is computed, and a warning after all are set
    may be an error.

    NumPy does not warn of overflow on the way. A result that is not finite is refused
    (`require_finite`), and so is a matrix or number that overflow or underflow made singular. An
    error of the machine (memory is full, a worker process was killed) gets a remedy.
    """

    @wraps(method)
    def guarded(self, *args, **kwargs):
        before = dict(vars(self))
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                return method(self, *args, **kwargs)
        except KeptInterrupt:
            raise
        except BaseException as error:
            vars(self).clear()
            vars(self).update(before)
            singular = isinstance(error, (np.linalg.LinAlgError, ZeroDivisionError, OverflowError))
            if singular or str(error).startswith(_NOT_FINITE):
                raise ValueError(_SINGULAR.format(error)) from error
            if isinstance(error, MemoryError):
                raise MemoryError(_FULL.format(error)) from error
            if isinstance(error, BrokenExecutor):
                raise RuntimeError(_KILLED.format(str(error).split("\n")[0])) from error
            raise

    return cast(Method, guarded)


def where_it_streams(method: Method) -> Method:
    """A `partial_fit` that is there only where the parameters allow a stream.

    Meta-estimators and scikit-learn's checks ask by `hasattr` what an estimator can do.
    """

    def streams(estimator: Any) -> bool:
        with suppress(ValueError, TypeError):  # of impossible parameters, which the call says
            estimator._require_streams()
        return True

    return cast(Method, available_if(streams)(method))


def require_finite(name: str, values: ArrayLike) -> None:
    """Raise FloatingPointError if a number of an attribute is not finite."""
    if not np.isfinite(values).all():
        raise FloatingPointError(f"{name} is not finite; {_RESCALE}")


def with_offset(estimator: Any, X: Any, offset: ArrayLike | None) -> Any:
    """Rows with their offsets; where y may be far from zero they are in double precision."""
    require_offset(estimator, offset)
    if offset is None:
        return X
    model = estimator.model_
    columns = known_columns(offset, X.shape[0], model.n_offsets, model.n_given)
    if isinstance(model, Response) and not model.ratio:
        X = X.astype(np.float64)
    return with_known(X, columns)


def require_offset(estimator: Any, offset: ArrayLike | None) -> None:
    """Raise ValueError for rows without an offset where those of the fit had one."""
    if offset is None and "offset" in estimator._metadata_of_fit:
        unit = "offset=0"
        if getattr(estimator.model_, "log_link", False):
            unit += ", or exposure=1,"
        raise ValueError(
            f"{type(estimator).__name__} was fitted with an offset or exposure; give that of the "
            f"rows too: {unit} predicts for a unit"
        )


def of_chunk(estimator: Any, X: Any, metadata: RowMetadata) -> dict[str, Any]:
    """Fitted attributes after a chunk of a stream.

    Raises
    ------
    ValueError
        If it has an offset or `var_weights` after one without, or the other way round.
    """
    changed = set(metadata.parts) ^ set(estimator._metadata_of_fit)
    if hasattr(estimator, "model_") and "offset" in changed:
        raise ValueError(
            "offset, or exposure, must be given for all chunks of a stream or for none; give "
            "offset=0 where it is zero"
        )
    if hasattr(estimator, "model_") and "var_weights" in changed:
        raise ValueError(
            "var_weights must be given for all chunks of a stream or for none; give ones where "
            "each y is one observation"
        )
    seen = getattr(estimator, "n_samples_seen_", 0) + X.shape[0]
    return {"n_samples_seen_": seen, "_metadata_of_fit": metadata.parts}


def draws_that_predict(estimator: Any, every: bool = False) -> tuple[Any, NDArray]:
    """Numbers of the draws that predict, chain by chain, and their weights, summing to 1.

    They are `every` one, or those that have a weight. A classifier may ask for `n_predict_draws` of
    these, evenly spaced; "auto" are 400 to 800, every so many.
    """
    weights, n_draws = estimator._draws.flat_weights, getattr(estimator, "n_predict_draws", None)
    (numbers,) = np.nonzero(weights)
    require_predict_draws(n_draws)  # it may have been set after the fit
    if n_draws == "auto":
        n_draws = -(-len(numbers) // max(1, len(numbers) // ENOUGH_ESS))
    if every or not hasattr(estimator, "classes_"):
        return slice(None), weights
    if n_draws is not None and n_draws < len(numbers):
        numbers = numbers[np.linspace(0, len(numbers) - 1, n_draws).round().astype(int)]
    elif len(numbers) == len(weights):
        return slice(None), weights
    return numbers, weights[numbers] / weights[numbers].sum()
