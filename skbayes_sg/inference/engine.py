"""The engine of a fit: a sampler with numbers for all its parameters, and its chains.

`prepare` chooses the sampler, finds about where the precisions of the prior are, and starts the
chains; `sample.py` runs them. An engine is frozen and holds no data: `Engine.target` makes what the
chains move on from the engine and a posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skbayes_sg.chains.parallel import cores, cut_short, in_parallel, one_thread, time_is_up
from skbayes_sg.chains.run import (
    Chain,
    Execution,
    Length,
    burn_chain,
    rows_touched,
    run_chains,
    seconds,
    start_chains,
)
from skbayes_sg.chains.tuning import choose_alpha, refuse_unstable
from skbayes_sg.data import in_threads
from skbayes_sg.inference.em_control_variate import DiagonalControlVariate, MatrixControlVariate
from skbayes_sg.inference.fingerprint import Fingerprint
from skbayes_sg.inference.options import Choice, Options
from skbayes_sg.inference.precision import (
    Hyperprior,
    LearnedPrecision,
    PrecisionEstimate,
    as_learned,
    estimate_precision,
    remedy_of,
)
from skbayes_sg.inference.variational_em import (
    StochasticEM,
    VariationalEM,
    fit_prior,
    learned_in_chains,
)
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.posterior import Posterior, affordable
from skbayes_sg.posterior.full_data import FullDataTarget
from skbayes_sg.posterior.gaussian import (
    InitialPoint,
    Mode,
    distance,
    expanded_twice,
    posterior_mean,
)
from skbayes_sg.posterior.hierarchical import HierarchicalTarget, IntegratedTarget
from skbayes_sg.posterior.non_centred import Sampled
from skbayes_sg.posterior.targets import moved_by, target_of
from skbayes_sg.samplers import Sampler, State
from skbayes_sg.samplers.base import WITHOUT_ANCHOR, NoExpansionError, RunLength, far_from_mode
from skbayes_sg.samplers.target import Target

_ROUNDS = 4  # of learning the prior, each from an anchor of its own
_DIVERGED = 2.0  # Stein ratio of chains that left the region in which the anchor serves
_FAR = 1.5  # standard deviations of a hyperparameter, as far as its curves reach
_SELF_AVERAGING = 10_000  # parameters of which one point has about the mean square of many
_FAR_FROM_ANCHOR = 0.1  # in squared posterior standard deviations per parameter
_HALVINGS = 20  # of the distance of a starting point from the mode


class Plan(Protocol):
    """What chains of a kind of posterior start from, and what they sample with by default."""

    def first(self, posterior: Posterior) -> Choice:
        """The best sampler for this posterior, by its size, before any step."""

    def fallback(self, posterior: Posterior, why: str, expandable: bool = True) -> Choice:
        """The sampler to run where the first one is refused, and `why`.

        `expandable`: whether the posterior can be expanded around a point.
        """

    def presets(self, dim: int) -> dict[str, Choice]:
        """Samplers by name, for `dim` parameters; 0 if the number is not known yet."""

    def start(
        self,
        posterior: Posterior,
        rng: np.random.Generator,
        n_chains: int,
        last: NDArray | None,
        initial: InitialPoint | None = None,
    ) -> tuple[NDArray, Mode | None]:
        """Starting points (n_chains, D), and the mode; None where there are many.

        `last` are the last points of an earlier fit, (n_chains, D), and `initial` is near the mode,
        if such a point is known.
        """


@dataclass(frozen=True, eq=False)
class Engine:
    """Chains ready to burn in, or to go on, with numbers for all parameters and without data.

    Attributes
    ----------
    sampler : Sampler
        With numbers in place of "auto".
    reason : str
        Why this sampler runs.
    states : list of State
    length : RunLength
    passes : float
        Rows read so far over rows.
    anchor : Mode, optional
        Of control variates, or of a distribution in closed form.
    learned : LearnedPrecision, optional
        The learned prior; of a sampled precision, one that is near.
    sampled : Sampled, optional
        Precisions of the prior, if they are sampled.
    fingerprint : Fingerprint, optional
        For the next warm start.
    warnings : tuple of str
        Warnings of the preparation.
    last : array of shape (n_chains, D)
        The points where the chains stopped, in the coordinates of the model, hyperparameters last.
    burnt : int
        Steps of the burn-in that are done.
    """

    sampler: Sampler
    reason: str
    states: list[State]
    length: RunLength
    passes: float
    anchor: Mode | None = None
    learned: LearnedPrecision | None = None
    fingerprint: Fingerprint | None = None
    warnings: tuple[str, ...] = ()
    sampled: Sampled | None = None
    last: NDArray = field(default_factory=partial(np.empty, (0, 0)))
    burnt: int = 0

    def target(self, posterior: Posterior) -> Target:
        """The target of the chains: the posterior under the learned prior, anchored if asked."""
        return target_of(self.under(posterior), self.anchor, self.sampler, self.sampled)

    def under(self, posterior: Posterior) -> Posterior:
        """The posterior under the learned prior, if there is one."""
        return posterior if self.learned is None else self.learned.under(posterior)

    def steps(self, n_draws: int) -> Length:
        """What is left to run for so many draws."""
        return Length(n_draws, max(0, self.length.burn_in - self.burnt), self.length.thin)

    def seconds(self, target: Target, n_draws: int) -> float:
        """An estimate of the time on one core that burn-in and draws take."""
        return seconds(self.sampler, target, self.states, self.steps(n_draws).n_steps)

    def sample(self, target: Target, n_draws: int, execution: Execution) -> list[Chain]:
        """Burn in, and draw; see `run_chains`."""
        return run_chains(self.sampler, target, self.states, self.steps(n_draws), execution)

    def at(self, chains: list[Chain]) -> Engine:
        """The engine where these chains stopped."""
        last = np.concatenate([chain.last for chain in chains])
        return replace(self, states=[chain.state for chain in chains], last=last)

    def resumed(self, options: Options) -> Engine:
        """The engine at the present points of its chains, whose burn-in is over."""
        thin = options.length(self.sampler, self.states).thin
        return replace(self, length=RunLength(0, thin), passes=0.0, warnings=())


def choose(options: Options, posterior: Posterior, plan: Plan) -> Choice:
    """The sampler that the user gave, or the plan's."""
    asked = options.sampler
    if asked is None:
        choice = plan.first(posterior)
        precision = options.precision
        several = isinstance(precision, Hyperprior) and not precision.is_one
        if choice.sampler.needs_closed_form and several:
            return plan.fallback(
                posterior,
                "several prior precisions, whose joint distribution is not known in closed form, "
                "are sampled",
            )
        return choice
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
    options: Options,
    choice: Choice,
    posterior: Posterior,
    plan: Plan,
    sampled: Sampled | None = None,
) -> tuple[Engine, Target]:
    """An engine under the given prior, or under one that is learned or sampled, and its target.

    `sampled` is the prior precision of an earlier engine, if the chains are to sample it.
    """
    with one_thread(), in_threads(cores(options.n_jobs)):
        precision, estimate, em = options.precision, PrecisionEstimate(sampled), None
        if isinstance(precision, Hyperprior):
            scales = precision.of(posterior)
            if choice.sampler.needs_closed_form:
                estimate = PrecisionEstimate(
                    Sampled(scales, np.zeros(scales.dim), np.ones(scales.dim))
                )
            elif not (precision.is_one or has_matrix(posterior.dim)):
                raise ValueError(
                    "prior_groups, and a prior of many scales, need a matrix of all parameters, "
                    f"and {posterior.dim} are too many for one; set prior_groups=None and "
                    "prior=None, or leave out columns"
                )
            elif affordable(posterior):
                estimate = estimate_precision(scales, posterior)
                assert estimate.learned is not None
                posterior = estimate.learned.under(posterior)
            else:
                em = learned_in_chains(scales)
        elif precision is not None:
            em = precision
        engine, target = begin(options, choice, posterior, plan, estimate)
        if estimate.learned is not None:
            again = partial(begin, choice=choice, plan=plan)
            engine, target = _recentred(options, (engine, target), posterior, estimate, again)
        if em is not None:
            learning = options._replace(precision=em)
            engine, target = _learn(learning, choice, (engine, target), posterior, plan)
        for state in engine.states:
            if engine.length.burn_in == 0 and state.t > 0:  # after pilots, or learning the prior
                engine.sampler.freeze(state, target)
    return engine, target


