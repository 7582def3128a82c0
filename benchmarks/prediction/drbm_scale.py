"""DRBMClassifier at its cold default, beside temperature 1, from digits to 444,619 rows of KDD99.

    python -m benchmarks.prediction.drbm_scale [--add]

Rows are those of networks.py, seed 1; 41 hidden units, nothing else is set. Columns are log loss,
accuracy and expected calibration error of rows held out, CPU seconds of the fit on one thread,
R-hat and standard error of averaged probabilities, the largest draw of each block, and the
warnings. The standard error is NaN where no probability of a hundred rows varies by .01, and R-hat
is that of the log posterior alone then. "mode" is W0(N / (lambda T)), how far weights into classes
lie at a mode if all rows are separated with margin one (math/networks.md#separable-classes). Some
seven minutes; --add keeps the rows of an earlier run.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from scipy.special import lambertw
from sklearn.metrics import log_loss

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.timing import Clock
from benchmarks.prediction.networks import calibration_error, split_of
from skbayes_sg import DRBMClassifier

COLD = 0.05
FULL = "KDD99, 444,619"
RUNS = [(FULL, COLD), ("KDD99, 20,000", COLD), ("KDD99, 2,000", COLD), ("digits", COLD)]
RUNS += [("digits", 1.0)]  # which takes longest for its rows


def row_of(name: str, temperature: float) -> dict:
    """One fit."""
    split = split_of(name, seed=1)
    model = DRBMClassifier(temperature=temperature, random_state=1)
    with warnings.catch_warnings(record=True) as caught, Clock(time.process_time) as clock:
        warnings.simplefilter("always")
        model.fit(split.X, split.y)
    known = np.isin(split.y_test, model.classes_)
    p, y = model.predict_proba(split.X_test[known]), split.y_test[known]
    code, found = np.searchsorted(model.classes_, y), model.diagnostics_
    blocks = model.model_.unpack(model.draws_)
    weakest = model.model_.unpack(model.prior_precision_)["U"].min()
    return {
        "data": name,
        "temperature": temperature,
        "log loss": float(log_loss(y, p, labels=model.classes_)),
        "accuracy": float((p.argmax(axis=1) == code).mean()),
        "calibration error": float(calibration_error(p, code)),
        "s": clock.seconds,
        "R-hat": found["r_hat_max"],
        "between chains": found["between_chains"],
        "prediction error": found["prediction_error"],
        **{f"largest {block}": float(np.abs(draws).max()) for block, draws in blocks.items()},
        "mode": float(lambertw(len(split.y) / (weakest * temperature)).real),
        "warnings": len(caught),
        "first warning": str(caught[0].message) if caught else "",
    }


def claims(rows: list[dict]) -> list[Claim]:
    """The default at full size, and against temperature 1."""
    found = []
    at = {(row["data"], row["temperature"]): row for row in rows}
    if (full := at.get((FULL, COLD))) is not None:
        found.append(Claim("444,619 rows: CPU seconds of a fit", full["s"], high=180))
    for (name, temperature), row in at.items():
        if temperature == COLD:
            error = row["prediction error"]
            sentence = f"{name}: standard error of averaged probabilities"
            found.append(Claim(sentence, None if np.isnan(error) else error, high=0.02))
    for name, temperature in at:
        if temperature == 1:
            cold, bayes = at[name, COLD], at[name, 1.0]
            for column in ("log loss", "calibration error", "s"):
                sentence = f"{name}: {column}, below that at temperature 1"
                found.append(Claim(sentence, cold[column], high=bayes[column], strict=True))
    return found


def main(report: Report, add: bool) -> None:
    """Every run, saved as it ends."""
    rows = report.earlier() if add else []
    done = {(row["data"], row["temperature"]) for row in rows}
    for name, temperature in RUNS:
        if (name, temperature) not in done:
            rows.append(row_of(name, temperature))
        report.save(rows, claims(rows))


if __name__ == "__main__":
    benchmark(
        main, threads=1, add={"action": "store_true", "help": "keep the rows of the last run"}
    )
