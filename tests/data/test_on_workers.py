"""Rows in partitions: dask arrays and data frames, with schedulers in this process."""

import os
import signal
import threading
import time
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from conftest import POSIX
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import Bunch

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianPoissonRegressor,
    DRBMClassifier,
)
from skbayes_sg.data import InMemory
from skbayes_sg.samplers import HMC, SGLD

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

N, D = 12_000, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
Z = X @ [1.0, -0.5, 0.0]
Y = (Z + RNG.logistic(size=N) > 0).astype(int)
NUMBERS = Z + RNG.standard_normal(N)
PARTS = (5000, 1, 4000, 2999)
FRAME = pd.DataFrame(X, columns=list("abc")).assign(y=Y)
SHORT = {"n_chains": 2, "n_draws": 4, "random_state": 0}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def logistic(**parameters):
    return BayesianLogisticRegression(**(SHORT | {"prior_precision": 1.0} | parameters))


def frame(pandas=FRAME, parts=PARTS):
    """A data frame of unknown divisions with these partitions."""
    edges = np.concatenate([[0], np.cumsum(parts)])
    each = [pandas.iloc[a:b] for a, b in pairwise(edges)]
    return dd.from_delayed([dask.delayed(part) for part in each], meta=pandas.iloc[:0])


def array(values=X, parts=PARTS):
    return da.from_array(values, chunks=(parts, *([2] * (values.ndim - 1))))


def unknown(lazy):
    """The same partitions, with a number of rows that nobody knows."""
    return lazy[lazy[:, 0] < np.inf] if lazy.ndim == 2 else lazy[lazy < np.inf]


@cache
def draws_of_partitions():
    """Of the array in its partitions."""
    return logistic().fit(array(), array(Y)).draws_


# -- the same posterior -----------------------------------------------------------------------


def test_the_posterior_is_that_of_the_rows_in_memory():
    expected, found = logistic(n_chains=32, n_draws=125), logistic(n_chains=32, n_draws=125)
    expected.fit(X, Y)
    found.fit(array(), array(Y))
    assert np.abs((found.coef_ - expected.coef_) / expected.coef_std_).max() < 0.2
    np.testing.assert_allclose(found.coef_std_, expected.coef_std_, rtol=0.1)
    assert found.n_samples_seen_ == N
    assert found.n_features_in_ == D


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        (lambda: unknown(array()), lambda: unknown(array(Y))),
        (array, lambda: array(Y, (6000, 6000))),
        (array, lambda: Y),
        (lambda: frame()[list("abc")], lambda: frame()["y"]),
        (lambda: frame()[list("abc")], lambda: Y),
    ],
    ids=["unknown rows", "other chunks of y", "y in memory", "frame", "frame, y in memory"],
)
def test_every_collection_of_the_same_partitions_gives_the_same_draws(rows, labels):
    np.testing.assert_array_equal(logistic().fit(rows(), labels()).draws_, draws_of_partitions())


@pytest.mark.filterwarnings("ignore:.*inplace.*")  # of pandas, in dask
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_in_partitions(tmp_path, kind):
    pytest.importorskip("pyarrow")
    given = frame(FRAME.astype(np.float32))
    if kind == "csv":
        given.to_csv(str(tmp_path / "*.csv"), index=False)
        read = dd.read_csv(str(tmp_path / "*.csv"), dtype=np.float32)
    else:
        given.to_parquet(tmp_path)
        read = dd.read_parquet(tmp_path)
    found = logistic().fit(read[list("abc")], read["y"])
    expected = logistic().fit(given[list("abc")], given["y"])
    np.testing.assert_array_equal(found.draws_, expected.draws_)


def test_the_draws_do_not_depend_on_the_scheduler():
    expected = logistic().fit(array(), array(Y)).draws_
    with dask.config.set(scheduler="threads", num_workers=3):
        np.testing.assert_array_equal(logistic().fit(array(), array(Y)).draws_, expected)


