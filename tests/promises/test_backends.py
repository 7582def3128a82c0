"""Chains in other processes and on other machines: joblib's backends, all with the same draws."""

import os
from functools import cache

import joblib
import numpy as np
import pytest
from joblib import parallel_config

from skbayes_sg import BayesianLogisticRegression, BayesianMLPClassifier
from skbayes_sg.chains.run import in_parallel
from skbayes_sg.data import is_out_of_core

RNG = np.random.default_rng(0)
X = RNG.standard_normal((5000, 5))
Y = (X[:, 0] + RNG.logistic(size=5000) > 0).astype(int)
SHORT = {"n_chains": 8, "n_draws": 4, "random_state": 0}
MODELS = {
    "coefficients": BayesianLogisticRegression(**SHORT),
    "network": BayesianMLPClassifier((2,), burn_in=10, thin=1, **SHORT),
}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def draws(name, n_jobs=None):
    return MODELS[name].set_params(n_jobs=n_jobs).fit(X, Y).draws_


@cache
def of_this_process(name):
    return draws(name)


def assert_same_draws(backend):
    """Groups of chains run on other workers, and give the same draws."""
    with parallel_config(backend=backend):
        assert os.getpid() not in in_parallel(lambda _: os.getpid(), range(4), n_jobs=2)
        for name in MODELS:
            np.testing.assert_array_equal(draws(name, n_jobs=2), of_this_process(name))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of processes that end
def test_workers_of_dask():
    distributed = pytest.importorskip("distributed")
    alone = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(2, **alone) as cluster, distributed.Client(cluster):
        assert_same_draws("dask")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of processes that end
def test_workers_of_ray():
    ray = pytest.importorskip("ray")
    joblib_of_ray = pytest.importorskip("ray.util.joblib")
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR")
    try:
        joblib_of_ray.register_ray()
        assert_same_draws("ray")
    finally:
        ray.shutdown()


# -- arrays that joblib maps ------------------------------------------------------------------


def fitted(table):
    return is_out_of_core(table), type(table), MODELS["coefficients"].fit(table, Y).draws_


@pytest.mark.slow
def test_an_array_that_joblib_maps_for_its_workers_is_in_memory(monkeypatch, tmp_path):
    """joblib maps what is large; a file of the user is read in blocks there too."""
    monkeypatch.setattr("skbayes_sg.data.blockwise.bytes_to_keep", lambda: 0)
    np.save(tmp_path / "X.npy", X)
    mine = np.load(tmp_path / "X.npy", mmap_mode="r")
    with joblib.Parallel(2, max_nbytes=1000) as parallel:
        of_array, of_mine = parallel(joblib.delayed(_as_in_a_test)(table) for table in (X, mine))
    assert of_array[:2] == (False, np.memmap)
    np.testing.assert_array_equal(of_array[2], of_this_process("coefficients"))
    assert of_mine[:2] == (True, np.memmap)
    np.testing.assert_array_equal(of_mine[2], fitted(mine)[2])


def _as_in_a_test(table):
    """Another process does not know what this one has patched."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skbayes_sg.data.blockwise.bytes_to_keep", lambda: 0)
        return fitted(table)
