"""A default fit to a million rows, and the cost of averaging predictions over all its draws.

    python benchmarks/million_rows.py

1,000,000 x 50 float32, two processes: seconds of the fit and its diagnostics; then predict_proba of 10,000
rows over 4,000 draws, median of five, two classes.
"""

import time

import numpy as np
from common import print_table, write_csv

from skbayes_sg import BayesianLogisticRegressionSGFS


def main() -> None:
    """One fit, five predictions."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_000_000, 50)).astype(np.float32)
    y = X @ rng.standard_normal(50) * 0.3 + rng.logistic(size=len(X)) > 0
    begin = time.perf_counter()
    model = BayesianLogisticRegressionSGFS(random_state=0, n_jobs=2).fit(X, y)
    row = {"fit s": time.perf_counter() - begin, "passes": float(model.n_passes_), **model.diagnostics_}
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        model.predict_proba(X[:10_000])
        seconds.append(time.perf_counter() - begin)
    row["predict_proba ms"] = 1000 * float(np.median(seconds))
    print_table([row])
    write_csv("million_rows.csv", [row])


if __name__ == "__main__":
    main()
