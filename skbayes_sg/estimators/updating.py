"""Streams of estimators with coefficients: Bayesian updating of a normal distribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.chains.run import cores, one_thread
from skbayes_sg.data import InMemory, in_threads
from skbayes_sg.diagnostics.batches import Batches
from skbayes_sg.diagnostics.gradients import fewest
from skbayes_sg.diagnostics.limits import DRIFT_ERRORS
from skbayes_sg.estimators.base import require_finite
from skbayes_sg.estimators.factors import factors_of
from skbayes_sg.estimators.gaussian_posterior import BY_EXPECTED, FittedPosterior
from skbayes_sg.inference.engine import Engine
from skbayes_sg.inference.precision import Hyperprior, LearnedPrecision
from skbayes_sg.inference.result import Ran
from skbayes_sg.inference.warm_up import choose, prepare
from skbayes_sg.linalg import Diag, Operator
from skbayes_sg.linalg.sizes import bytes_to_keep
from skbayes_sg.posterior import Posterior, affordable
from skbayes_sg.posterior.gaussian import Distribution
from skbayes_sg.priors import NormalInverseGammaPrior, NormalPrior, with_rows
from skbayes_sg.priors.scales import Scales
from skbayes_sg.streams.bayesian_updating import MISFIT, Stream, standing_for
from skbayes_sg.streams.drift import Drift
from skbayes_sg.streams.growth import grown
from skbayes_sg.validation import warn

_CHAINS = 8  # draws of a stream are independent; they have the shape of those of a fit


class StreamFit:
    """What a stream says, with the names that a `Fit` has for it; each is computed when asked for.

    Parameters
    ----------
    stream : Stream
    engine : Engine, optional
        Of the fit before, from which a warm start may go on.
    """

    hyper_draws = n_passes = None  # no precisions belong to the coefficients of a draw
    ran = Ran()

    def __init__(self, stream: Stream, engine: Engine | None) -> None:
        self.stream, self.engine = stream, engine
        self.values: dict[str, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"values": {}}

    @property
    def model(self) -> Any:
        return self.stream.model

    @property
    def prior(self) -> NormalPrior:
        return self.stream.now.held_prior

    @property
    def learned(self) -> LearnedPrecision | None:
        return self.stream.now.learned

    @property
    def scales(self) -> Scales | None:
        """Precisions of the prior that are learned, and have a distribution of their own."""
        return None if self.stream.sampled is None else self.stream.sampled.scales

    def known(self) -> Distribution:
        """The distribution, which may only now be expanded again.

        What is wrong with that of few rows, or of one class after the other, is said here, as more
        of them will mend it.
        """
        stream, misfit = self.stream, self.stream.misfit
        if stream.begins or not stream.posterior.by_expected:  # else `partial_fit` said it
            warn(said := _of_information(stream.distribution))
            is_wrong = misfit.is_uneven or (stream.begins and misfit.is_large)
            if is_wrong and stream.rare and not said and "misfit" not in stream.said:
                warn(MISFIT)
        return stream.marginal


def update(
    estimator: Any,
    data: InMemory,
    make_model: Callable[[InMemory], Any],
    attributes: dict[str, Any],
) -> None:
    """Update an estimator by the rows of a chunk: the posterior of one is the prior of the next.

    What the prior takes from rows is asked of all rows so far: the units of the columns and of y,
    where the intercept may be, which columns have one value, and a precision.

    Parameters
    ----------
    estimator : LinearModel
    data : InMemory
        The rows of the chunk.
    make_model : function
        Of rows that have the unit of y: the model.
    attributes : dict
        Fitted attributes of the subclass.
    """
    factor = estimator.forgetting_factor
    if isinstance(factor, bool) or not isinstance(factor, Real):
        raise TypeError(f"forgetting_factor must be a number in (0, 1], got {factor!r}")
    if not 0 < (factor := float(factor)) <= 1:
        raise ValueError(f"forgetting_factor must lie in (0, 1], got {factor}; 1 forgets nothing")
    em, classes = estimator._em(), attributes.get("classes_")
    model, learned = make_model(data), None
    before = estimator._stream or _after_fit(estimator, data)
    if before is not None and before.model is not None:
        if before.model.shapes["coef"][1] < model.shapes["coef"][1]:
            weak = estimator._prior(model, data, classes, streaming=True)
            before = grown(before, model, em, weak)
        if getattr(before.model, "shapes", None) != model.shapes:
            raise ValueError(
                "whether there is an intercept, and whether the noise variance is given, must stay "
                "as in the first chunk; take a new estimator, or call fit"
            )
    is_first = before is None
    if before is None:
        prior, seed = estimator._prior(model, data, classes, streaming=True), _seed(estimator)
        if em is not None:
            seed, other = seed.spawn(2)
        start, columns = with_rows(prior), None
        if isinstance(estimator.prior, FittedPosterior):
            columns = estimator.prior.with_columns_of(model, estimator._design).columns
        before = Stream(prior, start, start, seed, model, columns=columns, drift=Drift())

    # what is learned from rows is asked again when others come
    stream = before.told(model, data, estimator._asks_columns(model.dim))
    is_due = stream.is_due(before)
    if is_due or model.conjugate:
        rows = stream.rows_that_tell(data)
        model = make_model(rows)
        weak = estimator._prior(model, rows, classes, streaming=True)
        assert isinstance(weak, NormalPrior)
        stream = replace(stream, model=model, weak=weak, in_units=em is not None)
    if is_due:
        stream = stream.renewed(keeps=em is not None and not is_first)
        by_chains = not (isinstance(em, Hyperprior) and affordable(Posterior(model, data, weak)))
        if is_first and em is not None and by_chains:
            learned = _learned_from(estimator, Posterior(model, data, weak), other)
            stream = replace(stream, learned=learned, weak=weak.with_precision(learned.precision))
            stream = replace(stream.renewed(keeps=False), weak=weak)

    assert stream.model is not None
    guess = stream.posterior.mode
    if is_first:
        posterior = Posterior(stream.model, data, stream.prior)
        own = stream.model.guess(data.y, data.weight, data.known)
        if posterior.log_prob(own)[0] > posterior.log_prob(guess)[0]:
            guess = own
    stream = stream.after(data, guess, factor, bytes_to_keep())
    if is_due:
        again = isinstance(em, Hyperprior) and learned is None
        stream = replace(stream, asked_at=(stream.n_rows, stream.rare))
        stream = replace(stream, hyperprior=em).learning() if again else stream
    require_finite("posterior_", stream.posterior.mean)
    if stream.centre is not before.centre or stream.may_have_mended:
        stream = stream.diagnosed()

    estimator.__dict__.update(attributes)
    estimator.__dict__.update(factors_of(estimator, data, streaming=not is_first))
    estimator.model_, estimator._stream = stream.model, stream
    estimator._columns, estimator._few = stream.columns, None
    remainder = stream.remainder
    estimator.diagnostics_ = {} if remainder is None else remainder._asdict()
    estimator.diagnostics_["drift"] = stream.drift.z
    estimator._require_bounds(stream.posterior)
    if stream.centre is not None:  # rows are kept
        estimator.diagnostics_ |= stream.misfit._asdict()

    # Each kind once, in words that stay the same; the figures are in `diagnostics_`.
    kinds = _warnings_of(stream, factor)
    if is_due:
        kinds |= estimator._warnings_of_stream(stream)
    estimator._stream = replace(stream, said=stream.said | kinds.keys())
    engine = None if estimator._fit is None else estimator._fit.engine
    estimator._fit = StreamFit(estimator._stream, engine)
    warn([text for kind, text in kinds.items() if kind not in stream.said])


def _after_fit(estimator: Any, data: InMemory) -> Stream | None:
    """What a fit, or a compact copy of a stream, leaves to go on from; None before any row."""
    if not hasattr(estimator, "posterior_"):
        return None
    posterior, model = estimator.posterior_, estimator.model_
    n_rows = float(estimator.n_samples_seen_)
    distribution, prior = posterior.opened()
    return Stream(
        prior,
        distribution,
        distribution,
        _seed(estimator),
        model,
        drift=Drift(n_rows),
        columns=posterior.columns,
        counts={np.inf: n_rows},  # of whatever labels
        stand_in=standing_for(posterior.spread, data, n_rows),
        asked_at=(n_rows, 0.0),
        summed=True,
    )


def _warnings_of(stream: Stream, factor: float) -> dict[str, str]:
    """What is wrong with a stream, by kind."""
    texts = {}
    if stream.remainder is not None and stream.remainder.is_large:
        texts["folded"] = (
            "rows that are no longer kept were summed up where the posterior has since left: it is "
            "off by about diagnostics_['folded_shift'] posterior standard deviations, or more; "
            "call fit on all rows, or shuffle them, or keep more of them: "
            "sklearn.set_config(working_memory=...), of which a sixteenth holds rows"
        )
    if stream.has_left_what_is_summed:
        texts["summed"] = (
            "the rows of the fit, or of the stream of which this is a compact copy, were summed up "
            "far from where the posterior now is, and are not kept: means and standard deviations "
            "may be wrong; call fit on all rows"
        )
    if stream.drift.highest > DRIFT_ERRORS:
        remedy = "set forgetting_factor below 1" if factor == 1 else "lower forgetting_factor"
        texts["drift"] = (
            "the truth moves along this stream, or its rows are sorted: chunks would have a "
            "smaller log loss if the posterior had gone on where the last ones pulled it, by "
            f"diagnostics_['drift'] standard errors (limit {DRIFT_ERRORS:g}); if the truth moves, "
            f"old rows mislead and intervals are too narrow: {remedy} (now {factor:g}); if rows "
            "are sorted, shuffle them, at least where they are too many to be kept"
        )
    if stream.rare and not stream.begins:  # of one class nothing else can be
        if stream.posterior.by_expected:
            texts["information"] = _of_information(stream.posterior)[0]
        if stream.misfit.is_large:
            texts["misfit"] = MISFIT
    return texts


def _seed(estimator: Any) -> np.random.SeedSequence:
    return estimator._options(0).seeded().seed


def _learned_from(
    estimator: Any, posterior: Posterior, seed: np.random.SeedSequence
) -> LearnedPrecision:
    """The prior that the first chunk leads to by short chains."""
    if posterior.n_rows < 2:
        raise ValueError(
            "prior_precision is learned from the first chunk, which needs at least 2 rows; "
            "give a larger first chunk, or numbers"
        )
    options, plan = estimator._options(posterior.dim), estimator._plan()
    options = options._replace(seed=seed, last=None)
    with one_thread(), in_threads(cores(options.n_jobs)):
        engine, _ = prepare(options, choose(options, posterior, plan), posterior, plan)
    if engine.learned is None:  # control variates threw the chains, and so did what came instead
        raise ValueError(
            "prior_precision cannot be learned from the first chunk, because its posterior is "
            "too far from Gaussian; give a larger first chunk, or numbers"
        )
    warn(engine.learned.warnings())
    return engine.learned


# -- what is read off a fit, or a stream -------------------------------------------------------


def posterior_of(estimator: Any, fit: Any) -> FittedPosterior | None:
    """The present posterior as a value."""
    if not isinstance(fit, StreamFit):
        found, spread = fit.gaussian, estimator._spread
        return None if found is None else FittedPosterior.of(estimator, fit, found, spread)
    stream, spread = fit.stream, None
    if stream.model is not None and stream.model.has_location:
        spread = stream.model.spread_of_y(stream.rows_that_tell())
    return FittedPosterior.of(estimator, fit, stream.distribution, spread)


def _of_information(distribution: Distribution) -> list[str]:
    """That the expected information stands in for the observed one, if it does."""
    return [f"{BY_EXPECTED}; call fit, or give more rows"] if distribution.by_expected else []


def moments_of(estimator: Any, fit: Any) -> tuple[NDArray, NDArray, Any]:
    """Means and standard deviations of the coefficients, and means of the intercepts."""
    if not isinstance(fit, StreamFit):
        coefficients, intercepts = map(
            estimator._draws.of, coef_and_intercept(estimator, fit.draws)
        )
        intercept = intercepts.mean()
        return *coefficients.moments(), intercept if estimator._has_rows else float(intercept)
    distribution = fit.known()
    coef, intercept = coef_and_intercept(estimator, distribution.mean)
    of_coef = estimator.model_.unpack(np.arange(estimator.model_.dim))["coef"]
    if len(of_coef) == 1:
        variance = distribution.variance[of_coef].reshape(coef.shape)
    else:
        variance = _against_the_mean(distribution.operator.inverse(), of_coef)
    return coef.copy(), np.sqrt(variance), intercept if estimator._has_rows else float(intercept)


def _against_the_mean(covariance: Operator, of_coef: NDArray) -> NDArray:
    """Variances of coefficients less their mean over the classes, (classes, features).

    `of_coef` are their coordinates.
    """
    n_classes = len(of_coef)
    less_mean = np.eye(n_classes) - 1 / n_classes
    if isinstance(covariance, Diag):
        return less_mean**2 @ covariance.values[of_coef]
    between = covariance.dense()[of_coef[:, None], of_coef]  # (classes, classes, features)
    return np.einsum("ka,abj,kb->kj", less_mean, between, less_mean)


def noise_of(estimator: Any) -> float:
    """Mean of the noise variance, or the given one."""
    distribution = estimator._stream.marginal
    if isinstance(distribution, NormalInverseGammaPrior):
        return distribution.noise_variance
    return float(estimator.model_.noise_variance)


def coef_and_intercept(estimator: Any, theta: NDArray) -> tuple[NDArray, NDArray]:
    """Coefficients and intercepts of parameters (..., D), zeros without intercepts.

    They have an axis for the logits where `coef_` has one, and are views, or of more than two
    classes differences to the mean over these.
    """
    model, blocks = estimator.model_, estimator.model_.unpack(theta)
    _, coef = model.natural("coef", blocks["coef"])
    intercept = blocks.get("intercept", np.zeros(coef.shape[:-1]))
    _, intercept = model.natural("intercept", intercept)
    return (coef, intercept) if estimator._has_rows else (coef[..., 0, :], intercept[..., 0])


def _shape_of_draws(estimator: Any) -> tuple[int, int]:
    """Chains of a stream and draws of each, as a fit would have them."""
    dim, options = estimator.model_.dim, estimator._options(0)
    n_chains = _CHAINS if options.n_chains == "auto" else int(options.n_chains)
    return n_chains, estimator._plan().n_draws(options, n_chains, dim)[0]


def draws_of(estimator: Any, fit: Any) -> NDArray:
    """Draws (n_chains, n_draws, D); of a stream independent ones of its present posterior."""
    if not isinstance(fit, StreamFit):
        return fit.draws
    fit.known()
    shape = _shape_of_draws(estimator)
    return fit.stream.draws(prod(shape)).reshape(*shape, -1)


def hyper_draws_of(estimator: Any, fit: Any) -> NDArray | None:
    """Draws of the log precisions of the prior, (n_chains, n_draws, K); None if none is sampled.

    Those of a stream are independent of the coefficients of the same draw.
    """
    if not isinstance(fit, StreamFit):
        return fit.hyper_draws
    shape = _shape_of_draws(estimator)
    drawn = fit.stream.hyper_draws(prod(shape))
    return None if drawn is None else drawn.reshape(*shape, -1)


def weights_of(estimator: Any, fit: Any) -> NDArray:
    """Weights of the draws of a chain, (n_draws,)."""
    if not isinstance(fit, StreamFit):
        return fit.weights
    _, n_draws = _shape_of_draws(estimator)
    return np.full(n_draws, 1 / n_draws)


def batches_of(estimator: Any, fit: Any) -> Batches | None:
    """Batches of matched draws; the draws of a stream, if they were moved, have exact moments."""
    if not isinstance(fit, StreamFit):
        return fit.batches
    n_draws = prod(_shape_of_draws(estimator))
    return Batches.exact(fit.model.dim, n_draws) if n_draws >= fewest(1) else None
