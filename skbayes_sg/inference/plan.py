"""What an estimator says of where chains start, and of what they sample with."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.inference.request import Choice
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.gaussian import InitialPoint, Mode
from skbayes_sg.samplers.base import NoGainError


class Start(NamedTuple):
    """The start of the chains."""

    theta: NDArray
    """(n_chains, D)"""
    mode: Mode | None
    """None where there are many modes, and so no anchor."""


class Plan(Protocol):
    """The defaults of a family of estimators."""

    def first(self, posterior: Posterior) -> Choice:
        """The best sampler for this posterior, by its size, before any step."""

    def fallback(self, posterior: Posterior, refused: NoGainError) -> Choice:
        """The sampler to run if control variates do not pay."""

    def start(
        self,
        posterior: Posterior,
        rng: np.random.Generator,
        n_chains: int,
        last: NDArray | None,
        initial: InitialPoint | None = None,
    ) -> Start:
        """The start of the chains.

        `last` are the last points of an earlier fit, (n_chains, D), and `initial` is near the mode,
        if such a point is known.
        """
