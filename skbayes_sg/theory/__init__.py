"""Stationary distributions of linear stochastic recursions, in closed form, before any run.

Imports nothing of the package.
"""

from skbayes_sg.theory.least_squares import lsq_cov, lsq_noise
from skbayes_sg.theory.recursions import (
    iasg_cov,
    iasg_error,
    iat,
    kl_gauss,
    kl_stationary,
    momentum_cov,
    momentum_radius,
    noise_cov,
    optimal_preconditioner,
    sgld_cov,
    spectral_radius,
    stationary_cov,
    underdamped_cov,
)

__all__ = [
    "iasg_cov",
    "iasg_error",
    "iat",
    "kl_gauss",
    "kl_stationary",
    "lsq_cov",
    "lsq_noise",
    "momentum_cov",
    "momentum_radius",
    "noise_cov",
    "optimal_preconditioner",
    "sgld_cov",
    "spectral_radius",
    "stationary_cov",
    "underdamped_cov",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
