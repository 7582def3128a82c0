"""Mandt, Hoffman & Blei (2017), Table 1: KL divergence of each sampler's law from the posterior.

    python benchmarks/mandt_table1.py [--steps 20000]

It is KL(q||p) in nats, p = N(mode, Lam^-1), prior precision 1, no intercept, rows drawn with
replacement (noise factor N/S, without which the figures expected do not come out):

- wine: 4,898 x 11, linear regression, noise variance 1, columns divided by max |x|, not centred,
  S = 100;
- skin: 245,057 x 3, logistic regression, columns centred, then divided by 255, the largest value
  a pixel can have (dividing by the largest centred value moves SGLD from .024 to .249), S =
  10,000, a quarter of the steps;
- protein: 45,730 x 9 (the paper: 8 features), linear regression as for wine, S = 100.

Per method the table has the published figure; KL in closed form in continuous time ("OU"), of the
recursion with additive noise ("discrete") and with the noise that grows with the distance from
the mode ("exact": linear regression only); the same three as expected from an independent
calculation; KL of four simulated chains that start at the mode (mean and range), their effective
draws M_eff from the autocorrelation along the axes of the posterior, and the bias [D/2 +
D(D+1)/8] / M_eff that a finite chain adds. That is a first-order term: below M_eff of about
D(D+1)/2 it says "large" and no more. "unstable" comes with the spectral radius of the step.
"exact" of BBVI is the optimal mean-field Gaussian N(mode, diag(1/Lam_kk)), in closed form, not
the paper's noisy run of BBVI.

SGFS-d and -f are Algorithm 1 of Ahn et al. at alpha = 0; "Eq. 36" is Mandt's variant, which
without injected noise is constant SGD-d and -f. SGLD takes the paper's steps, eps / 2 on the sum
gradient. A closed form must agree with the figure expected: one of four digits within rounding,
one of fewer within .5 % or rounding, 0 to 1e-10.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from datasets import regression, skin
from harness import Claim, Report, benchmark
from internals import Posterior, Sampler, exact_mode, posterior_of
from matplotlib.figure import Figure
from numpy.typing import NDArray
from timing import Clock

from skbayes_sg import diagnostics, theory
from skbayes_sg.chains import run_chain, start_chains
from skbayes_sg.models import Linear, Softmax
from skbayes_sg.samplers import SGFS, SGLD, ConstantSGD

DATA_SETS = ["wine", "skin", "protein"]
BATCH_SIZE = {"wine": 100, "skin": 10_000, "protein": 100}
EPSILON = {"wine": 1e-3, "skin": 1e-5, "protein": 1e-6}  # section 6.1, of SGLD
N_CHAINS = 4

PUBLISHED = {
    "constant SGD": ("18.7", "0.471", "1000.9"),
    "SGD-d": ("14.0", "0.921", "678.4"),
    "SGD-f": ("0.7", "0.005", "1.8"),
    "SGLD": ("2.9", "0.905", "4.5"),
    "SGFS-d": ("12.8", "0.864", "597.4"),
    "SGFS-f": ("0.8", "0.005", "1.3"),
    "BBVI": ("44.7", "5.74", "478.1"),
}
# OU, discrete, exact, as printed by an independent calculation; "" where it gives none
EXPECTED = {
    ("wine", "constant SGD"): ("19.40", "22.48", "26.45"),
    ("wine", "SGD-d"): ("14.79", "17.23", "20.29"),
    ("wine", "SGD-f"): ("0", ".0047", ".007"),
    ("wine", "SGD sqrt"): ("16.1", "18.9", ""),
    ("wine", "exact K"): ("", "0", ""),
    ("wine", "SGLD"): ("46.8", "unstable", ""),
    ("skin", "constant SGD"): (".372", ".407", ""),
    ("skin", "SGD-d"): (".365", ".402", ""),
    ("skin", "SGD-f"): ("0", ".0010", ""),
    ("skin", "SGD sqrt"): (".368", ".404", ""),
    ("skin", "exact K"): ("", "0", ""),
    ("skin", "SGLD"): (".024", ".026", ""),
    ("protein", "constant SGD"): ("16.40", "16.40", ""),
    ("protein", "SGD-d"): ("13.76", "13.76", ""),
    ("protein", "SGD-f"): ("0", "<5e-5", ""),
    ("protein", "SGD sqrt"): ("14.6", "14.6", ""),
    ("protein", "exact K"): ("", "0", ""),
    ("protein", "SGLD"): ("76", "77", ""),
}
LAWS = ("OU", "discrete", "exact")
SIMULATED = [("SGD-f", 0, 0.06), ("SGD-f", 0, 0.7), ("constant SGD", 14, 27), ("SGD-d", 14, 27)]
"""Methods on wine, and lowest and highest KL of their chains."""


class Problem(NamedTuple):
    """A posterior of section 6.1, its Gaussian approximation, and the noise of its minibatches."""

    name: str
    posterior: Posterior
    mode: NDArray
    """(1, D)"""
    Lam: NDArray
    I1: NDArray
    """covariance of one row's score at the mode"""
    M: NDArray
    """covariance of the minibatch gradient there"""
    batch_size: int


