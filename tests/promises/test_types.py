"""What an editor knows of a fit and its predictions, as mypy says it of a program."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import numpy as np
from skbayes_sg import (
    BayesianLinearRegression,
    BayesianMLPRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
)
X, y = np.ones((9, 2)), np.arange(9)
line = BayesianLinearRegression(prior_precision=1.0)
reveal_type(line.fit(X, y))  # BayesianLinearRegressionSGFS
reveal_type(line.partial_fit(X, y))  # BayesianLinearRegressionSGFS
reveal_type(line.set_params(thin=2))  # BayesianLinearRegressionSGFS
reveal_type(line.compact())  # BayesianLinearRegressionSGFS
reveal_type(line.fit(X, y).predict(X))  # array
reveal_type(line.fit(X, y).predict(X, return_std=True))  # tuple of arrays
reveal_type(line.fit(X, y).predict(X, return_std=False))  # array
reveal_type(line.fit(X, y).predict(X, return_std=bool(X[0, 0])))  # either
reveal_type(line.predict_interval(X, 0.9, kind="mean"))  # array
rates = BayesianPoissonRegressor().fit(X, y, exposure=y)
reveal_type(rates)  # BayesianPoissonRegressor
reveal_type(rates.predict(X, True, exposure=1))  # tuple of arrays
reveal_type(rates.predict_draws(X, "mean", exposure=1))  # array
reveal_type(rates.predict_quantiles(X, [0.1], exposure=1))  # array
reveal_type(rates.score(X, y, exposure=y))  # float
reveal_type(BayesianMLPRegressor((3,)).partial_fit(X, y))  # BayesianMLPRegressor
grades = BayesianOrdinalClassifier().fit(X, y)
reveal_type(grades)  # BayesianOrdinalClassifier
reveal_type(grades.partial_fit(X, y).predict_proba(X))  # array
reveal_type(grades.predict(X))  # array
line.predict(X, returns_std=True)  # error
grades.predict(X, return_std=True)  # error
"""
ARRAY = "ndarray[tuple[Any, ...], dtype[Any]]"
SHORT = {f"tuple[{ARRAY}, {ARRAY}]": "tuple of arrays", ARRAY: "array"}


def test_types_are_those_of_the_documentation(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(PROGRAM)
    options = ["--config-file=", "--follow-imports=silent", "--ignore-missing-imports"]
    run = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "program.py"],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    found = {}
    for number, what in re.findall(r"^program\.py:(\d+): (.*)$", run.stdout, re.MULTILINE):
        revealed = re.fullmatch(r'note: Revealed type is "(.*)"', what)
        told = re.sub(r"[a-z_]+\.", "", revealed[1]) if revealed else what.partition(":")[0]
        if told != "note":
            found[int(number)] = told
    expected = {
        number: line.partition("  # ")[2]
        for number, line in enumerate(PROGRAM.splitlines(), 1)
        if "  # " in line
    }
    for long, short in SHORT.items():
        found = {number: told.replace(long, short) for number, told in found.items()}
    found = {
        number: told.replace("array | tuple of arrays", "either") for number, told in found.items()
    }
    assert found == expected, run.stdout + run.stderr
