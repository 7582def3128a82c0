"""Ahn, Korattikara & Welling (2012), section 5.3, Table 1: a DRBM on the KDD Cup 1999 data.

    python -m benchmarks.papers.ahn_kdd [--full] [--burn-in]

The data are the 10 % file (494,021 rows, 23 classes; the paper has the whole, 4,898,430). The
model is a discriminative restricted Boltzmann machine with 41 hidden units, 2,647 parameters. The
features are the paper's 40: num_outbound_cmds is dropped, which is constant in the whole file.
The symbolic columns (protocol, service, flag) are numbers in alphabetical order, counts and bytes
become log(1 + x), every column is divided by its maximum. 90 % of the rows train, 5 % validate, 5
% test. The prior precision is 1: the paper's 10, on a tenth of its rows. The chosen setting of each
sampler runs once more under the paper's 10, without a choice of its own.

Every sampler makes the same number of passes: 13.5 by default, which is 20,000 steps of n = 300
rows, and about a quarter of an hour in all; --full makes the paper's 100,000 steps (67 passes) and
writes ahn_kdd_full.csv, in some seventy CPU minutes. The last quarter of a run is kept, 20 draws.
The setting of each sampler is the one with the fewest validation errors of the averaged
probabilities, for SGD of the last iterate:

    SGD, SGLD   step_size eta (1 + t / b)^-0.9, eta = 1e-5, 2e-5, 4e-5, b = 100,000 (the paper's),
                1,000,000 and 2,000: 18 schedules, as in the paper
    SGFS-d      noise W = B I with B = 3e3, 1e4, 3e4, 1e5; and the paper's W = alpha^2 gamma I_N,
                alpha = 8.95
    SGFS-f      W = alpha^2 B I with B = 1e4, 3e4, alpha annealed from 4 to 1; and the paper's
                W = alpha^2 gamma I_N, alpha = 8.95

SGFS-f starts where SGFS-d with B = 1e4 is after one pass, which counts. It takes n = 1,000 and so
fewer steps, as each costs two products with a matrix of 2,647 x 2,647, and the score covariance
for curvature, as the Fisher matrix of a minibatch is the sum over 23 virtual labels. Matrices are
frozen with the burn-in.

A number for B bounds the gain by 2 / W. Under the paper's B = gamma I_N nothing but the prior
does so where the scores are next to zero, as those of rare and of well separated classes are.
With matrices that are frozen, as here, such chains are thrown hundreds or thousands of the prior's
standard deviations away (see the column "largest |theta|") when scores return. ahn_kdd_letter.py
has the same noise with matrices that follow every step, as in Algorithm 1.

The first table has the validation errors of all settings, the second the test errors of the
chosen ones beside the published, with one binomial standard deviation. The claims are the order
of the paper's table. That SGLD has fewer errors than SGD is claimed at full size only: after 13.5
passes they are as good as each other, within the error bars, as their difference would be in the
paper if its test set were as small as this one, a tenth.

``--burn-in`` measures one sentence of the paper alone, that the algorithms are insensitive to the
length of burn-in. Chains of all four, at the settings that validation chooses at full size, make
20,000 steps (SGFS-f as many passes), their matrices frozen after an eighth, and ahn_kdd_burn_in.csv
has the test errors of averages over 35 draws of the rest and of averages that leave out more. The
claim is that these differ by less than two binomial standard deviations of one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.datasets import KDD99, SYMBOLIC, kdd99
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import Posterior, State, posterior_of
from benchmarks.common.timing import Clock
from skbayes_sg.chains.run import Length, run_chain
from skbayes_sg.models import DRBM
from skbayes_sg.samplers import SGD, SGFS, SGLD, PolynomialDecay

DROPPED = "num_outbound_cmds"
BATCH, BATCH_FULL = 300, 1000
N_DRAWS = 20
PUBLISHED = {"SGD": 8.0e-4, "SGLD": 6.6e-4, "SGFS-d": 4.2e-4, "SGFS-f": 4.4e-4}
PUBLISHED_TEST = 244_921
PAPERS_PRECISION = 10.0
CHOSEN = ("SGD eta=1e-05 b=1e+06", "SGLD eta=4e-05 b=1e+06", "SGFS-d B=30000", "SGFS-f B=10000")
"""settings that validation chooses at full size"""
ORDER = [
    ("SGFS-d", "SGLD"),
    ("SGFS-f", "SGLD"),
    ("SGFS-d", "SGD"),
    ("SGFS-f", "SGD"),
]


class Held(NamedTuple):
    """Rows kept from training; most are repeated, so predictions are made for the distinct ones."""

    X: NDArray
    """distinct rows"""
    of_row: NDArray
    """which of them each row is"""
    y: NDArray

    def errors(self, p: NDArray) -> int:
        """Rows whose most probable class, by p (classes, distinct rows), is not their own."""
        return int((p.argmax(axis=0)[self.of_row] != self.y).sum())


class Setting(NamedTuple):
    """A sampler, and the passes of SGFS-d before it."""

    family: str
    label: str
    sampler: object
    before: float = 0.0


def scaled(data: KDD99) -> NDArray:
    """40 columns in [0, 1]: logarithms of counts, over the maximum."""
    kept = [j for j, name in enumerate(data.feature_names) if name != DROPPED]
    X, names = data.X[:, kept], [data.feature_names[j] for j in kept]
    counts = [j for j, name in enumerate(names) if name not in SYMBOLIC and X[:, j].max() > 1]
    X[:, counts] = np.log1p(X[:, counts])
    return (X / np.maximum(X.max(axis=0), 1e-9)).astype(np.float32)  # is_host_login is all 0


def split(X: NDArray, y: NDArray) -> tuple[tuple[NDArray, NDArray], Held, Held]:
    """90 % for training, 5 % for validation, 5 % for the test."""
    order = np.random.default_rng(99).permutation(len(X))
    test, validation, train = np.split(order, [len(X) // 20, len(X) // 10])
    held = []
    for rows in (validation, test):
        distinct, of_row = np.unique(X[rows], axis=0, return_inverse=True)
        held.append(Held(distinct, of_row.ravel(), y[rows]))
    return (X[train], y[train]), *held


@dataclass(frozen=True)
class Halved:
    """alpha(t) = 4, 2, 1, ..., 1, each for `period` steps."""

    period: int

    def __call__(self, t: int) -> float:
        """Alpha at step t."""
        return max(1.0, 4.0 * 0.5 ** (t // self.period))


def settings(n_passes: float, n_rows: int) -> list[Setting]:
    """All of the docstring."""
    found = []
    for family, kind in (("SGD", SGD), ("SGLD", SGLD)):
        for eta in (1e-5, 2e-5, 4e-5):
            for b in (1e6, 1e5, 2e3):
                decay = PolynomialDecay(eta * b**0.9, b, 0.9)
                sampler = kind(step_size=decay, batch_size=BATCH)
                found.append(Setting(family, f"{family} eta={eta:g} b={b:g}", sampler))
    for B in (3e3, 1e4, 3e4, 1e5):
        found.append(Setting("SGFS-d", f"SGFS-d B={B:g}", diagonal(B)))
    paper = SGFS(alpha=8.95, structure="diag", batch_size=BATCH)
    found.append(Setting("SGFS-d", "SGFS-d alpha=8.95", paper))
    n_steps = int((n_passes - 1) * n_rows / BATCH_FULL)
    every = max(100, n_steps // 100)
    full = {"curvature": "empirical", "batch_size": BATCH_FULL, "refresh_every": every}
    for B in (1e4, 3e4):
        sampler = SGFS(alpha=Halved(n_steps // 5), B=B, **full)
        found.append(Setting("SGFS-f", f"SGFS-f B={B:g}", sampler, before=1.0))
    paper = SGFS(alpha=8.95, **full)
    return [*found, Setting("SGFS-f", "SGFS-f alpha=8.95", paper, before=1.0)]


def diagonal(B: float) -> SGFS:
    """SGFS-d with injected noise B I."""
    return SGFS(alpha=1.0, B=B, structure="diag", batch_size=BATCH)


def run(
    setting: Setting, posterior: Posterior, n_passes: float, seed: int = 0
) -> tuple[NDArray, NDArray]:
    """Kept points and the last, and their weights."""
    sampler, state = started(setting, posterior, seed)
    n_steps = int((n_passes - setting.before) * posterior.n_rows / sampler.rows_per_step)
    burn_in = n_steps * 3 // 4
    length = Length(N_DRAWS, burn_in, (n_steps - burn_in) // N_DRAWS)
    chain = run_chain(sampler, posterior, state, length)
    return np.concatenate([chain.draws[0], chain.state.theta]), chain.weights


def started(setting: Setting, posterior: Posterior, seed: int = 0) -> tuple[Any, State]:
    """The sampler, and its state at random weights or after the passes of SGFS-d before it."""
    theta = posterior.model.init(np.random.default_rng(seed))
    rng = np.random.Generator(np.random.SFC64(53 + seed))
    if setting.before:
        first, n_steps = diagonal(1e4), int(setting.before * posterior.n_rows / BATCH)
        state = first.init(posterior, theta, rng)
        theta = run_chain(first, posterior, state, Length(1, n_steps)).state.theta
    sampler: Any = setting.sampler
    return sampler, sampler.init(posterior, theta, rng)


def errors(model: DRBM, draws: NDArray, weights: NDArray, held: Held) -> tuple[int, int]:
    """Errors of the averaged probabilities and of the last point."""
    total, blocks = np.zeros((23, len(held.X))), np.array_split(held.X, len(held.X) // 250)
    for theta, weight in zip(draws, [*weights, 0.0], strict=True):
        p = np.concatenate([model.predict(theta[None], block)[0] for block in blocks], axis=1)
        total += weight * p
    return held.errors(total), held.errors(p)


def measure(
    setting: Setting,
    posterior: Posterior,
    n_passes: float,
    held: tuple[Held, Held],
    seed: int = 0,
) -> dict:
    """One line of the first table, with validation and test errors."""
    row = {"family": setting.family, "setting": setting.label}
    try:
        with Clock() as clock:
            draws, weights = run(setting, posterior, n_passes, seed)
    except (FloatingPointError, np.linalg.LinAlgError):  # the latter where NaN is factorised first
        print(f"{setting.label}: diverged", flush=True)
        return row | {"validation errors": "diverged", "passes": n_passes}
    print(f"{setting.label}: {clock.seconds:.0f} s", flush=True)
    is_sgd = setting.family == "SGD"
    average, last = errors(posterior.model, draws, weights, held[0])
    row |= {"validation errors": last if is_sgd else average, "average": average, "last": last}
    row["largest |theta|"] = float(np.abs(draws[-1]).max())
    row |= {"passes": n_passes, "seconds": clock.seconds}
    average, last = errors(posterior.model, draws, weights, held[1])
    test = {"test average": average, "test last": last, "test errors": last if is_sgd else average}
    return row | test


def chosen(rows: list[dict]) -> dict[str, dict]:
    """The line of each family with the fewest validation errors."""
    found: dict[str, dict] = {}
    for row in rows:
        best = found.get(row["family"])
        if row["validation errors"] == "diverged":
            continue
        if best is None or row["validation errors"] < best["validation errors"]:
            found[row["family"]] = row
    return found


def rate(count: int, n: int) -> str:
    """Error rate and its binomial standard deviation, in units of 1e-4."""
    p = count / n
    return f"{1e4 * p:.1f} +- {1e4 * np.sqrt(p * (1 - p) / n):.1f}"


def table_1(rows: list[dict], n_test: int) -> list[dict]:
    """Test error of the chosen settings beside the paper's."""
    return [
        {
            "sampler": family,
            "setting": row["setting"],
            "error (1e-4)": rate(row["test errors"], n_test),
            "published (1e-4)": rate(round(PUBLISHED[family] * PUBLISHED_TEST), PUBLISHED_TEST),
            "errors": row["test errors"],
            "of the average": row["test average"],
            "of the last point": row["test last"],
            "passes": row["passes"],
            "seconds": row["seconds"],
        }
        for family, row in chosen(rows).items()
    ]


