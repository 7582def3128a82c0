"""Ahn, Korattikara & Welling (2012), section 5.2.2: a neural network on all ten MNIST digits.

    python -m benchmarks.papers.ahn_mlp [--full]

Data, model and minibatch are the paper's: 60,000 rows, 20 random projections standardised, 30
logistic hidden units (940 parameters), n = 2,000, prior precision .001. Every setting has four
chains from random weights of their own, as the estimator has: a network has many modes, and a
chain sees one. By default each makes 600 passes over the data, about ten minutes in all on two
cores; --full makes 3,000. The paper prints no length, but its schedule, from 1e-3 to 1e-7, has that
ratio after ten million steps only: 330,000 passes, some 25 CPU hours for each chain.

The test error on the 10,000 test rows is that of the running posterior average: class
probabilities averaged over the second half of the draws so far of all chains, with the step sizes
as weights where these decrease; passes are those of one chain. SGFS learns its matrices during
the first half of the run. SGLD has epsilon = a / (1000 + t), with a = 1 (the paper's, delta = 1)
and four others; half of epsilon multiplies the gradient. SGD has five constant steps, and the same
schedule without the noise. Of each the setting with the smallest validation error is taken: in a
sixth of the passes, trained on 50,000 rows, on the other 10,000; of the last iterate for SGD, of
the average for SGLD (the rows "validation"). The test set chooses nothing. SGFS is judged at every
alpha.

From random weights SGFS-f with alpha = 2 is thrown, in its first steps, to where the hidden units
are saturated (the row "cold" shows it, a short run outside the comparison), so alpha starts at 20
and is annealed to 2 within 15 passes. SGFS-d needs no such help, but at alpha = 0 the spectral
radius of its step is above 1 and single draws leap (presumably the bounded gradients of the
network bring them back); alpha = 1 is stable.

The table has test errors (of the running average over all chains and over one; of single draws:
the mean over chains of the last, the one with the least training error, and the luckiest of all,
which the test set itself picks), passes needed to SGLD's final error, and the largest spectral
radius of the chains (0 where the step decreases). The figure is the right half of the paper's
Figure 3. Most of what averages gain over single draws is the four modes: the average over four
paths of SGD, no posterior, is as good as SGLD's. What does not come out in 600 passes: that SGFS
comes to SGLD's final error in half of its passes. SGFS-d at alpha = 0 takes as many as SGLD, SGFS-f
two thirds, and SGFS-d with alpha = 1 and 2 more.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from matplotlib.figure import Figure
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.common.datasets import mnist
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import Posterior, begin, full_path, posterior_of
from benchmarks.common.timing import Clock
from skbayes_sg import BayesianMLPClassifier
from skbayes_sg.chains.run import radius
from skbayes_sg.models import MLP
from skbayes_sg.samplers import SGD, SGFS, SGLD, PolynomialDecay

BATCH = 2000
STEPS_PER_PASS = 60_000 // BATCH
PRIOR_PRECISION = 0.001
N_CHAINS = 4
WINDOWS = 100
"""Of a path, for the running average."""
SGLD_SCALES = (3.0, 1.0, 0.3, 0.1, 0.03)
SGD_STEPS = (1e-5, 2e-5, 3e-5, 6e-5, 1e-4)
VALIDATION_SHARE = 1 / 6
"""Part of the passes given to the runs that choose the steps of SGD and SGLD."""
COLD_SHARE = 0.05
"""Part of the passes given to the run that fails."""


def projected() -> tuple[tuple[NDArray, NDArray], tuple[NDArray, NDArray]]:
    """Training and test set: 20 Gaussian projections of the pixels, standardised by the former."""
    (X, y), (X_test, y_test) = mnist(), mnist("test")
    projection = np.random.default_rng(0).normal(0.0, np.sqrt(1 / 20), (784, 20))
    X, X_test = X / 255.0 @ projection, X_test / 255.0 @ projection
    mean, scale = X.mean(axis=0), X.std(axis=0)
    train, test = (((part - mean) / scale).astype(np.float32) for part in (X, X_test))
    return (train, y), (test, y_test)


@dataclass(frozen=True)
class Annealed:
    """alpha(t) = 20 / (1 + t / 50) down to `final`."""

    final: float

    def __call__(self, t: int) -> float:
        """Alpha at step t."""
        return max(self.final, 20.0 / (1 + t / 50))


def stepped() -> list[tuple[str, str, object]]:
    """Family, label, sampler: SGD and SGLD, whose steps are chosen by validation."""
    found = [("SGD", f"SGD {eta:g}", SGD(step_size=eta, batch_size=BATCH)) for eta in SGD_STEPS]
    decay = PolynomialDecay(0.5, 1000.0, 1.0)
    found.append(("SGD", "SGD a=1", SGD(step_size=decay, batch_size=BATCH)))
    for a in SGLD_SCALES:
        decay = PolynomialDecay(a / 2, 1000.0, 1.0)
        found.append(("SGLD", f"SGLD a={a:g}", SGLD(step_size=decay, batch_size=BATCH)))
    return found


def scored() -> list[tuple[str, str, object]]:
    """Family, label, sampler: SGFS."""
    found = []
    for a in (0, 1, 2):
        diag = SGFS(alpha=float(a), structure="diag", batch_size=BATCH, refresh_every=10)
        found.append((f"SGFS-d {a}", f"SGFS-d {a}", diag))
    full = {"structure": "full", "batch_size": BATCH, "refresh_every": STEPS_PER_PASS}
    found.append(("SGFS-f", "SGFS-f 2", SGFS(alpha=Annealed(2.0), **full)))
    found.append(("cold", "SGFS-f 2 cold", SGFS(alpha=2.0, **full)))
    return found


class Path(NamedTuple):
    """Points of one chain, one a pass from its first step on."""

    draws: NDArray
    weights: NDArray
    radius: float


def path_of(sampler, posterior: Posterior, n_passes: int, seed: int) -> Path:
    """A chain from random weights; the first half is its burn-in."""
    n_steps = n_passes * STEPS_PER_PASS
    start = posterior.model.init(np.random.default_rng(seed))
    with threadpool_limits(1, "blas"):
        state = begin(sampler, posterior, start, 52 + seed)
        draws, weights = full_path(sampler, posterior, state, n_steps, STEPS_PER_PASS)
        found = radius(sampler, posterior, state)
    return Path(draws[:, 0].astype(np.float32), weights, found)


def predictions(model: MLP, path: Path, X: NDArray, y: NDArray) -> tuple[list[float], NDArray]:
    """Errors of single draws, and weighted sums of their probabilities over each window."""
    single = []
    sums = np.zeros((WINDOWS, 10, len(X)), np.float32)
    with threadpool_limits(1, "blas"):
        for i, (theta, weight) in enumerate(zip(path.draws, path.weights, strict=True)):
            p = model.predict(theta[None], X)[0]
            single.append(_error(p, y))
            sums[i * WINDOWS // len(path.draws)] += weight * p
    return single, sums


class Errors:
    """Test or training errors of single draws and of the running average over all chains."""

    def __init__(self, model: MLP, paths: list[Path], X: NDArray, y: NDArray) -> None:
        each = (delayed(predictions)(model, path, X, y) for path in paths)
        found = Parallel(n_jobs=-1)(each)
        self.single = np.array([single for single, _ in found])
        sums = sum(sums for _, sums in found)
        ends = range(1, WINDOWS + 1)
        self.passes = len(paths[0].draws) / WINDOWS * np.array(ends)
        self.running = [_error(sums[end // 2 : end].sum(axis=0), y) for end in ends]

    def passes_to(self, level: float) -> float:
        """Passes until the running average first has this error; NaN if it never has."""
        reached = (p for p, e in zip(self.passes, self.running, strict=True) if e <= level)
        return float(next(reached, np.nan))


def _error(p: NDArray, y: NDArray) -> float:
    return float((p.argmax(axis=0) != y).mean())


def figures(paths: list[Path], train: Errors, test: Errors, one: Errors, seconds: float) -> dict:
    """One line of the table; `one` are the test errors of the first chain."""
    return {
        "average": test.running[-1],
        "average of one chain": one.running[-1],
        "last draw": float(test.single[:, -1].mean()),
        "best by training": float(test.single.ravel()[train.single.argmin()]),
        "best draw": float(test.single.min()),
        "train average": train.running[-1],
        "train last": float(train.single[:, -1].mean()),
        "passes": len(paths[0].draws),
        "seconds": seconds,
        "largest |theta|": max(float(np.abs(path.draws[-1]).max()) for path in paths),
        "radius": max(path.radius for path in paths),
    }


def chosen(rows: list[dict]) -> dict[str, dict]:
    """The line of each family, but for the run that fails and those of the validation."""
    return {row["family"]: row for row in rows if row["family"] not in ("cold", "validation")}


def validated(X: NDArray, y: NDArray, n_passes: int) -> tuple[list, list[dict]]:
    """The settings of SGD and SGLD with the least validation error, and the errors of all."""
    half = n_passes // 2
    run = {"burn_in": half * STEPS_PER_PASS, "n_draws": half, "thin": STEPS_PER_PASS}
    fixed = {"prior_precision": PRIOR_PRECISION, "temperature": 1.0, "n_chains": 1}
    best: dict[str, tuple[float, tuple]] = {}
    rows = []
    for family, label, sampler in stepped():
        model = BayesianMLPClassifier((30,), sampler=sampler, random_state=0, **fixed, **run)
        model.fit(X[10_000:], y[10_000:])
        if family == "SGD":
            p = model.predict_draws(X[:10_000], kind="mean")[-1]
        else:
            p = model.predict_proba(X[:10_000])
        error = _error(p.T, y[:10_000])
        rows.append({"family": "validation", "setting": label, "validation error": error})
        if family not in best or error < best[family][0]:
            best[family] = error, (family, label, sampler)
        print(f"{label}: validation error {error:.4f}", flush=True)
    return [setting for _, setting in best.values()], rows


def claims(rows: list[dict]) -> list[Claim]:
    """What the paper's figure shows."""
    best = chosen(rows)
    sgd, sgld = best["SGD"], best["SGLD"]
    final = {name: row["last draw" if name == "SGD" else "average"] for name, row in best.items()}
    ours = [name for name in final if name != "SGD"]
    found = [Claim(f"{name}: error", error, high=0.22) for name, error in final.items()]
    for name in ours:
        row, average, last = best[name], final[name], final["SGD"]
        fit, margin = row["best by training"], row["last draw"] + 0.005
        found += [
            Claim(f"{name}: average, last draw + .005", average, high=margin),
            Claim(f"{name}: average, SGD's last + .005", average, high=last + 0.005),
            Claim(f"{name}: average, SGD's last", average, high=last),
            Claim(f"{name}: average, draw with the least training error", average, high=fit),
            Claim(f"{name}: average, best single draw", average, high=row["best draw"]),
        ]
    half = sgld["passes to SGLD"] / 2
    for name in ours:
        if name != "SGLD":
            passes = best[name]["passes to SGLD"]
            found.append(Claim(f"{name}: passes to SGLD's final error", passes, high=half))
    lucky = sgd["best draw"]
    return [*found, Claim("SGFS-f: average, best draw of SGD", final["SGFS-f"], high=lucky)]


