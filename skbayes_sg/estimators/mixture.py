"""Quantiles of mixtures of normal distributions."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri


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
