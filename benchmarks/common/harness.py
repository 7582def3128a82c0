"""Claims with limits, tables and figures on disk, and an exit code: what all benchmarks share.

A script ends with ``benchmark(main)``. Its ``main`` takes a `Report` and the arguments of the
command line by name. It saves rows, claims and figures through the report. The exit code is 1 if
a claim fails.

A CSV names its command, its date and the commit that it was made with in its first line; ``+``
says that the package had changes beyond that commit. The verdicts follow, then the rows::

    # python -m benchmarks.folder.x --full, 2026-11-21, 5d44d583
    # ok   error of the average: 0.172, <= 0.22
    setting,error
    SGFS,0.172

``pandas.read_csv(path, comment="#")`` reads the rows.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BENCHMARKS = Path(__file__).parents[1]
RESULTS = BENCHMARKS / "results"


class Claim(NamedTuple):
    """What a benchmark shows: a sentence, the figure that was measured, and its limits."""

    sentence: str
    figure: float | Sequence[float] | None
    """Of several figures each must keep the limits. None was not measured, NaN fails."""
    low: float = -np.inf
    high: float = np.inf
    strict: bool = False
    """whether the limits themselves are outside"""

    @property
    def verdict(self) -> str:
        """``ok``, ``FAIL``, or ``--`` if nothing was measured."""
        if self.figure is None:
            return "--"
        less = np.less if self.strict else np.less_equal
        holds = less(self.low, self.figure) & less(self.figure, self.high)
        return "ok" if np.all(holds) else "FAIL"

    def __str__(self) -> str:
        """Verdict, sentence, figure and limits in one line."""
        if self.figure is None:
            figure = "not measured"
        else:
            ends = dict.fromkeys([f"{np.min(self.figure):.5g}", f"{np.max(self.figure):.5g}"])
            figure = " to ".join(ends)
        return f"{self.verdict:4} {self.sentence}: {figure}, {self._limits()}"

    def _limits(self) -> str:
        equal = "" if self.strict else "="
        if self.low == -np.inf:
            return f"<{equal} {self.high:.6g}"
        if self.high == np.inf:
            return f">{equal} {self.low:.6g}"
        if self.strict:
            return f"between {self.low:.6g} and {self.high:.6g}"
        return f"from {self.low:.6g} to {self.high:.6g}"


class Report:
    """Prints what a benchmark finds, writes it, and knows whether a claim failed."""

    def __init__(self, name: str, command: str) -> None:
        self.name = name
        self.command = command
        self.failed = False

    def show(self, rows: list[dict], title: str = "") -> None:
        """Print rows that no CSV holds."""
        print(f"\n{title}" if title else "")
        print_table(rows)

    def save(
        self,
        rows: list[dict],
        claims: Iterable[Claim] = (),
        figures: dict[str, Figure] | None = None,
        name: str | None = None,
        title: str = "",
    ) -> None:
        """Print rows and verdicts; write ``<name>.csv``, and each figure as ``<key>.png``."""
        claims = list(claims)
        self.show(rows, title)
        path = RESULTS / f"{name or self.name}.csv"
        write_csv(path, rows, claims, f"{self.command}, {datetime.date.today()}, {commit()}")
        for key, figure in (figures or {}).items():
            figure.savefig(RESULTS / f"{key}.png", dpi="figure")
        print(f"\nwrote {', '.join([path.name, *(f'{key}.png' for key in figures or {})])}\n")
        self.diagnose_run(claims)

    def earlier(self) -> list[dict]:
        """The rows of the last run: numbers as numbers, without empty cells."""
        return read_rows(RESULTS / f"{self.name}.csv")

    def diagnose_run(self, claims: Iterable[Claim]) -> None:
        """Print verdicts, and remember a failure."""
        for claim in claims:
            print(claim, flush=True)
            self.failed |= claim.verdict == "FAIL"


def benchmark(main: Callable[..., None], threads: int | None = None, **arguments: dict) -> None:
    """Run ``main(report, **values)`` as a script; exit with 1 if one of its claims failed.

    threads : threads of BLAS
    arguments : options of ``ArgumentParser.add_argument`` by name
    """
    module = sys.modules[main.__module__]
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=module.__doc__, formatter_class=form)
    for name, options in arguments.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **options)
    values = vars(parser.parse_args())
    script = Path(module.__file__ or "")
    parts = script.resolve().relative_to(BENCHMARKS.parent).with_suffix("").parts
    command = shlex.join(["python", "-m", ".".join(parts), *sys.argv[1:]])
    report = Report(script.stem, command)
    with threadpool_limits(threads):
        main(report, **values)
    if report.failed:
        sys.exit(1)


def commit() -> str:
    """The first eight digits of the commit, and ``+`` if the package has changes beyond it."""

    def git(*command: str) -> str:
        return subprocess.check_output(["git", *command], cwd=BENCHMARKS.parent, text=True).strip()

    changed = git("status", "--porcelain", "skbayes_sg")
    return git("rev-parse", "--short=8", "HEAD") + "+" * bool(changed)


def read_rows(path: Path) -> list[dict]:
    """The rows of a table: numbers as numbers, without empty cells."""
    with path.open() as file:
        lines = [line for line in file if not line.startswith("#")]
    rows = csv.DictReader(lines)
    return [{key: _number(cell) for key, cell in row.items() if cell} for row in rows]


def write_csv(path: Path, rows: list[dict], claims: Iterable[Claim], origin: str) -> None:
    """Command, date and commit, verdicts, then rows; None is an empty cell."""
    path.parent.mkdir(exist_ok=True)
    tidy = [{key: _one_line(value) for key, value in row.items()} for row in rows]
    with path.open("w", newline="") as file:
        file.writelines(f"# {line}\n" for line in [origin, *map(str, claims)])
        writer = csv.DictWriter(file, fieldnames=columns(tidy), lineterminator="\n")
        writer.writeheader()
        writer.writerows(tidy)


def columns(rows: list[dict]) -> list[str]:
    """All keys in the order in which they first occur."""
    return list(dict.fromkeys(key for row in rows for key in row))


def print_table(rows: list[dict]) -> None:
    """Print aligned columns, numbers with four digits."""
    names = columns(rows)
    cells = [[_cell(row.get(name)) for name in names] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    for line in [names, *cells]:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def _number(cell: str) -> int | float | str:
    """As a number if it is one."""
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def _one_line(value):
    return " ".join(value.split()) if isinstance(value, str) else value


def _cell(value) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(_one_line(value))
