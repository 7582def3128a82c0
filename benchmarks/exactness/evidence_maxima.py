"""How many maxima the evidence has over the prior precision, in units of the columns.

    python -m benchmarks.exactness.evidence_maxima

A search for the precision climbs to the nearest maximum. In raw units there was a second one, at
"no effect at all", for columns of different scales. Here the Laplace evidence of one precision is
computed over ten orders of magnitude around the start of the search, in half orders, for some 300
problems: normal, skewed, heavy-tailed, rare two-valued, correlated and collinear columns with few
or many effects, two classes or numbers, and sets that scikit-learn ships. The claim is that no
problem has two maxima, so that one start is as good as several.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.signal import find_peaks
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import evidence_over, learned_posterior

ORDERS = np.arange(-5.0, 5.1, 0.5)
NATS = 0.1  # where rows are fewer than columns the evidence is flat to far below that
KINDS = ("normal", "skewed", "rare", "heavy tails", "correlated", "collinear")


def columns(kind: str, rng: np.random.Generator) -> NDArray:
    """Some 30 to 1,600 rows of 2 to 63 columns."""
    n, d = int(10 ** rng.uniform(1.5, 3.2)), int(10 ** rng.uniform(0.3, 1.8))
    X = rng.standard_normal((n, d))
    if kind == "skewed":
        return np.exp(1.5 * X)
    if kind == "rare":
        return (rng.random((n, d)) < 10 ** rng.uniform(-2, -0.3, d)).astype(float)
    if kind == "heavy tails":
        return rng.standard_t(1.5, (n, d))
    if kind == "correlated":
        return X @ rng.standard_normal((d, d))
    if kind == "collinear":
        return X[:, :1] + 0.01 * X
    return X


def problems() -> Iterator[tuple[str, NDArray, NDArray]]:
    """Name, X and y; y of two or three values are labels."""
    rng = np.random.default_rng(0)
    for k in range(150):
        kind = KINDS[k % len(KINDS)]
        X = columns(kind, rng)
        share, size = rng.choice([0.05, 0.3, 1.0]), rng.choice([0.1, 1.0, 5.0])
        effect = size * rng.standard_normal(X.shape[1]) * (rng.random(X.shape[1]) < share)
        output = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9) @ effect
        y = (rng.logistic(size=len(X)) < output).astype(int)
        if 2 < y.sum() < len(y) - 2:
            yield kind, X, y
        yield kind, X, output + rng.standard_normal(len(X))
    for load in (load_wine, load_breast_cancer, load_iris):
        X, y = load(return_X_y=True)
        yield from ((load.__name__, X, one) for one in (y, y == 0, y == 1))
    yield ("load_diabetes", *load_diabetes(return_X_y=True))


def maxima(X: NDArray, y: NDArray) -> int:
    """Maxima of the Laplace evidence, at the ends too, that stand out of what is around them."""
    found = evidence_over(learned_posterior(X, y), np.log(10) * ORDERS)
    return len(find_peaks(np.r_[-np.inf, found, -np.inf], prominence=NATS)[0])


def main(report: Report) -> None:
    """One row for each kind of problem."""
    warnings.simplefilter("ignore")
    counts: dict[str, list[int]] = {}
    for name, X, y in problems():
        counts.setdefault(name, []).append(maxima(X, y))
    rows = [
        {"columns": name, "problems": len(each), "most maxima": max(each)}
        for name, each in counts.items()
    ]
    most = [row["most maxima"] for row in rows]
    report.save(rows, [Claim("maxima of the evidence of a problem", most, high=1)])


if __name__ == "__main__":
    benchmark(main, threads=1)
