"""From a posterior to chains that are ready: rounds of burn-in, each from where the last one led.

`prepare` says what is to be found out before chains draw: nothing under a given prior, else where
precisions of the prior are. `warm_up` is the loop: begin, burn in, look, and begin again where the
look says so. `sample` runs the chains.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
from sklearn.base import clone

from skbayes_sg.chains.run import (
    Length,
    announced,
    cut_short,
    seconds,
    seconds_of_passes,
    time_is_up,
)
from skbayes_sg.chains.tuning import choose_alpha
from skbayes_sg.inference.engine import Engine
from skbayes_sg.inference.options import Choice, Options, RowsNeededError
from skbayes_sg.inference.plan import Plan
from skbayes_sg.inference.precision import Hyperprior, estimate_precision, remedy_of
from skbayes_sg.inference.start import Start, begin
from skbayes_sg.inference.updates import (
    SELF_AVERAGING,
    THROWN,
    AtMeans,
    ByEM,
    Evidence,
    Recentre,
    Update,
    at_eta,
)
from skbayes_sg.inference.variational_em import VariationalEM
from skbayes_sg.posterior import Posterior, affordable
from skbayes_sg.posterior.gaussian import InitialPoint
from skbayes_sg.posterior.one_by_one import is_one_by_one
from skbayes_sg.priors.scales import OnePrecision, Scales
from skbayes_sg.samplers import HMC
from skbayes_sg.samplers.base import WITHOUT_ANCHOR, Need
from skbayes_sg.samplers.target import Target
from skbayes_sg.validation import warn

_FEWEST_PASSES = 3000  # of one point, which fits of so many parameters take, preparation included


def choose(options: Options, posterior: Posterior, plan: Plan) -> Choice:
    """The sampler that the user gave, or the plan's.

    Raises
    ------
    ValueError
        If the one that was given needs what the posterior does not have.
    """
    asked = options.sampler
    if asked is None:
        return plan.first(posterior)
    sampler, precision = clone(asked.sampler), options.precision
    sampler.validate(posterior)
    if Need.MODE in sampler.needs and not posterior.model.fixed_inputs:
        raise ValueError(
            f"sampler: control variates of {type(sampler).__name__} need one mode to anchor at, "
            f"which the posterior of {type(posterior.model).__name__} does not have; "
            f"{WITHOUT_ANCHOR}"
        )
    several = isinstance(precision, Hyperprior) and precision != Hyperprior()
    if Need.ONE_PRECISION in sampler.needs and several:
        raise ValueError(
            "prior_groups, and a prior of many scales, are sampled with the coefficients, which "
            'sampler=None and "hmc" can do where the posterior has a mode; set sampler=None, or '
            "prior_groups=None and prior=None"
        )
    tune = choose_alpha if sampler.needs_pilots else asked.tune
    return replace(asked, sampler=sampler, tune=tune)


def warm_up(start: Start, update: Update) -> tuple[Engine, Target]:
    """Begin, burn in, look, and begin again where the update says so.

    Parameters
    ----------
    start : Start
    update : Update
        What the points of a round of burn-in are asked.

    Returns
    -------
    Engine
        With the passes of all rounds. The steps of a last round that told nothing new are burn-in.
    Target

    Raises
    ------
    FloatingPointError
        If chains diverge, and there is no other sampler.
    """
    engine, target = begin(start)
    for done in range(update.rounds):
        n_steps = update.steps(engine, target)
        if n_steps == 0:
            break
        if done == 0:
            _announce(start, engine, target, n_steps)
        if time_is_up():
            cut_short("rounds of warm-up", done, update.rounds)
            break
        try:
            burnt, points = update.burn(start, engine, target, n_steps)
        except FloatingPointError:
            if engine.sampler.rejects or start.choice.asked_for:
                raise
            following, passes = start.with_fallback(THROWN), engine.passes
        else:
            # chains whose time is up may have no points, and go on from where they are
            moved = None if time_is_up() else update(start, burnt, target, points)
            del points  # before those of the next round: they are the largest arrays here
            if moved is None:
                engine = burnt
                break
            following, passes = moved, burnt.passes
        start = following
        engine, target = begin(start)
        engine = replace(engine, passes=engine.passes + passes)
    return engine, target


def _announce(start: Start, engine: Engine, target: Target, n_steps: int) -> None:
    """Say that warm-up and chains will take minutes: one round at least, and the first draws."""
    dim = start.posterior.all_columns.dim
    n_draws, _, _ = start.plan.n_draws(start.options, engine.n_chains, dim)
    steps = Length(n_draws, n_steps + engine.length.burn_in, engine.length.thin)
    with suppress(FloatingPointError, np.linalg.LinAlgError):  # of chains that diverge at once
        time = seconds(engine.sampler, target, engine.states, steps)
        warn(announced("warm-up and chains will take at least", time), UserWarning)


def prepare(
    options: Options, choice: Choice, posterior: Posterior, plan: Plan
) -> tuple[Engine, Target]:
    """An engine under the given prior, or under one that is learned or sampled, and its target.

    The precision of the prior is given; or variational EM learns it from the chains; or they sample
    it, and start from about where it is: by Gaussian approximations, or by the evidence where
    parameters are too many for these.
    """
    asked, start = options.precision, Start(options, choice, posterior, plan)
    if asked is None:
        engine, target = begin(start)
    elif isinstance(asked, VariationalEM):
        engine, target = _learned(start, asked)
    else:
        scales = asked.of(posterior)
        exact = Need.CLOSED_FORM in choice.sampler.needs
        # given samplers without a Metropolis test have one precision integrated out
        bound = choice.asked_for and not choice.sampler.rejects and isinstance(scales, OnePrecision)
        if is_one_by_one(posterior, scales) and not bound:
            engine, target = warm_up(_one_by_one(start, scales), AtMeans())
        elif exact and asked.groups is None:
            eta = scales.start(posterior.prior)
            engine, target = begin(replace(start, learned=at_eta(scales, posterior, eta)))
        elif affordable(posterior):
            if exact:
                why = "several prior precisions, whose joint distribution is not known in closed "
                start = start.with_fallback(why + "form, are sampled")
            learned, initial, path = estimate_precision(scales, posterior)
            start = replace(start, learned=learned, initial=initial, path=path)
            engine, target = warm_up(start, Recentre())
        else:
            engine, target = _most_probable(start, scales)
    for state in engine.states:
        if engine.length.burn_in == 0 and state.t > 0:  # after pilots, or learning the prior
            engine.sampler.freeze(state, target)
    return engine, target


def _one_by_one(start: Start, scales: Scales) -> Start:
    """The start in coordinates of one coefficient at a time."""
    choice, posterior = start.choice, start.posterior
    if posterior.of_sample is not posterior:
        raise RowsNeededError(
            "so many coefficients or scales for these rows are sampled on rows in memory"
        )
    if not choice.asked_for:
        why = "columns or groups have scales of their own, and are too many for a matrix"
        if isinstance(scales, OnePrecision):
            why = "coefficients may fit all rows, with a noise of zero"
        # Under a horseshoe chains visit dozens of columns in the slab, and rows that may be
        # interpolated leave the noise open. There the posterior is several times narrower, and
        # chains leave it only by shorter steps (math/priors.md#coordinates-by-coefficient).
        one = isinstance(scales, OnePrecision)
        accept = 0.9 if one or scales.has_heavy_tails else 0.8
        structure = "auto" if one else "diag"
        sampler = HMC(target_accept=accept, structure=structure, single_gradients=True)
        choice = Choice(sampler, why)
    rows = posterior.data.sample
    guess = InitialPoint(posterior.model.guess(rows.y, rows.weight, rows.known), None)
    learned = at_eta(scales, posterior, scales.start(posterior.prior))
    return replace(start, choice=choice, learned=learned, initial=guess)


def _most_probable(start: Start, scales: Scales) -> tuple[Engine, Target]:
    """The engine of very many parameters, under the precision that makes rows most probable."""
    # Samplers by name may be biased, and have few chains, so they have the precision of the default
    options, choice, posterior, plan = start.options, start.choice, start.posterior, start.plan
    default = plan.first(posterior) if choice.asked_for else choice
    in_single, zero = posterior.of_sample.single, np.zeros((1, posterior.dim))
    time = seconds_of_passes(lambda: in_single.full_gradient(zero), _FEWEST_PASSES)
    warn(announced("preparation and chains will take at least", time), UserWarning)
    few = options._replace(n_chains=4 if posterior.dim > SELF_AVERAGING else "auto")
    evidence = Evidence(scales, posterior)
    engine, target = warm_up(replace(start, options=few, choice=default), evidence)
    if engine.expansion is not None and (choice.asked_for or options.n_chains != few.n_chains):
        initial, passes = InitialPoint(engine.expansion.theta, None), engine.passes
        start = replace(start, posterior=evidence.posterior, initial=initial)
        engine, target = begin(start)
        engine = replace(engine, passes=engine.passes + passes)
    return replace(engine, learned=evidence.learned), target


def _learned(start: Start, em: VariationalEM) -> tuple[Engine, Target]:
    """The engine under the precision that chains learn by variational EM."""
    update = ByEM(em, start)
    engine, target = warm_up(start, update)
    if engine.expansion is None:  # the chains have moved on as it changed
        target = update.posterior
    elif update.has_moved(engine.expansion) and not time_is_up():
        unsettled = (
            f"the learned precision still moves the posterior mean after {update.rounds} rounds; "
            f"{remedy_of(True, em.hyperprior is not None)}"
        )
        engine = replace(engine, warnings=(*engine.warnings, unsettled))
    return replace(engine, learned=update.learned), target
