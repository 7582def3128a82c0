"""Constant preconditioners whose stationary distribution is near the posterior."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_continuous_lyapunov, solve_discrete_lyapunov
from scipy.optimize import minimize

from skbayes_sg.theory.recursions import spectral_radius, stationary_cov

_UNSTABLE = 1e10  # in place of an infinite divergence: line searches need a number
_RANGE = 12.0  # of log k around a start
_STARTS = 12  # one misses the least minimum for a tenth of matrices, twelve for about a hundredth


def optimal_preconditioner(Lam: NDArray, M: NDArray, kind: str = "full") -> NDArray | float:
    """Constant preconditioner K whose stationary distribution is near the posterior.

    With P = Lam + M, in discrete time (math/constant_sgd.md#constant-sgd):

    - "full": 2 P^-1, which has the posterior itself as stationary distribution, for any SPD Lam and
      M;
    - "diag": 2 / P_kk, which is not the optimal diagonal (math/errata.md#e2);
    - "kl-diag": the diagonal whose stationary distribution has the least divergence from the
      posterior, by numerical minimisation, some 400 times D^3 operations
      (math/constant_sgd.md#the-best-diagonal);
    - "scalar": 2 D / Tr P;
    - "sqrt": h G^-1 with G = sqrt(diag M), h = 2 D / Tr(P G^-1).

    With the prefix "ou-", P = M: the formulas of Mandt et al. (Theorem 2, Corollary 1, Theorem 1,
    Appendix E) for continuous time. They may be unstable in discrete time; see `spectral_radius`.

    Parameters
    ----------
    Lam, M : arrays of shape (D, D)
    kind : str

    Returns
    -------
    float for the scalar kinds, (D,) for "diag", "kl-diag" and "sqrt", (D, D) for "full"

    Raises
    ------
    ValueError
        If the kind is not one of these.

    Examples
    --------
    >>> import numpy as np
    >>> Lam = np.diag([1.0, 2.0])
    >>> optimal_preconditioner(Lam, 9 * Lam, "diag").tolist()
    [0.2, 0.1]
    """
    P = M if kind.startswith("ou-") else Lam + M
    match kind.removeprefix("ou-"):
        case "full":
            return 2 * np.linalg.inv(P)
        case "diag":
            return 2 / P.diagonal()
        case "kl-diag":
            return _best_diagonal(Lam, M, discrete=not kind.startswith("ou-"))
        case "scalar":
            return 2 * len(P) / float(np.trace(P))
        case "sqrt":
            root = np.sqrt(M.diagonal())
            return 2 * len(P) / np.sum(P.diagonal() / root) / root
    raise ValueError(
        'kind must be "full", "diag", "kl-diag", "scalar" or "sqrt", with or without "ou-" before '
        f"it, got {kind!r}"
    )


def _best_diagonal(Lam: NDArray, M: NDArray, discrete: bool) -> NDArray:
    """The k > 0 with the least KL of the stationary distribution of K = diag(k) from N(0, Lam^-1).

    The divergence has several local minima for one pair of matrices in ten. L-BFGS in log k starts
    at 2 / P_kk, at the scalar, and at random points, always the same ones.
    """
    rng = np.random.default_rng(0)
    P = Lam + M if discrete else M
    middle = np.log(2 / P.diagonal())
    scalar = np.full(len(P), np.log(2 * len(P) / np.trace(P)))
    shifts = rng.standard_normal((_STARTS - 2, len(middle)))
    highest = np.log(2 / Lam.diagonal()) if discrete else middle + _RANGE  # beyond it is unstable
    options = {"ftol": 1e-15, "gtol": 1e-9}
    ends = []
    for start in (middle, scalar, *(middle + shifts)):
        while discrete and spectral_radius(Lam, np.exp(start)) >= 1:
            start = start - 0.3
        ends.append(
            minimize(
                lambda s: _divergence(Lam, M, np.exp(s), discrete),
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=np.column_stack([start - _RANGE, highest]),
                options=options,
            )
        )
    return np.exp(min(ends, key=lambda end: end.fun).x)


def _divergence(Lam: NDArray, M: NDArray, k: NDArray, discrete: bool) -> tuple[float, NDArray]:
    """KL of what K = diag(k) draws from N(0, Lam^-1), and its gradient in log k.

    With G = (Lam - Sigma^-1) / 2, the gradient in Sigma, and Y the solution of the adjoint equation
    Y = F^T Y F + G, the gradient in k is 2 diag((M K - Lam Sigma F^T) Y); in continuous time F is I
    in it, and Lam K Y + Y K Lam = G (math/constant_sgd.md#the-best-diagonal).
    """
    try:
        Sigma = stationary_cov(Lam, M, k, discrete)
    except ValueError:
        return _UNSTABLE, np.zeros_like(k)
    logdet = np.linalg.slogdet(Lam @ Sigma)[1]
    G = (Lam - np.linalg.inv(Sigma)) / 2
    F = np.eye(len(k)) - k[:, None] * Lam
    Y = solve_discrete_lyapunov(F.T, G) if discrete else solve_continuous_lyapunov(Lam * k, G)
    inner = M * k - Lam @ Sigma @ (F.T if discrete else np.eye(len(k)))
    gradient = 2 * np.sum(inner * Y.T, axis=1)
    return 0.5 * (np.trace(Lam @ Sigma) - logdet - len(k)), gradient * k
