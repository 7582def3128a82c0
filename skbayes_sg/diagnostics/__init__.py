"""How far to trust a set of draws. Arrays in, numbers out; vectorised over parameters.

Draws have shape (chains, draws, D) unless said otherwise. R-hat and effective sample sizes are
those of Vehtari, Gelman, Simpson, Carpenter & Buerkner (2021), as ArviZ computes them.

`weights`, (draws,), are those of the draws of a chain, the same for every chain. Effective sizes
then are those of weighted means (math/monte_carlo.md#weighted-draws). Draws of weight 0 do not
count.

Imports nothing of the package.
"""

from skbayes_sg.diagnostics.convergence import (
    autocorrelation_time,
    ess_bulk,
    ess_mean,
    ess_tail,
    hdi,
    least_agreed,
    mcse_mean,
    moments,
    quantile,
    r_hat,
    r_hat_and_ess_bulk,
    r_hat_limit,
    sd_error,
    share,
    systematic,
)
from skbayes_sg.diagnostics.errors import covariance_error, mean_error
from skbayes_sg.diagnostics.gradients import SteinSums, stein_ratio, stein_ratio_of_sums
from skbayes_sg.diagnostics.limits import ESS_LIMIT, R_HAT_LIMIT, STEIN_LIMIT

__all__ = [
    "ESS_LIMIT",
    "R_HAT_LIMIT",
    "STEIN_LIMIT",
    "SteinSums",
    "autocorrelation_time",
    "covariance_error",
    "ess_bulk",
    "ess_mean",
    "ess_tail",
    "hdi",
    "least_agreed",
    "mcse_mean",
    "mean_error",
    "moments",
    "quantile",
    "r_hat",
    "r_hat_and_ess_bulk",
    "r_hat_limit",
    "sd_error",
    "share",
    "stein_ratio",
    "stein_ratio_of_sums",
    "systematic",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
