"""Mandt, Hoffman & Blei (2017), section 6.2: iterate averaging on synthetic linear regression.

    python benchmarks/mandt_iasg.py [--passes 300] [--chains 40]

There are N = 10,000 rows of 10 features x ~ N(0, I), coefficients from the prior of precision 1,
noise variance 1, rows drawn afresh at every step, with replacement in the paper's settings.

Fig. 3: plain SGD against window averages. The package takes at least 2 rows per minibatch, so S =
2 and eps = 0.01 stand for the paper's S = 1 and eps = 0.005: the same eps/S, so the same x =
(eps/S) N lam = 50.

Fig. 4: smallest and largest marginal variance estimated from all draws so far, mean and standard
deviation over independent chains (the paper: 100 chains, 10,000 passes, NUTS; here 40, 300, and
HMC with the exact metric). The first ten passes are left out, as in the paper, and the burn-in of
the one setting that adapts, the package's preconditioned IASG. Ten passes are three draws of HMC,
which may or may not forget a far start.

Fig. 5: covariances that single chains of Fig. 4 end with.

SGLD runs at the paper's steps as its Eq. 32 reads, eps / 2 on the sum gradient, and at a
hundredth of them: the former are so large that gradient noise, not slow mixing, is what keeps the
variance too large. Its draws count alike.

The table has, per setting, the mean variance ratio over the exact posterior that theory expects
(additive noise at the mode, and exactly for least squares) and the ratio measured.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from harness import Claim, Report, benchmark
from internals import Posterior, State, begin, posterior_of
from matplotlib.figure import Figure
from numpy.typing import NDArray

from skbayes_sg import theory
from skbayes_sg.chains import run_chain
from skbayes_sg.models import Linear
from skbayes_sg.samplers import HMC, IASG, SGLD, ConstantSGD, PolynomialDecay

N, D = 10_000, 10
SKIP = 10.0  # passes left out at the beginning, to forget the start
FIG_3_PASSES, FIG_3_CHAINS = (
    100,
    16,
)  # the paper's 10^6 iterations of one row are 100 passes of one chain
COMPARED = ["IASG, paper", "IASG, default", "SGLD, paper", "SGLD, step / 100", "HMC"]


class Problem(NamedTuple):
    """Data, posterior, and the posterior's moments, which are exact."""

    X: NDArray
    y: NDArray
    posterior: Posterior
    mode: NDArray
    Lam: NDArray


class Setting(NamedTuple):
    """A sampler, how it is run, and what the paper says of it."""

    sampler: object
    thin: int | None = None  # steps per kept draw; None is a window of IASG, or 1
    adapts: bool = False  # in the burn-in that the package would choose, whose passes count
    x: float | None = None  # step * eigenvalue * window, of Eq. 45
    claim: str = ""


class Run(NamedTuple):
    """Kept draws, the passes over the rows spent until each, and the state at the end."""

    draws: NDArray
    passes: NDArray
    state: State


def problem() -> Problem:
    """Section 6.2: data that come from the model."""
    rng = np.random.default_rng(2017)
    X, theta = rng.standard_normal((N, D)), rng.standard_normal(D)
    y = X @ theta + rng.standard_normal(N)
    posterior = posterior_of(Linear(D, fit_intercept=False, noise_variance=1.0), X, y, 1.0)
    Lam = X.T @ X + np.eye(D)
    return Problem(X, y, posterior, np.linalg.solve(Lam, X.T @ y), Lam)


