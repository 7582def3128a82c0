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
