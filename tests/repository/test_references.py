"""What the code cites is in docs/math/: a reader of the repository can follow every reference."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest
from faults import FAULTS

pytestmark = pytest.mark.repository

ROOT = Path(__file__).resolve().parents[2]
MATH = ROOT / "docs" / "math"
FOLDERS = ["skbayes_sg", "tests", "benchmarks", "examples"]
FENCED = re.compile(r"^```.*?^```", flags=re.DOTALL | re.MULTILINE)
CITED = re.compile(r"(?<![\w/])math/(\w+)\.md#([\w-]+)")
OLD = re.compile(r"(?<!\w)mat[h]\.md\b")  # the one page of earlier releases
# names of a document that is not in the repository; written so that they do not match themselves
OUTSIDE = re.compile(
    r"\bMA[T]H(?:\.md\b|\s+(?:#\s+)?[\dEtT]|\s+does\b)|\b[tT]ra[p]s?\s+(?:#\s+)?\d|\bDESIG[N]\.md\b"
)
PAPERS = ROOT / "docs" / "papers.md"
ROOMS = "|".join(path.parent.name for path in (ROOT / "skbayes_sg").glob("*/__init__.py"))
MODULE = re.compile(rf"`(?:skbayes_sg\.)?((?:{ROOMS})(?:\.\w+)+)`")
INSIDE = [path for name in ("tests", "benchmarks") for path in (ROOT / name).rglob("*")]
HOMES = ["skbayes_sg", "tests"]
HOMES += [path.relative_to(ROOT).as_posix() for path in INSIDE if path.is_dir()]
NAMED = re.compile(r"`([\w/]+\.(?:py|csv|png))(?:::(\w+)| --([\w-]+))?`")
FOREIGN = re.compile(r"/wor[k]/\w")


def texts():
    """Every Python and Markdown file that belongs to the repository, by path."""
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    files += [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}


@cache
def anchors(page):
    """What `#...` can point to: headings, by GitHub's rule, and explicit anchors."""
    prose = FENCED.sub("", page)
    found = re.findall(r'<a (?:id|name)="([^"]+)"', prose)
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", prose, flags=re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        repeated = sum(
            re.fullmatch(rf"{re.escape(slug)}(-\d+)?", other) is not None for other in found
        )
        found.append(f"{slug}-{repeated}" if slug in found else slug)
    return set(found)


@pytest.fixture(scope="module")
def known():
    """Anchors of each page of the mathematics, by its name."""
    return {path.stem: anchors(path.read_text(encoding="utf-8")) for path in MATH.glob("*.md")}


def test_headings_become_anchors_as_on_github():
    page = """# The exact step
```
# no heading
```
## What, `K`?
### A-b c
## What, `K`?
<a id="here"></a>
"""
    assert anchors(page) == {"the-exact-step", "what-k", "a-b-c", "what-k-1", "here"}


def test_every_reference_resolves(known):
    cited = [(name, *found) for name, text in texts().items() for found in CITED.findall(text)]
    in_code = [name for name, *_ in cited if name.endswith(".py")]
    assert len(in_code) >= 150
    lost = [
        f"{name}: math/{page}.md#{slug}"
        for name, page, slug in cited
        if slug not in known.get(page, ())
    ]
    assert not lost
    history = "CHANGELOG.md"  # says what was
    assert not [name for name, text in texts().items() if OLD.search(text) and name != history]


def test_references_inside_a_page_resolve():
    links, missing = 0, []
    for path in MATH.glob("*.md"):
        page = path.read_text(encoding="utf-8")
        found = re.findall(r"\]\(#([^)]+)\)", page)
        links += len(found)
        missing += [f"{path.name}: {link}" for link in found if link not in anchors(page)]
    assert links
    assert not missing


