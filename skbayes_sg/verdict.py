"""Diagnostics of a run, and warnings with figure and remedy. Pure functions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skbayes_sg import diagnostics
from skbayes_sg.chains import Chain
from skbayes_sg.diagnostics import STEIN_LIMIT
from skbayes_sg.plan import Run

_RANKED = 100_000  # draws of all parameters that are ranked: to rank all takes longer than to draw
_WORST = (3, 10)  # such parameters, at least and at most, by each of two criteria
R_HAT_LIMIT = 1.05
ESS_LIMIT = 100  # a standard deviation from 100 draws is good to 7 %
BETWEEN_LIMIT = 0.5
ERROR_LIMIT = 0.02  # of an averaged probability, by the choice of the chains


def judge(
    run: Run, chains: list[Chain], agreement: dict[str, float], kept_passes: float
) -> tuple[dict[str, float], list[str]]:
    """All diagnostics of a run, and all warnings about it.

    Parameters
    ----------
    run : Run
    chains : list of Chain
    agreement : dict of str to float
        The figures of `of_draws` or of `of_predictions`.
    kept_passes : float
        Rows read for the kept draws, over rows.

    Returns
    -------
    dict of str to float
    list of str
    """
    sampler, learned = run.sampler, run.learned
    ratio, se = diagnostics.stein_ratio_of_sums([chain.stein for chain in chains])
    reports = [sampler.report(chain.state) for chain in chains]
    figures = agreement | {
        "ess_per_pass": agreement["ess_min"] / kept_passes,
        "stein_ratio": ratio if sampler.draws_are_points else np.nan,
        "stein_se": se if sampler.draws_are_points else np.nan,
    }
    for name in reports[0].figures:
        figures[name] = float(np.mean([report.figures[name] for report in reports]))
    # the groups have the same warnings, with different figures
    complaints = max((report.complaints for report in reports), key=len)
    complaints = [*run.complaints, *complaints]
    if learned is not None:
        complaints += learned.complaints()
    if figures.get("temperature", 1.0) != 1:
        complaints += _of_averages(figures)
    elif "between_chains" in figures:
        complaints += _of_modes(figures, sampler.bias_remedy)
    else:
        complaints += _of_parameters(figures) + _of_stein(figures, sampler.bias_remedy)
    return figures, list(dict.fromkeys(complaints))


def of_draws(draws: NDArray) -> dict[str, float]:
    """Agreement of the chains on the parameters; draws (chains, draws, D).

    Of many parameters, on those on which they agree least.
    """
    worst = int(np.clip(_RANKED // draws[..., 0].size, *_WORST))
    if draws.shape[2] > 2 * worst:
        draws = draws[:, :, diagnostics.least_agreed(draws, worst)]
    r_hat, ess = diagnostics.r_hat_and_ess_bulk(draws)
    return {
        "r_hat_max": float(np.max(r_hat)),
        "ess_min": float(np.min(ess)),
        "ess_tail_min": float(np.min(diagnostics.ess_tail(draws))),
    }


def of_predictions(p: NDArray, log_prob: NDArray | None) -> dict[str, float]:
    """Agreement of the chains on probabilities (chains, draws, .), and on the log posterior.

    ``between_chains`` is the share of the probabilities' variance that lies between chains.
    ``prediction_error`` is the standard error of the averages over all chains, as root mean square,
    from the spread of the chains' own averages.
    """
    error = np.nan
    if p.size and len(p) > 1:
        error = np.sqrt(p.mean(axis=1).var(axis=0, ddof=1).mean() / len(p))
    between, within = p.mean(axis=1).var(axis=0).sum(), p.var(axis=1).mean(axis=0).sum()
    share = between / (between + within) if p.size and between + within > 0 else 0.0
    of_all = {"between_chains": float(share), "prediction_error": float(error)}
    if log_prob is not None:
        p = np.concatenate([p, log_prob.reshape(*p.shape[:2], 1)], axis=2)
    if not p.size or p.shape[1] < 4:
        unknown = dict.fromkeys(("r_hat_max", "ess_min", "ess_tail_min"), np.nan)
        return unknown | of_all
    return of_draws(p) | of_all


def _of_parameters(figures: dict[str, float]) -> list[str]:
    complaints = []
    if not figures["r_hat_max"] <= R_HAT_LIMIT:
        complaints.append(
            f"r_hat_max is {figures['r_hat_max']:.3f}, above {R_HAT_LIMIT}: the chains do not "
            "agree; raise burn_in, or n_draws and thin"
        )
    if figures["ess_min"] < ESS_LIMIT:
        complaints.append(
            f"ess_min is {figures['ess_min']:.0f}, below {ESS_LIMIT}: too few effective draws; "
            "raise n_draws or thin"
        )
    return complaints


def _of_averages(figures: dict[str, float]) -> list[str]:
    """A warning about averages that another seed would change, whatever law each chain has."""
    error = figures["prediction_error"]
    if not error > ERROR_LIMIT:
        return []
    return [
        f"prediction_error is {error:.3f}, above {ERROR_LIMIT}: averaged probabilities depend on "
        "the modes that the chains found; raise n_chains, or burn_in if the chains still move"
    ]


def _of_modes(figures: dict[str, float], bias_remedy: str) -> list[str]:
    complaints = []
    share = figures["between_chains"]
    if share > BETWEEN_LIMIT:
        complaints.append(
            f"{share:.0%} of the variance of the predicted probabilities lies between the chains; "
            "they sit in different modes, and predictions weigh the modes by the number of chains "
            "in each; raise n_chains, or burn_in if the chains still move"
        )
    elif figures["r_hat_max"] > R_HAT_LIMIT:
        complaints.append(
            "r_hat_max of the predicted probabilities and the log posterior is "
            f"{figures['r_hat_max']:.2f}, above {R_HAT_LIMIT}: the chains do not agree yet. "
            f"{share:.0%} of the variance of the probabilities lies between chains, and averages "
            "over all chains are what predicts; raise burn_in, or n_draws and thin"
        )
    ratio = figures["stein_ratio"]
    if ratio < 1 - STEIN_LIMIT:
        complaints.append(
            f"stein_ratio is {ratio:.2f}, below 1: the weights have not been through their "
            "posterior yet, which is wider than the draws; raise thin or n_draws"
        )
        return complaints
    return complaints + _of_stein(figures, bias_remedy)


def _of_stein(figures: dict[str, float], bias_remedy: str) -> list[str]:
    """A warning about a Stein ratio that is not 1."""
    ratio, se = figures["stein_ratio"], figures["stein_se"]
    off = abs(ratio - 1.0)
    if not off > STEIN_LIMIT or off < 4 * se:
        return []
    return [
        f"stein_ratio is {ratio:.3f}, not 1 within {STEIN_LIMIT}: posterior variances are too "
        f"{'large' if ratio > 1 else 'small'}, on average over directions; {bias_remedy}"
    ]
