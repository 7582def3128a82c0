"""Figures of the text against the tables that they come from.

``python tests/repository/figures.py`` lists every figure of README.md and docs/ that is not the
rounding of the cell that it cites, or cites nothing. With ``--write`` it writes the wrong ones
anew.

A figure is a number outside code and formulas. No figures are 0 and 1, years, numbers of sections,
tables and equations, counts of rows, columns and the like, shapes ("20 x 10"), and what a symbol is
set to ("alpha = 2"). All others are followed, in their paragraph, list item or row of a table, by
a comment that gives their sources in order::

    <!-- digits.csv: model=MLPClassifier: median accuracy, up max log loss; given -->

That is: file of benchmarks/results, rows, cells. File and rows hold until others are named.

- rows: ``column=pattern and column=pattern``; ``these over those`` is the ratio of both cells
- cells: name or pattern of a column; before it ``median``, ``mean``, ``sum``, ``min``, ``max`` or
  ``off`` (largest distance from 1) of several; before all, ``up`` or ``down`` for a bound: the cell
  rounded to one side
- ``given``: chosen or quoted, not measured
- ``tests/room/test_x.py::test_name: asserted``: a number in the code of that test
- ``= exp(-3) / 2``: a formula

Names with a comma, colon or semicolon stand in double quotes. Before a table, ``<!-- table
x_{data}.csv: method={method} -->`` compares all its other columns with those of the same name.
"""

import itertools
import math
import re
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import NamedTuple

from cells import ROOT, Cited, SourceError, chosen, literals, sources, value_of

NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)?(?:(?<=\d)(?!\.\d)|\.\d+)(?:e[+-]?\d+)?"
FIGURE = re.compile(rf"(?<![\w./^-]){NUMBER}(?![\w/]|-\w|[.,]\d)")
COUNTED = "rows|columns|features|parameters|classes|units|chains|splits|replicates"
SYMBOL = r"alpha|lambda|kappa|gamma|delta|epsilon|eta|tau|mu|temperature|[A-Za-z]|n/N|N/n"
LABEL = r"[Ss]ections?|[Ff]igures?|Figs?\.|[Tt]ables?|Eqs?\.|[Ee]quations?|[Tt]heorems?|Cor\."
LABEL += r"|[Cc]orollar(?:y|ies)|[Aa]lgorithms?|[Aa]ppendix|[Rr]emarks?|handout|Condition|Python >="
NO_FIGURE = [
    r"^```.*?^```",
    r"<!--.*?-->",
    r"\$\$.*?\$\$",
    r"`[^`]*`",
    r"\$[^$\n]+(?:\n[^$\n]+)?\$",
    r"\]\([^)]*\)",
    r"^\s*\d+\. ",
    rf"\b(?:{LABEL}) \d+(?:\.\d+)*(?:(?:,| and|, and| to|-)\s*\d+(?:\.\d+)*)*",
    r"\b(?:19|20)\d\d\b",
    rf"{NUMBER}(?: x {NUMBER})+",
    rf"(?<![\w.])(?:{SYMBOL}) ?[=<>] ?{NUMBER}",
    rf"(?<![\w.])(?:[\d,]+(?:e\d+)? (?:to|and|or) )?[\d,]+(?:e\d+)?\s(?:hidden )?(?:{COUNTED})\b",
]
HIDDEN = [re.compile(pattern, flags=re.DOTALL | re.MULTILINE) for pattern in NO_FIGURE]
SOURCE = re.compile(
    r"<!--\s*((?:table )?[\w{}]+\.csv:|tests/[\w/]+\.py|benchmarks/[\w/]+\.py|=|given)"
)
ROUNDING = {"up": ROUND_CEILING, "down": ROUND_FLOOR}


