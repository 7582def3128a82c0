"""What a fit leaves behind when the machine fails: full disks and memory, killed workers, signals.

The slow ones run in processes of their own and send real signals.
"""

import copy
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from conftest import LINUX, POSIX, differences, leaves
from short_fits import EACH, MODELS, X, fitted, y_of
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info, threadpool_limits

from skbayes_sg.callbacks import Callback, Checkpoint
from skbayes_sg.data.threads import _controller

try:
    import resource
except ModuleNotFoundError:
    resource = None  # limits of a process, which Windows lacks

pytestmark = [
    pytest.mark.usefixtures("_short_searches"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@pytest.fixture(scope="module")
def some():
    """Fitted models, to be copied."""
    return {name: fitted(MODELS[name]) for name in ("logistic", "minibatches", "network")}


@pytest.fixture
def interruptible():
    """SIGINT raises KeyboardInterrupt, also where it is ignored: shells do so in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class At(Callback):
    """Does something once so many draws are there."""

    def __init__(self, n_draws, action):
        self.n_draws, self.action = n_draws, action

    def after_block(self, progress):
        if progress.drawn == self.n_draws:
            self.action()
        return False


# -- a full disk ------------------------------------------------------------------------------


def fill_the_disk():
    """No file may grow beyond 2,000 bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))


@pytest.fixture
def _room_again():
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.skipif(resource is None, reason="needs a limit of the size of files")
@pytest.mark.usefixtures("_room_again")
def test_a_full_disk_leaves_the_checkpoint_before(some, tmp_path):
    path, model = tmp_path / "fit.npz", clone(MODELS["minibatches"])
    model.set_callbacks(Checkpoint(path, every=1e-9), At(20, fill_the_disk))
    before = list(vars(model))
    with pytest.raises(OSError, match=r"the checkpoint is not written.*make room or.*fit\.npz"):
        model.fit(X, y_of(model))
    assert list(vars(model)) == before
    assert list(tmp_path.iterdir()) == [path]
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    again = fitted(MODELS["minibatches"], Checkpoint(path))
    np.testing.assert_array_equal(again.draws_, some["minibatches"].draws_)
    assert not list(tmp_path.iterdir())


# -- damaged files ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The bytes of a checkpoint of half of the draws, and the draws of the unbroken fit."""
    path = tmp_path_factory.mktemp("whole") / "fit.npz"
    model = MODELS["linear"]

    def end():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(model, Checkpoint(path, every=1e-9), At(20, end))
    return path.read_bytes(), fitted(model).draws_


def nothing_is_read(*given, **more):
    raise AssertionError


def test_a_whole_checkpoint_is_read(stored, tmp_path):
    """As the tests below would pass if none were."""
    path = tmp_path / "fit.npz"
    path.write_bytes(stored[0])
    np.testing.assert_array_equal(fitted(MODELS["linear"], Checkpoint(path)).draws_, stored[1])


def flipped(whole, rng):
    bits = np.unpackbits(np.frombuffer(whole, np.uint8))
    bits[rng.integers(bits.size)] ^= 1
    return np.packbits(bits).tobytes()


DAMAGES = {
    "a bit": flipped,
    "the end": lambda whole, rng: whole[: rng.integers(len(whole))],
    "a page": lambda whole, rng: whole[:4096] + rng.bytes(4096) + whole[8192:],
    "longer": lambda whole, rng: whole + b"\0",
    "nothing is left": lambda whole, rng: b"",
    "a pickle": lambda whole, rng: pickle.dumps((3, None, None, None)),
    "a short file": lambda whole, rng: b"PK",
}


@pytest.mark.parametrize(
    ("damage", "where"),
    [(name, k) for name in DAMAGES for k in range(20 if name in ("a bit", "the end") else 1)],
)
def test_a_damaged_checkpoint_is_refused_unread_and_kept(
    damage, where, stored, tmp_path, monkeypatch
):
    path, rng = tmp_path / "fit.npz", np.random.default_rng(where)
    content = DAMAGES[damage](stored[0], rng)
    assert content != stored[0]
    path.write_bytes(content)
    monkeypatch.setattr("numpy.load", nothing_is_read)
    why = r"\(it was cut off or changed, or is another file\)"
    said = rf"fit\.npz is not a whole checkpoint of this version {why}; remove it to start"
    with pytest.raises(ValueError, match=said):
        fitted(MODELS["linear"], Checkpoint(path))
    assert path.read_bytes() == content


@POSIX
def test_a_link_in_the_way_is_not_followed(tmp_path):
    path, precious = tmp_path / "fit.npz", tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "fit.npz.unfinished").symlink_to(precious)
    fitted(MODELS["linear"], Checkpoint(path, every=1e-9))
    assert precious.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [precious]


