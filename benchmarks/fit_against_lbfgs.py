"""A default fit against LogisticRegression's, and averaged predictions against their bare arithmetic.

    python benchmarks/fit_against_lbfgs.py

1,000,000 x 50 float32: seconds of BayesianLogisticRegressionSGFS().fit, with one process and with two, over those
of LogisticRegression().fit (C = 1, lbfgs, default tol), alternating, medians of three; where the seconds go: the
search for the mode, run again on its own, the diagnostics, and the sampling, which is the rest. Then predict_proba
of 10,000 rows over 1,000 draws, two and ten classes, against the matrix product with sigmoid or max-shifted
softmax alone, float32, medians of five; growth of memory as NumPy allocates it.
"""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Callable

import numpy as np
from common import logistic_posterior, print_table, write_csv
from peers import Stopwatch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from skbayes_sg import BayesianLogisticRegressionSGFS
from skbayes_sg.mode import find_mode

BLOCK = 64  # rows of one product, so that it stays in cache


def seconds(job: Callable) -> float:
    """Wall time of one call."""
    begin = time.perf_counter()
    job()
    return time.perf_counter() - begin


def fits() -> list[dict]:
    """One row per way to fit."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_000_000, 50)).astype(np.float32)
    y = X @ rng.standard_normal(50) * 0.3 + rng.logistic(size=len(X)) > 0
    models = {
        "lbfgs": LogisticRegression(C=1.0),
        "n_jobs=None": BayesianLogisticRegressionSGFS(random_state=0),
        "n_jobs=2": BayesianLogisticRegressionSGFS(random_state=0, n_jobs=2),
    }
    found, watch = {name: [] for name in models}, Stopwatch()
    for _ in range(3):
        for name, model in models.items():
            before = watch.seconds
            whole = seconds(lambda model=model: model.fit(X, y))
            found[name].append((whole, 0.0 if name == "lbfgs" else mode_seconds(X, y), watch.seconds - before))
    lbfgs = np.median([whole for whole, *_ in found.pop("lbfgs")])
    table = [{"fit": "lbfgs", "s": float(lbfgs)}]
    for name, values in found.items():
        whole, mode, diagnostics = (float(value) for value in np.median(values, axis=0))
        split = {"mode s": mode, "sampling s": whole - mode - diagnostics, "diagnostics s": diagnostics}
        table.append({"fit": name, "s": whole, **split, "times lbfgs": float(whole / lbfgs)})
    return table


def mode_seconds(X: np.ndarray, y: np.ndarray) -> float:
    """Seconds of the search for the mode on its own."""
    posterior = logistic_posterior(X, np.where(y, 1, -1).astype(np.float32))
    return seconds(lambda: find_mode(posterior, np.zeros((1, posterior.dim)), np.random.default_rng(0)))


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
    """Times and memory of both ways, and how far they differ. The draws need not be good: a short run does."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((10_000, 50)).astype(np.float32)
    y = (X @ rng.standard_normal((50, n_classes)) + rng.gumbel(size=(len(X), n_classes))).argmax(axis=1)
    options = {"burn_in": 200, "thin": 1, "random_state": 0}
    model = BayesianLogisticRegressionSGFS("sgfs", n_chains=2, n_draws=500, **options).fit(X, y)
    intercepts = model.intercept_samples_.reshape(1000, -1, 1)
    draws = np.concatenate([model.coef_samples_.reshape(*intercepts.shape[:2], 50), intercepts], axis=2)
    draws, A = draws.reshape(1000, -1).astype(np.float32), np.column_stack([X, np.ones(len(X), np.float32)])
    ways = {"predict_proba": lambda: model.predict_proba(X), "bare": lambda: bare(draws, A, n_classes)}
    times = {name: [] for name in ways}
    for _ in range(5):
        for name, way in ways.items():
            times[name].append(seconds(way))
    row = {"classes": n_classes} | {f"{name} ms": 1000 * float(np.median(t)) for name, t in times.items()}
    row["ratio"] = row["predict_proba ms"] / row["bare ms"]
    row |= {f"{name} MiB": growth(way) for name, way in ways.items()}
    row["largest difference"] = float(
        np.abs(ways["predict_proba"]()[:, 1:] - ways["bare"]()[:, -n_classes + 1 :]).max()
    )
    return row


def growth(way: Callable) -> float:
    """Peak of what NumPy allocates during a call, in MiB."""
    tracemalloc.start()
    way()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def main() -> None:
    """Measure, print, judge."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    table = [predictions(n_classes) for n_classes in (2, 10)]
    print_table(table)
    fitted = fits()
    print()
    print_table(fitted)
    print(f"\nwrote {write_csv('fit_against_lbfgs.csv', [*fitted, *table]).name}\n")
    for row in fitted[1:]:
        print(
            f"{'ok  ' if row['times lbfgs'] <= 3 else 'FAIL'} {row['fit']}: {row['times lbfgs']:.2f} times lbfgs, <= 3"
        )


if __name__ == "__main__":
    main()
