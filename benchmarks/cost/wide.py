"""Default fits with hundreds and thousands of parameters: seconds, spreads and log loss.

    python -m benchmarks.cost.wide                     # all; the first time about an hour
    python -m benchmarks.cost.wide --only 300 text     # a part

11,000 rows with 300, 900 and 2,000 correlated columns and two classes, synthetic, and 10,000 rows
of MNIST with all 784 pixels and ten classes, float32. One core. "CPU s" is that of a default fit,
diagnostics included, median of --repeats; it is judged, as other processes do not lengthen it.

"sd ratio" is a parameter's standard deviation over that of a long HMC run on all rows: median,
smallest and largest. "beyond" is the largest distance from 1 that four standard errors of both runs
do not explain. "log loss" is that of predict_proba on 4,000 other rows, beside LogisticRegressionCV
(ten values, five folds, chosen by log loss). "worse by" is the mean difference less two standard
errors of it. The long runs and LogisticRegressionCV take most of the time. They are kept, see
reference.py.

"text" has 11,000 sparse rows of 100,000 columns, like counts of words: 100 different columns a row,
drawn from Zipf's law, with logarithms of one plus their counts; two classes, synthetic, float64.
"GB" is the largest resident memory of this process up to then. The ratios are those of 200 of the
columns that occur, from the most frequent to the rarest. Their long run is HMC with Metropolis
steps under the precisions that the fit learned, so it has no bias; it takes five minutes, and a
standard deviation from it is good to 6 % for the worst coefficient. The rows to predict are 20,000,
and LogisticRegressionCV has five values.
"""

from __future__ import annotations

import resource
import time
import warnings
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegressionCV

from benchmarks.common.datasets import mnist, standardised
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import low_rank_posterior
from benchmarks.common.reference import cached, long_run
from benchmarks.common.timing import Clock, median
from skbayes_sg import BayesianLogisticRegression, diagnostics

ROWS, TEST_ROWS = 11_000, 4000
FACTORS = 20
LIMITS = {"300": 3.0, "900": 10.0, "2000": 30.0, "mnist": 60.0}  # seconds
REFERENCE_DRAWS = {"300": 400, "900": 300, "2000": 260, "mnist": 100}  # of each of 32 chains
TEXT_ROWS, TEXT_COLUMNS = (11_000, 20_000), 100_000  # rows to fit and to judge by
ENTRIES, WORDS = 100, 260  # different columns of a row, and words from which they are the first
SPREAD = 2.5  # standard deviation of the logits
COMPARED = 200
CHOICES = [0.01, 0.1, 1.0, 10.0, 100.0]  # of C
CHAINS, BURN_IN, DRAWS = 16, 60, 400  # of the long run


class Split(NamedTuple):
    """Rows to fit and rows to judge by."""

    X: NDArray | sparse.csr_array
    y: NDArray
    X_test: NDArray | sparse.csr_array
    y_test: NDArray


def correlated(n_rows: int, n_columns: int) -> Split:
    """Standardised columns with common factors.

    The linear predictor has standard deviation 2.
    """
    rng = np.random.default_rng([n_rows, n_columns])
    n = n_rows + TEST_ROWS
    common = rng.standard_normal((n, FACTORS)) @ rng.standard_normal((FACTORS, n_columns))
    X = standardised(common / np.sqrt(FACTORS) + rng.standard_normal((n, n_columns)))
    coef = rng.standard_normal(n_columns)
    coef *= 2 / (X @ coef).std()
    y = (X @ coef + rng.logistic(size=n) > 0).astype(int)
    return Split(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])


def text_like() -> Split:
    """Counts of words, and labels by normal coefficients of all columns."""
    rng, n = np.random.default_rng(0), sum(TEXT_ROWS)
    share = np.cumsum(1 / np.arange(1, TEXT_COLUMNS + 1))
    share /= share[-1]
    columns, values = [], []
    for _ in range(n):
        words = np.searchsorted(share, rng.random(WORDS))
        different, first, counts = np.unique(words, return_index=True, return_counts=True)
        kept = np.sort(np.argsort(first)[:ENTRIES])
        columns.append(different[kept])
        values.append(np.log1p(counts[kept]))
    ends = np.cumsum([0, *map(len, columns)])
    entries = (np.concatenate(values), np.concatenate(columns), ends)
    X = sparse.csr_array(entries, shape=(n, TEXT_COLUMNS))
    logits = X @ rng.standard_normal(TEXT_COLUMNS)
    logits = (logits - logits.mean()) * (SPREAD / logits.std())
    y = (rng.random(len(logits)) < expit(logits)).astype(int)
    first = TEXT_ROWS[0]
    return Split(X[:first], y[:first], X[first:], y[first:])


