"""Bayesian neural network regressor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from skbayes_sg.data import InMemory, row_blocks
from skbayes_sg.data.row_metadata import RowMetadata, known_columns
from skbayes_sg.estimators.base import (
    all_or_nothing,
    merged,
    of_chunk,
    require_spread,
    where_it_streams,
)
from skbayes_sg.estimators.from_fit import FromFit
from skbayes_sg.estimators.mixture_predictions import mixture_moments, outputs_of
from skbayes_sg.estimators.mlp import hidden_layers
from skbayes_sg.estimators.multimodal import Multimodal, follow
from skbayes_sg.estimators.out_of_core import require_chunk
from skbayes_sg.estimators.regressor import BayesianRegressor, of_positive_weight
from skbayes_sg.inference.options import Options
from skbayes_sg.models import GaussianMLP
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers.base import RunLength
from skbayes_sg.streams.online_chain import population

_LEAST = RunLength(burn_in=5000, thin=100)


@dataclass(eq=False, repr=False)
class BayesianMLPRegressor(Multimodal, BayesianRegressor):
    """Bayesian neural network for numbers, which takes the place of `MLPRegressor`.

    `fit` keeps many values of the weights and of the noise variance, from several chains that start
    apart, and predictions average over them.

    ``y_k = z_k + noise``, with normal noise of a variance of its own for each response k, and the
    outputs z of a network as in `BayesianMLPClassifier`. `fit` works with y less its mean, over its
    standard deviation; all results are in the units of y. Scale the columns of X.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(30,)
    activation : {"logistic", "tanh", "relu"}, default="logistic"
    sampler : Sampler, str or None, default=None
        A sampler, or "sgfs", "sghmc", "sgld", "sgd", "constant_sgd", "momentum_sgd", "iasg" or
        "hmc", in the form that suits a network. None: SGHMC from modes that its steps without noise
        find first. With a learned prior HMC, or "sgfs" for many rows.
    prior_precision : "scale", float, array (n_layers,) or VariationalEM, default="scale"
        1 / variance of the normal prior of weights and biases, for y of mean 0 and variance 1. The
        logarithm of a noise variance, in the same unit, is normal of mean 0 and standard deviation
        3.
    prior_mean : float or array, default=0.0
    temperature : float, optional
        By default 1, which is Bayes: a colder likelihood makes the noise too small
        (math/networks.md#temperature).
    categorical_features : {"from_dtype"}, list or None, default="from_dtype"
    n_chains : int or "auto", default="auto"
    n_draws : int or "auto", default="auto"
        "auto" is 20 for the default sampler, else 50. At temperature 1 there are up to
        sixteen times as many, until averaged predictions are known.
    burn_in : int or "auto", default="auto"
        Of the default sampler at least 5,000 steps.
    thin : int or "auto", default="auto"
        Of the default sampler at least 100 steps.
    warm_start : bool, default=False
    n_jobs : int, optional
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    n_features_in_
    feature_names_in_
    draws_ : float32 array of shape (n_chains, n_draws, dim)
        ``model_.unpack(draws_)`` gives them by name, for y of mean 0 and variance 1.
    noise_variance_ : float or array of shape (n_responses,)
        Posterior mean, in squared units of y.
    noise_variance_samples_ : array of shape (n_chains, n_draws[, n_responses])
        Its draws.
    model_ : GaussianMLP
    diagnostics_
    draw_weights_
    sampler_
    sampler_reason_
    states_
    n_iter_
    n_passes_
    burn_in_, thin_
    prior_precision_
    prior_precision_path_
    prior_precision_blocks_
    n_samples_seen_

    Notes
    -----
    Source: math/networks.md#mlp; networks.md#regression. The probabilities that `diagnostics_` and
    `diagnose` compare are those of y below its predictive mean less one predictive standard
    deviation, and plus one. ``prediction_gain`` is the log density above that of one normal
    distribution for all rows.

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

    hidden_layer_sizes: Sequence[int] = (30,)
    activation: str = "logistic"

    noise_variance_ = FromFit(lambda self, fit: self._mean_noise(), kept=True)

    _family = GaussianMLP
    _default_temperature = 1.0

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _make_model(self, n_features: int, centre: NDArray, scale: NDArray) -> GaussianMLP:
        """The model of responses about `centre`, in units of `scale`."""
        layers = hidden_layers(self, "BayesianLinearRegression")
        return GaussianMLP(n_features, centre, scale, *layers)

    def _in_modes(self) -> bool:
        return self.sampler is None and self._em() is None

    def _options(self, dim: int) -> Options:
        """Options that give chains time to leave modes in which the noise is too small."""
        options = super()._options(dim)
        return options._replace(least=_LEAST) if self._in_modes() else options

    # -- data ---------------------------------------------------------------------------------

    def _validate_pair(self, X, y, reset: bool) -> tuple[Any, NDArray]:
        X, y = super()._validate_pair(X, y, reset)
        n_responses = 1 if y.ndim == 1 else y.shape[1]
        if not reset and n_responses != self.model_.n_responses:
            raise ValueError(
                f"y has {n_responses} column(s), but {type(self).__name__} was fitted to "
                f"{self.model_.n_responses}"
            )
        return X, y

    def _bind(
        self, X, y: NDArray, metadata: RowMetadata, n_total: float | None = None
    ) -> Posterior:
        """The offsets are taken off y, as the outputs of the network are not the only ones."""
        streaming = n_total is not None
        if metadata.var_weights is not None:
            GaussianMLP.averaged(y, y)
        if metadata.offset is not None:
            n_responses = 1 if y.ndim == 1 else y.shape[1]
            y = y - known_columns(metadata.offset, len(y), n_responses).reshape(y.shape)
        X, y, weight = of_positive_weight(X, y, metadata.sample_weight, n_total)
        data = InMemory.of(X, y.reshape(len(y), -1), weight, n_total)
        for response in data.y.T:  # whose unit is taken in double precision, whatever X is
            require_spread(response, np.dtype(np.float64))
        posterior = self._scaled(data, streaming)
        few = merged(data, posterior.model, streaming or self.sampler is not None)
        if few is not data:
            posterior = self._scaled(few, streaming)
        return self._tempered(posterior, streaming)

    def _scaled(self, data: InMemory, streaming: bool) -> Posterior:
        """The posterior given responses by their mean and spread; a stream keeps those it has."""
        if streaming and hasattr(self, "model_"):
            centre, scale = self.model_.centre, self.model_.scale
        else:
            centre = np.average(data.y, axis=0, weights=data.weight)
            square = np.average((data.y - centre) ** 2, axis=0, weights=data.weight)
            scale = np.where(np.ptp(data.y, axis=0) > 0, np.sqrt(square), 1.0)
        model = self._make_model(data.n_features, centre, scale)
        data = replace(data, y=model.encode(data.y, data.X.dtype))
        return Posterior(model, data, self._prior(model, data, streaming=streaming))

    @where_it_streams
    @all_or_nothing
    def partial_fit(
        self, X, y, sample_weight=None, n_total: float | None = None, offset=None
    ) -> Self:
        """Move one chain along a stream of data, one step per `batch_size` rows of this chunk.

        See `BayesianMLPClassifier.partial_fit`. The first chunk determines mean and spread of y, so
        it must not be tiny.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            At least two rows.
        y : array-like of shape (n_rows,) or (n_rows, n_responses)
        sample_weight : array-like of shape (n_rows,), optional
            Factor of each row's log likelihood; an integer weight repeats the row.
        n_total : float, optional
            Rows of the population: the scale of the likelihood, the same in every call. By default
            the rows seen so far, this chunk included.
        offset : array-like of shape (n_rows,) or (n_rows, n_responses), optional
            As in `fit`, in all chunks or in none.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data or parameters are invalid; raised before any step.
        FloatingPointError
            If the chain diverges.
        """
        require_chunk(X)
        self._validate_parameters()
        first = not hasattr(self, "model_")
        if not first:
            self._take_levels_of(X)
        X, y = self._validate_pair(X, y, reset=first)
        metadata = RowMetadata(sample_weight, offset)
        attributes = of_chunk(self, X, metadata)
        total = population(n_total, X.shape[0], attributes["n_samples_seen_"])
        follow(self, self._bind(X, y, metadata, total), attributes)
        return self

    # -- draws --------------------------------------------------------------------------------

    @property
    def noise_variance_samples_(self) -> NDArray:
        """Draws of the noise variance, (n_chains, n_draws), or (n_chains, n_draws, n_responses)."""
        log_noise = self.model_.unpack(self.draws_)["log_noise"].astype(np.float64)
        noise = np.exp(log_noise) * self.model_.scale**2
        return noise if self.model_.n_responses > 1 else noise[..., 0]

    def _mean_noise(self) -> float | NDArray:
        noise = self._draws.of(self.noise_variance_samples_).mean()
        return noise if self.model_.n_responses > 1 else float(noise)

    def _of_rows(self, parts: list[NDArray]) -> NDArray:
        """One axis more where there are several responses, which each row has one after another."""
        values, n_responses = super()._of_rows(parts), self.model_.n_responses
        return values.reshape(-1, n_responses, *values.shape[1:]) if n_responses > 1 else values

    def _under_draws(self, X) -> NDArray:
        """That y is below its predictive mean less a standard deviation, and plus one."""
        draws = self._draws.counting()
        flat, below = draws.flat, []
        for outputs in outputs_of(self.model_, X, flat):
            mean, sd = mixture_moments(self.model_, outputs, np.full(len(flat), 1 / len(flat)))
            ends = mean - sd, mean + sd
            below.append(np.stack([self.model_.distribution(y, outputs) for y in ends], axis=1))
        return np.concatenate(below, axis=2).reshape(*draws.values.shape[:2], 2, -1)

    def _gain(self, p: NDArray, few: Posterior, posterior: Posterior) -> float:
        """Mean log density above that of a normal distribution of the mean and spread of y."""
        draws, weights = self._draws.flat, self._draws.flat_weights
        rows, model = few.data.sample, self.model_
        blocks = row_blocks(len(draws), 8 * model.row_size * rows.n_rows)
        of_blocks = [model.log_likelihood(draws[block], rows.X, rows.y) for block in blocks]
        own = logsumexp(np.concatenate(of_blocks), axis=0, b=weights[:, None])
        square = np.square(rows.y, dtype=np.float64) + np.log(2 * np.pi * model.scale**2)
        return float(np.average(own + 0.5 * square.sum(axis=1), weights=rows.weight))
