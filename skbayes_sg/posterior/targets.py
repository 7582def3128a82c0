"""Which form of a posterior chains move on."""

from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.chain_target import ChainTarget
from skbayes_sg.posterior.conjugate import ClosedTarget
from skbayes_sg.posterior.control_variates.expansion import ExpandedTarget
from skbayes_sg.posterior.control_variates.full_data import FullDataTarget
from skbayes_sg.posterior.mode import Mode
from skbayes_sg.posterior.whitening import very_wide
from skbayes_sg.samplers import Sampler


def target_at(posterior: Posterior, anchor: Mode, sampler: Sampler) -> ChainTarget:
    """The posterior expanded around an anchor, or with all rows where it has many parameters."""
    if sampler.needs_law:
        return ClosedTarget.at(posterior, anchor)
    if very_wide(posterior):
        return FullDataTarget.at(posterior, anchor)
    return ExpandedTarget.at(posterior, anchor, sampler.follows_coordinates)
