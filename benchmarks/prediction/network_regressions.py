"""BayesianMLPRegressor beside MLPRegressor and an ensemble of five, on five regressions.

    python -m benchmarks.prediction.network_regressions [--seeds 1 2] [--only diabetes] [--add]

All have MLPRegressor's network, 100 units with relu, and nothing else is set. Rows to learn from:
three quarters of diabetes and of wine (grades of white wine), 10,000 of protein, 1,000 of
make_friedman1 (noise of standard deviation 1) and 2,000 of make_friedman3 (noise of .1); other ones
for each seed.
Columns are standardised by these rows, and so is y, which this package would do itself.

MLPRegressor predicts a number. Its distribution of y is normal about that, with the mean squared
residual of the rows to learn from; that of the ensemble is the mixture of five. Where laplace-torch
is installed, the Laplace approximation of the last layer of the first network is beside it, and
where sklearn-contrib-bde is, eight of its networks with 1,000 epochs, as many steps of warm-up and
100 draws each; its defaults are two networks of 20 epochs. Its noise depends on the row.

Columns are log loss, which is minus the mean log density of rows held out, of y in tenths of a
standard deviation; root mean squared error in standard deviations; the share of rows in central
90 % intervals; and CPU seconds of fit and prediction on one thread (of sklearn-contrib-bde on as
many as jax takes). "T = 0.05" is the default temperature of BayesianMLPClassifier. "learned prior"
has ``prior_precision=VariationalEM()``, on up to 1,000 rows. Seeds 0 to 2 chose length and
temperature of the default, so seeds are 11 to 13. Some minutes of CPU a seed; --add keeps the rows
of an earlier run.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr
from scipy.stats import norm
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman3
from sklearn.neural_network import MLPRegressor

from benchmarks.common.datasets import regression
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.last_layer import INSTALLED, LastLayerOfRegression
from benchmarks.common.timing import Clock
from skbayes_sg import BayesianMLPRegressor, VariationalEM

BdeRegressor = None
with suppress(ImportError):
    from bde import BdeRegressor

OURS = "BayesianMLPRegressor"
COLD, LEARNED = f"{OURS}, T = 0.05", f"{OURS}, learned prior"
ONE, FIVE, LAPLACE = "MLPRegressor", "five MLPRegressors", "last-layer Laplace"
BDE = "sklearn-contrib-bde"
FIGURES = ("log loss", "error", "coverage", "s")
SETS: dict[str, tuple[Callable[[int], tuple[NDArray, NDArray]], int]] = {
    "diabetes": (lambda seed: load_diabetes(return_X_y=True), 331),
    "wine": (lambda seed: regression("wine"), 3673),
    "protein": (lambda seed: regression("protein"), 10_000),
    "friedman1": (lambda seed: make_friedman1(6000, noise=1.0, random_state=seed), 1000),
    "friedman3": (lambda seed: make_friedman3(7000, noise=0.1, random_state=seed), 2000),
}
"""Rows by seed, and how many to learn from."""
HELD_OUT, FEW = 5000, 1000
SEEDS = range(11, 14)
LEVEL = 0.9


class Split(NamedTuple):
    """Rows to learn from, and rows held out; y in standard deviations of the former."""

    X: NDArray
    y: NDArray
    X_test: NDArray
    y_test: NDArray


def split_of(name: str, seed: int) -> Split:
    """The rows of one seed."""
    make, n_rows = SETS[name]
    X, y = make(seed)
    rows = np.random.default_rng(seed).permutation(len(X))
    train, test = rows[:n_rows], rows[max(n_rows, len(X) - HELD_OUT) :]
    X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    y = (y - y[train].mean()) / y[train].std()
    return Split(X[train], y[train], X[test], y[test])


class Mixture(NamedTuple):
    """Predicted distributions of y: equal mixtures of normal distributions."""

    mean: NDArray
    """(components, n)"""
    sd: NDArray
    """as `mean`, or for all rows"""

    def figures(self, y: NDArray) -> dict[str, float]:
        """Of rows held out."""
        density = logsumexp(norm.logpdf(y, self.mean, self.sd), axis=0) - np.log(len(self.mean))
        below = ndtr((y - self.mean) / self.sd).mean(axis=0)
        return {
            "log loss": float(np.log(10) - density.mean()),
            "error": float(np.sqrt(np.mean((y - self.mean.mean(axis=0)) ** 2))),
            "coverage": float(np.mean(np.abs(below - 0.5) <= LEVEL / 2)),
        }


def ours(split: Split, seed: int, **given) -> Mixture:
    """Distributions of y under each draw."""
    model = BayesianMLPRegressor((100,), "relu", random_state=seed, **given)
    model.fit(split.X, split.y)
    draws = model.draws_.reshape(-1, model.draws_.shape[-1])
    outputs = model.model_.outputs(draws, split.X_test.astype(np.float32))
    return Mixture(outputs[:, 0], np.exp(outputs[:, 1] / 2))


def bayesian_ensemble(split: Split, seed: int) -> Mixture:
    """Of sklearn-contrib-bde."""
    run = {"epochs": 1000, "patience": 20, "warmup_steps": 1000, "n_samples": 100}
    model = BdeRegressor(n_members=8, hidden_layers=[100], n_thinning=10, seed=seed, **run)
    raw = np.asarray(model.fit(split.X, split.y).predict(split.X_test, raw=True), np.float64)
    mean, sd = raw[..., 0], np.logaddexp(0, raw[..., 1]) + 1e-6  # as its evaluator has it
    return Mixture(mean.reshape(-1, len(split.y_test)), sd.reshape(-1, len(split.y_test)))


def fits(split: Split, seed: int) -> Iterator[tuple[str, Mixture, float]]:
    """Each model, its distributions of y, and CPU seconds."""
    seconds, networks, distributions = [], [], []
    for k in range(5):
        with Clock(time.process_time) as clock:
            network = MLPRegressor(hidden_layer_sizes=(100,), random_state=10 * seed + k)
            network.fit(split.X, split.y)
            sd = np.sqrt(np.mean((network.predict(split.X) - split.y) ** 2))
            distributions.append((network.predict(split.X_test), sd))
        networks.append(network)
        seconds.append(clock.seconds)
    means, sds = (np.array(each) for each in zip(*distributions, strict=True))
    yield ONE, Mixture(means[:1], sds[:1, None]), seconds[0]
    yield FIVE, Mixture(means, sds[:, None]), sum(seconds)
    if INSTALLED:
        with Clock(time.process_time) as clock:
            laplace = LastLayerOfRegression(networks[0], split.X, split.y)
            mean, sd = laplace.predict(split.X_test)
        yield LAPLACE, Mixture(mean[None], sd[None]), seconds[0] + clock.seconds
    if BdeRegressor is not None:
        with Clock(time.process_time) as clock:
            distribution = bayesian_ensemble(split, seed)
        yield BDE, distribution, clock.seconds
    settings: dict[str, dict] = {OURS: {}, COLD: {"temperature": 0.05}}
    if len(split.y) <= FEW:
        settings[LEARNED] = {"prior_precision": VariationalEM()}
    for name, given in settings.items():
        with Clock(time.process_time) as clock:
            distribution = ours(split, seed, **given)
        yield name, distribution, clock.seconds


def compare(name: str, seed: int) -> list[dict]:
    """One row for each model on one split."""
    split, rows = split_of(name, seed), []
    for model, distribution, seconds in fits(split, seed):
        figures = distribution.figures(split.y_test)
        rows.append({"data": name, "seed": seed, "model": model, **figures, "s": seconds})
        print(rows[-1], flush=True)
    return rows


def means(rows: list[dict]) -> list[dict]:
    """Over the seeds."""
    keys = dict.fromkeys((row["data"], row["model"]) for row in rows)
    table = []
    for data, model in keys:
        here = [row for row in rows if (row["data"], row["model"]) == (data, model)]
        mean = {name: float(np.mean([row[name] for row in here])) for name in FIGURES}
        table.append({"data": data, "model": model, "seeds": len(here), **mean})
    return table


def claims(rows: list[dict]) -> list[Claim]:
    """The means over seeds."""
    table = {(row["data"], row["model"]): row for row in means(rows)}
    found = []
    for data in dict.fromkeys(data for data, _ in table):
        this, five = table[data, OURS], table[data, FIVE]
        found += [
            Claim(f"{data}: log loss, the ensemble's", this["log loss"], high=five["log loss"]),
            Claim(f"{data}: error, the ensemble's", this["error"], high=five["error"]),
            Claim(f"{data}: coverage of 90 % intervals", this["coverage"], 0.87, 0.95),
        ]
    sets = list(dict.fromkeys(data for data, _ in table))
    colder = [table[data, COLD]["log loss"] < table[data, OURS]["log loss"] for data in sets]
    worst = min(table[data, COLD]["coverage"] for data in sets)
    best = min(table[data, OURS]["coverage"] for data in sets)
    found.append(Claim("data sets that a cold posterior predicts better", sum(colder), high=2))
    found.append(Claim("least coverage, above that of a cold posterior", best, low=worst))
    for data in sets:
        if (data, LEARNED) in table:
            this, five = table[data, LEARNED], table[data, FIVE]
            for name in ("log loss", "error"):
                words = f"{data}, learned prior: {name}, the ensemble's"
                found.append(Claim(words, this[name], high=five[name]))
    return found


def main(report: Report, seeds: list[int] | None, only: list[str] | None, add: bool) -> None:
    """Every data set and seed."""
    warnings.simplefilter("ignore")
    rows = report.earlier() if add else []
    done = {(row["data"], row["seed"]) for row in rows}
    for name in only or SETS:
        for seed in seeds or SEEDS:
            if (name, seed) not in done:
                rows += compare(name, seed)
                report.save(rows, claims(rows), title="all splits")  # should the rest be cut short
    report.save(rows, claims(rows), title="all splits")
    report.show(means(rows), "means")


if __name__ == "__main__":
    benchmark(
        main,
        threads=1,
        seeds={"type": int, "nargs": "*", "help": "splits"},
        only={"nargs": "*", "help": "names of data sets"},
        add={"action": "store_true", "help": "keep the rows of the last run"},
    )
