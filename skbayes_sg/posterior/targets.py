"""Which form of a posterior chains move on."""

from skbayes_sg.posterior import Posterior, is_high_dimensional
from skbayes_sg.posterior.conjugate import ClosedTarget, QuadraticTarget
from skbayes_sg.posterior.control_variates import ExpandedTarget
from skbayes_sg.posterior.full_data import FullDataTarget, WhitenedTarget
from skbayes_sg.posterior.gaussian import Mode, NormalPath
from skbayes_sg.posterior.hierarchical import HierarchicalTarget, IntegratedTarget
from skbayes_sg.posterior.non_centred import Sampled
from skbayes_sg.priors.scales import IntegratedPrior
from skbayes_sg.samplers import Sampler
from skbayes_sg.samplers.target import Target

NOT_SAMPLED = (
    "prior_groups, and a prior of many scales, are sampled with the coefficients, which "
    'sampler=None and "hmc" can do where the posterior has a mode; set sampler=None, or '
    "prior_groups=None and prior=None"
)


def target_of(
    posterior: Posterior,
    anchor: Mode | None,
    sampler: Sampler,
    sampled: Sampled | None = None,
    path: NormalPath | None = None,
) -> Target:
    """What the chains of a sampler move on.

    `anchor` is that of its control variates. Where `sampled` says so the prior precision is sampled
    too: it is a coordinate of samplers that follow coordinates, and integrated out for others. With
    precisions and a Metropolis test `anchor` is the mode, also without control variates. One
    precision that is a coordinate bends the others as the distributions of `path` do.

    Raises
    ------
    ValueError
        If the sampler cannot sample such precisions.
    """
    if sampled is not None and not (anchor is not None and sampler.follows_coordinates):
        integrated = sampled.scales.integrated
        if integrated is None:
            raise ValueError(NOT_SAMPLED)
        posterior = posterior.with_prior(IntegratedPrior(posterior.prior, integrated))
        sampled = None
    if anchor is None:
        return posterior
    if sampler.needs_closed_form:
        return ClosedTarget(posterior, anchor, None if sampled is None else sampled.scales)
    if is_high_dimensional(posterior):
        return FullDataTarget.at(posterior, anchor)
    if sampled is None:
        return ExpandedTarget.at(posterior, anchor, sampler.follows_coordinates)
    model, scales = posterior.model, sampled.scales
    given: ExpandedTarget | QuadraticTarget | WhitenedTarget
    if model.conjugate:
        given = QuadraticTarget(posterior, anchor, scales)
    elif sampler.variance_reduction is None:
        given = WhitenedTarget(posterior, anchor, scales)
    else:
        given = ExpandedTarget.at(posterior, anchor, along=scales)
        # Precisions are coordinates of the chains where Metropolis steps go through a funnel, and
        # where rows say little of most coefficients: the sum of squares that tells a precision is
        # then slow. Else one precision is integrated out.
        integrated = scales.integrated
        if not sampler.rejects and integrated is not None:
            # the sum takes at most 4 times as long to forget itself as a coefficient
            given_coefficients = 2 / scales.sizes[0]  # variance of a log precision, beside all
            if sampled.width[0] ** 2 <= 4 * given_coefficients:
                return IntegratedTarget(given, integrated)
    return with_coordinates(given, sampled, path)


def with_coordinates(
    given: ExpandedTarget | QuadraticTarget | WhitenedTarget,
    sampled: Sampled,
    path: NormalPath | None,
) -> HierarchicalTarget:
    """An expanded posterior with precisions as coordinates, which `path` bends."""
    target = HierarchicalTarget(given, sampled)
    return target if path is None else target.curved(path)
