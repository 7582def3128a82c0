"""Ahn, Korattikara & Welling (2012), section 5.3: posterior of a small DRBM on KDD99, against HMC.

    python benchmarks/ahn_drbm.py [--full]

As in the paper (Fig. 4 and 5) there are the six most populous classes and 2 hidden units. The
data are 49,000 random rows of the 10 % file, a tenth of those in the paper's subset, and with
them a tenth of its prior precision, 1 for 10. The three symbolic columns are the ranks of their
sorted names; byte counts and duration are taken as log(1 + x); all columns are scaled to [0, 1],
and those that are constant in the rows dropped: 36 features of 41, 92 parameters. 10,000 more
rows are held out.

All chains start at the best of eight L-BFGS modes, two in lock step. The reference is HMC with
the Fisher metric. Minibatches have 500 rows; all methods but HMC take the same passes. SGFS needs
a cautious start (see `warm_up`): its matrices must be those of the posterior, and not of the
mode, where few rows have any gradient.

What the data do not know is left out: H + 1 = 3 directions have the prior as posterior, so draws
are projected on the other 89; their own variance over the prior's is the column "null". Hidden
units could swap, which gives a mirror image of the posterior: "swapped" is the share of draws
nearer to the mirrored start.

SGFS-f and SGFS-d inject W = alpha^2 gamma I_N + prior, SGFS-B (full matrices) W = B times the
identity + prior. Per setting: E1, E2 (Eq. 14), variance over HMC's along HMC's principal axes
(min, median, max), autocorrelation time in steps (median over weights), effective draws per pass,
Stein ratio, and of the averaged class probabilities on held-out rows the error rate and the mean
total variation distance to HMC's, times 1,000. "close" is the share of marginal variances within
3 standard errors of HMC's. "HMC, chain 1 : 2" is one HMC chain against the other: the noise in
all of this, twice that of the reference. --full takes four times as many draws.

The order of the paper's methods holds, but two checks of SGFS-f fail: its largest variance ratio
at alpha = 5 is 2.8, at 10 1.8, from rare excursions, and up to alpha = 3 it leaves the mode for
good. In the many directions that the data say little of, W is the prior's alone and a step an
independent draw of the prior, whatever alpha: presumably rows that matter only far out throw the
chain from there. W = 100 times the identity makes these steps short, and with it (SGFS-B) 98 % of
the variances are within 3 standard errors of HMC's, and the principal axes within its noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from datasets import kdd99
from harness import Claim, Report, benchmark
from internals import Posterior, begin, posterior_of
from matplotlib.figure import Figure
from numpy.typing import NDArray
from plots import ellipse
from scipy.optimize import minimize

from skbayes_sg import diagnostics
from skbayes_sg.chains import run_chain
from skbayes_sg.models import DRBM
from skbayes_sg.samplers import HMC, SGFS, SGLD

N_ROWS, N_HELD_OUT, N_HIDDEN, BATCH = 49_000, 10_000, 2, 500
PRIOR_PRECISION = 1.0
N_CHAINS = 2
BURN_IN = 6_000
THIN = 20
CAUTIOUS = 5e-5  # largest gain K of the first half of SGFS's burn-in
ALPHAS = [2, 3, 5, 10]
INJECTED = [100, 1000]
EPSILONS = [2e-3, 5e-4, 1e-4, 5e-5]
FAMILIES = ("SGFS-f", "SGFS-B", "SGFS-d", "SGLD")
COLOURS = dict(zip(FAMILIES, ("tab:blue", "tab:purple", "tab:green", "tab:orange"), strict=True))
LOST = 20.0  # E2 of a chain that left the mode


class Problem(NamedTuple):
    """Data, posterior, and what is known of it."""

    exact: Posterior
    fast: Posterior
    """the same with float32 rows, for minibatches"""
    held_out: tuple[NDArray, NDArray]
    mode: NDArray
    null: NDArray
    """(D, H + 1), orthonormal: directions known by the prior alone"""


class Sample(NamedTuple):
    """Draws of one method with what was left of them."""

    draws: NDArray
    """(chains, draws, D), null directions taken out"""
    steps: int
    thin: int
    passes: float
    stein: float
    null_ratio: float
    swapped: float
    probabilities: NDArray
    """on held-out rows, averaged over draws"""


# -- data and posterior ---------------------------------------------------------------------------


def six_classes() -> tuple[NDArray, NDArray, list[str]]:
    """Features in [0, 1], class numbers, class names of the rows used; the held-out ones last."""
    data = kdd99()
    labels = data.target_names[data.y]
    names, counts = np.unique(labels, return_counts=True)
    names = np.sort(names[np.argsort(counts)[-6:]])
    rows = np.random.default_rng(0).permutation(np.flatnonzero(np.isin(labels, names)))
    rows = rows[: N_ROWS + N_HELD_OUT]
    X, codes = data.X[rows], np.searchsorted(names, labels[rows])
    skewed = [data.feature_names.index(name) for name in ("duration", "src_bytes", "dst_bytes")]
    X[:, skewed] = np.log1p(X[:, skewed])
    low, spread = X.min(axis=0), np.ptp(X, axis=0)
    return ((X - low) / np.where(spread > 0, spread, 1))[:, spread > 0], codes, list(names)


def null_directions(model: DRBM) -> NDArray:
    """U_j. + a against c_j - a for each hidden unit, and a shift of d: orthonormal columns."""
    directions = np.zeros((N_HIDDEN + 1, model.dim))
    blocks = model.unpack(directions)
    for j in range(N_HIDDEN):
        blocks["U"][j, j], blocks["c"][j, j] = 1.0, -1.0
    blocks["d"][-1] = 1.0
    return (directions / np.linalg.norm(directions, axis=1, keepdims=True)).T


def best_mode(posterior: Posterior) -> NDArray:
    """The highest mode that L-BFGS finds from eight random starts, (1, D)."""

    def objective(theta: NDArray) -> tuple[float, NDArray]:
        value, gradient = posterior.slope(theta[None])
        return -value, -gradient[0]

    starts = [posterior.model.init(np.random.default_rng(seed))[0] for seed in range(8)]
    options = {"jac": True, "method": "L-BFGS-B", "options": {"maxiter": 500}}
    found = sorted((minimize(objective, s, **options) for s in starts), key=lambda f: f.fun)
    print("log posterior of the modes:", " ".join(f"{-f.fun:.1f}" for f in found))
    return found[0].x[None]


def problem() -> Problem:
    """Everything that does not depend on a sampler."""
    X, codes, names = six_classes()
    model = DRBM(X.shape[1], len(names), N_HIDDEN)
    y = model.encode(codes, X.dtype)[:N_ROWS]
    exact, fast = (
        posterior_of(model, X[:N_ROWS].astype(dtype), y, PRIOR_PRECISION)
        for dtype in (np.float64, np.float32)
    )
    counts = np.bincount(codes[:N_ROWS])
    print(f"{N_ROWS:,} rows x {X.shape[1]}, {model.dim} parameters; classes:", end=" ")
    print(", ".join(f"{name} {count:,}" for name, count in zip(names, counts, strict=True)))
    held_out = X[N_ROWS:].astype(np.float32), codes[N_ROWS:]
    return Problem(exact, fast, held_out, best_mode(exact), null_directions(model))


# -- sampling -------------------------------------------------------------------------------------


def settings() -> dict[str, object]:
    """Samplers by label."""
    rows = {"batch_size": BATCH}
    full = {f"SGFS-f {a}": SGFS(alpha=float(a), **rows) for a in ALPHAS}
    bounded = {f"SGFS-B {b}": SGFS(alpha=1.0, B=b, **rows) for b in INJECTED}
    diag = {f"SGFS-d {a}": SGFS(alpha=float(a), structure="diag", **rows) for a in ALPHAS}
    sgld = {f"SGLD {e:g}": SGLD(step_size=e / 2, **rows) for e in EPSILONS}
    return full | bounded | diag | sgld


def warm_up(sampler: SGFS, given: Problem, state):
    """Half of the burn-in with W = 2 / CAUTIOUS times the identity.

    No step can be long while matrices are learnt.
    """
    cautious = SGFS(alpha=1.0, B=2 / CAUTIOUS, structure=sampler.structure, batch_size=BATCH)
    state = run_chain(cautious, given.fast, state, n_draws=1, burn_in=BURN_IN // 2).state
    cautious.unfreeze(state)
    return state


def sample(sampler, given: Problem, n_draws: int, burn_in: int, thin: int) -> Sample:
    """Chains from the mode."""
    posterior = given.exact if isinstance(sampler, HMC) else given.fast
    start = np.repeat(given.mode, N_CHAINS, axis=0)
    state = begin(sampler, posterior, start, seed=53)
    if isinstance(sampler, SGFS):
        state, burn_in = warm_up(sampler, given, state), burn_in - burn_in // 2
    chain = run_chain(sampler, posterior, state, n_draws=n_draws, burn_in=burn_in, thin=thin)
    null = chain.draws @ given.null
    draws = chain.draws - null @ given.null.T
    touched = float(n_draws * thin * BATCH * N_CHAINS)
    if isinstance(sampler, HMC):
        touched = chain.state.memory.rows_touched * n_draws / (n_draws + burn_in)
    mirror = mirrored(given.exact.model, given.mode)
    here, there = (((chain.draws - m) ** 2).sum(axis=-1) for m in (given.mode, mirror))
    return Sample(
        draws,
        n_draws * thin,
        thin,
        touched / N_ROWS,
        diagnostics.stein_ratio_of_sums([chain.stein])[0],
        float((null**2).mean() * PRIOR_PRECISION),
        float((there < here).mean()),
        averaged_probabilities(given, chain.draws),
    )


def mirrored(model: DRBM, theta: NDArray) -> NDArray:
    """The same function with the hidden units in reverse order."""
    blocks = model.unpack(theta[0])
    return np.concatenate([(b[::-1] if name != "d" else b).ravel() for name, b in blocks.items()])


def averaged_probabilities(given: Problem, draws: NDArray) -> NDArray:
    """Class probabilities of the held-out rows (classes, rows), over 200 draws of all chains."""
    some = draws[:, :: max(1, draws.shape[1] * N_CHAINS // 200)].reshape(-1, draws.shape[-1])
    X = given.held_out[0]
    each = (given.fast.model.predict(theta[None], X)[0].astype(np.float64) for theta in some)
    return sum(each) / len(some)


# -- figures of merit -----------------------------------------------------------------------------


def moments(draws: NDArray) -> tuple[NDArray, NDArray]:
    """Mean and covariance over chains and draws."""
    flat = draws.reshape(-1, draws.shape[-1])
    return flat.mean(axis=0), np.cov(flat.T)


def variance_ratios(cov: NDArray, reference: NDArray) -> NDArray:
    """Of `cov` over the reference's, along principal axes of each half of its draws.

    The variances there are those of the other half: axes and variances of the same M effective
    draws would make even a perfect sampler's ratios 1 / (1 - D/M).
    """
    halves = [moments(half)[1] for half in np.array_split(reference, 2, axis=1)]
    ratios = []
    for here, other in (halves, halves[::-1]):
        axes = np.linalg.eigh(here)[1][:, N_HIDDEN + 1 :]
        mine, theirs = (np.einsum("ji,jk,ki->i", axes, one, axes) for one in (cov, other))
        ratios.append(mine / theirs)
    return np.concatenate(ratios)


def figures(label: str, it: Sample, reference: Sample, given: Problem) -> dict:
    """One line of the table."""
    (mean, cov), (mean_0, cov_0) = moments(it.draws), moments(reference.draws)
    ratio = variance_ratios(cov, reference.draws)
    iat = float(np.median(diagnostics.autocorrelation_time(it.draws)))
    classes = given.held_out[1]
    distance = np.abs(it.probabilities - reference.probabilities)
    return {
        "setting": label,
        "passes": it.passes,
        "E1": diagnostics.mean_error(mean, mean_0),
        "E2": diagnostics.covariance_error(cov, cov_0),
        "var min": float(ratio.min()),
        "median": float(np.median(ratio)),
        "max": float(ratio.max()),
        "IAT": iat * it.thin,
        "ESS/pass": N_CHAINS * it.steps / it.thin / iat / it.passes,
        "Stein": it.stein,
        "null": it.null_ratio,
        "swapped": it.swapped,
        "error": float((it.probabilities.argmax(axis=0) != classes).mean()),
        "1000 TV": 500 * float(distance.sum(axis=0).mean()),
        "close": float((np.abs(variance_z(it, reference)) < 3).mean()),
    }


def variance_z(it: Sample, reference: Sample) -> NDArray:
    """Difference of the marginal variances in standard errors, by effective number of squares."""
    estimates = []
    for draws in (it.draws, reference.draws):
        square = (draws - draws.mean(axis=(0, 1))) ** 2
        estimates.append(
            (square.mean(axis=(0, 1)), square.var(axis=(0, 1)) / diagnostics.ess_mean(square))
        )
    (v, e), (v_0, e_0) = estimates
    return (v - v_0) / np.sqrt(e + e_0)


def best_of(rows: list[dict]) -> dict[str, dict]:
    """The line of each family with the smallest error of the covariance."""
    mine = {f: [row for row in rows if row["setting"].startswith(f)] for f in FAMILIES}
    return {family: min(lines, key=lambda row: row["E2"]) for family, lines in mine.items()}


def claims(rows: list[dict]) -> list[Claim]:
    """What the paper claims, and what an unbiased sampler shows."""
    best, found = best_of(rows), []
    for row in (best["SGFS-f"], best["SGFS-B"]):
        name, ends = row["setting"], (row["var min"], row["max"])
        close = f"{name}: marginal variances within 3 standard errors of HMC's"
        found += [
            Claim(close, row["close"], low=0.95),
            Claim(f"{name}: |median variance ratio - 1|", abs(row["median"] - 1), high=0.1),
            Claim(f"{name}: all variance ratios", ends, 0.5, 2, strict=True),
        ]
    for one, other in (("SGFS-f", "SGLD"), ("SGFS-d", "SGLD"), ("SGFS-f", "SGFS-d")):
        label = f"E2 of {best[one]['setting']}, below {best[other]['setting']}"
        found.append(Claim(label, best[one]["E2"], high=best[other]["E2"], strict=True))
    swapped = max(row["swapped"] for row in best.values())
    mirror = "share of draws of the best of each nearer to the mirror image"
    return [*found, Claim(mirror, swapped, high=0)]


# -- picture --------------------------------------------------------------------------------------


def picture(rows: list[dict], samples: dict[str, Sample], reference: Sample) -> Figure:
    """Fig. 4: the best and the worst of the 25 most correlated pairs; Fig. 5: errors."""
    fig = Figure(figsize=(9, 12), layout="constrained", dpi=110)
    axes = fig.subplots(3, 2)
    best = best_of(rows)
    for line, family in zip(axes, ("SGFS-f", "SGLD"), strict=False):
        label = best[family]["setting"]
        figure_4(line, label, samples[label], reference)
    for ax, error in zip(axes[2], ("E1", "E2"), strict=True):
        figure_5(ax, error, rows)
    marginals = "2-d marginals, two standard deviations, and errors (Ahn et al. Fig. 4 and 5)"
    fig.suptitle(f"DRBM on KDD99: {marginals}")
    return fig


def figure_4(line: NDArray, label: str, sample: Sample, reference: Sample) -> None:
    """Draws and ellipses of the pairs that agree best and worst with HMC."""
    mean_0, cov_0 = moments(reference.draws)
    sd = np.sqrt(cov_0.diagonal())
    upper = np.triu_indices(len(sd), 1)
    top = np.argsort(-np.abs((cov_0 / np.outer(sd, sd))[upper]))[:25]
    pairs = np.stack([upper[0][top], upper[1][top]], axis=1)
    subsets = reference.draws.reshape(6, -1, len(sd))
    mean, cov = moments(sample.draws)
    error = [pair_error(pair, (mean, cov), (mean_0, cov_0)) for pair in pairs]
    for ax, k, name in zip(
        line, (np.argmin(error), np.argmax(error)), ("best", "worst"), strict=True
    ):
        pair = pairs[k]
        cells = np.ix_(pair, pair)
        points = sample.draws[:, ::5, pair].reshape(-1, 2)
        ax.plot(*points.T, ".", ms=1.5, color="0.75", rasterized=True)
        for subset in subsets:
            one = np.cov(subset.T)[cells]
            ellipse(ax, subset.mean(axis=0)[pair], one, color="tab:red", lw=0.6)
        ellipse(ax, mean_0[pair], cov_0[cells], color="tab:red", lw=2, label="HMC")
        style = {"color": "tab:blue", "lw": 2, "ls": "--"}
        ellipse(ax, mean[pair], cov[cells], label=label, **style)
        ax.set(xlabel=f"theta {pair[0]}", ylabel=f"theta {pair[1]}")
        ax.set_title(f"{label}: {name} of 25 pairs")
        ax.legend(loc="upper right", fontsize=8)


def figure_5(ax, error: str, rows: list[dict]) -> None:
    """Error against mixing rate."""
    for family, colour in COLOURS.items():
        mine = [r for r in rows if r["setting"].startswith(family) and r["E2"] < LOST]
        rate = [r["ESS/pass"] for r in mine]
        ax.loglog(rate, [r[error] for r in mine], "x-", color=colour, label=family)
        for r in mine:
            place = r["ESS/pass"], r[error]
            ax.annotate(r["setting"].split()[1], place, fontsize=7, color=colour)
    label = "one HMC chain against the other"
    ax.axhline(rows[1][error], color="tab:red", lw=0.8, ls=":", label=label)
    ax.set(xlabel="effective draws per pass", ylabel=error, title=f"without those of E2 > {LOST:g}")
    ax.legend(loc="lower left", fontsize=8)


def pair_error(
    pair: NDArray, mine: tuple[NDArray, NDArray], other: tuple[NDArray, NDArray]
) -> float:
    """Kullback-Leibler divergence of the normal marginals of a pair, up to a factor."""
    cells = np.ix_(pair, pair)
    S, S_0, shift = mine[1][cells], other[1][cells], mine[0][pair] - other[0][pair]
    inverse = np.linalg.inv(S_0)
    return float(
        np.trace(inverse @ S) + shift @ inverse @ shift - np.linalg.slogdet(inverse @ S)[1]
    )


def main(report: Report, full: bool) -> None:
    """HMC, then every setting."""
    factor = 4 if full else 1
    given = problem()
    reference = sample(HMC(), given, 2_400 * factor, 300, 1)
    print(f"HMC: R-hat at most {diagnostics.r_hat(reference.draws).max():.3f}")
    one, other = (reference._replace(draws=reference.draws[i : i + 1]) for i in (0, 1))
    rows = [figures("HMC", reference, reference, given)]
    rows.append(figures("HMC, chain 1 : 2", one, other, given))
    samples = {}
    for label, sampler in settings().items():
        samples[label] = sample(sampler, given, 3_000 * factor, BURN_IN, THIN)
        rows.append(figures(label, samples[label], reference, given))
        print(".", end="", flush=True)
    report.save(rows, claims(rows), {"ahn_drbm": picture(rows, samples, reference)})


if __name__ == "__main__":
    benchmark(main, full={"action": "store_true", "help": "four times as many draws"})
