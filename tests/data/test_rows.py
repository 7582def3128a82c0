import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skbayes_sg.data import deterministic_rng, evenly_spaced, minibatches, row_blocks
from skbayes_sg.data.minibatches import Minibatches, Partition, SamplingFrame, rows_of


@pytest.mark.parametrize(("n_rows", "size"), [(60, 4), (60, 30), (12, 11), (8, 1)])
def test_subsets_are_uniform_and_independent(n_rows, size, seed):
    """Every row, and every pair of rows, equally often; both ways of drawing; steps
    uncorrelated.
    """
    stream = Minibatches(
        SamplingFrame(n_rows), size, False, np.random.default_rng(seed), n_chains=2
    )
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
        (hit[1::2, 0] * hit[::2, 0], p * p),  # of pairs that share no step
        (hit[:, 0] * hit[:, 1], p * p),
    ]:
        count, distribution = indicator.sum(axis=0), stats.binom(len(indicator), truth)
        # as rare as five errors of a normal distribution, which counts of ten are far from
        assert np.minimum(distribution.cdf(count), distribution.sf(count - 1)).min() > 3e-7


def test_replacement_allows_repeats_and_changes_the_noise_factor():
    with_ = Minibatches(SamplingFrame(100), 50, True, np.random.default_rng(0))
    without = Minibatches(SamplingFrame(100), 50, False, np.random.default_rng(0))
    assert len(np.unique(with_.draw())) < 50
    assert (with_.noise_factor, without.noise_factor) == (2.0, 1.0)


def test_noise_factor_is_that_of_the_sample_mean(seed):
    """Var(N gbar) = c N S2, exactly, for both schemes."""
    g = np.random.default_rng(0).exponential(size=40)
    for replace in (False, True):
        stream = Minibatches(SamplingFrame(40), 8, replace, np.random.default_rng(seed))
        total = 40 * np.array([g[stream.draw()[0]].mean() for _ in range(20_000)])
        expected = stream.noise_factor * 40 * g.var(ddof=1) * (1 - 1 / 40 if replace else 1)
        kurtosis_se = expected * np.sqrt(2.5 / 20_000)
        assert abs(total.var() - expected) < 5 * kurtosis_se


def test_a_copied_stream_goes_on_alike():
    stream = Minibatches(SamplingFrame(1000), 10, False, np.random.default_rng(0))
    for _ in range(70):
        stream.draw()
    twin = copy.deepcopy(stream)
    np.testing.assert_array_equal(
        [stream.draw() for _ in range(100)], [twin.draw() for _ in range(100)]
    )


SEED = st.integers(0, 2**32 - 1)


@given(
    st.integers(1, 300), st.integers(1, 300), st.booleans(), st.booleans(), st.integers(1, 4), SEED
)
def test_minibatches_are_subsets_of_the_size_asked_for(
    n_rows, size, replace, shared, n_chains, seed
):
    n_chains, replace = (1, True) if shared else (n_chains, replace)
    probability = np.full(n_rows, 1 / n_rows) if shared else None
    stream = Minibatches(
        SamplingFrame(n_rows, None, probability),
        size,
        replace,
        np.random.default_rng(seed),
        n_chains,
    )
    assert stream.full_data == (not replace and size >= n_rows)
    if stream.full_data:
        assert [stream.draw() for _ in range(3)] == 3 * [slice(None)]
        return
    for _ in range(5):
        rows = stream.draw()
        assert rows.shape == ((size,) if shared else (n_chains, size))
        assert rows.dtype == np.intp
        assert rows.min() >= 0
        assert rows.max() < n_rows
        if not replace:
            assert (np.diff(rows, axis=-1) > 0).all()  # in order, and none twice


