"""Normal distributions of a posterior under several precisions, and what they say of these."""

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.special import log_expit

from skbayes_sg.linalg import Diag
from skbayes_sg.models import Softmax
from skbayes_sg.posterior import Posterior, gaussian
from skbayes_sg.posterior.gaussian import NormalPath
from skbayes_sg.priors import GaussianPrior
from skbayes_sg.priors.scales import OnePrecision


def path_of(posterior, in_mean):
    coef = posterior.model.unpack(np.arange(posterior.dim))["coef"].ravel()
    scales = OnePrecision(coef, np.zeros(len(coef), int), ["coef"], 1.0)
    return NormalPath(posterior, scales, in_mean)


def one_column(separable):
    """Labels of one column without an intercept, and the path of their posterior."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(30)
    y = np.where(x > (0 if separable else rng.logistic(size=30)), 1.0, -1.0)
    model = Softmax(1, 2, fit_intercept=False)
    posterior = Posterior.of(model, x[:, None], y)
    return x, y, path_of(posterior, True)


@pytest.mark.parametrize("separable", [False, True])
def test_a_few_distributions_tell_where_the_precision_is(separable):
    """Beside the integral over the coefficient. The posterior of separable classes is one-sided."""
    x, y, path = one_column(separable)
    beta = np.linspace(-10, 400, 40_001)
    log_likelihood = log_expit(np.multiply.outer(beta, x * y)).sum(axis=1)
    rho = np.linspace(-14, 6, 401)
    evidence = [trapezoid(np.exp(log_likelihood - 0.5 * np.exp(r) * beta**2), beta) for r in rho]
    density = np.exp(path.scales.log_density(rho[:, None])) * evidence
    density /= density.sum()
    mean = density @ rho
    sd = np.sqrt(density @ (rho - mean) ** 2)
    assert path.at(0.0).n_determined < 1
    path.around()
    found_mean, found_sd = path.moments()
    assert abs(found_mean - mean) < 0.1 * sd
    assert found_sd == pytest.approx(sd, rel=0.1)


def many_rows(in_mean=True):
    """Many rows, whose likelihood is near normal, and the path of their posterior."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((3000, 4))
    y = np.where(rng.logistic(size=3000) < X @ [1.0, -0.5, 0.0, 0.2], 1.0, -1.0)
    posterior = Posterior.of(Softmax(4, 2), X, y)
    return path_of(posterior, in_mean)


def test_the_slope_of_the_squares_is_that_of_a_normal_likelihood():
    path, h = many_rows(), 0.5
    rho = 3.0
    for each in (rho - h, rho, rho + h):
        path.at(each)
    _, log_squares, slope = path.curve
    assert slope[1] == pytest.approx((log_squares[2] - log_squares[0]) / (2 * h), rel=0.05)
    assert slope[1] < 0


def test_the_mode_stands_for_the_mean_where_rows_are_many():
    paths = [many_rows(in_mean) for in_mean in (True, False)]
    np.testing.assert_allclose(*(path.at(1.0).normal.mean for path in paths), atol=0.01)
    np.testing.assert_allclose(*(path.curve[1] for path in paths), atol=0.02)


def test_a_distribution_that_is_near_serves():
    path = many_rows()
    first = path.at(0.0)
    assert path.at(0.3, within=0.5) is first
    assert path.at(0.3).rho == 0.3
    assert path.near(0.2).rho == 0.3


def test_what_chains_found_takes_the_place_of_the_integral():
    path = many_rows()
    path.at(0.0)
    path.found(-2.0, 0.8)
    assert path.moments() == (-2.0, 0.8)
    assert [node.rho for node in path.around()] == pytest.approx([-3.2, -2.0, -0.8])


def test_a_distribution_that_is_not_finite_is_refused(monkeypatch):
    """It would be a knot of the spline of all, whose error says nothing of the posterior."""
    x, y, _ = one_column(False)
    path = path_of(Posterior.of(Softmax(1, 2, fit_intercept=False), x[:, None], y), False)
    nowhere = GaussianPrior(Diag(np.ones(1)), np.full(1, np.nan))
    monkeypatch.setattr(gaussian, "known_at", lambda *_: nowhere)
    with pytest.raises(np.linalg.LinAlgError, match="not finite"):
        path.at(0.0)
