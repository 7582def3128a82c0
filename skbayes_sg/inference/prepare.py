"""A fit as a value: its sampler and the reason for it, the start of its chains, its prior.

`prepare` makes a `Run` from a posterior, a `Request` (options of the estimator) and a `Plan`
(defaults of a family of estimators). A run is frozen and holds no data. `Run.target` makes the
target of the chains from the run and a posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skbayes_sg.chains.deadline import cut_short, time_is_up
from skbayes_sg.chains.parallel import cores, in_parallel
from skbayes_sg.chains.run import Chain, Length, rows_touched, run_chain, start_chains
from skbayes_sg.chains.threads import one_thread
from skbayes_sg.chains.tuning import choose_alpha, refuse_unstable
from skbayes_sg.data import in_threads
from skbayes_sg.inference.em_control_variate import DiagonalShare, MatrixShare, PriorShare
from skbayes_sg.inference.evidence import Hyperprior, as_learned, in_chains, locate
from skbayes_sg.inference.learned_prior import Learned
from skbayes_sg.inference.plan import Plan
from skbayes_sg.inference.request import SELF_AVERAGING, Choice, Request
from skbayes_sg.inference.run import Run
from skbayes_sg.inference.variational_em import StochasticEM, VariationalEM, fit_prior
from skbayes_sg.linalg import Diag
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.gaussian import expanded_twice
from skbayes_sg.posterior.hierarchical import HierarchicalTarget
from skbayes_sg.posterior.laplace import distance, posterior_mean
from skbayes_sg.posterior.mode import InitialPoint, Mode
from skbayes_sg.posterior.precision import Sampled
from skbayes_sg.posterior.targets import target_at
from skbayes_sg.posterior.whitening import affordable
from skbayes_sg.samplers import Sampler
from skbayes_sg.samplers.base import NoGainError
from skbayes_sg.samplers.target import ModelPosterior, Target

_ROUNDS = 4  # of learning the prior, each from an anchor of its own
_NEARLY_NORMAL = 2.0  # steepness up to which normal laws tell where the precision is
_LINEAR = 0.3  # share of the precision's variance that lines explain, where coordinates are refined
_DIVERGED = 2.0  # Stein ratio of chains that left the region in which the anchor serves
_FAR_FROM_ANCHOR = 0.1  # in squared posterior standard deviations per parameter
_UNSETTLED = (
    f"the learned precision still moves the posterior mean after {_ROUNDS} rounds; give "
    "VariationalEM a hyperprior, or prior_precision a number"
)


def first_choice(request: Request, posterior: Posterior, plan: Plan) -> Choice:
    """The sampler that the user gave, or the plan's."""
    if request.asked is None:
        return plan.first(posterior)
    sampler = clone(request.asked.sampler)
    sampler.validate(posterior)
    if sampler.variance_reduction is not None and not posterior.model.fixed_inputs:
        raise ValueError(
            f'sampler: variance_reduction="{sampler.variance_reduction}" needs one mode to anchor '
            f"at, which the posterior of {type(posterior.model).__name__} does not have; set it to "
            "None"
        )
    sampler = sampler.resolved()
    tune = choose_alpha if sampler.needs_pilots else request.asked.tune
    return replace(request.asked, sampler=sampler, tune=tune)


