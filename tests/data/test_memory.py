"""Rows in memory, dense and sparse."""

import weakref

import numpy as np
import pytest
from scipy import sparse

from skbayes_sg.data import InMemory, of_columns
from skbayes_sg.data.kept_rows import KeptRows

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 4)) * (RNG.random((30, 4)) < 0.6)
Y, WEIGHT = RNG.integers(0, 2, 30) * 2.0 - 1, RNG.uniform(0.5, 2, 30)
KINDS = ["dense", "sparse rows, loaded dense", "sparse rows"]


@pytest.fixture(params=KINDS)
def make(request, monkeypatch):
    """Makes data of one kind of storage."""
    if request.param == "dense":
        return lambda weight=None: InMemory.of(X, Y, weight, 900.0)
    monkeypatch.setattr("skbayes_sg.data.rows.bytes_to_keep", lambda: 0)
    if request.param == "sparse rows":
        monkeypatch.setattr("skbayes_sg.data.rows.has_many_columns", lambda n: n > 1)
    return lambda weight=None: InMemory.of(
        sparse.csr_array(X), Y, weight, 900.0, request.param == "sparse rows"
    )


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_rows_are_those_that_were_asked_for(make, weight):
    data = make(weight)
    for rows in (slice(3, 9), np.array([5, 2, 5]), np.array([[1, 2], [3, 3]])):
        batch = data.load(rows)
        found = batch.X.toarray() if sparse.issparse(batch.X) else batch.X
        np.testing.assert_array_equal(found, X[rows])
        np.testing.assert_array_equal(data.take(rows), X[rows])
        np.testing.assert_array_equal(batch.y, Y[rows])
        assert (batch.weight is None) == (weight is None)
        if weight is not None:
            np.testing.assert_array_equal(batch.weight, weight[rows])
    some = data.some(np.array([4, 1]))
    assert (some.n_rows, some.n_total, some.sparse_rows) == (2, 900.0, data.sparse_rows)
    np.testing.assert_array_equal(some.take(slice(None)), X[[4, 1]])


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_columns_and_their_squares(make, weight):
    data = make(weight)
    np.testing.assert_allclose(data.column_squares(), np.average(X**2, axis=0, weights=weight))
    part = data.with_columns(np.array([2, 0]))
    np.testing.assert_array_equal(part.take(slice(None)), X[:, [2, 0]])
    np.testing.assert_array_equal(part.y, Y)
    assert part.weight is data.weight
    assert (part.n_total, part.sparse_rows) == (900.0, data.sparse_rows)


def test_columns_of_many_entries_are_told_some_at_a_time(monkeypatch):
    monkeypatch.setattr("skbayes_sg.data.rows.bytes_to_keep", lambda: 0)
    monkeypatch.setattr("skbayes_sg.data.rows.has_many_columns", lambda n: n > 1)
    full = RNG.integers(1, 4, (30, 5)).astype(float)
    rows = sparse.csr_array(np.hstack([full, X]))
    whole = of_columns(InMemory.of(rows, Y, WEIGHT, 30.0, takes_sparse=True))
    monkeypatch.setattr("skbayes_sg.data.columns.elements_at_a_time", lambda: 70)
    parts = of_columns(InMemory.of(rows, Y, WEIGHT, 30.0, takes_sparse=True))
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_sparse_rows_in_single_precision_share_their_columns(monkeypatch):
    monkeypatch.setattr("skbayes_sg.data.rows.bytes_to_keep", lambda: 0)
    monkeypatch.setattr("skbayes_sg.data.rows.has_many_columns", lambda n: n > 1)
    data = InMemory.of(sparse.csr_array(X), Y, None, 30.0, takes_sparse=True)
    assert data.single.X.dtype == np.float32
    assert np.shares_memory(data.single.X.indices, data.X.indices)
    np.testing.assert_array_equal(data.single.X.toarray(), X.astype(np.float32))


def test_squares_of_many_rows_are_those_of_some_from_end_to_end():
    many = np.arange(40_000.0)[:, None]
    some = np.linspace(0, 39_999, 10_000).astype(int)
    found = InMemory.of(many, many[:, 0]).column_squares()
    np.testing.assert_allclose(found, np.mean(many[some] ** 2, axis=0))


