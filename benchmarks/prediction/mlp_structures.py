"""What each structure of SGFS's matrices costs and brings in a network and in a DRBM.

    python -m benchmarks.prediction.mlp_structures

This is the table behind the defaults. The network: MNIST projected to 20 random directions, 30
hidden units (940 parameters), 50,000 rows, prior of the estimators. The DRBM: the 23 classes of
KDD99 (2,647 parameters), 50,000 rows. There is one chain, with minibatches of 500, float32, one
BLAS thread. For each structure and alpha: milliseconds per step in burn-in (matrices measured and
factorised every `refresh_every` steps) and frozen; test error of the average and of the last draw
after equal numbers of steps; Stein ratio.

Before it, what it costs to keep the inverse of a full matrix up to date (inverse_updates.csv).
The n scores of a minibatch enter by a new factorisation, or as an update of rank n
(Sherman-Morrison-Woodbury, the remark of Ahn et al. 2012). The last column is what remains of the
former if it is made every D / 40 steps, as the package does until all is frozen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from benchmarks.common.datasets import kdd99, mnist, standardised
from benchmarks.common.harness import Report, benchmark
from benchmarks.common.internals import Posterior, begin, posterior_of
from benchmarks.common.timing import Clock, in_turn
from skbayes_sg.chains.run import Length, run_chain
from skbayes_sg.diagnostics import stein_ratio_of_sums
from skbayes_sg.models import DRBM, MLP
from skbayes_sg.samplers import SGFS, SGLD

BURN_IN, STEPS, BATCH = 2000, 4000, 500


def digits() -> tuple[Posterior, NDArray, NDArray]:
    """Posterior of the network; rows and labels to test on, the last 10,000 of the file."""
    X, y = mnist()
    projection = np.random.default_rng(0).standard_normal((784, 20))
    Z = standardised(X / 255.0 @ projection).astype(np.float32)
    model = MLP(20, 10, (30,))
    posterior = posterior_of(model, Z[:50_000], y[:50_000], model.reference_precision(20.0))
    return posterior, Z[50_000:], y[50_000:]


def connections() -> tuple[Posterior, NDArray, NDArray]:
    """Posterior of the DRBM on 50,000 random connections; 20,000 others to test on.

    Columns are log1p, scaled to [0, 1].
    """
    data = kdd99()
    X = data.X[:, data.X.min(axis=0) < data.X.max(axis=0)]
    X = np.log1p(X - X.min(axis=0))
    X = (X / X.max(axis=0)).astype(np.float32)
    rows = np.random.default_rng(0).permutation(len(X))[:70_000]
    X, y = X[rows], data.y[rows]
    model = DRBM(X.shape[1], 23, 41)
    prior = model.reference_precision(float((X * X).sum() / len(X)))
    return posterior_of(model, X[:50_000], y[:50_000], prior), X[50_000:], y[50_000:]


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


def error(posterior: Posterior, draws: NDArray, X: NDArray, y: NDArray) -> float:
    """Of predictions averaged over draws."""
    proba = sum(posterior.model.predict(draw[None], X)[0] for draw in draws)
    return float((proba.argmax(axis=0) != y).mean())


def run(name: str, sampler, problem: tuple[Posterior, NDArray, NDArray], share: float) -> dict:
    """One chain: burn-in and draws, timed; its errors."""
    posterior, X, y = problem
    state = begin(sampler, posterior, posterior.model.init(np.random.default_rng(0)), seed=1)
    burn_in, steps = int(BURN_IN * share), int(STEPS * share)
    with Clock() as burning:
        state = run_chain(sampler, posterior, state, Length(1, burn_in)).state
    length = Length(40, thin=steps // 40)
    with Clock() as drawing:
        chain = run_chain(sampler, posterior, state, length, np.float32)
    label = repr(sampler).replace(f", batch_size={BATCH}", "")
    row = {
        "model": name,
        "sampler": label.replace(f"batch_size={BATCH}, ", ""),
        "burn-in ms": 1000 * burning.seconds / burn_in,
        "frozen ms": 1000 * drawing.seconds / steps,
        "steps": burn_in + steps,
        "error, average": error(posterior, chain.draws[0], X, y),
        "error, last": error(posterior, chain.draws[0, -1:], X, y),
        "stein ratio": stein_ratio_of_sums([chain.stein])[0],
    }
    print(row, flush=True)
    return row


def family(structure: str, alphas: tuple[float, ...], B: str = "precision") -> list[SGFS]:
    """SGFS with one structure at several alphas."""
    return [SGFS(alpha, structure, B=B, batch_size=BATCH) for alpha in alphas]


def main(report: Report) -> None:
    """Updates of an inverse, then both models with all structures."""
    sizes = [(dim, n_rows) for dim in (940, 2647) for n_rows in (100, 300, 1000)]
    report.save([inverse_cost(*size) for size in sizes], name="inverse_updates")
    diag = family("diag", (0.0, 1.0, 2.0, 4.0, 8.0))
    kron, block = (family(structure, (0.0, 1.0, 2.0, 4.0)) for structure in ("kron", "block"))
    full, bounded = family("full", (0.0, 1.0, 2.0)), family("diag", (1.0, 2.0, 4.0), "bounded")
    langevin = SGLD(preconditioner="diag", batch_size=BATCH)
    problem = digits()
    samplers = [*diag, *bounded, *kron, *block, *full, langevin]
    rows = [run("MLP 20-30-10", sampler, problem, 1.0) for sampler in samplers]
    problem = connections()
    samplers = [*diag[2:4], *bounded, *kron[1:3], *block[1:3], full[1], langevin]
    rows += [run("DRBM 40-41-23", sampler, problem, 0.25) for sampler in samplers]
    report.save(rows)


if __name__ == "__main__":
    benchmark(main, threads=1)
