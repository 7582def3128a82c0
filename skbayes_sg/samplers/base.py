"""What a sampler is: parameters of an update formula, and a state that the formula moves.

One convention in the whole package: gradients are those of the log posterior in sum units, and a
``step_size`` multiplies the gradient as it stands (eta of Karagiannis; Welling & Teh's epsilon is
``2 * step_size``).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skbayes_sg.linalg import largest_eigenvalue

_LINEARISED_ROWS = 5000


@dataclass
class State:
    """The whole checkpoint of one group of chains.

    Attributes
    ----------
    theta : array of shape (chains, D)
    noise : numpy.random.Generator
        Injected noise and nothing else.
    rows : rows.Minibatches
        The stream of minibatch rows, with its own generator.
    memory : object
        The sampler's own: averaged covariances, frozen operators, counters.
    t : int
        Steps taken since the start, burn-in included.
    gradient : array of shape (chains, D)
        Gradient estimate that the last step used, at the theta it left.
    """

    theta: NDArray
    noise: np.random.Generator
    rows: Any
    memory: Any = None
    t: int = 0
    gradient: NDArray | None = None


class NoGainError(ValueError):
    """What was asked for costs more effective draws on these data than it brings.

    `heavy` says that rows of heavy tails are why, under which bold steps fail as well.
    """

    def __init__(self, message: str, heavy: bool = False) -> None:
        super().__init__(message)
        self.heavy = heavy


def rows_of(rows: NDArray | slice, chain: int) -> NDArray | slice:
    """The rows of one chain of a group, as for a group of one."""
    return rows if isinstance(rows, slice) or rows.ndim == 1 else rows[chain : chain + 1]


class Linearised:
    """Curvature Lam and gradient noise M where the first chain is, from some 5,000 rows in minibatches, as products.

    Good to some per cent in the largest eigenvalue, at no D x D matrix: for step-size rules and
    refusals.
    """

    def __init__(self, state: State, posterior) -> None:
        theta = state.theta[:1]
        enough = min(10, max(3, -(-_LINEARISED_ROWS // state.rows.size)))
        batches = [rows_of(state.rows.draw(), 0) for _ in range(1 if state.rows.whole else enough)]
        self._fishers = [posterior.fisher(theta, rows) for rows in batches]
        self._scores = [posterior.scores(theta, rows) for rows in batches]
        self._prior = posterior.prior.curvature(theta)
        self._n_total, self._noise_factor = posterior.n_total, state.rows.noise_factor
        self.dim = posterior.dim

    def curvature(self, v: NDArray) -> NDArray:
        """Lam v, (1, D)."""
        return self._prior.matvec(v) + self._average(self._fishers, v)

    def noise(self, v: NDArray) -> NDArray:
        """M v, (1, D)."""
        return self._noise_factor * self._average(self._scores, v)

    def _average(self, factors: list, v: NDArray) -> NDArray:
        return sum(f.gram_matvec(v) * (self._n_total / f.n_rows) for f in factors) / len(factors)

    def largest(self, matvec: Callable[[NDArray], NDArray]) -> float:
        """Largest eigenvalue of a product of these and SPD operators."""
        return largest_eigenvalue(matvec, self.dim, np.random.default_rng(0))


class Sampler(BaseEstimator, ABC):
    """A transition that moves a group of chains in lock step.

    A new sampler writes `step`, and `start` if it keeps a memory; the other hooks have defaults.
    """

    variance_reduction: str | None = None  # "control_variate": the posterior it is given is to be anchored
    batch_size: int | str  # of the samplers that draw minibatches
    replace: bool

    smallest_batch = 2
    """Two rows have a spread, from which gradient noise is measured; one is enough where nothing is."""
    remedy = "take smaller steps"
    """What to do when a chain diverges, for the error message."""
    bias_remedy = "lower step_size"
    """What to do when the Stein ratio is off, for the warning."""
    follows_streams = True
    """Whether it can sample from data that pass by once."""
    draws_are_points = True
    """Whether draws are points of the chain, so that the Stein ratio of the chain is theirs."""

    def init(self, posterior, theta: NDArray, rng: np.random.Generator) -> State:
        """State of a group of chains at theta (chains, D), with streams spawned from `rng`."""
        self.validate(posterior)
        noise, rows = rng.spawn(2)
        state = State(theta.copy(), noise, self.minibatches(posterior, rows, len(theta)))
        self.start(state, posterior)
        return state

    @property
    def rows_per_step(self) -> int:
        """The batch size; 500 where it is left to the sampler."""
        return 500 if self.batch_size == "auto" else self.batch_size  # type: ignore[return-value]

    def settle(self, posterior) -> None:
        """Choose, in place, what was left open, for this posterior: anchored, if control variates are asked for.

        Raises
        ------
        NoGainError
            If what was asked for does not pay on these data.
        """

    def validate(self, posterior) -> None:
        """Refuse parameters that are impossible, or impossible for this posterior.

        Raises
        ------
        ValueError, TypeError
            Naming the parameter and the remedy.
        """
        size = self.rows_per_step
        if isinstance(size, bool) or not isinstance(size, Integral):
            raise TypeError(f"batch_size must be an integer, got {self.batch_size!r}")
        if size < self.smallest_batch:
            raise ValueError(
                f"batch_size must be at least {self.smallest_batch}, got {size}"
                + (": the noise of a gradient is measured from the spread of its rows" if size > 0 else "")
            )

    def minibatches(self, posterior, rng: np.random.Generator, n_chains: int):
        """The stream of rows of a group of chains."""
        return posterior.minibatches(self.rows_per_step, self.replace, rng, n_chains)

    def start(self, state: State, posterior) -> None:
        """Fill ``state.memory`` before the first step."""

    @abstractmethod
    def step(self, state: State, posterior) -> None:
        """Move the group by one transition, in place; leave the gradient it used in ``state.gradient``."""

    def restart(self, state: State, posterior) -> None:
        """An eighth, a quarter, a half of burn-in is over: forget what was learnt far from the mode."""

    def freeze(self, state: State, posterior) -> None:
        """Burn-in is over: stop adapting."""

    def change_prior(self, state: State, posterior) -> None:
        """The posterior has another prior than at the last step: bring what depends on it up to date."""

    def draw(self, state: State) -> NDArray:
        """What is recorded, (chains, D)."""
        return state.theta

    def weight(self, state: State) -> float:
        """Weight of the draw about to be recorded."""
        return 1.0

    def auto_burn_in(self, state: State) -> int:
        """Steps of burn-in that ``burn_in="auto"`` stands for.

        Half of 10 N/n steps forget the start (to e^-10 at the autocorrelation time N/n of SGFS), half
        average the matrices.
        """
        return max(1000, math.ceil(10 * (state.rows.noise_factor + 1)))

    def auto_thin(self, state: State) -> int:
        """Steps per kept draw of ``thin="auto"``: a fifth of N/n loses no effective draw."""
        return max(1, round((state.rows.noise_factor + 1) / 5))

    def rows_touched(self, state: State) -> float:
        """Rows read since the start, for all chains of the group; a minibatch that they share counts once."""
        return state.t * state.rows.size * (1 if state.rows.shared else len(state.theta))

    def spectral_radius(self, state: State, posterior) -> float:
        """Of the step's linear part at the chain's point: at 1 or above it does not settle. 0 if it always does.

        Draws minibatches of the state's own stream.
        """
        return 0.0

    def stationary_covariance(self, state: State, Lam: NDArray, M: NDArray) -> NDArray:
        """What theory expects of the frozen step under curvature Lam and minibatch gradient noise M, all (D, D).

        Raises
        ------
        ValueError
            If it has no stationary law: a decreasing step, or one that is unstable under this curvature.
        """
        raise NotImplementedError

    def figures(self, state: State) -> dict[str, float]:
        """What this sampler adds to the estimator's `diagnostics_`."""
        return {}

    def complaints(self, state: State) -> list[str]:
        """What the user must be told of the finished run: figure and knob."""
        return []
