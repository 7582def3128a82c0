"""What gradients at the draws say of them: the Stein ratio, and moments of the posterior.

The Stein ratio compares the spread of the draws with that which their gradients imply, and takes
the gradients of a sampler, noise and all. A distribution that is wrong in directions that cancel
has a ratio near 1, and chains that are shifted together have an R-hat near 1. Gradients of all rows
at some draws see both, one parameter at a time (math/diagnostics.md#moments-from-gradients).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_ROUNDING = 1e-12  # of a correlation matrix, and of draws that are scaled to their own spread


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


def stein_ratios(sums: list[SteinSums]) -> NDArray:
    """Stein ratio of each chain and parameter, (chains, D), about the mean of all groups."""
    means = []
    for group in sums:
        means.append((group.origin + group.theta / group.count).mean(axis=0))
    mean, ratios = np.mean(means, axis=0), []
    for group in sums:
        ratios.append(-(group.product + (group.origin - mean) * group.gradient) / group.count)
    return np.concatenate(ratios)


def stein_ratio_of_sums(sums: list[SteinSums]) -> tuple[float, float]:
    """Stein ratio averaged over parameters and chains, and its standard error.

    The standard error comes from the spread of the chains. It is NaN for one chain.
    """
    per_chain = stein_ratios(sums).mean(axis=1)
    se = per_chain.std(ddof=1) / np.sqrt(len(per_chain)) if len(per_chain) > 1 else np.nan
    return float(per_chain.mean()), float(se)


# -- gradients of all rows ----------------------------------------------------------------------


class Moments(NamedTuple):
    """Posterior mean and sd of each parameter as the gradients tell them, with errors, (D,)."""

    mean: NDArray
    sd: NDArray
    mean_error: NDArray
    """standard error, in units of `sd`"""
    sd_error: NDArray
    """relative standard error"""


def fewest(dim: int) -> int:
    """Draws that are needed for so many parameters."""
    return max(32, 4 * dim)


def from_gradients(theta: NDArray, gradient: NDArray) -> Moments | None:
    """Mean and sd of the normal distribution whose log density has these slopes.

    They are those of the posterior if it is normal, whatever the distribution of the draws, and if
    the draws have the posterior's distribution, whatever its shape. Errors are those of independent
    draws.

    Parameters
    ----------
    theta, gradient : arrays of shape (draws, D)
        Draws, and the gradient of the log posterior at each, from all rows.

    Returns
    -------
    Moments or None
        None if there is no such distribution: the draws do not move in some direction, or the log
        density is not concave along it.

    Examples
    --------
    >>> import numpy as np
    >>> theta = 3 * np.random.default_rng(0).standard_normal((50, 1))
    >>> moments = from_gradients(theta, -(theta - 1) / 4)  # of N(1, 2^2)
    >>> float(moments.mean[0].round(9)), float(moments.sd[0].round(9))
    (1.0, 2.0)
    """
    n = len(theta)
    centre, scale = theta.mean(axis=0), theta.std(axis=0)
    if not (np.isfinite(gradient).all() and (scale > 0).all()):
        return None
    x, slope = (theta - centre) / scale, gradient * scale
    values, rotation = np.linalg.eigh(x.T @ x / n)
    if not values[0] > _ROUNDING:  # squares lose what draws still tell, as of columns far from zero
        _, roots, axes = np.linalg.svd(x, full_matrices=False)
        values, rotation = roots**2 / n, axes.T
        if not roots[-1] > _ROUNDING * roots[0]:
            return None
    x, slope = x @ rotation, slope @ rotation  # uncorrelated coordinates
    middle = slope.mean(axis=0)
    # Each entry of the precision is that of two regressions of slopes on coordinates, and the one
    # with the smaller error counts for more. In a direction in which the draws hardly move, the
    # other one knows next to nothing.
    Lam = -(x.T @ (slope - middle)) / (n * values[:, None])
    of_other = values * ((slope - middle + x @ Lam) ** 2).mean(axis=0)
    total = of_other[:, None] + of_other
    share = np.divide(of_other[:, None], total, out=np.full(Lam.shape, 0.5), where=total > 0)
    try:
        root = np.linalg.inv(np.linalg.cholesky(share * Lam + (share * Lam).T))
    except np.linalg.LinAlgError:
        return None
    V = root.T @ root
    root = root @ rotation.T
    sd = np.sqrt(np.sum(root * root, axis=0))
    residual = ((slope - middle) @ V + x) @ rotation.T / sd  # what is not linear
    reach = (x / values) @ V @ rotation.T / sd
    bent = (residual**2).mean(axis=0)
    rare = 1 + np.minimum(1, bent)  # few draws decide, and none may be among these
    return Moments(
        centre + (rotation @ (V @ middle)) * scale,
        sd * scale,
        rare * np.sqrt(bent / n),
        rare * 0.5 * np.sqrt(((reach * residual) ** 2).mean(axis=0) / n),
    )


def flattest(theta: NDArray) -> tuple[NDArray, float]:
    """The direction in which draws (draws, D) move least, and their variance along it.

    A step along it is one in coordinates that are scaled to the draws' standard deviations.
    """
    scale = theta.std(axis=0)
    scale[scale == 0] = 1.0
    values, rotation = np.linalg.eigh(np.cov((theta / scale).T, bias=True).reshape(2 * scale.shape))
    return scale * rotation[:, 0], max(0.0, float(values[0]))
