"""A 784-100-10 network on all of MNIST with diagonal matrices: time per pass against MLPClassifier's, and test error.

    python benchmarks/mlp_cost.py           # some five minutes
    python benchmarks/mlp_cost.py --quick   # time per pass only

60,000 rows, pixels / 255 in float32, batches of 200 (MLPClassifier's own). Seconds per pass: one chain of SGFS("diag"),
frozen and in burn-in (noise and curvature measured), and MLPClassifier.partial_fit (Adam), alternating, medians of
five, one BLAS thread for both. Then the test error (10,000 rows) of averages over draws of two chains against passes.
"""

from __future__ import annotations

import argparse
import copy
import time
import warnings

import numpy as np
from common import DATA, print_table, write_csv
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from skbayes_sg.chains import run_chain
from skbayes_sg.models import MLP
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import SGFS

BATCH, ALPHA, CHAINS = 200, 3.0, 2


def data() -> tuple[np.ndarray, ...]:
    """Training and test part."""
    if not (DATA / "mnist.npz").exists():
        from sklearn.datasets import fetch_openml

        X, y = fetch_openml("mnist_784", version=1, as_frame=False, return_X_y=True)
        X, y = (X / 255).astype(np.float32), y.astype(int)
        return X[:60_000], y[:60_000], X[60_000:], y[60_000:]
    with np.load(DATA / "mnist.npz", allow_pickle=False) as archive:
        X, test = ((archive[name] / 255).astype(np.float32) for name in ("X", "X_test"))
        return X, archive["y"].astype(int), test, archive["y_test"].astype(int)


def passes_per_second(posterior: Posterior, X: np.ndarray, y: np.ndarray) -> list[dict]:
    """Seconds of a pass of each, alternating."""
    sampler, model = SGFS(ALPHA, "diag", B="precision", batch_size=BATCH), posterior.model
    state = sampler.init(posterior, model.init(np.random.default_rng(0)), np.random.Generator(np.random.SFC64(0)))
    steps = len(X) // BATCH
    frozen = run_chain(sampler, posterior, state, n_draws=1, burn_in=200).state
    network = MLPClassifier((100,), "logistic", batch_size=BATCH, random_state=0).partial_fit(
        X, y, classes=np.arange(10)
    )

    def burn_in() -> None:
        adapting = copy.deepcopy(state)
        for _ in range(steps):
            sampler.step(adapting, posterior)

    jobs = {
        "MLPClassifier": lambda: network.partial_fit(X, y),
        "SGFS, frozen": lambda: run_chain(sampler, posterior, frozen, n_draws=1, thin=steps),
        "SGFS, burn-in": burn_in,
    }
    seconds = {name: [] for name in jobs}
    for _ in range(5):
        for name, job in jobs.items():
            begin = time.perf_counter()
            job()
            seconds[name].append(time.perf_counter() - begin)
    medians = {name: float(np.median(values)) for name, values in seconds.items()}
    return [{"what": f"{n}, s per pass", "value": s, "ratio": s / medians["MLPClassifier"]} for n, s in medians.items()]


def errors(posterior: Posterior, test: np.ndarray, b: np.ndarray, segments: int = 6, steps: int = 4500) -> list[dict]:
    """Test error of averages since half of the run, and of the last draws."""
    sampler, model = SGFS(ALPHA, "diag", B="precision", batch_size=BATCH), posterior.model
    theta = np.concatenate([model.init(np.random.default_rng(k)) for k in range(CHAINS)])
    state, table, recent = sampler.init(posterior, theta, np.random.Generator(np.random.SFC64(0))), [], []
    for segment in range(segments):
        burn_in = steps if segment == 0 else 0
        chain = run_chain(sampler, posterior, state, n_draws=25, thin=steps // 25, burn_in=burn_in, dtype=np.float32)
        state = chain.state
        draws = chain.draws.reshape(-1, posterior.dim)
        recent.append(sum(model.predict(draw[None], test)[0] for draw in draws) / len(draws))
        average = sum(recent[len(recent) // 2 :])
        last = model.predict(draws[-1:], test)[0]
        row = {"what": f"test error after {state.t * BATCH / posterior.n_rows:.0f} passes"}
        row |= {
            "value": float((average.argmax(axis=0) != b).mean()),
            "last draw": float((last.argmax(axis=0) != b).mean()),
        }
        table.append(row)
        print(row, flush=True)
    return table


def main() -> None:
    """Time, error, verdict."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    X, y, test, b = data()
    model = MLP(784, 10, (100,))
    posterior = Posterior(model, X, y, model.reference_precision(float((X * X).sum() / len(X))))
    table = passes_per_second(posterior, X, y)
    claims = [(f"{row['what']}: {row['ratio']:.2f} times, <= 2", row["ratio"] <= 2) for row in table[1:]]
    if not quick:
        table += errors(posterior, test, b)
        claims.append((f"test error {table[-1]['value']:.4f} <= .025", table[-1]["value"] <= 0.025))
        write_csv("mlp_cost.csv", table)
    print_table(table)
    for claim, holds in claims:
        print("ok  " if holds else "FAIL", claim)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
