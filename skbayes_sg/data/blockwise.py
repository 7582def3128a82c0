"""Rows out of core, which a fit visits but does not hold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data.base import Batch, Data
from skbayes_sg.data.memory import InMemory
from skbayes_sg.data.passes import pass_blocks

_SAMPLE_BYTES = 1 << 24

Encode = Callable[[NDArray, NDArray | None], tuple[NDArray, NDArray | None]]
"""Targets and weights of some rows as they were given -> those of the model."""


def in_partitions(X: Any) -> bool:
    """Whether X is a dask collection."""
    return hasattr(X, "__dask_graph__")


def at_hand(*each: Any) -> tuple:
    """Arrays that fit in memory; those that are dask collections are computed."""
    return tuple(one.compute() if in_partitions(one) else one for one in each)


def entrywise(function: Callable[..., Any], *results: Any) -> Any:
    """`function` of arrays; entry by entry where results are tuples or dicts of arrays."""
    first = results[0]
    if isinstance(first, dict):
        return type(first)(**{key: function(*(one[key] for one in results)) for key in first})
    if isinstance(first, tuple):
        return tuple(function(*each) for each in zip(*results, strict=True))
    return function(*results)


class Source(ABC):
    """Rows with targets and weights as they were given.

    Attributes
    ----------
    n_rows, n_features : int
    dtype : dtype
        Of the blocks, float32 or float64. All numbers but float32 become float64, as in
        scikit-learn.
    place : callable
        Of the number of a row, and of a column or None: where that is, in words.
    """

    n_rows: int
    n_features: int
    dtype: np.dtype
    place: Callable[..., str]

    @abstractmethod
    def reduce(
        self, function: Callable[[Batch], tuple], row_size: int, pairs: bool = False
    ) -> tuple:
        """As `Data.reduce`, with targets and weights as they were given."""

    def sample_rows(self) -> NDArray:
        """Ascending numbers of random rows, about 16 MB and at least 2,000; always the same."""
        size = max(2000, _SAMPLE_BYTES // (self.dtype.itemsize * self.n_features))
        if self.n_rows <= size:
            return np.arange(self.n_rows)
        return np.unique(np.random.default_rng(0).integers(self.n_rows, size=size))


class OutOfCoreData(Data):
    """Rows that are visited at every pass. Chains run on a pool of rows.

    Parameters
    ----------
    source : Source
    encode : function
    sample : InMemory
        Random rows.
    """

    def __init__(self, source: Source, encode: Encode, sample: InMemory) -> None:
        self._source: Source | None = source
        self._encode: Encode | None = encode
        self._sample = sample
        self._n_rows = source.n_rows
        self.n_total = float(source.n_rows)

    @property
    def n_rows(self) -> int:
        return self._n_rows

    @property
    def sample(self) -> InMemory:
        return self._sample

    def reduce(
        self, function: Callable[[Batch], tuple], row_size: int, pairs: bool = False
    ) -> tuple:
        assert self._source is not None
        assert self._encode is not None
        return self._source.reduce(partial(_of_encoded, function, self._encode), row_size, pairs)

    def __getstate__(self) -> dict[str, Any]:
        """Without the rows: chains in other processes need none, and some stores cannot be sent."""
        return self.__dict__ | {"_source": None, "_encode": None}


def _of_encoded(function: Callable[[Batch], tuple], encode: Encode, batch: Batch) -> tuple:
    y, weight = encode(batch.y, batch.weight)
    return function(batch._replace(y=y, weight=weight))


def pieces(batch: Batch, row_size: int, pairs: bool) -> Iterator[Batch]:
    """A block in parts for a pass, see `Data.reduce`."""
    X, y, weight, start = batch
    for rows in pass_blocks(len(X), max(X.shape[1], row_size), X.itemsize, pairs):
        part = None if weight is None else weight[rows]
        yield Batch(X[rows], y[rows], part, start + rows.start)
