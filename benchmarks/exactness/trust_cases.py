"""The cases of `trust.py`: each gives figures of the package, with the limits that they have.

Seconds are those of the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import datasets as shipped
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import BayesianRidge, LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.common.datasets import standardised
from benchmarks.exactness.trust_answers import LINEAR, LOGISTIC, Answer, call, fitted
from benchmarks.exactness.trust_posteriors import names, rare_levels, streams
from benchmarks.prediction.networks import auroc
from skbayes_sg import (
    BayesianMLPClassifier,
    hyperparameter_path,
)
from skbayes_sg.callbacks import TimeLimit
from skbayes_sg.samplers import SGFS

PENGUINS = Path(__file__).parents[2] / "docs" / "penguins.csv"


def with_column(X: NDArray, values: Any) -> NDArray:
    """Another column in front."""
    return np.column_stack([np.broadcast_to(values, len(X)), X])


def years(n: int) -> NDArray:
    """From 2000 to 2009, at random."""
    return np.random.default_rng(0).integers(2000, 2010, n)


def raw_columns() -> Iterator[Answer]:
    """Accuracies beside LogisticRegression's on standardised columns."""
    wine, kinds = shipped.load_wine(return_X_y=True)
    iris, species = shipped.load_iris(return_X_y=True)
    birds = pd.read_csv(PENGUINS).dropna()
    lengths = birds.filter(regex="_mm|_g").to_numpy(float)
    sets = {
        "wine, class 2": (wine, kinds == 2),
        "wine, class 1": (wine, kinds == 1),
        "penguins, sex": (lengths, birds["sex"].to_numpy()),
        "iris and a year": (with_column(iris, years(150)), species),
    }
    for name, (X, y) in sets.items():
        found = fitted(LOGISTIC, X, y)
        Z = StandardScaler().fit_transform(X)
        goal = LogisticRegression().fit(Z, y).score(Z, y) - 0.02
        now = found.result.score(X, y)
        yield Answer(name, "accuracy", now, goal, warnings=found.warnings)
    X, y = shipped.load_diabetes(return_X_y=True)
    X = with_column(X, years(len(X)))
    found, peer = fitted(LINEAR, X, y), BayesianRidge().fit(X, y).score(X, y)
    now = found.result.score(X, y)
    of, goal = "diabetes and a year", peer - 0.02
    yield Answer(of, "R2", now, goal, warnings=found.warnings)
    yield from shifted_and_scaled()


def shifted_and_scaled() -> Iterator[Answer]:
    """A default fit of raw columns is that of standardised ones."""
    X, y = shipped.load_breast_cancer(return_X_y=True)
    Z, found = standardised(X), {}
    train, test = train_test_split(np.arange(len(y)), random_state=0)
    for name, columns in (("raw", X), ("standardised", Z)):
        found[name] = fitted(LOGISTIC, columns[train], y[train])
        found[f"{name} loss"] = log_loss(y[test], found[name].result.predict_proba(columns[test]))
    ratio = found["raw loss"] / found["standardised loss"]
    said, name = found["raw"].warnings, "log loss over that of standardised columns"
    yield Answer("breast cancer", name, ratio, 0.98, 1.02, said)
    constant = fitted(LOGISTIC, with_column(Z, 2000.0), y)
    now = constant.result.score(with_column(Z, 2000.0), y)
    name = "breast cancer and a column of 2,000"
    yield Answer(name, "accuracy", now, 0.97, warnings=constant.warnings)


def networks() -> Iterator[Answer]:
    """A sampler whose distribution is wrong, and points that are far from all rows."""
    X, y = shipped.load_wine(return_X_y=True)
    X = standardised(X)
    share = np.bincount(y).max() / len(y)
    found = fitted(BayesianMLPClassifier((5,), sampler=SGFS(0.0), random_state=0), X, y)
    now, of = found.result.score(X, y), "wine, SGFS(0.0)"
    yield Answer(of, "accuracy", now, share, 1, found.warnings, True)
    X, y = shipped.make_moons(400, noise=0.3, random_state=0)
    X = standardised(X)
    train, test, y, _ = train_test_split(X, y, test_size=0.5, random_state=0)
    found = fitted(BayesianMLPClassifier(random_state=0), train, y)
    away = np.random.default_rng(0).standard_normal((400, 2))
    far = 3 * np.linalg.norm(X, axis=1).max() * away / np.linalg.norm(away, axis=1, keepdims=True)
    unsure = [found.result.predict_uncertainty(part).epistemic for part in (test, far)]
    name, now = "AUROC of far points", auroc(*unsure)
    yield Answer("two moons", name, now, 0.5, 1, found.warnings, True)


