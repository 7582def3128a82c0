"""The cost of one pass over rows: against plain NumPy, and with more rows on more processes.

    python -m benchmarks.cost.pass_cost    # needs distributed and dask-ml; two minutes

Binary logistic regression with 50 float32 columns, of correlation .9 between neighbours. Passes:

slope       log likelihood and gradient: a product with the rows, and one with their residuals
expansion   these and the 51 x 51 curvature, summed in float64

seconds     of the processor for a pass over 1,000,000 rows in memory, the least of nine
numpy s     of the same sums in plain NumPy on blocks of 5,000 rows, the best size

pass_cost_workers.csv has the same passes where each of 1 and 2 processes of a local dask cluster
holds as many rows (weak scaling). "worker s" are processor seconds of a process in the mean, "s"
those of the wall, the least of nine; client and scheduler share the two cores of this machine.

pass_cost_fit.csv has the constants of docs/scaling.md:

passes          of a fit of dask arrays, validation included
ns per row      processor time of all passes, and slope ns of one slope
task ms         wall time of a partition in a pass beyond its rows, from partitions of two rows
functions KB    what all passes send to each worker, and sums KB what each partition sends back, as
                pickles; rows MB are the rows of the sample and the pool
client s        processor time of the rest of a fit: sampling, diagnostics
lbfgs passes    evaluations of the mean log likelihood and its gradient by L-BFGS with ten
                corrections, from zero until it changes by less than 1e-6
admm passes     evaluations of the gradient by dask-glm's ADMM as dask-ml calls it, in partitions of
                10,000 rows

scaling.csv has what follows for more rows and workers, in partitions of 64 MB: times of passes are
divided by the workers, those of partitions are not, as one scheduler hands them out. Network is the
most that can travel: functions or coefficients to each worker, and sums from each partition. The
other algorithms are given our cost of a pass.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.timing import seconds
from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.data.row_metadata import RowMetadata
from skbayes_sg.linalg import FULL
from skbayes_sg.models import Softmax
from skbayes_sg.posterior import Posterior

ROWS, FEATURES, BLOCK = 1_000_000, 50, 5000
REPEATS = 9
PARTS = 10  # of a worker's rows
PARTITION_BYTES = 1 << 26
POINT = np.zeros((1, FEATURES + 1))


def data(n_rows: int, seed: int = 0) -> tuple[NDArray, NDArray]:
    """Rows, and labels -1 and 1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, FEATURES), dtype=np.float32)
    X[:, 1:] *= np.sqrt(1 - 0.9**2)
    for column in range(1, FEATURES):
        X[:, column] += 0.9 * X[:, column - 1]
    coef = np.random.default_rng(9).standard_normal(FEATURES) / np.sqrt(FEATURES)
    return X, np.where(X @ coef + rng.logistic(size=n_rows) > 0, 1, -1).astype(np.float32)


def slope_in_numpy(coef: NDArray, X: NDArray, y: NDArray) -> tuple:
    """Log likelihood and gradient of a block, and the root of its rows' curvature."""
    z = X @ coef[:-1] + coef[-1]
    p = 1 / (1 + np.exp(-z))
    margin = y * z
    value = np.sum(np.minimum(margin, 0) - np.log1p(np.exp(-np.abs(margin))), dtype=np.float64)
    left = (y + 1) / 2 - p
    return value, left @ X, left.sum(), np.sqrt(p * (1 - p))


def expansion_in_numpy(coef: NDArray, X: NDArray, y: NDArray) -> tuple:
    """The same and the curvature."""
    value, gradient, shift, root = slope_in_numpy(coef, X, y)
    rows = np.empty((len(X), FEATURES + 1))
    np.multiply(X, root[:, None], out=rows[:, :-1])
    rows[:, -1] = root
    return value, gradient, shift, rows.T @ rows


def in_numpy(block: Callable, coef: NDArray, X: NDArray, y: NDArray) -> list:
    """All rows, block by block."""
    total: list = [0, 0, 0, 0]
    for start in range(0, len(X), BLOCK):
        part = block(coef, X[start : start + BLOCK], y[start : start + BLOCK])
        total = [a + b for a, b in zip(total, part, strict=True)]
    return total


def least(jobs: dict[str, Callable]) -> dict[str, float]:
    """Least processor seconds of each job; they take turns."""
    found = dict.fromkeys(jobs, np.inf)
    for _ in range(REPEATS):
        for name, job in jobs.items():
            start = time.process_time()
            job()
            found[name] = min(found[name], time.process_time() - start)
    return found


