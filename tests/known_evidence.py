"""Rows of a linear regression, and the precision that maximises their evidence."""

import numpy as np
from scipy.optimize import minimize_scalar


def rows_of_the_figures(kind, seed=0):
    """2,000 x 40, noise variance 1, one precision for all weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2000, 40))
    if kind == "null":
        X[:, :10] = 0
    if kind == "weak":
        X *= 0.05
    w = rng.standard_normal(40) / np.sqrt(4.8)
    return X, X @ w + rng.standard_normal(2000)


def evidence_optimum(X, y):
    """Precision that maximises the evidence of linear regression with noise variance 1."""
    d, V = np.linalg.eigh(X.T @ X)
    d, square = d.clip(0), (V.T @ (X.T @ y)) ** 2

    def minus_log_evidence(rho):
        P = d + np.exp(rho)
        return 0.5 * np.sum(np.log(P)) - 0.5 * len(d) * rho - 0.5 * np.sum(square / P)

    return float(np.exp(minimize_scalar(minus_log_evidence, bounds=(-5, 8), method="bounded").x))
