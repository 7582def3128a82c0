"""Karagiannis, handout 4, section 4: Bayesian linear regression with unknown noise variance.

    python -m benchmarks.papers.handout_regression [--full]

The model is y ~ N(b0 + b1 x, s2), b given s2 ~ N(0, 100 s2 I), s2 ~ IG(1, 1), sampled as w = (b0,
b1, log s2). Figures show s2 itself, as the handout does.

The handout's text does not give data and steps. Its footnote names public code, which does: n =
10,000 pairs (x, y) from a normal distribution with variances 1 and correlation .9; start w = (1.1,
-2, 0); eta = 1e-5; 1,000 steps; rows without replacement; m = 10, 100, 1,000 rows; tau = .01, 1,
10. The histograms are of the second half of one chain. R's random numbers are not NumPy's, so the
pairs are drawn anew. Two things differ on purpose. The code multiplies the noise by sqrt(eta tau),
which samples at temperature tau / 2; here it is sqrt(2 eta tau). The code's prior of b does not
depend on s2, in the text it does, as here.

Fig. 4.1: SGD against the maximum of the likelihood (MLE). Fig. 4.2: SGLD by batch size against the
exact posterior. Fig. 4.3: SGLD with m = 100 by temperature. What they show: with these steps the
noise of the minibatch is what spreads the draws. It makes the variance of b 4.6 times the
posterior's at m = 1,000 and nearly 40 times at m = 100, where a hundred times less temperature
changes 4 % of it. Therefore Fig. 4.2 has a fourth column, m = 1,000 with a hundredth of the step
and more steps, which does lie on the posterior.

The table has, per coordinate, figures of 64 chains with the settings of the handout: the mean of
the target (4.1: the MLE), mean and sd sampled with their Monte-Carlo errors, the sd that the
linearised recursion has, and the variance over the posterior's ("ratio") measured and predicted.
Batches of ten rows, which move far between steps, show what the linear theory leaves out; no claim
is made of them but their order. Nor of the mean of s2 at the handout's step: it is too large, as
the scatter of b counts as residual. ``--full`` takes 400,000 steps of the fourth column in place of
40,000.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import Posterior, begin, posterior_of
from skbayes_sg import theory
from skbayes_sg.chains.run import Length, run_chain
from skbayes_sg.linalg import FULL
from skbayes_sg.models import Linear
from skbayes_sg.samplers import SGD, SGLD

N, CORRELATION, V, PHI, PSI = 10_000, 0.9, 100.0, 1.0, 1.0
START, STEP, N_STEPS = (1.1, -2.0, 0.0), 1e-5, 1000
BATCHES, TEMPERATURES = (10, 100, 1000), (0.01, 1.0, 10.0)
SMALL_STEP = STEP / 100  # gradient noise of 1,000 rows then adds 3 % to variances
N_CHAINS, N_LONG = 64, 8  # chains; of the small step
NAMES = ["$b_0$", "$b_1$", r"$\sigma^2$"]
COORDINATES = ["b0", "b1", "s2"]


class NormalInverseGamma(NamedTuple):
    """b given s2 ~ N(mean, s2 spread), s2 ~ IG(shape, rate)."""

    mean: NDArray
    spread: NDArray
    shape: float
    rate: float

    def tempered(self, temperature: float) -> NormalInverseGamma:
        """Density in (b, gamma = log s2) to the power 1 / temperature.

        Minus its logarithm is ``(shape + d/2) gamma + e^-gamma (rate + quadratic form / 2)``,
        divided by the temperature. The quadratic form makes b normal with `spread` times the
        temperature, whose normalising factor takes d/2 of the coefficient of gamma.
        """
        half = len(self.mean) / 2
        shape = (self.shape + half) / temperature - half
        return NormalInverseGamma(
            self.mean, temperature * self.spread, shape, self.rate / temperature
        )

    def mode(self) -> NDArray:
        """Of the joint density in (b, log s2), as log s2."""
        return np.append(self.mean, np.log(self.rate / (self.shape + len(self.mean) / 2)))

    def marginals(self) -> list:
        """Student t of each coefficient, and inverse gamma."""
        scale = np.sqrt(self.rate / self.shape * self.spread.diagonal())
        coef = [stats.t(2 * self.shape, m, s) for m, s in zip(self.mean, scale, strict=True)]
        return [*coef, stats.invgamma(self.shape, scale=self.rate)]


class Problem(NamedTuple):
    """The posterior as the package has it, its closed form, and its expansion at the mode."""

    posterior: Posterior
    exact: NormalInverseGamma
    mle: NDArray
    """(b0, b1, s2)"""
    mode: NDArray
    """(b0, b1, log s2)"""
    Lam: NDArray
    I1: NDArray


def problem() -> Problem:
    """Pairs of the handout's distribution, and the conjugate posterior."""
    rng = np.random.default_rng(2023)
    distribution = [[1.0, CORRELATION], [CORRELATION, 1.0]]
    x, y = rng.multivariate_normal(np.zeros(2), distribution, N).T
    X = np.column_stack([np.ones(N), x])
    model = Linear(2, fit_intercept=False, noise_variance=None, noise_prior=(PHI, PSI))
    posterior = posterior_of(model, X, y, 1 / V)

    precision = X.T @ X + np.eye(2) / V
    mean = np.linalg.solve(precision, X.T @ y)
    exact = NormalInverseGamma(
        mean, np.linalg.inv(precision), PHI + N / 2, PSI + 0.5 * (y @ y - mean @ precision @ mean)
    )
    least_squares = np.linalg.lstsq(X, y, rcond=None)[0]
    mle = np.append(least_squares, np.mean((y - X @ least_squares) ** 2))
    mode = exact.mode()
    Lam = posterior.expand(mode[None], FULL).curvature.dense()
    return Problem(posterior, exact, mle, mode, Lam, posterior.score_covariance(mode[None]))


