"""scikit-learn's own tests of what takes any estimator, with this package's in the place of its.

    python -m benchmarks.peers.sklearn_suite [--files tests/test_multioutput.py] [--places ...]

The files are those of the scikit-learn that is installed. `sklearn_twins` says what is put in whose
place: a subclass with scikit-learn's name and parameters, C being 1 / prior_precision, and 8 chains
of 20 draws. Of the files about meta-estimators one alone uses MLPClassifier, and none uses the
twins of our other regressors; so robust regression stands in the place of linear regression too.
scikit-learn has no classifiers like DRBMClassifier and BayesianOrdinalClassifier, and no negative
binomial regression. RANSAC has thousands of fits of two rows, a quarter of an hour for a robust
regression, which needs no RANSAC and is left out. A line under a weak prior goes through the two
rows. The files about Bayesian, Huber's and generalised linear regressions test algorithms, and not
only what any estimator has to do: a mean of draws is no maximum to nine digits. A failure needs a
reason, in `sklearn_reasons.toml`. That holds for one test with its parameters, in one place, and
for one assertion; one that explains no failure of a full run has to go.
An hour on one core. A run of some files or places is printed alone: the table is of one run of one
commit, which its first line names.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import sklearn

from benchmarks.common.harness import Claim, Report, benchmark

ROOT = Path(__file__).parents[2]
TESTS = Path(sklearn.__file__).parent
LOGISTIC, LINEAR, NETWORK = "LogisticRegression", "LinearRegression, Ridge", "MLPClassifier"
ROBUST = f"{LINEAR}, robust"
EVIDENCE, HUBER = "BayesianRidge, ARDRegression", "HuberRegressor"
LOG_LINEAR = "PoissonRegressor, GammaRegressor"
WEAK = "LinearRegression, weak prior"
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
    "metrics/tests/test_score_objects.py",
    "tests/test_metaestimators.py",
    "tests/test_multiclass.py",
    "tests/test_multioutput.py",
    "tests/test_pipeline.py",
]
COMMON = "linear_model/tests/test_common.py"
LINES = ["linear_model/tests/test_huber.py", "linear_model/tests/test_ransac.py"]
FILES = {
    LOGISTIC: [
        *BOTH[1:],
        COMMON,
        "ensemble/tests/test_bagging.py",
        "inspection/_plot/tests/test_boundary_decision_display.py",
        "model_selection/tests/test_classification_threshold.py",
        "semi_supervised/tests/test_self_training.py",
        "tests/test_calibration.py",
    ],
    LINEAR: [*BOTH, *LINES, COMMON],
    ROBUST: [*BOTH, LINES[0]],
    WEAK: LINES,
    EVIDENCE: ["impute/tests/test_impute.py", "linear_model/tests/test_bayes.py", COMMON],
    HUBER: ["linear_model/tests/test_huber.py", COMMON],
    LOG_LINEAR: ["linear_model/_glm/tests/test_glm.py", COMMON],
    NETWORK: ["ensemble/tests/test_stacking.py"],
}
REASONS = Path(__file__).with_name("sklearn_reasons.toml")


class Failure(NamedTuple):
    """Where a test fails, and by what error."""

    assertion: str
    """The line of its file."""
    error: str
    """The first line of it, with # for numbers, which depend on the processor."""


class Reason(NamedTuple):
    """Why a test fails, if it is by this failure."""

    failure: Failure
    why: str


Case = tuple[str, str, str]  # place, file, and test with its parameters
Reasons = dict[Case, Reason]


class Outcome(NamedTuple):
    """What the tests of a file came to."""

    passed: int
    skipped: int
    failed: dict[str, Failure]
    """By test."""


