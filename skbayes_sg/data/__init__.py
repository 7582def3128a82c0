"""Rows in any storage."""

from skbayes_sg.data.base import Batch, Data
from skbayes_sg.data.memory import InMemory, dense

__all__ = ["Batch", "Data", "InMemory", "dense"]
