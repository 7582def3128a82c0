"""Tests with old and new versions of Python and of the dependencies.

    nox                                  # all cells whose Python is installed
    nox -s "tests-3.11(versions='oldest')" -- tests/estimators/test_linear.py      # a cell, a file
    nox -s kernels                       # the matrix of `make kernels`

CI runs `make test`, which is the newest of everything, on each system and Python.
"""

import nox

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
VERSIONS = {
    "oldest": [
        "scikit-learn==1.7.0",
        "numpy==2.0.0",
        "scipy==1.15.0",
        "joblib==1.4.0",
        "narwhals==2.0.1",
    ],
    "scikit-learn 1.7": ["scikit-learn~=1.7.0"],
    "scikit-learn 1.8": ["scikit-learn~=1.8.0"],
    "newest": [],
}
nox.options.sessions = ["tests"]
nox.options.default_venv_backend = "uv|venv"
nox.options.error_on_missing_interpreters = False


@nox.session(python=PYTHONS)
@nox.parametrize("versions", list(VERSIONS))
def tests(session: nox.Session, versions: str) -> None:
    """The tests of `make test`, in two processes of one thread each."""
    if versions == "oldest" and session.python in ("3.13", "3.14"):
        session.skip("this version of NumPy is older than Python 3.13")
    session.install("--editable", ".[test]", *VERSIONS[versions])
    command = ["python", "-m", "pytest", "-q", "-n", "2", *session.posargs]
    session.run(*command, env={"OMP_NUM_THREADS": "1"})


@nox.session
def kernels(session: nox.Session) -> None:
    """The tests under each kernel of OpenBLAS that the processor can run."""
    session.install("--editable", ".[test]")
    session.run("python", "tests/tools/kernels.py", *session.posargs)