KILLED_WHILE_IT_SAVES = """
import os, signal, sys
sys.path[:0] = sys.argv[2:]
import numpy as np
from short_fits import MODELS, fitted
from promises.test_failures import At
from skbayes_sg.callbacks import Checkpoint

def die(*given, **more):
    os.kill(os.getpid(), signal.SIGKILL)

def die_while_it_saves():
    np.lib.format.write_array = die

fitted(MODELS["linear"], At(19, die_while_it_saves), Checkpoint(sys.argv[1], every=1e-9))
"""


@POSIX
def test_what_a_killed_process_left_unfinished_is_removed(stored, tmp_path, request):
    """By the next saving, or at the end of a fit that saves no more."""
    killed, here = tmp_path / "killed", str(request.path.parents[1])
    killed.mkdir()
    command = [
        sys.executable,
        "-c",
        KILLED_WHILE_IT_SAVES,
        str(killed / "fit.npz"),
        here,
        *filter(None, sys.path),
    ]
    died = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    assert {each.name for each in killed.iterdir()} == {"fit.npz", "fit.npz.unfinished"}
    for every in (1e-9, 1e9):
        here = shutil.copytree(killed, tmp_path / str(every))
        again = fitted(MODELS["linear"], Checkpoint(here / "fit.npz", every=every))
        np.testing.assert_array_equal(again.draws_, stored[1])
        assert not list(here.iterdir())


# -- memory and workers -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (MemoryError("unable"), MemoryError, r"memory is full \(unable\); lower n_draws"),
        (BrokenExecutor("gone"), RuntimeError, r"a worker process ended .*\(gone\); lower n_jobs"),
    ],
)
def test_errors_of_the_machine_have_a_remedy(some, error, kind, message, monkeypatch):
    def fail(*given):
        raise error

    model = copy.deepcopy(some["logistic"])
    before = leaves(model)
    monkeypatch.setattr("skbayes_sg.chains.run.burn_chain", fail)
    with pytest.raises(kind, match=message):
        model.fit(X, y_of(model))
    assert not differences(before, leaves(model))


CHILD = """
import os, resource, subprocess, sys, warnings
warnings.simplefilter("ignore")
sys.path[:0] = sys.argv[2:]
from test_failures import MODELS, X, y_of
from sklearn.base import clone

def workers():
    found = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "pid=,args="],
                           capture_output=True, text=True).stdout.splitlines()
    return [int(line.split()[0]) for line in found if "popen_loky" in line]

def size():
    return int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")

model = clone(MODELS["minibatches"])
"""
KILLED = """
import signal, threading, time
def kill():
    while not workers():
        time.sleep(0.05)
    time.sleep(float(sys.argv[1]))
    os.kill(workers()[-1], signal.SIGKILL)

threading.Thread(target=kill, daemon=True).start()
model.set_params(n_jobs=2, n_draws=200_000)
before = model.get_params()
try:
    model.fit(X, y_of(model))
except RuntimeError as error:
    print(error)
assert not hasattr(model, "draws_") and model.get_params() == before
print(model.set_params(n_draws=8).fit(X, y_of(model)).draws_.shape)
"""
FULL = """
import numpy as np
model.set_params(sampler=None).fit(X, y_of(model))
before, shape = list(vars(model)), model.draws_.shape
many = np.asfortranarray(np.tile(X, (10_000, 1))), np.tile(y_of(model), 10_000)
limit = size() + int(float(sys.argv[1]) * 2**20)
resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
try:
    model.fit(*many)
except MemoryError as error:
    print(error)
assert list(vars(model)) == before and model.draws_.shape == shape
del many
print(model.set_params(n_draws=8).fit(X, y_of(model)).draws_.shape)
"""
INTERRUPTED = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it in the background
from test_failures import At
warnings.simplefilter("always")
signalled = lambda: (print("drawn", flush=True), __import__("time").sleep(0.5))
model.set_params(n_jobs=2, n_draws=40_000).set_callbacks(At(4_000, signalled))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        model.fit(X, y_of(model))
    except KeyboardInterrupt:
        pass
print(model.draws_.shape[1], [str(w.message) for w in caught])
"""


def child(script, argument, request):
    """A process group of its own that runs a script; it is joined below."""
    here = [str(request.path.parent), *filter(None, sys.path)]
    return subprocess.Popen(
        [sys.executable, "-c", CHILD + script, str(argument), *here],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ended(process, said=""):
    """What it printed; nothing of its group is left after it."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out + err
    for _ in range(100):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return said + out
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    raise AssertionError("processes are left")


@LINUX
@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 6.0])
def test_a_killed_worker_ends_the_fit_with_a_remedy(seconds, request):
    said = ended(child(KILLED, seconds, request))
    assert "lower n_jobs or n_draws" in said
    assert "(3, 8, 5)" in said


@LINUX
@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [1, 40, 100])
def test_full_memory_ends_the_fit_with_a_remedy(megabytes, request):
    said = ended(child(FULL, megabytes, request))
    assert "memory is full" in said
    assert "lower n_draws" in said
    assert "(3, 8, 5)" in said


