"""A second run, where the diagnostics say that the first one drew another distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skbayes_sg.chains.parallel import time_is_up
from skbayes_sg.inference.plan import Plan
from skbayes_sg.inference.prepare import prepare
from skbayes_sg.inference.request import Request
from skbayes_sg.inference.run import Run
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers.base import NoGainError
from skbayes_sg.samplers.target import Target


def second_run(
    first: Run,
    request: Request,
    posterior: Posterior,
    plan: Plan,
    warnings: Sequence[str],
) -> tuple[Run, Target] | None:
    """The plan's other sampler, and its target.

    Its chains start anew: points of the wrong distribution are no better than those around the mode
    and may be far worse.

    Parameters
    ----------
    first : Run
    request : Request
        That of the fit.
    posterior : Posterior
        Under the prior of the first run.
    plan : Plan
    warnings : sequence of str
        Why the draws of the first run are wrong.

    Returns
    -------
    tuple (Run, Target) or None
        None if sampler or lengths were asked for, if the other sampler is the one that ran, or if
        the time of the fit is up.
    """
    asked = request.asked is not None or (request.burn_in, request.thin) != ("auto", "auto")
    if asked or time_is_up():  # a few draws that are right are no better than many
        return None
    # HMC has no joint distribution to offer
    if first.sampler.needs_closed_form and first.sampled is not None:
        return None
    why = f"{type(first.sampler).__name__} ran first, and {warnings[0]}"
    choice = plan.fallback(posterior, NoGainError(why))
    if type(choice.sampler) is type(first.sampler):
        return None
    request = request._replace(em=None, last=None)
    run, target = prepare(request, choice, posterior, plan, first.sampled)
    return replace(run, learned=first.learned, signature=first.signature), target
