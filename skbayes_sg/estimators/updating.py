"""Estimators whose posterior a normal distribution can stand for: its value, and its updates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skbayes_sg.chains.run import Chain
from skbayes_sg.estimators.base import BayesianEstimator
from skbayes_sg.estimators.fit_guard import require_finite, warn
from skbayes_sg.estimators.gaussian_posterior import BY_EXPECTED, FittedPosterior
from skbayes_sg.estimators.prior_groups import hyperprior_of, shrinkage_of
from skbayes_sg.estimators.renamed import name_in_use, require_one_name, warn_of_old_word
from skbayes_sg.estimators.sampled_prior import SampledPrior
from skbayes_sg.inference.bayesian_updating import Stream
from skbayes_sg.inference.drift import DRIFT_LIMIT, Drift
from skbayes_sg.inference.evidence import Hyperprior, locate
from skbayes_sg.inference.folded_rows import Remainder
from skbayes_sg.inference.learned_prior import SEPARATED, Learned
from skbayes_sg.inference.prepare import first_choice, prepare
from skbayes_sg.inference.run import Run
from skbayes_sg.inference.variational_em import VariationalEM
from skbayes_sg.linalg.memory import bytes_to_keep
from skbayes_sg.linalg.sizes import has_cheap_passes, has_matrix
from skbayes_sg.models import Model
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior, affordable
from skbayes_sg.posterior.gaussian import (
    Distribution,
    Mode,
    distribution_at,
    known_at,
    updated,
    with_observed,
)
from skbayes_sg.priors import GaussianPrior, NormalInverseGammaPrior
from skbayes_sg.priors.shrinkage import Horseshoe, StudentT

_CHAINS = 8  # draws of a stream are independent; they have the shape of those of a fit
_OF_A_FIT = (
    *("draws_", "draw_weights_", "coef_", "coef_std_", "intercept_", "posterior_"),
    *("sampler_", "sampler_reason_", "states_", "n_iter_", "n_passes_", "burn_in_", "thin_"),
)


class OfStream:
    """An attribute that `fit` writes, and that a stream computes whenever it is asked for.

    To draw takes longer than to update, and so may a look at all rows that are kept; and most
    chunks are followed by another one. An attribute that `fit` wrote is found before this
    descriptor.
    """

    def __init__(self, value: Callable[[Any], Any]) -> None:
        self._value = value

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, estimator: Any, owner: type) -> Any:
        if estimator is None:
            return self
        if estimator._stream is None:
            raise AttributeError(f"{owner.__name__} has no {self._name} before fit")
        return self._value(estimator)


class UpdatingEstimator(SampledPrior):
    """An estimator with one mode: `posterior_`, and `partial_fit` as Bayesian updating."""

    prior: FittedPosterior | Horseshoe | StudentT | str | None
    prior_groups: Any
    n_features_in_: int
    feature_names_in_: NDArray
    prior_mean: ArrayLike
    forgetting_factor: float
    forgetting: float | str
    _stream: Stream | None = None
    _has_rows = False
    """Whether `coef_` has a row for each logit, and `intercept_` an entry, also for one."""

    draws_ = OfStream(lambda self: self._draws_of_stream())
    draw_weights_ = OfStream(lambda self: np.full((n := self._shape_of_draws()[1]), 1 / n))
    posterior_ = OfStream(lambda self: self._value_of(self._stream.distribution, self.model_))
    coef_ = OfStream(lambda self: self._moments_of_distribution()[0])
    coef_std_ = OfStream(lambda self: self._moments_of_distribution()[1])
    intercept_ = OfStream(lambda self: self._moments_of_distribution()[2])

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

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        require_one_name(self, "forgetting", default=1.0)
        warn_of_old_word(self.prior_precision)

    @property
    def coef_samples_(self) -> NDArray:
        """Draws of `coef_`, (n_chains, n_draws, ...), a view of `draws_`."""
        return self._coefs(self.draws_)

    @property
    def intercept_samples_(self) -> NDArray:
        """Draws of `intercept_`, (n_chains, n_draws, ...); zeros without one."""
        return self._intercepts(self.draws_)

    def _coefs(self, draws: NDArray) -> NDArray:
        """Coefficients of draws (n_chains, n_draws, D), as in `coef_samples_`."""
        coef = self.model_.unpack(draws)["coef"]
        return coef if self._has_rows else coef[..., 0, :]

    def _intercepts(self, draws: NDArray) -> NDArray:
        """Intercepts of draws, as in `intercept_samples_`."""
        blocks = self.model_.unpack(draws)
        each = blocks.get("intercept", np.zeros(blocks["coef"].shape[:-1]))
        return each if self._has_rows else each[..., 0]

    def _precision_of(self, posterior: Posterior) -> NDArray:
        """Prior precision of every parameter that is normal."""
        return posterior.prior.precision.copy()

    # -- the prior ----------------------------------------------------------------------------

    def _em(self) -> VariationalEM | Hyperprior | None:
        """How the prior precision is to be learned; None if it is given, or the prior is."""
        if self.prior is None or shrinkage_of(self.prior) is not None:
            return hyperprior_of(self) or super()._em()
        if self.prior_groups is not None:
            raise ValueError(
                "prior_groups and prior are two priors of the coefficients; leave one of them None"
            )
        return None

    # -- the posterior of a fit ---------------------------------------------------------------

    def _read_off(self, posterior: Posterior) -> None:
        """Coefficients and intercepts from the draws."""
        self.prior_precision_ = self._precision_of(posterior)
        self.coef_, self.coef_std_ = self._moments(self.coef_samples_)
        self.intercept_ = _plain(self._moments(self.intercept_samples_)[0])

    def _keep(
        self, run: Run, chains: list[Chain], posterior: Posterior, attributes: dict[str, Any]
    ) -> list[str]:
        before, found = posterior.prior, None
        chains, eta = self._without_hyperparameters(run, chains, posterior)
        if eta is not None:
            posterior, found = self._under_sampled(run, posterior, eta, chains[0].weights)
        warnings = super()._keep(run, chains, posterior, attributes)
        posterior = posterior.all_columns
        if run.sampled is None and run.learned is not None and self._separated(posterior):
            warnings.append(SEPARATED)
        if found is not None:
            self._keep_learned(found)
            self._fitted_prior = posterior.prior
        anchor = run.anchor
        if found is not None and anchor is not None:  # that of `before`
            anchor = anchor.under(before, posterior.prior)
        distribution = self._distribution_of(run.sampler.needs_closed_form, anchor, posterior)
        self.posterior_ = self._value_of(distribution, posterior.model)
        return warnings

    def _separated(self, posterior: Posterior) -> bool:
        """Whether a plane separates the classes of the rows in memory; False without classes."""
        return False

    def _distribution_of(
        self, known: bool, anchor: Mode | None, posterior: Posterior
    ) -> Distribution:
        """As if all rows were one chunk of a stream.

        Many rows, and rows on disk, are not read again, or once for the observed information:
        there the curvature at the anchor is that distribution. Above 1,000 parameters it has the
        moments of the draws. `known`: it is that distribution itself.
        """
        if known:
            assert anchor is not None
            return known_at(posterior.prior, anchor)
        draws, weights = BayesianEstimator._flat_draws(self, self.draws_.dtype)
        if not has_matrix(posterior.dim):
            family = GaussianPrior if posterior.prior.quadratic else NormalInverseGammaPrior
            return family.of_draws(draws, weights)
        cheap = has_cheap_passes(posterior.n_rows, posterior.dim)
        cheap &= posterior.data.sample is posterior.data
        if anchor is not None and not cheap:
            return distribution_at(anchor, posterior)
        found = updated(posterior, (weights @ draws)[None])
        assert isinstance(posterior.model, Predictor)
        prior, rows = posterior.prior, posterior.data.sample
        assert isinstance(prior, Distribution)
        return with_observed(posterior.model, [rows], prior, found)

    def _value_of(self, distribution: Distribution, model: Model) -> FittedPosterior:
        names = getattr(self, "feature_names_in_", None)
        named = None if names is None else tuple(names)
        return FittedPosterior(
            distribution,
            type(model).__name__,
            model.shapes,
            named,
            getattr(self, "classes_", None),
            getattr(model, "ranks", None),
        )

    # -- streams ------------------------------------------------------------------------------

    def _update(self, posterior: Posterior, **attributes: Any) -> None:
        """Update by the rows of a chunk; `attributes` are fitted attributes of the subclass."""
        factor = self._forgetting_factor()
        if self.sampler is not None:
            raise ValueError(
                "sampler: partial_fit updates the posterior without a sampler; set sampler=None"
            )
        if shrinkage_of(self.prior) is not None:
            raise ValueError(
                f"prior={self.prior!r}: partial_fit keeps a normal posterior, which this prior "
                "does not lead to; call fit, or set prior=None"
            )
        stream, learned = self._stream, None
        if stream is None:
            stream, posterior, learned = self._new_stream(posterior)
        elif self.model_.shapes != posterior.model.shapes:
            raise ValueError(
                "whether there is an intercept, and whether the noise variance is given, must stay "
                "as in the first chunk; take a new estimator, or call fit"
            )
        guess = mode = stream.posterior.mode
        if self._stream is None and not hasattr(self, "posterior_"):
            rows = posterior.data.sample
            guess = posterior.model.guess(rows.y, rows.weight)
            if posterior.log_prob(mode)[0] >= posterior.log_prob(guess)[0]:
                guess = mode
        before = stream
        stream = stream.after(posterior, guess, factor, bytes_to_keep())
        require_finite(posterior_=stream.posterior.mean)
        em = self._em()
        if stream.may_learn and isinstance(em, Hyperprior):
            stream, learned = self._learned_again(em, stream, attributes.get("classes_"))
        if learned is not None:
            stream = replace(stream, learned_from=stream.rare)
        if stream.centre is not before.centre or stream.may_have_mended:
            stream = stream.diagnosed()
        self._keep_stream(stream, posterior, learned, attributes)
        if stream.centre is not None:  # rows are kept
            self.diagnostics_ |= stream.misfit._asdict()
        warn(_warnings(stream.remainder))
        if stream.drift.highest > DRIFT_LIMIT >= before.drift.highest:  # once is enough
            warn(_of_drift(stream.drift.z, factor))
        if stream.rare and not stream.begins:  # of one class nothing else can be
            warn(_of_information(stream.posterior) + stream.misfit.warnings())

    def _forgetting_factor(self) -> float:
        name = name_in_use(self, "forgetting")
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"{name} must be a number in (0, 1], got {value!r}")
        if not 0 < float(value) <= 1:
            raise ValueError(f"{name} must lie in (0, 1], got {value}; 1 forgets nothing")
        return float(value)

    def _new_stream(self, posterior: Posterior) -> tuple[Stream, Posterior, Learned | None]:
        """A stream after the last fit, or before any row; then the prior may have to be learned."""
        seed, learned, drift = self._seed(), None, Drift()
        prior: Any = posterior.prior
        distribution = prior
        if hasattr(self, "posterior_"):
            prior, distribution = self._fitted_prior, self.posterior_.distribution
            drift = Drift(float(self.n_samples_seen_))
        elif self._em() is not None:
            seed, other = seed.spawn(2)
            learned = self._learned_from(posterior, other)
            prior = distribution = prior.with_precision(learned.precision)
            posterior = posterior.with_prior(prior)
        return Stream(prior, distribution, distribution, seed, drift=drift), posterior, learned

    def _learned_from(self, posterior: Posterior, seed: np.random.SeedSequence) -> Learned:
        """The prior that the first chunk leads to: before any chain, or by short chains."""
        em = self._em()
        if isinstance(em, Hyperprior):
            precision = em.of(posterior)
            if affordable(posterior):
                return locate(precision, posterior).learned
        if posterior.n_rows < 2:
            raise ValueError(
                "prior_precision is learned from the first chunk, which needs at least 2 rows; "
                "give a larger first chunk, or numbers"
            )
        request, plan = self._request(posterior.dim)._replace(seed=seed, last=None), self._plan()
        run, _ = prepare(request, first_choice(request, posterior, plan), posterior, plan)
        if run.learned is None:  # control variates threw the chains, and so did what came instead
            raise ValueError(
                "prior_precision cannot be learned from the first chunk, because its posterior is "
                "too far from Gaussian; give a larger first chunk, or numbers"
            )
        warn(run.learned.warnings())
        return run.learned

    def _learned_again(
        self, em: Hyperprior, stream: Stream, classes: NDArray | None
    ) -> tuple[Stream, Learned | None]:
        """The stream under the prior that all its rows lead to, while it keeps all of them."""
        assert stream.model is not None
        rows = stream.kept.joined
        prior = self._prior(stream.model, rows, classes, streaming=True)
        posterior = Posterior(stream.model, rows, prior)
        if not affordable(posterior):
            return stream, None
        learned = locate(em.of(posterior), posterior).learned
        return stream.under(prior.with_precision(learned.precision)), learned

    def _keep_stream(
        self,
        stream: Stream,
        posterior: Posterior,
        learned: Learned | None,
        attributes: dict[str, Any],
    ) -> None:
        """Write all fitted attributes, and remove those of chains."""
        if learned is not None or (self._stream is None and not hasattr(self, "posterior_")):
            self.prior_precision_ = self._precision_of(posterior.with_prior(stream.prior))
            self._keep_learned(learned)
        for name in _OF_A_FIT:
            self.__dict__.pop(name, None)
        self._hyper_draws = None
        self.__dict__.update(attributes)
        self.model_, self._stream = posterior.model, stream
        found = stream.remainder
        self.diagnostics_ = {} if found is None else found._asdict()
        self.diagnostics_["drift"] = stream.drift.z
        self._read_off_stream(stream.distribution)

    def _read_off_stream(self, distribution: Distribution) -> None:
        """Set attributes beside those that a stream computes when they are asked for."""

    def _known(self) -> Distribution:
        """The distribution of a stream, which may only now be expanded again."""
        stream = self._stream
        assert stream is not None
        if stream.begins or not stream.posterior.by_expected:  # else `partial_fit` said it
            warn(_of_information(stream.distribution))
        return stream.distribution

    def _moments_of_distribution(self) -> tuple[NDArray, NDArray, Any]:
        """Means and standard deviations of the coefficients, and means of the intercepts."""
        distribution = self._known()
        mean, variance = distribution.mean[None, None], distribution.variance[None, None]
        std = np.sqrt(self._coefs(variance)[0, 0])
        return self._coefs(mean)[0, 0].copy(), std, _plain(self._intercepts(mean)[0, 0])

    def _shape_of_draws(self) -> tuple[int, int]:
        n_chains = _CHAINS if isinstance(self.n_chains, str) else int(self.n_chains)
        return n_chains, self._draws_to_keep(self.model_.dim, n_chains)

    def _draws_of_stream(self) -> NDArray:
        """Independent draws of the present posterior, (n_chains, n_draws, D)."""
        self._known()
        assert self._stream is not None
        shape = self._shape_of_draws()
        return self._stream.draws(shape[0] * shape[1]).reshape(*shape, -1)


def _plain(value: Any) -> Any:
    """A single number as a float, and an array as it is."""
    return value if np.ndim(value) else float(value)


def _of_information(distribution: Distribution) -> list[str]:
    """That the expected information stands in for the observed one, if it does."""
    return [f"{BY_EXPECTED}; call fit, or give more rows"] if distribution.by_expected else []


def _of_drift(z: float, factor: float) -> str:
    """That the posterior lags behind the rows of a stream."""
    remedy = "set forgetting_factor below 1" if factor == 1 else "lower forgetting_factor"
    return (
        "the truth moves along this stream, or its rows are sorted: chunks would have a smaller "
        "log loss if the posterior had gone on where the last ones pulled it, by drift = "
        f"{z:.1f} standard errors (limit {DRIFT_LIMIT:g}); if the truth moves, old rows mislead "
        f"and intervals are too narrow: {remedy} (now {factor:g}); if rows are sorted, shuffle "
        "them, at least where they are too many to be kept"
    )


def _warnings(found: Remainder | None) -> list[str]:
    """What rows that are no longer kept leave out, if that is much."""
    if found is None or not found.is_large:
        return []
    return [
        "rows that are no longer kept were summed up where the posterior has since left: it may be "
        f"off by {found.folded_shift:.2g} posterior standard deviations (Monte Carlo error "
        f"{found.folded_shift_se:.1g}) or more, see diagnostics_['folded_shift']; call fit on all "
        "rows, or shuffle them, or keep more of them: sklearn.set_config(working_memory=...), of "
        "which a sixteenth holds rows"
    ]
