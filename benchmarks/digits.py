"""BayesianMLPClassifier at its defaults on scikit-learn's digits, beside MLPClassifier and temperature-scaled draws.

    python benchmarks/digits.py

Five splits (three quarters to learn from). Accuracy, log loss, expected calibration error (ten bins), mean
confidence, seconds; medians and each split. "longer": ten times as many HMC draws, for what the posterior itself
predicts, apart from Monte Carlo error. "tempered": the averaged probabilities to the power 1.25, renormalised, which is
no posterior any more. "learned": the precision of each layer's weights by variational EM ("precisions", for which
the default has 385 and .01).
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from common import print_table, write_csv
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from skbayes_sg import BayesianMLPClassifier


def calibration_error(proba: np.ndarray, y: np.ndarray, n_bins: int = 10) -> float:
    """Mean gap between confidence and accuracy over bins of confidence, weighted by their rows."""
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == y
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gaps = [abs(confidence[bins == b].sum() - right[bins == b].sum()) for b in range(n_bins)]
    return sum(gaps) / len(y)


def figures(proba: np.ndarray, y: np.ndarray, seconds: float) -> dict:
    """All columns of one row."""
    return {
        "accuracy": float((proba.argmax(axis=1) == y).mean()),
        "log loss": float(log_loss(y, proba)),
        "calibration error": calibration_error(proba, y),
        "confidence": float(proba.max(axis=1).mean()),
        "s": seconds,
    }


def main() -> None:
    """Fit, print, judge."""
    warnings.simplefilter("ignore")
    X, y = load_digits(return_X_y=True)
    table = []
    for seed in range(5):
        train, test, a, b = train_test_split(X, y, random_state=seed)
        models = {
            "MLPClassifier": MLPClassifier(random_state=seed),
            "MLPClassifier, 30 logistic units": MLPClassifier((30,), "logistic", max_iter=1000, random_state=seed),
            "BayesianMLPClassifier": BayesianMLPClassifier(random_state=seed, n_jobs=2),
            "BayesianMLPClassifier, precision 1": BayesianMLPClassifier(
                prior_precision=1.0, random_state=seed, n_jobs=2
            ),
            "BayesianMLPClassifier, learned": BayesianMLPClassifier(prior_precision="em", random_state=seed, n_jobs=2),
        }
        if seed == 0:
            models["BayesianMLPClassifier, longer"] = BayesianMLPClassifier(
                random_state=seed, n_jobs=2, n_draws=500, burn_in=1000
            )
        for name, model in models.items():
            begin = time.perf_counter()
            model.fit(train, a)
            seconds = time.perf_counter() - begin
            proba = model.predict_proba(test)
            table.append({"split": seed, "model": name} | figures(proba, b, seconds))
            if name == "BayesianMLPClassifier, learned":
                table[-1]["precisions"] = ", ".join(f"{value:.3g}" for value in model._learned.values)
            if name == "BayesianMLPClassifier":
                tempered = proba**1.25 / (proba**1.25).sum(axis=1, keepdims=True)
                table.append({"split": seed, "model": "tempered"} | figures(tempered, b, seconds))
    print_table(table)
    columns = [c for c in table[0] if c not in ("split", "model")]
    names = list(dict.fromkeys(row["model"] for row in table))
    medians = {n: {c: float(np.median([r[c] for r in table if r["model"] == n])) for c in columns} for n in names}
    print("\nmedians")
    print_table([{"model": name} | of for name, of in medians.items()])
    ours, theirs = medians["BayesianMLPClassifier"], medians["MLPClassifier"]
    print()
    for claim, holds in [
        (f"accuracy {ours['accuracy']:.3f} >= .97", ours["accuracy"] >= 0.97),
        (
            f"log loss {ours['log loss']:.3f} <= .118 (MLPClassifier here {theirs['log loss']:.3f})",
            ours["log loss"] <= 0.118,
        ),
        (f"calibration error {ours['calibration error']:.3f} <= .03", ours["calibration error"] <= 0.03),
        (f"{ours['s']:.1f} s <= 30", ours["s"] <= 30),
    ]:
        print("ok  " if holds else "FAIL", claim)
    write_csv("digits.csv", table)


if __name__ == "__main__":
    main()
