"""Rows in any storage, and the minibatches that are drawn of them. Imports linalg."""

from skbayes_sg.data.base import Batch, Data
from skbayes_sg.data.blockwise import Encode, OutOfCoreData, Source, at_hand, in_partitions
from skbayes_sg.data.columns import Columns, of_columns, of_targets
from skbayes_sg.data.disk import OnDisk, Reader, is_stored, on_disk
from skbayes_sg.data.memory import InMemory
from skbayes_sg.data.passes import ahead, in_threads

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
    "in_partitions",
    "in_threads",
    "is_stored",
    "of_columns",
    "of_targets",
    "on_disk",
]
