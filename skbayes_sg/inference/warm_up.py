"""From a posterior to chains that are ready: the mode, the sampler, the prior and starting points.

`prepare` finds about where the precisions of the prior are and has the chains started; `begin`
finds the mode, settles on the sampler and starts them; `sample` runs them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skbayes_sg.chains.run import (
    Chain,
    burn_chain,
    cut_short,
    elements_of_step,
    in_parallel,
    refuse_unstable,
    rows_touched,
    start_chains,
    time_is_up,
)
from skbayes_sg.chains.tuning import Tuned, choose_alpha
from skbayes_sg.inference.engine import Engine
from skbayes_sg.inference.options import Choice, Options, RowsNeededError
from skbayes_sg.inference.plan import Plan
from skbayes_sg.inference.precision import (
    BOUNDS,
    NO_INFORMATION,
    Hyperprior,
    LearnedPrecision,
    PrecisionEstimate,
    as_learned,
    estimate_precision,
    remedy_of,
)
from skbayes_sg.inference.variational_em import (
    DiagonalControlVariate,
    MatrixControlVariate,
    StochasticEM,
    VariationalEM,
    fit_prior,
)
from skbayes_sg.linalg import DIAGONAL
from skbayes_sg.linalg.coordinates import LowRank
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.posterior import Posterior, affordable
from skbayes_sg.posterior.gaussian import InitialPoint, distance, expanded_twice, posterior_mean
from skbayes_sg.posterior.one_by_one import OneByOneTarget, is_one_by_one
from skbayes_sg.posterior.target import ChainTarget
from skbayes_sg.posterior.targets import NOT_SAMPLED, target_of, with_coordinates
from skbayes_sg.priors.scales import OnePrecision, Sampled, Scales
from skbayes_sg.samplers import HMC
from skbayes_sg.samplers.base import WITHOUT_ANCHOR, NoExpansionError
from skbayes_sg.samplers.target import Target

_ROUNDS = 4  # in which chains tell where the precision is, each around a point of its own
_MOST_PRECISIONS = 12  # under which chains tell the next one
_THROWN = "control variates threw the chains while the prior was learned"
_SHORTEST_MOVE, _LONGEST_MOVE = 0.3, 1.0  # of log precision at first, and at all
_FLATTEST = 0.05  # slope of a Newton step
_LONGER = 4  # times the burn-in of a sampler, where chance hides a move
_SELF_AVERAGING = 10_000  # parameters of which one point has about the mean square of many


def choose(options: Options, posterior: Posterior, plan: Plan) -> Choice:
    """The sampler that the user gave, or the plan's."""
    asked = options.sampler
    if asked is None:
        return plan.first(posterior)
    sampler = clone(asked.sampler)
    sampler.validate(posterior)
    if sampler.variance_reduction is not None and not posterior.model.fixed_inputs:
        raise ValueError(
            f"sampler: control variates of {type(sampler).__name__} need one mode to anchor at, "
            f"which the posterior of {type(posterior.model).__name__} does not have; "
            f"{WITHOUT_ANCHOR}"
        )
    tune = choose_alpha if sampler.needs_pilots else asked.tune
    return replace(asked, sampler=sampler, tune=tune)