def cost() -> Iterator[Answer]:
    """Seconds of fits that took minutes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 4))
    found = fitted(clone(LOGISTIC).set_params(prior_precision=1.0), X, np.arange(2000) % 100)
    said = found.warnings
    yield Answer("100 classes", "seconds", found.seconds, high=30, warnings=said)
    X = rng.standard_normal((300, 2000))
    y = X[:, :10] @ rng.standard_normal(10) + rng.standard_normal(300)
    found = fitted(LINEAR, X, y)
    of, said = "300 rows x 2,000 columns", found.warnings
    yield Answer(of, "seconds", found.seconds, high=20, warnings=said)
    yield Answer(of, "warnings", said, high=0, warnings=said)
    X, y = shipped.load_digits(return_X_y=True)
    limited = clone(LOGISTIC).set_callbacks(TimeLimit(5))
    found = call(lambda: limited.fit(StandardScaler().fit_transform(X), y))
    of, said = "digits, TimeLimit(5)", found.warnings
    yield Answer(of, "seconds", found.seconds, high=10, warnings=said)
    pipeline = make_pipeline(StandardScaler(), LOGISTIC)
    found, peer = (
        fitted(pipeline, X, y),
        fitted(LogisticRegressionCV(), StandardScaler().fit_transform(X), y),
    )
    of, said = "digits in a pipeline", found.warnings
    yield Answer(of, "warnings", said, high=0, warnings=said)
    ratio = found.seconds / peer.seconds
    yield Answer(of, "seconds over LogisticRegressionCV's", ratio, high=7, warnings=said)


def messages() -> Iterator[Answer]:
    """1 where the call is answered, or refused in words that name the cause."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 1)), rng.integers(0, 2, 300)
    dates = pd.DataFrame({"a": X[:, 0], "c": pd.date_range("2020-01-01", periods=len(X))})
    refused = fitted(LOGISTIC, dates, y).result
    named = isinstance(refused, ValueError) and "date" in str(refused) and "'c'" in str(refused)
    of, figure = "a column of dates", "refused in words that name it"
    yield Answer(of, figure, float(named), low=1)
    X, y = shipped.load_wine(return_X_y=True)
    boosted = fitted(AdaBoostClassifier(LOGISTIC, n_estimators=5), X, y)
    said = boosted.warnings
    now, of = boosted.result.score(X, y), "AdaBoost on wine (weights that sum to 1)"
    yield Answer(of, "accuracy", now, 0.98, 1, said, True)
    X, y = shipped.load_iris(return_X_y=True)
    Z = standardised(X)
    found = call(lambda: hyperparameter_path(LOGISTIC, Z, y, Z, y, prior_precisions=[0.1, 1.0]))
    now = float(found.result.sgd_em_precisions[0] / found.result.em_precisions[0])
    of, figure = "hyperparameter_path of iris", "precision by constant SGD over the sampler's"
    said = len(found.result.sgd_em_warnings)
    yield Answer(of, figure, now, 0.8, 1.25, said, True)


def separable() -> Iterator[Answer]:
    """Sixteen sets that the first column separates; its unit is a ten-thousandth of the others'.

    A fit that says nothing has to agree with one of other seed and twelve times as many draws.
    """
    accuracy, said, errors = [], [], []
    for seed in range(16):
        X = np.random.default_rng(seed).standard_normal((500, 4))
        y, X = X[:, 0] > 0, X * [1e4, 1, 1, 1]
        found = fitted(LOGISTIC, X, y)
        long = fitted(clone(LOGISTIC).set_params(n_draws=1500, random_state=1), X, y).result
        accuracy.append(found.result.score(X, y))
        said.append(found.warnings)
        away = np.abs(found.result.coef_ - long.coef_) / long.coef_std_
        errors.append(0.0 if found.warnings else float(away.max()))
    yield Answer("16 sets", "least accuracy", min(accuracy), 0.98, warnings=sum(said))
    yield Answer("16 sets", "error of a mean in sd, without a warning", max(errors), high=0.15)
    yield Answer("16 sets", "most warnings of a fit", max(said), high=3, warnings=max(said))


def export() -> Iterator[Answer]:
    """More than the memory holds; version 0.3.0 asks for it, and is killed."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 1)), rng.integers(0, 2, 300)
    model = fitted(clone(LOGISTIC).set_params(prior_precision=1.0), X, y).result
    many = np.zeros((20_000_000, 1), dtype=np.float32)
    refused = call(lambda: model.to_arviz(many, np.zeros(len(many)), log_likelihood=True)).result
    of, figure = "to_arviz of 2e7 rows", "refused in words"
    yield Answer(of, figure, float("GB" in str(refused)), low=1)


CASES: dict[str, Callable[[], Iterator[Answer]]] = {
    "raw columns": raw_columns,
    "rare levels": rare_levels,
    "streams": streams,
    "names": names,
    "networks": networks,
    "seconds": cost,
    "messages": messages,
    "separable classes": separable,
    "export": export,
}
