"""Coefficients whose posterior has a wall, by samplers without control variates.

    python -m benchmarks.exactness.walls

Logistic regressions with a factor of five levels, the rarest in 1 % of the rows and of one class
only, under priors of five precisions. Errors are those of the worst parameter against HMC with 32
chains of 300 draws, whose own errors are some hundredths (`trust.py` has it beside importance
sampling). A fit is wrong if a mean is off by more than .3 posterior standard deviations, or a
standard deviation by more than 20 %. It is silent without a ConvergenceWarning.
"""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.exactness.trust_posteriors import rare
from skbayes_sg import BayesianLogisticRegressionSGFS
from skbayes_sg.samplers import HMC, SGFS, SGLD, ConstantSGD

PRECISIONS = (0.3, 1.0, 3.0, 10.0, 100.0)
SEEDS = (3, 9, 15, 21)
MOST_ROWS = 2500
SAMPLERS = {
    "SGFS": SGFS(),
    "SGFS, 100 rows": SGFS(batch_size=100),
    "SGFS, diagonal": SGFS(structure="diag"),
    "SGFS, alpha 1": SGFS(1.0),
    "SGFS, alpha 2": SGFS(2.0),
    "constant SGD": ConstantSGD(batch_size="auto"),
    "SGLD": SGLD(batch_size=500),
}
MEAN, SPREAD = 0.3, 0.2


def one(seed: int, precision: float) -> list[dict]:
    """All samplers on one data set under one prior."""
    X, y = (part[:MOST_ROWS] for part in rare(seed))
    given = {"prior_precision": precision, "random_state": 0}
    exact = BayesianLogisticRegressionSGFS(HMC(), n_draws=300, **given).fit(X, y).draws_
    mean, sd = exact.mean(axis=(0, 1)), exact.std(axis=(0, 1))
    table = []
    for name, sampler in SAMPLERS.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = BayesianLogisticRegressionSGFS(sampler, **given).fit(X, y)
        shift = (np.abs(model.draws_.mean(axis=(0, 1)) - mean) / sd).max()
        ratio = model.draws_.std(axis=(0, 1)) / sd
        wrong = bool(shift > MEAN or (np.abs(ratio - 1) > SPREAD).any())
        figures = model.diagnostics_
        table.append(
            {
                "sampler": name,
                "seed": seed,
                "precision": precision,
                "column steepness": figures.get("column_steepness", np.nan),
                "sd ratio min": ratio.min(),
                "sd ratio max": ratio.max(),
                "mean shift": shift,
                "wrong": int(wrong),
                "silent": int(wrong and not caught),
                "alarmed": int(not wrong and bool(caught)),
                "silent without columns": int(wrong and not others(caught)),
            }
        )
    return table


def others(caught: list[warnings.WarningMessage]) -> list[str]:
    """Warnings that are not about the steepness of columns."""
    said = [str(one.message) for one in caught]
    return [one for one in said if not one.startswith("column_steepness")]


def totals(table: list[dict]) -> list[dict]:
    """Counts of each sampler and of all."""
    counted = ("wrong", "silent", "silent without columns", "alarmed")
    found = []
    for name in (*SAMPLERS, "all"):
        rows = [row for row in table if name in (row["sampler"], "all")]
        sums = {key: sum(row[key] for row in rows) for key in counted}
        found.append({"sampler": name, "fits": len(rows), **sums})
    return found


def main(report: Report) -> None:
    """Every sampler on four data sets under five priors."""
    table = [row for precision in PRECISIONS for seed in SEEDS for row in one(seed, precision)]
    counts = totals(table)
    claims = [Claim("wrong fits without a warning", counts[-1]["silent"], high=0)]
    report.save(table, claims, name="walls_fits")
    report.save(counts, claims)


if __name__ == "__main__":
    benchmark(main)