@given(st.integers(1, 300), st.integers(1, 300), st.booleans(), st.floats(1.0, 1e6))
def test_noise_factors_are_those_of_the_population(n_rows, size, replace, times):
    n_total = times * n_rows
    stream = Minibatches(SamplingFrame(n_rows, n_total), size, replace, np.random.default_rng(0))
    drawn = size if replace else min(size, n_rows)
    assert stream.noise_factor == pytest.approx(n_total / drawn - (not replace), abs=1e-9)
    alone = Minibatches(SamplingFrame(n_rows), size, replace, np.random.default_rng(0))
    assert alone.noise_factor == pytest.approx(n_rows / drawn - (not replace))
    assert (alone.noise_factor == 0) == alone.full_data


@given(st.integers(1, 300), st.integers(1, 300), st.floats(1.0, 1e6), SEED)
def test_a_partition_uses_each_row_once(n_rows, size, times, seed):
    chunk = Partition(n_rows, size, np.random.default_rng(seed), n_total=times * n_rows)
    parts = [chunk.draw()[0] for _ in range(chunk.n_parts)]
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(n_rows))
    lengths = [len(part) for part in parts]
    assert max(lengths) <= size
    assert max(lengths) - min(lengths) <= 1
    assert chunk.n_parts == -(-n_rows // size)
    assert all((np.diff(part) > 0).all() for part in parts)
    assert chunk.noise_factor == pytest.approx(times * chunk.n_parts)
    with pytest.raises(StopIteration):
        chunk.draw()


@given(st.integers(0, 2000), st.integers(0, 10_000), st.integers(1, 100_000))
def test_row_blocks_cover_all_rows_in_order_and_are_as_large_as_they_may(
    n_rows, row_bytes, block_bytes
):
    blocks = row_blocks(n_rows, row_bytes, block_bytes)
    assert [row for block in blocks for row in range(n_rows)[block]] == list(range(n_rows))
    sizes = [block.stop - block.start for block in blocks]
    assert all(size == max(1, block_bytes // max(1, row_bytes)) for size in sizes[:-1])
    assert all(size == 1 or size * row_bytes <= block_bytes for size in sizes)


def test_fixed_choices_have_nothing_to_do_with_the_first_numbers_of_a_users_generator():
    """Data made by default_rng(0) were correlated with the rows of the pool."""
    theirs = np.random.default_rng(0).random(5)
    mine = deterministic_rng("pool").random(5)
    assert not np.isin(mine, theirs).any()
    np.testing.assert_array_equal(mine, deterministic_rng("pool").random(5))
    assert not np.isin(mine, deterministic_rng("points").random(5)).any()


def test_rows_of_a_chain_are_its_own_unless_all_chains_share_them():
    shared, own = np.arange(5), np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(rows_of(shared, 1), shared)
    np.testing.assert_array_equal(rows_of(own, 1), own[1:])
    assert rows_of(slice(2, 4), 1) == slice(2, 4)


def test_a_large_subset_has_the_smallest_of_random_keys():
    stream = Minibatches(SamplingFrame(200), 100, False, np.random.default_rng(0))
    stream.draw()
    keys = np.random.default_rng(0).random((len(stream._ahead), 200))
    smallest = np.sort(keys.argsort(axis=1)[:, :100], axis=1)
    np.testing.assert_array_equal(stream._ahead[:, 0], smallest)


def test_rows_ahead_are_bounded(monkeypatch):
    monkeypatch.setattr(minibatches, "_MAX_INDICES", 50)
    for size, steps in ((20, 1), (60, 1), (5, 5)):
        stream = Minibatches(SamplingFrame(1000), size, True, np.random.default_rng(0), n_chains=2)
        stream.draw()
        assert len(stream._ahead) == steps


@pytest.mark.parametrize(("n", "most"), [(1, 40), (7, 7), (8, 7), (20_001, 10_000), (5, 1)])
def test_rows_at_even_distances_are_different_and_reach_both_ends(n, most):
    rows = evenly_spaced(n, most)
    assert len(np.unique(rows)) == len(rows) == min(n, most)
    assert rows[0] == 0
    assert rows[-1] == (n - 1 if most > 1 else 0)
    assert set(np.diff(rows)) <= {n // most, n // most + 1}
