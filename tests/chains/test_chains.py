import warnings
from itertools import count
from time import monotonic

import numpy as np
import pytest
from conftest import logistic_data
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel
from threadpoolctl import threadpool_info, threadpool_limits

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.chains import run
from skbayes_sg.chains.run import (
    Execution,
    Length,
    run_chain,
    run_chains,
    start_chains,
)
from skbayes_sg.data.threads import of_blocks, one_thread, threads_of_blas
from skbayes_sg.models import Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import HMC, SGFS, SGLD, PolynomialDecay


def test_groups_depend_on_the_number_of_chains_alone(posterior):
    sampler, sizes = SGLD(step_size=1e-3), []
    for n in (1, 2, 3, 4, 8, 9, 16):
        states = start_chains(sampler, posterior, np.zeros((n, 21)), np.random.SeedSequence(0))
        sizes.append([len(state.theta) for state in states])
    assert sizes == [[1], [1, 1], [2, 1], [2, 2], [4, 4], [3, 3, 3], [4, 4, 4, 4]]


def test_chains_without_minibatches_are_one_group_where_a_step_is_overhead(posterior):
    sizes = {}
    for n_rows in (200, 20_000):
        rows = posterior.of_rows(np.arange(n_rows))
        for sampler in (HMC(), SGLD(preconditioner="diag")):
            states = start_chains(sampler, rows, np.zeros((16, 21)), np.random.SeedSequence(0))
            sizes[n_rows, sampler.rejects] = [len(state.theta) for state in states]
    assert sizes[200, True] == [16]
    assert sizes[20_000, True] == [8, 8]
    assert sizes[200, False] == sizes[20_000, False] == [4, 4, 4, 4]


def test_groups_have_the_fewest_chains_that_are_asked_for(posterior):
    sizes = []
    for n, fewest in ((2, 8), (8, 8), (15, 8), (16, 8), (8, 4)):
        theta, seed = np.zeros((n, 21)), np.random.SeedSequence(0)
        states = start_chains(HMC(), posterior, theta, seed, fewest)
        sizes.append([len(state.theta) for state in states])
    assert sizes == [[2], [8], [15], [8, 8], [4, 4]]


def test_groups_have_random_numbers_and_rows_of_their_own(posterior):
    """Else R-hat compares copies, and finds that they agree."""
    sampler = SGLD(step_size=1e-3, batch_size=50)
    states = start_chains(sampler, posterior, np.zeros((8, 21)), np.random.SeedSequence(0))
    assert len(states) == 2
    rows = [state.rows.draw() for state in states]
    normals = [state.normals.standard_normal(100) for state in states]
    assert (rows[0] != rows[1]).any(axis=-1).all()
    assert not np.isin(normals[0], normals[1]).any()


@pytest.fixture(scope="module")
def posterior():
    X, y = logistic_data(
        20_000, 20, dtype=np.float32
    )  # large enough for joblib to map it from disk
    return Posterior.of(Softmax(20, 2), X, y, 1.0)


def test_draws_are_bitwise_the_same_for_every_n_jobs_and_backend(posterior):
    from joblib import parallel_config

    sampler = SGFS()
    states = start_chains(sampler, posterior, np.zeros((3, 21)), np.random.SeedSequence(1))
    length = Length(8, 8, 2)
    one = run_chains(sampler, posterior, states, length, Execution(n_jobs=1))
    for backend in ("loky", "threading"):
        with parallel_config(backend=backend):
            two = run_chains(sampler, posterior, states, length, Execution(n_jobs=2))
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a.draws, b.draws)
            np.testing.assert_array_equal(a.stein.product, b.stein.product)


def test_without_a_callback_a_round_takes_a_second(gaussian, monkeypatch):
    """By a clock that a draw moves by so much; the first round has the steps of one block, 64."""
    sampler = SGLD(step_size=1e-3, batch_size=20)
    draw_more = run.go_on

    def rounds(n_draws, seconds_a_draw):
        sizes = []

        def counted(sampler, target, length, *given):
            sizes.append(length.n_draws)
            return draw_more(sampler, target, length, *given)

        monkeypatch.setattr(run, "perf_counter", lambda: sum(sizes) * seconds_a_draw)
        monkeypatch.setattr(run, "go_on", counted)
        theta, seed = np.zeros((1, 4)), np.random.SeedSequence(0)
        states = start_chains(sampler, gaussian.posterior, theta, seed)
        run_chains(sampler, gaussian.posterior, states, Length(n_draws, thin=2), Execution())
        return sizes

    assert rounds(10, 0.01) == [10]
    assert rounds(500, 0.01) == [32, 96, 96, 96, 180]  # the rest takes no more than two seconds
    assert rounds(100, 10.0) == [32, 32, 36]


