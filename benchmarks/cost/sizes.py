"""What a matrix of all parameters costs, on each side of the limits in `linalg/sizes.py`.

    python -m benchmarks.cost.sizes

One core, double precision but for the product, medians of three. "factorisation" is Cholesky's and
"eigenvalue problem" has the vectors; "product" is that of 32 chains in single precision, once in
every step. "Fisher scoring" and "L-BFGS" find the mode of a logistic regression of 5,000 rows;
"off" is how far each ends from a mode found to rounding, in posterior standard deviations per
parameter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import posterior_of
from benchmarks.common.timing import in_turn, median
from skbayes_sg.models import Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior import mode as search

SIZES = (250, 1000, 2000, 4000)
COLUMNS = (20, 100, 250, 500, 900)
ROWS, CHAINS = 5000, 32


def algebra(n: int) -> dict:
    """Seconds of a matrix of n rows and columns."""
    rng = np.random.default_rng(n)
    A = rng.standard_normal((n, n))
    A = A @ A.T / n + np.eye(n)
    single, points = A.astype(np.float32), rng.standard_normal((CHAINS, n), dtype=np.float32)
    times = in_turn(
        {
            "factorisation s": lambda: np.linalg.cholesky(A),
            "eigenvalue problem s": lambda: np.linalg.eigh(A),
            "product s": lambda: points @ single,
        },
        repeats=3,
    )
    return {"size": n, "MB": n * n / 2**17} | {name: median(each) for name, each in times.items()}


def mode(n_columns: int) -> dict:
    """Seconds of two searches for a mode, and how far they end from it."""
    rng = np.random.default_rng(n_columns)
    X = rng.standard_normal((ROWS, n_columns))
    logits = X @ rng.standard_normal(n_columns) / np.sqrt(n_columns)
    y = (logits + rng.logistic(size=ROWS) > 0).astype(int)
    model = Softmax(n_columns, 2)
    posterior = posterior_of(model, X, model.encode(y, X.dtype), 1.0)
    start = np.zeros((1, posterior.dim))
    ways = {
        "Fisher scoring": lambda: search._staged(posterior, start, np.random.default_rng(0)),
        "L-BFGS": lambda: search._whitened_lbfgs(posterior, start, None),
    }
    right = exact(posterior, ways["Fisher scoring"]().theta)
    row: dict = {"columns": n_columns}
    for name, each in in_turn(ways, repeats=3).items():
        row |= {f"{name} s": median(each), f"{name} off": off(posterior, ways[name]().theta, right)}
    return row


def exact(posterior: Posterior, theta: NDArray) -> NDArray:
    """The mode, by Newton's steps from a point near it."""
    for _ in range(5):
        here = posterior.expand(theta, search.FULL)
        theta = theta + here.curvature.inverse().matvec(here.gradient)
    return theta


def off(posterior: Posterior, theta: NDArray, right: NDArray) -> float:
    """Distance in posterior standard deviations per parameter."""
    change = theta - right
    curvature = posterior.expand(right, search.FULL).curvature
    return float(np.sqrt(np.sum(change * curvature.matvec(change)) / change.size))


def main(report: Report) -> None:
    """One row per size, and one per number of columns."""
    report.save([algebra(n) for n in SIZES], name="sizes")
    rows = [mode(n) for n in COLUMNS]
    few = [row["Fisher scoring off"] for row in rows if row["columns"] < 250]
    many = [row["L-BFGS off"] for row in rows if row["columns"] >= 250]
    claims = [
        Claim("Fisher scoring ends from the mode, below 250 columns, in sd", few, high=0.05),
        Claim("L-BFGS ends from the mode, from 250 columns on, in sd", many, high=0.05),
    ]
    report.save(rows, claims, name="sizes_mode")


if __name__ == "__main__":
    benchmark(main, threads=1)
