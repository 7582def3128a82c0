"""Random data, parameters and sequences of calls: how many cases were tried, and what broke.

    python -m benchmarks.exactness.fuzzing
    python -m benchmarks.exactness.fuzzing --n-cases 3000 --first 0

The cases, and what must hold after every call, are those of `tests/tools/fuzz.py`: `fit`,
`partial_fit`, `set_params`, copies, predictions and summaries of the four estimators on small
awkward data. A call ends fitted, answered or refused in words that name a parameter or the data.
All else is a failure.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from benchmarks.common.harness import Claim, Report, benchmark

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "tools"))

import fuzz

_ENDS = ("fitted", "answered")


def main(report: Report, n_cases: int, first: int) -> None:
    """One row per estimator."""
    found = fuzz.explore(n_cases, first)
    rows = []
    for name, seconds in sorted(found.seconds.items()):
        ends = {end: times for (of, end), times in found.ended.items() if of == name}
        refused = sum(times for end, times in ends.items() if end not in _ENDS)
        rows.append(
            {
                "estimator": name,
                "cases": len(seconds),
                **{end: ends.get(end, 0) for end in _ENDS},
                "refused": refused,
                "failures": sum(times for kind, times in found.failures.items() if kind[0] == name),
                "median ms": 1000 * float(np.median(seconds)),
            }
        )
    total = {key: sum(row[key] for row in rows) for key in list(rows[0])[1:-1]}
    rows.append({"estimator": "all", **total})
    failures = [row["failures"] for row in rows]
    report.save(rows, [Claim("failures of each estimator", failures, high=0)])


if __name__ == "__main__":
    benchmark(
        main,
        threads=1,
        n_cases={"type": int, "default": 100_000},
        first={"type": int, "default": 0},
    )
