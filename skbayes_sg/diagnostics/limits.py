"""Limits beyond which a figure is a warning."""

STEIN_LIMIT = 0.1
"""Distance of a Stein ratio from 1 that matters."""

R_HAT_LIMIT = 1.05
"""R-hat above which chains do not agree; of many chains see `r_hat_limit`."""

ESS_LIMIT = 100
"""Effective draws that are enough: a standard deviation of so many is good to 7 %."""

ENOUGH_ESS = 400
"""Effective draws of bulk and tails up to which a fit goes on (Vehtari et al. 2021)."""

SD_ERROR_LIMIT = 0.1
"""Relative Monte Carlo error of a standard deviation above which a fit goes on."""

SHIFT_LIMIT = 0.2
"""Error of a mean that matters, in posterior standard deviations."""

SPREAD_LIMIT = 0.15
"""Relative error of a standard deviation that matters."""

KNOWN_LIMIT = 1 / 3
"""Share of the rows in what is known of a direction, below which its tails are the prior's."""

BETWEEN_LIMIT = 0.5
"""Share of the variance of predicted probabilities that may lie between chains."""

ERROR_LIMIT = 0.02
"""Error of an averaged probability, by the choice of the chains or the length of the run."""
