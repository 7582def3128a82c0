"""Seconds of default fits, and of what follows them, beside a point estimate on the same cores.

    python -m benchmarks.cost.seconds                        # all: forty minutes
    python -m benchmarks.cost.seconds --only digits wine     # a part; others stay as they were

Each line is a default, diagnostics included, as a user runs it: no number of threads is set, so
both sides take all cores. Where there is another estimator the two alternate. Times are medians of
--repeats, each of which has a seed of its own; "ratio" is the median of the ratios of the repeats,
and "passes", "ESS", "R-hat" and "draws" are those of the last one.

fits          BayesianLogisticRegression on standardised columns, beside LogisticRegressionCV
              with its defaults. "simulated" are of `make_classification`, "weak" have independent
              columns and coefficients N(0, .05^2), and "text" has 80 words a row, drawn from Zipf's
              law and weighted by tf-idf. "passes" are gradients of all rows over all chains, and
              "ESS" is that of the parameter that mixes worst.
families      Other models on independent columns, beside an estimate of the same likelihood, most
              of them without a cross-validation, three times --repeats; and `partial_fit` of 100
              rows of ten columns.
cliffs        Data as tame as can be, beside nothing: 100,000 rows with 500 random intercepts under
              three likelihoods, with sixteen events, and 5,000 rows of 60, 120 and 500 classes; and
              Poisson counts under the negative binomial, normal noise under Student's t, 20
              columns. "mnist" are its first 10,000 digits.
predictions   `predict_proba` of 5,000 digits, beside LogisticRegression's; of 2,000,000 rows of 30
              columns in a .npy file; `score` of 3,000,000 rows on two workers of dask over the fit.
tables        `average_effects` of a factor of 60 levels, 1,200 rows and five classes; two-way
              `partial_dependence` on a grid of 20 x 20, breast cancer.
a million     fits of 1,000,000 x 50, float32, by one process and by two, beside LogisticRegression
              (fit_against_lbfgs.csv).

"goal" is what the package set out for, in seconds or as a ratio. Those that fail are claims that
print FAIL.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.inspection import partial_dependence
from sklearn.linear_model import (
    BayesianRidge,
    GammaRegressor,
    HuberRegressor,
    LogisticRegression,
    LogisticRegressionCV,
)
from sklearn.preprocessing import StandardScaler

from benchmarks.common.datasets import million, mnist
from benchmarks.common.harness import RESULTS, Claim, Report, benchmark
from benchmarks.common.timing import in_turn, median
from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
    inspection,
)

Data = tuple[NDArray, NDArray]
SIMULATED = ((100, 4, 2), (300, 10, 2), (1000, 20, 2), (2000, 40, 2), (5000, 60, 2), (2000, 20, 20))
SHIPPED = {
    "breast cancer": load_breast_cancer,
    "iris": load_iris,
    "wine": load_wine,
    "digits": load_digits,
}
WEAK = ((8000, 900), (20_000, 1200))
TEXT = (20_000, 5000)
GOALS = {
    "digits": 20.0,
    "simulated 2000 x 20, 20 classes": 4.0,
    "wine": 3.0,
    "weak 8000 x 900": 3.0,
    "text 20000 x 5000": 3.0,
    "20 classes 3000 x 10": 2.5,
    "50 classes 3000 x 10": 3.5,
    "Gamma 1000 x 10": 40.0,
    "negative binomial 1000 x 10": 16.0,
    "negative binomial 5000 x 30": 10.0,
    "ordinal 1000 x 10": 2.0,
    "ordinal 2000 x 20": 1.4,
    "robust 1000 x 10": 33.0,
    "robust 10000 x 10": 46.0,
    "predict_proba, 5,000 digits": 150.0,
    "score on dask over the fit": 1.0,
}
"""ratios"""
SECONDS = {
    "linear 1000 x 10": 0.015,
    "partial_fit of 100 rows": 0.002,
    "weak 20000 x 1200": 30.0,
    "predict_proba, 2,000,000 rows on disk": 2.0,
    "effects of 60 levels": 2.0,
    "partial dependence of a pair": 3.0,
    "cliff: 500 intercepts, logistic": 4.0,
    "cliff: 500 intercepts, Poisson": 5.0,
    "cliff: 500 intercepts, linear": 2.0,
    "cliff: 16 events": 3.0,
    "cliff: 60 classes": 15.0,
    "cliff: 120 classes": 30.0,
    "cliff: 500 classes": 120.0,
    "cliff: mnist": 15.0,
    "cliff: Poisson counts, negative binomial": 5.0,
    "cliff: normal noise, robust": 5.0,
}


def simulated(n: int, d: int, k: int) -> Data:
    """Standardised rows; a tenth of the labels of two classes are random."""
    how = {"n_informative": d // 2, "flip_y": 0.1}
    if k > 2:
        how = {"n_informative": 15, "n_redundant": 0, "n_clusters_per_class": 1}
    X, y = make_classification(n, d, n_classes=k, random_state=0, **how)
    return StandardScaler().fit_transform(X), y


def shipped(load: Callable) -> Data:
    """Standardised rows."""
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def weak(n: int, d: int) -> Data:
    """Nearly Gaussian, and wide."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    logits = X @ rng.normal(0, 0.05, d)
    return X, (rng.random(n) < 1 / (1 + np.exp(-logits))).astype(int)


