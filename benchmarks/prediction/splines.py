"""Four known curves: splines with a learned precision for each, beside the smooths of pyGAM.

    python -m benchmarks.prediction.splines                  # about half an hour
    python -m benchmarks.prediction.splines --replicates 5

The curves are those of Gu & Wahba (1991), as mgcv's gamSim(1) has them, of four uniform columns of
400 rows; the last is zero. y is normal with a standard deviation of 2, or Poisson or binary with
the scales of mgcv's examples (.25 and .33).

"ridge" gives the B-spline coefficients of each curve (SplineTransformer, 12 knots) a precision of
their own, with a prior around zero. "smooth" gives it to their second differences D instead, the
penalty of P-splines (Eilers & Marx 1996): the columns are multiplied by the square root of the
pseudoinverse of D'D, and the straight lines, which D does not penalise, are four columns that share
a fifth precision. The root is the symmetric one, whose columns are of similar sizes, as the unit of
a learned precision is the standard deviation of a column. "pyGAM" chooses its four penalties by
generalised cross-validation (UBRE for classes and counts) among a hundred at random, as its guide
advises; "pyGAM, one penalty" among eleven that all curves share, which is what `gridsearch` does.

Error and coverage are those of the curves at the rows, each minus its mean over the rows, on the
scale of the linear predictor: the root mean square over rows and curves, and the share that 95 %
intervals contain, which is what such intervals promise (Nychka 1988). "+-" are Monte-Carlo standard
errors; "beside pyGAM" is the mean difference of the errors in the same runs over its own.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, SplineTransformer

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.timing import Clock
from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
)

N_ROWS, N_KNOTS, LEVEL = 400, 12, 0.95
NAMES = ["x0", "x1", "x2", "x3"]
CENTRE = 5.0  # what gamSim subtracts for two classes
FAMILIES: dict[str, tuple[float, type, str]] = {
    "normal": (2.0, BayesianLinearRegression, "LinearGAM"),
    "Poisson": (0.25, BayesianPoissonRegressor, "PoissonGAM"),
    "binary": (0.33, BayesianLogisticRegression, "LogisticGAM"),
}
"""Scale, estimator of this package and class of pyGAM."""

Curves = tuple[NDArray, NDArray, NDArray]
"""Estimates and ends of their intervals, (n_rows, 4)"""


def truths(X: NDArray) -> NDArray:
    """The four curves, (n_rows, 4)."""
    a, b, c, d = X.T
    bumps = 0.2 * c**11 * (10 * (1 - c)) ** 6 + 10 * (10 * c) ** 3 * (1 - c) ** 10
    return np.column_stack([2 * np.sin(np.pi * a), np.exp(2 * b), bumps, 0 * d])


def simulated(family: str, seed: int) -> tuple[NDArray, NDArray, NDArray]:
    """X, y, and the curves on the scale of the linear predictor."""
    rng, scale = np.random.default_rng(seed), FAMILIES[family][0]
    X = rng.random((N_ROWS, len(NAMES)))
    curves = truths(X)
    f = curves.sum(axis=1)
    if family == "normal":
        return X, f + scale * rng.standard_normal(N_ROWS), curves
    if family == "Poisson":
        return X, rng.poisson(np.exp(scale * f)), scale * curves
    return X, (rng.random(N_ROWS) < expit(scale * (f - CENTRE))).astype(int), scale * curves


def smoothed() -> Any:
    """Columns of a curve whose prior around zero is one of second differences."""
    n_columns = N_KNOTS + SplineTransformer().degree - 1
    _, sizes, rows = np.linalg.svd(np.diff(np.eye(n_columns), 2, axis=0), full_matrices=False)
    root = {"b": rows.T / sizes @ rows}
    penalty = FunctionTransformer(np.dot, kw_args=root, feature_names_out="one-to-one")
    return make_pipeline(SplineTransformer(N_KNOTS), penalty)


def posterior(family: str, smooth: bool, X: NDArray, y: NDArray) -> Curves:
    """Curves out of the draws of the coefficients."""
    frame = pd.DataFrame(X, columns=NAMES)
    parts: list[tuple] = [
        (name, smoothed() if smooth else SplineTransformer(N_KNOTS), [name]) for name in NAMES
    ]
    parts += [("line", "passthrough", NAMES)] if smooth else []
    columns = ColumnTransformer(parts).set_output(transform="pandas")
    estimator = FAMILIES[family][1](prior_groups="prefix", random_state=0)
    make_pipeline(columns, estimator).fit(frame, y)
    found = columns.transform(frame)
    draws = estimator.coef_samples_.reshape(-1, found.shape[1])
    found = pd.DataFrame(found - found.mean())
    of = [found.columns.str.contains(f"^{name}__|^line__{name}$") for name in NAMES]
    curves = [found.loc[:, some].to_numpy() @ draws[:, some].T for some in of]
    tail = (1 - LEVEL) / 2
    ends = [np.quantile(each, [tail, 1 - tail], axis=1) for each in curves]
    means = np.column_stack([each.mean(axis=1) for each in curves])
    return means, np.column_stack([low for low, _ in ends]), np.column_stack([e for _, e in ends])


def pygam(family: str, own: bool, X: NDArray, y: NDArray) -> Curves:
    """Curves out of the normal approximation of pyGAM."""
    module = import_module("pygam")
    terms = module.s(0) + module.s(1) + module.s(2) + module.s(3)
    model = getattr(module, FAMILIES[family][2])(terms)
    penalties = 10 ** np.random.default_rng(0).uniform(-3, 3, (100, len(NAMES)))
    model.gridsearch(X, y, progress=False, **({"lam": penalties} if own else {}))
    means, sds = [], []
    for j in range(len(NAMES)):
        columns = model._modelmat(X, term=j).toarray()
        columns = columns - columns.mean(axis=0)
        at = model.terms.get_coef_indices(j)
        means.append(columns @ model.coef_[at])
        covariance = model.statistics_["cov"][np.ix_(at, at)]
        sds.append(np.sqrt(np.einsum("ij,jk,ik->i", columns, covariance, columns)))
    mean, half = np.column_stack(means), 1.96 * np.column_stack(sds)
    return mean, mean - half, mean + half


MODELS: dict[str, Callable[..., Curves]] = {
    "smooth": lambda family, X, y: posterior(family, True, X, y),
    "ridge": lambda family, X, y: posterior(family, False, X, y),
    "pyGAM": lambda family, X, y: pygam(family, True, X, y),
    "pyGAM, one penalty": lambda family, X, y: pygam(family, False, X, y),
}


def measured(family: str, replicates: int) -> dict[str, list[tuple]]:
    """Mean squared errors and coverages of the curves, and seconds, of each model and replicate."""
    found: dict[str, list[tuple]] = {model: [] for model in MODELS}
    for seed in range(replicates):
        X, y, curves = simulated(family, seed)
        truth = curves - curves.mean(axis=0)
        for model, fit in MODELS.items():
            with Clock(time.process_time) as clock:
                mean, low, high = fit(family, X, y)
            within = np.mean((low <= truth) & (truth <= high), axis=0)
            found[model].append((np.mean((mean - truth) ** 2, axis=0), within, clock.seconds))
        print(family, seed, flush=True)
    return found


def table(family: str, found: dict[str, list[tuple]]) -> list[dict]:
    """A row for each model."""
    rows = []
    peer = np.sqrt([squares.mean() for squares, _, _ in found["pyGAM"]])
    for model, runs in found.items():
        squares, within = (np.array([run[i] for run in runs]) for i in (0, 1))
        errors, shares = np.sqrt(squares.mean(axis=1)), within.mean(axis=1)
        row = {"y": family, "model": model, "replicates": len(runs)}
        row |= {"error": errors.mean(), "error +-": _standard_error(errors)}
        if model != "pyGAM":
            difference = errors - peer
            row["beside pyGAM"] = difference.mean() / _standard_error(difference)
        row |= {"coverage": shares.mean(), "coverage +-": _standard_error(shares)}
        row |= {f"error f{j}": np.sqrt(squares[:, j].mean()) for j in range(len(NAMES))}
        row |= {f"coverage f{j}": within[:, j].mean() for j in range(len(NAMES))}
        rows.append(row | {"CPU s": float(np.median([seconds for _, _, seconds in runs]))})
    return rows


def _standard_error(values: NDArray) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def claims(rows: list[dict]) -> list[Claim]:
    """That smooths are as good as pyGAM's, and their intervals contain the curves."""
    smooth = [row for row in rows if row["model"] == "smooth"]
    off = [abs(row["coverage"] - LEVEL) - 2 * row["coverage +-"] for row in smooth]
    beside = [row["beside pyGAM"] for row in smooth]
    return [
        Claim("error beside pyGAM's, in Monte-Carlo standard errors", beside, high=2.0),
        Claim("coverage off .95, beyond two Monte-Carlo standard errors", off, high=0.02),
    ]


def main(report: Report, replicates: int) -> None:
    """All families."""
    warnings.simplefilter("ignore")
    rows: list[dict] = []
    for family in FAMILIES:
        rows += table(family, measured(family, replicates))
        report.show(rows, f"after {family}")
    report.save(rows, claims(rows))


if __name__ == "__main__":
    benchmark(main, threads=1, replicates={"type": int, "default": 50})
