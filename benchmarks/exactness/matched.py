"""What matching to gradients is worth: Monte Carlo errors over seeds, with it and without.

    python -m benchmarks.exactness.matched [--seeds 40]
    python -m benchmarks.exactness.matched --only "breast cancer"  # others stay as they were

Each set is fitted by the default under many seeds. The errors of means, standard deviations and
2.5 % points are the spreads over seeds of the numbers that one fit gives, in posterior standard
deviations, as root mean squares over parameters; those of predictions are the largest differences
between any two seeds, of up to 100 rows. "drawn" are the draws of the same fits before they are
matched, and "away" is how far the mean over seeds moves by that, in its errors without: about 1 if
nothing is biased. "told" is the error of a mean by the spread of batches over the true one. "many
classes" has more than a thousand parameters, so that coordinates are taken one by one and no errors
are told, and a quarter of the seeds. Five minutes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import scale

import skbayes_sg.inference.sample as of_fit
from benchmarks.common.harness import Claim, Report, benchmark
from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
)
from skbayes_sg.inspection import average_effects

NORMAL = ("linear", "logistic", "Poisson", "negative binomial", "Gamma", "robust", "ordinal")


def simulated(name: str) -> tuple[BaseEstimator, NDArray, NDArray]:
    """An estimator and rows of its family; of classes six, or two of sixty rows."""
    rng = np.random.default_rng(3)
    n, d = {"few rows": (60, 5), "linear": (100, 6), "robust": (200, 6)}.get(name, (500, 6))
    X = rng.standard_normal((n, d))
    eta = X @ rng.normal(0, 0.5, d)
    mean = np.exp(eta)
    families: dict[str, tuple[type, Callable[[], NDArray]]] = {
        "linear": (BayesianLinearRegression, lambda: eta + rng.normal(size=n)),
        "robust": (BayesianRobustRegressor, lambda: eta + rng.standard_t(3, n)),
        "Poisson": (BayesianPoissonRegressor, lambda: rng.poisson(mean)),
        "negative binomial": (
            BayesianNegativeBinomialRegressor,
            lambda: rng.negative_binomial(2, 2 / (2 + mean)),
        ),
        "Gamma": (BayesianGammaRegressor, lambda: rng.gamma(3, mean / 3)),
        "ordinal": (
            BayesianOrdinalClassifier,
            lambda: np.digitize(eta + rng.logistic(size=n), [-1, 1]),
        ),
    }
    logistic = (BayesianLogisticRegression, lambda: eta + rng.logistic(size=n) > 0)
    kind, draw = families.get(name, logistic)
    return kind(), X, draw()


def many_classes() -> tuple[BaseEstimator, NDArray, NDArray]:
    """Twenty classes and sixty columns."""
    rng = np.random.default_rng(3)
    X, coef = rng.standard_normal((3000, 60)), rng.normal(0, 0.15, (60, 20))
    return BayesianLogisticRegression(), X, (X @ coef + rng.gumbel(size=(3000, 20))).argmax(axis=1)


def real(load: Callable[..., Any]) -> tuple[BaseEstimator, NDArray, NDArray]:
    """Standardised columns, and classes."""
    X, y = load(return_X_y=True)
    return BayesianLogisticRegression(), scale(X), y


SETS: dict[str, Callable[[], tuple[BaseEstimator, NDArray, NDArray]]] = {
    name: (lambda name=name: simulated(name)) for name in (*NORMAL, "few rows")
} | {
    "breast cancer": lambda: real(load_breast_cancer),
    "iris": lambda: real(load_iris),
    "wine": lambda: real(load_wine),
    "many classes": many_classes,
}


def over_seeds(name: str, seeds: int, drawn: list[NDArray]) -> dict:
    """Errors of one set; `drawn` takes the draws of a fit before they are matched."""
    model, X, y = SETS[name]()
    rows = X[:: max(1, len(X) // 100)]
    tables, numbers, predicted = {}, {"drawn": [], "matched": []}, []
    for seed in range(max(2, seeds // 4) if name == "many classes" else seeds):
        drawn.clear()
        model.set_params(random_state=seed).fit(X, y)
        draws = model.draws_.reshape(-1, model.draws_.shape[2]).astype(np.float64)
        before = drawn[-1].reshape(len(draws), -1)[:, : draws.shape[1]]
        for how, each in {"drawn": before, "matched": draws}.items():
            low = np.quantile(each, 0.025, axis=0)
            numbers[how].append([each.mean(axis=0), each.std(axis=0), low])
        told = {}
        if model._batches is not None:
            told = {
                "": model.summary(full=True),
                " effect": average_effects(model, rows, full=True),
            }
        for what, table in told.items():
            for figure in ("mean", "sd"):
                pair = table[figure], table[f"mcse_{figure}"]
                tables.setdefault(f"told {figure}{what}", []).append(pair)
        soft = hasattr(model, "predict_proba")
        predicted.append(model.predict_proba(rows) if soft else model.predict(rows))
    found = {how: np.array(each) for how, each in numbers.items()}
    sd = found["drawn"][:, 1].mean(axis=0)
    error = {how: each.std(axis=0, ddof=1) / sd for how, each in found.items()}
    away = found["matched"].mean(axis=0) - found["drawn"].mean(axis=0)
    away = away / (error["drawn"] * sd / np.sqrt(len(predicted)))
    row = {"set": name, "engine": type(model.sampler_).__name__, "draws": len(draws)}
    for k, what in enumerate(("mean", "sd", "2.5 %")):
        for how in numbers:
            row[f"{what} {how}"] = round(float(np.sqrt(np.mean(error[how][k] ** 2))), 5)
    row["away"] = round(float(np.sqrt(np.mean(away[:2] ** 2))), 2)
    for what, pairs in tables.items():
        found, told = np.moveaxis(np.array(pairs), 1, 0)
        ratio = np.square(told).mean(axis=0) / found.var(axis=0, ddof=1)
        row[what] = round(float(np.sqrt(ratio.mean())), 2)
    if soft:
        row["prediction"] = round(float(np.ptp(predicted, axis=0).max()), 5)
    return row


def main(report: Report, seeds: int, only: str | None) -> None:
    """Fit, print, and write what all sets give."""
    drawn: list[NDArray] = []
    match = of_fit.matched

    def noted(target: Any, draws: NDArray) -> Any:
        drawn.append(draws)
        return match(target, draws)

    of_fit.matched = noted
    rows = []
    with warnings.catch_warnings(action="ignore"):
        for name in SETS if only is None else [only]:
            rows.append(over_seeds(name, seeds, drawn))
            print(rows[-1], flush=True)
    if only is not None:
        rows += [row for row in report.earlier() if row["set"] != only]
        rows.sort(key=lambda row: list(SETS).index(row["set"]))
    normal = [row for row in rows if row["set"] in NORMAL]
    by_name = {row["set"]: row for row in rows}
    others = [row for row in rows if row["set"] not in NORMAL]
    worse = [
        row[f"{what} matched"] / row[f"{what} drawn"]
        for row in others
        for what in ("mean", "sd", "2.5 %")
    ]
    claims = [
        Claim("error of a mean near a normal distribution, median of families",
              float(np.median([row["mean matched"] for row in normal])), high=0.003),
        Claim("error of a standard deviation, median of families",
              float(np.median([row["sd matched"] for row in normal])), high=0.004),
        Claim("2.5 % points near a normal distribution, median of families",
              float(np.median([row["2.5 % matched"] for row in normal])), high=0.06),
        Claim("errors on other posteriors over those without", worse, high=1.05),
        Claim("largest change of a probability of breast cancer with the seed",
              by_name["breast cancer"]["prediction"], high=0.01),
        Claim("bias, in the errors of a mean over seeds", [row["away"] for row in rows], high=2.0),
        Claim("errors told over true near a normal distribution",
              [row[f"told {figure}"] for row in normal for figure in ("mean", "sd")],
              low=0.7, high=1.3),
    ]  # fmt: skip
    report.save(rows, claims)


if __name__ == "__main__":
    seeds = {"type": int, "default": 40}
    benchmark(main, threads=1, seeds=seeds, only={"choices": sorted(SETS)})