@LINUX
@pytest.mark.slow
def test_an_interrupt_of_all_workers_keeps_what_was_drawn(request):
    """As Ctrl-C does, which reaches the workers too."""
    process = child(INTERRUPTED, 0, request)
    assert process.stdout.readline() == "drawn\n"
    os.killpg(process.pid, signal.SIGINT)
    kept, said = ended(process).split(" ", 1)
    assert 4_000 <= int(kept) < 40_000
    assert f"interrupted: each chain has {kept} of 40000 draws" in said


# -- interrupts -------------------------------------------------------------------------------

STAGES = {
    "data checks": "estimators.base.require_squares",
    "choice of the sampler": "inference.sample.choose",
    "mode search": "posterior.gaussian.finite",
    "mode search of networks": "chains.tuning._to_mode",
    "burn-in": "chains.run.burn_chain",
    "sampling": "chains.run.go_on",
    "attributes": "inference.sample.in_single_precision",
    "diagnostics": "inference.diagnose.diagnose_run",
}


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("stage", STAGES)
def test_an_interrupt_at_any_stage_leaves_the_model_as_it_was(some, stage, monkeypatch):
    def interrupted(*given, **more):
        signal.raise_signal(signal.SIGINT)

    model = copy.deepcopy(some["network" if "networks" in stage else "logistic"])
    before = leaves(model)
    monkeypatch.setattr("skbayes_sg.inference.sample._LARGE_DRAWS", 0)
    monkeypatch.setattr(f"skbayes_sg.{STAGES[stage]}", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y_of(model))
    assert not differences(before, leaves(model))


class Calls:
    """Counts the calls of functions, and sends the signal of Ctrl-C at one of them."""

    def __init__(self, moment):
        self.moment, self.made = moment, 0

    def __enter__(self):
        sys.setprofile(self._count)

    def __exit__(self, *_):
        sys.setprofile(None)

    def _count(self, frame, event, arg):
        self.made += event == "call"
        if self.made >= self.moment:
            sys.setprofile(None)
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible", "as_drawn")  # some draws have a map of their own
@EACH
def test_an_interrupt_at_any_moment_leaves_the_model_as_it_was_or_with_fewer_draws(model):
    """Forty signals, evenly over the calls of functions of a fit."""
    model, data = fitted(model, n_draws=400), (X * 2, y_of(model))
    calls = Calls(np.inf)
    with calls:
        whole = clone(model).fit(*data)
    before, interrupted = leaves(model), 0
    for moment in np.linspace(0.01, 0.99, 40) * calls.made:
        try:
            with warnings.catch_warnings(record=True) as caught, Calls(moment):
                warnings.simplefilter("always")
                model.fit(*data)
        except KeyboardInterrupt:
            interrupted += 1
        if differences(before, leaves(model)):
            n_draws = model.draws_.shape[1]
            np.testing.assert_array_equal(model.draws_, whole.draws_[:, :n_draws])
            said = [str(w.message) for w in caught if w.category is ConvergenceWarning]
            assert n_draws == 400 or any("interrupted" in one for one in said)
            model.fit(X, y_of(model))
    assert interrupted > 5


# -- threads and forks ------------------------------------------------------------------------


def test_fits_in_threads_are_those_alone(some):
    """Filters of warnings and the threads of BLAS belong to the process."""
    with ThreadPoolExecutor(len(some)) as threads:
        together = list(threads.map(lambda name: fitted(MODELS[name]), some))
    for one, other in zip(some.values(), together, strict=True):
        np.testing.assert_array_equal(one.draws_, other.draws_)
        np.testing.assert_equal(one.diagnostics_, other.diagnostics_)


def test_blas_has_its_threads_again_after_fits_in_threads():
    """Also if the first to begin ends first."""

    def threads():
        return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]

    def wait():
        begun.set()
        assert ended.wait(60)
        inside.extend(threads())

    begun, ended, inside = threading.Event(), threading.Event(), []
    if not threads():
        pytest.skip("the threads of this BLAS cannot be set")
    two = threadpool_limits(2, user_api="blas")
    for library in _controller().lib_controllers:  # or it is the only thread that may set them
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread()
    try:
        before = threads()
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(fitted, MODELS["minibatches"], At(20, begun.wait))
            second = pool.submit(fitted, MODELS["minibatches"], At(30, wait))
            first.result()
            ended.set()
            second.result()
        assert set(inside) == {1}
        assert threads() == before
    finally:
        two.restore_original_limits()


@LINUX
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_predicts_and_fits_the_same(some):
    model = some["minibatches"]
    with multiprocessing.get_context("fork").Pool(1) as pool:
        probability = pool.apply(model.predict_proba, (X,))
        draws = pool.apply(fitted, (MODELS["minibatches"],)).draws_
    np.testing.assert_array_equal(probability, model.predict_proba(X))
    np.testing.assert_array_equal(draws, model.draws_)