def begin(
    options: Options, choice: Choice, posterior: Posterior, plan: Plan, estimate: PrecisionEstimate
) -> tuple[Engine, Target]:
    """Start chains under the present prior: sampler, expansion point, target, starting points."""
    assert options.seed is not None
    sampled = estimate.sampled
    start_seed, chain_seed = options.seed.spawn(2)
    if choice.sampler.needs_closed_form:  # draws of a conjugate posterior need no start
        rows, sampler = posterior.data.sample, _copy_of(choice)
        mean = expanded_twice(posterior, posterior.model.guess(rows.y, rows.weight))
        target = target_of(posterior, mean, sampler, sampled)
        theta = np.repeat(mean.theta, options.chains(sampler), axis=0)
        theta = np.pad(theta, ((0, 0), (0, target.dim - posterior.dim)))
        states = start_chains(sampler, target, theta, chain_seed)
        length, reason = options.length(sampler, states), choice.reason
        engine = Engine(sampler, reason, states, length, mean.passes, mean, sampled=sampled)
        return engine, target

    rng = np.random.default_rng(start_seed)
    last = None if options.last is None else options.last[:, : posterior.dim]
    theta, mode = plan.start(posterior, rng, options.chains(), last, estimate.initial)
    sampler, choice, anchor, target = _resolve(choice, posterior, plan, mode, sampled)
    if isinstance(target, HierarchicalTarget):
        target = target if estimate.path is None else target.curved(estimate.path)
        sampled = target.coordinates.sampled

    # where the chains start, in the coordinates of the model
    n_chains = options.chains(sampler, target.posterior.dim)
    theta, coordinates = theta[np.arange(n_chains) % len(theta)], target.coordinates
    if isinstance(target, HierarchicalTarget):
        if options.last is not None and options.last.shape[1] == target.dim:
            theta = options.last[np.arange(n_chains) % len(options.last)]
        else:
            normals = rng.standard_normal((n_chains, target.dim))
            normals[:, -target.coordinates.n_hyper :] *= 2.0  # along which chains are slow
            spread = target.anchor.curvature.inverse().cholesky()
            theta = coordinates.inverse_transform(spread.matvec(normals))
    if options.last is None and mode is not None:
        if isinstance(target, FullDataTarget):
            theta = coordinates.inverse_transform(rng.standard_normal(theta.shape))
        if sampler.starts_at_mode:
            theta = np.repeat(mode.theta, n_chains, axis=0)
        elif sampler.rejects:
            centre = mode.theta
            if isinstance(target, HierarchicalTarget):
                centre = coordinates.inverse_transform(np.zeros((1, target.dim)))
            theta = _off_walls(target, theta, centre)

    sampler, states, remark, notes = choice.tune(sampler, target, theta, chain_seed, options.n_jobs)
    if mode is not None:  # elsewhere the linear part of a step says little of the step
        refuse_unstable(sampler, target, states[0])
    passes = rows_touched(sampler, states) / posterior.data.n_rows
    if anchor is not None:
        passes += anchor.passes + 1
    elif mode is not None:
        passes += mode.passes
    length, reason = options.length(sampler, states), choice.reason + remark
    engine = Engine(sampler, reason, states, length, passes, anchor, None, None, notes, sampled)
    return engine, target


