"""How far the chains agree: on parameters, and on probabilities that are averaged over them.

Arrays in, figures out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.diagnostics import convergence

_MATTERS = 0.01  # a probability known to one per cent needs no more agreement


def of_draws(draws: NDArray) -> dict[str, float]:
    """Agreement of the chains on the parameters; draws (chains, draws, D).

    ``sd_error`` is the largest relative error of a standard deviation. Of many parameters these are
    figures of those on which chains agree least: to rank all takes longer than to draw.
    """
    worst = int(np.clip(100_000 // draws[..., 0].size, 3, 10))  # by each of two criteria
    if draws.shape[2] > 2 * worst:
        draws = draws[:, :, convergence.least_agreed(draws, worst)]
    r_hat, ess = convergence.r_hat_and_ess_bulk(draws)
    with np.errstate(invalid="ignore"):  # of a parameter that never moves
        sd_error = convergence.sd_error(draws)
    return {
        "r_hat_max": float(np.max(r_hat)),
        "ess_min": float(np.min(ess)),
        "ess_tail_min": float(np.min(convergence.ess_tail(draws))),
        "sd_error": float(np.max(sd_error)),
    }


def that_matter(p: NDArray) -> NDArray:
    """The probabilities (chains, draws, ...) that vary by more than .01, as one axis."""
    flat = p.reshape(*p.shape[:2], -1)
    return flat[..., flat.std(axis=(0, 1)) > _MATTERS]


def of_predictions(p: NDArray, log_prob: NDArray | None) -> dict[str, float]:
    """Agreement of the chains on probabilities (chains, draws, .), and on the log posterior.

    ``between_chains`` is the share of the probabilities' variance that lies between chains.
    ``prediction_error`` is the standard error of the averages over all chains, as root mean square,
    from the spread of the chains' own averages. ``prediction_drift`` is how far they are from
    those over the second half of the draws, beyond chance (math/networks.md#modes).
    """
    error = drift = np.nan if len(p) < 2 or p.shape[1] < 2 else 0.0
    if p.size and len(p) > 1:
        error = np.sqrt(p.mean(axis=1).var(axis=0, ddof=1).mean() / len(p))
        drift = _drift(p)
    between, within = p.mean(axis=1).var(axis=0).sum(), p.var(axis=1).mean(axis=0).sum()
    share = between / (between + within) if p.size and between + within > 0 else 0.0
    of_all = {
        "between_chains": float(share),
        "prediction_error": float(error),
        "prediction_drift": float(drift),
    }
    if log_prob is not None:
        p = np.concatenate([p, log_prob.reshape(*p.shape[:2], 1)], axis=2)
    names = ("r_hat_max", "ess_min", "ess_tail_min")
    if not p.size or p.shape[1] < 4:
        return dict.fromkeys(names, np.nan) | of_all
    figures = of_draws(p)
    return {name: figures[name] for name in names} | of_all


def _drift(p: NDArray) -> float:
    """Root mean square distance to the second half, without what the spread of chains explains."""
    half = p.shape[1] // 2
    if not half:
        return np.nan
    change = p[:, -half:].mean(axis=1) - p.mean(axis=1)
    by_chance = change.var(axis=0, ddof=1) / len(p)
    return float(np.sqrt(max(0.0, (change.mean(axis=0) ** 2 - by_chance).mean())))
