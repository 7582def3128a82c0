"""A default fit of rows that stay on disk: memory, passes, time, and the same posterior.

    python -m benchmarks.cost.on_disk            # 2,000,000 rows of 50 float32: 0.4 GB, a minute
    python -m benchmarks.cost.on_disk --full     # 10,000,000 rows: 2 GB, ten minutes

Binary logistic regression with two heavy-tailed columns. The rows lie in a .npy file, in the same
file sorted by label, and in a zarr array in compressed chunks. Each fit runs in a process of its
own. Each is compared with the fit of the same rows in memory.

above start MB   peak memory of the process over what it takes before it imports the package, which
                 takes more than half of it
reads            rows read over rows, the validation included
seconds          of the fit; `reading s` is that of reading all rows six times, in blocks, as the
                 fit does it and without a computation. Meanwhile another process keeps the files
                 out of the system's cache, as if they were larger than the memory.
                 The lesser of two each, one after the other. `cpu s` is the processor's time
mean off         largest distance of a posterior mean from that in memory, in standard deviations
variance ratio   mean over the coefficients of the variance over that in memory
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.harness import Claim, Report, benchmark

FEATURES = 50
CHUNK = 50_000  # rows
READS = 6
REPEATS = 2


class Counted:
    """A stored table that counts the rows that are read of it."""

    def __init__(self, table) -> None:
        self.table, self.shape, self.dtype, self.rows_read = table, table.shape, table.dtype, 0
        self.chunks = getattr(table, "chunks", None)

    def __getitem__(self, rows: slice) -> NDArray:
        block = self.table[rows]
        self.rows_read += len(block)
        return block


def write(folder: Path, n_rows: int) -> None:
    """The three stores and their labels, chunk by chunk."""
    import zarr

    rng = np.random.default_rng(0)
    coef = rng.standard_normal(FEATURES) / np.sqrt(FEATURES)
    shape = (n_rows, FEATURES)
    X, by_label = (
        np.lib.format.open_memmap(folder / f"{name}.npy", "w+", np.float32, shape)
        for name in ("rows", "sorted")
    )
    packed = zarr.create_array(
        folder / "rows.zarr", shape=shape, dtype="float32", chunks=(CHUNK, FEATURES)
    )
    labels = np.empty(n_rows, np.int8)
    for start in range(0, n_rows, CHUNK):
        here = slice(start, min(start + CHUNK, n_rows))
        block = rng.standard_normal((here.stop - start, FEATURES), dtype=np.float32)
        block[:, :2] = np.exp(block[:, :2])
        block = np.round(block, 3)  # so that there is something to compress
        labels[here] = block @ coef - 1 + rng.logistic(size=len(block)) > 0
        X[here] = packed[here] = block
    ends = [0, n_rows - int(labels.sum())]
    for start in range(0, n_rows, CHUNK):
        here = slice(start, min(start + CHUNK, n_rows))
        for label in (0, 1):
            block = X[here][labels[here] == label]
            by_label[ends[label] : ends[label] + len(block)] = block
            ends[label] += len(block)
    np.save(folder / "labels.npy", labels)
    np.save(folder / "sorted labels.npy", np.sort(labels))


def opened(folder: Path, store: str) -> tuple:
    """X and y of a store."""
    labels = "sorted labels.npy" if store == "sorted" else "labels.npy"
    y = np.load(folder / labels, mmap_mode="r")
    if store == "zarr":
        import zarr

        return zarr.open_array(folder / "rows.zarr", mode="r"), y
    return np.load(folder / ("sorted.npy" if store == "sorted" else "rows.npy"), mmap_mode="r"), y


def memory(key: str) -> float:
    """MB of this process: "VmRSS" now, "VmHWM" at most."""
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index(f"{key}:") + 1]) / 1024


def fitted(folder: Path, store: str) -> dict:
    """Seconds of a fit, and its peak memory above the start."""
    X, y = opened(folder, store)
    before = memory("VmRSS")
    from skbayes_sg import BayesianLogisticRegression

    start, cpu = time.perf_counter(), time.process_time()
    BayesianLogisticRegression(random_state=0, prior_precision=1.0).fit(X, y)
    return {
        "seconds": time.perf_counter() - start,
        "cpu s": time.process_time() - cpu,
        "above start MB": memory("VmHWM") - before,
    }


def moments(folder: Path, store: str, load: bool = False) -> dict:
    """Posterior moments from many draws, and rows read over rows."""
    from skbayes_sg import BayesianLogisticRegression

    X, y = opened(folder, store)
    X = np.array(X) if load else Counted(X)
    model = BayesianLogisticRegression(n_draws=2000, random_state=0, prior_precision=1.0).fit(
        X, np.array(y)
    )
    found = {"mean": model.coef_[0], "variance": model.coef_std_[0] ** 2}
    return found if load else found | {"reads": X.rows_read / X.shape[0]}


def reading(folder: Path, store: str) -> float:
    """Seconds to read all rows six times."""
    from skbayes_sg.data import Reader

    reader = Reader(opened(folder, store)[0])
    start = time.perf_counter()
    for _ in range(READS):
        for rows in reader.slices():
            reader.read(rows)
    return time.perf_counter() - start


def alone(function: Callable, *values):
    """The result of a function in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *values).result()


def drop_from_cache(folder: Path) -> None:
    """Again and again, until the process is ended."""
    while True:
        for path in folder.rglob("*"):
            if path.is_file():
                file = os.open(path, os.O_RDONLY)
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(file)
        time.sleep(0.05)


@contextmanager
def uncached(folder: Path) -> Iterator[None]:
    """Every read in here is one of the disk."""
    process = get_context("spawn").Process(target=drop_from_cache, args=(folder,), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def compared(folder: Path, store: str, truth: dict) -> dict:
    """A row of the table."""
    times, fits = [], []
    with uncached(folder):
        for _ in range(REPEATS):
            times.append(alone(reading, folder, store))
            fits.append(alone(fitted, folder, store))
    found = alone(moments, folder, store)
    off = np.abs(found["mean"] - truth["mean"]) / np.sqrt(truth["variance"])
    return {
        "store": store,
        "above start MB": max(fit["above start MB"] for fit in fits),
        "reads": found["reads"],
        "seconds": min(fit["seconds"] for fit in fits),
        "cpu s": min(fit["cpu s"] for fit in fits),
        "reading s": min(times),
        "mean off": float(off.max()),
        "variance ratio": float(np.mean(found["variance"] / truth["variance"])),
    }


def main(report: Report, full: bool) -> None:
    """One table."""
    n_rows = 10_000_000 if full else 2_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        alone(write, folder, n_rows)
        truth = alone(moments, folder, "npy", True)
        rows = [compared(folder, store, truth) for store in ("npy", "sorted", "zarr")]
    claims = [
        Claim("peak memory above the start, MB", [row["above start MB"] for row in rows], high=300),
        Claim("times that all rows are read", [row["reads"] for row in rows], high=READS),
        Claim(
            "seconds over those of six reads",
            [row["seconds"] / row["reading s"] for row in rows],
            high=2,
        ),
        Claim("posterior means off, sd", [row["mean off"] for row in rows], high=0.05),
        Claim("posterior variances", [row["variance ratio"] for row in rows], 0.97, 1.03),
    ]
    report.save([{"rows": n_rows, **row} for row in rows], claims)


if __name__ == "__main__":
    benchmark(main, threads=1, full={"action": "store_true", "help": "10,000,000 rows"})