def run(place: str, file: str) -> Outcome:
    """A file of tests, in a process of its own, with twins in the given place."""
    with tempfile.TemporaryDirectory() as folder:
        settings, found = Path(folder, "pytest.ini"), Path(folder, "found.xml")
        settings.write_text("[pytest]\n")  # not those of this repository
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-c", str(settings)]
        command += ["-p", "no:cacheprovider", "-p", "benchmarks.peers.sklearn_twins"]
        command += ["-W", "ignore::sklearn.exceptions.ConvergenceWarning", f"--junitxml={found}"]
        paths = os.pathsep.join([str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
        one = {"SKLEARN_TWINS": place, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [*command, str(TESTS / file)], env=os.environ | one, capture_output=True, text=True
        )
        if done.returncode > 1:  # the tests did not run
            raise RuntimeError(f"{file}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return outcome(file, found)


def outcome(file: str, found: Path) -> Outcome:
    """What pytest wrote of a file of tests, with short tracebacks."""
    cases = list(ElementTree.parse(found).iter("testcase"))
    wrong = {case.get("name", ""): bad for case in cases for bad in case.findall("*[@message]")}
    skipped = sum(bad.tag == "skipped" for bad in wrong.values())
    failed = {
        name: failure(file, bad.text or "") for name, bad in wrong.items() if bad.tag != "skipped"
    }
    return Outcome(len(cases) - skipped - len(failed), skipped, failed)


def failure(file: str, traceback: str) -> Failure:
    """The last line of the tests' file in a traceback, and the first line of the error."""
    lines = traceback.splitlines()
    assertion = ""
    for place, line in pairwise(lines):
        if f"{file}:" in place:
            assertion = line.strip()
    error = next((line[1:].strip() for line in lines if line.startswith("E ")), "")
    return Failure(assertion, re.sub(r"\d[\w.+-]*", "#", error))


def known_reasons() -> Reasons:
    """Of all failures that have one. Each holds for one parameter and one assertion."""
    known: Reasons = {}
    for one in tomllib.loads(REASONS.read_text())["reason"]:
        why = Reason(Failure(one["assertion"], one["error"]), one["why"])
        known |= {(one["place"], one["file"], test): why for test in one["tests"]}
    return known


def reason(known: Reasons, case: Case, failed: Failure) -> str | None:
    """Why a test fails, if that is known."""
    found = known.get(case)
    return found.why if found is not None and found.failure == failed else None


def not_needed(known: Reasons, failed: dict[Case, Failure]) -> list[str]:
    """Reasons that explain none of the failures."""
    return [
        ": ".join(case)
        for case in known
        if case not in failed or reason(known, case, failed[case]) is None
    ]


def row(known: Reasons, place: str, file: str, outcome: Outcome) -> dict:
    """A line of the table: what failed and why, or the failure that has no reason."""
    passed, skipped, failed = outcome
    why = {test: reason(known, (place, file, test), each) for test, each in failed.items()}
    shown = [f"{test}: {why[test] or ' '.join(failed[test])}" for test in failed]
    return {
        "in place of": place,
        "file": file,
        "passed": passed,
        "skipped": skipped,
        "failed": len(failed),
        "without a reason": sum(each is None for each in why.values()),
        "why": "; ".join(shown),
    }


def main(report: Report, files: list[str] | None, places: list[str] | None) -> None:
    """All files and places, with a table; or some, without."""
    known, rows, failed = known_reasons(), list[dict](), dict[Case, Failure]()
    for place in places or FILES:
        for file in FILES[place]:
            if file in (files or [file]):
                outcome = run(place, file)
                failed |= {(place, file, test): each for test, each in outcome.failed.items()}
                rows.append(row(known, place, file, outcome))
                report.show(rows[-1:])
    claims = []
    for place in FILES:
        failures = sum(r["without a reason"] for r in rows if r["in place of"] == place)
        claims.append(Claim(f"failures without a reason in place of {place}", failures, high=0))
    if files or places:
        report.diagnose_run(claims)
        return
    idle = not_needed(known, failed)
    print("reasons that explain no failure:", *idle, sep="\n")
    claims.append(Claim("reasons that explain no failure", len(idle), high=0))
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(main, threads=1, files={"nargs": "+"}, places={"nargs": "+"})