def text(n: int, d: int) -> tuple[sparse.csr_matrix, NDArray]:
    """Counts of words of two classes, weighted by tf-idf."""
    rng, words = np.random.default_rng(0), 80
    y = rng.integers(2, size=n)
    rare = rng.random((2, d)) < 0.2
    share = np.exp(rng.normal(0, 0.7, (2, d)) * rare) / np.arange(1, d + 1)
    share /= share.sum(axis=1, keepdims=True)
    columns = np.concatenate([rng.choice(d, words, p=share[k]) for k in y])
    rows = np.repeat(np.arange(n), words)
    counts = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), (n, d))
    counts.sum_duplicates()
    return TfidfTransformer().fit_transform(counts), y


def fits() -> dict[str, Callable[[], tuple]]:
    """Data sets by name."""
    found: dict[str, Callable[[], tuple]] = {}
    for n, d, k in SIMULATED:
        classes = "" if k == 2 else f", {k} classes"
        found[f"simulated {n} x {d}{classes}"] = lambda n=n, d=d, k=k: simulated(n, d, k)
    for name, load in SHIPPED.items():
        found[name] = lambda load=load: shipped(load)
    for n, d in WEAK:
        found[f"weak {n} x {d}"] = lambda n=n, d=d: weak(n, d)
    found[f"text {TEXT[0]} x {TEXT[1]}"] = lambda: text(*TEXT)
    return found


def beside(name: str, ours: Callable, theirs: Callable | None, repeats: int) -> dict:
    """Medians, and the median of the ratios."""
    jobs = {"ours": ours} if theirs is None else {"ours": ours, "theirs": theirs}
    times = in_turn(jobs, repeats)
    row = {"what": name, "ours s": median(times["ours"])}
    if theirs is not None:
        ratios = np.divide(times["ours"], times["theirs"])
        row |= {"theirs s": median(times["theirs"]), "ratio": median(ratios)}
    return row


def of_fit(name: str, X: NDArray, y: NDArray, repeats: int) -> dict:
    """A default fit beside LogisticRegressionCV's."""
    model, other = BayesianLogisticRegression(), LogisticRegressionCV(max_iter=10_000)
    row = beside(name, anew(model, X, y), lambda: other.fit(X, y), repeats)
    return row | sampled(model)


def anew(model: Any, X: Any, y: NDArray) -> Callable[[], Any]:
    """Fits of the seeds 0, 1, ...: how many draws the chains need is in part chance."""
    seeds = count()
    return lambda: model.set_params(random_state=next(seeds)).fit(X, y)


