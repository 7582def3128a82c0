"""Draws with what each counts: the same as draws that are written down as often as they count."""

import numpy as np
import pytest

from skbayes_sg.diagnostics.draws import Draws


@pytest.fixture
def pair():
    """Draws that count 0, 1, 2 or 3 times, and each written down so often."""
    rng = np.random.default_rng(7)
    values, times = rng.standard_normal((3, 40, 2)), rng.integers(0, 4, 40)
    return Draws(values, times / times.sum()), Draws.equal(np.repeat(values, times, axis=1))


def test_figures_are_those_of_draws_that_are_written_down_so_often(pair):
    weighted, repeated = pair
    np.testing.assert_allclose(weighted.moments(), repeated.moments(), rtol=1e-12)
    np.testing.assert_allclose(
        weighted.share(weighted.values > 0.3), repeated.share(repeated.values > 0.3), rtol=1e-12
    )
    flat, at = repeated.flat, np.array([0.05, 0.5, 0.9])
    expected = np.quantile(flat, at, axis=0, method="inverted_cdf")
    np.testing.assert_array_equal(weighted.quantile(at), expected)
    np.testing.assert_allclose(weighted.flat_weights @ weighted.flat, flat.mean(axis=0), rtol=1e-12)


def test_resampled_draws_are_there_as_often_as_they_count(pair):
    weighted, repeated = pair
    n = repeated.values.shape[1]
    assert weighted.n_counting < len(weighted.weights) < n
    np.testing.assert_array_equal(weighted.resampled(n).values, repeated.values)
    assert weighted.resampled(n).count_alike


def test_draws_that_count_alike_are_themselves_and_a_part_of_them_is_spaced_evenly():
    draws = Draws.equal(np.arange(12.0).reshape(1, 12, 1))
    assert draws.resampled() is draws
    assert draws.counting() is draws
    assert np.ptp(np.diff(draws.resampled(4).values.ravel())) == 0


def test_what_does_not_count_is_left_out(pair):
    weighted, _ = pair
    left = weighted.counting()
    assert left.values.shape[1] == weighted.n_counting
    np.testing.assert_allclose(left.mean(), weighted.mean(), rtol=1e-12)
    assert not np.isnan(
        Draws(np.where(weighted.weights[:, None], 1.0, np.nan)[None], weighted.weights)
        .counting()
        .mean()
    )
