"""Files of values: all kinds come back as they were, and no file runs code."""

import hashlib
import json
import math
import pickle
import re
import sys
from io import BytesIO
from zipfile import ZipFile

import numpy as np
import pytest
from short_fits import MODELS, fitted
from sklearn.base import clone

from skbayes_sg import stored
from skbayes_sg.callbacks import Callback, Checkpoint
from skbayes_sg.data.minibatches import Minibatches, SamplingFrame
from skbayes_sg.linalg import Diag
from skbayes_sg.samplers import SGLD, PolynomialDecay

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def back(value):
    file = BytesIO()
    stored.write(file, value)
    return stored.read(file)


# -- kinds ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [None, True, 3, 2**127 + 1, -0.0, 0.1, math.inf, math.nan, "Ω", np.float64(0.1), np.bool_(1)],
    ids=repr,
)
def test_a_number_keeps_its_type_and_its_last_bit(value):
    """A float and a NumPy number round differently beside numbers in single precision."""
    found = back([value])[0]
    assert type(found) is type(value)
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 3)),
        np.array(2.0),
        np.arange(6.0).reshape(2, 3).T,
        np.arange(6, dtype=np.float32)[::2],
        np.array(["a", "bc"]),
        np.array([True, False]),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_an_array_keeps_type_shape_and_order(array):
    found = back((array,))[0]
    np.testing.assert_array_equal(found, array, strict=True)
    assert found.flags.f_contiguous == array.copy("K").flags.f_contiguous
    found.flat[:] = found.flat[:1]  # which can be written to


def test_what_is_shared_is_shared_again_and_what_is_not_is_not():
    array, twin = np.ones(3), np.ones(3)
    first, second = back(({"a": Diag(array), (1, 2): []}, [array, twin]))
    assert list(first) == ["a", (1, 2)]
    assert first["a"].values is second[0]
    assert second[0] is not second[1]


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.SFC64])
def test_a_generator_goes_on_and_so_do_those_that_it_spawns(kind):
    rng = np.random.Generator(kind(np.random.SeedSequence(5, spawn_key=(1,))))
    rng.standard_normal(3), rng.random(dtype=np.float32), rng.spawn(2)
    twin = back(rng)
    for a, b in ((rng, twin), (rng.spawn(1)[0], twin.spawn(1)[0])):
        np.testing.assert_array_equal(a.random(5, np.float32), b.random(5, np.float32))
        np.testing.assert_array_equal(a.random(5), b.random(5))


class Theirs:
    """A type of another package."""


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Theirs(), "Theirs"),
        (len, "builtin_function_or_method"),
        (np.int32, "type"),
        (np.array([None]), "numpy.ndarray"),
        (np.random.Generator(np.random.MT19937(0)), "Generator"),
        (Checkpoint("fit.npz"), "skbayes_sg.callbacks.Checkpoint"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_what_is_none_of_the_kinds_is_refused_by_name(value, name):
    with pytest.raises(TypeError, match=rf"holds no \S*{re.escape(name)}, since"):
        stored.write(BytesIO(), [SGLD(PolynomialDecay(1.0, 1.0, 0.5)), value])


# -- files that others wrote ------------------------------------------------------------------


def sealed(content):
    """With the digest that stands at the end of a file."""
    return content + hashlib.sha256(content).hexdigest().encode()


def forged(nodes, writer=stored._WRITER, **arrays):
    file, tree = BytesIO(), json.dumps({"written by": writer, "nodes": nodes})
    np.savez(file, tree=np.array(tree), **arrays)
    with ZipFile(file, "a") as archive:
        archive.comment = bytes(64)
    return sealed(file.getvalue()[:-64])


class Malicious:
    """Runs code when a pickle with it is read."""

    ran = False

    def __reduce__(self):
        return setattr, (Malicious, "ran", True)


def test_the_forger_knows_the_format():
    """As the tests below would pass if it did not."""
    nodes = [["array"], ["dict", ["values", [0]]], ["skbayes_sg.linalg.operators.Diag", [1]]]
    found = stored.read(BytesIO(forged(nodes, **{"0": np.arange(3.0)})))
    np.testing.assert_array_equal(found.dense(), np.diag(np.arange(3.0)))
    pickle.loads(pickle.dumps(Malicious()))
    assert Malicious.ran


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "posix.system",
        "builtins.eval",
        "subprocess.Popen",
        "no_such_module.Class",
        "skbayes_sg.callbacks.Checkpoint",
        "skbayes_sg.callbacks.os.system",
        "skbayes_sg.chains.run.Parallel",
        "skbayes_sg.chains.run.run_chains",
        "skbayes_sg.data.blockwise.OnDisk",
        "skbayes_sg.samplers.sgld.SGLD.step",
        "skbayes_sg.samplers.no_such_module.SGLD",
        "numpy.ndarray",
        "MT19937",
        "",
    ],
)
def test_only_types_of_the_package_are_made(name):
    file = BytesIO(forged([["dict", ["args", "exit 3"]], [name, [0]]]))
    modules = set(sys.modules)
    with pytest.raises(ValueError, match=f"^it names {re.escape(name)}, which is no type of this"):
        stored.read(file)
    assert set(sys.modules) == modules


