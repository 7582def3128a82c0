"""What mandt_iasg.py draws: covariances of Fig. 3 and 5, variances against passes of Fig. 4."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.common.internals import Posterior, State

N, D = 10_000, 10
SKIP = 10.0  # passes left out at the beginning, to forget the start
COMPARED = ["IASG, paper", "IASG, default", "SGLD, paper", "SGLD, step / 100", "NUTS"]
NOTES = {
    "IASG, paper": "S = 10, eps = .003: ends a third low, x = 3 (Eq. 46)",
    "IASG, default": "the package's, with full matrix, after its burn-in",
    "SGLD, paper": "S = 10, eps = .001 / sqrt(1000 + t): too wide by gradient noise",
    "SGLD, step / 100": "mixes slowly",
    "NUTS": "gradients of its search count, and its draws on the way",
}


class Problem(NamedTuple):
    """Data, posterior, and the posterior's moments, which are exact."""

    X: NDArray
    y: NDArray
    posterior: Posterior
    mode: NDArray
    Lam: NDArray


class Run(NamedTuple):
    """Kept draws, the passes over the rows spent until each, and the state at the end."""

    draws: NDArray
    passes: NDArray
    """(draws,), or (chains, draws) if they differ"""
    state: State | None = None


def figure_3(rows: dict[str, tuple[Problem, Run, Run]], n_passes: float) -> Figure:
    """Covariances of iterates, posterior and window averages, each on a scale of its own."""
    fig = Figure(figsize=(11, 7.6), layout="constrained", dpi=110)
    grid = fig.subplots(2, 3)
    letters = iter("abcdef")
    for line, (design, (given, sgd, iasg)) in zip(grid, rows.items(), strict=True):
        panels = {
            "SGD iterates": _covariance(sgd.draws),
            "exact posterior": np.linalg.inv(given.Lam),
            "IASG averages": _covariance(iasg.draws),
        }
        for ax, (title, cov) in zip(line, panels.items(), strict=True):
            image = _heat(ax, N * cov, N * np.abs(cov).max())
            fig.colorbar(image, ax=ax, shrink=0.85, label="N x covariance")
            ax.set_title(f"({next(letters)}) {title}")
        line[0].set_ylabel(design)
    fig.suptitle(
        "Iterate averaging (Mandt et al. Fig. 3): S = 1, eps = .005, windows of 10,000 steps, "
        f"{len(sgd.draws)} chains of {n_passes * N:,.0f}\n"
        "Averages have the posterior's covariance, its bands too; iterates have neither its size "
        "nor its shape"
    )
    return fig


def figure_4(given: Problem, runs: dict[tuple[str, str], Run], n_passes: float) -> Figure:
    """Smallest and largest estimated marginal variance against passes."""
    truth = N * np.linalg.inv(given.Lam).diagonal()
    fig = Figure(figsize=(11, 15), layout="constrained", dpi=90)
    axes = fig.subplots(len(COMPARED), 2, sharex=True, sharey="row")
    for line, name in zip(axes, COMPARED, strict=True):
        for ax, start in zip(line, ("mode", "random"), strict=True):
            _extremes(ax, runs[name, start], given.mode, n_passes)
            for value in (truth.min(), truth.max()):
                style = {"color": "tab:red", "lw": 1, "zorder": 1}
                ax.axhline(value, label="exact, smallest and largest", **style)
            ax.set(xscale="log", yscale="log", xlim=(SKIP, n_passes))
            ticks = [t for t in (10, 30, 100, 300, 1000, 3000, 10_000) if t <= n_passes]
            ax.set_xticks(ticks, [f"{t:,}" for t in ticks])
            ax.set_xticks([], minor=True)
            origin = "from the mode" if start == "mode" else "from N(0, I)"
            ax.set_title(f"{name}, {origin}\n{NOTES[name]}", fontsize=10)
        line[0].set_ylabel("N x variance")
    for ax in axes[-1]:
        ax.set_xlabel("passes over the data")
    handles = dict(zip(*reversed(axes[0, 0].get_legend_handles_labels()), strict=True))
    fig.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
    chains = len(runs["NUTS", "mode"].draws)
    fig.suptitle(
        "Marginal variances from all draws so far (Mandt et al. Fig. 4): mean and one standard "
        f"deviation over {chains} chains\n"
        "From a random start NUTS first searches, and its estimates carry the way for long"
    )
    return fig


