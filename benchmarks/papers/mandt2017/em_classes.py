"""Learned precisions of multinomial regression by samplers that have no noise in some directions.

With K > 2 classes the same shift of all classes changes no probability. Constant SGD has no
gradient noise along it, nor along a zero column. The precision that it learns is set beside the one
that HMC learns from 600 updates. Without the control variate of
`skbayes_sg.inference.variational_em` the ratio would be K / (K - 1) and more.

    python -m benchmarks.papers.mandt2017.em_classes

2,000 rows, 6 columns, and three zero columns more; some five minutes.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import learned_precisions
from skbayes_sg import BayesianLogisticRegressionSGFS, VariationalEM
from skbayes_sg.samplers import HMC, SGFS, SGLD, ConstantSGD, MomentumSGD

CLASSES = (2, 3, 5, 10)
SAMPLERS = {
    "ConstantSGD": ConstantSGD(batch_size=50),
    "ConstantSGD, scalar": ConstantSGD("scalar", batch_size=50),
    "ConstantSGD, diag": ConstantSGD("diag", batch_size=50),
    "MomentumSGD": MomentumSGD(batch_size=50),
    "SGFS": SGFS(batch_size=50),
    "SGLD": SGLD(batch_size=50),
}


def data(n_classes: int, n_null: int) -> tuple[NDArray, NDArray]:
    """Rows of a multinomial model, and zero columns."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 6))
    utilities = 0.5 * X @ rng.standard_normal((6, n_classes))
    y = (utilities + rng.gumbel(size=utilities.shape)).argmax(axis=1)
    return np.column_stack([X, np.zeros((2000, n_null))]), y


def learned(sampler, X: NDArray, y: NDArray, n_updates: int = 250, seed: int = 1) -> float:
    """The precision of the coefficients; the few draws after it are not looked at."""
    em = VariationalEM(n_updates=n_updates)
    model = BayesianLogisticRegressionSGFS(sampler, em, n_chains=4, n_draws=50, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return learned_precisions(model.fit(X, y))[0]


def main(report: Report) -> None:
    """All classes, with and without zero columns."""
    rows: list[dict] = []
    for n_classes in CLASSES:
        for n_null in (0, 3):
            X, y = data(n_classes, n_null)
            row: dict = {"classes": n_classes, "zero columns": n_null}
            row["HMC"] = learned(HMC(), X, y, n_updates=600, seed=0)
            row |= {name: learned(s, X, y) / row["HMC"] for name, s in SAMPLERS.items()}
            rows.append(row)
            print(row, flush=True)
    claims = [
        Claim(f"{name}: learned precision over that by HMC", [r[name] for r in rows], 0.95, 1.05)
        for name in SAMPLERS
    ]
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(main)
