"""How often do statistical tests fail though nothing is wrong? Each at many seeds.

``python tests/tools/flakiness.py 60`` gives each test that takes the fixture `seed` a minute of CPU
time at most, and 1,000 seeds at most. ``python tests/tools/flakiness.py 60 stream priors`` tries
the tests whose name holds one of the words, and keeps the rows of the others in the table, which is
benchmarks/results/flakiness.csv. The exit code is 1 if a test failed at any seed.
"""

import csv
import os
import sys
import time
from datetime import date
from pathlib import Path

import pytest
from kernels import commit

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "benchmarks" / "results" / "flakiness.csv"
MOST, FIRST = 1000, 3  # seeds: at most, and of the first look at the cost
COLUMNS = ["test", "cases", "seeds", "runs", "failures", "ms per run", "failed at"]


class Record:
    """A pytest plugin: the cases that were collected, their CPU time, and which failed."""

    def __init__(self):
        self.tests, self.failed, self.runs, self.seconds = {}, [], 0, 0.0

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if "seed" in getattr(item, "fixturenames", ())]
        for item in items:
            name = f"{Path(item.fspath).name}::{item.originalname}"
            self.tests[name] = self.tests.get(name, 0) + 1

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        begin = time.process_time()
        result = yield
        self.seconds += time.process_time() - begin
        return result

    def pytest_runtest_logreport(self, report):
        self.runs += report.when == "call"
        if report.failed:
            case = report.nodeid.partition("[")[2].rstrip("]")
            reason = getattr(report.longrepr, "reprcrash", report.longrepr)
            self.failed.append((case, str(getattr(reason, "message", reason))))


def run(what, first, last, *more):
    """A record of some tests at the seeds from `first` up to `last`, which is left out."""
    os.environ["SKBAYES_SG_SEEDS"] = f"{first}-{last - 1}"
    record = Record()
    plain = ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:terminal", "-o", "addopts="]
    pytest.main([f"--rootdir={ROOT}", *plain, *more, what], plugins=[record])
    return record


def row_of(test, cases, seconds):
    """Run one test for so long, and say what came of it."""
    file, _, name = test.partition("::")
    (path,) = (ROOT / "tests").rglob(file)
    where = f"{path}::{name}"
    parts, seeds = [run(where, 0, FIRST)], FIRST
    while seeds < MOST:  # twice as many each time, so that their cost is known
        per_seed = sum(part.seconds for part in parts) / seeds
        room = int((seconds - per_seed * seeds) / max(per_seed, 1e-6))
        more = min(room, 4 * seeds, MOST - seeds)
        if more < 1:
            break
        parts.append(run(where, seeds, seeds + more))
        seeds += more
    runs, failed = sum(part.runs for part in parts), [one for part in parts for one in part.failed]
    cost = 1000 * sum(part.seconds for part in parts) / max(runs, 1)
    for case, message in failed:
        print(f"  {case}: {message[:300]}", flush=True)
    which = " ".join(case for case, _ in failed[:5])
    return dict(
        zip(COLUMNS, [test, cases, seeds, runs, len(failed), f"{cost:.0f}", which], strict=True)
    )


def main(seconds, words):
    """Run the tests, write the table anew after each, and say whether all passed."""
    table = {}
    if words and TABLE.exists():
        lines = TABLE.read_text().splitlines()[1:]
        table = {row["test"]: row for row in csv.DictReader(lines)}
    found = run(str(ROOT / "tests"), 0, 1, "--collect-only").tests
    asked = [test for test in found if not words or any(word in test for word in words)]
    table = {test: row for test, row in table.items() if test in found}
    for test in asked:
        table[test] = row_of(test, found[test], seconds)
        print(*table[test].values(), flush=True)
        with TABLE.open("w", newline="") as file:
            made = f"{date.today()}, {commit()[:8]}"
            file.write(f"# python tests/tools/flakiness.py {seconds:g}, {made}\n")
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(table[test] for test in sorted(table))
    failures = sum(int(table[test]["failures"]) for test in asked)
    print(f"{len(asked)} tests, {failures} failures")
    return 1 if failures or not asked else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