class Figure(NamedTuple):
    """A number of the text, where it stands, and whether a per cent sign follows."""

    text: str
    start: int
    percent: bool = False

    @property
    def number(self) -> Decimal:
        return Decimal(self.text.replace(",", ""))

    @property
    def unit(self) -> Decimal:
        """One of the last digit shown; of 51,100 a hundred."""
        number = self.number
        if re.fullmatch(r"[\d,]+", self.text):
            number = number.normalize()
        return Decimal(1).scaleb(number.as_tuple().exponent)

    def shown(self, value: float, rounding: str) -> str:
        """The value as this figure would show it."""
        exact = Decimal(repr(round(value, 12)))
        rounded = exact.quantize(self.unit, ROUNDING.get(rounding, ROUND_HALF_EVEN))
        if "e" in self.text:
            return f"{rounded:.{len(self.text.partition('e')[0].partition('.')[2])}e}"
        text = f"{rounded:,.{len(self.text.partition('.')[2])}f}"
        return text if self.text.startswith("0.") else re.sub(r"^(-?)0\.", r"\1.", text)


class Fault(NamedTuple):
    """What is wrong with a page, and what to write in place of which figure."""

    page: str
    line: int
    why: str
    figure: Figure | None = None
    better: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.why}"


def disagrees(figure: Figure, cited: Cited) -> tuple[str, str]:
    """Why a figure is not what it cites, and what it should be; empty if it is."""
    scale = 100 if figure.percent else 1
    if cited.cell == "given":
        return "", ""
    if cited.cell == "asserted":
        found = any(math.isclose(float(figure.number), scale * c) for c in literals(cited.file))
        return "" if found else f"{figure.text} is not in {cited.file}", ""
    value, rounding = value_of(cited)
    distance = (figure.number - Decimal(repr(round(value * scale, 12)))) / figure.unit
    slack = Decimal("1e-6")
    agrees = {
        "": abs(distance) <= Decimal("0.5") + slack,
        "up": -slack <= distance < 1,
        "down": -slack <= -distance < 1,
    }
    if agrees[rounding]:
        return "", ""
    return f"{figure.text} is {value:.6g} in {cited}", figure.shown(value * scale, rounding)


def blanks(match: re.Match) -> str:
    """Blanks in place of what is no figure; dollars or backticks around a figure do not hide it."""
    bare = re.fullmatch(rf"[$`]({NUMBER})[$`]", match[0])
    return f" {bare[1]} " if bare and "." in bare[1] else re.sub(r"[^\n]", " ", match[0])


def figures(text: str) -> list[Figure]:
    """All figures of a page."""
    for pattern in HIDDEN:
        text = pattern.sub(blanks, text)
    found = [
        Figure(match[0], match.start(), text[match.end() :].startswith((" %", "\n%")))
        for match in FIGURE.finditer(text)
    ]
    return [f for f in found if f.percent or f.text not in ("0", "1")]


def blocks(text: str) -> list[int]:
    """Where paragraphs, list items, headings and rows of tables begin."""
    found, at, blank = [0], 0, True
    for line in text.splitlines(keepends=True):
        if blank or re.match(r"\s*([-*] |\d+\. |\||#)", line):
            found.append(at)
        blank = not line.strip()
        at += len(line)
    return [*found, len(text)]


def check(page: str, text: str) -> list[Fault]:
    """Faults of a page."""
    return sorted(check_text(page, text) + check_tables(page, text), key=lambda fault: fault.line)


def check_text(page: str, text: str) -> list[Fault]:
    """Faults of figures in sentences and in rows with sources of their own."""
    faults = []
    in_tables = [(t.start(), t.end()) for t in tables(text)]
    left = [f for f in figures(text) if not any(a <= f.start < b for a, b in in_tables)]
    comments = [match for match in comments_of(text) if not match[1].startswith("table ")]
    edges = blocks(text)
    for start, end in itertools.pairwise(edges):
        for comment in comments:
            if start <= comment.start() < end:
                above = [f for f in left if start <= f.start < comment.start()]
                left = [f for f in left if f not in above]
                faults += compare(page, text, above, comment)
        faults += [
            Fault(page, line_of(text, figure.start), f"{figure.text} has no source")
            for figure in left
            if start <= figure.start < end
        ]
    return faults


