"""Tests with old and new versions of Python and of the dependencies.

    nox                                  # all cells whose Python is installed
    nox -s "tests-3.11(versions='oldest')" -- tests/estimators/test_linear.py      # a cell, a file
    nox -s nightly                       # wheels of the night of NumPy, SciPy and scikit-learn
    nox -s sdist                         # the tests of the sdist, out of the sdist
    nox -s kernels                       # the matrix of `make kernels`

The workflow runs `make test`, which is the newest of everything, on each system and Python, and of
these sessions "oldest" and "sdist" at each push, and "nightly" once a week.
"""

import shutil
import tarfile
from pathlib import Path

import nox

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
VERSIONS = {
    "oldest": [
        "scikit-learn==1.7.0",
        "numpy==2.0.0",
        "scipy==1.15.0",
        "joblib==1.4.0",
        "narwhals==2.0.1",
        "threadpoolctl==3.1.0",
    ],
    "scikit-learn 1.7": ["scikit-learn~=1.7.0"],
    "scikit-learn 1.8": ["scikit-learn~=1.8.0"],
    "newest": [],
}
NIGHTLY = "https://pypi.anaconda.org/scientific-python-nightly-wheels/simple"
nox.options.sessions = ["tests"]
nox.options.default_venv_backend = "uv|venv"
nox.options.error_on_missing_interpreters = False


@nox.session(python=PYTHONS)
@nox.parametrize("versions", list(VERSIONS))
def tests(session: nox.Session, versions: str) -> None:
    """The tests of `make test`."""
    if versions == "oldest" and session.python in ("3.13", "3.14"):
        session.skip("this version of NumPy is older than Python 3.13")
    session.install("--editable", ".[test]", *VERSIONS[versions])
    run(session)


@nox.session(python="3.13")
def nightly(session: nox.Session) -> None:
    """The tests with what the next releases of the dependencies will be."""
    session.install("--editable", ".[test]")
    packages = ("numpy", "scipy", "scikit-learn", "pandas")
    session.install("--pre", "--upgrade", "--extra-index-url", NIGHTLY, *packages)
    run(session)


@nox.session(python="3.12")
def sdist(session: nox.Session) -> None:
    """The tests that the sdist holds, in its own folder and with nothing of the checkout."""
    session.install("build")
    folder = Path(session.create_tmp())
    shutil.rmtree(folder / "dist", ignore_errors=True)
    session.run("python", "-m", "build", "--sdist", "--outdir", str(folder / "dist"))
    (archive,) = (folder / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    session.chdir(folder / archive.name.removesuffix(".tar.gz"))
    session.install(".[test]")
    run(session)


def run(session: nox.Session) -> None:
    """In two processes of one thread each."""
    command = ["python", "-m", "pytest", "-q", "-n", "2", *session.posargs]
    session.run(*command, env={"OMP_NUM_THREADS": "1"})


@nox.session
def kernels(session: nox.Session) -> None:
    """The tests under each kernel of OpenBLAS that the processor can run."""
    session.install("--editable", ".[test]")
    session.run("python", "tests/tools/kernels.py", *session.posargs)