def prepare(
    request: Request,
    choice: Choice,
    posterior: Posterior,
    plan: Plan,
    sampled: Sampled | None = None,
) -> tuple[Run, Target]:
    """A run under the given prior, or under a prior learned or sampled here, and its target.

    `sampled` is the prior precision of an earlier run, if the chains are to sample it.
    """
    with one_thread(), in_threads(cores(request.n_jobs)):
        em, near, located = request.em, None, None
        if isinstance(em, Hyperprior):
            precision, em = em.of(posterior), None
            if choice.sampler.needs_law:
                sampled = Sampled(precision, 0.0, 1.0)
            elif affordable(posterior):
                located = locate(precision, posterior)
                posterior, near = located.learned.under(posterior), located.near
                sampled = located.sampled if _moves_precision(choice, posterior) else None
            else:
                em = in_chains(precision)
        run, target = _begin(request, choice, posterior, plan, Known(near, sampled))
        if located is not None:
            if run.sampled is None:
                run = replace(run, carry=located.carry)
            run = replace(run, learned=located.learned)
            run, target = _recentred(request, choice, (run, target), posterior, plan)
        if em is not None:
            learning = request._replace(em=em)
            run, target = _learn(learning, choice, (run, target), posterior, plan)
        for state in run.states:
            if run.length.burn_in == 0 and state.t > 0:  # after pilots, or after learning the prior
                run.sampler.freeze(state, target)
    return run, target


def _recentred(
    request: Request,
    choice: Choice,
    begun: tuple[Run, Target],
    posterior: Posterior,
    plan: Plan,
) -> tuple[Run, Target]:
    """A run that samples the precision, anchored where short runs find the precision.

    On a posterior far from normal no normal law tells where that is.
    """
    run, target = begun
    for _ in range(_ROUNDS):
        gentle = target.anchor is None or target.anchor.steepness <= _NEARLY_NORMAL
        if run.sampled is None or gentle or run.length.burn_in < 2 or time_is_up():
            break
        assert isinstance(target, HierarchicalTarget)
        assert run.learned is not None
        points, last, read = _short_run(request, run, target)
        run = replace(run, passes=run.passes + read / posterior.data.n_rows)
        rho, before = points[:, -1], run.sampled
        moved = abs(rho.mean() - before.centre) > before.width
        if not moved and target.coordinates.explained(points) < _LINEAR:
            break
        width = max(before.width, float(rho.std()))
        sampled = Sampled(before.precision, float(rho.mean()), width)
        here = posterior.with_prior(sampled.precision.given(posterior.prior, np.exp(rho.mean())))
        path = np.append(run.learned.path, np.exp(rho.mean()))
        learned = as_learned(sampled.precision, here, path, bool(run.learned.silent[0]))
        passes, known = run.passes, Known(None, sampled, points)
        run, target = _begin(request._replace(last=last), choice, here, plan, known)
        run = replace(run, learned=learned, passes=run.passes + passes)
        if not moved:
            break
    return run, target


def _short_run(request: Request, run: Run, target: Target) -> tuple[NDArray, NDArray, float]:
    """Points (n, D + 1) of chains after half a burn-in, the last of each, and rows read."""
    auto = run.sampler.run_length(run.states[0]).burn_in
    n_steps = min(auto, run.length.burn_in) // 2
    pilot = partial(run_chain, run.sampler, target, length=Length(n_steps, n_steps))
    chains: list[Chain] = in_parallel(pilot, run.states, request.n_jobs)
    points = np.concatenate([chain.draws.reshape(-1, target.dim) for chain in chains])
    last = np.concatenate([chain.last for chain in chains])
    read = rows_touched(run.sampler, [chain.state for chain in chains])
    return points, last, read - rows_touched(run.sampler, run.states)


class Known(NamedTuple):
    """What is known before the chains start."""

    near: InitialPoint | None = None
    """Near the mode."""
    sampled: Sampled | None = None
    """The prior precision, if chains sample it."""
    points: NDArray | None = None
    """Points of short runs, (n, D + 1), that say how the parameters depend on it."""


def _moves_precision(choice: Choice, posterior: Posterior) -> bool:
    """Whether the chains have the prior precision as a coordinate: the default's, and HMC's."""
    sampler = choice.sampler
    anchored = sampler.variance_reduction is not None and sampler.follows_coordinates
    safe = sampler.rejects or not choice.given  # in a funnel, where HMC is the default's fallback
    return anchored and safe and posterior.prior.quadratic


