"""Mandt, Hoffman & Blei (2017), Fig. 1 and 2: is the covariance of constant SGD the predicted one?

    python benchmarks/mandt_fig1_2.py [--draws 40000]

The data are wine (linear regression) and skin (logistic regression, a tenth of the draws), scaled
as in mandt_table1.py, rows drawn with replacement. 16 chains of constant SGD with the paper's
steps, full (Theorem 2) and scalar (Theorem 1), begin at the mode and burn in for five of the
longest autocorrelation times. Independent draws of the optimal mean-field Gaussian,
diag(1/Lam_kk), stand for BBVI.

Fig. 1: draws on the axes of smallest and largest posterior variance, with ellipses of three
standard deviations: posterior (black), draws (orange), prediction for the recursion with additive
noise (red). Fig. 2: all covariances of constant SGD on wine, measured and predicted. The table
gives the variances on both axes by each theory ("exact": noise that grows with the distance from
the mode, linear regression only) and as measured, with the standard error from the chains.
mandt_fig2.csv compares all covariances.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from harness import Claim, Report, benchmark
from mandt_table1 import Problem, methods, problem
from matplotlib.figure import Figure
from numpy.typing import NDArray
from plots import ellipse

from skbayes_sg import theory
from skbayes_sg.chains import run_chain, start_chains
from skbayes_sg.models import Linear

N_CHAINS = 16
LAWS = ("OU", "discrete", "exact")
METHODS = {"full": "SGD-f", "scalar": "constant SGD"}
CLAIM = "very good agreement"  # of prediction and draws, section 6.1
TITLES = {
    "full": "constant SGD, full",
    "scalar": "constant SGD, scalar",
    "mean field": "mean field (for BBVI)",
}


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
        X, y = given.posterior.data.X, given.posterior.data.y
        laws["exact"] = theory.lsq_cov(X, y, method.K, given.batch_size, replace=True)
    slowest = slowest_time(given, method.K)
    start = np.repeat(given.mode, N_CHAINS, axis=0)
    states = start_chains(
        method.sampler, given.posterior, start, np.random.SeedSequence([2017, seed])
    )
    burn_in = max(5 * slowest, method.sampler.run_length(states[0]).burn_in)
    chains = [
        run_chain(
            method.sampler, given.posterior, state, n_draws=n_draws // 10, burn_in=burn_in, thin=10
        )
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


# -- table and checks -----------------------------------------------------------------------------


def covariances(draws: NDArray) -> NDArray:
    """Covariance of each chain about the mean of all, (chains, D, D)."""
    shift = draws - draws.mean(axis=(0, 1))
    return np.einsum("cti,ctj->cij", shift, shift) / draws.shape[1]


def mean_and_error(each: NDArray) -> tuple[NDArray, NDArray]:
    """Mean over the chains and its standard error."""
    return each.mean(axis=0), each.std(axis=0, ddof=1) / np.sqrt(len(each))


def variance_along(cov: NDArray | None, u: NDArray) -> float | None:
    """Of the projection on the unit vector u."""
    return None if cov is None else float(u @ cov @ u)


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
            "published": CLAIM if name in METHODS else None,
            **{law: variance_along(result.laws.get(law), u) for law in LAWS},
            "simulated": float(mean[k, k]),
            "se": float(error[k, k]),
        }
        for k, (axis, u) in enumerate(zip(("smallest", "largest"), axes.T, strict=True))
    ]


def whole_covariance(result: Run) -> list[dict]:
    """Per theory: relative distance of the covariance measured, and largest |z| of its entries."""
    mean, error = mean_and_error(covariances(result.draws))
    return [
        {
            "theory": law,
            "relative difference": float(np.linalg.norm(mean - cov) / np.linalg.norm(cov)),
            "expected of noise": float(np.linalg.norm(error) / np.linalg.norm(cov)),
            "max |z|": float(np.abs((mean - cov) / error).max()),
        }
        for law, cov in result.laws.items()
    ]


def claims(rows: list[dict]) -> list[Claim]:
    """The finest theory at hand against what was measured."""
    found = []
    for row in rows:
        law = "discrete" if row["exact"] is None else "exact"
        label = f"{row['data']}, {row['method']}, {row['axis']} axis: z against {law}"
        found.append(Claim(label, (row["simulated"] - row[law]) / row["se"], -4, 4))
    return found


def whole_claims(rows: list[dict]) -> list[Claim]:
    """The same of the whole matrix."""
    label = "wine, scalar, all covariances: max |z| against exact"
    return [Claim(label, row["max |z|"], high=5) for row in rows if row["theory"] == "exact"]


# -- figures --------------------------------------------------------------------------------------


def figure_1(given: list[Problem], runs: dict[tuple[str, str], Run]) -> Figure:
    """One row per data set, one column per method."""
    fig = Figure(figsize=(12, 8), layout="constrained", dpi=100)
    grid = fig.subplots(2, 3)
    for line, one in zip(grid, given, strict=True):
        for ax, name in zip(line, TITLES, strict=True):
            _project(ax, one, runs[one.name, name])
            ax.set_title(f"{one.name}: {TITLES[name]}")
            ax.set_xlabel("smallest principal component")
        line[0].set_ylabel("largest principal component")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=4, markerscale=5)
    ellipses = "ellipses: three standard deviations (Mandt et al. Fig. 1)"
    fig.suptitle(f"Draws and posterior, distance from the mode; {ellipses}")
    return fig


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
        ellipse(ax, (0, 0), cov, 3.0, color=colour, ls=style, lw=width, label=label)
    reach = 3.6 * np.sqrt(np.max([cov.diagonal() for cov, *_ in covs.values()], axis=0))
    ax.set(xlim=(-reach[0], reach[0]), ylim=(-reach[1], reach[1]))
    ax.locator_params(nbins=5)


def figure_2(result: Run) -> Figure:
    """Measured and predicted covariance of the iterates on one colour scale."""
    measured = covariances(result.draws).mean(axis=0)
    panels = {"measured": measured, "predicted": result.laws["discrete"]}
    limit = np.abs(panels["predicted"]).max()
    fig = Figure(figsize=(9, 4.2), layout="constrained", dpi=110)
    axes = fig.subplots(1, 2)
    for ax, (title, cov) in zip(axes, panels.items(), strict=True):
        image = ax.imshow(cov, cmap="RdBu_r", vmin=-limit, vmax=limit)
        ticks = range(0, len(cov), 2)
        ax.set(title=title, xticks=ticks, yticks=ticks, xlabel="coefficient")
    axes[0].set_ylabel("coefficient")
    fig.colorbar(image, ax=axes, label="covariance")
    fig.suptitle("Constant SGD on wine: covariance of the iterates (Mandt et al. Fig. 2)")
    return fig


def main(report: Report, draws: int) -> None:
    """Both data sets, all methods."""
    given = [problem("wine"), problem("skin")]
    runs = {}
    for i, (one, length) in enumerate(zip(given, (draws, draws // 10), strict=True)):
        for j, name in enumerate(METHODS):
            runs[one.name, name] = sgd(one, name, length, seed=2 * i + j)
        runs[one.name, "mean field"] = mean_field(one, draws)
    rows = [
        row for one in given for name in TITLES for row in rows_of(one, name, runs[one.name, name])
    ]
    title = f"{N_CHAINS} chains of {draws:,} steps, on skin {draws // 10:,}"
    figure = figure_1(given, runs)
    title = f"variance on the principal axes; {title}"
    report.save(rows, claims(rows), {"mandt_fig1": figure}, title=title)
    whole = whole_covariance(runs["wine", "scalar"])
    title = "all covariances of constant SGD (scalar) on wine, measured against theory"
    figure = figure_2(runs["wine", "scalar"])
    report.save(whole, whole_claims(whole), {"mandt_fig2": figure}, "mandt_fig2", title)


if __name__ == "__main__":
    steps = {"type": int, "default": 40_000, "help": "steps of each chain on wine after burn-in"}
    benchmark(main, draws=steps)
