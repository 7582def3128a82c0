"""The state of a group of chains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data.minibatches import Batches


@dataclass
class State:
    """The whole checkpoint of one group of chains.

    Attributes
    ----------
    theta : array of shape (chains, D)
    normals : numpy.random.Generator
        Used for injected noise only.
    rows : rows.Minibatches or rows.Partition
        The stream of minibatch rows, with its own generator.
    memory : object
        The sampler's own averages, operators and counters.
    t : int
        Steps taken since the start, burn-in included.
    gradient : array of shape (chains, D)
        Gradient estimate of the last step, at the point before that step.
    """

    theta: NDArray
    normals: np.random.Generator
    rows: Batches
    memory: Any = None
    t: int = 0
    gradient: NDArray | None = None
