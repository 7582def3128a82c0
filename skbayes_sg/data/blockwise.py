"""Rows out of core, which a fit visits but does not hold: memory maps, zarr arrays, HDF5 datasets.

Whatever has `shape`, `dtype` and slices of rows can be read. A pass reads one block after the
other, the next one while this one is computed. No more than two blocks are in memory. Rows on
workers are in `data.dask`.
"""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from skbayes_sg.data.rows import Batch, Data, InMemory, aligned, row_blocks
from skbayes_sg.data.threads import ahead, total_of
from skbayes_sg.linalg.sizes import bytes_to_keep

_SAMPLE_BYTES = 1 << 24
_BLOCK_BYTES = 1 << 22


def in_partitions(X: Any) -> bool:
    """Whether X is a dask collection."""
    return hasattr(X, "__dask_graph__")


def at_hand(*arrays: Any) -> tuple:
    """Arrays that fit in memory; those that are dask collections are computed."""
    return tuple(array.compute() if in_partitions(array) else array for array in arrays)


def is_stored(array: Any) -> bool:
    """Whether an array is read from somewhere: it gives slices, and has no memory to share.

    A copy of a memory map is in memory, though its type is the same, and so is an array that joblib
    maps to share it with its workers: there it must give the draws that it gives here. A series of
    pandas has a dtype too, but its slices may mean labels.
    """
    if isinstance(array, np.memmap):
        shared = "joblib_memmapping_folder_" in str(array.filename)
        return array.mode is not None and not shared
    if isinstance(array, np.ndarray):
        return False
    if issparse(array) or any(hasattr(array, name) for name in ("__dlpack__", "iloc")):
        return False
    has = all(hasattr(array, name) for name in ("shape", "dtype", "__getitem__"))
    return has and isinstance(array.dtype, np.dtype)


def is_out_of_core(X: Any) -> bool:
    """Whether X is a dask collection, or a stored table above 64 MB, by default."""
    if hasattr(X, "__dask_graph__"):
        return True
    if not is_stored(X) or len(X.shape) != 2:
        return False
    return X.shape[0] * X.shape[1] * X.dtype.itemsize > bytes_to_keep()


Encode = Callable[[NDArray, NDArray | None], tuple[NDArray, NDArray | None]]
"""Targets and weights of some rows as they were given -> those of the model."""


def entrywise(function: Callable[..., Any], *results: Any) -> Any:
    """`function` of arrays; entry by entry where results are tuples or dicts of arrays."""
    first = results[0]
    if isinstance(first, dict):
        return type(first)(**{key: function(*(result[key] for result in results)) for key in first})
    if isinstance(first, tuple):
        return tuple(function(*entries) for entries in zip(*results, strict=True))
    return function(*results)


class Source(ABC):
    """Rows with targets and weights as they were given.

    Attributes
    ----------
    n_rows, n_features : int
    n_known : int
        Columns beside the features that blocks end with: known parts of the outputs.
    dtype : dtype
        Of the blocks, float32 or float64. All numbers but float32 become float64, as in
        scikit-learn.
    place : callable
        Of the number of a row, and of a column or None: where that is, in words.
    """

    n_rows: int
    n_features: int
    n_known: int
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
    rows = InMemory(X, y, weight, float(X.shape[0]))
    for block in rows.blocks(row_size, pairs):
        yield rows.load(block)._replace(start=start + block.start)


# -- on disk -----------------------------------------------------------------------------------


class Reader:
    """Blocks of rows of a stored table, as contiguous float32 or float64.

    float32 stays float32. All other numbers become float64, as in scikit-learn.

    Parameters
    ----------
    X : stored table of shape (n_rows, n_features)

    Raises
    ------
    ValueError
        If X does not hold real numbers.
    """

    def __init__(self, X: Any) -> None:
        if X.dtype.kind not in "biuf":
            raise ValueError(f"X must hold real numbers, got dtype {X.dtype}; encode its columns")
        self.X = X
        self.dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)

    def slices(self) -> list[slice]:
        """All rows in blocks of about 4 MB, or of whole chunks: a chunk is decompressed once."""
        chunks = getattr(self.X, "shards", None) or getattr(self.X, "chunks", None)
        row_bytes = self.dtype.itemsize * self.X.shape[1]
        step = max(1, _BLOCK_BYTES // row_bytes)
        if chunks is not None and chunks[0] * row_bytes <= 1 << 26:  # 64 MB
            step = max(1, step // chunks[0]) * chunks[0]
        return row_blocks(self.X.shape[0], row_bytes, step * row_bytes)

    def read(self, rows: slice) -> NDArray:
        """A block, without a check of its numbers."""
        return aligned(_read(self.X, rows), self.dtype)


class OnDisk(Source):
    """Rows that are read in blocks, the next one while this one is computed.

    Parameters
    ----------
    X : stored table of shape (n_rows, n_features)
    y : array, in memory or stored, of shape (n_rows,)
    weight : array, in memory or stored, of shape (n_rows,), or None
    known : array of shape (n_rows, n_known), optional
    """

    def __init__(self, X: Any, y: Any, weight: Any, known: NDArray | None = None) -> None:
        self._reader, self._y, self._weight, self._known = Reader(X), y, weight, known
        self.n_rows, self.n_features = X.shape
        self.n_known = 0 if known is None else known.shape[1]
        self.dtype, self.place = self._reader.dtype, place

    def reduce(
        self, function: Callable[[Batch], tuple], row_size: int, pairs: bool = False
    ) -> tuple:
        blocks = ahead(self._read, self._reader.slices())
        parts = (piece for block in blocks for piece in pieces(block, row_size, pairs))
        return total_of(function, parts)

    def _read(self, rows: slice) -> Batch:
        weight = None if self._weight is None else _read(self._weight, rows)
        X = self._reader.read(rows)
        if self._known is not None:
            X = np.hstack([X, self._known[rows].astype(X.dtype)])
        return Batch(X, _read(self._y, rows), weight, rows.start)


def _read(stored: Any, rows: slice) -> NDArray:
    """Rows of an array, in memory or stored; those of a memory map are copied."""
    if not isinstance(stored, np.memmap):
        return np.asarray(stored[rows])
    block = np.array(stored[rows])
    _release(stored, rows)
    return block


def place(row: int, column: int | None = None) -> str:
    """Place of a number of a table, in words."""
    return f"row {row}" if column is None else f"row {row}, column {column}"


def _release(X: np.memmap, rows: slice) -> None:
    """Give the pages of these rows back; the system keeps them for the next pass if it can.

    Otherwise all of the file would count as memory of this process. The system may have mapped some
    pages before the first row again, so those go too. The pages of a private map may hold changes
    that no file has, and are kept.
    """
    if X.mode not in ("r", "r+") or not X.flags.c_contiguous or not hasattr(mmap, "MADV_DONTNEED"):
        return
    pages = X._mmap  # type: ignore[attr-defined]
    start = X[rows].ctypes.data - np.frombuffer(pages, np.uint8).ctypes.data
    first = max(0, start - (1 << 21))  # that one access may bring into the map
    first -= first % mmap.PAGESIZE
    pages.madvise(mmap.MADV_DONTNEED, first, start + X[rows].nbytes - first)
