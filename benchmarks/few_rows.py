"""What exactness costs: HMC on all rows against SGFS with control variates, by number of rows.

    python benchmarks/few_rows.py

Default fits of BayesianLogisticRegressionSGFS on one core, float32, 50 features: seconds, bulk effective
draws of the worst parameter per second, Stein ratio. Sets FEW_ROWS of estimators/coefficients.py.
"""

import time
import warnings

import numpy as np
from common import print_table, write_csv
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from skbayes_sg import BayesianLogisticRegressionSGFS
from skbayes_sg.samplers import HMC, SGFS


def main() -> None:
    """One row per size; medians of three fits, the samplers in turn."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    table = []
    for n_rows in (1000, 2000, 5000, 10_000, 20_000):
        X, y = make_classification(n_rows, 50, n_informative=20, random_state=0)
        X = StandardScaler().fit_transform(X).astype(np.float32)
        figures = {"HMC": [], "SGFS": []}
        for seed in range(3):
            for name, sampler in (("HMC", HMC()), ("SGFS", SGFS(variance_reduction="control_variate"))):
                begin = time.perf_counter()
                model = BayesianLogisticRegressionSGFS(sampler, random_state=seed).fit(X, y)
                seconds = time.perf_counter() - begin
                found = model.diagnostics_
                figures[name].append((seconds, found["ess_min"] / seconds, found["stein_ratio"]))
        row = {"rows": n_rows}
        for name, values in figures.items():
            seconds, rate, stein = np.median(values, axis=0)
            row |= {f"{name} s": float(seconds), f"{name} ESS/s": float(rate), f"{name} Stein": float(stein)}
        table.append(row | {"HMC / SGFS ESS/s": row["HMC ESS/s"] / row["SGFS ESS/s"]})
    print_table(table)
    write_csv("few_rows.csv", table)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
