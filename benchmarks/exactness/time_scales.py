"""HMC whose short steps have few rows, beside HMC whose steps all have all rows.

    python -m benchmarks.exactness.time_scales  # some five minutes on a quiet core

Fits of 4,000 draws under a prior precision of 1, which HMC runs as the posteriors are steep: KDD
99, the columns of steep.py that follow Zipf's law, and the first 5,000 rows of these. "passes" are
gradients of all rows, short steps counted by their share of the rows. Means over --seeds; "R-hat"
is the largest. One core.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.timing import Clock
from benchmarks.exactness.steep import DRAWS, SETS
from skbayes_sg import BayesianLogisticRegressionSGFS
from skbayes_sg.samplers import hmc

NAMES = {"KDD99": ("kdd", None), "census, 5,000 rows": ("census", 5000), "census": ("census", None)}


def fits(name: str, most_short: int, seeds: int) -> dict:
    """Mean figures of fits with at most so many short steps in a long one."""
    data, n_rows = NAMES[name]
    X, y = (each[:n_rows] for each in SETS[data].data())
    X = X[:, X.std(axis=0) > 0]
    found, hmc._MOST_SHORT = [], most_short
    for seed in range(seeds):
        model = BayesianLogisticRegressionSGFS(
            prior_precision=1.0, n_draws=DRAWS, random_state=seed
        )
        with Clock(time.process_time) as clock:
            model.fit(X, y)
        figures = model.diagnostics_
        sampling = clock.seconds, model.n_passes_ / len(model.draws_)
        found.append((*sampling, figures["ess_min"], figures["r_hat_max"]))
    seconds, passes, ess, r_hat = np.array(found).T
    return {
        "data": name,
        "short steps": most_short,
        "CPU s": seconds.mean(),
        "passes": passes.mean(),
        "ESS": ess.mean(),
        "R-hat": r_hat.max(),
        "passes an effective draw": passes.mean() / ess.mean(),
    }


def main(report: Report, seeds: int) -> None:
    """All sets, with and without short steps."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows, claims = [], []
    for name in NAMES:
        split, plain = fits(name, hmc._MOST_SHORT, seeds), fits(name, 1, seeds)
        hmc._MOST_SHORT = split["short steps"]
        gain = plain["passes an effective draw"] / split["passes an effective draw"]
        rows += [split, plain]
        claims.append(Claim(f"{name}: passes an effective draw, fewer by", gain, low=1.0))
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(main, threads=1, seeds={"type": int, "default": 4})