def normal_rows(n: int, d: int) -> tuple[NDArray, NDArray, np.random.Generator]:
    """Independent columns, a linear predictor, and what draws y."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, X @ rng.normal(0, 0.3, d), rng


def families() -> dict[str, Callable[[], tuple[Any, Any, Any, NDArray]]]:
    """By name: a model, a fit of another to the same rows, and these."""

    def by_class(k: int) -> tuple:
        X, y = make_classification(
            3000, 10, n_informative=10, n_redundant=0, n_classes=k, n_clusters_per_class=1,
            random_state=0,
        )  # fmt: skip
        return BayesianLogisticRegression(), LogisticRegressionCV(max_iter=10_000).fit, X, y

    def linear() -> tuple:
        X, eta, rng = normal_rows(1000, 10)
        return BayesianLinearRegression(), BayesianRidge().fit, X, eta + rng.standard_normal(1000)

    def gamma() -> tuple:
        X, eta, rng = normal_rows(1000, 10)
        y = np.exp(eta) * rng.gamma(2, 0.5, 1000)
        return BayesianGammaRegressor(), GammaRegressor().fit, X, y

    def negative_binomial(n: int, d: int) -> tuple:
        import statsmodels.api as sm  # part of the extra "bench"

        X, eta, rng = normal_rows(n, d)
        y = rng.poisson(np.exp(eta) * rng.gamma(2, 0.5, n))
        other = lambda X, y: sm.NegativeBinomial(y, sm.add_constant(X)).fit(disp=0)  # noqa: E731
        return BayesianNegativeBinomialRegressor(), other, X, y

    def ordinal(n: int, d: int) -> tuple:
        from statsmodels.miscmodels.ordinal_model import OrderedModel  # of "bench" too

        X, eta, rng = normal_rows(n, d)
        y = np.digitize(eta + rng.logistic(size=n), [-2, -0.5, 0.5, 2])
        other = lambda X, y: OrderedModel(y, X, distr="logit").fit(method="bfgs", disp=0)  # noqa: E731
        return BayesianOrdinalClassifier(), other, X, y

    def robust(n: int) -> tuple:
        X, eta, rng = normal_rows(n, 10)
        return BayesianRobustRegressor(), HuberRegressor().fit, X, eta + rng.standard_t(4, n)

    return {
        "20 classes 3000 x 10": lambda: by_class(20),
        "50 classes 3000 x 10": lambda: by_class(50),
        "linear 1000 x 10": linear,
        "Gamma 1000 x 10": gamma,
        "negative binomial 1000 x 10": lambda: negative_binomial(1000, 10),
        "negative binomial 5000 x 30": lambda: negative_binomial(5000, 30),
        "ordinal 1000 x 10": lambda: ordinal(1000, 10),
        "ordinal 2000 x 20": lambda: ordinal(2000, 20),
        "robust 1000 x 10": lambda: robust(1000),
        "robust 10000 x 10": lambda: robust(10_000),
    }


def of_family(name: str, ours: Any, theirs: Any, X: Any, y: NDArray, repeats: int) -> dict:
    """A default fit beside the other."""
    return beside(name, anew(ours, X, y), lambda: theirs(X, y), repeats) | sampled(ours)


def chunk_seen(repeats: int) -> dict:
    """A call of `partial_fit`, after ten others."""
    X, eta, rng = normal_rows(100, 10)
    y = (eta + rng.logistic(size=100) > 0).astype(int)
    model = BayesianLogisticRegression(random_state=0)
    for _ in range(10):
        model.partial_fit(X, y, classes=[0, 1])
    return beside("partial_fit of 100 rows", lambda: model.partial_fit(X, y), None, 9 * repeats)


def cliffs() -> dict[str, Callable[[], tuple]]:
    """Models and data whose default fits took tens of seconds where neighbours take one."""
    logistic, poisson = BayesianLogisticRegression, BayesianPoissonRegressor
    return {
        "cliff: 500 intercepts, logistic": lambda: intercepts(logistic),
        "cliff: 500 intercepts, Poisson": lambda: intercepts(poisson),
        "cliff: 500 intercepts, linear": lambda: intercepts(BayesianLinearRegression),
        "cliff: 16 events": events,
        "cliff: 60 classes": lambda: (logistic(), *classes(60)),
        "cliff: 120 classes": lambda: (logistic(), *classes(120)),
        "cliff: 500 classes": lambda: (logistic(), *classes(500)),
        "cliff: mnist": lambda: (logistic(), *first_digits()),
        "cliff: Poisson counts, negative binomial": lambda: at_limit(
            BayesianNegativeBinomialRegressor
        ),
        "cliff: normal noise, robust": lambda: at_limit(BayesianRobustRegressor),
    }


def intercepts(kind: type, n: int = 100_000, n_levels: int = 500) -> tuple:
    """Three columns, and a column of few ones for each level."""
    rng = np.random.default_rng(0)
    X, level = rng.standard_normal((n, 3)), rng.integers(n_levels, size=n)
    eta = X @ [0.5, -0.3, 0.1] + rng.normal(0, 0.5, n_levels)[level]
    ones = sparse.csr_matrix((np.ones(n), (np.arange(n), level)), (n, n_levels))
    if kind is BayesianLogisticRegression:
        y = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(int)
    else:
        y = eta + rng.standard_normal(n) if "Linear" in kind.__name__ else rng.poisson(np.exp(eta))
    model = kind(prior_groups={"level": list(range(3, 3 + n_levels))})
    return model, sparse.hstack([sparse.csr_matrix(X), ones]).tocsr(), y


def at_limit(kind: type, n: int = 100_000) -> tuple:
    """Twenty columns, and rows of the limit of a family: no dispersion, or no heavy tails."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 20))
    eta = X @ rng.normal(0, 0.2, 20)
    counts = kind is BayesianNegativeBinomialRegressor
    return kind(), X, rng.poisson(np.exp(eta)) if counts else eta + rng.standard_normal(n)


