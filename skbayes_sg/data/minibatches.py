"""Rows drawn at random: the numbers of minibatches, and the gradient noise of each scheme.

Every step needs an independent subset. In a reshuffled epoch, the usual scheme, the gradient errors
cancel, which about halves the stationary variance of a step without injected noise
(math/gradient_noise.md#why-epochs-fail). Chains that see the same rows without injected noise
coalesce to one point, so each chain has its own subsets; chains with control variates may share
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Rows = NDArray | slice
"""Row numbers, (n,) shared by the chains or (chains, n), or a slice."""

_MAX_INDICES = 1 << 18  # drawn ahead: 2 MB


def deterministic_rng(purpose: str) -> np.random.Generator:
    """A generator that is the same in every fit, and that no user's data come from.

    Data made by ``default_rng(0)`` would otherwise be correlated with the rows that a fit picks.
    """
    return np.random.default_rng(list(f"skbayes_sg {purpose}".encode()))


class SamplingFrame(NamedTuple):
    """The rows that minibatches are drawn from, and the population that these stand for."""

    n_rows: int
    n_total: float | None = None
    """Size of the population (a stream's total); None: the rows are the population."""
    probability: NDArray | None = None
    """(n_rows,), of each row in a draw with replacement; None: all are equally likely."""
    cumulative: NDArray | None = None
    """`cumulative_of` these, where groups of chains share it."""


def cumulative_of(probability: NDArray) -> NDArray:
    """Probability of a row up to each but the last, which takes what is left."""
    cumulative = np.cumsum(probability)
    return cumulative[:-1] / cumulative[-1]


class Minibatches:
    """An endless stream of independent minibatches for a group of chains, part of its checkpoint.

    Parameters
    ----------
    frame : SamplingFrame
        The rows that can be drawn. If they have probabilities, one minibatch serves all chains:
        `draw` gives (size,), and `n_chains` is 1.
    batch_size : int
        Rows per minibatch. Without replacement and with ``n_rows <= batch_size`` every minibatch is
        the whole data set.
    replace : bool
        Draw rows with replacement inside a minibatch.
    rng : numpy.random.Generator
        Used for rows only, so that different samplers can see the same minibatches.
    n_chains : int, default=1
        Chains of the group. Each has rows of its own.

    Attributes
    ----------
    full_data : bool
        Whether every minibatch is the whole data set.
    noise_factor : float
        c in Cov(gradient noise) = c N I1: N/n with replacement, N/n - 1 without
        (math/gradient_noise.md#row-schemes).
    """

    def __init__(
        self,
        frame: SamplingFrame,
        batch_size: int,
        replace: bool,
        rng: np.random.Generator,
        n_chains: int = 1,
    ) -> None:
        n_rows, n_total, probability, cumulative = frame
        n_total = n_rows if n_total is None else n_total
        self.n_rows = n_rows
        self.n_chains = n_chains
        self.size = batch_size if replace else min(batch_size, n_rows)
        self.replace = replace
        self.shared = probability is not None
        self.full_data = not replace and self.size == n_rows
        self.rng = rng
        self.noise_factor = n_total / self.size - (0.0 if replace else 1.0)
        self._cumulative = cumulative
        if probability is not None and cumulative is None:
            self._cumulative = cumulative_of(probability)
        self._ahead: NDArray | None = None
        self._before: Mapping | None = None  # state of the generator, from which they were drawn
        self._next = 0

    def draw(self) -> NDArray | slice:
        """Row numbers of the next minibatches, (chains, size) or (size,).

        It is a full slice if every minibatch is the whole data set.
        """
        if self.full_data:
            return slice(None)
        if self._ahead is None and self._before is not None:  # left out of a pickle
            self.rng.bit_generator.state = self._before
            self._ahead = self._many()
        if self._ahead is None or self._next == len(self._ahead):
            self._before = self.rng.bit_generator.state
            self._ahead = self._many()
            self._next = 0
        self._next += 1
        rows = self._ahead[self._next - 1]
        return rows[0] if self.shared else rows

    def __getstate__(self) -> dict:
        """Without the rows drawn ahead, which take megabytes: the next draw makes them again."""
        return self.__dict__ | {"_ahead": None}

    def __deepcopy__(self, memo: dict) -> Minibatches:
        """A copy with the same rows drawn ahead, which nobody changes, and its own generator."""
        new = memo[id(self)] = object.__new__(type(self))
        vars(new).update(vars(self) | {"rng": deepcopy(self.rng, memo)})
        return new

    def _many(self) -> NDArray:
        """Minibatches of the next steps, (steps, chains, size).

        256 at most are drawn in one call: a call for each would cost more than the rows.
        """
        steps = max(1, min(256, _MAX_INDICES // self.size) // self.n_chains)
        count = steps * self.n_chains
        ahead = self._with_replacement(count) if self.replace else self._subsets(count)
        return ahead.astype(np.intp, copy=False).reshape(steps, self.n_chains, self.size)

    @property
    def _dtype(self) -> type:
        """Dtype of row numbers: the narrow ones sort faster."""
        return np.int32 if self.n_rows < 2**31 else np.int64

    def _with_replacement(self, count: int) -> NDArray:
        if self._cumulative is not None:
            return self._cumulative.searchsorted(self.rng.random((count, self.size)), "right")
        return self.rng.integers(self.n_rows, size=(count, self.size), dtype=self._dtype)

    def _subsets(self, count: int) -> NDArray:
        """Independent uniform subsets, sorted: (count, size).

        Rows are drawn with replacement and sorted, and rows that occur twice are drawn again until
        there are none. The scheme treats all rows alike, so each subset of the given size is
        equally likely. Above a quarter of the rows there are many redraws, and a random ranking is
        cheaper.
        """
        if self.size > self.n_rows // 4:
            keys = self.rng.random((count, self.n_rows))
            return np.sort(np.argpartition(keys, self.size - 1, axis=1)[:, : self.size], axis=1)
        rows = self._with_replacement(count)
        rows.sort(axis=1)
        flat = rows.ravel()
        while True:
            twice = np.flatnonzero(flat[1:] == flat[:-1]) + 1
            # the last row of a subset may be the first of the next
            twice = twice[twice % self.size != 0]
            if not twice.size:
                return rows
            flat[twice] = self.rng.integers(self.n_rows, size=twice.size, dtype=self._dtype)
            again = np.unique(twice // self.size)
            rows[again] = np.sort(rows[again], axis=1)


class Partition:
    """Minibatches of a chunk that is seen once: the parts of a random partition, one after another.

    The rows of a stream are independent draws from its population. So are the parts, and the noise
    factor is N/n. Rows are not drawn again from the chunk: its sampling error would then enter
    every step.

    Parameters
    ----------
    n_rows, batch_size : int
        Rows of the chunk, and rows per part at most.
    rng : numpy.random.Generator
    n_total : float
        Size of the population.
    """

    replace = False
    full_data = False
    shared = False

    def __init__(
        self, n_rows: int, batch_size: int, rng: np.random.Generator, n_total: float
    ) -> None:
        self.rng = rng
        self.n_parts = -(-n_rows // batch_size)
        self.size = n_rows / self.n_parts
        self.noise_factor = n_total / self.size
        self._parts = iter(np.array_split(rng.permutation(n_rows), self.n_parts))

    def draw(self) -> NDArray:
        """Row numbers of the next part, (1, size); StopIteration after the last."""
        return np.sort(next(self._parts))[None]


Batches = Minibatches | Partition
"""A stream of minibatches."""


def rows_of(rows: Rows, chain: int) -> Rows:
    """The rows of one chain of a group, as for a group of one."""
    return rows if isinstance(rows, slice) or rows.ndim == 1 else rows[chain : chain + 1]
