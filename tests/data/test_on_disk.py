"""Rows that are read in blocks: the same posterior, few reads, and errors that name the row."""

import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
)
from skbayes_sg.data import Reader, in_threads, is_out_of_core
from skbayes_sg.data.row_metadata import RowMetadata
from skbayes_sg.data.threads import total_of
from skbayes_sg.posterior.control_variates import Expanded, choose_pool
from skbayes_sg.posterior.gaussian import find_mode, laplace_points
from skbayes_sg.posterior.target import ChainTarget
from skbayes_sg.samplers import HMC, SGLD, UnderdampedLangevin

N, D = 20_000, 4
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
X[:, 0] = np.exp(X[:, 0])
Z = X @ [0.3, -1.0, 0.5, 0.0]
Y = (Z - 0.3 + RNG.logistic(size=N) > 0).astype(int)
BY_LABEL = np.argsort(Y, kind="stable")
NUMBERS = Z + RNG.standard_normal(N)
WEIGHT = RNG.integers(0, 3, N).astype(float)

SHORT_CHAINS = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Every table is on disk, in some ten blocks, and its sample is a small part of it."""
    monkeypatch.setattr("skbayes_sg.data.blockwise.bytes_to_keep", lambda: 0)
    monkeypatch.setattr("skbayes_sg.data.blockwise._BLOCK_BYTES", 1 << 17)
    monkeypatch.setattr("skbayes_sg.data.blockwise._SAMPLE_BYTES", 1 << 16)


class Table:
    """What zarr and h5py have in common: shape, dtype, chunks and slices of rows."""

    def __init__(self, values, chunks=None):
        self.values, self.shape, self.dtype = values, values.shape, values.dtype
        self.chunks, self.rows_read, self.longest = chunks, 0, 0

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        block = self.values[rows]
        self.rows_read += len(block)
        self.longest = max(self.longest, len(block))
        return block


def mapped(folder, values, name="X"):
    np.save(folder / f"{name}.npy", values)
    return np.load(folder / f"{name}.npy", mmap_mode="r")


def logistic(**parameters):
    return BayesianLogisticRegression(**({"prior_precision": 1.0, "random_state": 0} | parameters))


@cache
def of_array():
    return logistic().fit(X, Y)


def assert_same_posterior(model, other):
    """Means and variances agree within five Monte Carlo errors, and the errors of the pools."""
    ess = min(m.diagnostics_["ess_min"] for m in (model, other))
    limit = 5 * np.sqrt(2 / ess) + 0.05
    assert np.abs((model.coef_ - other.coef_) / other.coef_std_).max() < limit
    assert np.abs(np.log(model.coef_std_ / other.coef_std_)).max() < limit


# -- the same posterior -----------------------------------------------------------------------


@pytest.mark.parametrize("order", [np.arange(N), BY_LABEL], ids=["as drawn", "sorted by label"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.quick("float32-as drawn", "float64-sorted by label")
def test_a_memory_map_has_the_posterior_of_the_array(tmp_path, order, dtype):
    table = mapped(tmp_path, X[order].astype(dtype))
    labels = mapped(tmp_path, Y[order].astype(np.int8), "y")
    assert_same_posterior(logistic().fit(table, labels), of_array())


@SHORT_CHAINS
def test_a_series_of_labels_is_read_by_position():
    shuffled = pd.Series(Y, index=RNG.permutation(N).astype(float))
    same = [logistic(n_draws=4, n_chains=2).fit(Table(X), y).draws_ for y in (Y, shuffled)]
    np.testing.assert_array_equal(*same)


@pytest.mark.parametrize("order", [np.arange(N), BY_LABEL], ids=["as drawn", "sorted by label"])
def test_a_table_is_read_in_blocks_a_few_times_and_never_whole(order):
    table, labels = Table(X[order]), Table(Y[order])
    model = logistic().fit(table, labels)
    assert table.rows_read <= 6 * N
    assert labels.rows_read == table.rows_read
    assert table.longest <= 5000
    assert model.n_features_in_ == D
    assert model.n_samples_seen_ == N


@pytest.mark.parametrize("of", ["labels", "numbers"])
def test_weights_may_be_on_disk_too(tmp_path, of):
    y, model = (Y, logistic()) if of == "labels" else (NUMBERS, None)
    fits = []
    for table, weight in ((X, WEIGHT), (mapped(tmp_path, X), mapped(tmp_path, WEIGHT, "w"))):
        model = (
            logistic()
            if of == "labels"
            else BayesianLinearRegression(random_state=0, prior_precision=1.0)
        )
        fits.append(model.fit(table, y, sample_weight=weight))
    assert_same_posterior(*fits)


@pytest.mark.slow
def test_three_classes_with_names_and_balanced_weights():
    names = np.array(["no", "perhaps", "yes"])[Y + (X[:, 1] > 1)]
    fits = [logistic(class_weight="balanced").fit(table, names) for table in (X, Table(X))]
    assert fits[1].classes_.tolist() == ["no", "perhaps", "yes"]
    assert_same_posterior(*fits)
    weight = np.where(names == "yes", 4.0, WEIGHT)
    again = np.repeat(np.arange(N), weight.astype(int))
    balanced = logistic(class_weight="balanced")
    of_weights = clone(balanced).fit(Table(X), names, sample_weight=weight)
    assert_same_posterior(clone(balanced).fit(X[again], names[again]), of_weights)
    apart = np.abs(of_weights.intercept_ - logistic().fit(X, names, weight).intercept_)
    assert apart.max() > 0.1


def test_a_learned_prior_and_the_predicted_covariance():
    fits = [logistic(prior_precision="learned").fit(table, Y) for table in (X, Table(X))]
    learned = [np.log(fit.prior_precision_[0]) for fit in fits]
    assert abs(learned[0] - learned[1]) < 0.2
    assert_same_posterior(*fits)
    covariance = [f.predicted_covariance(t, Y) for f, t in zip(fits, (X, Table(X)), strict=True)]
    np.testing.assert_allclose(covariance[1].diagonal(), covariance[0].diagonal(), rtol=0.03)


@pytest.mark.usefixtures("as_drawn")
@SHORT_CHAINS
def test_a_warm_start_goes_on_where_the_rows_are_the_same():
    def fit(n_draws, times):
        model = logistic(warm_start=True, n_draws=n_draws, n_chains=2)
        for _ in range(times):
            model.fit(Table(X), Y)
        return model

    np.testing.assert_array_equal(fit(8, 2).draws_, fit(16, 1).draws_[:, 8:])


def test_integers_and_columns_in_fortran_order_are_read_as_numbers(tmp_path):
    counts = RNG.poisson(3.0, (N, D)).astype(np.uint8)
    labels = (counts[:, 0] + RNG.logistic(size=N) > 3).astype(int)
    expected = logistic().fit(counts.astype(float), labels)
    for table in (mapped(tmp_path, np.asfortranarray(counts)), Table(counts)):
        assert_same_posterior(logistic().fit(table, labels), expected)


def test_a_copy_of_a_memory_map_is_in_memory(tmp_path):
    table = mapped(tmp_path, X)
    assert is_out_of_core(table)
    assert is_out_of_core(table[:100])
    assert not is_out_of_core(table.astype(np.float32))


def test_changes_of_a_private_map_are_kept(tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((N, D)))
    private = np.load(tmp_path / "X.npy", mmap_mode="c")
    private[:] = X
    reader = Reader(private[10:])
    read = np.concatenate([reader.read(rows) for rows in reader.slices()])
    np.testing.assert_array_equal(read, X[10:])
    np.testing.assert_array_equal(private, X)


@pytest.mark.parametrize("library", ["zarr", "h5py"])
def test_zarr_and_h5py(tmp_path, library):
    module = pytest.importorskip(library)
    if library == "zarr":
        table = module.create_array(
            tmp_path / "X.zarr", shape=X.shape, dtype="float64", chunks=(3000, D)
        )
        table[:] = X
    else:
        table = module.File(tmp_path / "X.h5", "w").create_dataset("X", data=X, chunks=(3000, D))
    assert is_out_of_core(table)
    assert Reader(table).slices()[0] == slice(0, 3000)
    model = logistic().fit(table, Y)
    assert_same_posterior(model, of_array())
    np.testing.assert_array_equal(model.predict(table), model.predict(X))


# -- the pool ---------------------------------------------------------------------------------


def test_a_pool_that_is_drawn_in_a_pass_is_unbiased(monkeypatch, seed):
    """The mean gradient over pools, where the posterior has its mass."""
    monkeypatch.setattr("skbayes_sg.posterior.control_variates._SMALLEST", 300)
    monkeypatch.setattr("skbayes_sg.posterior.control_variates._FROZEN", 1.0)
    posterior = logistic()._bind_blocks(Table(X), Y, RowMetadata())[0]
    rng = np.random.default_rng(seed)
    mode = find_mode(posterior, np.zeros((1, D + 1)), rng)
    here = posterior.expand(mode.theta, posterior.layout("full"))
    mode = mode._replace(curvature=here.curvature, gradient=here.gradient)
    points = laplace_points(posterior, mode)[0]
    pools = iter([choose_pool(posterior, mode, points, rng) for _ in range(40)])
    monkeypatch.setattr("skbayes_sg.posterior.control_variates.choose_pool", lambda *_: next(pools))
    spread = mode.curvature.inverse().cholesky()
    theta = mode.theta + spread.matvec(rng.standard_normal((10, D + 1)))
    exact, errors = posterior.full_gradient(theta), []
    for _ in range(40):
        mine = ChainTarget(Expanded.at(posterior, mode))
        assert 200 < mine.anchor.pool_size < 400
        found = mine.coordinates.pushforward(mine.full_gradient(mine.coordinates.transform(theta)))
        errors.append((found - exact) @ spread.dense())
    errors = np.array(errors)
    assert (np.abs(errors.mean(axis=0)) < 5 * errors.std(axis=0) / np.sqrt(40)).all()


def test_chains_elsewhere_get_no_rows():
    posterior = logistic()._bind_blocks(Table(X), Y, RowMetadata())[0]
    elsewhere = pickle.loads(pickle.dumps(posterior))
    assert len(pickle.dumps(elsewhere)) < X.nbytes / 4
    theta, some = np.zeros((1, D + 1)), slice(0, 100)
    expected = posterior.scores(theta, some).total()
    np.testing.assert_array_equal(elsewhere.scores(theta, some).total(), expected)


# -- predictions ------------------------------------------------------------------------------


def test_predictions_of_rows_on_disk_are_those_of_the_array():
    model = logistic(n_predict_draws=20).fit(X[:1000], Y[:1000])
    table = Table(X[:9000], chunks=(1000, D))
    for name in (
        "predict",
        "predict_proba",
        "predict_log_proba",
        "decision_function",
        "predict_draws",
    ):
        options = {"kind": "mean"} if name == "predict_draws" else {}
        expected = getattr(model, name)(X[:9000], **options)
        found = getattr(model, name)(table, **options)
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected, strict=True) if name == "predict" else (
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        )
    for name in ("total", "standard_error"):
        expected = model.predict_uncertainty(X[:9000])[name]
        np.testing.assert_allclose(model.predict_uncertainty(table)[name], expected, rtol=1e-9)
    assert model.predict_interval(table).shape == (9000, 2, 2)
    assert model.score(table, Y[:9000]) == model.score(X[:9000], Y[:9000])


@SHORT_CHAINS
def test_predictions_of_a_regression():
    model = BayesianLinearRegression(random_state=0, n_draws=8, prior_precision=1.0).fit(
        X[:1000], NUMBERS[:1000]
    )
    for found, expected in zip(
        model.predict(Table(X), return_std=True), model.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    few = model.predict_interval(X[:5000])
    np.testing.assert_allclose(model.predict_interval(Table(X[:5000])), few, rtol=1e-5)
    with pytest.raises(ValueError, match="features"):
        model.predict(Table(X[:, :3]))


def test_offsets_of_predictions_are_one_for_each_row_by_position():
    offset = pd.Series(RNG.standard_normal(N), index=np.arange(N)[::-1] / 2)
    model = BayesianLinearRegression(n_draws=20, random_state=0).fit(X[:500], NUMBERS[:500])
    expected = model.predict(X, offset=offset.to_numpy())
    np.testing.assert_allclose(model.predict(Table(X), offset=offset), expected)
    for wrong in (np.append(offset, 0.0), offset[:-1]):
        with pytest.raises(ValueError, match=f"offset must have a number for each of {N} rows"):
            model.predict(Table(X), offset=wrong)


# -- errors and refusals ----------------------------------------------------------------------


@pytest.mark.parametrize(("value", "what"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_an_error_names_row_and_column(value, what):
    broken = X.copy()
    broken[12_345, 2] = value
    with pytest.raises(ValueError, match=f"contains {what} in row 12345, column 2"):
        logistic().fit(Table(broken), Y)
    model = logistic().fit(X[:500], Y[:500])
    with pytest.raises(ValueError, match=f"contains {what} in row 12345, column 2"):
        model.predict(Table(broken))


def test_an_error_names_the_place_of_a_number_whose_square_overflows():
    broken = X.copy()
    broken[12_345, 2] = 1e160
    model = logistic().fit(X[:500], Y[:500])
    for ask in (lambda: logistic().fit(Table(broken), Y), lambda: model.predict(Table(broken))):
        with pytest.raises(ValueError, match="overflow, as 1e\\+160 in row 12345, column 2; scale"):
            ask()


@pytest.mark.parametrize(
    ("y", "weight", "message"),
    [
        (np.where(np.arange(N) == 7000, np.nan, NUMBERS), None, "y contains NaN .* row 7000"),
        (NUMBERS[:-1], None, r"y must have shape \(20000,\)"),
        (NUMBERS, WEIGHT[1:], r"sample_weight must have shape \(20000,\)"),
        (NUMBERS, WEIGHT - 1, "sample_weight must be finite and not negative"),
        (NUMBERS, np.zeros(N), "sample_weight is zero for all rows"),
        (np.full(N, "x"), None, "y must hold real numbers"),
    ],
)
def test_an_error_names_what_is_wrong_with_targets_and_weights(y, weight, message):
    with pytest.raises(ValueError, match=message):
        BayesianLinearRegression(prior_precision=1.0).fit(Table(X), y, sample_weight=weight)


@pytest.mark.parametrize(
    ("y", "weight", "message"),
    [
        (np.zeros(N), None, "one class only"),
        (Y, Y.astype(float), "one class only"),
        (NUMBERS, None, "Unknown label type"),
    ],
)
def test_an_error_names_what_is_wrong_with_labels(y, weight, message):
    with pytest.raises(ValueError, match=message):
        logistic().fit(Table(X), y, sample_weight=weight)


def test_a_table_of_text_is_refused():
    with pytest.raises(ValueError, match="X must hold real numbers"):
        logistic().fit(Table(X.astype("U5")), Y)


def test_what_needs_rows_at_random_says_what_to_do():
    one_minibatch = {"n_chains": 2, "n_draws": 4, "burn_in": 2, "thin": 1}
    for model in (logistic(sampler="sgld"), BayesianMLPClassifier((2,), **one_minibatch)):
        with pytest.raises(ValueError, match=r"needs rows at random; give np\.asarray"):
            model.fit(Table(X), Y)
    wide = RNG.standard_normal((2500, 1001))
    with pytest.raises(ValueError, match=r"1002 parameters are too many .* needs rows at random"):
        logistic().fit(Table(wide), Y[:2500])


def rare_levels(seed):
    """Four columns of 20 rows each, all of one class."""
    rare = np.random.default_rng(seed).random((N, D)) < 1e-3
    return StandardScaler().fit_transform(rare), np.where(rare.any(axis=1), 1, Y)


@pytest.mark.slow
def test_a_posterior_far_from_gaussian_is_that_of_the_array():
    """HMC on the pool of the table."""
    steep, labels = rare_levels(0)
    model = logistic(n_draws=250)
    table, array = (clone(model).fit(A, labels) for A in (Table(steep), steep))
    assert isinstance(table.sampler_, HMC)
    assert isinstance(array.sampler_, HMC)
    assert_same_posterior(table, array)


def test_a_pool_around_a_point_far_from_the_mode_is_refused():
    """The sample in which the mode is looked for has no row of the third column."""
    steep, labels = rare_levels(4)
    with pytest.raises(ValueError, match=r"mode was not found .* needs rows at random"):
        logistic(prior_precision=1.0).fit(Table(steep), labels)


@SHORT_CHAINS
def test_other_samplers_draw_rows_of_a_memory_map(tmp_path):
    table, short = mapped(tmp_path, X), {"n_chains": 2, "n_draws": 4, "burn_in": 2, "thin": 1}
    for model in (
        logistic(sampler=SGLD(step_size=1e-6), **short),
        BayesianMLPClassifier((2,), sampler=SGLD(step_size=1e-6), random_state=0, **short),
    ):
        drawn = [clone(model).fit(rows, Y).draws_ for rows in (table, X)]
        np.testing.assert_array_equal(*drawn)


def test_control_variates_that_are_asked_for_need_passes_only():
    sampler = UnderdampedLangevin(batch_size=64)
    assert logistic(sampler=sampler).fit(Table(X), Y).sampler_.batch_size == 64


# -- threads ----------------------------------------------------------------------------------


def test_sums_do_not_depend_on_threads():
    parts = RNG.standard_normal((37, 5)) * 10.0 ** RNG.integers(-8, 8, 37)[:, None]

    def function(part):
        return part.copy(), [part[0]]

    expected = total_of(function, parts)
    for count in (2, 5):
        with in_threads(count):
            total, order = total_of(function, parts)
        np.testing.assert_array_equal(total, expected[0])
        assert order == expected[1]


def test_a_thread_treats_overflow_as_its_caller_does():
    with np.errstate(over="ignore"), in_threads(2):
        assert total_of(lambda x: (np.exp(x),), np.full(3, 1e4))[0] == np.inf


def test_an_error_in_a_thread_is_raised():
    def refuse(part):
        raise ValueError(f"block {part}")

    with in_threads(2), pytest.raises(ValueError, match="block 0"):
        total_of(refuse, range(20))


@SHORT_CHAINS
@pytest.mark.parametrize("table", [X, Table(X)], ids=["memory", "disk"])
def test_draws_do_not_depend_on_threads(table, monkeypatch):
    """Blocks are so small that there are many."""
    monkeypatch.setattr("skbayes_sg.data.rows.row_blocks.__defaults__", (1 << 15,))
    monkeypatch.setattr("skbayes_sg.data.rows._CACHED", 1 << 15)
    with parallel_config("threading"):
        one, two = (logistic(n_jobs=n, n_draws=4).fit(table, Y).draws_ for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_more_columns_than_a_matrix_may_have(tmp_path, monkeypatch):
    """Rows are read into memory, and the draws are as of an array."""
    for name in ("_IN_EVERY_STEP", "_ONCE"):
        monkeypatch.setattr(f"skbayes_sg.linalg.sizes.{name}", 4)
    wide = np.random.default_rng(1).standard_normal((N, 12))
    assert_same_posterior(logistic().fit(mapped(tmp_path, wide), Y), logistic().fit(wide, Y))
