"""Diagnostics of a run, and warnings with figure and remedy. Pure functions."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from skbayes_sg import diagnostics
from skbayes_sg.chains.run import Chain
from skbayes_sg.data.minibatches import deterministic_rng
from skbayes_sg.diagnostics import gradients, r_hat_limit
from skbayes_sg.diagnostics.limits import (
    BETWEEN_LIMIT,
    CERTAIN_ERRORS,
    ENOUGH_ESS,
    ERROR_LIMIT,
    ESS_LIMIT,
    INFORMATION_LIMIT,
    KNOWN_LIMIT,
    POOL_ERROR_LIMIT,
    SD_ERROR_LIMIT,
    SHIFT_LIMIT,
    SPREAD_LIMIT,
    STEIN_EXCUSE,
    STEIN_LIMIT,
)
from skbayes_sg.inference.engine import Engine
from skbayes_sg.linalg import FULL
from skbayes_sg.linalg.sizes import elements_at_a_time
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.control_variates import column_steepness
from skbayes_sg.priors import without_rows
from skbayes_sg.priors.joint import JointPrior
from skbayes_sg.priors.scales import Scales
from skbayes_sg.samplers.base import Need

THROWN_RATIO = 2.0
"""Stein ratio of chains that left the region in which the expansion of their target serves."""
_ALONG = 0.02  # of them: relu units bend at single points, which longer steps find more evenly
_FEWEST_ROWS = 1000  # on which columns are looked at
_OUTPUTS = 1 << 22  # of rows, along the lines of all columns, for which they are looked at


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
    sums, of_groups, n_chains = list[diagnostics.SteinSums](), dict[str, list[float]](), 0
    of_sampler: list[str] = []  # the groups have the same warnings, with different figures
    for chain in chains:
        report = sampler.report(chain.state)
        if len(report.warnings) > len(of_sampler):
            of_sampler = report.warnings
        for name, figure in report.figures.items():
            of_groups.setdefault(name, []).append(figure)
        sums.append(chain.stein)
        n_chains += len(chain.draws)
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
        warnings += _of_averages(figures, sampler.bias_advice)
        if figures["temperature"] == 1:
            warnings += _of_modes(figures, sampler.bias_advice)
        elif ratio > 1:
            # draws far wider than the tempered posterior; they may be narrower, as chains in modes
            # of their own do not go through all of it
            warnings += _of_stein(figures, sampler.bias_advice, 1.0)
    else:
        # whether gradients know mean and standard deviation of every parameter well enough
        precise = CERTAIN_ERRORS * figures.get("mean_shift_se", np.nan) < 2 * SHIFT_LIMIT
        precise &= CERTAIN_ERRORS * figures.get("sd_ratio_se", np.nan) < 2 * SPREAD_LIMIT
        figures["r_hat_limit"] = r_hat_limit(n_chains, precise)
        warnings += of_disagreement(figures, chains[0].draws.shape[1])
        if figures["ess_min"] < ESS_LIMIT:
            warnings.append(
                f"ess_min is {figures['ess_min']:.0f}, below {ESS_LIMIT}: too few effective draws; "
                "raise n_draws or thin"
            )
        # few gradients with heavy tails tell the scale of draws that are known to be exact
        exact = {"scale_shift": np.nan} if Need.CLOSED_FORM in sampler.needs else {}
        warnings += of_bias(figures | exact, sampler.bias_advice)
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


def of_draws(draws: NDArray) -> dict[str, float]:
    """Agreement of the chains on the parameters; draws (chains, draws, D).

    ``sd_error`` is the largest relative error of a standard deviation. Of many parameters these are
    figures of those on which chains agree least: to rank all takes longer than to draw.
    """
    worst = int(np.clip(100_000 // draws[..., 0].size, 3, 10))  # by each of two criteria
    if draws.shape[2] > 2 * worst:
        draws = draws[:, :, diagnostics.least_agreed(draws, worst)]
    r_hat, ess = diagnostics.r_hat_and_ess_bulk(draws)
    with np.errstate(invalid="ignore"):  # of a parameter that never moves
        sd_error = diagnostics.sd_error(draws)
    return {
        "r_hat_max": float(np.max(r_hat)),
        "ess_min": float(np.min(ess)),
        "ess_tail_min": float(np.min(diagnostics.ess_tail(draws))),
        "sd_error": float(np.max(sd_error)),
    }


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
        away = theta[:, block] - mean[block]
        along = np.einsum("nd,nd->n", away, gradient[:, block]) + gradient[:, -k:] @ scales.of_scale
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
    n_parts = 1 + posterior.data.n_rows * len(theta) // elements_at_a_time()
    for part in np.array_split(np.arange(len(theta)), min(n_parts, len(theta))):
        if scales is None:
            gradient[part] = posterior.full_gradient(theta[part])
            continue
        parameters, eta = np.split(theta[part], [posterior.dim], axis=1)
        of_theta, of_eta = JointPrior(scales, posterior.prior).gradient(parameters, eta)
        gradient[part] = np.append(posterior.full_gradient(parameters) + of_theta, of_eta, axis=1)
    return gradient


def of_contrasts(posterior: Posterior, draws: NDArray, weights: NDArray) -> dict[str, float]:
    """Figures of `of_gradients` of what the null directions of a model leave of its parameters.

    These are the differences of each member of a direction from its last one, and all parameters
    that no direction has.
    """
    rows = np.eye(posterior.dim)
    stay = np.ones(posterior.dim, dtype=bool)
    for coordinates, signs in posterior.model.null_directions():
        last = coordinates[:, -1]
        stay[last] = False
        for member, sign in zip(coordinates[:, :-1].T, signs, strict=False):
            rows[member, last] = -sign * signs[-1]
    contrasts = _Contrasts(posterior, rows[stay])
    return of_gradients(contrasts, draws @ rows[stay].T, weights, 256)


class _Contrasts(Posterior):
    """A posterior of contrasts ``A theta`` of the parameters, where theta is the shortest one."""

    def __init__(self, posterior: Posterior, matrix: NDArray) -> None:
        super().__init__(posterior.model, posterior.data, posterior.prior)
        self._back = np.linalg.pinv(matrix)

    def full_gradient(self, theta: NDArray) -> NDArray:
        return super().full_gradient(theta @ self._back.T) @ self._back


def of_columns(posterior: Posterior, draws: NDArray, weights: NDArray) -> dict[str, float]:
    """Column steepness about the mean of draws (chains, draws, D), for their standard deviations.

    It is measured on some of the rows if they are many. Nothing is said of more parameters than
    half of the draws, which do not tell their covariance.
    """
    theta = draws.reshape(-1, draws.shape[2]).astype(np.float64)
    model = posterior.predictor
    if model.conjugate or len(theta) < 2 * theta.shape[1] or not theta.std(axis=0).all():
        return {}
    covariance = np.cov(theta.T, aweights=np.tile(weights, len(draws))).reshape(2 * draws.shape[2:])
    lines = covariance / np.sqrt(covariance.diagonal())[:, None]
    n = posterior.n_rows
    most = max(_FEWEST_ROWS, _OUTPUTS // (len(lines) * model.widest))
    sample = posterior if n <= most else posterior.of_rows(np.linspace(0, n - 1, most).astype(int))
    centre = np.average(draws.mean(axis=0), axis=0, weights=weights)[None].astype(np.float64)
    of_prior = np.sum(lines * posterior.prior.curvature(centre).matvec(lines), axis=1)
    along = partial(sample.forces_along, centre)
    return {"column_steepness": column_steepness(along, lines, of_prior, 0.0)}


def of_least_known(posterior: Posterior, scales: Scales, theta: NDArray) -> dict[str, float]:
    """Share of the rows in what is known of the direction that they know least, at theta (1, D).

    Of coefficients whose precision is sampled. Where the prior alone knows a direction of them, the
    posterior there is a mixture over precisions, with tails as heavy as those of Student's t. Steps
    as long as a normal posterior allows draw lighter ones, and no identity of gradients tells, as
    those are linear in the draws as the steps are (math/diagnostics.md#directions-without-data).
    Columns of one value, whose coefficients are held at zero, do not count.
    """
    curvature = posterior.expand(theta, FULL).curvature.dense()
    of_prior = without_rows(posterior.prior).curvature(theta).dense()
    block = scales.block
    others = np.setdiff1d(np.arange(posterior.dim), block)
    if len(others):  # intercepts and the like are eliminated
        beside = curvature[np.ix_(others, block)]
        lost = beside.T @ np.linalg.solve(curvature[np.ix_(others, others)], beside)
    else:
        lost = 0.0
    of_block = np.ix_(block, block)
    information, of_prior = curvature[of_block] - lost - of_prior[of_block], of_prior[of_block]
    counts = information.diagonal() > 1e-9 * of_prior.diagonal()
    if not counts.any() or not np.isfinite(information).all():  # chains may have left the posterior
        return {}
    information, of_prior = information[np.ix_(counts, counts)], of_prior[np.ix_(counts, counts)]
    root = np.linalg.cholesky(of_prior)
    values = np.linalg.eigvalsh(np.linalg.solve(root, np.linalg.solve(root, information).T))
    # of several classes no rows know the shift of all, and no probability depends on it
    counted = block[counts]
    null = [np.isin(c, counted).all(axis=1).sum() for c, _ in posterior.model.null_directions()]
    values = values[int(sum(null)) :]
    if not len(values):
        return {}
    least = max(0.0, float(values[0]))
    return {"least_known": least / (1 + least)}


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
    return warnings + _of_stein(figures, bias_remedy)


def _of_averages(figures: dict[str, float], bias_remedy: str) -> list[str]:
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


def _of_modes(figures: dict[str, float], bias_remedy: str) -> list[str]:
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
    of_stein = _of_stein(figures, bias_remedy)
    if of_stein and figures["stein_ratio"] < 1:
        return [
            *warnings,
            f"stein_ratio is {figures['stein_ratio']:.2f}, below 1: the weights have not been "
            "through their posterior yet, which is wider than the draws; raise thin or n_draws",
        ]
    return warnings + of_stein


def _of_stein(figures: dict[str, float], bias_remedy: str, limit: float = STEIN_LIMIT) -> list[str]:
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
