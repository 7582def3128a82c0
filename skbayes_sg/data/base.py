"""The interface of data to a pass over rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from numpy.typing import NDArray

from skbayes_sg.rows import Rows


class Batch(NamedTuple):
    """A dense block of rows."""

    X: NDArray
    """(n, features), or (chains, n, features) where each chain has rows of its own"""
    y: NDArray
    """(n,) or (chains, n)"""
    weight: NDArray | None
    """as y; None where all weights are 1"""


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
    @abstractmethod
    def n_features(self) -> int:
        """Columns of X."""

    @property
    @abstractmethod
    def weighted(self) -> bool:
        """Whether rows have weights."""

    @abstractmethod
    def load(self, rows: Rows) -> Batch:
        """A dense block of rows, (n,) shared by the chains or (chains, n), or a slice."""

    @abstractmethod
    def blocks(self, row_size: int, rows: NDArray | None = None) -> list[Rows]:
        """All rows, or the given ones, in pieces of a few megabytes.

        Parameters
        ----------
        row_size : int
            Numbers that a pass holds for each row, if more than its features.
        rows : integer array, optional
        """

    def reduce(
        self,
        function: Callable[[Batch], tuple],
        row_size: int,
        rows: NDArray | None = None,
    ) -> tuple:
        """`function` of each block, added up entry by entry: one pass over the rows."""
        first, *others = self.blocks(row_size, rows)
        total = function(self.load(first))
        for block in others:
            part = function(self.load(block))
            total = tuple(a + b for a, b in zip(total, part, strict=True))
        return total
