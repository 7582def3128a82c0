"""Ahn, Korattikara & Welling (2012), Table 1: Algorithm 1 to the letter at the paper's alpha.

    python -m benchmarks.papers.ahn_kdd_letter [--also frozen] [--full-matrix [--also young]]

Algorithm 1 measures the score covariance V at every step, averages it with weights kappa_t = 1 / t
and makes its matrix anew. ahn_kdd.py measures it now and then and freezes the average with the
burn-in, which is what the package does by default. Here the paper's setting, alpha = 8.95 and
B = gamma I_N, runs on the same data, under prior precision 10, the paper's, and 1, which has the
paper's weight beside a tenth of its rows:

    letter      adapt="always", refresh_every=1, curvature="empirical", replace=True,
                kappa_t = 1 / t
    following   the first two alone: the curvature is the model Fisher, and averages forget their
                beginning within burn-in
    frozen      none of them: measured every 10 (SGFS-d) or 66 steps, until the end of burn-in

In the letter the prior is in P and in the noise, as the printed P is singular: some inputs are zero
in all rows, so that their weights have no scores. SGFS-d makes the paper's 100,000 steps of n = 300
rows from random weights, with three seeds under each prior, in some twenty CPU minutes. ``--also
frozen`` or ``--also following`` adds a run of these with the first seed, under the paper's prior.

``--full-matrix`` is SGFS-f. A step to the letter takes about two CPU seconds, nearly all of them
for factorising a matrix of 2,647 x 2,647, so that the paper's 100,000 would take two days. One
chain under precision 10 makes 30 steps from where SGFS-d is after one pass, and continues the
average that a burn-in of one more pass would have there, the score covariance of all rows: kappa_t
= 1 / (t + N / n). ``--also young`` continues that of the 45 minibatches with which the package
begins instead, in which most rows of rare kinds are missing. From kappa_t = 1 / t the average has a
rank below D in the first eight steps; the precision of the prior, which is all that P has in the
other directions, is then too small beside the scores for a factorisation. The rows are in double
precision, as sums of 32 bits lose the least eigenvalues of P. Errors are those of single points,
before the first step and after some. It takes three CPU minutes.

Of SGFS-d the last quarter of a run is kept, 20 draws, and errors are those of averaged
probabilities on 24,701 rows for validation and as many for the test. The claims are that no weight
goes as far from zero as with frozen matrices, and the paper's order: fewer test errors than the
chosen runs of SGD and SGLD under the same prior in ahn_kdd_full.csv.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.datasets import kdd99
from benchmarks.common.harness import RESULTS, Claim, Report, benchmark, read_rows
from benchmarks.common.internals import Posterior, posterior_of
from benchmarks.papers.ahn_kdd import BATCH, Setting, errors, measure, scaled, split, started
from skbayes_sg.linalg import FULL, Dense
from skbayes_sg.models import DRBM
from skbayes_sg.samplers import SGFS

PRECISIONS = (10.0, 1.0)
SEEDS = range(3)
N_STEPS = 100_000
AFTER = (0, 1, 2, 5, 10, 20, 30)  # steps of SGFS-f
YOUNG = 45  # minibatches with which the package begins an average of full matrices
COLUMNS = ("validation errors", "test errors", "test last", "largest |theta|", "passes", "seconds")
FAR = "largest |theta|"


@dataclass(frozen=True)
class Continued:
    """kappa_t = 1 / (t + started): a running mean that has `started` minibatches in it."""

    started: int = 0

    def __call__(self, t: int) -> float:
        """The weight of the t-th measurement."""
        return 1 / (t + self.started)


def sampler_of(matrices: str, structure: str, started: int = 0) -> SGFS:
    """SGFS at the paper's noise; to the letter its average continues `started` minibatches."""
    paper = SGFS(alpha=8.95, structure=structure, batch_size=BATCH)
    if matrices != "frozen":
        paper.set_params(adapt="always", refresh_every=1)
    if matrices in ("letter", "young"):
        paper.set_params(curvature="empirical", replace=True, kappa=Continued(started))
    return paper


def runs(matrices: str) -> Iterator[dict]:
    """The chains of SGFS-d of one kind."""
    data = kdd99()
    (X, y), *held = split(scaled(data), data.y)
    model = DRBM(40, 23, 41)
    codes = model.encode(y, X.dtype)
    n_passes, letter = N_STEPS * BATCH / len(X), matrices == "letter"
    setting = Setting("SGFS-d", matrices, sampler_of(matrices, "diag"))
    for precision in PRECISIONS if letter else PRECISIONS[:1]:
        posterior = posterior_of(model, X, codes, precision)
        for seed in SEEDS if letter else SEEDS[:1]:
            found = measure(setting, posterior, n_passes, held, seed)
            of = {"family": "SGFS-d", "matrices": matrices, "precision": precision, "seed": seed}
            yield of | {name: found.get(name) for name in COLUMNS}


