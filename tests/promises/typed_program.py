"""What an editor knows of a fit and its predictions: `make lint` has mypy read this program.

`assert_type` fails there where the type is another one, and so does a comment that ignores an error
which is none.
"""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from skbayes_sg import (
    BayesianBinomialRegressor,
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
    DRBMClassifier,
    VariationalEM,
)
from skbayes_sg.priors import Horseshoe, StudentT
from skbayes_sg.samplers import (
    HMC,
    IASG,
    SGD,
    SGFS,
    SGHMC,
    SGLD,
    ConstantSGD,
    CosineCycle,
    MomentumSGD,
    PolynomialDecay,
    UnderdampedLangevin,
)

Array = NDArray[Any]
Both = tuple[Array, Array]


def program(X: Array, y: Array) -> None:
    """It is read, and never run."""
    line = BayesianLinearRegression(prior_precision=1.0)
    assert_type(line.fit(X, y), BayesianLinearRegression)
    assert_type(line.partial_fit(X, y), BayesianLinearRegression)
    assert_type(line.set_params(thin=2), BayesianLinearRegression)
    assert_type(line.compact(), BayesianLinearRegression)
    assert_type(line.fit(X, y).predict(X), Array)
    assert_type(line.predict(X, return_std=True), Both)
    assert_type(line.predict(X, return_std=False), Array)
    assert_type(line.predict(X, return_std=bool(np.any(y))), Array | Both)
    assert_type(line.predict_interval(X, 0.9, kind="mean"), Array)
    rates = BayesianPoissonRegressor().fit(X, y, exposure=y)
    assert_type(rates, BayesianPoissonRegressor)
    assert_type(rates.predict(X, True, exposure=1), Both)
    assert_type(rates.predict_draws(X, "mean", exposure=1), Array)
    assert_type(rates.predict_quantiles(X, [0.1], exposure=1), Array)
    assert_type(rates.score(X, y, exposure=y), float)
    shares = BayesianBinomialRegressor(overdispersed=True).fit(X, y, trials=9)
    assert_type(shares, BayesianBinomialRegressor)
    assert_type(shares.partial_fit(X, y, trials=y), BayesianBinomialRegressor)
    assert_type(shares.predict(X), Array)
    assert_type(shares.predict(X, True, trials=9), Both)
    assert_type(shares.predict(X, return_std=bool(np.any(y)), trials=9), Array | Both)
    assert_type(shares.predict_draws(X, "mean"), Array)
    assert_type(shares.predict_interval(X, 0.9, trials=9), Array)
    assert_type(shares.predict_quantiles(X, [0.1], trials=9), Array)
    assert_type(shares.score(X, y, trials=y), float)
    assert_type(BayesianMLPRegressor((3,)).partial_fit(X, y), BayesianMLPRegressor)
    grades = BayesianOrdinalClassifier().fit(X, y)
    assert_type(grades, BayesianOrdinalClassifier)
    assert_type(grades.partial_fit(X, y).predict_proba(X), Array)
    assert_type(grades.predict(X), Array)
    line.predict(X, returns_std=True)  # type: ignore[call-overload]
    grades.predict(X, return_std=True)  # type: ignore[call-arg]
    shares.predict(X, exposure=2.0)  # type: ignore[call-overload]


def misspelt() -> None:
    """Every constructor knows its parameters."""
    BayesianBinomialRegressor(random_sate=0)  # type: ignore[call-arg]
    BayesianGammaRegressor(random_sate=0)  # type: ignore[call-arg]
    BayesianLinearRegression(random_sate=0)  # type: ignore[call-arg]
    BayesianLogisticRegression(random_sate=0)  # type: ignore[call-arg]
    BayesianMLPClassifier(random_sate=0)  # type: ignore[call-arg]
    BayesianMLPRegressor(random_sate=0)  # type: ignore[call-arg]
    BayesianNegativeBinomialRegressor(random_sate=0)  # type: ignore[call-arg]
    BayesianOrdinalClassifier(random_sate=0)  # type: ignore[call-arg]
    BayesianPoissonRegressor(random_sate=0)  # type: ignore[call-arg]
    BayesianRobustRegressor(random_sate=0)  # type: ignore[call-arg]
    DRBMClassifier(random_sate=0)  # type: ignore[call-arg]
    VariationalEM(random_sate=0)  # type: ignore[call-arg]
    HMC(bach_size=32)  # type: ignore[call-arg]
    IASG(bach_size=32)  # type: ignore[call-arg]
    SGD(bach_size=32)  # type: ignore[call-arg]
    SGFS(bach_size=32)  # type: ignore[call-arg]
    SGHMC(bach_size=32)  # type: ignore[call-arg]
    SGLD(bach_size=32)  # type: ignore[call-arg]
    ConstantSGD(bach_size=32)  # type: ignore[call-arg]
    CosineCycle(bach_size=32)  # type: ignore[call-arg]
    MomentumSGD(bach_size=32)  # type: ignore[call-arg]
    PolynomialDecay(bach_size=32)  # type: ignore[call-arg]
    UnderdampedLangevin(bach_size=32)  # type: ignore[call-arg]
    Horseshoe(scal=2.0)  # type: ignore[call-arg]
    StudentT(scal=2.0)  # type: ignore[call-arg]