def prepare(
    options: Options, choice: Choice, posterior: Posterior, plan: Plan
) -> tuple[Engine, Target]:
    """An engine under the given prior, or under one that is learned or sampled, and its target."""
    # The precision of the prior is given; or variational EM learns it from the chains; or they
    # sample it, and start from about where Gaussian approximations find it.
    asked, estimate = options.precision, None
    if isinstance(asked, Hyperprior):
        scales = asked.of(posterior)
        # given samplers without a Metropolis test have one precision integrated out
        bound = choice.given and not choice.sampler.rejects and isinstance(scales, OnePrecision)
        if is_one_by_one(posterior, scales) and not bound:
            return _begin_one_by_one(options, choice, posterior, scales)
        if choice.sampler.needs_closed_form and asked.groups is not None:
            choice = plan.fallback(
                posterior,
                "several prior precisions, whose joint distribution is not known in closed "
                "form, are sampled",
            )
        if choice.sampler.needs_closed_form:
            anywhere = Sampled(scales, np.zeros(scales.dim), np.ones(scales.dim))
            values, nothing = scales.of(posterior.prior)[None], np.zeros(scales.dim, bool)
            first = as_learned(anywhere, posterior.prior, values, nothing)
            estimate = PrecisionEstimate(first)
        elif affordable(posterior):
            estimate = estimate_precision(scales, posterior)
        else:
            return _found_by_chains(options, choice, posterior, plan, scales)
    elif asked is not None:
        return _learn(options, choice, posterior, plan, asked)
    engine, target = begin(options, choice, posterior, plan, estimate)

    # On a posterior far from normal no normal distribution tells where a sampled precision is.
    # Chains that have it as a coordinate burn in, and begin anew where that is elsewhere.
    for _ in range(0 if asked is None else _ROUNDS):
        sampled = engine.sampled
        if sampled is None or estimate is None or target.scale_move is None:
            break
        if engine.length.burn_in < 2 or time_is_up():
            break
        # the burn-in that the sampler asks for, and the points of its last quarter
        n_steps = engine.sampler.run_length(engine.states[0]).burn_in
        n_steps = min(engine.length.burn_in, n_steps)
        burnt, draws = _burnt(engine, target, posterior, n_steps, options.n_jobs)
        points = draws[:, draws.shape[1] // 2 :].reshape(-1, target.dim)
        scales, eta = sampled.scales, points[:, -sampled.scales.dim :]
        centre = eta.mean(axis=0)
        # 1.5 standard deviations are as far as the curves of a hyperparameter reach
        if time_is_up() or (np.abs(centre - sampled.centre) <= 1.5 * sampled.width).all():
            engine = replace(burnt, burnt=n_steps)
            break

        found, path, initial = estimate.learned, estimate.path, None
        sampled = Sampled(scales, centre, np.maximum(sampled.width, eta.std(axis=0)))
        ell = scales.log_precisions(centre[None])
        values = np.append(found.path, np.exp(ell), axis=0)
        prior = scales.given(posterior.prior, ell[0])
        found = as_learned(sampled, prior, values, found.uninformed)
        if path is not None:
            path.found(float(centre[0]), float(sampled.width[0]))
            initial = path.initial(float(centre[0]))
        estimate = PrecisionEstimate(found, initial, path)
        options = options._replace(last=burnt.last)
        engine, target = begin(options, choice, posterior, plan, estimate)
        engine = replace(engine, passes=engine.passes + burnt.passes)
    for state in engine.states:
        if engine.length.burn_in == 0 and state.t > 0:  # after pilots, or learning the prior
            engine.sampler.freeze(state, target)
    return engine, target


def begin(
    options: Options,
    choice: Choice,
    posterior: Posterior,
    plan: Plan,
    estimate: PrecisionEstimate | InitialPoint | None = None,
) -> tuple[Engine, Target]:
    """Start chains: mode, sampler, expansion, target, starting points.

    `estimate` is of precisions that are sampled, and the posterior is taken under it; or of the
    mode alone.
    """
    learned, initial, path = None, None, None
    if isinstance(estimate, PrecisionEstimate):
        learned, initial, path = estimate
    else:
        initial = estimate
    sampled = None if learned is None else learned.sampled
    if learned is not None:
        posterior = posterior.with_prior(posterior.prior.with_precision(learned.precision))
    start_seed, chain_seed = options.spawn(2)
    sampler = clone(choice.sampler)
    sampler.asked_for = choice.given
    if sampler.needs_closed_form:  # draws of a conjugate posterior need no start
        rows = posterior.data.sample
        mean = expanded_twice(posterior, posterior.model.guess(rows.y, rows.weight, rows.known))
        target = target_of(posterior, mean, sampler, sampled)
        theta = np.repeat(mean.theta, options.chains(sampler, target), axis=0)
        theta = np.pad(theta, ((0, 0), (0, target.dim - posterior.dim)))
        states = start_chains(sampler, target, theta, chain_seed)
        length = options.length(sampler.run_length(states[0]))
        return Engine(sampler, choice.reason, states, length, mean.passes, mean, learned), target

    # The mode, and the sampler. With control variates the posterior is expanded near its mean. If
    # it is too far from normal for them, another sampler takes over.
    rng, last = np.random.default_rng(start_seed), options.last
    of_model = None if last is None else last[:, : posterior.dim]
    theta, mode = plan.start(posterior, rng, options.chains(), of_model, initial)
    anchor, expandable = None, True
    if sampler.variance_reduction is not None and mode is not None:
        anchor = posterior_mean(posterior, mode)
    elif sampled is not None and sampler.follows_precision(posterior):
        # unadjusted steps have one precision, where a matrix whitens the posterior
        one = isinstance(sampled.scales, OnePrecision)
        if sampler.rejects or (one and not is_one_by_one(posterior, sampled.scales)):
            anchor = mode
    try:
        target = target_of(posterior, anchor, sampler, sampled, path)
        why = sampler.refusal(target)
        expandable = target.anchor is None or target.anchor.far_from_mode is None
    except NoExpansionError as error:
        why, expandable = str(error), False
    if why is not None:
        if choice.given:
            raise ValueError(f"{why}; {WITHOUT_ANCHOR}")
        choice = plan.fallback(posterior, why, expandable)
        sampler = clone(choice.sampler)
        sampler.asked_for = choice.given
        if sampler.variance_reduction is None:  # else the expansion serves this one too
            many = sampled is not None and not isinstance(sampled.scales, OnePrecision)
            anchor = mode if many else None
            target = target_of(posterior, anchor, sampler, sampled, path)
        elif isinstance(target, ChainTarget) and target.joint is not None and target.moves is None:
            assert sampled is not None
            target = with_coordinates(target.density, sampled, path)
    reason = choice.reason + sampler.resolve_auto(target)
    if learned is not None and target.sampled is not None:  # in coordinates with curves now
        learned = replace(learned, sampled=target.sampled)

    # Where the chains start, in the coordinates of the model, hyperparameters last: about the
    # mode, or where those of an earlier fit stopped.
    of_chain = np.arange(options.chains(sampler, target))
    if last is None or last.shape[1] < target.dim:
        theta = target.cloud(theta[of_chain % len(theta)], rng)
    else:
        theta = last[of_chain % len(last), : target.dim]
    if last is None and mode is not None:
        if sampler.starts_at_mode:
            theta = np.repeat(mode.theta, len(theta), axis=0)
        elif sampler.rejects:
            theta = _off_walls(target, theta, target.centred(mode.theta))

    # Start them, after short runs where these choose parameters.
    if choice.tune is None:
        tuned = Tuned(sampler, start_chains(sampler, target, theta, chain_seed))
    else:
        tuned = choice.tune(sampler, target, theta, chain_seed, options.n_jobs)
    sampler, states, remark, notes = tuned
    if mode is not None:  # elsewhere the linear part of a step says little of the step
        refuse_unstable(sampler, target, states[0])
    passes = rows_touched(sampler, states) / posterior.data.n_rows
    if anchor is not None:
        passes += anchor.passes + 1
    elif mode is not None:
        passes += mode.passes
    length = options.length(sampler.run_length(states[0]))
    engine = Engine(sampler, reason + remark, states, length, passes, anchor, learned)
    return replace(engine, warnings=notes), target


def _begin_one_by_one(
    options: Options, choice: Choice, posterior: Posterior, scales: Scales
) -> tuple[Engine, Target]:
    """Chains in coordinates of one coefficient at a time, about where the posterior is.

    There is no mode worth a search: under a sparse prior it is at zero, and with more columns than
    rows it is far from where the posterior has its mass. Chains start from the prior, and each of
    some rounds of burn-in tells where the coordinates of the next are to be taken.
    """
    if posterior.of_sample is not posterior:
        raise RowsNeededError(
            "so many coefficients or scales for these rows are sampled on rows in memory"
        )
    if not choice.given:
        why = "columns or groups have scales of their own, and are too many for a matrix"
        if isinstance(scales, OnePrecision):
            why = "coefficients may fit all rows, with a noise of zero"
        # Under a horseshoe chains visit dozens of columns in the slab, and rows that may be
        # interpolated leave the noise open. There the posterior is several times narrower, and
        # chains leave it only by shorter steps (math/priors.md#one-by-one).
        one = isinstance(scales, OnePrecision)
        accept = 0.9 if one or scales.has_heavy_tails else 0.8
        structure = "auto" if one else "diag"
        sampler = HMC(target_accept=accept, structure=structure, single_gradients=True)
        choice = Choice(sampler, why)
    elif not choice.sampler.rejects:
        raise ValueError(NOT_SAMPLED)
    sampler, sample, prior = clone(choice.sampler), posterior.data.sample, posterior.prior
    sampler.asked_for = choice.given
    start_seed, *seeds = options.spawn(2 + _ROUNDS)
    sampled = Sampled(scales, scales.start(prior)[0], np.ones(scales.dim))
    theta = posterior.model.guess(sample.y, sample.weight, sample.known)
    target = OneByOneTarget(posterior, sampled, theta)
    last, n_chains = options.last, 8 if options.n_chains == "auto" else int(options.n_chains)
    if last is not None and last.shape[1] == target.dim:
        points = last[np.arange(n_chains) % len(last)]
    else:
        points = target.cloud(np.repeat(theta, n_chains, axis=0), np.random.default_rng(start_seed))
        points = _off_walls(target, points, target.centred(theta))
    passes, n_steps = 0.0, 0
    for done, seed in enumerate(seeds):
        # Points of a few steps of many chains tell the metric, which those of a group share; and
        # a product of sparse rows with eight vectors takes half as long again as with four.
        states = start_chains(sampler, target, points, seed, fewest=8)
        length = options.length(sampler.run_length(states[0]))
        engine = Engine(sampler, choice.reason, states, length, passes)
        if done == _ROUNDS or length.burn_in < 2 or time_is_up():
            cut_short("rounds of burn-in", done, _ROUNDS)
            break
        burnt, draws = _burnt(engine, target, posterior, length.burn_in, options.n_jobs)
        points, passes, n_steps = burnt.last, burnt.passes, n_steps + burnt.states[0].t
        if time_is_up():  # chains go on from there, in the same coordinates
            continue
        seen = draws.mean(axis=(0, 1))
        sampled = sampled._replace(centre=seen[posterior.dim :])
        target = OneByOneTarget(posterior, sampled, seen[None, : posterior.dim])
    if options.burn_in == "auto" and target.has_groups:
        # These rounds were burn-in: where members tell the scale of a group, no other is needed.
        longer = length._replace(burn_in=length.burn_in + n_steps)
        engine = replace(engine, length=longer, burnt=n_steps)
    ell = scales.log_precisions(sampled.centre[None])
    prior = scales.given(prior, ell[0])
    learned = as_learned(sampled, prior, np.exp(ell), np.zeros(ell.size, dtype=bool))
    anchor = posterior.with_prior(prior).expand(target.anchor.theta, DIAGONAL)
    return replace(engine, anchor=anchor, learned=learned), target


def _burnt(
    engine: Engine, target: Target, posterior: Posterior, n_steps: int, n_jobs: int | None
) -> tuple[Engine, NDArray]:
    """The engine after some steps of its burn-in, and where chains were: (n_chains, points, D)."""
    burn = partial(burn_chain, engine.sampler, target, n_steps, keep=True)
    chains: list[Chain] = in_parallel(
        burn, engine.states, n_jobs, elements_of_step(target, engine.states)
    )
    burnt = engine.at(chains)
    cut_short("steps of burn-in", burnt.states[0].t - engine.states[0].t, n_steps)
    read = rows_touched(engine.sampler, burnt.states) - rows_touched(engine.sampler, engine.states)
    fewest = min(chain.draws.shape[1] for chain in chains)  # groups differ where the time is up
    draws = np.concatenate([chain.draws[:, :fewest] for chain in chains])
    return replace(burnt, passes=engine.passes + read / posterior.data.n_rows), draws


def _off_walls(target: Target, theta: NDArray, centre: NDArray) -> NDArray:
    """Starting points, nearer to the centre where the density is lower than a normal one would be.

    From up a wall a chain falls so fast that it flies far into the tail on the other side, and
    needs longer than burn-in to come back. The log density of a normal distribution at points of
    twice its width is twice a chi-square below its maximum.
    """
    lowest = 2.0 * target.dim + 6.0 * np.sqrt(2.0 * target.dim)  # mean and three deviations
    with np.errstate(over="ignore", invalid="ignore"):
        top, _ = target.logdensity_and_grad(target.coordinates.transform(centre))
        for _ in range(20):  # halvings of the distance to the centre
            value, _ = target.logdensity_and_grad(target.coordinates.transform(theta))
            low = ~(value > top - lowest)
            if not low.any():
                break
            theta = np.where(low[:, None], 0.5 * (theta + centre), theta)
    return theta


def _found_by_chains(
    options: Options, choice: Choice, posterior: Posterior, plan: Plan, scales: Scales
) -> tuple[Engine, Target]:
    """The engine under the precision under which the rows are most probable, and its target.

    Parameters are too many for a matrix, so chains tell the precision, by a burn-in under each of
    some. With theta counted from the prior's mean, and f the gradient of the log likelihood, the
    slope of the log evidence over rho = log lambda is P/2 - lambda/2 E||theta||^2 = -E[theta . f]/2
    (by parts). What rows say nothing of has no part in the latter, nor in gamma = lambda |m|^2 -
    E[theta . f], the number of coefficients that they know. A step of EM is this slope over P / 2,
    which is next to nothing of collinear columns. MacKay's (1992), of log(gamma / lambda |m|^2), is
    Newton's where gamma does not depend on lambda; the next ones are Newton's by the secant.
    Source: math/priors.md#a-sampled-precision.
    """
    # Samplers by name may be biased, and have few chains, so they have the precision of the default
    mine, asked = plan.first(posterior) if choice.given else choice, options
    options = options._replace(n_chains=4 if posterior.dim > _SELF_AVERAGING else "auto")
    engine, target = begin(options, mine, posterior, plan)
    weights, passes, anchor = scales.weights(posterior.prior), engine.passes, engine.anchor
    shape, rate = 2 * OnePrecision.shape, 2 * OnePrecision.shape / scales.unit
    rho, moves = [float(np.log(scales.of(posterior.prior)[0]))], list[float]()
    step, width, longer, uninformed = 0.0, 0.0, 1, np.zeros(1, bool)
    for done in range(_MOST_PRECISIONS):
        prior, anchor = posterior.prior, engine.anchor
        assert anchor is not None
        n_steps = longer * engine.sampler.run_length(engine.states[0]).burn_in
        try:
            burnt, draws = _burnt(engine, target, posterior, n_steps, options.n_jobs)
        except FloatingPointError:
            if engine.sampler.rejects:
                raise
            mine = plan.fallback(posterior, _THROWN)
            engine, target = begin(options, mine, posterior, plan)
            passes += engine.passes
            continue
        passes += burnt.passes - engine.passes
        engine = replace(burnt, burnt=n_steps)
        if time_is_up():  # it may have no points
            cut_short("rounds of learning the prior precision", done, _MOST_PRECISIONS)
            break

        # Means of different chains are independent, so that chance has no part in lambda |m|^2,
        # the mean of one times the force of another.
        n_chains, n_points, dim = draws.shape
        left, means, forces = np.empty((n_chains, n_points)), *np.empty((2, n_chains, dim))
        for chain, points in enumerate(draws):
            force = posterior.single.full_gradient(points) - prior.gradient(points)
            away, force = points - prior.mean, np.where(weights > 0, force, 0.0)
            left[chain] = -np.einsum("nd,nd->n", away, force)
            means[chain], forces[chain] = away.mean(axis=0), force.mean(axis=0)
        product = means.sum(axis=0) @ forces.sum(axis=0) - np.sum(means * forces)
        of_mean = float(product) / (n_chains * (n_chains - 1))
        gamma = max(float(left.mean()) + of_mean, 0.0) + shape  # with what the hyperprior knows
        of_mean = max(of_mean, 0.0) + rate * np.exp(rho[-1])
        moves.append(float(np.log(gamma / of_mean)))
        halves = np.concatenate([half.mean(axis=1) for half in np.array_split(left, 2, axis=1)])
        chance = 2 * float(halves.std(ddof=1)) / np.sqrt(len(halves)) / gamma

        # A first step is MacKay's, and long enough to tell a slope. Half of what the rows leave
        # open of rho does not matter, and longer runs tell what chance hides.
        first, move = len(moves) == 1, moves[-1]
        slope = -1.0 if first else float(np.polyfit(rho[-3:], moves[-3:], 1)[0])
        slope = max(-1.0, min(slope, -_FLATTEST))
        ahead = np.clip(-move / slope, -_LONGEST_MOVE, _LONGEST_MOVE)
        ahead = np.copysign(max(abs(ahead), _SHORTEST_MOVE * first), ahead)
        step = float(np.clip(rho[-1] + ahead, *np.log(BOUNDS))) - rho[-1]
        width = (-0.5 * gamma * slope) ** -0.5
        if first:
            own = prior.curvature(anchor.theta).diagonal() / anchor.curvature.diagonal()
            uninformed = np.array([(1 - own[weights > 0]).max() < NO_INFORMATION])
        enough = max(0.05, 0.5 * width)
        told = chance < -slope * enough or longer == _LONGER
        if abs(step) < enough and told and not first:
            break
        longer = longer if told else min(_LONGER, 2 * longer)
        rho.append(rho[-1] + step)
        posterior = posterior.with_prior(scales.given(prior, np.array(rho[-1:])))
        near = target.coordinates if isinstance(target.coordinates, LowRank) else None
        options = options._replace(last=burnt.last)
        initial = InitialPoint(anchor.theta, None, near)
        engine, target = begin(options, mine, posterior, plan, initial)
        passes += engine.passes

    path = np.exp(np.array(rho))[:, None]
    found = (scales.labels, path[-1], path, posterior.prior.precision, uninformed)
    learned = LearnedPrecision(*found, change=np.array([abs(step)]), uncertainty=np.array([width]))
    if anchor is not None and (choice.given or asked.n_chains != options.n_chains):
        initial = InitialPoint(anchor.theta, None)
        engine, target = begin(asked, choice if choice.given else mine, posterior, plan, initial)
        passes += engine.passes
    return replace(engine, passes=passes, learned=learned), target


def _learn(
    options: Options, choice: Choice, posterior: Posterior, plan: Plan, em: VariationalEM
) -> tuple[Engine, Target]:
    """The engine under the prior precision that its chains learn by variational EM.

    Without an anchor that takes one round. With an anchor, up to four rounds are run, until neither
    the precision moves, nor the anchor that follows it.
    """
    engine, target = begin(options, choice, posterior, plan)
    learned, paths, passes, first = None, list[NDArray](), engine.passes, choice
    # a matrix where there is one mode and the matrix is affordable
    known: type[MatrixControlVariate] | partial = MatrixControlVariate
    if not (posterior.model.fixed_inputs and has_matrix(posterior.dim)):
        known = partial(DiagonalControlVariate, null=posterior.model.null_directions())
    for done in range(_ROUNDS):
        if time_is_up():
            cut_short("rounds of learning the prior precision", done, _ROUNDS)
            break
        states = engine.states
        few = -(-_SELF_AVERAGING // (target.dim * len(states)))  # chains of each group
        if few < len(states[0].theta) and engine.anchor is not None:
            theta = np.concatenate([state.theta[:few] for state in states])
            theta = target.coordinates.inverse_transform(theta)
            states = start_chains(engine.sampler, target, theta, options.spawn(1)[0])
        blocks = posterior.model.prior_blocks(em.per)
        following = StochasticEM(em, engine.sampler, blocks, engine.length, known)
        found, moved = fit_prior(following, target, states, options.n_jobs)
        read = rows_touched(engine.sampler, moved) - rows_touched(engine.sampler, states)
        passes += read / posterior.data.n_rows
        # the Stein ratio of chains that left the region in which the anchor serves
        diverged = engine.anchor is not None and not np.max(found.stein) < 2.0
        if diverged and choice is first and not choice.given:
            choice = plan.fallback(posterior, _THROWN)
        else:
            if learned is not None:  # a precision may have grown until the data say nothing more
                found = replace(found, uninformed=learned.uninformed)
            learned, diverged = found, False
            paths.append(found.path)
            posterior = posterior.with_prior(posterior.prior.with_precision(found.precision))
            if engine.anchor is None:
                length = options.length(engine.sampler.run_length(moved[0]))
                engine, target = replace(engine, states=moved, length=length), posterior
                break
            if (found.excess > 1).any() and done < _ROUNDS - 1:  # on the way the old anchor serves
                engine, target = replace(engine, states=moved), target.with_prior(posterior.prior)
                continue
        before, near, initial = engine.anchor, target.coordinates, None
        if before is not None and isinstance(near, LowRank):
            initial = InitialPoint(before.theta, None, near)
        engine, target = begin(options, choice, posterior, plan, initial)
        passes += engine.passes
        now = engine.anchor
        # a move of the anchor in squared posterior standard deviations per parameter
        unmoved = before is None or now is None or distance(before, now) < 0.1
        if not diverged and unmoved:
            break
    else:
        remedy = remedy_of(True, em.hyperprior is not None)
        unsettled = f"the learned precision still moves the posterior mean after {_ROUNDS} rounds; "
        engine = replace(engine, warnings=(*engine.warnings, unsettled + remedy))
    if learned is not None:
        learned = replace(learned, path=np.concatenate(paths))
    return replace(engine, passes=passes, learned=learned), target
