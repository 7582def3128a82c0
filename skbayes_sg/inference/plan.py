"""What a fit asks of others: of the kind of its posterior, and of who looks on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.chains.run import Chain, DrawBlock
from skbayes_sg.inference.deferred import Deferred
from skbayes_sg.inference.engine import Engine
from skbayes_sg.inference.options import Choice, Fingerprint, Options
from skbayes_sg.inference.result import Fit
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.gaussian import Distribution, InitialPoint, Mode


class Plan(Protocol):
    """What is particular to a kind of posterior: one with a mode, or with many."""

    dtype: type
    """Type of the draws."""

    def first(self, posterior: Posterior) -> Choice:
        """The best sampler for this posterior, by its size, before any step."""

    def fallback(self, posterior: Posterior, why: str, expandable: bool = True) -> Choice:
        """The sampler to run where the first one is refused, and `why`.

        `expandable`: whether the posterior can be expanded around a point.
        """

    def presets(self, dim: int) -> dict[str, Choice]:
        """Samplers by name, for `dim` parameters; 0 if the number is not known yet."""

    def start(
        self,
        posterior: Posterior,
        rng: np.random.Generator,
        n_chains: int,
        last: NDArray | None,
        initial: InitialPoint | None = None,
    ) -> tuple[NDArray, Mode | None]:
        """Starting points (n_chains, D), and the mode; None where there are many.

        `last` are the last points of an earlier fit, (n_chains, D), and `initial` is near the mode,
        if such a point is known.
        """

    def n_draws(
        self, options: Options, n_chains: int, dim: int, near_normal: bool = False
    ) -> tuple[int, int, list[str]]:
        """Draws of each chain at first and at most, and what memory keeps them from being.

        `near_normal`: whether draws are to be matched, and their distribution is near normal.
        """

    def agreement(self, fit: Fit, posterior: Posterior, n_gradients: int) -> dict[str, float]:
        """How far the chains agree; it may compute `n_gradients` gradients of all rows."""

    def is_enough(self, fit: Fit) -> bool:
        """Whether more draws would not help: chains agree, or their distribution is wrong."""

    def gaussian(
        self, fit: Fit, posterior: Posterior
    ) -> Distribution | Deferred[Distribution] | None:
        """The normal distribution that stands for the posterior; None where there are many modes.

        `posterior` is under the prior in which the engine was prepared.
        """


class Checkpoint(Protocol):
    """What holds the draws of a fit that was stopped."""

    def load(self, fingerprint: Fingerprint) -> tuple[Engine, list[DrawBlock]] | None:
        """The engine and its draws so far; None if there are none."""


class Watcher(Protocol):
    """What looks on while chains run: the callbacks of an estimator."""

    end: float
    ended: list[str]

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The first one, if there is one."""

    def over(
        self,
        engine: Engine,
        n_draws: int,
        summary: Callable[[list[Chain]], Fit],
        fingerprint: Fingerprint | None,
    ) -> Callable[[list[DrawBlock]], bool] | None:
        """The function to call after each block of draws."""

    def end_the_fit(self) -> bool:
        """Whether the sampling ends between two rounds of it."""

    def close(self, n_drawn: int, n_draws: int) -> list[str]:
        """What is said where each chain has some of so many draws."""
