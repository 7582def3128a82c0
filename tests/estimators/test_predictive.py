import numpy as np
import pytest
from scipy import stats

from skbayes_sg.estimators.class_probabilities import weighted_quantiles
from skbayes_sg.estimators.linear import scale_mixture_quantile
from skbayes_sg.estimators.mixture_predictions import ends_of


@pytest.mark.parametrize("n_samples", [1, 2, 5, 1000])
def test_a_central_interval_is_two_quantiles(n_samples):
    samples = np.random.default_rng(0).standard_normal((3, 4, n_samples))
    ends = weighted_quantiles(samples, ends_of(0.8), np.full(n_samples, 1 / n_samples))
    expected = np.quantile(samples, [0.1, 0.9], axis=-1)
    np.testing.assert_allclose(ends, np.moveaxis(expected, 0, -1), rtol=1e-12)


def test_of_weighted_samples_the_ends_are_samples():
    rng = np.random.default_rng(0)
    samples, weights = rng.standard_normal((3, 4, 200)), rng.random(200)
    ends = weighted_quantiles(samples, ends_of(0.8), weights / weights.sum())
    wide = np.broadcast_to(weights, samples.shape)
    how = {"axis": -1, "weights": wide, "method": "inverted_cdf"}
    each = [np.quantile(samples, q, **how) for q in (0.1, 0.9)]
    np.testing.assert_array_equal(ends, np.stack(each, axis=-1))


def test_a_weight_of_two_is_two_samples():
    samples = np.random.default_rng(0).standard_normal((1, 50))
    counts = np.arange(50) % 3
    ends = weighted_quantiles(samples, ends_of(0.5), counts / counts.sum())
    repeated = np.repeat(samples, counts, axis=1)
    expected = np.quantile(repeated, [0.25, 0.75], axis=1, method="inverted_cdf")
    np.testing.assert_array_equal(ends, expected.T)


@pytest.mark.parametrize("q", [0.01, 0.3, 0.975])
@pytest.mark.parametrize("spread", [0.0, 1e-12, 0.5, 8.0])
def test_the_quantile_of_a_mixture_of_scales(q, spread):
    rng = np.random.default_rng(0)
    scale, weights = np.exp(spread * rng.standard_normal(300)), rng.dirichlet(np.ones(300))
    end = scale_mixture_quantile(q, weights, scale)
    assert weights @ stats.norm.cdf(end / scale) == pytest.approx(q, abs=1e-8)
