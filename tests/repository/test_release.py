"""Wheel and sdist hold the package and nothing that does not belong to it, and install anywhere."""

import re
import runpy
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from skbayes_sg import __version__

pytestmark = pytest.mark.repository

ROOT = Path(__file__).parents[2]
FIT = """
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
import skbayes_sg
X, y = load_breast_cancer(return_X_y=True)
model = skbayes_sg.BayesianLogisticRegression(random_state=0).fit(scale(X), y)
assert model.score(scale(X), y) > 0.95
print(skbayes_sg.__version__, skbayes_sg.__file__)
"""


def test_changelog_and_citation_are_of_this_version():
    sections = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:]
    newest = next(each for each in sections if not each.startswith("Unreleased"))
    version, date = newest.partition("\n")[0].split(", ")
    assert version == __version__
    assert len(newest.strip().splitlines()) <= 40
    assert f"version: {version}\ndate-released: {date}\n" in (ROOT / "CITATION.cff").read_text()


def test_authors_and_address_are_those_of_the_citation():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = (ROOT / "CITATION.cff").read_text()
    authors = citation.partition("\nauthors:\n")[2].partition("\nreferences:")[0]
    assert [line.strip() for line in authors.splitlines()] == [
        f"- name: {each['name']}" for each in project["authors"]
    ]
    repository = project.get("urls", {}).get("Repository")
    assert re.findall(r"^repository-code: (.+)$", citation, re.MULTILINE) == [
        *filter(None, [repository])
    ]


def test_what_is_run_before_a_commit_is_what_lint_runs():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for command in ("ruff check", "ruff format", "mypy"):
        assert command in hooks
        assert command in lint[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Wheel and sdist, as `make dist` builds them: the wheel out of the sdist."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--outdir", str(out), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


@pytest.mark.slow
def test_the_wheel_holds_the_package_alone(built):
    names = zipfile.ZipFile(built[0]).namelist()
    package = {path.relative_to(ROOT).as_posix() for path in (ROOT / "skbayes_sg").rglob("*.py")}
    assert package | {"skbayes_sg/py.typed"} <= set(names)
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"skbayes_sg"}


def test_an_index_shows_the_readme_with_addresses(monkeypatch):
    interface = "hatchling.metadata.plugin.interface"
    monkeypatch.setitem(sys.modules, interface, SimpleNamespace(MetadataHookInterface=object))
    hook = runpy.run_path(str(ROOT / "hatch_build.py"))["CustomMetadataHook"]()
    hook.root = ROOT
    hook.update(alone := {})
    assert alone["readme"]["text"] == (ROOT / "README.md").read_text()
    hook.update(found := {"urls": {"Repository": "https://github.com/a/b"}})
    links = re.findall(r"\]\(([^)]+)\)", found["readme"]["text"])
    assert len(links) >= 10
    bases = "https://github.com/a/b/blob/main/", "https://raw.githubusercontent.com/a/b/main/"
    assert not [link for link in links if not link.startswith(bases)]


ADDRESS = re.compile(
    r"https?://[\w./-]+|[\w-]+\.(?:github|gitlab)\.io\b|git(?:hub|lab)\.com/[\w/-]+"
)
OF_OTHERS = (
    "https://python.arviz.org",
    "https://skops.readthedocs.io",
    "https://mutmut.readthedocs.io",
    "https://www.contributor-covenant.org",
    "https://pypi.anaconda.org/scientific-python-nightly-wheels",
)


def test_no_file_holds_an_address_that_is_not_in_the_project_urls():
    """Somebody else could register it, and strangers would be sent there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    known = (*project.get("urls", {}).values(), *OF_OTHERS)
    found = set()
    for top in ("", "skbayes_sg", "docs", "examples", "benchmarks", ".github"):
        for path in (ROOT / top).glob("**/*" if top else "*"):
            made = {"_build", "gallery", "generated", "results"} & {*path.relative_to(ROOT).parts}
            if path.suffix in (".py", ".md", ".toml", ".cff", ".rst", ".yml", ".js") and not made:
                found |= {*ADDRESS.findall(path.read_text(encoding="utf-8"))}
    assert all(any(address.startswith(each) for address in found) for each in OF_OTHERS)
    assert not [address for address in found if not address.startswith(known)]


@pytest.mark.slow
def test_the_sdist_holds_what_tests_and_site_need(built):
    with tarfile.open(built[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = ("README.md", "LICENSE", "Makefile", "tests/conftest.py", "docs/conf.py")
    needed += (".pre-commit-config.yaml", "noxfile.py", ".ci/run", "hatch_build.py", "paper.bib")
    assert {*needed} <= names
    assert not [
        name for name in names if name.startswith(("docs/_build/", "docs/gallery/", ".venv/"))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [0, 1], ids=["wheel", "sdist"])
def test_it_installs_into_an_empty_environment_and_fits(built, kind, tmp_path):
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env" / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", str(built[kind])]
    subprocess.run(install, check=True, cwd=tmp_path)
    run = subprocess.run([python, "-I", "-c", FIT], check=True, cwd=tmp_path, capture_output=True)
    version, _, file = run.stdout.decode().strip().partition(" ")
    assert version == __version__
    assert file.startswith(str(tmp_path))
