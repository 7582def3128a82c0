"""Mandt, Hoffman & Blei (2017), Table 1: KL divergence of each sampler from the posterior.

    python -m benchmarks.papers.mandt_table1 [--skin-steps 165000]

It is KL(q||p) in nats, p = N(mode, Lam^-1); mandt_problems.py has data and methods. Per method the
table has

- the published figure;
- KL in closed form in continuous time ("OU"), of the recursion with additive noise ("discrete"),
  and with the noise that grows with the distance from the mode ("exact": linear regression only);
- "expected": the first two by an independent calculation. "exact" is derived twice: by the
  package, which iterates between the distribution and its mean noise, and here by one linear
  equation for the second moments, which needs the fourth moments of the rows. The claim is that
  they agree. tests/theory/test_theory.py checks the same distribution by counting all minibatches
  of a small data set;
- KL of simulated chains that start at the mode (mean and range), their effective draws by theory
  ("M_eff": steps over autocorrelation time, on average over the posterior's axes), and the bias
  [D/2 + D(D+1)/8] / M_eff that a finite chain adds. A chain of fewer effective draws than
  covariances, D(D+1)/2, says nothing of the stationary distribution and is not run: "not
  simulated". "own K" is the closed form with the preconditioner that the chains measured in their
  burn-in of 1,000 steps, whose error is the larger part of KL with full matrices; "z" is what
  simulation has beyond it and the bias, in standard errors. "unstable" comes with the spectral
  radius;
- for BBVI, "exact" is the optimal mean-field Gaussian N(mode, diag(1/Lam_kk)) in closed form, and
  "simulated" are four runs of black-box variational inference with Adam from zero, of 20,000
  steps (skin: 2,000). No run can be below the optimum.

SGFS-d and -f are Algorithm 1 of Ahn et al. at alpha = 0; "Eq. 36" is Mandt's variant, which
without injected noise is constant SGD-d and -f. SGLD takes the paper's steps, eps / 2 on the sum
gradient. Mandt sets SGFS to the step eps* of Eq. 18; without injected noise its step, eps H with
H = (2/N) (eps BB^T)^-1, has no eps in it. Some four minutes.

``--skin-steps`` runs nothing but chains on skin, longer, and writes mandt_table1_skin.csv: three
forms of constant SGD, and SGLD. The committed one has the paper's 165,000 steps, a quarter
of a CPU hour. SGLD then has effective draws enough to be simulated too, and the claim is that all
chains have the closed form with their own K and the bias of a finite chain.

mandt_readings.py has the other direction of the divergence, in which those of protein are hundreds.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.timing import Clock
from benchmarks.papers.mandt_problems import (
    Method,
    Problem,
    bbvi,
    mean_field,
    methods,
    problem,
)
from skbayes_sg import theory
from skbayes_sg.chains.run import Length, run_chain, start_chains
from skbayes_sg.models import Linear

DATA_SETS = ["wine", "skin", "protein"]
N_STEPS = {"wine": 165_000, "skin": 3_000, "protein": 20_000}
LONGER = ["constant SGD", "SGD-d", "SGD-f", "SGLD"]
"""methods of the longer chains on skin"""
BBVI_STEPS = {"wine": 20_000, "skin": 2_000, "protein": 20_000}
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
# OU and discrete, as printed by an independent calculation; "" where it gives none
EXPECTED = {
    ("wine", "constant SGD"): ("19.40", "22.48"),
    ("wine", "SGD-d"): ("14.79", "17.23"),
    ("wine", "SGD-f"): ("0", ".0047"),
    ("wine", "SGD sqrt"): ("16.1", "18.9"),
    ("wine", "exact K"): ("", "0"),
    ("wine", "SGLD"): ("46.8", "unstable"),
    ("skin", "constant SGD"): (".372", ".407"),
    ("skin", "SGD-d"): (".365", ".402"),
    ("skin", "SGD-f"): ("0", ".0010"),
    ("skin", "SGD sqrt"): (".368", ".404"),
    ("skin", "exact K"): ("", "0"),
    ("skin", "SGLD"): (".024", ".026"),
    ("protein", "constant SGD"): ("16.40", "16.40"),
    ("protein", "SGD-d"): ("13.76", "13.76"),
    ("protein", "SGD-f"): ("0", "<5e-5"),
    ("protein", "SGD sqrt"): ("14.6", "14.6"),
    ("protein", "exact K"): ("", "0"),
    ("protein", "SGLD"): ("76", "77"),
}
DISTRIBUTIONS = ("OU", "discrete", "exact")
FULL_RANK = ["SGD-f", "exact K", "SGFS-f", "SGFS-f, Eq. 36"]
"""Methods whose distribution is the posterior's but for terms of order S/N."""


