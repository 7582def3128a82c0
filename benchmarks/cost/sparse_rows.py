"""A default fit of wide sparse rows: seconds, memory, spreads and log loss.

    python -m benchmarks.cost.sparse_rows

11,000 rows of 100,000 columns, like counts of words: 100 different columns a row, drawn from Zipf's
law, with logarithms of one plus their counts; two classes, synthetic, float64. One core. The prior
precision is learned. "CPU s" is that of the fit, diagnostics included. It is judged, as other
processes do not lengthen it. "GB" is the largest resident memory of this process up to then.

"sd ratio" is a coefficient's standard deviation over that of a long run: 200 of the columns that
occur, from the most frequent to the rarest. The long run is HMC with Metropolis steps under the
precision that the fit learned, so it has no bias. Its ESS and R-hat are those of the worst of these
coefficients. "log loss" is that of predict_proba on 20,000 other rows, beside LogisticRegression
with C chosen from five by five folds. "worse by" is the mean difference less two standard errors of
it. A standard deviation from the long run is good to 6 % for the worst coefficient. The long run
takes five minutes and is kept, see reference.py.
"""

from __future__ import annotations

import resource
import time
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegressionCV

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import low_rank_posterior
from benchmarks.common.reference import cached
from benchmarks.common.timing import Clock
from skbayes_sg import BayesianLogisticRegressionSGFS, diagnostics

ROWS, TEST_ROWS, COLUMNS = 11_000, 20_000, 100_000
ENTRIES, WORDS = 100, 260  # different columns of a row, and words from which they are the first
SPREAD = 2.5  # standard deviation of the logits
COMPARED = 200
CHOICES = [0.01, 0.1, 1.0, 10.0, 100.0]  # of C
CHAINS, BURN_IN, DRAWS = 16, 60, 400  # of the long run


class Text(NamedTuple):
    """Rows to fit and rows to judge by."""

    X: sparse.csr_array
    y: NDArray
    X_test: sparse.csr_array
    y_test: NDArray


def text_like(seed: int = 0) -> Text:
    """Counts of words, and labels by normal coefficients of all columns."""
    rng = np.random.default_rng(seed)
    share = np.cumsum(1 / np.arange(1, COLUMNS + 1))
    share /= share[-1]
    columns, values = [], []
    for _ in range(ROWS + TEST_ROWS):
        words = np.searchsorted(share, rng.random(WORDS))
        different, first, counts = np.unique(words, return_index=True, return_counts=True)
        kept = np.sort(np.argsort(first)[:ENTRIES])
        columns.append(different[kept])
        values.append(np.log1p(counts[kept]))
    ends = np.cumsum([0, *map(len, columns)])
    shape = (ROWS + TEST_ROWS, COLUMNS)
    X = sparse.csr_array((np.concatenate(values), np.concatenate(columns), ends), shape=shape)
    logits = X @ rng.standard_normal(COLUMNS)
    logits = (logits - logits.mean()) * (SPREAD / logits.std())
    y = (rng.random(len(logits)) < expit(logits)).astype(int)
    return Text(X[:ROWS], y[:ROWS], X[ROWS:], y[ROWS:])


def long_run(X: sparse.csr_array, y: NDArray, precision: float, compared: NDArray) -> dict:
    """HMC with Metropolis steps, in coordinates in which the curvature is about the identity."""
    target = low_rank_posterior(X, y, precision)
    rng = np.random.default_rng(2012)
    theta = rng.standard_normal((CHAINS, target.dim))
    energy, force = -target.slope(theta)[0], target.noisy_gradient(theta, slice(None))
    step, accepted, draws = 0.3, [], []
    for i in range(BURN_IN + DRAWS):
        velocity = rng.standard_normal(theta.shape)
        ahead, slope = theta, force
        before = energy + 0.5 * (velocity**2).sum(axis=1)
        for _ in range(rng.integers(4, 9)):
            velocity = velocity + 0.5 * step * slope
            ahead = ahead + step * velocity
            slope = target.noisy_gradient(ahead, slice(None))
            velocity = velocity + 0.5 * step * slope
        there = -target.slope(ahead)[0]
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


