"""The interface of data to a pass over rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from skbayes_sg.data.memory import InMemory


class Batch(NamedTuple):
    """A block of rows, dense unless the model takes sparse ones."""

    X: NDArray
    """(n, features), an array or CSR rows; (chains, n, features) where each chain has its own"""
    y: NDArray
    """(n,) or (chains, n), and an axis of responses more if there may be several"""
    weight: NDArray | None
    """(n,) or (chains, n); None where all weights are 1"""
    start: int = 0
    """number of the first row in the data, in a pass over all"""

    @property
    def root_weight(self) -> NDArray | None:
        """Square root of the weight, which a square root of a second moment gets."""
        return None if self.weight is None else np.sqrt(self.weight)


class Data(ABC):
    """Rows of X with their targets and weights. All posteriors of a fit share one, so it is frozen.

    Attributes
    ----------
    n_total : float
        Size of the population of which the rows are a random sample; `n_rows` if they are all.
    """

    n_total: float

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Rows of X."""

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return self.sample.X.shape[1]

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.sample.weight is not None

    @property
    @abstractmethod
    def sample(self) -> InMemory:
        """Rows in memory that can be drawn: all rows, or a random sample of them."""

    @abstractmethod
    def reduce(
        self, function: Callable[[Batch], tuple], row_size: int, pairs: bool = False
    ) -> tuple:
        """`function` of each block, added up entry by entry: one pass over the rows.

        Parameters
        ----------
        function : function
            Of a batch; a tuple of numbers, arrays, operators or lists.
        row_size : int
            Numbers that it holds for each row, if more than its features.
        pairs : bool, default=False
            Whether a sum has a number for each pair of them.
        """
