"""What the site is made of; `make docs` builds it and follows its links."""

import ast
import importlib
import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import skbayes_sg
from skbayes_sg import callbacks, diagnostics, samplers, theory

pytestmark = pytest.mark.repository

DOCS = Path(__file__).parents[2] / "docs"


def described():
    """Names in the reference, with their modules."""
    text = "".join(page.read_text() for page in (DOCS / "api").glob("*.rst"))
    for module, names in re.findall(
        r"currentmodule:: (\S+)\n\n\.\. autosummary::\n(?:   :.*\n)+\n((?:   .+\n)+)", text
    ):
        yield from (f"{module}.{name.lstrip('~')}" for name in names.split())


def public():
    """Classes and functions of every public module."""
    for module in (skbayes_sg, samplers, callbacks, theory):
        for name in module.__all__:
            if inspect.isclass(found := getattr(module, name)) or inspect.isfunction(found):
                yield f"{module.__name__}.{name}"
    for name, found in vars(diagnostics).items():
        own = inspect.isfunction(found) and found.__module__ == diagnostics.__name__
        if own and not name.startswith("_"):
            yield f"{diagnostics.__name__}.{name}"


def test_the_reference_has_every_public_name():
    assert not {*public()} - {*described()}


def test_what_the_reference_names_exists():
    for path in described():
        module, _, name = path.rpartition(".")
        assert getattr(importlib.import_module(module), name).__doc__, path


ESTIMATORS = [
    name
    for name, each in vars(skbayes_sg).items()
    if hasattr(each, "fit") and not name.endswith("SGFS")  # other names of the same
]


@pytest.mark.parametrize("name", [*ESTIMATORS, *samplers.SAMPLERS])
def test_a_class_describes_its_parameters_on_its_own_page(name):
    cls = getattr(skbayes_sg, name, None) or samplers.SAMPLERS[name]
    doc = inspect.cleandoc(cls.__doc__)
    section = doc.partition("Parameters\n")[2].partition("\n\nAttributes")[0]
    entry = re.compile(r"^(\w+(?:, \w+)*) : .+\n    \S", re.MULTILINE)
    described = {each for names in entry.findall(section) for each in names.split(", ")}
    assert not {*inspect.signature(cls).parameters} - described


WORDS = {  # and where a reader who searches for one should come to
    "credible interval": "](posterior.md",
    "HDI": "`summary(full=True)`",
    "ROPE": "](posterior.md",
    "offset": "](rows.md",
    "exposure": "](counts.md",
    "random intercept": "](groups.md",
    "mixed model": "](groups.md",
    "lasso": "](which_prior.md",
    "GridSearchCV": "](priors.md",
    "LaTeX": "](paper_table.md",
    "survey weights": "](rows.md",
    "marginal effect": "](posterior.md",
    "missing values": "](quickstart.md",
    "interaction": "](posterior.md",
    "confounder": "](posterior.md",
    "Bayes factor": "](posterior.md",
    "class imbalance": "](posterior.md",
    "treatment effect": "](paper_table.md",
    "zero inflation": "](counts.md",
    "proportion": "](counts.md",
    "matched sets": "](which_model.md",
    "survival analysis": "](which_model.md",
    "spline": "](which_model.md",
    "latency": "](persistence.md",
}


@pytest.mark.parametrize(("word", "where"), WORDS.items())
def test_a_word_of_another_book_leads_to_a_page(word, where):
    """The search of the site lists first a heading that is what was asked for: that of one page."""
    found = [
        (path.stem, entry)
        for path in DOCS.glob("*.md")
        for entry in re.split(r"^#+ ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        if entry.partition("\n")[0].lower() == word.lower()
    ]
    assert [name for name, _ in found] == ["glossary"]
    assert where in found[0][1]


def test_pictures_have_alternative_texts():
    for page in (DOCS.parent / "README.md", *DOCS.rglob("*.md")):
        for text in re.findall(r"!\[([^\]]*)\]\(", page.read_text(encoding="utf-8")):
            assert len(text) >= 20, (page.name, text)


def test_every_example_has_a_place_in_the_gallery():
    tree = ast.parse((DOCS / "gallery_order.py").read_text())
    named = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id in ("SECTIONS", "DETAIL")
    }
    sections, details = (ast.literal_eval(named[name]) for name in ("SECTIONS", "DETAIL"))
    order = [f"{folder}/plot_{name}.py" for folder in sections for name in sections[folder]]
    folder = DOCS.parent / "examples"
    assert sorted(order) == sorted(
        path.relative_to(folder).as_posix() for path in folder.glob("*/plot_*.py")
    )
    assert {name for names in sections.values() for name in names} >= {*details}


@pytest.fixture
def links():
    spec = importlib.util.spec_from_file_location("links", DOCS / "links.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_dead_links_are_found(links, tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here">, <a href="#top">, <a href="https://x">'
    )
    (tmp_path / "b.html").write_text('<p id="here"><img src="data:x"><a href="a.html">')
    assert links.dead(tmp_path) == []
    (tmp_path / "b.html").write_text('<img src="c.png"><script src="https://x.js"></script>')
    expected = {"a.html: b.html#here", "b.html: c.png", "b.html loads https://x.js"}
    assert {*links.dead(tmp_path)} == expected
