"""A default fit against LogisticRegression's, and averaged predictions against bare arithmetic.

    python -m benchmarks.cost.fit_against_lbfgs

The data are 1,000,000 x 50, float32. BayesianLogisticRegressionSGFS().fit, with one process and
with two, alternates with LogisticRegression().fit (C = 1, lbfgs, default tol); seconds are
medians of three. A fit may take three times as long as lbfgs. Its parts:

before chains   a fit that draws next to nothing, without its chains and diagnostics: checks, mode
                and anchor
sampling        burn-in and draws, by a clock inside the fit
diagnostics     the calls of the package's own diagnostics, by a clock inside the fit

The search for the mode run on its own is no such part: outside of a fit it has all threads of
BLAS, which slows it down threefold. Then predict_proba of 10,000 rows over 1,000 draws, two and
ten classes, is compared with the matrix product and sigmoid or max-shifted softmax alone,
float32, medians of five; memory is its growth as NumPy allocates it (predictions.csv). Under a
minute.
"""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from benchmarks.common.datasets import million
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import SamplingWatch, Stopwatch
from benchmarks.common.timing import in_turn, median, seconds
from skbayes_sg import BayesianLogisticRegressionSGFS

BLOCK = 64  # rows of one product, so that it stays in cache
SHORT = {"n_draws": 4, "burn_in": 0, "thin": 1}


def fits() -> list[dict]:
    """One row per way to fit."""
    X, y = million()
    lbfgs, judging, sampling = [], Stopwatch(), SamplingWatch()
    found: dict[str, list[tuple[float, ...]]] = {"n_jobs=None": [], "n_jobs=2": []}

    def timed(n_jobs: int | None, **length) -> tuple[float, float, float]:
        """Seconds of a fit, of its chains and of its diagnostics."""
        model = BayesianLogisticRegressionSGFS(random_state=0, n_jobs=n_jobs, **length)
        sampling.seconds = judging.seconds = 0.0
        return seconds(lambda: model.fit(X, y)), sampling.seconds, judging.seconds

    for _ in range(3):
        lbfgs.append(seconds(lambda: LogisticRegression(C=1.0).fit(X, y)))
        for name, n_jobs in (("n_jobs=None", None), ("n_jobs=2", 2)):
            whole, *parts = timed(n_jobs, **SHORT)
            found[name].append((*timed(n_jobs), whole - sum(parts)))
    table = [{"fit": "lbfgs", "s": median(lbfgs)}]
    for name, times in found.items():
        whole, drawing, diagnostics, before = map(median, zip(*times, strict=True))
        row = {"fit": name, "s": whole, "before chains s": before, "sampling s": drawing}
        table.append(row | {"diagnostics s": diagnostics, "times lbfgs": whole / median(lbfgs)})
    return table


def bare(draws: np.ndarray, A: np.ndarray, n_classes: int) -> np.ndarray:
    """Averaged probabilities by nothing but a product per block of rows, exp, sums and quotients.

    draws : (S, classes * columns of A), or (S, columns of A) for two classes
    """
    n_outputs = 1 if n_classes == 2 else n_classes
    stacked = draws.reshape(len(draws) * n_outputs, -1)
    proba = np.empty((n_outputs, len(A)), dtype=A.dtype)
    for start in range(0, len(A), BLOCK):
        rows = slice(start, start + BLOCK)
        z = (stacked @ A[rows].T).reshape(len(draws), n_outputs, -1)
        if n_classes == 2:
            np.exp(np.negative(z, out=z), out=z)
            z += 1
            np.reciprocal(z, out=z)
        else:
            z -= z.max(axis=1, keepdims=True)
            np.exp(z, out=z)
            z /= z.sum(axis=1, keepdims=True)
        proba[:, rows] = z.mean(axis=0)
    return proba.T


def predictions(n_classes: int) -> dict:
    """Times and memory of both ways, and how far they differ; draws of a short run do for that."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((10_000, 50)).astype(np.float32)
    utility = X @ rng.standard_normal((50, n_classes)) + rng.gumbel(size=(len(X), n_classes))
    model = BayesianLogisticRegressionSGFS(
        "sgfs", n_chains=2, n_draws=500, burn_in=200, thin=1, random_state=0, prior_precision=1.0
    ).fit(X, utility.argmax(axis=1))
    intercepts = model.intercept_samples_.reshape(1000, -1, 1)
    coefs = model.coef_samples_.reshape(*intercepts.shape[:2], 50)
    draws = np.concatenate([coefs, intercepts], axis=2).reshape(1000, -1).astype(np.float32)
    A = np.column_stack([X, np.ones(len(X), np.float32)])
    ways = {
        "predict_proba": lambda: model.predict_proba(X),
        "bare": lambda: bare(draws, A, n_classes),
    }
    times = in_turn(ways, repeats=5)
    row = {"classes": n_classes} | {f"{name} ms": 1000 * median(t) for name, t in times.items()}
    row["ratio"] = row["predict_proba ms"] / row["bare ms"]
    row |= {f"{name} MiB": growth(way) for name, way in ways.items()}
    difference = ways["predict_proba"]()[:, 1:] - ways["bare"]()[:, -n_classes + 1 :]
    return row | {"largest difference": float(np.abs(difference).max())}


def growth(way: Callable) -> float:
    """Peak of what NumPy allocates during a call, in MiB."""
    tracemalloc.start()
    way()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def claims(rows: list[dict]) -> list[Claim]:
    """A fit is not much slower; with processes it has their start to pay."""
    one, two = (f"{row['fit']}: seconds over lbfgs" for row in rows[1:])
    return [
        Claim(one, rows[1]["times lbfgs"], high=1.5),
        Claim(two, rows[2]["times lbfgs"], high=3),
    ]


def main(report: Report) -> None:
    """Predictions, then fits."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    report.save([predictions(n_classes) for n_classes in (2, 10)], name="predictions")
    rows = fits()
    report.save(rows, claims(rows))


if __name__ == "__main__":
    benchmark(main)