def test_empty_partitions_and_partitions_of_one_class_change_nothing():
    order = np.argsort(Y, kind="stable")
    parts = (0, 4000, 0, 4000, 4000, 0)
    by_label = frame(FRAME.iloc[order], parts)
    full = frame(FRAME.iloc[order], (4000, 4000, 4000))
    np.testing.assert_array_equal(
        logistic().fit(by_label[list("abc")], by_label["y"]).draws_,
        logistic().fit(full[list("abc")], full["y"]).draws_,
    )


def test_partitions_of_other_precision_than_they_say_are_cast():
    mixed = [X[:6000].astype(np.float32), X[6000:].astype(np.float32).astype(float)]
    lazy = da.concatenate(
        [da.from_delayed(dask.delayed(part), part.shape, float) for part in mixed]
    )
    whole = da.from_array(X.astype(np.float32).astype(float), chunks=(6000, D))
    np.testing.assert_array_equal(logistic().fit(lazy, Y).draws_, logistic().fit(whole, Y).draws_)


def test_weights_and_a_regression():
    weight = RNG.integers(0, 3, N).astype(float)
    model = BayesianLinearRegression(random_state=0, prior_precision=1.0)
    expected = model.fit(X, NUMBERS, sample_weight=weight)
    expected = expected.coef_, expected.coef_std_
    model.fit(array(), array(NUMBERS), sample_weight=array(weight))
    assert np.abs((model.coef_ - expected[0]) / expected[1]).max() < 0.2


# -- predictions ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_predictions_are_lazy_and_those_of_the_rows_in_memory(kind):
    memory, lazy = (X, array()) if kind == "array" else (FRAME[list("abc")], frame()[list("abc")])
    model = logistic().fit(memory[:500], np.array(["no", "yes"])[Y[:500]])
    methods = (
        "predict",
        "predict_proba",
        "predict_log_proba",
        "decision_function",
        "predict_draws",
    )
    for name in (*methods, "predict_interval", "predict_uncertainty"):
        options = {"kind": "mean"} if name == "predict_draws" else {}
        found, expected = (getattr(model, name)(rows, **options) for rows in (lazy, memory))
        if isinstance(found, Bunch):
            found, expected = found.total, expected.total
        assert isinstance(found, da.Array)
        assert found.ndim == expected.ndim
        assert found.dtype == expected.dtype
        if name == "predict":
            np.testing.assert_array_equal(found.compute(), expected)
        else:
            np.testing.assert_allclose(found.compute(), expected, rtol=1e-7)
    if kind == "array":
        assert model.predict_interval(lazy).shape == (N, 2, 2)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of dask, by pandas
def test_parquet_is_read_scored_and_written(tmp_path):
    frame().to_parquet(tmp_path / "rows")
    rows = dd.read_parquet(tmp_path / "rows")
    X = rows[list("abc")]
    model = BayesianLogisticRegression(**SHORT, prior_precision=1.0).fit(X, rows["y"])
    expected = model.predict_proba(FRAME[list("abc")])[:, 1]
    assert model.score(X, rows["y"]) == np.mean((expected > 0.5) == FRAME["y"])
    rows.assign(p=model.predict_proba(X)[:, 1]).to_parquet(tmp_path / "scored")
    scored = pd.read_parquet(tmp_path / "scored")["p"].to_numpy()
    np.testing.assert_allclose(np.sort(scored), np.sort(expected), rtol=1e-6)


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_scores_are_those_of_rows_in_memory(kind):
    X, y = FRAME[list("abc")], NUMBERS
    lazy = da.from_array(X.to_numpy(), (5000, 3)) if kind == "array" else frame()[list("abc")]
    for model, target in (
        (BayesianLogisticRegression(**SHORT, prior_precision=1.0), (y > 0).astype(int)),
        (BayesianLinearRegression(**SHORT, prior_precision=1.0), y),
        (BayesianPoissonRegressor(**SHORT, prior_precision=1.0), np.floor(np.exp(y / 4))),
    ):
        model.fit(X[:500] if kind == "frame" else X.to_numpy()[:500], target[:500])
        weight = np.arange(len(y)) % 3
        expected = model.score(X if kind == "frame" else X.to_numpy(), target, weight)
        lazy_target = da.from_array(target, 5000)
        assert model.score(lazy, lazy_target, weight) == pytest.approx(expected)


