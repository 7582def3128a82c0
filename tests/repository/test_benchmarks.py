import csv
import re
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.repository

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"
SCRIPTS = [path for path in sorted(FOLDER.rglob("*.py")) if "\nif __name__" in path.read_text()]
TABLES = sorted((FOLDER / "results").glob("*.csv"))
TIME = re.compile(r"(^|[ (_])(s|ms|us|seconds)($|[ ,)])|ATUC")

sys.path.insert(0, str(ROOT))
harness = pytest.importorskip("benchmarks.common.harness")
timing = pytest.importorskip("benchmarks.common.timing")
reference = pytest.importorskip("benchmarks.common.reference")
sys.path.remove(str(ROOT))


def module_of(path):
    """The dotted name of a script."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def read(path):
    lines = path.read_text().splitlines()
    comments = [line for line in lines if line.startswith("#")]
    return comments, list(csv.DictReader(lines[len(comments) :]))


def test_there_are_scripts_and_tables():
    assert len(SCRIPTS) >= 22
    assert len(TABLES) >= 26


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_uses_the_harness_and_says_how_to_run_it(path):
    text = path.read_text()
    assert "from benchmarks.common.harness import" in text
    assert "    benchmark(" in text
    assert f"python -m {module_of(path)}" in text.split('"""')[1]


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_table_names_its_command_and_commit(path):
    comments, rows = read(path)
    script = r"python (-m benchmarks\.[\w.]+|tests/[\w/]+\.py)"
    made = r"\d{4}-\d\d-\d\d, [0-9a-f]{8}"  # on a day, with a commit and no changes beyond it
    command = re.fullmatch(rf"# (?:{script}|mutmut run)( .+)?, {made}", comments[0])
    assert command, comments[0]
    if command[1] is not None:
        scripts = [f"-m {module_of(path)}" for path in SCRIPTS]
        assert command[1] in [*scripts, "tests/tools/flakiness.py"]
    assert all(re.match("# (ok  |FAIL|--  ) ", line) for line in comments[1:])
    assert rows
    assert all(None not in row and None not in row.values() for row in rows)


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_no_time_is_negative(path):
    for row in read(path)[1]:
        for name, value in row.items():
            is_time = TIME.search(name) or ("s per pass" in row.get("what", "") and name == "value")
            if is_time and value:
                assert float(value) >= 0, (name, value)


@pytest.mark.parametrize(
    ("figure", "limits", "verdict"),
    [
        (0.2, {"high": 0.2}, "ok"),
        (0.2, {"high": 0.2, "strict": True}, "FAIL"),
        (0.3, {"low": 0.2, "strict": True}, "ok"),
        (0.1, {"low": 0.2, "high": 0.4}, "FAIL"),
        ((0.2, 0.4), {"low": 0.2, "high": 0.4}, "ok"),
        ((0.2, 0.5), {"low": 0.2, "high": 0.4}, "FAIL"),
        (np.nan, {"high": 0.2}, "FAIL"),
        (None, {"high": 0.2}, "--"),
    ],
)
def test_verdict(figure, limits, verdict):
    claim = harness.Claim("a sentence", figure, **limits)
    assert claim.verdict == verdict
    assert str(claim).startswith(f"{verdict:4} a sentence: ")


@pytest.mark.parametrize(("figure", "code"), [(1.0, None), (3.0, 1), (None, None)])
def test_a_failure_is_recorded_and_exits_with_1(figure, code, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    monkeypatch.setattr(harness, "commit", lambda: "0123abcd")
    monkeypatch.setattr(sys, "argv", ["test_benchmarks.py", "--full"])

    def main(report, full):
        assert full
        rows = [{"name": "one,\n two", "s": 0.5}, {"name": "other", "s": None, "n": 3}]
        report.save(rows, [harness.Claim("at most two", figure, high=2)], name="fake")

    if code is None:
        harness.benchmark(main, full={"action": "store_true"})
    else:
        with pytest.raises(SystemExit) as stop:
            harness.benchmark(main, full={"action": "store_true"})
        assert stop.value.code == code
    comments, rows = read(tmp_path / "fake.csv")
    first = r"# python -m tests\.repository\.test_benchmarks --full, [\d-]{10}, 0123abcd"
    assert re.fullmatch(first, comments[0])
    assert comments[1][2:] in capsys.readouterr().out
    assert [list(row.values()) for row in rows] == [["one, two", "0.5", ""], ["other", "", "3"]]


def test_what_is_left_of_a_time_is_positive_or_nothing():
    assert timing.rest([3.0, 3.1, 3.2], [1.0, 1.0, 1.0], 0.5) == pytest.approx(1.6)
    assert timing.rest([1.0, 1.1, 1.2], [1.2, 1.1, 1.0]) is None
    assert timing.rest([1.0, 1.5, 1.2], [1.0, 1.0, 1.0]) is None
    assert all(time > 0 for time in timing.in_turn({"job": lambda: sum(range(99))}, 3)["job"])


def test_a_reference_is_kept_until_the_data_change(tmp_path, monkeypatch):
    monkeypatch.setattr(reference, "FOLDER", tmp_path)
    made = []

    def make():
        made.append(len(made))
        return {"a": np.arange(3.0), "b": len(made)}

    X = np.ones((2, 2))
    for _ in range(2):
        a, b = reference.cached("fake", make, X)
        np.testing.assert_array_equal(a, [0, 1, 2])
        assert b == 1
    assert reference.cached("fake", make, 2 * X)[1] == 2
    assert made == [0, 1]
