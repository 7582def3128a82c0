"""Odds ratios of a treatment: shrunken, flat, and with nothing shrunken, over simulated studies.

    python -m benchmarks.exactness.treatment

A study has 200 patients, half of them treated, and eight covariates whose log odds ratios are drawn
for each study from a normal distribution of standard deviation 0.3. The treatment has no effect, or
an odds ratio of three. Its log odds ratio is estimated by the posterior mean under the default
prior, under the default with the treatment flat, and under a precision of 1e-6 for all.

bias        mean estimate minus the truth
rmse        root mean square of the same
coverage    of 95 % intervals

It takes four minutes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.common.harness import Claim, Report, benchmark
from skbayes_sg import BayesianLogisticRegression

STUDIES, PATIENTS, COVARIATES, SPREAD = 200, 200, 8, 0.3
PRIORS = {
    "default": {},
    "treatment flat": {"prior_groups": {"treated": "flat"}},
    "nothing shrunken": {"prior_precision": 1e-6},
}


def study(effect: float, seed: int) -> tuple[pd.DataFrame, NDArray]:
    """Patients, and whether each had the event."""
    rng = np.random.default_rng(seed)
    covariates = rng.standard_normal((PATIENTS, COVARIATES))
    treated = np.arange(PATIENTS) % 2
    logits = effect * treated + covariates @ rng.normal(0, SPREAD, COVARIATES) - 1.0
    X = pd.DataFrame(covariates, columns=[f"covariate {k}" for k in range(COVARIATES)])
    return X.assign(treated=treated), rng.random(PATIENTS) < 1 / (1 + np.exp(-logits))


def estimates(odds_ratio: float) -> Iterator[dict]:
    """Errors of each prior over all studies."""
    effect = np.log(odds_ratio)
    for name, prior in PRIORS.items():
        found = []
        for seed in range(STUDIES):
            X, y = study(effect, seed)
            model = BayesianLogisticRegression(random_state=0, **prior).fit(X, y)
            found.append(model.summary().loc["treated", ["mean", "eti95_lb", "eti95_ub"]])
        mean, low, high = np.transpose(found)
        yield {
            "odds ratio": odds_ratio,
            "prior": name,
            "bias": np.mean(mean - effect),
            "rmse": np.sqrt(np.mean((mean - effect) ** 2)),
            "coverage": np.mean((low < effect) & (effect < high)),
            "error": np.std(mean) / np.sqrt(STUDIES),
        }


def main(report: Report) -> None:
    """Without an effect, and with one."""
    rows = [row for odds_ratio in (1.0, 3.0) for row in estimates(odds_ratio)]
    none, some = ({row["prior"]: row for row in half} for half in (rows[:3], rows[3:]))
    error = 3 * np.sqrt(0.95 * 0.05 / STUDIES)
    unshrunken = [each[name]["coverage"] for each in (none, some) for name in [*PRIORS][1:]]
    claims = [
        Claim("coverage without shrinkage (three errors)", unshrunken, 0.95 - error, 0.95 + error),
        Claim(
            "rmse of the default over that without shrinkage, no effect",
            none["default"]["rmse"] / none["nothing shrunken"]["rmse"],
            high=1.0,
        ),
        Claim("bias of the default, odds ratio 3", some["default"]["bias"], high=0.0),
        Claim(
            "bias of the flat treatment over that of the default, odds ratio 3",
            abs(some["treatment flat"]["bias"] / some["default"]["bias"]),
            high=0.5,
        ),
    ]
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(main, threads=1)
