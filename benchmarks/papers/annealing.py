"""What annealing is for: SGFS on a skewed posterior, SGLD near one mode, and between two.

    python -m benchmarks.papers.annealing

**SGFS** (Ahn, Korattikara & Welling 2012, sections 3.3 and 6). A small alpha mixes fast and samples
a Gaussian approximation; a large alpha mixes slowly and follows the posterior. Annealed, SGFS is to
have three phases: an optimiser during burn-in; draws of the Gaussian approximation; draws that come
nearer and nearer to the posterior. The posterior is a logistic regression with 400 rows, 33 events
and 14 lognormal columns (15 parameters, prior precision 0.1); errors are E1 and E2 of Eq. 14, and
"Laplace" has those of a Gaussian at its mode. The reference is HMC, 64 chains of 12,000 draws. 48
chains of SGFS with full
matrices start at zero, with 40 rows a step. alpha is 0, 1, 3 or 10, or grows so that the step falls
as (1 + t / 1,000)^(-1/2): 1 + alpha^2 is its inverse. Matrices are measured in the first 3,000
steps, which the averages leave out. Errors are those of the average over all chains and draws so
far. Annealed draws are weighted by the step (Eq. 3.8 of Karagiannis' handout), and the average is
that of the second half of the draws so far: that of all draws keeps more of the bias of the large
steps, since these weigh most ("annealed, all draws"). A constant alpha that suits the posterior is
as good; annealing needs not know it. Early is after 600 passes of each chain, late
is the end. Standard errors are those of a bootstrap over the chains.

**SGLD near one mode** (Condition 25 and Eq. 3.8 of the handout; section 3.1 of Ahn et al.). The
model is linear regression with known noise variance, 2,000 rows and three columns, two of them
correlated, so that the posterior is normal and known exactly. 128 chains start at its mean, with 20
rows a step. The step is constant, or decreases from the same value as (1 + t / 100)^-.55, which
satisfies Condition 25. sgld_decreasing.csv has the mean variance ratio over the posterior of the
first and of the last tenth of 300,000 steps, and of all draws weighted by their steps; beside it,
for the constant step and for the end of the decreasing ones, the stationary ratio by the exact
noise of least squares. A constant step must stay as wide as theory says, decreasing ones must end
as theory says and within a tenth of the posterior.

**SGLD between two modes** (the handout, Remarks 26 and 30 and the page of Figure 4.3): a large
temperature at the beginning visits different modes, and temperature 1 samples later on. The
posterior is that of Welling & Teh's mixture, x ~ N(a, s^2) / 2 + N(a + b, s^2) / 2, which has two
modes. All 128 chains start in one of them. The temperature is 1, or falls from 30 to 1 in the first
half of the run. The share of chains that end in each mode must be its posterior mass (from a grid)
within three binomial standard deviations with cooling; at temperature 1 no chain gets across. For
Remark 30 the step decreases, and the table has the variance of a step that comes from gradient
noise over that of the injected noise: above 1 at first (phase 1: as SGD), below .1 at the end
(phase 2: Langevin dynamics).

Small minibatches cross barriers as well: the page of Figure 4.2 says that on a posterior with
several modes smaller batches "could have performed better", as their noise is larger. On 150 rows
of the mixture the 128 chains make 5,000 steps of one size, at temperature 1; only the rows of a
minibatch differ. sgld_barriers.csv has the share of chains that have been in the other mode, and
the variance of b of those that have not, over the posterior's in that mode: what crosses also
widens. The claim is that with 3 rows a chain is at least twice as likely to cross as with 100. A
barrier that is much higher no size crosses in this time. Some five CPU minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import (
    Posterior,
    begin,
    exact_mode,
    logistic_posterior,
    posterior_of,
)
from skbayes_sg import diagnostics, theory
from skbayes_sg.chains.run import Length, iterate_steps, run_chain
from skbayes_sg.linalg.scores import Factor, Scores
from skbayes_sg.models import Linear, Model
from skbayes_sg.samplers import HMC, SGFS, SGLD, PolynomialDecay
from skbayes_sg.samplers.schedules import Schedule, value_at

BATCH, N_CHAINS, BURN_IN, N_STEPS, THIN = 40, 48, 3000, 60_000, 10
ALPHAS = (0.0, 1.0, 3.0, 10.0)
TWO_CHAINS, TWO_STEPS, TWO_BATCH = 128, 40_000, 50
HOT = 30.0
N, D, NEAR_BATCH = 2000, 3, 20  # of the regression
NEAR_STEP, NEAR_STEPS, NEAR_THIN = 2e-5, 300_000, 50
DECREASING = PolynomialDecay(NEAR_STEP * 100**0.55, 100.0, 0.55)
SIZES, BARRIER_ROWS = (3, 10, 30, 100), 150  # of minibatches that cross, and of the mixture then
BARRIER_STEP, BARRIER_STEPS, BARRIER_THIN = 15.0, 5_000, 10  # the step in units of that above


# -- SGFS on a skewed posterior -----------------------------------------------------------------


@dataclass(frozen=True)
class Growing:
    """alpha(t) under which the step, in proportion to 1 / (1 + alpha^2), is (1 + t / b)^(-1/2)."""

    b: float = 1000.0

    def __call__(self, t: int) -> float:
        """Alpha at step t."""
        return float(np.sqrt((1 + t / self.b) ** 0.5 - 1))


def few_events() -> Posterior:
    """The skewed posterior."""
    rng = np.random.default_rng(0)
    X = np.exp(rng.standard_normal((400, 14)))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    z = X @ rng.standard_normal(14) - 4.0
    y = np.where(z + rng.logistic(size=400) > 0, 1.0, -1.0)
    return logistic_posterior(X, y, 0.1)


class Reference:
    """Mean and covariance by HMC, and how far its two halves differ (E1, E2)."""

    def __init__(self, posterior: Posterior) -> None:
        mode, Lam = exact_mode(posterior)
        self.mode, self.laplace = mode[0], np.linalg.inv(Lam)
        state = begin(HMC(), posterior, np.repeat(mode, 64, axis=0), seed=1)
        draws = run_chain(HMC(), posterior, state, Length(12_000, 500)).draws
        flat = draws.reshape(-1, posterior.dim)
        self.mean, self.cov = flat.mean(axis=0), np.cov(flat.T)
        parts = [part.reshape(-1, posterior.dim) for part in (draws[:32], draws[32:])]
        means, covs = [p.mean(axis=0) for p in parts], [np.cov(p.T) for p in parts]
        self.halves = (
            diagnostics.mean_error(*means),
            diagnostics.covariance_error(*covs),
        )
        self.skewness = float(
            np.abs(((flat - self.mean) ** 3).mean(axis=0) / flat.std(axis=0) ** 3).max()
        )


class Path:
    """Weighted moments of each chain at some times, and their errors.

    late : whether the average is that of the second half of the draws so far
    """

    def __init__(
        self, draws: NDArray, weights: NDArray, reference: Reference, late: bool = False
    ) -> None:
        self.reference = reference
        self.ends = np.unique(np.geomspace(20, draws.shape[1], 30).astype(int))
        self.passes = (BURN_IN + self.ends * THIN) * BATCH / 400
        x = draws - reference.mean
        self.means, self.covs = [], []
        for end in self.ends:
            part = slice(end // 2 if late else 0, end)
            w = weights[part] / weights[part].sum()
            weighted = x[:, part] * w[:, None]
            self.means.append(weighted.sum(axis=1))
            centre = self.means[-1].mean(axis=0)
            second = np.swapaxes(weighted, 1, 2) @ x[:, part]
            self.covs.append(second - np.outer(centre, centre))

    def errors(self, at: int, weights: NDArray | None = None) -> tuple[NDArray, NDArray]:
        """E1 and E2 at a time, of means over chains, with weights (resamples, chains)."""
        n = len(self.means[at])
        w = np.full((1, n), 1 / n) if weights is None else weights
        mean, cov = w @ self.means[at], np.tensordot(w, self.covs[at], 1) - self.reference.cov
        e1 = np.abs(mean).sum(axis=1) / np.abs(self.reference.mean).sum()
        return e1, np.abs(cov).sum(axis=(1, 2)) / np.abs(self.reference.cov).sum()

    def standard_errors(self, at: int) -> tuple[float, float]:
        """Of E1 and E2, by a bootstrap over the chains."""
        n = len(self.means[at])
        counts = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=500)
        e1, e2 = self.errors(at, counts / n)
        return float(e1.std()), float(e2.std())


def sgfs_draws(alpha: Schedule, posterior: Posterior) -> tuple[NDArray, NDArray]:
    """Draws of chains from zero, and their weights: the steps, up to a factor."""
    sampler = SGFS(alpha, batch_size=BATCH)
    state = begin(sampler, posterior, np.zeros((N_CHAINS, posterior.dim)), seed=2)
    length = Length((N_STEPS - BURN_IN) // THIN, BURN_IN, THIN)
    draws = run_chain(sampler, posterior, state, length).draws
    times = BURN_IN + THIN * np.arange(draws.shape[1])
    return draws, np.array([1 / (1 + value_at(alpha, t, "alpha") ** 2) for t in times])


def sgfs_paths(posterior: Posterior, reference: Reference) -> dict[str, Path]:
    """All settings."""
    paths = {}
    for alpha in ALPHAS:
        paths[f"alpha = {alpha:g}"] = Path(*sgfs_draws(alpha, posterior), reference)
    found = sgfs_draws(Growing(), posterior)
    paths["annealed"] = Path(*found, reference, late=True)
    return paths | {"annealed, all draws": Path(*found, reference)}


def approach(posterior: Posterior, reference: Reference) -> tuple[NDArray, NDArray]:
    """Passes, and the log posterior below its maximum, of annealed chains from zero."""
    sampler, gaps = SGFS(Growing(), batch_size=BATCH), []
    best = posterior.log_prob(reference.mode[None])[0]
    state = begin(sampler, posterior, np.zeros((N_CHAINS, posterior.dim)), seed=2)
    for _ in range(300):
        gaps.append(np.median(best - posterior.log_prob(state.theta)))
        for _ in iterate_steps(sampler, posterior, state, 1):
            pass
    return np.arange(300) * BATCH / 400, np.array(gaps)


def table(paths: dict[str, Path]) -> list[dict]:
    """Errors early and late."""
    rows = []
    for label, path in paths.items():
        early = int(np.searchsorted(path.passes, 600))
        for at in (early, len(path.ends) - 1):
            (e1, e2), se = path.errors(at), path.standard_errors(at)
            row = {"setting": label, "passes of each chain": float(path.passes[at])}
            rows.append(row | {"E1": e1[0], "E1 se": se[0], "E2": e2[0], "E2 se": se[1]})
    return rows


def sgfs_claims(rows: list[dict]) -> list[Claim]:
    """Early better than a large alpha, late better than a small one and as good as the best."""
    early = {row["setting"]: row for row in rows[::2]}
    late = {row["setting"]: row for row in rows[1::2]}
    found = []
    for error in ("E1", "E2"):
        ours, slow = early["annealed"][error], early["alpha = 10"][error]
        found.append(Claim(f"early: {error} of annealed, of alpha = 10", ours, high=slow))
        ours, fast, se = late["annealed"], late["alpha = 0"], f"{error} se"
        margin = 3 * np.hypot(ours[se], fast[se])
        sentence = f"late: {error} of annealed, of alpha = 0 less 3 se"
        found.append(Claim(sentence, ours[error], high=fast[error] - margin))
        best = min((late[f"alpha = {a:g}"] for a in ALPHAS), key=lambda row: row[error])
        margin = 3 * np.hypot(ours[se], best[se])
        sentence = f"late: {error} of annealed, of {best['setting']} (the best) and 3 se"
        found.append(Claim(sentence, ours[error], high=best[error] + margin))
    return found


# -- SGLD near one mode -------------------------------------------------------------------------


def regression() -> tuple[Posterior, NDArray, NDArray]:
    """The posterior, its mean (1, D) and its precision."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((N, D))
    X[:, 1] += X[:, 0]
    y = X @ np.ones(D) + rng.standard_normal(N)
    posterior = posterior_of(Linear(D, fit_intercept=False, noise_variance=1.0), X, y, 1.0)
    Lam = X.T @ X + np.eye(D)
    return posterior, np.linalg.solve(Lam, X.T @ y)[None], Lam


