"""What a matrix of all parameters costs, on each side of the limits in `linalg/sizes.py`.

    python -m benchmarks.cost.sizes

One core, double precision but for the product, medians of three. "factorisation" is Cholesky's and
"eigenvalue problem" has the vectors; "product" is that of 32 chains in single precision, once in
every step. "by labels" and "by pairs" make the Gram matrix of the curvature of a multinomial
regression: as one product of all rows and virtual labels, or as one for each pair of classes.
"along rows" and "row by row" make the outer products of so many outputs of 2,000 rows. "merging"
sorts the rows of a table of 20 columns, and "pass" is one with the curvature over a logistic
regression of as many numbers.

inverse_updates.csv has what it costs to keep the inverse of a D x D matrix up to date: n scores of
a minibatch enter by a new factorisation, or as an update of rank n (Sherman-Morrison-Woodbury, the
remark of Ahn et al. 2012). The last column is what remains of the former if it is made every D / 40
steps, as the package does until all is frozen.
"""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from benchmarks.common.harness import Report, benchmark
from benchmarks.common.internals import posterior_of
from benchmarks.common.timing import in_turn, median
from skbayes_sg.linalg import FULL, scores
from skbayes_sg.models import Softmax

SIZES = (250, 1000, 2000, 4000)
COLUMNS = (20, 100, 250, 500, 900)
ROWS, CHAINS = 5000, 32
GRAMS = [(32, 4, 3), (150, 20, 3), (500, 20, 3), (500, 100, 3), (32, 20, 10), (1500, 64, 10)]
OUTPUTS, NUMBERS = (2, 5, 8, 10, 26), (20_000, 200_000, 2_000_000, 20_000_000)
UPDATES = [(dim, n_rows) for dim in (940, 2647) for n_rows in (100, 300, 1000)]


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


def gram(n_rows: int, n_columns: int, n_classes: int) -> dict:
    """Seconds of the Gram matrix of virtual labels, each way."""
    rng = np.random.default_rng(0)
    model, X = Softmax(n_columns, n_classes), rng.standard_normal((n_rows, n_columns))
    labels = model.fisher(np.zeros((1, model.dim)), X)
    columns = np.arange(model.dim)
    times = in_turn(
        {
            "by labels s": lambda: _gram(labels, columns, in_pairs=False),
            "by pairs s": lambda: _gram(labels, columns, in_pairs=True),
        },
        repeats=5,
    )
    products = n_rows * n_classes * (n_columns + 1) ** 2
    sizes = {"rows": n_rows, "columns": n_columns, "classes": n_classes, "of a pair": products}
    return sizes | {name: median(each) for name, each in times.items()}


def _gram(labels: scores.Scores, columns: NDArray, *, in_pairs: bool) -> NDArray:
    with patch.object(scores, "is_worth_pairs", lambda _: in_pairs):
        return labels.gram(columns)


def outer(k: int) -> dict:
    """Seconds of the outer products of k outputs, each way."""
    vectors = np.random.default_rng(0).standard_normal((k, k, 2000))

    def along_rows() -> NDArray:
        return np.einsum("qkn,qln->nkl", vectors, vectors)

    def row_by_row() -> NDArray:
        each = np.ascontiguousarray(vectors.transpose(2, 1, 0))
        return each @ each.swapaxes(1, 2)

    ways = {"along rows s": along_rows, "row by row s": row_by_row}
    return {"outputs": k} | {n: median(t) for n, t in in_turn(ways, repeats=5).items()}


def passes(n_numbers: int) -> dict:
    """Seconds of sorting a table, and of one pass with the curvature."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_numbers // 20, 20))
    model = Softmax(20, 2)
    posterior = posterior_of(model, X, model.encode(rng.integers(2, size=len(X)), X.dtype), 1.0)
    theta = np.zeros((1, posterior.dim))
    ways = {
        "merging s": posterior.data.sample.merged,
        "pass s": lambda: posterior.expand(theta, FULL),
    }
    return {"numbers": n_numbers} | {n: median(t) for n, t in in_turn(ways, repeats=3).items()}


def inverse_cost(dim: int, n_rows: int) -> dict:
    """Milliseconds of both ways to (A + G^T G)^-1 for n x D scores G, the smaller of three."""
    rng = np.random.default_rng(0)
    G = rng.standard_normal((n_rows, dim))
    A = np.diag(rng.uniform(50, 100, dim))
    inverse = np.diag(1 / A.diagonal())
    result = {}

    def factorised() -> None:
        root = linalg.cholesky(A + G.T @ G, lower=True, check_finite=False)
        result["factorised"] = linalg.lapack.dpotri(root, lower=True)[0]

    def updated() -> None:
        right = inverse @ G.T
        small = linalg.cholesky(np.eye(n_rows) + G @ right, lower=True, check_finite=False)
        half = linalg.solve_triangular(small, right.T, lower=True, check_finite=False)
        result["rank n"] = inverse - half.T @ half

    times = in_turn({"factorised ms": factorised, "rank n ms": updated}, repeats=3)
    np.testing.assert_allclose(*map(np.tril, result.values()), atol=1e-10)
    found = {name: 1000 * min(each) for name, each in times.items()}
    amortised = found["factorised ms"] / max(1, dim // 40)
    row = {"D": dim, "n": n_rows, **found}
    return row | {"factorised every D/40 steps, ms a step": amortised}


def main(report: Report) -> None:
    """One row per size."""
    report.save([algebra(n) for n in SIZES], name="sizes")
    report.save([gram(*sizes) for sizes in GRAMS], name="sizes_gram")
    report.save([outer(k) for k in OUTPUTS], name="sizes_outer")
    report.save([passes(n) for n in NUMBERS], name="sizes_passes")
    report.save([inverse_cost(*size) for size in UPDATES], name="inverse_updates")


if __name__ == "__main__":
    benchmark(main, threads=1)
