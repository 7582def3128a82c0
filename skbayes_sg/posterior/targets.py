"""Which form of a posterior chains move on."""

from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.chain_target import ChainTarget
from skbayes_sg.posterior.conjugate import ClosedTarget
from skbayes_sg.posterior.control_variates.expansion import ExpandedTarget
from skbayes_sg.posterior.control_variates.full_data import FullDataTarget
from skbayes_sg.posterior.hierarchical import HierarchicalTarget
from skbayes_sg.posterior.mode import Mode
from skbayes_sg.posterior.non_centred import Sampled
from skbayes_sg.posterior.whitening import is_high_dimensional
from skbayes_sg.priors.scales import OnePrecision
from skbayes_sg.samplers import Sampler


def target_at(
    posterior: Posterior, anchor: Mode, sampler: Sampler, sampled: Sampled | None = None
) -> ChainTarget:
    """The posterior expanded around an anchor, or with all rows where it has many parameters.

    Its prior precision is sampled too where `sampled` says so.
    """
    if sampler.needs_closed_form:
        return ClosedTarget.at(posterior, anchor, _one(sampled))
    if is_high_dimensional(posterior):
        return FullDataTarget.at(posterior, anchor)
    if sampled is None:
        return ExpandedTarget.at(posterior, anchor, sampler.follows_coordinates)
    return HierarchicalTarget.at(posterior, anchor, sampled)


def _one(sampled: Sampled | None) -> OnePrecision | None:
    """The one precision whose joint distribution is known, if one is sampled."""
    if sampled is None:
        return None
    assert isinstance(sampled.scales, OnePrecision)
    return sampled.scales