def test_predictions_of_a_regression_are_lazy_and_skip_empty_partitions():
    model = BayesianLinearRegression(**SHORT, prior_precision=1.0).fit(
        FRAME[list("abc")][:500], NUMBERS[:500]
    )
    lazy = frame(parts=(0, 7000, 5000))[list("abc")]
    for found, expected in zip(
        model.predict(lazy, return_std=True),
        model.predict(FRAME[list("abc")], return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(found.compute(), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(lazy[list("cba")])


# -- errors and refusals ----------------------------------------------------------------------


def test_an_error_names_partition_and_column():
    broken = FRAME.copy()
    broken.iloc[5003, 1] = np.nan
    lazy = frame(broken)
    with pytest.raises(ValueError, match="NaN in row 2 of partition 2, column 'b'"):
        logistic().fit(lazy[list("abc")], lazy["y"])
    with pytest.raises(ValueError, match="y contains NaN or infinity in row 2 of partition 2"):
        BayesianLinearRegression(**SHORT, prior_precision=1.0).fit(lazy[["a", "c"]], lazy["b"])


def test_an_error_names_the_place_of_a_number_whose_square_overflows():
    broken = X.copy()
    broken[9003, 2] = -1e200
    with pytest.raises(
        ValueError, match="overflow, as -1e\\+200 in row 2 of partition 3, column 2"
    ):
        logistic().fit(array(broken, (5000, 1, 4000, 2999)), Y)


@pytest.mark.parametrize("value", [0.0, np.inf, np.nan])
def test_an_error_names_the_place_of_an_impossible_exposure(value):
    exposure = np.where(np.arange(N) == 5003, value, 2.0)
    model = BayesianPoissonRegressor(**SHORT, prior_precision=1.0)
    with pytest.raises(ValueError, match="exposure, is not finite in row 2 of partition 2"):
        model.fit(array(), array(Y), exposure=array(exposure))


def unaligned(values):
    """The same numbers at an odd address, as an array in the middle of a message has."""
    room = np.empty(values.nbytes + 1, np.uint8)
    odd = room[1:].view(values.dtype).reshape(values.shape)
    odd[:] = values
    assert not odd.flags.aligned
    return odd


def test_rows_that_came_in_a_message_give_the_draws_of_those_that_did_not():
    travelled = [dask.delayed(unaligned(part)) for part in np.split(X, np.cumsum(PARTS)[:-1])]
    arrays = [
        da.from_delayed(part, (n, D), float) for part, n in zip(travelled, PARTS, strict=True)
    ]
    rows = InMemory.of(unaligned(X), Y)  # not all processors mind
    assert rows.X.flags.aligned
    of_memory, of_dask = logistic().fit(X, Y), logistic().fit(array(), array(Y))
    np.testing.assert_array_equal(logistic().fit(unaligned(X), Y).draws_, of_memory.draws_)
    np.testing.assert_array_equal(logistic().fit(da.concatenate(arrays), Y).draws_, of_dask.draws_)


def test_a_column_of_text_is_named():
    lazy = frame(FRAME.assign(b="x"))
    with pytest.raises(ValueError, match=r"no numbers in column\(s\) 'b'"):
        logistic().fit(lazy[list("abc")], lazy["y"])
    dates = np.arange(N * D).reshape(N, D).astype("datetime64[s]")
    for lazy in (frame(FRAME.assign(b=dates[:, 0]))[list("abc")], da.from_array(dates)):
        with pytest.raises(ValueError, match="X holds dates or times in column"):
            logistic().fit(lazy, Y)
    liar = da.from_delayed(dask.delayed(np.full((N, D), "x")), (N, D), float)
    with pytest.raises(ValueError, match="partition 0 of X does not hold numbers"):
        logistic().fit(liar, Y)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (lambda: Y[1:], r"y must have shape \(12000,\)"),
        (lambda: array(Y[1:], (11999,)), r"y must have shape \(12000,\)"),
        (lambda: unknown(array(Y, (6000, 6000))), "y has 2 partitions and X has 4"),
        (
            lambda: unknown(array(Y, (5001, 1, 3999, 2999))),
            r"partition \d has \d+ rows in X, and y",
        ),
        (lambda: array()[:, :2], "y must have one dimension"),
        (lambda: array(np.zeros(N)), "one class only"),
    ],
)
def test_an_error_names_what_is_wrong_with_targets(labels, message):
    with pytest.raises(ValueError, match=message):
        logistic().fit(array(), labels())


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (logistic(sampler=SGLD()), r"sampler=SGLD\(\), unlike None, visits rows at each step"),
        (logistic(sampler="hmc"), "sampler='hmc', unlike None, visits rows at each step"),
        (BayesianLinearRegression("sgfs", **SHORT), "sampler='sgfs', unlike None"),
        (BayesianMLPClassifier((2,), **SHORT), "BayesianMLPClassifier visits rows at each step"),
        (DRBMClassifier(2, **SHORT), "DRBMClassifier visits rows at each step"),
    ],
)
def test_what_needs_rows_at_random_says_what_to_do(model, why):
    with pytest.raises(ValueError, match=rf"{why}.* needs rows at random; give np\.asarray\(X\)"):
        model.fit(array(), array(Y))


