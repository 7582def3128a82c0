"""README and docs show what the committed results hold: tables are generated, prose quotes them.

The rule for prose: a number with a decimal point stands, digit by digit, in a generated table of
the same page or in code or a formula of it. Numbers of sections and versions are exempt.
"""

import re

import pytest
import tables

pytestmark = pytest.mark.repository

PAGES = tables.pages()
CODE = re.compile(
    r"^(?: *)```.*?^(?: *)```|``.+?``|`[^`]*`|\$\$.*?\$\$|\$[^$\n]+(?:\n[^$\n]+)?\$",
    re.DOTALL | re.MULTILINE,
)
NO_PROSE = re.compile(r"\]\([^)]*\)|<[a-zA-Z/!][^>]*>", re.DOTALL)
NUMBERED = (
    r"[Ss]ections?|[Cc]hapters?|[Ff]igures?|Figs?\.|[Tt]ables?|Eqs?\.|[Ee]quations?|[Hh]andouts?"
)
NUMBERED += r"|[Vv]ersions?|Python|scikit-learn|NumPy|SciPy|ArviZ|joblib|pandas|dask|JAX"
NUMBER = r"\d+(?:\.\d+)+"
EXEMPT = re.compile(
    rf"\b(?:{NUMBERED})(?: >=| above| below)?\s{NUMBER}(?:,?(?: and| or| to|-)?\s*{NUMBER})*"
    r"|\d+\.\d+\.\d+"
)
DECIMAL = re.compile(r"(?<![\w.])[\d,]*\.\d+(?:e[+-]?\d+)?(?!\d|\.\d)")


def normal(number):
    """A decimal without what is a matter of style: a leading zero, commas."""
    return number.replace(",", "").lstrip("0")


def unsupported(text):
    """Decimals of the prose that stand nowhere else on the page."""
    sources = [match[2] for match in tables.BLOCK.finditer(text)] + CODE.findall(text)
    known = {normal(number) for source in sources for number in DECIMAL.findall(source)}
    prose = tables.BLOCK.sub("-->", text)
    for hidden in (CODE, NO_PROSE, EXEMPT):
        prose = hidden.sub(" ", prose)
    return [number for number in DECIMAL.findall(prose) if normal(number) not in known]


@pytest.mark.parametrize("page", PAGES)
def test_every_table_is_what_its_file_holds(page):
    assert tables.filled(PAGES[page]) == PAGES[page], "python docs/tables.py"


@pytest.mark.parametrize("page", PAGES)
def test_every_decimal_of_the_prose_stands_in_a_table_or_in_code(page):
    assert not unsupported(PAGES[page])


def test_every_table_that_is_described_stands_on_a_page():
    shown = {match[1] for text in PAGES.values() for match in tables.BLOCK.finditer(text)}
    assert shown == set(tables.described())
    comments = [CODE.sub("", text).count("<!--") for text in PAGES.values()]  # no others
    assert comments == [2 * len(tables.BLOCK.findall(text)) for text in PAGES.values()]


def test_every_claim_that_fails_has_a_reason_and_no_other_has():
    failing = tables.claims().query("verdict == 'FAIL'")["file"]
    page = tables.BLOCK.sub("", PAGES["docs/evidence.md"]).partition("## Claims that fail")[2]
    assert set(re.findall(r"`(\w+\.csv)`", page)) == set(failing)


SHOWN = "<!-- table: x -->\n\n| a |\n| ---: |\n| 0.50 |\n\n<!-- end -->\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (SHOWN + "It is .50 and, in all, 0.50.", []),
        (SHOWN + "It is 0.5 of 3 rows, or 0.51.", ["0.5", "0.51"]),
        ("| a |\n| --- |\n| 0.25 |\n", ["0.25"]),
        ("`x = 0.25` and $y = .75$: .25 and 0.75, not\n1.5e-3.", ["1.5e-3"]),
        ("```text\n1,234.5\n```\n1234.5, -0.5 and 2.5x where a < 3 and b > 1", ["0.5", "2.5"]),
        ("Section 5.1 and 5.2, Fig. 2.3, Python >= 3.11, 0.4.0, [x](y.md#a-0.3), 2012, 95 %.", []),
    ],
)
def test_decimals_of_prose_are_found(text, found):
    assert unsupported(text) == found


@pytest.fixture
def x_csv(tmp_path, monkeypatch):
    lines = ["# python x.py", "# ok   a claim", "model,set,s,n", "ours,a,0.126,3", "ours,b,30,1000"]
    (tmp_path / "x.csv").write_text("\n".join([*lines, '"it, too",a,0.5,', ""]))
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    tables.results.cache_clear()
    yield
    tables.results.cache_clear()


OURS = {"where": {"model": "ours"}}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"columns": ["set", "n"], **OURS}, "set | n; --- | ---:; a | 3; b | 1,000"),
        (
            {"columns": [{"label": "t", "value": "mean s", "digits": 1}], "rows": "model"},
            " | t; --- | ---:; ours | 15.1; too | 0.5",
        ),
        (
            {
                "columns": [{"label": "s", "value": "s"}, {"label": "n", "value": "{n} of {set}"}],
                "rows": [
                    {"label": "one", "significant": 2, **OURS},
                    {"label": "no", "text": {"s": "-", "n": "two"}, **OURS},
                ],
                "corner": "m",
                "where": {"set": "a"},
            },
            "m | s | n; --- | ---: | ---; one | 0.13 | 3 of a; no | - | two of a",
        ),
        (
            {
                "columns": [{"label": "times", "over": {"model": "it*"}}],
                "rows": [{"label": "a", "value": "s", "where": {"model": "ours", "set": "a"}}],
            },
            " | times; --- | ---:; a | 0.252",
        ),
    ],
)
def test_tables_are_rendered(table, expected, x_csv):
    table = {"file": "x.csv", "names": {"it, too": "too"}, **table}
    lines = [line[2:-2] for line in tables.rendered(table).splitlines()]
    assert "; ".join(lines) == expected


def test_a_cell_of_several_rows_asks_what_to_show(x_csv):
    with pytest.raises(ValueError, match="2 rows, one is wanted"):
        tables.rendered({"file": "x.csv", "columns": ["s"], "rows": [{"label": "a", **OURS}]})
