"""Likelihoods: per-row log likelihoods, scores and Fisher factors.

Imports data, linalg and priors.
"""

from skbayes_sg.models.base import Model, NullDirections
from skbayes_sg.models.binomial import BetaBinomial, Binomial
from skbayes_sg.models.checks import check_family
from skbayes_sg.models.drbm import DRBM
from skbayes_sg.models.gamma import Gamma
from skbayes_sg.models.linear import Linear
from skbayes_sg.models.mlp import MLP, GaussianMLP
from skbayes_sg.models.negative_binomial import NegativeBinomial
from skbayes_sg.models.ordinal import Ordinal
from skbayes_sg.models.poisson import Poisson
from skbayes_sg.models.softmax import Softmax
from skbayes_sg.models.student import Student

__all__ = [
    "DRBM",
    "MLP",
    "BetaBinomial",
    "Binomial",
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
    "check_family",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
