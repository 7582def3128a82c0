"""What a row stands for, beside statsmodels and the truth: offsets, means of several, new levels.

    python -m benchmarks.exactness.row_meaning [--replicates 100]

Under a prior that says next to nothing the posterior of a generalised linear model is normal around
the maximum likelihood. "mean error" is the worst difference of a coefficient or intercept from that
of statsmodels, in its standard errors, and "sd ratio" the ratio of a posterior standard deviation
to a standard error that is farthest from 1; both have the Monte Carlo error of some thousand draws.
Means of several observations have the weights that statsmodels calls ``var_weights``; of negative
binomial ones the likelihood is maximised here. "dispersion" is ours over statsmodels', or over the
truth where the reference has another estimate.

"coverage" is the share of 95 % intervals that hold the truth: of new observations in groups that
the fit never saw (of probabilities in the logistic model), and of counts with exposures. It is the
mean over replicates, each a fit of 30 groups, with its standard error.
"""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import minimize

from benchmarks.common.harness import Claim, Report, benchmark
from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
)

N, GROUPS, NEW = 1000, 30, 1000
WEAK = {"prior_precision": 1e-4, "random_state": 0}
ERROR, RATIO = 0.15, 0.1
"""Limits, in standard errors and relative: three Monte Carlo errors of 400 effective draws"""


def beside(name: str, model: Any, reference: Any, dispersion: float = np.nan) -> dict:
    """Coefficients, then the intercept, which statsmodels has first."""
    means, errors = (
        np.roll(np.asarray(each)[:3], -1) for each in (reference.params, reference.bse)
    )
    ours = np.append(model.coef_.ravel(), model.intercept_)
    sd = np.append(model.coef_std_.ravel(), model.intercept_samples_.std())
    ratio = sd / errors
    return {
        "model": name,
        "mean error": float(np.abs((ours - means) / errors).max()),
        "sd ratio": float(ratio[np.abs(np.log(ratio)).argmax()]),
        "dispersion": "" if np.isnan(dispersion) else dispersion,
    }


def generalised_linear_models() -> list[dict]:
    """Each likelihood with an offset, and each that has means with the numbers of these."""
    import statsmodels.api as sm

    families = sm.families
    rng = np.random.default_rng(2012)
    X = rng.standard_normal((N, 2))
    A, exposure = sm.add_constant(X), rng.uniform(0.2, 5.0, N)
    offset = np.log(exposure)
    eta = 0.3 + X @ [0.5, -0.4]
    mu, k = np.exp(eta), rng.integers(1, 12, N)
    rows = np.repeat(np.arange(N), k)
    log_link = families.links.Log()
    found = []

    y = rng.poisson(exposure * mu)
    model = BayesianPoissonRegressor(**WEAK).fit(X, y, exposure=exposure)
    reference = sm.GLM(y, A, families.Poisson(), exposure=exposure).fit()
    found.append(beside("Poisson, exposure", model, reference))
    y = rng.poisson(exposure * mu * rng.gamma(2.0, 0.5, N))
    model = BayesianNegativeBinomialRegressor(**WEAK).fit(X, y, exposure=exposure)
    reference = sm.NegativeBinomial(y, A, exposure=exposure).fit(disp=0)
    share = model.dispersion_ / reference.params[-1]
    found.append(beside("negative binomial, exposure", model, reference, share))
    y = rng.gamma(3.0, exposure * mu / 3.0)
    model = BayesianGammaRegressor(**WEAK).fit(X, y, exposure=exposure)
    reference = sm.GLM(y, A, families.Gamma(log_link), offset=offset).fit()
    found.append(beside("Gamma, exposure", model, reference, model.dispersion_ * 3.0))
    y = (eta + offset + rng.logistic(size=N) > 0).astype(int)
    model = BayesianLogisticRegression(**WEAK).fit(X, y, offset=offset)
    reference = sm.Logit(y, A, offset=offset).fit(disp=0)
    found.append(beside("logistic, offset", model, reference))
    y = eta + offset + 0.7 * rng.standard_normal(N)
    model = BayesianLinearRegression(**WEAK).fit(X, y, offset=offset)
    reference = sm.OLS(y - offset, A).fit()
    found.append(beside("linear, offset", model, reference, model.noise_variance_ / 0.49))

    y = np.bincount(rows, eta[rows] + 2.0 * rng.standard_normal(len(rows))) / k
    model = BayesianLinearRegression(**WEAK).fit(X, y, var_weights=k)
    reference = sm.WLS(y, A, weights=k).fit()
    share = model.noise_variance_ / reference.scale
    found.append(beside("linear, means", model, reference, share))
    y = np.bincount(rows, rng.gamma(1 / 0.8, 0.8 * mu[rows])) / k
    model = BayesianGammaRegressor(**WEAK).fit(X, y, var_weights=k)
    reference = sm.GLM(y, A, families.Gamma(log_link), var_weights=k).fit()
    found.append(beside("Gamma, means", model, reference, model.dispersion_ / 0.8))
    y = np.bincount(rows, rng.poisson(mu[rows])) / k
    model = BayesianPoissonRegressor(**WEAK).fit(X, y, var_weights=k)
    reference = sm.GLM(y, A, families.Poisson(), var_weights=k).fit()
    found.append(beside("Poisson, means", model, reference))
    y = np.bincount(rows, rng.poisson(mu[rows] * rng.gamma(2.0, 0.5, len(rows)))) / k
    model = BayesianNegativeBinomialRegressor(**WEAK).fit(X, y, var_weights=k)
    reference = sums_of_counts(A, np.rint(k * y), k)
    found.append(beside("negative binomial, means", model, reference, model.dispersion_ / 0.5))
    return found