def test_blocks_cover_all_rows(make):
    data = make()
    assert np.concatenate([np.arange(30)[block] for block in data.blocks(5)]).tolist() == [
        *range(30)
    ]
    total, count = data.reduce(lambda batch: (np.asarray(batch.X.sum(axis=0)), len(batch.y)), 5)
    np.testing.assert_allclose(np.ravel(total), X.sum(axis=0))
    assert count == 30


def test_equal_rows_are_merged():
    one, twice = InMemory.of(X, Y), InMemory.of(np.repeat(X, 2, axis=0), np.repeat(Y, 2))
    assert one.merged().weight is None
    np.testing.assert_array_equal(twice.merged().weight, np.full(30, 2.0))
    np.testing.assert_array_equal(twice.merged().X, one.merged().X)
    assert (one.merged().n_total, twice.merged().n_total) == (30.0, 30.0)


@pytest.fixture
def rare(monkeypatch, n_columns=1500):
    """Rows that stay sparse, some of whose stored entries are zeros, and weights."""
    monkeypatch.setattr("skbayes_sg.data.rows.bytes_to_keep", lambda: 0)
    rng = np.random.default_rng(1)
    rows = sparse.random_array((60, n_columns), density=0.05, rng=rng, format="csr")
    rows.data[:] = rng.integers(0, 3, len(rows.data))
    return rows, rng.uniform(0.0, 3.0, 60)


def test_units_of_sparse_columns_are_those_of_dense_ones(rare):
    rows, weight = rare
    found = of_columns(InMemory.of(rows, np.zeros(60), weight, takes_sparse=True))
    expected = of_columns(InMemory.of(rows.toarray(), np.zeros(60), weight))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    alike = of_columns(InMemory.of(rows, np.zeros(60), takes_sparse=True))
    assert np.abs(alike.unit - found.unit).max() > 0.1


def test_a_stored_zero_is_no_occurrence(rare):
    rows, _ = rare
    data = InMemory.of(rows, np.zeros(60), takes_sparse=True)
    assert data.sparse_rows
    stored = np.bincount(rows.indices, minlength=1500) > 0
    occurs = (rows.toarray() != 0).any(axis=0)
    assert (stored & ~occurs).any()
    np.testing.assert_array_equal(data.nonzero_columns, np.flatnonzero(occurs))


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_mean_squares_of_columns_have_the_weights_of_the_rows(make, weight):
    expected = np.average(X**2, axis=0, weights=weight)
    np.testing.assert_allclose(make(weight).column_squares(), expected, rtol=1e-12)


def test_a_block_with_new_rows_is_as_new_as_these():
    """Forgetting leaves out old blocks, and not the new rows that joined one."""
    old, new = (InMemory.of(X[part], Y[part]) for part in (slice(0, 20), slice(20, 30)))
    forgotten = KeptRows().with_rows(old).forgotten(1e-6)
    mixed = forgotten.with_rows(new)
    assert (len(forgotten.blocks), len(mixed.blocks)) == (1, 1)
    assert (forgotten.shares, mixed.shares) == ((1e-6,), (1.0,))
    assert mixed.forgotten(0.5).shares == (0.5,)
    assert mixed.weight == pytest.approx(10 + 20e-6)


def test_units_of_columns_are_computed_once_and_kept_with_the_rows(make, monkeypatch):
    data = make(WEIGHT)
    found = of_columns(data)
    monkeypatch.setattr(np, "quantile", None)
    assert of_columns(data) is found
    assert weakref.getweakrefcount(data) == 0
    assert "_columns" not in vars(data.repeated(2.0))


def test_merged_rows_stand_for_as_many_as_they_are():
    """Of a stream of 900 rows of which 60 are here, each of 30 stands for 15 all the same."""
    twice = InMemory.of(np.tile(X, (2, 1)), np.tile(Y, 2), None, 900.0)
    merged = twice.merged()
    assert (merged.n_rows, merged.weight.sum()) == (30, 60)
    assert merged.n_total / merged.n_rows == twice.n_total / twice.n_rows
