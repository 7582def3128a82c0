"""Streams of estimators with coefficients: Bayesian updating of a normal distribution."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.chains.run import cores, one_thread
from skbayes_sg.data import in_threads
from skbayes_sg.estimators.base import require_finite, set_learned
from skbayes_sg.estimators.gaussian_posterior import BY_EXPECTED
from skbayes_sg.estimators.new_levels import levels_of
from skbayes_sg.inference.bayesian_updating import Stream
from skbayes_sg.inference.drift import DRIFT_LIMIT, Drift
from skbayes_sg.inference.engine import choose, prepare
from skbayes_sg.inference.precision import Hyperprior, LearnedPrecision, estimate_precision
from skbayes_sg.linalg import Diag, Operator
from skbayes_sg.linalg.sizes import bytes_to_keep
from skbayes_sg.posterior import Posterior, affordable
from skbayes_sg.posterior.gaussian import Distribution
from skbayes_sg.validation import warn

_CHAINS = 8  # draws of a stream are independent; they have the shape of those of a fit
_OF_A_FIT = (
    *("draws_", "draw_weights_", "coef_", "coef_std_", "intercept_", "posterior_"),
    *("sampler_", "sampler_reason_", "states_", "n_iter_", "n_passes_", "burn_in_", "thin_"),
)


def update(estimator: Any, posterior: Posterior, attributes: dict[str, Any]) -> None:
    """Update an estimator by the rows of a chunk: the posterior of one is the prior of the next.

    Parameters
    ----------
    estimator : LinearModel
    posterior : Posterior
        Of the rows of the chunk.
    attributes : dict
        Fitted attributes of the subclass.
    """
    factor = estimator.forgetting_factor
    if isinstance(factor, bool) or not isinstance(factor, Real):
        raise TypeError(f"forgetting_factor must be a number in (0, 1], got {factor!r}")
    if not 0 < (factor := float(factor)) <= 1:
        raise ValueError(f"forgetting_factor must lie in (0, 1], got {factor}; 1 forgets nothing")
    stream, em, learned = estimator._stream, estimator._em(), None
    fitted, classes = hasattr(estimator, "posterior_"), attributes.get("classes_")
    is_first = stream is None and not fitted
    if stream is not None:
        if estimator.model_.shapes != posterior.model.shapes:
            raise ValueError(
                "whether there is an intercept, and whether the noise variance is given, must stay "
                "as in the first chunk; take a new estimator, or call fit"
            )
    elif fitted:  # after a fit
        prior, distribution = estimator._fit.prior, estimator.posterior_.distribution
        drift, seed = Drift(float(estimator.n_samples_seen_)), _seed(estimator)
        stream = Stream(prior, distribution, distribution, seed, drift=drift)
    else:  # before any row: then the prior may have to be learned
        seed, prior = _seed(estimator), posterior.prior
        assert isinstance(prior, Distribution)
        if em is not None:
            seed, other = seed.spawn(2)
            learned = _learned_from(estimator, posterior, other)
            prior = prior.with_precision(learned.precision)
            posterior = posterior.with_prior(prior)
        stream = Stream(prior, prior, prior, seed, drift=Drift())

    guess = mode = stream.posterior.mode
    if is_first:
        rows = posterior.data.sample
        guess = posterior.model.guess(rows.y, rows.weight, rows.offset)
        if posterior.log_prob(mode)[0] >= posterior.log_prob(guess)[0]:
            guess = mode
    before = stream
    stream = stream.after(posterior, guess, factor, bytes_to_keep())
    require_finite("posterior_", stream.posterior.mean)
    if stream.may_learn and isinstance(em, Hyperprior):
        # the prior that all rows lead to, while all of them are kept
        rows = stream.kept.data.sample
        prior = estimator._prior(stream.model, rows, classes, streaming=True)
        of_all = Posterior(stream.model, rows, prior)
        if affordable(of_all):
            learned = estimate_precision(em.of(of_all), of_all).learned
            stream = stream.under(prior.with_precision(learned.precision))
    if learned is not None:
        stream = replace(stream, learned_from=stream.rare)
    if stream.centre is not before.centre or stream.may_have_mended:
        stream = stream.diagnosed()

    # All fitted attributes; those of chains are removed.
    if learned is not None or is_first:
        n_normal = posterior.dim - ("log_noise" in posterior.model.shapes)
        estimator.prior_precision_ = stream.prior.precision[:n_normal].copy()
        set_learned(estimator, learned)
    for name in _OF_A_FIT:
        estimator.__dict__.pop(name, None)
    if estimator._fit is not None:
        nothing = {"draws": np.empty((0, 0, 0)), "hyper_draws": None, "gaussian": None}
        estimator._fit = replace(estimator._fit, **nothing)
    estimator.__dict__.update(attributes)
    if estimator.prior_groups is not None:
        found = levels_of(em, posterior.data)
        known = found if is_first else estimator._levels
        estimator._levels = {name: each for name, each in known.items() if found.get(name) == each}
    estimator.model_, estimator._stream, estimator._few = posterior.model, stream, None
    found = stream.remainder
    estimator.diagnostics_ = {} if found is None else found._asdict()
    estimator.diagnostics_["drift"] = stream.drift.z
    estimator._read_off_stream(stream.distribution)
    if stream.centre is not None:  # rows are kept
        estimator.diagnostics_ |= stream.misfit._asdict()

    if found is not None and found.is_large:
        warn(
            "rows that are no longer kept were summed up where the posterior has since left: it "
            f"may be off by {found.folded_shift:.2g} posterior standard deviations (Monte Carlo "
            f"error {found.folded_shift_se:.1g}) or more, see diagnostics_['folded_shift']; call "
            "fit on all rows, or shuffle them, or keep more of them: "
            "sklearn.set_config(working_memory=...), of which a sixteenth holds rows"
        )
    if stream.drift.highest > DRIFT_LIMIT >= before.drift.highest:  # once is enough
        remedy = "set forgetting_factor below 1" if factor == 1 else "lower forgetting_factor"
        warn(
            "the truth moves along this stream, or its rows are sorted: chunks would have a "
            "smaller log loss if the posterior had gone on where the last ones pulled it, by "
            f"drift = {stream.drift.z:.1f} standard errors (limit {DRIFT_LIMIT:g}); if the truth "
            f"moves, old rows mislead and intervals are too narrow: {remedy} (now {factor:g}); if "
            "rows are sorted, shuffle them, at least where they are too many to be kept"
        )
    if stream.rare and not stream.begins:  # of one class nothing else can be
        warn(_of_information(stream.posterior) + stream.misfit.warnings())


def _seed(estimator: Any) -> np.random.SeedSequence:
    return estimator._options(0).seeded().seed


def _learned_from(
    estimator: Any, posterior: Posterior, seed: np.random.SeedSequence
) -> LearnedPrecision:
    """The prior that the first chunk leads to: before any chain, or by short chains."""
    em = estimator._em()
    if isinstance(em, Hyperprior):
        precision = em.of(posterior)
        if affordable(posterior):
            return estimate_precision(precision, posterior).learned
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


# -- what a stream computes when it is asked for ------------------------------------------------


def _known(estimator: Any) -> Distribution:
    """The distribution of a stream, which may only now be expanded again."""
    stream = estimator._stream
    if stream.begins or not stream.posterior.by_expected:  # else `partial_fit` said it
        warn(_of_information(stream.distribution))
    return stream.distribution


def _of_information(distribution: Distribution) -> list[str]:
    """That the expected information stands in for the observed one, if it does."""
    return [f"{BY_EXPECTED}; call fit, or give more rows"] if distribution.by_expected else []


def moments_of(estimator: Any) -> tuple[NDArray, NDArray, Any]:
    """Means and standard deviations of the coefficients, and means of the intercepts."""
    distribution = _known(estimator)
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


def shape_of_draws(estimator: Any) -> tuple[int, int]:
    """Chains and draws of each, as a fit would have them."""
    dim, options = estimator.model_.dim, estimator._options(0)
    n_chains = _CHAINS if options.n_chains == "auto" else int(options.n_chains)
    return n_chains, estimator._plan().n_draws(options, n_chains, dim)[0]


def draws_of(estimator: Any) -> NDArray:
    """Independent draws of the present posterior, (n_chains, n_draws, D)."""
    _known(estimator)
    shape = shape_of_draws(estimator)
    return estimator._stream.draws(shape[0] * shape[1]).reshape(*shape, -1)
