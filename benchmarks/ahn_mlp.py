"""Ahn, Korattikara & Welling (2012), section 5.2.2: a neural network on all ten MNIST digits.

    python benchmarks/ahn_mlp.py [--full]

The paper's data, model and minibatch: 60,000 rows, 20 random projections standardised, 30 logistic hidden
units (940 parameters), n = 2,000, prior precision .001. Every setting has four chains from random weights of
their own, as the estimator has: a network has many modes, and a chain sees one. By default each makes 600 passes over
the data, about ten minutes in all on two cores; --full makes 3,000. The length of the paper's runs is not
printed there.

Test error on the 10,000 test rows of the running posterior average: class probabilities averaged over the
second half of the draws so far of all chains, with the step sizes as weights where these decrease; passes are those of
one chain. SGFS learns its matrices during the first half of the run. SGLD: epsilon = a / (1000 + t), with a = 1 (the
paper's: delta = 1, MATH E17) and smaller ones; half of epsilon multiplies the gradient. SGD: the same schedule without
the noise, and constant steps. Of SGD and SGLD the setting with the smallest training error is taken, on 10,000
rows; the test set chooses nothing. SGFS is judged at every alpha.

From random weights SGFS-f with alpha = 2 is thrown, in its first steps, to where the hidden units are saturated
(the row "cold" shows it, a short run outside the comparison), so alpha starts at 20 and is annealed to 2
within 15 passes. SGFS-d needs no such help, but at alpha = 0 the spectral radius of its step is above 1
and single draws leap (presumably the bounded gradients of the network bring them back); alpha = 1 is stable.

Prints test errors (of the running average; of single draws: the mean over chains of the last, the one with the least
training error, and the luckiest of all, which the test set itself picks), passes needed to SGLD's final error,
the largest spectral radius of the chains (0 where the step decreases), and the acceptance checks; writes a CSV and
the right half of the paper's Figure 3. Most of what averages gain over single draws is the four modes: the average
over four paths of SGD, no posterior, is as good as SGLD's. What does not come out in 600 passes: SGFS-d with alpha = 1
and 2 needs more than half of the passes in which SGLD comes to its final error.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from common import DATA, RESULTS, mnist, print_table, write_csv
from joblib import Parallel, delayed
from matplotlib.figure import Figure
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from skbayes_sg.chains import check_divergence
from skbayes_sg.models import MLP
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import SGD, SGFS, SGLD, PolynomialDecay

BATCH = 2000
STEPS_PER_PASS = 60_000 // BATCH
N_CHAINS = 4
WINDOWS = 100
"""Of a path, for the running average."""
SGLD_SCALES = (1.0, 0.3, 0.1)
SGD_STEPS = (1e-5, 3e-5, 1e-4)
COLD_SHARE = 0.05
"""Part of the passes given to the run that fails."""


def mnist_test() -> tuple[NDArray, NDArray]:
    """The 10,000 test digits and labels, from the data folder or OpenML."""
    if (DATA / "mnist.npz").exists():
        with np.load(DATA / "mnist.npz", allow_pickle=False) as archive:
            return archive["X_test"], archive["y_test"].astype(int)
    from sklearn.datasets import fetch_openml

    X, y = fetch_openml("mnist_784", version=1, as_frame=False, return_X_y=True)
    return X[60000:], y[60000:].astype(int)


def projected() -> tuple[tuple[NDArray, NDArray], tuple[NDArray, NDArray]]:
    """Training and test set: 20 Gaussian projections of the pixels, standardised as the training set is."""
    (X, y), (X_test, y_test) = mnist(), mnist_test()
    projection = np.random.default_rng(0).normal(0.0, np.sqrt(1 / 20), (784, 20))
    X, X_test = X / 255.0 @ projection, X_test / 255.0 @ projection
    mean, scale = X.mean(axis=0), X.std(axis=0)
    train, test = ((part - mean) / scale for part in (X, X_test))
    return (train.astype(np.float32), y.astype(int)), (test.astype(np.float32), y_test)


@dataclass(frozen=True)
class Annealed:
    """alpha(t) = 20 / (1 + t / 50) down to `final`."""

    final: float

    def __call__(self, t: int) -> float:
        """Alpha at step t."""
        return max(self.final, 20.0 / (1 + t / 50))


def settings() -> list[tuple[str, str, object]]:
    """Family, label, sampler."""
    sgd = [("SGD", f"SGD {eta:g}", SGD(step_size=eta, batch_size=BATCH)) for eta in SGD_STEPS]
    decay = PolynomialDecay(0.5, 1000.0, 1.0)
    sgd.append(("SGD", "SGD a=1", SGD(step_size=decay, batch_size=BATCH)))
    sgld = [
        ("SGLD", f"SGLD a={a:g}", SGLD(step_size=PolynomialDecay(a / 2, 1000.0, 1.0), batch_size=BATCH))
        for a in SGLD_SCALES
    ]
    diag = [
        (f"SGFS-d {a}", f"SGFS-d {a}", SGFS(alpha=float(a), structure="diag", batch_size=BATCH, refresh_every=10))
        for a in (0, 1, 2)
    ]
    full = {"structure": "full", "batch_size": BATCH, "refresh_every": STEPS_PER_PASS}
    return [
        *sgd,
        *sgld,
        *diag,
        ("SGFS-f", "SGFS-f 2", SGFS(alpha=Annealed(2.0), **full)),
        ("cold", "SGFS-f 2 cold", SGFS(alpha=2.0, **full)),
    ]


class Path(NamedTuple):
    """Points of one chain, one a pass from its first step on."""

    draws: NDArray
    weights: list[float]
    radius: float


def walk(sampler, posterior: Posterior, n_passes: int, seed: int) -> Path:
    """A chain from random weights, with what `run_chain` does to the sampler in burn-in."""
    n_steps = n_passes * STEPS_PER_PASS
    burn_in = n_steps // 2
    start = posterior.model.init(np.random.default_rng(seed))
    draws, weights = [], []
    with threadpool_limits(1, "blas"):
        state = sampler.init(posterior, start, np.random.Generator(np.random.SFC64(52 + seed)))
        for t in range(n_steps):
            if t in (burn_in // 8, burn_in // 4, burn_in // 2):
                sampler.restart(state, posterior)
            if t == burn_in:
                sampler.freeze(state, posterior)
            if t % STEPS_PER_PASS == 0:
                check_divergence(sampler, state, state.theta)
                draws.append(state.theta[0].astype(np.float32))
                weights.append(sampler.weight(state))
            sampler.step(state, posterior)
        return Path(np.array(draws), weights, sampler.spectral_radius(state, posterior))


def predictions(model: MLP, path: Path, X: NDArray, y: NDArray) -> tuple[list[float], NDArray]:
    """Errors of the single draws of a path, and weighted sums of their probabilities over each window."""
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
        found = Parallel(n_jobs=-1)(delayed(predictions)(model, path, X, y) for path in paths)
        self.single = np.array([single for single, _ in found])
        sums = sum(sums for _, sums in found)
        self.passes = len(paths[0].draws) / WINDOWS * np.arange(1, WINDOWS + 1)
        self.running = [_error(sums[(i + 1) // 2 : i + 1].sum(axis=0), y) for i in range(WINDOWS)]

    def passes_to(self, level: float) -> float:
        """Passes after which the running average is at this error for the first time; NaN if never."""
        return next((p for p, e in zip(self.passes, self.running, strict=True) if e <= level), np.nan)


def _error(p: NDArray, y: NDArray) -> float:
    return float((p.argmax(axis=0) != y).mean())


def figures(label: str, paths: list[Path], train: Errors, test: Errors, seconds: float) -> dict:
    """One line of the table."""
    return {
        "setting": label,
        "average": test.running[-1],
        "last draw": test.single[:, -1].mean(),
        "best by training": test.single.ravel()[train.single.argmin()],
        "best draw": test.single.min(),
        "train average": train.running[-1],
        "train last": train.single[:, -1].mean(),
        "passes": len(paths[0].draws),
        "seconds": seconds,
        "largest |theta|": max(float(np.abs(path.draws[-1]).max()) for path in paths),
        "radius": max(path.radius for path in paths),
    }


def chosen(rows: list[dict]) -> dict[str, dict]:
    """The line of each family with the least training error: of the last iterate for SGD, of the average else."""
    of_family: dict[str, dict] = {}
    for row in rows:
        if row["family"] == "cold":
            continue
        name = "train last" if row["family"] == "SGD" else "train average"
        best = of_family.get(row["family"])
        if best is None or row[name] < best[name]:
            of_family[row["family"]] = row
    return of_family


def acceptance(best: dict[str, dict]) -> list[tuple[str, bool]]:
    """MATH 7.6 and what the paper's figure shows."""
    samplers = [name for name in best if name.startswith("SGFS") or name == "SGLD"]
    sgd, sgld = best["SGD"], best["SGLD"]
    final = {name: best[name]["last draw" if name == "SGD" else "average"] for name in ("SGD", *samplers)}
    lines = [(f"{name}: error {error:.4f} <= .22", error <= 0.22) for name, error in final.items()]
    for name in samplers:
        row = best[name]
        average, last, fit, single = row["average"], row["last draw"], row["best by training"], row["best draw"]
        lines += [
            (f"{name}: average {average:.4f} <= last draw {last:.4f} + .005", average <= last + 0.005),
            (f"{name}: average {average:.4f} <= SGD's last {final['SGD']:.4f} + .005", average <= final["SGD"] + 0.005),
            (f"{name}: average {average:.4f} <= SGD's last {final['SGD']:.4f}", average <= final["SGD"]),
            (f"{name}: average {average:.4f} <= draw with the least training error {fit:.4f}", average <= fit),
            (f"{name}: average {average:.4f} <= best single draw {single:.4f}", average <= single),
        ]
    for name in samplers:
        if name != "SGLD":
            mine, half = best[name]["passes to SGLD"], sgld["passes to SGLD"] / 2
            lines.append((f"{name}: SGLD's final error after {mine:.0f} <= {half:.0f} passes", mine <= half))
    lines.append((f"SGFS-f: average <= best draw of SGD {sgd['best draw']:.4f}", final["SGFS-f"] <= sgd["best draw"]))
    return lines


