"""Write the tables of README.md and docs/ out of the CSVs of benchmarks/results.

``python docs/tables.py`` fills every pair of markers ``<!-- table: NAME -->`` and ``<!-- end -->``
with the table that docs/tables.toml describes under NAME; with ``--check`` it changes nothing,
names the pages that would change, and ends with exit code 1. What may stand under a name:

- ``file``: a CSV of benchmarks/results, or a list of them; ``"claims"`` has the claims of all
  of them, with the columns file, verdict, claim, measured and limit, and ``"older"`` those of the
  list ``older`` that no table shows, with the columns file, commit and day.
- ``where``: keeps the rows with these cells, ``{model = "default", set = ["iris", "wine"]}``;
  ``*`` stands for any text.
- ``columns``: each the name of a column of the file, or ``{label, ...}`` with any key of this list.
- ``rows``: each ``{label, ...}``. The name of a column makes a row of each of its values; without
  ``rows`` each row of the file is one. ``corner`` is the heading above the labels.
- ``value``: the column that a cell shows; ``"mean seconds"`` (or median, sum, min, max, count) of
  several rows; ``"{mean} ± {sd}"`` with words.
- ``over``: as ``where``, and the cell is divided by that of these rows; ``times``: a factor, for
  other units.
- ``digits`` after the point or ``significant`` ones, of numbers that are no integers in the file.
- ``text``: words in place of the columns that they are named after; ``names``: what to call
  values of the file; ``missing``: what stands where no row is found.
- ``like``: the name of a table whose keys this one has too.

Below a table stands the commit of each of its files that is in the list ``older``, which
tests/repository/test_ages.py checks; the table ``"older"`` has the commits of the others.

A cell has the keys of the table, of its row and of its column, the later before the earlier; all
conditions of ``where`` hold together.
"""

import math
import re
import sys
import tomllib
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
BLOCK = re.compile(r"(?<=<!-- table: )([\w-]+) -->\n(.*?)(?=<!-- end -->)", re.DOTALL)
SEVERAL = ("mean", "median", "sum", "min", "max", "count")


