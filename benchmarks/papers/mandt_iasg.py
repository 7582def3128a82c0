"""Mandt, Hoffman & Blei (2017), section 6.2: iterate averaging on synthetic linear regression.

    python -m benchmarks.papers.mandt_iasg [--full] [--chains 100] [--nuts]

There are N = 10,000 rows of 10 features x ~ N(0, I), coefficients from the prior of precision 1,
noise variance 1, rows drawn afresh at every step, with replacement in the paper's settings.

Fig. 3: plain SGD against window averages, at the paper's S = 1, eps = .005 and window of one pass.
``--full`` has the paper's 10^6 iterations, the default a fifth, in each of 16 chains. On the
paper's data all three covariances are multiples of the identity, so that they resemble each other
whatever the sampler. A second design has neighbouring features correlated (.5): there the
posterior's covariance has bands, that of the iterates has none, and that of the averages has them.

Fig. 4: smallest and largest marginal variance estimated from all draws so far, mean and standard
deviation over independent chains. ``--full --chains 100``, of which the committed table and
pictures are, has the paper's 10,000 passes of 1,000 steps and 100 chains, which is some eighty CPU
minutes; with ``--full`` alone there are 30 chains, and by default 10 of 100 passes.
``--nuts`` runs NUTS alone of Fig. 4, and keeps the other rows of the last run, and its pictures of
Fig. 4 and 5. The first ten passes of every sampler are left out, as in the
paper, and the burn-in of the package's own IASG, which adapts. NUTS is NumPyro's; its adaptation is
not left out, as the figure's point is what it spends to find the posterior: a gradient of all rows
is one pass. "until near" is the number of passes after which both mean curves stay within a factor
2 of the truth.

Fig. 5: covariances that single chains of Fig. 4 end with.

SGLD runs at the paper's steps as its Eq. 32 reads, eps / 2 on the sum gradient, and at a
hundredth of them: the former are so large that gradient noise, not slow mixing, is what keeps the
variance too large. Its draws count alike. "IASG, paper" ends a third too low, as the paper's Eq. 46
says of its step, x = (eps/S) N lam = 3.

The table has, per setting, the mean variance ratio over the exact posterior that theory expects
(additive noise at the mode, and exactly for least squares) and the ratio measured.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import Sampler, State, begin, posterior_of
from benchmarks.common.nuts import nuts
from benchmarks.papers.mandt_iasg_figures import (
    COMPARED,
    SKIP,
    D,
    N,
    Problem,
    Run,
    figure_3,
    figure_4,
    figure_5,
    until_near,
)
from skbayes_sg import theory
from skbayes_sg.chains.run import Length, run_chain
from skbayes_sg.models import Linear
from skbayes_sg.samplers import IASG, SGLD, ConstantSGD, PolynomialDecay

FIG_3_CHAINS = 16
N_ADAPT = 100  # draws in which NUTS adapts its step


class Setting(NamedTuple):
    """A sampler, how it is run, and what the paper says of it."""

    sampler: Sampler | None
    """None is NUTS"""
    thin: int | None = None  # steps per kept draw; None is a window of IASG, or 1
    adapts: bool = False  # in the burn-in that the package would choose, whose passes count
    x: float | None = None  # step * eigenvalue * window, of Eq. 45
    claim: str = ""


def problem(correlation: float = 0.0) -> Problem:
    """Section 6.2: data that come from the model; of neighbouring features, in a second design."""
    rng = np.random.default_rng(2017)
    X, theta = rng.standard_normal((N, D)), rng.standard_normal(D)
    distance = np.abs(np.subtract.outer(np.arange(D), np.arange(D)))
    X = X @ np.linalg.cholesky(correlation**distance).T
    y = X @ theta + rng.standard_normal(N)
    posterior = posterior_of(Linear(D, fit_intercept=False, noise_variance=1.0), X, y, 1.0)
    Lam = X.T @ X + np.eye(D)
    return Problem(X, y, posterior, np.linalg.solve(Lam, X.T @ y), Lam)


def settings(thin: int = 100) -> dict[str, Setting]:
    """Samplers by label.

    Steps multiply the sum gradient: the paper's eps is eps / N for SGD and IASG, eps / 2 for SGLD
    (Eq. 32). A draw of SGLD is kept every `thin` steps.
    """
    one_row = {"structure": "scalar", "step_size": 0.005 / N, "batch_size": 1, "replace": True}
    ten_rows = {"structure": "scalar", "step_size": 0.003 / N, "batch_size": 10, "replace": True}
    return {
        "SGD, Fig. 3": Setting(ConstantSGD(**one_row), 100),
        "IASG, Fig. 3": Setting(IASG(window=N, **one_row), x=50.0, claim="very strong resemblance"),
        "IASG, paper": Setting(
            IASG(window=N // 10, **ten_rows), x=3.0, claim="fast approximate solution"
        ),
        "IASG, default": Setting(IASG(), adapts=True),
        "SGLD, paper": Setting(_sgld(1e-3), thin, claim="much larger standard error"),
        "SGLD, step / 100": Setting(_sgld(1e-5), thin),
        "NUTS": Setting(None, claim="slow search from a random start"),
    }


def _sgld(eps: float) -> SGLD:
    return SGLD(PolynomialDecay(a=eps / 2, b=1000.0, power=0.5), batch_size=10, replace=True)


def run(setting: Setting, given: Problem, start: NDArray, n_passes: float, seed: int) -> Run:
    """All vectorised chains; of NUTS every draw, whose passes differ between chains."""
    if setting.sampler is None:
        return Run(*nuts(given.mode, given.Lam, start, n_passes, N_ADAPT, seed))
    sampler, posterior = setting.sampler, given.posterior
    state = begin(sampler, posterior, start, seed)
    burn_in = sampler.run_length(state).burn_in if setting.adapts else 0
    # its window is known after this
    state = run_chain(sampler, posterior, state, Length(0, burn_in)).state
    before = _passes(sampler, state)
    thin = setting.thin or sampler.run_length(state).thin
    n_draws = int((n_passes - before) * N / (thin * sampler.rows_per_step)) + 1
    chain = run_chain(sampler, posterior, state, Length(n_draws, thin=thin))
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
    if sampler is None:
        return np.linalg.inv(given.Lam), np.linalg.inv(given.Lam)
    if not isinstance(sampler, SGLD):
        K = state.memory.preconditioner.dense()
        return _both_distributions(
            given,
            sampler,
            lambda Lam, M: theory.stationary_cov(Lam, M, K),
            lambda Lam, M: sampler.stationary_distribution(state, given.posterior).covariance(
                Lam, M
            ),
        )
    # the step decreases slowly, as a root of the passes: the average of the stationary
    # distributions of some steps on the way, at equal distances of that root
    ends = np.sqrt([result.passes.min(), result.passes.max()])
    roots = np.interp((np.arange(40) + 0.5) / 40, (0, 1), ends)
    steps = [sampler.step_size(root**2 * N / sampler.rows_per_step) for root in roots]
    each = [
        _both_distributions(given, sampler, distribution, distribution)
        for distribution in (lambda Lam, M, eta=eta: theory.sgld_cov(Lam, M, eta) for eta in steps)
    ]
    return tuple(np.average(each, axis=0, weights=roots))


def _both_distributions(given: Problem, sampler, points, draws) -> tuple[NDArray, NDArray]:
    """`draws` under additive noise, and under that of the distribution `points` of the iterates."""
    I1 = given.posterior.score_covariance(given.mode[None])
    additive = theory.noise_cov(I1, N, sampler.rows_per_step, sampler.replace)
    exact = theory.lsq_noise(given.X, given.y, points, sampler.rows_per_step, sampler.replace)
    return draws(given.Lam, additive), draws(*exact)


def measured(given: Problem, result: Run, n_passes: float) -> dict[str, float]:
    """Mean variance ratio with its error from the chains; extremes over the principal axes.

    Of draws between the tenth pass and the last, whatever the sampler.
    """
    values, axes = np.linalg.eigh(given.Lam)
    ratios = ((result.draws - given.mode) @ axes) ** 2 * values
    kept = (result.passes > SKIP) & (result.passes <= n_passes)
    ratios[~np.broadcast_to(kept, ratios.shape[:2])] = np.nan
    each = np.nanmean(ratios, axis=(1, 2))
    along = np.nanmean(ratios, axis=(0, 1))
    se = each.std(ddof=1) / np.sqrt(len(each))
    return {
        "measured": float(each.mean()),
        "se": float(se),
        "min": float(along.min()),
        "max": float(along.max()),
    }


def row(
    name: str, start: str, setting: Setting, given: Problem, result: Run, n_passes: float
) -> dict:
    """One line of the table."""
    additive, exact = (
        float(np.sum(given.Lam * cov)) / D for cov in predicted(setting, given, result)
    )
    sampler = setting.sampler
    return {
        "setting": name,
        "start": start,
        "S": N if sampler is None else sampler.rows_per_step,
        "window": result.state and getattr(result.state.memory, "length", None),
        "published claim": setting.claim,
        "Eq. 45": None if setting.x is None else float(1 + theory.iasg_error(setting.x)),
        "additive": additive,
        "exact": exact,
        **measured(given, result, n_passes),
    }


def claims(rows: list[dict], resemblance: dict[str, float]) -> list[Claim]:
    """Constant steps have a distribution to be compared with; a decreasing one does not."""
    fixed = [r for r in rows if not r["setting"].startswith("SGLD")]
    default = [r for r in rows if r["setting"] == "IASG, default"]
    label = "{setting} ({start} start): ratio".format
    near = {(r["setting"], r["start"]): r["until near"] for r in rows if "until near" in r}
    search = near["IASG, paper", "random"] / near["NUTS", "random"]
    sentence = "from a random start: passes until near, IASG (paper) over NUTS"
    return [
        *[Claim(f"{label(**r)} less exact, in se", _z(r), -5, 5) for r in fixed],
        *[Claim(f"{label(**r)} by theory", r["exact"], 0.95, 1.05) for r in default],
        *[Claim(f"Fig. 3: largest |z| of {name}", z, high=5) for name, z in resemblance.items()],
        Claim(sentence, search, high=1, strict=True),
    ]


def largest_z(draws: NDArray, mode: NDArray, cov: NDArray) -> float:
    """Of all covariances of the draws (chains, draws, D) against those of a distribution."""
    each = np.einsum("cti,ctj->cij", draws - mode, draws - mode) / draws.shape[1]
    error = each.std(axis=0, ddof=1) / np.sqrt(len(each))
    return float(np.abs((each.mean(axis=0) - cov) / error).max())


def _z(row: dict) -> float:
    return (row["measured"] - row["exact"]) / row["se"]


# -- runs -----------------------------------------------------------------------------------------


def averaging(n_passes: float) -> tuple[dict, list[dict], dict[str, float]]:
    """Fig. 3: runs per design, rows of the table, and largest z against theory."""
    found, rows, z = {}, [], {}
    designs = {"independent features": problem(), "correlated features": problem(0.5)}
    for k, (design, given) in enumerate(designs.items()):
        pair, start = [], np.tile(given.mode, (FIG_3_CHAINS, 1))
        for name in ("SGD, Fig. 3", "IASG, Fig. 3"):
            setting = settings()[name]
            if k:
                setting = setting._replace(x=None)  # one for each eigenvalue
            result = run(setting, given, start, n_passes, seed=2 * k + len(pair))
            rows.append(row(name, f"mode, {design}", setting, given, result, n_passes))
            distribution = predicted(setting, given, result)[1]
            z[f"{name[:4].strip(',')} covariances, {design}"] = largest_z(
                result.draws, given.mode, distribution
            )
            pair.append(result)
        found[design] = (given, *pair)
    return found, rows, z


def against_passes(
    passes: int, chains: int, thin: int, names: list[str]
) -> tuple[list[dict], dict[str, Figure]]:
    """Fig. 4 and 5: rows of the table, and the figures if all samplers run."""
    given, chosen, rows, runs = problem(), settings(thin), [], {}
    starts = {
        "mode": np.tile(given.mode, (chains, 1)),
        "random": np.random.default_rng(0).standard_normal((chains, D)),
    }
    for name in names:
        seed = 10 + COMPARED.index(name)
        for k, (start, points) in enumerate(starts.items()):
            result = runs[name, start] = run(chosen[name], given, points, passes, 2 * seed + k)
            near = {"until near": until_near(given, result, passes)}
            rows.append(row(name, start, chosen[name], given, result, passes) | near)
    if names != COMPARED:
        return rows, {}
    curves = {"mandt_fig4": figure_4(given, runs, passes)}
    return rows, curves | {"mandt_fig5": figure_5(given, runs, passes)}


def main(report: Report, full: bool, chains: int, nuts: bool) -> None:
    """Every setting, or NUTS beside the last run of the others."""
    passes, usual, thin = (10_000, 30, 1000) if full else (100, 10, 100)
    title = "variance over that of the exact posterior: mean over directions, extremes on its axes"
    rows, figures = against_passes(passes, chains or usual, thin, ["NUTS"] if nuts else COMPARED)
    if nuts:
        known = [one for one in report.earlier() if one["start"] in ("mode", "random")]
        rows = [*(one for one in known if one["setting"] != "NUTS"), *rows]
    designs, first, resemblance = averaging(100 if full else 20)
    figures = {"mandt_fig3": figure_3(designs, 100 if full else 20)} | figures
    rows = [*first, *rows]
    report.save(rows, claims(rows, resemblance), figures, title=title)


if __name__ == "__main__":
    benchmark(
        main,
        full={"action": "store_true", "help": "10,000 passes; Fig. 3 of 100 passes"},
        chains={"type": int, "default": 0, "help": "of Fig. 4; by default 30 with --full, or 10"},
        nuts={
            "action": "store_true",
            "help": "of Fig. 4 NUTS alone, beside the last run of the others",
        },
    )
