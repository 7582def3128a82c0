"""Sandwich covariances beside statsmodels, and how often their intervals hold the truth.

    python -m benchmarks.exactness.sandwich

Rows come in clusters that share a deviation, and their distribution is not that of the model: noise
of unequal variance, counts that vary more than Poisson counts do, labels that depend on each other.
The prior is next to nothing, so that standard deviations are those of statsmodels: HC0 for
independent rows, and those by clusters, without its factor for few of them. "difference" is the
largest relative one of coefficients and intercept.

Coverage is that of 95 % intervals of the coefficients of Poisson regression over 400 sets of 400
overdispersed counts, under the prior that is learned by default. It takes half a minute.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.common.harness import Claim, Report, benchmark
from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
)
from skbayes_sg.inspection import sandwich_summary

ROWS, CLUSTERS = 2000, 200
SETS, ROWS_OF_A_SET = 400, 400
WEAK = {"prior_precision": 1e-5, "random_state": 0}
TRUTH = np.array([0.5, -0.3, 0.0])


class Rows:
    """Rows in clusters, with targets of several kinds."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.cluster = np.repeat(np.arange(CLUSTERS), ROWS // CLUSTERS)
        of_cluster = rng.standard_normal((2, CLUSTERS))[:, self.cluster]
        X = rng.standard_normal((ROWS, 3))
        X[:, 0] = 0.3 * X[:, 0] + of_cluster[0]  # a column that hardly varies within clusters
        self.X = pd.DataFrame(X, columns=["a", "b", "c"])
        self.Z = np.column_stack([X, np.ones(ROWS)])
        self.numbers = X @ TRUTH + of_cluster[1] + np.exp(0.5 * X[:, 1]) * rng.normal(size=ROWS)
        self.years = rng.uniform(0.5, 10.0, ROWS)
        mean = np.exp(X @ TRUTH + 0.5 * of_cluster[1])
        self.counts = rng.poisson(self.years * mean)
        self.amounts = rng.gamma(2.0, mean / 2.0)
        self.claims = 1 + rng.poisson(3.0, ROWS)


Fits = tuple[Any, NDArray, dict[str, Any], Callable[..., Any]]


def cases(rows: Rows) -> dict[str, Fits]:
    """Of each model the fit, y, what is known of rows, and the model of statsmodels."""
    import statsmodels.api as sm

    family, Z = sm.families, rows.Z
    labels, classes = (rows.numbers > 0).astype(int), np.digitize(rows.numbers, [-1, 1])
    exposure, means = {"exposure": rows.years}, {"var_weights": rows.claims}
    log = family.links.Log()
    return {
        "linear": (BayesianLinearRegression(**WEAK), rows.numbers, {}, sm.OLS(rows.numbers, Z)),
        "linear, means": (
            BayesianLinearRegression(**WEAK),
            rows.numbers,
            means,
            sm.GLM(rows.numbers, Z, var_weights=rows.claims),
        ),
        "logistic": (BayesianLogisticRegression(**WEAK), labels, {}, sm.Logit(labels, Z)),
        "logistic, offset": (
            BayesianLogisticRegression(**WEAK),
            labels,
            {"offset": 0.1 * rows.years},
            sm.GLM(labels, Z, family=family.Binomial(), offset=0.1 * rows.years),
        ),
        "three classes": (BayesianLogisticRegression(**WEAK), classes, {}, sm.MNLogit(classes, Z)),
        "Poisson": (BayesianPoissonRegressor(**WEAK), rows.counts, {}, sm.Poisson(rows.counts, Z)),
        "Poisson, exposure": (
            BayesianPoissonRegressor(**WEAK),
            rows.counts,
            exposure,
            sm.GLM(rows.counts, Z, family=family.Poisson(), exposure=rows.years),
        ),
        "negative binomial": (
            BayesianNegativeBinomialRegressor(**WEAK),
            rows.counts,
            exposure,
            sm.NegativeBinomial(rows.counts, Z, exposure=rows.years),
        ),
        "Gamma": (
            BayesianGammaRegressor(**WEAK),
            rows.amounts,
            {},
            sm.GLM(rows.amounts, Z, family=family.Gamma(link=log)),
        ),
    }


def compare(name: str, rows: Rows) -> list[dict]:
    """Standard deviations of one model, of both kinds."""
    model, y, known, theirs = cases(rows)[name]
    model.fit(rows.X, y, **known)
    reference = {"reference": 0} if name == "three classes" else {}
    found = []
    for kind, groups in {"HC0": None, "cluster": rows.cluster}.items():
        table = sandwich_summary(model, rows.X, y, groups=groups, **reference, **known)
        of_clusters = {"groups": rows.cluster, "use_correction": False}
        options = {"cov_kwds": of_clusters} if kind == "cluster" else {}
        quiet = {} if type(theirs).__name__ in ("OLS", "GLM") else {"disp": 0}
        errors = np.asarray(theirs.fit(cov_type=kind, **options, **quiet).bse)
        errors = errors.T.ravel()[: len(table)]  # a dispersion comes last
        difference = np.abs(table["sd"].to_numpy() / errors - 1).max()
        ratios = {"least ratio": table["ratio"].min(), "largest ratio": table["ratio"].max()}
        found.append({"model": name, "covariance": kind, "difference": difference, **ratios})
    return found


def coverage() -> list[dict]:
    """Of coefficients, by the posterior and by the sandwich."""
    inside: dict[str, list[NDArray]] = {"posterior": [], "sandwich": []}
    for seed in range(SETS):
        rng = np.random.default_rng(1000 + seed)
        X = rng.standard_normal((ROWS_OF_A_SET, 3))
        mean = np.exp(1 + X @ TRUTH)
        y = rng.poisson(mean * rng.gamma(1.0, 1.0, ROWS_OF_A_SET))
        model = BayesianPoissonRegressor(random_state=0).fit(X, y)
        tables = {"posterior": model.summary(), "sandwich": sandwich_summary(model, X, y)}
        for kind, table in tables.items():
            ends = table[["eti95_lb", "eti95_ub"]].to_numpy()[:3]
            inside[kind].append((ends[:, 0] < TRUTH) & (ends[:, 1] > TRUTH))
    return [
        {"model": "Poisson, overdispersed", "covariance": kind, "coverage": np.mean(each)}
        for kind, each in inside.items()
    ]


def main(report: Report) -> None:
    """Differences from statsmodels, then coverage."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fits say that counts vary more than the model's
        rows = Rows()
        compared = [row for name in cases(rows) for row in compare(name, rows)]
        report.show(compared)
        covered = coverage()
    worst = [row["difference"] for row in compared]
    of_kind = {row["covariance"]: row["coverage"] for row in covered}
    claims = [
        Claim("largest relative difference from statsmodels", worst, high=0.02),
        Claim("coverage of 95 % intervals by the sandwich", of_kind["sandwich"], 0.90, 0.97),
        Claim("coverage of 95 % intervals of the posterior", of_kind["posterior"], high=0.8),
    ]
    report.save(compared + covered, claims)


if __name__ == "__main__":
    benchmark(main, threads=1)