def _copy_of(choice: Choice) -> Sampler:
    """The sampler of a choice, which knows whether the user asked for it."""
    sampler = clone(choice.sampler)
    sampler.asked_for = choice.given
    return sampler


def _resolve(
    choice: Choice,
    posterior: Posterior,
    plan: Plan,
    mode: Mode | None,
    sampled: Sampled | None,
) -> tuple[Sampler, Choice, Mode | None, Target]:
    """The sampler with numbers for all parameters, its choice, its anchor and its target.

    The plan's other sampler takes the anchor of the first, which refused the posterior there.
    """
    sampler, anchor = _copy_of(choice), None
    if sampler.variance_reduction is not None:
        assert mode is not None
        anchor = posterior_mean(posterior, mode)
    elif sampled is not None and sampler.rejects:
        anchor = mode
    expandable = True
    try:
        target = target_of(posterior, anchor, sampler, sampled)
        why = sampler.refusal(target)
        expandable = target.anchor is None or far_from_mode(target.anchor) is None
    except NoExpansionError as error:
        why, expandable = str(error), False
    if why is not None:
        if choice.given:
            raise ValueError(f"{why}; {WITHOUT_ANCHOR}")
        choice = plan.fallback(posterior, why, expandable)
        sampler = _copy_of(choice)
        if sampler.variance_reduction is None:
            anchor, target = None, target_of(posterior, None, sampler, sampled)
        elif isinstance(target, IntegratedTarget):
            assert sampled is not None
            target = moved_by(sampler, target.given, sampled)
    figures = sampler.resolve_auto(target)
    return sampler, replace(choice, reason=choice.reason + figures), anchor, target


