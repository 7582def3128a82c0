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
    place, known = sklearn_suite.LOGISTIC, sklearn_suite.known_reasons()
    passed, _, failed = sklearn_suite.run(place, file)
    assert passed > 20
    why = {test: sklearn_suite.reason(known, (place, file, test), failed[test]) for test in failed}
    assert not [test for test in failed if why[test] is None]


def test_every_reason_is_of_a_file_that_is_run():
    known = sklearn_suite.known_reasons()
    assert len(known) > 250
    for (place, file, _), (failure, why) in known.items():
        assert file in sklearn_suite.FILES[place]
        assert failure.assertion
        assert failure.error
        assert why


def test_a_reason_holds_for_one_parameter_and_one_assertion():
    by_digits = sklearn_suite.Failure("assert_allclose(a, b)", "AssertionError:")
    cases = [("place", "file", test) for test in ("test_a[0]", "test_b", "test_c")]
    known = {case: sklearn_suite.Reason(by_digits, "digits") for case in cases}
    by_type = sklearn_suite.Failure("model.fit(X, y)", "TypeError: no numbers")
    failed = {cases[0]: by_digits, cases[1]: by_type, ("place", "file", "test_a[1]"): by_digits}
    reasons = [sklearn_suite.reason(known, case, each) for case, each in failed.items()]
    assert reasons == ["digits", None, None]
    idle = sklearn_suite.not_needed(known, failed)
    assert idle == ["place: file: test_b", "place: file: test_c"]


def test_a_failure_is_the_last_line_of_the_tests_and_its_error_without_numbers():
    traceback = """/sklearn/tests/test_a.py:12: in test_one
    check(model)
/sklearn/tests/test_a.py:5: in check
    assert model.score(X, y) > 0.9
/package/base.py:3: in score
    raise ValueError("no")
E   ValueError: y has 3.5e-07, shape (10, 2)
E   more"""
    found = sklearn_suite.failure("tests/test_a.py", traceback)
    assert found == ("assert model.score(X, y) > 0.9", "ValueError: y has #, shape (#, #)")


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
