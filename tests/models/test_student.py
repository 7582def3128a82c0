"""Student's t as the distribution of noise: density, derivatives, and what a fit expands."""

import numpy as np
import pytest
from scipy import stats

from skbayes_sg.models import Student

RNG = np.random.default_rng(0)
STEP = 1e-5
MODEL = Student(3, unit=3e4)  # whose least scale, .3, is seen
OF_ROWS = pytest.mark.parametrize("n_own", [1, 6], ids=["shared", "of each row"])


def some(n_own=6):
    """Outputs of six rows under two chains, whose scale and freedom are shared or differ."""
    outputs = np.repeat(RNG.normal(size=(2, 3, n_own)), 6 // n_own, axis=2)
    outputs[:, 0] = RNG.normal(size=(2, 6))
    return outputs, 4 * RNG.normal(size=6)


def distribution(outputs):
    eta, log_scale, log_freedom = outputs.swapaxes(0, 1)
    return stats.t(1 + np.exp(log_freedom), eta, 0.3 + np.exp(log_scale))


@OF_ROWS
def test_density_and_distribution_are_those_of_the_distribution(n_own):
    outputs, y = some(n_own)
    outputs[1, 2] += 2  # a variance in some rows
    np.testing.assert_allclose(MODEL.value(outputs, y), distribution(outputs).logpdf(y))
    np.testing.assert_allclose(MODEL.distribution(y, outputs), distribution(outputs).cdf(y))
    freedom = 1 + np.exp(outputs[:, 2])
    expected = np.where(freedom > 2, distribution(outputs).var(), np.inf)
    np.testing.assert_allclose(MODEL.variance(outputs), expected)
    assert np.isfinite(MODEL.width(outputs)).all()


@OF_ROWS
def test_residuals_and_curvature_are_derivatives(n_own):
    outputs, y = some(n_own)
    steps = STEP * np.eye(3)[:, None, :, None]
    slopes = [MODEL.value(outputs + e, y) - MODEL.value(outputs - e, y) for e in steps]
    found = np.stack(slopes, 1) / (2 * STEP)
    np.testing.assert_allclose(found, MODEL.residual(outputs, y), atol=1e-8)
    bends = [MODEL.residual(outputs - e, y) - MODEL.residual(outputs + e, y) for e in steps]
    found = np.stack(bends, 1) / (2 * STEP)
    np.testing.assert_allclose(found, MODEL.observed_at(outputs, y), atol=1e-8)


@pytest.mark.parametrize("freedom", [1.2, 3.0, 40.0])
def test_expected_curvature_is_the_mean_of_that_of_rows(freedom):
    outputs = np.array([[[0.3], [-0.5], [np.log(freedom - 1)]]])
    y = distribution(outputs).ppf((np.arange(100_000) + 0.5) / 100_000)[0]
    each = MODEL.observed_at(np.repeat(outputs, len(y), axis=2), y)
    np.testing.assert_allclose(each.mean(axis=3)[0], MODEL.expected(outputs)[0, ..., 0], atol=1e-4)


def test_draws_have_the_quantiles_of_the_distribution():
    outputs = np.repeat(some()[0][:1], 20_000, axis=0)
    draws = MODEL.draw(outputs, RNG)
    below = MODEL.distribution(draws, outputs)
    for level in (0.1, 0.5, 0.9):
        error = np.sqrt(level * (1 - level) / len(draws))
        assert (np.abs((below < level).mean(axis=0) - level) < 5 * error).all()


def test_with_many_degrees_of_freedom_noise_is_normal():
    outputs, y = some()
    outputs[:, 2] = 18.0
    normal = stats.norm(outputs[:, 0], 0.3 + np.exp(outputs[:, 1]))
    np.testing.assert_allclose(MODEL.value(outputs, y), normal.logpdf(y), rtol=1e-5)
    fourth = ((y - outputs[:, 0]) / (0.3 + np.exp(outputs[:, 1]))) ** 4
    assert (np.abs(MODEL.residual(outputs, y)[:, 2]) < (2 + fourth) / np.exp(18)).all()
