"""Priors of the parameters. A posterior adds one, once, to the likelihood of its rows.

A prior has a mean and a precision operator, so that the posterior of some rows can be the prior of
the next (math/streams.md#streams-as-bayesian-updating). Imports linalg, diagnostics and validation.
"""

from skbayes_sg.priors.base import Prior
from skbayes_sg.priors.conditioned import (
    ConditionedPrior,
    Distribution,
    NormalPrior,
    with_rows,
    without_rows,
)
from skbayes_sg.priors.normal import GaussianPrior, Precision
from skbayes_sg.priors.normal_inverse_gamma import NormalInverseGammaPrior
from skbayes_sg.priors.shrinkage import Horseshoe, ScaleMixture, StudentT

__all__ = [
    "ConditionedPrior",
    "Distribution",
    "GaussianPrior",
    "Horseshoe",
    "NormalInverseGammaPrior",
    "NormalPrior",
    "Precision",
    "Prior",
    "ScaleMixture",
    "StudentT",
    "with_rows",
    "without_rows",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
