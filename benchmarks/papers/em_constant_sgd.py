"""Mandt, Hoffman & Blei (2017), section 6.3: where is the precision right that constant SGD learns?

    python -m benchmarks.papers.em_constant_sgd [--only evidence]

`hyperparameter_path` learns the prior precision by variational EM in the sampler of the estimator
and in constant SGD. The theory is that of a normal posterior: there the control variate of
`skbayes_sg.inference.variational_em` makes the mean of every update right whatever the spread of
the iterates. Elsewhere the iterates are draws of another distribution. In regressions the path
therefore takes the full matrix, whose iterates are as wide as the posterior, with minibatches of at
least twenty rows; the paper takes one step for all directions, "scalar" here, which has 1,000
updates and the largest minibatches of at most twenty rows with which it is stable.

Linear regression (500 rows of 8 correlated columns, noise variance 1) has a normal posterior, and
the maximum of its evidence is known. Then three data sets each of two, three and five classes,
columns standardised: simulated ones (500 rows of 6), diabetes above its median, breast cancer,
iris, wine, 1,000 white wines by the grades 4 to 8, and 600 of the digits 0 to 4.

Each has the precision by the estimator's own sampler and by constant SGD with the full matrix, the
mean of the logarithm over two random states and half of their difference. Linear regression and
breast cancer have that of the scalar step, too, which takes far longer. "sd of log precision" is
that of the draws of a default fit, which samples the precision.

The claims: on the normal posterior both steps are within 3 % of the maximum of the evidence, and
elsewhere the full matrix learns what the own sampler learns, within that standard deviation.

With K > 2 classes the same shift of all classes changes no probability, and constant SGD has no
gradient noise along it. em_classes.csv has what six samplers learn of multinomial regression, 2,000
rows of 6 columns, over what HMC learns from 600 updates. Without the control variate the ratio
would be K / (K - 1).

Where the evidence has no maximum no sampler can find it. em_evidence.csv has the slope of the log
evidence over the logarithm of the precision rho, (P - rho E||theta||^2) / 2 for P coefficients, by
the mean over the draws of a default fit under the given rho; and "planes separate", whether a
linear program finds parameters under which every row's own class has the largest utility, by one.
The claims: the evidence of iris and of breast cancer falls on both sides of a maximum, and that of
wine and of the digits nowhere grows with the precision, within three errors.

em_networks.csv has what `hyperparameter_path` returns for a network of four hidden units and a DRBM
of three on wine: a scalar step, which may be off by any factor. The claim: where it is off by more
than a fifth, the path warns. "--only" makes one of the four tables, all but the first in two CPU
minutes or less.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize_scalar
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

from benchmarks.common.datasets import regression, standardised
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import learned_precisions
from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    DRBMClassifier,
    VariationalEM,
    hyperparameter_path,
)
from skbayes_sg.samplers import HMC, SGFS, SGLD, ConstantSGD, MomentumSGD

Data = tuple[NDArray, NDArray]
SEEDS = range(2)
ROWS = 20  # of a minibatch
METHODS = ("own sampler", "full")
WITH_SCALAR = ("linear", "breast cancer")
CLASSES = (2, 3, 5, 10)
WITH_MAXIMUM, WITHOUT = ("iris", "breast cancer"), ("wine", "digits 0 to 4")
PRECISIONS = (1.0, 0.1, 0.01, 0.001)
NETWORKS = {"four hidden units": BayesianMLPClassifier((4,)), "DRBM of three": DRBMClassifier(3)}
SAMPLERS = {
    "ConstantSGD": ConstantSGD(batch_size=50),
    "ConstantSGD, scalar": ConstantSGD("scalar", batch_size=50),
    "ConstantSGD, diag": ConstantSGD("diag", batch_size=50),
    "MomentumSGD": MomentumSGD(batch_size=50),
    "SGFS": SGFS(batch_size=50),
    "SGLD": SGLD(batch_size=50),
}


def linear() -> tuple[NDArray, NDArray]:
    """Data of a linear model with noise variance 1."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 8)) @ (0.3 + rng.standard_normal((8, 8)))
    X = X / X.std(axis=0)
    return X, X @ rng.standard_normal(8) / 2 + rng.standard_normal(500)


def evidence_maximum(X: NDArray, y: NDArray) -> float:
    """The precision that maximises the density of y, which is normal."""
    d, V = np.linalg.eigh(X @ X.T)
    squares = (V.T @ y) ** 2

    def minus_log_evidence(rho: float) -> float:
        variances = 1 + d.clip(0) * np.exp(-rho)
        return 0.5 * float(np.sum(np.log(variances) + squares / variances))

    return float(np.exp(minimize_scalar(minus_log_evidence, bounds=(-6, 8), method="bounded").x))


