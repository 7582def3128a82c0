"""scikit-learn's own tests of what takes any estimator, with this package's in the place of its.

    python -m benchmarks.peers.sklearn_suite [--files tests/test_multioutput.py]

The files are those of the scikit-learn that is installed. `sklearn_twins` says what is put in whose
place: a subclass with scikit-learn's name and parameters, C being 1 / prior_precision, and 8 chains
of 20 draws. Of these files one alone uses MLPClassifier, and none uses the twins of our other
regressors; so robust regression stands in the place of linear regression too. scikit-learn has no
classifiers like DRBMClassifier and BayesianOrdinalClassifier. A failure needs a reason, in
`OF_ERROR` or `REASONS`. Three quarters of an hour on one core.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import sklearn

from benchmarks.common.harness import Claim, Report, benchmark

ROOT = Path(__file__).parents[2]
TESTS = Path(sklearn.__file__).parent
LOGISTIC, LINEAR, NETWORK = "LogisticRegression", "LinearRegression, Ridge", "MLPClassifier"
ROBUST = f"{LINEAR}, robust"
BOTH = [
    "compose/tests/test_target.py",
    "ensemble/tests/test_common.py",
    "ensemble/tests/test_stacking.py",
    "ensemble/tests/test_voting.py",
    "ensemble/tests/test_weight_boosting.py",
    "feature_selection/tests/test_from_model.py",
    "feature_selection/tests/test_rfe.py",
    "frozen/tests/test_frozen.py",
    "inspection/tests/test_partial_dependence.py",
    "inspection/tests/test_permutation_importance.py",
    "tests/test_metaestimators.py",
    "tests/test_multiclass.py",
    "tests/test_multioutput.py",
    "tests/test_pipeline.py",
]
FILES = {
    LOGISTIC: [
        *BOTH[1:],
        "ensemble/tests/test_bagging.py",
        "model_selection/tests/test_classification_threshold.py",
        "semi_supervised/tests/test_self_training.py",
        "tests/test_calibration.py",
    ],
    LINEAR: BOTH,
    ROBUST: BOTH,
    NETWORK: ["ensemble/tests/test_stacking.py"],
}
HAS_PARTIAL_FIT = "the test wants an estimator without partial_fit, which ours has"
DIGITS = "the test wants the probabilities of the point estimate to seven digits"
NOISE = "160 draws are too few for a difference of .008; it holds with the default number"
LIKELIHOOD = "the test wants the temperature and the order of a maximum of the likelihood"
WARNING = "the test makes our warning of 160 draws, which are few, an error"
ONE_CLASS = "a bootstrap sample of the two rows holds one class, whose fit we refuse"
OUTLIER = "the test wants an outlier to move the line"
OF_ERROR = {
    "no attribute 'sparsify'": "means of draws are not 0, and predictions do not use coef_",
    "y should be a 1d array": "y of several columns is for MultiOutputRegressor or -Classifier",
}
"""Why a test fails, by a part of its error."""
REASONS: dict[str, dict[str, str]] = {
    LOGISTIC: {
        "test_bagging_small_max_features": ONE_CLASS,
        "test_classifier_chain_vs_independent_models": NOISE,
        "test_multiclass_estimator_attribute_error": HAS_PARTIAL_FIT,
        "test_multiclass_multioutput_estimator_predict_proba": DIGITS,
        "test_temperature_scaling": LIKELIHOOD,
    },
    LINEAR: {
        "test_from_model_estimator_attribute_error": HAS_PARTIAL_FIT,
        "test_multioutput_regressor_has_partial_fit": HAS_PARTIAL_FIT,
        "test_transform_target_regressor_invertible": WARNING,
        "test_transform_target_regressor_not_warns_with_global_output_set": WARNING,
    },
    NETWORK: {},
}
REASONS[ROBUST] = REASONS[LINEAR] | {"test_adaboostregressor_sample_weight": OUTLIER}
"""Why a test fails, by its name without parameters."""


class Outcome(NamedTuple):
    """What the tests of a file came to."""

    passed: int
    skipped: int
    failed: dict[str, str]
    """the first line of its error, by test"""


def run(place: str, file: str) -> Outcome:
    """A file of tests, in a process of its own, with twins in the given place."""
    with tempfile.TemporaryDirectory() as folder:
        settings, found = Path(folder, "pytest.ini"), Path(folder, "found.xml")
        settings.write_text("[pytest]\n")  # not those of this repository
        command = [sys.executable, "-m", "pytest", "-q", "-c", str(settings)]
        command += ["-p", "no:cacheprovider", "-p", "benchmarks.peers.sklearn_twins"]
        command += ["-W", "ignore::sklearn.exceptions.ConvergenceWarning", f"--junitxml={found}"]
        paths = os.pathsep.join([str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
        one = {"SKLEARN_TWINS": place, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [*command, str(TESTS / file)], env=os.environ | one, capture_output=True, text=True
        )
        if done.returncode > 1:  # the tests did not run
            raise RuntimeError(f"{file}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        cases = list(ElementTree.parse(found).iter("testcase"))
    wrong = {case.get("name", ""): bad for case in cases for bad in case.findall("*[@message]")}
    skipped = sum(bad.tag == "skipped" for bad in wrong.values())
    failed = {
        name: bad.get("message", "").partition("\n")[0]
        for name, bad in wrong.items()
        if bad.tag != "skipped"
    }
    return Outcome(len(cases) - skipped - len(failed), skipped, failed)


def reason(place: str, test: str, error: str) -> str | None:
    """Why a test fails, if that is known."""
    for part, why in OF_ERROR.items():
        if part in error:
            return why
    return REASONS[place].get(test.partition("[")[0])


def row(place: str, file: str) -> dict:
    """A line of the table: what failed and why, or the error of a failure that has no reason."""
    passed, skipped, failed = run(place, file)
    why = {test: reason(place, test, error) for test, error in failed.items()}
    shown = [f"{test}: {why[test] or failed[test]}" for test in failed]
    return {
        "in place of": place,
        "file": file,
        "passed": passed,
        "skipped": skipped,
        "failed": len(failed),
        "without a reason": sum(each is None for each in why.values()),
        "why": "; ".join(shown),
    }


def main(report: Report, files: list[str] | None) -> None:
    """All files, or some, then with the other rows of the last run."""
    pairs = [(place, file) for place in FILES for file in FILES[place]]
    known = {(r["in place of"], r["file"]): r for r in report.earlier()} if files else {}
    for pair in pairs:
        if files is None or pair[1] in files:
            known[pair] = row(*pair)
            report.show([known[pair]])
    rows = [known[pair] for pair in pairs if pair in known]
    claims = []
    for place in FILES:
        failures = sum(r["without a reason"] for r in rows if r["in place of"] == place)
        claims.append(Claim(f"failures without a reason in place of {place}", failures, high=0))
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(main, threads=1, files={"nargs": "+"})
