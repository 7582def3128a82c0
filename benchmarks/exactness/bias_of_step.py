"""The bias of a step with control variates, against quadrature: errors against the noise number.

    python -m benchmarks.exactness.bias_of_step

Posteriors of one to three parameters have exact moments on a grid: logistic and three-class
regressions on few rows, skewed columns, rare events and nearly separable classes. In so few
dimensions a noise number above .7 comes with a steepness above 2. So the same data also stand side
by side, 4 to 64 times: rows of one copy are zero in the columns of the others. The posterior is a
product of copies, its steepness is that of one, and its noise number is as many times larger.

SGFS runs at its automatic batch size, with alpha^2 = 3, its default, and 2. Where it refuses the
posterior (NoGainError) the figure shows what would have happened. "mean error" is the largest over
all directions of one copy, in posterior standard deviations; "variance ratio" is the one furthest
from 1. Each has the standard error of its own direction, from batches of draws. Some six minutes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from scipy.linalg import eigh

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import anchored, mode_of, posterior_of
from skbayes_sg.chains.run import Execution, Length, run_chains, start_chains
from skbayes_sg.models import Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import UnderdampedLangevin
from skbayes_sg.samplers.base import NoGainError

INJECTED = (3.0, 2.0)  # alpha^2
PRIOR = 0.1
LIMITS = {"mean": 0.02, "ratio": 0.03}
RANGE = (0.1, 3.0)  # of noise numbers
CHAINS, DRAWS, BATCHES = 64, 4000, 20
REACH, POINTS = 14.0, 71  # of the grid: standard deviations, and points per axis
COARSE = 31
ENDS = 5e-4, 10.0  # of the figure's errors; what is beyond is drawn there

Data = tuple[NDArray, NDArray]


class Problem(NamedTuple):
    """One posterior, `copies` times."""

    name: str
    make: Callable[[int], Data]
    n: int
    copies: int


def _labels(rng: np.random.Generator, z: NDArray) -> NDArray:
    return np.where(rng.random(len(z)) * (1 + np.exp(-z)) < 1, 1.0, -1.0)


def counts(n: int) -> Data:
    """An intercept alone, one event in fifty rows."""
    return np.ones((n, 1)), np.where(np.arange(n) % 50 == 0, 1.0, -1.0)


def rare_events(n: int) -> Data:
    """Two columns and an intercept, about one event in a hundred rows."""
    rng = np.random.default_rng(n)
    X = np.column_stack([rng.standard_normal((n, 2)), np.ones(n)])
    return X, _labels(rng, X @ (0.4, 0.4, -5.0))


def lognormal(n: int) -> Data:
    """Three skewed columns."""
    rng = np.random.default_rng(n)
    X = np.exp(rng.standard_normal((n, 3)))
    X /= X.std(axis=0)
    return X, _labels(rng, X.sum(axis=1) / math.sqrt(3))


def strong(n: int) -> Data:
    """Two columns and an intercept, coefficients of seven: nearly separable."""
    rng = np.random.default_rng(n)
    X = np.column_stack([rng.standard_normal((n, 2)), np.ones(n)])
    return X, _labels(rng, X @ (7.0, 7.0, 0.0))


def few_rows(n: int) -> Data:
    """One column and an intercept."""
    rng = np.random.default_rng(n)
    X = np.column_stack([rng.standard_normal(n), np.ones(n)])
    return X, _labels(rng, X @ (1.5, 0.0))


def three_classes(n: int) -> Data:
    """One column, three classes."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 1))
    return X, (X * (-2.0, 0.0, 2.0) + rng.gumbel(size=(n, 3))).argmax(axis=1)


SETS = [
    *((counts, n, copies) for n in (500, 2000, 8000) for copies in (16, 64)),
    *((rare_events, n, copies) for n in (800, 1600, 3200, 6400) for copies in (1, 4, 16)),
    *((lognormal, n, copies) for n in (50, 150, 400, 1000) for copies in (1, 4, 16)),
    *((strong, n, copies) for n in (100, 300, 600, 2000) for copies in (1, 4, 16)),
    *((few_rows, n, copies) for n in (15, 40, 150) for copies in (1, 16)),
    *((three_classes, n, copies) for n in (15, 40, 150) for copies in (1, 16)),
]


def bind(X: NDArray, y: NDArray, copies: int = 1) -> Posterior:
    """The posterior of `copies` data sets side by side."""
    n_classes = len(np.unique(y))
    model = Softmax(copies * X.shape[1], n_classes, fit_intercept=False)
    return posterior_of(model, np.kron(np.eye(copies), X), np.tile(y, copies), PRIOR)


# -- exact moments --------------------------------------------------------------------------------


