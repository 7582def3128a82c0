"""README and docs show what the committed tables hold; `figures.py` says how a figure is marked."""

import re
from itertools import pairwise

import cells
import figures
import pytest
from test_tables import NOT_YET

PAGES = {page: text for page, text in figures.pages().items() if page in NOT_YET}
TABLE = """# python benchmarks/x.py, 2026-11-22
model,error,s,note
ours,0.10667,0.995,"349, 0.016"
"ours, longer",0.0946,51234.5,
theirs,0.21334,2.5,
"""
TABLE_SHOWN = "<!-- table x.csv: model={model} -->\n| model | s | note |\n|---|---|---|\n"


@pytest.fixture
def x_csv(tmp_path, monkeypatch):
    (tmp_path / "x.csv").write_text(TABLE)
    monkeypatch.setattr(cells, "RESULTS", tmp_path)
    cells.table.cache_clear()
    yield
    cells.table.cache_clear()


def faults(text):
    return [str(fault) for fault in figures.check("page.md", text)]


@pytest.mark.parametrize("page", PAGES)
def test_every_figure_of_a_page_is_the_rounding_of_the_cell_that_it_cites(page):
    found = figures.check(page, PAGES[page])
    assert not found, "\n".join(["python tests/repository/figures.py --write", *map(str, found)])


GUIDES = ["samplers", "networks", "priors", "peers"]


def section(text, place):
    """From the heading before a place to the next one; sources do not reach across."""
    headings = [0, *(found.start() for found in re.finditer(r"^##", text, re.MULTILINE)), len(text)]
    return next((a, b) for a, b in pairwise(headings) if a <= place < b)


@pytest.mark.parametrize(
    "page", [f"docs/{name}.md" for name in GUIDES if f"docs/{name}.md" in PAGES]
)
def test_another_last_digit_of_a_measured_figure_is_a_fault(page):
    text, faulty = PAGES[page], 0
    some = figures.figures(text)
    some = some[:: len(some) // 5]
    for figure in some:
        last = max(figure.text.rfind(sign) for sign in "123456789")
        other = str(int(figure.text[last]) % 9 + 1)
        at = figure.start + last
        start, end = section(text, at)
        assert not figures.check(page, text[start:end])
        faulty += bool(figures.check(page, text[start:at] + other + text[at + 1 : end]))
    assert faulty > len(some) / 2  # the others are given


@pytest.mark.parametrize(
    "text",
    [
        "error .107 <!-- x.csv: model=ours: error -->",
        "error .107, with .095 <!-- x.csv: model=ours: error; model=ours, longer: error -->",
        "1.00 s, 51,200 s <!-- x.csv: model=ours: s; model=ours, longer: s -->",
        "349 of weight <!-- x.csv: model=ours: note -->",
        "half: .5 <!-- x.csv: model=ours over model=theirs: error -->",
        "below .11, above .10 <!-- x.csv: model=ours: up error, down error -->",
        "10.7 % <!-- x.csv: model=ours: error -->",
        ".095 to .213, at least .09 <!-- x.csv: min error, max error, down min error -->",
        "up to 91 % off <!-- x.csv: up off error -->",
        "4 to .107 <!-- given; x.csv: model=ours: error -->",
        "a quarter of a half, .125 <!-- = exp(log(1 / 4)) / 2 -->",
        "to 1e-10 <!-- tests/diagnostics/test_diagnostics.py::test_equal_to_arviz: asserted -->",
        "Section 5.1, Fig. 3, alpha = 2, 2012, E1, 300 rows, 20 x 10, $x = 3.5$, `x = 1.5`, 2-3",
        TABLE_SHOWN + "| theirs | 2.5 | |\n",
        "|a| .107 <!-- x.csv: model=ours: error --> |\n|b| 2.5 <!-- x.csv: model=theirs: s --> |",
    ],
)
def test_what_agrees(text, x_csv):
    assert faults(text) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("The error is\n.107 here.", "page.md:2: .107 has no source"),
        ("- .107 <!-- x.csv: model=ours: error -->\n- and .107 again", "page.md:2: .107 has no so"),
        (".106 <!-- x.csv: model=ours: error -->", ".106 is 0.10667 in x.csv: model=ours: error"),
        (".1066 <!-- x.csv: model=ours: error -->", ".1066 is 0.10667"),
        ("51,300 <!-- x.csv: model=*longer: s -->", "51,300 is 51234.5"),
        ("below .13 <!-- x.csv: model=ours: up error -->", ".13 is 0.10667"),
        ("16 errors <!-- given, given -->", "2 sources for 1 figures: 16"),
        ("of $x$, $.973$", ".973 has no source"),
        ("of `x`, `.973`", ".973 has no source"),
        ("errors: 16 of 10,000 rows", "16 has no source"),
        (".1 <!-- x.csv: model=hers: error -->", "x.csv has no row with model=hers"),
        (".1 <!-- x.csv: model=ours: loss -->", "no column loss, but model, error, s, note"),
        (".1 <!-- x.csv: model=ours*: error -->", "2 cells fit; write median"),
        (".1 <!-- x.csv: model=theirs: note -->", "no number in the cell note"),
        (".1 <!-- y.csv: error -->", "there is no benchmarks/results/y.csv"),
        (".107 <!-- cited by mistake: x.csv -->", ".107 has no source"),
        (".3 <!-- = exp(-3) -->", ".3 is 0.0497871 in = exp(-3)"),
        (
            "1e-3 <!-- tests/diagnostics/test_diagnostics.py::test_equal_to_arviz: asserted -->",
            "1e-3 is not in",
        ),
        (".1\n<!-- given -->\nand more", "ends the paragraph on GitHub"),
        (
            TABLE_SHOWN + "| theirs | 2.6 | |\n",
            "page.md:4: 2.6 is 2.5",
        ),
        (
            TABLE_SHOWN + "| ours | .995 | |\n",
            "is left out",
        ),
    ],
)
def test_what_does_not(text, why, x_csv):
    (found,) = faults(text)
    assert why in found


def test_wrong_figures_are_written_anew(x_csv):
    sources = "x.csv: model=*longer: s; model=ours: error, up error"
    text = f"From 41,000 s to .20, 3 %: no. <!-- {sources} -->"
    mended = figures.mended(text, figures.check("page.md", text))
    assert mended.startswith("From 51,000 s to .11, 11 %: no.")
    assert figures.check("page.md", mended) == []
