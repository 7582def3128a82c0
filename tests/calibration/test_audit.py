"""The exact moments of benchmarks/exactness/audit_exact.py, and how the audit counts."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
audit = pytest.importorskip("benchmarks.exactness.audit")
audit_exact = pytest.importorskip("benchmarks.exactness.audit_exact")
audit_problems = pytest.importorskip("benchmarks.exactness.audit_problems")
sys.path.pop(0)


def by_quadrature(X, y, precision, of_intercept):
    """Moments of one coefficient and an intercept on a grid."""
    a, b = np.meshgrid(np.linspace(-6, 6, 241), np.linspace(-6, 6, 241), indexing="ij")
    z = a[..., None] * X[:, 0] + b[..., None]
    log_p = -np.logaddexp(0, np.where(y == 1, -z, z)).sum(axis=-1)
    log_p -= 0.5 * (precision * a**2 + of_intercept * b**2)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = np.array([(p * a).sum(), (p * b).sum()])
    return mean, np.sqrt([(p * (a - mean[0]) ** 2).sum(), (p * (b - mean[1]) ** 2).sum()])


def test_importance_sampling_agrees_with_quadrature(seed):
    """Two thousand effective draws: within five of their errors."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((15, 1))
    y = (X[:, 0] + rng.logistic(size=15) > 0).astype(int)
    y[:2] = 0, 1
    found = audit_exact.classes(X, y, 1.0, 0.5, rng)
    mean, sd = by_quadrature(X, y, 1.0, 0.5)
    assert (np.abs(found.mean - mean) < 5 * sd / 2000**0.5).all()
    assert (np.abs(found.sd / sd - 1) < 5 * (1 / 2000) ** 0.5).all()


def test_moments_with_a_sampled_noise_are_those_of_draws(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((12, 2)), rng.standard_normal(12)
    found = audit_exact.with_noise(X, y, 1.0, 0.1, (2.0, 2.0))
    Z = np.column_stack([X, np.ones(12)])
    Lam = Z.T @ Z + np.diag([1.0, 1.0, 0.1])
    mean = np.linalg.solve(Lam, Z.T @ y)
    noise = 1 / rng.gamma(8.0, 1 / (2 + (y @ y - mean @ Lam @ mean) / 2), 20_000)
    coef = mean + np.sqrt(noise)[:, None] * rng.standard_normal((20_000, 3)) @ np.linalg.inv(
        np.linalg.cholesky(Lam)
    )
    draws = np.column_stack([coef, np.log(noise)])
    assert (np.abs(found.mean - draws.mean(axis=0)) < 5 * found.sd / 20_000**0.5).all()
    assert (np.abs(draws.std(axis=0) / found.sd - 1) < 0.05).all()


def test_one_coefficient_of_a_learned_precision_has_a_cauchy_prior(seed):
    """Gamma(1/2, 1/2) integrated out; its column is raw, and the intercept's prior at its mean."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(40)
    z = (z - z.mean()) / z.std()
    y = (z + rng.logistic(size=40) > 0).astype(int)
    found = audit_exact.learned(
        50 + 20 * z[:, None],
        lambda X, precision: audit_exact.classes(X, y, precision, 0.5, rng),
    )
    a, b = np.meshgrid(np.linspace(-5, 8, 201), np.linspace(-6, 6, 201), indexing="ij")
    outputs = a[..., None] * z + b[..., None]
    log_p = -np.logaddexp(0, np.where(y == 1, -outputs, outputs)).sum(axis=-1)
    log_p -= np.log1p(a**2) + 0.25 * b**2
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    for values, mean, sd in zip((a / 20, b - 2.5 * a), found.mean, found.sd, strict=True):
        centre = (p * values).sum()
        spread = np.sqrt((p * (values - centre) ** 2).sum())
        assert abs(mean - centre) < 5 * spread / 2000**0.5
        assert abs(sd / spread - 1) < 5 / 2000**0.5


@pytest.mark.parametrize(
    ("surely", "at_most", "wrong", "right"),
    [
        ((0.4, 0.0), (0.5, 0.1), True, False),
        ((0.1, 0.3), (0.2, 0.4), True, False),
        ((0.1, 0.1), (0.29, 0.19), False, True),
        ((0.1, 0.1), (0.31, 0.19), False, False),
        ((np.nan, np.nan), (np.nan, np.nan), False, False),
    ],
)
def test_what_the_monte_carlo_error_leaves_open_is_neither(surely, at_most, wrong, right):
    fit = audit.Fit("sgfs", "defaults", None, (), surely, at_most, {}, 0.0)
    assert (fit.wrong, fit.right) == (wrong, right)


def test_the_interval_of_no_case_of_many():
    """Three over the number, about."""
    assert audit.interval(0, 100) == (0.0, pytest.approx(1 - 0.025**0.01))
