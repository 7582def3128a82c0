"""What figures say of a run: whether it is enough, and sentences with figure and remedy.

Figures in, words out. The limits, and why each is where it is, are in `limits.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skbayes_sg.diagnostics.limits import (
    BETWEEN_LIMIT,
    CERTAIN_ERRORS,
    ENOUGH_ESS,
    ERROR_LIMIT,
    ESS_LIMIT,
    INFORMATION_LIMIT,
    KNOWN_LIMIT,
    SD_ERROR_LIMIT,
    SHIFT_LIMIT,
    SPREAD_LIMIT,
    STEIN_EXCUSE,
    STEIN_LIMIT,
    STREAM_DENSITY_LIMIT,
    STREAM_SPREAD_LIMIT,
)


class Misfit(NamedTuple):
    """How far a normal distribution is off, along the lines of coefficients and between them."""

    mean_shift: float = 0.0
    """Largest error of a mean, in its standard deviations."""
    sd_ratio: float = 1.0
    """A standard deviation of it over the right one, where that is furthest from 1."""
    density_sd: float = 0.0
    """Standard deviation, at its draws, of its log density over the right one, by the root of the
    number of parameters."""

    @property
    def is_large(self) -> bool:
        """Whether a mean or a standard deviation is wrong along a line."""
        return self.mean_shift > SHIFT_LIMIT or abs(self.sd_ratio - 1) > STREAM_SPREAD_LIMIT

    @property
    def is_uneven(self) -> bool:
        """Whether the right density weights draws so unequally that any moment may be wrong."""
        return self.density_sd > STREAM_DENSITY_LIMIT


RIGHT = Misfit()


def is_enough(figures: dict[str, float]) -> bool:
    """Whether more draws would not help.

    Chains agree, and have as many effective draws as quantiles and variances take; or they agree on
    a wrong distribution.
    """
    ess = min(figures["ess_min"], figures["ess_tail_min"])
    precise = ess >= ENOUGH_ESS and not figures.get("sd_error", 0.0) > SD_ERROR_LIMIT
    return agrees(figures) and (precise or bool(of_bias(figures)))


def agrees(figures: dict[str, float]) -> bool:
    """Whether chains agree, so that what is wrong with their draws is wrong with the sampler."""
    return figures["r_hat_max"] <= figures.get("r_hat_limit", np.inf)


def of_disagreement(figures: dict[str, float], n_drawn: int) -> list[str]:
    """A warning about chains of so many draws that do not agree, and how many would be enough.

    R-hat squared less 1 is the variance between chains over that within them, and falls as 1 / n of
    chains that have forgotten their start.
    """
    if agrees(figures):
        return []
    r_hat, limit = figures["r_hat_max"], figures["r_hat_limit"]
    said = f"r_hat_max is {r_hat:.3f}, above {limit:.3g}: the chains "
    if figures.get("r_hat_coef", 0.0) > figures["r_hat_limit"]:
        return [
            f"{said}do not agree on which columns matter: each has found a set of columns that "
            "explains the rows, or is still on its way to one; predictions average over these "
            "sets, and a coefficient may belong to one of them alone; expect fewer columns by "
            "prior=Horseshoe(expected_nonzero=...), or raise n_draws, thin or burn_in"
        ]
    error, most = 1 / np.sqrt(max(figures["ess_min"], 1.0)), 100 * n_drawn
    enough = min(most, n_drawn * (r_hat**2 - 1) / (limit**2 - 1)) if r_hat < np.inf else most
    of_two_digits = 10 ** max(0, int(np.log10(max(enough, 1))) - 1)
    enough = of_two_digits * int(np.ceil(enough / of_two_digits))
    return [
        f"{said}do not agree: if they have forgotten where they started, a mean is off by about "
        f"{error:.2f} of its posterior standard deviations, and n_draws={enough} will do; raise "
        "n_draws or thin, or burn_in if they are still on their way"
    ]


def of_few_draws(figures: dict[str, float], n_drawn: int, most: int) -> list[str]:
    """A warning where a fit that goes on until its draws are enough ends short of that.

    Nothing is added to the warnings of `diagnose_run`. A fit whose next draws would take too
    long is not warned of if twice as many would have sufficed: its Monte Carlo errors are at most
    sqrt(2) times as large as they were to be. Not for averages over modes, which have limits of
    their own.
    """
    said = "between_chains" in figures or not agrees(figures) or figures["ess_min"] < ESS_LIMIT
    name = min("ess_tail_min", "ess_min", key=lambda figure: figures[figure])
    error = figures.get("sd_error", np.nan)
    if said:
        return []
    if figures[name] < (ENOUGH_ESS if n_drawn >= most else ENOUGH_ESS / 2):
        of_what = "the ends of intervals" if name == "ess_tail_min" else "means"
        few = f"{name} is {figures[name]:.0f}, below {ENOUGH_ESS}: few effective draws for "
        few += of_what
    elif error > 2**0.5 * SD_ERROR_LIMIT:
        few = (
            f"sd_error is {error:.2f}, above {SD_ERROR_LIMIT}: a standard deviation is known to "
            f"{error:.0%} only, as few draws decide it, far out in a heavy tail; intervals by "
            "quantiles are known better"
        )
    else:
        return []
    why = ", the most that it draws by itself" if n_drawn >= most else ""
    return [
        f"{few}; the fit stopped at {n_drawn} draws of each chain{why}; set n_draws above "
        f"{n_drawn}, or raise thin"
    ]


def of_bias(figures: dict[str, float], bias_remedy: str = "") -> list[str]:
    """Warnings about a wrong distribution: by parameter, of their scale, and on average."""
    warnings = []
    shift, ratio = figures.get("mean_shift", np.nan), figures.get("sd_ratio", np.nan)
    if abs(shift) > max(SHIFT_LIMIT, CERTAIN_ERRORS * figures.get("mean_shift_se", np.nan)):
        warnings.append(
            f"mean_shift is {shift:.2f}, beyond {SHIFT_LIMIT}: gradients of all rows say that the "
            "mean of a parameter is off by so many of its posterior standard deviations; "
            f"{bias_remedy}"
        )
    if abs(ratio - 1) > max(SPREAD_LIMIT, CERTAIN_ERRORS * figures.get("sd_ratio_se", np.nan)):
        warnings.append(
            f"sd_ratio is {ratio:.2f}, not 1 within {SPREAD_LIMIT}: gradients of all rows say that "
            f"the standard deviation of a parameter is too {'large' if ratio > 1 else 'small'}; "
            f"{bias_remedy}"
        )
    shift = figures.get("scale_shift", np.nan)
    if abs(shift) > max(SHIFT_LIMIT, CERTAIN_ERRORS * figures.get("scale_shift_se", np.nan)):
        warnings.append(
            f"scale_shift is {shift:.2f}, beyond {SHIFT_LIMIT}: gradients of all rows say that the "
            f"coefficients are too {'large' if shift > 0 else 'small'} together, by so many "
            "standard deviations of their scale, which the sampled prior precision leaves open; "
            f"{bias_remedy}"
        )
    least_known = figures.get("least_known", np.nan)
    if least_known < KNOWN_LIMIT:
        warnings.append(
            f"least_known is {least_known:.2g}, below {KNOWN_LIMIT:.2f}: along some direction, as "
            "the difference of two collinear columns, rows know less than half of what the prior "
            "does, and its precision is sampled: the posterior has heavy tails there, which these "
            'steps draw too light; use sampler=None or "hmc", or give prior_precision a number'
        )
    return warnings + of_stein(figures, bias_remedy)


def averages_are_enough(figures: dict[str, float], exact: bool) -> bool:
    """Whether more draws are not needed, or would not help.

    They are where error or drift of averaged probabilities is above half of what a fit warns of,
    and where the Stein ratio is not 1 yet. They do not help where the draws of a sampler that is
    not exact are too wide, nor of one chain, which tells no error.
    """
    if of_bias(figures):
        return figures["stein_ratio"] > 1 and not exact
    worst = max(figures["prediction_error"], figures["prediction_drift"])
    return not worst > 0.5 * ERROR_LIMIT


def of_averages(figures: dict[str, float], bias_remedy: str) -> list[str]:
    """Warnings about averages that are wrong, or that another seed or a longer run would change.

    R-hat has no limit here: chains in modes of their own have different distributions
    (math/networks.md#modes).
    """
    warnings = []
    error, drift = figures["prediction_error"], figures["prediction_drift"]
    if np.isnan([error, drift]).any():
        warnings.append(
            "prediction_error and prediction_drift are not known: they take two chains of two "
            "draws; raise n_chains or n_draws"
        )
    if error > ERROR_LIMIT:
        warnings.append(
            f"prediction_error is {error:.3f}, above {ERROR_LIMIT}: averaged probabilities depend "
            "on the modes that the chains found; raise n_chains"
        )
    if drift > ERROR_LIMIT:
        warmer = "" if figures["temperature"] >= 1 else ", or temperature where classes overlap"
        warnings.append(
            f"prediction_drift is {drift:.3f}, above {ERROR_LIMIT}: averaged probabilities "
            "are that far from those over the second half of the draws: the chains still move; "
            f"raise burn_in{warmer}"
        )
    if not figures["prediction_gain"] >= -ERROR_LIMIT:
        longer = "" if "burn_in" in bias_remedy else ", raise burn_in"
        warnings.append(
            f"prediction_gain is {figures['prediction_gain']:.3g} nats, below 0: on rows of the "
            "fit, averaged probabilities are worse than without X; "
            f"{bias_remedy}{longer}, or lower prior_precision"
        )
    return warnings


def of_modes(figures: dict[str, float], bias_remedy: str) -> list[str]:
    """Warnings about chains that do not sample one posterior, though their averages are known.

    Weights need not have been through all of it, which has the same predictions many times over.
    """
    warnings = []
    share = figures["between_chains"]
    if share > BETWEEN_LIMIT:
        warnings.append(
            f"{share:.0%} of the variance of the predicted probabilities lies between the chains; "
            "they sit in different modes, and predictions weigh the modes by the number of chains "
            "in each; raise n_chains, or burn_in if the chains still move"
        )
    ratio, se = figures.get("information_ratio", np.nan), figures.get("information_ratio_se", 0.0)
    if ratio > INFORMATION_LIMIT and np.log(ratio) > CERTAIN_ERRORS * se / ratio:
        warnings.append(
            f"information_ratio is {ratio:.1f}, above {INFORMATION_LIMIT}: in the directions "
            "that rows know best the variance of the weights is so many times that of the "
            f"posterior; {bias_remedy}"
        )
    narrow = of_stein(figures, bias_remedy)
    if narrow and figures["stein_ratio"] < 1:
        return [
            *warnings,
            f"stein_ratio is {figures['stein_ratio']:.2f}, below 1: the weights have not been "
            "through their posterior yet, which is wider than the draws; raise thin or n_draws",
        ]
    return warnings + narrow


def of_stein(figures: dict[str, float], bias_remedy: str, limit: float = STEIN_LIMIT) -> list[str]:
    """A warning about a Stein ratio that is not 1.

    Heavy tails make the standard error of what is wrong large, so it excuses little.
    """
    ratio, se = figures["stein_ratio"], figures["stein_se"]
    excused = min(CERTAIN_ERRORS * np.nan_to_num(se), STEIN_EXCUSE)
    if not abs(ratio - 1.0) > max(limit, excused):
        return []
    return [
        f"stein_ratio is {ratio:.3f}, not 1 within {limit}: posterior variances are too "
        f"{'large' if ratio > 1 else 'small'}, on average over directions; {bias_remedy}"
    ]
