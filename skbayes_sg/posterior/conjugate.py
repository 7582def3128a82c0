"""A posterior of the family of its prior: in closed form, or through its sufficient statistics.

Where one prior precision at most is sampled, it is known in closed form (`Closed`). Where
chains move several, `Quadratic` has it in units of the noise. With gamma the log noise
variance, and phi the coefficients over its root, counted from the prior's mean, the prior of phi
does not depend on gamma. With C, delta, a and b the precision, mean, shape and rate of the normal
inverse gamma distribution,

    log p(phi, gamma) = -a gamma - b e^-gamma - |phi - delta e^(-gamma / 2)|_C^2 / 2

A gradient costs a product with C, and no row is read. Where the noise is given, gamma is not there.
Source: math/priors.md#groups; the parametrisation is that of Olsen 1978.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data.minibatches import Rows
from skbayes_sg.linalg import Dense, Operator
from skbayes_sg.linalg.coordinates import Whitened
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.gaussian import Mode, known_at
from skbayes_sg.posterior.precision import JointDistribution
from skbayes_sg.posterior.target import Density
from skbayes_sg.priors.scales import Scales
from skbayes_sg.samplers.target import Anchor, ClosedForm

_ROUNDING = 1e-7  # of entries of a curvature, which moves log densities by less than .01


class Closed(Density):
    """A conjugate posterior in coordinates in which its distribution is standard.

    There the coefficients are independent N(0, 1), or N(0, s2) where the noise variance s2 is
    sampled. So a draw costs one product with a matrix, and none of the rows is read
    (math/streams.md#independent-draws). Where the prior precision is sampled they are independent
    given it, and its logarithm is the last coordinate.

    Parameters
    ----------
    posterior : Posterior
    mode : Mode
        A point near the mode.
    scales : Scales, optional
        One precision that is sampled.
    """

    closed_form: ClosedForm

    def __init__(self, posterior: Posterior, mode: Mode, scales: Scales | None = None) -> None:
        model, prior = posterior.predictor, posterior.normal_prior
        self.posterior, self._mode, self._scales = posterior, mode, scales
        distribution = known_at(posterior, mode)
        around_mean = model.columns(), distribution.mean[None], distribution.operator.dense()
        self.dim = posterior.dim
        if scales is None:
            self.coordinates, self.closed_form = Whitened.of(*around_mean), distribution.standard()
            return
        whitened = Whitened.along(*around_mean, *scales.members(prior))
        self.coordinates, self.dim = WithPrecision(whitened), posterior.dim + 1
        self.closed_form = JointDistribution.along(whitened.S, distribution, prior, scales)

    def under(self, posterior: Posterior) -> Closed:
        """Without a pass over the rows."""
        return Closed(
            posterior, self._mode.under(self.posterior.prior, posterior.prior), self._scales
        )

    def grad_estimate(self, u: NDArray, rows: Rows) -> NDArray:
        """That of the distribution, without noise."""
        return self.closed_form.gradient(u)

    def logdensity_and_grad(self, u: NDArray) -> tuple[NDArray, NDArray]:
        return self.closed_form.log_density(u), self.closed_form.gradient(u)


class WithPrecision:
    """Whitened coordinates, and log precision as it is."""

    def __init__(self, whitened: Whitened) -> None:
        self.whitened = whitened

    def inverse_transform(self, x: NDArray) -> NDArray:
        theta = self.whitened.inverse_transform(x[..., :-1])
        return np.concatenate([theta, x[..., -1:]], axis=-1)

    def transform(self, theta: NDArray) -> NDArray:
        return np.concatenate([self.whitened.transform(theta[..., :-1]), theta[..., -1:]], axis=-1)


# -- with precisions as coordinates, in units of the noise --------------------------------------


@dataclass(frozen=True, eq=False)
class InNoiseUnits(Whitened):
    """Whitened coordinates of (mean + phi, gamma - log_noise).

    Attributes
    ----------
    mean : array of shape (D,)
        Mean of the prior.
    log_noise : float
    """

    mean: NDArray
    log_noise: float

    def inverse_transform(self, u: NDArray) -> NDArray:
        scaled = super().inverse_transform(u)
        gamma = scaled[..., -1:] + self.log_noise
        coef = self.mean[:-1] + np.exp(0.5 * gamma) * (scaled[..., :-1] - self.mean[:-1])
        return np.concatenate([coef, gamma], axis=-1)

    def transform(self, theta: NDArray) -> NDArray:
        gamma = theta[..., -1:]
        phi = np.exp(-0.5 * gamma) * (theta[..., :-1] - self.mean[:-1])
        scaled = np.concatenate([self.mean[:-1] + phi, gamma - self.log_noise], axis=-1)
        return super().transform(scaled)


class Quadratic(Density):
    """The posterior of a linear regression under a normal prior, in units of the noise.

    Parameters
    ----------
    posterior : Posterior
    mode : Mode
        A point near its mode.
    scales : Scales
        Precisions whose groups the coordinates belong to.
    """

    anchor: Anchor
    coordinates: Whitened

    def __init__(self, posterior: Posterior, mode: Mode, scales: Scales) -> None:
        model, prior = posterior.predictor, posterior.prior
        distribution = known_at(posterior, mode)
        self._shape: float | None = None
        centre = distribution.mean[None]
        if distribution.noise is not None:
            self._shape, rate = distribution.noise
            gamma = float(np.log(rate / self._shape))  # so that the rate over it is the shape
            phi = np.exp(-0.5 * gamma) * (distribution.mean - prior.mean)
            centre = (prior.mean + phi)[None]
            centre[0, -1] = 0.0
        members, precision = scales.members(prior), distribution.operator.dense()
        whitened = Whitened.along(model.columns(), centre, precision, *members)
        n = distribution.operator.dim
        with_noise = np.pad(distribution.operator.dense(), (0, posterior.dim - n))
        self._curvature = whitened.pullback_matrix(with_noise)[:n, :n]
        self._product = product_with(self._curvature, members[1][model.columns()[0]][:n])
        self._mean = np.zeros(n)
        if self._shape is not None:
            self._mean = -whitened.transform(prior.mean[None])[0, :n]
            turned = whitened.centre, whitened.columns, whitened.rest, whitened.S, whitened.inverse
            whitened = InNoiseUnits(*turned, prior.mean, gamma)
        self.posterior, self.coordinates, self.dim = posterior, whitened, posterior.dim
        self.anchor = Anchor.of_all(mode.theta, self._at_centre(), 1, posterior.n_total)

    def _at_centre(self) -> Operator:
        """Curvature at the centre, (D, D)."""
        if self._shape is None:
            return Dense(self._curvature)
        C, d = self._curvature, 0.5 * self._mean
        corner = self._shape + d @ C @ d
        return Dense(np.block([[C, (C @ d)[:, None]], [C @ d, np.array([[corner]])]]))

    def grad_estimate(self, u: NDArray, rows: Rows) -> NDArray:
        """Gradient from all rows."""
        return self.logdensity_and_grad(u)[1]

    def logdensity_and_grad(self, u: NDArray) -> tuple[NDArray, NDArray]:
        if self._shape is None:
            bent = self._product(u)
            return -0.5 * (bent * u).sum(axis=1), -bent
        gamma = u[:, -1:]
        root = np.exp(-0.5 * gamma)
        rest = u[:, :-1] - (root - 1) * self._mean
        bent = self._product(rest)
        value = -self._shape * (gamma + root**2)[:, 0] - 0.5 * (bent * rest).sum(axis=1)
        of_noise = self._shape * (root**2 - 1) - 0.5 * root * (bent @ self._mean)[:, None]
        return value, np.append(-bent, of_noise, axis=1)


def product_with(curvature: NDArray, group: NDArray) -> Callable[[NDArray], NDArray]:
    """The product of points (n, D) with a curvature in coordinates of groups (`Whitened.along`).

    Within the largest group it is the identity, so that its rows of the others are all that is
    multiplied. Where columns are so collinear that rounding leaves more, the whole matrix is.
    """
    largest = group == np.bincount(group).argmax()
    (many,), (few,) = np.nonzero(largest), np.nonzero(~largest)
    block = curvature[np.ix_(many, many)]
    if len(few) > len(many) or np.abs(block - np.eye(len(many))).max() > _ROUNDING:
        return lambda v: v @ curvature
    across, own = curvature[np.ix_(few, many)], curvature[np.ix_(few, few)]

    def product(v: NDArray) -> NDArray:
        bent = np.empty_like(v)
        bent[:, many] = v[:, many] + v[:, few] @ across
        bent[:, few] = v[:, few] @ own + v[:, many] @ across.T
        return bent

    return product