def _off_walls(target: Target, theta: NDArray, centre: NDArray) -> NDArray:
    """Starting points, nearer to the centre where the density is lower than a normal one would be.

    From up a wall a chain falls so fast that it flies far into the tail on the other side, and
    needs longer than burn-in to come back. The log density of a normal distribution at points of
    twice its width is twice a chi-square below its maximum.
    """
    lowest = 2.0 * target.dim + 6.0 * np.sqrt(2.0 * target.dim)  # mean and three deviations
    with np.errstate(over="ignore", invalid="ignore"):
        top, _ = target.slope(target.coordinates.transform(centre))
        for _ in range(_HALVINGS):
            value, _ = target.slope(target.coordinates.transform(theta))
            low = ~(value > top - lowest)
            if not low.any():
                break
            theta = np.where(low[:, None], 0.5 * (theta + centre), theta)
    return theta


def _recentred(
    options: Options,
    begun: tuple[Engine, Target],
    posterior: Posterior,
    estimate: PrecisionEstimate,
    again: Callable[..., tuple[Engine, Target]],
) -> tuple[Engine, Target]:
    """An engine that samples the precision, anchored where its burn-in finds it.

    On a posterior far from normal no normal distribution tells where that is. So the chains burn
    in, and begin `again` where that is elsewhere.
    """
    engine, target = begun
    learned, path = estimate.learned, estimate.path
    assert learned is not None
    for _ in range(_ROUNDS):
        engine = replace(engine, learned=learned)
        if not target.has_scale or engine.length.burn_in < 2 or time_is_up():
            break
        # the burn-in that the sampler asks for, and the points of its second half
        n_steps = min(engine.length.burn_in, engine.sampler.run_length(engine.states[0]).burn_in)
        burn = partial(burn_chain, engine.sampler, target, n_steps, keep=True)
        chains: list[Chain] = in_parallel(burn, engine.states, options.n_jobs)
        points = np.concatenate([chain.draws.reshape(-1, target.dim) for chain in chains])
        burnt = engine.at(chains)
        cut_short("steps of burn-in", burnt.states[0].t - engine.states[0].t, n_steps)
        read = rows_touched(engine.sampler, burnt.states)
        read -= rows_touched(engine.sampler, engine.states)
        passes = engine.passes + read / posterior.data.n_rows
        burnt = replace(burnt, burnt=n_steps, passes=passes)
        # where it found the precision, and another beginning there if that is elsewhere
        before = engine.sampled
        assert before is not None
        scales = before.scales
        eta = points[:, -scales.dim :]
        centre = eta.mean(axis=0)
        if time_is_up() or (np.abs(centre - before.centre) <= _FAR * before.width).all():
            return burnt, target
        sampled = Sampled(scales, centre, np.maximum(before.width, eta.std(axis=0)))
        ell = scales.log_precisions(centre[None])
        here = posterior.with_prior(scales.given(posterior.prior, ell[0]))
        values = np.append(learned.path, np.exp(ell), axis=0)
        learned = as_learned(scales, here, values, learned.uninformed)
        initial = None
        if path is not None:
            path.found(float(centre[0]), float(sampled.width[0]))
            initial = path.initial(float(centre[0]))
        options = options._replace(last=burnt.last)
        found = PrecisionEstimate(sampled, learned, initial, path)
        engine, target = again(options, posterior=here, estimate=found)
        engine = replace(engine, passes=engine.passes + burnt.passes)
    return replace(engine, learned=learned), target


