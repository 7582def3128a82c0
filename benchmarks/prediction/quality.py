"""Predictions of default fits against scikit-learn's, on 21 data sets and twenty splits of each.

    python -m benchmarks.prediction.quality [--sets iris wine]

Columns are standardised on the training rows, 70 % of up to 3,000. Loss is the mean negative log
probability of the test labels, and the rivals are LogisticRegression (C = 1), LogisticRegressionCV
(ten C by log loss, five folds), CalibratedClassifierCV, and the Laplace approximation of the
posterior under precision 1. The claims compare the default with LogisticRegressionCV: the ratio of
their losses, each the mean over the splits. Priors of a precision for each column, the horseshoe
and Student's t stand beside it on the first five splits, in ratio to the rival on the same ones.
Where a set breaks its limit, its fits are repeated under thirteen given precisions. "best given" is
the ratio of the best of them, chosen by the test
rows themselves. If it breaks the limit too, no common precision of a normal prior keeps it.
Seconds are those of the process, with one thread.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.common.classification import SETS
from benchmarks.common.harness import Claim, Report, benchmark
from skbayes_sg import BayesianLogisticRegression

SPLITS, FEW_SPLITS = 20, 5
WORST = 1.05
SPARSE = 0.90
SLOWEST = 1.5
GRID = np.logspace(-4, 2, 13)
DEFAULT, RIVAL = "default", "LogisticRegressionCV"
OTHER_PRIORS = {
    "precision per column": {"prior_groups": "feature"},
    "student_t": {"prior": "student_t"},
    "horseshoe": {"prior": "horseshoe"},
}
"""Beside the default's"""


class Laplace(LogisticRegression):
    """Draws from the normal distribution at the mode under precision 1."""

    def fit(self, X, y):
        """The mode, and a root of the covariance there."""
        super().fit(X, y)
        Z = np.column_stack([X, np.ones(len(X))])
        p = super().predict_proba(X)
        if len(self.classes_) == 2:
            H = np.einsum("n,ni,nj->ij", p[:, 0] * p[:, 1], Z, Z)
        else:
            of_rows = np.einsum("nk,kl->nkl", p, np.eye(p.shape[1])) - p[:, :, None] * p[:, None]
            H = np.einsum("nkl,ni,nj->kilj", of_rows, Z, Z, optimize=True)
            H = H.reshape(self.coef_.size + len(self.intercept_), -1)
        prior = np.append(np.ones(X.shape[1]), 0.01)  # as the package's, of intercepts too
        H.flat[:: len(H) + 1] += np.resize(prior, len(H))
        self.root_ = np.linalg.cholesky(np.linalg.inv(H))
        return self

    def predict_proba(self, X):
        """Mean over a thousand draws."""
        centre = np.column_stack([self.coef_, self.intercept_])
        normals = np.random.default_rng(0).standard_normal((1000, centre.size))
        draws = centre + (normals @ self.root_.T).reshape(-1, *centre.shape)
        Z = np.column_stack([X, np.ones(len(X))])
        total = np.zeros((len(X), len(self.classes_)))
        for draw in draws:
            z = Z @ draw.T
            total += softmax(np.column_stack([-z, z]) / 2 if z.shape[1] == 1 else z, axis=1)
        return total / len(draws)


def models() -> dict[str, Any]:
    """By name, unfitted."""
    point = LogisticRegression(max_iter=5000)
    return {
        "LogisticRegression": point,
        RIVAL: LogisticRegressionCV(
            Cs=10,
            l1_ratios=(0,),
            cv=5,
            scoring="neg_log_loss",
            max_iter=5000,
            use_legacy_attributes=False,
        ),
        "CalibratedClassifierCV": CalibratedClassifierCV(point),
        "Laplace": Laplace(max_iter=5000),
        "precision 1": given(1.0),
        DEFAULT: BayesianLogisticRegression(random_state=0),
    }


def given(precision: float) -> BayesianLogisticRegression:
    """A fit under a given precision."""
    return BayesianLogisticRegression(prior_precision=precision, random_state=0)


def calibration_error(y: NDArray, proba: NDArray) -> float:
    """Mean gap between confidence and accuracy over ten bins of confidence."""
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == y
    bins = np.minimum((10 * confidence).astype(int), 9)
    gaps = np.bincount(bins, confidence - right, minlength=10)
    return float(np.abs(gaps).sum() / len(y))