def data(name: str) -> Split:
    """Dense rows by the name of the data."""
    if name == "mnist":
        X, y = mnist()
        X = (X[: 10_000 + TEST_ROWS] / 255.0).astype(np.float32)
        return Split(X[:10_000], y[:10_000], X[10_000:], y[10_000 : len(X)])
    return correlated(ROWS, int(name))


def rival(split: Split) -> dict[str, NDArray]:
    """Log losses of other rows by LogisticRegressionCV, and CPU seconds."""
    Cs = CHOICES if sparse.issparse(split.X) else 10
    model = LogisticRegressionCV(Cs=Cs, cv=5, scoring="neg_log_loss", max_iter=1000)
    with Clock(time.process_time) as clock:
        model.fit(split.X, split.y)
    found = losses(model.predict_proba(split.X_test), split.y_test).astype(np.float32)
    return {"cv": found, "cv seconds": np.asarray(clock.seconds)}


def beside_rival(name: str, model, split: Split) -> dict:
    """Log losses of a fit and of its rival, and how far it is worse beyond two standard errors."""
    X = split.X
    rows = (X.data, X.indices) if sparse.issparse(X) else (X,)
    cv, cv_seconds = cached(f"{name}_cv", lambda: rival(split), *rows, split.y)
    ours = losses(model.predict_proba(split.X_test), split.y_test)
    return {
        "log loss": float(ours.mean()),
        "log loss of CV": float(cv.mean()),
        "worse by": float((ours - cv).mean() - 2 * (ours - cv).std() / np.sqrt(len(ours))),
        "CV CPU s": float(cv_seconds),
    }


def losses(proba: NDArray, y: NDArray) -> NDArray:
    """Minus log probability of each label, (rows,)."""
    return -np.log(np.maximum(proba[np.arange(len(y)), y], 1e-12))


def fitted(prior_precision, X: NDArray, y: NDArray, repeats: int) -> tuple:
    """A fit with a precision, given or learned, and its median CPU and wall seconds."""
    model = BayesianLogisticRegression(prior_precision=prior_precision, random_state=0)
    spent, walls = [], []
    for _ in range(repeats):
        with Clock(time.process_time) as cpu, Clock() as wall:
            model.fit(X, y)
        spent.append(cpu.seconds)
        walls.append(wall.seconds)
    return model, {"CPU s": median(spent), "s": median(walls)}


def compare(name: str, repeats: int) -> dict:
    """A default fit, the long run, and cross-validation."""
    split = data(name)
    default, seconds = fitted("learned", split.X, split.y, repeats)
    model, of_given = fitted(1.0, split.X, split.y, 1)
    found = model.diagnostics_
    row = {
        "data": name,
        "rows": len(split.X),
        "parameters": model.draws_.shape[-1],
        "classes": len(model.classes_),
        "sampler": type(model.sampler_).__name__,
        "reason": model.sampler_reason_,
        "noise number": found.get("noise_number"),
        "ESS": found["ess_min"],
        "R-hat": found["r_hat_max"],
        **seconds,
        "CPU s at precision 1": of_given["CPU s"],
    }
    print(row, flush=True)
    true = long_run(f"wide_{name}", split.X, split.y, REFERENCE_DRAWS[name])
    ratio = model.draws_.std(axis=(0, 1)) / true.sd
    slack = 4 * np.sqrt(0.5 / found["ess_min"] + 0.5 / true.ess)
    spread = {
        "sd ratio": float(np.median(ratio)),
        "sd ratio min": float(ratio.min()),
        "sd ratio max": float(ratio.max()),
        "beyond": float(np.abs(ratio - 1).max() - slack),
        "ESS of long run": float(true.ess),
        "R-hat of long run": float(true.r_hat),
    }
    return row | spread | beside_rival(f"wide_{name}", default, split)


def long_run_of_text(
    X: sparse.csr_array, y: NDArray, precision: NDArray, compared: NDArray
) -> dict[str, NDArray]:
    """HMC with Metropolis steps, in coordinates in which the curvature is about the identity."""
    target = low_rank_posterior(X, y, precision)
    rng = np.random.default_rng(2012)
    theta = rng.standard_normal((CHAINS, target.dim))
    energy, force = -target.logdensity_and_grad(theta)[0], target.grad_estimate(theta, slice(None))
    step, accepted, draws = 0.3, [], []
    for i in range(BURN_IN + DRAWS):
        velocity = rng.standard_normal(theta.shape)
        ahead, slope = theta, force
        before = energy + 0.5 * (velocity**2).sum(axis=1)
        for _ in range(rng.integers(4, 9)):
            velocity = velocity + 0.5 * step * slope
            ahead = ahead + step * velocity
            slope = target.grad_estimate(ahead, slice(None))
            velocity = velocity + 0.5 * step * slope
        there = -target.logdensity_and_grad(ahead)[0]
        chance = np.exp(np.minimum(0, before - there - 0.5 * (velocity**2).sum(axis=1)))
        taken = rng.random(CHAINS) < chance
        theta, energy = np.where(taken[:, None], ahead, theta), np.where(taken, there, energy)
        force = np.where(taken[:, None], slope, force)
        if i < BURN_IN:
            step *= np.exp(0.3 * (chance.mean() - 0.8))
        else:
            accepted.append(taken.mean())
            draws.append(target.coordinates.inverse_transform(theta)[:, compared])
    found = np.stack(draws, axis=1)
    ess, r_hat = diagnostics.ess_mean(found), diagnostics.r_hat(found)
    mean, sd = diagnostics.moments(found)
    figures = {"ess": ess.min(), "r_hat": r_hat.max(), "accepted": np.mean(accepted)}
    return {"mean": mean, "sd": sd, **figures}