def against_numpy() -> list[dict]:
    """A row for each kind of pass."""
    X, y = data(ROWS)
    posterior, coef = Posterior.of(Softmax(FEATURES, 2), X, y), np.zeros(FEATURES + 1, np.float32)
    found = least(
        {
            "slope": lambda: posterior.logdensity_and_grad(POINT),
            "expansion": lambda: posterior.expand(POINT, FULL),
            "slope in NumPy": lambda: in_numpy(slope_in_numpy, coef, X, y),
            "expansion in NumPy": lambda: in_numpy(expansion_in_numpy, coef, X, y),
        }
    )
    rows = []
    for name in ("slope", "expansion"):
        numpy_s = found[f"{name} in NumPy"]
        rows.append(
            {
                "pass": name,
                "seconds": found[name],
                "numpy s": numpy_s,
                "ratio": found[name] / numpy_s,
            }
        )
    return rows


def lazy(n_parts: int, rows_each: int) -> tuple:
    """Dask arrays whose partitions are in the memory of those who compute them."""
    import dask
    import dask.array as da

    parts = [dask.delayed(data)(rows_each, seed) for seed in range(n_parts)]
    X = [da.from_delayed(part[0], (rows_each, FEATURES), np.float32) for part in parts]
    y = [da.from_delayed(part[1], (rows_each,), np.float32) for part in parts]
    return dask.persist(da.concatenate(X), da.concatenate(y))


def bound(X, y) -> Posterior:
    """The posterior of dask arrays."""
    model = BayesianLogisticRegression()
    return model._bind_blocks(X, y, RowMetadata())[0]


@contextmanager
def workers(count: int):
    """A local cluster."""
    import distributed

    local = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(count, **local) as cluster, distributed.Client(cluster):
        yield


