"""Limits beyond which a figure is a warning."""

STEIN_LIMIT = 0.1
"""Distance of a Stein ratio from 1 that matters."""

R_HAT_LIMIT = 1.05
"""R-hat above which chains do not agree; of many chains see `r_hat_limit`."""

ESS_LIMIT = 100
"""Effective draws that are enough: a standard deviation of so many is good to 7 %."""
