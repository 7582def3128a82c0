"""Rows in any storage, their columns of categories, and minibatches drawn of them.

Imports frames, linalg and validation.
"""

from skbayes_sg.data.blockwise import (
    Encode,
    OnDisk,
    OutOfCoreData,
    Reader,
    Source,
    at_hand,
    in_partitions,
    is_out_of_core,
    is_stored,
)
from skbayes_sg.data.columns import Columns, of_columns, of_targets, with_columns
from skbayes_sg.data.minibatches import deterministic_rng
from skbayes_sg.data.rows import Batch, Data, InMemory, evenly_spaced, row_blocks
from skbayes_sg.data.threads import (
    ahead,
    in_order,
    in_threads,
    of_blocks,
    one_thread,
    threads_of_blas,
)

__all__ = [
    "Batch",
    "Columns",
    "Data",
    "Encode",
    "InMemory",
    "OnDisk",
    "OutOfCoreData",
    "Reader",
    "Source",
    "ahead",
    "at_hand",
    "deterministic_rng",
    "evenly_spaced",
    "in_order",
    "in_partitions",
    "in_threads",
    "is_out_of_core",
    "is_stored",
    "of_blocks",
    "of_columns",
    "of_targets",
    "one_thread",
    "row_blocks",
    "threads_of_blas",
    "with_columns",
]
