"""Log densities of coefficients, their modes and Gaussian approximations, and control variates.

Imports data, diagnostics, linalg, models, priors and samplers.
"""

from skbayes_sg.posterior.base import (
    Expansion,
    Posterior,
    affordable,
    is_high_dimensional,
)

__all__ = [
    "Expansion",
    "Posterior",
    "affordable",
    "is_high_dimensional",
]
