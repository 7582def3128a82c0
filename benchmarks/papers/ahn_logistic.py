"""Ahn, Korattikara & Welling (2012), section 5.1: logistic regression on MNIST 7 against 9.

    python -m benchmarks.papers.ahn_logistic [--draws 100000] [--full]

There is one chain per setting, n = 500 of 10,000 rows, prior precision 1 on all 51 parameters,
3,000 burn-in steps. SGFS starts at zero, SGLD and HMC at the mode. The table has E1, E2 (Eq. 14)
of all draws, autocorrelation time, ATUC, Stein ratio and variance ratio beside the figures
expected of a correct implementation. "Laplace" is that approximation itself, of which E1 .0109
and E2 .0160 are expected.

"printed" is Algorithm 1 to the letter: matrices from scores alone, updated at every step, rows with
replacement, no prior in them. "SGFS-f" is the default of the package, whose curvature is the model
Fisher plus the prior's, frozen after burn-in.

HMC is the paper's: s = 50 to 1 leapfrog steps of a length that 200 steps of burn-in adapt to an
acceptance rate of .8. Its metric is the diagonal of the Fisher matrix. The projections have
nearly equal variances, so that this is nearly the paper's identity. Gradients are in single
precision, as those of the other methods.

Time is CPU seconds of one thread (`time.process_time`), after the burn-in. Fig. 2 has the errors
of all draws made within .1 and 3 CPU seconds, a thousandth of the paper's 100 and 3,000 s; with
--full within 1 and 30 s. So the methods are compared at equal time. A chain goes on until it has
both the seconds and, but for HMC, the draws. ATUC is the autocorrelation time, averaged over the
51 parameters, times the seconds of a draw. Where the chain is shorter than some ten
autocorrelation times (SGLD at 1e-6) this is too small.

E1 and E2 are against importance sampling from the Laplace approximation, which is sharper than
any HMC run of the same cost. Fig. 1 has the paper's reference, a long run of HMC (16 chains of
3,000 draws); its own E1 and E2 are a line of the table.

As in the paper SGFS-d at alpha = 0 underestimates the variances of most coefficients, which Fig. 1
shows. But the spectral radius of its step is above 1 (the columns of theory are empty), so that it
is held by the bounded gradients alone, and a few directions are far too wide: the mean ratio of
variances is 5.9.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.common.datasets import mnist_7_vs_9
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import begin, logistic_posterior
from benchmarks.common.plots import ellipse
from benchmarks.common.reference import importance_reference
from skbayes_sg import diagnostics, theory
from skbayes_sg.chains.run import Length, run_chain, start_chains
from skbayes_sg.diagnostics import stein_ratio_of_sums
from skbayes_sg.linalg import FULL
from skbayes_sg.samplers import HMC, SGFS, SGLD

ALPHAS = [0, 1, 2, 3, 4, 5, 6]
EPSILONS = [1e-3, 5e-4, 1e-4, 5e-5, 1e-5, 5e-6, 1e-6]
LEAPFROGS = [50, 40, 30, 20, 10, 1]
BURN_IN, BURN_IN_HMC = 3000, 200
PRINTED = {"adapt": "always", "refresh_every": 1, "replace": True, "kappa": lambda t: 1 / t}
"""Algorithm 1 to the letter, beside variant="paper"."""
HORIZONS = {False: (0.1, 3.0), True: (1.0, 30.0)}
"""CPU seconds of Fig. 2, by --full"""
COLOURS = {
    "SGFS-f": "tab:blue",
    "printed": "tab:purple",
    "SGFS-d": "tab:green",
    "SGLD": "tab:orange",
    "HMC": "tab:red",
}
OFFSETS = {
    "SGFS-f": (-5, -13),
    "printed": (4, 6),
    "SGFS-d": (3, 7),
    "SGLD": (-8, 7),
    "HMC": (10, 5),
}
OFF_SCALE = {"E1": 3.0, "E2": 40.0}
# (E1, E2, IAT, variance ratio) of a NumPy prototype with the same settings, where it was run.
# Its SGFS took the empirical Fisher for curvature, this package the model Fisher.
EXPECTED = {
    "SGFS-f 0": (0.0015, 0.072, 22.5, 0.997),
    "SGFS-f 1": (0.0021, 0.105, 45.9, 0.997),
    "SGFS-f 2": (0.0032, 0.165, 116.0, 0.994),
    "SGFS-f 3": (0.0046, 0.237, 227.0, 0.993),
    "SGFS-f 6": (0.0087, 0.458, 880.0, 0.991),
    "SGFS-d 0": (0.053, 1.01, 116.0, 5.84),
    "SGFS-d 1": (0.0087, 0.58, 434.0, 1.18),
    "SGFS-d 2": (0.0139, 0.66, 1060.0, 1.00),
    "SGFS-d 3": (0.0205, 1.10, 1621.0, 0.99),
    "SGFS-d 6": (0.069, 3.9, 3156.0, 1.10),
    "SGLD 0.001": (7.1, 206.0, 100.0, 4287.0),
    "SGLD 0.0005": (3.1, 47.0, 146.0, 961.0),
    "SGLD 0.0001": (0.028, 0.53, 408.0, 3.03),
    "SGLD 5e-05": (0.015, 0.67, 878.0, 1.38),
    "SGLD 1e-05": (0.030, 1.29, 2361.0, 1.00),
    "SGLD 5e-06": (0.042, 1.59, 2860.0, 0.93),
    "SGLD 1e-06": (0.068, 1.39, 3557.0, 0.65),
}


def settings() -> dict[str, object]:
    """Samplers by label."""
    full = {f"SGFS-f {a}": SGFS(alpha=float(a)) for a in ALPHAS}
    diag = {f"SGFS-d {a}": SGFS(alpha=float(a), structure="diag") for a in ALPHAS}
    langevin = {f"SGLD {e:g}": SGLD(step_size=e / 2) for e in EPSILONS}
    metric = {"structure": "diag", "single_gradients": True}
    printed = {f"printed {a}": SGFS(alpha=float(a), variant="paper", **PRINTED) for a in ALPHAS}
    hmc = {f"HMC {s}": HMC(n_leapfrog=s, **metric) for s in LEAPFROGS}
    return full | printed | diag | langevin | hmc


def predicted(sampler, reference, posterior, I1) -> dict:
    """Variance ratio and mean IAT by the discrete Lyapunov equation; NaN if unstable."""
    Lam, N, n = reference.curvature, posterior.n_rows, sampler.rows_per_step
    M = theory.noise_cov(I1, N, n, replace=getattr(sampler, "replace", False))
    if isinstance(sampler, SGLD):
        K, W = sampler.step_size * np.eye(len(Lam)), 2 / sampler.step_size * np.eye(len(Lam))
    elif sampler.variant == "paper":
        P = (n + N) / n * N * I1
        W = sampler.alpha**2 * P
        K = 2 * np.linalg.inv(P + W)
    else:
        keep = np.eye(len(Lam)) if sampler.structure == "diag" else 1.0
        W = (sampler.alpha**2 * N / n * N * I1 + np.diag(posterior.prior.precision)) * keep
        K = 2 * np.linalg.inv((Lam + M) * keep + W)
    try:
        Sigma = theory.stationary_cov(Lam, M + W, K)
    except ValueError:
        return {"theory ratio": np.nan, "theory IAT": np.nan}
    iat = float(theory.iat(Lam, K, Sigma).mean())
    return {"theory ratio": float(np.trace(Lam @ Sigma) / len(Lam)), "theory IAT": iat}


class Timed(NamedTuple):
    """One chain and the CPU seconds that it took."""

    draws: NDArray
    """(1, draws, D)"""
    seconds: NDArray
    """since the burn-in, after each part of the draws"""
    counts: NDArray
    """draws until then"""
    stein: list

    def until(self, seconds: float) -> NDArray:
        """Draws made within so many seconds, at least two."""
        made = np.interp(seconds, [0.0, *self.seconds], [0, *self.counts])
        return self.draws[0, : max(2, int(made))]


def timed_chain(sampler, posterior, start, seconds: float, n_draws: int) -> Timed:
    """Burn in, then draw until both the CPU seconds and the draws are there."""
    is_hmc = isinstance(sampler, HMC)
    (state,) = start_chains(sampler, posterior, start, np.random.SeedSequence(51))
    burn_in, size = (BURN_IN_HMC, 10) if is_hmc else (BURN_IN, 500)
    state = run_chain(sampler, posterior, state, Length(0, burn_in)).state
    parts, clock, spent = [], [], 0.0
    while spent < seconds or (not is_hmc and len(parts) * size < n_draws):
        begin_at = time.process_time()
        part = run_chain(sampler, posterior, state, Length(size))
        spent += time.process_time() - begin_at
        state = part.state
        parts.append(part)
        clock.append(spent)
    draws = np.concatenate([part.draws for part in parts], axis=1)
    stein = [part.stein for part in parts]
    return Timed(draws, np.array(clock), size * np.arange(1, len(parts) + 1), stein)


def errors(draws: NDArray, reference, suffix: str = "") -> dict:
    """E1 and E2 of Eq. 14."""
    return {
        f"E1{suffix}": diagnostics.mean_error(draws.mean(axis=0), reference.mean),
        f"E2{suffix}": diagnostics.covariance_error(np.cov(draws.T), reference.cov),
    }


def run(sampler, posterior, reference, horizons, n_draws: int) -> tuple[dict, NDArray]:
    """One chain and its figures."""
    at_zero = isinstance(sampler, SGFS)
    start = np.zeros((1, posterior.dim)) if at_zero else reference.mode[None]
    chain = timed_chain(sampler, posterior, start, horizons[-1], n_draws)
    seconds = chain.seconds[-1] / chain.counts[-1]
    draws = chain.draws[0] if isinstance(sampler, HMC) else chain.draws[0, :n_draws]
    iat = float(diagnostics.autocorrelation_time(chain.draws).mean())
    at_equal_time = [errors(chain.until(T), reference, f" {T:g} s") for T in horizons]
    cov = np.cov(draws.T)
    rows_a_step = np.nan if isinstance(sampler, HMC) else sampler.rows_per_step
    return {
        **errors(draws, reference),
        **at_equal_time[0],
        **at_equal_time[1],
        "IAT": iat,
        "ATUC us": iat * seconds * 1e6,
        "Stein": stein_ratio_of_sums(chain.stein)[0],
        "var ratio": float(np.trace(np.linalg.solve(reference.cov, cov)) / len(cov)),
        "ESS/pass": posterior.n_rows / rows_a_step / iat,
        "CPU us/draw": seconds * 1e6,
        "draws": len(draws),
        "draws in time": len(chain.until(horizons[-1])),
    }, draws


def long_hmc(posterior, mode: NDArray) -> NDArray:
    """16 chains of 3,000 draws vectorised, (48,000, D)."""
    sampler = HMC(single_gradients=True)
    state = begin(sampler, posterior, np.repeat(mode[None], 16, axis=0), seed=52)
    chain = run_chain(sampler, posterior, state, Length(3_000, BURN_IN_HMC))
    print(f"long HMC: R-hat at most {diagnostics.r_hat(chain.draws).max():.4f}")
    return chain.draws.reshape(-1, posterior.dim)


def claims(rows: list[dict], T: float) -> list[Claim]:
    """The bounds of a correct implementation at 100,000 draws, and the paper's order at time T."""
    table = {row["setting"]: row for row in rows}
    f0 = table["SGFS-f 0"]
    best = {
        family: min(row["E2"] for name, row in table.items() if name.startswith(family))
        for family in ("SGLD", "SGFS-d")
    }
    laplace = table["Laplace"]["E1"]
    timed = {
        error: {
            f: min(r[f"{error} {T:g} s"] for r in rows if r["setting"].startswith(f))
            for f in COLOURS
        }
        for error in ("E1", "E2")
    }
    return [
        Claim("SGFS-f alpha=0: E1", f0["E1"], high=0.004),
        Claim("SGFS-f alpha=0: E2", f0["E2"], high=0.10),
        Claim("SGFS-f alpha=0: |variance ratio - 1|", abs(f0["var ratio"] - 1), high=0.015),
        Claim("SGFS-f alpha=0: |Stein - 1|", abs(f0["Stein"] - 1), high=0.015),
        Claim("SGFS-f alpha=0: IAT", f0["IAT"], 18, 27),
        Claim("SGFS-f alpha=0: ESS per pass", f0["ESS/pass"], 0.75, 1.1),
        *[
            Claim(f"SGFS-f alpha={a}: |variance ratio - 1|", abs(ratio - 1), high=0.02)
            for a in range(4)
            for ratio in [table[f"SGFS-f {a}"]["var ratio"]]
        ],
        Claim("E2(SGFS-f 0) < E2(best SGLD) / 3", f0["E2"], high=best["SGLD"] / 3, strict=True),
        Claim("E2(SGFS-f 0) < E2(best SGFS-d) / 3", f0["E2"], high=best["SGFS-d"] / 3, strict=True),
        Claim("E1(SGFS-f 0) < E1(Laplace) / 3", f0["E1"], high=laplace / 3, strict=True),
        *[
            Claim(
                f"{error} after {T:g} s: best SGFS-f, below best {f}", best["SGFS-f"], high=best[f]
            )
            for error, best in timed.items()
            for f in ("SGLD", "HMC")
        ],
    ]