class Panel(NamedTuple):
    """Draws (chains, draws, 3) of (b0, b1, s2) in one setting, and what theory expects."""

    figure: str
    setting: dict
    draws: NDArray
    exact_mean: NDArray
    predicted_sd: NDArray


def run(sampler, given: Problem, seed: int, n_steps: int = N_STEPS, start=START, **more: int):
    """Draws of all vectorised chains, with s2 for its logarithm."""
    chains = N_CHAINS if start is START else N_LONG
    state = begin(sampler, given.posterior, np.tile(np.asarray(start), (chains, 1)), seed)
    n_draws = n_steps // more.get("thin", 1)
    draws = run_chain(sampler, given.posterior, state, Length(n_draws, **more)).draws
    draws[..., 2] = np.exp(draws[..., 2])
    return draws


def linear_sd(given: Problem, sampler, temperature: float) -> NDArray:
    """Of the recursion linearised at the mode, with the gradient noise there; s2 by its slope."""
    M = theory.noise_cov(given.I1, N, sampler.batch_size, replace=False)
    cov = theory.sgld_cov(given.Lam, M, sampler.step_size, temperature)
    return np.sqrt(cov.diagonal()) * [1.0, 1.0, np.exp(given.mode[2])]


# -- the three studies ----------------------------------------------------------------------------


def study_sgd(given: Problem) -> list[Panel]:
    """Fig. 4.1, and gradient descent, whose end is known."""
    panels = []
    for seed, m in enumerate((*BATCHES, N)):
        sampler = SGD(step_size=STEP, batch_size=m)
        draws = run(sampler, given, seed)
        sd = linear_sd(given, sampler, 0.0)
        panels.append(Panel("4.1", {"m": m, "eta": STEP}, draws, given.mle, sd))
    return panels


def study_sgld(given: Problem, figure: str, m: int, tau: float, seed: int, **more) -> Panel:
    """One panel of Fig. 4.2 or 4.3.

    The prediction is the exact sd of the tempered posterior times what the linearised recursion
    adds to that of its own target.
    """
    sampler = SGLD(step_size=more.pop("eta", STEP), temperature=tau, batch_size=m)
    marginals = given.exact.tempered(tau).marginals()
    mean, sd = (
        np.array([getattr(distribution, name)() for distribution in marginals])
        for name in ("mean", "std")
    )
    target = np.sqrt(tau * np.linalg.inv(given.Lam).diagonal()) * [1, 1, np.exp(given.mode[2])]
    predicted = sd * linear_sd(given, sampler, tau) / target
    setting = {"m": m, "eta": sampler.step_size, "tau": tau}
    return Panel(figure, setting, run(sampler, given, seed, **more), mean, predicted)