def events(n: int = 100_000) -> tuple:
    """Ten columns, and a probability of a ten thousandth and less."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 10))
    eta = X @ rng.normal(0, 0.4, 10) - 9.3
    return BayesianLogisticRegression(), X, (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(int)


def classes(k: int, n: int = 5000) -> Data:
    """Five columns, with a coefficient for each class."""
    rng = np.random.default_rng(0)
    X, coef = rng.standard_normal((n, 5)), rng.standard_normal((k, 5))
    return X, (X @ coef.T + rng.gumbel(size=(n, k))).argmax(axis=1)


def first_digits() -> Data:
    """10,000 rows of MNIST, all pixels, in single precision."""
    X, y = mnist()
    return (X[:10_000] / 255.0).astype(np.float32), y[:10_000]


def of_cliff(name: str, model: Any, X: Any, y: NDArray, repeats: int) -> dict:
    """A default fit."""
    row = beside(name, anew(model, X, y), None, repeats)
    return row | sampled(model)


def sampled(model: Any) -> dict:
    """By what, and how well."""
    found, sampler = model.diagnostics_, type(model.sampler_).__name__
    row = {"sampler": sampler, "passes": round(model.n_passes_), "ESS": found["ess_min"]}
    return row | {"R-hat": found["r_hat_max"], "draws": model.draws_[..., 0].size}


def digits_predicted(repeats: int) -> dict:
    """5,000 rows, under a default fit."""
    X, y = shipped(load_digits)
    model = BayesianLogisticRegression(random_state=0).fit(X, y)
    point, rows = LogisticRegression(max_iter=10_000).fit(X, y), np.tile(X, (3, 1))[:5000]
    return beside(
        "predict_proba, 5,000 digits",
        lambda: model.predict_proba(rows),
        lambda: point.predict_proba(rows),
        repeats,
    )


def disk_predicted(repeats: int) -> dict:
    """2,000,000 rows of 30 columns, float32, in a file."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2_000_000, 30), dtype=np.float32)
    y = X[:, :5].sum(axis=1) + rng.logistic(size=len(X)) > 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        np.save(path, X)
        stored = np.load(path, mmap_mode="r")
        model = BayesianLogisticRegression(random_state=0).fit(stored, y)
        name = "predict_proba, 2,000,000 rows on disk"
        return beside(name, lambda: model.predict_proba(stored), None, repeats)


def workers_scored(repeats: int) -> dict:
    """The score of 3,000,000 rows of 20 columns over their fit, on two workers."""
    import dask.array as da  # part of the extra "bench"
    from dask.distributed import Client, LocalCluster, wait

    rng = np.random.default_rng(0)
    X = rng.standard_normal((3_000_000, 20), dtype=np.float32)
    y = (X[:, :5].sum(axis=1) + rng.logistic(size=len(X)) > 0).astype(int)
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster):
        rows = da.from_array(X, chunks=(200_000, 20)).persist()
        labels = da.from_array(y, chunks=200_000).persist()
        wait([rows, labels])
        model = BayesianLogisticRegression(random_state=0).fit(rows, labels)  # imports
        return beside(
            "score on dask over the fit",
            lambda: model.score(rows, labels),
            lambda: model.fit(rows, labels),
            repeats,
        )