def worst_and_best(cov: NDArray, true: NDArray) -> dict[str, list[int]]:
    """Pairs of parameters by the sum of errors of their covariance, in true standard deviations."""
    sd = np.sqrt(true.diagonal())
    error = np.abs(cov - true) / np.outer(sd, sd)
    upper = np.triu_indices(len(cov), 1)
    of_pair = error[upper] + error.diagonal()[upper[0]] + error.diagonal()[upper[1]]
    chosen = {"best": of_pair.argmin(), "worst": of_pair.argmax()}
    return {name: [int(upper[0][k]), int(upper[1][k])] for name, k in chosen.items()}


def figure_1(draws: dict[str, NDArray], hmc: NDArray) -> Figure:
    """Marginals of the pairs where SGFS and HMC agree best and least; 2-sd ellipses."""
    fig = Figure(figsize=(8, 8.4), layout="constrained", dpi=110)
    centre, true = hmc.mean(axis=0), np.cov(hmc.T)
    for line, (label, points) in zip(fig.subplots(2, 2), draws.items(), strict=True):
        mean, cov = points.mean(axis=0), np.cov(points.T)
        for ax, (name, pair) in zip(line, worst_and_best(cov, true).items(), strict=True):
            cells = np.ix_(pair, pair)
            dots = {"ms": 1.5, "color": "0.75", "zorder": 1, "label": "draws of SGFS"}
            ax.plot(*points[::25, pair].T, ".", rasterized=True, **dots)
            style = {"lw": 1.8, "color": "tab:red", "label": "HMC, 48,000 draws", "zorder": 3}
            ellipse(ax, centre[pair], true[cells], **style)
            style = {"lw": 1.8, "color": "tab:blue", "ls": "--", "label": "SGFS", "zorder": 4}
            ellipse(ax, mean[pair], cov[cells], **style)
            ax.set(xlabel=f"coefficient {pair[0]}", ylabel=f"coefficient {pair[1]}")
            ax.set_title(f"{label[:6]}, alpha = 0: {name} pair")
            ax.margins(0.08)
            ax.autoscale_view()
            ax.locator_params(nbins=5)
    handles, labels = ax.get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=3)
    fig.suptitle(
        "MNIST 7 against 9, logistic regression: marginals of two coefficients, two standard\n"
        "deviations (Ahn et al. Fig. 1). SGFS-f agrees with HMC in all pairs; SGFS-d is too narrow."
    )
    return fig


