"""Mandt, Hoffman & Blei (2017), section 3.3: what damping does at the same eps / mu.

    python -m benchmarks.papers.mandt2017.mandt_momentum

Constant SGD with momentum on wine (mandt_problems.py), one step for all directions, S = 100. The
paper says that only eps / mu matters for the stationary distribution (Eq. 31), that a smaller mu
sometimes makes the discretised dynamics more stable, and that mu may change the autocorrelation
time. All three are checked at Theorem 1's step, eps / mu = 2 D / Tr M in sum units, and at three
times that, where SGD without momentum (mu = 1) diverges.

The table has, per eps / mu ("multiple" of Theorem 1's) and mu: the spectral radius, the largest
stable eps / mu over Theorem 1's, KL from the posterior (by Eq. 31 it is the same in each line,
"OU"), and for the axes of smallest and largest posterior variance the integrated autocorrelation
time. "ratio" is the variance over the posterior's on the axis of smallest variance: of the
recursion exactly, and of four chains of 20,000 steps.

What comes out: KL falls towards Eq. 31's as mu falls, since the error of the discrete step does;
the largest stable step over mu grows without bound; the autocorrelation time does not depend on mu
on the slow axis, and on the fast axis it differs by what one step more or less is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_discrete_lyapunov

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import begin
from benchmarks.papers.mandt2017.mandt_problems import Problem, problem
from skbayes_sg import theory
from skbayes_sg.chains.run import Length, run_chain
from skbayes_sg.samplers import MomentumSGD

DAMPINGS = (1.0, 0.5, 0.2, 0.1, 0.05)
MULTIPLES = (1, 3)  # of the step of Theorem 1
N_CHAINS, N_STEPS = 4, 20_000


def correlation_times(Lam: NDArray, M: NDArray, h: float, mu: float) -> NDArray:
    """Integrated autocorrelation time (D,) of theta along the columns of the axes, in steps.

    With Gamma the covariance of (theta, v) and F its matrix, the lags sum to F (I - F)^-1 Gamma.
    """
    eye = np.eye(len(Lam))
    F = np.block([[eye - h * Lam, (1 - mu) * eye], [-h * Lam, (1 - mu) * eye]])
    Gamma = solve_discrete_lyapunov(F, np.tile(h * h * M, (2, 2)))
    lags = F @ np.linalg.solve(np.eye(len(F)) - F, Gamma)
    half = slice(len(Lam))
    return 1 + 2 * lags.diagonal()[half] / Gamma.diagonal()[half]


def line(given: Problem, multiple: float, mu: float, seed: int) -> dict:
    """One setting: closed forms, and chains if it is stable."""
    values, axes = np.linalg.eigh(given.Lam)
    Lam, M = np.diag(values), axes.T @ given.M @ axes
    best = theory.optimal_preconditioner(Lam, M, "ou-scalar")
    h = multiple * best * mu
    row = {
        "multiple": multiple,
        "mu": mu,
        "radius": theory.momentum_radius(Lam, h, mu),
        "largest stable": 2 * (2 - mu) / (mu * values[-1] * best),
        "OU": theory.kl_stationary(Lam, M, multiple * best, discrete=False),
    }
    if row["radius"] >= 1:
        return row
    X, y = given.posterior.data.X, given.posterior.data.y
    exact = theory.momentum_cov(
        *theory.lsq_noise(
            X, y, lambda L, noise: theory.momentum_cov(L, noise, h, mu), given.batch_size, True
        ),
        h,
        mu,
    )
    times = correlation_times(Lam, M, h, mu)
    ratio, se = simulated(given, h, mu, seed)
    return row | {
        "KL": theory.kl_gauss(theory.momentum_cov(Lam, M, h, mu), np.linalg.inv(Lam)),
        "time, smallest axis": float(times[-1]),
        "time, largest axis": float(times[0]),
        "ratio, exact": float(axes[:, -1] @ exact @ axes[:, -1] * values[-1]),
        "ratio, chains": ratio,
        "se": se,
    }


def simulated(given: Problem, h: float, mu: float, seed: int) -> tuple[float, float]:
    """Variance ratio on the axis of smallest posterior variance, and its error from the chains."""
    sampler = MomentumSGD(mu, "scalar", h, batch_size=given.batch_size, replace=True)
    state = begin(sampler, given.posterior, np.repeat(given.mode, N_CHAINS, axis=0), seed)
    chain = run_chain(sampler, given.posterior, state, Length(N_STEPS, 2000))
    values, axes = np.linalg.eigh(given.Lam)
    each = (((chain.draws - given.mode) @ axes[:, -1]) ** 2).mean(axis=1) * values[-1]
    return float(each.mean()), float(each.std(ddof=1) / np.sqrt(N_CHAINS))


def claims(rows: list[dict]) -> list[Claim]:
    """The paper's three sentences, and chains against the exact distribution."""
    found = []
    for row in (row for row in rows if "KL" in row):
        label = f"{row['multiple']} x Theorem 1, mu {row['mu']:g}"
        z = (row["ratio, chains"] - row["ratio, exact"]) / row["se"]
        found.append(Claim(f"{label}: variance of chains less exact, in se", z, -5, 5))
    first, steep = ([r for r in rows if r["multiple"] == multiple] for multiple in MULTIPLES)
    error = [row["KL"] - row["OU"] for row in first]
    stable = [row["largest stable"] for row in first]
    slow = [row["time, largest axis"] / first[0]["time, largest axis"] for row in first]
    found += [
        Claim("KL comes nearer to Eq. 31's as mu falls", np.diff(np.abs(error)), high=0),
        Claim("largest stable eps/mu grows as mu falls", np.diff(stable), low=0, strict=True),
        Claim(
            "slow axis: autocorrelation time, over that of mu = 1",
            np.array(slow) / slow[0],
            0.98,
            1.02,
        ),
        Claim("three times the step, mu = 1: radius, unstable", steep[0]["radius"], low=1),
        Claim("three times the step, mu <= .5: radius", [r["radius"] for r in steep[1:]], high=1),
    ]
    return found


def main(report: Report) -> None:
    """All dampings at both steps."""
    given = problem("wine")
    settings = [(multiple, mu) for multiple in MULTIPLES for mu in DAMPINGS]
    rows = [line(given, *setting, seed) for seed, setting in enumerate(settings)]
    report.save(rows, claims(rows), title="wine, S = 100: momentum at the same eps / mu")


if __name__ == "__main__":
    benchmark(main)