# -- closed forms ---------------------------------------------------------------------------------


def closed_forms(given: Problem, method: Method) -> dict[str, float | str]:
    """KL by the three theories, and "exact" again; "unstable" with the radius if it diverges."""
    noise = given.M + method.injected
    distributions = {
        "OU": lambda: theory.stationary_cov(given.Lam, noise, method.K, discrete=False),
        "discrete": lambda: theory.stationary_cov(given.Lam, noise, method.K),
    }
    if isinstance(given.posterior.model, Linear):
        X, y = given.posterior.data.X, given.posterior.data.y
        sampling = {"replace": True, "injected": method.injected}
        distributions["exact"] = lambda: theory.lsq_cov(
            X, y, method.K, given.batch_size, **sampling
        )
        distributions["exact again"] = lambda: second_moments(given, method)
    return {
        distribution: _kl_or_unstable(given, method, cov)
        for distribution, cov in distributions.items()
    }


def second_moments(given: Problem, method: Method) -> NDArray:
    """Exact stationary covariance of least squares by one linear equation.

    With delta = theta - mode, h_i = x_i x_i^T and g_i the score of row i at the mode, a step is
    ``delta' = F delta + K (N/S) sum_b [(g_b - mean g) - (h_b - mean h) delta]`` with rows b drawn
    with replacement and independent of delta, whose mean is 0. Hence

    ``vec Sigma' = [F (x) F + (N^2/S) (K (x) K) (mean h (x) h - mean h (x) mean h)] vec Sigma + c``

    with ``c = vec K [(N^2/S) cov(g) + W] K^T``, and h (x) h = (x (x) x)(x (x) x)^T.
    """
    X, y, K = given.posterior.data.X, given.posterior.data.y, method.K
    N, D = X.shape
    scores = X * (y - X @ given.mode[0])[:, None]
    noise = N * N / given.batch_size * np.cov(scores.T, bias=True) + method.injected
    F, h = np.eye(D) - K @ given.Lam, X.T @ X / N
    squares = np.einsum("ni,nj->nij", X, X).reshape(N, -1)
    fourth = squares.T @ squares / N - np.kron(h, h)
    step = np.kron(F, F) + N * N / given.batch_size * np.kron(K, K) @ fourth
    if np.abs(np.linalg.eigvals(step)).max() >= 1:
        raise ValueError("unstable")
    return np.linalg.solve(np.eye(D * D) - step, (K @ noise @ K.T).ravel()).reshape(D, D)


def _kl_or_unstable(given: Problem, method: Method, cov) -> float | str:
    try:
        kl = theory.kl_gauss(cov(), np.linalg.inv(given.Lam))
    except ValueError:
        return _unstable(given, method)
    return kl if abs(kl) > 1e-10 else 0.0  # the rest is rounding


def _unstable(given: Problem, method: Method) -> str:
    return f"unstable ({theory.spectral_radius(given.Lam, method.K):.2f})"


# -- simulation -----------------------------------------------------------------------------------