def of_text() -> dict:
    """A default fit of sparse rows, the long run, and cross-validation."""
    split = text_like()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model, seconds = fitted("learned", split.X, split.y, 1)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    counts = np.bincount(split.X.indices, minlength=TEXT_COLUMNS)
    by_count = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    places = np.unique(np.geomspace(1, len(by_count), 4 * COMPARED).astype(int))
    compared = by_count[places[np.linspace(0, len(places) - 1, COMPARED).astype(int)] - 1]
    nonzero_columns = np.flatnonzero(counts)
    precision = model.prior_precision_[[*nonzero_columns, -1]]  # of these and the intercept
    at = np.searchsorted(nonzero_columns, compared)
    run = partial(long_run_of_text, split.X[:, nonzero_columns], split.y, precision, at)
    about = (split.X.data, split.X.indices, split.y, compared, precision)
    mean, sd, ess, r_hat, accepted = cached("sparse_hmc", run, *about)
    ratio = model.coef_std_[0, compared] / sd
    return {
        "rows": TEXT_ROWS[0],
        "columns": TEXT_COLUMNS,
        "columns that occur": len(nonzero_columns),
        "CPU s": seconds["CPU s"],
        "GB": memory,
        "warnings": sum("do not agree" in str(w.message) for w in said),
        "draws": int(np.prod(model.draws_.shape[:2])),
        "R-hat": model.diagnostics_["r_hat_max"],
        "ESS": model.diagnostics_["ess_min"],
        "Stein ratio": model.diagnostics_["stein_ratio"],
        "steepness": model.diagnostics_["steepness"],
        "learned precision": model.prior_precision_blocks_["coef"],
        "sd ratio min": float(ratio.min()),
        "sd ratio": float(np.median(ratio)),
        "sd ratio max": float(ratio.max()),
        "mean off by sds": float((np.abs(model.coef_[0, compared] - mean) / sd).max()),
        "ESS of long run": float(ess),
        "R-hat of long run": float(r_hat),
        "accepted": float(accepted),
        **beside_rival("sparse", model, split),
    }


def claims(row: dict) -> list[Claim]:
    """Of one set of dense rows."""
    name = row["data"]
    return [
        Claim(f"{name}: CPU seconds of a default fit", row["CPU s"], high=LIMITS[name]),
        Claim(f"{name}: R-hat of the long run", row["R-hat of long run"], high=1.02),
        Claim(f"{name}: |sd ratio - 1| beyond four standard errors", row["beyond"], high=0.1),
        Claim(f"{name}: log loss worse than LogisticRegressionCV's by", row["worse by"], high=0),
    ]


def claims_of_text(row: dict) -> list[Claim]:
    """Of sparse rows."""
    ratios = [row["sd ratio min"], row["sd ratio max"]]
    return [
        Claim("CPU seconds of a fit that learns the prior", row["CPU s"], high=60),
        Claim("GB of memory", row["GB"], high=2),
        Claim("warnings that chains do not agree", row["warnings"], high=0),
        Claim("effective draws of the long run", row["ESS of long run"], low=100),
        Claim("standard deviations of 200 coefficients over the long run's", ratios, 0.8, 1.2),
        Claim("log loss worse than LogisticRegression's by", row["worse by"], high=0),
    ]


def main(report: Report, only: list[str], repeats: int) -> None:
    """The data sets that are asked for, each with a table of its own."""
    warnings.simplefilter("ignore")
    if "text" in only:  # at first, as its memory is that of the process
        row = of_text()
        report.save([row], claims_of_text(row), name="sparse_rows")
    for name in LIMITS:
        if name in only:
            row = compare(name, repeats)
            report.save([row], claims(row), name=f"wide_{name}")


if __name__ == "__main__":
    names = ["text", *LIMITS]
    benchmark(
        main,
        threads=1,
        only={"nargs": "+", "choices": names, "default": names, "help": "the data"},
        repeats={"type": int, "default": 3, "help": "of each fit"},
    )
