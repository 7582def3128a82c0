"""Ahn, Korattikara & Welling (2012), section 5.1: logistic regression on MNIST 7 against 9.

    python benchmarks/ahn_logistic.py [--draws 100000]

One chain per setting, n = 500 of 10,000 rows, prior precision 1 on all 51 parameters, 3,000 burn-in
steps. SGFS starts at zero, SGLD at the mode. Prints E1, E2 (Eq. 14), autocorrelation time, ATUC, Stein
ratio and variance ratio beside the figures expected of a correct implementation, and the acceptance
checks; writes a CSV and the paper's Figures 1 and 2. The reference is importance sampling from the
Laplace approximation, computed here.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from common import RESULTS, importance_reference, logistic_posterior, mnist_7_vs_9, print_table, write_csv
from matplotlib import pyplot as plt
from matplotlib.patches import Ellipse

from skbayes_sg import diagnostics, theory
from skbayes_sg.chains import run_chain, start_chains
from skbayes_sg.diagnostics import stein_ratio_of_sums
from skbayes_sg.samplers import SGFS, SGLD

ALPHAS = [0, 1, 2, 3, 4, 5, 6]
EPSILONS = [1e-3, 5e-4, 1e-4, 5e-5, 1e-5, 5e-6, 1e-6]
# (E1, E2, IAT, variance ratio) of a NumPy prototype with the same settings; None where it was not run.
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


def settings() -> list[tuple[str, str, object]]:
    """Family, label, sampler."""
    full = [("SGFS-f", f"SGFS-f {a}", SGFS(alpha=float(a))) for a in ALPHAS]
    diag = [("SGFS-d", f"SGFS-d {a}", SGFS(alpha=float(a), structure="diag")) for a in ALPHAS]
    sgld = [("SGLD", f"SGLD {e:g}", SGLD(step_size=e / 2)) for e in EPSILONS]
    return [*full, *diag, *sgld]


def predicted(sampler, posterior, reference, I1) -> tuple[float, float]:
    """Variance ratio and mean IAT by the discrete Lyapunov equation at the mode; NaN where unstable."""
    Lam, N, n = reference.curvature, posterior.n_rows, sampler.rows_per_step
    M = theory.noise_cov(I1, N, n, replace=False)
    if isinstance(sampler, SGLD):
        K, W = sampler.step_size * np.eye(len(Lam)), 2 / sampler.step_size * np.eye(len(Lam))
    else:
        keep = np.eye(len(Lam)) if sampler.structure == "diag" else 1.0
        W = (sampler.alpha**2 * N / n * N * I1 + np.diag(posterior.prior_precision)) * keep
        K = 2 * np.linalg.inv((Lam + M) * keep + W)
    try:
        Sigma = theory.stationary_cov(Lam, M + W, K)
    except ValueError:
        return np.nan, np.nan
    return float(np.trace(Lam @ Sigma) / len(Lam)), float(theory.iat(Lam, K, Sigma).mean())


def run(sampler, posterior, reference, n_draws: int) -> tuple[dict, np.ndarray]:
    """One chain and its figures."""
    start = reference.mode[None] if isinstance(sampler, SGLD) else np.zeros((1, posterior.dim))
    (state,) = start_chains(sampler, posterior, start, np.random.SeedSequence(51))
    begin = time.perf_counter()
    chain = run_chain(sampler, posterior, state, n_draws=n_draws, burn_in=3000)
    seconds = (time.perf_counter() - begin) / (n_draws + 3000)
    draws = chain.draws[0]
    cov = np.cov(draws.T)
    early = draws[: n_draws // 10]
    iat = float(diagnostics.autocorrelation_time(chain.draws).mean())
    figures = {
        "E1": diagnostics.mean_error(draws.mean(axis=0), reference.mean),
        "E2": diagnostics.covariance_error(cov, reference.cov),
        "E1 10%": diagnostics.mean_error(early.mean(axis=0), reference.mean),
        "E2 10%": diagnostics.covariance_error(np.cov(early.T), reference.cov),
        "IAT": iat,
        "ATUC us": iat * seconds * 1e6,
        "Stein": stein_ratio_of_sums([chain.stein])[0],
        "var ratio": float(np.trace(np.linalg.solve(reference.cov, cov)) / len(cov)),
        "ESS/pass": posterior.n_rows / sampler.rows_per_step / iat,
        "us/step": seconds * 1e6,
    }
    return figures, draws


def acceptance(table: dict[str, dict], laplace_E1: float) -> list[tuple[str, bool]]:
    """The bounds that a correct implementation meets at 100,000 draws."""
    f0 = table["SGFS-f 0"]
    others = {family: min(r["E2"] for k, r in table.items() if k.startswith(family)) for family in ("SGLD", "SGFS-d")}
    return [
        ("SGFS-f alpha=0: E1 <= .004", f0["E1"] <= 0.004),
        ("SGFS-f alpha=0: E2 <= .10", f0["E2"] <= 0.10),
        ("SGFS-f alpha=0: |variance ratio - 1| <= .015", abs(f0["var ratio"] - 1) <= 0.015),
        ("SGFS-f alpha=0: |Stein - 1| <= .015", abs(f0["Stein"] - 1) <= 0.015),
        ("SGFS-f alpha=0: 18 <= IAT <= 27", 18 <= f0["IAT"] <= 27),
        ("SGFS-f alpha=0: .75 <= ESS per pass <= 1.1", 0.75 <= f0["ESS/pass"] <= 1.1),
        *[
            (f"SGFS-f alpha={a}: variance ratio within .02", abs(table[f"SGFS-f {a}"]["var ratio"] - 1) <= 0.02)
            for a in range(4)
        ],
        ("E2(SGFS-f 0) < E2(best SGLD) / 3", f0["E2"] < others["SGLD"] / 3),
        ("E2(SGFS-f 0) < E2(best SGFS-d) / 3", f0["E2"] < others["SGFS-d"] / 3),
        ("E1(SGFS-f 0) < E1(Laplace) / 3", f0["E1"] < laplace_E1 / 3),
    ]


def figure_1(draws: dict[str, np.ndarray], reference) -> None:
    """Marginals of the pairs where SGFS and the reference agree best and least; 2-sd ellipses."""
    fig, axes = plt.subplots(2, 2, figsize=(8, 7.5), layout="constrained")
    for line, label in zip(axes, ("SGFS-f 0", "SGFS-d 0"), strict=True):
        mean, cov = draws[label].mean(axis=0), np.cov(draws[label].T)
        scale = np.sqrt(np.outer(reference.cov.diagonal(), reference.cov.diagonal()))
        difference = np.abs(cov - reference.cov) / scale
        upper = np.triu_indices(len(cov), 1)
        pair_error = difference[upper] + difference.diagonal()[upper[0]] + difference.diagonal()[upper[1]]
        for ax, k, name in zip(line, (pair_error.argmin(), pair_error.argmax()), ("best", "worst"), strict=True):
            i, j = upper[0][k], upper[1][k]
            pair = np.ix_([i, j], [i, j])
            ax.plot(*draws[label][::25, [i, j]].T, ".", ms=1.5, color="0.75", rasterized=True)
            _ellipse(ax, reference.mean[[i, j]], reference.cov[pair], color="tab:red", label="reference")
            _ellipse(ax, mean[[i, j]], cov[pair], color="tab:blue", ls="--", label=label.replace(" 0", ", alpha = 0"))
            ax.set(xlabel=f"theta {i}", ylabel=f"theta {j}", title=f"{label[:6]}: {name} pair")
            ax.legend(loc="upper right", fontsize=8)
    fig.suptitle("MNIST 7 vs 9: 2-d marginals, two standard deviations (Ahn et al. Fig. 1)")
    fig.savefig(RESULTS / "ahn_figure_1.png", dpi=110)


def _ellipse(ax, mean, cov, **style) -> None:
    values, vectors = np.linalg.eigh(cov)
    angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
    width, height = 4 * np.sqrt(values[::-1])
    ax.add_patch(Ellipse(mean, width, height, angle=angle, fill=False, lw=1.8, **style))


def figure_2(rows: list[dict], n_draws: int) -> None:
    """Error of mean and covariance against mixing rate, early and late."""
    fig, axes = plt.subplots(2, 2, figsize=(9, 7.5), sharex=True, layout="constrained")
    for row_axes, error in zip(axes, ("E1", "E2"), strict=True):
        for ax, suffix, count in zip(row_axes, (" 10%", ""), (n_draws // 10, n_draws), strict=True):
            for family, colour in {"SGFS-f": "tab:blue", "SGFS-d": "tab:green", "SGLD": "tab:orange"}.items():
                mine = [r for r in rows if r["setting"].startswith(family)]
                rate = [1e6 / r["ATUC us"] for r in mine]
                ax.loglog(rate, [r[error + suffix] for r in mine], "x-", color=colour, label=family)
                ax.loglog(rate[:1], [mine[0][error + suffix]], "o", mfc="none", ms=10, color=colour)
            ax.set(title=f"{error} after {count:,} draws", ylabel=error, xlabel="1 / ATUC (per second)")
            ax.legend()
    fig.suptitle("Error against mixing rate (Ahn et al. Fig. 2); circle: fastest mixing setting")
    fig.savefig(RESULTS / "ahn_figure_2.png", dpi=110)


def main() -> None:
    """Run every setting, print, draw, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100_000)
    n_draws = parser.parse_args().draws
    posterior = logistic_posterior(*mnist_7_vs_9())
    reference = importance_reference(posterior)
    laplace = (
        diagnostics.mean_error(reference.mode, reference.mean),
        diagnostics.covariance_error(np.linalg.inv(reference.curvature), reference.cov),
    )
    print(f"reference: {reference.efficiency:.0%} of 120,000 importance draws effective; halves differ by", end=" ")
    print("E1 {:.4f}, E2 {:.4f}".format(*reference.half_split))
    print("Laplace at the mode: E1 {:.4f}, E2 {:.4f} (expected .0109, .0160)\n".format(*laplace))

    I1 = posterior.scores(reference.mode[None], slice(None)).covariance("full").dense()
    fast = logistic_posterior(*mnist_7_vs_9(np.float32))
    rows, kept = [], {}
    for _, label, sampler in settings():
        figures, draws = run(sampler, fast, reference, n_draws)
        ratio, iat = predicted(sampler, posterior, reference, I1)
        expected = EXPECTED.get(label, ("",) * 4)
        names = ("exp E1", "exp E2", "exp IAT", "exp ratio")
        theory_says = {"theory ratio": ratio, "theory IAT": iat}
        rows.append({"setting": label, **figures, **theory_says, **dict(zip(names, expected, strict=True))})
        if label in ("SGFS-f 0", "SGFS-d 0"):
            kept[label] = draws
    print_table(rows)
    path = write_csv("ahn_logistic.csv", rows)
    figure_1(kept, reference)
    figure_2(rows, n_draws)
    print(f"\nwrote {path.name}, ahn_figure_1.png, ahn_figure_2.png\n")
    for claim, holds in acceptance({row["setting"]: row for row in rows}, laplace[0]):
        print(f"{'ok  ' if holds else 'FAIL'} {claim}")


if __name__ == "__main__":
    main()