def simulated(given: Problem, method: Method, seed: int) -> dict[str, float | str]:
    """KL of the Gaussian fitted to the draws of each chain, and what a finite chain adds to it."""
    sampler, posterior, n_steps = method.sampler, given.posterior, N_STEPS[given.name]
    D = posterior.dim
    try:
        effective = n_steps / correlation_time(given, method)
    except ValueError:
        return {"simulated": _unstable(given, method)}
    found = {"M_eff": effective, "bias": (D / 2 + D * (D + 1) / 8) / effective}
    if effective < D * (D + 1) / 2:
        return {"simulated": "not simulated", **found}
    start = np.repeat(given.mode, N_CHAINS, axis=0)
    states = start_chains(sampler, posterior, start, np.random.SeedSequence([2017, seed]))
    burn_in = sampler.run_length(states[0]).burn_in
    chains = [run_chain(sampler, posterior, state, Length(n_steps, burn_in)) for state in states]
    cov, kl, own = np.linalg.inv(given.Lam), [], []
    for group in chains:
        measured = group.state.memory.preconditioner  # SGLD's step is given
        K = method.K if measured is None else measured.dense()
        own += [theory.kl_gauss(distribution_of(given, method, K), cov)] * len(group.draws)
        each = ((np.cov(one.T), one.mean(axis=0)) for one in group.draws)
        kl += [theory.kl_gauss(Sigma, cov, mean, given.mode[0]) for Sigma, mean in each]
    excess = np.subtract(kl, own)
    error = excess.std(ddof=1) / np.sqrt(len(excess))
    z = {"own K": float(np.mean(own)), "z": float((excess.mean() - found["bias"]) / error)}
    return spread(kl, n_steps) | found | z


def distribution_of(given: Problem, method: Method, K: NDArray) -> NDArray:
    """Stationary covariance with the preconditioner K that a chain has measured."""
    if isinstance(given.posterior.model, Linear):
        X, y = given.posterior.data.X, given.posterior.data.y
        return theory.lsq_cov(X, y, K, given.batch_size, True, injected=method.injected)
    return theory.stationary_cov(given.Lam, given.M + method.injected, K)


def spread(kl, n_steps: int) -> dict[str, float]:
    """Mean of chains or runs, its standard error, and their range."""
    mean, se = float(np.mean(kl)), float(np.std(kl, ddof=1) / np.sqrt(len(kl)))
    return {
        "simulated": mean,
        "se": se,
        "lowest": float(min(kl)),
        "highest": float(max(kl)),
        "chains": len(kl),
        "steps": n_steps,
    }


def correlation_time(given: Problem, method: Method) -> float:
    """Autocorrelation time in steps by theory, on average over the axes of the posterior."""
    axes = np.linalg.eigh(given.Lam)[1]
    Lam, K, M = (axes.T @ a @ axes for a in (given.Lam, method.K, given.M + method.injected))
    return float(theory.iat(Lam, K, theory.stationary_cov(Lam, M, K)).mean())


# -- table, checks and figure ---------------------------------------------------------------------


def table(given: Problem) -> list[dict]:
    """All methods on one data set."""
    column = DATA_SETS.index(given.name)

    def row(label: str, **figures) -> dict:
        published = PUBLISHED.get(label.removesuffix(", Eq. 36"), ("",) * 3)[column]
        first = {"data": given.name, "method": label, "published": published}
        expected = " / ".join(EXPECTED.get((given.name, label), ()))
        return {**first, **dict.fromkeys(DISTRIBUTIONS), "expected": expected, **figures}

    rows = [
        row(label, **closed_forms(given, method), **simulated(given, method, seed))
        for seed, (label, method) in enumerate(methods(given).items(), start=100 * column)
    ]
    n_steps = BBVI_STEPS[given.name]
    runs = bbvi(given, n_runs=4, n_steps=n_steps, rate=0.1).divergence(given)
    optimum = theory.kl_gauss(np.diag(mean_field(given)), np.linalg.inv(given.Lam))
    return [*rows, row("BBVI", exact=optimum, **spread(runs, n_steps))]


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
    """Closed forms as expected and derived twice; chains and runs where they must be."""
    by_name = {(row["data"], row["method"]): row for row in rows}
    found = [
        agreement(f"{data}, {method}, {distribution}", by_name[data, method][distribution], figure)
        for (data, method), figures in EXPECTED.items()
        for distribution, figure in zip(DISTRIBUTIONS, figures, strict=False)
        if figure
    ]
    for row in rows:
        label, twice = f"{row['data']}, {row['method']}", (row["exact"], row.get("exact again"))
        if isinstance(twice[1], float):
            difference = abs(twice[1] - twice[0])
            found.append(Claim(f"{label}, exact: KL, two derivations", difference, high=1e-6))
        if row["method"] == "BBVI":
            low = row["exact"]
            found.append(Claim(f"{label}: KL, no run below the optimum", row["lowest"], low))
    for method in FULL_RANK:
        row = by_name["wine", method]
        found.append(
            Claim(f"wine, {method}: KL of chains less own K and bias, se", row["z"], -5, 5)
        )
    for method in ("constant SGD", "SGD-d"):
        row = by_name["wine", method]
        near = [float(row["published"]) * factor for factor in (0.5, 2)]
        found.append(Claim(f"wine, {method}: KL of chains, published", row["simulated"], *near))
    return found


