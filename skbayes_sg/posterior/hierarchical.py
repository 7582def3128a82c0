"""The target of chains that sample the prior precision beside the parameters.

Coefficients and their precision depend on each other as a funnel does. So the chains move in
coordinates (v, r) in which they hardly do: partially non-centred ones (Papaspiliopoulos, Roberts &
Sköld 2007; Gorinova, Moore & Hoffman 2020). With rho = log lambda and u the whitened parameters,

    rho = centre + width r,   u_i = mean_i + shift_i r + scale_i exp(stretch_i r) v_i

The numbers are those of the normal law of u given rho, to first order in rho. Whatever they are,
the log density of (v, r) is exact, with the Jacobian ``sum(stretch) r``
(math.md#a-sampled-precision).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from skbayes_sg.data import Data
from skbayes_sg.data.minibatches import Rows
from skbayes_sg.data.random import fixed_rng
from skbayes_sg.linalg import Dense, Diag, Operator
from skbayes_sg.linalg.coordinates import Whitened
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.chain_target import Anchor, ChainTarget
from skbayes_sg.posterior.control_variates.expansion import ExpandedTarget
from skbayes_sg.posterior.control_variates.nonlinearity import steepness
from skbayes_sg.posterior.mode import Mode
from skbayes_sg.posterior.precision import Sampled, SampledPrecision
from skbayes_sg.priors import Prior

_POINTS = 10  # for each parameter, to fit lines to
_TRAJECTORY = 2.0  # the precision is slower than the parameters
_CAUTION = 8.0  # with rare levels, chains that minibatches throw far out under a weak prior


class _Point(NamedTuple):
    """Points of the chains in terms of the whitened parameters, outputs turned."""

    r: NDArray  # (chains, 1)
    lam: NDArray  # (chains, 1)
    scale: NDArray  # (chains, D)
    rest: NDArray  # (chains, D): from the mean given rho
    u: NDArray  # (chains, D)


class PartiallyNonCentred:
    """The coordinates (v, r) of parameters and log precision.

    Parameters
    ----------
    whitened : Whitened
        Turned so that prior and curvature are diagonal together.
    prior : Prior
        Under lambda_0.
    sampled : Sampled
    """

    def __init__(self, whitened: Whitened, prior: Prior, sampled: Sampled) -> None:
        self.whitened = whitened
        self.sampled = sampled
        self.precision, self.centre, self.width = precision, centre, width = sampled[:3]
        self.at = precision.of(prior)
        outputs, columns = whitened.columns.shape
        # outputs of classes have a direction of which rows know nothing, their sum
        self._turn = helmert(outputs, full=True)
        weights = precision.weights(prior)
        away = np.where(weights > 0, whitened.centre[0] - prior.mean, 0.0)
        j = ((whitened.S * weights[whitened.columns[0]][:, None]) * whitened.S).sum(axis=0)
        self.j, self.squares = np.tile(j, outputs), float(weights @ away**2)
        self.pull = self.turned(whitened.pullback(weights * away)[None])[0]
        fixed = whitened.pullback_matrix(prior.curvature(whitened.centre).dense()).diagonal()
        fixed = np.maximum(fixed[:columns] - self.at * j, 0.0)
        informed = np.ones(1)
        if outputs > 1:
            informed = np.append(0.0, np.full(outputs - 1, outputs / (outputs - 1)))
        rows = np.maximum(1.0 - self.at * j - fixed, 0.0)
        known = (np.outer(informed, rows) + fixed).ravel()
        lam = np.exp(centre)
        grown, there = known + lam * self.j, known + self.at * self.j
        numbers: tuple[NDArray, ...] = sampled.coordinates or (
            (self.at - lam) * self.pull / grown,
            -width * lam * self.pull * there / grown**2,
            np.sqrt(there / grown),
            -0.5 * width * lam * self.j / grown,
        )
        self.mean, self.shift, self.scale, self.stretch = numbers
        self._jacobian = self.stretch.sum()

    def explained(self, points: NDArray) -> float:
        """Share of the variance of r that v explains linearly at points (n, D + 1) of the chains.

        0 where points are too few to tell.
        """
        x = self.transform(points)
        if len(x) < _POINTS * x.shape[1]:
            return 0.0
        v, r = x[:, :-1] - x[:, :-1].mean(axis=0), x[:, -1] - x[:, -1].mean()
        rest = r - v @ np.linalg.lstsq(v, r, rcond=None)[0]
        return float(1 - (rest @ rest) / (r @ r))

    def fitted(self, points: NDArray) -> Sampled:
        """With means and log standard deviations of u as points (n, D + 1) have them over rho."""
        if len(points) < _POINTS * points.shape[1]:
            return self.sampled
        u = self.turned(self.whitened.transform(points[:, :-1]))
        r = (points[:, -1:] - self.centre) / self.width
        line = np.hstack([np.ones_like(r), r])
        mean, shift = np.linalg.lstsq(line, u, rcond=None)[0]
        rest = u - mean - shift * r
        size = np.log(np.abs(rest) + np.finfo(np.float64).tiny)
        stretch = np.linalg.lstsq(line, size, rcond=None)[0][1]
        scale = np.sqrt(np.mean((rest * np.exp(-stretch * r)) ** 2, axis=0))
        return self.sampled._replace(coordinates=(mean, shift, scale, stretch))

    def turned(self, v: NDArray, back: bool = False) -> NDArray:
        """Vectors (n, D) with the outputs turned, so that the first is the sum of all."""
        if len(self._turn) == 1:
            return v
        turn = self._turn.T if back else self._turn
        return (turn @ v.reshape(len(v), len(turn), -1)).reshape(v.shape)

    def point(self, x: NDArray) -> _Point:
        """Of chains at x."""
        r = x[:, -1:]
        scale = self.scale * np.exp(self.stretch * r)
        rest = scale * x[:, :-1]
        lam = np.exp(self.centre + self.width * r)
        return _Point(r, lam, scale, rest, rest + self.mean + self.shift * r)

    def inverse_transform(self, x: NDArray) -> NDArray:
        """(theta, rho) of x, (..., D + 1)."""
        at = self.point(x.reshape(-1, x.shape[-1]))
        theta = self.whitened.inverse_transform(self.turned(at.u, back=True))
        return np.concatenate([theta, np.log(at.lam)], axis=1).reshape(x.shape)

    def transform(self, theta: NDArray) -> NDArray:
        """x of (theta, rho), (chains, D + 1)."""
        r = (theta[:, -1:] - self.centre) / self.width
        rest = self.turned(self.whitened.transform(theta[:, :-1])) - self.mean - self.shift * r
        return np.concatenate([rest * np.exp(-self.stretch * r) / self.scale, r], axis=1)

    def given(self, at: _Point) -> tuple[NDArray, NDArray]:
        """Half the gradient over u of the prior's squared distance, (chains, D), and the latter."""
        bent = self.j * at.u
        squares = ((bent + 2 * self.pull) * at.u).sum(axis=1, keepdims=True) + self.squares
        return bent + self.pull, squares

    def gradient(self, at: _Point, gradient: NDArray, prior: tuple[NDArray, NDArray]) -> NDArray:
        """Over x, from that over u under lambda_0, outputs turned; `prior` is that of `given`."""
        force, squares = prior
        gradient = gradient - (at.lam - self.at) * force
        slope = (gradient * (self.shift + self.stretch * at.rest)).sum(axis=1, keepdims=True)
        slope += self.width * (self.precision.slope(at.lam) - 0.5 * at.lam * squares)
        slope += self._jacobian
        return np.concatenate([gradient * at.scale, slope], axis=1)

    def log_density(self, at: _Point, squares: NDArray) -> NDArray:
        """What the log density of x has beyond that of u under lambda_0, (chains,)."""
        value = self.precision.log_density(np.log(at.lam)) - 0.5 * (at.lam - self.at) * squares
        return (value + self._jacobian * at.r)[:, 0]

    def bordered(self, matrix: Operator, corner: float) -> Operator:
        """A quadratic form of u as one of x at r = 0."""
        if isinstance(matrix, Diag) and len(self._turn) == 1:
            return Diag(np.append(matrix.values * self.scale**2, corner))
        bordered = np.zeros((matrix.dim + 1,) * 2)
        turned = self.turned(self.turned(matrix.dense()).T)
        bordered[:-1, :-1] = turned * np.outer(self.scale, self.scale)
        bordered[-1, -1] = corner
        return Dense(bordered)


