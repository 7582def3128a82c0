"""Streams as Bayesian updating: errors, time per call, copies, and drift.

    python -m benchmarks.cost.streams            # five minutes

posterior  100,000 rows of 20 correlated columns of scales e^N(0, 1), three data sets, in chunks of
           10, 50, 1,000 and 10,000 rows, against the posterior of all rows (importance sampling).
           Errors are in posterior standard deviations after whitening; ratios of variances are the
           extreme ones over all directions. Linear regression on the same rows is compared with the
           conjugate posterior of all rows.
time       1,000 chunks of 1,000 rows of 50 columns: processor time of each call of partial_fit, in
           turn with SGDClassifier's on the same rows; the model is pickled once along the way.
orders     20,000 rows of 5 columns in 40 chunks: in random order, sorted by class (two and three),
           all of one class first, 90 % of one class first, sorted by a column. Within the budget:
           errors against one chunk of all rows. With a budget of a quarter of the rows: the same
           errors beside the shift that the stream reports, and whether it warned.
drift      coefficients that move as a random walk: mean log loss of each chunk before it is read,
           for several values of forgetting_factor.
"""

from __future__ import annotations

import pickle
import time
import warnings

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import expit
from sklearn import config_context
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import logistic_posterior
from benchmarks.common.reference import importance_reference
from benchmarks.common.timing import Clock, median
from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression

ROWS, FEATURES = 100_000, 20
CHUNKS = (10, 50, 1000, 10_000)
ORDERS = (
    *("random", "sorted by class", "one class first"),
    *("90 % of one class first", "sorted by a column"),
)
FORGETTING = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
INTERCEPT_PRECISION = 1.0  # that of the reference


def rows(seed: int) -> tuple[NDArray, NDArray, NDArray]:
    """Correlated columns of different scales, labels 0 and 1, and numbers."""
    rng = np.random.default_rng(seed)
    mixing = np.eye(FEATURES) + 0.5 * rng.standard_normal((FEATURES, FEATURES)) / FEATURES**0.5
    X = rng.standard_normal((ROWS, FEATURES)) @ mixing
    z = X @ rng.standard_normal(FEATURES) / FEATURES**0.5
    labels = (rng.random(ROWS) < expit(z)).astype(int)
    X *= np.exp(rng.standard_normal(FEATURES))
    return X, labels, z + rng.standard_normal(ROWS)


def streamed(model, X: NDArray, y: NDArray, size: int, **more):
    """The model after all rows, in chunks."""
    for start in range(0, len(y), size):
        model.partial_fit(X[start : start + size], y[start : start + size], **more)
    return model


def against_all_rows(seed: int) -> list[dict]:
    """Errors of streams in chunks of several sizes."""
    X, labels, numbers = rows(seed)
    truth = importance_reference(logistic_posterior(X, 2.0 * labels - 1), 6_000)
    root = np.linalg.cholesky(np.linalg.inv(truth.cov))
    at_once = BayesianLinearRegression(prior_precision=1.0).partial_fit(X, numbers).posterior_
    table = []
    for size in CHUNKS:
        model = BayesianLogisticRegression(
            intercept_precision=INTERCEPT_PRECISION, prior_precision=1.0
        )
        with Clock(time.process_time) as clock:
            found = streamed(model, X, labels, size, classes=[0, 1]).posterior_
        shift = root.T @ (found.mean - truth.mean)
        ratios = np.linalg.eigvalsh(root.T @ found.covariance @ root)
        linear = streamed(
            BayesianLinearRegression(prior_precision=1.0), X, numbers, size
        ).posterior_
        sd = np.sqrt(at_once.covariance.diagonal())
        table.append(
            {
                "seed": seed,
                "rows a chunk": size,
                "mean error rms": np.sqrt(np.mean(shift**2)),
                "mean error max": np.abs(shift).max(),
                "smallest variance ratio": ratios.min(),
                "largest variance ratio": ratios.max(),
                "linear: mean error max": np.abs((linear.mean - at_once.mean) / sd).max(),
                "linear: precision error": np.abs(linear.precision / at_once.precision - 1).max(),
                "reference: half-split error": max(truth.half_split),
                "ms a call": clock.seconds / (ROWS / size) * 1e3,
            }
        )
    return table


