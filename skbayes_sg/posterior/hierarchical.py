"""Targets of chains that sample precisions of the prior beside the parameters.

Both take a posterior expanded under precisions lambda_0, which its normal approximation needs.
Precisions are coordinates of the chains in `HierarchicalTarget`: the log density is that of the
parameters and of the hyperparameters eta of their prior, in coordinates in which they hardly depend
on each other (`non_centred`). One precision is integrated out in `IntegratedTarget`: what the prior
of the coefficients alone differs from that under lambda_0 is a function of their sum of squares, so
a step costs hardly more (math/priors.md#a-sampled-precision).
"""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data.minibatches import Rows
from skbayes_sg.linalg import Dense, Operator
from skbayes_sg.linalg.coordinates import Whitened
from skbayes_sg.posterior import ChainTarget, Posterior
from skbayes_sg.posterior.conjugate import QuadraticTarget
from skbayes_sg.posterior.control_variates import ExpandedTarget
from skbayes_sg.posterior.full_data import WhitenedTarget
from skbayes_sg.posterior.gaussian import NormalPath
from skbayes_sg.posterior.non_centred import PartiallyNonCentred, Sampled
from skbayes_sg.priors.scales import IntegratedPrecision, Scales
from skbayes_sg.samplers.target import Anchor

_MOST_LESS = 0.8  # of the curvature along a direction: then chains take far longer along it anyway


def joint_gradient(posterior: Posterior, scales: Scales, theta: NDArray) -> NDArray:
    """Gradient of the log posterior of (theta, eta) from all rows, (chains, D + K).

    The posterior is under some precisions.
    """
    prior = posterior.prior
    theta, eta = np.split(theta, [-scales.dim], axis=1)
    lam = np.exp(scales.log_precisions(eta))
    noise = 1.0 if prior.quadratic else np.exp(-theta[:, -1:])
    squares = noise * scales.squares(prior, theta - prior.mean)
    gradient = posterior.full_gradient(theta)
    more, block = lam - scales.of(prior), scales.block
    away = (theta - prior.mean)[:, block]
    gradient[:, block] -= more[:, scales.group] * noise * prior.unit[block] * away
    if not prior.quadratic:
        gradient[:, -1] += 0.5 * (more * squares).sum(axis=1)
    return np.append(gradient, scales.slope(eta, -0.5 * lam * squares), axis=1)


class HierarchicalTarget(ChainTarget):
    """An expanded posterior whose prior has precisions that chains move too.

    Parameters
    ----------
    given : ExpandedTarget, QuadraticTarget or WhitenedTarget
        Under the precisions of the centre.
    sampled : Sampled
    """

    has_scale = samples_precision = True
    anchor: Anchor
    coordinates: PartiallyNonCentred  # type: ignore[assignment]

    def __init__(
        self, given: ExpandedTarget | QuadraticTarget | WhitenedTarget, sampled: Sampled
    ) -> None:
        assert isinstance(given.coordinates, Whitened)
        coordinates = PartiallyNonCentred(given.coordinates, given.prior, sampled)
        super().__init__(given.posterior, coordinates)  # type: ignore[arg-type]
        self.given, self.dim = given, given.dim + coordinates.n_hyper
        self.sampled = sampled
        self.is_curved = sampled.curves is not None
        curvature = coordinates.bordered(given.anchor.curvature, np.ones(coordinates.n_hyper))
        self.anchor = replace(given.anchor, curvature=curvature, measured=self._noise)

    def curved(self, path: NormalPath) -> HierarchicalTarget:
        """The same in coordinates that follow normal distributions under several precisions."""
        try:
            return HierarchicalTarget(self.given, self.coordinates.curved(path))
        except np.linalg.LinAlgError:  # separable classes under next to no prior
            return self

    def cloud(self, theta: NDArray, rng: np.random.Generator) -> NDArray:
        normals = rng.standard_normal((len(theta), self.dim))
        normals[:, -self.coordinates.n_hyper :] *= 2.0  # along which chains are slow
        spread = self.anchor.curvature.inverse().cholesky()
        return self.coordinates.inverse_transform(spread.matvec(normals))

    def centred(self, theta: NDArray) -> NDArray:
        return self.coordinates.inverse_transform(np.zeros((1, self.dim)))

    def _noise(self) -> Operator:
        c = self.coordinates
        return c.bordered(self.given.anchor.noise, np.zeros(c.n_hyper))

    @cached_property
    def single(self) -> HierarchicalTarget:
        twin = copy.copy(self)
        twin.given = self.given.single  # type: ignore[assignment]
        return twin

    @cached_property
    def scale_sd(self) -> float:
        c = self.coordinates
        return float(1.0 / np.linalg.norm(c.scales.of_scale / c.width))

    def rescaled(self, theta: NDArray, log_scale: NDArray) -> tuple[NDArray, NDArray]:
        return self.coordinates.rescaled(theta, log_scale)

    def grad_estimate(self, theta: NDArray, rows: Rows) -> NDArray:
        c = self.coordinates
        at = c.point(theta)
        gradient = self.given.grad_estimate(c.rotated(at.u, back=True), rows)
        return c.gradient(at, c.rotated(gradient))

    def logdensity_and_grad(self, theta: NDArray) -> tuple[NDArray, NDArray]:
        c = self.coordinates
        at = c.point(theta)
        value, gradient = self.given.logdensity_and_grad(c.rotated(at.u, back=True))
        return value + c.log_density(at), c.gradient(at, c.rotated(gradient))


