"""Pools whose weights have the mean gradient and the mean curvatures of all rows."""

import numpy as np
import pytest
from scipy.special import expit

from skbayes_sg.models import NegativeBinomial, Poisson, Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior import control_variates as cv
from skbayes_sg.posterior.calibrated import _solved, calibrated, has_sums
from skbayes_sg.posterior.gaussian import find_mode, laplace_points

N, D = 4000, 3


def posteriors():
    """Few events, or few counts."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    y = (rng.random(N) < expit(X @ np.full(D, 0.7) - 5.0)).astype(int)
    y[:2] = 0, 1
    three = np.where(y == 1, 1 + (rng.random(N) < 0.5), 0)
    weight = rng.uniform(0.5, 2.0, N)
    yield "binary", Posterior.of(Softmax(D, 2), X, 2 * y - 1, 1.0)
    yield "weighted", Posterior.of(Softmax(D, 2), X, 2 * y - 1, 1.0, weight)
    yield "population", Posterior.of(Softmax(D, 2), X, 2 * y - 1, 1.0, weight, 2 * N)
    yield "three classes", Posterior.of(Softmax(D, 3), X, three, 1.0)
    yield "counts", Posterior.of(Poisson(D), X, y.astype(float), 1.0)
    yield "overdispersed", Posterior.of(NegativeBinomial(D), X, y.astype(float), 1.0)


EACH = [pytest.param(posterior, id=name) for name, posterior in posteriors()]


def pool_of(posterior, m=400):
    """Mode, points, rows and the inverse of the probabilities with which they were drawn."""
    guess = posterior.model.guess(posterior.data.y, posterior.data.weight)
    mode = find_mode(posterior, guess, np.random.default_rng(0))
    points = laplace_points(posterior, mode)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cv, "_SMALLEST", m)
        patch.setattr(cv, "_FROZEN", 100.0)
        rng = np.random.default_rng(1)
        batch, pool = cv.choose_pool(posterior, mode, points, rng, calibrate=False)
    assert m / 2 < len(pool.weight) < 2 * m
    return mode, points, batch, pool.weight


def errors(posterior, mode, batch, weight, theta, directions):
    """Errors of the mean gradient and of mean curvatures over theta, in standard deviations.

    By scores alone, which the expansion at the mode changes by what is linear.
    """
    model, data = posterior.model, posterior.data
    heavier = weight if batch.weight is None else weight * batch.weight

    def gradient(at):
        at_pool = model.scores(at, batch.X, batch.y).scaled(heavier).total()
        at_all = model.scores(at, data.X, data.y).scaled(data.weight).total()
        return (at_pool - at_all) * posterior.n_total / N

    def curvatures(at):
        found = [gradient(at - 1e-3 * d) - gradient(at + 1e-3 * d) for d in directions]
        return np.array([c.mean(axis=0) @ d for c, d in zip(found, directions, strict=True)]) / 2e-3

    root = mode.curvature.inverse().cholesky().dense()
    mean = (gradient(theta).mean(axis=0) - gradient(mode.theta)[0]) @ root
    return mean, curvatures(theta[::3]) - curvatures(mode.theta)


@pytest.mark.parametrize("posterior", EACH)
def test_the_mean_gradient_and_curvatures_of_a_pool_are_those_of_all_rows(posterior):
    """Over normal points that the weights do not know; those of the probabilities are far off."""
    mode, points, batch, weight = pool_of(posterior)
    assert has_sums(posterior)
    found, told = calibrated(posterior, mode, points, batch, weight)
    assert (found >= 1).all()
    covariance = mode.curvature.inverse()
    directions = covariance.dense() / np.sqrt(covariance.diagonal())[:, None]
    z = np.random.default_rng(2).standard_normal((150, posterior.dim))
    theta = mode.theta + covariance.cholesky().matvec(np.concatenate([z, -z]))
    before = errors(posterior, mode, batch, weight, theta, directions)
    after = errors(posterior, mode, batch, found, theta, directions)
    of_mean, of_curvatures = (
        np.linalg.norm(left) / np.linalg.norm(wrong)
        for wrong, left in zip(before, after, strict=True)
    )
    assert of_mean < 0.1  # the points are some hundred
    assert of_curvatures < 0.15
    assert told < 0.1 * np.sqrt(np.mean(before[0] ** 2))


def test_rows_of_a_pool_stand_for_far_more_where_they_are_calibrated(monkeypatch):
    """Fewer rows where the bound of the error asks for many, and as many where it is not met."""
    posterior = EACH[0].values[0]
    mode, points, *_ = pool_of(posterior)
    monkeypatch.setattr(cv, "_SMALLEST", 100)
    monkeypatch.setattr(cv, "_FROZEN", 0.02)

    def pool(**options):
        return cv.choose_pool(posterior, mode, points, np.random.default_rng(1), **options)[1]

    plain, fewer = pool(calibrate=False), pool()
    assert len(fewer.weight) < 0.6 * len(plain.weight) < N
    assert fewer.error < 0.1 * plain.error
    np.testing.assert_allclose(fewer.probability.sum(), 1)
    monkeypatch.setattr(cv, "calibrated", lambda *_: (fewer.weight, 0.03))
    assert 0.5 < len(pool().weight) / len(plain.weight) < 2.0


def test_weights_have_the_sums_that_are_wanted_and_count_each_row_once():
    """Near the given ones, and with some at the bound."""
    rng = np.random.default_rng(0)
    terms, weight = rng.lognormal(size=(3000, 4)), rng.uniform(1.0, 8.0, 3000)
    terms[:, 3] = terms[:, 0]  # the same twice
    for shift in (0.0, 0.02, 0.6):
        wanted = weight @ terms * (1 - shift)
        found = _solved(terms, wanted, weight)
        np.testing.assert_allclose(found @ terms, wanted, rtol=1e-4)
        assert (found >= 1).all()
    assert (found == 1).any()
    np.testing.assert_array_equal(_solved(terms, weight @ terms, weight), weight)