def long_stream(n_calls: int = 1000) -> tuple[list[dict], bool]:
    """Time of each call, and whether a copy out of a pickle ended bitwise the same."""
    rng = np.random.default_rng(0)
    coef = rng.standard_normal(50) / 50**0.5
    ours = twin = BayesianLogisticRegression(random_state=0, prior_precision=1.0)
    linear, theirs = (
        BayesianLinearRegression(prior_precision=1.0),
        SGDClassifier(loss="log_loss"),
    )
    table = []
    for call in range(n_calls):
        X = rng.standard_normal((1000, 50))
        z = X @ coef
        y = (rng.random(1000) < expit(z)).astype(int)
        if call == n_calls // 2:
            twin = pickle.loads(pickle.dumps(ours))
        if call >= n_calls // 2:
            twin.partial_fit(X, y)
        row = {"call": call}
        for name, model, more in (
            ("partial_fit", ours, {"classes": [0, 1]}),
            ("SGDClassifier", theirs, {"classes": [0, 1]}),
            ("linear", linear, {}),
        ):
            with Clock(time.process_time) as clock:
                model.partial_fit(X, y, **more)
            row[f"{name} ms"] = clock.seconds * 1e3
        table.append(row)
    same = np.array_equal(ours.draws_, twin.draws_) and np.array_equal(ours.coef_, twin.coef_)
    return table, same


def drifting(seed: int, n_chunks: int = 200, size: int = 200) -> list[dict]:
    """Mean log loss of each chunk before it is read, by the factor of forgetting."""
    rng = np.random.default_rng(seed)
    coef = rng.standard_normal(10)
    models = {
        factor: BayesianLogisticRegression(
            forgetting_factor=factor, n_draws=25, random_state=0, prior_precision=1.0
        )
        for factor in FORGETTING
    }
    losses: dict[float, list[float]] = {factor: [] for factor in FORGETTING}
    for chunk in range(n_chunks):
        coef = coef + 0.1 * rng.standard_normal(10)
        X = rng.standard_normal((size, 10))
        y = (rng.random(size) < expit(X @ coef)).astype(int)
        for factor, model in models.items():
            if chunk >= n_chunks // 4:
                losses[factor].append(log_loss(y, model.predict_proba(X), labels=[0, 1]))
            model.partial_fit(X, y, classes=[0, 1])
    return [
        {"seed": seed, "forgetting": factor, "log loss": float(np.mean(losses[factor]))}
        for factor in FORGETTING
    ]


def ordered(name: str, X: NDArray, y: NDArray) -> NDArray:
    """Row numbers in an order."""
    zeros = np.flatnonzero(y == 0)
    share = {"one class first": 1.0, "90 % of one class first": 0.9}
    if name in share:
        first = zeros[: int(share[name] * len(zeros))]
        return np.concatenate([first, np.setdiff1d(np.arange(len(y)), first)])
    key = {"random": np.arange(len(y)), "sorted by class": y, "sorted by a column": X[:, 0]}
    return np.argsort(key[name], kind="stable")


