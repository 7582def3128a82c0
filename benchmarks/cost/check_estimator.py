"""Seconds that scikit-learn's `check_estimator` takes for each estimator at its defaults.

    python -m benchmarks.cost.check_estimator

There are about sixty checks each, in sequence. The networks' fits are HMC on a few dozen to 300
rows. No check may fail, none is expected to, and an estimator needs less than 120 s. Some five
minutes.
"""

from __future__ import annotations

import warnings
from collections import Counter

from sklearn.utils.estimator_checks import check_estimator

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.timing import Clock
from skbayes_sg import (
    BayesianLinearRegressionSGFS,
    BayesianLogisticRegressionSGFS,
    BayesianMLPClassifier,
    DRBMClassifier,
)

ESTIMATORS = (
    BayesianLogisticRegressionSGFS,
    BayesianLinearRegressionSGFS,
    BayesianMLPClassifier,
    DRBMClassifier,
)


def check(estimator: type) -> dict:
    """Outcomes of the checks and their time."""
    with Clock() as clock:
        results = check_estimator(estimator(), on_fail=None)
    count = Counter(result["status"] for result in results)
    print(f"{estimator.__name__}: {clock.seconds:.0f} s", flush=True)
    outcomes = {status: count[status] for status in ("passed", "failed", "xfail", "skipped")}
    return {"estimator": estimator.__name__, **outcomes, "s": clock.seconds}


def claims(rows: list[dict]) -> list[Claim]:
    """Nothing fails, and it is quick enough."""
    found = []
    for row in rows:
        bad = row["failed"] + row["xfail"]
        found.append(Claim(f"{row['estimator']}: checks that fail or are expected to", bad, high=0))
        found.append(Claim(f"{row['estimator']}: seconds", row["s"], high=120))
    return found


def main(report: Report) -> None:
    """All estimators."""
    warnings.simplefilter("ignore")  # tiny and odd data: that the chains complain is expected
    rows = [check(estimator) for estimator in ESTIMATORS]
    report.save(rows, claims(rows))


if __name__ == "__main__":
    benchmark(main)