def of_steps(label: str, step, given: tuple[Posterior, NDArray, NDArray]) -> list[dict]:
    """Variance ratios of chains with constant or decreasing steps, by part of the run."""
    posterior, mean, Lam = given
    sampler = SGLD(step, batch_size=NEAR_BATCH)
    state = begin(sampler, posterior, np.repeat(mean, TWO_CHAINS, axis=0), seed=1)
    chain = run_chain(sampler, posterior, state, Length(NEAR_STEPS // NEAR_THIN, thin=NEAR_THIN))
    values, axes = np.linalg.eigh(Lam)
    each = (((chain.draws - mean) @ axes) ** 2 * values).mean(axis=2)
    X, y = posterior.data.X, posterior.data.y
    count = each.shape[1]
    parts = {
        "first tenth": slice(0, count // 10),
        "last tenth": slice(-count // 10, None),
        "all, weighted": slice(0, count),
    }
    rows = []
    for part, chosen in parts.items():
        weights = chain.weights[chosen] / chain.weights[chosen].sum()
        of_chain = each[:, chosen] @ weights
        at = np.arange(count)[chosen] * NEAR_THIN
        eta = float(np.mean([step(t) for t in at])) if callable(step) else step
        row = {"steps": label, "draws": part, "mean step": eta}
        row |= {"variance ratio": float(of_chain.mean())}
        row |= {"se": float(of_chain.std(ddof=1) / np.sqrt(TWO_CHAINS))}
        if not callable(step) or part == "last tenth":  # elsewhere steps change while chains settle
            law = partial(theory.sgld_cov, step_size=eta)
            cov = law(*theory.lsq_noise(X, y, law, NEAR_BATCH, False))
            row["theory"] = float(np.sum(Lam * cov) / D)
        rows.append(row)
    return rows


def near_one_mode(report: Report) -> None:
    """Constant and decreasing steps."""
    given = regression()
    rows = [*of_steps("constant", NEAR_STEP, given), *of_steps("decreasing", DECREASING, given)]
    z = [(row["variance ratio"] - row["theory"]) / row["se"] for row in rows if "theory" in row]
    constant, decreasing = rows[1], rows[4]
    claims = [
        Claim("variance ratio less theory's, in se", z, -5, 5),
        Claim("constant step: variance ratio at the end", constant["variance ratio"], low=2),
        Claim("decreasing step: variance ratio at the end", decreasing["variance ratio"], 0.9, 1.1),
    ]
    report.save(rows, claims, name="sgld_decreasing")


# -- SGLD between two modes ---------------------------------------------------------------------


class Mixture(Model):
    """x ~ N(a, s^2) / 2 + N(a + b, s^2) / 2 with s^2 = 2; theta = (a, b) (Welling & Teh 2011)."""

    variance = 2.0

    def __init__(self) -> None:
        self.shapes = {"theta": (2,)}

    def init(self, rng: np.random.Generator) -> NDArray:
        """Zero."""
        return np.zeros((1, 2))

    def _distances(self, theta: NDArray, X: NDArray) -> tuple[NDArray, NDArray]:
        first = X[..., 0] - theta[:, :1]
        return first, first - theta[:, 1:]

    def predict(self, theta: NDArray, X: NDArray) -> NDArray:
        """Nothing to predict."""
        return np.zeros((len(theta), 1, X.shape[-2]))

    def log_likelihood(self, theta: NDArray, X: NDArray, y: NDArray) -> NDArray:
        """Up to a constant, (chains, n)."""
        squares = np.square(self._distances(theta, X)) / (2 * self.variance)
        return logsumexp(-squares, axis=0)

    def scores(self, theta: NDArray, X: NDArray, y: NDArray) -> Scores:
        """Distances to the two means, by the probabilities of the components."""
        first, second = self._distances(theta, X)
        of_second = expit((first**2 - second**2) / (2 * self.variance))
        by_b = of_second * second
        left = np.stack([(1 - of_second) * first + by_b, by_b], axis=1) / self.variance
        return Scores(Factor(left, None))

    def fisher(self, theta: NDArray, X: NDArray) -> Scores:
        """Not known in closed form, and not needed by SGLD with a given step."""
        raise NotImplementedError


@dataclass(frozen=True)
class Cooling:
    """Temperature from `HOT` to 1, geometrically, in `length` steps; then 1."""

    length: int

    def __call__(self, t: int) -> float:
        """Temperature at step t."""
        return float(HOT ** max(0.0, 1 - t / self.length))


class TwoModes:
    """The posterior, its modes and masses on a grid, and a step for its chains."""

    def __init__(self, n_rows: int = 300) -> None:
        rng = np.random.default_rng(0)
        noise = np.sqrt(Mixture.variance) * rng.standard_normal(n_rows)
        x = noise + 2.0 * (rng.random(n_rows) < 0.5)
        self.posterior = posterior_of(Mixture(), x[:, None], np.zeros(n_rows), 0.1)
        a, b = np.meshgrid(np.linspace(-2, 4, 121), np.linspace(-4, 4, 161), indexing="ij")
        points = np.column_stack([a.ravel(), b.ravel()])
        log_p = self.posterior.log_prob(points)
        p = np.exp(log_p - log_p.max())
        p /= p.sum()
        positive = points[:, 1] > 0
        self.mass = float(p[positive].sum())
        self.minor = points[np.where(positive, -np.inf, log_p).argmax()]
        self.barrier = float(log_p.max() - log_p[np.isclose(points[:, 1], 0.0)].max())
        w, inside = p[positive] / self.mass, points[positive, 1]
        self.variance = float(w @ (inside - w @ inside) ** 2)
        scores = self.posterior.scores(self.minor[None], slice(None))
        I_N = n_rows * scores.covariance(self.posterior.layout("full")).dense()
        self.step = 0.2 / float(np.linalg.eigvalsh(n_rows / TWO_BATCH * I_N).max())

    def run(self, temperature: Schedule) -> NDArray:
        """b of all chains, (chains, draws), from the minor mode."""
        sampler = SGLD(self.step, temperature, batch_size=TWO_BATCH)
        theta = np.repeat(self.minor[None], TWO_CHAINS, axis=0)
        state = begin(sampler, self.posterior, theta, seed=4)
        parts = iterate_steps(sampler, self.posterior, state, TWO_STEPS, range(0, TWO_STEPS, 40))
        return np.concatenate([part.draws[..., 1].copy() for part in parts]).T

    def row(self, label: str, b: NDArray) -> dict:
        """Share of the mode b > 0 at the end, and variance of b in it in the last quarter."""
        late = b[:, -b.shape[1] // 4 :]
        there = late[(late > 0).all(axis=1)]
        row: dict = {"temperature": label, "share of b > 0": float((b[:, -1] > 0).mean())}
        row |= {"posterior mass": self.mass, "barrier": self.barrier}
        if len(there):
            each = ((there - there.mean()) ** 2).mean(axis=1) / self.variance
            row["variance in the mode over exact"] = float(each.mean())
            row["its se"] = float(each.std() / np.sqrt(len(each)))
        return row

    def crossed(self, size: int) -> dict:
        """Chains that leave the minor mode with so many rows of a minibatch."""
        sampler = SGLD(BARRIER_STEP * self.step, batch_size=size)
        theta = np.repeat(self.minor[None], TWO_CHAINS, axis=0)
        state = begin(sampler, self.posterior, theta, seed=size)
        length = Length(BARRIER_STEPS // BARRIER_THIN, thin=BARRIER_THIN)
        b = run_chain(sampler, self.posterior, state, length).draws[..., 1]
        crossed = (b < 0 if self.minor[1] > 0 else b > 0).any(axis=1)
        row = {"rows of a minibatch": size, "share that crossed": float(crossed.mean())}
        stayed = b[~crossed]
        if len(stayed):
            row["variance in the mode over exact"] = float(stayed.var() / self.variance)
        return row | {"step": BARRIER_STEP * self.step}

    def noise(self) -> list[dict]:
        """Gradient noise over injected noise of a step, as the step decreases."""
        decay = PolynomialDecay(self.step * 30 * 50**0.6, 50.0, 0.6)
        sampler = SGLD(decay, batch_size=TWO_BATCH)
        theta = np.repeat(self.minor[None], TWO_CHAINS, axis=0)
        state, rows = begin(sampler, self.posterior, theta, seed=5), []
        for n_steps in (1, 9, 90, 900, 9000, 30_000):
            for _ in iterate_steps(sampler, self.posterior, state, n_steps):
                pass
            draw = self.posterior.minibatches(
                TWO_BATCH, False, np.random.default_rng(6), TWO_CHAINS
            )
            some = [
                self.posterior.gradient(
                    state.theta, self.posterior.scores(state.theta, draw.draw())
                )
                for _ in range(20)
            ]
            eta = decay(state.t)
            share = eta * np.var(some, axis=0, ddof=1).mean() / 2
            rows.append({"step": state.t, "eta": eta, "gradient noise over injected": float(share)})
        return rows


def sgld_claims(two: TwoModes, rows: list[dict], noise: list[dict]) -> list[Claim]:
    """Both modes with annealing, one without; two phases."""
    constant, cooled = rows
    margin = 3 * np.sqrt(two.mass * (1 - two.mass) / TWO_CHAINS)
    se, share = 3 * cooled["its se"], "gradient noise over injected"
    return [
        Claim("temperature 1: share of chains that cross", constant["share of b > 0"], high=0.0),
        Claim(
            "cooled: share of the other mode, its posterior mass",
            cooled["share of b > 0"],
            two.mass - margin,
            two.mass + margin,
        ),
        Claim(
            "cooled: variance in the mode, at most 10 % too large at this step",
            cooled["variance in the mode over exact"],
            1 - se,
            1.1 + se,
        ),
        Claim("first step: gradient noise over injected", noise[0][share], low=1.0),
        Claim("last step: gradient noise over injected", noise[-1][share], high=0.1),
    ]


# -- the figure ---------------------------------------------------------------------------------


def figure(
    paths: dict[str, Path], start: tuple, b: dict[str, NDArray], noise: list[dict]
) -> Figure:
    """Three phases of SGFS above; SGLD between two modes below."""
    fig = Figure(figsize=(12, 7.5), layout="constrained", dpi=110)
    (burn_in, first, second), (constant, cooled, phases) = fig.subplots(2, 3)
    burn_in.semilogy(*start, color="k")
    level = 7.5 + 3 * np.sqrt(7.5)
    burn_in.axhline(level, color="0.5", ls="--", label="of a draw, mean + 3 sd")
    burn_in.set(title="SGFS, phase 1: an optimiser", xlabel="passes over the data")
    burn_in.set(ylabel="log posterior below its maximum (median chain)")
    burn_in.legend(fontsize=8)
    for ax, which, name in ((first, 0, "E1, mean"), (second, 1, "E2, covariance")):
        for i, (label, path) in enumerate(paths.items()):
            style: dict = {"color": f"C{i}", "lw": 1.2}
            if label.startswith("annealed"):
                style = {"color": "k"} | ({"lw": 2} if label == "annealed" else {"ls": ":"})
            errors = [path.errors(at)[which][0] for at in range(len(path.ends))]
            ax.loglog(path.passes, errors, label=label, **style)
        ax.set(title=f"SGFS, phases 2 and 3: {name}", xlabel="passes of each chain")
        ticks = [300, 600, 1000, 2000, 4000]
        ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_minor_formatter(NullFormatter())
        ax.legend(fontsize=8)
    steps = np.arange(b["constant"].shape[1]) * 40
    for ax, label in ((constant, "constant"), (cooled, "cooled")):
        ax.plot(steps, b[label][:20].T, lw=0.4)
        title = (
            "temperature 1" if label == "constant" else f"temperature {HOT:g} to 1 in 20,000 steps"
        )
        ax.set(title=f"SGLD, {title}", xlabel="steps", ylabel="b of 20 chains", ylim=(-6.5, 6.5))
    x = [row["step"] for row in noise]
    phases.loglog(x, [row["gradient noise over injected"] for row in noise], "o-")
    phases.axhline(1, color="0.5", ls="--")
    phases.set(title="SGLD, decreasing step: two phases", xlabel="steps")
    phases.set(ylabel="gradient noise over injected, variances")
    fig.suptitle(
        "Above: skewed logistic posterior, SGFS (Ahn et al. sec. 6), reference HMC. Below: "
        "two modes, SGLD (handout, Rem. 26, 30)"
    )
    return fig


def main(report: Report) -> None:
    """SGLD near one mode and over a barrier, then what the figure has."""
    near_one_mode(report)
    low = TwoModes(BARRIER_ROWS)
    crossed = [low.crossed(size) for size in SIZES]
    few, many = (crossed[at]["share that crossed"] for at in (0, -1))
    claim = Claim("share that crossed with 3 rows, twice that with 100", few, low=2 * many)
    report.save(crossed, [claim], name="sgld_barriers")
    posterior = few_events()
    reference = Reference(posterior)
    print(f"largest skewness of a parameter {reference.skewness:.2f}")
    print("halves of the reference differ by E1 {:.4f}, E2 {:.4f}".format(*reference.halves))
    paths = sgfs_paths(posterior, reference)
    rows = table(paths)
    laplace = {
        "E1": diagnostics.mean_error(reference.mode, reference.mean),
        "E2": diagnostics.covariance_error(reference.laplace, reference.cov),
    }
    two = TwoModes()
    b = {"constant": two.run(1.0), "cooled": two.run(Cooling(TWO_STEPS // 2))}
    shares = [two.row("1", b["constant"]), two.row(f"{HOT:g} to 1", b["cooled"])]
    noise = two.noise()
    report.show(noise, "variances of a step of SGLD")
    report.save(shares, sgld_claims(two, shares, noise), name="annealing_two_modes")
    picture = figure(paths, approach(posterior, reference), b, noise)
    report.save(
        [*rows, {"setting": "Laplace", **laplace}], sgfs_claims(rows), {"annealing": picture}
    )


if __name__ == "__main__":
    benchmark(main)
