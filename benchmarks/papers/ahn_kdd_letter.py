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
chain under each prior makes 80 steps, from where SGFS-d is after one pass ("test errors before"),
and continues the average that a burn-in of one more pass would have there, the score covariance of
all rows: kappa_t = 1 / (t + N / n). ``--also young`` continues that of the 45 minibatches with
which the package begins instead, in which most rows of rare kinds are missing. From kappa_t = 1 / t
the average has a rank below D in the first eight steps; the precision of the prior, which is all
that P has in the other directions, is then too small beside the scores for a factorisation. The
rows are in double precision, as sums of 32 bits lose the least eigenvalues of P.

The last quarter of a run is kept, 20 draws. Errors are those of averaged probabilities on 24,701
rows for validation and as many for the test. The claims are that no weight goes as far from zero as
with frozen matrices, and the paper's order: fewer test errors than the chosen runs of SGD and SGLD
under the same prior in ahn_kdd_full.csv.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.datasets import kdd99
from benchmarks.common.harness import RESULTS, Claim, Report, benchmark, read_rows
from benchmarks.common.internals import Posterior, State, posterior_of
from benchmarks.papers.ahn_kdd import BATCH, Held, Setting, errors, measure, scaled, split
from skbayes_sg.linalg import FULL, Dense
from skbayes_sg.models import DRBM
from skbayes_sg.samplers import SGFS

PRECISIONS = (10.0, 1.0)
SEEDS = range(3)
N_STEPS, N_STEPS_FULL = 100_000, 80
YOUNG = 45  # minibatches with which the package begins an average of full matrices
COLUMNS = ("validation errors", "test errors", "test last", "largest |theta|", "passes", "seconds")
BEFORE = "test errors before"
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


@dataclass
class Start:
    """Where a chain of SGFS-f starts: the errors there, and the average that it continues."""

    posterior: Posterior
    held: Held
    X: NDArray
    codes: NDArray
    all_rows: bool
    errors: int = 0

    def __call__(self, sampler: SGFS, state: State) -> None:
        """Count the errors, and put the score covariance of all rows into P."""
        self.errors = errors(self.posterior.model, state.theta, np.zeros(0), self.held)[1]
        if not self.all_rows:
            return
        _, first, times = np.unique(
            np.c_[self.X, self.codes], axis=0, return_index=True, return_counts=True
        )
        second, total, n_rows = np.zeros((state.theta.size,) * 2), 0.0, len(self.X)
        for part in np.array_split(np.arange(len(first)), len(first) // 3000):
            scores, weight = self.posterior.scores(state.theta, first[part]), times[part] * 1.0
            second += scores.moment(FULL, weight).dense()
            total = total + scores.scaled(weight).total()[0]
        state.memory.I1 = Dense(second / n_rows - np.outer(total, total) / n_rows**2)
        sampler.refresh(state, self.posterior)


def runs(matrices: str, full_matrix: bool) -> Iterator[dict]:
    """The chains of one kind."""
    data = kdd99()
    (X, y), *held = split(scaled(data), data.y)
    if full_matrix:
        X = X.astype(np.float64)
    model = DRBM(40, 23, 41)
    codes = model.encode(y, X.dtype)
    family, structure = ("SGFS-f", "full") if full_matrix else ("SGFS-d", "diag")
    n_passes = N_STEPS * BATCH / len(X)
    if full_matrix:
        n_passes = 1.0 + N_STEPS_FULL * BATCH / len(X)
    letter = matrices == "letter"
    measured = (len(X) // BATCH if letter else YOUNG) if full_matrix else 0
    paper = sampler_of(matrices, structure, measured)
    setting = Setting(family, matrices, paper, float(full_matrix))
    for precision in PRECISIONS if letter else PRECISIONS[:1]:
        posterior = posterior_of(model, X, codes, precision)
        for seed in SEEDS if letter and not full_matrix else SEEDS[:1]:
            start = Start(posterior, held[1], X, codes, letter) if full_matrix else None
            found = measure(setting, posterior, n_passes, held, seed, start)
            of = {"family": family, "matrices": matrices, "precision": precision, "seed": seed}
            of |= {} if start is None else {BEFORE: start.errors}
            yield of | {name: found.get(name) for name in COLUMNS}


def claims(rows: list[dict], family: str) -> list[Claim]:
    """Nothing is thrown, and the paper's order."""
    found, others = [], baselines()
    for precision in PRECISIONS:
        of = {name: _of(rows, name, precision) for name in ("letter", "frozen")}
        frozen = [row[FAR] for row in of["frozen"]] or [others[family, precision].get(FAR)]
        label = f"{family}, precision {precision:g}, to the letter"
        far = [row.get(FAR, np.nan) for row in of["letter"]]
        sentence = f"{label}: largest |theta|, below that with frozen matrices"
        if frozen[0] is not None:
            found.append(Claim(sentence, far, high=frozen[0], strict=True))
        found_errors = [row.get("test errors", np.nan) for row in of["letter"]]
        for other in ("SGD", "SGLD"):
            most = others[other, precision]["test errors"]
            sentence = f"{label}: test errors, fewer than {other}"
            found.append(Claim(sentence, found_errors, high=most, strict=True))
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
    if also == "young" and not full_matrix:
        raise SystemExit("--also young needs --full-matrix: only full matrices begin with few rows")
    name = "ahn_kdd_letter_full" if full_matrix else "ahn_kdd_letter"
    matrices, rows = also or "letter", []
    if also:
        rows = [row for row in read_rows(RESULTS / f"{name}.csv") if row["matrices"] != also]
    for row in runs(matrices, full_matrix):
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
        full_matrix={"action": "store_true", "help": "SGFS-f, 80 steps of each chain"},
    )
