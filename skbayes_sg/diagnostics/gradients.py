"""Where gradients of all rows at some draws say that the posterior is. Arrays in, numbers out.

A distribution that is wrong in directions that cancel has a Stein ratio near 1, and chains that are
shifted together have an R-hat near 1. The gradients at the draws see both, one parameter at a time
(math/diagnostics.md#moments-from-gradients).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_FEWEST, _PER_PARAMETER = 32, 4  # draws
_ROUNDING = 1e-12  # of a correlation matrix, and of draws that are scaled to their own spread


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
    return max(_FEWEST, _PER_PARAMETER * dim)


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
    try:
        root = np.linalg.inv(np.linalg.cholesky(_precision(x, slope - middle, values)))
    except np.linalg.LinAlgError:
        return None
    V = root.T @ root
    root = root @ rotation.T
    sd = np.sqrt(np.sum(root * root, axis=0))
    rest = ((slope - middle) @ V + x) @ rotation.T / sd  # what is not linear
    reach = (x / values) @ V @ rotation.T / sd
    bent = (rest**2).mean(axis=0)
    rare = 1 + np.minimum(1, bent)  # few draws decide, and none may be among these
    return Moments(
        centre + (rotation @ (V @ middle)) * scale,
        sd * scale,
        rare * np.sqrt(bent / n),
        rare * 0.5 * np.sqrt(((reach * rest) ** 2).mean(axis=0) / n),
    )


def flattest(theta: NDArray) -> tuple[NDArray, float]:
    """The direction in which draws (draws, D) move least, and their variance along it.

    A step along it is one in coordinates that are scaled to the draws' standard deviations.
    """
    scale = theta.std(axis=0)
    scale[scale == 0] = 1.0
    values, rotation = np.linalg.eigh(np.cov((theta / scale).T, bias=True).reshape(2 * scale.shape))
    return scale * rotation[:, 0], max(0.0, float(values[0]))


def _precision(x: NDArray, slope: NDArray, variance: NDArray) -> NDArray:
    """Minus the slope of `slope` over uncorrelated coordinates x of these variances, symmetric.

    Each entry is that of two regressions, and the one with the smaller error counts for more. In a
    direction in which the draws hardly move, the other regression knows next to nothing.
    """
    Lam = -(x.T @ slope) / (len(x) * variance[:, None])
    noise = ((slope + x @ Lam) ** 2).mean(axis=0)
    of_other = variance * noise
    total = of_other[:, None] + of_other
    share = np.divide(of_other[:, None], total, out=np.full(Lam.shape, 0.5), where=total > 0)
    return share * Lam + (share * Lam).T
