import numpy as np
import pytest

from skbayes_sg.estimators.predictive import central_interval, mixture_quantile


@pytest.mark.parametrize("n_samples", [1, 2, 5, 1000])
def test_a_central_interval_is_two_quantiles(n_samples):
    samples = np.random.default_rng(0).standard_normal((3, 4, n_samples))
    ends = central_interval(samples.copy(), 0.8, np.full(n_samples, 1 / n_samples))
    expected = np.quantile(samples, [0.1, 0.9], axis=-1)
    np.testing.assert_allclose(ends, np.moveaxis(expected, 0, -1), rtol=1e-12)


def test_of_weighted_samples_the_ends_are_samples():
    rng = np.random.default_rng(0)
    samples, weights = rng.standard_normal((3, 4, 200)), rng.random(200)
    ends = central_interval(samples.copy(), 0.8, weights / weights.sum())
    wide = np.broadcast_to(weights, samples.shape)
    how = {"axis": -1, "weights": wide, "method": "inverted_cdf"}
    each = [np.quantile(samples, q, **how) for q in (0.1, 0.9)]
    np.testing.assert_array_equal(ends, np.stack(each, axis=-1))


def test_a_weight_of_two_is_two_samples():
    samples = np.random.default_rng(0).standard_normal((1, 50))
    counts = np.arange(50) % 3
    ends = central_interval(samples.copy(), 0.5, counts / counts.sum())
    repeated = np.repeat(samples, counts, axis=1)
    expected = np.quantile(repeated, [0.25, 0.75], axis=1, method="inverted_cdf")
    np.testing.assert_array_equal(ends, expected.T)


def test_the_quantile_of_a_mixture_of_one_is_that_of_a_normal_distribution():
    centre, scale = np.array([[1.0, -2.0]]), np.array([[3.0]])
    upper = mixture_quantile(0.975, np.ones(1), centre, scale)
    np.testing.assert_allclose(upper, [1 + 3 * 1.9599640, -2 + 3 * 1.9599640], rtol=1e-6)


def test_the_quantile_between_far_components_is_bracketed():
    """Newton's step is 0 / 0 there."""
    centre, scale = np.array([[-1e9], [1e9]]), np.full((2, 1), 1e-6)
    middle = mixture_quantile(0.5, np.full(2, 0.5), centre, scale)
    assert -1e9 < middle[0] < 1e9
