"""A posterior of the family of its prior, known in closed form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data.minibatches import Rows
from skbayes_sg.linalg.coordinates import Whitened
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.chain_target import ChainTarget
from skbayes_sg.posterior.gaussian import Mode, known_at
from skbayes_sg.posterior.precision import JointDistribution
from skbayes_sg.priors import Prior
from skbayes_sg.priors.scales import Scales
from skbayes_sg.samplers.target import ClosedForm


class ClosedTarget(ChainTarget):
    """A conjugate posterior in coordinates in which its distribution is standard.

    There the coefficients are independent N(0, 1), or N(0, s2) where the noise variance s2 is
    sampled. So a draw costs one product with a matrix, and none of the rows is read
    (math/streams.md#independent-draws). Where the prior precision is sampled they are independent
    given it.

    Parameters
    ----------
    posterior : Posterior
    mode : Mode
        A point near the mode.
    scales : Scales, optional
        One precision that is sampled.
    """

    def __init__(self, posterior: Posterior, mode: Mode, scales: Scales | None = None) -> None:
        model, prior = posterior.predictor, posterior.normal_prior
        self._mode, known = mode, known_at(posterior, mode)
        whitened = Whitened.of(model.columns(), known.mean[None], known.operator.dense())
        if scales is None:
            super().__init__(posterior, whitened)
            self.closed_form: ClosedForm = known.standard()
            return
        whitened = whitened.along(*scales.members(prior))
        super().__init__(posterior, _WithPrecision(whitened))  # type: ignore[arg-type]
        self.dim += 1
        self.closed_form = JointDistribution.along(whitened.S, known, prior, scales)

    def with_prior(self, prior: Prior) -> ClosedTarget:
        """The same rows under another prior, without a pass over them."""
        return ClosedTarget(self.posterior.with_prior(prior), self._mode.under(self.prior, prior))

    def noisy_gradient(self, theta: NDArray, rows: Rows) -> NDArray:
        """That of the distribution, without noise."""
        return self.closed_form.gradient(theta)

    def slope(self, theta: NDArray) -> tuple[NDArray, NDArray]:
        return self.closed_form.log_density(theta), self.closed_form.gradient(theta)


class _WithPrecision:
    """Whitened coordinates, and log precision as it is."""

    def __init__(self, whitened: Whitened) -> None:
        self.whitened = whitened

    def inverse_transform(self, x: NDArray) -> NDArray:
        theta = self.whitened.inverse_transform(x[..., :-1])
        return np.concatenate([theta, x[..., -1:]], axis=-1)

    def transform(self, theta: NDArray) -> NDArray:
        return np.concatenate([self.whitened.transform(theta[..., :-1]), theta[..., -1:]], axis=-1)
