"""A monotone change of one coordinate, and what follows it."""

import numpy as np
import pytest
from scipy.stats import expon, norm

from skbayes_sg.linalg.normal_score import NormalScore

SCORES = np.linspace(-5.0, 5.0, 41)


def of_exponential():
    """theta_2 is exponential, theta_1 follows its square root, and theta_0 is no member."""
    quantiles = expon.isf(norm.sf(SCORES))
    values = np.column_stack([np.sqrt(quantiles), quantiles])
    return NormalScore.through(np.array([1, 2]), 1, SCORES, values)


def test_coordinates_go_to_and_fro_beyond_the_ends_too():
    score, x = of_exponential(), np.zeros((5, 3))
    x[:, 2] = [-7.0, -1.3, 0.0, 2.2, 8.0]
    x[:, 1] = 0.4
    theta = score.inverse_transform(x)
    np.testing.assert_allclose(score.transform(theta), x, atol=1e-8)
    inside = slice(1, 4)
    np.testing.assert_allclose(theta[inside, 2], expon.isf(norm.sf(x[inside, 2])), rtol=1e-3)
    np.testing.assert_allclose(theta[inside, 1], 0.4 + np.sqrt(theta[inside, 2]), rtol=2e-3)


def test_derivatives_are_those_of_finite_differences(seed):
    score, rng, h = of_exponential(), np.random.default_rng(seed), 1e-5
    x, slope = rng.normal(0, 1.5, (1, 3)), rng.standard_normal((1, 3))
    steps = h * np.eye(3)

    def function(x):
        return (score.inverse_transform(x) * slope).sum(axis=1)

    numeric = (function(x + steps) - function(x - steps)) / (2 * h)
    np.testing.assert_allclose(score.pullback(x, slope)[0], numeric, atol=1e-8)
    np.testing.assert_allclose(slope @ score.jacobian(x), numeric[None], atol=1e-8)
    ahead, behind = (score.pullback(x + s, slope)[0, 2] for s in (steps[2], -steps[2]))
    assert score.bend(x, slope) == pytest.approx((ahead - behind) / (2 * h), abs=1e-6)
    value, first, second = score.log_volume(x)
    (above, up, _), (below, down, _) = (score.log_volume(x + s) for s in (steps[2:], -steps[2:]))
    sign, log_det = np.linalg.slogdet(score.jacobian(x))
    assert sign == 1
    assert value[0] == pytest.approx(log_det)
    assert first[0] == pytest.approx((above - below)[0] / (2 * h), abs=1e-6)
    assert second[0] == pytest.approx((up - down)[0] / (2 * h), abs=1e-4)


def test_quantiles_that_fall_are_refused():
    with pytest.raises(ValueError, match="do not rise"):
        NormalScore.through(np.array([0]), 0, SCORES, -SCORES[:, None])