def settings() -> dict[str, Setting]:
    """Samplers by label.

    Steps multiply the sum gradient: the paper's eps is eps / N for SGD and IASG, eps / 2 for SGLD
    (Eq. 32).
    """
    two_rows = {"structure": "scalar", "step_size": 0.01 / N, "batch_size": 2, "replace": True}
    ten_rows = {"structure": "scalar", "step_size": 0.003 / N, "batch_size": 10, "replace": True}
    return {
        "SGD, Fig. 3": Setting(ConstantSGD(**two_rows), 100),
        "IASG, Fig. 3": Setting(
            IASG(window=N // 2, **two_rows), x=50.0, claim="very strong resemblance"
        ),
        "IASG, paper": Setting(
            IASG(window=N // 10, **ten_rows), x=3.0, claim="fast approximate solution"
        ),
        "IASG, default": Setting(IASG(), adapts=True),
        "SGLD, paper": Setting(_sgld(1e-3), 100, claim="much larger standard error"),
        "SGLD, step / 100": Setting(_sgld(1e-5), 100),
        "HMC": Setting(HMC(), claim="reasonable from the mode"),
    }


def _sgld(eps: float) -> SGLD:
    return SGLD(PolynomialDecay(a=eps / 2, b=1000.0, power=0.5), batch_size=10, replace=True)


def run(setting: Setting, given: Problem, start: NDArray, n_passes: float, seed: int) -> Run:
    """All chains in lock step; kept is what comes after the first ten passes and after burn-in."""
    sampler, posterior = setting.sampler, given.posterior
    state = begin(sampler, posterior, start, seed)
    burn_in = sampler.run_length(state).burn_in if setting.adapts else 0
    state = run_chain(
        sampler, posterior, state, n_draws=0, burn_in=burn_in
    ).state  # its window is known now
    before = _passes(sampler, state)
    thin = setting.thin or sampler.run_length(state).thin
    per_draw = (
        3.0 if isinstance(sampler, HMC) else thin * sampler.batch_size / N
    )  # HMC: fewer than it ever takes
    chain = run_chain(
        sampler, posterior, state, n_draws=int((n_passes - before) / per_draw) + 1, thin=thin
    )
    count = chain.draws.shape[1]
    passes = before + np.arange(count) * (_passes(sampler, chain.state) - before) / count
    kept = (passes > max(SKIP, before)) & (passes <= n_passes)
    return Run(chain.draws[:, kept], passes[kept], chain.state)


def _passes(sampler, state: State) -> float:
    return sampler.report(state).rows_touched / (N * len(state.theta))


# -- what theory expects, and what is measured ----------------------------------------------------


def predicted(setting: Setting, given: Problem, result: Run) -> tuple[NDArray, NDArray]:
    """Covariance of the draws by the noise at the mode, and by noise that grows away from it."""
    sampler, state = setting.sampler, result.state
    if isinstance(sampler, HMC):
        return np.linalg.inv(given.Lam), np.linalg.inv(given.Lam)
    if not isinstance(sampler, SGLD):
        K = state.memory.gain.dense()
        return _both_laws(
            given,
            sampler,
            lambda Lam, M: theory.stationary_cov(Lam, M, K),
            lambda Lam, M: sampler.law(state, given.posterior).covariance(Lam, M),
        )
    # the step decreases slowly: the average of the stationary laws of some steps on the way
    on_the_way = np.quantile(result.passes, (np.arange(40) + 0.5) / 40)
    steps = [sampler.step_size(p * N / sampler.batch_size) for p in on_the_way]
    each = [
        _both_laws(given, sampler, law, law)
        for law in (lambda Lam, M, eta=eta: theory.sgld_cov(Lam, M, eta) for eta in steps)
    ]
    return tuple(np.mean(each, axis=0))


def _both_laws(given: Problem, sampler, points, draws) -> tuple[NDArray, NDArray]:
    """`draws` under additive noise, and under that of the law `points` of the iterates."""
    I1 = given.posterior.score_covariance(given.mode[None])
    additive = theory.noise_cov(I1, N, sampler.batch_size, sampler.replace)
    exact = theory.lsq_noise(given.X, given.y, points, sampler.batch_size, sampler.replace)
    return draws(given.Lam, additive), draws(*exact)


def measured(given: Problem, draws: NDArray) -> dict[str, float]:
    """Mean variance ratio with its error from the chains; extremes over the principal axes."""
    values, axes = np.linalg.eigh(given.Lam)
    ratios = ((draws - given.mode) @ axes) ** 2 * values
    each = ratios.mean(axis=(1, 2))
    along = ratios.mean(axis=(0, 1))
    se = each.std(ddof=1) / np.sqrt(len(each))
    return {
        "measured": float(each.mean()),
        "se": float(se),
        "min": float(along.min()),
        "max": float(along.max()),
    }


def row(name: str, start: str, setting: Setting, given: Problem, result: Run) -> dict:
    """One line of the table."""
    additive, exact = (
        float(np.sum(given.Lam * cov)) / D for cov in predicted(setting, given, result)
    )
    sampler = setting.sampler
    return {
        "setting": name,
        "start": start,
        "S": getattr(sampler, "batch_size", N),
        "window": getattr(result.state.memory, "length", None),
        "published claim": setting.claim,
        "Eq. 45": None if setting.x is None else float(1 + theory.iasg_error(setting.x)),
        "additive": additive,
        "exact": exact,
        **measured(given, result.draws),
    }


def claims(rows: list[dict]) -> list[Claim]:
    """Constant steps have a law to be compared with; a decreasing one does not."""
    fixed = [r for r in rows if not r["setting"].startswith(("SGLD", "HMC"))]
    # ten passes forget no far start
    fixed += [r for r in rows if (r["setting"], r["start"]) == ("HMC", "mode")]
    default = [r for r in rows if r["setting"] == "IASG, default"]
    label = "{setting} ({start} start): ratio".format
    return [
        *[Claim(f"{label(**r)} less exact, in se", _z(r), -5, 5) for r in fixed],
        *[Claim(f"{label(**r)} by theory", r["exact"], 0.95, 1.05) for r in default],
        *[Claim(f"{label(**r)} measured", r["measured"], 0.95, 1.05) for r in default],
    ]


def _z(row: dict) -> float:
    return (row["measured"] - row["exact"]) / row["se"]


# -- figures --------------------------------------------------------------------------------------


def figure_3(given: Problem, sgd: NDArray, iasg: NDArray) -> Figure:
    """Covariances of iterates, posterior and window averages, each on a scale of its own."""
    panels = {
        "(a) SGD iterates": _covariance(sgd),
        "(b) exact posterior": np.linalg.inv(given.Lam),
        "(c) IASG averages": _covariance(iasg),
    }
    fig = Figure(figsize=(11, 3.4), layout="constrained", dpi=110)
    axes = fig.subplots(1, 3)
    for ax, (title, cov) in zip(axes, panels.items(), strict=True):
        fig.colorbar(
            _heat(ax, N * cov, N * np.abs(cov).max()), ax=ax, shrink=0.85, label="N x covariance"
        )
        ax.set_title(title)
    fig.suptitle("Iterate averaging, x = 50 (Mandt et al. Fig. 3)")
    return fig


def figure_4(given: Problem, runs: dict[tuple[str, str], Run]) -> Figure:
    """Smallest and largest estimated marginal variance against passes."""
    truth = N * np.linalg.inv(given.Lam).diagonal()
    fig = Figure(figsize=(9, 13), layout="constrained", dpi=100)
    axes = fig.subplots(len(COMPARED), 2, sharex=True, sharey="row")
    for line, name in zip(axes, COMPARED, strict=True):
        for ax, start in zip(line, ("mode", "random"), strict=True):
            _extremes(ax, runs[name, start], given.mode)
            for value in (truth.min(), truth.max()):
                ax.axhline(value, color="tab:red", lw=1)
            ax.set(xscale="log", yscale="log")
            ax.set_title(f"{name}: from {'the mode' if start == 'mode' else 'N(0, I)'}")
        line[0].set_ylabel("N x variance")
    axes[1, 0].legend(loc="upper left", fontsize=8)  # where burn-in leaves room
    for ax in axes[-1]:
        ax.set_xlabel("passes over the data")
    fig.suptitle("Marginal variances from all draws so far; red: exact (Mandt et al. Fig. 4)")
    return fig


def _extremes(ax, result: Run, mode: NDArray) -> None:
    """Mean and one standard deviation over the chains."""
    variance = N * _running_variance(result.draws - mode)
    x = result.passes[-variance.shape[1] :]
    largest, smallest = variance.max(axis=2), variance.min(axis=2)
    for label, values, colour in (
        ("largest", largest, "tab:blue"),
        ("smallest", smallest, "goldenrod"),
    ):
        mean, sd = values.mean(axis=0), values.std(axis=0, ddof=1)
        ax.plot(x, mean, color=colour, label=label)
        low = np.maximum(mean - sd, 1e-2)
        ax.fill_between(x, low, mean + sd, color=colour, alpha=0.25, lw=0)


def figure_5(given: Problem, runs: dict[tuple[str, str], Run], n_passes: float) -> Figure:
    """Covariance estimates of single chains, all on one scale."""
    fig = Figure(figsize=(14, 5.2), layout="constrained", dpi=100)
    axes = fig.subplots(2, 1 + len(COMPARED))
    for line, start in zip(axes, ("mode", "random"), strict=True):
        panels = {"exact": np.linalg.inv(given.Lam)}
        panels |= {name: _covariance(runs[name, start].draws[:1]) for name in COMPARED}
        for ax, (title, cov) in zip(line, panels.items(), strict=True):
            image = _heat(ax, N * cov, 1.5)
            ax.set_title(title)
        line[0].set_ylabel("from the mode" if start == "mode" else "from N(0, I)")
    fig.colorbar(image, ax=axes, shrink=0.8, extend="both", label="N x covariance")
    fig.suptitle(
        f"Posterior covariance from one chain of {n_passes:g} passes (Mandt et al. Fig. 5)"
    )
    return fig


def _heat(ax, matrix: NDArray, limit: float):
    ax.set(xticks=[], yticks=[])
    return ax.imshow(matrix, cmap="RdBu_r", vmin=-limit, vmax=limit)


def _covariance(draws: NDArray) -> NDArray:
    return np.cov(draws.reshape(-1, D).T)


def _running_variance(shift: NDArray, first: int = 5) -> NDArray:
    """Variance of each coordinate over the first k draws of each chain, for k from `first`."""
    count = np.arange(1, shift.shape[1] + 1)[:, None]
    mean = np.cumsum(shift, axis=1) / count
    square = np.cumsum(shift**2, axis=1) / count
    return ((square - mean**2) * count / np.maximum(count - 1, 1))[:, first - 1 :]


def main(report: Report, passes: float, chains: int) -> None:
    """Every setting."""
    given, chosen = problem(), settings()
    starts = {
        "mode": np.tile(given.mode, (chains, 1)),
        "random": np.random.default_rng(0).standard_normal((chains, D)),
    }
    runs = {
        (name, "mode"): run(chosen[name], given, starts["mode"][:FIG_3_CHAINS], FIG_3_PASSES, seed)
        for seed, name in enumerate(["SGD, Fig. 3", "IASG, Fig. 3"])
    }
    for seed, name in enumerate(COMPARED, start=10):
        for k, (start, points) in enumerate(starts.items()):
            runs[name, start] = run(chosen[name], given, points, passes, 2 * seed + k)
    rows = [row(*key, chosen[key[0]], given, result) for key, result in runs.items()]
    sgd, iasg = (runs[name, "mode"].draws for name in ("SGD, Fig. 3", "IASG, Fig. 3"))
    figures = {
        "mandt_fig3": figure_3(given, sgd, iasg),
        "mandt_fig4": figure_4(given, runs),
        "mandt_fig5": figure_5(given, runs, passes),
    }
    title = "variance over that of the exact posterior: mean over directions, extremes on its axes"
    report.save(rows, claims(rows), figures, title=title)


if __name__ == "__main__":
    number = {"type": float, "default": 300, "help": "over the rows, of each chain of Fig. 4"}
    benchmark(main, passes=number, chains={"type": int, "default": 40})