def on_grid(posterior: Posterior, mean: NDArray, cov: NDArray, points: int) -> tuple:
    """Places (points^D, D) around the mean in standard deviations of cov, and log densities."""
    axis = np.linspace(-REACH, REACH, points)
    z = np.stack(np.meshgrid(*[axis] * posterior.dim, indexing="ij"), axis=-1)
    theta = mean + z.reshape(-1, posterior.dim) @ np.linalg.cholesky(cov).T
    blocks = np.array_split(theta, 1 + len(theta) * posterior.n_rows // (1 << 22))
    value = np.concatenate([posterior.log_prob(block) for block in blocks])
    return theta.reshape(z.shape), value.reshape(z.shape[:-1])


def moments(theta: NDArray, value: NDArray) -> tuple[NDArray, NDArray]:
    """Mean and covariance by sums over a grid."""
    weight = np.exp(value - value.max()).ravel()
    weight /= weight.sum()
    theta = theta.reshape(-1, theta.shape[-1])
    mean = weight @ theta
    return mean, (theta - mean).T * weight @ (theta - mean)


def quadrature(posterior: Posterior) -> tuple[NDArray, NDArray, float]:
    """Mean, covariance, and their error: what half as many points per axis give.

    The sum over a grid converges faster than any power of its spacing for a smooth density. A
    coarse grid around the mode places the fine one.
    """
    mode = mode_of(posterior)
    place = mode.theta[0], np.linalg.inv(mode.curvature.dense())
    place = moments(*on_grid(posterior, *place, COARSE))
    theta, value = on_grid(posterior, *place, POINTS)
    mean, cov = moments(theta, value)
    half = (slice(None, None, 2),) * posterior.dim
    other = moments(theta[half], value[half])
    return mean, cov, max(furthest(*other, mean, cov)[::2])


def furthest(mean, cov, true_mean, true_cov) -> tuple[float, NDArray, float, NDArray]:
    """Largest error of a mean in standard deviations, its direction, the same of a variance ratio.

    The directions are such that theta . direction has variance 1 under the exact posterior.
    """
    shift = np.linalg.solve(true_cov, mean - true_mean)
    error = math.sqrt(max(0.0, shift @ true_cov @ shift))
    ratios, directions = eigh(cov, true_cov)
    worst = np.abs(ratios - 1).argmax()
    towards = shift / error if error > 0 else directions[:, 0]
    return error, towards, float(ratios[worst] - 1), directions[:, worst]


# -- chains ---------------------------------------------------------------------------------------


def batches(chains, copies: int, n_columns: int) -> NDArray:
    """Draws of one copy, (batches, draws, D): batches of successive draws of a group."""
    found = []
    for chain in chains:
        draws = chain.draws.reshape(len(chain.draws), BATCHES, -1, chain.draws.shape[-1])
        draws = draws.reshape(*draws.shape[:3], -1, copies, n_columns)
        draws = draws.transpose(1, 0, 2, 4, 3, 5)
        found.append(draws.reshape(BATCHES, -1, draws.shape[-2] * n_columns))
    return np.concatenate(found)


def compare(problem: Problem, X: NDArray, y: NDArray, exact: tuple, injected: float) -> dict:
    """One run and its errors."""
    posterior = bind(X, y, problem.copies)
    mode = mode_of(posterior)
    target, _ = anchored(posterior, mode)
    sampler = UnderdampedLangevin(math.sqrt(injected))
    taken = True
    try:
        sampler.resolve_auto(target)
    except NoGainError:
        taken = False
        sampler.set_params(batch_size=math.ceil(32 * max(1.0, target.anchor.noise_number)))
    row = {
        "data": problem.name,
        "rows": problem.n,
        "parameters": len(exact[0]),
        "copies": problem.copies,
        "alpha^2": injected,
        "noise number": target.anchor.noise_number,
        "steepness": target.anchor.steepness,
        "taken": "yes" if taken else "refused",
        "error of quadrature": exact[2],
    }
    normals = np.random.default_rng(0).standard_normal((CHAINS, posterior.dim))
    start = mode.theta + mode.curvature.inverse().cholesky().matvec(normals)
    try:
        states = start_chains(sampler, target, start, np.random.SeedSequence(0))
        chains = run_chains(sampler, target, states, Length(DRAWS, 300, 3), Execution())
    except FloatingPointError:
        return row | {"mean error": math.inf, "variance ratio": math.inf}
    return row | errors(batches(chains, problem.copies, X.shape[1]), *exact[:2])


def errors(drawn: NDArray, mean: NDArray, cov: NDArray) -> dict:
    """Errors of draws (batches, draws, D), each with a standard error."""
    flat = drawn.reshape(-1, len(mean))
    centre = flat.mean(axis=0)
    error, u, ratio, v = furthest(centre, np.cov(flat.T).reshape(cov.shape), mean, cov)
    return {
        "mean error": error,
        "standard error of the mean": standard_error((drawn @ u).mean(axis=1)),
        "variance ratio": 1 + ratio,
        "standard error of the ratio": standard_error((((drawn - centre) @ v) ** 2).mean(axis=1)),
    }


def standard_error(of_batches: NDArray) -> float:
    """Of their mean."""
    return float(of_batches.std(ddof=1) / math.sqrt(len(of_batches)))


# -- figure and verdict ---------------------------------------------------------------------------


def draw(rows: list[dict]) -> Figure:
    """Errors against the noise number, coloured by steepness."""
    figure = Figure(figsize=(11, 8), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True, sharey="row")
    norm = LogNorm(1, 8)
    for column, injected in zip(axes.T, INJECTED, strict=True):
        for ax, (key, centre) in zip(column, {"mean": 0.0, "ratio": 1.0}.items(), strict=True):
            name = {"mean": "mean error", "ratio": "variance ratio"}[key]
            for row in (r for r in rows if r["alpha^2"] == injected):
                error = float(np.clip(abs(row[name] - centre), *ENDS))
                bar = 2 * row.get(f"standard error of the {key}", 0.0)
                bar = 0.0 if error == ENDS[1] else bar
                bars = [[min(bar, error - 0.8 * ENDS[0])], [bar]]
                colour = ScalarMappable(norm, "viridis").to_rgba(row["steepness"])
                marker = "o" if row["taken"] == "yes" else "x"
                style = {"fmt": marker, "color": colour, "markersize": 6, "elinewidth": 1}
                ax.errorbar(row["noise number"], error, bars, **style)
            ax.set(xscale="log", yscale="log", ylim=(0.8 * ENDS[0], 1.5 * ENDS[1]))
            ax.axvspan(*RANGE, color="0.94", zorder=0)
            ax.axhline(LIMITS[key], color="0.5", linewidth=1, linestyle="--")
            ax.xaxis.set_major_formatter("{x:g}")
            ax.yaxis.set_major_formatter("{x:g}")
        column[0].set_title(
            f"alpha² = {injected:g}{', the default' if injected == INJECTED[0] else ''}: "
            f"refused above a steepness of {(1 + injected) / 2:g}",
            fontsize="medium",
        )
        column[1].set_xlabel("noise number")
    axes[0, 0].set_ylabel("largest error of a mean\n(posterior standard deviations)")
    axes[1, 0].set_ylabel("largest |variance ratio - 1|")
    marks = {"taken": "o", "refused by SGFS, run all the same": "x"}
    style = {"linestyle": "", "color": "k"}
    handles = [Line2D([], [], marker=mark, label=name, **style) for name, mark in marks.items()]
    axes[0, 0].legend(handles=handles, loc="upper left", fontsize="small")
    bar = figure.colorbar(ScalarMappable(norm, "viridis"), ax=axes, extend="max")
    bar.set_label("steepness")
    bar.set_ticks([1, 1.5, 2, 3, 4, 6, 8], labels=["1", "1.5", "2", "3", "4", "6", "8"])
    bar.minorticks_off()
    figure.suptitle(
        "Errors of SGFS with control variates against quadrature, with two standard errors\n"
        f"shaded: noise numbers from {RANGE[0]:g} to {RANGE[1]:g}; dashed: limits of the claims; "
        f"errors beyond {ENDS[0]:g} and {ENDS[1]:g} are drawn there",
        fontsize="medium",
    )
    return figure


def claims(rows: list[dict]) -> list[Claim]:
    """The default step where it is taken, and the runs themselves."""
    low, high = RANGE
    taken = [row for row in rows if row["taken"] == "yes"]
    default = [
        row for row in taken if row["alpha^2"] == INJECTED[0] and low <= row["noise number"] <= high
    ]

    def beyond(name: str, centre: float, key: str) -> list[float]:
        return [abs(r[name] - centre) - 3 * r[f"standard error of the {key}"] for r in default]

    where = f"alpha^2 = {INJECTED[0]:g}, noise number {low:g} to {high:g}"
    return [
        Claim("error of quadrature", [row["error of quadrature"] for row in rows], high=1e-3),
        Claim(
            "standard error of a mean, where taken",
            [row["standard error of the mean"] for row in taken],
            high=0.01,
        ),
        Claim(f"posteriors that are taken, {where}", float(len(default)), low=15),
        Claim(
            "mean error there, beyond three standard errors",
            beyond("mean error", 0, "mean"),
            high=LIMITS["mean"],
        ),
        Claim(
            "|variance ratio - 1| there, beyond three standard errors",
            beyond("variance ratio", 1, "ratio"),
            high=LIMITS["ratio"],
        ),
    ]


def main(report: Report) -> None:
    """All posteriors with both alphas."""
    rows, exact = [], {}
    for make, n, copies in SETS:
        X, y = make(n)
        if (make, n) not in exact:
            exact[make, n] = quadrature(bind(X, y))
        problem = Problem(make.__name__.replace("_", " "), make, n, copies)
        rows += [compare(problem, X, y, exact[make, n], injected) for injected in INJECTED]
        print(".", end="", flush=True)
    rows.sort(key=lambda row: (row["alpha^2"] != INJECTED[0], row["noise number"]))
    report.save(rows, claims(rows), {"bias_of_step": draw(rows)})


if __name__ == "__main__":
    benchmark(main, threads=1)
