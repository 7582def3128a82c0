"""Would a temperature chosen on held-out rows predict better than the default of networks?

    python -m benchmarks.prediction.temperatures [--seeds 1 2] [--full] [--settings]

A tenth of the rows to learn from, `MLPClassifier`'s validation fraction, would choose: the least
log loss there. The network learns from the other nine tenths then, as MLPClassifier does with
early stopping. Each temperature has a fit of its own here, so that nothing is lost on a ladder of
temperatures. "fixed" is the default temperature on all rows. Data sets are those of networks.py
with fewer rows, networks have 50 relu units, fits have four chains. Columns are log losses of the
validation rows and of rows held out, the latter also of averages over the first draws of each
chain, and CPU seconds. Some three minutes a seed.

--full compares two fixed temperatures on the rows of networks.py, with its networks and the chains
of the default, and writes temperatures_full.csv. MNIST is left out, as it takes longest.

--settings compares the default with other temperatures, priors and lengths on rows and networks of
networks.py, and writes temperatures_settings.csv: could another default reach nine tenths of the
log loss of one MLPClassifier? Splits are others than those of networks.py. "prior" has weighted
sums into hidden units of standard deviation 1 in place of 3, and 1 in place of 10 for the last
layer; "prior, T = 0.02" half of that variance in the first layer. The row "MLPClassifier" is the
mean over five networks, "five" their ensemble. Some ten minutes.
"""

from __future__ import annotations

import time
import warnings
from itertools import product

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.timing import Clock
from benchmarks.prediction.digits import calibration_error
from benchmarks.prediction.networks import Split, split_of
from skbayes_sg import BayesianMLPClassifier

SETS = ("digits", "MNIST, 2,000", "KDD99, 4,000", "covertype, 4,000", "diamonds, 4,000")
FULL = ("digits", "KDD99", "covertype", "diamonds")
LADDER = (0.3, 0.1, 0.05, 0.02, 0.005)
DEFAULT = 0.05
FEWER = (5, 10)
"""draws of each chain"""
SPLITS = {"digits": range(100, 110), "diamonds": (100,), "KDD99": (100,)}


def loss(y: NDArray, p: NDArray, classes: NDArray) -> float:
    """Log loss of rows whose class was learned."""
    known = np.isin(y, classes)
    return float(log_loss(y[known], p[known], labels=classes))


def row_of(split: Split, validation: tuple[NDArray, NDArray] | None, T: float, seed: int) -> dict:
    """One fit and its losses."""
    with Clock(time.process_time) as clock:
        model = BayesianMLPClassifier(
            (50,), "relu", temperature=T, n_chains=4, random_state=seed
        ).fit(split.X, split.y)
    n_chains, n_draws, _ = model.draws_.shape
    each = model.predict_proba_draws(split.X_test)
    each = each.reshape(n_chains, n_draws, *each.shape[1:])
    row = {"temperature": T, "held out": loss(split.y_test, each.mean(axis=(0, 1)), model.classes_)}
    for few in FEWER:
        p = each[:, :few].mean(axis=(0, 1))
        row[f"held out, {few} draws"] = loss(split.y_test, p, model.classes_)
    if validation is not None:
        X, y = validation
        row["validation"] = loss(y, model.predict_proba(X), model.classes_)
    return row | {"s": clock.seconds}


def rows_of(name: str, seed: int) -> list[dict]:
    """The ladder, the chosen temperature and the fixed one, on one split."""
    split = split_of(name, seed)
    few = np.random.default_rng(seed).permutation(len(split.X_test))[:4000]
    split = split._replace(X_test=split.X_test[few], y_test=split.y_test[few])
    X, X_val, y, y_val = train_test_split(split.X, split.y, test_size=0.1, random_state=seed)
    part = split._replace(X=X, y=y)
    ladder = [row_of(part, (X_val, y_val), T, seed) for T in LADDER]
    chosen = min(ladder, key=lambda row: row["validation"])
    fixed = row_of(split, None, DEFAULT, seed)
    named = {"data": name, "seed": seed}
    rows = [named | {"which": "of nine tenths"} | row for row in ladder]
    rows += [named | {"which": "chosen"} | chosen, named | {"which": "fixed"} | fixed]
    for row in rows:
        print(row, flush=True)
    return rows


