"""Subnormal numbers of default fits: where they occur, a product takes some tens of times as long.

    python -m benchmarks.cost.subnormals                    # a minute
    python -m benchmarks.cost.subnormals --only digits

An exponential of a large negative number is no zero at first, but a subnormal number, with which
processors compute in microcode. "exponentials" are all results of `numpy.exp` in a default fit, and
"terms" the residuals, remainders and curvatures of rows, which products follow. Of each the share
of subnormal numbers is counted, in millionths.

The data are steep, so that logits are large: digits; iris and wine; two classes that a plane
separates; counts and positive numbers whose means differ by factors of a thousand; a line with
outliers of a thousand standard deviations; and small networks and machines on such classes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

import skbayes_sg
from benchmarks.common.harness import Claim, Report, benchmark
from skbayes_sg import models

MOST = 1000.0
"""millionths that do not matter: a thousandth of the numbers, at some tens of times the cost"""
TERMS = ("residual", "value_and_residual", "difference", "remainder", "bregman_remainder")
TERMS += ("residual_root", "expand_rows", "row_terms", "observed_at", "expected")

Data = tuple[NDArray, NDArray]


class Count:
    """Numbers, and those of them that are subnormal."""

    def __init__(self) -> None:
        self.numbers = self.subnormal = 0

    def see(self, found: Any) -> None:
        """Count an array, or those of a tuple."""
        for each in found if isinstance(found, tuple) else (found,):
            if isinstance(each, np.ndarray | np.floating) and each.dtype.kind == "f":
                size = np.abs(each)
                self.numbers += size.size
                self.subnormal += int(np.sum((size > 0) & (size < np.finfo(size.dtype).tiny)))

    @property
    def share(self) -> float:
        """In millionths."""
        return 1e6 * self.subnormal / max(1, self.numbers)


@contextmanager
def counted() -> Iterator[tuple[Count, Count]]:
    """Counts of exponentials and of terms of rows inside."""
    exponentials, terms = Count(), Count()

    def counting(function: Callable, count: Count) -> Callable:
        def counted_call(*args: Any, **how: Any) -> Any:
            found = function(*args, **how)
            count.see(found)
            return found

        return counted_call

    before = [(np, "exp", np.exp)]
    kinds = {base for name in models.__all__ for base in getattr(models, name).__mro__}
    for kind in kinds:
        before += [(kind, name, vars(kind)[name]) for name in TERMS if name in vars(kind)]
    try:
        for owner, name, function in before:
            setattr(owner, name, counting(function, exponentials if owner is np else terms))
        yield exponentials, terms
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


def shipped(load: Callable, n_rows: int | None = None) -> Data:
    """Standardised."""
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X)[:n_rows], y[:n_rows]


def columns(n_rows: int = 400) -> NDArray:
    """Five."""
    return np.random.default_rng(0).standard_normal((n_rows, 5))


def separated() -> Data:
    """Two classes."""
    X = columns()
    return X, (X[:, 0] > 0).astype(int)


def wide_means(draw: Callable) -> Data:
    """Responses whose means range over factors of a thousand."""
    X, rng = columns(), np.random.default_rng(1)
    return X, draw(rng, np.exp(1 + 1.5 * X[:, 0]))


def with_outliers() -> Data:
    """A line, and twenty rows a thousand standard deviations off it."""
    X, rng = columns(), np.random.default_rng(1)
    y = X[:, 0] + rng.standard_normal(len(X))
    y[:20] += 1000.0
    return X, y


CASES: dict[str, tuple[str, Callable[[], Data], dict]] = {
    "digits": ("BayesianLogisticRegressionSGFS", lambda: shipped(load_digits), {}),
    "wine": ("BayesianLogisticRegressionSGFS", lambda: shipped(load_wine), {}),
    "iris": ("BayesianLogisticRegressionSGFS", lambda: shipped(load_iris), {}),
    "separated": ("BayesianLogisticRegressionSGFS", separated, {}),
    "ordinal": ("BayesianOrdinalClassifier", lambda: shipped(load_iris), {}),
    "Poisson": ("BayesianPoissonRegressor", lambda: wide_means(np.random.Generator.poisson), {}),
    "negative binomial": (
        "BayesianNegativeBinomialRegressor",
        lambda: wide_means(np.random.Generator.poisson),
        {},
    ),
    "gamma": (
        "BayesianGammaRegressor",
        lambda: wide_means(lambda rng, mean: rng.gamma(2.0, mean / 2)),
        {},
    ),
    "robust": ("BayesianRobustRegressor", with_outliers, {}),
    "network": ("BayesianMLPClassifier", lambda: shipped(load_wine), {}),
    "network of numbers": ("BayesianMLPRegressor", with_outliers, {}),
    "machine": ("DRBMClassifier", lambda: shipped(load_wine), {}),
}


def main(report: Report, only: list[str] | None = None) -> None:
    """A row for each, and a claim."""
    warnings.simplefilter("ignore")
    rows, claims = [], []
    for name, (estimator, data, parameters) in CASES.items():
        if only is not None and not any(word in name for word in only):
            continue
        X, y = data()
        model = getattr(skbayes_sg, estimator)(random_state=0, n_jobs=1, **parameters)
        with counted() as (exponentials, terms):
            model.fit(X, y)
        row = {
            "what": name,
            "sampler": type(model.sampler_).__name__,
            "exponentials": exponentials.numbers,
            "subnormal": exponentials.share,
            "terms": terms.numbers,
            "subnormal terms": terms.share,
        }
        rows.append(row)
        print(row, flush=True)
        for column in ("subnormal", "subnormal terms"):
            claims.append(Claim(f"{name}: {column}, in millionths", row[column], high=MOST))
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(main, threads=1, only={"nargs": "*", "help": "words of the lines to run"})
