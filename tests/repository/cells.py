"""What the sources of a figure say, as `figures.py` explains them: files, rows and cells."""

import ast
import csv
import math
import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
OF_SEVERAL = {
    "median": lambda cells: sorted(cells)[len(cells) // 2],
    "mean": lambda cells: sum(cells) / len(cells),
    "sum": sum,
    "min": min,
    "max": max,
    "off": lambda cells: max(abs(cell - 1) for cell in cells),
}
ROUNDINGS = ("up", "down")


class SourceError(Exception):
    """What is cited cannot be read."""


class Cited(NamedTuple):
    """Where a figure comes from."""

    file: str
    rows: str
    cell: str

    def __str__(self) -> str:
        return ": ".join(filter(None, self))


def split(text: str, separator: str) -> list[str]:
    """Parts of a text, outside quotes and parentheses."""
    parts, depth, quoted = [""], 0, False
    for at, sign in enumerate(text):
        quoted ^= sign == '"'
        depth += 0 if quoted else {"(": 1, ")": -1}.get(sign, 0)
        if text.startswith(separator, at) and not quoted and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


def sources(comment: str) -> list[Cited]:
    """Sources of a comment, in order."""
    found, file, rows = [], "", ""
    for segment in split(" ".join(comment.split()), ";"):
        *heads, cells = split(segment, ": ")
        for head in heads:
            if re.search(r"\.(csv|py)(::\w+)?$", head):
                file, rows = head, ""
            else:
                rows = head
        found += [Cited(file, rows, cell) for cell in split(cells, ",")]
    return found


@cache
def table(file: str) -> list[dict]:
    """Rows of a table of results."""
    path = RESULTS / file
    if not path.exists():
        raise SourceError(f"there is no benchmarks/results/{file}")
    lines = path.read_text().splitlines()
    return list(csv.DictReader([line for line in lines if not line.startswith("#")]))


@cache
def literals(file: str) -> list[float]:
    """Numbers in the code of a file, or of one of its functions."""
    path, _, name = file.partition("::")
    if not (ROOT / path).exists():
        raise SourceError(f"there is no {path}")
    nodes = list(ast.walk(ast.parse((ROOT / path).read_text())))
    if name:
        nodes = [n for n in nodes if isinstance(n, ast.FunctionDef) and n.name == name]
        if not nodes:
            raise SourceError(f"there is no {name} in {path}")
    constants = [n.value for top in nodes for n in ast.walk(top) if isinstance(n, ast.Constant)]
    return [float(c) for c in constants if type(c) in (int, float)]


def chosen(file: str, rows: str) -> list[dict]:
    """The rows of a table that fit the patterns."""
    found = table(file)
    for condition in filter(None, rows.split(" and ")):
        column, _, pattern = condition.partition("=")
        column, pattern = column.strip(' "'), pattern.strip(' "')
        if column not in found[0]:
            raise SourceError(f"{file} has no column {column}, but {', '.join(found[0])}")
        found = [row for row in found if fnmatchcase(row[column], pattern)]
        if not found:
            raise SourceError(f"{file} has no row with {rows}")
    return found


def cell_of(file: str, rows: str, cell: str) -> float:
    """The number that a source names."""
    selected = chosen(file, rows)
    how, _, name = cell.partition(" ")
    if cell.strip('"') in selected[0] or how not in OF_SEVERAL:
        how, name = "", cell
    name = name.strip('"')
    names = [name] if name in selected[0] else [c for c in selected[0] if fnmatchcase(c, name)]
    cells = [row[column] for row in selected for column in names]
    if not cells:
        raise SourceError(f"{file} has no column {name}, but {', '.join(selected[0])}")
    if not how and len(cells) > 1:
        raise SourceError(
            f"{len(cells)} cells fit; write median, mean, min, max or off before {name}"
        )
    numbers = [re.search(r"-?\d*\.?\d+(?:e[+-]?\d+)?", text) for text in cells]
    if None in numbers:
        raise SourceError(f"no number in the cell {name} of {file}, {rows}: {cells!r}")
    values = [float(number[0]) for number in numbers if number]
    return OF_SEVERAL[how](values) if how else values[0]


def value_of(cited: Cited) -> tuple[float, str]:
    """The number that a source names, and how to round it."""
    if cited.cell.startswith("="):
        return float(eval(cited.cell[1:], {**vars(math), "__builtins__": {}})), ""
    rounding, _, cell = cited.cell.partition(" ")
    if rounding not in ROUNDINGS:
        rounding, cell = "", cited.cell
    these, _, those = cited.rows.partition(" over ")
    value = cell_of(cited.file, these, cell)
    return value / cell_of(cited.file, those, cell) if those else value, rounding