def summary(given: Problem, panel: Panel) -> list[dict]:
    """One line per coordinate, from the second half of the chains of the handout's length."""
    draws = panel.draws
    draws = draws[:, draws.shape[1] // 2 :] if len(draws) == N_CHAINS else draws
    variances = ((draws - draws.mean(axis=(0, 1))) ** 2).mean(axis=1)
    sd, root = np.sqrt(variances.mean(axis=0)), np.sqrt(len(draws))
    posterior = np.array([distribution.std() for distribution in given.exact.marginals()])
    columns = {
        "target mean": panel.exact_mean,
        "mean": draws.mean(axis=(0, 1)),
        "mean se": draws.mean(axis=1).std(axis=0, ddof=1) / root,
        "posterior sd": posterior,
        "predicted sd": panel.predicted_sd,
        "sd": sd,
        "sd se": variances.std(axis=0, ddof=1) / root / (2 * sd),
        "predicted ratio": (panel.predicted_sd / posterior) ** 2,
        "ratio": (sd / posterior) ** 2,
    }
    return [
        {"figure": panel.figure, **panel.setting, "coordinate": name}
        | dict(zip(columns, map(float, line), strict=True))
        for name, *line in zip(COORDINATES, *columns.values(), strict=True)
    ]


def claims(given: Problem, rows: list[dict], descent: NDArray) -> list[Claim]:
    """What the handout says, and theory where gradient noise does not change along the chain."""
    slope = np.abs(given.posterior.full_gradient(given.mode[None])[0]).max()
    end = descent[0, -1] - np.append(given.mode[:2], np.exp(given.mode[2]))
    found = [
        Claim("the closed-form mode has gradient 0", slope, high=1e-6, strict=True),
        Claim("SGD with all rows ends at the mode", np.abs(end).max(), high=1e-8, strict=True),
    ]
    for name in COORDINATES:
        of = [r for r in rows if r["coordinate"] == name]
        sd = [r["sd"] for r in of if r["figure"] == "4.1" and r["m"] < N]
        found.append(Claim(f"4.1, {name}: sd falls with m", np.diff(sd), high=0, strict=True))
        sd = [r["sd"] for r in of if r["figure"] == "4.2"]
        found.append(Claim(f"4.2, {name}: nearer with larger m", np.diff(sd), high=0, strict=True))
        sd = [r["sd"] for r in of if r["figure"] == "4.3"]
        found.append(Claim(f"4.3, {name}: sd grows with tau", np.diff(sd), low=0, strict=True))
    for r in rows:
        small = r["eta"] == SMALL_STEP
        label = f"{r['figure']}, m {r['m']}, eta {r['eta']:g}, {r['coordinate']}"
        label += f", tau {r['tau']:g}" if "tau" in r else ""
        if 100 <= r["m"] < N:
            z = (r["sd"] - r["predicted sd"]) / r["sd se"]
            found.append(Claim(f"{label}: sd less predicted, in se", z, -5, 5))
        if r["m"] == 1000 and (small or r["coordinate"] != "s2"):
            z = (r["mean"] - r["target mean"]) / r["mean se"]
            found.append(Claim(f"{label}: mean less target, in se", z, -5, 5))
        if small:
            found.append(Claim(f"{label}: variance ratio by theory", r["predicted ratio"], 1, 1.05))
    return found


# -- figures --------------------------------------------------------------------------------------


def figure_1(panels: list[Panel], mle: NDArray) -> Figure:
    """One chain of SGD per batch size."""
    fig = Figure(figsize=(12, 8), layout="constrained", dpi=100)
    axes = fig.subplots(3, len(panels), sharex=True, sharey="row")
    for column, panel in zip(axes.T, panels, strict=True):
        for ax, trace, value in zip(column, panel.draws[0].T, mle, strict=True):
            ax.plot(trace, lw=0.8, color="black", label="SGD, one chain")
            ax.axhline(value, color="tab:red", lw=1.5, zorder=1, label="maximum likelihood")
        column[0].set_title(f"m = {panel.setting['m']:,}")
        column[-1].set_xlabel("step t")
    for ax, name in zip(axes[:, 0], NAMES, strict=True):
        ax.set_ylabel(name)
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    fig.suptitle(
        "SGD by batch size m (handout Fig. 4.1): n = 10,000, eta = 1e-5, from (1.1, -2, 1)\n"
        "All settle at the maximum; the smaller the batch, the wider they go on oscillating"
    )
    return fig


def histograms(title: str, panels: dict[str, Panel], given: Problem) -> Figure:
    """Second half of one chain; the posterior in red, tempered dashed, what is expected in blue."""
    fig = Figure(figsize=(3.3 * len(panels) + 0.5, 9), layout="constrained", dpi=100)
    axes = fig.subplots(3, len(panels))
    exact, seen = given.exact.marginals(), {}
    for column, (label, panel) in zip(axes.T, panels.items(), strict=True):
        long = len(panel.draws) == N_LONG
        draws = panel.draws.reshape(-1, 3) if long else panel.draws[0, N_STEPS // 2 :]
        tau = panel.setting["tau"]
        for k, ax in enumerate(column):
            width = max(4 * draws[:, k].std(), 4 * exact[k].std(), 3 * panel.predicted_sd[k])
            centre = panel.exact_mean[k]
            grid = np.linspace(max(centre - width, 1e-6 if k == 2 else -9), centre + width, 600)
            expected = stats.norm(centre, panel.predicted_sd[k]).pdf(grid)
            ax.hist(draws[:, k], 40, density=True, color="0.8", label="draws")
            ax.plot(grid, exact[k].pdf(grid), color="tab:red", label="exact posterior")
            if tau != 1:
                tempered = given.exact.tempered(tau).marginals()[k]
                ax.plot(grid, tempered.pdf(grid), "--k", lw=1.2, label="exact, tempered")
            ax.plot(
                grid, expected, color="tab:blue", lw=1.4, label="distribution expected of this step"
            )
            ax.set(xlim=(grid[0], grid[-1]), yscale="log", xlabel=NAMES[k])
            top = max(exact[k].pdf(grid).max(), expected.max())
            ax.set_ylim(expected.max() / 300, 4 * top)
            ax.locator_params(axis="x", nbins=4)
            seen |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
        column[0].set_title(label)
    for ax in axes[:, 0]:
        ax.set_ylabel("density (log scale)")
    fig.legend(seen.values(), seen.keys(), loc="outside lower center", ncols=4)
    fig.suptitle(title)
    return fig


def main(report: Report, full: bool) -> None:
    """The three studies."""
    given = problem()
    print(
        "maximum likelihood", given.mle.round(4), "sd", [m.std() for m in given.exact.marginals()]
    )
    sgd = study_sgd(given)
    batches = {
        f"m = {m:,}": study_sgld(given, "4.2", m, 1.0, seed) for seed, m in enumerate(BATCHES, 10)
    }
    steps = 400_000 if full else 40_000
    small = {"eta": SMALL_STEP, "start": given.mode, "n_steps": steps, "thin": 40}
    label = f"m = 1,000, eta = {SMALL_STEP:g},\n{steps:,} steps, {N_LONG} chains"
    batches[label] = study_sgld(given, "4.2", 1000, 1.0, 13, burn_in=steps // 10, **small)
    temperatures = {
        rf"$\tau$ = {tau:g}": study_sgld(given, "4.3", 100, tau, seed)
        for seed, tau in enumerate(TEMPERATURES, 20)
    }
    panels = [*sgd, *batches.values(), *temperatures.values()]
    rows = [row for panel in panels for row in summary(given, panel)]
    settings = "n = 10,000, eta = 1e-5, steps 500 to 1,000 of one chain"
    figures = {
        "handout_fig_4_1": figure_1(sgd[:-1], given.mle),
        "handout_fig_4_2": histograms(
            f"SGLD by batch size m, temperature 1 (handout Fig. 4.2): {settings}\n"
            "Nearer to the posterior with larger m; gradient noise vanishes only with the step",
            batches,
            given,
        ),
        "handout_fig_4_3": histograms(
            f"SGLD by temperature, m = 100 (handout Fig. 4.3): {settings}\n"
            "At this step gradient noise decides: temperature .01 and 1 hardly differ",
            temperatures,
            given,
        ),
    }
    report.save(rows, claims(given, rows, sgd[-1].draws), figures)


if __name__ == "__main__":
    benchmark(main, full={"action": "store_true", "help": "more steps of the small step size"})
