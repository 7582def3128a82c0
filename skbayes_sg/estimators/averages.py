"""Quantiles, entropies and Monte Carlo errors of averages over draws."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri


def batch_error(deviation: NDArray, weights: NDArray, n_batches: int) -> NDArray:
    """Standard error of a weighted mean over axis 0, by batch means; NaN for fewer than 8 draws."""
    if len(weights) < 2 * n_batches:
        n_batches = len(weights) // 2
    if n_batches < 4:
        return np.full(deviation.shape[1:], np.nan)
    batches = np.array_split(np.arange(len(weights)), n_batches)
    square = sum(np.tensordot(weights[batch], deviation[batch], axes=1) ** 2 for batch in batches)
    return np.sqrt(square * (n_batches / (n_batches - 1)))


def entropy(p: NDArray, axis: int) -> NDArray:
    """Of probabilities along an axis, in nats."""
    return -np.sum(p * np.log(np.maximum(p, np.finfo(p.dtype).tiny)), axis=axis)


def quantile(p: NDArray, q: float, weights: NDArray) -> NDArray:
    """Quantile over axis 0; interpolated for equal weights, of the weighted sample otherwise."""
    if np.ptp(weights) == 0:
        return np.quantile(p, q, axis=0)
    return np.quantile(p, q, axis=0, weights=weights, method="inverted_cdf")


def mixture_quantile(q: float, weights: NDArray, centre: NDArray, scale: NDArray) -> NDArray:
    """Quantile of each column's mixture of N(centre[s], scale[s]^2), to 1e-6 of the scale.

    Newton steps start from the quantile of a normal distribution with the mixture's moments. A step
    that leaves the bracket is replaced by bisection.
    """
    own = centre + ndtri(q) * scale  # the quantiles of the components enclose that of the mixture
    low, high = own.min(axis=0), own.max(axis=0)
    mean = weights @ centre
    x = mean + ndtri(q) * np.sqrt(weights @ ((centre - mean) ** 2 + scale * scale))
    for _ in range(60):
        z = (x - centre) / scale
        excess = weights @ ndtr(z) - q
        density = weights @ (np.exp(-0.5 * z * z) / scale) / math.sqrt(2 * math.pi)
        low, high = np.where(excess < 0, x, low), np.where(excess < 0, high, x)
        with np.errstate(divide="ignore", over="ignore"):
            ahead = x - excess / density
        ahead = np.where((ahead >= low) & (ahead <= high), ahead, 0.5 * (low + high))
        moved, x = np.abs(ahead - x).max(), ahead
        if moved <= 1e-6 * scale.min():
            break
    return x
