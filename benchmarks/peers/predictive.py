"""Distributions and intervals of predictions beside those of other packages.

    python -m benchmarks.peers.predictive                   # some minutes; skips what is missing
    python -m benchmarks.peers.predictive --only cancer     # one set; others stay as they were

Of three sets, half of the rows train and half test, over --repeats splits: mean negative log
density, or of classes log loss; share of new observations within intervals of 90 %, and their mean
width; and CPU seconds of a fit with its predictions. Every package has its defaults. Packages that
give intervals and no density have no loss. Their own versions of scikit-learn may differ from those
that this package needs: install them into one environment with `pip install --no-deps`.

diabetes    442 x 10 of scikit-learn, standardised
friedman    400 x 5: a curve, a product and a noise that grows with a column (Friedman 1991)
cancer      569 x 30 of scikit-learn, two classes, standardised
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer, load_diabetes, make_friedman1
from sklearn.linear_model import LinearRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from benchmarks.common.harness import Report, benchmark
from benchmarks.common.timing import Clock
from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression

LEVEL = 0.9


class Predicted(NamedTuple):
    """What a package says of new rows: its loss there, and intervals of shape (n_rows, 2)."""

    loss: float | None = None
    intervals: NDArray | None = None


def sets() -> Iterator[tuple[str, NDArray, NDArray]]:
    """Names, X and y."""
    X, y = load_diabetes(return_X_y=True)
    yield "diabetes", scale(X), y
    rng = np.random.default_rng(0)
    X, mean = make_friedman1(400, 5, random_state=0)
    yield "friedman", scale(X), mean + (0.5 + 2 * X[:, 3]) * rng.normal(size=400)
    X, y = load_breast_cancer(return_X_y=True)
    yield "cancer", scale(X), y


def of_posterior(model: Any, X: NDArray, y: NDArray, Z: NDArray, z: NDArray) -> Predicted:
    """Density of new observations: the mixture over draws of normal distributions."""
    model.fit(X, y)
    draws = model.predict_draws(Z, kind="mean")
    _, sd = model.predict(Z, return_std=True)
    noise = np.sqrt(np.maximum(sd**2 - draws.var(axis=0), 1e-12))
    density = norm.pdf(z, draws, noise).mean(axis=0)
    return Predicted(-np.log(density).mean(), model.predict_interval(Z, LEVEL))


def linear(*rows: NDArray) -> Predicted:
    """Bayesian linear regression of this package."""
    return of_posterior(BayesianLinearRegression(random_state=0), *rows)


def logistic(X: NDArray, y: NDArray, Z: NDArray, z: NDArray) -> Predicted:
    """Bayesian logistic regression of this package."""
    model = BayesianLogisticRegression(random_state=0).fit(X, y)
    return Predicted(log_loss(z, model.predict_proba(Z)))


def ngboost(X: NDArray, y: NDArray, Z: NDArray, z: NDArray) -> Predicted:
    """Normal distributions by boosted trees."""
    model = import_module("ngboost").NGBRegressor(verbose=False, random_state=0).fit(X, y)
    found = model.pred_dist(Z)
    ends = [found.ppf((1 + sign * LEVEL) / 2) for sign in (-1, 1)]
    return Predicted(-found.logpdf(z).mean(), np.column_stack(ends))


def ngboost_classes(X: NDArray, y: NDArray, Z: NDArray, z: NDArray) -> Predicted:
    """Class probabilities by boosted trees."""
    model = import_module("ngboost").NGBClassifier(verbose=False, random_state=0).fit(X, y)
    return Predicted(log_loss(z, model.predict_proba(Z)))


def mapie(X: NDArray, y: NDArray, Z: NDArray, z: NDArray) -> Predicted:
    """Conformal intervals by cross-validation, around least squares."""
    regressor = import_module("mapie.regression").CrossConformalRegressor
    model = regressor(LinearRegression(), confidence_level=LEVEL, random_state=0)
    return Predicted(None, model.fit_conformalize(X, y).predict_interval(Z)[1][:, :, 0])


def crepes(X: NDArray, y: NDArray, Z: NDArray, z: NDArray) -> Predicted:
    """Conformal intervals by a split, around least squares."""
    model, n = import_module("crepes").WrapRegressor(LinearRegression()), 2 * len(X) // 3
    model.fit(X[:n], y[:n])
    model.calibrate(X[n:], y[n:])
    return Predicted(None, model.predict_int(Z, confidence=LEVEL))


def skpro(X: NDArray, y: NDArray, Z: NDArray, z: NDArray) -> Predicted:
    """Least squares for the mean, and for the absolute residual."""
    pd = import_module("pandas")
    model = import_module("skpro.regression.residual").ResidualDouble(LinearRegression())
    model.fit(pd.DataFrame(X), pd.DataFrame({"y": y}))
    found, ends = (
        model.predict_proba(pd.DataFrame(Z)),
        model.predict_interval(pd.DataFrame(Z), LEVEL),
    )
    return Predicted(-np.mean(found.log_pdf(pd.DataFrame({"y": z}))), ends.to_numpy())


def river(X: NDArray, y: NDArray, Z: NDArray, z: NDArray) -> Predicted:
    """A logistic regression that sees each row once."""
    model = import_module("river.linear_model").LogisticRegression()
    for row, label in zip(X, y, strict=True):
        model.learn_one(dict(enumerate(row)), bool(label))
    p = [model.predict_proba_one(dict(enumerate(row)))[True] for row in Z]
    return Predicted(log_loss(z, np.array(p)))


REGRESSIONS: dict[str, Callable[..., Predicted]] = {
    "posterior, linear": linear,
    "NGBoost": ngboost,
    "MAPIE, least squares": mapie,
    "crepes, least squares": crepes,
    "skpro, two regressions": skpro,
}
CLASSES: dict[str, Callable[..., Predicted]] = {
    "posterior, logistic": logistic,
    "NGBoost": ngboost_classes,
    "river, one pass": river,
}
PACKAGES = {"diabetes": REGRESSIONS, "friedman": REGRESSIONS, "cancer": CLASSES}


def main(report: Report, repeats: int = 3, only: str | None = None) -> None:
    """A row for each set and package."""
    rows = [row for row in report.earlier() if row["set"] != only] if only else []
    for name, X, y in sets():
        if only not in (None, name):
            continue
        for package, predictions in PACKAGES[name].items():
            losses, within, widths, seconds = [], [], [], []
            try:
                for seed in range(repeats):
                    train, new, y_train, y_new = train_test_split(
                        X, y, test_size=0.5, random_state=seed
                    )
                    with warnings.catch_warnings(), Clock(time.process_time) as clock:
                        warnings.simplefilter("ignore")
                        found = predictions(train, y_train, new, y_new)
                    seconds.append(clock.seconds)
                    if found.loss is not None:
                        losses.append(found.loss)
                    if found.intervals is not None:
                        low, high = found.intervals.T
                        within.append(np.mean((low <= y_new) & (y_new <= high)))
                        widths.append(np.mean(high - low))
            except ImportError as error:
                print(f"{package} is skipped: {error}")
                continue
            row = {"set": name, "package": package}
            for column, values in (
                ("loss", losses),
                ("coverage", within),
                ("width", widths),
                ("cpu s", seconds[1:] or seconds),  # the first imports the package
            ):
                row[column] = float(np.mean(values)) if values else None
            rows.append(row)
            print(row, flush=True)
    report.save(rows)


if __name__ == "__main__":
    benchmark(main, repeats={"type": int, "default": 3}, only={"choices": [*PACKAGES]})