def figure_3(curves: dict[str, Errors], radius: dict[str, float]) -> Figure:
    """Test error of the running average against passes; thin: of the single draws."""
    fig = Figure(figsize=(8, 6), layout="constrained", dpi=110)
    ax = fig.subplots()
    dashes = ["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1))]
    for i, (label, errors) in enumerate(curves.items()):
        x, color = np.arange(errors.single.shape[1]), f"C{i}"
        ax.loglog(x, errors.single[0], lw=0.3, alpha=0.5, color=color)
        name = label + (", alpha annealed from 20" if label == "SGFS-f 2" else "")
        name += ", unstable step" if radius[label] >= 1 else ""
        style = {"ls": dashes[i % len(dashes)], "color": color}
        ax.loglog(errors.passes, errors.running, lw=2, label=name, **style)
    ax.set(xlabel="passes over the data", ylabel="test error", xlim=(1, None), ylim=(0.165, 0.6))
    ticks = [0.17, 0.18, 0.2, 0.25, 0.3, 0.4, 0.6]
    ax.set_yticks(ticks, [f"{tick:.2f}" for tick in ticks], minor=False)
    ax.minorticks_off()
    ax.legend()
    ax.set_title(
        "MNIST, 20-30-10 network (Ahn et al. Fig. 3 right)\n"
        "running averages over four chains; thin: single draws of one chain"
    )
    return fig


def main(report: Report, full: bool) -> None:
    """Every setting."""
    n_passes = 3000 if full else 600
    (X, y), test = projected()
    model = MLP(20, 10, (30,))
    posterior = posterior_of(model, X, model.encode(y, X.dtype), PRIOR_PRECISION)
    warnings.simplefilter("ignore")  # one chain, and decreasing steps
    best, rows = validated(X, y, int(n_passes * VALIDATION_SHARE))
    curves = {}
    for family, label, sampler in [*best, *scored()]:
        cold = family == "cold"
        length, seeds = int(n_passes * COLD_SHARE) if cold else n_passes, 1 if cold else N_CHAINS
        each = (delayed(path_of)(sampler, posterior, length, seed) for seed in range(seeds))
        with Clock() as clock:
            paths = Parallel(n_jobs=-1)(each)
        train = Errors(model, paths, X[:10_000], y[:10_000])
        curves[label], one = Errors(model, paths, *test), Errors(model, paths[:1], *test)
        found = figures(paths, train, curves[label], one, clock.seconds)
        rows.append({"family": family, "setting": label, **found})
        print(f"{label}: {clock.seconds:.0f} s", flush=True)
    taken = chosen(rows)
    for row in rows:
        if row["setting"] in curves and row["family"] != "validation":
            level = curves[row["setting"]].passes_to(taken["SGLD"]["average"])
            row["passes to SGLD"] = level
    shown = {row["setting"]: curves[row["setting"]] for row in taken.values()}
    figure = figure_3(shown, {row["setting"]: row["radius"] for row in taken.values()})
    report.save(rows, claims(rows), {"ahn_mlp": figure})


if __name__ == "__main__":
    benchmark(main, full={"action": "store_true", "help": "3,000 passes instead of 600"})
