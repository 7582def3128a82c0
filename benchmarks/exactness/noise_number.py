"""Where control variates are right: errors on thirty posteriors against their steepness.

    python -m benchmarks.exactness.noise_number

Logistic regressions of 30 to 20,000 rows: normal, lognormal and Pareto columns, rare events, strong
effects, separable classes, collinear and one-hot columns. Each is sampled by SGFS with control
variates at its automatic alpha and batch size, whether the default would take it or not. The
reference is HMC, 32 chains of 1,000 draws. The table has the largest error of a mean, in posterior
standard deviations, and the smallest and largest variance ratio, over the axes of the reference.

The figure is the evidence for the limit of the default. Below a steepness of 2 all errors are those
of the reference. Above it they grow without bound, and the noise number does not tell them apart.
"""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import anchored, logistic_posterior, mode_of
from skbayes_sg.chains.run import Execution, Length, run_chains, start_chains
from skbayes_sg.diagnostics import ess_mean
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import HMC, Sampler, UnderdampedLangevin

LIMIT = 2.0
ALPHA = math.sqrt(3.0)
CHAINS = 32


def normal(rng, n, d):
    """Independent."""
    return rng.standard_normal((n, d))


def lognormal(rng, n, d):
    """Skewed, standardised."""
    return standardised(np.exp(rng.standard_normal((n, d))))


def pareto(rng, n, d):
    """Without a finite variance, standardised."""
    return standardised(rng.pareto(1.5, (n, d)))


def collinear(rng, n, d):
    """Correlations of .99."""
    return rng.standard_normal((n, 1)) + 0.1 * rng.standard_normal((n, d))


def one_hot(rng, n, d):
    """Levels of one category, their frequencies by Zipf's law."""
    return np.eye(d)[np.minimum(rng.zipf(1.6, n) - 1, d - 1)]


def one_hot_standardised(rng, n, d):
    """The same, each column divided by its standard deviation."""
    return standardised(one_hot(rng, n, d))


def unscaled(rng, n, d):
    """Scales from .01 to 100."""
    return rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 2, d)


def standardised(X: NDArray) -> NDArray:
    """Columns of mean 0 and standard deviation 1; constant ones are 0."""
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


SETS = [
    *((normal, n, d, 1.5, 0.0) for n, d in ((30, 3), (100, 4), (100, 10), (300, 8), (300, 25))),
    *((normal, n, d, 1.5, 0.0) for n, d in ((1000, 10), (1000, 40), (3000, 20))),
    *((normal, n, d, 6.0, 0.0) for n, d in ((200, 5), (1000, 20), (100, 8))),
    *((normal, n, d, 0.4, b) for n, d, b in ((5000, 5, -4), (2000, 5, -5.5), (20_000, 10, -6))),
    *((lognormal, n, d, 1.0, 0.0) for n, d in ((300, 8), (2000, 10), (100, 5))),
    *((pareto, n, d, 0.5, 0.0) for n, d in ((1000, 4), (3000, 6), (20_000, 9))),
    *((collinear, n, d, 1.0, 0.0) for n, d in ((500, 8), (3000, 20))),
    *((one_hot, n, d, 1.0, -1.0) for n, d in ((300, 8), (1000, 10), (5000, 30))),
    *((one_hot_standardised, n, d, 0.3, -1.0) for n, d in ((300, 8), (1000, 10), (5000, 30))),
    *((unscaled, n, d, 1.0, 0.0) for n, d in ((500, 6), (3000, 10))),
]


def data(columns, n: int, d: int, strength: float, offset: float) -> tuple[NDArray, NDArray]:
    """Rows and labels; the linear predictor has standard deviation `strength`."""
    rng = np.random.default_rng(n + d)
    X = columns(rng, n, d)
    z = X @ (rng.standard_normal(d) / np.maximum(X.std(axis=0), 1e-12))
    z = offset + strength * (z - z.mean()) / z.std()
    y = np.where(rng.random(n) * (1 + np.exp(-z)) < 1, 1.0, -1.0)
    return X, y


def draws_of(sampler: Sampler, target: Posterior, theta: NDArray, length: Length) -> NDArray:
    """Draws of all chains, (chains, draws, D)."""
    states = start_chains(sampler, target, theta, np.random.SeedSequence(0))
    chains = run_chains(sampler, target, states, length, Execution())
    return np.concatenate([chain.draws for chain in chains])


