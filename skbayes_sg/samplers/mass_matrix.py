"""The metrics of HMC, learned in burn-in.

One mode: the curvature at the mean of the draws, rescaled to their standard deviations. The Fisher
in the mean over the posterior would weigh walls that chains rarely touch (math/hamiltonian.md#hmc).
Many modes: the Fisher in the mean over burn-in, since the spread of chains in different modes says
nothing of one mode.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.linalg import Dense, Diag, Layout, Operator, stored
from skbayes_sg.samplers.target import Target

MANY_CHAINS = 16
"""Chains of a group, from which few steps of burn-in have many points."""
_MEASURE_EVERY = 5
_FEWEST_STEPS = 10
_DOUBT = 10.0  # draws that a standard deviation equal to the curvature's counts for


class AveragedFisher:
    """Model Fisher in the mean over burn-in, plus the curvature of the prior.

    Attributes
    ----------
    inverse : Operator
        Of the metric.
    root : Operator
        Momenta are ``root z`` with z normal.
    """

    def __init__(self, target: Target, theta: NDArray, layout: Layout) -> None:
        self._layout, self._count = layout, 1.0
        self._information = target.posterior.information(theta, slice(None), layout)
        self._factorise(target, theta)

    def see(self, target: Target, theta: NDArray, t: int) -> None:
        """Learn from the points theta (chains, D) of step t in burn-in."""
        if t % _MEASURE_EVERY == 0:  # one chain after the other
            chain = t // _MEASURE_EVERY % len(theta)
            here = theta[chain : chain + 1]
            one = target.posterior.information(here, slice(None), self._layout)
            self._count += 1
            self._information.blend(one, 1 / self._count)  # type: ignore[arg-type]

    def restart(self, target: Target, theta: NDArray) -> None:
        """Compute the operators from what was seen, at the points theta, and forget old points."""
        self._factorise(target, theta)
        self._count = self._count**0.5

    def _factorise(self, target: Target, theta: NDArray) -> None:
        metric = self._information + target.prior.curvature(theta)
        self.inverse, self.root = metric.inverse(), metric.cholesky()


class RescaledCurvature:
    """Curvature at the mean of the draws, rescaled along its axes to the spread of the draws.

    With an anchor it is the curvature there, and the operators are in single precision, as all
    scales are near 1 in the coordinates of the chains. The axes are the eigenvectors, so that
    directions without data stay apart from the others. Attributes are those of `AveragedFisher`,
    and

    burn_in : int
        Steps of the chains from which it is known: some hundred points determine the standard
        deviations. Half as many serve where the coordinates follow the posterior.
    """

    def __init__(self, target: Target, theta: NDArray, layout: Layout) -> None:
        self._layout = layout
        self.burn_in = 150 if len(theta) < MANY_CHAINS else 32 if target.is_curved else 64
        self._axes: _Axes | None = None
        self._points: list[NDArray] = []  # each (chains, D)
        curvature = self._curvature(target, theta)
        self._dtype = np.float64 if target.anchor is None else np.float32
        self.inverse = stored(curvature.inverse(), self._dtype)
        self.root = stored(curvature.cholesky(), self._dtype)

    def see(self, target: Target, theta: NDArray, t: int) -> None:
        """Keep the points of a step of burn-in."""
        self._points.append(theta)

    def restart(self, target: Target, theta: NDArray) -> None:
        """Compute the operators from what was seen, and forget it."""
        if len(self._points) >= _FEWEST_STEPS:
            self._rescale(target)
        self._points = []

    def _rescale(self, target: Target) -> None:
        points = np.concatenate(self._points)
        curvature = self._curvature(target, points)
        if self._axes is None or not self._axes.are_of(curvature):
            self._axes = _Axes(curvature)
        n, variance = len(points), self._axes.along(points).var(axis=0)
        scale = np.sqrt((n * variance + _DOUBT) / (n + _DOUBT))
        inverse, root = self._axes.rescaled(scale)
        self.inverse, self.root = stored(inverse, self._dtype), stored(root, self._dtype)

    def _curvature(self, target: Target, points: NDArray) -> Operator:
        if target.anchor is not None:
            return self._layout.keep(target.anchor.curvature)
        centre = points.mean(axis=0, keepdims=True)
        return target.posterior.curvature(centre, slice(None), self._layout)


Metric = AveragedFisher | RescaledCurvature


class _Axes:
    """The eigenvectors of a curvature whose diagonal is scaled to 1; coordinates for a diagonal."""

    def __init__(self, curvature: Operator) -> None:
        self._diagonal = curvature.diagonal()
        self._roots, self._vectors = np.ones(curvature.dim), None
        if not isinstance(curvature, Diag):
            d = np.sqrt(self._diagonal)
            values, self._vectors = np.linalg.eigh(curvature.dense() / np.outer(d, d))
            # any positive metric is right: rounding may make the smallest eigenvalues negative
            self._roots = np.sqrt(np.maximum(values, np.finfo(float).eps * len(values)))

    def are_of(self, curvature: Operator) -> bool:
        """Whether they were computed from this curvature; it changes with the prior."""
        return np.array_equal(self._diagonal, curvature.diagonal())

    def along(self, points: NDArray) -> NDArray:
        """Points (n, D) in units in which the curvature is the identity."""
        z = points * np.sqrt(self._diagonal)
        return z if self._vectors is None else (z @ self._vectors) * self._roots

    def rescaled(self, scale: NDArray) -> tuple[Operator, Operator]:
        """Inverse and root of the metric in whose units points are `scale` times as wide."""
        d = np.sqrt(self._diagonal)
        if self._vectors is None:
            return Diag((scale / d) ** 2), Diag(d / scale)
        wide = (self._vectors * (scale / self._roots)) / d[:, None]
        return Dense(wide @ wide.T), Dense(d[:, None] * self._vectors * (self._roots / scale))
