"""Which form of a posterior chains move on."""

from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.conjugate import ConjugatePosterior
from skbayes_sg.posterior.control_variates.expansion import AnchoredPosterior
from skbayes_sg.posterior.control_variates.full_data import LowRankPosterior
from skbayes_sg.posterior.control_variates.many_classes import WholePosterior
from skbayes_sg.posterior.mode import Mode
from skbayes_sg.posterior.whitening import many_outputs, very_wide
from skbayes_sg.samplers import Sampler


def anchored_at(posterior: Posterior, anchor: Mode, sampler: Sampler) -> Posterior:
    """The posterior expanded around an anchor, or with all rows where there are many outputs."""
    if sampler.needs_law:
        return ConjugatePosterior.at(posterior, anchor)
    if many_outputs(posterior):
        return WholePosterior.at(posterior, anchor)
    if very_wide(posterior):
        return LowRankPosterior.at(posterior, anchor)
    return AnchoredPosterior.at(posterior, anchor, sampler.follows_coordinates)