def test_stop_and_go_on_equals_one_long_run_and_leaves_the_state_alone(posterior):
    posterior = posterior.of_rows(np.arange(2000))
    for sampler in (SGFS(), SGFS(adapt="always"), SGLD(preconditioner="diag")):
        (state, _) = start_chains(sampler, posterior, np.zeros((4, 21)), np.random.SeedSequence(2))
        long = run_chain(sampler, posterior, state, Length(50, 40, 3))
        first = run_chain(sampler, posterior, state, Length(20, 40, 3))
        second = run_chain(sampler, posterior, first.state, Length(30, thin=3))
        np.testing.assert_array_equal(
            long.draws, np.concatenate([first.draws, second.draws], axis=1)
        )
        np.testing.assert_array_equal(long.state.theta, second.state.theta)
        assert state.t == 0


def test_the_draw_kept_is_the_point_its_gradient_was_taken_at(posterior):
    """With all rows in every minibatch the gradient at the draw can be computed again."""
    sampler, theta = (
        SGFS(batch_size=20_000),
        0.1 * np.random.default_rng(0).standard_normal((4, 21)),
    )
    (state, _) = start_chains(sampler, posterior, theta, np.random.SeedSequence(3))
    chain = run_chain(sampler, posterior, state, Length(1))
    with one_thread():  # as in the chain
        at_draw = posterior.gradient(
            chain.draws[:, 0], posterior.scores(chain.draws[:, 0], slice(None))
        )
    np.testing.assert_allclose(chain.state.gradient, at_draw)


def test_divergence_names_sampler_step_and_remedy(gaussian):
    sampler = SGLD(step_size=1.0, batch_size=20)
    states = start_chains(sampler, gaussian.posterior, np.zeros((2, 4)), np.random.SeedSequence(0))
    with pytest.raises(
        FloatingPointError, match=r"SGLD\(.*\) diverged by step \d+; lower step_size"
    ):
        run_chains(sampler, gaussian.posterior, states, Length(1000), Execution())


def test_a_matrix_that_overflows_on_the_way_is_a_divergence(gaussian):
    """As that of a family whose own parameter is far out, where its coefficients are not yet."""

    class Overflowing(SGLD):
        def step(self, state, target):
            raise np.linalg.LinAlgError("Eigenvalues did not converge")

    sampler = Overflowing(step_size=1e-3, batch_size=20)
    states = start_chains(sampler, gaussian.posterior, np.zeros((2, 4)), np.random.SeedSequence(0))
    with pytest.raises(FloatingPointError, match=r"diverged by step 0; lower step_size"):
        run_chains(sampler, gaussian.posterior, states, Length(10), Execution())


def test_a_draw_that_overflows_in_the_precision_kept_has_diverged(gaussian):
    sampler, far = SGLD(step_size=1e-300, batch_size=20), np.full((2, 4), 1e60)
    (state, _) = start_chains(sampler, gaussian.posterior, far, np.random.SeedSequence(0))
    assert np.isfinite(run_chain(sampler, gaussian.posterior, state, Length(4)).draws).all()
    with pytest.raises(FloatingPointError, match="diverged by step"):
        run_chain(sampler, gaussian.posterior, state, Length(4), np.float32)


