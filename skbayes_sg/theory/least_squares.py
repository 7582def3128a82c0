"""Linear regression in closed form, where gradient noise grows with the distance from the mode."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skbayes_sg.theory.recursions import stationary_cov


def lsq_noise(
    X: NDArray,
    y: NDArray,
    law: Callable[[NDArray, NDArray], NDArray],
    n: int,
    replace: bool,
    noise_variance: float = 1.0,
    prior_precision: ArrayLike = 1.0,
) -> tuple[NDArray, NDArray]:
    """Curvature and mean gradient noise of linear regression under a stationary distribution.

    The score of a row is ``(y_i - x_i . theta) x_i / noise_variance``. At theta = mode + delta the
    noise is M0 plus that of ``x_i x_i . delta``, so it grows with the distance from the mode. Its
    mean depends on the covariance of the stationary distribution, which depends on the mean noise.
    This linear equation is solved by iteration.

    Parameters
    ----------
    X : array of shape (N, D)
    y : array of shape (N,)
    law : callable
        Stationary covariance of theta from Lam and M, such as
        ``lambda Lam, M: stationary_cov(Lam, M, K)``.
    n, replace :
        Rows per minibatch, drawn with replacement or not.
    noise_variance : float
    prior_precision : float or (D,)

    Returns
    -------
    Lam, M : arrays of shape (D, D)
        With these matrices `law` and the functions of `theory` are exact.

    Raises
    ------
    ValueError
        If the mean or the variance of the recursion diverges.
    """
    N, D = X.shape
    Lam = X.T @ X / noise_variance + np.diag(np.broadcast_to(prior_precision, D))
    residual = y - X @ np.linalg.solve(Lam, X.T @ y / noise_variance)
    # covariance of the minibatch gradient over that of a row (divisor N - 1):
    # (N^2 / n)(1 - 1/N) with replacement, (N^2 / n)(1 - n/N) without
    factor = (N * N / n) * (1 - (1 if replace else n) / N)

    def noise(weights: NDArray, mean: NDArray) -> NDArray:
        return factor / (N - 1) * ((X * weights[:, None]).T @ X / noise_variance**2 - N * mean)

    gbar = X.T @ residual / (noise_variance * N)
    fixed = noise(residual**2, np.outer(gbar, gbar))
    H = X.T @ X / (noise_variance * N)
    M = fixed
    for _ in range(500):
        Sigma = law(Lam, M)
        spread = np.einsum("ij,ij->i", X @ Sigma, X)
        previous, M = M, fixed + noise(spread, H @ Sigma @ H)
        if np.abs(M - previous).max() < 1e-13 * np.abs(M).max():
            return Lam, M
        if np.abs(M).max() > 1e12 * np.abs(fixed).max():
            break
    raise ValueError(
        "unstable: the variance diverges, as gradient noise grows with it; take a smaller step"
    )


def lsq_cov(
    X: NDArray,
    y: NDArray,
    K: ArrayLike,
    n: int,
    replace: bool,
    noise_variance: float = 1.0,
    prior_precision: ArrayLike = 1.0,
    injected: NDArray | float = 0.0,
) -> NDArray:
    """Exact stationary covariance of ``theta += K (gradient + eta)`` on linear regression.

    eta is drawn from N(0, injected). The result is `stationary_cov` with the curvature and noise of
    `lsq_noise`, which describes the other parameters.
    """

    def law(Lam: NDArray, M: NDArray) -> NDArray:
        return stationary_cov(Lam, M + injected, K)

    return law(*lsq_noise(X, y, law, n, replace, noise_variance, prior_precision))
