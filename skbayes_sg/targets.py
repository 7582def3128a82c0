"""Which form of a posterior chains move on."""

from skbayes_sg.anchor import Mode
from skbayes_sg.conjugate import ConjugatePosterior
from skbayes_sg.control_variates import AnchoredPosterior
from skbayes_sg.every_row import LowRankPosterior
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import Sampler
from skbayes_sg.whitening import many_outputs, very_wide
from skbayes_sg.wide import WholePosterior


def anchored_at(posterior: Posterior, anchor: Mode, sampler: Sampler) -> Posterior:
    """The posterior expanded around an anchor, or with all rows where there are many outputs."""
    if sampler.needs_law:
        return ConjugatePosterior.at(posterior, anchor)
    if many_outputs(posterior):
        return WholePosterior.at(posterior, anchor)
    if very_wide(posterior):
        return LowRankPosterior.at(posterior, anchor)
    return AnchoredPosterior.at(posterior, anchor, sampler.follows_coordinates)
