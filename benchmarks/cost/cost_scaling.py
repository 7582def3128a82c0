"""Cost of the default fit against rows, parameters and chains, beside what the arithmetic predicts.

    python -m benchmarks.cost.cost_scaling  # up to 1e7 rows (2 GB of float32), five minutes
    python -m benchmarks.cost.cost_scaling --rows 1e6 # stop there

Binary logistic regression has standard normal float32 rows, one BLAS thread, one process. The
figure has three panels:

rows       seconds of BayesianLogisticRegressionSGFS().fit at 50 features, and its parts, medians
           of three. Predicted: what precedes the chains is proportional to the rows (the bare
           products of its passes, measured); sampling does not depend on them. "before s" is what
           chains and diagnostics leave of the fit, blank where that is not larger than its
           scatter.
parameters microseconds per chain and step, sixteen chains to a group, 100,000 rows. Predicted:
           the bare calls of the same shapes (gather of the rows of a minibatch, two products with
           them, one exponential, one block of normals), plus the overhead of a step, which is what
           is left at ten features.
chains     the same against the chains of a group, at 50 features. Predicted: bare calls plus the
           overhead of one step.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.common.harness import Report, benchmark
from benchmarks.common.internals import (
    ChainTarget,
    Stopwatch,
    anchored,
    begin,
    logistic_posterior,
    mode_of,
)
from benchmarks.common.timing import median, microseconds, rest, seconds
from skbayes_sg import BayesianLogisticRegressionSGFS
from skbayes_sg.samplers import UnderdampedLangevin

ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
FEATURES = (10, 20, 50, 100, 200, 500)
CHAINS = (1, 2, 4, 8, 16, 32, 64)


def data(n_rows: int, n_features: int) -> tuple[NDArray, NDArray]:
    """Standard normal rows, labels from a logistic model, -1 or 1."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    scale = np.float32(2 / np.sqrt(n_features))
    z = X @ (rng.standard_normal(n_features, dtype=np.float32) * scale)
    return X, np.where(z + rng.logistic(size=n_rows) > 0, 1, -1).astype(np.float32)


def against_rows(n_rows: int, watch: Stopwatch) -> dict:
    """A whole fit: what precedes the chains, the chains, the diagnostics."""
    X, y = data(n_rows, 50)
    model = BayesianLogisticRegressionSGFS(random_state=0)
    whole, diagnosing = [], []
    for _ in range(3):
        before = watch.seconds
        whole.append(seconds(lambda: model.fit(X, y)))
        diagnosing.append(watch.seconds - before)
    posterior = logistic_posterior(X, y)
    posterior, passes = anchored(posterior, mode_of(posterior))
    step = step_microseconds(posterior, model.sampler_, len(model.states_[0].theta))
    chains = median(step) * 1e-6 * len(model.states_) * model.n_iter_
    some = X[: min(n_rows, 100_000)]
    bare = median(microseconds(lambda: some.T @ (some @ np.ones((50, 2), np.float32)), 3, 5))
    gram = median(microseconds(lambda: some.T @ some, 3, 5))
    row = {
        "rows": n_rows,
        "fit s": median(whole),
        "chains s": chains,
        "diagnostics s": median(diagnosing),
        "before s": rest(whole, chains, diagnosing),
        "bare passes s": (bare + gram) * 1e-6 / len(some) * n_rows * passes,
    }
    print(row, flush=True)
    return row


def settled(n_rows: int, n_features: int) -> tuple[ChainTarget, UnderdampedLangevin]:
    """A posterior with its anchor, and the settled default sampler."""
    posterior = logistic_posterior(*data(n_rows, n_features))
    posterior, _ = anchored(posterior, mode_of(posterior))
    sampler = UnderdampedLangevin()
    sampler.resolve_auto(posterior)
    return posterior, sampler


def calls_for(dim: int) -> int:
    """Calls of one repeat, fewer where a call is long."""
    return 300 if dim < 200 else 30


