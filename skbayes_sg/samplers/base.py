"""What a sampler is: parameters of an update formula, and a state that the formula moves.

One convention in the whole package: gradients are those of the log posterior in sum units, and a
``step_size`` multiplies the gradient as it stands (eta of Karagiannis; Welling & Teh's epsilon is
``2 * step_size``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator


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


class Sampler(BaseEstimator, ABC):
    """A transition that moves a group of chains in lock step.

    A new sampler writes `step`, and `start` if it keeps a memory; the other hooks have defaults.
    """

    batch_size: int = 500
    replace: bool = False

    remedy = "take smaller steps"
    """What to do when a chain diverges, for the error message."""

    def init(self, posterior, theta: NDArray, rng: np.random.Generator) -> State:
        """State of a group of chains at theta (chains, D), with streams spawned from `rng`."""
        self.validate(posterior)
        noise, rows = rng.spawn(2)
        state = State(theta.copy(), noise, posterior.minibatches(self.batch_size, self.replace, rows, len(theta)))
        self.start(state, posterior)
        return state

    def validate(self, posterior) -> None:
        """Refuse parameters that are impossible, or impossible for this posterior.

        Raises
        ------
        ValueError, TypeError
            Naming the parameter and the remedy.
        """
        if isinstance(self.batch_size, bool) or not isinstance(self.batch_size, Integral):
            raise TypeError(f"batch_size must be an integer, got {self.batch_size!r}")
        if self.batch_size < 2:
            raise ValueError(
                f"batch_size must be at least 2, got {self.batch_size}: the noise of a gradient is measured "
                "from the spread of its rows"
            )

    def start(self, state: State, posterior) -> None:  # noqa: B027  (no memory is a good default)
        """Fill ``state.memory`` before the first step."""

    @abstractmethod
    def step(self, state: State, posterior) -> None:
        """Move the group by one transition, in place; leave the gradient it used in ``state.gradient``."""

    def restart(self, state: State) -> None:  # noqa: B027
        """An eighth, a quarter, a half of burn-in is over: forget what was learnt far from the mode."""

    def freeze(self, state: State, posterior) -> None:  # noqa: B027
        """Burn-in is over: stop adapting."""

    def draw(self, state: State) -> NDArray:
        """What is recorded, (chains, D)."""
        return state.theta

    def weight(self, state: State) -> float:
        """Weight of the draw about to be recorded."""
        return 1.0

    def complaints(self, state: State) -> list[str]:
        """What the user must be told of the finished run: figure and knob."""
        return []
