"""Bayesian neural network regressor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike, NDArray

from skbayes_sg.estimators.mlp import hidden_layers
from skbayes_sg.estimators.multimodal_regressor import MultimodalRegressor
from skbayes_sg.models import GaussianMLP
from skbayes_sg.samplers import Sampler


class BayesianMLPRegressor(MultimodalRegressor):
    """Neural network regression with a posterior instead of a point, sampled from minibatches.

    It stands where `MLPRegressor` would. `fit` keeps many values of the weights and of the noise
    variance, out of several chains that start apart, and predictions average over them.

    ``y_k = z_k + noise``, with normal noise of a variance of its own for each response k, and the
    outputs z of a network as in `BayesianMLPClassifier`. `fit` works with y less its mean, over its
    standard deviation; all results are in the units of y. Scale the columns of X.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(30,)
    activation : {"logistic", "tanh", "relu"}, default="logistic"
    sampler : Sampler, str or None, default=None
        As in `BayesianMLPClassifier`, as all that is not described here. None: SGHMC from modes
        that its steps without noise find first. With a learned prior HMC, or "sgfs" for many rows.
    prior_precision : "scale", float, array (n_layers,), "em" or VariationalEM, default="scale"
        1 / variance of the normal prior of weights and biases, for y of mean 0 and variance 1. The
        logarithm of a noise variance, in the same unit, is normal of mean 0 and standard deviation
        3.
    prior_mean : float or array, default=0.0
    temperature : float, optional
        By default 1, which is Bayes: a colder likelihood makes the noise too small
        (math/networks.md#temperature).
    n_chains : int or "auto", default="auto"
        "auto" is 8 for the default sampler, else 4.
    n_draws : int or "auto", default="auto"
        "auto" is 20 for the default sampler, else 50.
    burn_in : int or "auto", default="auto"
        Of the default sampler at least 5,000 steps.
    thin : int or "auto", default="auto"
        Of the default sampler at least 100 steps.
    warm_start : bool, default=False
    n_jobs : int, optional
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,), where X had string column names
    draws_ : float32 array of shape (n_chains, n_draws, dim)
        ``model_.unpack(draws_)`` gives them by name, for y of mean 0 and variance 1.
    noise_variance_ : float or array of shape (n_responses,)
        Posterior mean, in squared units of y.
    noise_variance_samples_ : array of shape (n_chains, n_draws[, n_responses])
    model_ : GaussianMLP
    diagnostics_ : dict of str to float
        As in `BayesianMLPClassifier`. The probabilities are those of y below its predictive mean
        less one predictive standard deviation, and plus one. ``prediction_gain`` is the log density
        above that of one normal distribution for all rows.
    draw_weights_, sampler_, sampler_reason_, states_, n_iter_, n_passes_, burn_in_, thin_ :
    prior_precision_, prior_precision_path_, prior_precision_blocks_, n_samples_seen_ :
        As in `BayesianMLPClassifier`.

    Notes
    -----
    Source: math/networks.md#mlp; networks.md#regression.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from skbayes_sg import BayesianMLPRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BayesianMLPRegressor((5,), burn_in=500, thin=20, random_state=0).fit(scale(X), y)
    >>> mean, std = model.predict(scale(X)[:2], return_std=True)
    >>> mean.shape, bool(45 < std[0] < 65)
    ((2,), True)
    """

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (30,),
        activation: str = "logistic",
        *,
        sampler: Sampler | str | None = None,
        prior_precision: ArrayLike | str = "scale",
        prior_mean: ArrayLike = 0.0,
        temperature: float | None = None,
        n_chains: int | str = "auto",
        n_draws: int | str = "auto",
        burn_in: int | str = "auto",
        thin: int | str = "auto",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self._keep_parameters(locals())

    def _make_model(self, n_features: int, centre: NDArray, scale: NDArray) -> GaussianMLP:
        layers = hidden_layers(self, "BayesianLinearRegressionSGFS")
        return GaussianMLP(n_features, centre, scale, *layers)