class Method(NamedTuple):
    """A sampler of the package, and K and W of its step by theory."""

    sampler: Sampler
    K: NDArray
    injected: NDArray | float = 0.0


def problem(name: str) -> Problem:
    """Data scaled as in the module's docstring, and the mode to rounding."""
    if name == "skin":
        X, y = skin()
        X = (X - X.mean(axis=0)) / 255
        model = Softmax(X.shape[1], 2, fit_intercept=False)
    else:
        X, y = regression(name)
        X = np.ascontiguousarray(
            X / np.abs(X).max(axis=0)
        )  # rows of a column-major array are slow to take
        model = Linear(X.shape[1], fit_intercept=False, noise_variance=1.0)
    posterior = posterior_of(model, X, y, 1.0)
    mode, Lam = exact_mode(posterior)
    I1 = posterior.score_covariance(mode)
    M = theory.noise_cov(I1, posterior.n_rows, BATCH_SIZE[name], replace=True)
    return Problem(name, posterior, mode, Lam, I1, M, BATCH_SIZE[name])


def methods(given: Problem) -> dict[str, Method]:
    """Samplers of Table 1, and three more, with the preconditioners that theory gives them."""
    rows = {"batch_size": given.batch_size, "replace": True}
    n, N, eye = given.batch_size, given.posterior.n_rows, np.eye(len(given.Lam))
    gamma_I_N = (n + N) / n * N * given.I1  # P of Ahn's Algorithm 1
    eta = EPSILON[given.name] / 2

    def sgd(structure: str, correction: str = "ou") -> Method:
        kind = "ou-" + structure if correction == "ou" else structure
        K = theory.optimal_preconditioner(given.Lam, given.M, kind)
        return Method(ConstantSGD(structure, correction, **rows), K)

    def sgfs(structure: str, variant: str, P: NDArray) -> Method:
        return Method(SGFS(structure=structure, variant=variant, **rows), 2 * np.linalg.inv(P))

    return {
        "constant SGD": sgd("scalar"),
        "SGD-d": sgd("diag"),
        "SGD-f": sgd("full"),
        "SGD sqrt": sgd("sqrt"),
        "exact K": sgd("full", "discrete"),
        "SGLD": Method(SGLD(step_size=eta, **rows), eta * eye, 2 / eta * eye),
        "SGFS-d": sgfs("diag", "paper", gamma_I_N * eye),
        "SGFS-f": sgfs("full", "paper", gamma_I_N),
        "SGFS-d, Eq. 36": sgfs("diag", "mandt", given.M * eye),
        "SGFS-f, Eq. 36": sgfs("full", "mandt", given.M),
    }


# -- closed forms ---------------------------------------------------------------------------------


