"""The reference of benchmarks/exactness/reference.py beside what is known in closed form."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax")
sys.path.insert(0, str(Path(__file__).parents[2]))
reference = pytest.importorskip("benchmarks.exactness.reference")
sys.path.pop(0)


def of_linear(X, y, weak, unit):
    """Moments of coefficients, and of the log precision, by conjugacy on a grid of it."""
    n, p = X.shape
    Z, away = np.column_stack([(X - X.mean(axis=0)) / unit, np.ones(n)]), y - y.mean()
    grid = np.log(weak) + np.arange(-11, 5, 0.05)
    log_p, means, variances = [], [], []
    for lam in np.exp(grid):
        prior = np.append(np.full(p, lam), 1e-6)
        precision = np.diag(prior) + Z.T @ Z
        mean = np.linalg.solve(precision, Z.T @ away)
        shape, rate = 1e-6 + n / 2, 1e-6 * y.var() + 0.5 * (away @ away - mean @ precision @ mean)
        log_p.append(0.5 * np.log(prior).sum() - 0.5 * np.linalg.slogdet(precision)[1])
        log_p[-1] += -shape * np.log(rate) + 0.5 * np.log(lam / weak)
        log_p[-1] += -0.5 * lam / weak - 1e-3 * weak / lam
        means.append(mean[:p])
        variances.append(rate / (shape - 1) * np.linalg.inv(precision).diagonal()[:p])
    share = np.exp(log_p - np.max(log_p))
    share /= share.sum()
    mean = share @ np.array(means)
    sd = np.sqrt(share @ (np.array(variances) + (np.array(means) - mean) ** 2))
    rho = share @ grid
    return np.append(mean / unit, rho), np.append(sd / unit, np.sqrt(share @ (grid - rho) ** 2))


@pytest.mark.slow
def test_importance_sampling_agrees_with_conjugacy(seed):
    """Of continuous columns, whose units are their standard deviations; within five errors."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((25, 2)) * [3.0, 0.1] + [2000.0, 0.0]
    y = 0.3 * X[:, 0] + rng.standard_normal(25)
    found = reference.importance(*reference.bind("linear", X, y), 8 * reference.BLOCK, seed)
    mean, sd = of_linear(X, y, 1.0, X.std(axis=0))
    of_found = reference.figures(found.draws, found.weight)[:, [0, 1, -1]]
    assert found.reliable
    assert (np.abs(of_found[0] - mean) < 5 * sd / found.ess**0.5).all()
    # the draws of a log precision are blurred by half a step of the grid
    blurred = np.sqrt(sd**2 + [0, 0, reference.STEP**2 / 12])
    assert (np.abs(of_found[1] / blurred - 1) < 10 / found.ess**0.5).all()


@pytest.mark.parametrize("k", [0.3, 0.9])
def test_the_shape_of_a_tail_is_found(k, seed):
    """Of a generalised Pareto distribution, by 768 in the tail: five errors are (1 + k) / 5.5."""
    u = np.random.default_rng(seed).random(2**16)
    found = reference.pareto_k((u**-k - 1) / k)
    assert abs(found - k) < 5 * (1 + k) / 768**0.5


def test_units_of_columns_follow_their_values():
    """Half the range of two values, half the distance of a rare value, else the deviation."""
    X = np.column_stack([np.arange(8) < 2, np.arange(8) < 4, np.arange(8.0), np.full(8, 3.0)])
    _, variance, unit = reference.columns(X.astype(float), np.ones(8))
    np.testing.assert_allclose(unit, [0.5, 0.5, np.arange(8).std(), 0])
    np.testing.assert_allclose(variance, X.astype(float).var(axis=0))