def _learn(
    options: Options,
    choice: Choice,
    begun: tuple[Engine, Target],
    posterior: Posterior,
    plan: Plan,
) -> tuple[Engine, Target]:
    """The engine under the prior precision that the chains of a begun engine learn.

    Without an anchor that takes one round. With an anchor, up to four rounds are run, until the
    anchor no longer moves.
    """
    engine, target = begun
    em, paths = options.precision, list[NDArray]()
    assert isinstance(em, VariationalEM)
    learned, passes, first = None, engine.passes, choice
    for done in range(_ROUNDS):
        if time_is_up():
            cut_short("rounds of learning the prior precision", done, _ROUNDS)
            break
        states = engine.states
        few = -(-_SELF_AVERAGING // (target.dim * len(states)))  # chains of each group
        if few < len(states[0].theta) and engine.anchor is not None:
            theta = target.coordinates.inverse_transform(
                np.concatenate([s.theta[:few] for s in states])
            )
            assert options.seed is not None
            states = start_chains(engine.sampler, target, theta, options.seed.spawn(1)[0])
        blocks, known = posterior.model.prior_blocks(em.per), _control_variate(posterior)
        following = StochasticEM(em, engine.sampler, blocks, engine.length, known)
        found = fit_prior(following, target, states, options.n_jobs)
        read = rows_touched(engine.sampler, found.states) - rows_touched(engine.sampler, states)
        passes += read / posterior.data.n_rows
        diverged = engine.anchor is not None and not np.max(found.stein) < _DIVERGED
        if diverged and choice is first and not choice.given:
            why = "control variates threw the chains while the prior was learned"
            choice = plan.fallback(posterior, why)
        else:
            if learned is not None:  # a precision may have grown until the data say nothing more
                found = replace(found, uninformed=learned.uninformed)
            learned, diverged = found, False
            paths.append(found.path)
            posterior = found.under(posterior)
            if engine.anchor is None:
                length = options.length(engine.sampler, found.states)
                engine = replace(engine, states=found.states, length=length)
                target = posterior
                break
        before = engine.anchor
        engine, target = begin(options, choice, posterior, plan, PrecisionEstimate())
        passes += engine.passes
        now = engine.anchor
        unmoved = before is None or now is None or distance(before, now) < _FAR_FROM_ANCHOR
        if not diverged and unmoved:
            break
    else:
        remedy = remedy_of(em.asked_for, em.hyperprior is not None)
        unsettled = f"the learned precision still moves the posterior mean after {_ROUNDS} rounds; "
        engine = replace(engine, warnings=(*engine.warnings, unsettled + remedy))
    if learned is not None:  # the engine has the states
        learned = replace(learned, path=np.concatenate(paths), states=[])
    return replace(engine, passes=passes, learned=learned), target


def _control_variate(posterior: Posterior) -> type[MatrixControlVariate] | partial:
    """The control variate of EM: a matrix where there is one mode and the matrix is affordable."""
    if posterior.model.fixed_inputs and has_matrix(posterior.dim):
        return MatrixControlVariate
    return partial(DiagonalControlVariate, null=posterior.model.null_directions())