def full_row(name: str, seed: int, T: float) -> dict:
    """A fit as in networks.py."""
    split = split_of(name, seed)
    model = BayesianMLPClassifier((100,), "relu", temperature=T, random_state=seed)
    with Clock(time.process_time) as clock:
        p = model.fit(split.X, split.y).predict_proba(split.X_test)
    row = {"data": name, "seed": seed, "temperature": T}
    row["log loss"] = loss(split.y_test, p, model.classes_)
    code = np.searchsorted(model.classes_, split.y_test)
    row["calibration error"] = float(calibration_error(p, code))
    print(row, flush=True)
    return row | {"s": clock.seconds}


def candidates(square: float) -> dict[str, dict]:
    """Parameters by name; `square` is the mean sum of squares of a row."""
    return {
        "default": {},
        "T = 0.02": {"temperature": 0.02},
        "T = 0.2": {"temperature": 0.2},
        "T = 0.9": {"temperature": 0.9},
        "T = 0.9, 80 draws": {"temperature": 0.9, "n_draws": 80},
        "prior": {"prior_precision": (square, 1.0)},
        "prior, T = 0.02": {"prior_precision": (2 * square, 1.0), "temperature": 0.02},
        "16 chains": {"n_chains": 16},
    }


def settings_rows(name: str, seed: int) -> list[dict]:
    """MLPClassifier, an ensemble of five, and every setting on one split."""
    split = split_of(name, seed)
    networks = [
        MLPClassifier((100,), random_state=10 * seed + k).fit(split.X, split.y) for k in range(5)
    ]
    classes, each = networks[0].classes_, [one.predict_proba(split.X_test) for one in networks]
    found = {
        "MLPClassifier": {"log loss": sum(loss(split.y_test, p, classes) for p in each) / 5},
        "five": {"log loss": loss(split.y_test, np.mean(each, axis=0), classes)},
    }
    for label, given in candidates(float((split.X**2).sum() / len(split.X))).items():
        model = BayesianMLPClassifier((100,), "relu", random_state=seed, **given)
        with Clock(time.process_time) as clock:
            p = model.fit(split.X, split.y).predict_proba(split.X_test)
        found[label] = {"log loss": loss(split.y_test, p, classes), "s": clock.seconds}
    named = {"data": name, "seed": seed}
    rows = [named | {"setting": label} | figures for label, figures in found.items()]
    for row in rows:
        print(row, flush=True)
    return rows


def settings_claims(rows: list[dict]) -> list[Claim]:
    """No setting is enough on diamonds, and what helps digits harms KDD99."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        found.setdefault((row["data"], row["setting"]), []).append(row["log loss"])
    mean = {key: float(np.mean(losses)) for key, losses in found.items()}
    best = {data: min(candidates(1.0), key=lambda one: mean[data, one]) for data in SPLITS}
    least = mean["diamonds", best["diamonds"]] / mean["diamonds", "MLPClassifier"]
    harm = mean["KDD99", best["digits"]] / mean["KDD99", "default"]
    return [
        Claim(f"diamonds: least log loss, {best['diamonds']}, over that of one", least, low=0.9),
        Claim(f"KDD99: log loss of the best on digits, {best['digits']}", harm, low=1.0),
    ]


def claims(rows: list[dict]) -> list[Claim]:
    """A choice does not pay."""
    chosen, fixed = ([r for r in rows if r["which"] == which] for which in ("chosen", "fixed"))
    ratios = [c["held out"] / f["held out"] for c, f in zip(chosen, fixed, strict=True)]
    tens = [f["held out, 10 draws"] / f["held out"] for f in fixed]
    return [
        Claim("log loss of the chosen over the fixed, geometric mean", _mean(ratios), low=1.0),
        Claim("log loss of ten draws over twenty, geometric mean", _mean(tens), high=1.02),
    ]


def _mean(ratios: list[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def main(report: Report, seeds: list[int], full: bool, settings: bool) -> None:
    """Every data set and seed."""
    warnings.simplefilter("ignore")
    rows: list[dict] = []
    if settings:
        for name, splits in SPLITS.items():
            for seed in splits:
                rows += settings_rows(name, seed)
        report.save(rows, settings_claims(rows), name="temperatures_settings")
        return
    if full:
        for name, seed, T in product(FULL, seeds, (DEFAULT, LADDER[0])):
            rows.append(full_row(name, seed, T))
            report.save(rows, name="temperatures_full")
        return
    for seed in seeds:
        for name in SETS:
            rows += rows_of(name, seed)
            report.save(rows, claims(rows))


if __name__ == "__main__":
    benchmark(
        main,
        threads=1,
        seeds={"type": int, "nargs": "*", "default": [1, 2], "help": "splits"},
        full={"action": "store_true", "help": "two temperatures on the rows of networks.py"},
        settings={"action": "store_true", "help": "other defaults on the rows of networks.py"},
    )