def steps_of_full_matrices(matrices: str) -> Iterator[dict]:
    """A chain of SGFS-f under the paper's prior, step by step."""
    data = kdd99()
    (X, y), _, test = split(scaled(data), data.y)
    X, model = X.astype(np.float64), DRBM(40, 23, 41)
    codes = model.encode(y, X.dtype)
    posterior = posterior_of(model, X, codes, PRECISIONS[0])
    measured = len(X) // BATCH if matrices == "letter" else YOUNG
    setting = Setting("SGFS-f", matrices, sampler_of(matrices, "full", measured), before=1.0)
    sampler, state = started(setting, posterior)
    if matrices == "letter":
        state.memory.I1 = covariance_of_all_rows(posterior, state.theta, X, codes)
        sampler.refresh(state, posterior)
    for step in range(max(AFTER) + 1):
        if step in AFTER:
            last = errors(model, state.theta, np.zeros(0), test)[1]
            far = float(np.abs(state.theta).max())
            of = {"family": "SGFS-f", "matrices": matrices, "precision": PRECISIONS[0]}
            yield of | {"steps": step, "test errors": last, FAR: far}
        sampler.step(state, posterior)


def covariance_of_all_rows(
    posterior: Posterior, theta: NDArray, X: NDArray, codes: NDArray
) -> Dense:
    """V of Algorithm 1 from all rows, equal ones once."""
    _, first, times = np.unique(np.c_[X, codes], axis=0, return_index=True, return_counts=True)
    second, total = np.zeros((theta.size,) * 2), np.zeros(theta.size)
    for part in np.array_split(np.arange(len(first)), len(first) // 3000):
        scores, weight = posterior.scores(theta, first[part]), times[part].astype(float)
        second += scores.moment(FULL, weight).dense()
        total += scores.scaled(weight).total()[0]
    return Dense(second / len(X) - np.outer(total, total) / len(X) ** 2)


def claims(rows: list[dict], family: str) -> list[Claim]:
    """Nothing is thrown, and the paper's order."""
    found, others = [], baselines()
    for precision in PRECISIONS if family == "SGFS-d" else PRECISIONS[:1]:
        of = {name: _of(rows, name, precision) for name in ("letter", "frozen")}
        frozen = [row[FAR] for row in of["frozen"]] or [others[family, precision].get(FAR)]
        label = f"{family}, precision {precision:g}, to the letter"
        far = [row.get(FAR, np.nan) for row in of["letter"]]
        sentence = f"{label}: largest |theta|, below that with frozen matrices"
        if frozen[0] is not None:
            found.append(Claim(sentence, far, high=frozen[0], strict=True))
        ended = [row for row in of["letter"] if row.get("steps", max(AFTER)) == max(AFTER)]
        counts = [row.get("test errors", np.nan) for row in ended]
        for other in ("SGD", "SGLD"):
            most = others[other, precision]["test errors"]
            sentence = f"{label}: test errors, fewer than {other}"
            found.append(Claim(sentence, counts, high=most, strict=True))
    return found


def _of(rows: list[dict], matrices: str, precision: float) -> list[dict]:
    return [row for row in rows if (row["matrices"], row["precision"]) == (matrices, precision)]


def baselines() -> dict[tuple[str, float], dict]:
    """In ahn_kdd_full.csv: the chosen runs of SGD and SGLD, and SGFS at the paper's alpha."""
    found: dict[tuple[str, float], dict] = {
        (family, precision): {} for family in ("SGFS-d", "SGFS-f") for precision in PRECISIONS
    }
    for row in read_rows(RESULTS / "ahn_kdd_full.csv"):
        precision = 10.0 if "precision=10" in row["setting"] else 1.0
        chosen = "test errors" in row and row["family"] in ("SGD", "SGLD")
        if chosen or "alpha=8.95" in row["setting"]:
            found[row["family"], precision] = row
    return found


def main(report: Report, also: str | None, full_matrix: bool) -> None:
    """Algorithm 1, or another kind beside the last run."""
    if also is not None and full_matrix != (also == "young"):
        raise SystemExit("young is for --full-matrix, frozen and following for SGFS-d")
    name = "ahn_kdd_letter_full" if full_matrix else "ahn_kdd_letter"
    matrices, rows = also or "letter", []
    if also:
        rows = [row for row in read_rows(RESULTS / f"{name}.csv") if row["matrices"] != also]
    for row in steps_of_full_matrices(matrices) if full_matrix else runs(matrices):
        rows.append(row)
        print(row, flush=True)
    report.save(rows, claims(rows, rows[0]["family"]), name=name)


if __name__ == "__main__":
    benchmark(
        main,
        also={
            "choices": ["frozen", "following", "young"],
            "help": "one of these beside the last run; young with full matrices alone",
        },
        full_matrix={"action": "store_true", "help": "SGFS-f, 30 steps"},
    )
