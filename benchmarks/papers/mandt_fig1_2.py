"""Mandt, Hoffman & Blei (2017), Fig. 1 and 2: is the covariance of constant SGD the predicted one?

    python -m benchmarks.papers.mandt_fig1_2 [--draws 40000]

The data are wine (linear regression) and skin (logistic regression, a tenth of the draws), scaled
as in mandt_problems.py, rows drawn with replacement. 16 chains of constant SGD with the paper's
steps, full (Theorem 2) and scalar (Theorem 1), begin at the mode and burn in for five of the
longest autocorrelation times. BBVI are four runs of black-box variational inference with Adam (as
many steps as in mandt_table1.py); its closed-form optimum, diag(1/Lam_kk), is "exact".

Fig. 1: posterior samples (blue) and draws of the method (cyan) on the axes of smallest and largest
posterior variance, both in posterior standard deviations, with ellipses of three standard
deviations: posterior (black), draws (orange), prediction (red; for the recursion with additive
noise). On wine the largest axis has 4,100 times the variance of the smallest. No method without a
full matrix can follow that, and its cloud is a line.

Fig. 2: all covariances of constant SGD on wine, measured and predicted. The table gives the
variances on both axes by each theory ("exact": noise that grows with the distance from the mode,
linear regression only) and as measured, with the standard error from the chains. mandt_fig2.csv
compares all covariances.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.plots import ellipse
from benchmarks.papers.mandt_problems import Problem, bbvi, mean_field, methods, problem
from benchmarks.papers.mandt_table1 import BBVI_STEPS
from skbayes_sg import theory
from skbayes_sg.chains.run import Length, run_chain, start_chains
from skbayes_sg.models import Linear

N_CHAINS = 16
DISTRIBUTIONS = ("OU", "discrete", "exact")
METHODS = {"full": "SGD-f", "scalar": "constant SGD"}
CLAIM = "very good agreement"  # of prediction and draws, section 6.1
TITLES = {
    "full": "constant SGD, full matrix",
    "scalar": "constant SGD, one step for all",
    "BBVI": "BBVI, one of four runs",
}
N_RUNS = 4  # of BBVI


class Run(NamedTuple):
    """Draws of all chains, and their covariance by each theory."""

    draws: NDArray
    """(chains, draws, D)"""
    distributions: dict[str, NDArray]


def sgd(given: Problem, name: str, n_draws: int, seed: int) -> Run:
    """Chains of constant SGD; every tenth point is kept."""
    method = methods(given)[METHODS[name]]
    distributions = {
        "OU": theory.stationary_cov(given.Lam, given.M, method.K, discrete=False),
        "discrete": theory.stationary_cov(given.Lam, given.M, method.K),
    }
    if isinstance(given.posterior.model, Linear):
        X, y = given.posterior.data.X, given.posterior.data.y
        distributions["exact"] = theory.lsq_cov(X, y, method.K, given.batch_size, replace=True)
    slowest = slowest_time(given, method.K)
    start = np.repeat(given.mode, N_CHAINS, axis=0)
    states = start_chains(
        method.sampler, given.posterior, start, np.random.SeedSequence([2017, seed])
    )
    burn_in = max(5 * slowest, method.sampler.run_length(states[0]).burn_in)
    chains = [
        run_chain(method.sampler, given.posterior, state, Length(n_draws // 10, burn_in, 10))
        for state in states
    ]
    return Run(np.concatenate([chain.draws for chain in chains]), distributions)


def slowest_time(given: Problem, K: NDArray) -> int:
    """Longest autocorrelation time of the step, in steps: 2 / smallest eigenvalue of K Lam."""
    K = K if np.ndim(K) == 2 else K * np.eye(len(given.Lam))
    return int(2 / np.linalg.eigvals(K @ given.Lam).real.min())


def variational(given: Problem, n_draws: int) -> Run:
    """Independent draws of the Gaussians that BBVI ends with."""
    found = bbvi(given, N_RUNS, BBVI_STEPS[given.name], rate=0.1, seed=1)
    z = np.random.default_rng(0).standard_normal((N_RUNS, n_draws // 10, given.posterior.dim))
    draws = found.mean[:, None] + found.sd[:, None] * z
    return Run(draws, {"exact": np.diag(mean_field(given))})


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
            **{
                distribution: variance_along(result.distributions.get(distribution), u)
                for distribution in DISTRIBUTIONS
            },
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
            "theory": distribution,
            "relative difference": float(np.linalg.norm(mean - cov) / np.linalg.norm(cov)),
            "expected of noise": float(np.linalg.norm(error) / np.linalg.norm(cov)),
            "max |z|": float(np.abs((mean - cov) / error).max()),
        }
        for distribution, cov in result.distributions.items()
    ]


def claims(rows: list[dict]) -> list[Claim]:
    """The finest theory at hand against what was measured."""
    found = []
    for row in (row for row in rows if row["method"] in METHODS):
        distribution = "discrete" if row["exact"] is None else "exact"
        label = f"{row['data']}, {row['method']}, {row['axis']} axis: z against {distribution}"
        found.append(Claim(label, (row["simulated"] - row[distribution]) / row["se"], -4, 4))
    return found


def whole_claims(rows: list[dict]) -> list[Claim]:
    """The same of the whole matrix."""
    label = "wine, scalar, all covariances: max |z| against exact"
    return [Claim(label, row["max |z|"], high=5) for row in rows if row["theory"] == "exact"]


# -- figures --------------------------------------------------------------------------------------


def figure_1(given: list[Problem], runs: dict[tuple[str, str], Run]) -> Figure:
    """One row per data set, one column per method."""
    fig = Figure(figsize=(13, 10.4), layout="constrained", dpi=100)
    fig.get_layout_engine().set(h_pad=0.15)
    grid = fig.subplots(2, 3)
    letters = iter("abcdef")
    for line, one in zip(grid, given, strict=True):
        for ax, name in zip(line, TITLES, strict=True):
            _project(ax, one, runs[one.name, name])
            ax.set_title(f"({next(letters)}) {one.name}: {TITLES[name]}")
            ax.set_xlabel("smallest principal axis, posterior sd")
        line[0].set_ylabel("largest principal axis, posterior sd")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=5, markerscale=5)
    fig.suptitle(
        "Posterior samples and draws, distance from the mode; ellipses: three standard deviations "
        "(Mandt et al. Fig. 1)\n"
        "SGD spreads as predicted; only the full matrix has the posterior's shape; BBVI on skin is "
        f"not at its optimum after {BBVI_STEPS['skin']:,} steps"
    )
    return fig


def _project(ax, given: Problem, result: Run) -> None:
    axes = axes_of(given)
    axes = axes / np.sqrt(np.diag(axes.T @ np.linalg.solve(given.Lam, axes)))
    shift = (result.draws - given.mode) @ axes
    shift = shift if len(shift) > N_RUNS else shift[:1]
    posterior = np.random.default_rng(5).standard_normal((3000, 2))
    points = shift.reshape(-1, 2)
    points = points[:: max(1, len(points) // 3000)]
    style = {"ms": 2, "alpha": 0.5, "rasterized": True}
    ax.plot(*posterior.T, ".", color="tab:blue", label="posterior samples", **style)
    ax.plot(*points.T, ".", color="tab:cyan", label="draws", **style)
    predicted = result.distributions.get("discrete", result.distributions.get("exact"))
    covs = {
        "posterior": ((0, 0), np.eye(2), "black", "-", 1.6),
        "covariance of the draws": (points.mean(axis=0), np.cov(points.T), "orange", "-", 3.0),
        "predicted (BBVI: optimum)": ((0, 0), axes.T @ predicted @ axes, "red", "--", 1.4),
    }
    for label, (mean, cov, colour, kind, width) in covs.items():
        ellipse(ax, mean, cov, 3.0, color=colour, ls=kind, lw=width, label=label)
    reach = 3.7 * np.sqrt(np.max([cov.diagonal() for _, cov, *_ in covs.values()]))
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    ax.locator_params(nbins=6)


def figure_2(result: Run) -> Figure:
    """Measured and predicted covariance of the iterates on one colour scale."""
    measured = covariances(result.draws).mean(axis=0)
    panels = {"measured": measured, "predicted": result.distributions["discrete"]}
    limit = np.abs(panels["predicted"]).max()
    fig = Figure(figsize=(9, 4.6), layout="constrained", dpi=110)
    axes = fig.subplots(1, 2)
    for ax, (title, cov) in zip(axes, panels.items(), strict=True):
        image = ax.imshow(cov, cmap="RdBu_r", vmin=-limit, vmax=limit)
        ticks = range(0, len(cov), 2)
        ax.set(title=title, xticks=ticks, yticks=ticks, xlabel="coefficient")
    axes[0].set_ylabel("coefficient")
    fig.colorbar(image, ax=axes, label="covariance")
    fig.suptitle(
        "Constant SGD on wine, S = 100, scalar step of Theorem 1: covariance of the iterates\n"
        "(Mandt et al. Fig. 2): the two differ by no more than the noise of 16 chains"
    )
    return fig


def main(report: Report, draws: int) -> None:
    """Both data sets, all methods."""
    given = [problem("wine"), problem("skin")]
    runs = {}
    for i, (one, length) in enumerate(zip(given, (draws, draws // 10), strict=True)):
        for j, name in enumerate(METHODS):
            runs[one.name, name] = sgd(one, name, length, seed=2 * i + j)
        runs[one.name, "BBVI"] = variational(one, draws)
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
