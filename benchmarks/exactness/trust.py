"""What users found wrong in version 0.3.0, most of it in silence, beside today's answers.

    python -m benchmarks.exactness.trust                          # three minutes
    python -m benchmarks.exactness.trust --only "raw columns" "rare levels"

The cases are in `trust_cases.py`. "value" is measured, and has to be from "at least" to "at most".
"warnings" are those of the fits. A value that is outside without a warning is wrong in silence.
Where "or a warning" says so, one that is outside with a warning is an answer, too.

"0.3.0" is what that version gives, a record. It was measured by this script with that version on
the path: ``--before`` writes trust_before.csv, and stops at "export", where memory runs out.
"""

from __future__ import annotations

import numpy as np

from benchmarks.common.harness import RESULTS, Claim, Report, benchmark, read_rows
from benchmarks.exactness.trust_cases import CASES, Answer


def row(case: str, answer: Answer) -> dict:
    """What was measured, and whether it is wrong in silence."""
    outside = not answer.low <= answer.value <= answer.high
    return {
        "case": case,
        "of": answer.of,
        "figure": answer.figure,
        "value": float(answer.value),
        "at least": answer.low if np.isfinite(answer.low) else None,
        "at most": answer.high if np.isfinite(answer.high) else None,
        "warnings": answer.warnings,
        "or a warning": "yes" if answer.may_warn else None,
        "silent": "yes" if outside and not answer.warnings else None,
    }


def beside(rows: list[dict]) -> list[dict]:
    """With the record of version 0.3.0, where there is one."""
    past = {(r["case"], r["of"], r["figure"]): r for r in read_rows(RESULTS / "trust_before.csv")}
    table = []
    for now in rows:
        names = (now["case"], now["of"], now["figure"])
        then = past.get(names, {})
        record = {"0.3.0": then.get("value"), "0.3.0 silent": then.get("silent")}
        table.append(dict(zip(("case", "of", "figure"), names, strict=True)) | record | now)
    return table


def claim(case: str, answer: Answer) -> Claim:
    """The value keeps its limits; a warning excuses it where it may."""
    sentence = f"{case}, {answer.of}: {answer.figure}"
    if answer.may_warn and answer.warnings:
        return Claim(f"{sentence}, or warnings", answer.warnings, low=1)
    return Claim(sentence, answer.value, answer.low, answer.high)


def main(report: Report, only: list[str] | None, before: bool) -> None:
    """Cases in turn; the table is written if none was left out."""
    rows, claims = [], []
    for case in only or CASES:
        print(case, flush=True)
        for answer in CASES[case]():
            rows.append(row(case, answer))
            claims.append(claim(case, answer))
    silent = sum(row["silent"] == "yes" for row in rows)
    claims.append(Claim("wrong in silence", silent, high=0))
    if before:
        report.save(rows, claims, name="trust_before")
    elif only:
        report.show(beside(rows))
        report.diagnose_run(claims)
    else:
        report.save(beside(rows), claims)


if __name__ == "__main__":
    benchmark(
        main,
        threads=1,
        only={"nargs": "+", "choices": CASES},
        before={"action": "store_true"},
    )