class JointPosterior(NamedTuple):
    """The log posterior of (theta, rho)."""

    posterior: Posterior
    """Under some precision."""
    precision: SampledPrecision

    @property
    def data(self) -> Data:
        """That of the posterior."""
        return self.posterior.data

    def full_gradient(self, theta: NDArray) -> NDArray:
        """From all rows, (chains, D + 1)."""
        prior, theta, lam = self.posterior.prior, theta[:, :-1], np.exp(theta[:, -1:])
        weights, more = self.precision.weights(prior), lam - self.precision.of(prior)
        away = weights * (theta - prior.mean)
        noise = 1.0 if prior.quadratic else np.exp(-theta[:, -1:])
        squares = noise * (away * (theta - prior.mean)).sum(axis=1, keepdims=True)
        gradient = self.posterior.full_gradient(theta) - more * noise * away
        if not prior.quadratic:
            gradient[:, -1:] += 0.5 * more * squares
        return np.append(gradient, self.precision.slope(lam) - 0.5 * lam * squares, axis=1)


class HierarchicalTarget(ChainTarget):
    """An expanded posterior whose prior precision is one more coordinate of the chains.

    Parameters
    ----------
    given : ExpandedTarget
        Under lambda_0.
    coordinates : PartiallyNonCentred
    """

    anchor: Anchor
    coordinates: PartiallyNonCentred  # type: ignore[assignment]

    def __init__(self, given: ExpandedTarget, coordinates: PartiallyNonCentred) -> None:
        super().__init__(given.posterior, coordinates)  # type: ignore[arg-type]
        self.given, self.dim = given, given.dim + 1
        curvature = coordinates.bordered(given.anchor.curvature, 1.0)
        self.anchor = replace(
            given.anchor,
            curvature=curvature,
            measured=self._noise,
            caution=_CAUTION,
            trajectory=_TRAJECTORY,
        )

    @classmethod
    def at(cls, posterior: Posterior, mode: Mode, sampled: Sampled) -> HierarchicalTarget:
        """The posterior anchored at a mode."""
        weights = sampled.precision.weights(posterior.prior)
        given = ExpandedTarget.at(posterior, mode, along=weights)
        assert isinstance(given.coordinates, Whitened)
        target = cls(given, PartiallyNonCentred(given.coordinates, posterior.prior, sampled))
        target.anchor = replace(target.anchor, steepness=target._steepness())
        return target

    def fitted(self, points: NDArray) -> HierarchicalTarget:
        """The same in coordinates fitted to points (n, D + 1) of chains."""
        c = self.coordinates
        fitted = PartiallyNonCentred(c.whitened, self.prior, c.fitted(points))
        target = HierarchicalTarget(self.given, fitted)
        target.anchor = replace(target.anchor, steepness=self.anchor.steepness)
        return target

    def _steepness(self) -> float:
        """That of the posterior under lambda_0, and along the precision."""
        points = self.given.points
        r = fixed_rng("precision").standard_normal((len(points), 1))
        v = self.coordinates.turned(points) / self.coordinates.scale
        rough = np.eye(self.dim)[-1:]
        known = self.given.anchor.steepness
        if np.isinf(known):
            return known
        return max(
            known, steepness(self.full_gradient, self.anchor.curvature, rough, np.hstack([v, r]))
        )

    def _noise(self) -> Operator:
        """Noise of the rows along v, and along r in the mean over v."""
        noise, c = self.given.anchor.noise, self.coordinates
        shift = c.turned(c.shift[None], back=True)
        along = noise.matvec(shift) @ shift.T
        spread = (c.stretch * c.scale) ** 2 @ c.turned(c.turned(noise.dense()).T).diagonal()
        return c.bordered(noise, float(along[0, 0] + spread))

    def with_prior(self, prior: Prior) -> HierarchicalTarget:
        raise TypeError("the prior precision is sampled")

    def noisy_gradient(self, theta: NDArray, rows: Rows) -> NDArray:
        c = self.coordinates
        at = c.point(theta)
        gradient = self.given.noisy_gradient(c.turned(at.u, back=True), rows)
        return c.gradient(at, c.turned(gradient), c.given(at))

    def slope(self, theta: NDArray) -> tuple[NDArray, NDArray]:
        c = self.coordinates
        at = c.point(theta)
        value, gradient = self.given.slope(c.turned(at.u, back=True))
        prior = c.given(at)
        return value + c.log_density(at, prior[1]), c.gradient(at, c.turned(gradient), prior)
