"""The metrics of HMC, learned in burn-in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.linalg import Dense, Diag, Layout, Operator, stored
from skbayes_sg.samplers.target import Target

MANY_CHAINS = 16
"""Chains of a group, from which few steps of burn-in have many points."""


class RescaledCurvature:
    """The metric of one mode: the curvature, rescaled along its axes to the spread of the draws.

    It is the curvature at the mean of the draws, or at the anchor. The Fisher in the mean over the
    posterior would weigh walls that chains rarely touch (math/hamiltonian.md#hmc). The axes are the
    eigenvectors, so that directions without data stay apart from the others. With an anchor the
    operators are in single precision, as all scales are near 1 in the coordinates of the chains.

    Attributes
    ----------
    inverse : Operator
        Of the metric.
    root : Operator
        Momenta are ``root z`` with z normal.
    burn_in : int
        Steps of the chains from which it is known: some hundred points determine the standard
        deviations. Half as many serve where the coordinates follow the posterior.
    """

    def __init__(self, target: Target, theta: NDArray, layout: Layout) -> None:
        self._layout, self._points = layout, list[NDArray]()  # each (chains, D)
        self.burn_in = 150 if len(theta) < MANY_CHAINS else 32 if target.is_curved else 64
        self._axes: tuple[NDArray, NDArray, NDArray] | None = None
        curvature = self._curvature(target, theta)
        self._dtype = np.float64 if target.anchor is None else np.float32
        self.inverse = stored(curvature.inverse(), self._dtype)
        self.root = stored(curvature.cholesky(), self._dtype)

    def see(self, target: Target, theta: NDArray, t: int) -> None:
        """Keep the points of a step of burn-in."""
        self._points.append(theta)

    def restart(self, target: Target, theta: NDArray) -> None:
        """Compute the operators from what was seen in ten steps or more, and forget it."""
        seen, self._points = self._points, []
        if len(seen) < 10:
            return
        points = np.concatenate(seen)
        curvature = self._curvature(target, points)
        diagonal = curvature.diagonal()
        d = np.sqrt(diagonal)
        along, roots, vectors = points * d, np.ones(len(d)), None  # of unit curvature, by axis
        if not isinstance(curvature, Diag):
            if self._axes is None or not np.array_equal(self._axes[0], diagonal):  # by the prior
                values, vectors = np.linalg.eigh(curvature.dense() / np.outer(d, d))
                # any positive metric is right: rounding may make the smallest values negative
                roots = np.sqrt(np.maximum(values, np.finfo(float).eps * len(values)))
                self._axes = diagonal, roots, vectors
            _, roots, vectors = self._axes
            along = (along @ vectors) * roots
        n = len(points)  # a standard deviation equal to the curvature's counts for ten draws
        scale = np.sqrt((n * along.var(axis=0) + 10.0) / (n + 10.0))
        inverse: Operator
        root: Operator
        if vectors is None:
            inverse, root = Diag((scale / d) ** 2), Diag(d / scale)
        else:
            wide = (vectors * (scale / roots)) / d[:, None]
            inverse, root = Dense(wide @ wide.T), Dense(d[:, None] * vectors * (roots / scale))
        self.inverse, self.root = stored(inverse, self._dtype), stored(root, self._dtype)

    def _curvature(self, target: Target, points: NDArray) -> Operator:
        if target.anchor is not None:
            return self._layout.keep(target.anchor.curvature)
        centre = points.mean(axis=0, keepdims=True)
        return target.posterior.curvature(centre, slice(None), self._layout)


class AveragedFisher:
    """The metric of many modes: model Fisher in the mean over burn-in, plus the prior's curvature.

    The spread of chains in different modes says nothing of one mode. Attributes `inverse` and
    `root` are those of `RescaledCurvature`.
    """

    def __init__(self, target: Target, theta: NDArray, layout: Layout) -> None:
        self._layout, self._count = layout, 1.0
        self._information = target.posterior.information(theta, slice(None), layout)
        self.restart(target, theta)

    def see(self, target: Target, theta: NDArray, t: int) -> None:
        """Learn from the points theta (chains, D) of step t: every fifth, one chain in turn."""
        if t % 5 == 0:
            chain = t // 5 % len(theta)
            here = theta[chain : chain + 1]
            one = target.posterior.information(here, slice(None), self._layout)
            self._count += 1
            self._information.blend(one, 1 / self._count)  # type: ignore[arg-type]

    def restart(self, target: Target, theta: NDArray) -> None:
        """Compute the operators from what was seen, at the points theta, and forget old points."""
        metric = self._information + target.prior.curvature(theta)
        self.inverse, self.root = metric.inverse(), metric.cholesky()
        self._count = self._count**0.5


Metric = AveragedFisher | RescaledCurvature
