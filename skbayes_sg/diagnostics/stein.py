"""The Stein ratio: spread of the draws against the spread that their gradients imply."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def stein_ratio(theta: NDArray, gradient: NDArray) -> NDArray:
    """-mean (theta - mean theta) * gradient per parameter; shape (D,).

    Integration by parts gives 1 for any posterior when theta has its distribution and `gradient` is
    an unbiased estimate of grad log p at that very theta. Below 1 the variance is too small, above
    1 too large (math/diagnostics.md#stein-ratio). The ratio is blind if the rows of the gradient
    depend on theta (math/diagnostics.md#blind-spots).

    Parameters
    ----------
    theta, gradient : arrays of shape (..., D)
    """
    dim = theta.shape[-1]
    theta, gradient = theta.reshape(-1, dim), gradient.reshape(-1, dim)
    return -((theta - theta.mean(axis=0)) * gradient).mean(axis=0)


class SteinSums:
    """The Stein ratio of a running group of chains from sums, at O(D) memory per chain.

    Sums are taken of theta's distance to a fixed origin, so that no digits cancel.

    Parameters
    ----------
    origin : array of shape (chains, D)
        Any point near the draws, such as the present points of the chains.
    """

    def __init__(self, origin: NDArray) -> None:
        self.origin = origin.copy()
        self.count = 0
        self.theta = np.zeros_like(origin)
        self.gradient = np.zeros_like(origin)
        self.product = np.zeros_like(origin)

    def add(self, theta: NDArray, gradient: NDArray) -> None:
        """Add steps of shape (steps, chains, D)."""
        distance = theta - self.origin
        self.count += len(theta)
        self.theta += distance.sum(axis=0)
        self.gradient += gradient.sum(axis=0)
        self.product += np.einsum("tcd,tcd->cd", distance, gradient)

    def ratio(self, mean: NDArray) -> NDArray:
        """Ratio of each chain and parameter, (chains, D), with theta centred at `mean` (D,)."""
        return -(self.product + (self.origin - mean) * self.gradient) / self.count

    def mean(self) -> NDArray:
        """Mean of theta over chains and steps, (D,)."""
        return (self.origin + self.theta / self.count).mean(axis=0)


def stein_ratio_of_sums(sums: list[SteinSums]) -> tuple[float, float]:
    """Stein ratio averaged over parameters and chains, and its standard error.

    The standard error comes from the spread of the chains. It is NaN for one chain.
    """
    mean = np.mean([s.mean() for s in sums], axis=0)
    per_chain = np.concatenate([s.ratio(mean) for s in sums]).mean(axis=1)
    se = per_chain.std(ddof=1) / np.sqrt(len(per_chain)) if len(per_chain) > 1 else np.nan
    return float(per_chain.mean()), float(se)
