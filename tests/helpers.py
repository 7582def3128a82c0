"""What tests of several rooms do alike: data, modes, warnings of a fit, matrices of a step."""

import warnings

import numpy as np
from sklearn.datasets import load_iris
from sklearn.preprocessing import minmax_scale

from skbayes_sg.posterior.gaussian import find_mode


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
