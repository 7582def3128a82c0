"""Every real posterior at the default fit, beside a long run or the exact one.

    python -m benchmarks.exactness.posteriors [--only iris]

The sets are those of the data folder and those that scikit-learn ships; what its fetchers would
download is skipped. Columns are standardised. Classifications have 1,500 rows at most, at random,
and of more than two classes those columns that leave a small posterior. Each set has two
posteriors: under prior precision 1, and under about the most probable one ("learned"). Sampled
precisions have a table of their own, sampled_precision.py.

The reference of a classification is HMC on all of those rows, 32 chains. "ESS" and "R-hat" are its
worst ones: where ESS is below 10,000 or R-hat above 1.01, it could not be had in the time. For
regressions it is the exact normal-inverse-gamma distribution.

"mean error" is the largest of all parameters, in posterior standard deviations, and "sd error" the
largest distance of a standard deviation from the reference's, as a share of it. Both have a Monte
Carlo error from both runs; the claims are about what is beyond three of these ("beyond"): at most
.1 and 5 %. References are kept in benchmarks/results, see reference.py.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, polygamma
from sklearn import datasets as shipped
from sklearn.preprocessing import StandardScaler

from benchmarks.common import classification
from benchmarks.common import datasets as data
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.reference import cached, long_run
from benchmarks.exactness import steep
from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression, diagnostics
from skbayes_sg.samplers import HMC

MEAN_ERROR, SD_ERROR = 0.1, 0.05
ENOUGH, AGREED = 10_000, 1.01
ERRORS = 3.0
"""Monte Carlo errors that are allowed on top"""
CHAINS, BURN_IN = 32, 150
DRAWS = 2000
"""of each chain"""
ROWS = 1500
"""at most, of classifications"""

Set = tuple[NDArray, NDArray]


def conjugate(X, y) -> tuple[NDArray, NDArray]:
    """Exact mean and covariance of coefficients, intercept and log noise variance."""
    X = np.column_stack([X, np.ones(len(X))])
    precision = X.T @ X + np.diag([1.0] * (X.shape[1] - 1) + [1e-6])
    mean = np.linalg.solve(precision, X.T @ y)
    a, b = 1e-6 + len(y) / 2, 1e-6 + 0.5 * (y @ y - mean @ precision @ mean)
    cov = np.zeros((len(mean) + 1,) * 2)
    cov[:-1, :-1] = np.linalg.inv(precision) * b / (a - 1)
    cov[-1, -1] = polygamma(1, a)
    return np.append(mean, np.log(b) - digamma(a)), cov


def _cut(X: NDArray, y: NDArray) -> Set:
    """Rows at random, without classes of fewer than twenty rows."""
    return classification.some(X, y, ROWS)


def covertype_classes() -> Set:
    """Forest covers by ten numeric columns."""
    X, y = data.covertype()
    return _cut(X[:, :10], y)


def kdd99_classes() -> Set:
    """Kinds of attacks, by the columns that are rates."""
    found = data.kdd99()
    rates = [i for i, name in enumerate(found.feature_names) if name.endswith("rate")]
    return _cut(found.X[:, rates], found.y)


def mnist_classes() -> Set:
    """Ten digits in twenty projections."""
    X, y = data.mnist()
    X, y = _cut(X / 255.0, y)
    return X @ np.random.default_rng(0).normal(0.0, 784**-0.5, (784, 20)), y


CLASSES: dict[str, Callable[[], Set]] = {
    **{
        name: classification.SETS[name]
        for name in (
            "iris",
            "wine",
            "breast cancer",
            "diabetes",
            "skin",
            "MNIST 7 vs 9",
            "KDD 99",
            "covertype",
        )
    },
    "wine grades": lambda: _cut(*classification.wine_grades()),
    "MNIST": mnist_classes,
    "covertype, 7 classes": covertype_classes,
    "KDD 99, kinds": kdd99_classes,
}
NUMBERS: dict[str, Callable[[], Set]] = {
    "wine quality": lambda: data.regression("wine"),
    "protein": lambda: data.regression("protein"),
    "diabetes progression": lambda: shipped.load_diabetes(return_X_y=True),
}
LEARNED = {
    "iris": 0.01650547515006948,
    "wine": 0.07149577334421738,
    "breast cancer": 0.510627662365271,
    "diabetes": 3.099425471971889,
    "skin": 0.3579983299766852,
    "MNIST 7 vs 9": 3.1697063972067974,
    "KDD 99": 0.05806451405050702,
    "covertype": 12.914502154978743,
    "wine grades": 5.47558738797878,
    "MNIST": 3.5657664461166227,
    "covertype, 7 classes": 0.5076966010303505,
    "KDD 99, kinds": 0.376949274299478,
    "wine quality": 6.9226866051626095,
    "protein": 2.37449159292895,
    "diabetes progression": 5.934705417741804,
}
"""Precisions near the most probable ones."""
SKIPPED = "digits under a learned precision; linnerud; what fetchers download"


class Moments(NamedTuple):
    """Of a posterior, and how well they are known."""

    mean: NDArray
    sd: NDArray
    ess: NDArray
    """of the mean, (D,) or the worst"""
    ess_sd: NDArray
    """of the second moment"""
    r_hat: NDArray
    """of the worst parameter"""


def moments(draws: NDArray) -> Moments:
    """Those of draws (chains, draws, D), in single precision."""
    mean = draws.mean(axis=(0, 1), dtype=np.float64)
    away = draws - mean
    found = (
        mean,
        np.sqrt((away**2).mean(axis=(0, 1), dtype=np.float64)),
        diagnostics.ess_mean(draws),
        diagnostics.ess_mean(away**2),
        diagnostics.r_hat(draws).max(),
    )
    return Moments(*(np.asarray(each, np.float32) for each in found))


def by_hmc(name: str, X: NDArray, y: NDArray, precision: float) -> Moments:
    """The long run, from the folder if it is there."""
    label = "given" if precision == 1 else "learned"

    def make() -> dict[str, NDArray]:
        model = BayesianLogisticRegression(
            HMC(structure="full"),
            precision,
            n_chains=CHAINS,
            n_draws=DRAWS,
            burn_in=BURN_IN,
            random_state=2012,
        )
        return moments(model.fit(X, y).draws_)._asdict()

    about = np.array([precision, CHAINS, DRAWS, BURN_IN])
    file = f"posterior_{name}_{label}".replace(",", "").replace(" ", "_").lower()
    return Moments(*cached(file, make, X, y, about))


def exact(X: NDArray, y: NDArray, precision: float) -> Moments:
    """The distribution of a regression, without error."""
    scale = np.sqrt(np.append(np.full(X.shape[1], precision), 1.0))
    mean, cov = conjugate(X / scale[:-1], y)  # of coefficients times scale, under precision 1
    sd = np.sqrt(cov.diagonal())
    scale = np.append(scale, 1.0)
    return Moments(mean / scale, sd / scale, *np.full((2, 1), np.inf), np.ones(()))


def beyond(fitted: Moments, true: Moments) -> dict[str, float]:
    """Largest errors, and what of them is beyond the Monte Carlo errors of both."""
    of_mean = np.sqrt(1 / fitted.ess + 1 / true.ess)
    of_sd = np.sqrt(0.5 / fitted.ess_sd + 0.5 / true.ess_sd)
    mean = np.abs(fitted.mean - true.mean) / true.sd
    sd = np.abs(fitted.sd / true.sd - 1)
    return {
        "mean error": float(mean.max()),
        "mean beyond": max(0.0, float((mean - ERRORS * of_mean).max())),
        "sd error": float(sd.max()),
        "sd beyond": max(0.0, float((sd - ERRORS * of_sd).max())),
    }


def quality(true: Moments) -> dict:
    """Of a long run."""
    return {"ESS": float(min(true.ess.min(), true.ess_sd.min())), "R-hat": float(true.r_hat)}


def compare(name: str, X: NDArray, y: NDArray, precision: float) -> dict:
    """A default fit and its reference."""
    model = BayesianLogisticRegression(prior_precision=precision, random_state=0)
    if name in NUMBERS:  # the noise prior of the reference; by default coefficients take from it
        model = BayesianLinearRegression(None, precision, noise_prior=(1e-6, 1e-6), random_state=0)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "digits":
            run = long_run("steep_digits", X, y, steep.SETS["digits"].draws)
            of_all = np.array(run.ess)
            true = Moments(run.mean, run.sd, of_all, of_all, np.array(run.r_hat))
        else:
            true = exact(X, y, precision) if name in NUMBERS else by_hmc(name, X, y, precision)
    draws = moments(model.draws_)
    return {
        "set": name,
        "rows": len(X),
        "columns": X.shape[1],
        "parameters": draws.mean.size,
        "prior": "given" if precision == 1 else "learned",
        "precision": precision,
        "sampler": type(model.sampler_).__name__,
        "steepness": model.diagnostics_.get("steepness"),
        **beyond(draws, true),
        "warns": "yes" if heard else "no",
        **({} if name in NUMBERS else quality(true)),
    }


def claims(row: dict) -> list[Claim]:
    """Mean, standard deviation, and the reference."""
    name = f"{row['set']}, {row['prior']}"
    errors = [
        Claim(f"{name}: error of a mean in sd, beyond", row["mean beyond"], high=MEAN_ERROR),
        Claim(f"{name}: error of an sd, beyond", row["sd beyond"], high=SD_ERROR),
    ]
    row["verdict"] = "ok" if all(claim.verdict == "ok" for claim in errors) else "FAIL"
    row["reference"] = "exact"
    if "ESS" not in row:
        return errors
    good = [
        Claim(f"{name}: effective draws of the reference", row["ESS"], low=ENOUGH),
        Claim(f"{name}: R-hat of the reference", row["R-hat"], high=AGREED),
    ]
    row["reference"] = "ok" if all(claim.verdict == "ok" for claim in good) else "short"
    return errors + good


def main(report: Report, only: list[str] | None) -> None:
    """All sets."""
    rows: list[dict] = []
    found: list[Claim] = []
    for name, load in {**CLASSES, **NUMBERS, "digits": steep.digits}.items():
        if only and name not in only:
            continue
        X, y = load()
        X, y = (X[:ROWS], y[:ROWS]) if name in CLASSES else (X, y)
        if name != "digits":  # which are standardised
            X = StandardScaler().fit_transform(np.asarray(X, np.float64)[:, X.std(axis=0) > 0])
        for precision in (1.0, LEARNED.get(name))[: 1 if name == "digits" else 2]:
            begin = time.process_time()
            rows.append(compare(name, X, y, precision))
            found += claims(rows[-1])
            print(*rows[-1].values(), f"{time.process_time() - begin:.0f} s", flush=True)
    print(f"skipped: {SKIPPED}")
    report.save(rows, found)


if __name__ == "__main__":
    benchmark(main, threads=1, only={"nargs": "+"})
