"""Stationary laws of linear stochastic recursions, in closed form, before any run.

Near a mode every sampler here is ``theta' = theta - K (Lam theta - xi)``: curvature Lam (D, D) of the
negative log posterior, gradient noise xi of covariance M (D, D), preconditioner K. Sum units. All
matrices are plain arrays; K may be a scalar, a vector (its diagonal) or a matrix.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_continuous_lyapunov, solve_discrete_lyapunov


def noise_cov(I1: NDArray, N: float, n: int, replace: bool, injected: NDArray | float = 0.0) -> NDArray:
    """Covariance of the minibatch gradient, c N I1 + W (MATH 1).

    Parameters
    ----------
    I1 : array of shape (D, D)
        Covariance of one row's score, divisor N - 1.
    N, n : int
        Rows, and rows per minibatch.
    replace : bool
        c = N/n with replacement, N/n - 1 without.
    injected : array of shape (D, D), default=0
        W, covariance of noise added to the gradient.
    """
    c = N / n if replace else N / n - 1
    return c * N * I1 + injected


def stationary_cov(Lam: NDArray, M: NDArray, K: ArrayLike, discrete: bool = True) -> NDArray:
    """Covariance of the stationary law; Mandt et al. Eq. 13, 22, 34 and 60 in one.

    ``Sigma = F Sigma F^T + K M K^T`` with F = I - K Lam, or its continuous-time limit
    ``K Lam Sigma + Sigma Lam K^T = K M K^T``.

    Raises
    ------
    ValueError
        If the recursion is unstable; the message gives the spectral radius.

    Examples
    --------
    >>> import numpy as np
    >>> Lam, M = np.diag([1.0, 2.0]), np.diag([3.0, 4.0])
    >>> np.round(stationary_cov(Lam, M, 2 * np.linalg.inv(Lam + M)), 12).diagonal().tolist()
    [1.0, 0.5]
    """
    K = _matrix(K, len(Lam))
    noise = K @ M @ K.T
    if not discrete:
        if np.linalg.eigvals(K @ Lam).real.min() <= 0:
            raise ValueError("unstable: K Lam has an eigenvalue that is not positive")
        return solve_continuous_lyapunov(K @ Lam, noise)
    radius = spectral_radius(Lam, K)
    if radius >= 1:
        raise ValueError(f"unstable: the spectral radius of I - K Lam is {radius:.3f}; take a smaller step")
    return solve_discrete_lyapunov(np.eye(len(Lam)) - K @ Lam, noise)


def spectral_radius(Lam: NDArray, K: ArrayLike) -> float:
    """Of F = I - K Lam: below 1 the recursion forgets where it began."""
    return float(np.abs(np.linalg.eigvals(np.eye(len(Lam)) - _matrix(K, len(Lam)) @ Lam)).max())


def kl_gauss(S0: NDArray, S1: NDArray, m0: NDArray | float = 0.0, m1: NDArray | float = 0.0) -> float:
    """KL(N(m0, S0) || N(m1, S1)) in nats."""
    ratio = np.linalg.solve(S1, S0)
    shift = np.broadcast_to(np.asarray(m1, dtype=float) - m0, len(S0))
    distance = shift @ np.linalg.solve(S1, shift)
    return float(0.5 * (np.trace(ratio) - np.linalg.slogdet(ratio)[1] - len(S0) + distance))


def kl_stationary(Lam: NDArray, M: NDArray, K: ArrayLike, discrete: bool = True) -> float:
    """KL of the stationary law from the posterior N(0, Lam^-1), in nats."""
    return kl_gauss(stationary_cov(Lam, M, K, discrete), np.linalg.inv(Lam))


def iat(Lam: NDArray, K: ArrayLike, Sigma: NDArray) -> NDArray:
    """Integrated autocorrelation time of each coordinate, in steps: 2 diag((K Lam)^-1 Sigma) / diag(Sigma) - 1."""
    K = _matrix(K, len(Lam))
    return 2 * np.linalg.solve(K @ Lam, Sigma).diagonal() / Sigma.diagonal() - 1


def sgld_cov(Lam: NDArray, M: NDArray, step_size: float, temperature: float = 1.0, P: ArrayLike = 1.0) -> NDArray:
    """Stationary covariance of SGLD at a constant step (Mandt et al. Eq. 34 as corrected, E3; discrete time).

    With eta = `step_size`: K = eta P and W = (2 temperature / eta) P^-1.
    """
    P = _matrix(P, len(Lam))
    return stationary_cov(Lam, M + (2 * temperature / step_size) * np.linalg.inv(P), step_size * P)


def _matrix(K: ArrayLike, dim: int) -> NDArray:
    K = np.asarray(K, dtype=float)
    return K if K.ndim == 2 else np.diag(np.broadcast_to(K, dim))
