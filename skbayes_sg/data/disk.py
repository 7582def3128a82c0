"""Rows that do not fit in memory: memory maps, zarr arrays, HDF5 datasets.

Whatever has `shape`, `dtype` and slices of rows can be read. A pass reads one block after the
other, the next one while this one is computed. No more than two blocks are in memory.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from skbayes_sg.data.base import Batch
from skbayes_sg.data.blockwise import Source, in_partitions, pieces
from skbayes_sg.data.passes import ahead, row_blocks, total_of
from skbayes_sg.linalg.sizes import bytes_to_keep

_BLOCK_BYTES = 1 << 22
_MAPPED_AROUND = 1 << 21  # bytes that one access to a file may bring into the map
_LARGEST_CHUNK = 1 << 26  # bytes; beyond, blocks are not whole chunks
_SHARED_BY_JOBLIB = "joblib_memmapping_folder_"  # in the path of its temporary files


def is_stored(array: Any) -> bool:
    """Whether an array is read from somewhere: it gives slices, and has no memory to share.

    A copy of a memory map is in memory, though its type is the same, and so is an array that joblib
    maps to share it with its workers: there it must give the draws that it gives here. A series of
    pandas has a dtype too, but its slices may mean labels.
    """
    if isinstance(array, np.memmap):
        return array.mode is not None and _SHARED_BY_JOBLIB not in str(array.filename)
    if isinstance(array, np.ndarray):
        return False
    if issparse(array) or any(hasattr(array, name) for name in ("__dlpack__", "iloc")):
        return False
    has = all(hasattr(array, name) for name in ("shape", "dtype", "__getitem__"))
    return has and isinstance(array.dtype, np.dtype)


def on_disk(X: Any) -> bool:
    """Whether X is a stored table that is read in blocks of rows: above 64 MB, by default."""
    if in_partitions(X) or not is_stored(X) or len(X.shape) != 2:
        return False
    return X.shape[0] * X.shape[1] * X.dtype.itemsize > bytes_to_keep()


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

    @property
    def row_bytes(self) -> int:
        """Bytes of a row that has been read."""
        return self.dtype.itemsize * self.X.shape[1]

    def slices(self) -> list[slice]:
        """All rows in blocks of about 4 MB, or of whole chunks: a chunk is decompressed once."""
        chunks = getattr(self.X, "shards", None) or getattr(self.X, "chunks", None)
        step = max(1, _BLOCK_BYTES // self.row_bytes)
        if chunks is not None and chunks[0] * self.row_bytes <= _LARGEST_CHUNK:
            step = max(1, step // chunks[0]) * chunks[0]
        return row_blocks(self.X.shape[0], self.row_bytes, step * self.row_bytes)

    def read(self, rows: slice) -> NDArray:
        """A block, without a check of its numbers."""
        return np.ascontiguousarray(_read(self.X, rows), dtype=self.dtype)


class OnDisk(Source):
    """Rows that are read in blocks, the next one while this one is computed.

    Parameters
    ----------
    X : stored table of shape (n_rows, n_features)
    y : array, in memory or stored, of shape (n_rows,)
    weight : array, in memory or stored, of shape (n_rows,), or None
    """

    def __init__(self, X: Any, y: Any, weight: Any) -> None:
        self._reader, self._y, self._weight = Reader(X), y, weight
        self.n_rows, self.n_features = X.shape
        self.dtype, self.place = self._reader.dtype, place

    def reduce(
        self, function: Callable[[Batch], tuple], row_size: int, pairs: bool = False
    ) -> tuple:
        blocks = ahead(self._read, self._reader.slices())
        parts = (part for block in blocks for part in pieces(block, row_size, pairs))
        return total_of(function, parts)

    def _read(self, rows: slice) -> Batch:
        weight = None if self._weight is None else _read(self._weight, rows)
        return Batch(self._reader.read(rows), _read(self._y, rows), weight, rows.start)


def _read(stored: Any, rows: slice) -> NDArray:
    """Rows of an array, in memory or stored; those of a memory map are copied."""
    if not isinstance(stored, np.memmap):
        return np.asarray(stored[rows])
    block = np.array(stored[rows])
    _release(stored, rows)
    return block


def place(row: int, column: int | None = None) -> str:
    """Where a number of a table is, in words."""
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
    first = max(0, start - _MAPPED_AROUND)
    first -= first % mmap.PAGESIZE
    pages.madvise(mmap.MADV_DONTNEED, first, start + X[rows].nbytes - first)
