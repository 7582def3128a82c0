"""Likelihoods: per-row log likelihoods, scores and Fisher factors."""

from skbayes_sg.models.base import Model
from skbayes_sg.models.softmax import Softmax

__all__ = ["Model", "Softmax"]