def closed_forms(given: Problem, method: Method) -> dict[str, float | str]:
    """KL by the three laws; "unstable" with the spectral radius where there is no law."""
    posterior, noise = given.posterior, given.M + method.injected
    laws = {
        "OU": lambda: theory.stationary_cov(given.Lam, noise, method.K, discrete=False),
        "discrete": lambda: theory.stationary_cov(given.Lam, noise, method.K),
    }
    if isinstance(posterior.model, Linear):
        sampling = {"replace": True, "injected": method.injected}
        laws["exact"] = lambda: theory.lsq_cov(
            posterior.data.X, posterior.data.y, method.K, given.batch_size, **sampling
        )
    return {law: _kl_or_unstable(given, method, cov) for law, cov in laws.items()}


def _kl_or_unstable(given: Problem, method: Method, cov) -> float | str:
    try:
        kl = theory.kl_gauss(cov(), np.linalg.inv(given.Lam))
    except ValueError:
        return _unstable(given, method)
    return kl if abs(kl) > 1e-10 else 0.0  # the rest is rounding


def _unstable(given: Problem, method: Method) -> str:
    return f"unstable ({theory.spectral_radius(given.Lam, method.K):.2f})"


def mean_field(given: Problem) -> float:
    """KL of N(mode, diag(1 / Lam_kk)), the nearest Gaussian without correlations in KL(q||p)."""
    return theory.kl_gauss(np.diag(1 / given.Lam.diagonal()), np.linalg.inv(given.Lam))


# -- simulation -----------------------------------------------------------------------------------


def simulated(given: Problem, method: Method, n_steps: int, seed: int) -> dict[str, float | str]:
    """KL of the Gaussian fitted to the draws of each chain, and what a finite chain adds to it."""
    sampler, posterior = method.sampler, given.posterior
    start = np.repeat(given.mode, N_CHAINS, axis=0)
    states = start_chains(sampler, posterior, start, np.random.SeedSequence([2017, seed]))
    try:
        chains = [
            run_chain(
                sampler,
                posterior,
                state,
                n_draws=n_steps,
                burn_in=sampler.run_length(state).burn_in,
            )
            for state in states
        ]
    except FloatingPointError:
        return {"simulated": _unstable(given, method)}
    draws = np.concatenate([chain.draws for chain in chains])
    kl = [
        theory.kl_gauss(np.cov(one.T), np.linalg.inv(given.Lam), one.mean(axis=0), given.mode[0])
        for one in draws
    ]
    effective = effective_draws(draws, given.Lam)
    D = posterior.dim
    return {
        "simulated": float(np.mean(kl)),
        "lowest": min(kl),
        "highest": max(kl),
        "steps": n_steps,
        "M_eff": effective,
        "bias": (D / 2 + D * (D + 1) / 8) / effective,
    }


def effective_draws(draws: NDArray, Lam: NDArray) -> float:
    """Length of one chain over its autocorrelation time, averaged over the posterior's axes."""
    axes = np.linalg.eigh(Lam)[1]
    return draws.shape[1] / float(diagnostics.autocorrelation_time(draws @ axes).mean())


# -- table, checks and figure ---------------------------------------------------------------------


def table(given: Problem, n_steps: int) -> list[dict]:
    """All methods on one data set."""
    column = DATA_SETS.index(given.name)

    def row(label: str, **figures) -> dict:
        published = PUBLISHED.get(label.removesuffix(", Eq. 36"), ("",) * 3)[column]
        first = {"data": given.name, "method": label, "published": published}
        expected = " / ".join(EXPECTED.get((given.name, label), ()))
        return {**first, **dict.fromkeys(LAWS), "expected": expected, **figures}

    rows = [
        row(label, **closed_forms(given, method), **simulated(given, method, n_steps, seed))
        for seed, (label, method) in enumerate(methods(given).items(), start=100 * column)
    ]
    return [*rows, row("BBVI", exact=mean_field(given))]


def limits(figure: str) -> tuple[float, float, bool]:
    """Lowest and highest value that agrees with a figure expected; whether they are excluded."""
    if figure.startswith("<"):
        return -np.inf, float(figure[1:]), True
    if figure == "0":
        return -1e-10, 1e-10, True
    rounding = 0.5 * 10.0 ** -len(figure.partition(".")[2])
    digits = len(figure.replace(".", "").lstrip("0"))
    slack = rounding if digits >= 4 else max(rounding, 0.005 * float(figure))
    return float(figure) - slack, float(figure) + slack, False