@cache
def claims() -> pd.DataFrame:
    """The claims in the first lines of all CSVs: what was measured, and what it has to be."""
    form = re.compile(r"# (ok|FAIL|--) +(.*): (.*), (.*)")
    found = [
        (path.name, *match.groups())
        for path in sorted(RESULTS.glob("*.csv"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if (match := form.fullmatch(line))
    ]
    return pd.DataFrame(found, columns=["file", "verdict", "claim", "measured", "limit"])


def header(file: str) -> tuple[str, str, str]:
    """The first line of a CSV: the script of its command, the day and the commit."""
    form = r"# (?:python (?:-m )?(\S+).*|mutmut run), ([\d-]{10}), ([0-9a-f]{8}\+?)"
    with (RESULTS / file).open(encoding="utf-8") as lines:
        script, day, commit = re.fullmatch(form, lines.readline().strip()).groups()
    return script or "", day, commit


@cache
def older() -> pd.DataFrame:
    """The CSVs of an older package that no table shows, with the commit and the day of each."""
    hidden = set(stored()["older"]).difference(*map(files_of, described().values()))
    rows = []
    for file in sorted(hidden):
        _, day, commit = header(file)
        rows.append({"file": file, "commit": commit, "day": day})
    return pd.DataFrame(rows)


@cache
def results(file: str) -> pd.DataFrame:
    """A CSV of results, as text; its first lines are the command and the claims."""
    if file in ("claims", "older"):
        return claims() if file == "claims" else older()
    lines = (RESULTS / file).read_text(encoding="utf-8").splitlines()
    skipped = sum(line.startswith("#") for line in lines)
    return pd.read_csv(RESULTS / file, skiprows=skipped, dtype=str, keep_default_na=False)


def selected(spec: dict, where: dict) -> pd.DataFrame:
    """Rows of the files of a cell that satisfy all conditions."""
    files = [spec["file"]] if isinstance(spec["file"], str) else spec["file"]
    rows = pd.concat([results(file) for file in files], ignore_index=True)
    for column, wanted in where.items():
        patterns = [wanted] if isinstance(wanted, str) else wanted
        fits = [any(fnmatchcase(cell, each) for each in patterns) for cell in rows[column]]
        rows = rows[fits]
    return rows.iloc[spec["row"] : spec["row"] + 1] if "row" in spec else rows


def merged(*specs: dict) -> dict:
    """The keys of all; conditions add up."""
    where = {name: cell for spec in specs for name, cell in spec.get("where", {}).items()}
    return {name: value for spec in specs for name, value in spec.items()} | {"where": where}


def shown(number: float, spec: dict) -> str:
    """A number with the digits that are asked for."""
    digits = spec.get("digits", 3)
    if "significant" in spec:
        whole = number == round(number)
        digits = 0 if whole else spec["significant"] - 1 - math.floor(math.log10(abs(number)))
    return f"{round(number, digits):z,.{max(digits, 0)}f}"


def quantity(name: str, spec: dict, where: dict) -> str | float:
    """What the file has under a name: text of one row, or a number of several."""
    rows = selected(spec, where)
    if rows.empty and "missing" in spec:
        return spec["missing"]
    how, _, column = name.partition(" ")
    if name in rows or how not in SEVERAL:
        if len(rows) != 1:
            raise ValueError(f"{spec['file']}, {where}: {len(rows)} rows, one is wanted")
        return rows[name].iloc[0]
    if how == "count":
        return float((rows[column] != "").sum())
    numbers = pd.to_numeric(rows[column]).dropna()
    if numbers.empty:
        raise ValueError(f"{spec['file']}, {where}: no number in {column}")
    return float(numbers.agg(how))


def part(name: str, spec: dict) -> str:
    """A column of the file in a cell, or the words in its place."""
    if name in spec.get("text", {}):
        return spec["text"][name]
    found = quantity(name, spec, spec["where"])
    if "over" in spec and found != spec.get("missing"):
        found = float(found) / float(quantity(name, spec, spec["where"] | spec["over"]))
    elif "times" in spec and found != spec.get("missing"):
        found = float(found) * spec["times"]
    elif isinstance(found, str):
        if re.fullmatch(r"-?\d+", found):
            return f"{int(found):,}"
        if not re.fullmatch(r"-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", found):
            return spec.get("names", {}).get(found, found)
    elif name.startswith("count "):
        return f"{int(found):,}"
    return shown(float(found), spec)


def cell(spec: dict) -> str:
    """A cell of a table."""
    value = spec["value"] if "{" in spec["value"] else f"{{{spec['value']}}}"
    return re.sub(r"\{(.+?)\}", lambda match: part(match[1], spec), value)


def rendered(table: dict) -> str:
    """A table in Markdown."""
    columns = [
        {"label": column, "value": column} if isinstance(column, str) else column
        for column in table["columns"]
    ]
    common = {name: value for name, value in table.items() if name not in ("rows", "columns")}
    rows = table.get("rows")
    if isinstance(rows, str):
        values = selected(common, common.get("where", {}))[rows].unique()
        names = table.get("names", {})
        rows = [{"label": names.get(each, each), "where": {rows: each}} for each in values]
    labelled = rows is not None
    if rows is None:
        rows = [{"row": at} for at in range(len(selected(common, common.get("where", {}))))]
    body = [[cell(merged(common, row, column)) for column in columns] for row in rows]
    number = re.compile(r"[-\d.,e]*|\W*\d.*\d\)?")
    right = [all(number.fullmatch(line[at]) for line in body) for at in range(len(columns))]
    head = [column["label"] for column in columns]
    rule = ["---:" if each else "---" for each in right]
    if labelled:
        body = [[row["label"], *line] for row, line in zip(rows, body, strict=True)]
        head, rule = [table.get("corner", ""), *head], ["---", *rule]
    lines = [f"| {' | '.join(line)} |" for line in [head, rule, *body]]
    return "\n".join(lines) + of_older(table)


@cache
def stored() -> dict:
    """What docs/tables.toml holds."""
    return tomllib.loads((ROOT / "docs" / "tables.toml").read_text(encoding="utf-8"))


def described() -> dict[str, dict]:
    """The tables of docs/tables.toml."""
    tables = {name: table for name, table in stored().items() if name != "older"}
    return {name: tables.get(table.get("like"), {}) | table for name, table in tables.items()}


def files_of(table: dict) -> set[str]:
    """The files of its cells."""
    rows, columns = table.get("rows", []), table["columns"]
    specs = [spec for spec in (table, *rows, *columns) if isinstance(spec, dict)]
    files = [spec.get("file", []) for spec in specs]
    return {file for each in files for file in ([each] if isinstance(each, str) else each)}


def of_older(table: dict) -> str:
    """The line under a table with files of an older package: their commits."""
    made = {}
    for file in sorted(files_of(table) & set(stored()["older"])):
        _, day, commit = header(file)
        made.setdefault((day, commit), []).append(f"`{file}`")
    if not made:
        return ""
    each = [
        f"{', '.join(of)} with `{commit}` of {day}" for (day, commit), of in sorted(made.items())
    ]
    return f"\n\nMade with an older package: {'; '.join(each)}."


def filled(text: str) -> str:
    """A page with its tables written anew."""
    return BLOCK.sub(lambda match: f"{match[1]} -->\n\n{rendered(described()[match[1]])}\n\n", text)


def pages() -> dict[str, str]:
    """README and the pages of docs/, by path."""
    files = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    files = [path for path in files if not {"_build", "gallery"} & set(path.parts)]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}


if __name__ == "__main__":
    stale = {page: new for page, text in pages().items() if (new := filled(text)) != text}
    print(*stale, sep="\n", end="\n" if stale else "")
    if "--check" in sys.argv[1:]:
        sys.exit(bool(stale))
    for page, text in stale.items():
        (ROOT / page).write_text(text, encoding="utf-8")
