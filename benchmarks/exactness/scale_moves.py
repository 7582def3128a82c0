"""Steps of HMC along the scale of the coefficients: how many, beside none.

    python -m benchmarks.exactness.scale_moves  # some ten minutes

Fits of 4,000 draws to classes that are nearly separable, whose precision HMC samples. The package
takes one Metropolis step along the scale after every eight leapfrog steps of a trajectory
(math/priors.md#a-sampled-precision). "every" is after how many, 0 for none. "ESS" is the smallest
of all coefficients and the log precision, the mean over --seeds fits, and "lowest" and "R-hat" are
the worst of these. A fit of digits takes a minute, so one in four seeds has to do. The claims are
about the sets on which the scale is what mixes slowest. One core.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.common import classification
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.timing import Clock
from benchmarks.exactness import steep
from benchmarks.prediction.quality import split
from skbayes_sg import BayesianLogisticRegressionSGFS
from skbayes_sg.samplers import hmc

NAMES = "wine", "iris", "KDD 99", "separable", "digits"
SLOW = "wine", "digits"  # along the scale
EVERY = 8, 4, 2, 0
PACKAGE = hmc._STEPS_A_MOVE


def fits(name: str, every: int, seeds: int) -> dict:
    """Figures of fits with a step along the scale after so many leapfrog steps."""
    if name == "digits":
        (X, y), seeds = steep.digits(), max(1, seeds // 4)
        X = X[:, X.std(axis=0) > 0]
    else:
        X, _, y, _ = split(*classification.SETS[name](), 0)
    found, hmc._STEPS_A_MOVE = [], every or 10**9
    for seed in range(seeds):
        with Clock(time.process_time) as clock:
            model = BayesianLogisticRegressionSGFS(n_draws=steep.DRAWS, random_state=seed).fit(X, y)
        figures = model.diagnostics_
        found.append((clock.seconds, figures["ess_min"], figures["r_hat_max"]))
    hmc._STEPS_A_MOVE = PACKAGE
    seconds, ess, r_hat = np.array(found).T
    return {
        "data": name,
        "every": every,
        "fits": seeds,
        "CPU s": seconds.mean(),
        "ESS": ess.mean(),
        "lowest": ess.min(),
        "R-hat": r_hat.max(),
        "ESS a second": ess.mean() / seconds.mean(),
    }


def main(report: Report, seeds: int) -> None:
    """All sets."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows, claims = [], []
    for name in NAMES:
        of_set = {every: fits(name, every, seeds) for every in EVERY}
        rows += of_set.values()
        share = of_set[PACKAGE]["ESS a second"] / of_set[0]["ESS a second"]
        if name in SLOW:
            claims.append(Claim(f"{name}: ESS a second over that without such steps", share, low=1))
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(main, threads=1, seeds={"type": int, "default": 8})
