import numpy as np
import pytest
from scipy import stats

from skbayes_sg.diagnostics import quantile
from skbayes_sg.estimators.linear import scale_mixture_quantile
from skbayes_sg.estimators.mixture_predictions import ends_of


@pytest.mark.parametrize("n_samples", [1, 2, 5, 1000])
def test_a_central_interval_is_two_quantiles(n_samples):
    samples = np.random.default_rng(0).standard_normal((1, n_samples, 12))
    ends = quantile(samples, ends_of(0.8), np.full(n_samples, 1 / n_samples))
    np.testing.assert_allclose(ends, np.quantile(samples[0], [0.1, 0.9], axis=0), rtol=1e-12)


def test_of_weighted_samples_the_ends_are_samples():
    rng = np.random.default_rng(0)
    samples, weights = rng.standard_normal((1, 200, 12)), rng.random(200)
    ends = quantile(samples, ends_of(0.8), weights / weights.sum())
    wide = np.broadcast_to(weights[:, None], samples[0].shape)
    how = {"axis": 0, "weights": wide, "method": "inverted_cdf"}
    each = [np.quantile(samples[0], q, **how) for q in (0.1, 0.9)]
    np.testing.assert_array_equal(ends, each)


def test_a_weight_of_two_is_two_samples():
    samples = np.random.default_rng(0).standard_normal((1, 50, 1))
    counts = np.arange(50) % 3
    ends = quantile(samples, ends_of(0.5), counts / counts.sum())
    repeated = np.repeat(samples[0], counts, axis=0)
    expected = np.quantile(repeated, [0.25, 0.75], axis=0, method="inverted_cdf")
    np.testing.assert_array_equal(ends, expected)


@pytest.mark.parametrize("q", [0.01, 0.3, 0.975])
@pytest.mark.parametrize("spread", [0.0, 1e-12, 0.5, 8.0])
def test_the_quantile_of_a_mixture_of_scales(q, spread):
    rng = np.random.default_rng(0)
    scale, weights = np.exp(spread * rng.standard_normal(300)), rng.dirichlet(np.ones(300))
    end = scale_mixture_quantile(q, weights, scale)
    assert weights @ stats.norm.cdf(end / scale) == pytest.approx(q, abs=1e-8)