def figure(rows: list[dict]) -> Figure:
    """Published, closed-form and simulated KL per method, one panel per data set."""
    labels = list(dict.fromkeys(row["method"] for row in rows))
    fig = Figure(figsize=(13, 5.6), layout="constrained", dpi=110)
    axes = fig.subplots(1, 3, sharey=True)
    for ax, name in zip(axes, DATA_SETS, strict=True):
        title = f"{name}: {N_CHAINS} chains of {N_STEPS[name]:,} steps"
        title = "protein: not simulated, chains too short" if name == "protein" else title
        ax.set(xscale="log", xlim=(5e-4, 3e3), xlabel="KL (nats)")
        ax.set_title(title, fontsize=11)
        for row in (r for r in rows if r["data"] == name):
            _dots(ax, labels.index(row["method"]), row)
        ax.grid(axis="y", color="0.92")
    axes[0].set_yticks(range(len(labels)), labels)
    axes[0].invert_yaxis()
    handles = dict(zip(*reversed(axes[0].get_legend_handles_labels()), strict=True))
    fig.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5)
    fig.suptitle(
        "KL from the stationary distribution to the posterior (Mandt et al. Table 1)\n"
        "Wine and skin: alike but for SGLD, BBVI and full matrices (in chains measured in 1,000 "
        "steps). Protein: the other direction of KL comes nearer"
    )
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
        label, style = "chains, or runs of BBVI: mean and range", {"ms": 7, "mew": 1.8}
        ax.plot(row["simulated"], y, "x", color="tab:blue", label=label, **style)


def longer(given: Problem) -> list[dict]:
    """Closed forms and chains of some methods."""
    rows = []
    for seed, (label, method) in enumerate(methods(given).items(), start=100):
        if label in LONGER:
            row = {"data": given.name, "method": label, "published": PUBLISHED[label][1]}
            rows.append(row | closed_forms(given, method) | simulated(given, method, seed))
            print(rows[-1], flush=True)
    return rows


def main(report: Report, skin_steps: int) -> None:
    """Every method on every data set, or longer chains of one."""
    if skin_steps:
        N_STEPS["skin"] = skin_steps
        rows = longer(problem("skin"))
        found = [
            Claim(f"skin, {row['method']}: KL of chains less own K and bias, se", row["z"], -5, 5)
            for row in rows
        ]
        report.save(rows, found, name="mandt_table1_skin", title="KL in nats")
        return
    rows = []
    for name in DATA_SETS:
        with Clock() as clock:
            rows += table(problem(name))
        print(f"{name}: {clock.seconds:.0f} s", flush=True)
    report.save(rows, claims(rows), {"mandt_table1": figure(rows)}, title="KL in nats")


if __name__ == "__main__":
    benchmark(
        main,
        skin_steps={"type": int, "default": 0, "help": "steps of chains on skin, which alone run"},
    )
