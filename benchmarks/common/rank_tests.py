"""Whether ranks are uniform: simultaneous bands of their distribution function, and pictures.

The rank of a true parameter among draws of its posterior is uniform, over parameters from the prior
and data from the model (Talts et al. 2018). The band is that of Säilynoja, Bürkner & Vehtari
(2022): the number of ranks up to each rank is binomial. The smallest of the two-sided binomial
tails is the statistic, and its distribution comes from uniform ranks.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import binom

N_RANKED = 99
"""draws among which a truth is ranked"""
_SIMULATED = 40_000  # sets of uniform ranks
_LEVEL = 0.95  # of the band that is drawn
_BINS = 20
_OUTSIDE = (N_RANKED + 1) // 20  # ranks on either side of a 90 % interval


class RankTest(NamedTuple):
    """How far the ranks of one quantity or several are from uniform."""

    deviation: float
    """largest difference between distribution functions"""
    standardised: float
    """the same in binomial standard deviations"""
    p_value: float
    """of all quantities together (Bonferroni)"""
    worst: int
    """the quantity that is farthest off"""
    coverage: float
    """of central 90 % intervals, mean over quantities"""
    coverage_error: float
    """its standard error, over replicates"""


def spaced(draws: NDArray) -> NDArray:
    """N_RANKED draws, evenly spaced along the first axis."""
    return draws[np.linspace(0, len(draws) - 1, N_RANKED).round().astype(int)]


def ranks(truth: NDArray, draws: NDArray) -> NDArray:
    """Ranks from 0 to N_RANKED of quantities (Q,) among draws of them (N_RANKED, Q)."""
    return (draws < truth).sum(axis=0)


def diagnose_run(ranked: NDArray) -> RankTest:
    """Verdict on ranks (replicates, Q)."""
    n = len(ranked)
    counts = np.stack([_cumulated(column) for column in ranked.T])
    share = _shares()
    away = np.abs(counts / n - share)
    tails = _tails(n)[np.arange(N_RANKED), counts].min(axis=1)
    null = _null(n)
    p_values = (1 + np.searchsorted(null, tails, side="right")) / (1 + len(null))
    standardised = away / np.sqrt(share * (1 - share) / n)
    p_value = min(1.0, len(tails) * float(p_values.min()))
    covered = ((ranked >= _OUTSIDE) & (ranked <= N_RANKED - _OUTSIDE)).mean(axis=1)
    return RankTest(
        float(away.max()),
        float(standardised.max()),
        p_value,
        int(tails.argmin()),
        float(covered.mean()),
        float(covered.std(ddof=1) / np.sqrt(n)),
    )


def band(n: int) -> tuple[NDArray, NDArray]:
    """Ends of the simultaneous 95 % band of the distribution function of n ranks, (N_RANKED,)."""
    pointwise = np.quantile(_null(n), 1 - _LEVEL) * (1 - 1e-9)  # itself within, after rounding
    low, high = binom.ppf([[pointwise / 2], [1 - pointwise / 2]], n, _shares()) / n
    return low, high


def pictures(named: dict[str, NDArray]) -> Figure:
    """A row for each case: the histogram of the worst quantity's ranks, and all differences.

    Differences are those of the distribution function from a uniform one, with its band. The worst
    quantity's line is dark.
    """
    figure = Figure(figsize=(6.4, 0.95 * len(named) + 0.4), dpi=64, layout="constrained")
    for row, (name, ranked) in zip(
        figure.subplots(len(named), 2, squeeze=False), named.items(), strict=True
    ):
        worst = diagnose_run(ranked).worst
        _histogram(row[0], ranked[:, worst], name)
        _differences(row[1], ranked, worst)
    return figure


def _histogram(ax, ranked: NDArray, name: str) -> None:
    """With the 99 % range of a bin."""
    n = len(ranked)
    edges = np.linspace(-0.5, N_RANKED + 0.5, _BINS + 1)
    ends = binom.ppf([0.005, 0.995], n, 1 / _BINS)
    ax.hist(ranked, edges, color="C0", histtype="stepfilled", antialiased=False)
    for end in ends:
        ax.axhline(end, color="0.4", linewidth=0.8, antialiased=False)
    ax.set(xticks=[], yticks=[], xlim=edges[[0, -1]])
    ax.set_title(name, fontsize=7, loc="left", pad=2)


def _differences(ax, ranked: NDArray, worst: int) -> None:
    share = _shares()
    low, high = band(len(ranked))
    ax.fill_between(share, low - share, high - share, color="0.85", antialiased=False)
    order = [k for k in range(ranked.shape[1]) if k != worst] + [worst]
    for k in order:
        style = (
            {"color": "C0", "linewidth": 1.2} if k == worst else {"color": "0.6", "linewidth": 0.5}
        )
        difference = _cumulated(ranked[:, k]) / len(ranked) - share
        ax.plot(share, difference, antialiased=False, **style)
    ax.axhline(0, color="0.4", linewidth=0.5, antialiased=False)
    ax.set(xticks=[], xlim=(0, 1))
    ax.tick_params(labelsize=6)


def _shares() -> NDArray:
    """Uniform distribution function at the ranks 0 to N_RANKED - 1."""
    return np.arange(1, N_RANKED + 1) / (N_RANKED + 1)


def _cumulated(ranked: NDArray) -> NDArray:
    """How many ranks are at most 0, 1, ..., N_RANKED - 1."""
    return np.bincount(ranked, minlength=N_RANKED + 1).cumsum()[:-1]


@cache
def _tails(n: int) -> NDArray:
    """Two-sided tail probability at each rank (N_RANKED, n + 1) of each number up to it."""
    numbers = np.arange(n + 1)
    share = _shares()[:, None]
    return 2 * np.minimum(binom.cdf(numbers, n, share), binom.sf(numbers - 1, n, share))


@cache
def _null(n: int) -> NDArray:
    """The smallest tail of n uniform ranks, simulated and sorted."""
    rng = np.random.default_rng(n)
    found = []
    for _ in range(_SIMULATED // 1000):
        uniform = np.full(N_RANKED + 1, 1 / (N_RANKED + 1))
        counts = rng.multinomial(n, uniform, size=1000).cumsum(axis=1)[:, :-1]
        found.append(_tails(n)[np.arange(N_RANKED), counts].min(axis=1))
    return np.sort(np.concatenate(found))
