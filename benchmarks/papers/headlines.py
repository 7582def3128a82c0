"""What the authors of the three papers would look up: printed figures beside those found here.

    python -m benchmarks.papers.headlines

It runs nothing. It reads the tables that the benchmarks of the papers wrote and collects, for every
figure and table, the number in print, the number found, their ratio, and the command of the table.
Where the paper makes a comparison and prints no number, "printed" is what it says of a ratio: below
1, or 1 for an agreement. docs/sources.md begins with most of this table.

Error rates of Table 1 of Ahn et al. are from 24,701 test rows in place of 244,921, in errors per
10,000. Divergences of
Table 1 of Mandt et al. are in continuous time, the paper's theory; of BBVI they are means of runs.
The claims are how many of the latter are within a quarter of the print, and how many comparisons
come out; the number in print is the limit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.common.harness import RESULTS, Claim, Report, benchmark, read_rows
from benchmarks.papers.mandt2017.mandt_table1 import DATA_SETS, PUBLISHED

N_TEST = 24_701
BELOW, AGREES = "below 1", "1"


def command_of(file: str) -> str:
    """The command in the first line of a table, without what adds rows to an earlier run."""
    command = (RESULTS / file).read_text().splitlines()[0].removeprefix("# ").rpartition(",")[0]
    return command.partition(" --also")[0].removesuffix(" --nuts")


def rows_where(file: str, wanted: Callable[[dict], bool]) -> list[dict]:
    """Rows of a table."""
    return [row for row in read_rows(RESULTS / file) if wanted(row)]


def least(file: str, start: str, column: str, name: str = "setting") -> float:
    """The smallest value of a column, of the rows whose name starts so."""
    rows = rows_where(file, lambda row: str(row[name]).startswith(start) and column in row)
    return min(row[column] for row in rows)


def line(place: str, quantity: str, printed: str, ours: float, file: str) -> dict:
    """A number in print, "18.7 nats", beside the one found."""
    ratio = ours / float(printed.split()[0])
    found = {"place": place, "quantity": quantity, "printed": printed, "ours": ours}
    return found | {"ratio": ratio, "command": command_of(file)}


def compared(place: str, quantity: str, printed: str, one: float, other: float, file: str) -> dict:
    """A ratio of which the paper says that it is below 1, or 1."""
    found = {"place": place, "quantity": quantity, "printed": printed, "ours": one / other}
    return found | {"ratio": one / other, "command": command_of(file)}


def ahn() -> list[dict]:
    """Ahn, Korattikara & Welling."""
    found, file = [], "ahn_logistic.csv"
    ratio = rows_where(file, lambda row: row["setting"] == "SGFS-f 0")[0]["var ratio"]
    what = "variance of SGFS-f at alpha = 0 over the posterior's"
    found.append(line("Ahn, Fig. 1", what, AGREES, ratio, file))
    for error, name in (("E1", "mean"), ("E2", "covariance")):
        for seconds in ("1 s", "30 s"):
            column = f"{error} {seconds}"
            for label, setting in (("SGFS-f", "SGFS-f "), ("Algorithm 1", "printed ")):
                for other in ("SGLD", "HMC"):
                    what = f"error of the {name} after {seconds}, {label} over {other}"
                    pair = least(file, setting, column), least(file, other + " ", column)
                    found.append(compared("Ahn, Fig. 2", what, BELOW, *pair, file))
    file = "hhp_standin.csv"
    rows = {(r["method"], r["lambda"]): r for r in read_rows(RESULTS / file)}
    what = "error with the best regularizer, SGFS-d over {}, on a stand-in"
    for other, column in (("SGD", "last"), ("SGLD", "average")):
        pair = rows["SGFS-d", 100]["average"], rows[other, 100][column]
        found.append(compared("Ahn, Fig. 3 left", what.format(other), BELOW, *pair, file))
    file = "ahn_mlp.csv"
    for other, column in (("SGLD", "average"), ("SGD", "last draw")):
        pair = least(file, "SGFS-f", "average", "family"), least(file, other, column, "family")
        what = f"final error, SGFS-f over {other}"
        found.append(compared("Ahn, Fig. 3 right", what, BELOW, *pair, file))
    found += ahn_table_1()
    for file, what in (("ahn_drbm_all.csv", "all rows"), ("ahn_drbm.csv", "a tenth of the rows")):
        pair = least(file, "SGFS-f", "E2"), least(file, "SGLD", "E2")
        what = f"error of the covariance, SGFS-f over SGLD, {what}"
        found.append(compared("Ahn, Fig. 5", what, BELOW, *pair, file))
    return found


def ahn_table_1() -> list[dict]:
    """Error rates in units of 1e-4, under the paper's prior and under a tenth of it."""
    found, file = [], "ahn_kdd_full.csv"
    printed = {"SGD": "8.0", "SGLD": "6.6", "SGFS-d": "4.2", "SGFS-f": "4.4"}
    printed = {family: f"{rate} in 10,000" for family, rate in printed.items()}
    for precision in (10, 1):
        of_paper = f"precision={precision}"
        for family, rate in printed.items():
            row = rows_where(
                file,
                lambda row, family=family, of_paper=of_paper, precision=precision: (
                    row["family"] == family
                    and "test errors" in row
                    and (of_paper in row["setting"]) == (precision == 10)
                ),
            )[0]
            noise = ", bounded noise" if family.startswith("SGFS") else ""
            what = f"test errors of {family}{noise}, prior precision {precision}"
            ours = 1e4 * row["test errors"] / N_TEST
            found.append(line("Ahn, Table 1", what, rate, ours, file))
    file = "ahn_kdd_letter.csv"
    for precision in (10, 1):
        rows = rows_where(
            file,
            lambda row, precision=precision: (
                row["matrices"] == "letter" and row["precision"] == precision
            ),
        )
        ours = 1e4 * float(np.mean([row["test errors"] for row in rows])) / N_TEST
        what = f"test errors of Algorithm 1, SGFS-d, alpha = 8.95, prior precision {precision}"
        found.append(line("Ahn, Table 1", what, printed["SGFS-d"], ours, file))
    return found