def simulated(n_classes: int) -> Data:
    """500 rows of 6 independent columns."""
    rng = np.random.default_rng(n_classes)
    X = rng.standard_normal((500, 6))
    utilities = 0.7 * X @ rng.standard_normal((6, n_classes))
    return X, (utilities + rng.gumbel(size=utilities.shape)).argmax(axis=1)


def diabetes() -> Data:
    """Whether the disease progressed more than in half of the patients."""
    X, y = load_diabetes(return_X_y=True)
    return X, y > np.median(y)


def white_wines() -> Data:
    """1,000 of the grades 4 to 8, which few others have."""
    X, y = regression("wine")
    kept = np.flatnonzero((y >= 4) & (y <= 8))
    rows = np.random.default_rng(0).permutation(kept)[:1000]
    return X[rows], y[rows]


def digits() -> Data:
    """600 of the digits 0 to 4, in the pixels that vary."""
    X, y = load_digits(return_X_y=True)
    X, y = X[y < 5][:600], y[y < 5][:600]
    return X[:, X.std(axis=0) > 1], y


SETS: dict[str, tuple[int, Callable[[], Data]]] = {
    "simulated, 2 classes": (2, lambda: simulated(2)),
    "diabetes": (2, diabetes),
    "breast cancer": (2, lambda: load_breast_cancer(return_X_y=True)),
    "simulated, 3 classes": (3, lambda: simulated(3)),
    "iris": (3, lambda: load_iris(return_X_y=True)),
    "wine": (3, lambda: load_wine(return_X_y=True)),
    "simulated, 5 classes": (5, lambda: simulated(5)),
    "white wines": (5, white_wines),
    "digits 0 to 4": (5, digits),
}


def learned(name: str, method: str, X: NDArray, y: NDArray, seed: int) -> float:
    """The precision of the coefficients, or NaN where no minibatch is small enough."""
    em = VariationalEM(n_updates=1000 if method == "scalar" else 250)
    model = BayesianLogisticRegression()
    if name == "linear":
        model = BayesianLinearRegression(noise_variance=1.0, fit_intercept=False)
    model.set_params(prior_precision=em, n_chains=4, n_draws=8, random_state=seed)
    for size in (ROWS, 10, 5, 2, 1) if method == "scalar" else (ROWS,):
        if method != "own sampler":
            model.set_params(sampler=ConstantSGD(method, batch_size=size))
        try:
            return learned_precisions(model.fit(X, y))[0]
        except (ValueError, FloatingPointError):  # unstable
            continue
    return np.nan


def row_of(name: str, n_classes: int | None, X: NDArray, y: NDArray) -> dict:
    """What each method learns of a data set."""
    row: dict = {"data": name, "classes": n_classes, "rows": len(X), "columns": X.shape[1]}
    for method in METHODS:
        logs = np.log([learned(name, method, X, y, seed) for seed in SEEDS])
        row |= {method: float(np.exp(logs.mean())), f"{method}, +-": float(np.ptp(logs) / 2)}
    if name in WITH_SCALAR:
        row["scalar"] = learned(name, "scalar", X, y, SEEDS[0])
    if name == "linear":
        return row | {"evidence": evidence_maximum(X, y)}
    drawn = BayesianLogisticRegression(random_state=0).fit(X, y).prior_precision_draws_
    row["sd of log precision"] = float(np.log(drawn).std())
    for method in [method for method in ("full", "scalar") if method in row]:
        row[f"{method} over own"] = row[method] / row["own sampler"]
        away = np.log(row[f"{method} over own"]) / row["sd of log precision"]
        row[f"{method}, away in sd"] = float(away)
    return row


def claims(rows: list[dict]) -> list[Claim]:
    """Right on the normal posterior, and within its own spread elsewhere."""
    known = rows[0]
    found = [
        Claim(f"linear regression, {method}: precision over the evidence's", ratio, 0.97, 1.03)
        for method in (*METHODS, "scalar")
        for ratio in [known[method] / known["evidence"]]
    ]
    for row in rows[1:]:
        sentence = f"{row['data']}: log of full over own sampler, in sd of log precision"
        found.append(Claim(sentence, row["full, away in sd"], -1.0, 1.0))
    return found


