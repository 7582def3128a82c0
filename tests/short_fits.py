"""Fits of a fraction of a second, of every family, whose draws do not depend on later ones."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianOrdinalClassifier,
    BayesianRobustRegressor,
    DRBMClassifier,
)
from skbayes_sg.samplers import SGFS

SHORT = {"n_chains": 3, "n_draws": 40, "burn_in": 8, "thin": 2, "random_state": 0}
MODELS = {
    "logistic": BayesianLogisticRegression(prior_precision=1.0, **SHORT),
    "minibatches": BayesianLogisticRegression(SGFS(batch_size=30, alpha=1.0), 1.0, **SHORT),
    "linear": BayesianLinearRegression(prior_precision=1.0, **SHORT),
    "ordered": BayesianOrdinalClassifier(prior_precision=1.0, **SHORT),
    "robust": BayesianRobustRegressor(prior_precision=1.0, **SHORT),
    "network": BayesianMLPClassifier((3,), **SHORT),
    "network of numbers": BayesianMLPRegressor((3,), **SHORT),
    "machine": DRBMClassifier(3, **SHORT),
}
EACH = pytest.mark.parametrize("model", [pytest.param(MODELS[name], id=name) for name in MODELS])
RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 4))
NUMBERS = X[:, 0] + RNG.standard_normal(200)


def y_of(model):
    return (NUMBERS > 0).astype(int) if is_classifier(model) else NUMBERS


def fitted(model, *callbacks, **changes):
    model = clone(model).set_params(**changes).set_callbacks(*callbacks)
    return model.fit(X, y_of(model))
