"""The base of all estimators: from constructor parameters to fitted attributes.

`fit` of the subclasses validates the data and makes a posterior. `_run_chains` prepares, samples,
writes the fitted attributes and warns.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from skbayes_sg.callbacks import (
    CallbackRunner,
    CallbackSupportMixin,
    Checkpoint,
    Fingerprint,
    with_callbacks,
)
from skbayes_sg.chains.parallel import one_thread, time_limit, warnings_of
from skbayes_sg.chains.run import LONG, Chain, DrawBlock, Execution, drawn, joined, rows_touched
from skbayes_sg.diagnostics import moments
from skbayes_sg.estimators.fit_guard import is_all_of_the_call, outlives, require_finite, warn
from skbayes_sg.estimators.inputs import require_squares, small_weights
from skbayes_sg.estimators.out_of_core import FitsOutOfCore
from skbayes_sg.estimators.parameters import CommonParameters, announced
from skbayes_sg.estimators.persistence import Stored, in_single_precision
from skbayes_sg.estimators.renamed import read_by_old_name
from skbayes_sg.frames import text_columns
from skbayes_sg.inference import diagnose
from skbayes_sg.inference.fallback import second_run
from skbayes_sg.inference.learned_prior import Learned
from skbayes_sg.inference.plan import Plan
from skbayes_sg.inference.prepare import first_choice, prepare
from skbayes_sg.inference.request import Request, Signature
from skbayes_sg.inference.run import Run
from skbayes_sg.linalg.memory import bytes_to_keep
from skbayes_sg.posterior import Posterior
from skbayes_sg.priors import Prior
from skbayes_sg.samplers import Sampler
from skbayes_sg.samplers.target import Target

_LARGE_DRAWS = 1 << 20  # bytes; single precision blurs less than a draw's Monte Carlo error
_BURN_IN = 512  # steps, where chains do not agree after fewer


class BayesianEstimator(CallbackSupportMixin, FitsOutOfCore, Stored, CommonParameters):
    """An estimator that samples a posterior; a `Plan` of the family says how its chains run."""

    _draw_dtype: type = np.float64

    # set by `_keep`
    model_: Any
    sampler_: Sampler
    sampler_reason_: str
    draws_: NDArray
    draw_weights_: NDArray
    diagnostics_: dict[str, float]
    burn_in_: int
    thin_: int
    n_samples_seen_: int
    _warnings: list[str]  # of the last fit
    _fitted_prior: Prior | None = None  # with the precisions that the last fit learned
    _run: Run | None = None
    _ready: Run | None = None  # of a fit that was interrupted before its first draws
    _stream: Any = None  # of partial_fit

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def n_rows_seen_(self) -> int:
        """The former name of `n_samples_seen_`.

        .. deprecated:: 0.4
            Renamed to `n_samples_seen_`, as in scikit-learn; it goes in 0.5.
        """
        return read_by_old_name(self, "n_rows_seen_")

    # -- methods of a family of estimators ----------------------------------------------------

    def _plan(self) -> Plan:
        raise NotImplementedError

    def _posterior_of(self, X, y, sample_weight: ArrayLike | None) -> Posterior:
        """The posterior under data of the fitted shape."""
        raise NotImplementedError

    def _checked_rows(self, X, y, sample_weight: ArrayLike | None):
        """Validated X, y and weights (None where all are 1) of data of the fitted shape."""
        raise NotImplementedError

    def _agreement(self, posterior: Posterior, n_gradients: int) -> dict[str, float]:
        """How far the chains agree; by default `diagnose.of_draws` of all draws.

        It may compute `n_gradients` gradients of all rows.
        """
        return diagnose.of_draws(self.draws_)

    def _notices(self, posterior: Posterior) -> list[str]:
        """Warnings about the data, before the chains run."""
        return []

    def _explained(self, posterior: Posterior, warnings: list[str]) -> list[str]:
        """Warnings of the chains, with what in the data may explain them, or in place of them."""
        return warnings

    def _read_off(self, posterior: Posterior) -> None:
        """Set the attributes that are computed from the draws."""
        raise NotImplementedError

    def _determined(self, posterior: Posterior) -> Posterior:
        """The posterior that chains sample; parameters that only the prior knows may be left out.

        By default all parameters.
        """
        return posterior

    # -- data ---------------------------------------------------------------------------------

    def _validate_data(self, X, y="no_validation", reset: bool = True, **more):
        """X as float32 or float64, dense in C order or CSR, and y; copied only where necessary.

        Rows are gathered, so C order is faster. Data frames come in Fortran order.
        """
        kinds = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
        try:
            checked = validate_data(self, X, y, reset=reset, **kinds, **more)
        except (ValueError, TypeError) as error:
            columns = text_columns(X)
            if columns:
                raise ValueError(
                    f"X holds text or dates in column(s) {', '.join(map(repr, columns))}; encode "
                    "them first, for example with OneHotEncoder in a ColumnTransformer"
                ) from error
            raise
        require_squares(checked[0] if isinstance(checked, tuple) else checked, of_fit=reset)
        return checked

    def _check_predict(self, X):
        check_is_fitted(self, "model_")
        return self._validate_data(X, reset=False)

    # -- parameters ---------------------------------------------------------------------------

    def _request(self, dim: int) -> Request:
        """The request for a run; its seed is drawn from `random_state`."""
        return Request(
            self._asked(self.sampler, dim),
            self._em(),
            self.n_chains,
            self.burn_in,
            self.thin,
            None,
            self._last_positions(dim),
            self.n_jobs,
        )

    def _last_positions(self, dim: int) -> NDArray | None:
        """Points of the chains of the last fit, (n_chains, .), if a warm start can go on there."""
        if not self.warm_start or self._run is None:
            return None
        last = self._run.last
        fits = self.n_chains in ("auto", len(last))
        sampled = self._run.sampled  # some samplers have hyperparameters, the last of them
        most = dim + (0 if sampled is None else sampled.scales.dim)
        return last if fits and last.shape[1] in (dim, most) else None

    # -- fit ----------------------------------------------------------------------------------

    @with_callbacks
    def _run_chains(self, posterior: Posterior, X, y, **attributes: Any) -> None:
        """Prepare, sample, keep, diagnose and warn; `attributes` are those of the subclass."""
        callbacks = CallbackRunner(self, X=X, y=y)
        with one_thread(), time_limit(callbacks.end) as cut:
            warnings = self._sampled(callbacks, self._determined(posterior), attributes)
        self._warnings = warnings + warnings_of(cut)
        warn(self._warnings)

    def _sampled(
        self, callbacks: CallbackRunner, posterior: Posterior, attributes: dict[str, Any]
    ) -> list[str]:
        run, target, mark, before = self._prepared(posterior, callbacks.checkpoint)
        posterior = run.under(posterior)
        n_chains = sum(len(state.theta) for state in run.states)
        n_draws = self._first_draws(posterior.all_columns.dim, n_chains, drawn(before))
        said = self._said_of_draws(posterior.all_columns.dim, n_chains, n_draws)
        warn(said + announced(run.seconds(target, n_draws)), UserWarning)
        fitted = partial(self._so_far, run, posterior, attributes)
        dtype = self._dtype_of(n_chains * n_draws * posterior.all_columns.dim)
        how = Execution(self.n_jobs, dtype, None, before, is_all_of_the_call())
        passes, more, wrong, lost = run.passes, n_draws, list[str](), None
        try:
            while True:
                how = how._replace(on_block=callbacks.over(run, n_draws, fitted, mark))
                chains = run.sample(target, n_draws, how)
                warnings = self._keep(run, chains, posterior, attributes)
                passes, more = self.n_passes_, self._more_draws(run, target, n_draws)
                if more <= n_draws or callbacks.end_the_fit():
                    break
                if self._burn_in_is_short(run):
                    run = replace(run, length=run.length._replace(burn_in=_BURN_IN), passes=passes)
                    how = how._replace(before=())
                else:
                    n_draws, how = more, how._replace(before=[chains])
            if self.draws_.shape[1] == n_draws:
                wrong = diagnose.of_bias(self.diagnostics_)
                if self.n_draws == "auto":  # the fit went on as far as it may
                    wrong = wrong or diagnose.of_disagreement(self.diagnostics_)
        except KeyboardInterrupt as early:
            if self.warm_start and not run.last.size:
                outlives(early, _ready=run)
            raise
        except FloatingPointError as error:
            wrong, lost = [str(error)], error
        second = self._second_run(run, posterior, n_draws, wrong)
        if second is None and lost is not None:
            raise lost
        if second is not None:
            run, target = second
            chains = run.sample(target, n_draws, Execution(self.n_jobs, dtype))
            run, more = replace(run, passes=run.passes + passes), 0
            warnings = self._keep(run, chains, posterior, attributes)
        said = callbacks.close(self.draws_.shape[1], max(n_draws, more))
        if self.n_draws == "auto" and max(n_draws, more) == self.draws_.shape[1]:
            warnings += self._said_of_few_draws()
        return said + self._explained(posterior.all_columns, warnings)

    def _said_of_few_draws(self) -> list[str]:
        """What is said where doubling the draws ended before they were enough."""
        n_chains, n_drawn, dim = self.draws_.shape
        if self._is_enough():
            return []
        return diagnose.of_few_draws(self.diagnostics_, n_drawn, self._most_draws(dim, n_chains))

    def _dtype_of(self, n: int) -> type:
        """Of so many numbers: single precision where double would fill the memory."""
        return np.float32 if 8 * n > bytes_to_keep() else self._draw_dtype

    def _more_draws(self, run: Run, target: Target, n_draws: int) -> int:
        """Twice as many draws of each chain where the chains do not agree; 0 if these are enough.

        None are added that would take more than a minute, or whose distribution is wrong. That is
        judged of chains that agree: draws on the way to a posterior do not tell where it leads.
        """
        n_chains, n_drawn, dim = self.draws_.shape
        more = min(2 * n_draws, self._most_draws(dim, n_chains))
        if n_drawn < n_draws or more <= n_draws:
            return 0
        is_all = self._is_enough() or run.seconds(target, more - n_draws) > LONG
        return 0 if is_all else more

    def _is_enough(self) -> bool:
        """Whether more draws would not help: the chains agree, or their distribution is wrong."""
        figures = self.diagnostics_
        return diagnose.is_enough(figures) or (
            diagnose.agrees(figures) and bool(diagnose.of_bias(figures))
        )

    def _burn_in_is_short(self, run: Run) -> bool:
        """Whether chains that do not agree are to start again, with a longer burn-in.

        A metric that was learned on the way to the posterior moves them slowly ever after.
        """
        short = self.burn_in == "auto" and 0 < run.length.burn_in < _BURN_IN and not run.burnt
        return short and not diagnose.agrees(self.diagnostics_)

    def _second_run(
        self, first: Run, posterior: Posterior, n_draws: int, wrong: list[str]
    ) -> tuple[Run, Target] | None:
        """Another sampler for a default whose draws are wrong, or whose chains part or diverged.

        None if nothing is wrong, or if it would take more than a minute.
        """
        if not wrong or first.anchor is None:
            return None
        request = self._request(posterior.dim)._replace(seed=self._seed().spawn(2)[1])
        found = second_run(first, request, posterior, self._plan(), wrong)
        is_long = found is not None and found[0].seconds(found[1], n_draws) > LONG
        return None if is_long else found

    def _prepared(
        self, posterior: Posterior, checkpoint: Checkpoint | None
    ) -> tuple[Run, Target, Fingerprint, list[DrawBlock]]:
        """A run and its target, and what a checkpoint holds of it.

        It is the last run if a warm start can go on as if it had never stopped, or that of the
        checkpoint; else a new one.
        """
        request, plan = self._request(posterior.dim), self._plan()
        choice = first_choice(request, posterior, plan)
        signature = None
        if self.warm_start or checkpoint is not None:
            signature = Signature.of(request, choice, posterior)
        mark = self._fingerprint(signature)
        saved = None if checkpoint is None else checkpoint.load(mark)
        if saved is not None:
            run, blocks = saved
            return run, run.target(posterior), mark, blocks
        for old in (self._ready, self._run) if self.warm_start else ():
            if old is not None and signature is not None and signature.matches(old.signature):
                return old.resumed(request), old.target(posterior), mark, []
        warn(small_weights(posterior) + self._notices(posterior))
        request = request._replace(seed=self._seed())
        run, target = prepare(request, choice, posterior, plan)
        return run.signed(signature), target, mark, []

    def _fingerprint(self, signature: Signature | None) -> Fingerprint:
        seed = self.random_state if isinstance(self.random_state, Integral) else None
        return Fingerprint(signature, (self.n_draws, self.burn_in, self.thin, seed))

    def _so_far(
        self, run: Run, posterior: Posterior, attributes: dict[str, Any], blocks: list[DrawBlock]
    ) -> BayesianEstimator:
        """A copy of the estimator, fitted with the draws of these rounds."""
        twin = copy.copy(self)
        twin._keep(run, joined(blocks), posterior, attributes)
        return twin

    def _keep(
        self, run: Run, chains: list[Chain], posterior: Posterior, attributes: dict[str, Any]
    ) -> list[str]:
        """Write all fitted attributes, and return the warnings."""
        if not chains[0].weights.any():
            raise ValueError(
                "no draw falls into the part of a cycle that counts; raise n_draws, or change thin"
            )
        states = [chain.state for chain in chains]
        touched = rows_touched(run.sampler, states) - rows_touched(run.sampler, run.states)
        passes = touched / posterior.data.n_rows
        self.__dict__.update(attributes)
        self.sampler_, self.sampler_reason_ = run.sampler, run.reason
        self.states_, self._run, self._ready, self._stream = states, run.at(chains), None, None
        draws = posterior.completed(chains)
        posterior = posterior.all_columns
        self.model_, self._fitted_prior = posterior.model, posterior.prior
        self.draws_ = in_single_precision(draws) if draws.nbytes > _LARGE_DRAWS else draws
        self.draw_weights_ = chains[0].weights / chains[0].weights.sum()
        self.n_iter_ = states[0].t
        self.burn_in_, self.thin_ = run.length
        self.n_passes_ = run.passes + passes
        self._keep_learned(run.learned)
        self._read_off(posterior)
        self._require_finite()
        steps = run.steps(self.draws_.shape[1])
        kept = (steps.n_steps - steps.burn_in) / steps.n_steps
        n_gradients = diagnose.affordable(run, chains, touched, posterior.data.n_rows)
        agreement = self._agreement(posterior, n_gradients)
        self.diagnostics_, warnings = diagnose.diagnose_run(run, chains, agreement, kept * passes)
        return warnings

    def _keep_learned(self, learned: Learned | None) -> None:
        """Write path and values of learned prior precisions; remove both if they were given."""
        for name in ("prior_precision_path_", "prior_precision_blocks_"):
            self.__dict__.pop(name, None)
        if learned is not None:
            self.prior_precision_path_ = learned.path
            values = zip(learned.labels, learned.values.tolist(), strict=True)
            self.prior_precision_blocks_ = dict(values)

    def _require_finite(self) -> None:
        """Raise FloatingPointError if a fitted attribute overflowed."""
        names = ("prior_precision_", "coef_", "coef_std_", "intercept_", "noise_variance_")
        require_finite(**{name: vars(self)[name] for name in names if name in vars(self)})

    # -- draws --------------------------------------------------------------------------------

    def _flat_draws(self, dtype: np.dtype) -> tuple[NDArray, NDArray]:
        """All draws (S, D) and their weights (S,), summing to 1."""
        draws = self.draws_.reshape(-1, self.draws_.shape[-1])
        if dtype.itemsize < draws.itemsize:  # else a model casts some at a time
            draws = draws.astype(dtype)
        n_chains = self.draws_.shape[0]
        return draws, np.tile(self.draw_weights_ / n_chains, n_chains)

    def _moments(self, samples: NDArray) -> tuple[NDArray, NDArray]:
        """Weighted mean and standard deviation over chains and draws."""
        return moments(samples, self.draw_weights_)
