"""Kernels of OpenBLAS take turns in continuous integration."""

import hashlib
from collections import Counter

import kernels
import pytest

pytestmark = pytest.mark.repository

NAMES = {"Prescott": "Katmai", "Haswell": "Haswell", "Zen": "Zen", "SkylakeX": "SkylakeX"}


def digest(number):
    return hashlib.sha1(str(number).encode()).hexdigest()


def test_each_kernel_but_the_native_one_has_its_turn():
    n = 3000
    turns = Counter(kernels.other(NAMES, "SkylakeX", digest(i))[0].kernel for i in range(n))
    assert turns.keys() == {"Prescott", "Haswell", "Zen"}
    error = (n * 1 / 3 * 2 / 3) ** 0.5
    assert all(abs(times - n / 3) < 4 * error for times in turns.values())


def test_a_commit_has_one_kernel():
    runs = [kernels.other(NAMES, "Haswell", digest(5)) for _ in range(2)]
    assert runs[0] == runs[1]
    assert len(runs[0]) == 1


def test_there_may_be_none_or_one():
    assert kernels.other({"Haswell": "Haswell"}, "Haswell", digest(0)) == []
    assert kernels.other(NAMES | {"Zen": "Haswell"}, "Katmai", "0")[0].kernel == "Haswell"


def test_the_commit_is_that_of_the_repository():
    assert set(kernels.commit()) <= set("0123456789abcdef")
    assert int(kernels.commit(), 16) >= 0