def test_every_page_of_the_mathematics_is_listed_with_a_sentence():
    index = (MATH / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[[^]]+\]\((\w+)\.md\): \w", index, flags=re.MULTILINE)
    toctree = index.partition("```{toctree}")[2]
    pages = {path.stem for path in MATH.glob("*.md")} - {"index"}
    assert set(listed) == pages == set(re.findall(r"^\w+$", toctree, flags=re.MULTILINE))


def test_a_heading_stands_on_one_page_of_the_mathematics(known):
    found = [slug for slugs in known.values() for slug in slugs]
    assert len(found) == len(set(found))


def test_what_the_mathematics_names_of_the_package_exists():
    named = {(p.stem, name) for p in MATH.glob("*.md") for name in MODULE.findall(p.read_text())}
    assert len(named) >= 60
    missing = []
    for page, name in sorted(named):
        room, _, last = f"skbayes_sg.{name}".rpartition(".")
        if not (ROOT / f"{room.replace('.', '/')}/{last}.py").exists():
            found = importlib.import_module(room)
            missing += [] if hasattr(found, last) else [f"{page}: {name}"]
    assert not missing


def test_links_between_pages_resolve():
    """README, the pages of docs/ and those at the top: the file, and the heading in it."""
    pages = {name: text for name, text in texts().items() if name.endswith(".md")}
    missing, found = [], 0
    for name, text in pages.items():
        for link in re.findall(r"\]\(([^)\s]+)\)", FENCED.sub("", text)):
            file, _, slug = link.partition("#")
            if "://" in link or not file:
                continue
            found += 1
            path = (ROOT / name).parent / file
            if not path.exists() or (slug and slug not in anchors(path.read_text())):
                missing.append(f"{name}: {link}")
    assert found >= 60
    assert not missing, missing


def test_the_readme_is_short_and_every_page_is_linked_by_it_or_by_the_lists_of_docs():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 140
    docs = ROOT / "docs"
    lists = "".join((docs / f"{name}.md").read_text() for name in ("index", "guide", "theory"))
    linked = {*re.findall(r"\(docs/([\w.]+)", readme), *re.findall(r"\(([\w.]+)\)", lists)}
    assert {path.name for path in docs.glob("*.md")} <= linked


def test_every_erratum_has_a_heading(known):
    assert {f"e{number}" for number in range(1, 26)} <= known["errata"]


def test_nothing_outside_the_repository_is_cited():
    found = [
        f"{name}: {match[0]}"
        for name, text in texts().items()
        for match in [*OUTSIDE.finditer(text), *FOREIGN.finditer(text)]
    ]
    assert not found


@cache
def defined(path):
    """Names of functions, methods and classes of a file."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def test_what_the_rows_of_the_papers_name_exists():
    named = NAMED.findall(PAPERS.read_text(encoding="utf-8"))
    assert len(named) >= 80
    missing = []
    for file, name, option in named:
        paths = [ROOT / home / file for home in HOMES if (ROOT / home / file).exists()]
        if not paths or (name and not any(name in defined(path) for path in paths)):
            missing.append(f"{file}::{name}" if name else file)
        elif option and f"{option.replace('-', '_')}={{" not in paths[0].read_text():
            missing.append(f"{file} --{option}")
    assert not missing, missing


def test_every_row_of_the_papers_has_a_test_or_a_script():
    rows = PAPERS.read_text().partition("\n## Equations, figures and tables")[2]
    rows = re.findall(r"^\| (?!where|---).*\|$", rows, flags=re.MULTILINE)
    cells = [re.split(r" ?\| ?", row)[1:-1] for row in rows]
    assert len(rows) >= 38
    assert not [row for row, cell in zip(rows, cells, strict=True) if len(cell) != 4]
    assert not [cell for cell in cells if not NAMED.search(cell[3])]
    assert not [cell for cell in cells if "`" in cell[2] and "`test_" not in cell[3]]


def test_every_fault_applies():
    """The text that a fault of faults.py changes stands once in its file."""
    stale = [
        fault.why
        for fault in FAULTS
        if (ROOT / "skbayes_sg" / fault.file).read_text().count(fault.old) != 1
    ]
    assert stale == []
