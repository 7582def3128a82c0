"""A posterior in whitened coordinates whose gradient is that of all rows."""

from __future__ import annotations

import copy
from functools import cached_property

from numpy.typing import NDArray

from skbayes_sg.data.minibatches import Rows
from skbayes_sg.linalg import Dense
from skbayes_sg.linalg.coordinates import Whitened
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.chain_target import Anchor, ChainTarget
from skbayes_sg.posterior.gaussian import Mode
from skbayes_sg.priors.scales import Scales


class WhitenedTarget(ChainTarget):
    """A posterior around its mode; every step takes all rows, and nothing is approximated.

    Parameters
    ----------
    posterior : Posterior
        Of a `Predictor`.
    mode : Mode
    along : Scales
        Groups whose sums of squares are such sums in these coordinates too.
    """

    anchor: Anchor
    coordinates: Whitened

    def __init__(self, posterior: Posterior, mode: Mode, along: Scales) -> None:
        assert isinstance(posterior.model, Predictor)
        curvature = mode.curvature.dense()
        coordinates = Whitened.of(posterior.model.columns(), mode.theta, curvature)
        coordinates = coordinates.along(*along.members(posterior.prior))
        super().__init__(posterior, coordinates)
        whitened = Dense(coordinates.pullback_matrix(curvature))
        self.anchor = Anchor.of_all(mode.theta, whitened, self.n_rows, self.n_total)

    @cached_property
    def single(self) -> WhitenedTarget:
        twin = copy.copy(self)
        twin.posterior = self.posterior.single
        return twin

    def noisy_gradient(self, theta: NDArray, rows: Rows) -> NDArray:
        gradient = self.posterior.full_gradient(self.coordinates.inverse_transform(theta))
        return self.coordinates.pullback(gradient)

    def slope(self, theta: NDArray) -> tuple[NDArray, NDArray]:
        value, gradient = self.posterior.slope(self.coordinates.inverse_transform(theta))
        return value, self.coordinates.pullback(gradient)
