"""BayesianMLPClassifier at temperature 1 on scikit-learn's digits, beside MLPClassifier.

    python -m benchmarks.prediction.digits

The cold default is in networks.py. There are five splits (three quarters to learn from), and of
each accuracy, log loss, expected calibration error (ten bins), mean confidence and seconds; then
medians. "longer" has ten times as many HMC draws, for what the posterior itself predicts, apart
from Monte Carlo error. "tempered" is the averaged probabilities to the power 1.25, renormalised,
which is no posterior any more. "learned" takes the precision of each layer's weights from
variational EM ("precisions", for which the default has 385 and .01). Some three minutes.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import learned_precisions
from benchmarks.common.timing import Clock
from skbayes_sg import BayesianMLPClassifier, VariationalEM

OURS = "BayesianMLPClassifier"
FIGURES = ("accuracy", "log loss", "calibration error", "confidence", "s")


def calibration_error(proba: NDArray, y: NDArray, n_bins: int = 10) -> float:
    """Mean gap between confidence and accuracy over bins of confidence, weighted by their rows."""
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == y
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gaps = [abs(confidence[bins == b].sum() - right[bins == b].sum()) for b in range(n_bins)]
    return sum(gaps) / len(y)


def figures(proba: NDArray, y: NDArray, seconds: float) -> dict:
    """All columns of one row."""
    return {
        "accuracy": float((proba.argmax(axis=1) == y).mean()),
        "log loss": float(log_loss(y, proba)),
        "calibration error": float(calibration_error(proba, y)),
        "confidence": float(proba.max(axis=1).mean()),
        "s": seconds,
    }


def models(seed: int) -> dict:
    """What is compared on one split."""
    common = {"temperature": 1.0, "random_state": seed, "n_jobs": 2}
    small = MLPClassifier((30,), "logistic", max_iter=1000, random_state=seed)
    found = {
        "MLPClassifier": MLPClassifier(random_state=seed),
        "MLPClassifier, 30 logistic units": small,
        OURS: BayesianMLPClassifier(**common),
        f"{OURS}, precision 1": BayesianMLPClassifier(prior_precision=1.0, **common),
        f"{OURS}, learned": BayesianMLPClassifier(prior_precision=VariationalEM(), **common),
    }
    if seed == 0:
        longer = BayesianMLPClassifier(n_draws=500, burn_in=1000, **common)
        found[f"{OURS}, longer"] = longer
    return found


def compare(seed: int, X: NDArray, y: NDArray) -> list[dict]:
    """One split."""
    train, test, a, b = train_test_split(X, y, random_state=seed)
    table = []
    for name, model in models(seed).items():
        with Clock() as clock:
            model.fit(train, a)
        proba = model.predict_proba(test)
        table.append({"split": seed, "model": name} | figures(proba, b, clock.seconds))
        if name == f"{OURS}, learned":
            values = learned_precisions(model)
            table[-1]["precisions"] = ", ".join(f"{value:.3g}" for value in values)
        if name == OURS:
            tempered = proba**1.25 / (proba**1.25).sum(axis=1, keepdims=True)
            row = figures(tempered, b, clock.seconds)
            table.append({"split": seed, "model": "tempered"} | row)
    return table


def medians(rows: list[dict]) -> list[dict]:
    """Over the splits."""
    return [
        {"model": name}
        | {c: float(np.median([row[c] for row in rows if row["model"] == name])) for c in FIGURES}
        for name in dict.fromkeys(row["model"] for row in rows)
    ]


def claims(rows: list[dict]) -> list[Claim]:
    """The medians of the default fit."""
    table = {row["model"]: row for row in medians(rows)}
    ours, theirs = table[OURS], table["MLPClassifier"]
    beside = f"(MLPClassifier here {theirs['log loss']:.3f})"
    return [
        Claim("accuracy", ours["accuracy"], low=0.97),
        Claim(f"log loss {beside}", ours["log loss"], high=0.118),
        Claim("seconds", ours["s"], high=30),
    ]


def main(report: Report) -> None:
    """Five splits."""
    warnings.simplefilter("ignore")
    X, y = load_digits(return_X_y=True)
    rows = [row for seed in range(5) for row in compare(seed, X, y)]
    report.show(medians(rows), "medians")
    report.save(rows, claims(rows), title="all splits")


if __name__ == "__main__":
    benchmark(main)
