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
reason, in `OF_ERROR` or `REASONS`, and a reason that explains no failure of a full run has to go.
An hour on one core. A run of some files or places is printed alone: the table is of one run of one
commit, which its first line names.
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
HAS_PARTIAL_FIT = "the test wants an estimator without partial_fit, which ours has"
DIGITS = "the test wants the probabilities of the point estimate to seven digits"
NOISE = "160 draws are too few for a difference of .008; it holds with the default number"
LIKELIHOOD = "the test wants the temperature and the order of a maximum of the likelihood"
WARNING = "the test makes our warning of 160 draws, which are few, an error"
ONE_CLASS = "a bootstrap sample of the two rows holds one class, whose fit we refuse"
OUTLIER = "the test wants an outlier to move the line"
POINT = "the test wants a penalised maximum of the likelihood, of which ours is no estimate"
BALANCE = "the test wants the sum of y to 2e-4, which a maximum of the likelihood predicts"
DIGITS_OF_DRAWS = "the test wants more digits than the mean of 160 draws has"
INTERPOLATES = "the test wants few rows interpolated, from which the learned prior shrinks"
EPSILON = "the test sets an epsilon so large that no row is an outlier; ours estimates it"
ITERATIONS = "the test is about the iterations of scikit-learn's algorithm"
WORDS = "it is refused as the test wants, in other words"
WEIGHTS = "the test divides weights by their sum, where ours are repetitions"
BY_TYPE = "RANSAC knows how many rows a LinearRegression needs, and knows it by its type"
DOUBLE = "coefficients are double for float32 rows too; predictions are float32"
ONE_MORE = "a column more changes the draws of fits of three rows, on which the next fits build"
OUTSIDE = "the prediction lies outside the limits, where the imputer draws nothing"
OF_ERROR = {
    "no attribute 'sparsify'": "means of draws are not 0, and predictions do not use coef_",
    "no attribute 'lambda_'": ITERATIONS,
    "no attribute 'outliers_'": "outliers have small weights, and none is told from the others",
    "no attribute 'scores_'": ITERATIONS,
    "no attribute 'sigma_'": ITERATIONS,
    "no attribute '_update_sigma'": ITERATIONS,
    "`min_samples` needs to be explicitly set": BY_TYPE,
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
    WEAK: {
        "test_huber_equals_lr_for_high_epsilon": DIGITS_OF_DRAWS,
        "test_ransac_final_model_fit_sample_weight": WEIGHTS,
        "test_ransac_none_estimator": DIGITS_OF_DRAWS,
        "test_ransac_predict": DIGITS_OF_DRAWS,
        "test_ransac_score": DIGITS_OF_DRAWS,
    },
    EVIDENCE: {
        "test_ard_accuracy_on_easy_problem": DIGITS_OF_DRAWS,
        "test_bayesian_initial_params": INTERPOLATES,
        "test_dtype_match": DOUBLE,
        "test_iterative_imputer_missing_at_transform": DIGITS_OF_DRAWS,
        "test_iterative_imputer_skip_non_missing": INTERPOLATES,
        "test_iterative_imputer_truncated_normal_posterior": OUTSIDE,
        "test_iterative_imputer_with_empty_features": ONE_MORE,
        "test_prediction_bayesian_ridge_ard_with_constant_input": DIGITS_OF_DRAWS,
        "test_toy_ard_object": INTERPOLATES,
    },
    HUBER: {
        "test_huber_equals_lr_for_high_epsilon": EPSILON,
        "test_huber_max_iter": ITERATIONS,
        "test_huber_warm_start": ITERATIONS,
    },
    LOG_LINEAR: {
        "test_glm_log_regression": POINT,
        "test_glm_regression": POINT,
        "test_glm_regression_hstacked_X": POINT,
        "test_glm_regression_unpenalized": POINT,
        "test_glm_regression_unpenalized_hstacked_X": POINT,
        "test_glm_regression_unpenalized_vstacked_X": POINT,
        "test_glm_regression_vstacked_X": POINT,
        "test_glm_sample_weight_consistency": WEIGHTS,
        "test_glm_wrong_y_range": WORDS,
        "test_linalg_warning_with_newton_solver": WARNING,
        "test_poisson_glmnet": POINT,
        "test_warm_start": ITERATIONS,
    },
    NETWORK: {},
}
REASONS[LINEAR] |= REASONS[WEAK] | dict.fromkeys(
    [
        "test_ransac_default_residual_threshold",
        "test_ransac_inliers_outliers",
        "test_ransac_none_estimator",
        "test_ransac_predict",
        "test_ransac_score",
        "test_ransac_sparse",
    ],
    INTERPOLATES,
)
OF_LINES = {test: why for test, why in REASONS[LINEAR].items() if "ransac" not in test}
REASONS[ROBUST] = OF_LINES | {
    "test_adaboostregressor_sample_weight": OUTLIER,
    "test_huber_better_r2_score": OUTLIER,
    "test_huber_equals_lr_for_high_epsilon": OUTLIER,
}
for place, names in {
    LINEAR: ["LinearRegression", "Ridge"],
    EVIDENCE: ["BayesianRidge", "ARDRegression"],
    LOG_LINEAR: ["PoissonRegressor"],
}.items():
    cases = [f"{weighted}-{name}" for weighted in (False, True) for name in names]
    REASONS[place] |= {f"test_balance_property[42-{case}]": BALANCE for case in cases}
"""Why a test fails, by its name with or without parameters."""


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
    return REASONS[place].get(test) or REASONS[place].get(test.partition("[")[0])


def not_needed(failed: dict[tuple[str, str], dict[str, str]]) -> list[str]:
    """Reasons that explain none of the failures, each of which is known by place and file."""
    parts, names = set(OF_ERROR), {(place, test) for place in REASONS for test in REASONS[place]}
    for (place, _), errors in failed.items():
        for test, error in errors.items():
            explained = {part for part in OF_ERROR if part in error}
            parts -= explained
            if not explained:
                names -= {(place, test), (place, test.partition("[")[0])}
    return sorted([*parts, *(f"{place}: {test}" for place, test in names)])


def row(place: str, file: str, outcome: Outcome) -> dict:
    """A line of the table: what failed and why, or the error of a failure that has no reason."""
    passed, skipped, failed = outcome
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


def main(report: Report, files: list[str] | None, places: list[str] | None) -> None:
    """All files and places, with a table; or some, without."""
    rows, failed = list[dict](), dict[tuple[str, str], dict[str, str]]()
    for place in places or FILES:
        for file in FILES[place]:
            if file in (files or [file]):
                outcome = run(place, file)
                failed[place, file] = outcome.failed
                rows.append(row(place, file, outcome))
                report.show(rows[-1:])
    claims = []
    for place in FILES:
        failures = sum(r["without a reason"] for r in rows if r["in place of"] == place)
        claims.append(Claim(f"failures without a reason in place of {place}", failures, high=0))
    if files or places:
        report.diagnose_run(claims)
        return
    idle = not_needed(failed)
    print("reasons that explain no failure:", *idle, sep="\n")
    claims.append(Claim("reasons that explain no failure", len(idle), high=0))
    commit = subprocess.check_output(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, text=True
    )
    report.command += f", commit {commit.strip()}"
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(main, threads=1, files={"nargs": "+"}, places={"nargs": "+"})
