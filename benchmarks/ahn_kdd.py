"""Ahn, Korattikara & Welling (2012), section 5.3, Table 1: a DRBM on the KDD Cup 1999 data.

    python benchmarks/ahn_kdd.py [--full]

The 10 % file (494,021 rows, 23 classes; the paper has the whole, 4,898,430) and a discriminative restricted
Boltzmann machine with 41 hidden units, 2,647 parameters. The paper's 40 features: num_outbound_cmds is
dropped, which is constant in the whole file. The symbolic columns (protocol, service, flag) are numbers in
alphabetical order, counts and bytes become log(1 + x), every column is divided by its maximum. 90 % of the rows
train, 5 % validate, 5 % test. Prior precision 1: the paper's 10, on a tenth of its rows.

Every sampler makes the same number of passes: 13.5 by default, which is 20,000 steps of n = 300 rows, and about
eight minutes in all; --full makes the paper's 100,000 steps (67 passes, forty minutes). The last quarter of a run is
kept, 20 draws. The setting of each sampler is the one with the fewest validation errors of the averaged
probabilities, for SGD of the last iterate:

    SGD, SGLD   step_size eta (1 + t / b)^-0.9, eta = 1e-5, 2e-5, 4e-5, b = 100,000 (the paper's), 2,000
    SGFS-d      noise W = B I with B = 3e3, 1e4, 3e4, 1e5; and the paper's W = alpha^2 gamma I_N, alpha = 8.95
    SGFS-f      W = alpha^2 B I with B = 1e4, 3e4, alpha annealed from 4 to 1

SGFS-f starts where SGFS-d with B = 1e4 is after one pass, which counts; it takes n = 1,000 and so fewer
steps, as each costs two products with a matrix of 2,647 x 2,647, and the score covariance for curvature, as
the Fisher matrix of a minibatch is the sum over 23 virtual labels. Matrices are frozen with the burn-in.

A number for B bounds the gain by 2 / W. Under the paper's B = gamma I_N nothing but the prior does so where the
scores are next to zero, as those of rare and of well separated classes are. Chains so made were thrown to
|theta| of hundreds and more (the prior's standard deviation is 1) or diverged, presumably when scores returned.

Prints the validation errors of all settings, the test errors of the chosen ones beside the published, with one
binomial standard deviation, and the acceptance checks; writes a CSV. The order of the paper's table comes out at full
size. After 13.5 passes SGLD and SGD are still as good as each other: within the error bars, as their difference
would be in the paper if its test set were as small as this one, a tenth.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from common import DATA, print_table, write_csv
from numpy.typing import NDArray

from skbayes_sg.chains import run_chain
from skbayes_sg.models import DRBM
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import SGD, SGFS, SGLD, PolynomialDecay

SYMBOLIC = ("protocol_type", "service", "flag")
DROPPED = "num_outbound_cmds"
BATCH, BATCH_FULL = 300, 1000
N_DRAWS = 20
PUBLISHED = {"SGD": 8.0e-4, "SGLD": 6.6e-4, "SGFS-d": 4.2e-4, "SGFS-f": 4.4e-4}
PUBLISHED_TEST = 244_921


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


def kdd() -> tuple[NDArray, NDArray, list[str]]:
    """The 10 % file, symbols as numbers in alphabetical order; classes 0..22; names of the columns."""
    if (DATA / "kddcup99_10percent.npz").exists():
        with np.load(DATA / "kddcup99_10percent.npz", allow_pickle=False) as archive:
            return archive["X"], archive["y"].astype(int), archive["feature_names"].tolist()
    from sklearn.datasets import fetch_kddcup99

    data = fetch_kddcup99(percent10=True)
    columns = [
        np.unique(column, return_inverse=True)[1] if name in SYMBOLIC else column
        for name, column in zip(data.feature_names, data.data.T, strict=True)
    ]
    y = np.unique(data.target, return_inverse=True)[1]
    return np.stack(columns, axis=1).astype(np.float64), y, data.feature_names


def scaled(X: NDArray, names: list[str]) -> NDArray:
    """40 columns in [0, 1]: logarithms of counts, over the maximum."""
    kept = [j for j, name in enumerate(names) if name != DROPPED]
    X, names = X[:, kept], [names[j] for j in kept]
    counts = [j for j, name in enumerate(names) if name not in SYMBOLIC and X[:, j].max() > 1]
    X[:, counts] = np.log1p(X[:, counts])
    return (X / np.maximum(X.max(axis=0), 1e-9)).astype(np.float32)  # is_host_login is 0 in all of these rows


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


def settings(n_passes: float, n_rows: int) -> list[tuple[str, str, object, float]]:
    """Family, label, sampler, passes of SGFS-d before it."""
    found: list[tuple[str, str, object, float]] = []
    for family, kind in (("SGD", SGD), ("SGLD", SGLD)):
        for eta in (1e-5, 2e-5, 4e-5):
            for b in (100_000.0, 2_000.0):
                decay = PolynomialDecay(eta * b**0.9, b, 0.9)
                found.append((family, f"{family} eta={eta:g} b={b:g}", kind(step_size=decay, batch_size=BATCH), 0.0))
    for B in (3e3, 1e4, 3e4, 1e5):
        found.append(("SGFS-d", f"SGFS-d B={B:g}", diagonal(B), 0.0))
    paper = SGFS(alpha=8.95, structure="diag", batch_size=BATCH)
    found.append(("SGFS-d", "SGFS-d alpha=8.95", paper, 0.0))
    n_steps = int((n_passes - 1) * n_rows / BATCH_FULL)
    full = {"curvature": "empirical", "batch_size": BATCH_FULL, "refresh_every": max(100, n_steps // 100)}
    for B in (1e4, 3e4):
        found.append(("SGFS-f", f"SGFS-f B={B:g}", SGFS(alpha=Halved(n_steps // 5), B=B, **full), 1.0))
    return found


def diagonal(B: float) -> SGFS:
    """SGFS-d with injected noise B I."""
    return SGFS(alpha=1.0, B=B, structure="diag", batch_size=BATCH)


def run(sampler, posterior: Posterior, n_passes: float, before: float) -> tuple[NDArray, NDArray, float]:
    """Kept points and the last, their weights, seconds."""
    theta = posterior.model.init(np.random.default_rng(0))
    rng = np.random.Generator(np.random.SFC64(53))
    begin = time.perf_counter()
    if before:
        first, n_steps = diagonal(1e4), int(before * posterior.n_rows / BATCH)
        theta = run_chain(first, posterior, first.init(posterior, theta, rng), n_draws=1, burn_in=n_steps).state.theta
    n_steps = int((n_passes - before) * posterior.n_rows / sampler.rows_per_step)
    burn_in = n_steps * 3 // 4
    state = sampler.init(posterior, theta, rng)
    chain = run_chain(sampler, posterior, state, n_draws=N_DRAWS, burn_in=burn_in, thin=(n_steps - burn_in) // N_DRAWS)
    return np.concatenate([chain.draws[0], chain.state.theta]), chain.weights, time.perf_counter() - begin


def errors(model: DRBM, draws: NDArray, weights: NDArray, held: Held) -> tuple[int, int]:
    """Errors of the averaged probabilities and of the last point."""
    total = np.zeros((23, len(held.X)))
    for theta, weight in zip(draws, [*weights, 0.0], strict=True):
        blocks = [model.predict(theta[None], block)[0] for block in np.array_split(held.X, len(held.X) // 250)]
        p = np.concatenate(blocks, axis=1)
        total += weight * p
    return held.errors(total), held.errors(p)


def rate(count: int, n: int) -> str:
    """Error rate and its binomial standard deviation, in units of 1e-4."""
    p = count / n
    return f"{1e4 * p:.1f} +- {1e4 * np.sqrt(p * (1 - p) / n):.1f}"


def table_1(chosen: dict[str, dict], n_test: int) -> list[dict]:
    """Test error of the chosen settings beside the paper's."""
    lines = []
    for family, row in chosen.items():
        published = round(PUBLISHED[family] * PUBLISHED_TEST)
        lines.append(
            {
                "sampler": family,
                "setting": row["setting"],
                "error (1e-4)": rate(row["test errors"], n_test),
                "published (1e-4)": rate(published, PUBLISHED_TEST),
                "errors": row["test errors"],
                "of the average": row["test average"],
                "of the last point": row["test last"],
                "passes": row["passes"],
                "seconds": row["seconds"],
            }
        )
    return lines