FILES = {
    "a pickle": lambda: sealed(pickle.dumps(Malicious())),
    "an array of objects": lambda: forged([["array"]], **{"0": np.array([Malicious()])}),
    "a number that is an object": lambda: forged([["number"]], **{"0": np.array(Malicious())}),
    "a command": lambda: forged([["os.system", "exit 3"]]),
    "a part that comes later": lambda: forged([["list", [1]], ["list"]]),
    "nothing": lambda: forged([]),
    "another value": lambda: forged([["list"]]),
    "a node that is none": lambda: forged([3]),
    "another version": lambda: forged([["list"]], "skbayes_sg 0.3.0"),
    "no tree": lambda: sealed(b""),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_others_wrote_runs_no_code_and_is_refused(name, tmp_path, monkeypatch):
    content, path = FILES[name](), tmp_path / "fit.npz"
    path.write_bytes(content)
    monkeypatch.setattr(Malicious, "ran", False)
    said = r"^Checkpoint: .*fit\.npz is not a whole checkpoint of this version \(.+\); remove it"
    with pytest.raises(ValueError, match=said):
        fitted(MODELS["linear"], Checkpoint(path))
    assert not Malicious.ran
    assert path.read_bytes() == content


def test_reading_draws_no_rows(monkeypatch):
    """The rows drawn ahead are no part of a file, and whoever wrote it says how many they are."""
    stream = Minibatches(SamplingFrame(1000), 20, True, np.random.default_rng(0), 2)
    stream.draw()
    file = BytesIO()
    stored.write(file, stream)
    with monkeypatch.context() as patched:
        patched.setattr(Minibatches, "_many", lambda self: pytest.fail("rows were drawn"))
        patched.setattr(
            Minibatches, "__setstate__", lambda *_: pytest.fail("called"), raising=False
        )
        twin = stored.read(file)
    for _ in range(300):
        np.testing.assert_array_equal(twin.draw(), stream.draw())


def test_a_file_of_another_version_says_which_one():
    with pytest.raises(ValueError, match=r"it was written by skbayes_sg 0\.3\.0, and this is skb"):
        stored.read(BytesIO(forged([["list"]], "skbayes_sg 0.3.0")))


# -- fits that cannot be saved ----------------------------------------------------------------


class OfAUser(SGLD):
    """A sampler of a user."""


class Never(Callback):
    def after_block(self, progress):
        raise AssertionError


@pytest.mark.parametrize(
    ("sampler", "name"),
    [(OfAUser(1e-4), "OfAUser"), (SGLD(lambda t: 1e-4), "function")],
    ids=["sampler", "schedule"],
)
def test_a_sampler_that_a_file_cannot_hold_is_refused_before_the_fit(
    sampler, name, tmp_path, monkeypatch
):
    model = clone(MODELS["minibatches"]).set_params(sampler=sampler)
    fitted(model, n_draws=4)  # without a checkpoint
    monkeypatch.setattr("skbayes_sg.inference.sample.prepare", Never().after_block)
    said = rf"holds no \S*{name}, since that is no type of skbayes_sg; fit without a Checkpoint, or"
    with pytest.raises(TypeError, match=said):
        fitted(model, Checkpoint(tmp_path / "fit.npz"))
    assert not list(tmp_path.iterdir())
