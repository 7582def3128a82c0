"""A pytest plugin: estimators of this package in the place of scikit-learn's in its own tests.

Tests that import `LogisticRegression` and its like get a twin: scikit-learn's name and parameters,
fitted by this package. scikit-learn's own code still uses the originals. The environment variable
SKLEARN_TWINS names a key of `TWINS`.
"""

from __future__ import annotations

import os
from functools import partial
from inspect import Parameter, signature

from sklearn import linear_model, neural_network
from sklearn.utils import all_estimators

from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
)

SHORT = {"n_chains": 8, "n_draws": 20}
LARGEST_C = 1e6  # an infinite one is a flat prior, whose posterior need not exist


def twin(original: type, ours: type, **mapped) -> type:
    """A subclass of `ours` with name and parameters of `original`.

    `mapped` are parameters of ours: functions of the twin, or values. By default `random_state` is
    0, because tests compare two fits, which are equal for the originals.
    """
    parameters = dict(signature(original).parameters)
    if "random_state" in parameters:
        parameters["random_state"] = parameters["random_state"].replace(default=0)
    asked = signature(original).replace(parameters=list(parameters.values()))

    def construct(self, *args, **kwargs):
        bound = asked.bind(*args, **kwargs)
        bound.apply_defaults()
        self.__dict__.update(bound.arguments)

    first = Parameter("self", Parameter.POSITIONAL_ONLY)
    construct.__signature__ = asked.replace(parameters=[first, *parameters.values()])  # to clone
    body = {"__init__": construct, "__module__": __name__}
    defaults = {name: each.default for name, each in signature(ours).parameters.items()}
    for name, value in (defaults | SHORT | {"random_state": 0} | mapped).items():
        if name not in parameters:
            body[name] = property(value) if callable(value) else value
    return type(original.__name__, (ours,), body)


LogisticRegression = twin(
    linear_model.LogisticRegression,
    BayesianLogisticRegression,
    prior_precision=lambda self: 1 / min(self.C, LARGEST_C),
)


def lines(ours: type) -> list[type]:
    """Twins of the regressions of a line, with a learned prior for that without one."""
    ridge = twin(linear_model.Ridge, ours, prior_precision=lambda self: self.alpha)
    return [twin(linear_model.LinearRegression, ours), ridge]


def log_linear(original: type, ours: type) -> type:
    """A twin of a generalised linear model, with the loss from which its tests make their data.

    Its alpha is relative to the mean loss of the rows, whose number is not known here: the prior is
    that of one row.
    """
    return twin(
        original,
        ours,
        prior_precision=lambda self: max(self.alpha, 1 / LARGEST_C),
        _get_loss=lambda self: partial(original._get_loss, self),
    )


LOG_LINEAR = [
    log_linear(linear_model.PoissonRegressor, BayesianPoissonRegressor),
    log_linear(linear_model.GammaRegressor, BayesianGammaRegressor),
]
RIDGE = twin(linear_model.BayesianRidge, BayesianLinearRegression)
ARD = twin(linear_model.ARDRegression, BayesianLinearRegression, prior_groups="feature")
HUBER = twin(linear_model.HuberRegressor, BayesianRobustRegressor)
WEAK = twin(linear_model.LinearRegression, BayesianLinearRegression, prior_precision=1 / LARGEST_C)
MLPClassifier = twin(neural_network.MLPClassifier, BayesianMLPClassifier)
TWINS = {
    "LogisticRegression": {linear_model: [LogisticRegression]},
    "LinearRegression, Ridge": {linear_model: lines(BayesianLinearRegression)},
    "LinearRegression, Ridge, robust": {linear_model: lines(BayesianRobustRegressor)},
    "LinearRegression, weak prior": {linear_model: [WEAK]},
    "BayesianRidge, ARDRegression": {linear_model: [RIDGE, ARD]},
    "HuberRegressor": {linear_model: [HUBER]},
    "PoissonRegressor, GammaRegressor": {linear_model: LOG_LINEAR},
    "MLPClassifier": {neural_network: [MLPClassifier]},
}


def pytest_configure() -> None:
    """Put twins in place, after all modules of scikit-learn have imported the originals."""
    all_estimators()
    for package, twins in TWINS[os.environ["SKLEARN_TWINS"]].items():
        for each in twins:
            setattr(package, each.__name__, each)
