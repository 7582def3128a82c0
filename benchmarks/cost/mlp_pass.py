"""CPU time of a pass over MNIST, networks of 100 and 300 relu units beside MLPClassifier's.

    python -m benchmarks.cost.mlp_pass

Minibatches of 200 rows in float32, one thread, a chain's share of a step in milliseconds. SGHMC is
the default sampler, of eight chains that share rows; SGFS has diagonal matrices and one chain. Both
are frozen, as after burn-in. MLPClassifier.partial_fit makes the steps of Adam. All take turns of
30 steps, and medians are of five turns. A minute.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.neural_network import MLPClassifier

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import posterior_of
from benchmarks.common.timing import Clock, median
from benchmarks.cost.mlp_cost import part
from skbayes_sg.chains.run import start_chains
from skbayes_sg.models import MLP
from skbayes_sg.samplers import SGFS, SGHMC

BATCH, STEPS, TURNS = 200, 30, 5
WARM_UP = 30
SAMPLERS = {
    "SGHMC, 8 chains": (SGHMC(share_rows=True, single=True), 8),
    "SGFS, 1 chain": (SGFS(3.0, "diag", B="precision", batch_size=BATCH), 1),
}


def jobs_of(units: int) -> dict:
    """What makes some steps, and of how many chains, by name."""
    X, y = part("train")
    few = slice(0, STEPS * BATCH)
    network = MLPClassifier((units,), "relu", batch_size=BATCH, random_state=0)
    network.partial_fit(X[few], y[few], classes=np.arange(10))
    jobs = {"MLPClassifier": (lambda: network.partial_fit(X[few], y[few]), 1)}
    model = MLP(784, 10, (units,), "relu")
    prior = model.reference_precision(float((X * X).sum() / len(X)))
    posterior = posterior_of(model, X, y, prior)
    for name, (sampler, n_chains) in SAMPLERS.items():
        theta = np.concatenate([model.init(np.random.default_rng(k)) for k in range(n_chains)])
        state = start_chains(sampler, posterior, theta, np.random.SeedSequence(0))[0]

        def move(n_steps=STEPS, sampler=sampler, state=state) -> None:
            for _ in range(n_steps):
                sampler.step(state, posterior)

        move(WARM_UP)
        sampler.freeze(state, posterior)
        jobs[name] = move, n_chains
    return jobs


def rows_of(units: int) -> list[dict]:
    """Milliseconds of a step of one chain."""
    jobs = jobs_of(units)
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(TURNS):
        for name, (job, n_chains) in jobs.items():
            with Clock(time.process_time) as clock:
                job()
            found[name].append(1e3 * clock.seconds / STEPS / n_chains)
    base = median(found["MLPClassifier"])
    return [
        {"units": units, "what": name, "ms": median(times), "ratio": median(times) / base}
        for name, times in found.items()
    ]


def main(report: Report) -> None:
    """Both widths."""
    warnings.simplefilter("ignore")
    rows = rows_of(100) + rows_of(300)
    sentence = "{units} units: a pass of {what}, over MLPClassifier's"
    claims = [
        Claim(sentence.format(**row), row["ratio"], high=1.2 if "SGHMC" in row["what"] else 2.0)
        for row in rows
        if row["what"] in SAMPLERS
    ]
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(main, threads=1)
