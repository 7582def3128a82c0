"""Ahn, Korattikara & Welling (2012): rows per minibatch, and passes until burnt in.

    python -m benchmarks.papers.batch_size

"The results are not sensitive to the precise value as long as it is large enough for the central
limit theorem to hold (typically, n > 100 is recommended)", says section 5. The data are those of
section 5.1: MNIST 7 against 9, 10,000 rows, 50 random projections, prior precision 1. SGFS with
full matrices and alpha = 0 takes n = 20 to 1,000 rows a step. At every n, 16 chains make 40 passes
of burn-in and 250 of draws each.

E1 and E2 are the errors of mean and covariance (Ahn et al. Eq. 14) against importance sampling. A
perfect sampler has errors too: "limit" is the mean plus three standard deviations of what
Monte-Carlo error alone gives, by a bootstrap over the chains. "theory" is the stationary
distribution by the discrete Lyapunov equation at the mode. For n >= 100 the errors must lie below
the limits, the Stein ratio within max(.02, 3 se) of 1, and effective draws per pass within three
standard errors of theory's. Fewer rows are in the table for comparison.

The second table (burn_in.csv) is for the sentence of section 6 that "during its burn-in phase, SGFS
is an efficient optimizer". It has the passes from theta = 0 until the log posterior is as near to
its maximum as a draw of the posterior: within D/2 + 3 sqrt(D/2), the mean and three standard
deviations of half a chi-square. SGFS and SGD take 500 rows a step, Fisher scoring takes all. SGD
has four step sizes, each constant and as (1 + t / 20)^(-1/2), one pass being 20 steps; the fastest
counts. Figures are medians of 16 chains. SGFS must be at least as fast as SGD. A minute.
"""

from __future__ import annotations

import time

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.common.datasets import mnist_7_vs_9
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import Posterior, begin, logistic_posterior
from benchmarks.common.reference import Reference, importance_reference
from skbayes_sg import diagnostics, theory
from skbayes_sg.chains.run import Length, iterate_steps, run_chain
from skbayes_sg.diagnostics import stein_ratio_of_sums
from skbayes_sg.linalg import FULL
from skbayes_sg.samplers import SGD, SGFS, PolynomialDecay

SIZES = (20, 50, 100, 200, 500, 1000)
ENOUGH = 100
"""rows from which on the paper recommends"""
N_CHAINS = 16
BURN_IN, PASSES = 40, 250
SGD_STEPS = (1e-5, 3e-5, 1e-4, 3e-4)
LONGEST = 30
"""passes of a run towards the mode"""


class Moments:
    """Mean and covariance of draws (chains, draws, D), and their Monte-Carlo errors."""

    def __init__(self, draws: NDArray, reference: Reference) -> None:
        self.reference = reference
        self.mean = draws.mean(axis=(0, 1))
        centred = draws - self.mean
        self.means = draws.mean(axis=1)
        self.covs = np.einsum("csi,csj->cij", centred, centred) / draws.shape[1]
        self.cov = self.covs.mean(axis=0)

    def errors(self) -> tuple[float, float]:
        """E1 and E2."""
        return (
            diagnostics.mean_error(self.mean, self.reference.mean),
            diagnostics.covariance_error(self.cov, self.reference.cov),
        )

    def limits(self) -> tuple[float, float]:
        """E1 and E2 if nothing but Monte-Carlo error is wrong: bootstrap, mean + 3 sd."""
        n = len(self.means)
        counts = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=1000)
        weights = (counts / n - 1 / n) * np.sqrt(n / (n - 1))
        return tuple(
            float(each.mean() + 3 * each.std())
            for moment, true in (
                (self.means, self.reference.mean),
                (self.covs.reshape(n, -1), self.reference.cov),
            )
            for each in [np.abs(weights @ moment).sum(axis=1) / np.abs(true).sum()]
        )


def expected(n: int, reference: Reference, I1: NDArray, posterior: Posterior) -> tuple[float, ...]:
    """Variance ratio and effective draws per pass of theory."""
    Lam, N = reference.curvature, posterior.n_rows
    M = theory.noise_cov(I1, N, n, replace=False)
    W = np.diag(posterior.prior.precision)
    K = 2 * np.linalg.inv(Lam + M + W)
    Sigma = theory.stationary_cov(Lam, M + W, K)
    ratio = np.trace(np.linalg.solve(reference.cov, Sigma)) / len(Lam)
    return float(ratio), float(N / n / theory.iat(Lam, K, Sigma).mean())


