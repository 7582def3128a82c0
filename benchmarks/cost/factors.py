"""Memory and seconds of fits of factors of 10,000 and 50 levels, beside sparse one-hot columns.

    python -m benchmarks.cost.factors [--rows 100000 1000000] [--kinds logistic Poisson]
        [--precisions own shared] [--forms frame one-hot]

Rows have ten numbers beside the two factors. Precisions are those of the default, one for the
numbers and one for each factor, or one that all columns share. One-hot columns come as one sparse
matrix, with the groups named by ``prior_groups``. Each fit is in a process of its own, and its
memory is the largest resident set less that before the fit, in which the data are. The frame must
take 1 GB at most. Fits that are not asked for keep their rows of the last run.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
import warnings
from itertools import product

import numpy as np
import pandas as pd
from scipy import sparse

from benchmarks.common.harness import RESULTS, Claim, Report, benchmark, read_rows
from skbayes_sg import BayesianLogisticRegression, BayesianPoissonRegressor

LEVELS, NUMBERS = (10_000, 50), 10
FORMS = ("frame", "one-hot")
PRECISIONS = ("own", "shared")
KINDS = {"logistic": BayesianLogisticRegression, "Poisson": BayesianPoissonRegressor}


def measured(kind: str, form: str, precisions: str, n: int) -> dict:
    """One fit."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    codes = [rng.integers(levels, size=n) for levels in LEVELS]
    numbers = rng.standard_normal((n, NUMBERS))
    eta = numbers @ np.linspace(0, 0.3, NUMBERS) - 0.5
    for each, levels, sd in zip(codes, LEVELS, (0.5, 0.3), strict=True):
        eta += sd * rng.standard_normal(levels)[each]
    if kind == "logistic":
        y = (eta + rng.logistic(size=n) > 0).astype(int)
    else:
        y = rng.poisson(np.exp(eta))
    frame = pd.DataFrame(numbers, columns=[f"x{k}" for k in range(NUMBERS)])
    rows = frame.assign(a=pd.Categorical(codes[0]), b=pd.Categorical(codes[1]))
    if form == "one-hot":
        ends = np.arange(n + 1)
        parts = [
            sparse.csr_array((np.ones(n), each, ends), shape=(n, levels))
            for each, levels in zip(codes, LEVELS, strict=True)
        ]
        rows = sparse.csr_array(sparse.hstack([sparse.csr_array(numbers), *parts], format="csr"))
    size = rows.memory_usage().sum() if form == "frame" else 2 * rows.data.nbytes
    groups: str | dict | None
    if precisions == "shared":
        groups = "share" if form == "frame" else None
    else:
        ends = np.cumsum((NUMBERS, *LEVELS))
        of_columns = {name: list(range(*ends[k : k + 2])) for k, name in enumerate("ab")}
        groups = None if form == "frame" else of_columns
    before, begin = _largest(), time.process_time()
    KINDS[kind](prior_groups=groups, random_state=0).fit(rows, y)
    return {
        "kind": kind,
        "rows": n,
        "form": form,
        "precisions": precisions,
        "data, MB": size / 1e6,
        "CPU seconds": time.process_time() - begin,
        "memory above, MB": (_largest() - before) / 1e6,
    }


def _largest() -> float:
    """Bytes of the largest resident set so far (Linux counts in kilobytes)."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(
    report: Report, rows: list[int], kinds: list[str], precisions: list[str], forms: list[str]
) -> None:
    """Each kind and size, from a frame and from columns."""
    context, keys = multiprocessing.get_context("spawn"), ("rows", "kind", "precisions", "form")
    earlier = read_rows(RESULTS / "factors_memory.csv")
    found = {tuple(row[key] for key in keys): row for row in earlier}
    for n, kind, of_fit, form in product(rows, kinds, precisions, forms):
        with context.Pool(1) as pool:
            row = pool.apply(measured, (kind, form, of_fit, n))
        report.show([row])
        found[n, kind, of_fit, form] = row
    claims = [
        Claim(
            f"{kind}, {n:.0e} rows, {of_fit}: memory above, MB", row["memory above, MB"], high=1e3
        )
        for (n, kind, of_fit, form), row in found.items()
        if form == "frame"
    ]
    report.save(list(found.values()), claims, name="factors_memory")


if __name__ == "__main__":
    benchmark(
        main,
        threads=1,
        rows={"type": int, "nargs": "+", "default": [100_000]},
        kinds={"nargs": "+", "choices": list(KINDS), "default": list(KINDS)},
        precisions={"nargs": "+", "choices": PRECISIONS, "default": PRECISIONS},
        forms={"nargs": "+", "choices": FORMS, "default": FORMS},
    )
