"""Where gradients of all rows at some draws say that the posterior is. Arrays in, numbers out.

A law that is wrong in directions that cancel has a Stein ratio near 1, and chains that are shifted
together have an R-hat near 1. The gradients at the draws see both, one parameter at a time
(math.md#moments-from-gradients).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_FEWEST, _PER_PARAMETER = 32, 4  # draws


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
    """Mean and sd of the normal law whose log density has these slopes.

    They are those of the posterior if it is normal, whatever the law of the draws, and if the draws
    have the posterior's law, whatever its shape. Errors are those of independent draws.

    Parameters
    ----------
    theta, gradient : arrays of shape (draws, D)
        Draws, and the gradient of the log posterior at each, from all rows.

    Returns
    -------
    Moments or None
        None if there is no such law: the draws do not move in some direction, or the log density is
        not concave along it.

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
    middle = slope.mean(axis=0)
    try:
        inverse = np.linalg.inv(x.T @ x / n)
        Lam = -inverse @ (x.T @ (slope - middle) / n)
        root = np.linalg.inv(np.linalg.cholesky(0.5 * (Lam + Lam.T)))
    except np.linalg.LinAlgError:
        return None
    V = root.T @ root  # in units of `scale`
    sd = np.sqrt(V.diagonal())
    rest = ((slope - middle) @ V + x) / sd  # what is not linear
    reach = (x @ (inverse @ V)) / sd
    return Moments(
        centre + (V @ middle) * scale,
        sd * scale,
        np.sqrt((rest**2).mean(axis=0) / n),
        0.5 * np.sqrt(((reach * rest) ** 2).mean(axis=0) / n),
    )