def mandt() -> list[dict]:
    """Mandt, Hoffman & Blei."""
    found, file = [], "mandt_fig1_2.csv"
    for row in rows_where(file, lambda row: row["method"] == "full"):
        what = f"variance over the posterior's, full matrix, {row['axis']} axis, {row['data']}"
        found.append(
            compared("Mandt, Fig. 1", what, AGREES, row["simulated"], row["posterior"], file)
        )
    file = "mandt_table1.csv"
    for column, data in enumerate(DATA_SETS):
        for method, of_data in PUBLISHED.items():
            wanted = (data, method)
            row = rows_where(file, lambda r, w=wanted: (r["data"], r["method"]) == w)[0]
            ours = row["simulated"] if method == "BBVI" else row["OU"]
            what = f"divergence of {method}, {data}"
            found.append(line("Mandt, Table 1", what, f"{of_data[column]} nats", ours, file))
    file = "mandt_iasg.csv"
    rows = {(row["setting"], row["start"]): row for row in read_rows(RESULTS / file)}
    ours = rows["IASG, Fig. 3", "mode, independent features"]["measured"]
    what = "variance of averages over the posterior's"
    found.append(line("Mandt, Fig. 3", what, AGREES, ours, file))
    one = rows["IASG, paper", "random"]
    printed = f"{one['Eq. 45']:.3f} by Eq. 45"
    found.append(line("Mandt, Fig. 4", what, printed, one["measured"], file))
    what = "passes until near the posterior from a random start, IASG over NUTS"
    other = rows["NUTS", "random"]["until near"]
    found.append(compared("Mandt, Fig. 4", what, BELOW, one["until near"], other, file))
    for data in ("mnist", "covertype"):
        file = f"mandt_fig6_{data}.csv"
        best = least(file, "grid", "loss", "method")
        em = rows_where(file, lambda row: "constant SGD" in row["method"] and "loss" in row)[0]
        what = f"loss at the precision of EM in constant SGD over the best of the grid, {data}"
        found.append(compared("Mandt, Fig. 6", what, AGREES, em["loss"], best, file))
    return found


def karagiannis() -> list[dict]:
    """Karagiannis prints pictures alone."""
    file, found = "handout_regression.csv", []
    for claim in (RESULTS / file).read_text().splitlines():
        for start, place in (
            ("# ok   4.1, b1: sd falls", "Handout, Fig. 4.1"),
            ("# ok   4.2, b1: nearer", "Handout, Fig. 4.2"),
            ("# ok   4.3, b1: sd grows", "Handout, Fig. 4.3"),
        ):
            if claim.startswith(start):
                what = {
                    "1": "spread falls with larger minibatches",
                    "2": "SGLD is nearer to the posterior with larger minibatches",
                    "3": "spread grows with the temperature",
                }[place[-1]]
                found.append(
                    {
                        "place": place,
                        "quantity": what,
                        "printed": "yes",
                        "ours": "yes",
                        "ratio": None,
                        "command": command_of(file),
                    }
                )
    return found


def main(report: Report) -> None:
    """All three."""
    rows = [*ahn(), *mandt(), *karagiannis()]
    table = [row for row in rows if row["place"] == "Mandt, Table 1"]
    near = sum(abs(row["ratio"] - 1) < 0.25 for row in table)
    below = [row["ratio"] for row in rows if row["printed"] == BELOW]
    equal = [row["ratio"] for row in rows if row["printed"] == AGREES]
    claims = [
        Claim("Mandt, Table 1: figures within a quarter of the print", near, low=len(table)),
        Claim("comparisons that the papers have below 1", below, high=1, strict=True),
        Claim("agreements", equal, 0.9, 1.1),
    ]
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(main)
