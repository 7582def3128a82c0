"""Ahn, Korattikara & Welling (2012), section 5.3: posterior of a small DRBM on KDD99, against HMC.

    python -m benchmarks.papers.ahn_drbm [--iterations 1000000]

As in the paper (Fig. 4 and 5) there are the six most populous classes and 2 hidden units. The
data are 49,000 random rows of the 10 % file, a tenth of those in the paper's subset, and with
them a tenth of its prior precision, 1 for 10. The three symbolic columns are the ranks of their
sorted names; byte counts and duration are taken as log(1 + x); all columns are scaled to [0, 1],
and those that are constant in the rows dropped: 36 features of 41, 92 parameters. 10,000 more
rows are held out.

All chains start at the best of eight L-BFGS modes. The reference is HMC with the Fisher metric, 8
vectorised chains on the distinct rows with their numbers as weights, for 40 CPU seconds. The
paper's HMC has one leapfrog step and the Fisher matrix at the mode. Minibatches have 500 rows.
SGFS needs a cautious start (see `warm_up`): its matrices must be those of the posterior, and not
of the mode, where few rows have any gradient.

`chains.run_chain` of the package makes the chains, and not DRBMClassifier, whose chains start at
random points and find modes of their own. Here covariances are compared in one mode, so all chains
start there. They also end by the clock, and SGFS changes its noise on the way.

All other methods have two vectorised chains and the same time: 1.6975 CPU seconds of one thread
(`time.process_time`) after the burn-in, which is the paper's 6,790 s over 4,000. SGLD has the
paper's steps, and 2e-3 because a tenth of the rows bears steps ten times as long.

``--iterations`` compares at equal numbers of steps after the burn-in instead, of which the paper
has a million, and writes ahn_drbm_long.csv: SGFS-f at its best alpha, SGFS-B with W = 100 times the
identity, and SGLD at the largest of the paper's steps. Some three CPU minutes a setting for a
million. By then SGFS-f has left the mode at alpha = 4 as well, so that no claim about it holds.
SGFS-B has stayed, and keeps every limit: its covariance is nearer to HMC's than the halves of HMC
are to each other. That of SGLD is nearly as near, but for a few directions.

``--all-rows`` has the paper's size in all else too, and writes ahn_drbm_all.csv and its picture:
the 480,308 rows of the six classes that are not held out, 140,310 of them distinct, 38 features, 96
parameters, and prior precision 10. HMC runs for 1,200 CPU seconds. The settings are the paper's,
SGFS-f at five alphas and SGLD at five steps, and SGFS-B with W = 10,000 times the identity, as the
noise of a minibatch grows with the square of the rows.

What the data do not know is left out: H + 1 = 3 directions have the prior as posterior, so draws
are projected on the others; their own variance over the prior's is the column "null". Hidden
units could swap, which gives a mirror image of the posterior: "swapped" is the share of draws
nearer to the mirrored start.

SGFS-p is Algorithm 1 as printed, with the precision of the prior added to P and to the noise:
without it P is singular in the directions that the data do not know, and no chain runs. SGFS-f and
SGFS-d inject W = alpha^2 gamma I_N + prior, SGFS-B (full matrices) W = B times the
identity + prior. Per setting: E1, E2 (Eq. 14), variance over HMC's along HMC's principal axes
(min, median, max), passes (of HMC over the distinct rows), autocorrelation time in steps (median
over weights), effective draws of all chains per CPU second, which is 1 / ATUC, Stein ratio, and of
the averaged class probabilities on held-out rows the error rate and the mean total variation
distance to HMC's, times 1,000. "close" is the share of marginal variances within 3 standard
errors of HMC's. "HMC, half : half" is four HMC chains against the others: twice the error of the
reference.

The claims are the paper's order of the methods, and that SGFS-f draws the right variances. Three
fail. SGFS-f at its best, alpha = 4, has some variances several times too large, from rare
excursions, and too few of the marginal ones within 3 standard errors. SGFS-f with alpha = 2 and 3,
and SGFS-p with any alpha, leave the mode for good. In the many directions that the data say little
of, W is the prior's alone and a step an independent draw of the prior, whatever alpha: presumably
rows that matter only far out throw the chain from there. W = 100 times the identity makes these
steps short: the claims of SGFS-B hold.

SGFS-d is not below SGLD because the time is short. A chain that stands still at the mode has E2
near 1, and SGLD with steps of 1e-5 and less hardly moves (see its median variance ratios). Of the
steps at which it does move, 2e-3 is the best, and its E2 is twice that of SGFS-d. Fig. 4 shows the
SGLD of the least E2, hence such a chain.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.common.datasets import kdd99
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import Posterior, begin, posterior_of
from benchmarks.papers.ahn_drbm_figures import LOST, best_of, moments, picture
from skbayes_sg import diagnostics
from skbayes_sg.chains.run import Length, run_chain
from skbayes_sg.models import DRBM
from skbayes_sg.samplers import HMC, SGFS, SGLD

N_HELD_OUT, N_HIDDEN, BATCH = 10_000, 2, 500


class Size(NamedTuple):
    """How many rows, and what goes with their number."""

    n_rows: int
    precision: float
    """of the prior"""
    seconds_hmc: float
    """CPU seconds of the reference after its burn-in"""
    injected: list[int]
    """B of SGFS-B"""
    long: list[str]
    """settings that are run for a given number of steps"""


TENTH = Size(49_000, 1.0, 40.0, [100, 1000], ["SGFS-f 4", "SGFS-B 100", "SGLD 0.0005"])
N_CHAINS, N_REFERENCE = 2, 8
SECONDS = 1.6975
"""CPU seconds after the burn-in, of each setting"""
BURN_IN = 6_000
THIN = 20
CAUTIOUS = 5e-5  # largest gain K of the first half of SGFS's burn-in
ALPHAS = [2, 3, 4, 5, 10]
EPSILONS = [2e-3, 5e-4, 1e-4, 5e-5, 1e-5, 5e-6]
PRINTED = [f"SGFS-f {a}" for a in ALPHAS] + [f"SGLD {e:g}" for e in EPSILONS[1:]]
EVERY_ROW = Size(480_308, 10.0, 1200.0, [10_000], [*PRINTED, "SGFS-B 10000"])


class Problem(NamedTuple):
    """Data, posterior, and what is known of it."""

    size: Size
    exact: Posterior
    merged: Posterior
    """the same with equal rows merged into one of their total weight, for all rows at once"""
    fast: Posterior
    """the same with float32 rows, for minibatches"""
    held_out: tuple[NDArray, NDArray, NDArray]
    """distinct rows, which of them each row is, and the classes of all"""
    names: list[str]
    """of the parameters"""
    mode: NDArray
    null: NDArray
    """(D, H + 1), orthonormal: directions known by the prior alone"""


class Sample(NamedTuple):
    """Draws of one method with what was left of them."""

    draws: NDArray
    """(chains, draws, D), null directions taken out"""
    thin: int
    seconds: float
    """of the CPU, after the burn-in"""
    passes: float
    stein: float
    null_ratio: float
    swapped: float
    probabilities: NDArray
    """on held-out rows, averaged over draws"""


# -- data and posterior ---------------------------------------------------------------------------


def six_classes(n_rows: int) -> tuple[NDArray, NDArray, list[str], list[str]]:
    """Features in [0, 1] and class numbers, the held-out rows last; names of classes, features."""
    data = kdd99()
    labels = data.target_names[data.y]
    names, counts = np.unique(labels, return_counts=True)
    names = np.sort(names[np.argsort(counts)[-6:]])
    rows = np.random.default_rng(0).permutation(np.flatnonzero(np.isin(labels, names)))
    rows = rows[: n_rows + N_HELD_OUT]
    X, codes = data.X[rows], np.searchsorted(names, labels[rows])
    skewed = [data.feature_names.index(name) for name in ("duration", "src_bytes", "dst_bytes")]
    X[:, skewed] = np.log1p(X[:, skewed])
    low, spread = X.min(axis=0), np.ptp(X, axis=0)
    X = ((X - low) / np.where(spread > 0, spread, 1))[:, spread > 0]
    features = [name for name, s in zip(data.feature_names, spread, strict=True) if s > 0]
    return X, codes, [str(name).strip("b'.") for name in names], features


def parameter_names(classes: list[str], features: list[str]) -> list[str]:
    """W and U of each hidden unit, its bias c, and the bias d of each class."""
    units = range(1, N_HIDDEN + 1)
    weights = [f"W[unit {j}, {name}]" for j in units for name in features]
    of_class = [f"U[unit {j}, {name}]" for j in units for name in classes]
    return [*weights, *of_class, *(f"c[unit {j}]" for j in units), *(f"d[{k}]" for k in classes)]


def null_directions(model: DRBM) -> NDArray:
    """U_j. + a against c_j - a for each hidden unit, and a shift of d: orthonormal columns."""
    directions = np.zeros((N_HIDDEN + 1, model.dim))
    blocks = model.unpack(directions)
    for j in range(N_HIDDEN):
        blocks["U"][j, j], blocks["c"][j, j] = 1.0, -1.0
    blocks["d"][-1] = 1.0
    return (directions / np.linalg.norm(directions, axis=1, keepdims=True)).T


def modes(posterior: Posterior, n_starts: int) -> NDArray:
    """Modes that L-BFGS finds from random starts, the highest first, (starts, D)."""

    def objective(theta: NDArray) -> tuple[float, NDArray]:
        value, gradient = posterior.logdensity_and_grad(theta[None])
        return -float(value[0]), -gradient[0]

    starts = [posterior.model.init(np.random.default_rng(seed))[0] for seed in range(n_starts)]
    options = {"jac": True, "method": "L-BFGS-B", "options": {"maxiter": 500}}
    found = sorted((minimize(objective, s, **options) for s in starts), key=lambda f: f.fun)
    print("log posterior of the modes:", " ".join(f"{-f.fun:.1f}" for f in found))
    return np.array([f.x for f in found])


def problem(size: Size) -> Problem:
    """Everything that does not depend on a sampler."""
    n_rows = size.n_rows
    X, codes, names, features = six_classes(n_rows)
    model = DRBM(X.shape[1], len(names), N_HIDDEN)
    y = model.encode(codes, X.dtype)[:n_rows]
    exact, fast = (
        posterior_of(model, X[:n_rows].astype(dtype), y, size.precision)
        for dtype in (np.float64, np.float32)
    )
    counts = np.bincount(codes[:n_rows])
    print(f"{n_rows:,} rows x {X.shape[1]}, {model.dim} parameters; classes:", end=" ")
    print(", ".join(f"{name} {count:,}" for name, count in zip(names, counts, strict=True)))
    distinct, of_row = np.unique(X[n_rows:].astype(np.float32), axis=0, return_inverse=True)
    held_out = distinct, of_row.ravel(), codes[n_rows:]
    merged = Posterior(model, exact.data.merged(), exact.prior)
    print(f"{merged.n_rows:,} distinct rows")
    labels = parameter_names(names, features)
    mode, null = modes(merged, 8)[:1], null_directions(model)
    return Problem(size, exact, merged, fast, held_out, labels, mode, null)


# -- sampling -------------------------------------------------------------------------------------


def settings(size: Size, long: bool) -> dict[str, object]:
    """Samplers by label, all or those for long runs."""
    rows = {"batch_size": BATCH}
    full = {f"SGFS-f {a}": SGFS(alpha=float(a), **rows) for a in ALPHAS}
    bounded = {f"SGFS-B {b}": SGFS(alpha=1.0, B=b, **rows) for b in size.injected}
    diag = {f"SGFS-d {a}": SGFS(alpha=float(a), structure="diag", **rows) for a in ALPHAS}
    sgld = {f"SGLD {e:g}": SGLD(step_size=e / 2, **rows) for e in EPSILONS}
    letter = {"curvature": "empirical", "replace": True, "adapt": "always", "refresh_every": 1}
    letter |= {"kappa": lambda t: 1 / t} | rows
    completed = {f"SGFS-p {a}": SGFS(alpha=float(a), **letter) for a in ALPHAS}
    every = full | completed | bounded | diag | sgld
    return {label: every[label] for label in (size.long if long else every)}


def warm_up(sampler: SGFS, given: Problem, state):
    """Half of the burn-in with W = 2 / CAUTIOUS times the identity.

    No step can be long while matrices are learnt.
    """
    cautious = SGFS(alpha=1.0, B=2 / CAUTIOUS, structure=sampler.structure, batch_size=BATCH)
    state = run_chain(cautious, given.fast, state, Length(1, BURN_IN // 2)).state
    cautious.unfreeze(state)
    return state


def sample(sampler, given: Problem, seconds: float, iterations: int = 0) -> Sample:
    """Chains from the mode, for so many CPU seconds, or steps if given, after the burn-in."""
    is_hmc = isinstance(sampler, HMC)
    posterior = given.merged if is_hmc else given.fast
    start = np.repeat(given.mode, N_REFERENCE if is_hmc else N_CHAINS, axis=0)
    burn_in, thin, size = (300, 1, 20) if is_hmc else (BURN_IN, THIN, 25)
    thin = max(thin, iterations // 5000)
    state = begin(sampler, posterior, start, seed=53)
    if isinstance(sampler, SGFS):
        state, burn_in = warm_up(sampler, given, state), burn_in - burn_in // 2
    state = run_chain(sampler, posterior, state, Length(0, burn_in)).state
    before, spent, parts = sampler.report(state).rows_touched, 0.0, []
    while spent < seconds or len(parts) * size * thin < iterations:
        begin_at = time.process_time()
        part = run_chain(sampler, posterior, state, Length(size, thin=thin))
        spent += time.process_time() - begin_at
        state = part.state
        parts.append(part)
    passes = (sampler.report(state).rows_touched - before) / posterior.n_rows
    stein = diagnostics.stein_ratio_of_sums([part.stein for part in parts])[0]
    points = np.concatenate([part.draws for part in parts], axis=1)
    kept = {"thin": thin, "seconds": spent, "passes": passes, "stein": stein}
    return Sample(**summed_up(given, points), **kept)


def summed_up(given: Problem, points: NDArray) -> dict:
    """What `Sample` keeps of draws (chains, draws, D)."""
    null = points @ given.null
    mirror = mirrored(given.exact.model, given.mode)
    here, there = (((points - m) ** 2).sum(axis=-1) for m in (given.mode, mirror))
    return {
        "draws": points - null @ given.null.T,
        "null_ratio": float((null**2).mean() * given.size.precision),
        "swapped": float((there < here).mean()),
        "probabilities": averaged_probabilities(given, points),
    }


def mirrored(model: DRBM, theta: NDArray) -> NDArray:
    """The same function with the hidden units in reverse order."""
    blocks = model.unpack(theta[0])
    return np.concatenate([(b[::-1] if name != "d" else b).ravel() for name, b in blocks.items()])


def averaged_probabilities(given: Problem, draws: NDArray) -> NDArray:
    """Class probabilities of distinct held-out rows (classes, rows), over some 200 draws."""
    some = draws[:, :: max(1, draws.shape[0] * draws.shape[1] // 200)]
    some, X = some.reshape(-1, draws.shape[-1]), given.held_out[0]
    each = (given.fast.model.predict(theta[None], X)[0].astype(np.float64) for theta in some)
    return sum(each) / len(some)


# -- figures of merit -----------------------------------------------------------------------------


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
    _, of_row, classes = given.held_out
    distance = np.abs(it.probabilities - reference.probabilities)[:, of_row]
    return {
        "setting": label,
        "passes": it.passes,
        "CPU s": it.seconds,
        "draws": it.draws.shape[1],
        "E1": diagnostics.mean_error(mean, mean_0),
        "E2": diagnostics.covariance_error(cov, cov_0),
        "var min": float(ratio.min()),
        "median": float(np.median(ratio)),
        "max": float(ratio.max()),
        "IAT": iat * it.thin,
        "1/ATUC": it.draws.shape[0] * it.draws.shape[1] / iat / it.seconds,
        "Stein": it.stein,
        "null": it.null_ratio,
        "swapped": it.swapped,
        "error": float((it.probabilities.argmax(axis=0)[of_row] != classes).mean()),
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


def claims(rows: list[dict]) -> list[Claim]:
    """What the paper claims, and what an unbiased sampler shows."""
    best, found = best_of(rows), []
    pairs = [("SGFS-f", "SGLD"), ("SGFS-d", "SGLD"), ("SGFS-f", "SGFS-d")]
    for row in (best[family] for family in ("SGFS-f", "SGFS-B") if family in best):
        name, ends = row["setting"], (row["var min"], row["max"])
        close = f"{name}: marginal variances within 3 standard errors of HMC's"
        found += [
            Claim(close, row["close"], low=0.95),
            Claim(
                f"{name}: distance of the median variance ratio from 1",
                abs(row["median"] - 1),
                high=0.1,
            ),
            Claim(f"{name}: all variance ratios", ends, 0.5, 2, strict=True),
        ]
    for one, other in [pair for pair in pairs if {*pair} <= {*best}]:
        label = f"E2 of {best[one]['setting']}, below {best[other]['setting']}"
        found.append(Claim(label, best[one]["E2"], high=best[other]["E2"], strict=True))
    swapped = max(row["swapped"] for row in best.values() if row["E2"] < LOST)
    mirror = "share of draws of the best of each nearer to the mirror image"
    return [*found, Claim(mirror, swapped, high=0)]


def main(report: Report, iterations: int, all_rows: bool) -> None:
    """HMC, then every setting."""
    if all_rows and not iterations:
        raise SystemExit("--all-rows needs --iterations: its settings are those of long runs")
    size = EVERY_ROW if all_rows else TENTH
    given = problem(size)
    reference = sample(HMC(single_gradients=True), given, size.seconds_hmc)
    print(f"HMC: R-hat at most {diagnostics.r_hat(reference.draws).max():.3f}", flush=True)
    halves = np.split(reference.draws, 2)
    one, other = (reference._replace(draws=half, seconds=reference.seconds / 2) for half in halves)
    rows = [figures("HMC", reference, reference, given)]
    rows.append(figures("HMC, half : half", one, other, given))
    samples = {"HMC": reference}
    for label, sampler in settings(size, bool(iterations)).items():
        samples[label] = sample(sampler, given, 0 if iterations else SECONDS, iterations)
        rows.append(figures(label, samples[label], reference, given))
        print(".", end="", flush=True)
    points = {label: one.draws for label, one in samples.items()}
    if iterations and not all_rows:
        report.save(rows, claims(rows), name="ahn_drbm_long")
        return
    name = "ahn_drbm_all" if all_rows else "ahn_drbm"
    budget = f"{iterations:,} steps" if iterations else f"{SECONDS:g} CPU seconds"
    figure = picture(rows, points, given.names, f"{size.n_rows:,} rows", budget)
    report.save(rows, claims(rows), {name: figure}, name=name)


if __name__ == "__main__":
    benchmark(
        main,
        threads=1,
        iterations={"type": int, "default": 0, "help": "steps of each chain, in place of seconds"},
        all_rows={"action": "store_true", "help": "all rows of the six classes, with --iterations"},
    )
