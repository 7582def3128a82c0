"""Coordinates in which parameters hardly depend on the hyperparameters of their prior.

Coefficients and their precisions depend on each other as a funnel does. So chains move in partially
non-centred coordinates (v, r) (Papaspiliopoulos, Roberts & Sköld 2007; Gorinova, Moore & Hoffman
2020). With u the whitened parameters, and ell the log precisions,

    eta = centre + width r,   u_i = mean_i(ell) + scale_i(ell) v_i

Each u_i belongs to one group. Mean and scale are those of a normal distribution of u_i given the
group's precision, as if the others were known. Where rows say nothing of a coefficient, v_i is the
coefficient over its prior's standard deviation; where they say all, it is the coefficient itself.
Whatever mean and scale are, the log density of (v, r) is exact
(math/priors.md#a-sampled-precision).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, helmert
from scipy.special import expit

from skbayes_sg.linalg import Dense, Diag, Operator
from skbayes_sg.linalg.coordinates import Whitened
from skbayes_sg.posterior.gaussian import NormalPath
from skbayes_sg.posterior.target import Point
from skbayes_sg.priors import Prior, without_rows
from skbayes_sg.priors.joint import JointPrior
from skbayes_sg.priors.scales import Sampled
from skbayes_sg.samplers.target import ScaleMove


class _Conditional(NamedTuple):
    """Mean and scale of the whitened parameters given the hyperparameters, (chains, D)."""

    mean: NDArray
    scale: NDArray
    shift: NDArray
    """Derivative of the mean over log precision."""
    stretch: NDArray
    """Derivative of the log scale over it."""
    volume: NDArray
    """Its sum over each group, (chains, groups)."""


class PartiallyNonCentred:
    """The coordinates (v, r) of parameters and hyperparameters.

    Parameters
    ----------
    whitened : Whitened
        Along the groups.
    prior : Prior
        With the precisions lambda_0 of the centre.
    sampled : Sampled
    joint : JointPrior
        In the whitened coordinates.
    """

    def __init__(
        self, whitened: Whitened, prior: Prior, sampled: Sampled, joint: JointPrior
    ) -> None:
        self.whitened, self.sampled, self._joint = whitened, sampled, joint
        self.scales, self.centre, self.width, curves = sampled
        scales, self.n_hyper = sampled.scales, sampled.scales.dim
        outputs, columns = whitened.columns.shape
        # outputs of classes have a direction of which rows know nothing, their sum
        self._rotation = helmert(outputs, full=True)
        self._j = joint.root**2  # the prior's sums of squares are of j u^2 + 2 linear u
        away = whitened.centre[0] - prior.mean
        linear = whitened.pullback(scales.weights(prior) * away)
        self._linear = self.rotated(linear[None])[0]
        self._from_mean = self.rotated(-whitened.transform(prior.mean[None]))[0]

        # The normal likelihood of each u as if the others were known: its precision is 1 in all, of
        # which the sampled prior has lambda_0 j, and priors of other parameters a fixed part. The
        # rows, those of an earlier fit among them, have the rest in the mean over the outputs. Of
        # classes they know nothing of the sum, so that the other K - 1 directions have K / (K - 1)
        # times the mean.
        self._at = joint.spread(joint.lam_0[None])[0]
        of_prior = without_rows(prior).curvature(whitened.centre)
        of_prior = whitened.pullback_matrix(of_prior.dense())
        of_sampled = (self._at * self._j)[:columns]
        fixed = np.maximum(of_prior.diagonal()[:columns] - of_sampled, 0.0)
        informed = np.ones(1)
        if outputs > 1:
            informed = np.append(0.0, np.full(outputs - 1, outputs / (outputs - 1)))
        of_rows = np.maximum(1.0 - of_sampled - fixed, 0.0)
        precision = (np.outer(informed, of_rows) + fixed).ravel()
        self._precision = np.append(precision, np.ones(len(whitened.rest)))
        self._there = self._precision + self._at * self._j

        # curves take its place: a product of `_basis` with a row for each of its functions gives
        # means, log scales, and slopes of means
        self._curves = None
        if curves is not None:
            (start, slope, bend), (log_scale, self._stretch) = curves
            self._volume = np.full((1, 1), self._stretch.sum())
            none = np.zeros_like(start)
            self._curves = np.block(
                [
                    [start, log_scale, slope],
                    [slope, self._stretch, none],
                    [bend, none, none],
                    [none, none, bend],
                ]
            )

    def rotated(self, v: NDArray, back: bool = False) -> NDArray:
        """Vectors (n, D) with the outputs turned, so that the first is the sum of all."""
        if len(self._rotation) == 1:
            return v
        rotation = self._rotation.T if back else self._rotation
        return (rotation @ v.reshape(len(v), len(rotation), -1)).reshape(v.shape)

    def _conditional(self, eta: NDArray) -> _Conditional:
        """The distribution of u given eta, about which v is standard.

        By curves, or that of a normal likelihood: with k the precision that rows have of u, the
        mean is (lambda_0 - lambda) linear / (k + lambda j), and the scale is relative to that under
        lambda_0.
        """
        if self._curves is not None:
            curves, n = _basis(eta, self.sampled) @ self._curves, len(self._stretch)
            mean, scale, shift = curves[:, :n], np.exp(curves[:, n : 2 * n]), curves[:, 2 * n :]
            return _Conditional(mean, scale, shift, self._stretch, self._volume)
        lam = self._joint.spread(np.exp(self.scales.log_precisions(eta)))
        share = lam / (self._precision + lam * self._j)
        mean = (self._at / lam - 1) * share * self._linear
        shift, stretch = -share * (self._linear + mean * self._j), -0.5 * share * self._j
        scale, volume = np.sqrt(self._there * share / lam), self._joint.summed(stretch)
        return _Conditional(mean, scale, shift, stretch, volume)

    def point(self, x: NDArray) -> Point:
        """The point of chains at x."""
        eta = self.centre + self.width * x[:, -self.n_hyper :]
        conditional = self._conditional(eta)
        rest = conditional.scale * x[:, : -self.n_hyper]

        def pull(gradient: NDArray, of_eta: NDArray) -> NDArray:
            gradient = self.rotated(gradient)
            of_ell = self._joint.summed(gradient, conditional.shift + conditional.stretch * rest)
            of_eta = of_eta + self.scales.pullback(eta, of_ell + conditional.volume)
            return np.concatenate([gradient * conditional.scale, self.width * of_eta], axis=1)

        u = self.rotated(conditional.mean + rest, back=True)
        return Point(u, eta, np.log(conditional.scale).sum(axis=1), pull)

    def inverse_transform(self, x: NDArray) -> NDArray:
        """(theta, eta) of x, (..., D + K)."""
        point = self.point(x.reshape(-1, x.shape[-1]))
        theta = self.whitened.inverse_transform(point.u)
        return np.concatenate([theta, point.eta], axis=1).reshape(x.shape)

    def transform(self, theta: NDArray) -> NDArray:
        """x of (theta, eta), (chains, D + K)."""
        theta, eta = np.split(theta, [-self.n_hyper], axis=1)
        conditional = self._conditional(eta)
        v = (self.rotated(self.whitened.transform(theta)) - conditional.mean) / conditional.scale
        return np.concatenate([v, (eta - self.centre) / self.width], axis=1)

    @property
    def scale_move(self) -> ScaleMove:
        """A move along the scale of all coefficients."""
        sd = float(1.0 / np.linalg.norm(self.scales.of_scale / self.width))
        return ScaleMove(self.rescaled, sd)

    def rescaled(self, x: NDArray, log_scale: NDArray) -> tuple[NDArray, NDArray]:
        """Points whose coefficients are `log_scale` (chains,) farther from the prior's mean.

        The hyperparameters follow, so that the prior hardly says which is which. Also the logarithm
        of the factor by which volumes grow.
        """
        point, log_s = self.point(x), log_scale[:, None]
        n = self.whitened.columns.size
        grown = np.where(np.arange(x.shape[1] - self.n_hyper) < n, np.exp(log_s), 1.0)
        u = grown * self.rotated(point.u) + (grown - 1) * self._from_mean
        eta = point.eta + self.scales.of_scale * log_s
        conditional = self._conditional(eta)
        v = (u - conditional.mean) / conditional.scale
        volume = n * log_scale + point.log_volume - np.log(conditional.scale).sum(axis=1)
        return np.concatenate([v, (eta - self.centre) / self.width], axis=1), volume

    def curved(self, path: NormalPath) -> Sampled:
        """With curves in place of one normal likelihood's: through three distributions of a path.

        Means of u are lines with a bend, and its log standard deviations are lines.
        """
        nodes = path.around()
        centre, width = path.moments()
        sampled = Sampled(self.scales, np.array([centre]), np.array([width]))
        basis = _basis(np.array([[node.rho] for node in nodes]), sampled)
        means, log_scales = np.empty((2, len(nodes), len(self._j)))
        for k, node in enumerate(nodes):
            mean, root = node.normal.mean, node.normal.operator.inverse().cholesky().dense()
            u = self.rotated(self.whitened.transform(np.vstack([mean, mean + root.T])))
            means[k], log_scales[k] = u[0], 0.5 * np.log(((u[1:] - u[0]) ** 2).sum(axis=0))
        of_mean = np.linalg.solve(basis[:, :3], means)
        line = np.linalg.lstsq(basis[:, :2], log_scales, rcond=None)[0]
        return sampled._replace(curves=(of_mean, line))

    def bordered(self, matrix: Operator, corner: NDArray) -> Operator:
        """A quadratic form of u as one of x at r = 0, with `corner` (K,) for r."""
        scale = self._conditional(self.centre[None]).scale[0]
        if isinstance(matrix, Diag) and len(self._rotation) == 1:
            return Diag(np.append(matrix.values * scale**2, corner))
        rotated = self.rotated(self.rotated(matrix.dense()).T)
        return Dense(block_diag(rotated * np.outer(scale, scale), np.diag(corner)))


def _basis(rho: NDArray, sampled: Sampled) -> NDArray:
    """1, log precisions (n, 1) less the centre, a line that begins to rise there, its slope.

    Means of separable classes grow with the prior's standard deviation where it is wide, and not
    where it is narrow.
    """
    basis = np.empty((len(rho), 4))
    basis[:, :1], basis[:, 1:2] = 1.0, rho - sampled.centre
    away = basis[:, 1:2] / sampled.width
    np.logaddexp(0.0, away, out=basis[:, 2:3])
    basis[:, 2:3] *= sampled.width
    expit(away, out=basis[:, 3:])
    return basis
