"""What a sample of draws says of a prediction: entropies, intervals, Monte Carlo errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.optimize.elementwise import find_root
from scipy.special import ndtr, ndtri

from skbayes_sg.data import stays_sparse
from skbayes_sg.linalg.memory import elements_at_a_time
from skbayes_sg.linalg.products import dense
from skbayes_sg.models import Model
from skbayes_sg.models.categorical import Classification
from skbayes_sg.models.response import Response

_OF_AN_END = 1e-6  # relative error of the probability outside


def keeps_sparse(model: Model, X: Any) -> bool:
    """Whether predictions are products with sparse rows."""
    return model.takes_sparse and stays_sparse(X)


def under_some(model: Model, draws: NDArray, X: Any, step: int) -> Iterator[tuple[slice, NDArray]]:
    """Predictions of a block of rows under up to `step` draws at a time, (draws, outputs, n)."""
    if keeps_sparse(model, X):
        step = max(1, elements_at_a_time() // draws.shape[1])
    else:
        X = dense(X)
    for first in range(0, len(draws), step):
        some = slice(first, first + step)
        yield some, model.predict(draws[some], X)


def under_each(model: Model, draws: NDArray, X: Any) -> NDArray:
    """Predictions of a block of rows under every draw, (S, outputs, n)."""
    if not keeps_sparse(model, X):
        return model.predict(draws, dense(X))
    return np.concatenate([each for _, each in under_some(model, draws, X, len(draws))])


def log_average(model: Classification, draws: NDArray, weights: NDArray, X: Any) -> NDArray:
    """Logarithms of averaged class probabilities, (n, classes), finite where these underflow."""
    X = X if keeps_sparse(model, X) else dense(X)
    step = max(1, elements_at_a_time() // draws.shape[1])
    some = [slice(first, first + step) for first in range(0, len(draws), step)]
    each = np.concatenate([model.log_predict(draws[part], X) for part in some])
    largest = each.max(axis=0)
    each -= largest
    np.exp(each, out=each)
    return (largest + np.log(np.tensordot(weights, each, axes=1))).T


def entropy(p: NDArray, axis: int) -> NDArray:
    """Entropy of probabilities, in nats."""
    return -np.sum(p * np.log(np.maximum(p, np.finfo(p.dtype).tiny)), axis=axis)


def batch_error(deviation: NDArray, weights: NDArray, n_batches: int) -> NDArray:
    """Standard error of a weighted mean over axis 0, by batch means; NaN for fewer than 8 draws."""
    if len(weights) < 2 * n_batches:
        n_batches = len(weights) // 2
    if n_batches < 4:
        return np.full(deviation.shape[1:], np.nan)
    batches = np.array_split(np.arange(len(weights)), n_batches)
    square = sum(np.tensordot(weights[batch], deviation[batch], axes=1) ** 2 for batch in batches)
    return np.sqrt(square * (n_batches / (n_batches - 1)))


def central_interval(samples: NDArray, level: float, weights: NDArray) -> NDArray:
    """Ends (..., 2) of the central interval of samples (..., S).

    For equal weights the quantiles are interpolated between two samples. Otherwise they are
    samples: the first at which the sum of the weights reaches the probability.
    """
    q = np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level])
    if np.ptp(weights) == 0:
        return np.moveaxis(np.quantile(samples, q, axis=-1), 0, -1)
    ends = np.quantile(samples, q, axis=-1, weights=weights, method="inverted_cdf")
    return np.moveaxis(ends, 0, -1)


def scale_mixture_quantile(q: float, weights: NDArray, scale: NDArray) -> float:
    """Quantile of the mixture of N(0, scale[s]^2), whose components' quantiles enclose it."""
    ends = ndtri(q) * np.array([scale.min(), scale.max()])
    low, high = ends.min(), ends.max()
    if high - low <= 1e-9 * scale.min():
        return float(low)
    return brentq(lambda x: weights @ ndtr(x / scale) - q, low, high, xtol=1e-9 * scale.min())


def mixture_moments(model: Response, outputs: NDArray, weights: NDArray) -> tuple[NDArray, NDArray]:
    """Mean and standard deviation of the mixture of distributions of y, (n,) each."""
    each = model.mean(outputs)
    mean = weights @ each
    return mean, np.sqrt(weights @ (model.variance(outputs) + (each - mean) ** 2))


def mixture_quantiles(model: Response, outputs: NDArray, weights: NDArray, level: float) -> NDArray:
    """Ends (n, 2) of the central interval of a mixture of distributions of y, (draws, outputs, n).

    Of counts an end is the first number at which the distribution function reaches its probability.
    """
    each = model.mean(outputs)
    mean = weights @ each
    width = np.sqrt(weights @ (model.width(outputs) ** 2 + (each - mean) ** 2))

    def short_of(y: NDArray, rows: NDArray, q: NDArray) -> NDArray:
        return weights @ model.distribution(y, outputs[:, :, rows]) - q

    ends, rows = np.empty((len(mean), 2)), np.arange(len(mean))
    tolerance = (
        {"xatol": 0.25, "xrtol": 0.0} if model.counts else {"fatol": _OF_AN_END * (1 - level)}
    )
    for end, side in zip(ends.T, (-0.5, 0.5), strict=True):
        q = np.full(len(mean), 0.5 + side * level)
        low, high = mean - 2 * width, mean + 2 * width + 1.0 * model.counts
        while (reached := short_of(low, rows, q) >= 0).any():
            low = np.where(reached, 2 * low - mean, low)
        while (short := short_of(high, rows, q) < 0).any():
            high = np.where(short, 2 * high - mean, high)
        found = find_root(short_of, (low, high), args=(rows, q), tolerances=tolerance)
        end[:] = np.floor(found.bracket[1]) if model.counts else found.x
    return ends
