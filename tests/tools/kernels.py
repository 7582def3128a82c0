"""The whole suite under other kernels of OpenBLAS, with other threads, and in another order.

``python tests/tools/kernels.py`` makes every run of the matrix and prints a table of them. ``python
tests/tools/kernels.py other`` makes one, under a kernel that this processor does not choose by
itself: which of them the commit decides, so that each has its turn. What stands behind ``--`` is
for pytest. The exit code is 1 if a run fails.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
KERNELS = ["Prescott", "Haswell", "Zen", "SkylakeX"]
ASK = """
import numpy as np, threadpoolctl
for dtype in (np.float32, np.float64):  # a processor without these instructions ends here
    np.linalg.solve(np.eye(300, dtype=dtype), np.ones((300, 300), dtype=dtype).T @ np.eye(300))
info = threadpoolctl.threadpool_info()
print(*[one["architecture"] for one in info if one["internal_api"] == "openblas"][:1])
"""


class Run(NamedTuple):
    """One run of the suite."""

    kernel: str = ""
    """The processor's own, if none is named."""
    threads: int = 1
    special: str = ""
    """"SIGINT ignored", as of a background job of a shell, "files backwards" or "no xdist"."""

    def __str__(self) -> str:
        words = self.kernel or "native", f"BLAS threads: {self.threads}", self.special
        return ", ".join(filter(None, words))


def reported(kernel: str) -> str:
    """What OpenBLAS says it takes when asked for a kernel; nothing if the processor cannot."""
    environment = dict(os.environ)
    environment.pop("OPENBLAS_CORETYPE", None)
    environment |= {"OPENBLAS_CORETYPE": kernel} if kernel else {}
    command = [sys.executable, "-c", ASK]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True)
    return answer.stdout.strip() if answer.returncode == 0 else ""


def available() -> dict[str, str]:
    """Kernels that run here, and what OpenBLAS calls them; what is left out is printed.

    The name is that of the oldest processor with the same kernel: Katmai for Prescott. A build
    without a kernel for Zen takes that of Haswell, which is tried once.
    """
    names: dict[str, str] = {}
    for kernel in KERNELS:
        name = reported(kernel)
        if name and name not in names.values():
            names[kernel] = name
        else:
            reason = f"it is that called {name}" if name else "it does not run here"
            print(f"{kernel} is left out: {reason}")
    return names


def matrix(kernels: list[str]) -> list[Run]:
    """Each kernel with one and with two threads; then what else must change nothing."""
    runs = [Run(kernel, threads) for kernel in kernels for threads in (1, 2)]
    specials = ["files backwards", "no xdist"]
    specials += ["SIGINT ignored"] if os.name == "posix" else []
    return runs + [Run(special=special) for special in specials]


def commit() -> str:
    """The commit that is checked out, in hexadecimal digits; 0 where there is no repository."""
    command = ["git", "rev-parse", "--verify", "HEAD"]
    try:
        answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:  # no git
        return "0"
    return answer.stdout.strip() if answer.returncode == 0 else "0"


def other(names: dict[str, str], native: str, digest: str) -> list[Run]:
    """A run under one of the kernels that are not the processor's own; none if there are none.

    The digest of a commit is as good as a draw at random: with k kernels each has one commit in k.
    """
    others = [kernel for kernel, name in names.items() if name != native]
    return [Run(others[int(digest, 16) % len(others)])] if others else []


def passes(run: Run, options: list[str]) -> bool:
    """Whether the suite passes."""
    environment = os.environ | {"OMP_NUM_THREADS": str(run.threads)}
    environment |= {"OPENBLAS_CORETYPE": run.kernel} if run.kernel else {}
    environment |= {"SKBAYES_SG_BACKWARDS": "1"} if run.special == "files backwards" else {}
    ignored = (
        (lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if "SIG" in run.special else None
    )
    workers = ["-p", "no:xdist"] if run.special == "no xdist" else ["-n", "auto"]
    command = [sys.executable, "-m", "pytest", "-q", *workers, *options]
    return subprocess.run(command, cwd=ROOT, env=environment, preexec_fn=ignored).returncode == 0


def main(words: list[str]) -> int:
    """Make the runs that are asked for, print a table, and say whether all passed."""
    at = words.index("--") if "--" in words else len(words)
    names, native = available(), reported("")
    print(f"this processor's own kernel is that called {native or 'by no name: no OpenBLAS'}")
    is_one = words[:at] == ["other"]
    runs = other(names, native, commit()) if is_one else matrix(list(names))
    table = []
    for run in runs:
        print(f"\n{run}", flush=True)
        begin = time.perf_counter()
        word = "passed" if passes(run, words[at + 1 :]) else "failed"
        table.append((word, f"{time.perf_counter() - begin:4.0f} s ", run))
    print()
    for row in table:
        print(*row)
    return 1 if any(word == "failed" for word, *_ in table) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