def compare(page: str, text: str, above: list[Figure], comment: re.Match) -> list[Fault]:
    """Figures before a comment with its sources."""
    cites, line = sources(comment[1]), line_of(text, comment.start())
    first = re.search(r"(^|\n) *$", text[: comment.start()])
    rest = text[comment.end() :].partition("\n\n")[0].strip()
    if first and rest and not re.match(r"<!--|[-*] |\d+\. ", rest):
        return [Fault(page, line, "a comment that begins a line ends the paragraph on GitHub")]
    if len(cites) != len(above):
        shown = " ".join(figure.text for figure in above)
        return [Fault(page, line, f"{len(cites)} sources for {len(above)} figures: {shown}")]
    faults = []
    for figure, cited in zip(above, cites, strict=True):
        try:
            why, better = disagrees(figure, cited)
        except (SourceError, NameError, SyntaxError) as error:
            why, better = f"{figure.text}: {error} ({cited})", ""
        if why:
            faults.append(Fault(page, line_of(text, figure.start), why, figure, better))
    return faults


def comments_of(text: str) -> list[re.Match]:
    """Comments that give sources."""
    code = [(c.start(), c.end()) for c in HIDDEN[0].finditer(text)]
    found = re.finditer(r"<!--\s*(.*?)\s*-->", text, flags=re.DOTALL)
    found = [c for c in found if SOURCE.match(c[0])]
    return [c for c in found if not any(a <= c.start() < b for a, b in code)]


def tables(text: str) -> list[re.Match]:
    """Tables with one comment before them: the comment's body, header and rows."""
    form = r"^<!-- table (.*?) -->\n+(\|.*\n)\|[ :|-]+\n((?:\|.*(?:\n|$))+)"
    return list(re.finditer(form, text, flags=re.MULTILINE))


def check_tables(page: str, text: str) -> list[Fault]:
    """Faults of tables whose columns are those of the table that they show."""
    faults = []
    for shown in tables(text):
        names, at = [name for name, _ in cells_of(shown[2])], shown.start(3)
        for line in shown[3].splitlines(keepends=True):
            row = dict(zip(names, cells_of(line), strict=True))
            source = shown[1].format(**{name: cell for name, (cell, _) in row.items()})
            file, _, rows = source.partition(": ")
            for name, (cell, offset) in row.items():
                if f"{{{name}}}" not in shown[1]:
                    figure, cited = Figure(cell, at + offset), Cited(file, rows, f'"{name}"')
                    why, better = compare_cell(figure, cited)
                    if why:
                        faults.append(Fault(page, line_of(text, at), why, figure, better))
            at += len(line)
    return faults


def compare_cell(figure: Figure, cited: Cited) -> tuple[str, str]:
    """Like `disagrees`; an empty cell must be empty in both."""
    try:
        if figure.text:
            return disagrees(figure, cited)
        cell = chosen(cited.file, cited.rows)[0][cited.cell.strip('"')]
        return (f"{cited} is left out, {cell}" if cell else ""), ""
    except (SourceError, KeyError, ArithmeticError) as error:
        return f"{figure.text}: {error} ({cited})", ""


def cells_of(line: str) -> list[tuple[str, int]]:
    """Cells of a row of a table, with their places in it."""
    cells = re.finditer(r"\|\s*([^|\n]*?)\s*(?=\|)", line)
    return [(cell[1], cell.start(1)) for cell in cells]


def line_of(text: str, place: int) -> int:
    """Number of the line of a place."""
    return text.count("\n", 0, place) + 1


def pages() -> dict[str, str]:
    """README and docs by name."""
    files = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in files}


def mended(text: str, faults: list[Fault]) -> str:
    """The page with figures written anew."""
    known = [(fault.figure, fault.better) for fault in faults if fault.figure and fault.better]
    for figure, better in sorted(known, key=lambda pair: -pair[0].start):
        text = text[: figure.start] + better + text[figure.start + len(figure.text) :]
    return text


if __name__ == "__main__":
    wrong = False
    for page, text in pages().items():
        faults = check(page, text)
        wrong |= bool(faults)
        print(*faults, sep="\n", end="\n" if faults else "")
        if "--write" in sys.argv[1:]:
            (ROOT / page).write_text(mended(text, faults))
    sys.exit(wrong)