def levels_compared(repeats: int) -> dict:
    """Effects of 60 levels on five classes, 1,200 rows."""
    import pandas as pd  # part of the extra "bench"
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rng, n = np.random.default_rng(0), 1200
    level, x = rng.integers(0, 60, n), rng.standard_normal(n)
    logits = rng.normal(0, 1, (60, 5))[level] + np.outer(x, rng.normal(0, 1, 5))
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    frame = pd.DataFrame({"level": np.array([f"{k:02d}" for k in range(60)])[level], "x": x})
    encoder = OneHotEncoder(sparse_output=False)
    columns = make_column_transformer((encoder, ["level"]), (StandardScaler(), ["x"]))
    model = make_pipeline(columns, BayesianLogisticRegression(random_state=0)).fit(frame, y)
    effects = lambda: inspection.average_effects(model, frame)  # noqa: E731
    return beside("effects of 60 levels", effects, None, repeats)


def pair_averaged(repeats: int) -> dict:
    """Partial dependence of two columns of breast cancer."""
    X, y = shipped(load_breast_cancer)
    model = BayesianLogisticRegression(random_state=0).fit(X, y)
    of_pair = lambda: partial_dependence(model, X, [(0, 1)], grid_resolution=20)  # noqa: E731
    return beside("partial dependence of a pair", of_pair, None, repeats)


def million_fitted(repeats: int) -> list[dict]:
    """Seconds of each fit of a million rows, and over those of lbfgs."""
    X, y = million()
    jobs = {"lbfgs": partial(LogisticRegression().fit, X, y)}
    for n_jobs in (None, 2):
        model = BayesianLogisticRegression(random_state=0, n_jobs=n_jobs)
        jobs[f"n_jobs={n_jobs}"] = partial(model.fit, X, y)
    found = {name: median(times) for name, times in in_turn(jobs, repeats).items()}
    lbfgs = found.pop("lbfgs")
    ours = [{"fit": name, "s": s, "times lbfgs": s / lbfgs} for name, s in found.items()]
    return [{"fit": "lbfgs", "s": lbfgs}, *ours]


def main(report: Report, only: list[str] | None = None, repeats: int = 5) -> None:
    """A row for each, and a claim for each goal."""
    warnings.simplefilter("ignore")
    jobs: dict[str, Callable[[], dict]] = {
        name: lambda name=name, data=data: of_fit(name, *data(), repeats)
        for name, data in fits().items()
    }
    for name, made in families().items():
        jobs[name] = lambda name=name, made=made: of_family(name, *made(), 3 * repeats)
    jobs["partial_fit of 100 rows"] = lambda: chunk_seen(repeats)
    for name, made in cliffs().items():
        jobs[name] = lambda name=name, made=made: of_cliff(name, *made(), repeats)
    for job in (digits_predicted, disk_predicted, workers_scored, levels_compared, pair_averaged):
        jobs[job.__name__] = lambda job=job: job(repeats)

    def asked(name: str) -> bool:
        return only is None or any(word in name for word in only)

    if asked("million"):
        rows = million_fitted(repeats)
        claims = [
            Claim(f"{row['fit']}: seconds over lbfgs", row["times lbfgs"], high=limit)
            for row, limit in zip(rows[1:], (1.5, 3), strict=True)
        ]
        report.save(rows, claims, name="fit_against_lbfgs")
    rows = []
    for name, job in jobs.items():
        if asked(name):
            rows.append(job())
            print(rows[-1], flush=True)
    if not rows:
        return
    if only is not None and (RESULTS / "seconds.csv").exists():
        new = {row["what"] for row in rows}
        rows += [row for row in report.earlier() if row["what"] not in new]
    found = {row["what"]: row for row in rows}
    claims = []
    for limits, column in ((GOALS, "ratio"), (SECONDS, "ours s")):
        for name, limit in limits.items():
            figure = found[name][column] if name in found else None
            claims.append(Claim(f"{name}: {column}", figure, high=limit))
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(
        main,
        only={"nargs": "*", "help": "words of the lines to run"},
        repeats={"type": int, "default": 5},
    )