def step_microseconds(
    posterior: ChainTarget, sampler: UnderdampedLangevin, n_chains: int
) -> NDArray:
    """Of one step of a group of chains, in each repeat."""
    state = begin(sampler, posterior, np.repeat(posterior.anchor.theta, n_chains, axis=0), seed=0)
    return microseconds(lambda: sampler.step(state, posterior), calls_for(posterior.dim), 7)


def bare_microseconds(posterior: ChainTarget, n: int, n_chains: int) -> NDArray:
    """The calls that the step cannot avoid, with nothing around them."""
    rng = np.random.default_rng(0)
    dim, turn = posterior.dim, iter(range(10**9))
    X = rng.standard_normal((min(posterior.n_rows, 5000), dim)).astype(np.float32)
    rows = rng.choice(len(X), (64, n))
    theta = rng.standard_normal((n_chains, dim)).astype(np.float32)

    def calls() -> None:
        block = X.take(rows[next(turn) % 64], axis=0)
        z = theta.dot(block.T)
        np.tanh(z, out=z)
        z.dot(block)
        rng.standard_normal((n_chains, dim))

    return microseconds(calls, calls_for(dim), 7)


def steps(cases: list[tuple[int, int]]) -> list[dict]:
    """Measured and predicted cost of (features, chains); the overhead is that of the first case."""
    table, overhead = [], None
    for n_features, n_chains in cases:
        posterior, sampler = settled(100_000, n_features)
        taken = step_microseconds(posterior, sampler, n_chains)
        bare = bare_microseconds(posterior, sampler.batch_size, n_chains)
        if not table:
            overhead = rest(taken, bare)
        predicted = None if overhead is None else median(bare) + overhead
        row = {"features": n_features, "chains": n_chains, "batch_size": sampler.batch_size}
        row |= {"step us": median(taken), "bare us": median(bare), "predicted us": predicted}
        table.append(row | {"us per chain": median(taken) / n_chains})
    return table


def column(rows: list[dict], name: str, per: str | None = None) -> list[float]:
    """A column to plot, over another; NaN where it is blank."""
    cells = [(row[name], row[per] if per else 1) for row in rows]
    return [np.nan if value is None else value / share for value, share in cells]


def plot(rows: list[dict], parameters: list[dict], chains: list[dict]) -> Figure:
    """Three panels, logarithmic."""
    figure = Figure(figsize=(13, 4), layout="constrained", dpi=110)
    axes = figure.subplots(1, 3)
    x, constant = column(rows, "rows"), np.median(column(rows, "chains s"))
    styles = {"fit s": "o-", "before s": "s-", "chains s": "^-", "diagnostics s": "v-"}
    for name, style in styles.items():
        axes[0].plot(x, column(rows, name), style, label=name[:-2])
    bare = column(rows, "bare passes s")
    axes[0].plot(x, bare, "k--", label="predicted, before: bare passes")
    axes[0].axhline(constant, color="k", ls=":", label="predicted, chains: constant")
    axes[0].set(xlabel="rows", ylabel="seconds", title="a default fit, 50 features")
    for axis, table, key in ((axes[1], parameters, "features"), (axes[2], chains, "chains")):
        for name, style in {"step us": "o-", "predicted us": "k--", "bare us": "k:"}.items():
            axis.plot(column(table, key), column(table, name, "chains"), style, label=name[:-3])
        axis.set(xlabel=key, ylabel="microseconds per chain and step")
    axes[1].set_title("100,000 rows, 16 vectorised chains")
    axes[2].set_title("100,000 rows, 50 features")
    for axis in axes:
        axis.set(xscale="log", yscale="log")
        axis.legend(fontsize=7, loc="upper left" if axis is axes[0] else "best")
    return figure


def main(report: Report, rows: float) -> None:
    """Three tables."""
    watch = Stopwatch()
    tables = [
        [against_rows(n_rows, watch) for n_rows in ROWS if n_rows <= rows],
        steps([(n_features, 16) for n_features in FEATURES]),
        steps([(50, n_chains) for n_chains in CHAINS]),
    ]
    together = [row for table in tables for row in table]
    report.save(together, figures={"cost_scaling": plot(*tables)})


if __name__ == "__main__":
    benchmark(main, threads=1, rows={"type": float, "default": 1e7, "help": "most rows"})
