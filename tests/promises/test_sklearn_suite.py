"""Tests of scikit-learn itself, with estimators of this package in the place of its own."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
sklearn_suite = pytest.importorskip("benchmarks.peers.sklearn_suite")
sys.path.remove(str(ROOT))


@pytest.mark.slow
@pytest.mark.parametrize(
    "file",
    [
        "feature_selection/tests/test_from_model.py",
        "metrics/tests/test_score_objects.py",
        "model_selection/tests/test_classification_threshold.py",
        "tests/test_calibration.py",
    ],
)
def test_every_failure_has_a_reason(file):
    place = sklearn_suite.LOGISTIC
    passed, _, failed = sklearn_suite.run(place, file)
    assert passed > 20
    known = {test: sklearn_suite.reason(place, test, error) for test, error in failed.items()}
    assert not [test for test, why in known.items() if why is None]


def test_a_reason_that_explains_no_failure_is_told(monkeypatch):
    place = sklearn_suite.LOGISTIC
    reasons = {"test_a": "a", "test_b[1]": "b", "test_c": "c"}
    monkeypatch.setattr(sklearn_suite, "REASONS", {place: reasons})
    monkeypatch.setattr(sklearn_suite, "OF_ERROR", {"no attribute": "d", "not there": "e"})
    failed = {"test_a[0]": "E", "test_b[0]": "E", "test_c": "no attribute"}
    idle = sklearn_suite.not_needed({(place, "file"): failed})
    assert idle == [f"{place}: test_b[1]", f"{place}: test_c", "not there"]
    assert sklearn_suite.reason(place, "test_b[0]", "E") is None
    assert sklearn_suite.reason(place, "test_b[1]", "E") == "b"


def test_a_run_of_some_files_leaves_the_table_of_all_as_it_is(monkeypatch):
    saved, place = [], sklearn_suite.NETWORK
    monkeypatch.setattr(sklearn_suite, "run", lambda *_: sklearn_suite.Outcome(3, 0, {}))
    monkeypatch.setattr(sklearn_suite.Report, "save", lambda *of_all: saved.append(of_all))
    report = sklearn_suite.Report("sklearn_suite", "python -m benchmarks.peers.sklearn_suite")
    sklearn_suite.main(report, None, [place])
    assert not saved
    sklearn_suite.main(report, None, None)
    (_, rows, claims), *more = saved
    assert not more
    assert len(rows) == sum(map(len, sklearn_suite.FILES.values()))
    assert claims[-1].verdict == "FAIL"  # as there is no failure, no reason explains one
    assert ", commit " in report.command
