"""Mandt, Hoffman & Blei (2017), section 6.3: where is the precision right that constant SGD learns?

    python -m benchmarks.papers.em_constant_sgd

`hyperparameter_path` learns the prior precision by variational EM in the sampler of the estimator
and in constant SGD with the scalar step of Theorem 1, as the paper does. The theory is that of a
normal posterior: there the control variate of `skbayes_sg.inference.variational_em` makes the mean
of every update right whatever the spread of the iterates, so that a scalar step learns what the
posterior would teach. Elsewhere the iterates are draws of another distribution.

The posteriors are

- linear regression, 500 rows of 8 correlated columns: normal, and the maximum of the evidence is
  known;
- logistic regression on diabetes above its median and on breast cancer, and multinomial regression
  on iris and wine, three quarters of the rows, columns standardised. From the first to the last
  they are less and less normal; a plane separates the classes of wine;
- a network of four hidden units on wine.

Each has the precision of every block by HMC, by the estimator's own sampler, by constant SGD with
the full matrix, which is the exact step of a normal posterior, and by constant SGD with the scalar
step, with 250 updates and with the 1,000 that `hyperparameter_path` makes by default; means of the
logarithm over two random states, and half of their difference. "warnings" is the least number of
a fit of the scalar step.

The claims: on the normal posterior the scalar step with 1,000 updates, and all others, are within
3 % of the maximum of the evidence; and wherever it is off by more than a fifth, its fit warns.

With K > 2 classes the same shift of all classes changes no probability, and constant SGD has no
gradient noise along it. em_classes.csv has what six samplers learn of multinomial regression, 2,000
rows of 6 columns, over what HMC learns from 600 updates. Without the control variate the ratio
would be K / (K - 1).
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import learned_precisions
from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    VariationalEM,
    hyperparameter_path,
)
from skbayes_sg.samplers import HMC, SGFS, SGLD, ConstantSGD, MomentumSGD

SEEDS = range(2)
FEWER = "scalar, 250 updates"
METHODS = ("HMC", "own sampler", "full", FEWER, "scalar")
CLASSES = (2, 3, 5, 10)
SAMPLERS = {
    "ConstantSGD": ConstantSGD(batch_size=50),
    "ConstantSGD, scalar": ConstantSGD("scalar", batch_size=50),
    "ConstantSGD, diag": ConstantSGD("diag", batch_size=50),
    "MomentumSGD": MomentumSGD(batch_size=50),
    "SGFS": SGFS(batch_size=50),
    "SGLD": SGLD(batch_size=50),
}


def linear() -> tuple[NDArray, NDArray]:
    """Data of a linear model with noise variance 1."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 8)) @ (0.3 + rng.standard_normal((8, 8)))
    X = X / X.std(axis=0)
    return X, X @ rng.standard_normal(8) / 2 + rng.standard_normal(500)


def evidence_maximum(X: NDArray, y: NDArray) -> float:
    """The precision that maximises the density of y, which is normal."""
    d, V = np.linalg.eigh(X @ X.T)
    squares = (V.T @ y) ** 2

    def minus_log_evidence(rho: float) -> float:
        variances = 1 + d.clip(0) * np.exp(-rho)
        return 0.5 * float(np.sum(np.log(variances) + squares / variances))

    return float(np.exp(minimize_scalar(minus_log_evidence, bounds=(-6, 8), method="bounded").x))


def problems() -> dict[str, tuple]:
    """Estimator, rows and targets."""
    regression = BayesianLinearRegression(noise_variance=1.0, fit_intercept=False)
    classifier = BayesianLogisticRegression()
    X, y = load_diabetes(return_X_y=True)
    found = {
        "linear regression": (regression, *linear()),
        "diabetes": (classifier, X, y > np.median(y)),
        "iris": (classifier, *load_iris(return_X_y=True)),
        "breast cancer": (classifier, *load_breast_cancer(return_X_y=True)),
        "wine": (classifier, *load_wine(return_X_y=True)),
        "network on wine": (
            BayesianMLPClassifier((4,), sampler="hmc"),
            *load_wine(return_X_y=True),
        ),
    }
    return {name: (model, *prepared(name, X, y)) for name, (model, X, y) in found.items()}


