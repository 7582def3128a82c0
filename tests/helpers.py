"""What tests of several rooms do alike: data, modes, warnings of a fit, matrices of a step."""

import warnings

import numpy as np
from sklearn.datasets import load_iris
from sklearn.preprocessing import minmax_scale

from skbayes_sg import BayesianBinomialRegressor
from skbayes_sg.posterior.gaussian import find_mode

TRIALS = 1000


class OfManyTrials(BayesianBinomialRegressor):
    """With trials where a test of all estimators gives none, which the estimator refuses."""

    def fit(self, X, y, sample_weight=None, offset=None, trials=TRIALS):
        return super().fit(X, y, sample_weight, offset, trials)

    def partial_fit(self, X, y, sample_weight=None, offset=None, trials=TRIALS):
        return super().partial_fit(X, y, sample_weight, offset, trials)

    def score(self, X, y, sample_weight=None, offset=None, trials=TRIALS):
        return super().score(X, y, sample_weight, offset, trials)

    def predict(self, X, return_std=False, *, trials=None, **how):
        trials = TRIALS if return_std and trials is None else trials
        return super().predict(X, return_std, trials=trials, **how)

    def predict_interval(self, X, level=0.95, *, trials=TRIALS, **how):
        return super().predict_interval(X, level, trials=trials, **how)

    def predict_quantiles(self, X, levels, *, trials=TRIALS, **how):
        return super().predict_quantiles(X, levels, trials=trials, **how)

    def predict_draws(self, X, kind="observation", *, trials=TRIALS, **how):
        return super().predict_draws(X, kind, trials=trials, **how)

    def predicted_covariance(self, X, y, *, trials=TRIALS, **how):
        return super().predicted_covariance(X, y, trials=trials, **how)

    def to_arviz(self, X=None, y=None, *, trials=TRIALS, **how):
        return super().to_arviz(X, y, trials=trials, **how)


OfManyTrials.__doc__ = BayesianBinomialRegressor.__doc__


def scaled_iris():
    """Features between 0 and 1."""
    X, y = load_iris(return_X_y=True)
    return minmax_scale(X), y


def mode_from_zero(posterior):
    """The mode, looked for from zero."""
    return find_mode(posterior, np.zeros((1, posterior.dim)), np.random.default_rng(0))


def warnings_of(model, X, y):
    """What a fit warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    return [str(one.message) for one in caught]


def step_matrices(state):
    """K and W of the frozen transition."""
    K, root = state.memory.preconditioner.dense(), state.memory.noise_root
    return K, np.zeros_like(K) if root is None else root.dense() @ root.dense().T