def agreement(label: str, value: float | str, figure: str) -> Claim:
    """A closed form against the figure expected, or its spectral radius if that is "unstable"."""
    radius = value.strip("unstable ()") if isinstance(value, str) else ""
    if figure == "unstable":
        return Claim(f"{label}: spectral radius, unstable", float(radius or "nan"), low=1)
    value = np.nan if radius else value
    return Claim(f"{label}: KL, expected {figure}", value, *limits(figure))


def claims(rows: list[dict]) -> list[Claim]:
    """Closed forms as expected, and every simulated chain on wine within its bounds."""
    by_name = {(row["data"], row["method"]): row for row in rows}
    found = [
        agreement(f"{data}, {method}, {law}", by_name[data, method][law], figure)
        for (data, method), figures in EXPECTED.items()
        for law, figure in zip(LAWS, figures, strict=True)
        if figure
    ]
    for method, low, high in SIMULATED:
        row = by_name["wine", method]
        label = f"wine, {method}, simulated: KL"
        found.append(Claim(f"{label}, mean of the chains", row["simulated"], low, high))
        ends = row["lowest"], row["highest"]
        found.append(Claim(f"{label}, every chain", ends, low, high))
    return found


def figure(rows: list[dict]) -> Figure:
    """Published, closed-form and simulated KL per method, one panel per data set."""
    labels = list(dict.fromkeys(row["method"] for row in rows))
    fig = Figure(figsize=(13, 5), layout="constrained", dpi=110)
    axes = fig.subplots(1, 3, sharey=True)
    for ax, name in zip(axes, DATA_SETS, strict=True):
        ax.set(xscale="log", xlim=(5e-4, 3e3), title=name, xlabel="KL (nats)")
        for row in (r for r in rows if r["data"] == name):
            _dots(ax, labels.index(row["method"]), row)
        ax.grid(axis="y", color="0.92")
    axes[0].set_yticks(range(len(labels)), labels)
    axes[0].invert_yaxis()
    handles = dict(zip(*reversed(axes[0].get_legend_handles_labels()), strict=True))
    fig.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
    fig.suptitle("KL from the stationary law to the posterior (Mandt et al. Table 1)")
    return fig


def _dots(ax, y: int, row: dict) -> None:
    """One line of a panel; what is too small for the axis is an arrow at its edge."""
    closed = row["exact"] if row["method"] == "BBVI" else row["discrete"]
    edge, style = 6e-4, {"mfc": "none", "mew": 1.6, "color": "tab:red"}
    if row["published"]:
        ax.plot(float(row["published"]), y, "D", color="black", ms=6, label="published")
    if isinstance(closed, str):
        ax.annotate("unstable", (1.2e3, y), color="tab:red", ha="right", va="center", fontsize=8)
    elif closed > edge:
        ax.plot(closed, y, "o", ms=9, label="closed form", **style)
    else:
        ax.plot(edge, y, "<", ms=8, label="closed form, below the axis", **style)
    if isinstance(row.get("simulated"), float):
        ax.plot([row["lowest"], row["highest"]], [y, y], color="tab:blue", lw=2.5, alpha=0.5)
        label, style = "simulated: mean and range of chains", {"ms": 7, "mew": 1.8}
        ax.plot(row["simulated"], y, "x", color="tab:blue", label=label, **style)


def main(report: Report, steps: int) -> None:
    """Every method on every data set."""
    rows = []
    for name in DATA_SETS:
        with Clock() as clock:
            rows += table(problem(name), steps // 4 if name == "skin" else steps)
        print(f"{name}: {clock.seconds:.0f} s", flush=True)
    title = f"KL in nats; {N_CHAINS} chains of {steps:,} steps, on skin {steps // 4:,}"
    report.save(rows, claims(rows), {"mandt_table1": figure(rows)}, title=title)


if __name__ == "__main__":
    benchmark(main, steps={"type": int, "default": 20_000})
