"""Stationary distributions of linear stochastic recursions, in closed form, before any run.

Near a mode every sampler here is ``theta' = theta - K (Lam theta - xi)``: curvature Lam (D, D) of
the negative log posterior, gradient noise xi of covariance M (D, D), preconditioner K. Units are
sums over rows. All matrices are plain arrays. K may be a scalar, a vector (its diagonal) or a
matrix.

``discrete=True`` is the recursion itself, with a finite step. ``discrete=False`` is its limit in
continuous time, the Ornstein-Uhlenbeck process of Mandt, Hoffman & Blei (2017), whose time unit is
one step. Errata of the papers are numbered in math/errata.md#errata.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import expm, solve_continuous_lyapunov, solve_discrete_lyapunov
from scipy.optimize import minimize

_UNSTABLE = 1e12  # nats, in place of an infinite divergence


def noise_cov(
    I1: NDArray, N: float, n: int, replace: bool, injected: NDArray | float = 0.0
) -> NDArray:
    """Covariance of the minibatch gradient, c N I1 + W (math/gradient_noise.md#row-schemes).

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
    """Covariance of the stationary distribution; Mandt et al. Eq. 13, 22, 34 and 60 in one.

    ``Sigma = F Sigma F^T + K M K^T`` with F = I - K Lam, or its continuous-time limit
    ``K Lam Sigma + Sigma Lam K^T = K M K^T``.

    Raises
    ------
    ValueError
        If the recursion is unstable. In discrete time the message gives the spectral radius.

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
        raise ValueError(
            f"unstable: the spectral radius of I - K Lam is {radius:.3f}; take a smaller step"
        )
    return solve_discrete_lyapunov(np.eye(len(Lam)) - K @ Lam, noise)


def spectral_radius(Lam: NDArray, K: ArrayLike) -> float:
    """Spectral radius of F = I - K Lam; below 1 the recursion forgets its start."""
    return float(np.abs(np.linalg.eigvals(np.eye(len(Lam)) - _matrix(K, len(Lam)) @ Lam)).max())


def optimal_preconditioner(Lam: NDArray, M: NDArray, kind: str = "full") -> NDArray | float:
    """Constant preconditioner K whose stationary distribution is near the posterior.

    With P = Lam + M, in discrete time (math/constant_sgd.md#constant-sgd):

    - "full": 2 P^-1, which has the posterior itself as stationary distribution, for any SPD Lam and
      M;
    - "diag": the diagonal of least divergence `kl_stationary`, by a search from 2 / P_kk, the
      diagonal of SGFS (math/constant_sgd.md#the-best-diagonal);
    - "scalar": 2 D / Tr P;
    - "sqrt": h G^-1 with G = sqrt(diag M), h = 2 D / Tr(P G^-1).

    With the prefix "ou-" they are the formulas of Mandt et al. (Theorem 2, Corollary 1, Theorem 1,
    Appendix E) for continuous time, with P = M and 2 / M_kk as the diagonal, which is not the best
    (math/errata.md#e2). They may be unstable in discrete time; see `spectral_radius`.

    Parameters
    ----------
    Lam, M : arrays of shape (D, D)
    kind : str

    Returns
    -------
    float for the scalar kinds, (D,) for "diag" and "sqrt", (D, D) for "full"

    Raises
    ------
    ValueError
        If the kind is not one of these.

    Examples
    --------
    >>> import numpy as np
    >>> Lam, M = np.array([[1.0, 0.9], [0.9, 2.0]]), np.diag([9.0, 18.0])
    >>> best, of_sgfs = optimal_preconditioner(Lam, M, "diag"), 2 / (Lam + M).diagonal()
    >>> bool(kl_stationary(Lam, M, best) < kl_stationary(Lam, M, of_sgfs))
    True
    """
    P = M if kind.startswith("ou-") else Lam + M
    match kind.removeprefix("ou-"):
        case "full":
            return 2 * np.linalg.inv(P)
        case "diag":
            return 2 / M.diagonal() if kind.startswith("ou-") else _best_diagonal(Lam, M)
        case "scalar":
            return 2 * len(P) / float(np.trace(P))
        case "sqrt":
            root = np.sqrt(M.diagonal())
            return 2 * len(P) / np.sum(P.diagonal() / root) / root
    raise ValueError(
        'kind must be "full", "diag", "scalar" or "sqrt", with or without "ou-" before it, got '
        f"{kind!r}"
    )


def _best_diagonal(Lam: NDArray, M: NDArray) -> NDArray:
    """A diagonal k at which `kl_stationary` is least, by BFGS over log k.

    The divergence has the slope G = (Lam - Sigma^-1) / 2 over Sigma, and Sigma solves a linear
    equation, so that its change with k goes through the adjoint of that: Z = F^T Z F + G. Of an
    unstable recursion the divergence is infinite; a finite number lets a line search step back.
    """

    def divergence(log_k: NDArray) -> tuple[float, NDArray]:
        k = np.exp(log_k)
        try:
            Sigma = stationary_cov(Lam, M, k)
        except ValueError:
            return _UNSTABLE, np.zeros(len(k))
        F = np.eye(len(k)) - k[:, None] * Lam
        Z = solve_discrete_lyapunov(F.T, 0.5 * (Lam - np.linalg.inv(Sigma)))
        slope = 2 * ((M * k - Lam @ Sigma @ F.T) @ Z).diagonal()
        return kl_gauss(Sigma, np.linalg.inv(Lam)), slope * k

    k = 2 / (Lam + M).diagonal()
    root = np.sqrt(k)
    steepest = np.linalg.eigvalsh(root[:, None] * Lam * root).max()  # below 2 it is stable
    start = np.log(k / max(1.0, steepest))
    return np.exp(minimize(divergence, start, jac=True, method="BFGS").x)


def kl_gauss(
    S0: NDArray, S1: NDArray, m0: NDArray | float = 0.0, m1: NDArray | float = 0.0
) -> float:
    """KL(N(m0, S0) || N(m1, S1)) in nats."""
    ratio = np.linalg.solve(S1, S0)
    shift = np.broadcast_to(np.asarray(m1, dtype=float) - m0, len(S0))
    distance = shift @ np.linalg.solve(S1, shift)
    return float(0.5 * (np.trace(ratio) - np.linalg.slogdet(ratio)[1] - len(S0) + distance))


def kl_stationary(Lam: NDArray, M: NDArray, K: ArrayLike, discrete: bool = True) -> float:
    """KL of the stationary distribution from the posterior N(0, Lam^-1), in nats."""
    return kl_gauss(stationary_cov(Lam, M, K, discrete), np.linalg.inv(Lam))


def iat(Lam: NDArray, K: ArrayLike, Sigma: NDArray, discrete: bool = True) -> NDArray:
    """Integrated autocorrelation time of each coordinate, in steps.

    ``2 diag((K Lam)^-1 Sigma) / diag(Sigma) - 1``; in continuous time without the -1.
    """
    K = _matrix(K, len(Lam))
    return 2 * np.linalg.solve(K @ Lam, Sigma).diagonal() / Sigma.diagonal() - (
        1 if discrete else 0
    )


def sgld_cov(
    Lam: NDArray,
    M: NDArray,
    step_size: float,
    temperature: float = 1.0,
    P: ArrayLike = 1.0,
    discrete: bool = True,
) -> NDArray:
    """Stationary covariance of SGLD at a constant step (Mandt et al. Eq. 34, corrected).

    With eta = `step_size`: K = eta P and W = (2 temperature / eta) P^-1. In continuous time, with
    eps = 2 eta and P = I: ``(1/2)(Lam Sigma + Sigma Lam) = I + (eps / 4) M``. The paper prints
    eps / 2 (math/errata.md#e3).

    Raises
    ------
    ValueError
        If the step is unstable, eta >= 2 / largest eigenvalue of P Lam.
    """
    P = _matrix(P, len(Lam))
    return stationary_cov(
        Lam, M + (2 * temperature / step_size) * np.linalg.inv(P), step_size * P, discrete
    )


def momentum_cov(
    Lam: NDArray, M: NDArray, K: ArrayLike, damping: float, discrete: bool = True
) -> NDArray:
    """Stationary covariance of theta under SGD with momentum (Mandt et al. section 3.3).

    ``v' = (1 - damping) v - K (Lam theta - xi)``, ``theta' = theta + v'`` is solved for (theta, v)
    together. The paper's Eq. 31 leaves out a commutator and holds only where Lam and M commute
    (math/errata.md#e7). With K = 2 (M / damping + Lam / (2 - damping))^-1 the result is Lam^-1 for
    any Lam and M.

    Parameters
    ----------
    Lam, M : arrays of shape (D, D)
    K : scalar, (D,) or (D, D)
        The paper's eps / N.
    damping : float
        mu, in (0, 1]; 1 is SGD without momentum.

    Raises
    ------
    ValueError
        If the recursion is unstable: for a scalar step h, unless h * eig(Lam) < 2 (2 - damping).

    Examples
    --------
    >>> import numpy as np
    >>> momentum_cov(np.array([[2.0]]), np.array([[3.0]]), 0.3, 0.2).round(12).tolist()
    [[1.35]]
    """
    dim = len(Lam)
    K = _matrix(K, dim)
    noise = K @ M @ K.T
    if discrete:
        F = _momentum_matrix(Lam, K, damping)
        radius = np.abs(np.linalg.eigvals(F)).max()
        if radius >= 1:
            raise ValueError(
                f"unstable: the spectral radius with momentum is {radius:.3f}; take a smaller step"
            )
        return solve_discrete_lyapunov(F, np.tile(noise, (2, 2)))[:dim, :dim]
    drift = np.block([[np.zeros((dim, dim)), -np.eye(dim)], [K @ Lam, damping * np.eye(dim)]])
    if np.linalg.eigvals(drift).real.min() <= 0:
        raise ValueError("unstable: the drift has an eigenvalue that is not positive")
    return solve_continuous_lyapunov(drift, np.pad(noise, (dim, 0)))[:dim, :dim]


def momentum_radius(Lam: NDArray, K: ArrayLike, damping: float) -> float:
    """Spectral radius of the recursion of (theta, v); below 1 it forgets its start."""
    return float(
        np.abs(np.linalg.eigvals(_momentum_matrix(Lam, _matrix(K, len(Lam)), damping))).max()
    )


def _momentum_matrix(Lam: NDArray, K: NDArray, damping: float) -> NDArray:
    eye = np.eye(len(Lam))
    return np.block([[eye - K @ Lam, (1 - damping) * eye], [-K @ Lam, (1 - damping) * eye]])


def underdamped_cov(
    Lam: NDArray, M: NDArray, G: NDArray, W: NDArray, time_step: float, persistence: float
) -> NDArray:
    """Stationary covariance of theta under BAOAB with gradient noise (Leimkuhler & Matthews 2013).

    ``v += delta G (xi - Lam theta)``, ``theta += delta/2 v``, ``v = c v + eta``, ``theta += delta/2
    v`` is solved for (theta, v) together. Without xi, and with W = (1 - c^2) G, the result is
    Lam^-1 for every delta that is stable (math/control_variates.md#the-step-with-momentum).

    Parameters
    ----------
    Lam, M : arrays of shape (D, D)
        Curvature, and covariance of xi.
    G, W : arrays of shape (D, D)
        Inverse mass, and covariance of eta.
    time_step, persistence : float
        delta and c.

    Raises
    ------
    ValueError
        If the recursion is unstable: delta^2 times an eigenvalue of G Lam is above 4.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.eye(1)
    >>> underdamped_cov(2 * one, 0 * one, one, 0.75 * one, 1.2, 0.5).round(12).tolist()
    [[0.5]]
    """
    dim, eye = len(Lam), np.eye(len(Lam))
    drift = 0.5 * time_step * (1.0 + persistence)
    force = time_step * G
    F = np.block(
        [
            [eye - drift * force @ Lam, drift * eye],
            [-persistence * force @ Lam, persistence * eye],
        ]
    )
    if np.abs(np.linalg.eigvals(F)).max() >= 1:
        raise ValueError("unstable: the time step is too long for this curvature; lower time_step")
    from_gradient = np.concatenate([drift * force, persistence * force])
    from_injected = np.concatenate([0.5 * time_step * eye, eye])
    noise = from_gradient @ M @ from_gradient.T + from_injected @ W @ from_injected.T
    return solve_discrete_lyapunov(F, noise)[:dim, :dim]


def iasg_cov(Lam: NDArray, M: NDArray, K: ArrayLike, T: int, discrete: bool = True) -> NDArray:
    """Covariance of the average of T successive stationary iterates (Mandt et al. Eq. 45).

    It is ``(1/T^2) [T Sigma + sum_{k=1}^{T-1} (T - k)(F^k Sigma + Sigma F^Tk)]`` for any Lam, M and
    K, by its closed sum. For large T it is Lam^-1 M Lam^-1 / T. This is Lam^-1 only if M = T Lam:
    the model is right, the prior is negligible, and T is the noise factor (N/n, or N/n - 1 without
    replacement; math/averaging.md#iterate-averaging).

    Raises
    ------
    ValueError
        If the recursion is unstable, or T < 1.
    """
    if T < 1:
        raise ValueError(f"T must be at least 1 iterate, got {T}")
    K = _matrix(K, len(Lam))
    Sigma = stationary_cov(Lam, M, K, discrete)
    B, eye = K @ Lam, np.eye(len(Lam))
    inverse = np.linalg.inv(B)
    if discrete:
        F = eye - B
        decayed = F @ inverse @ (eye - np.linalg.matrix_power(F, int(T)))
        # half of the k = 0 term belongs to each side
        half = inverse @ (T * eye - decayed) - T / 2 * eye
    else:
        half = inverse @ (T * eye - inverse @ (eye - expm(-T * B)))
    one_sided = half @ Sigma
    return (one_sided + one_sided.T) / T**2


def iasg_error(x: ArrayLike) -> NDArray:
    """Relative error (e^-x - 1) / x of an averaged variance, x = step * eigenvalue * T.

    It is negative: the variance is too small. It is -1/x for large x. Source: Mandt et al. Eq. 46
    with math/errata.md#e8.
    """
    x = np.asarray(x, dtype=float)
    return np.divide(np.expm1(-x), x, out=np.full_like(x, -1.0), where=x != 0)


def _matrix(K: ArrayLike, dim: int) -> NDArray:
    K = np.asarray(K, dtype=float)
    return K if K.ndim == 2 else np.diag(np.broadcast_to(K, dim))