def sums_of_counts(A: NDArray, y: NDArray, k: NDArray) -> Any:
    """Maximum likelihood of sums of k negative binomial counts, which statsmodels has not."""

    def minus_log_likelihood(theta: NDArray) -> float:
        size = k * np.exp(-theta[3])
        return -stats.nbinom.logpmf(y, size, size / (size + k * np.exp(A @ theta[:3]))).sum()

    start = np.array([np.log(y.sum() / k.sum()), 0.0, 0.0, -1.0])
    found = minimize(minus_log_likelihood, start, method="BFGS", options={"gtol": 1e-3}).x
    steps = 1e-3 * np.eye(4)

    def second(i: int, j: int) -> float:
        each = [
            a * b * minus_log_likelihood(found + a * steps[i] + b * steps[j])
            for a, b in itertools.product((-1, 1), repeat=2)
        ]
        return sum(each) / 4e-6

    hessian = np.array([[second(i, j) for j in range(4)] for i in range(4)])
    errors = np.sqrt(np.linalg.inv(hessian).diagonal())
    return SimpleNamespace(params=found, bse=errors)


def coverage(replicate: int) -> dict[str, float]:
    """Shares of 95 % intervals that hold the truth, in one replicate."""
    rng = np.random.default_rng([2012, replicate])
    effect, member = 2.0 * rng.standard_normal(GROUPS), rng.integers(GROUPS, size=600)
    x, new_x = rng.standard_normal(600), rng.standard_normal(NEW)
    indicators = (member[:, None] == np.arange(GROUPS)).astype(float)
    X = np.column_stack([indicators, x])
    new = np.column_stack([np.zeros((NEW, GROUPS)), new_x])
    options = {"prior_groups": {"group": range(GROUPS)}, "random_state": 0}
    eta, new_eta = 1 + x + effect[member], 1 + new_x + 2.0 * rng.standard_normal(NEW)

    def share(ends: NDArray, truth: NDArray) -> float:
        low, high = ends.T
        return float(((low <= truth) & (truth <= high)).mean())

    y = eta + 0.5 * rng.standard_normal(600)
    line = BayesianLinearRegression(**options).fit(X, y)
    found = {"linear": share(line.predict_interval(new), new_eta + 0.5 * rng.standard_normal(NEW))}
    line.set_params(new_levels="zero")
    found["linear, zero"] = share(
        line.predict_interval(new), new_eta + 0.5 * rng.standard_normal(NEW)
    )
    logistic = BayesianLogisticRegression(**options)
    logistic.fit(X, (eta + rng.logistic(size=600) > 0).astype(int))
    ends = logistic.predict_interval(new)[:, 1]
    found["logistic"] = share(ends, 1 / (1 + np.exp(-new_eta)))
    exposure, new_exposure = rng.uniform(0.5, 5.0, 600), rng.uniform(0.5, 20.0, NEW)
    mu, new_mu = np.exp(0.5 + 0.3 * x), np.exp(0.5 + 0.3 * new_x)
    counts = BayesianNegativeBinomialRegressor(random_state=0)
    counts.fit(x[:, None], rng.poisson(exposure * mu * rng.gamma(2, 0.5, 600)), exposure=exposure)
    ends = counts.predict_interval(new_x[:, None], exposure=new_exposure)
    drawn = rng.poisson(new_exposure * new_mu * rng.gamma(2, 0.5, NEW))
    return found | {"counts": share(ends, drawn)}


def main(report: Report, replicates: int) -> None:
    """Both tables; the second one if there are replicates."""
    rows = generalised_linear_models()
    report.save(
        rows,
        [
            Claim("mean errors", [row["mean error"] for row in rows], high=ERROR),
            Claim("sd ratios", [row["sd ratio"] for row in rows], 1 - RATIO, 1 + RATIO),
        ],
    )
    if not replicates:
        return
    each = [coverage(replicate) for replicate in range(replicates)]
    rows, claims = [], []
    for name in each[0]:
        shares = np.array([one[name] for one in each])
        mean, error = shares.mean(), shares.std() / np.sqrt(len(shares))
        rows.append({"intervals": name, "coverage": mean, "standard error": error})
        if name == "counts":  # which are whole: no interval has exactly its level
            claims.append(Claim(f"coverage, {name}", mean, 0.95 - 3 * error, 1.0))
        elif name != "linear, zero":
            claims.append(Claim(f"coverage, {name}", mean, 0.95 - 3 * error, 0.95 + 3 * error))
    report.save(rows, claims, name="row_meaning_coverage")


if __name__ == "__main__":
    benchmark(main, threads=1, replicates={"type": int, "default": 100})
