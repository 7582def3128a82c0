import copy

import numpy as np
import pytest

from skbayes_sg.rows import Minibatches, Partition, row_blocks


@pytest.mark.parametrize(("n_rows", "size"), [(60, 4), (60, 30), (12, 11)])
def test_subsets_are_uniform_and_independent(n_rows, size, seed):
    """Every row, and every pair of rows, equally often; both ways of drawing; steps uncorrelated."""
    stream = Minibatches(n_rows, size, False, np.random.default_rng(seed), n_chains=2)
    draws = np.array([stream.draw() for _ in range(4000)])  # (steps, chains, size)
    assert draws.shape == (4000, 2, size)
    assert (np.diff(draws, axis=-1) > 0).all()
    hit = np.zeros((4000, 2, n_rows))
    np.put_along_axis(hit, draws, 1.0, axis=-1)
    p = size / n_rows
    pair = p * (size - 1) / (n_rows - 1)
    for indicator, truth in [
        (hit[:, :, :].reshape(-1, n_rows), p),
        (hit[:, 0] * np.roll(hit[:, 0], 1, axis=1), pair),
        (hit[1:, 0] * hit[:-1, 0], p * p),
        (hit[:, 0] * hit[:, 1], p * p),
    ]:
        se = np.sqrt(truth * (1 - truth) / len(indicator))
        assert np.abs(indicator.mean(axis=0) - truth).max() < 5 * se


def test_replacement_allows_repeats_and_changes_the_noise_factor():
    with_ = Minibatches(100, 50, True, np.random.default_rng(0))
    without = Minibatches(100, 50, False, np.random.default_rng(0))
    assert len(np.unique(with_.draw())) < 50
    assert (with_.noise_factor, without.noise_factor) == (2.0, 1.0)


def test_noise_factor_is_that_of_the_sample_mean(seed):
    """Var(N gbar) = c N S2, exactly, for both schemes."""
    g = np.random.default_rng(0).exponential(size=40)
    for replace in (False, True):
        stream = Minibatches(40, 8, replace, np.random.default_rng(seed))
        total = 40 * np.array([g[stream.draw()[0]].mean() for _ in range(20_000)])
        expected = stream.noise_factor * 40 * g.var(ddof=1) * (1 - 1 / 40 if replace else 1)
        kurtosis_se = expected * np.sqrt(2.5 / 20_000)
        assert abs(total.var() - expected) < 5 * kurtosis_se


def test_few_rows_are_taken_whole():
    stream = Minibatches(7, 500, False, np.random.default_rng(0))
    assert stream.whole
    assert stream.draw() == slice(None)
    assert stream.noise_factor == 0.0
    assert not Minibatches(7, 500, True, np.random.default_rng(0)).whole


def test_a_copied_stream_goes_on_alike():
    stream = Minibatches(1000, 10, False, np.random.default_rng(0))
    for _ in range(70):
        stream.draw()
    twin = copy.deepcopy(stream)
    np.testing.assert_array_equal([stream.draw() for _ in range(100)], [twin.draw() for _ in range(100)])


def test_a_partition_uses_each_row_once():
    chunk = Partition(103, 25, np.random.default_rng(0), n_total=1030)
    parts = [chunk.draw()[0] for _ in range(chunk.n_parts)]
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(103))
    assert max(map(len, parts)) <= 25
    assert chunk.noise_factor == pytest.approx(1030 / (103 / 5))
    with pytest.raises(StopIteration):
        chunk.draw()


def test_row_blocks_cover_all_rows():
    blocks = row_blocks(1000, row_bytes=100, block_bytes=30_000)
    np.testing.assert_array_equal(np.concatenate([np.arange(1000)[b] for b in blocks]), np.arange(1000))
    assert max(b.stop - b.start for b in blocks) == 300
    assert row_blocks(2, row_bytes=10**9) == [slice(0, 1), slice(1, 2)]
