"""Normal distributions of a posterior under several values of one prior precision.

The derivative of the density of a log precision is known from the mean of one number, the sum Q of
squares of the coefficients:

    d log p(rho | y) / d rho = d log p(rho) / d rho + P / 2 - lambda E[Q | lambda] / 2

So a few normal distributions tell where the precision is, by integration over rho (thermodynamic
integration, Gelman & Meng 1998), and how the parameters depend on it. Source:
math/priors.md#a-sampled-precision.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.integrate import cumulative_trapezoid
from scipy.interpolate import CubicHermiteSpline

from skbayes_sg.data import deterministic_rng
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.gaussian import (
    CLOSE,
    InitialPoint,
    agreeing,
    carried,
    find_mode,
    known_at,
    updated,
)
from skbayes_sg.priors import Distribution, Prior
from skbayes_sg.priors.scales import OnePrecision


class Node(NamedTuple):
    """The posterior under one precision."""

    rho: float
    """Log precision."""
    prior: Prior
    normal: Distribution
    known: float
    """What the data know of the coefficients, as a number of them."""


class NormalPath:
    """Normal distributions under values of one precision, as they are asked for.

    Parameters
    ----------
    posterior : Posterior
        Of a `Predictor`, with a normal prior.
    scales : OnePrecision
    in_mean : bool
        Whether gradient and curvature vanish, and agree, in the mean over each distribution. Else
        it is that at the mode.

    Attributes
    ----------
    curve : array of shape (3, n)
        Of each distribution, in their order: log precision, the logarithm of E[Q], and its
        derivative over log precision, if the likelihood is normal.
    """

    def __init__(self, posterior: Posterior, scales: OnePrecision, in_mean: bool) -> None:
        self.posterior, self.scales, self.in_mean = posterior, scales, in_mean
        self._weights = scales.weights(posterior.prior)
        self._nodes: list[Node] = []
        self.curve = np.empty((3, 0))
        self._found: tuple[float, float] | None = None

    def under(self, rho: float) -> Posterior:
        """The posterior under this log precision."""
        prior = self.scales.given(self.posterior.prior, np.array([rho]))
        return self.posterior.with_prior(prior)

    def near(self, rho: float) -> Node:
        """The known distribution whose precision is nearest."""
        return self._nodes[np.abs(self.curve[0] - rho).argmin()]

    def at(self, rho: float, within: float = 0.0) -> Node:
        """The distribution under a log precision, or a known one that is near."""
        here = self.under(rho)
        if not self._nodes:
            rows = self.posterior.data.sample
            theta, precision = here.model.guess(rows.y, rows.weight), None
        else:
            near = self.near(rho)
            if abs(near.rho - rho) <= within:
                return near
            theta, precision = near.normal.mode, carried(near.normal, near.prior, here.prior)
        normal: Distribution
        if not self.in_mean:
            normal = known_at(here, find_mode(here, theta, deterministic_rng("prior"), precision))
        elif precision is None:
            normal = updated(here, theta)
        else:  # of the same rows: the prior alone changes the gradient in the mean
            gradient = here.prior.gradient(theta) - near.prior.gradient(theta)
            theta = theta + precision.inverse().matvec(gradient)
            normal = agreeing(here.expected_under_gaussian, theta, precision, CLOSE)

        weights, covariance = self._weights, normal.operator.inverse().dense()
        away = np.where(weights > 0, normal.mean - self.posterior.prior.mean, 0.0)
        of_rows = weights @ covariance.diagonal()
        squares, pull = weights @ away**2 + of_rows, weights * away
        variance = 2 * weights @ covariance**2 @ weights + 4 * pull @ covariance @ pull
        slope = -0.5 * np.exp(rho) * variance / squares
        known = self.scales.sizes[0] - np.exp(rho) * of_rows
        k = int(self.curve[0].searchsorted(rho))
        self.curve = np.insert(self.curve, k, (rho, np.log(squares), slope), axis=1)
        self._nodes.insert(k, Node(rho, here.prior, normal, float(known)))
        return self._nodes[k]

    def initial(self, rho: float) -> InitialPoint:
        """Near the mode under a log precision, from the nearest distribution."""
        near, prior = self.near(rho), self.under(rho).prior
        return InitialPoint(near.normal.mode, carried(near.normal, near.prior, prior))

    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation of log precision, as chains found them if they did."""
        if self._found is not None:
            return self._found
        rho, value, slope = self.curve
        grid = np.linspace(rho[0] - 3.0, rho[-1] + 3.0, 1000)
        inside = np.clip(grid, rho[0], rho[-1])
        between = CubicHermiteSpline(rho, value, slope)(inside) if len(rho) > 1 else value
        beyond = (grid - inside) * np.where(grid < rho[0], slope[0], slope[-1])
        half = -0.5 * np.exp(grid + between + beyond)
        force = self.scales.slope(grid[:, None], half[:, None])[:, 0]
        log_density = cumulative_trapezoid(force, grid, initial=0.0)
        share = np.exp(log_density - log_density.max())
        share /= share.sum()
        mean = share @ grid
        return float(mean), float(np.sqrt(share @ (grid - mean) ** 2))

    def found(self, rho: float, width: float) -> None:
        """Take mean and standard deviation of log precision from chains."""
        self._found = rho, width

    def around(self) -> list[Node]:
        """Three distributions, from about 1.5 standard deviations below the mean to as much above.

        One that is half a deviation off serves. They tell the mean more precisely, so it may take a
        few rounds.
        """
        for _ in range(4):
            rho, width = self.moments()
            nodes = [self.at(rho + k * width, 0.5 * width) for k in (-1.5, 0.0, 1.5)]
            if abs(self.moments()[0] - rho) < 0.5 * width:
                break
        return nodes