def _begin(
    request: Request,
    choice: Choice,
    posterior: Posterior,
    plan: Plan,
    known: Known = Known(),  # noqa: B008
) -> tuple[Run, Target]:
    """Start chains under the present prior: choose the sampler, refuse steps unstable at a mode."""
    assert request.seed is not None
    if choice.sampler.needs_law:
        return _known_law(request, choice, posterior, known)
    start_seed, chain_seed = request.seed.spawn(2)
    rng = np.random.default_rng(start_seed)
    last = None if request.last is None else request.last[:, : posterior.dim]
    start = plan.start(posterior, rng, request.chains(), last, known.near)
    sampler, choice, anchor, target = _settle(choice, posterior, plan, start.mode, known.sampled)
    n_chains = request.chains(sampler, posterior.dim)
    theta = start.theta[np.arange(n_chains) % len(start.theta)]
    sampled = known.sampled
    if isinstance(target, HierarchicalTarget):
        target = target if known.points is None else target.fitted(known.points)
        sampled, theta = target.coordinates.sampled, _with_precision(request, target, theta, rng)
    elif anchor is not None and isinstance(anchor.curvature, Diag) and request.last is None:
        theta = target.coordinates.inverse_transform(rng.standard_normal(theta.shape))
    if sampler.starts_at_mode and start.mode is not None and request.last is None:
        theta = np.repeat(start.mode.theta, n_chains, axis=0)
    sampler, states, remark, notes = choice.tune(sampler, target, theta, chain_seed, request.n_jobs)
    if start.mode is not None:  # elsewhere the linear part of a step says little of the step
        refuse_unstable(sampler, target, states[0])
    passes = rows_touched(sampler, states) / posterior.data.n_rows
    if anchor is not None:
        passes += anchor.passes + 1
    elif start.mode is not None:
        passes += start.mode.passes
    length, reason = request.length(sampler, states), choice.reason + remark
    sampled = sampled if target.dim > posterior.dim else None
    run = Run(sampler, reason, states, length, passes, anchor, complaints=notes, sampled=sampled)
    return run, target


def _with_precision(
    request: Request, target: Target, theta: NDArray, rng: np.random.Generator
) -> NDArray:
    """Over-dispersed starting points of parameters and log precision, or the last ones."""
    assert target.anchor is not None
    if request.last is not None and request.last.shape[1] == target.dim:
        return request.last[np.arange(len(theta)) % len(request.last)]
    normals = rng.standard_normal((len(theta), target.dim))
    normals[:, :-1] *= 2.0
    return target.coordinates.inverse_transform(
        target.anchor.curvature.inverse().cholesky().matvec(normals)
    )


def _known_law(
    request: Request, choice: Choice, posterior: Posterior, known: Known
) -> tuple[Run, Target]:
    """Chains that draw a conjugate posterior itself: they need no start."""
    assert request.seed is not None
    rows, sampler = posterior.data.sample, clone(choice.sampler)
    guess = posterior.model.guess(rows.y, rows.weight)
    anchor = expanded_twice(posterior, guess)
    target = target_at(posterior, anchor, sampler, known.sampled)
    theta = np.repeat(anchor.theta, request.chains(sampler), axis=0)
    if target.dim > posterior.dim:
        theta = np.column_stack([theta, np.zeros(len(theta))])
    states = start_chains(sampler, target, theta, request.seed.spawn(2)[1])
    length = request.length(sampler, states)
    run = Run(sampler, choice.reason, states, length, anchor.passes, anchor, sampled=known.sampled)
    return run, target


