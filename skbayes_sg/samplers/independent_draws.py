"""Independent draws of a posterior that is known in closed form."""

from __future__ import annotations

import numpy as np

from skbayes_sg.data.minibatches import Minibatches, SamplingFrame
from skbayes_sg.samplers.base import Need, Report, RunLength, Sampler
from skbayes_sg.samplers.stationary import ClosedFormDistribution
from skbayes_sg.samplers.target import State, Target


class IndependentDraws(Sampler):
    """Every step is an independent draw of the posterior, whose distribution the target knows.

    There is no burn-in, and no step reads a row. The default of linear regression, whose posterior
    is conjugate (math/streams.md#independent-draws). It has no parameters, and no name for
    ``sampler=``: where it is possible it is the default.
    """

    remedy = "scale the columns of X, or divide y by its scale"
    remedy_of_default = remedy
    bias_remedy = 'scale the columns of X, use float64, or sampler="hmc"'
    shares_rows = True
    needs = Need.CLOSED_FORM
    follows_coordinates = True

    def validate(self, target: Target) -> None:
        if target.closed_form is None:
            raise ValueError(
                "IndependentDraws needs a posterior in closed form, as that of linear regression; "
                "use HMC"
            )

    # -- motion -------------------------------------------------------------------------------

    def minibatches(self, target: Target, rng: np.random.Generator, n_chains: int) -> Minibatches:
        """No step reads any; so there is no noise."""
        return Minibatches(SamplingFrame(target.n_rows), target.n_rows, False, rng, n_chains)

    def start(self, state: State, target: Target) -> None:
        assert target.closed_form is not None
        state.theta = target.closed_form.draw(state.normals, len(state.theta))

    change_prior = start

    def step(self, state: State, target: Target) -> None:
        assert target.closed_form is not None
        state.gradient = target.closed_form.gradient(state.theta)
        self.start(state, target)
        state.t += 1

    # -- distribution and report ------------------------------------------------------------------

    def run_length(self, state: State) -> RunLength:
        """No burn-in, and every step is a draw."""
        return RunLength(0, 1)

    def stationary_distribution(self, state: State, target: Target) -> ClosedFormDistribution:
        assert target.closed_form is not None
        return ClosedFormDistribution(target.closed_form)

    def report(self, state: State) -> Report:
        """No row is read after the distribution is known."""
        return Report(0.0, {}, [])
