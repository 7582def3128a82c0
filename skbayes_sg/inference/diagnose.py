"""Diagnostics of a run, and all warnings about it. Pure functions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skbayes_sg import diagnostics
from skbayes_sg.chains.run import Chain
from skbayes_sg.data import row_blocks
from skbayes_sg.data.minibatches import deterministic_rng
from skbayes_sg.diagnostics import gradients, judgements, r_hat_limit
from skbayes_sg.diagnostics.limits import (
    CERTAIN_ERRORS,
    ESS_LIMIT,
    POOL_ERROR_LIMIT,
    SHIFT_LIMIT,
    SPREAD_LIMIT,
)
from skbayes_sg.inference.engine import Engine
from skbayes_sg.linalg.sizes import elements_at_a_time
from skbayes_sg.posterior import Posterior
from skbayes_sg.priors.joint import JointPrior
from skbayes_sg.priors.scales import Scales
from skbayes_sg.samplers.base import Need

THROWN_RATIO = 2.0
"""Stein ratio of chains that left the region in which the expansion of their target serves."""
_ALONG = 0.02  # of them: relu units bend at single points, which longer steps find more evenly


def is_thrown(figures: dict[str, float]) -> bool:
    """Whether chains left the region in which the expansion of their target serves."""
    return not figures["stein_ratio"] < THROWN_RATIO


def diagnose_run(
    run: Engine, chains: list[Chain], agreement: dict[str, float], kept_passes: float
) -> tuple[dict[str, float], list[str]]:
    """All diagnostics of a run, and all warnings about it.

    Parameters
    ----------
    run : Engine
    chains : list of Chain
    agreement : dict of str to float
        The figures of `of_draws`, or those of `averages`.
    kept_passes : float
        Rows read for the kept draws, over rows.

    Returns
    -------
    dict of str to float
    list of str
    """
    sampler, learned = run.sampler, run.learned
    sums, of_groups = list[diagnostics.SteinSums](), dict[str, list[float]]()
    of_sampler: list[str] = []  # the groups have the same warnings, with different figures
    for chain in chains:
        report = sampler.report(chain.state)
        if len(report.warnings) > len(of_sampler):
            of_sampler = report.warnings
        for name, figure in report.figures.items():
            of_groups.setdefault(name, []).append(figure)
        sums.append(chain.stein)
    ratio, se = diagnostics.stein_ratio_of_sums(sums)
    figures = agreement | {
        "ess_per_pass": agreement["ess_min"] / kept_passes if kept_passes else np.inf,
        "stein_ratio": ratio if sampler.draws_are_points else np.nan,
        "stein_se": se if sampler.draws_are_points else np.nan,
    }
    warnings = [*run.warnings, *of_sampler]
    for name, values in of_groups.items():
        figures[name] = float(np.mean(values))
    if learned is not None:
        warnings += learned.warnings()
    if sampler.draws_are_points and not np.isfinite(ratio):
        warnings.append(f"stein_ratio is {ratio}: chains left the posterior; {sampler.advice}")
    if "between_chains" in figures:
        warnings += judgements.of_averages(figures, sampler.bias_advice)
        if figures["temperature"] == 1:
            warnings += judgements.of_modes(figures, sampler.bias_advice)
        elif ratio > 1:
            # draws far wider than the tempered posterior; they may be narrower, as chains in modes
            # of their own do not go through all of it
            warnings += judgements.of_stein(figures, sampler.bias_advice, 1.0)
    else:
        # whether gradients know mean and standard deviation of every parameter well enough
        precise = CERTAIN_ERRORS * figures.get("mean_shift_se", np.nan) < 2 * SHIFT_LIMIT
        precise &= CERTAIN_ERRORS * figures.get("sd_ratio_se", np.nan) < 2 * SPREAD_LIMIT
        figures["r_hat_limit"] = r_hat_limit(run.n_chains, precise)
        warnings += judgements.of_disagreement(figures, chains[0].draws.shape[1])
        if figures["ess_min"] < ESS_LIMIT:
            warnings.append(
                f"ess_min is {figures['ess_min']:.0f}, below {ESS_LIMIT}: too few effective draws; "
                "raise n_draws or thin"
            )
        # few gradients with heavy tails tell the scale of draws that are known to be exact
        exact = {"scale_shift": np.nan} if Need.CLOSED_FORM in sampler.needs else {}
        warnings += judgements.of_bias(figures | exact, sampler.bias_advice)
    if figures.get("pool_error", 0.0) > POOL_ERROR_LIMIT:
        warnings.append(
            f"pool_error is {figures['pool_error']:.2f}: few rows dominate, and the posterior mean "
            'may be off by so many standard deviations; use sampler="hmc", which takes all rows at '
            "each step"
        )
    steep = figures.get("column_steepness", 1.0)
    if steep > sampler.steepest_column:
        warnings.append(
            f"column_steepness is {steep:.0f}, above {sampler.steepest_column:g}: the posterior of "
            "a coefficient has a wall, as where a rare level has one class only, and its standard "
            f'deviation by {type(sampler).__name__} may be wrong; use sampler=None or "hmc"'
        )

    # each once, with the present numbers of what it asks to raise
    said, numbers = dict[str, None](), run.length._asdict() | {"n_draws": chains[0].draws.shape[1]}
    for warning in warnings:
        asked = warning.rpartition("raise ")[2]
        named = [f"{name}={value}" for name, value in numbers.items() if name in asked]
        now = f" (now {', '.join(named)})" if named and asked != warning else ""
        said[warning + now] = None
    return figures, list(said)


def of_gradients(
    posterior: Posterior, draws: NDArray, weights: NDArray, n: int, scales: Scales | None = None
) -> dict[str, float]:
    """Worst mean and worst standard deviation of draws (chains, draws, D), by their gradients.

    ``mean_shift`` is the mean of the draws minus that of the posterior, in posterior standard
    deviations, and ``sd_ratio`` the standard deviation of the draws over that of the posterior.
    Each has a standard error. They are NaN where `n` gradients are too few, or tell nothing.

    Of a sampled precision there is ``scale_shift`` too: how far all coefficients are too large at
    once, with the precision that belongs to that, in standard deviations. A few gradients tell it,
    however many parameters there are. Along the funnel, where all coefficients grow and their
    precision falls, only rows hold a posterior, and loosely: a bias of the sampler that is small in
    each coefficient adds up there. With v that direction, E[v . grad log p + div v] = 0, and the
    variance of this number is the information along v
    (math/diagnostics.md#the-scale-of-the-coefficients).

    Parameters
    ----------
    posterior : Posterior
    draws : array of shape (chains, draws, D)
    weights : array of shape (draws,)
    n : int
        Gradients that may be computed.
    scales : Scales, optional
        Precisions that are sampled; their hyperparameters are the last of the draws.
    """
    names = ("mean_shift", "mean_shift_se", "sd_ratio", "sd_ratio_se")
    figures = dict.fromkeys(names, np.nan)
    per_chain = min(max(1, n // len(draws)), draws.shape[1])
    chosen = draws[:n, diagnostics.systematic(weights, per_chain)]
    theta = chosen.reshape(-1, draws.shape[2]).astype(np.float64)
    if len(theta) < gradients.fewest(1 if scales is not None else theta.shape[1]):
        return figures
    gradient = _full_gradients(posterior, theta, scales)
    if scales is not None:
        mean, block, k = posterior.prior.mean, scales.block, scales.dim
        along = gradient[:, -k:] @ scales.of_scale
        for rows in row_blocks(len(theta), 8 * len(block), 8 * elements_at_a_time()):
            away = theta[rows][:, block] - mean[block]
            along[rows] += np.einsum("nd,nd->n", away, gradient[rows][:, block])
        along += scales.sizes.sum()
        moved = np.flatnonzero(scales.of_scale) - k  # of sparse priors one of thousands
        ess = max(1.0, float(np.min(diagnostics.ess_mean(draws[..., moved], weights))))
        scale_shift = along.mean() / along.std() if along.std() > 0 else np.nan
        figures["scale_shift"] = -float(scale_shift)
        figures["scale_shift_se"] = float(np.sqrt(max(1 / len(along), 1 / ess)))
        if len(theta) < gradients.fewest(theta.shape[1]):
            return figures
    wanted = gradients.from_gradients(theta, gradient)
    if wanted is None:
        # The standard deviation drawn over wanted in the flattest direction of the draws, if it is
        # tiny. The variance wanted is at least 1 / the curvature there, which two gradients tell.
        direction, variance = gradients.flattest(theta)
        step = 1e-3 * direction  # in standard deviations of the draws
        ends = np.stack([theta.mean(axis=0) + step, theta.mean(axis=0) - step])
        above, below = _full_gradients(posterior, ends, scales)
        curvature = float(direction @ (below - above)) / 2e-3
        flat = np.sqrt(variance * curvature) if curvature > 0 else np.nan
        return figures | {"sd_ratio": float(flat) if flat < 0.1 else np.nan, "sd_ratio_se": 0.0}
    mean, sd = diagnostics.moments(draws, weights)
    ess = np.maximum(diagnostics.ess_mean(draws, weights), 1.0)
    few = np.maximum(1.0, len(theta) / ess)  # draws for an independent one
    shift, ratio = (mean - wanted.mean) / wanted.sd, sd / wanted.sd
    shift_se = np.sqrt(few * wanted.mean_error**2 + ratio**2 / ess)
    ratio_se = ratio * np.sqrt(few * wanted.sd_error**2 + 0.5 / ess)
    i = np.argmax(np.abs(shift) - CERTAIN_ERRORS * shift_se)
    j = np.argmax(np.abs(ratio - 1) - CERTAIN_ERRORS * ratio_se)
    worst = (shift[i], shift_se[i], ratio[j], ratio_se[j])
    return figures | dict(zip(names, map(float, worst), strict=True))


def of_information(posterior: Posterior, draws: NDArray, n: int) -> dict[str, float]:
    """Information of the posterior by squared gradients over that by curvature, and its error.

    ``E |grad log p|^2 = -E[laplacian of log p]`` for every smooth density (the information matrix
    test of White 1982). Stiff directions decide both sides. A step that is too wide there is seen
    although its errors in other directions cancel in the Stein ratio, and a few draws tell, as
    chains forget the stiffest directions first (math/diagnostics.md#information-ratio).

    Parameters
    ----------
    posterior : Posterior
    draws : array of shape (chains, draws, D)
    n : int
        Gradients that may be computed.

    Returns
    -------
    dict of str to float
        Empty where `n` is too small.
    """
    per_chain = min(n // 3 // len(draws), draws.shape[1])
    if per_chain * len(draws) < gradients.fewest(1):
        return {}
    chosen = draws[:, diagnostics.systematic(np.ones(draws.shape[1]), per_chain)]
    theta = chosen.reshape(-1, draws.shape[2]).astype(np.float64)
    signs = deterministic_rng("information").choice([-1.0, 1.0], theta.shape)
    step = _ALONG * theta.std(axis=0).mean() * signs
    gradient, above, below = (
        _full_gradients(posterior, points) for points in (theta, theta + step, theta - step)
    )
    square = np.sum(gradient**2, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):  # of draws that do not move
        bend = np.sum(step * (below - above), axis=1) / (2 * step[0, 0] ** 2)
        excess = (square - bend).reshape(*chosen.shape[:2], 1)
        error = diagnostics.mcse_mean(excess)[0]
        ratio, se = square.mean() / bend.mean(), error / abs(bend.mean())
    return {"information_ratio": float(ratio), "information_ratio_se": float(se)}


def _full_gradients(posterior: Posterior, theta: NDArray, scales: Scales | None = None) -> NDArray:
    """Gradients from all rows, (points, D), of hyperparameters too, some points at a time."""
    gradient = np.empty_like(theta)
    n_parts = 1 + posterior.point_size * len(theta) // elements_at_a_time()
    for part in np.array_split(np.arange(len(theta)), min(n_parts, len(theta))):
        if scales is None:
            gradient[part] = posterior.full_gradient(theta[part])
            continue
        parameters, eta = np.split(theta[part], [posterior.dim], axis=1)
        of_theta, of_eta = JointPrior(scales, posterior.prior).gradient(parameters, eta)
        gradient[part] = np.append(posterior.full_gradient(parameters) + of_theta, of_eta, axis=1)
    return gradient