def prepared(name: str, X: NDArray, y: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Standardised, three quarters for training; the linear rows as they are."""
    if name == "linear regression":
        return X, y, X, y
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    order = np.random.default_rng(0).permutation(len(X))
    train, rest = np.split(order, [len(X) * 3 // 4])
    return X[train], y[train], X[rest], y[rest]


def learned(model, data: tuple, seed: int) -> tuple[list[str], dict[str, NDArray], int]:
    """Labels of blocks, their precisions by method, and how often the scalar step's fit warns."""
    model = clone(model).set_params(random_state=seed)
    path = hyperparameter_path(model, *data, prior_precisions=[1.0])
    fewer = hyperparameter_path(model, *data, prior_precisions=[1.0], em=VariationalEM())
    found = {"own sampler": path.em_precisions, "scalar": path.sgd_em_precisions}
    found[FEWER] = fewer.sgd_em_precisions
    rows = 20 if path.sgd_em_sampler is None else path.sgd_em_sampler.batch_size
    for name, sampler in (("HMC", HMC()), ("full", ConstantSGD(batch_size=rows))):
        model.set_params(sampler=sampler, prior_precision=VariationalEM())
        found[name] = np.array(learned_precisions(model.fit(*data[:2])))
    return path.em_blocks, found, len(path.sgd_em_warnings)


def rows_of(name: str, model, *data) -> list[dict]:
    """A row of each block of weights."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = [learned(model, data, seed) for seed in SEEDS]
    rows = []
    for k, block in enumerate(runs[0][0]):
        row = {"posterior": name, "block": block}
        row["evidence"] = evidence_maximum(*data[:2]) if name == "linear regression" else None
        for method in METHODS:
            logs = np.log([found[method][k] for _, found, _ in runs])
            row |= {method: float(np.exp(logs.mean())), f"{method}, +-": float(np.ptp(logs) / 2)}
        row |= {f"{method} over HMC": row[method] / row["HMC"] for method in METHODS[1:]}
        row["warnings"] = min(run[2] for run in runs)
        rows.append(row)
        print(row, flush=True)
    return rows


def claims(rows: list[dict]) -> list[Claim]:
    """Right where the posterior is normal, and said where it is not."""
    known = rows[0]
    found = [
        Claim(f"linear regression, {method}: precision over the evidence's", ratio, 0.97, 1.03)
        for method in METHODS
        if method != FEWER
        for ratio in [known[method] / known["evidence"]]
    ]
    for row in rows:
        if abs(np.log(row["scalar over HMC"])) > 0.2:
            sentence = f"{row['posterior']}, {row['block']}: warnings of the fit that is off"
            found.append(Claim(sentence, row["warnings"], low=1))
    return found


def of_classes(n_classes: int) -> tuple[NDArray, NDArray]:
    """Rows of a multinomial model."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 6))
    utilities = 0.5 * X @ rng.standard_normal((6, n_classes))
    return X, (utilities + rng.gumbel(size=utilities.shape)).argmax(axis=1)


def learned_by(sampler, X: NDArray, y: NDArray, n_updates: int = 250, seed: int = 1) -> float:
    """The precision of the coefficients; the few draws after it are not looked at."""
    em = VariationalEM(n_updates=n_updates)
    model = BayesianLogisticRegression(sampler, em, n_chains=4, n_draws=50, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return learned_precisions(model.fit(X, y))[0]


def by_classes() -> list[dict]:
    """What each sampler learns, over what HMC learns."""
    rows: list[dict] = []
    for n_classes in CLASSES:
        X, y = of_classes(n_classes)
        row: dict = {"classes": n_classes, "HMC": learned_by(HMC(), X, y, n_updates=600, seed=0)}
        row |= {name: learned_by(s, X, y) / row["HMC"] for name, s in SAMPLERS.items()}
        rows.append(row)
        print(row, flush=True)
    return rows


def main(report: Report) -> None:
    """Every posterior, then every number of classes."""
    rows = [row for name, one in problems().items() for row in rows_of(name, *one)]
    report.save(rows, claims(rows))
    rows = by_classes()
    of_samplers = [
        Claim(f"{name}: learned precision over that by HMC", [r[name] for r in rows], 0.95, 1.05)
        for name in SAMPLERS
    ]
    report.save(rows, of_samplers, name="em_classes")


if __name__ == "__main__":
    benchmark(main)
