"""A 784-100-10 network on all of MNIST with diagonal matrices: time per pass, and test error.

    python -m benchmarks.cost.mlp_cost           # some five minutes
    python -m benchmarks.cost.mlp_cost --quick   # time per pass only, nothing written

60,000 rows are pixels / 255 in float32, in batches of 200 (MLPClassifier's own). Seconds per pass
are those of one chain of SGFS("diag"), frozen and in burn-in (noise and curvature measured), and
of MLPClassifier.partial_fit (Adam), alternating, medians of five, one BLAS thread for both. Then
comes the test error (10,000 rows) of averages over draws of two chains against passes.
"""

from __future__ import annotations

import copy
import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.neural_network import MLPClassifier

from benchmarks.common.datasets import mnist
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import Posterior, begin, posterior_of
from benchmarks.common.timing import in_turn, median
from skbayes_sg.chains.run import Length, iterate_steps, run_chain
from skbayes_sg.models import MLP
from skbayes_sg.samplers import SGFS

BATCH, ALPHA, CHAINS = 200, 3.0, 2
SEGMENTS, STEPS, DRAWS = 6, 4500, 25
SAMPLER = SGFS(ALPHA, "diag", B="precision", batch_size=BATCH)


def part(name: str) -> tuple[NDArray, NDArray]:
    """Training or test part."""
    X, y = mnist(name)
    return (X / 255).astype(np.float32), y


def seconds_per_pass(posterior: Posterior, X: NDArray, y: NDArray) -> list[dict]:
    """Seconds of a pass of each, alternating."""
    state = begin(SAMPLER, posterior, posterior.model.init(np.random.default_rng(0)), seed=0)
    steps = len(X) // BATCH
    frozen = run_chain(SAMPLER, posterior, state, Length(1, 200)).state
    network = MLPClassifier((100,), "logistic", batch_size=BATCH, random_state=0)
    network.partial_fit(X, y, classes=np.arange(10))

    def burn_in() -> None:
        adapting = copy.deepcopy(state)
        for _ in iterate_steps(SAMPLER, posterior, adapting, steps):
            pass

    jobs = {
        "MLPClassifier": lambda: network.partial_fit(X, y),
        "SGFS, frozen": lambda: run_chain(SAMPLER, posterior, frozen, Length(1, thin=steps)),
        "SGFS, burn-in": burn_in,
    }
    medians = {name: median(times) for name, times in in_turn(jobs, repeats=5).items()}
    return [
        {"what": f"{name}, s per pass", "value": s, "ratio": s / medians["MLPClassifier"]}
        for name, s in medians.items()
    ]


def errors(posterior: Posterior, X: NDArray, y: NDArray) -> list[dict]:
    """Test error of averages since half of the run, and of the last draws."""
    model = posterior.model
    theta = np.concatenate([model.init(np.random.default_rng(k)) for k in range(CHAINS)])
    state, table, recent = begin(SAMPLER, posterior, theta, seed=0), [], []
    for segment in range(SEGMENTS):
        length = Length(DRAWS, 0 if segment else STEPS, STEPS // DRAWS)
        chain = run_chain(SAMPLER, posterior, state, length, np.float32)
        state = chain.state
        draws = chain.draws.reshape(-1, posterior.dim)
        recent.append(sum(model.predict(draw[None], X)[0] for draw in draws) / len(draws))
        average = sum(recent[len(recent) // 2 :])
        last = model.predict(draws[-1:], X)[0]
        row = {"what": f"test error after {state.t * BATCH / posterior.n_rows:.0f} passes"}
        row["value"] = float((average.argmax(axis=0) != y).mean())
        row["last draw"] = float((last.argmax(axis=0) != y).mean())
        table.append(row)
        print(row, flush=True)
    return table


def claims(rows: list[dict]) -> list[Claim]:
    """Passes are not much slower than MLPClassifier's, and lead to a good average."""
    timed = [row for row in rows[1:] if row.get("ratio")]
    found = [Claim(f"{row['what']}, over MLPClassifier's", row["ratio"], high=2) for row in timed]
    last = rows[-1]
    error = last["value"] if last["what"].startswith("test error") else None
    return [*found, Claim("test error at the end", error, high=0.025)]


def main(report: Report, quick: bool) -> None:
    """Time, then error."""
    warnings.simplefilter("ignore")
    X, y = part("train")
    model = MLP(784, 10, (100,))
    prior = model.reference_precision(float((X * X).sum() / len(X)))
    posterior = posterior_of(model, X, y, prior)
    rows = seconds_per_pass(posterior, X, y)
    if quick:
        report.show(rows)
        return report.diagnose_run(claims(rows))
    rows += errors(posterior, *part("test"))
    report.save(rows, claims(rows))


if __name__ == "__main__":
    benchmark(main, threads=1, quick={"action": "store_true", "help": "time per pass only"})