def test_chains_have_threads_where_steps_are_long_and_blas_may_have_them(monkeypatch):
    """And the same draws; few rows, a number of jobs, and a limit of one thread have none."""
    asked: list[dict] = []

    def parallel(**how):
        asked.append(how)
        return Parallel(**how)

    monkeypatch.setattr("skbayes_sg.data.threads.cpu_count", lambda: 2)
    monkeypatch.setattr("skbayes_sg.chains.run.Parallel", parallel)
    X, y = make_classification(3000, 4, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    model = BayesianLogisticRegression("hmc", 1.0, n_draws=4, burn_in=4, thin=1, random_state=0)

    def draws(n_jobs, n_rows=3000, threads=2):
        asked.clear()
        with threadpool_limits(threads), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.set_params(n_jobs=n_jobs).fit(X[:n_rows], y[:n_rows])
        return model.draws_, {how.get("prefer") for how in asked}

    found, how = draws(None)
    assert how == {"threads"}
    assert asked[0]["n_jobs"] == 2
    for n_jobs, n_rows, threads in ((1, 3000, 2), (None, 300, 2)):
        others, how = draws(n_jobs, n_rows, threads)
        assert how == {None}
        if n_rows == len(X):
            np.testing.assert_array_equal(others, found)
    alone, _ = draws(None, threads=1)
    assert asked[0]["n_jobs"] == 1
    np.testing.assert_array_equal(alone, found)


@pytest.mark.parametrize("n_jobs", [1, 2, None])
def test_tasks_treat_overflow_as_the_thread_that_asks_for_them(n_jobs):
    """In other processes and threads too, where NumPy begins with its defaults."""
    with np.errstate(divide="ignore", invalid="raise"), threadpool_limits(2, user_api="blas"):
        found = run.in_parallel(_errstate, range(3), n_jobs, 10**9)
    assert {(each["divide"], each["invalid"]) for each in found} == {("ignore", "raise")}


def _errstate(_):
    return np.geterr()


def test_the_threads_of_blas_are_those_outside_of_its_limit():
    with threadpool_limits(1):
        assert threads_of_blas() == 1
    before = threads_of_blas()
    with one_thread(), one_thread():
        assert threads_of_blas() == before


def test_an_error_between_two_blocks_leaves_blas_its_threads():
    """Also while somebody holds the error, and with it the blocks that were not asked for."""

    def threads():
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    before, left = threads(), of_blocks(lambda block: block, [0, 1, 2])
    assert next(left) == 0
    until = monotonic() + 10.0
    while threads() != before and monotonic() < until:  # the last block may be on its way
        pass
    assert threads() == before
    assert list(left) == [1, 2]


def test_rounds_and_their_weights_and_sums_are_those_of_one_run(gaussian):
    sampler = SGLD(step_size=PolynomialDecay(1e-3, 10, 1.0), batch_size=20)
    theta, seed = np.zeros((2, 4)), np.random.SeedSequence(0)
    states = start_chains(sampler, gaussian.posterior, theta, seed)
    each = Execution(on_block=lambda blocks: False)  # a round for each draw
    one, many = (
        run_chains(sampler, gaussian.posterior, states, Length(30, 5, 2), execution)
        for execution in (Execution(), each)
    )
    for whole, parts in zip(one, many, strict=True):
        assert len(np.unique(whole.weights)) == 30
        np.testing.assert_array_equal(parts.weights, whole.weights)
        np.testing.assert_array_equal(parts.draws, whole.draws)
        assert parts.stein.count == whole.stein.count == 60
        np.testing.assert_allclose(parts.stein.product, whole.stein.product)


def test_burn_in_is_forgotten_after_an_eighth_a_quarter_and_a_half(gaussian):
    class Forgetting(SGLD):
        def restart(self, state, target):
            forgotten.append(state.t)

    forgotten = []
    sampler = Forgetting(step_size=1e-3, batch_size=20)
    states = start_chains(sampler, gaussian.posterior, np.zeros((1, 4)), np.random.SeedSequence(0))
    run_chain(sampler, gaussian.posterior, states[0], Length(1, 80))
    assert forgotten == [10, 20, 40]


def test_time_and_rows_of_a_run_are_those_of_all_groups(gaussian, monkeypatch):
    sampler = SGLD(step_size=1e-3, batch_size=20)
    states = start_chains(sampler, gaussian.posterior, np.zeros((6, 4)), np.random.SeedSequence(0))
    assert [len(state.theta) for state in states] == [3, 3]
    ticks = count()
    monkeypatch.setattr(run, "_CLOCK", lambda: next(ticks) * 0.01)  # a step takes so long
    length = Length(50, 20, 3)
    taken = run.seconds(sampler, gaussian.posterior, states, length)
    assert taken == pytest.approx(0.01 * (20 + 3 * 50) * 2)
    chains = run_chains(sampler, gaussian.posterior, states, length, Execution())
    read = run.rows_touched(sampler, [chain.state for chain in chains])
    assert read == 20 * (20 + 3 * 50) * 6  # of a minibatch, in each step of each chain