def rival(text: Text) -> dict:
    """Log loss of each other row by LogisticRegressionCV, its C, and CPU seconds."""
    model = LogisticRegressionCV(Cs=CHOICES, cv=5, scoring="neg_log_loss", max_iter=1000)
    with Clock(time.process_time) as clock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(text.X, text.y)
    lost = losses(model.predict_proba(text.X_test), text.y_test).astype(np.float32)
    return {"losses": lost, "C": model.C_[0], "seconds": clock.seconds}


def losses(proba: NDArray, y: NDArray) -> NDArray:
    """Minus log probability of each label, (rows,)."""
    return -np.log(np.maximum(proba[np.arange(len(y)), y], 1e-12))


def measured(text: Text) -> dict:
    """A default fit, beside the long run and the rival."""
    with Clock(time.process_time) as clock, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = BayesianLogisticRegressionSGFS(prior_precision="learned", random_state=0)
        model.fit(text.X, text.y)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    counts = np.bincount(text.X.indices, minlength=COLUMNS)
    by_count = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    places = np.unique(np.geomspace(1, len(by_count), 4 * COMPARED).astype(int))
    compared = by_count[places[np.linspace(0, len(places) - 1, COMPARED).astype(int)] - 1]
    nonzero_columns = np.flatnonzero(counts)
    precision = float(model.prior_precision_[0])
    data = (text.X.data, text.X.indices, text.y, compared, np.array(precision))
    at = np.searchsorted(nonzero_columns, compared)
    true = cached(
        "sparse_hmc", lambda: long_run(text.X[:, nonzero_columns], text.y, precision, at), *data
    )
    mean, sd, ess, r_hat, accepted = true
    cv, C, cv_seconds = cached("sparse_cv", lambda: rival(text), *data[:3])
    ours = losses(model.predict_proba(text.X_test), text.y_test)
    ratio = model.coef_std_[0, compared] / sd
    silent = np.flatnonzero(counts == 0)
    return {
        "rows": ROWS,
        "columns": COLUMNS,
        "columns that occur": len(nonzero_columns),
        "CPU s": clock.seconds,
        "GB": memory,
        "warnings": len([w for w in said if "Convergence" in w.category.__name__]),
        "draws": int(np.prod(model.draws_.shape[:2])),
        "R-hat": model.diagnostics_["r_hat_max"],
        "ESS": model.diagnostics_["ess_min"],
        "Stein ratio": model.diagnostics_["stein_ratio"],
        "steepness": model.diagnostics_["steepness"],
        "learned precision": precision,
        "sd ratio min": float(ratio.min()),
        "sd ratio": float(np.median(ratio)),
        "sd ratio max": float(ratio.max()),
        "mean off by sds": float((np.abs(model.coef_[0, compared] - mean) / sd).max()),
        "variance of columns of zeros over the prior's": float(
            np.mean(model.coef_std_[0, silent] ** 2) * precision
        ),
        "ESS of long run": float(ess),
        "R-hat of long run": float(r_hat),
        "accepted": float(accepted),
        "log loss": float(ours.mean()),
        "log loss of LogisticRegression": float(cv.mean()),
        "C": float(C),
        "worse by": float((ours - cv).mean() - 2 * (ours - cv).std() / np.sqrt(len(ours))),
        "LogisticRegressionCV CPU s": float(cv_seconds),
    }


def main(report: Report) -> None:
    """One table."""
    row = measured(text_like())
    ratios = [row["sd ratio min"], row["sd ratio max"]]
    zeros = row["variance of columns of zeros over the prior's"]
    report.save(
        [row],
        [
            Claim("CPU seconds of a fit that learns the prior", row["CPU s"], high=60),
            Claim("GB of memory", row["GB"], high=2),
            Claim("warnings that chains do not agree", row["warnings"], high=0),
            Claim("effective draws of the long run", row["ESS of long run"], low=100),
            Claim("standard deviations of 200 coefficients over the long run's", ratios, 0.8, 1.2),
            Claim("variance of columns that never occur over the prior's", zeros, 0.97, 1.03),
            Claim("log loss worse than LogisticRegression's by", row["worse by"], high=0),
        ],
    )


if __name__ == "__main__":
    benchmark(main, threads=1)
