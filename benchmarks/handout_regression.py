"""Karagiannis, handout 4, section 4: Bayesian linear regression with unknown noise variance.

    python benchmarks/handout_regression.py [--steps 60000] [--chains 16]

The model is y ~ N(x . beta, s2), beta given s2 ~ N(0, 100 s2 I), s2 ~ IG(1, 1), sampled as w =
(beta, gamma = log s2). The handout does not give its data: here 1,000 rows, x = (1, x1), x1 ~
N(0, 1), beta = (1, -2), s2 = 1. Rows are drawn without replacement, so that a batch of 1,000 is
all of them.

Fig. 4.1: SGD with a constant step against the exact mode. Fig. 4.2: SGLD by batch size against
the exact posterior. Fig. 4.3: SGLD at batch size 100 by temperature, against the exact posterior
and its tempered version, which is exact too.

The table has, per coordinate, the exact mean and sd, those sampled with their Monte-Carlo errors,
and the sd that the linearised recursion has; "ratio" is the variance over the posterior's at
temperature 1. "end" is where the first chain of SGD ends, and "gradient" that of the log
posterior at the closed-form mode.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from harness import Claim, Report, benchmark
from internals import Posterior, begin, posterior_of
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import special, stats

from skbayes_sg import theory
from skbayes_sg.chains import run_chain
from skbayes_sg.layouts import FULL
from skbayes_sg.models import Linear
from skbayes_sg.samplers import SGD, SGLD

N, V, PHI, PSI = 1000, 100.0, 1.0, 1.0
NAMES = ["beta 0", "beta 1", "gamma"]
SGD_STEP = 1e-4  # a tenth of a posterior variance of beta
SGLD_STEP = 2e-5  # a fiftieth: the discretisation adds 1 % to variances
SGD_BATCHES, SGLD_BATCHES, TEMPERATURES = [1, 10, 100, N], [1, 10, 100, N], [0.1, 1.0, 10.0, 100.0]
THIN = 10


class NormalInverseGamma(NamedTuple):
    """beta given gamma ~ N(mean, e^gamma spread), e^gamma ~ IG(shape, rate)."""

    mean: NDArray
    spread: NDArray
    shape: float
    rate: float

    def tempered(self, temperature: float) -> NormalInverseGamma:
        """Density in (beta, gamma) to the power 1 / temperature.

        Minus its logarithm is ``(shape + d/2) gamma + e^-gamma (rate + quadratic form / 2)``,
        divided by the temperature. The quadratic form makes beta normal with `spread` times the
        temperature, whose normalising factor takes d/2 of the coefficient of gamma.
        """
        half = len(self.mean) / 2
        shape = (self.shape + half) / temperature - half
        return NormalInverseGamma(
            self.mean, temperature * self.spread, shape, self.rate / temperature
        )

    def mode(self) -> NDArray:
        """Of the joint density in (beta, gamma)."""
        return np.append(self.mean, np.log(self.rate / (self.shape + len(self.mean) / 2)))

    def marginals(self) -> list:
        """Student t of each coefficient, and log inverse gamma.

        Gamma is minus the logarithm of a gamma variate.
        """
        scale = np.sqrt(self.rate / self.shape * self.spread.diagonal())
        coef = [stats.t(2 * self.shape, m, s) for m, s in zip(self.mean, scale, strict=True)]
        return [*coef, _MinusLogGamma(self.shape, self.rate)]


class _MinusLogGamma(NamedTuple):
    shape: float
    rate: float

    def mean(self) -> float:
        return float(np.log(self.rate) - special.digamma(self.shape))

    def std(self) -> float:
        return float(np.sqrt(special.polygamma(1, self.shape)))

    def pdf(self, gamma: NDArray) -> NDArray:
        """IG(e^gamma) e^gamma."""
        log_density = self.shape * (np.log(self.rate) - gamma) - self.rate * np.exp(-gamma)
        return np.exp(log_density - special.gammaln(self.shape))


class Problem(NamedTuple):
    """The posterior as the package has it, its closed form, and its expansion at the mode."""

    posterior: Posterior
    exact: NormalInverseGamma
    mle: NDArray
    mode: NDArray
    Lam: NDArray
    I1: NDArray


def problem() -> Problem:
    """Synthetic data, and the conjugate posterior."""
    rng = np.random.default_rng(4)
    X = np.column_stack([np.ones(N), rng.standard_normal(N)])
    y = X @ [1.0, -2.0] + rng.standard_normal(N)
    model = Linear(2, fit_intercept=False, noise_variance=None, noise_prior=(PHI, PSI))
    posterior = posterior_of(model, X, y, 1 / V)

    precision = X.T @ X + np.eye(2) / V
    mean = np.linalg.solve(precision, X.T @ y)
    exact = NormalInverseGamma(
        mean, np.linalg.inv(precision), PHI + N / 2, PSI + 0.5 * (y @ y - mean @ precision @ mean)
    )
    least_squares = np.linalg.lstsq(X, y, rcond=None)[0]
    mle = np.append(least_squares, np.log(np.mean((y - X @ least_squares) ** 2)))
    mode = exact.mode()
    Lam = posterior.expand(mode[None], FULL).curvature.dense()
    return Problem(posterior, exact, mle, mode, Lam, posterior.score_covariance(mode[None]))


def run(sampler, given: Problem, start: NDArray, n_steps: int, seed: int, **more: int) -> NDArray:
    """Draws of all chains in lock step, (chains, draws, 3)."""
    state = begin(sampler, given.posterior, start, seed)
    n_draws = n_steps // more.get("thin", 1)
    return run_chain(sampler, given.posterior, state, n_draws=n_draws, **more).draws


def linear_sd(given: Problem, sampler, temperature: float) -> NDArray:
    """Of the recursion linearised at the mode, with the gradient noise there."""
    M = theory.noise_cov(given.I1, N, sampler.batch_size, replace=False)
    return np.sqrt(theory.sgld_cov(given.Lam, M, sampler.step_size, temperature).diagonal())


def summary(
    figure: str, setting: dict, draws: NDArray, target: tuple, sd: tuple[NDArray, NDArray]
) -> list[dict]:
    """One line per coordinate: moments of the target, of the draws and of the recursion."""
    shift = draws - draws.mean(axis=(0, 1))
    means, variances = draws.mean(axis=1), (shift**2).mean(axis=1)
    spread = np.sqrt(variances.mean(axis=0))
    root = np.sqrt(len(draws))
    columns = {
        "exact mean": target[0],
        "mean": means.mean(axis=0),
        "mean se": means.std(axis=0, ddof=1) / root,
        "exact sd": target[1],
        "linear sd": sd[0],
        "predicted sd": sd[1],
        "sd": spread,
        "sd se": variances.std(axis=0, ddof=1) / root / (2 * spread),
    }
    lines = zip(NAMES, *columns.values(), strict=True)
    return [
        {
            "figure": figure,
            **setting,
            "coordinate": line[0],
            **dict(zip(columns, map(float, line[1:]), strict=True)),
        }
        for line in lines
    ]


# -- the three studies ----------------------------------------------------------------------------


def study_sgd(given: Problem, n_chains: int, n_steps: int) -> tuple[list[dict], dict[int, NDArray]]:
    """Fig. 4.1: from zero, the whole path of one chain; figures from the second half of all."""
    rows, paths = [], {}
    gradient = given.posterior.full_gradient(given.mode[None])[0]
    target = given.mode, np.zeros(3)
    for seed, batch in enumerate(SGD_BATCHES):
        sampler = SGD(step_size=SGD_STEP, batch_size=batch)
        draws = run(sampler, given, np.zeros((n_chains, 3)), n_steps, seed)
        sd = linear_sd(given, sampler, 0.0)
        lines = summary("4.1", {"batch": batch}, draws[:, n_steps // 2 :], target, (sd, sd))
        paths[batch] = draws[0]
        for line, end, slope in zip(lines, paths[batch][-1], gradient, strict=True):
            rows.append(line | {"end": float(end), "gradient": float(slope)})
    return rows, paths


def study_sgld(
    given: Problem,
    figure: str,
    batch: int,
    temperature: float,
    n_chains: int,
    n_steps: int,
    seed: int,
):
    """Fig. 4.2 and 4.3: one panel.

    The prediction is the exact sd of the tempered posterior times what the linearised recursion
    adds to that of its own target, so that it holds where the tempered posterior is not Gaussian.
    """
    sampler = SGLD(step_size=SGLD_STEP, temperature=temperature, batch_size=batch)
    start = np.tile(given.mode, (n_chains, 1))
    draws = run(sampler, given, start, n_steps, seed, burn_in=n_steps // 10, thin=THIN)
    marginals = given.exact.tempered(temperature).marginals()
    mean, sd = (np.array([getattr(m, name)() for m in marginals]) for name in ("mean", "std"))
    linear = linear_sd(given, sampler, temperature)
    inflation = linear / np.sqrt(temperature * np.linalg.inv(given.Lam).diagonal())
    setting = {"batch": batch, "temperature": temperature}
    rows = summary(figure, setting, draws, (mean, sd), (linear, sd * inflation))
    for r, marginal in zip(rows, given.exact.marginals(), strict=True):
        r["ratio"], r["predicted ratio"] = (
            (r[name] / marginal.std()) ** 2 for name in ("sd", "predicted sd")
        )
    return rows, draws


def claims(rows: list[dict]) -> list[Claim]:
    """Where theory is exact or nearly so; small batches show what it leaves out."""
    ends = [r for r in rows if r["figure"] == "4.1" and r["batch"] == N]
    slope = max(abs(r["gradient"]) for r in ends)
    distance = max(abs(r["end"] - r["exact mean"]) for r in ends)
    found = [
        Claim("the closed-form mode has gradient 0", slope, high=1e-8, strict=True),
        Claim("Fig. 4.1, all rows: ends at the mode", distance, high=1e-8, strict=True),
    ]
    for r in rows:
        label = f"Fig. {r['figure']}, batch {r['batch']}, temperature {r.get('temperature') or 0:g}"
        label += f", {r['coordinate']}"
        if r["figure"] == "4.2" and r["batch"] == N:
            z = (r["mean"] - r["exact mean"]) / r["mean se"]
            found.append(Claim(f"{label}: mean less exact, in se", z, -5, 5))
        if r["figure"] == "4.3" or (r["figure"] == "4.2" and r["batch"] == N):
            z = (r["sd"] - r["predicted sd"]) / r["sd se"]
            found.append(Claim(f"{label}: sd less predicted, in se", z, -5, 5))
    return found


# -- figures --------------------------------------------------------------------------------------


def figure_1(paths: dict[int, NDArray], mode: NDArray) -> Figure:
    """One chain of SGD per batch size."""
    fig = Figure(figsize=(13, 7), layout="constrained", dpi=100)
    axes = fig.subplots(3, len(paths), sharex=True, sharey="row")
    for column, (batch, path) in zip(axes.T, paths.items(), strict=True):
        for ax, trace, value in zip(column, path.T, mode, strict=True):
            ax.plot(trace, lw=0.8, color="tab:blue")
            ax.axhline(value, color="tab:red", lw=1.2)
        column[0].set_title(title_of(batch))
        column[-1].set_xlabel("step")
    for ax, name in zip(axes[:, 0], NAMES, strict=True):
        ax.set_ylabel(name)
    title = f"SGD, constant step {SGD_STEP:g}, against the exact mode in red (handout Fig. 4.1)"
    fig.suptitle(title)
    return fig


def title_of(batch: int) -> str:
    """Of a column of panels."""
    return f"batch {batch}" if batch < N else "all rows"


def histograms(title: str, panels: dict[str, tuple[NDArray, float]], given: Problem) -> Figure:
    """Draws by setting; the exact posterior in red, the tempered one dashed where it is another."""
    fig = Figure(figsize=(13, 7.5), layout="constrained", dpi=100)
    axes = fig.subplots(3, len(panels))
    fig.get_layout_engine().set(w_pad=0.15)
    exact = given.exact.marginals()
    for column, (label, (draws, temperature)) in zip(axes.T, panels.items(), strict=True):
        tempered = given.exact.tempered(temperature).marginals()
        for k, ax in enumerate(column):
            values = draws[:, :, k].ravel()
            width = 4.5 * max(values.std(), exact[k].std())
            grid = np.linspace(exact[k].mean() - width, exact[k].mean() + width, 400)
            bins = np.linspace(grid[0], grid[-1], 61)
            ax.hist(values, bins=bins, density=True, color="0.75", label="sampled")
            ax.plot(grid, exact[k].pdf(grid), color="tab:red", label="exact posterior")
            if temperature != 1:
                ax.plot(grid, tempered[k].pdf(grid), "--k", lw=1.2, label="exact, tempered")
            ax.set(yticks=[], xlabel=NAMES[k])
            ax.locator_params(axis="x", nbins=4)
        column[0].set_title(label)
    axes[0, 0].legend(loc="upper left", fontsize=8)
    fig.suptitle(title)
    return fig


def main(report: Report, steps: int, chains: int) -> None:
    """The three studies."""
    given = problem()
    for name, point in (("MLE", given.mle), ("mode", given.mode)):
        print("exact", name, dict(zip(NAMES, point.round(4).tolist(), strict=True)))
    rows, paths = study_sgd(given, chains, 1000)
    by_batch, by_temperature = {}, {}
    for seed, batch in enumerate(SGLD_BATCHES, start=10):
        lines, draws = study_sgld(given, "4.2", batch, 1.0, chains, steps, seed)
        rows += lines
        by_batch[title_of(batch)] = draws, 1.0
    for seed, tau in enumerate(TEMPERATURES, start=20):
        lines, draws = study_sgld(given, "4.3", 100, tau, chains, steps, seed)
        rows += lines
        by_temperature[f"temperature {tau:g}"] = draws, tau
    batches = "SGLD by batch size, temperature 1 (handout Fig. 4.2)"
    temperatures = "SGLD by temperature, batch size 100 (handout Fig. 4.3)"
    figures = {
        "handout_fig_4_1": figure_1(paths, given.mode),
        "handout_fig_4_2": histograms(batches, by_batch, given),
        "handout_fig_4_3": histograms(temperatures, by_temperature, given),
    }
    report.save(rows, claims(rows), figures)


if __name__ == "__main__":
    number = {"type": int, "default": 60_000, "help": "of SGLD, after a tenth more of burn-in"}
    benchmark(main, steps=number, chains={"type": int, "default": 16})
