"""Two workers against one, where chains take nearly all of a fit.

    python -m benchmarks.cost.workers

``n_jobs`` gives each worker chains of its own. On one process all chains of a group are one
vectorised computation, so that two workers gain only where a step is long: BayesianMLPClassifier
with 50 and 200 hidden units on digits (1,797 rows, 64 columns; 3,760 and 15,010 parameters), four
chains of 400 steps. Workers are started before. Seconds are medians of three fits of each, in turn,
with one thread of BLAS. The claim is that two workers take less time than one.
"""

from __future__ import annotations

import warnings

from sklearn.datasets import load_digits

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.timing import median, seconds
from skbayes_sg import BayesianMLPClassifier

LENGTH = {"n_chains": 4, "n_draws": 50, "burn_in": 300, "thin": 2, "random_state": 0}


def main(report: Report) -> None:
    """Both networks."""
    warnings.simplefilter("ignore")  # of chains that are too short to be judged
    X, y = load_digits(return_X_y=True)
    X, rows = X / 16, []
    BayesianMLPClassifier((2,), n_jobs=2, n_chains=4, n_draws=4, burn_in=0, thin=1).fit(X, y)
    for units in (50, 200):
        one, two = (BayesianMLPClassifier((units,), n_jobs=n, **LENGTH) for n in (None, 2))
        spent: dict = {"one": [], "two": []}
        for _ in range(3):
            spent["one"].append(seconds(lambda one=one: one.fit(X, y)))
            spent["two"].append(seconds(lambda two=two: two.fit(X, y)))
        row = {"hidden units": units, "one worker s": median(spent["one"])}
        row |= {"two workers s": median(spent["two"])}
        rows.append(row | {"two over one": row["two workers s"] / row["one worker s"]})
    ratios = [row["two over one"] for row in rows]
    report.save(
        rows, [Claim("seconds of two workers over those of one", ratios, high=1, strict=True)]
    )


if __name__ == "__main__":
    benchmark(main, threads=1)
