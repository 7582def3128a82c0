"""Mandt, Hoffman & Blei (2017), Fig. 1 and 2: is the covariance of constant SGD the predicted one?

    python benchmarks/mandt_fig1_2.py [--draws 40000]

Wine (linear regression) and skin (logistic regression, a tenth of the draws), scaled as in mandt_table1.py, rows
drawn with replacement. 16 chains of constant SGD with the paper's steps, full (Theorem 2) and scalar (Theorem 1),
begin at the mode and burn in for five of the longest autocorrelation times. Independent draws of the optimal
mean-field Gaussian, diag(1/Lam_kk), stand for BBVI.

Fig. 1: draws on the axes of smallest and largest posterior variance, with ellipses of three standard deviations:
posterior (black), draws (orange), prediction for the recursion with additive noise (red). Fig. 2: all covariances
of constant SGD on wine, measured and predicted. The table gives the variances on both axes by each theory
("exact": noise that grows with the distance from the mode, linear regression only) and as measured, with the
standard error from the chains; then the checks. Writes two figures and a CSV.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
from common import RESULTS, print_table, write_csv
from mandt_table1 import Problem, methods, problem
from matplotlib import pyplot as plt
from matplotlib.patches import Ellipse
from numpy.typing import NDArray

from skbayes_sg import theory
from skbayes_sg.chains import run_chain, start_chains
from skbayes_sg.models import Linear

N_CHAINS = 16
METHODS = {"full": "SGD-f", "scalar": "constant SGD"}
CLAIM = "very good agreement"  # of prediction and draws, section 6.1
TITLES = {"full": "constant SGD, full", "scalar": "constant SGD, scalar", "mean field": "mean field (for BBVI)"}


class Run(NamedTuple):
    """Draws of all chains, and their covariance by each theory."""

    draws: NDArray
    """(chains, draws, D)"""
    laws: dict[str, NDArray]


def sgd(given: Problem, name: str, n_draws: int, seed: int) -> Run:
    """Chains of constant SGD; every tenth point is kept."""
    method = methods(given)[METHODS[name]]
    laws = {
        "OU": theory.stationary_cov(given.Lam, given.M, method.K, discrete=False),
        "discrete": theory.stationary_cov(given.Lam, given.M, method.K),
    }
    if isinstance(given.posterior.model, Linear):
        X, y = given.posterior.X, given.posterior.y
        laws["exact"] = theory.lsq_cov(X, y, method.K, given.batch_size, replace=True)
    slowest = slowest_time(given, method.K)
    start = np.repeat(given.mode, N_CHAINS, axis=0)
    states = start_chains(method.sampler, given.posterior, start, np.random.SeedSequence([2017, seed]))
    burn_in = max(5 * slowest, method.sampler.auto_burn_in(states[0]))
    chains = [
        run_chain(method.sampler, given.posterior, state, n_draws=n_draws // 10, burn_in=burn_in, thin=10)
        for state in states
    ]
    return Run(np.concatenate([chain.draws for chain in chains]), laws)


def slowest_time(given: Problem, K: NDArray) -> int:
    """Longest autocorrelation time of the step, in steps: 2 / smallest eigenvalue of K Lam."""
    K = K if np.ndim(K) == 2 else K * np.eye(len(given.Lam))
    return int(2 / np.linalg.eigvals(K @ given.Lam).real.min())


def mean_field(given: Problem, n_draws: int) -> Run:
    """Independent draws of the mean-field Gaussian nearest the posterior in KL(q||p)."""
    variance = 1 / given.Lam.diagonal()
    z = np.random.default_rng(0).standard_normal((N_CHAINS, n_draws // 10, len(variance)))
    return Run(given.mode[0] + np.sqrt(variance) * z, {"exact": np.diag(variance)})


def axes_of(given: Problem) -> NDArray:
    """Directions (D, 2) of smallest and largest posterior variance."""
    return np.linalg.eigh(given.Lam)[1][:, [-1, 0]]


# -- table and checks -----------------------------------------------------------------------------------


def covariances(draws: NDArray) -> NDArray:
    """Covariance of each chain about the mean of all, (chains, D, D)."""
    shift = draws - draws.mean(axis=(0, 1))
    return np.einsum("cti,ctj->cij", shift, shift) / draws.shape[1]


def mean_and_error(each: NDArray) -> tuple[NDArray, NDArray]:
    """Mean over the chains and its standard error."""
    return each.mean(axis=0), each.std(axis=0, ddof=1) / np.sqrt(len(each))


def rows_of(given: Problem, name: str, result: Run) -> list[dict]:
    """Variances on both axes."""
    axes = axes_of(given)
    mean, error = mean_and_error(covariances((result.draws - given.mode) @ axes))
    return [
        {
            "data": given.name,
            "method": name,
            "axis": axis,
            "posterior": float(u @ np.linalg.solve(given.Lam, u)),
            "published": CLAIM if name in METHODS else "",
            **{
                law: float(u @ result.laws[law] @ u) if law in result.laws else ""
                for law in ("OU", "discrete", "exact")
            },
            "simulated": float(mean[k, k]),
            "se": float(error[k, k]),
        }
        for k, (axis, u) in enumerate(zip(("smallest", "largest"), axes.T, strict=True))
    ]


def whole_covariance(result: Run) -> dict[str, dict[str, float]]:
    """Per theory: relative Frobenius distance of the covariance measured, and the largest |z| of its entries."""
    mean, error = mean_and_error(covariances(result.draws))
    return {
        law: {
            "relative difference": float(np.linalg.norm(mean - cov) / np.linalg.norm(cov)),
            "expected of noise": float(np.linalg.norm(error) / np.linalg.norm(cov)),
            "max |z|": float(np.abs((mean - cov) / error).max()),
        }
        for law, cov in result.laws.items()
    }


def acceptance(rows: list[dict], whole: dict[str, dict[str, float]]) -> list[tuple[str, bool]]:
    """The finest theory at hand against what was measured."""
    checks = []
    for row in rows:
        law = "exact" if row["exact"] else "discrete"
        z = (row["simulated"] - row[law]) / row["se"]
        checks.append((f"{row['data']}, {row['method']}, {row['axis']} axis: z = {z:+.1f} against {law}", abs(z) <= 4))
    worst = whole["exact"]["max |z|"]
    checks.append((f"wine, scalar, all covariances: max |z| = {worst:.1f} <= 5", worst <= 5))
    return checks


# -- figures --------------------------------------------------------------------------------------------


def figure_1(given: list[Problem], runs: dict[tuple[str, str], Run]) -> None:
    """One row per data set, one column per method."""
    fig, grid = plt.subplots(2, 3, figsize=(12, 8), layout="constrained")
    for line, one in zip(grid, given, strict=True):
        for ax, name in zip(line, TITLES, strict=True):
            _project(ax, one, runs[one.name, name])
            ax.set_title(f"{one.name}: {TITLES[name]}")
            ax.set_xlabel("smallest principal component")
        line[0].set_ylabel("largest principal component")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=4, markerscale=5)
    fig.suptitle(
        "Draws and posterior, distance from the mode; ellipses: three standard deviations (Mandt et al. Fig. 1)"
    )
    fig.savefig(RESULTS / "mandt_fig1.png", dpi=100)


def _project(ax, given: Problem, result: Run) -> None:
    axes = axes_of(given)
    shift = (result.draws - given.mode) @ axes
    points = shift.reshape(-1, 2)
    points = points[:: max(1, len(points) // 3000)]
    ax.plot(*points.T, ".", ms=2, color="tab:cyan", alpha=0.5, rasterized=True, label="draws")
    predicted = result.laws.get("discrete", result.laws.get("exact"))
    covs = {
        "posterior": (axes.T @ np.linalg.solve(given.Lam, axes), "black", "-", 1.6),
        "covariance of the draws": (covariances(shift).mean(axis=0), "orange", "-", 3.5),
        "predicted": (axes.T @ predicted @ axes, "red", "--", 1.4),
    }
    for label, (cov, colour, style, width) in covs.items():
        _ellipse(ax, cov, color=colour, ls=style, lw=width, label=label)
    reach = 3.6 * np.sqrt(np.max([cov.diagonal() for cov, *_ in covs.values()], axis=0))
    ax.set(xlim=(-reach[0], reach[0]), ylim=(-reach[1], reach[1]))
    ax.locator_params(nbins=5)


def _ellipse(ax, cov: NDArray, **style) -> None:
    values, vectors = np.linalg.eigh(cov)
    angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
    ax.add_patch(Ellipse((0, 0), *6 * np.sqrt(values[::-1]), angle=angle, fill=False, **style))


def figure_2(result: Run) -> None:
    """Measured and predicted covariance of the iterates on one colour scale."""
    panels = {"measured": covariances(result.draws).mean(axis=0), "predicted": result.laws["discrete"]}
    limit = np.abs(panels["predicted"]).max()
    fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
    for ax, (title, cov) in zip(axes, panels.items(), strict=True):
        image = ax.imshow(cov, cmap="RdBu_r", vmin=-limit, vmax=limit)
        ax.set(title=title, xticks=range(0, len(cov), 2), yticks=range(0, len(cov), 2), xlabel="coefficient")
    axes[0].set_ylabel("coefficient")
    fig.colorbar(image, ax=axes, label="covariance")
    fig.suptitle("Constant SGD on wine: covariance of the iterates (Mandt et al. Fig. 2)")
    fig.savefig(RESULTS / "mandt_fig2.png", dpi=110)


def main() -> None:
    """Run, print, draw, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=40_000, help="steps after burn-in, of each chain on wine")
    n_draws = parser.parse_args().draws
    given = [problem("wine"), problem("skin")]
    runs = {}
    for i, (one, length) in enumerate(zip(given, (n_draws, n_draws // 10), strict=True)):
        for j, name in enumerate(METHODS):
            runs[one.name, name] = sgd(one, name, length, seed=2 * i + j)
        runs[one.name, "mean field"] = mean_field(one, n_draws)

    rows = [row for one in given for name in TITLES for row in rows_of(one, name, runs[one.name, name])]
    print(f"variance on the principal axes; {N_CHAINS} chains of {n_draws:,} steps, on skin {n_draws // 10:,}")
    print_table(rows)
    whole = whole_covariance(runs["wine", "scalar"])
    print("\nFig. 2: all covariances of constant SGD (scalar) on wine, measured against theory")
    print_table([{"theory": law, **figures} for law, figures in whole.items()])
    path = write_csv("mandt_fig1_2.csv", rows)
    figure_1(given, runs)
    figure_2(runs["wine", "scalar"])
    print(f"\nwrote {path.name}, mandt_fig1.png, mandt_fig2.png\n")
    for claim, holds in acceptance(rows, whole):
        print(f"{'ok  ' if holds else 'FAIL'} {claim}")


if __name__ == "__main__":
    main()
