"""What a step costs with sampled prior precisions, over that with given ones.

    python -m benchmarks.cost.sampled_step

Default fits to generated labels, and the same sampler under the precision that they found. Steps
are those of one group of chains after burn-in, by the median of 300, on one BLAS thread. A step of
HMC is a trajectory. Some ten seconds.
"""

from __future__ import annotations

import copy
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.preprocessing import StandardScaler

from benchmarks.common.harness import Claim, Report, benchmark
from skbayes_sg import BayesianLogisticRegressionSGFS
from skbayes_sg.samplers import HMC, UnderdampedLangevin

RATIO = 1.2
STEPS, WARM_UP = 300, 20


def sets() -> dict[str, tuple[NDArray, NDArray]]:
    """By name."""
    X, y = load_breast_cancer(return_X_y=True)
    shapes = {"10,000 x 20": (10_000, 20), "600 x 300": (600, 300), "3,000 x 54": (3000, 54)}
    made = {
        name: make_classification(*shape, n_informative=min(20, shape[1] - 4), random_state=0)
        for name, shape in shapes.items()
    }
    return {"breast cancer": (StandardScaler().fit_transform(X), y)} | made


def microseconds(model: Any, X: NDArray, y: NDArray) -> tuple[float, int]:
    """Of a step of the first group of chains, and rows of its minibatch."""
    run = model._run
    target = run.target(model._posterior_of(X, y, None))
    state = copy.deepcopy(run.states[0])
    each = []
    for _ in range(WARM_UP + STEPS):
        begin = time.perf_counter()
        run.sampler.step(state, target)
        each.append(time.perf_counter() - begin)
    return 1e6 * float(np.median(each[WARM_UP:])), state.rows.size


def row(name: str, X: NDArray, y: NDArray) -> dict:
    """Of one set."""
    sampled = BayesianLogisticRegressionSGFS(random_state=0, n_draws=20).fit(X, y)
    is_hmc = isinstance(sampled.sampler_, HMC)
    given = BayesianLogisticRegressionSGFS(
        HMC(variance_reduction="control_variate") if is_hmc else UnderdampedLangevin(),
        prior_precision=sampled.prior_precision_[: X.shape[1]],
        random_state=0,
        n_draws=20,
    ).fit(X, y)
    (with_it, rows), (without, given_rows) = (microseconds(m, X, y) for m in (sampled, given))
    return {
        "set": name,
        "sampler": type(sampled.sampler_).__name__,
        "rows of a minibatch, sampled": rows,
        "given": given_rows,
        "us, sampled": with_it,
        "us, given": without,
        "ratio": with_it / without,
    }


def main(report: Report) -> None:
    """All sets."""
    rows = [row(name, *data) for name, data in sets().items()]
    claims = [Claim(f"{r['set']}: step over that without", r["ratio"], high=RATIO) for r in rows]
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(main, threads=1)