def claims(rows: list[dict], full: bool) -> list[Claim]:
    """The order of Table 1, in test errors."""
    count = {family: row["test errors"] for family, row in chosen(rows).items()}
    return [
        Claim(f"test errors of {a}, fewer than {b}", count[a], high=count[b], strict=True)
        for a, b in [*ORDER, *([("SGLD", "SGD")] if full else [])]
    ]


def by_burn_in(posterior: Posterior, held: Held) -> list[dict]:
    """Test errors of averages over the rest of a run, by the part that is left out."""
    n_passes = 20_000 * BATCH / posterior.n_rows
    every = settings(n_passes, posterior.n_rows)
    rows, eighths = [], (1, 2, 4, 6, 7)
    for setting in (one for one in every if one.label in CHOSEN):
        sampler, state = started(setting, posterior)
        n_steps = int((n_passes - setting.before) * posterior.n_rows / sampler.rows_per_step)
        length = Length(35, n_steps // 8, n_steps // 40)
        chain = run_chain(sampler, posterior, state, length)
        each = [posterior.model.predict(one[None], held.X)[0] for one in chain.draws[0]]
        for part in eighths:
            first = 5 * (part - 1)
            p = np.tensordot(chain.weights[first:], np.array(each[first:]), 1)
            row = {"setting": setting.label, "burn-in": f"{part}/8", "draws": len(each) - first}
            rows.append(row | {"test errors": held.errors(p), "test rows": len(held.y)})
        print(rows[-len(eighths) :], flush=True)
    return rows


def burn_in_claims(rows: list[dict]) -> list[Claim]:
    """Insensitive to it."""
    found = []
    for label in dict.fromkeys(row["setting"] for row in rows):
        count = [row["test errors"] for row in rows if row["setting"] == label]
        sentence = f"{label}: most less fewest test errors, by burn-in"
        found.append(Claim(sentence, max(count) - min(count), high=2 * np.sqrt(min(count))))
    return found


def main(report: Report, full: bool, burn_in: bool) -> None:
    """Every setting."""
    data = kdd99()
    (X, y), *held = split(scaled(data), data.y)
    model = DRBM(40, 23, 41)
    codes = model.encode(y, X.dtype)
    posterior = posterior_of(model, X, codes, 1.0)
    print(f"{len(X):,} rows to train, {len(held[0].y):,} to validate, {len(held[1].y):,} to test\n")
    if burn_in:
        rows = by_burn_in(posterior, held[1])
        report.save(rows, burn_in_claims(rows), name="ahn_kdd_burn_in")
        return
    n_passes = (100_000 if full else 20_000) * BATCH / len(X)
    every = settings(n_passes, len(X))
    rows = [measure(one, posterior, n_passes, held) for one in every]
    best = [row["setting"] for row in chosen(rows).values()]
    for row in rows:  # the test set chooses nothing: its errors are shown for the chosen alone
        if row["setting"] not in best:
            row |= dict.fromkeys(("test average", "test last", "test errors"))
    report.show(table_1(rows, len(held[1].y)), "chosen by validation")
    papers = posterior_of(model, X, codes, PAPERS_PRECISION)
    again = [measure(one, papers, n_passes, held) for one in every if one.label in best]
    for row in again:
        row["setting"] += f" precision={PAPERS_PRECISION:g}"
    name = "ahn_kdd_full" if full else "ahn_kdd"
    report.save([*rows, *again], claims(rows, full), name=name)


if __name__ == "__main__":
    benchmark(
        main,
        full={"action": "store_true", "help": "100,000 steps instead of 20,000"},
        burn_in={"action": "store_true", "help": "errors by the length of burn-in, alone"},
    )
