"""What each structure of SGFS's matrices costs and brings in a network and in a DRBM: the table behind the defaults.

    python benchmarks/mlp_structures.py

MNIST projected to 20 random directions, 30 hidden units (940 parameters), 50,000 rows, prior of the estimators; and a
DRBM for the 23 classes of KDD99 (2,647 parameters), 50,000 rows. One chain, minibatches of 500, float32, one BLAS
thread. For each structure and alpha: milliseconds per step in burn-in (matrices measured and factorised every
`refresh_every` steps) and frozen; test error of the average and of the last draw after equal numbers of steps; Stein
ratio.

Before it, what it costs to keep the inverse of a full matrix up to date: the n scores of a minibatch enter by a new
factorisation, or as an update of rank n (Sherman-Morrison-Woodbury, the remark of Ahn et al. 2012), and what remains
of the former if it is made every D / 40 steps, as the package does until all is frozen.
"""

from __future__ import annotations

import time

import numpy as np
from common import DATA, mnist, print_table, write_csv
from scipy import linalg
from threadpoolctl import threadpool_limits

from skbayes_sg.chains import run_chain
from skbayes_sg.diagnostics import stein_ratio_of_sums
from skbayes_sg.models import DRBM, MLP
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import SGFS, SGLD

BURN_IN, STEPS, BATCH = 2000, 4000, 500


def digits() -> tuple[Posterior, np.ndarray, np.ndarray]:
    """Posterior of the network; rows and labels to test on: the last 10,000 of the training file."""
    X, y = mnist()
    projection = np.random.default_rng(0).standard_normal((784, 20))
    Z = X / 255.0 @ projection
    Z = ((Z - Z.mean(axis=0)) / Z.std(axis=0)).astype(np.float32)
    model = MLP(20, 10, (30,))
    prior = model.reference_precision(20.0)
    return Posterior(model, Z[:50_000], y[:50_000].astype(int), prior), Z[50_000:], y[50_000:]


def connections() -> tuple[Posterior, np.ndarray, np.ndarray]:
    """Posterior of the DRBM on 50,000 random connections; 20,000 others to test on; log1p, scaled to [0, 1]."""
    with np.load(DATA / "kddcup99_10percent.npz", allow_pickle=False) as archive:
        X, y = archive["X"], archive["y"]
    X = X[:, X.min(axis=0) < X.max(axis=0)]
    X = np.log1p(X - X.min(axis=0))
    X = (X / X.max(axis=0)).astype(np.float32)
    rows = np.random.default_rng(0).permutation(len(X))[:70_000]
    X, y = X[rows], y[rows].astype(int)
    model = DRBM(X.shape[1], 23, 41)
    prior = model.reference_precision(float((X * X).sum() / len(X)))
    return Posterior(model, X[:50_000], y[:50_000], prior), X[50_000:], y[50_000:]


def inverse_cost(dim: int, n_rows: int) -> dict:
    """Milliseconds of both ways to (A + G^T G)^-1 for n x D scores G, the smaller of three; they agree."""
    rng = np.random.default_rng(0)
    G = rng.standard_normal((n_rows, dim))
    A = np.diag(rng.uniform(50, 100, dim))
    inverse = np.diag(1 / A.diagonal())
    times: dict[str, list[float]] = {"factorised": [], "rank n": []}
    for _ in range(3):
        begin = time.perf_counter()
        fresh = linalg.lapack.dpotri(linalg.cholesky(A + G.T @ G, lower=True, check_finite=False), lower=True)[0]
        middle = time.perf_counter()
        right = inverse @ G.T
        small = linalg.cholesky(np.eye(n_rows) + G @ right, lower=True, check_finite=False)
        half = linalg.solve_triangular(small, right.T, lower=True, check_finite=False)
        updated = inverse - half.T @ half
        times["factorised"].append(middle - begin)
        times["rank n"].append(time.perf_counter() - middle)
    np.testing.assert_allclose(np.tril(fresh), np.tril(updated), atol=1e-10)
    factorised, rank = (1000 * min(times[name]) for name in ("factorised", "rank n"))
    every = max(1, dim // 40)
    return {
        "D": dim,
        "n": n_rows,
        "factorised ms": factorised,
        "rank n ms": rank,
        "factorised every D/40 steps, ms a step": factorised / every,
    }


def error(posterior: Posterior, draws: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    """Of predictions averaged over draws."""
    proba = sum(posterior.model.predict(draw[None], X)[0] for draw in draws)
    return float((proba.argmax(axis=0) != y).mean())


def row(name: str, posterior: Posterior, sampler, X: np.ndarray, y: np.ndarray, share: float) -> dict:
    """One chain: burn-in and draws, timed; its errors."""
    rng = np.random.default_rng(0)
    state = sampler.init(posterior, posterior.model.init(rng), np.random.Generator(np.random.SFC64(1)))
    burn_in, steps = int(BURN_IN * share), int(STEPS * share)
    begin = time.perf_counter()
    chain = run_chain(sampler, posterior, state, n_draws=1, burn_in=burn_in)
    burnt = time.perf_counter()
    chain = run_chain(sampler, posterior, chain.state, n_draws=40, thin=steps // 40, dtype=np.float32)
    end = time.perf_counter()
    return {
        "model": name,
        "sampler": repr(sampler).replace(f", batch_size={BATCH}", "").replace(f"batch_size={BATCH}, ", ""),
        "burn-in ms": 1000 * (burnt - begin) / burn_in,
        "frozen ms": 1000 * (end - burnt) / steps,
        "steps": burn_in + steps,
        "error, average": error(posterior, chain.draws[0], X, y),
        "error, last": error(posterior, chain.draws[0, -1:], X, y),
        "stein ratio": stein_ratio_of_sums([chain.stein])[0],
    }


def main() -> None:
    """Both models, all structures."""
    diag = [SGFS(alpha, "diag", B="precision", batch_size=BATCH) for alpha in (0.0, 1.0, 2.0, 4.0, 8.0)]
    kron = [SGFS(alpha, "kron", B="precision", batch_size=BATCH) for alpha in (0.0, 1.0, 2.0, 4.0)]
    block = [SGFS(alpha, "block", B="precision", batch_size=BATCH) for alpha in (0.0, 1.0, 2.0, 4.0)]
    full = [SGFS(alpha, "full", B="precision", batch_size=BATCH) for alpha in (0.0, 1.0, 2.0)]
    bounded = [SGFS(alpha, "diag", B="bounded", batch_size=BATCH) for alpha in (1.0, 2.0, 4.0)]
    langevin = SGLD(preconditioner="diag", batch_size=BATCH)
    updates = [inverse_cost(dim, n_rows) for dim in (940, 2647) for n_rows in (100, 300, 1000)]
    print_table(updates)
    write_csv("inverse_updates.csv", updates)
    print()
    table = []
    posterior, X, y = digits()
    for sampler in [*diag, *bounded, *kron, *block, *full, langevin]:
        table.append(row("MLP 20-30-10", posterior, sampler, X, y, 1.0))
        print(table[-1], flush=True)
    posterior, X, y = connections()
    for sampler in [diag[2], diag[3], *bounded, kron[1], kron[2], block[1], block[2], full[1], langevin]:
        table.append(row("DRBM 40-41-23", posterior, sampler, X, y, 0.25))
        print(table[-1], flush=True)
    print()
    print_table(table)
    write_csv("mlp_structures.csv", table)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