def acceptance(chosen: dict[str, dict]) -> list[tuple[str, bool]]:
    """The order of Table 1, in test errors."""
    count = {family: row["test errors"] for family, row in chosen.items()}
    pairs = [("SGFS-d", "SGLD"), ("SGFS-f", "SGLD"), ("SGLD", "SGD"), ("SGFS-d", "SGD"), ("SGFS-f", "SGD")]
    return [(f"{a} < {b}: {count[a]} < {count[b]} errors", count[a] < count[b]) for a, b in pairs]


def main() -> None:
    """Run every setting, choose, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="100,000 steps instead of 20,000")
    full = parser.parse_args().full
    n_steps = 100_000 if full else 20_000
    X, y, names = kdd()
    (X_train, y_train), validation, test = split(scaled(X, names), y)
    model = DRBM(40, 23, 41)
    posterior = Posterior(model, X_train, model.encode(y_train, X_train.dtype), 1.0)
    print(f"{len(X_train):,} rows to train, {len(validation.y):,} to validate, {len(test.y):,} to test\n")

    rows, kept = [], {}
    n_passes = n_steps * BATCH / len(X_train)
    for family, label, sampler, before in settings(n_passes, len(X_train)):
        try:
            draws, weights, seconds = run(sampler, posterior, n_passes, before)
        except (FloatingPointError, np.linalg.LinAlgError):  # the latter where NaN comes to a factorisation first
            rows.append({"family": family, "setting": label, "validation errors": "diverged", "passes": n_passes})
            print(f"{label}: diverged", flush=True)
            continue
        average, last = errors(model, draws, weights, validation)
        row = {
            "family": family,
            "setting": label,
            "validation errors": last if family == "SGD" else average,
            "average": average,
            "last": last,
            "largest |theta|": float(np.abs(draws[-1]).max()),
            "passes": n_passes,
            "seconds": seconds,
        }
        rows.append(row)
        print(f"{label}: {seconds:.0f} s", flush=True)
        if family not in kept or row["validation errors"] < kept[family][0]["validation errors"]:
            kept[family] = row, draws, weights
    print()
    print_table([{key: value for key, value in row.items() if key != "family"} for row in rows])

    chosen = {}
    for family, (row, draws, weights) in kept.items():
        row["test average"], row["test last"] = errors(model, draws, weights, test)
        row["test errors"] = row["test last"] if family == "SGD" else row["test average"]
        chosen[family] = row
    print()
    print_table(table_1(chosen, len(test.y)))
    print(f"\nwrote {write_csv('ahn_kdd_full.csv' if full else 'ahn_kdd.csv', rows).name}\n")
    for claim, holds in acceptance(chosen):
        print(f"{'ok  ' if holds else 'FAIL'} {claim}")


if __name__ == "__main__":
    main()
