"""Cost of the default fit against rows, parameters and chains, beside what the arithmetic predicts.

    python benchmarks/cost_scaling.py            # up to 1e7 rows (2 GB of float32); some four minutes
    python benchmarks/cost_scaling.py --rows 1e6 # stop there

Binary logistic regression, standard normal float32 rows, one BLAS thread, one process. Three panels:

rows       seconds of BayesianLogisticRegressionSGFS().fit at 50 features, and its parts. Predicted: what precedes the
           chains is proportional to the rows (the bare products of its passes, measured); sampling does not depend
           on them.
parameters microseconds per chain and step, sixteen chains to a group, 100,000 rows. Predicted: the bare calls of the
           same shapes (gather of n = kappa ~ D + 1 rows, two products with them, two D x D products), plus the
           overhead of a step, which is what is left at ten features.
chains     the same against the chains of a group, at 50 features. Predicted: bare calls plus the overhead of one step.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from common import RESULTS, logistic_posterior, print_table, write_csv
from peers import Stopwatch
from step_cost import microseconds
from threadpoolctl import threadpool_limits

from skbayes_sg import BayesianLogisticRegressionSGFS
from skbayes_sg.control_variates import AnchoredPosterior
from skbayes_sg.mode import find_mode, posterior_mean
from skbayes_sg.samplers import SGFS

ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
FEATURES = (10, 20, 50, 100, 200, 500)
CHAINS = (1, 2, 4, 8, 16, 32, 64)


def data(n_rows: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal rows, labels from a logistic model, -1 or 1."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    z = X @ (rng.standard_normal(n_features, dtype=np.float32) * np.float32(2 / np.sqrt(n_features)))
    return X, np.where(z + rng.logistic(size=n_rows) > 0, 1, -1).astype(np.float32)


def against_rows(most: int) -> list[dict]:
    """Whole fits: what precedes the chains, the chains, the diagnostics."""
    table, watch = [], Stopwatch()
    for n_rows in [n for n in ROWS if n <= most]:
        X, y = data(n_rows, 50)
        model, before, begin = BayesianLogisticRegressionSGFS(random_state=0), watch.seconds, time.perf_counter()
        model.fit(X, y)
        whole, judged = time.perf_counter() - begin, watch.seconds - before
        posterior = logistic_posterior(X, y)
        posterior = AnchoredPosterior(posterior, model._anchor.theta, model._anchor.curvature)
        step = step_microseconds(posterior, model.sampler_, 4)
        chains = step * 1e-6 * len(model.states_) * model.n_iter_
        row = {"rows": n_rows, "fit s": whole, "chains s": chains, "diagnostics s": judged}
        row["before s"] = whole - chains - judged
        some = X[: min(n_rows, 100_000)]
        bare = microseconds(lambda some=some: some.T @ (some @ np.ones((50, 2), np.float32)), 3, 5)
        gram = microseconds(lambda some=some: some.T @ some, 3, 5)
        per_row = (bare + gram) * 1e-6 / len(some)
        row["bare passes s"] = per_row * n_rows * model._anchor.passes
        table.append(row)
        print(row, flush=True)
    return table


def anchored(n_rows: int, n_features: int) -> tuple[AnchoredPosterior, SGFS]:
    """A posterior with its anchor, and the settled default sampler."""
    posterior = logistic_posterior(*data(n_rows, n_features))
    mode = find_mode(posterior, np.zeros((1, posterior.dim)), np.random.default_rng(0))
    mode = posterior_mean(posterior, mode)
    posterior = AnchoredPosterior(posterior, mode.theta, mode.curvature)
    sampler = SGFS(variance_reduction="control_variate")
    sampler.settle(posterior)
    return posterior, sampler


def step_microseconds(posterior: AnchoredPosterior, sampler: SGFS, n_chains: int) -> float:
    """Of one step of a group of chains."""
    theta = np.repeat(posterior.anchor, n_chains, axis=0)
    state = sampler.init(posterior, theta, np.random.Generator(np.random.SFC64(0)))
    calls = 300 if posterior.dim < 200 else 30
    return microseconds(lambda: sampler.step(state, posterior), calls, 7)


def bare_microseconds(posterior: AnchoredPosterior, n: int, n_chains: int) -> float:
    """The calls that the step cannot avoid, with nothing around them."""
    rng = np.random.default_rng(0)
    rows = np.sort(rng.choice(posterior.n_rows, (64, n)), axis=1)
    X, dim, turn = posterior.X, posterior.dim, iter(range(10**9))
    theta = rng.standard_normal((n_chains, X.shape[1])).astype(X.dtype)
    force, gain = rng.standard_normal((n_chains, dim)), rng.standard_normal((dim, dim))

    def calls() -> None:
        block = X.take(rows[next(turn) % 64], axis=0)
        z = theta.dot(block.T)
        np.tanh(z, out=z)
        z.dot(block)
        force.dot(gain)
        force.dot(gain)

    return microseconds(calls, 300 if dim < 200 else 30, 7)


def steps(cases: list[tuple[int, int]]) -> list[dict]:
    """Measured and predicted cost of (features, chains); the overhead is that of the first case."""
    table, overhead = [], None
    for n_features, n_chains in cases:
        posterior, sampler = anchored(100_000, n_features)
        step = step_microseconds(posterior, sampler, n_chains)
        bare = bare_microseconds(posterior, sampler.batch_size, n_chains)
        overhead = step - bare if overhead is None else overhead
        row = {"features": n_features, "chains": n_chains, "batch_size": sampler.batch_size, "step us": step}
        row |= {"bare us": bare, "predicted us": bare + overhead, "us per chain": step / n_chains}
        table.append(row)
    return table


def plot(rows: list[dict], parameters: list[dict], chains: list[dict]) -> None:
    """Three panels, logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4), layout="constrained")
    axes = figure.subplots(1, 3)
    column = {name: [row[name] for row in rows] for name in rows[0]}
    for name, style in {"fit s": "o-", "before s": "s-", "chains s": "^-", "diagnostics s": "v-"}.items():
        axes[0].plot(column["rows"], column[name], style, label=name[:-2])
    axes[0].plot(column["rows"], column["bare passes s"], "k--", label="predicted, before: bare passes")
    axes[0].axhline(np.median(column["chains s"]), color="k", ls=":", label="predicted, chains: constant")
    axes[0].set(xlabel="rows", ylabel="seconds", title="a default fit, 50 features")
    for axis, table, key in ((axes[1], parameters, "features"), (axes[2], chains, "chains")):
        x = [row[key] for row in table]
        for name, style in {"step us": "o-", "predicted us": "k--", "bare us": "k:"}.items():
            axis.plot(x, [row[name] / row["chains"] for row in table], style, label=name[:-3])
        axis.set(xlabel=key, ylabel="microseconds per chain and step")
    axes[1].set_title("100,000 rows, 16 chains in lock step")
    axes[2].set_title("100,000 rows, 50 features")
    for axis in axes:
        axis.set(xscale="log", yscale="log")
        axis.legend(fontsize=7, loc="upper left" if axis is axes[0] else "best")
    figure.savefig(RESULTS / "cost_scaling.png", dpi=110)


def main() -> None:
    """Measure, print, plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e7)
    most = int(parser.parse_args().rows)
    tables = [
        against_rows(most),
        steps([(n_features, 16) for n_features in FEATURES]),
        steps([(50, n_chains) for n_chains in CHAINS]),
    ]
    for table in tables:
        print()
        print_table(table)
    plot(*tables)
    write_csv("cost_scaling.csv", [row for table in tables for row in table])


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