def _settle(
    choice: Choice,
    posterior: Posterior,
    plan: Plan,
    mode: Mode | None,
    sampled: Sampled | None,
) -> tuple[Sampler, Choice, Mode | None, Target]:
    """The sampler with numbers for all parameters, its choice, its anchor and its target.

    The plan's other sampler takes the anchor of the first, which refused the posterior there.
    """
    sampler, anchor = clone(choice.sampler), None
    target: Target = posterior
    try:
        if sampler.variance_reduction is not None:
            assert mode is not None
            anchor = posterior_mean(posterior, mode)
            target = target_at(posterior, anchor, sampler, sampled)
        figures = sampler.resolve_auto(target)
    except NoGainError as refused:
        if choice.given:
            raise type(refused)(f"{refused}; set variance_reduction=None") from None
        choice = plan.fallback(posterior, refused)
        sampler = clone(choice.sampler)
        if sampler.variance_reduction is None:
            anchor, target = None, posterior
        figures = sampler.resolve_auto(target)
    return sampler, replace(choice, reason=choice.reason + figures), anchor, target


def _learn(
    request: Request,
    choice: Choice,
    begun: tuple[Run, Target],
    posterior: Posterior,
    plan: Plan,
) -> tuple[Run, Target]:
    """The run under the prior precision that the chains of a begun run learn.

    A run without an anchor takes one round. With an anchor, up to four rounds are run, until the
    anchor no longer moves.
    """
    run, target = begun
    paths: list[NDArray] = [] if run.learned is None else [run.learned.path]
    learned, passes, first = run.learned, run.passes, choice
    for done in range(_ROUNDS):
        if time_is_up():
            cut_short("rounds of learning the prior precision", done, _ROUNDS)
            break
        found, read = _learn_once(request, run, target, posterior)
        passes += read
        diverged = run.anchor is not None and not found.stein.max() < _DIVERGED
        if diverged and choice is first and not choice.given:
            why = "control variates threw the chains while the prior was learned"
            choice = plan.fallback(posterior, NoGainError(why))
        else:
            if learned is not None:  # a precision may have grown until the data say nothing more
                found = replace(found, silent=learned.silent)
            learned, diverged = found, False
            paths.append(found.path)
            posterior = found.under(posterior)
            if run.anchor is None:
                length = request.length(run.sampler, found.states)
                run, target = replace(run, states=found.states, length=length), posterior
                break
        before = run.anchor
        run, target = _begin(request, choice, posterior, plan)
        passes += run.passes
        if not diverged and _near(before, run.anchor):
            break
    else:
        run = replace(run, complaints=(*run.complaints, _UNSETTLED))
    if learned is not None:  # the run has the states
        learned = replace(learned, path=np.concatenate(paths), states=[])
    return replace(run, passes=passes, learned=learned), target


def _near(before: Mode | None, now: Mode | None) -> bool:
    """Whether the anchor hardly moved, or there is none."""
    return before is None or now is None or distance(before, now) < _FAR_FROM_ANCHOR


def _known(posterior: Posterior) -> Callable[[ModelPosterior, NDArray], PriorShare]:
    """The control variate of EM: a matrix where there is one mode and the matrix is affordable."""
    if posterior.model.fixed_inputs and has_matrix(posterior.dim):
        return MatrixShare
    return partial(DiagonalShare, null=posterior.model.null_directions())


def _learn_once(
    request: Request, run: Run, target: Target, posterior: Posterior
) -> tuple[Learned, float]:
    """The prior that the chains of a run learn, and rows read over rows."""
    assert request.seed is not None
    assert isinstance(request.em, VariationalEM)
    em, states = request.em, run.states
    few = -(-SELF_AVERAGING // (target.dim * len(states)))  # chains of each group
    if few < len(states[0].theta) and run.anchor is not None:
        theta = target.coordinates.inverse_transform(
            np.concatenate([s.theta[:few] for s in states])
        )
        states = start_chains(run.sampler, target, theta, request.seed.spawn(1)[0])
    blocks, known = posterior.model.prior_blocks(em.per), _known(posterior)
    following = StochasticEM(em, run.sampler, blocks, run.length, known)
    found = fit_prior(following, target, states, request.n_jobs)
    read = rows_touched(run.sampler, found.states) - rows_touched(run.sampler, states)
    return found, read / posterior.data.n_rows
