"""How far probabilities that are averaged over chains can be trusted. Arrays in, numbers out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import InMemory
from skbayes_sg.diagnostics.judgements import of_bias
from skbayes_sg.diagnostics.limits import ERROR_LIMIT
from skbayes_sg.inference.diagnose import of_draws

_MATTERS = 0.01  # a probability known to one per cent needs no more agreement


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


def is_enough(figures: dict[str, float], exact: bool) -> bool:
    """Whether more draws are not needed, or would not help.

    They are where error or drift of averaged probabilities is above half of what a fit warns of,
    and where the Stein ratio is not 1 yet. They do not help where the draws of a sampler that is
    not exact are too wide, nor of one chain, which tells no error.
    """
    if of_bias(figures):
        return figures["stein_ratio"] > 1 and not exact
    worst = max(figures["prediction_error"], figures["prediction_drift"])
    return not worst > 0.5 * ERROR_LIMIT


def gain_over_shares(proba: NDArray, rows: InMemory, all_rows: InMemory) -> float:
    """Log loss of the shares of the classes minus that of averaged probabilities (n, classes).

    Both are means over the same rows of the fit, in nats, with their weights.
    """
    two = proba.shape[1] == 2  # of one logit their labels are -1 and 1
    y, all_y = (np.where(y > 0, y, 0) if two else y for y in (rows.y, all_rows.y))
    y, all_y = y.astype(np.intp), all_y.astype(np.intp)
    share = np.bincount(all_y, all_rows.weight, proba.shape[1])
    weight = np.ones(len(y)) if rows.weight is None else rows.weight
    counted = weight > 0
    own = np.maximum(proba[counted, y[counted]], np.finfo(np.float64).tiny)
    gain = np.log(own) - np.log(share[y[counted]] / share.sum())
    return float(np.average(gain, weights=weight[counted]))


def _drift(p: NDArray) -> float:
    """Root mean square distance to the second half, without what the spread of chains explains."""
    half = p.shape[1] // 2
    if not half:
        return np.nan
    change = p[:, -half:].mean(axis=1) - p.mean(axis=1)
    by_chance = change.var(axis=0, ddof=1) / len(p)
    return float(np.sqrt(max(0.0, (change.mean(axis=0) ** 2 - by_chance).mean())))
