"""Seconds that scikit-learn's `check_estimator` takes for each estimator at its defaults, and what it says.

    python benchmarks/check_estimator.py

About sixty checks each, in sequence; the networks' fits are HMC on a few dozen to 300 rows. Acceptance: no check
fails, none is expected to, and an estimator needs less than 120 s.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter

from common import print_table, write_csv
from sklearn.utils.estimator_checks import check_estimator

from skbayes_sg import (
    BayesianLinearRegressionSGFS,
    BayesianLogisticRegressionSGFS,
    BayesianMLPClassifier,
    DRBMClassifier,
)

ESTIMATORS = (BayesianLogisticRegressionSGFS, BayesianLinearRegressionSGFS, BayesianMLPClassifier, DRBMClassifier)


def main() -> None:
    """Check, print, judge."""
    warnings.simplefilter("ignore")  # tiny and odd data: that the chains complain is expected
    table = []
    for estimator in ESTIMATORS:
        begin = time.perf_counter()
        count = Counter(result["status"] for result in check_estimator(estimator(), on_fail=None))
        seconds = time.perf_counter() - begin
        outcomes = {status: count[status] for status in ("passed", "failed", "xfail", "skipped")}
        table.append({"estimator": estimator.__name__, **outcomes, "s": seconds})
        print(f"{estimator.__name__}: {seconds:.0f} s", flush=True)
    print()
    print_table(table)
    write_csv("check_estimator.csv", table)
    print()
    for row in table:
        good = row["failed"] == row["xfail"] == 0 and row["s"] <= 120
        print("ok  " if good else "FAIL", f"{row['estimator']}: nothing fails, {row['s']:.0f} s <= 120")


if __name__ == "__main__":
    main()