def test_a_posterior_far_from_gaussian_is_that_of_the_array():
    """Rare levels of one class only: HMC on the pool of all partitions."""
    rare = np.random.default_rng(0).random((N, D)) < 0.01
    steep = 10 * (rare - rare.mean(axis=0))
    labels = np.where(rare.any(axis=1), 1, Y)
    model = logistic(prior_precision=1.0)
    data = (steep, labels), (array(steep), array(labels))
    here, there = (clone(model).fit(*each) for each in data)
    assert isinstance(there.sampler_, HMC)
    limit = 5 * np.sqrt(2 / min(m.diagnostics_["ess_min"] for m in (here, there)))
    assert np.abs((here.coef_ - there.coef_) / here.coef_std_).max() < limit
    assert np.abs(np.log(here.coef_std_ / there.coef_std_)).max() < limit


# -- steps before the estimator ---------------------------------------------------------------


def test_dask_arrays_pass_through_a_pipeline():
    pipeline = make_pipeline(FunctionTransformer(np.tanh), logistic()).fit(array(), array(Y))
    expected = logistic().fit(array(np.tanh(X)), array(Y))
    np.testing.assert_array_equal(pipeline[-1].draws_, expected.draws_)
    proba = pipeline.predict_proba(array())
    assert isinstance(proba, da.Array)
    np.testing.assert_allclose(proba.compute(), expected.predict_proba(np.tanh(X)), rtol=1e-7)


