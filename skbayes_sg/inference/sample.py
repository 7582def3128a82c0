"""A fit: from a posterior to draws, figures and warnings.

`sample` is the whole story. One candidate after the other approximates the posterior and starts its
chains (`warm_up.prepare`), which burn in and draw (`chains.run`) until they agree (`until_enough`);
figures tell whether that was the posterior (`diagnose`), and where it was not, or chains diverged,
the next one is tried. The result is a value, the `Fit`, from which an estimator reads its
attributes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from skbayes_sg.chains.run import (
    LONG,
    Chain,
    DrawBlock,
    Execution,
    Length,
    announced,
    cores,
    diverged,
    drawn,
    one_thread,
    rows_touched,
    run_chains,
    seconds,
    time_is_up,
    time_limit,
)
from skbayes_sg.data import in_threads
from skbayes_sg.diagnostics import judgements
from skbayes_sg.diagnostics.gradients import fewest
from skbayes_sg.inference import diagnose
from skbayes_sg.inference.engine import Engine
from skbayes_sg.inference.options import Fingerprint, Options
from skbayes_sg.inference.plan import Plan, Watcher
from skbayes_sg.inference.precision import as_learned
from skbayes_sg.inference.result import (
    Fit,
    Ran,
    held_in_single_precision,
    in_single_precision,
)
from skbayes_sg.inference.start import on_whole_pool
from skbayes_sg.inference.warm_up import choose, prepare
from skbayes_sg.linalg.sizes import bytes_to_keep
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.matched import matched
from skbayes_sg.posterior.nonzero_columns import Informed
from skbayes_sg.posterior.row_space import informed
from skbayes_sg.priors.joint import IntegratedPrecisions
from skbayes_sg.priors.scales import OnePrecision
from skbayes_sg.samplers.base import Need, RunLength
from skbayes_sg.samplers.target import Target
from skbayes_sg.validation import warn

AUTO = ("auto", "auto")  # burn_in and thin, which the user left to the sampler
_ROWS_ASKED = 1 << 28  # of all gradients together, which take some seconds
_LARGE_DRAWS = 1 << 20  # bytes; single precision blurs less than a draw's Monte Carlo error


def sample(
    posterior: Posterior,
    plan: Plan,
    options: Options,
    callbacks: Watcher,
    earlier: Engine | None = None,
) -> Fit:
    """Sample a posterior.

    Parameters
    ----------
    posterior : Posterior
        Under the given prior, or the first one to learn from.
    plan : Plan
        What is particular to its kind.
    options : Options
    callbacks : Watcher
    earlier : Engine, optional
        That of an earlier fit. If it was of the same data, prior and sampler the chains go on.

    Returns
    -------
    Fit

    Raises
    ------
    ValueError
        If the sampler that was given refuses the posterior.
    FloatingPointError
        If chains diverge, and there is no other engine.
    """
    with time_limit(callbacks.end) as cut, in_threads(cores(options.n_jobs)), one_thread():
        if options.sampler is None and options.has_one_precision:
            posterior = informed(posterior)  # without what only the prior knows
        if options.last is not None and earlier is not None:  # hyperparameters come last
            n_hyper = 0 if earlier.sampled is None else earlier.sampled.scales.dim
            if options.last.shape[1] not in (posterior.dim, posterior.dim + n_hyper):
                options = options._replace(last=None)  # it is of another posterior

        # Go on where the same fit stopped; or choose a sampler, approximate the posterior, start.
        choice, fingerprint = choose(options, posterior, plan), None
        engine, before = None, list[DrawBlock]()
        if options.warm_start or callbacks.checkpoint is not None:
            fingerprint = Fingerprint.of(options, choice, posterior)
            saved = None if callbacks.checkpoint is None else callbacks.checkpoint.load(fingerprint)
            if saved is not None:
                engine, before = saved
            elif options.warm_start and earlier and fingerprint.matches(earlier.fingerprint):
                # at the present points of its chains, whose burn-in is over
                auto = earlier.sampler.run_length(earlier.states[0])
                length = RunLength(0, options.length(auto).thin)
                engine = replace(earlier, length=length, passes=0.0, warnings=())
        if engine is None:
            options = options.seeded()
            engine, target = prepare(options, choice, posterior, plan)
        else:
            target = engine.target(posterior)
        engine = replace(engine, fingerprint=fingerprint)

        run, stopped = None, None
        candidate: Candidate | None = Candidate.of(engine, target, posterior, plan, options)
        while candidate is not None:
            result: Run | FloatingPointError
            try:
                run = result = until_enough(candidate, plan, options, callbacks, before)
            except FloatingPointError as error:
                result = stopped = error
            candidate, before = following(candidate, result, posterior, plan, options), []
        if run is None:
            assert stopped is not None
            raise stopped
        return _finished(run, plan, options, callbacks, cut)


class Candidate(NamedTuple):
    """An engine that is ready, what its chains move on, and how much they are to draw."""

    engine: Engine
    target: Target
    posterior: Posterior
    """The posterior under the prior of the engine."""
    n_draws: int
    """Draws of each chain, at first."""
    most: int
    """Draws of each chain, at most."""
    said: list[str]
    """What memory keeps the draws from being."""

    @classmethod
    def of(
        cls, engine: Engine, target: Target, posterior: Posterior, plan: Plan, options: Options
    ) -> Candidate:
        under = engine.under(posterior)
        # of the defaults only those near a normal distribution do without a Metropolis test
        near_normal = options.sampler is None and not engine.sampler.rejects
        draws = plan.n_draws(options, engine.n_chains, under.all_columns.dim, near_normal)
        return cls(engine, target, under, *draws)

    @property
    def seconds(self) -> float:
        """Seconds that its chains will take on one core, at first."""
        return self.seconds_of(self.engine.steps(self.n_draws))

    def seconds_of(self, steps: Length) -> float:
        return seconds(self.engine.sampler, self.target, self.engine.states, steps)


class Run(NamedTuple):
    """What the chains of a candidate have drawn."""

    candidate: Candidate
    chains: list[Chain]
    fit: Fit
    n_draws: int
    """Draws of each chain that were asked for at last."""
    n_wanted: int
    """The same, or the next number, if a callback ended the fit between two."""

    @property
    def n_drawn(self) -> int:
        return self.fit.draws.shape[1]


def until_enough(
    candidate: Candidate,
    plan: Plan,
    options: Options,
    callbacks: Watcher,
    before: list[DrawBlock],
) -> Run:
    """Burn in and draw, and go on until the chains agree; `before` was drawn already.

    Raises
    ------
    FloatingPointError
        If chains diverge.
    """
    engine, target, posterior, n_draws, most, said = candidate
    while n_draws < drawn(before):  # of a fit that was killed after it went on
        n_draws = min(n_draws + n_draws // 2, most)
    time = candidate.seconds_of(engine.steps(n_draws))
    warn([*said, *announced("the chains will take", time)], UserWarning)
    # single precision where double would fill the memory
    large = 8 * engine.n_chains * n_draws * posterior.all_columns.dim > bytes_to_keep()
    dtype = np.float32 if large else plan.dtype
    execution = Execution(options.n_jobs, dtype, None, before, keep=True)
    while True:
        summary = partial(_of_block, engine, posterior, plan)
        on_block = callbacks.over(engine, n_draws, summary, engine.fingerprint)
        execution = execution._replace(on_block=on_block)
        steps, states = engine.steps(n_draws), engine.states
        chains = run_chains(engine.sampler, target, states, steps, execution)
        fit = summarised(engine, posterior, plan, chains)
        run = Run(candidate, chains, fit, n_draws, n_draws)
        # Whether draws are of another distribution is judged of chains that agree: those on the
        # way to a posterior do not tell where it leads.
        following = min(n_draws + n_draws // 2, most)
        if run.n_drawn < n_draws or following <= n_draws or plan.is_enough(fit):
            return run
        further = candidate.seconds_of(engine.steps(following - n_draws))
        if further > LONG:
            return run
        if callbacks.end_the_fit():
            return run._replace(n_wanted=following)
        if time <= LONG:  # else it was said
            told = announced("the chains do not agree yet, and will take", time + further)
            warn(told, UserWarning)
        time += further
        n_draws, execution = following, execution._replace(before=[chains])


def following(
    candidate: Candidate,
    result: Run | FloatingPointError,
    posterior: Posterior,
    plan: Plan,
    options: Options,
) -> Candidate | None:
    """The candidate after one of a default whose draws are wrong, or whose chains part or diverged.

    Its chains start anew: points of the wrong distribution are no better than the mode. None where
    draws are right, or no other sampler would have better ones in short time. `posterior` is that
    of the fit, under the given prior.
    """
    engine, wrong = candidate.engine, list[str]()
    if isinstance(result, FloatingPointError):
        wrong, passes, thrown = [str(result)], engine.passes, True
    else:
        passes, thrown = result.fit.n_passes, diagnose.is_thrown(result.fit.figures)
        if result.n_drawn == result.n_draws:
            wrong = judgements.of_bias(result.fit.figures)
            if options.n_draws == "auto":  # the fit went on as far as it may
                wrong += judgements.of_disagreement(result.fit.figures, result.n_drawn)
    asked_for = options.sampler is not None or (options.burn_in, options.thin) != AUTO
    exact = Need.CLOSED_FORM in engine.sampler.needs and engine.sampled is not None
    if not wrong or engine.expansion is None or asked_for or exact or time_is_up():
        return None
    why = f"{type(engine.sampler).__name__} ran first, and {wrong[0]}"
    choice = plan.fallback(candidate.posterior, why)
    if type(choice.sampler) is type(engine.sampler):
        return None
    again = options._replace(last=None).seeded()
    again = again._replace(seed=again.spawn(2)[1])  # not that of the first
    whole = on_whole_pool(engine, candidate.target, again) if thrown else None
    if whole is not None:  # around the same expansion
        whole = replace(whole, reason=f"{why}, on minibatches of a pool", passes=passes)
        another = Candidate.of(whole, candidate.target, posterior, plan, options)
        if another.seconds <= LONG:
            return another
    # A precision that was learned stays. One that is sampled is looked for again: chains that part
    # do not tell where it is.
    if engine.sampled is None:
        posterior, again = candidate.posterior, again._replace(precision=None)
    begun, target = prepare(again, choice, posterior, plan)
    learned, passes = begun.learned or engine.learned, passes + begun.passes
    begun = replace(begun, learned=learned, passes=passes, fingerprint=engine.fingerprint)
    another = Candidate.of(begun, target, posterior, plan, options)
    return another if another.seconds <= LONG else None


def read_off(engine: Engine, posterior: Posterior, chains: list[Chain]) -> Fit:
    """Parameters and hyperparameters of these draws; `posterior` is under the engine's prior.

    Raises
    ------
    FloatingPointError
        If chains are where no precision of the prior lets coefficients be.
    """
    if not chains[0].weights.any():
        raise ValueError(
            "no draw falls into the part of a cycle that counts; raise n_draws, or change thin"
        )
    stopped, weights = engine.at(chains), chains[0].weights / chains[0].weights.sum()
    touched = rows_touched(engine.sampler, stopped.states)
    touched -= rows_touched(engine.sampler, engine.states)
    n_passes = engine.passes + touched / posterior.data.n_rows

    draws = np.concatenate([chain.draws for chain in chains])
    learned, scales, eta, n_draws = engine.learned, None, None, draws.shape[1]
    if learned is not None and learned.sampled is not None:
        # precisions of the prior are coordinates, or drawn given each draw
        scales = learned.sampled.scales
        if draws.shape[-1] > posterior.dim:
            eta, draws = draws[..., posterior.dim :], draws[..., : posterior.dim].copy()
        else:
            prior, flat = posterior.prior, draws.reshape(-1, posterior.dim).astype(np.float64)
            noise = 1.0 if prior.quadratic else np.exp(-flat[:, -1:])
            eta = noise * scales.squares(prior, flat - prior.mean)
            eta = eta.reshape(*draws.shape[:2], -1)
            last, integrated = chains[0].state, IntegratedPrecisions(scales.independent())
            if not eta.max() <= integrated.largest:
                raise diverged(stopped.sampler, last)
            # seeded by the step of a draw, so that a run that stops and goes on draws the same
            seed = last.normals.bit_generator.seed_seq.generate_state(4)
            for k in range(n_draws):
                step = last.t - (n_draws - k) * engine.length.thin
                rng = np.random.default_rng([*seed, step])
                eta[:, k] = integrated.draw(eta[:, k], rng)
        # the prior that is reported is that under the geometric means of these precisions
        ell = scales.log_precisions(eta.reshape(-1, scales.dim).astype(np.float64))
        ell = ell.reshape(*eta.shape[:2], -1)
        mean = np.einsum("cdg,d->g", ell, weights) / len(ell)
        posterior = posterior.with_prior(scales.given(posterior.prior, mean))
        path = np.append(learned.path[:-1], np.exp(mean)[None], axis=0)
        learned = as_learned(learned.sampled, posterior.prior, path, learned.uninformed)
        eta = eta.astype(np.float32)

    rounded = in_single_precision if draws.nbytes > _LARGE_DRAWS else held_in_single_precision
    draws = rounded(draws)
    model, prior = posterior.model, posterior.prior
    ran = Ran(stopped.sampler, stopped.reason, stopped.states[0].t, *stopped.length)
    return Fit(stopped, model, prior, draws, weights, n_passes, learned, scales, eta, ran=ran)


def summarised(engine: Engine, posterior: Posterior, plan: Plan, chains: list[Chain]) -> Fit:
    """What these draws of an engine say; `posterior` is under the prior of the engine."""
    fit = read_off(engine, posterior, chains)
    stopped, n_chains, n_draws = fit.engine, *fit.draws.shape[:2]
    assert stopped is not None
    posterior = posterior.with_prior(fit.prior)
    passes = fit.n_passes - engine.passes
    # a step takes as long as a gradient of 2,000 rows, besides that of its own rows
    work = passes * posterior.data.n_rows
    for before, after in zip(engine.states, stopped.states, strict=True):
        work += 2000 * (after.t - before.t)
    # gradients of all rows that take a sixth of that, and tell means and standard deviations
    of_chain = -(-fewest(posterior.dim) // n_chains)
    budget = int(0.16 * work / posterior.data.n_rows)
    if engine.sampler.rejects and engine.sampler.variance_reduction is not None:
        # on a pool far fewer rows are touched; whether it stands for all of them, these tell
        budget = max(budget, min(256, _ROWS_ASKED // posterior.data.n_rows))
    n_gradients = min(1024, max(256, of_chain * n_chains), budget)
    agreement = plan.agreement(fit, posterior, n_gradients)
    n_draws, burn_in, thin = engine.steps(n_draws)
    kept = n_draws * thin / (burn_in + n_draws * thin)
    figures, warnings = diagnose.diagnose_run(engine, chains, agreement, kept * passes)
    return replace(fit, figures=figures, warnings=warnings)


def _finished(run: Run, plan: Plan, options: Options, callbacks: Watcher, cut: list[str]) -> Fit:
    """The fit with draws matched to their gradients, all columns, and what is said of them."""
    (engine, target, posterior, _, most, _), chains, fit, n_draws, n_wanted = run

    # Draws of a default are moved, all by one affine map, to the mean and covariance that their
    # gradients imply: errors are then many times smaller. A sampler that the user gave shows its
    # own draws, and those of chains on their way to the posterior obey no such identities. All
    # figures are those of the draws as they came.
    if options.sampler is None and posterior.one_mode and judgements.agrees(fit.figures):
        matching = matched(target, np.concatenate([chain.draws for chain in chains]))
        if matching is not None:
            moved, batches = matching
            groups = np.cumsum([len(chain.draws) for chain in chains])[:-1]
            parts = np.split(moved.astype(chains[0].draws.dtype, copy=False), groups)
            pairs = zip(chains, parts, strict=True)
            chains = [chain._replace(draws=part) for chain, part in pairs]
            after = read_off(engine, posterior, chains)
            fit = replace(after, figures=fit.figures, warnings=fit.warnings, batches=batches)

    n_drawn, warnings = run.n_drawn, list(fit.warnings)
    fit = _complete(fit, posterior, plan, chains)
    notes = callbacks.close(n_drawn, n_wanted)
    if cut:
        notes.append(
            f"TimeLimit: the time was up before the first draw; cut short: {', '.join(cut)}; "
            "results may be off; raise seconds"
        )
    if options.n_draws == "auto" and n_wanted == n_drawn and not plan.is_enough(fit):
        warnings += judgements.of_few_draws(fit.figures, n_drawn, most)
    interrupted = n_drawn < n_draws and not callbacks.ended
    return replace(fit, warnings=warnings, interrupted=interrupted, notes=notes)


def _complete(fit: Fit, posterior: Posterior, plan: Plan, chains: list[Chain]) -> Fit:
    """The fit with what takes longer: all columns, and the normal distribution for them."""
    if isinstance(posterior, Informed):  # of other coefficients the prior is drawn
        reduced = posterior.with_prior(fit.prior)
        whole, learned, scales, relative = reduced.all_columns, fit.learned, fit.scales, None
        if scales is not None:  # one precision, of all coefficients
            assert learned is not None
            assert learned.sampled is not None
            relative = fit.prior_precision_draws[..., 0].astype(np.float64)
            relative /= scales.of(fit.prior)[0]
            block = whole.model.unpack(np.arange(whole.dim))["coef"].ravel()
            scales = OnePrecision(block, np.zeros_like(block), scales.labels, scales.unit)
            sampled = learned.sampled._replace(scales=scales)
            learned = as_learned(sampled, whole.prior, learned.path, learned.uninformed)
        groups = [chain.draws[..., : posterior.dim] for chain in chains]
        draws = in_single_precision(reduced.completed(groups, relative))
        fit = replace(fit, model=whole.model, prior=whole.prior, draws=draws)
        # of columns that are drawn beside the rows no gradient tells the mean
        fit = replace(fit, learned=learned, scales=scales, batches=None)
    return replace(fit, gaussian=plan.gaussian(fit, posterior.all_columns))


def _of_block(engine: Engine, posterior: Posterior, plan: Plan, chains: list[Chain]) -> Fit:
    return _complete(summarised(engine, posterior, plan, chains), posterior, plan, chains)
