"""The pictures of `ahn_drbm.py`: Fig. 4 and 5 of Ahn, Korattikara & Welling (2012)."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from benchmarks.common.plots import ellipse

FAMILIES = ("SGFS-f", "SGFS-p", "SGFS-B", "SGFS-d", "SGLD")
OF_FAMILIES = ("tab:blue", "tab:cyan", "tab:purple", "tab:green", "tab:orange")
COLOURS = dict(zip(FAMILIES, OF_FAMILIES, strict=True))
LOST = 20.0  # E2 of a chain that left the mode


def moments(draws: NDArray) -> tuple[NDArray, NDArray]:
    """Mean and covariance over chains and draws."""
    flat = draws.reshape(-1, draws.shape[-1])
    return flat.mean(axis=0), np.cov(flat.T)


def best_of(rows: list[dict]) -> dict[str, dict]:
    """The line of each family with the smallest error of the covariance."""
    mine = {f: [row for row in rows if row["setting"].startswith(f)] for f in FAMILIES}
    return {family: min(lines, key=lambda r: r["E2"]) for family, lines in mine.items() if lines}


def picture(
    rows: list[dict], draws: dict[str, NDArray], names: list[str], size: str, budget: str
) -> Figure:
    """Fig. 4: the best and the worst of the 25 most correlated pairs; Fig. 5: errors."""
    fig = Figure(figsize=(10, 15), layout="constrained", dpi=100)
    top, bottom = fig.subfigures(2, 1, height_ratios=(2, 1.15))
    axes, best = top.subplots(2, 2), best_of(rows)
    for line, family in zip(axes, ("SGFS-f", "SGLD"), strict=True):
        label = best[family]["setting"]
        figure_4(line, label, (draws[label], draws["HMC"]), names)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    top.legend(handles, labels, loc="outside lower center", ncols=4)
    top.suptitle(
        f"DRBM on KDD99, {size}, {len(names)} parameters: two standard deviations (Ahn et al. "
        "Fig. 4).\n"
        "The setting of each method with the least E2; best and worst of the 25 most correlated "
        "pairs"
    )
    line = bottom.subplots(1, 2)
    for ax, error in zip(line, ("E1", "E2"), strict=True):
        figure_5(ax, error, rows)
    handles, labels = line[0].get_legend_handles_labels()
    bottom.legend(handles, labels, loc="outside lower center", ncols=3)
    bottom.suptitle(
        f"Errors after {budget} (Ahn et al. Fig. 5). Numbers: alpha of SGFS, B of SGFS-B, "
        f"epsilon of SGLD.\nTriangles at the top edge: chains that left the mode, E2 > {LOST:g}"
    )
    return fig


def figure_4(line: NDArray, label: str, draws: tuple[NDArray, NDArray], names: list[str]) -> None:
    """Draws and ellipses of the pairs that agree best and worst with HMC, the second of `draws`."""
    mine, hmc = draws
    mean_0, cov_0 = moments(hmc)
    sd = np.sqrt(cov_0.diagonal())
    upper = np.triu_indices(len(sd), 1)
    top = np.argsort(-np.abs((cov_0 / np.outer(sd, sd))[upper]))[:25]
    pairs = np.stack([upper[0][top], upper[1][top]], axis=1)
    mean, cov = moments(mine)
    error = [pair_error(pair, (mean, cov), (mean_0, cov_0)) for pair in pairs]
    chosen = {"best": np.argmin(error), "worst": np.argmax(error)}
    for ax, (name, k) in zip(line, chosen.items(), strict=True):
        pair = pairs[k]
        cells = np.ix_(pair, pair)
        points = mine[:, ::2, pair].reshape(-1, 2)
        dots = {"ms": 1.5, "color": "0.75", "zorder": 1, "label": "draws of the method"}
        ax.plot(*points.T, ".", rasterized=True, **dots)
        style = {"color": "tab:red", "lw": 0.7, "zorder": 2, "label": "each HMC chain"}
        for i, one in enumerate(hmc):
            style["label"] = style["label"] if i == 0 else "_"
            ellipse(ax, one.mean(axis=0)[pair], np.cov(one.T)[cells], **style)
        style = {"color": "tab:red", "lw": 2, "zorder": 3, "label": "all HMC chains"}
        ellipse(ax, mean_0[pair], cov_0[cells], **style)
        style = {"color": "tab:blue", "lw": 2, "ls": "--", "zorder": 4, "label": "the method"}
        ellipse(ax, mean[pair], cov[cells], **style)
        ax.set(xlabel=names[pair[0]], ylabel=names[pair[1]], title=f"{label}: {name} pair")
        centres = np.stack([mean[pair], mean_0[pair]])
        reach = 2.6 * np.sqrt(np.stack([cov.diagonal()[pair], cov_0.diagonal()[pair]]))
        low, high = (centres - reach).min(axis=0), (centres + reach).max(axis=0)
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        ax.locator_params(nbins=6)


def figure_5(ax, error: str, rows: list[dict]) -> None:
    """Error against mixing rate; chains that left the mode are triangles at the top edge."""
    found = [r[error] for r in rows[1:] if r["E2"] < LOST]
    edge = 1.6 * max(found)
    for family, colour in COLOURS.items():
        mine = [r for r in rows if r["setting"].startswith(family)]
        kept = [r for r in mine if r["E2"] < LOST]
        lost = [r for r in mine if r["E2"] >= LOST]
        place = [r["1/ATUC"] for r in kept], [r[error] for r in kept]
        ax.loglog(*place, "x-", color=colour, lw=1, label=family)
        ax.loglog([r["1/ATUC"] for r in lost], [edge] * len(lost), "^", color=colour)
        for r in mine:
            place = r["1/ATUC"], edge if r in lost else r[error]
            style = {"fontsize": 8, "color": colour, "textcoords": "offset points"}
            ax.annotate(r["setting"].split()[1], place, xytext=(5, 4), **style)
    label = "error of the reference: half of that between halves of HMC"
    ax.axhline(rows[1][error] / 2, color="tab:red", lw=1, ls=":", label=label)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())
    of = "mean" if error == "E1" else "covariance"
    ax.set(xlabel="1 / ATUC: effective draws per CPU second", ylabel=f"{error}, of the {of}")
    ax.set(ylim=(None, 1.5 * edge))
    ax.margins(x=0.1)


def pair_error(
    pair: NDArray, mine: tuple[NDArray, NDArray], other: tuple[NDArray, NDArray]
) -> float:
    """Kullback-Leibler divergence of the normal marginals of a pair, up to a factor."""
    cells = np.ix_(pair, pair)
    S, S_0, shift = mine[1][cells], other[1][cells], mine[0][pair] - other[0][pair]
    inverse = np.linalg.inv(S_0)
    return float(
        np.trace(inverse @ S) + shift @ inverse @ shift - np.linalg.slogdet(inverse @ S)[1]
    )