class IntegratedTarget(ChainTarget):
    """An expanded posterior whose prior has one precision, integrated out.

    With y the roots of the prior's squared distances, and Q their sum of squares, the gradient has
    ``(lambda_0 - E[lambda | Q]) y`` beyond that under lambda_0.

    Parameters
    ----------
    given : ExpandedTarget
        Under lambda_0.
    integrated : IntegratedPrecision
    """

    samples_precision = True

    def __init__(self, given: ExpandedTarget, integrated: IntegratedPrecision) -> None:
        coordinates, prior = given.coordinates, given.prior
        assert isinstance(coordinates, Whitened)
        super().__init__(given.posterior, coordinates)
        self.given, self._prior, scales = given, integrated, integrated.scales
        self._at = float(scales.of(prior)[0])
        weights = scales.weights(prior)
        j = coordinates.pullback_diagonal(weights)
        pull = coordinates.pullback(weights * (coordinates.centre[0] - prior.mean))
        self._root = np.sqrt(j)
        self._origin = np.divide(pull, self._root, out=np.zeros_like(j), where=j > 0)

        # Along root y the curvature is smaller by the variance of lambda given Q, at a typical Q:
        # there all coefficients grow, and their precision falls. With steps that know it the
        # precision forgets itself as fast as a coefficient.
        curvature = given.anchor.curvature
        y = coordinates.transform(given.anchor.theta)[0] * self._root + self._origin
        covariance = curvature.inverse()
        squares = np.array([y @ y + j @ covariance.diagonal()])
        shape = scales.shape + 0.5 * scales.sizes[0]
        less = integrated.mean_precision(squares) / np.sqrt(shape) * self._root * y
        share = float(less @ covariance.matvec(less))
        less *= np.sqrt(min(1.0, _MOST_LESS / share)) if share > 0 else 1.0
        curvature = Dense(curvature.dense() - np.outer(less, less))
        self.anchor = replace(given.anchor, curvature=curvature)

    def grad_estimate(self, theta: NDArray, rows: Rows) -> NDArray:
        gradient = self.given.grad_estimate(theta, rows)
        y = theta * self._root + self._origin
        lam = self._prior.mean_precision(np.einsum("cd,cd->c", y, y))
        gradient += (self._at - lam)[:, None] * self._root * y
        return gradient

    def logdensity_and_grad(self, theta: NDArray) -> tuple[NDArray, NDArray]:
        value, gradient = self.given.logdensity_and_grad(theta)
        y = theta * self._root + self._origin
        squares = np.einsum("cd,cd->c", y, y)
        value += 0.5 * self._at * squares + self._prior.log_density(squares)
        gradient += (self._at - self._prior.mean_precision(squares))[:, None] * self._root * y
        return value, gradient
