"""Time and error of predictive intervals of linear regression.

    python -m benchmarks.cost.intervals

Coefficients and noise are standard normal times 1 and 3. Intervals of 90 % are those of other rows.

over predict    processor seconds of `predict_interval` over those of `predict`, 1,000,000 rows
                float64; over std: over those of ``predict(return_std=True)``
off             of the probability below an end of the interval, under the mixture of the normal
                distributions of all draws, in Monte Carlo errors of that mixture; rms and largest
                over 2,000 rows

Under a minute.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.timing import Clock
from skbayes_sg import BayesianLinearRegressionSGFS

TIMED = 1_000_000
COMPARED = 2000


def data(n_rows: int, n_features: int) -> tuple[NDArray, NDArray]:
    """Rows and targets."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features))
    return X, X @ rng.standard_normal(n_features) + 3 * rng.standard_normal(n_rows)


def errors(model: BayesianLinearRegressionSGFS, X: NDArray) -> NDArray:
    """Errors of the probabilities below both ends, in Monte Carlo errors, (rows, 2)."""
    coef = model.coef_samples_.reshape(-1, X.shape[1])
    centre = X @ coef.T + model.intercept_samples_.ravel()
    scale = np.sqrt(model.noise_variance_samples_).ravel()
    found = []
    for end, q in zip(model.predict_interval(X).T, (0.025, 0.975), strict=True):
        below = ndtr((end[:, None] - centre) / scale)
        error = below.std(axis=1) / np.sqrt(model.diagnostics_["ess_min"])
        found.append((below.mean(axis=1) - q) / error)
    return np.array(found).T


def measured(n_rows: int, n_features: int) -> dict:
    """A row of the table."""
    X, y = data(n_rows + COMPARED, n_features)
    model = BayesianLinearRegressionSGFS(random_state=0).fit(X[:n_rows], y[:n_rows])
    off = errors(model, X[n_rows:])
    row = {"rows": n_rows, "features": n_features, "rms off": float(np.sqrt(np.mean(off**2)))}
    row["most off"] = float(np.abs(off).max())
    if n_rows < 3000:
        return row | {"predict s": None, "over predict": None, "over std": None}
    X = data(TIMED, n_features)[0]
    times: list[list[float]] = []
    for _ in range(5):
        clocks = [Clock(time.process_time) for _ in range(3)]
        with clocks[0]:
            model.predict(X)
        with clocks[1]:
            model.predict(X, return_std=True)
        with clocks[2]:
            model.predict_interval(X)
        times.append([clock.seconds for clock in clocks])
    mean, std, interval = np.min(times, axis=0).tolist()
    return row | {"predict s": mean, "over predict": interval / mean, "over std": interval / std}


def main(report: Report) -> None:
    """One table."""
    rows = [measured(*shape) for shape in ((12, 3), (30, 10), (300, 10), (3000, 10), (3000, 50))]
    timed = [row for row in rows if row["predict s"] is not None]
    report.save(
        rows,
        [
            Claim("seconds over those of predict", [row["over predict"] for row in timed], high=3),
            Claim("seconds over those with std", [row["over std"] for row in timed], high=3),
            Claim("Monte Carlo errors off, rms", [row["rms off"] for row in rows], high=1),
        ],
    )


if __name__ == "__main__":
    benchmark(main, threads=1)