def figure_2(rows: list[dict], horizons: tuple[float, float]) -> Figure:
    """Error of mean and covariance against mixing rate, early and late."""
    fig = Figure(figsize=(10.5, 10), layout="constrained", dpi=110)
    axes = fig.subplots(2, 2, sharex=True)
    for line, error in zip(axes, ("E1", "E2"), strict=True):
        for ax, T in zip(line, horizons, strict=True):
            for family in COLOURS:
                mine = [r for r in rows if r["setting"].startswith(family)]
                curve(ax, family, mine, f"{error} {T:g} s")
            of = "mean" if error == "E1" else "covariance"
            ax.set_title(f"{error}, error of the {of}, after {T:g} CPU seconds")
            ax.set(ylabel=error, xlabel="1 / ATUC: effective draws per CPU second")
            ax.tick_params(labelbottom=True)
            ax.margins(0.09)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=4)
    fig.suptitle(
        "Error at equal time against mixing rate (Ahn et al. Fig. 2), MNIST 7 against 9. "
        "Reference: importance sampling.\n"
        "Numbers: alpha of SGFS, epsilon of SGLD, leapfrog steps of HMC. "
        "Circle: fastest mixing. Triangles: E1 above 3, E2 above 40.\n"
        "SGFS-f has no floor; SGFS-d has one at alpha = 0 and 1; fast mixing costs SGLD bias; "
        "HMC is best at 10 to 30 steps."
    )
    return fig