def of_classes(n_classes: int) -> tuple[NDArray, NDArray]:
    """Rows of a multinomial model."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 6))
    utilities = 0.5 * X @ rng.standard_normal((6, n_classes))
    return X, (utilities + rng.gumbel(size=utilities.shape)).argmax(axis=1)


def learned_by(sampler, X: NDArray, y: NDArray, n_updates: int = 250, seed: int = 1) -> float:
    """The precision of the coefficients; the few draws after it are not looked at."""
    em = VariationalEM(n_updates=n_updates)
    model = BayesianLogisticRegression(sampler, em, n_chains=4, n_draws=50, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return learned_precisions(model.fit(X, y))[0]


def by_classes() -> list[dict]:
    """What each sampler learns, over what HMC learns."""
    rows: list[dict] = []
    for n_classes in CLASSES:
        X, y = of_classes(n_classes)
        row: dict = {"classes": n_classes, "HMC": learned_by(HMC(), X, y, n_updates=600, seed=0)}
        row |= {name: learned_by(s, X, y) / row["HMC"] for name, s in SAMPLERS.items()}
        rows.append(row)
        print(row, flush=True)
    return rows


def regressions() -> Iterator[dict]:
    """Every data set."""
    for name, (n_classes, of) in {"linear": (None, linear), **SETS}.items():
        X, y = of()
        yield row_of(name, n_classes, X if name == "linear" else standardised(X), y)


def planes_separate(X: NDArray, y: NDArray) -> bool:
    """Whether some parameters give every row's own class the largest utility, by one."""
    classes, y = np.unique(y, return_inverse=True)
    Z = np.column_stack([X, np.ones(len(X))])
    lead = np.zeros((len(Z), len(classes), len(classes), Z.shape[1]))  # row, rival, class, column
    lead[np.arange(len(Z)), :, y] = Z[:, None]
    lead[:, range(len(classes)), range(len(classes))] -= Z[:, None]
    rivals = lead[y[:, None] != range(len(classes))].reshape(-1, len(classes) * Z.shape[1])
    found = linprog(np.zeros(rivals.shape[1]), -rivals, -np.ones(len(rivals)), bounds=(None, None))
    return found.status == 0


def evidence(name: str) -> Iterator[dict]:
    """Slopes of the log evidence over log precision."""
    X, y = SETS[name][1]()
    X = standardised(X)
    separate = planes_separate(X, y)
    for precision in PRECISIONS:
        model = BayesianLogisticRegression(prior_precision=precision, random_state=0).fit(X, y)
        squares = precision * np.sum(model.coef_samples_**2, axis=(-2, -1))
        P = max(len(model.coef_) - 1, 1) * X.shape[1]  # without the common shift of all classes
        yield {
            "data": name,
            "planes separate": "yes" if separate else "no",
            "precision": precision,
            "slope": float(P - squares.mean()) / 2,
            "error": float(squares.std() / 2 / np.sqrt(model.diagnostics_["ess_min"])),
        }


def evidence_claims(rows: list[dict]) -> list[Claim]:
    """Where the evidence has a maximum, and where it has none."""
    found = []
    for name in (*WITH_MAXIMUM, *WITHOUT):
        of = [row for row in rows if row["data"] == name]
        above = [row["slope"] - 3 * row["error"] for row in of]
        if name in WITHOUT:
            found.append(Claim(f"{name}: slopes less three errors", above, high=0))
            continue
        below = of[0]["slope"] + 3 * of[0]["error"]
        found.append(Claim(f"{name}: slope at precision 1, and three errors", below, high=0))
        found.append(Claim(f"{name}: largest slope less three errors", max(above), low=0))
    return found


def networks() -> Iterator[dict]:
    """What the path learns of the two layers of each network on wine."""
    X, y = load_wine(return_X_y=True)
    X = standardised(X)
    for name, model in NETWORKS.items():
        model.set_params(n_chains=4, n_draws=8, random_state=0)
        path = hyperparameter_path(model, X, y, X, y, prior_precisions=[1.0])
        for k, block in enumerate(path.em_blocks):
            own, by_sgd = float(path.em_precisions[k]), float(path.sgd_em_precisions[k])
            yield {
                "network": name,
                "block": block,
                "own sampler": own,
                "constant SGD": by_sgd,
                "over own": by_sgd / own,
                "warnings": len(path.sgd_em_warnings),
                "first warning": path.sgd_em_warnings[0] if path.sgd_em_warnings else "",
            }


def network_claims(rows: list[dict]) -> list[Claim]:
    """What is off is said."""
    return [
        Claim(f"{row['network']}, {row['block']}: warnings", row["warnings"], low=1)
        for row in rows
        if abs(np.log(row["over own"])) > np.log(1.2)
    ]


def main(report: Report, only: str | None) -> None:
    """All tables, or one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if only in (None, "regressions"):
            rows: list[dict] = []
            for row in regressions():
                rows.append(row)
                report.save(rows, claims(rows))  # a run that is stopped keeps what it has
        if only in (None, "evidence"):
            rows = [row for name in (*WITH_MAXIMUM, *WITHOUT) for row in evidence(name)]
            report.save(rows, evidence_claims(rows), name="em_evidence")
        if only in (None, "networks"):
            rows = list(networks())
            report.save(rows, network_claims(rows), name="em_networks")
    if only in (None, "classes"):
        rows = by_classes()
        of_samplers = [
            Claim(f"{name}: learned precision over HMC's", [r[name] for r in rows], 0.95, 1.05)
            for name in SAMPLERS
        ]
        report.save(rows, of_samplers, name="em_classes")


if __name__ == "__main__":
    choices = ["regressions", "evidence", "networks", "classes"]
    benchmark(main, only={"choices": choices, "help": "one of the four tables"})
