"""Likelihoods: per-row log likelihoods, scores and Fisher factors.

Imports data, linalg and priors.
"""

from skbayes_sg.models.base import Model, NullDirections
from skbayes_sg.models.dispersed import Gamma, NegativeBinomial
from skbayes_sg.models.drbm import DRBM
from skbayes_sg.models.gaussian_mlp import GaussianMLP
from skbayes_sg.models.linear import Linear
from skbayes_sg.models.mlp import MLP
from skbayes_sg.models.ordinal import Ordinal
from skbayes_sg.models.poisson import Poisson
from skbayes_sg.models.softmax import Softmax
from skbayes_sg.models.student import Student

__all__ = [
    "DRBM",
    "MLP",
    "Gamma",
    "GaussianMLP",
    "Linear",
    "Model",
    "NegativeBinomial",
    "NullDirections",
    "Ordinal",
    "Poisson",
    "Softmax",
    "Student",
]
