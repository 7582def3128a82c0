"""A fit as a value: its sampler and the reason for it, the start of its chains, its prior.

`prepare` makes a `Run` from a posterior, a `Request` (options of the estimator) and a `Plan`
(defaults of a family of estimators). A run is frozen and holds no data. `Run.target` makes the
target of the chains from the run and a posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skbayes_sg.chains.deadline import cut_short, time_is_up
from skbayes_sg.chains.parallel import cores, in_parallel
from skbayes_sg.chains.run import Chain, burn_chain, rows_touched, start_chains
from skbayes_sg.chains.threads import one_thread
from skbayes_sg.chains.tuning import choose_alpha
from skbayes_sg.data import in_threads
from skbayes_sg.inference.begin import Known, begin
from skbayes_sg.inference.em_control_variate import (
    ControlVariate,
    DiagonalControlVariate,
    MatrixControlVariate,
)
from skbayes_sg.inference.evidence import Hyperprior, as_learned, in_chains, locate
from skbayes_sg.inference.learned_prior import Learned, remedy_of
from skbayes_sg.inference.plan import Plan
from skbayes_sg.inference.request import Choice, Request
from skbayes_sg.inference.run import Run
from skbayes_sg.inference.variational_em import StochasticEM, VariationalEM, fit_prior
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.posterior import Posterior, affordable
from skbayes_sg.posterior.gaussian import Mode, distance
from skbayes_sg.posterior.non_centred import Sampled
from skbayes_sg.posterior.normal_path import NormalPath
from skbayes_sg.samplers.base import WITHOUT_ANCHOR, NoGainError
from skbayes_sg.samplers.target import ModelPosterior, Target

_ROUNDS = 4  # of learning the prior, each from an anchor of its own
_DIVERGED = 2.0  # Stein ratio of chains that left the region in which the anchor serves
_FAR = 1.5  # standard deviations of a hyperparameter, as far as its curves reach
_SELF_AVERAGING = 10_000  # parameters of which one point has about the mean square of many
_FAR_FROM_ANCHOR = 0.1  # in squared posterior standard deviations per parameter
_UNSETTLED = f"the learned precision still moves the posterior mean after {_ROUNDS} rounds; "
_MANY_PRECISIONS = (
    "several prior precisions, whose joint distribution is not known in closed form, are sampled"
)
_TOO_MANY = (
    "prior_groups, and a prior of many scales, need a matrix of all parameters, and {} are too "
    "many for one; set prior_groups=None and prior=None, or leave out columns"
)


def first_choice(request: Request, posterior: Posterior, plan: Plan) -> Choice:
    """The sampler that the user gave, or the plan's."""
    if request.asked is None:
        choice = plan.first(posterior)
        several = isinstance(request.em, Hyperprior) and not request.em.is_one
        if choice.sampler.needs_closed_form and several:
            return plan.fallback(posterior, NoGainError(_MANY_PRECISIONS))
        return choice
    sampler = clone(request.asked.sampler)
    sampler.validate(posterior)
    if sampler.variance_reduction is not None and not posterior.model.fixed_inputs:
        raise ValueError(
            f"sampler: control variates of {type(sampler).__name__} need one mode to anchor at, "
            f"which the posterior of {type(posterior.model).__name__} does not have; "
            f"{WITHOUT_ANCHOR}"
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
        em, known, located = request.em, Known(None, sampled), None
        several = isinstance(em, Hyperprior) and not em.is_one
        if isinstance(em, Hyperprior):
            scales, em = em.of(posterior), None
            if choice.sampler.needs_closed_form:
                known = Known(None, Sampled(scales, np.zeros(scales.dim), np.ones(scales.dim)))
            elif several and not has_matrix(posterior.dim):
                raise ValueError(_TOO_MANY.format(posterior.dim))
            elif affordable(posterior):
                located = locate(scales, posterior)
                posterior = located.learned.under(posterior)
                known = Known(located.initial, located.sampled, located.path)
            else:
                em = in_chains(scales)
        run, target = begin(request, choice, posterior, plan, known)
        if located is not None:
            run = replace(run, learned=located.learned)
            again = partial(begin, choice=choice, plan=plan)
            run, target = _recentred(request, (run, target), posterior, known.path, again)
        if em is not None:
            learning = request._replace(em=em)
            run, target = _learn(learning, choice, (run, target), posterior, plan)
        for state in run.states:
            if run.length.burn_in == 0 and state.t > 0:  # after pilots, or after learning the prior
                run.sampler.freeze(state, target)
    return run, target


def _recentred(
    request: Request,
    begun: tuple[Run, Target],
    posterior: Posterior,
    path: NormalPath | None,
    again: Callable[..., tuple[Run, Target]],
) -> tuple[Run, Target]:
    """A run that samples the precision, anchored where its burn-in finds it.

    On a posterior far from normal no normal distribution tells where that is. So the chains burn
    in, and begin `again` where that is elsewhere.
    """
    run, target = begun
    for _ in range(_ROUNDS):
        if not target.has_scale or run.length.burn_in < 2 or time_is_up():
            break
        assert run.learned is not None
        assert run.sampled is not None
        before, so_far = run.sampled, run.learned
        burnt, points = _burnt_in(request, run, target, posterior.data.n_rows)
        scales = before.scales
        eta = points[:, -scales.dim :]
        centre = eta.mean(axis=0)
        if time_is_up() or (np.abs(centre - before.centre) <= _FAR * before.width).all():
            return burnt, target
        sampled = Sampled(scales, centre, np.maximum(before.width, eta.std(axis=0)))
        ell = scales.log_precisions(centre[None])
        here = posterior.with_prior(scales.given(posterior.prior, ell[0]))
        values = np.append(so_far.path, np.exp(ell), axis=0)
        learned = as_learned(scales, here, values, so_far.uninformed)
        known = Known(None, sampled)
        if path is not None:
            path.found(float(centre[0]), float(sampled.width[0]))
            known = Known(path.initial(float(centre[0])), sampled, path)
        run, target = again(request._replace(last=burnt.last), posterior=here, known=known)
        run = replace(run, learned=learned, passes=run.passes + burnt.passes)
    return run, target


def _burnt_in(request: Request, run: Run, target: Target, n_rows: int) -> tuple[Run, NDArray]:
    """The run after the burn-in that its sampler asks for, and points (n, D + K) of its end."""
    n_steps = min(run.length.burn_in, run.sampler.run_length(run.states[0]).burn_in)
    burn = partial(burn_chain, run.sampler, target, n_steps, keep=True)
    chains: list[Chain] = in_parallel(burn, run.states, request.n_jobs)
    points = np.concatenate([chain.draws.reshape(-1, target.dim) for chain in chains])
    after = run.at(chains)
    cut_short("steps of burn-in", after.states[0].t - run.states[0].t, n_steps)
    read = rows_touched(run.sampler, after.states) - rows_touched(run.sampler, run.states)
    passes = run.passes + read / n_rows
    return replace(after, burnt=n_steps, passes=passes), points


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
    assert isinstance(request.em, VariationalEM)
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
                found = replace(found, uninformed=learned.uninformed)
            learned, diverged = found, False
            paths.append(found.path)
            posterior = found.under(posterior)
            if run.anchor is None:
                length = request.length(run.sampler, found.states)
                run, target = replace(run, states=found.states, length=length), posterior
                break
        before = run.anchor
        run, target = begin(request, choice, posterior, plan)
        passes += run.passes
        if not diverged and _near(before, run.anchor):
            break
    else:
        remedy = remedy_of(request.em.asked_for, request.em.hyperprior is not None)
        run = replace(run, warnings=(*run.warnings, _UNSETTLED + remedy))
    if learned is not None:  # the run has the states
        learned = replace(learned, path=np.concatenate(paths), states=[])
    return replace(run, passes=passes, learned=learned), target


def _near(before: Mode | None, now: Mode | None) -> bool:
    """Whether the anchor hardly moved, or there is none."""
    return before is None or now is None or distance(before, now) < _FAR_FROM_ANCHOR


def _known(posterior: Posterior) -> Callable[[ModelPosterior, NDArray], ControlVariate]:
    """The control variate of EM: a matrix where there is one mode and the matrix is affordable."""
    if posterior.model.fixed_inputs and has_matrix(posterior.dim):
        return MatrixControlVariate
    return partial(DiagonalControlVariate, null=posterior.model.null_directions())


def _learn_once(
    request: Request, run: Run, target: Target, posterior: Posterior
) -> tuple[Learned, float]:
    """The prior that the chains of a run learn, and rows read over rows."""
    assert request.seed is not None
    assert isinstance(request.em, VariationalEM)
    em, states = request.em, run.states
    few = -(-_SELF_AVERAGING // (target.dim * len(states)))  # chains of each group
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