def figure_3(curves: dict[str, Errors]) -> None:
    """Test error of the running average against passes; thin: of the single draws."""
    fig = Figure(figsize=(7.5, 5.5), layout="constrained")
    ax = fig.subplots()
    for i, (label, errors) in enumerate(curves.items()):
        ax.loglog(np.arange(errors.single.shape[1]), errors.single.T, color=f"C{i}", lw=0.3, alpha=0.4)
        ax.loglog(errors.passes, errors.running, color=f"C{i}", lw=1.8, label=label)
    ax.set(xlabel="passes over the data", ylabel="test error", xlim=(1, None), ylim=(0.17, 0.6))
    ax.set_yticks(
        [0.17, 0.18, 0.2, 0.25, 0.3, 0.4, 0.6], ["0.17", "0.18", "0.20", "0.25", "0.30", "0.40", "0.60"], minor=False
    )
    ax.minorticks_off()
    ax.legend()
    ax.set_title("MNIST, 20-30-10 network: running average, thin single draws (Ahn et al. Fig. 3)")
    fig.savefig(RESULTS / "ahn_mlp.png", dpi=110)


def main() -> None:
    """Run every setting, print, draw, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="3,000 passes instead of 600")
    n_passes = 3000 if parser.parse_args().full else 600
    (X, y), (X_test, y_test) = projected()
    model = MLP(20, 10, (30,))
    posterior = Posterior(model, X, model.encode(y, X.dtype), 0.001)

    rows, curves = [], {}
    for family, label, sampler in settings():
        length = int(n_passes * COLD_SHARE) if family == "cold" else n_passes
        begin = time.perf_counter()
        seeds = range(1 if family == "cold" else N_CHAINS)
        paths = Parallel(n_jobs=-1)(delayed(walk)(sampler, posterior, length, seed) for seed in seeds)
        seconds = time.perf_counter() - begin
        train = Errors(model, paths, X[:10_000], y[:10_000])
        curves[label] = Errors(model, paths, X_test, y_test)
        rows.append({"family": family, **figures(label, paths, train, curves[label], seconds)})
        print(f"{label}: {rows[-1]['seconds']:.0f} s", flush=True)
    level = chosen(rows)["SGLD"]["average"]
    for row in rows:
        row["passes to SGLD"] = curves[row["setting"]].passes_to(level)
    best = chosen(rows)
    print()
    print_table([{key: value for key, value in row.items() if key != "family"} for row in rows])
    names = ", ".join(row["setting"] for row in best.values())
    print(f"\nchosen by training error: {names}; SGLD's final error {level:.4f}")
    written = write_csv("ahn_mlp.csv", rows)
    figure_3({row["setting"]: curves[row["setting"]] for row in best.values()})
    print(f"wrote {written.name}, ahn_mlp.png\n")
    for claim, holds in acceptance(best):
        print(f"{'ok  ' if holds else 'FAIL'} {claim}")


if __name__ == "__main__":
    main()
