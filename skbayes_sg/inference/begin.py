"""The start of the chains of a run: sampler, anchor, target, over-dispersed points, lengths."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skbayes_sg.chains.run import rows_touched, start_chains
from skbayes_sg.chains.tuning import refuse_unstable
from skbayes_sg.inference.plan import Plan, Start
from skbayes_sg.inference.request import Choice, Request
from skbayes_sg.inference.run import Run
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.full_data import FullDataTarget
from skbayes_sg.posterior.gaussian import InitialPoint, Mode, expanded_twice, posterior_mean
from skbayes_sg.posterior.hierarchical import HierarchicalTarget, IntegratedTarget
from skbayes_sg.posterior.non_centred import Sampled
from skbayes_sg.posterior.normal_path import NormalPath
from skbayes_sg.posterior.targets import moved_by, target_of
from skbayes_sg.samplers import Sampler
from skbayes_sg.samplers.base import WITHOUT_ANCHOR, NoGainError
from skbayes_sg.samplers.target import Target

_HALVINGS = 20  # of the distance of a starting point from the mode


class Known(NamedTuple):
    """What is known before the chains start."""

    initial: InitialPoint | None = None
    """Near the mode."""
    sampled: Sampled | None = None
    """The precisions of the prior, if chains sample them."""
    path: NormalPath | None = None
    """Normal distributions that say how the parameters depend on it."""


def begin(
    request: Request,
    choice: Choice,
    posterior: Posterior,
    plan: Plan,
    known: Known = Known(),  # noqa: B008
) -> tuple[Run, Target]:
    """Start chains under the present prior: choose the sampler, refuse steps unstable at a mode."""
    assert request.seed is not None
    if choice.sampler.needs_closed_form:
        return _closed_form(request, choice, posterior, known)
    start_seed, chain_seed = request.seed.spawn(2)
    rng = np.random.default_rng(start_seed)
    last = None if request.last is None else request.last[:, : posterior.dim]
    start = plan.start(posterior, rng, request.chains(), last, known.initial)
    sampler, choice, anchor, target = _resolve(choice, posterior, plan, start.mode, known.sampled)
    sampled = known.sampled
    if isinstance(target, HierarchicalTarget):
        target = target if known.path is None else target.curved(known.path)
        sampled = target.coordinates.sampled
    theta = _points(request, sampler, target, start, rng)
    sampler, states, remark, notes = choice.tune(sampler, target, theta, chain_seed, request.n_jobs)
    if start.mode is not None:  # elsewhere the linear part of a step says little of the step
        refuse_unstable(sampler, target, states[0])
    passes = rows_touched(sampler, states) / posterior.data.n_rows
    if anchor is not None:
        passes += anchor.passes + 1
    elif start.mode is not None:
        passes += start.mode.passes
    length, reason = request.length(sampler, states), choice.reason + remark
    run = Run(sampler, reason, states, length, passes, anchor, warnings=notes, sampled=sampled)
    return run, target


def _points(
    request: Request, sampler: Sampler, target: Target, start: Start, rng: np.random.Generator
) -> NDArray:
    """Where the chains start, in the coordinates of the model."""
    n_chains = request.chains(sampler, target.posterior.dim)
    theta, coordinates = start.theta[np.arange(n_chains) % len(start.theta)], target.coordinates
    if isinstance(target, HierarchicalTarget):
        theta = _with_precision(request, target, theta, rng)
    if request.last is not None or start.mode is None:
        return theta
    if isinstance(target, FullDataTarget):
        theta = coordinates.inverse_transform(rng.standard_normal(theta.shape))
    if sampler.starts_at_mode:
        return np.repeat(start.mode.theta, n_chains, axis=0)
    if not sampler.rejects:
        return theta
    centre = start.mode.theta
    if isinstance(target, HierarchicalTarget):
        centre = coordinates.inverse_transform(np.zeros((1, target.dim)))
    return _off_walls(target, theta, centre)


def _with_precision(
    request: Request, target: HierarchicalTarget, theta: NDArray, rng: np.random.Generator
) -> NDArray:
    """Over-dispersed starting points of parameters and hyperparameters, or the last ones."""
    if request.last is not None and request.last.shape[1] == target.dim:
        return request.last[np.arange(len(theta)) % len(request.last)]
    normals = rng.standard_normal((len(theta), target.dim))
    normals[:, -target.coordinates.n_hyper :] *= 2.0  # along which chains are slow
    return target.coordinates.inverse_transform(
        target.anchor.curvature.inverse().cholesky().matvec(normals)
    )


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


def _closed_form(
    request: Request, choice: Choice, posterior: Posterior, known: Known
) -> tuple[Run, Target]:
    """Chains that draw a conjugate posterior itself: they need no start."""
    assert request.seed is not None
    rows, sampler = posterior.data.sample, _copy_of(choice)
    guess = posterior.model.guess(rows.y, rows.weight)
    anchor = expanded_twice(posterior, guess)
    target = target_of(posterior, anchor, sampler, known.sampled)
    theta = np.repeat(anchor.theta, request.chains(sampler), axis=0)
    if target.dim > posterior.dim:
        theta = np.pad(theta, ((0, 0), (0, target.dim - posterior.dim)))
    states = start_chains(sampler, target, theta, request.seed.spawn(2)[1])
    length = request.length(sampler, states)
    run = Run(sampler, choice.reason, states, length, anchor.passes, anchor, sampled=known.sampled)
    return run, target


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
    try:
        target = target_of(posterior, anchor, sampler, sampled)
        figures = sampler.resolve_auto(target)
    except NoGainError as refused:
        if choice.given:
            raise type(refused)(f"{refused}; {WITHOUT_ANCHOR}") from None
        choice = plan.fallback(posterior, refused)
        sampler = _copy_of(choice)
        if sampler.variance_reduction is None:
            anchor, target = None, target_of(posterior, None, sampler, sampled)
        elif isinstance(target, IntegratedTarget):
            assert sampled is not None
            target = moved_by(sampler, target.given, sampled)
        figures = sampler.resolve_auto(target)
    return sampler, replace(choice, reason=choice.reason + figures), anchor, target