def run(n: int, posterior: Posterior, reference: Reference, I1: NDArray) -> dict:
    """All chains with n rows a step."""
    N, dim = posterior.n_rows, posterior.dim
    sampler, thin = SGFS(0.0, batch_size=n), max(1, N // n // 10)
    state = begin(sampler, posterior, np.zeros((N_CHAINS, dim)), seed=n)
    length = Length(PASSES * N // n // thin, BURN_IN * N // n, thin)
    seconds = time.process_time()
    chain = run_chain(sampler, posterior, state, length)
    seconds = time.process_time() - seconds
    moments = Moments(chain.draws, reference)
    per_pass = [diagnostics.ess_mean(one[None]).mean() / PASSES for one in chain.draws]
    e1, e2 = moments.errors()
    limit_1, limit_2 = moments.limits()
    ratio, theory_per_pass = expected(n, reference, I1, posterior)
    stein, stein_se = stein_ratio_of_sums([chain.stein])
    row = {"n": n, "E1": e1, "E1 limit": limit_1, "E2": e2, "E2 limit": limit_2}
    row |= {"Stein ratio": stein, "Stein se": stein_se}
    row |= {"var ratio": float(np.trace(np.linalg.solve(reference.cov, moments.cov)) / dim)}
    row |= {"theory var ratio": ratio, "ESS per pass": float(np.mean(per_pass))}
    row |= {"ESS per pass se": float(np.std(per_pass, ddof=1) / np.sqrt(len(per_pass)))}
    row |= {"theory ESS per pass": theory_per_pass}
    print(f"n = {n}: {seconds:.0f} s", flush=True)
    return row | {"CPU us per row": seconds * 1e6 / ((BURN_IN + PASSES) * N * N_CHAINS)}


def claims(rows: list[dict]) -> list[Claim]:
    """No figure depends on n, from 100 rows on, beyond Monte-Carlo error or theory."""
    found = []
    for row in rows:
        if row["n"] >= ENOUGH:
            n, margin = row["n"], 3 * row["ESS per pass se"]
            wanted = row["theory ESS per pass"]
            stein = max(0.02, 3 * row["Stein se"])
            found += [
                Claim(f"n={n}: E1, Monte-Carlo limit", row["E1"], high=row["E1 limit"]),
                Claim(f"n={n}: E2, Monte-Carlo limit", row["E2"], high=row["E2 limit"]),
                Claim(f"n={n}: |Stein - 1|", abs(row["Stein ratio"] - 1), high=stein),
                Claim(
                    f"n={n}: effective draws per pass, theory's within 3 se",
                    row["ESS per pass"],
                    wanted - margin,
                    wanted + margin,
                ),
            ]
    return found


class Race:
    """Passes from zero until the log posterior is that of a draw."""

    best_sgd = ""
    """label of the fastest setting"""

    def __init__(self, posterior: Posterior, mode: NDArray) -> None:
        self.posterior = posterior
        dim = posterior.dim
        self.best = posterior.log_prob(mode[None])[0]
        self.level = dim / 2 + 3 * np.sqrt(dim / 2)

    def gap(self, theta: NDArray) -> NDArray:
        """Log posterior below its maximum, of each chain."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.best - self.posterior.log_prob(theta)

    def of_sampler(self, sampler) -> tuple[list[float], NDArray]:
        """Passes after each step, and gaps (steps, chains); up to `LONGEST` passes."""
        state = begin(sampler, self.posterior, np.zeros((N_CHAINS, self.posterior.dim)), seed=3)
        per_step = sampler.rows_per_step / self.posterior.n_rows
        started = 2 * per_step if isinstance(sampler, SGFS) else 0.0  # for the first matrices
        gaps = [self.gap(state.theta)]
        for _ in range(round(LONGEST / per_step)):
            try:
                for _ in iterate_steps(sampler, self.posterior, state, 1):
                    gaps.append(self.gap(state.theta))
            except FloatingPointError:
                break
        return [started + per_step * t for t in range(len(gaps))], np.array(gaps)

    def of_fisher_scoring(self) -> tuple[list[float], NDArray]:
        """Steps of theta += F^-1 gradient with all rows, F the model Fisher and the prior."""
        theta, gaps = np.zeros((1, self.posterior.dim)), []
        for _ in range(LONGEST):
            gaps.append(self.gap(theta))
            here = self.posterior.expand(theta, FULL)
            theta = theta + here.curvature.inverse().matvec(here.gradient)
        return list(map(float, range(LONGEST))), np.array(gaps)

    def passes(self, run: tuple[list[float], NDArray]) -> float:
        """Median over chains of the passes to the level; NaN if half do not get there."""
        times, gaps = run
        reached = gaps <= self.level
        first = np.where(reached.any(axis=0), np.asarray(times)[reached.argmax(axis=0)], np.inf)
        median = float(np.median(first))
        return median if np.isfinite(median) else np.nan


def race(posterior: Posterior, reference: Reference) -> tuple[Race, dict]:
    """Runs of all methods from zero."""
    contest = Race(posterior, reference.mode)
    runs = {}
    for eta in SGD_STEPS:
        decay = PolynomialDecay(eta * 20**0.5, 20.0, 0.5)
        runs[f"SGD {eta:g}"] = contest.of_sampler(SGD(eta, batch_size=500))
        runs[f"SGD {eta:g}, decreasing"] = contest.of_sampler(SGD(decay, batch_size=500))
    for alpha in (0.0, 1.0):
        runs[f"SGFS alpha={alpha:g}"] = contest.of_sampler(SGFS(alpha, batch_size=500))
    return contest, runs | {"Fisher scoring, all rows": contest.of_fisher_scoring()}


def figure(rows: list[dict], contest: Race, runs: dict) -> Figure:
    """Errors, efficiency and the race."""
    fig = Figure(figsize=(11, 4.2), layout="constrained", dpi=110)
    left, middle, right = fig.subplots(1, 3)
    sizes = [row["n"] for row in rows]
    for name, colour in (("E1", "C0"), ("E2", "C1")):
        left.loglog(sizes, [row[name] for row in rows], "o-", color=colour, label=name)
        limit = [row[f"{name} limit"] for row in rows]
        left.loglog(sizes, limit, ":", color=colour, label=f"{name}, Monte-Carlo limit")
    left.set(title="Errors after 4,000 passes", xlabel="rows a step, n", ylabel="error")
    error = [3 * row["ESS per pass se"] for row in rows]
    found = [row["ESS per pass"] for row in rows]
    middle.errorbar(sizes, found, error, fmt="o", color="C0", label="effective draws per pass")
    middle.plot(sizes, [row["theory ESS per pass"] for row in rows], color="C0", label="theory")
    ratio = [row["Stein ratio"] for row in rows]
    middle.errorbar(
        sizes, ratio, [3 * r["Stein se"] for r in rows], fmt="s", color="C2", label="Stein"
    )
    middle.set(title="Efficiency and Stein ratio, 3 se", xlabel="rows a step, n", xscale="log")
    middle.set_ylim(0.7, 1.1)
    slow = [label for label in runs if label.startswith("SGD") and label != contest.best_sgd]
    shown = {label: one for label, one in runs.items() if label not in slow}
    for i, (label, (times, gaps)) in enumerate(shown.items()):
        style = {"marker": "o", "ms": 3} if "Fisher" in label else {}
        right.semilogy(times, np.median(gaps, axis=1), color=f"C{i}", label=label, **style)
    right.axhline(contest.level, color="0.5", ls="--", label="of a draw, mean + 3 sd")
    right.set(title="From zero to the posterior", xlabel="passes over the data", xlim=(0, 10))
    right.set(ylabel="log posterior below its maximum", ylim=(10, None))
    for ax in (left, middle, right):
        ax.legend(fontsize=8)
    fig.suptitle(
        "MNIST 7 vs 9, SGFS, alpha = 0: minibatch size, and burn-in (Ahn et al. sec. 5, 6)"
    )
    return fig


def main(report: Report) -> None:
    """Every size, then the race."""
    posterior = logistic_posterior(*mnist_7_vs_9())
    reference = importance_reference(posterior)
    I1 = posterior.scores(reference.mode[None], slice(None)).covariance(FULL).dense()
    contest, runs = race(posterior, reference)
    passes = {label: contest.passes(one) for label, one in runs.items()}
    table = [{"method": label, "passes to the posterior": each} for label, each in passes.items()]
    of_sgd = {label: each for label, each in passes.items() if label.startswith("SGD")}
    contest.best_sgd = min(of_sgd, key=lambda label: np.nan_to_num(of_sgd[label], nan=np.inf))
    sgd = of_sgd[contest.best_sgd]
    sgfs = passes["SGFS alpha=0"]
    report.save(table, [Claim("passes of SGFS, those of SGD", sgfs, high=sgd)], name="burn_in")
    fast = logistic_posterior(*mnist_7_vs_9(np.float32))
    rows = [run(n, fast, reference, I1) for n in SIZES]
    report.save(rows, claims(rows), {"batch_size": figure(rows, contest, runs)})


if __name__ == "__main__":
    benchmark(main)
