"""Rounds of draws, and what may happen between them."""

import importlib.util
import signal
import subprocess
import sys
import warnings
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import POSIX, differences, leaves
from joblib import parallel_config
from short_fits import EACH, MODELS, SHORT, X, fitted, y_of
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import (
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    VariationalEM,
    callbacks,
    stored,
)
from skbayes_sg.callbacks import Callback, Checkpoint, ConvergenceStop, FitSoFar, TimeLimit
from skbayes_sg.chains import run
from skbayes_sg.samplers import SGFS, SGLD

pytestmark = [
    pytest.mark.usefixtures("_short_searches"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


class At(Callback):
    """Does something when so many draws are there."""

    def __init__(self, n_draws, action):
        self.n_draws, self.action = n_draws, action

    def after_block(self, progress):
        return bool(progress.drawn >= self.n_draws and self.action(progress))


NEVER = At(np.inf, None)


@cache
def whole(model, *callbacks):
    """A fit that runs to its end; tests only read it."""
    return fitted(model, *callbacks)


def interrupt(*_):
    raise KeyboardInterrupt


# -- rounds -----------------------------------------------------------------------------------


@EACH
@pytest.mark.quick("logistic", "minibatches", "linear", "network")
def test_rounds_change_no_draw(model, monkeypatch):
    """And no figure either where no callback looks on."""
    one = whole(model)
    np.testing.assert_array_equal(whole(model, NEVER).draws_, one.draws_)
    with parallel_config(backend="threading"):
        parallel = fitted(model, NEVER, n_jobs=2)
    np.testing.assert_array_equal(parallel.draws_, one.draws_)
    monkeypatch.setattr(run, "_SECONDS", 0.0)
    several = fitted(model)
    np.testing.assert_array_equal(several.draws_, one.draws_)
    assert several.diagnostics_ == one.diagnostics_ or np.isnan(one.diagnostics_["r_hat_max"])


# -- Ctrl-C -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("as_drawn")
@EACH
@pytest.mark.quick("logistic", "minibatches", "linear", "network")
def test_an_interrupt_keeps_what_was_drawn(model):
    draws = fitted(model).draws_
    part = clone(model).set_params(warm_start=True).set_callbacks(At(9, interrupt))
    said = r"each chain has (9|32) of 40 draws, which are"
    with pytest.warns(ConvergenceWarning, match=said), pytest.raises(KeyboardInterrupt):
        part.fit(X, y_of(model))
    n_kept = part.draws_.shape[1]
    np.testing.assert_array_equal(part.draws_, draws[:, :n_kept])
    assert np.isfinite(part.predict(X)).all()
    rest = part.set_callbacks().set_params(n_draws=40 - n_kept).fit(X, y_of(model))
    np.testing.assert_array_equal(rest.draws_, draws[:, n_kept:])


def test_an_interrupt_of_a_long_run_needs_no_callback(monkeypatch):
    steps = []

    def step_size(t):
        steps.append(t)
        if len(steps) == 2 * (8 + 64) + 100:  # of two groups, in their second round
            raise KeyboardInterrupt
        return 1e-5

    monkeypatch.setattr(run, "_SECONDS", 0.0)
    model = BayesianLogisticRegression(SGLD(step_size, batch_size=10), **SHORT | {"n_chains": 2})
    said = "each chain has 32 of 400 draws"
    with pytest.warns(ConvergenceWarning, match=said), pytest.raises(KeyboardInterrupt):
        fitted(model, n_draws=400)


@EACH
def test_an_interrupt_before_the_fourth_draw_is_one(model, monkeypatch):
    monkeypatch.setattr(run, "_FEWEST_DRAWS", 41)
    new = clone(model).set_callbacks(At(1, interrupt))
    before = leaves(new)
    with pytest.raises(KeyboardInterrupt):
        new.fit(X, y_of(model))
    assert not differences(before, leaves(new))


def test_an_interrupt_keeps_the_draws_in_a_pipeline_and_ends_a_search():
    model = clone(MODELS["minibatches"]).set_callbacks(At(9, interrupt))
    pipeline = make_pipeline(StandardScaler(), model)
    with pytest.raises(KeyboardInterrupt):
        pipeline.fit(X, y_of(model))
    assert pipeline[-1].draws_.shape[1] == 9
    pytest.importorskip("sklearn.callback")  # where a clone has the callbacks
    search = GridSearchCV(pipeline, {}, cv=2)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y_of(model))


# -- early ends -------------------------------------------------------------------------------


def test_convergence_ends_the_sampling_without_a_warning():
    model = BayesianLogisticRegression(n_draws=1000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fitted(model, ConvergenceStop(r_hat=1.02, ess=300))
    assert found.draws_.shape[1] < 1000
    assert found.diagnostics_["r_hat_max"] <= 1.02
    assert min(found.diagnostics_["ess_min"], found.diagnostics_["ess_tail_min"]) >= 300


def progress_of(figures=None, seconds=0.0, weight=1.0):
    """A fit that burned in and has eight draws."""
    burnt = [SimpleNamespace(draws=np.empty((2, 0, 1)), weights=np.empty(0))]
    drawn = [SimpleNamespace(draws=np.empty((2, 8, 1)), weights=np.full(8, weight))]
    fitted = None if figures is None else lambda: SimpleNamespace(diagnostics_=figures)
    return FitSoFar(None, [burnt, drawn], 100, seconds, fitted, None)


@pytest.mark.parametrize(
    ("changed", "ends"),
    [
        ({}, True),
        ({"ess_min": 399}, False),
        ({"ess_tail_min": 399}, False),
        ({"r_hat_max": 1.02}, False),
    ],
)
def test_convergence_is_of_bulk_and_tails_and_between_chains(changed, ends):
    figures = {"r_hat_max": 1.005, "ess_min": 500, "ess_tail_min": 450} | changed
    assert ConvergenceStop().after_block(progress_of(figures)) == ends


def test_draws_that_do_not_count_are_not_diagnosed():
    """Of a phase whose step is still too long; `fitted` would have no moments."""
    assert not ConvergenceStop().after_block(progress_of(weight=0.0))


def test_a_checkpoint_is_written_so_many_seconds_after_the_last(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(stored, "write", lambda file, parts: written.append(parts))
    checkpoint = Checkpoint(tmp_path / "fit.npz", every=10)
    for seconds in (4, 11, 15, 20, 22, 31):
        before = len(written)
        assert not checkpoint.after_block(progress_of(seconds=seconds))
        assert (len(written) > before) == (seconds in (11, 22))
    assert len(written) == 2


def test_the_first_limit_and_the_first_checkpoint_hold(tmp_path, monkeypatch):
    monkeypatch.setattr(callbacks, "time", lambda: 1000.0)
    files = [Checkpoint(tmp_path / "one"), Checkpoint(tmp_path / "two")]
    for limits in ((10.0, 500.0), (500.0, 10.0)):
        given = [*map(TimeLimit, limits), *files]
        runner = callbacks.CallbackRunner(SimpleNamespace(_skl_callbacks=given), None)
        assert runner.end == 1010.0
        assert runner.checkpoint is files[0]


def test_a_fit_that_is_complete_leaves_no_part_of_a_file(tmp_path):
    checkpoint = Checkpoint(tmp_path / "fit.npz")
    for name in ("fit.npz", "fit.npz.unfinished"):
        (tmp_path / name).write_text("of a killed process")
    checkpoint.remove()
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("as_drawn")
@EACH
@pytest.mark.quick("logistic", "minibatches", "linear", "network")
def test_a_time_limit_ends_the_fit(model):
    """And so does a callback that knows from the first draw on, with as many as figures need."""
    assert fitted(model, At(1, lambda progress: True)).draws_.shape[1] == 8
    assert fitted(model, TimeLimit(1e-9)).draws_.shape[1] == 8
    late = fitted(model, TimeLimit(1e9))
    np.testing.assert_array_equal(late.draws_, fitted(model).draws_)


@pytest.mark.parametrize("name", ["minibatches", "network"])
def test_an_early_end_says_how_many_draws_there_are_and_keeps_the_file(name, tmp_path):
    """And the same fit goes on from there, to the draws of the unbroken one."""
    path, model = tmp_path / "fit.npz", MODELS[name]
    ends = At(12, lambda progress: True)
    said = rf"^At ended the sampling: each chain has 12 of 40 draws, .* goes on from {path}$"
    with pytest.warns(ConvergenceWarning, match=said):
        part = fitted(model, Checkpoint(path), ends)
    assert part.draws_.shape[1] == 12
    np.testing.assert_array_equal(fitted(model, Checkpoint(path)).draws_, fitted(model).draws_)
    assert not path.exists()


@pytest.mark.usefixtures("as_drawn")
def test_a_time_limit_after_burn_in_warns_and_keeps_the_file(tmp_path):
    path, model = tmp_path / "fit.npz", MODELS["linear"]
    limit = TimeLimit(1e9)
    limit.after_block = lambda progress: progress.telling  # as if the time were up then
    with pytest.warns(ConvergenceWarning) as record:
        fitted(model, Checkpoint(path), limit)
    said = [str(each.message) for each in record if "TimeLimit" in str(each.message)]
    assert said == [
        "TimeLimit ended the sampling: each chain has 8 of 40 draws, which are kept; raise "
        f"seconds; the same fit, called again, goes on from {path}"
    ]
    with pytest.warns(ConvergenceWarning, match=r"8 of 40 .*; with warm_start=True the next fit"):
        fitted(model, limit)
    np.testing.assert_array_equal(fitted(model, Checkpoint(path)).draws_, fitted(model).draws_)


def test_an_end_between_two_rounds_keeps_the_file_too(tmp_path, monkeypatch):
    monkeypatch.setattr("skbayes_sg.diagnostics.judgements.ENOUGH_ESS", 1e9)
    monkeypatch.setattr("skbayes_sg.inference.one_mode._NORMAL_DRAWS", 3 * 10)
    monkeypatch.setattr("skbayes_sg.inference.one_mode._MOST_DRAWS", 3 * 40)
    path, model = tmp_path / "fit.npz", clone(MODELS["logistic"]).set_params(n_draws="auto")
    said = "{} ended the sampling: each chain has 10 of 15 draws"
    with pytest.warns(ConvergenceWarning, match=said.format("At")):
        fitted(model, Checkpoint(path), At(10, lambda progress: True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(callbacks, "time_is_up", lambda: True)
        with pytest.warns(ConvergenceWarning, match=said.format("TimeLimit")):
            fitted(model, Checkpoint(path), NEVER)
    whole = fitted(model)
    assert whole.draws_.shape[1] == 40
    np.testing.assert_array_equal(fitted(model, Checkpoint(path)).draws_, whole.draws_)


def test_a_fit_whose_burn_in_was_cut_short_is_not_saved(tmp_path):
    """It would go on without."""
    path = tmp_path / "fit.npz"
    with pytest.warns(ConvergenceWarning) as record:
        fitted(MODELS["minibatches"], TimeLimit(1e-9), Checkpoint(path, every=1e-9), burn_in=400)
    said = [str(each.message) for each in record if "TimeLimit" in str(each.message)]
    assert any("steps of burn-in" in each and each.endswith("raise seconds") for each in said)
    assert any("each chain has 8 of 40 draws, which are kept; raise seconds" in s for s in said)
    assert not any("goes on" in each for each in said)
    assert not list(tmp_path.iterdir())


def time_is_up_after(n_looks, monkeypatch):
    """The clock of a fit jumps when it was looked at so many times."""
    looks = iter(range(n_looks))
    monkeypatch.setattr(run, "wall_clock", lambda: 0.0 if next(looks, None) is not None else 1e12)
    return TimeLimit(1e-3)


@pytest.mark.parametrize(
    ("n_looks", "cut"),
    [
        (0, r"rounds of warm-up \(0 of 4\)"),
        (1, r"updates of the prior precision \(4 of 100\)"),
        (30, r"updates of the prior precision \(\d+ of 100\)"),
    ],
)
def test_a_time_limit_stops_learning_and_burn_in_and_says_so(n_looks, cut, monkeypatch):
    model = BayesianLogisticRegression(
        SGLD(1e-3, batch_size=20), VariationalEM(n_updates=100), burn_in=400, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match=rf"^TimeLimit: .*: {cut}, .*burn-in \(50 of 400\)"):
        part = fitted(model, time_is_up_after(n_looks, monkeypatch))
    assert part.draws_.shape[1] == 9  # three blocks
    assert np.isfinite(part.predict_proba(X)).all()


def test_a_time_limit_stops_the_pilots_and_the_search_for_modes(monkeypatch):
    pilots = BayesianLogisticRegression(SGFS(batch_size=20), 1.0, random_state=0)
    fitted(pilots, time_is_up_after(0, monkeypatch))
    monkeypatch.setattr("skbayes_sg.samplers.sghmc._FEWEST_STEPS", 30)  # 150 steps to a mode
    modes = BayesianMLPClassifier((4,), n_chains=2, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"steps towards a mode \(\d+ of \d{3,}\)"):
        fitted(modes, time_is_up_after(0, monkeypatch))


@EACH
def test_the_time_of_a_fit_is_the_same_for_workers(model):
    one = fitted(model, TimeLimit(1e-9))
    with parallel_config(backend="threading"):
        two = fitted(model, TimeLimit(1e-9), n_jobs=2)
    np.testing.assert_array_equal(one.draws_, two.draws_)


@pytest.mark.parametrize(
    "make", [lambda: TimeLimit(0.0), lambda: ConvergenceStop(ess=-1.0), lambda: Checkpoint("a", 0)]
)
def test_impossible_limits_are_refused_by_name(make):
    with pytest.raises(ValueError, match=r"(seconds|ess|every) must be positive"):
        make()


# -- checkpoints ------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("n_draws", [1, 20])
@pytest.mark.quick("logistic", "minibatches", "linear", "network")
def test_an_interrupted_fit_goes_on_from_its_checkpoint(model, n_draws, tmp_path):
    path, one = tmp_path / "fit.npz", whole(model, NEVER)
    with pytest.raises(KeyboardInterrupt):
        fitted(model, Checkpoint(path, every=1e-9), At(n_draws, interrupt))
    assert path.exists()
    again = fitted(model, Checkpoint(path))
    assert not path.exists()
    np.testing.assert_array_equal(again.draws_, one.draws_)
    assert again.n_iter_ == one.n_iter_
    assert again.n_passes_ == one.n_passes_
    np.testing.assert_equal(again.diagnostics_, one.diagnostics_)


CHILD = """
import os, signal, sys
sys.path[:0] = sys.argv[2:]
from short_fits import MODELS, fitted
from skbayes_sg.callbacks import Callback, Checkpoint

class Death(Callback):
    def after_block(self, progress):
        if progress.drawn >= 20:
            os.kill(os.getpid(), signal.SIGKILL)

fitted(MODELS["minibatches"], Checkpoint(sys.argv[1], every=1e-9), Death())
"""


@POSIX
def test_a_killed_fit_goes_on_from_its_checkpoint(tmp_path, request):
    path, here = tmp_path / "fit.npz", str(request.path.parent)
    command = [sys.executable, "-c", CHILD, str(path), here, *filter(None, sys.path)]
    died = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    with path.open("rb") as file:
        assert run.drawn(stored.read(file)[-1]) == 20
    model = MODELS["minibatches"]
    np.testing.assert_array_equal(fitted(model, Checkpoint(path)).draws_, whole(model).draws_)


@pytest.mark.parametrize("change", [{"thin": 3}, {"random_state": 1}, {"prior_precision": 2.0}])
def test_the_checkpoint_of_another_fit_is_refused_and_kept(change, tmp_path):
    path, model = tmp_path / "fit.npz", MODELS["linear"]
    with pytest.raises(KeyboardInterrupt):
        fitted(model, Checkpoint(path, every=1e-9), At(5, interrupt))
    with pytest.raises(ValueError, match=r"fit\.npz is of a fit with other data"):
        fitted(model, Checkpoint(path), **change)
    assert path.exists()


# -- scikit-learn's callbacks -----------------------------------------------------------------


class Recorder:
    """What a callback of scikit-learn hears."""

    max_propagation_depth = None
    heard = []  # noqa: RUF012, one list for all copies

    def setup(self, estimator, context):
        self.heard.append("setup")

    def teardown(self, estimator, context):
        self.heard.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.heard.append(("begin", context.task_name, context.max_subtasks))

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        score = None
        if context.task_name == "block" and fitted_estimator is not None:
            score = fitted_estimator.score(X, y_of(fitted_estimator))
        self.heard.append(("end", context.task_name, score))
        return False


@pytest.fixture
def recorder():
    pytest.importorskip("sklearn.callback")
    Recorder.heard.clear()
    return Recorder()


def test_a_fit_is_a_tree_of_tasks(recorder):
    fitted(MODELS["minibatches"], recorder)
    heard = Recorder.heard
    assert heard[0] == "setup"
    assert heard[-1] == "teardown"
    begun = [one[1:] for one in heard[1:-1] if one[0] == "begin"]
    assert begun == [("fit", None), ("prepare", 0), ("draw", 40), *[("block", 0)] * 40]
    scores = [one[2] for one in heard[1:-1] if one[:2] == ("end", "block")]
    assert scores[:7] == [None] * 7
    assert min(scores[7:]) > 0.5


def test_the_last_block_may_be_shorter(recorder):
    """Of 250 draws blocks have three, and the last has one; it is announced with the others."""
    fitted(clone(MODELS["minibatches"]).set_params(n_draws=250), recorder)
    begun = [one[1:] for one in Recorder.heard if one[0] == "begin"]
    assert ("draw", begun.count(("block", 0))) in begun
    assert begun.count(("block", 0)) == 84


def test_callbacks_reach_a_fit_through_pipelines_and_searches(recorder):
    few = clone(MODELS["minibatches"]).set_params(n_draws=10)
    pipeline = make_pipeline(StandardScaler(), few)
    name = f"{pipeline.steps[-1][0]}__prior_precision"
    search = GridSearchCV(pipeline, {name: [0.1, 1.0]}, cv=2)
    search.set_callbacks(recorder).fit(X, y_of(few))
    blocks = [one for one in Recorder.heard if one[:2] == ("end", "block")]
    assert len(blocks) == 5 * 10


def test_a_refused_fit_closes_its_callbacks(recorder):
    with pytest.raises(KeyboardInterrupt):
        fitted(MODELS["minibatches"], recorder, At(2, interrupt))
    assert Recorder.heard[-1] == "teardown"


def test_what_is_no_callback_is_refused():
    with pytest.raises(TypeError, match="callbacks must be instances"):
        MODELS["linear"].set_callbacks(3)


def test_before_scikit_learn_1_9_callbacks_are_set_by_our_own_mixin(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)
    spec = importlib.util.spec_from_file_location("callbacks_of_1_8", callbacks.__file__)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    estimator, stop = module.CallbackSupportMixin(), module.ConvergenceStop()
    assert estimator.set_callbacks(stop)._skl_callbacks == [stop]
    with pytest.raises(TypeError, match=r"others need scikit-learn 1\.9"):
        estimator.set_callbacks(print)
    assert module.with_callbacks(len) is len