def on_workers() -> tuple[list[dict], float]:
    """Seconds of passes with 1 and 2 workers, and milliseconds of an empty partition."""
    from distributed import default_client, wait

    rows, task = [], np.nan
    for count in (1, 2):
        with workers(count):
            collections = lazy(PARTS * count, ROWS // PARTS)
            wait(collections)
            posterior, client = bound(*collections), default_client()
            jobs = {
                "slope": lambda: posterior.logdensity_and_grad(POINT),  # noqa: B023
                "expansion": lambda: posterior.expand(POINT, FULL),  # noqa: B023
            }
            for name, job in jobs.items():
                times = []
                for _ in range(REPEATS):
                    before = client.run(time.process_time)
                    wall = seconds(job)
                    after = client.run(time.process_time)
                    times.append((wall, sum(after[key] - before[key] for key in after) / count))
                wall, busy = np.min(times, axis=0).tolist()
                row = {"pass": name, "workers": count, "rows": ROWS * count}
                rows.append(row | {"worker s": busy, "s": wall})
            many = lazy(200, 2)
            wait(many)
            empty = bound(*many)
            task = min(seconds(lambda: empty.logdensity_and_grad(POINT)) for _ in range(5)) / 200  # noqa: B023
    for row in rows:
        alone = next(r for r in rows if r["pass"] == row["pass"] and r["workers"] == 1)
        row["efficiency"] = alone["s"] / row["s"]
    return rows, 1e3 * task


def of_a_fit() -> dict:
    """What the passes of a fit take, send and return, and what the rest takes."""
    import dask

    from skbayes_sg.data.dask import OnWorkers

    found: list[tuple] = []
    reduce = OnWorkers.reduce

    def watched(self, function, row_size):
        start = time.process_time()
        total = reduce(self, function, row_size)
        spent = time.process_time() - start
        found.append((spent, len(pickle.dumps(total)), len(_pickled(function))))
        return total

    with dask.config.set(scheduler="synchronous"):
        collections = lazy(PARTS, ROWS // PARTS)
        OnWorkers.reduce = watched  # type: ignore[method-assign]
        try:
            start = time.process_time()
            BayesianLogisticRegression(random_state=0).fit(*collections)
            whole = time.process_time() - start
        finally:
            OnWorkers.reduce = reduce  # type: ignore[method-assign]
    spent, back, sent = map(np.array, zip(*found, strict=True))
    rows_sent = back > 1e5  # the sample and the pool
    return {
        "passes": len(found),
        "ns per row": 1e9 * spent.sum() / ROWS,
        "functions KB": sent.sum() / 1e3,
        "sums KB": back[~rows_sent].sum() / 1e3,
        "rows MB": back[rows_sent].sum() / 1e6,
        "client s": whole - spent.sum(),
    }


def _pickled(function: Callable) -> bytes:
    import cloudpickle

    return cloudpickle.dumps(function)


def lbfgs_passes() -> int:
    """On 100,000 rows; the number hardly depends on how many they are."""
    X, y = data(ROWS // 10)
    wide = X.astype(float)

    def objective(coef: NDArray) -> tuple[float, NDArray]:
        value, gradient, shift, _ = slope_in_numpy(coef, wide, y)
        return -value / len(y), -np.append(gradient, shift) / len(y)

    how = {"maxcor": 10, "ftol": 1e-6, "gtol": 0.0}
    start = np.zeros(FEATURES + 1)
    return int(minimize(objective, start, jac=True, method="L-BFGS-B", options=how).nfev)


def admm_passes() -> tuple[float, int]:
    """Gradients of a partition in the mean over partitions, and rounds over all of them."""
    import dask
    import dask.array as da
    from dask_glm.algorithms import admm
    from dask_glm.families import Logistic
    from dask_glm.regularizers import L2

    calls: list[int] = []
    rounds: list[int] = []

    class Counted(Logistic):
        @staticmethod
        def pointwise_gradient(beta: NDArray, X: NDArray, y: NDArray) -> NDArray:
            calls.append(len(y))
            return Logistic.pointwise_gradient(beta, X, y)

    class CountedL2(L2):
        def proximal_operator(self, beta: NDArray, t: float) -> NDArray:
            rounds.append(1)
            return super().proximal_operator(beta, t)

    X, y = data(ROWS // 10)
    chunks = len(y) // PARTS
    rows = da.from_array(np.column_stack([X, np.ones(len(y))]), chunks=(chunks, FEATURES + 1))
    labels = da.from_array((y > 0).astype(float), chunks=chunks)
    regularizer = CountedL2()
    with dask.config.set(scheduler="synchronous"):
        admm(rows, labels, regularizer, 1.0, max_iter=100, abstol=1e-4, family=Counted)
    return len(calls) / PARTS, len(rounds)


def scaled(constants: dict, n_rows: int, n_workers: int) -> dict:
    """Passes, network, memory and seconds of these rows on these workers."""
    n_parts = -(-n_rows * FEATURES * 4 // PARTITION_BYTES)
    handing_out = n_parts * constants["task ms"] / 1e3
    row = {"rows": n_rows, "workers": n_workers, "partitions": n_parts}
    row["GB"] = n_rows * FEATURES * 4 / 1e9
    row["passes"] = constants["passes"]
    busy = min(n_workers, n_parts)
    sent = busy * constants["functions KB"] + n_parts * constants["sums KB"]
    row["MB"] = sent / 1e3 + constants["rows MB"]
    row["s"] = n_rows * constants["ns per row"] / 1e9 / busy
    row["s"] += constants["passes"] * handing_out + constants["client s"]
    for name in ("lbfgs", "admm"):
        passes = constants[f"{name} passes"]
        row[f"{name} passes"] = passes
        row[f"{name} s"] = passes * n_rows * constants["slope ns"] / 1e9 / busy
    gradient = 8e-6 * (FEATURES + 1)  # MB
    rounds = constants["admm rounds"]
    row["lbfgs MB"] = row["lbfgs passes"] * (busy + n_parts) * gradient
    row["admm MB"] = rounds * 4 * n_parts * gradient
    row["lbfgs s"] += row["lbfgs passes"] * handing_out
    row["admm s"] += rounds * handing_out
    return row


def main(report: Report) -> None:
    """Four tables."""
    against = against_numpy()
    ratio = Claim("seconds of a pass over NumPy's", [row["ratio"] for row in against], high=1.3)
    report.save(against, [ratio])
    rows, task = on_workers()
    efficiency = [row["efficiency"] for row in rows if row["workers"] == 2]
    claims = [
        Claim("seconds of one worker over those of two with twice the rows", efficiency, low=0.8)
    ]
    report.save(rows, claims, name="pass_cost_workers")
    constants = of_a_fit() | {"slope ns": 1e9 * against[0]["seconds"] / ROWS, "task ms": task}
    constants["lbfgs passes"] = lbfgs_passes()
    constants["admm passes"], constants["admm rounds"] = admm_passes()
    passes = Claim("passes of a fit", constants["passes"], high=6)
    report.save([constants], [passes], name="pass_cost_fit")
    plan = [scaled(constants, n, w) for n in (10**7, 10**8, 10**9) for w in (1, 10, 100)]
    report.save(plan, name="scaling")


if __name__ == "__main__":
    benchmark(main, threads=1)
