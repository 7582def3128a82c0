"""The distribution of a step in theory, as a value: its stationary covariance and its stability."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from skbayes_sg import theory
from skbayes_sg.data.minibatches import rows_of
from skbayes_sg.linalg import FULL, Dense, Operator, largest_eigenvalue
from skbayes_sg.linalg.scores import Scores
from skbayes_sg.samplers.target import ClosedForm, State, Target

_MOST_CURVED = 1.2
"""Mean ratio of curvatures on the path and at the mean, beyond which no law is told."""


class StationaryDistribution(Protocol):
    """The stationary distribution of a chain whose sampler is frozen, in theory."""

    def covariance(self, Lam: NDArray, M: NDArray) -> NDArray:
        """Stationary covariance under curvature Lam and minibatch gradient noise M, all (D, D).

        Raises
        ------
        ValueError
            If there is no stationary distribution: the step changes, or is unstable under this
            curvature. Also if the curvature that the chain met is another.
        """


@dataclass(frozen=True)
class LinearStep:
    """``theta += K (gradient + eta)``, ``eta ~ N(0, W)``, with momentum or averaging if given.

    Attributes
    ----------
    preconditioner : Operator or None
        K; None if the step changes, or is not linear.
    root : Operator or None
        A square root of W; None without injection.
    damping : float
        1 without momentum.
    window : int
        Number of iterates averaged into a draw.
    stable : bool
        Whether the step is stable on any data.
    unknown : str
        Why there is no stationary distribution; empty if there is one.
    met : Operator or None
        The mean curvature over points of the chain, to be compared with that at one point; None
        where the draws themselves tell whether the posterior is nearly normal.
    """

    preconditioner: Operator | None
    root: Operator | None = None
    damping: float = 1.0
    window: int = 1
    stable: bool = False
    unknown: str = ""
    met: Operator | None = None

    def covariance(self, Lam: NDArray, M: NDArray) -> NDArray:
        if self.unknown or self.preconditioner is None:
            raise ValueError(self.unknown)
        if self.met is not None:
            self._require_linear(self.met, Lam)
        K = self.preconditioner.dense()
        if self.root is not None:
            root = self.root.dense()
            M = M + root @ root.T
        if self.damping < 1:
            return theory.momentum_cov(Lam, M, K, self.damping)
        if self.window > 1:
            return theory.iasg_cov(Lam, M, K, self.window)
        return theory.stationary_cov(Lam, M, K)

    def _require_linear(self, met: Operator, Lam: NDArray) -> None:
        """The gradient is linear over the path only if the curvature is the same all along."""
        if isinstance(met, Dense):
            ratio = float(np.trace(np.linalg.solve(Lam, met.dense()))) / len(Lam)
        else:
            ratio = float(np.mean(met.diagonal() / Lam.diagonal()))
        if not 1 / _MOST_CURVED < ratio < _MOST_CURVED:
            raise ValueError(
                f"the covariance of these averages is not known: along the path the curvature is "
                f"{ratio:.2f} times that at the mean of the draws, so that the iterates leave the "
                "region where the posterior is nearly normal, and the theory is linear; use larger "
                "minibatches, or SGFS"
            )

    def spectral_radius(self, state: State, target: Target) -> float:
        """Spectral radius of the step's linear part; at 1 or above the chain diverges.

        Only its value near or above 1 matters, so it is 0 for steps that are always stable. It
        draws minibatches of the state's own stream.
        """
        K = self.preconditioner
        if self.stable or K is None:
            return 0.0
        linearised = Linearised(state, target)
        largest = linearised.largest(lambda v: K.matvec(linearised.curvature(v)))
        if self.damping < 1:
            return theory.momentum_radius(np.array([[1.0]]), largest, self.damping)
        return largest - 1.0


class ExactDistribution:
    """The posterior itself, for any shape of it; its covariance is approximated by Lam^-1."""

    def covariance(self, Lam: NDArray, M: NDArray) -> NDArray:
        return np.linalg.inv(Lam)


@dataclass(frozen=True)
class ClosedFormDistribution:
    """A distribution in closed form with independent coordinates, whatever the curvature."""

    closed_form: ClosedForm

    def covariance(self, Lam: NDArray, M: NDArray) -> NDArray:
        variance = self.closed_form.variance
        if not np.isfinite(variance).all():
            raise ValueError(
                "the posterior has no covariance: the rows weigh so little that the noise variance "
                "has no mean; give larger weights, or noise_variance a number"
            )
        return np.diag(variance)


class Linearised:
    """Curvature Lam and gradient noise M at the point of the first chain, as products with vectors.

    With control variates they are the anchor's. Otherwise they come from some 5,000 rows in up to
    ten minibatches, or from 100 rows in more of them, without a D x D matrix. The largest
    eigenvalue is good to some per cent, enough for step-size rules and stability checks.
    """

    def __init__(self, state: State, target: Target) -> None:
        self.dim, self._anchor = target.dim, target.anchor
        self._n_total, self._noise_factor = target.n_total, state.rows.noise_factor
        if target.anchor is not None:
            return
        theta = state.theta[:1]
        few = max(10, math.ceil(100 / state.rows.size))
        enough = min(few, max(3, math.ceil(5000 / state.rows.size)))
        n_batches = 1 if state.rows.full_data else enough
        batches: list[Any] = [rows_of(state.rows.draw(), 0) for _ in range(n_batches)]
        rows = batches[0] if state.rows.full_data else np.concatenate(batches, axis=-1)
        posterior = target.posterior
        self._fisher, self._scores = posterior.fisher(theta, rows), posterior.scores(theta, rows)
        self._prior = target.prior.curvature(theta)

    def curvature(self, v: NDArray) -> NDArray:
        """Lam v, (1, D)."""
        if self._anchor is not None:
            return self._anchor.curvature.matvec(v)
        return self._prior.matvec(v) + self._of_all(self._fisher, v)

    def curvature_matrix(self) -> NDArray:
        """Lam, (D, D)."""
        if self._anchor is not None:
            return self._anchor.curvature.dense()
        scale = self._n_total / self._fisher.n_rows
        return self._prior.dense() + self._fisher.moment(FULL).dense() * scale

    def noise(self, v: NDArray) -> NDArray:
        """M v, (1, D)."""
        if self._anchor is not None:
            return (self._noise_factor * self._n_total) * self._anchor.noise.matvec(v)
        return self._noise_factor * self._of_all(self._scores, v)

    def _of_all(self, factor: Scores, v: NDArray) -> NDArray:
        return factor.gram_matvec(v) * (self._n_total / factor.n_rows)

    def largest(self, matvec: Callable[[NDArray], NDArray]) -> float:
        """Largest eigenvalue of a product of Lam, M and SPD operators."""
        return largest_eigenvalue(matvec, self.dim, np.random.default_rng(0))
