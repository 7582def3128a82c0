"""Ahn, Korattikara & Welling (2012), section 5.3: modes of DRBM with 2, 5, 10 and 41 hidden units.

    python -m benchmarks.papers.ahn_drbm_modes

The paper compares samplers on a machine of two hidden units, because with 41, 10 or 5 they "ended
up sampling from different modes". Here, with 2, 5, 10 and 41 units, four chains of HMC, which is
right within a mode, start at four modes that L-BFGS finds from random points. Data and prior are
those of ahn_drbm.py. Modes that differ by the order of hidden units alone have the same
probabilities, so these are compared: mean total variation distance on held-out rows, times 1,000,
between the averages of two chains, and between those of the two halves of a chain, which is its
noise. The claim is that any two chains are further apart than the halves of any of them. The log
posterior has its mean in each chain, lowest and highest, and the largest standard deviation within
a chain. Ten leapfrog steps a draw. The claim holds with two units and fails with more. Some three
CPU minutes, and ten more for 41 units.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import Posterior, begin, posterior_of
from benchmarks.papers.ahn_drbm import TENTH, modes, six_classes
from skbayes_sg.chains.run import Length, run_chain
from skbayes_sg.models import DRBM
from skbayes_sg.samplers import HMC

UNITS = (2, 5, 10, 41)
N_CHAINS = 4
LENGTH = Length(n_draws=60, burn_in=100)


def averages(posterior: Posterior, draws: NDArray, X: NDArray, of_row: NDArray) -> NDArray:
    """Class probabilities of held-out rows, averaged over each half of the draws, (2, K, rows)."""
    halves = np.array_split(draws, 2)
    each = ([posterior.model.predict(theta[None], X)[0] for theta in half] for half in halves)
    return np.array([np.mean(half, axis=0)[:, of_row] for half in each])


def distance(p: NDArray, q: NDArray) -> float:
    """1,000 times the mean total variation."""
    return 500 * float(np.abs(p - q).sum(axis=0).mean())


def row_of(n_hidden: int) -> dict:
    """Four chains of one machine."""
    X, codes, classes, _ = six_classes(TENTH.n_rows)
    model = DRBM(X.shape[1], len(classes), n_hidden)
    train, held_out = slice(TENTH.n_rows), slice(TENTH.n_rows, None)
    y = model.encode(codes[train], X.dtype)
    every = posterior_of(model, X[train], y, TENTH.precision)
    posterior = Posterior(model, every.data.merged(), every.prior)
    distinct, of_row = np.unique(X[held_out].astype(np.float32), axis=0, return_inverse=True)
    sampler, values, p = HMC(n_leapfrog=10, single_gradients=True), [], []
    for start in modes(posterior, N_CHAINS):
        state = begin(sampler, posterior, start[None], seed=53)
        draws = run_chain(sampler, posterior, state, LENGTH).draws[0]
        values.append(posterior.log_prob(draws))
        p.append(averages(posterior, draws, distinct, of_row.ravel()))
        print(f"{n_hidden} units: log posterior {values[-1].mean():.1f}", flush=True)
    within = [distance(*halves) for halves in p]
    between = [distance(a.mean(axis=0), b.mean(axis=0)) for a, b in combinations(p, 2)]
    errors = [int((each.mean(axis=0).argmax(axis=0) != codes[held_out]).sum()) for each in p]
    return {
        "hidden units": n_hidden,
        "parameters": model.dim,
        "log posterior, lowest chain": float(min(v.mean() for v in values)),
        "log posterior, highest chain": float(max(v.mean() for v in values)),
        "sd within a chain": float(max(v.std(ddof=1) for v in values)),
        "1000 TV between halves": max(within),
        "1000 TV between chains, nearest": min(between),
        "1000 TV between chains, farthest": max(between),
        "errors, fewest": min(errors),
        "errors, most": max(errors),
    }


def claims(rows: list[dict]) -> list[Claim]:
    """Chains that differ by more than their noise."""
    return [
        Claim(
            f"{row['hidden units']} units: TV between the nearest chains, over that of halves",
            row["1000 TV between chains, nearest"] / row["1000 TV between halves"],
            low=1,
            strict=True,
        )
        for row in rows
    ]


def main(report: Report) -> None:
    """Every number of units."""
    rows = [row_of(n_hidden) for n_hidden in UNITS]
    report.save(rows, claims(rows))


if __name__ == "__main__":
    benchmark(main, threads=1)
