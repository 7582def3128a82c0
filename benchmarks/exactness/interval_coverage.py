"""Coverage of intervals, and false discoveries in lists of coefficients, on simulated sets.

    python -m benchmarks.exactness.interval_coverage

Intervals are of 90 %, of coefficients and of regression predictions: 200 sets of 200 rows and 10
columns. Where the coefficients are drawn from the prior that the fit is
given, intervals cover 90 % in the mean over sets, but for the error of the chains. Where the
coefficients are fixed, or the precision is learned, nothing says that they do; the claim is made
all the same. "error" is the standard error of a coverage over sets.

Lists are those of ``summary(rope=...)["fdr"] < 0.05``, of linear regressions of 100 rows and 30
columns, whose posterior standard deviations are about a tenth. A discovery is false where the sign
is another, or the coefficient is not beyond the region. That 5 % of a list are false is what the
posterior says of coefficients that its prior describes. Where all columns but five do nothing, or
all, it is claimed of the horseshoe from a region of one standard deviation on, and of the normal
prior of two; below, the normal prior knows no coefficient of zero, and its figures stand in the
table without a claim. "found" is the share of the coefficients beyond the region that a list has.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.harness import Claim, Report, benchmark
from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression

SETS, ROWS, COLUMNS = 200, 200, 10
LEVEL = 0.9
FIXED = np.array([1.0, -0.8, 0.6, -0.5, 0.4, -0.3, 0.2, 0.1, 0.0, 0.0])

LISTED, LIST_ROWS, LIST_COLUMNS = 0.05, 100, 30
REGIONS = (0.0, 0.01, 0.1, 0.2)
SETS_OF_LISTS = {None: 150, "horseshoe": 25}  # by prior
LARGEST_LISTED = 0.065  # for an expected .05, with three standard errors of 150 sets


def covers(samples: NDArray, truth: NDArray) -> float:
    """Share of the coefficients that lie within the interval of their draws (S, columns)."""
    low, high = np.quantile(samples, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return float(np.mean((low <= truth) & (truth <= high)))


def logistic(rng: np.random.Generator, coef: NDArray, **how) -> dict[str, float]:
    """Coverage of the coefficients of one set; the intercept is drawn from its prior too."""
    X = rng.standard_normal((ROWS, COLUMNS))
    z = X @ coef + rng.standard_normal() + rng.logistic(size=ROWS)
    model = BayesianLogisticRegression(intercept_precision=1.0, random_state=0, **how)
    samples = model.fit(X, z > 0).coef_samples_.reshape(-1, COLUMNS)
    return {"coefficients": covers(samples, coef)}


def linear(rng: np.random.Generator, coef: NDArray, **how) -> dict[str, float]:
    """Coverage of the coefficients, and of new observations, of one set.

    The prior of the noise variance is improper, but for rounding: 200 rows determine it.
    """
    noise = np.exp(rng.standard_normal())
    X = rng.standard_normal((2 * ROWS, COLUMNS))
    y = noise * (X @ coef + rng.standard_normal(2 * ROWS)) + 3
    model = BayesianLinearRegression(random_state=0, **how).fit(X[:ROWS], y[:ROWS])
    ends = model.predict_interval(X[ROWS:], level=LEVEL)
    inside = (ends[:, 0] <= y[ROWS:]) & (y[ROWS:] <= ends[:, 1])
    samples = model.coef_samples_.reshape(-1, COLUMNS)
    return {"coefficients": covers(samples, noise * coef), "predictions": float(inside.mean())}


def over_sets(one: Callable, coefs: str, **how) -> list[dict]:
    """Mean coverage over sets, with its error."""
    found = []
    for seed in range(SETS):
        rng = np.random.default_rng([17, seed])
        coef = rng.standard_normal(COLUMNS) if coefs == "from the prior" else FIXED
        found.append(one(rng, coef, **how))
    precision = how.get("prior_precision", "learned")
    about = {"model": one.__name__, "coefs": coefs, "precision": precision}
    rows = []
    for of in found[0]:
        each = np.array([f[of] for f in found])
        error = each.std(ddof=1) / np.sqrt(SETS)
        rows.append(about | {"intervals of": of, "coverage": each.mean(), "error": error})
    return rows


def effects(rng: np.random.Generator, truth: str) -> NDArray:
    """Coefficients of a set: of all columns, of five, or none."""
    coef = np.zeros(LIST_COLUMNS)
    if truth == "normal":
        coef[:] = 0.3 * rng.standard_normal(LIST_COLUMNS)
    elif truth == "few":
        coef[:5] = rng.choice([-0.6, 0.6], 5)
    return coef


def lists(prior: str | None, truth: str, n_sets: int) -> list[dict]:
    """For each region the mean share of false discoveries in a list, with its error over sets."""
    false, found = np.zeros((n_sets, len(REGIONS))), np.full((n_sets, len(REGIONS)), np.nan)
    for seed in range(n_sets):
        rng = np.random.default_rng([23, seed])
        coef = effects(rng, truth)
        X = rng.standard_normal((LIST_ROWS, LIST_COLUMNS))
        y = X @ coef + rng.standard_normal(LIST_ROWS)
        model = BayesianLinearRegression(prior=prior, random_state=0).fit(X, y)
        for k, rope in enumerate(REGIONS):
            table = model.summary(rope=rope).iloc[:LIST_COLUMNS]
            listed = table["fdr"].to_numpy() < LISTED
            right = np.sign(table["mean"].to_numpy()) * coef > rope
            false[seed, k] = np.sum(listed & ~right) / max(1, listed.sum())
            if (beyond := np.abs(coef) > rope).any():
                found[seed, k] = np.sum(listed & right) / beyond.sum()
    about = {"prior": prior or "normal", "truth": truth}
    return [
        about
        | {"rope": rope, "false": false[:, k].mean(), "error": false[:, k].std() / np.sqrt(n_sets)}
        | ({} if truth == "none" else {"found": np.nanmean(found[:, k])})
        for k, rope in enumerate(REGIONS)
    ]


def of_lists(report: Report) -> None:
    """Two priors, three kinds of truth, four regions."""
    rows, claims = [], []
    for prior, n_sets in SETS_OF_LISTS.items():
        for truth in ("normal", "few", "none"):
            found = lists(prior, truth, n_sets)
            rows += found
            described = prior is None and truth == "normal"
            least = 0.0 if described else 0.1 if prior else 0.2
            claims += [
                Claim(
                    f"false discoveries, prior {row['prior']}, truth {truth}, rope {row['rope']} "
                    f"(error {row['error']:.3f})",
                    row["false"],
                    high=LARGEST_LISTED,
                )
                for row in found
                if row["rope"] >= least
            ]
    report.save(rows, claims, name="false_discoveries")


def main(report: Report) -> None:
    """Two models, coefficients from the prior and fixed, precision given and learned."""
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in (logistic, linear):
            for coefs in ("from the prior", "fixed"):
                rows += over_sets(one, coefs, prior_precision=1.0)
                rows += over_sets(one, coefs)
        of_lists(report)
    names = [
        f"{r['model']}, {r['coefs']}, precision {r['precision']}, {r['intervals of']}" for r in rows
    ]
    claims = [
        Claim(f"coverage, {name} (error {r['error']:.3f})", r["coverage"], 0.88, 0.92)
        for name, r in zip(names, rows, strict=True)
    ]
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(main, threads=1)