def variances(result: Run, mode: NDArray, grid: NDArray) -> NDArray:
    """Marginal variances (chains, grid, D) from the draws until each number of passes.

    NaN before the fifth draw of a chain.
    """
    shift, each = result.draws - mode, np.atleast_2d(result.passes)
    sums = np.cumsum([shift, shift**2], axis=2)
    found = np.full((len(shift), len(grid), shift.shape[2]), np.nan)
    for chain in range(len(shift)):
        passes = each[chain % len(each)]
        k, first = np.searchsorted(passes, grid, "right"), np.searchsorted(passes, SKIP, "right")
        start = sums[:, chain, first - 1] if first else 0.0
        for g in np.flatnonzero(k - first >= 5):
            mean, square = (sums[:, chain, k[g] - 1] - start) / (k[g] - first)
            found[chain, g] = (square - mean**2) * (k[g] - first) / (k[g] - first - 1)
    return found


def grid_of(n_passes: float) -> NDArray:
    """Passes at which curves are drawn."""
    return np.geomspace(SKIP + 1, n_passes, 60)


def extremes(result: Run, mode: NDArray, n_passes: float) -> dict[str, tuple[NDArray, NDArray]]:
    """Mean and sd over chains of the largest and smallest marginal variance, on the grid.

    NaN until nine chains in ten have five draws; NUTS may spend all passes on a few.
    """
    found = variances(result, mode, grid_of(n_passes))
    few = np.isfinite(found[..., 0]).mean(axis=0) < 0.9
    curves = {}
    for name, each in (("largest", found.max(axis=2)), ("smallest", found.min(axis=2))):
        each[:, few] = np.nan
        known = np.ma.masked_invalid(each)
        sums = known.mean(axis=0), known.std(axis=0, ddof=1)
        curves[name] = tuple(np.ma.filled(one.astype(float), np.nan) for one in sums)
    return curves


def until_near(given: Problem, result: Run, n_passes: float) -> float:
    """Passes after which smallest and largest variance stay within a factor 2, on average."""
    grid, truth = grid_of(n_passes), np.linalg.inv(given.Lam).diagonal()
    curves = extremes(result, given.mode, n_passes)
    near = (curves["largest"][0] < 2 * truth.max()) & (curves["smallest"][0] > truth.min() / 2)
    far = np.flatnonzero(~near)
    last = far[-1] + 1 if len(far) else 0
    return float(grid[last]) if last < len(grid) else np.inf


def _extremes(ax, result: Run, mode: NDArray, n_passes: float) -> None:
    """Mean and one standard deviation over the chains."""
    grid, colours = grid_of(n_passes), {"largest": "tab:blue", "smallest": "goldenrod"}
    for name, (mean, sd) in extremes(result, mode, n_passes).items():
        ax.plot(grid, N * mean, color=colours[name], label=f"{name} estimate")
        low = np.maximum(N * (mean - sd), 1e-2)
        ax.fill_between(grid, low, N * (mean + sd), color=colours[name], alpha=0.25, lw=0)


def figure_5(given: Problem, runs: dict[tuple[str, str], Run], n_passes: float) -> Figure:
    """Covariance estimates of single chains, all on one scale, far ones divided by a number."""
    fig = Figure(figsize=(14, 5.8), layout="constrained", dpi=100)
    axes = fig.subplots(2, 1 + len(COMPARED))
    exact = np.linalg.inv(given.Lam)
    for line, start in zip(axes, ("mode", "random"), strict=True):
        panels = {"exact": exact}
        panels |= {name: last_covariance(runs[name, start], n_passes) for name in COMPARED}
        for ax, (title, cov) in zip(line, panels.items(), strict=True):
            scale = np.trace(cov) / np.trace(exact)
            scale = scale if scale > 2 else 1.0
            image = _heat(ax, N * cov / scale, 1.5)
            ax.set_title(title if scale == 1 else f"{title}\ndivided by {scale:.3g}", fontsize=11)
        line[0].set_ylabel("from the mode" if start == "mode" else "from N(0, I)")
    fig.colorbar(image, ax=axes, shrink=0.8, extend="both", label="N x covariance")
    fig.suptitle(
        f"Posterior covariance from one chain of {n_passes:,} passes, but the first ten (Mandt et "
        "al. Fig. 5)\nSGLD at the paper's step is too wide, IASG at the paper's step too narrow"
    )
    return fig


def last_covariance(result: Run, n_passes: float) -> NDArray:
    """Of the first chain, from the tenth pass to the last."""
    passes = np.atleast_2d(result.passes)[0]
    return _covariance(result.draws[:1, (passes > SKIP) & (passes <= n_passes)])


def _heat(ax, matrix: NDArray, limit: float):
    ax.set(xticks=[], yticks=[])
    return ax.imshow(matrix, cmap="RdBu_r", vmin=-limit, vmax=limit)


def _covariance(draws: NDArray) -> NDArray:
    return np.cov(draws.reshape(-1, D).T)