@pytest.mark.parametrize("kind", ["array", "frame"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_steps_of_dask_ml(kind):
    preprocessing = pytest.importorskip("dask_ml.preprocessing")
    whole_rows = array().rechunk({1: -1})  # dask-ml asks for them
    rows = whole_rows if kind == "array" else frame()[list("abc")]
    labels = array(Y) if kind == "array" else frame()["y"]
    pipeline = make_pipeline(preprocessing.StandardScaler(), logistic()).fit(rows, labels)
    proba = pipeline.predict_proba(rows)
    assert isinstance(proba, da.Array)
    plain = make_pipeline(StandardScaler(), logistic()).fit(X, Y).predict_proba(X)
    assert np.abs(proba.compute() - plain).max() < 0.05  # eight draws each


# -- workers in other processes ---------------------------------------------------------------


def slow_rows(block):
    time.sleep(0.3)
    return block


@POSIX
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of processes that end
def test_workers_in_other_processes_may_be_any_number_and_may_die():
    distributed = pytest.importorskip("distributed")
    lazy, labels = array().map_blocks(slow_rows), array(Y)
    expected = logistic().fit(array(), labels).draws_
    for n_workers in (1, 2):
        with (
            distributed.LocalCluster(
                n_workers, threads_per_worker=1, dashboard_address=":0"
            ) as cluster,
            distributed.Client(cluster),
            dask.config.set(scheduler="distributed"),
        ):
            model = logistic().fit(lazy, labels)
            np.testing.assert_array_equal(model.draws_, expected)
            assert model.predict(lazy).compute().shape == (N,)
            victim = next(iter(cluster.workers.values())).pid
            killer = threading.Timer(0.8, os.kill, (victim, signal.SIGKILL))
            killer.start()
            np.testing.assert_array_equal(logistic().fit(lazy, labels).draws_, expected)
            killer.join()
            assert victim != next(iter(cluster.workers.values())).pid


@pytest.mark.parametrize(
    "model", [BayesianLogisticRegression(), BayesianLinearRegression(), DRBMClassifier()]
)
def test_a_chunk_of_a_stream_is_in_memory(model):
    with pytest.raises(TypeError, match="chunk of rows in memory, and X is in partitions"):
        model.partial_fit(array(), Y)


# -- factors ----------------------------------------------------------------------------------

TOWN = np.array([f"t{k:02d}" for k in range(9)])[np.sort(np.arange(N) % 9)]  # few in each partition
WITH_TOWN = pd.DataFrame({"a": X[:, 0], "town": pd.Categorical(TOWN), "y": Y})


@pytest.fixture(scope="module")
def alone():
    """Of every tenth of these rows, in memory."""
    rows = WITH_TOWN[::10]
    return BayesianLogisticRegression(random_state=0).fit(rows[["a", "town"]], rows["y"])


@pytest.mark.parametrize("known", [True, False])
def test_columns_of_categories_are_factors_whatever_a_partition_lacks(alone, known):
    rows = frame(WITH_TOWN[::10], (500, 1, 400, 299))
    rows = rows if known else rows.assign(town=rows["town"].cat.as_unknown())
    model = BayesianLogisticRegression(random_state=0).fit(rows[["a", "town"]], rows["y"])
    assert model.coef_names_.tolist() == alone.coef_names_.tolist()
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=0.1 * alone.coef_std_.min())
    np.testing.assert_allclose(model.coef_std_, alone.coef_std_, rtol=0.1)
    proba = model.predict_proba(rows[["a", "town"]]).compute()
    np.testing.assert_allclose(
        proba, alone.predict_proba(WITH_TOWN[["a", "town"]][::10]), atol=0.01
    )
    new = pd.DataFrame({"a": [0.0, 0.0], "town": pd.Categorical(["elsewhere", "t01"])})
    ends = model.predict_interval(dd.from_pandas(new, npartitions=2)).compute()
    np.testing.assert_array_equal(ends, model.predict_interval(new))
    model.set_params(new_levels="refuse")
    model.predict(rows[["a", "town"]]).compute()
    with pytest.raises(ValueError, match="see: 'elsewhere'"):
        model.predict(dd.from_pandas(new, npartitions=1)).compute()


def test_columns_of_text_are_factors_by_name_and_refused_otherwise():
    rows = frame(WITH_TOWN.astype({"town": object}))
    with pytest.raises(ValueError, match=r"'town'; give such a column the type category"):
        logistic().fit(rows[["a", "town"]], rows["y"])
    named = logistic(categorical_features=["town"]).fit(rows[["a", "town"]], rows["y"])
    assert len(named.factors_["town"].levels) == 9
    with pytest.raises(ValueError, match="categorical_features: the columns of an array"):
        logistic(categorical_features=[0]).fit(da.from_array(X, chunks=4000), Y)
