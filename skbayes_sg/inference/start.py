"""From a start to chains: the mode, the sampler, the expansion of the posterior, starting points.

A `Start` says what is known before chains move, and `begin` makes an engine of it. What rounds of
burn-in tell is the next start (`warm_up`).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skbayes_sg.chains.run import refuse_unstable, rows_touched, start_chains
from skbayes_sg.chains.tuning import Tuned
from skbayes_sg.inference.engine import Engine
from skbayes_sg.inference.options import Choice, Options
from skbayes_sg.inference.plan import Plan
from skbayes_sg.inference.precision import LearnedPrecision
from skbayes_sg.inference.variational_em import VariationalEM
from skbayes_sg.linalg import DIAGONAL
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.gaussian import (
    InitialPoint,
    Mode,
    NormalPath,
    expanded_twice,
    posterior_mean,
)
from skbayes_sg.posterior.normal_scores import has_steep_own, with_normal_score
from skbayes_sg.posterior.one_by_one import OneByOneTarget, is_one_by_one
from skbayes_sg.posterior.target import ChainTarget
from skbayes_sg.posterior.targets import target_of, with_coordinates
from skbayes_sg.priors.scales import OnePrecision, Sampled
from skbayes_sg.samplers import Sampler
from skbayes_sg.samplers.base import WITHOUT_ANCHOR, Need, NoExpansionError
from skbayes_sg.samplers.target import Target

_SHARED_METRIC = 8  # chains of a group, where points of a few steps of many tell the metric


@dataclass(frozen=True, eq=False)
class Start:
    """What is known before chains move.

    Attributes
    ----------
    options : Options
        With the last points of chains that moved before, if there are any.
    choice : Choice
        The sampler.
    posterior : Posterior
        Under the precision that is given, or the present one of those that chains learn.
    plan : Plan
    learned : LearnedPrecision, optional
        About where sampled precisions are.
    initial : InitialPoint, optional
        Near the mode; of coordinates of one coefficient at a time, where they are taken.
    path : NormalPath, optional
        Normal distributions under one precision, which bend its coordinates.
    """

    options: Options
    choice: Choice
    posterior: Posterior
    plan: Plan
    learned: LearnedPrecision | None = None
    initial: InitialPoint | None = None
    path: NormalPath | None = None

    @property
    def sampled(self) -> Sampled | None:
        """Precisions of the prior, if they are sampled."""
        return None if self.learned is None else self.learned.sampled

    def with_fallback(self, why: str) -> Start:
        """The start with the sampler that runs where this one cannot, and `why`."""
        return replace(self, choice=self.plan.fallback(self.posterior, why))

    def after(self, burnt: Engine, **changes: Any) -> Start:
        """The next start, from the points where chains stopped."""
        return replace(self, options=self.options._replace(last=burnt.last), **changes)


class Approximation(NamedTuple):
    """A sampler, what its chains are to move on, and about where they start."""

    choice: Choice
    """That of the start, or the one that took over."""
    sampler: Sampler
    target: Target
    points: NDArray
    """Points of the model, (n, D), about which chains start."""
    centre: NDArray | None
    """The one that they are about, (1, D); None where there are many modes."""
    passes: float
    expansion: Mode | None = None
    """That of the engine."""


def begin(start: Start) -> tuple[Engine, Target]:
    """Start chains: sampler and target, starting points, short runs.

    Raises
    ------
    ValueError
        If the sampler that the user gave refuses the posterior.
    """
    options, learned, sampled = start.options, start.learned, start.sampled
    start_seed, chain_seed = options.spawn(2)
    rng, last = np.random.default_rng(start_seed), options.last
    sampler, alone = clone(start.choice.sampler), False
    sampler.asked_for = start.choice.asked_for
    posterior = start.posterior if learned is None else learned.under(start.posterior)
    if sampled is not None and sampler.rejects:  # in coordinates of one coefficient at a time
        alone = is_one_by_one(posterior, sampled.scales)
    if Need.CLOSED_FORM in sampler.needs:
        about = _in_closed_form(start, sampler, posterior)
    elif alone:
        about = _about_a_point(start, sampler, posterior)
    else:
        about = _about_the_mode(start, sampler, posterior, rng)
    choice, sampler, target, points, centre, passes, expansion = about
    reason = choice.reason + sampler.resolve_auto(target)
    if learned is not None and target.sampled is not None:  # in coordinates with curves now
        learned = replace(learned, sampled=target.sampled)

    # Where the chains start, in the coordinates of the model, hyperparameters last: about the
    # mode, or where those of an earlier fit stopped.
    of_chain = np.arange(options.chains(sampler, target))
    if last is not None and last.shape[1] >= target.dim:
        theta = last[of_chain % len(last), : target.dim]
    else:
        theta = target.cloud(points[of_chain % len(points)], rng)
    if last is None and centre is not None:
        if sampler.starts_at_mode:
            theta = np.repeat(centre, len(theta), axis=0)
        elif sampler.rejects:
            theta = _off_walls(target, theta, target.centred(centre))

    # Start them, after short runs where these choose parameters.
    if choice.tune is None:
        fewest = _SHARED_METRIC if alone else 1
        tuned = Tuned(sampler, start_chains(sampler, target, theta, chain_seed, fewest))
    else:
        tuned = choice.tune(sampler, target, theta, chain_seed, options.n_jobs)
    sampler, states, remark, notes = tuned
    if centre is not None:  # elsewhere the linear part of a step says little of the step
        refuse_unstable(sampler, target, states[0])
    passes += rows_touched(sampler, states) / start.posterior.data.n_rows
    length = options.length(sampler.run_length(states[0]))
    engine = Engine(sampler, reason + remark, states, length, passes, expansion, learned)
    return replace(engine, warnings=notes), target


def on_whole_pool(engine: Engine, target: Target, options: Options) -> Engine | None:
    """The engine whose steps take all rows of the pool, after minibatches threw its chains out.

    The noise of minibatches is that about the anchor. Where remainders grow exponentially, as with
    few events, it is far larger on the way out. None where steps took the whole pool.
    """
    anchor, expansion = target.anchor, engine.expansion
    if anchor is None or expansion is None or engine.states[0].rows.full_data:
        return None
    start_seed, chain_seed = options.spawn(2)
    rng, dim = np.random.default_rng(start_seed), expansion.theta.shape[1]
    points = expansion.away(2 * rng.standard_normal((engine.n_chains, dim)))
    sampler = clone(engine.sampler)
    sampler.asked_for, sampler.batch_size = False, anchor.pool_size
    states = start_chains(sampler, target, target.cloud(points, rng), chain_seed)
    length = options.length(sampler.run_length(states[0]))
    return replace(engine, sampler=sampler, states=states, length=length, burnt=0)


def _in_closed_form(start: Start, sampler: Sampler, posterior: Posterior) -> Approximation:
    """A conjugate posterior, whose draws need no start."""
    rows = posterior.data.sample
    mean = expanded_twice(posterior, posterior.model.guess(rows.y, rows.weight, rows.known))
    target = target_of(posterior, mean, sampler, start.sampled)
    points = np.pad(mean.theta, ((0, 0), (0, target.dim - posterior.dim)))
    return Approximation(start.choice, sampler, target, points, None, mean.passes, mean)


def _about_a_point(start: Start, sampler: Sampler, posterior: Posterior) -> Approximation:
    """Coordinates of one coefficient at a time, those of the given precision.

    They are about a point that is no mode: under a sparse prior that is at zero, and with more
    columns than rows it is far from where the posterior has its mass.
    """
    initial, sampled = start.initial, start.sampled
    assert initial is not None
    assert sampled is not None
    theta, expansion = initial.theta, posterior.expand(initial.theta, DIAGONAL)
    target, passes = OneByOneTarget(start.posterior, sampled, theta), expansion.passes + 1
    return Approximation(start.choice, sampler, target, theta, theta, passes, expansion)


def _about_the_mode(
    start: Start, sampler: Sampler, posterior: Posterior, rng: np.random.Generator
) -> Approximation:
    """The posterior about its mode, or about where it was chosen to start, if it has many.

    With control variates it is expanded near its mean. If it is too far from normal for them,
    another sampler takes over.
    """
    choice, plan, sampled, last = start.choice, start.plan, start.sampled, start.options.last
    of_model = None if last is None else last[:, : posterior.dim]
    points, mode = plan.start(posterior, rng, start.options.chains(), of_model, start.initial)
    expansion: Mode | None = None
    one, expandable = sampled is None or isinstance(sampled.scales, OnePrecision), True
    if sampler.variance_reduction is not None and mode is not None:
        expansion = posterior_mean(posterior, mode)
    elif sampled is not None and sampler.follows_precision(posterior):
        # unadjusted steps have one precision, where a matrix whitens the posterior
        whitened = one and not is_one_by_one(posterior, sampled.scales)
        expansion = mode if sampler.rejects or whitened else None
    # Along a parameter of the family at its limit chains move by its normal score: at once where
    # its line alone is too steep, else where the posterior is refused without. Variational EM reads
    # gradients in the coordinates of the model, from chains in an affine function of them.
    unadjusted = sampler.variance_reduction is not None and not sampler.rejects
    affine = isinstance(start.options.precision, VariationalEM)
    plain = expansion if unadjusted and sampler.follows_coordinates and not affine else None
    scored, why = None, None
    if plain is not None and has_steep_own(posterior, plain):
        scored, plain = _by_normal_score(start, sampler, posterior, plain), None
    if scored is None:
        try:
            target = target_of(posterior, expansion, sampler, sampled, start.path)
            why = sampler.refusal(target)
            expandable = target.anchor is None or target.anchor.far_from_mode is None
        except NoExpansionError as error:
            why, expandable = str(error), False
        if why is not None and plain is not None:
            scored = _by_normal_score(start, sampler, posterior, plain)
    if scored is not None:
        (target, expansion), why = scored, None
        assert expansion.score is not None
        name = posterior.predictor.own[expansion.score.which]
        choice = replace(choice, reason=f"{choice.reason} in the normal score of {name}")
    if why is not None:
        if choice.asked_for:
            raise ValueError(f"{why}; {WITHOUT_ANCHOR}")
        choice = plan.fallback(posterior, why, expandable)
        sampler = clone(choice.sampler)
        sampler.asked_for = choice.asked_for
        if sampler.variance_reduction is None:  # else the expansion serves this one too
            expansion = None if one else mode
            target = target_of(posterior, expansion, sampler, sampled, start.path)
        elif isinstance(target, ChainTarget) and target.joint is not None and not target.moves:
            assert sampled is not None
            target = with_coordinates(target.density, sampled, start.path)
    centre, passes = (None, 0.0) if mode is None else (mode.theta, mode.passes)
    if expansion is not None:
        passes = expansion.passes + 1
    return Approximation(choice, sampler, target, points, centre, passes, expansion)


def _by_normal_score(
    start: Start, sampler: Sampler, posterior: Posterior, expansion: Mode
) -> tuple[Target, Mode] | None:
    """Target and expansion with the normal score of a parameter of the family.

    None where there is none, or where the sampler refuses it too.
    """
    scored = with_normal_score(posterior, expansion)
    if scored is None:
        return None
    with suppress(NoExpansionError):
        target = target_of(posterior, scored, sampler, start.sampled, start.path)
        if sampler.refusal(target) is None:
            return target, scored
    return None


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