def out_of_order(n_classes: int, n_rows: int = 20_000, n_features: int = 5) -> list[dict]:
    """Errors of streams in several orders, within the budget and beyond it."""
    rng = np.random.default_rng(n_classes)
    X = rng.standard_normal((n_rows, n_features))
    z = 2 * X @ rng.standard_normal((n_features, n_classes)) / n_features**0.5
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    classes = list(range(n_classes))

    def new() -> BayesianLogisticRegression:
        return BayesianLogisticRegression(prior_precision=1.0, random_state=0)

    whole = streamed(new(), X, y, n_rows, classes=classes).posterior_
    root = np.linalg.cholesky(whole.precision)
    table = []
    for name in ORDERS:
        order = ordered(name, X, y)
        for kept in (1.0, 0.25):
            quarter = 16 * kept * n_rows * 8 * (n_features + 1) / 2**20
            with (
                config_context(working_memory=1024 if kept == 1 else quarter),
                warnings.catch_warnings(record=True) as caught,
            ):
                warnings.simplefilter("always")
                model = streamed(new(), X[order], y[order], n_rows // 40, classes=classes)
            shift = root.T @ (model.posterior_.mean - whole.mean)
            table.append(
                {
                    "classes": n_classes,
                    "order": name,
                    "share kept": kept,
                    "mean error rms": np.sqrt(np.mean(shift**2)),
                    "mean error norm": np.sqrt(np.sum(shift**2)),
                    "reported shift": model.diagnostics_.get("folded_shift", 0.0),
                    "warnings": len(caught),
                }
            )
    return table


def figure(errors: list[dict], calls: list[dict], drift: list[dict]) -> Figure:
    """Error against rows of a chunk, time along the stream, and loss against forgetting."""
    picture = Figure(figsize=(12, 3.6), layout="constrained")
    left, middle, right = picture.subplots(1, 3)
    for seed in sorted({row["seed"] for row in errors}):
        own = [row for row in errors if row["seed"] == seed]
        left.semilogx(CHUNKS, [row["mean error rms"] for row in own], "o-", label=f"data {seed}")
        mine = [row for row in drift if row["seed"] == seed]
        right.plot(FORGETTING, [row["log loss"] for row in mine], "o-", label=f"data {seed}")
    left.axhline(0.03, color="grey", linestyle=":")
    left.set(xlabel="rows a chunk", ylabel="error of the mean (posterior sd, rms)", ylim=(0, None))
    for name in ("partial_fit", "SGDClassifier"):
        middle.plot([row[f"{name} ms"] for row in calls], ".", markersize=2, label=name)
    middle.set(xlabel="call", ylabel="processor time (ms)", yscale="log")
    right.set(xlabel="forgetting", ylabel="log loss of the next chunk")
    for axes in (left, middle, right):
        axes.legend(fontsize="small")
    return picture


def ratio_of_calls(calls: list[dict], part: slice, name: str = "partial_fit") -> float:
    """Median time of some calls over that of SGDClassifier's."""
    own, theirs = ([row[f"{key} ms"] for row in calls[part]] for key in (name, "SGDClassifier"))
    return median(own) / median(theirs)


def main(report: Report) -> None:
    """Run all parts."""
    errors = [row for seed in range(3) for row in against_all_rows(seed)]
    calls, same = long_stream()
    drift = [row for seed in range(3) for row in drifting(seed)]
    wanted = [row for row in errors if row["rows a chunk"] >= 50]
    accuracy = [
        Claim("error of the mean, rms", [row["mean error rms"] for row in wanted], high=0.03),
        Claim(
            "variance ratios in all directions",
            [row[f"{end} variance ratio"] for row in wanted for end in ("smallest", "largest")],
            low=0.97,
            high=1.03,
        ),
        Claim(
            "linear regression: error of the mean, in posterior sd",
            [row["linear: mean error max"] for row in errors],
            high=1e-8,
        ),
    ]
    report.save(
        errors, accuracy, {"streams": figure(errors, calls, drift)}, title="against all rows"
    )
    tenth = len(calls) // 10
    first, last = slice(tenth, 2 * tenth), slice(-tenth, None)
    times = [
        {
            "calls": name,
            "times SGDClassifier": ratio_of_calls(calls, part),
            "linear, times SGDClassifier": ratio_of_calls(calls, part, "linear"),
            **{key: median([row[key] for row in calls[part]]) for key in calls[0] if key != "call"},
        }
        for name, part in (("second tenth", first), ("last tenth", last), ("all", slice(None)))
    ]
    report.save(
        times,
        [
            Claim("time of a call over SGDClassifier's", times[2]["times SGDClassifier"], high=5),
            Claim(
                "linear: time of a call over SGDClassifier's",
                times[2]["linear, times SGDClassifier"],
                high=5,
            ),
            Claim(
                "last calls over early calls, both over SGDClassifier's",
                times[1]["times SGDClassifier"] / times[0]["times SGDClassifier"],
                high=1.2,
            ),
            Claim("a pickled copy ends with the same draws", float(same), low=1),
        ],
        name="streams_time",
        title="time along 1,000 calls",
    )
    orders = [row for n_classes in (2, 3) for row in out_of_order(n_classes)]
    within = [row for row in orders if row["share kept"] == 1]
    beyond = [row for row in orders if row["share kept"] < 1]
    wrong = [row["warnings"] for row in beyond if row["mean error rms"] > 0.1]
    report.save(
        orders,
        [
            Claim(
                "within the budget: error of the mean, rms",
                [row["mean error rms"] for row in within],
                high=0.1,
            ),
            Claim("beyond it: warnings where that is above .1", wrong, low=1),
            Claim(
                "warnings in random order",
                [row["warnings"] for row in orders if row["order"] == "random"],
                high=0,
            ),
        ],
        name="streams_orders",
        title="orders",
    )
    gains = []
    for seed in range(3):
        loss = {row["forgetting"]: row["log loss"] for row in drift if row["seed"] == seed}
        gains.append(loss[1.0] - loss[0.9])
    report.save(
        drift,
        [Claim("log loss without forgetting less that with 0.9", gains, low=0.01)],
        name="streams_drift",
        title="drift",
    )


if __name__ == "__main__":
    benchmark(main, threads=1)
