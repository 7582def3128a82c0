"""Limits beyond which a figure is a warning, and why each is where it is.

They are of what a user reads: errors in posterior standard deviations, ratios of variances,
effective draws. An estimate must also be beyond its limit by more than chance (`CERTAIN_ERRORS`).
All of them are listed in math/diagnostics.md#limits.
"""

CERTAIN_ERRORS = 4.0
"""Standard errors by which an estimate is beyond its limit: the worst of many parameters counts."""

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

POOL_ERROR_LIMIT = 0.05
"""Error of the posterior mean by the choice of a pool of rows, in posterior standard deviations."""

INFORMATION_LIMIT = 2.5
"""Variance of weights where rows know them best, over that of the posterior: SGFS with right
averages has up to 1.8."""

STEIN_EXCUSE = 0.5
"""What the standard error of a Stein ratio excuses at most: heavy tails make it large."""

DRIFT_ERRORS = 5.0
"""Standard errors of the log loss that chunks of a stream would save by going on as the last ones
pulled: at most one in a hundred steady streams is beyond."""

FOLDED_SHIFT_LIMITS = 0.3, 0.5
"""Shifts of a stream's mean by rows that are summed up, in posterior standard deviations: above the
first and two standard errors, or above the second."""

STREAM_SPREAD_LIMIT = 0.2
"""Relative error of a stream's standard deviation: rows of one class, in order, come near it."""

STREAM_DENSITY_LIMIT = 0.15
"""Standard deviation of the log density of a normal distribution over the right one, by the root of
the number of parameters: streams whose standard deviations are within a tenth of the right ones
have up to 0.13, but for a negative binomial one of 30 rows
(benchmarks/exactness/stream_misfit.py)."""

DISPERSION_LIMIT = 1.5
"""Pearson's dispersion, at which intervals are a fifth too narrow; and by five standard errors."""

DISPERSION_ERRORS = 5.0
"""Standard errors by which a dispersion is above 1."""

SENSITIVITY_LIMIT = 0.05
"""Change of a posterior by the power of its prior or likelihood (Kallioinen et al. 2024)."""