def compare(columns, n: int, d: int, strength: float, offset: float) -> dict:
    """One data set: figures of the anchor, and errors against HMC."""
    posterior = logistic_posterior(*data(columns, n, d, strength, offset))
    mode = mode_of(posterior)
    spread = mode.curvature.inverse().cholesky()
    normals = np.random.default_rng(0).standard_normal((CHAINS, posterior.dim))
    start = mode.theta + spread.matvec(normals)
    exact = draws_of(HMC(), posterior, start, Length(1000, 300))
    flat = exact.reshape(-1, posterior.dim)
    values, vectors = np.linalg.eigh(np.cov(flat.T))
    axes = vectors / np.sqrt(values)
    target, _ = anchored(posterior, mode)
    kappa = target.anchor.noise_number
    sampler = UnderdampedLangevin(ALPHA, batch_size=math.ceil(32 * max(1.0, kappa)))
    name = f"{columns.__name__.replace('_', ' ')}, strength {strength:g}, offset {offset:g}"
    row = {
        "data": name,
        "rows": n,
        "parameters": posterior.dim,
        "noise number": kappa,
        "steepness": target.anchor.steepness,
        "error of the reference": 4 / math.sqrt(ess_mean(exact @ axes).min()),
    }
    try:
        drawn = draws_of(sampler, target, start, Length(1000, 200, 2))
    except FloatingPointError:
        return row | {"mean error": math.inf, "variance min": math.inf, "variance max": math.inf}
    along = (drawn.reshape(-1, posterior.dim) - flat.mean(axis=0)) @ axes
    ratio = along.var(axis=0)
    return row | {
        "mean error": float(np.abs(along.mean(axis=0)).max()),
        "variance min": float(ratio.min()),
        "variance max": float(ratio.max()),
    }


def draw(rows: list[dict]) -> Figure:
    """Error of means and of variances against steepness, and against the noise number."""
    figure = Figure(figsize=(10, 7), layout="constrained")
    axes = figure.subplots(2, 2, sharey="row")
    worst = [max(row["variance max"] - 1, 1 - row["variance min"]) for row in rows]
    errors = {
        "largest error of a mean\n(posterior standard deviations)": [r["mean error"] for r in rows],
        "largest |variance ratio - 1|": worst,
    }
    for of_error, (label, error) in zip(axes, errors.items(), strict=True):
        for ax, by in zip(of_error, ("steepness", "noise number"), strict=True):
            taken = np.array([row["steepness"] <= LIMIT for row in rows])
            x, y = np.array([row[by] for row in rows]), np.minimum(error, 1e3)
            ax.loglog(x[taken], y[taken], "o", color="tab:blue", label="taken by the default")
            ax.loglog(x[~taken], y[~taken], "s", color="tab:red", label="refused: HMC runs")
            reference = np.median([row["error of the reference"] for row in rows])
            ax.axhline(reference, color="0.6", linewidth=1)
            ax.set_xlabel(by)
            ax.xaxis.set_major_formatter("{x:g}")
            ax.xaxis.set_minor_formatter("")
        of_error[0].set_xticks([1, 1.5, 2, 3, 5, 10, 20, 50])
        of_error[0].axvline(LIMIT, color="k", linewidth=1, linestyle="--")
        of_error[0].set_ylabel(label)
    axes[0, 0].legend(loc="upper left")
    axes[0, 0].set_title("steepness tells right from wrong (dashed: the limit)")
    axes[0, 1].set_title("the noise number does not")
    figure.suptitle(
        "SGFS with second-order control variates, alpha² = 3, against HMC\n"
        "grey: four standard errors of the reference",
        fontsize="medium",
    )
    return figure


def main(report: Report) -> None:
    """All sets; claims about those that the default takes."""
    rows = [compare(*one) for one in SETS]
    rows.sort(key=lambda row: row["steepness"])
    taken = [row for row in rows if row["steepness"] <= LIMIT]
    slack = [row["error of the reference"] for row in taken]
    means = [row["mean error"] - e for row, e in zip(taken, slack, strict=True)]
    low = [row["variance min"] + math.sqrt(2) * e for row, e in zip(taken, slack, strict=True)]
    high = [row["variance max"] - math.sqrt(2) * e for row, e in zip(taken, slack, strict=True)]
    claims = [
        Claim("sets that the default takes", float(len(taken)), low=20),
        Claim("mean error there, beyond four standard errors of the reference", means, high=0.05),
        Claim("smallest variance ratio there, likewise", low, low=0.97),
        Claim("largest variance ratio there, likewise", high, high=1.05),
    ]
    report.save(rows, claims, {"noise_number": draw(rows)})


if __name__ == "__main__":
    benchmark(main, threads=1)
