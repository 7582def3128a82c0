"""Bayesian neural network classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.estimators.multimodal_classifier import MultimodalClassifier
from skbayes_sg.models import MLP
from skbayes_sg.models.mlp import ACTIVATIONS
from skbayes_sg.validation import require_choice, require_integer


@dataclass(eq=False, repr=False)
class BayesianMLPClassifier(MultimodalClassifier):
    """Bayesian neural network for classes, which takes the place of `MLPClassifier`.

    `fit` keeps many values of the weights, from several chains that start apart, and predictions
    average over them.

    ``p(y = k | x) = softmax(z)_k``, ``z = W_L h + b_L``, ``h = activation(W_l h + b_l)`` layer by
    layer from x. Priors are independent normals of mean zero. Scale the columns of X.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(30,)
    activation : {"logistic", "tanh", "relu"}, default="logistic"
    sampler : Sampler, str or None, default=None
    prior_precision : "scale", float, array (n_layers,) or VariationalEM, default="scale"
        1 / variance of the normal prior: one number, or one per layer (weights and biases). "scale"
        follows the inputs, so that their unit does not matter. A priori the weighted sum into a
        hidden unit has standard deviation 3, and the last layer has precision 0.01.
        ``VariationalEM()`` starts from "scale" and learns the precision of each layer's weights in
        the sampler; biases keep theirs.
    prior_mean : float or array, default=0.0
    temperature : float, optional
    categorical_features : {"from_dtype"}, list or None, default="from_dtype"
    n_chains : int or "auto", default="auto"
    n_draws : int or "auto", default="auto"
    burn_in : int or "auto", default="auto"
    thin : int or "auto", default="auto"
    warm_start : bool, default=False
    n_jobs : int, optional
    random_state : int, RandomState, Generator or None
    class_weight : dict, "balanced" or None, default=None
    n_predict_draws : int, "auto" or None, default="auto"

    Attributes
    ----------
    classes_
    n_features_in_
    feature_names_in_
    draws_
    draw_weights_
    sampler_
    sampler_reason_
    states_
    model_ : MLP
    prior_precision_
    prior_precision_path_
    prior_precision_blocks_
    n_samples_seen_
    n_iter_
    burn_in_, thin_
    n_passes_
    diagnostics_

    See Also
    --------
    BayesianLogisticRegression : without hidden units; one mode.

    Notes
    -----
    Source: Ahn, Korattikara & Welling 2012, section 5.2; math/networks.md#mlp. The curvature in the
    samplers is the generalised Gauss-Newton matrix. The posterior has many modes, most of which
    predict alike. `diagnostics_` measures how far the chains agree, and `diagnose` does so for
    other rows. There is no `predicted_covariance`: the theory is that of a posterior with one
    Gaussian mode.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import scale
    >>> from skbayes_sg import BayesianMLPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> with warnings.catch_warnings(action="ignore"):  # two short chains do not agree well
    ...     model = BayesianMLPClassifier((5,), n_chains=2, random_state=0).fit(scale(X), y)
    >>> bool(model.score(scale(X), y) > 0.95)
    True
    """

    hidden_layer_sizes: Sequence[int] = (30,)
    activation: str = "logistic"

    def _make_model(self, n_features: int, classes: NDArray) -> MLP:
        layers = hidden_layers(self, "BayesianLogisticRegression")
        return MLP(n_features, len(classes), *layers)


def hidden_layers(estimator: Any, without: str) -> tuple[tuple[int, ...], str]:
    """Units of each hidden layer of an estimator, and their activation.

    Raises
    ------
    ValueError, TypeError
        The message names the parameter, and `without`, the estimator that has no hidden layer.
    """
    widths, activation = estimator.hidden_layer_sizes, estimator.activation
    widths = tuple(widths) if np.iterable(widths) and not isinstance(widths, str) else (widths,)
    if not widths:
        raise ValueError(
            f"hidden_layer_sizes is empty: give at least one hidden layer, or use {without}"
        )
    for width in widths:
        require_integer("hidden_layer_sizes", width, 1)
    require_choice("activation", activation, sorted(ACTIVATIONS))
    return widths, activation