def split(X: NDArray, y: NDArray, seed: int) -> tuple[NDArray, ...]:
    """Standardised rows to learn from and to test on, and their labels as numbers."""
    y = np.unique(y, return_inverse=True)[1]
    parts = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
    scaler = StandardScaler().fit(parts[0])
    return scaler.transform(parts[0]), scaler.transform(parts[1]), parts[2], parts[3]


def scored(model, parts: tuple[NDArray, ...]) -> dict[str, float]:
    """Figures of one fit."""
    X_train, X_test, y_train, y_test = parts
    begin = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        proba = clone(model).fit(X_train, y_train).predict_proba(X_test)
    seconds = time.process_time() - begin
    proba = np.maximum(proba, 1e-15)
    proba /= proba.sum(axis=1, keepdims=True)
    one_hot = np.eye(proba.shape[1])[y_test]
    return {
        "log_loss": log_loss(y_test, proba),
        "brier": float(np.sum((proba - one_hot) ** 2, axis=1).mean()),
        "calibration_error": calibration_error(y_test, proba),
        "accuracy": accuracy_score(y_test, proba.argmax(axis=1)),
        "seconds": seconds,
        "warnings": float(len(caught) > 0),
    }


def figures(model, splits: list[tuple[NDArray, ...]]) -> list[dict[str, float]]:
    """Of a fit to each split."""
    return [scored(model, parts) for parts in splits]


def means(each: list[dict[str, float]], rival: list[dict[str, float]]) -> dict[str, float]:
    """Means over splits, and the ratio to the rival's loss on the same ones."""
    found = {name: float(np.mean([one[name] for one in each])) for name in each[0]}
    loss = np.mean([one["log_loss"] for one in rival[: len(each)]])
    return {"splits": len(each)} | found | {"ratio": float(found["log_loss"] / loss)}


def on_set(name: str, load: Callable) -> list[dict]:
    """All models on one set."""
    X, y = load()
    splits = [split(X, y, seed) for seed in range(SPLITS)]
    about = {"set": name, "rows": len(splits[0][0]), "columns": X.shape[1]}
    about["classes"] = len(np.unique(y))
    found = {label: figures(model, splits) for label, model in models().items()}
    for label, prior in OTHER_PRIORS.items():
        model = BayesianLogisticRegression(random_state=0, **prior)
        found[label] = figures(model, splits[:FEW_SPLITS])
    rival = found[RIVAL]
    rows = [about | {"model": label} | means(each, rival) for label, each in found.items()]
    default = next(row for row in rows if row["model"] == DEFAULT)
    if default["ratio"] > WORST:
        ratios = [means(figures(given(one), splits), rival)["ratio"] for one in GRID]
        best = int(np.argmin(ratios))
        default |= {"best_given": ratios[best], "best_precision": float(GRID[best])}
    return rows


def claims(rows: list[dict]) -> list[Claim]:
    """The targets."""
    of = {label: [r for r in rows if r["model"] == label] for label in (DEFAULT, RIVAL)}
    ratios = [r["ratio"] for r in of[DEFAULT]]
    seconds = [sum(r["seconds"] for r in of[label]) for label in (DEFAULT, RIVAL)]
    found = [
        Claim(
            "default over LogisticRegressionCV, mean ratio of losses",
            float(np.mean(ratios)),
            high=1.0,
        ),
        Claim("total seconds over LogisticRegressionCV's", seconds[0] / seconds[1], high=SLOWEST),
    ]
    for r in of[DEFAULT]:
        found.append(Claim(f"ratio of log losses on {r['set']}", r["ratio"], high=WORST))
    for r in of[DEFAULT]:
        if "best_given" in r:
            what = f"ratio on {r['set']} of the best given precision, {r['best_precision']:.3g}"
            found.append(Claim(what, r["best_given"], high=WORST))
    for r in rows:
        if r["model"] == "horseshoe" and r["set"] == "sparse truth":
            found.append(Claim("horseshoe's ratio on sparse truth", r["ratio"], high=SPARSE))
    return found


def main(report: Report, sets: list[str] | None) -> None:
    """All sets, then the claims."""
    rows = []
    for name in sets or SETS:
        rows += on_set(name, SETS[name])
        shown = ("set", "model", "log_loss", "ratio", "seconds")
        new = rows[-len(models()) - len(OTHER_PRIORS) :]
        report.show([{key: row[key] for key in shown} for row in new])
    report.save(rows, claims(rows))


if __name__ == "__main__":
    benchmark(main, threads=1, sets={"nargs": "+"})
