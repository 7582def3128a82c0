"""Fits beside NUTS: means, standard deviations, and the errors of both."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.harness import Claim, Report
from skbayes_sg import diagnostics

MEAN_ERROR, SD_ERROR = 0.1, 0.1
AGREED = 1.02
"""R-hat of a reference"""


def figures(draws: NDArray) -> dict[str, NDArray]:
    """Of draws (chains, draws, quantities), each (quantities,)."""
    square = (draws - draws.mean(axis=(0, 1))) ** 2
    return {
        "mean": draws.mean(axis=(0, 1)),
        "sd": draws.std(axis=(0, 1)),
        "ess": diagnostics.ess_mean(draws),
        "ess_sd": diagnostics.ess_mean(square),
        "r_hat": diagnostics.r_hat(draws),
    }


def differences(draws: NDArray, reference: list[NDArray], errors: float) -> dict[str, float]:
    """Worst mean and standard deviation of draws (chains, draws, quantities).

    "beyond" is what is beyond so many Monte Carlo errors of both. That of a standard deviation is
    half the relative error of the mean square, whose own spread these draws tell: heavy tails, as
    those of a column that is seldom out of the spike, make it large.
    """
    mean, sd, ess, ess_sd, _ = map(np.atleast_1d, reference)
    found = figures(draws)
    error, ratio = np.abs(found["mean"] - mean) / sd, found["sd"] / sd
    of_mean = errors * np.sqrt(1 / found["ess"] + 1 / ess)
    spread = ((draws - found["mean"]) ** 2).std(axis=(0, 1)) / found["sd"] ** 2
    of_sd = 0.5 * errors * spread * np.sqrt(1 / found["ess_sd"] + 1 / ess_sd)
    return {
        "mean error": error.max(),
        "mean beyond": np.maximum(error - of_mean, 0).max(),
        "sd ratio": ratio[np.abs(np.log(ratio)).argmax()],
        "sd beyond": np.maximum(np.abs(ratio - 1) - of_sd, 0).max(),
    }


def heard(model: Any, X: NDArray, y: NDArray) -> dict[str, Any]:
    """Fit a model: its seconds on one core, and whether it warned."""
    begin = time.process_time()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X, y)
    return {"seconds": time.process_time() - begin, "warns": "yes" if said else "no"}


def claims(row: dict[str, Any]) -> list[Claim]:
    """Mean, standard deviation, and the reference."""
    name = row["set"]
    found = [
        Claim(f"{name}: error of the mean in sd, beyond", row["mean beyond"], high=MEAN_ERROR),
        Claim(f"{name}: error of the sd, beyond", row["sd beyond"], high=SD_ERROR),
        Claim(f"{name}: R-hat of the reference", row["NUTS R-hat"], high=AGREED),
    ]
    row["verdict"] = "ok" if all(claim.verdict == "ok" for claim in found[:2]) else "FAIL"
    return found


def all_sets(
    report: Report, names: Iterable[str], only: list[str] | None, row_of: Callable[[str], dict]
) -> None:
    """The rows of all sets, or of some, and their claims."""
    rows: list[dict] = []
    found: list[Claim] = []
    for name in names:
        if only and name not in only:
            continue
        rows.append(row_of(name))
        found += claims(rows[-1])
        print(*rows[-1].values(), flush=True)
    report.save(rows, found)