def curve(ax, family: str, rows: list[dict], name: str) -> None:
    """One method; errors off the scale are triangles at its top edge."""
    colour, offset = COLOURS[family], OFFSETS[family]
    rate = np.array([1e6 / r["ATUC us"] for r in rows])
    found = np.array([r[name] for r in rows])
    lost = found > OFF_SCALE[name[:2]]
    found = np.where(lost, OFF_SCALE[name[:2]] / 5, found)
    ax.loglog(rate[~lost], found[~lost], "x-", color=colour, lw=1, label=family)
    ax.loglog(rate[lost], found[lost], "^", color=colour)
    fastest = rate.argmax()
    ax.loglog(rate[fastest], found[fastest], "o", mfc="none", ms=12, color=colour)
    for i, r in enumerate(rows):
        style = {"fontsize": 8, "color": colour, "textcoords": "offset points", "ha": "center"}
        if lost[i]:
            style["ha"] = "left" if i == fastest else "right"
        place = rate[i], found[i]
        ax.annotate(r["setting"].split()[1], place, xytext=offset, **style)


def main(report: Report, draws: int, full: bool) -> None:
    """Every setting."""
    posterior = logistic_posterior(*mnist_7_vs_9())
    reference = importance_reference(posterior)
    print(f"reference: {reference.efficiency:.0%} of 120,000 importance draws effective")
    print("halves differ by E1 {:.4f}, E2 {:.4f}".format(*reference.half_split))
    I1 = posterior.scores(reference.mode[None], slice(None)).covariance(FULL).dense()
    fast = logistic_posterior(*mnist_7_vs_9(np.float32))
    names = ("exp E1", "exp E2", "exp IAT", "exp ratio")
    rows, kept = [], {}
    for label, sampler in settings().items():
        is_hmc = isinstance(sampler, HMC)
        target = posterior if is_hmc else fast
        figures, points = run(sampler, target, reference, HORIZONS[full], draws)
        if label in ("SGFS-f 0", "SGFS-d 0"):
            kept[label] = points
        expected = dict(zip(names, EXPECTED.get(label, (None,) * 4), strict=True))
        theory_says = {} if is_hmc else predicted(sampler, reference, posterior, I1)
        rows.append({"setting": label, **figures, **theory_says, **expected})
        print(f"{label}: {figures['CPU us/draw']:.0f} us a draw", flush=True)
    hmc = long_hmc(posterior, reference.mode)
    rows.append({"setting": "long run of HMC", **errors(hmc, reference), "draws": len(hmc)})
    laplace = np.linalg.inv(reference.curvature)
    own = {
        "E1": diagnostics.mean_error(reference.mode, reference.mean),
        "E2": diagnostics.covariance_error(laplace, reference.cov),
    }
    rows.append({"setting": "Laplace", **own})
    figures = {"ahn_figure_1": figure_1(kept, hmc), "ahn_figure_2": figure_2(rows, HORIZONS[full])}
    report.save(rows, claims(rows, HORIZONS[full][-1]), figures)


if __name__ == "__main__":
    benchmark(
        main,
        threads=1,
        draws={"type": int, "default": 100_000},
        full={"action": "store_true", "help": "Fig. 2 at 1 and 30 CPU seconds, not .1 and 3"},
    )
