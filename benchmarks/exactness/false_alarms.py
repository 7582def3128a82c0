"""How often a fit or a stream that is right warns all the same.

    python -m benchmarks.exactness.false_alarms

Streams of a logistic regression whose truth stands still, of frequent and of rare events: an alarm
is a warning of drift, once the stream has four events for each parameter, and `repeated` the most
warnings of one kind in a stream. So that silence is no proof, the truth of as many streams moves.
Draws that are known to be exact, those of linear regression: an alarm is any warning about the
draws. Their tables have more columns than rows too, where gradients at the draws have heavy tails.
At most one in a hundred may be an alarm; the last column is the upper end of its 95 % interval.
"""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.common.harness import Claim, Report, benchmark
from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression

CHUNKS, SETS = 30, 25
RATES = {0.001: 1000, 0.006: 200, 0.05: 200, 0.5: 50}  # of events: rows of a chunk
SHAPES = [(30, 100), (60, 300), (200, 20)]
DRIFT = "the truth moves along this stream"
MOST = 0.01


def stream(rate: float, rows: int, seed: int, moves: bool = False) -> Counter:
    """Kinds of warnings of one stream, by their first words."""
    rng, said = np.random.default_rng([29, seed]), Counter[str]()
    model = BayesianLogisticRegression(random_state=0)
    for t in np.linspace(0, 1, CHUNKS):
        X = rng.standard_normal((rows, 2))
        slope = 1.5 - 3 * t if moves else 0.4
        eta = slope * X[:, 0] + np.log(rate / (1 - rate))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.partial_fit(X, (eta + rng.logistic(size=rows) > 0).astype(int), classes=[0, 1])
        said.update(str(one.message)[: len(DRIFT)] for one in caught)
    return said


def draws(n: int, p: int, seed: int) -> list[str]:
    """Warnings of a fit whose draws are independent and exact."""
    rng = np.random.default_rng([31, seed])
    X = rng.standard_normal((n, p))
    y = X[:, :5] @ rng.standard_normal(5) + rng.standard_normal(n)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        BayesianLinearRegression(random_state=0).fit(X, y)
    return [str(one.message) for one in caught]


def row(of: str, what: str, alarms: int, n: int, **more: Any) -> dict[str, Any]:
    """Counts, and how many per cent of all such fits may be alarms."""
    highest = 100 * float(stats.beta.ppf(0.975, alarms + 1, n - alarms)) if alarms < n else 100.0
    return {"of": of, "what": what, "alarms": alarms, "fits": n, "to %": highest} | more


def main(report: Report, sets: int) -> None:
    """Streams that stand still and that move, and exact draws."""
    rows, repeated = [], []
    for rate, size in RATES.items():
        still = [stream(rate, size, seed) for seed in range(sets)]
        alarms = sum(DRIFT in said for said in still)
        repeated += [max(said.values(), default=0) for said in still]
        rows.append(row("streams that stand still", f"rate {rate}", alarms, sets))
    moving = sum(DRIFT in stream(0.5, 100, seed, True) for seed in range(sets))
    for n, p in SHAPES:
        alarms = sum(bool(draws(n, p, seed)) for seed in range(sets))
        rows.append(row("exact draws", f"{n} x {p}", alarms, sets))

    def share(of: str) -> float:
        some = [one for one in rows if one["of"] == of]
        return sum(one["alarms"] for one in some) / sum(one["fits"] for one in some)

    claims = [
        Claim(f"share of {of} with an alarm", share(of), high=MOST)
        for of in ("streams that stand still", "exact draws")
    ]
    claims += [
        Claim("share of streams that move with a warning", moving / sets, low=1.0),
        Claim("warnings of one kind in a stream", max(repeated), high=1),
    ]
    rows.append(row("streams that move", "rate 0.5", moving, sets))
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(main, threads=1, sets={"type": int, "default": SETS})
